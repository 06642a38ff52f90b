"""Mistakes with gradings, blocked arrays and their programs: what, where, what to do."""

from __future__ import annotations

import numpy as np
import pytest

import tcgen

GRADING = tcgen.Grading.from_orbsym("Cs", o=[0, 1], v=[0, 1, 1])
SPEC = """
space o
space v
index i : o
index a b : v
input f[v,v], t[o,v]
output r
r[i,a] = f[a,b]*t[i,b]
"""
WIDE = """
space o
space v
index i j : o
index a : v
input f[v,o], t[o,o,v] conserves (0,1)->(2)
output r
r[i,j,a] = t[i,j,a]*f[a,i]
"""
PROGRAM = tcgen.compile(SPEC, extents={"o": 2, "v": 3})


def told(error: type[Exception], *parts: str, **call: object) -> None:
    with pytest.raises(error) as caught:
        call["do"]()  # type: ignore[operator]
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def test_forbidden_elements_name_the_largest() -> None:
    dense = np.zeros((2, 3))
    dense[0, 0], dense[0, 2], dense[1, 0] = 1, 1e-3, 1e-5
    told(
        tcgen.CheckError,
        *("element [0, 2]", "(A', A\")", "1.000e-03", "Cs", "smaller group"),
        do=lambda: tcgen.blocked(dense, GRADING, "ov"),
    )
    told(
        tcgen.CheckError,
        *("input t", "element [0, 2]"),
        do=lambda: tcgen.blocked(PROGRAM, GRADING)(f=np.eye(3), t=dense),
    )
    dense[0, 2] = dense[1, 0] = 1e-9
    assert tcgen.blocked(dense, GRADING, "ov").block(0, 0)[0, 0] == 1
    dense[1, 0] = np.nan
    told(tcgen.CheckError, "element [1, 0]", do=lambda: tcgen.blocked(dense, GRADING, "ov"))


@pytest.mark.parametrize("kind", ["symmetric", "antisymmetric", "hermitian"])
def test_arrays_without_their_declared_symmetry(kind: str) -> None:
    dtype = "complex128" if kind == "hermitian" else "float64"
    axes = "(0)<->(1)" if kind == "hermitian" else "(0,1) conserves (0,1)->()"
    spec = f"space o graded\nindex i j : o\ninput t[o,o] {kind} {axes}\noutput e\n"
    spec += "e = t[i,j]*conj(t[i,j])"
    grading = tcgen.Grading((3,), {"o": [0, 0, 1, 2, 2]})
    program = tcgen.compile(spec, extents={"o": 5}, dtype=dtype)
    blocks = tcgen.blocked(program, grading)
    array = blocks.empty("t")
    array.data[...] = np.arange(1, len(array.data) + 1)
    told(tcgen.CheckError, "input t", "declared symmetry", "block", do=lambda: blocks(t=array))
    dense = array.dense()
    dense = dense + (-dense.T if kind == "antisymmetric" else dense.T)
    made = tcgen.blocked(program, grading)(t=dense)["e"]
    np.testing.assert_allclose(made, (np.abs(dense) ** 2).sum())


@pytest.mark.parametrize(
    ("error", "parts", "call"),
    [
        (
            tcgen.ShapeError,
            ("axis 1", "4 elements", "3 orbitals v"),
            lambda: tcgen.blocked(np.zeros((2, 4)), GRADING, "ov"),
        ),
        (
            tcgen.DtypeError,
            ("f must be float64", "dense()", "tcgen.blocked"),
            lambda: PROGRAM(f=tcgen.blocked(np.eye(3), GRADING, "vv"), t=np.zeros((2, 3))),
        ),
        (
            tcgen.ArgumentError,
            ("different lengths",),
            lambda: tcgen.blocked([[1.0], [1.0, 2.0]], GRADING, "oo"),
        ),
        (
            tcgen.ArgumentError,
            ("input f", "masks", "filled(0)"),
            lambda: tcgen.blocked(PROGRAM, GRADING)(f=np.ma.zeros((3, 3)), t=np.zeros((2, 3))),
        ),
        (
            tcgen.ArgumentError,
            ("blocks of Cs already", "dense()"),
            lambda: tcgen.blocked(tcgen.blocked(np.zeros((2, 3)), GRADING, "ov"), GRADING, "ov"),
        ),
        (
            tcgen.ShapeError,
            ("2 axes", "3 spaces"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ovv"),
        ),
        (
            tcgen.ArgumentError,
            ("no axis of [x,y]", "o, v"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "xy"),
        ),
        (
            tcgen.ArgumentError,
            ("Cs has no element 'B1'", "A'"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", charge="B1"),
        ),
        (
            tcgen.DtypeError,
            ("int64", "float64"),
            lambda: tcgen.blocked(np.zeros((2, 3), int), GRADING, "ov"),
        ),
        (
            tcgen.ArgumentError,
            ("not a tcgen.Grading", "from_orbsym"),
            lambda: tcgen.blocked(np.zeros((2, 3)), "C2v", "ov"),
        ),
        (
            tcgen.ArgumentError,
            ("space of each axis is missing",),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING),
        ),
        (
            tcgen.ArgumentError,
            ("signs=(1, 2)",),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", signs=(1, 2)),
        ),
        (
            tcgen.ArgumentError,
            ("(A', A\")", "forbidden"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov").block(0, 1),
        ),
        (
            tcgen.ArgumentError,
            ("1 irreps", "2 axes"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov").block(0),
        ),
        (
            tcgen.ArgumentError,
            ("orbitals w", "o, v"),
            lambda: tcgen.blocked(PROGRAM, tcgen.Grading((2,), {"w": [0]})),
        ),
        (
            tcgen.ArgumentError,
            ("spaces, signs, charge", "leave them out"),
            lambda: tcgen.blocked(PROGRAM, GRADING, "ov"),
        ),
        (
            tcgen.ArgumentError,
            ("unknown charge x", "charges are none"),
            lambda: tcgen.blocked(PROGRAM, GRADING, charges={"x": 0}),
        ),
        (
            tcgen.ShapeError,
            ("input t", "(2, 4)", "v=3", "(2, 3)"),
            lambda: tcgen.blocked(PROGRAM, GRADING)(f=np.zeros((3, 3)), t=np.zeros((2, 4))),
        ),
        (
            tcgen.DtypeError,
            ("input f", "float32", "astype"),
            lambda: tcgen.blocked(PROGRAM, GRADING)(
                f=np.zeros((3, 3), "float32"), t=np.zeros((2, 3))
            ),
        ),
        (
            tcgen.ArgumentError,
            ("missing input t",),
            lambda: tcgen.blocked(PROGRAM, GRADING)(f=np.zeros((3, 3))),
        ),
        (
            tcgen.ArgumentError,
            ("f may change",),
            lambda: tcgen.blocked(PROGRAM, GRADING).bind(f=np.zeros((3, 3))),
        ),
        (
            tcgen.ArgumentError,
            ("no input g", "f, t"),
            lambda: tcgen.blocked(PROGRAM, GRADING).blocked("g", np.zeros(3)),
        ),
        (
            tcgen.ArgumentError,
            ("spaces=3", "oovv"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, 3),
        ),
        (
            tcgen.ArgumentError,
            ("spaces=[1, 2]",),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, [1, 2]),
        ),
        (
            tcgen.ArgumentError,
            ("signs='+-'", "2 axes"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", signs="+-"),
        ),
        (
            tcgen.ArgumentError,
            ("signs=1", "2 axes"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", signs=1),
        ),
        (
            tcgen.ArgumentError,
            ("signs=(1.5, -1)", "2 axes"),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", signs=(1.5, -1)),
        ),
        (
            tcgen.ArgumentError,
            ("tolerance=nan",),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", tolerance=float("nan")),
        ),
        (
            tcgen.ArgumentError,
            ("tolerance='a'",),
            lambda: tcgen.blocked(np.zeros((2, 3)), GRADING, "ov", tolerance="a"),
        ),
        (
            tcgen.ExtentError,
            ("extent o=5", "2 orbitals o"),
            lambda: tcgen.blocked(PROGRAM, GRADING, extents={"o": 5}),
        ),
        (
            tcgen.ExtentError,
            ("no space q", "o, v"),
            lambda: tcgen.blocked(PROGRAM, GRADING, extents={"q": 5}),
        ),
        (
            tcgen.ExtentError,
            ("v=-5", "negative"),
            lambda: tcgen.blocked(PROGRAM, tcgen.Grading((2,), {"o": [0, 1]}), extents={"v": -5}),
        ),
    ],
)
def test_messages(error: type[Exception], parts: tuple[str, ...], call: object) -> None:
    told(error, *parts, do=call)


def test_blocked_arrays_of_another_grading_or_of_other_axes() -> None:
    program = tcgen.blocked(PROGRAM, GRADING)
    f = tcgen.blocked(np.eye(3), GRADING, "vv")
    other = tcgen.Grading.from_orbsym("Cs", o=[1, 1], v=[0, 1, 1])
    t = tcgen.blocked(np.zeros((2, 3)), other, "ov")
    told(tcgen.ArgumentError, "input t", "o = 0+2", "one grading", do=lambda: program(f=f, t=t))
    told(tcgen.ShapeError, "input t", "[v,v]", "[o,v]", do=lambda: program(f=f, t=f))


def test_spaces_without_a_grading_need_an_extent() -> None:
    graded = tcgen.Grading((2,), {"v": [0, 1]})
    told(
        tcgen.ExtentError,
        *("space o has no grading", 'extents={"o": 10}'),
        do=lambda: tcgen.blocked(PROGRAM, graded),
    )


def test_strides_of_more_than_32_bits_are_refused() -> None:
    grading = tcgen.Grading((1,), {"o": [0] * 50_000, "v": [0] * 50_000})
    told(
        tcgen.PlanError,
        *("2,500,000,000 elements", "larger group", "dense arrays"),
        do=lambda: tcgen.blocked(tcgen.compile(WIDE, extents={"o": 3, "v": 3}), grading),
    )


def test_a_memory_limit_holds_for_blocks() -> None:
    limited = tcgen.compile(SPEC, extents={"o": 2, "v": 3}, memory_limit="1KiB")
    grading = tcgen.Grading((2,), {"o": [0, 1] * 10, "v": [0, 1, 1] * 10})
    program = tcgen.blocked(limited, grading)
    f, t = program.empty("f"), program.empty("t")
    told(
        tcgen.MemoryLimitError,
        *("over blocks of Z2", f"{program.peak_bytes():,} bytes", "1,024 bytes", "larger group"),
        do=lambda: program(f=f, t=t),
    )


def test_elements_that_do_not_fill_the_blocks() -> None:
    program = tcgen.blocked(PROGRAM, GRADING)
    f, t = program.empty("f"), program.empty("t")
    t.data = t.data[:-1]
    told(tcgen.ShapeError, "input t", "2 elements", "3 elements", do=lambda: program(f=f, t=t))


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        (
            """
            space o
            space v
            index i : o
            index a : v
            input f[o,v]
            output y accumulate
            y[i,a] = 2*f[i,a]
            """,
            ("output y accumulates", "afterwards"),
        ),
        (
            """
            space o
            space v
            index i j : o
            index a b : v
            input B[o,v] generated, t[o,v]
            output y
            y[i,j] = B[i,a]*t[j,a]
            """,
            ("B is generated", "pass it whole"),
        ),
    ],
)
def test_refused_programs(spec: str, parts: tuple[str, ...]) -> None:
    program = tcgen.compile(spec, extents={"o": 2, "v": 3})
    told(tcgen.PlanError, *parts, do=lambda: tcgen.blocked(program, GRADING))


def test_joined_spaces_have_the_orbitals_of_their_parts() -> None:
    spec = """
    space o
    space v
    space g = o + v
    index p q : g
    input f[g,g]
    output y
    y[p,q] = f[p,q] + f[q,p]
    """
    program = tcgen.compile(spec, extents={"o": 2, "v": 3})
    told(
        tcgen.PlanError,
        *("g joins o and v", "lacks v", "irreps"),
        do=lambda: tcgen.blocked(program, tcgen.Grading((2,), {"o": [0, 1]}), extents={"v": 3}),
    )
    wrong = tcgen.Grading((2,), {"o": [0, 1], "v": [0, 1, 1], "g": [0, 0, 1, 1, 1]})
    told(
        tcgen.ArgumentError,
        *("orbitals g", "o, v, one after the other"),
        do=lambda: tcgen.blocked(program, wrong),
    )
    graded = tcgen.Grading((2,), {"o": [0, 1], "v": [0, 1, 1], "g": [0, 1, 0, 1, 1]})
    f = tcgen.blocked(np.eye(5), graded, "gg")
    blocks = tcgen.blocked(program, tcgen.Grading((2,), {"o": [0, 1], "v": [0, 1, 1]}))
    np.testing.assert_array_equal(blocks(f=f)["y"].dense(), 2 * np.eye(5))
    part = spec.replace("space o", "space o graded")
    told(
        tcgen.SpecError,
        *("axis 0 of f[g,g] joins o", "v, which is not", "declare v graded"),
        do=lambda: tcgen.read_spec(part),
    )


def test_functions_that_are_not_zero_at_zero_are_refused() -> None:
    spec = SPEC.replace("r[i,a] = f[a,b]*t[i,b]", "r[i,a] = exp(t[i,a])*f[a,a]")
    program = tcgen.compile(spec, extents={"o": 2, "v": 3})
    told(tcgen.SpecError, "exp", do=lambda: tcgen.blocked(program, GRADING))
