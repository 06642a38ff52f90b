"""Random programs over groups of two to four symmetric axes equal the interpreter."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.campaigns import cases
from tcgen.compiler.driver import compile_system
from tcgen.frontend.spec.reader import read_spec
from tcgen.interp import evaluate_system
from tcgen.options import OBJECTIVES, Options
from tcgen.runtime.program import Program
from tcgen.testing import assert_same_values, random_arrays
from tcgen.thresholds import Thresholds
from tcgen.thresholds.cpu import CpuThresholds

SMALL = Thresholds(cpu=CpuThresholds(pair_copy_flops=0, pair_flops=1))  # all groups are used
HEAD = "space o\nspace v\nindex i j k l : o\nindex a b c d : o\nindex e f g h : v\n"
# Packed arrays without elements do not show the extents: other arrays do.
EXTENTS = "input n_o[o], n_v[v]\noutput z\nz = n_o[i]*n_o[i] + n_v[e]*n_v[e]\n"


@dataclass(frozen=True)
class Group:
    """Letters of some neighbouring axes, and how exchanges change a tensor."""

    letters: str
    word: str

    def declared(self, start: int, packed: bool) -> str:
        """The attributes of a tensor that has the group from an axis on."""
        if not self.word:
            return ""
        axes = f"({','.join(str(start + n) for n in range(len(self.letters)))})"
        return f" {self.word} {axes}" + (f" packed {axes}" if packed else "")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Two contractions, an element-wise sum and an inner product over three groups.

    Two of the groups have equal spaces and lengths, so that inputs can be hermitian.
    """
    count = draw(st.integers(1, 4))
    words = st.sampled_from(["", "symmetric", "antisymmetric"])
    word = draw(words) if count > 1 else ""
    inner = draw(st.integers(1, 3 if count < 3 else 2))
    rows, columns = Group("ijkl"[:count], word), Group("abcd"[:count], word)
    sums = Group("efgh"[:inner], draw(words) if inner > 1 else "")

    def tensor(name: str, role: str, first: Group, second: Group) -> str:
        text = ""
        for group, start in ((first, 0), (second, len(first.letters))):
            text += group.declared(start, draw(st.booleans()))
        spaces = ",".join("v" if x in "efgh" else "o" for x in first.letters + second.letters)
        kind = draw(st.sampled_from(["", " constant", " generated"])) if role == "input" else ""
        if " packed " in text and "generated" in kind:
            kind = ""  # a generated input is never stored
        alike = not text and first.letters[0] == "i" and second.letters[0] == "a"
        if role == "input" and alike and draw(st.booleans()):
            pairs = [",".join(str(n + s) for n in range(count)) for s in (0, count)]
            text = f" hermitian ({pairs[0]})<->({pairs[1]})"
        return f"{role} {name}[{spaces}]{text}{kind}\n"

    def ref(name: str, first: Group, second: Group) -> str:
        letters = [
            x
            for group in (first, second)
            for x in (draw(st.permutations(group.letters)) if group.word else group.letters)
        ]
        return f"{name}[{','.join(letters)}]"

    declared = tensor("x", "input", rows, sums) + tensor("y", "input", columns, sums)
    declared += tensor("h", "input", rows, columns) + tensor("r", "output", rows, columns)
    declared += "output e\n"
    sign = draw(st.sampled_from(["+", "-"]))
    u = f"u[{','.join(rows.letters + columns.letters)}]"
    r = u.replace("u", "r", 1)
    lines = [
        f"{u} = 1/2*{ref('x', rows, sums)}*{ref('y', columns, sums)}",
        f"{r} = {ref('u', rows, columns)} {sign} 2*{ref('h', rows, columns)}",
        f"e = {ref('u', rows, columns)}*{ref('h', rows, columns)}",
    ]
    if draw(st.booleans()):
        moved = f"h[{','.join(columns.letters + rows.letters)}]"
        lines[1] = lines[1].replace(lines[1].split("2*")[1], moved)
    return HEAD + declared + "\n".join(lines) + "\n" + EXTENTS


@cases(4, 400)
@given(
    text=programs(),
    sizes=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    dtype=st.sampled_from(["float64", "float32", "complex128"]),
    objective=st.sampled_from(OBJECTIVES),
    bound=st.booleans(),
)
def test_symmetric_programs(
    text: str,
    sizes: tuple[int, int],
    dtype: str,
    objective: str,
    bound: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At other extents than planned, where groups may have no value; constants bound or not."""
    monkeypatch.setenv("TCGEN_VERIFY", "2")
    system, extents = read_spec(text), dict(zip("ov", sizes, strict=True))
    options = Options(
        extents=(("o", 3), ("v", 3)), dtype=dtype, objective=objective, thresholds=SMALL
    )
    program = Program(compile_system(system, options).artifact)
    arrays = random_arrays(system, extents, dtype=dtype, seed=2)
    wanted = evaluate_system(system, arrays, extents, dtype=dtype)
    if bound:
        constants = [t.name for t in system.tensors if t.is_input and not t.volatile]
        found = program.bind(**{name: arrays.pop(name) for name in constants})(**arrays)
    else:
        found = program(**arrays)
    tolerance = 1e-3 if dtype == "float32" else 1e-10
    assert_same_values(found, wanted, rtol=tolerance, atol=tolerance)
