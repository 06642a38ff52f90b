"""Random small programs for the fusion tests, from a seed."""

from __future__ import annotations

import random
from fractions import Fraction

from tcgen.ir.program import Add, Contract, FormulaSequence, Phase, Produce, Step
from tcgen.ir.tensor import Index, Ref, Role, Space, Tensor

SPACES = (Space("o"), Space("v"))
FIVE = tuple(Index(name, SPACES[n % 2]) for n, name in enumerate("abcde"))


def random_tree(
    seed: int,
    leaves: int,
    generated: float = 0.5,
    *,
    loops: tuple[Index, ...] = FIVE,
    rank: int = 4,
) -> FormulaSequence:
    """An expression tree; each step uses letters of its own.

    Args:
        seed: of the random numbers.
        leaves: inputs.
        generated: how often an input is generated.
        loops: what the arrays' axes are drawn from.
        rank: most axes of an intermediate; inputs have one less at most.
    """
    rng = random.Random(seed)
    tensors: list[Tensor] = []
    rows: list[tuple[Tensor, list[Index], tuple[tuple[Tensor, list[Index]], ...]]] = []
    pool: list[tuple[Tensor, list[Index]]] = []
    for n in range(leaves):
        indices = rng.sample(loops, rng.randint(1, rank - 1))
        role = Role.GENERATED if rng.random() < generated else Role.INPUT
        array = Tensor(f"A{n}", tuple(i.space for i in indices), role)
        tensors.append(array)
        pool.append((array, indices))
        if role is Role.GENERATED:
            rows.append((array, indices, ()))
    while len(pool) > 1 or not rows or rows[-1][0].role is Role.GENERATED:
        rng.shuffle(pool)
        taken = tuple(pool.pop() for _ in range(min(len(pool), rng.choice((1, 2, 2, 2)))))
        seen = list(dict.fromkeys(i for _, indices in taken for i in indices))
        later = {i for _, indices in pool for i in indices}
        keep = [i for i in seen if i in later or rng.random() < 0.6][:rank]
        rng.shuffle(keep)
        role = Role.TEMP if pool else Role.OUTPUT
        array = Tensor(f"T{len(rows)}", tuple(i.space for i in keep), role)
        tensors.append(array)
        rows.append((array, keep, taken))
        if pool:
            pool.append((array, keep))
    steps = []
    for n, (array, indices, operands) in enumerate(rows):
        letters = dict(zip(loops, rng.sample("pqrstuwxyz"[: len(loops)], len(loops)), strict=True))

        def own(found: list[Index], letters: dict[Index, str] = letters) -> tuple[Index, ...]:
            return tuple(Index(letters[i], i.space) for i in found)

        if not operands:
            steps.append(Step(n, Ref(array, own(indices)), Produce(array)))
            continue
        refs = tuple(Ref(a, own(i)) for a, i in operands)
        inner = dict.fromkeys(i for r in refs for i in r.indices)
        sums = tuple(i for i in inner if i not in own(indices))
        op = Contract(*refs) if len(refs) == 2 else Add(refs[0])
        steps.append(Step(n, Ref(array, own(indices)), op, Fraction(1), False, sums))
    inputs = [t for t in tensors if t.is_input]
    spaces = tuple(dict.fromkeys(i.space for i in loops))
    program = FormulaSequence(
        "tree", spaces, (*inputs, *(t for t in tensors if not t.is_input)), tuple(steps)
    )
    program.verify()
    return program


def random_dag(seed: int, length: int) -> FormulaSequence:
    """Steps that share, accumulate, read diagonals and parts, and run in both phases."""
    rng = random.Random(seed)
    joined = Space("p", parts=SPACES)
    letters = [Index(name, SPACES[n % 2]) for n, name in enumerate("ijklab")]
    made = [
        Tensor(
            f"A{n}",
            tuple(rng.choice((*SPACES, joined)) for _ in range(rng.randint(1, 3))),
            rng.choice((Role.INPUT, Role.GENERATED)),
            rng.random() < 0.5,
        )
        for n in range(3)
    ]
    steps: list[Step] = []
    inputs = tuple(made)
    for array in made:
        if array.role is Role.GENERATED:
            indices = tuple(Index(f"x{n}", s) for n, s in enumerate(array.spaces))
            phase = Phase.VOLATILE if array.volatile else Phase.CONSTANT
            steps.append(Step(len(steps), Ref(array, indices), Produce(array), phase=phase))
    constant = {t for t in made if not t.volatile}
    outs: list[Tensor] = []
    for n in range(length):
        refs = []
        for array in rng.sample(made, min(len(made), rng.randint(1, 2))):
            fitting = [
                [i for i in letters if i.space == s or (s == joined and rng.random() < 0.9)]
                + [Index("y", joined)] * (s == joined)
                for s in array.spaces
            ]
            refs.append(Ref(array, tuple(rng.choice(f) for f in fitting)))
        seen = tuple(dict.fromkeys(i for r in refs for i in r.indices))
        keep = tuple(rng.sample(seen, rng.randint(0, min(3, len(seen)))))
        sums = tuple(i for i in seen if i not in keep)
        phase = Phase.CONSTANT if all(r.tensor in constant for r in refs) else Phase.VOLATILE
        role = Role.OUTPUT if n == length - 1 or rng.random() < 0.2 else Role.TEMP
        out = Tensor(f"T{n}", tuple(i.space for i in keep), role)
        op = Contract(*refs) if len(refs) == 2 else Add(refs[0])
        steps.append(Step(len(steps), Ref(out, keep), op, Fraction(1), False, sums, phase))
        if rng.random() < 0.3:
            steps.append(Step(len(steps), Ref(out, keep), op, Fraction(2), True, sums, phase))
        if phase is Phase.CONSTANT:
            constant.add(out)
        outs.append(out)
        made.append(out)
    program = FormulaSequence("dag", (*SPACES, joined), (*inputs, *outs), tuple(steps))
    program.verify()
    return program
