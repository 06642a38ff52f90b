"""Random systems over graded spaces, random gradings, and the dense oracle of their programs."""

from __future__ import annotations

from typing import Any

import numpy as np

import tcgen
from tcgen.interp import evaluate_system

GROUPS = ((2,), (2, 2), (2, 2, 2), (3,), (4,), (2, 3))
_LETTERS = {"o": "ijklmn", "v": "abcdef", "w": "pqrs"}


def random_grading(moduli: tuple[int, ...], rng: np.random.Generator) -> tcgen.Grading:
    """A grading whose irreps have 0 to 4 orbitals, those of a small group mostly more."""
    order = int(np.prod(moduli))
    most = 5 if order <= 4 else 3
    orbitals = {}
    for space in "ov":
        irreps = np.repeat(np.arange(order), rng.integers(0, most, order))
        orbitals[space] = rng.permutation(irreps).tolist() or [0]
    return tcgen.Grading(moduli, orbitals)


def random_spec(rng: np.random.Generator, *, complex_numbers: bool = False) -> str:
    """Sums of products with labels, functions and charges, whose terms conserve.

    Some indices, and some axes of inputs with other indices, run over all orbitals.
    """
    inputs: list[str] = []
    energies: dict[str, None] = {}
    lines: list[str] = []
    outputs = []
    for n in range(int(rng.integers(1, 4))):
        rank, name = int(rng.integers(0, 5)), f"y{n}"
        free = _free(rank, rng)
        charged = bool(free) and rng.random() < 0.3
        outputs.append(name)
        left = f"{name}[{','.join(i for i, _ in free)}]" if free else name
        for term in range(int(rng.integers(1, 3))):
            factors = _factors(free, rng)
            if charged:
                factors[int(rng.integers(len(factors)))][1] = " charge x"
            texts = []
            for axes, charge in factors:
                tensor = f"t{len(inputs)}"
                inputs.append(_declared(tensor, axes, charge, rng))
                text = f"{tensor}[{','.join(i for i, _ in axes)}]"
                # A conjugated charge has the other sign.
                if not charge and rng.random() < 0.3:
                    text = f"conj({text})" if complex_numbers else f"sin({text})"
                texts.append(text)
            product = "*".join(texts)
            if free and rng.random() < 0.3:
                spaces = [_space(i) for i, _ in free]
                energies |= {f"e_{s}[{s}] label": None for s in spaces}
                labels = [f"e_{s}[{i}]" for s, (i, _) in zip(spaces, free, strict=True)]
                product = f"{product}/({' + '.join(labels)} + 1)"
            number = f"{int(rng.integers(1, 4))}/{int(rng.integers(1, 4))}*"
            lines.append(f"{left} {'=' if term == 0 else '+='} {number}{product}")
    return "\n".join(
        (
            "space o occupied graded",
            "space v virtual graded",
            "space w = o + v",
            *(f"index {' '.join(letters)} : {space}" for space, letters in _LETTERS.items()),
            *(f"input {text}" for text in (*energies, *inputs)),
            f"output {', '.join(outputs)}",
            *lines,
            "",
        )
    )


def _free(rank: int, rng: np.random.Generator) -> list[tuple[str, int]]:
    used = dict.fromkeys(_LETTERS, 0)
    found = []
    for _ in range(rank):
        space = "oovvw"[int(rng.integers(5))]
        found.append((_LETTERS[space][used[space]], int(rng.choice((-1, 1)))))
        used[space] += 1
    return found


def _factors(free: list[tuple[str, int]], rng: np.random.Generator) -> list[Any]:
    """Factors of 2 to 4 axes with both signs, which share free and summed indices."""
    taken = {i for i, _ in free}
    while True:
        count = int(rng.integers(1, 4)) if len(free) != 1 else int(rng.integers(2, 4))
        factors: list[list[tuple[str, int]]] = [[] for _ in range(count)]
        for axis in free:
            factors[int(rng.integers(count))].append(axis)
        spare = [i for s in "ov" for i in _LETTERS[s] if i not in taken]
        spare += [i for i in "rs" if i not in taken]
        for index in rng.permutation(spare)[: int(rng.integers(0, 4))] if count > 1 else ():
            sign = int(rng.choice((-1, 1)))
            one, other = rng.choice(count, 2, replace=False)
            factors[one].append((str(index), sign))
            factors[other].append((str(index), -sign))
        if all(2 <= len(f) <= 4 and {s for _, s in f} == {-1, 1} for f in factors):
            return [[[f[k] for k in rng.permutation(len(f))], ""] for f in factors]


def _space(index: str) -> str:
    return next(space for space, letters in _LETTERS.items() if index in letters)


def _declared(name: str, axes: list[tuple[str, int]], charge: str, rng: np.random.Generator) -> str:
    joined = rng.random() < 0.2
    spaces = ",".join("w" if joined and rng.random() < 0.5 else _space(i) for i, _ in axes)
    enters, leaves = (
        ",".join(str(n) for n, (_, s) in enumerate(axes) if s == sign) for sign in (1, -1)
    )
    return f"{name}[{spaces}] conserves ({enters})->({leaves}){charge}"


def random_inputs(
    program: tcgen.BlockedProgram, names: list[str], rng: np.random.Generator
) -> dict[str, tcgen.BlockedArray]:
    """Random blocked inputs; labels are at least 1."""
    made = {}
    for name in names:
        array = program.empty(name)
        values = rng.standard_normal(array.data.shape)
        if array.dtype.kind == "c":
            values = values + 1j * rng.standard_normal(array.data.shape)
        array.data[...] = 1 + abs(values) if name.startswith("e_") else values / 2
        made[name] = array
    return made


def compare_with_dense(
    spec: str, grading: tcgen.Grading, dtype: str, rng: np.random.Generator, charge: int = 0
) -> tcgen.BlockedProgram:
    """Compare a program over blocks, called and bound, with the interpreter of dense arrays."""
    system = tcgen.read_spec(spec)
    extents = {s: len(grading.orbitals(s)) for s in grading.spaces}
    program = tcgen.compile(system, extents=extents, dtype=dtype)
    charges = {"x": charge} if "charge x" in spec else None
    blocks = tcgen.blocked(program, grading, charges=charges)
    arrays = random_inputs(blocks, [t.name for t in system.inputs], rng)
    dense = {n: a.dense() for n, a in arrays.items()}
    expected = evaluate_system(system, dense, extents, dtype=dtype)
    constants = {t.name for t in system.inputs if not t.volatile}
    bound = blocks.bind(**{n: a for n, a in arrays.items() if n in constants})
    for found in (blocks(**arrays), bound(**{n: dense[n] for n in dense if n not in constants})):
        for name, value in expected.items():
            made = found[name].dense() if value.ndim else found[name]
            tolerance = 2e-4 if dtype == "float32" else 1e-12
            worst = np.abs(made - value).max(initial=0.0)
            assert worst <= tolerance * max(1.0, np.abs(value).max(initial=0.0)), (name, worst)
    return blocks
