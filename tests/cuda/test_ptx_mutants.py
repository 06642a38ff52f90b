"""Faults that rules plant in the PTX of generated kernels are caught: by the engine, or by values.

A rule changes instructions of a kind, at the first place, in the middle or at all. So the mutants
follow the kernels: where a printer changes, the rules find the new places.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable

import pytest

from support import cuda_compile
from support.cuda_device import PtxDevice
from support.cuda_emulator import EmulationError
from support.kernel_families import is_right

pytestmark = [
    pytest.mark.slow,
    pytest.mark.default_thresholds,
    pytest.mark.skipif(not cuda_compile.can_compile(), reason=cuda_compile.MISSING),
    pytest.mark.skipif(
        shutil.which("g++") is None, reason="no C compiler: the PTX engine needs g++"
    ),
]
Change = Callable[[re.Match[str]], str]
FAMILY_OF = {"sm_90": ("tiles", 90), "sm_80": ("tiles", 80)}


def registers(vector: int, *order: int) -> Change:
    """The registers of an operand of a matrix product (0: D, 1: A, 2: B) in another order."""

    def change(match: re.Match[str]) -> str:
        vectors = re.findall(r"\{[^}]*\}", match[0])
        names = vectors[vector].strip("{}").split(",")
        assert len(names) == len(order)
        vectors[vector] = "{" + ",".join(names[i] for i in order) + "}"
        return f"{match[0].split('{')[0]}{', '.join(vectors)};"

    return change


def without(_: re.Match[str]) -> str:
    """Nothing in the place of an instruction."""
    return ""


def added(group: int, amount: int) -> Change:
    """A number of the instruction, changed by some amount."""

    def change(match: re.Match[str]) -> str:
        at, end = match.span(group)
        number = int(match[group] or 0) + amount
        begin = match.start(0)
        sign = "" if match[group] else "+"
        return f"{match[0][: at - begin]}{sign}{number}{match[0][end - begin :]}"

    return change


def written(new: str) -> Change:
    """The template of a match in its place."""
    return lambda match: match.expand(new)


PRODUCT = r"mma\.sync[^;]*;"
COPY = r"(?:@%?\w+ )?cp\.async\.c[ag][^;]*;"
SHUFFLE = r"shfl\.sync\.down\.b32\s+[^,;]+, [^,;]+"
# Groups of the others: what stays before, and the number that changes.
SHARED_LOAD = r"(ld\.shared\.f64\s+%\w+, \[%\w+)(?:\+(\d+))?\]"
STORE = r"(st\.global[\w.]*\.f64\s+\[%\w+)(?:\+(\d+))?\]"


def offset(amount: int) -> Change:
    """Another offset of an address."""
    return lambda match: f"{match[1]}+{int(match[2] or 0) + amount}]"


RULES: dict[str, tuple[str, Change]] = {
    "A: two rows exchanged": (PRODUCT, registers(1, 1, 0, 2, 3)),
    "A: two columns exchanged": (PRODUCT, registers(1, 2, 1, 0, 3)),
    "A: registers turned": (PRODUCT, registers(1, 1, 2, 3, 0)),
    "B: rows exchanged": (PRODUCT, registers(2, 1, 0)),
    "D: columns exchanged": (PRODUCT, registers(0, 1, 0, 2, 3)),
    "D: halves exchanged": (PRODUCT, registers(0, 2, 3, 0, 1)),
    "D of 8 x 8: columns exchanged": (PRODUCT, registers(0, 1, 0)),
    "no product": (PRODUCT, without),
    "no wait for copies": (r"cp\.async\.wait_group[^;]*;", without),
    "a wait for one group less": (r"cp\.async\.wait_group\s+(\d+);", added(1, 1)),
    "no groups of copies": (r"cp\.async\.commit_group;", without),
    "no copy": (COPY, without),
    "a copy to the next element": (r"(cp\.async\.c[ag][\w.:]*\s+\[%\w+)()\]", offset(8)),
    "a copy to the next row": (r"(cp\.async\.c[ag][\w.:]*\s+\[%\w+)()\]", offset(128)),
    "a copy from the next element": (
        r"(cp\.async\.ca[\w.:]*\s+\[%\w+\], \[%\w+)()\]",
        offset(8),
    ),
    "no barrier": (r"bar\.sync\s+0;", without),
    "a fragment from the next element": (SHARED_LOAD, offset(8)),
    "a fragment from the row before": (SHARED_LOAD, offset(-256)),
    "a store to the next element": (STORE, offset(8)),
    "no store": (r"st\.global[\w.]*\.f64[^;]*;", without),
    "elements of twice the bytes": (r"(shl\.b64\s+%\w+, %\w+), 3;", written(r"\1, 4;")),
    "all blocks are the first": (r"mov\.u32(\s+%\w+), %ctaid\.x;", written(r"mov.u32\1, 0;")),
    "all warps are the first": (r"%tid\.x;", written("%laneid;")),
    "first arrays exchanged": (
        r"_param_([01])\];",
        lambda match: f"_param_{1 - int(match[1])}];",
    ),
    "inputs exchanged": (r"_param_([12])\];", lambda match: f"_param_{3 - int(match[1])}];"),
    "one element more": (r"setp\.ge\.s(32|64)", written(r"setp.gt.s\1")),
    "one element less": (
        r"setp\.lt\.s(32|64)(\s+%\w+, %\w+, %\w+;)",
        written(r"setp.le.s\1\2"),
    ),
    "tests turned": (r"setp\.lt\.s(32|64)", written(r"setp.ge.s\1")),
    "other lanes": (rf"({SHUFFLE}, )[^,;]+((?:, [^,;]+){{2}};)", written(r"\g<1>8\2")),
    "a mask without a lane": (
        rf"({SHUFFLE}(?:, [^,;]+){{2}}, )[^,;]+;",
        written(r"\g<1>0x7fffffff;"),
    ),
    "a difference for a sum": (r"add\.f64", written("sub.f64")),
    "a shared row of another length": (r"(mad\.lo\.s32[^;]*, )264(, )", written(r"\g<1>256\2")),
}
MUTANTS = [
    *(
        ("tiles", 90, rule, place)
        for rule in (
            "A: two rows exchanged",
            "A: two columns exchanged",
            "A: registers turned",
            "B: rows exchanged",
            "D: columns exchanged",
            "D: halves exchanged",
            "no product",
            "a fragment from the next element",
        )
        for place in ("first", "middle")
    ),
    *(
        ("tiles", 90, rule, "all")
        for rule in (
            "no wait for copies",
            "a wait for one group less",
            "no groups of copies",
            "no copy",
            "a copy to the next element",
            "a copy to the next row",
            "a copy from the next element",
            "no barrier",
            "a fragment from the row before",
            "a store to the next element",
            "elements of twice the bytes",
            "all blocks are the first",
            "all warps are the first",
            "first arrays exchanged",
            "inputs exchanged",
            "tests turned",
        )
    ),
    *(
        ("tiles of complex numbers", 90, rule, "first")
        for rule in (
            "A: registers turned",
            "B: rows exchanged",
            "D: halves exchanged",
            "no product",
            "no wait for copies",
            "no barrier",
        )
    ),
    *(
        ("tiles in TF32", 90, rule, "first")
        for rule in (
            "A: registers turned",
            "B: rows exchanged",
            "D: halves exchanged",
            "no product",
        )
    ),
    ("tiles", 90, "no store", "first"),
    ("tiles", 80, "D of 8 x 8: columns exchanged", "first"),
    ("tiles", 80, "no product", "middle"),
    ("a sum", 90, "other lanes", "all"),
    ("a sum", 90, "a mask without a lane", "all"),
    ("a sum", 90, "a difference for a sum", "first"),
    ("a sum", 90, "no barrier", "all"),
    ("a sum", 90, "one element more", "all"),
    ("transposed tiles", 90, "no barrier", "all"),
    ("transposed tiles", 90, "a store to the next element", "first"),
    ("transposed tiles", 90, "one element more", "all"),
    ("transposed tiles", 90, "a shared row of another length", "first"),
    ("an epilogue", 90, "no barrier", "all"),
    ("an epilogue", 90, "no wait for copies", "all"),
]


def planted(ptx: str, rule: str, place: str) -> str:
    """The PTX with one fault."""
    pattern, change = RULES[rule]
    found = list(re.finditer(pattern, ptx))
    assert found, f"{rule}: the PTX has no place for it; write the rule anew"
    half = (len(found) - 1) // 2  # the loop for neighbours comes before that for single elements
    chosen = {"first": found[:1], "middle": found[half : half + 1], "all": found}[place]
    for match in reversed(chosen):
        ptx = f"{ptx[: match.start()]}{change(match)}{ptx[match.end() :]}"
    return ptx


@pytest.mark.parametrize(("family", "arch", "rule", "place"), MUTANTS)
def test_mutants(
    family: str, arch: int, rule: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = PtxDevice(arch, lambda ptx: planted(ptx, rule, place))
    monkeypatch.setattr("tcgen.runtime.gpu.backend.open_device", lambda: device)
    try:
        right = is_right(family)
    except EmulationError:
        return
    assert not right


def test_there_are_forty() -> None:
    assert len(set(MUTANTS)) >= 40
