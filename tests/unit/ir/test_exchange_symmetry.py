"""Proofs that an intermediate changes by a sign when two of its axes are exchanged."""

from __future__ import annotations

import pytest

from tcgen.algebra import form_sequence
from tcgen.frontend.spec.reader import read_spec
from tcgen.ir.exchange_symmetry import tensor_sign
from tcgen.options import Options

HEAD = "space v\nindex a b c d : v\ninput x[v], y[v], w[v,v], z[v,v]\noutput r\n"


@pytest.mark.parametrize(
    ("equations", "sign"),
    [
        ("u[a,b] = x[a]*y[b] - x[b]*y[a]", -1),
        ("u[a,b] = x[a]*y[b] + y[a]*x[b]", 1),
        ("u[a,b] = w[a,c]*z[c,b] - w[b,d]*z[d,a]", -1),
        ("u[a,b] = w[a,c]*w[b,c] + x[a]*y[b] + x[b]*y[a]", 1),
        ("u[a,b] = x[a]*y[b]", None),
        ("u[a,b] = x[a]*y[b] - 2*x[b]*y[a]", None),
        ("u[a,b] = w[a,c]*w[b,c] + x[a]*y[b] - x[b]*y[a]", None),
        ("u[a,b] = w[a,c]*z[c,b] - w[b,c]*z[a,c]", None),
        ("u[a,b] = x[a]*y[b] + x[b]*y[a] + w[a,b]", None),
    ],
)
def test_steps_that_are_images_of_each_other(equations: str, sign: int | None) -> None:
    """Terms without a symmetry may have one together."""
    system = read_spec(f"{HEAD}{equations}\nr[a,b] = u[a,b]*w[a,b]\n")
    program = form_sequence(system, Options(extents=(("v", 4),), optimize=False))
    (tensor,) = {s.out.tensor for s in program.steps if s.out.tensor.name == "u"}
    assert tensor_sign(program, tensor, (1, 0)) == sign
