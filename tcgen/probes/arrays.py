"""Random inputs with the declared symmetry and safe denominators, and comparison of results."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, MemoryLimitError
from ..interp.storage import check_extents
from ..interp.systems import evaluate_system
from ..ir.expr import Expr, expr_indices, format_expr
from ..ir.layouts import dense_shape, pack
from ..ir.system import Apply, Equation, System, Term
from ..ir.tensor import Ref, Role, Symmetry, Tensor, element_type, symmetry_group
from ..options import DTYPES
from .signs import Signs, choose_signs, sources

Array: TypeAlias = npt.NDArray[Any]

_MAX_DRAWS = 20  # draws of all inputs before random_arrays gives up
_MIN_DENOMINATOR = 0.1  # smallest absolute value of a denominator that a draw may have


def random_arrays(
    system: System | Sequence[Tensor],
    extents: Mapping[str, int],
    dtype: str = "float64",
    seed: int = 0,
) -> dict[str, Array]:
    """Random inputs as the caller passes them, and starts of the outputs that accumulate.

    Declared symmetry holds to the last bit (antisymmetric, hermitian, packed, stored order).
    Elements have a normal distribution with standard deviation 1/2. For a system, tensors in
    denominators get values in [1, 2] or [-2, -1], so that each denominator keeps its sign and sqrt
    and log get positive arguments. If no choice of signs protects a denominator, all inputs are
    drawn again until its absolute value is at least 0.1 everywhere. A scalar with a default gets
    that value. Blocks of one family are drawn independently, each with its own symmetry. See
    :func:`split_starts` for arrays of outputs that accumulate.

    Args:
        system: a system, or only its tensors (denominators are then unknown).
        extents: extents of the base spaces.
        dtype: element type of the program; tensors declared real are real under complex128 too.
        seed: equal seeds give equal arrays. The elements of a tensor depend on its name and its
            extents, not on the other tensors.

    Raises:
        ArgumentError: a denominator is near zero in every draw, or ``dtype`` is unknown.
        ExtentError: an extent is missing.
        MemoryLimitError: an array has 2^63 bytes or more.

    Example:
        >>> from tcgen.ir.tensor import Space, Symmetry
        >>> o = Space("o")
        >>> t = Tensor("t", (o, o), Role.INPUT, symmetry=(Symmetry((1, 0), -1),))
        >>> a = random_arrays((t,), {"o": 3})["t"]
        >>> bool((a == -a.T).all())
        True
    """
    if dtype not in DTYPES:
        raise ArgumentError(f"dtype={dtype!r} is not one of {', '.join(DTYPES)}")
    tensors = system.tensors if isinstance(system, System) else tuple(system)
    check_extents([space for t in tensors for space in t.spaces], extents)
    chosen = [t for t in tensors if t.is_input or (t.role is Role.OUTPUT and t.accumulate)]
    signs: Signs = {}
    unprotected: tuple[Expr, ...] = ()
    spread: list[Tensor] = []
    if isinstance(system, System):
        signs, unprotected = choose_signs(system)
        spread = [t for expr in unprotected for t in sources(expr, system)]
    for attempt in range(_MAX_DRAWS):
        arrays = {
            t.name: pack(t, _draw(t, extents, dtype, (seed, attempt), signs, t in spread))
            for t in chosen
        }
        if not isinstance(system, System) or all(
            _smallest(system, expr, arrays, extents) >= _MIN_DENOMINATOR for expr in unprotected
        ):
            return arrays
    raise ArgumentError(
        f"{format_expr(unprotected[0])} comes near zero in each of {_MAX_DRAWS} random draws: "
        f"pass arrays of your own"
    )


def split_starts(
    system: System, arrays: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs, and the start arrays of outputs that accumulate (the ``out=`` of a call)."""
    outputs = {t.name for t in system.outputs}
    inputs = {name: a for name, a in arrays.items() if name not in outputs}
    return inputs, {name: a for name, a in arrays.items() if name in outputs}


def assert_same_values(
    actual: Mapping[str, Any] | Any,
    expected: Mapping[str, Any] | Any,
    rtol: float = 1e-10,
    atol: float = 1e-12,
) -> None:
    """Assert that arrays agree: ``max|x - y| <= max(atol, rtol * max|y|)`` for each.

    Args:
        actual: arrays by name, or one array.
        expected: the same. Where it is not finite, ``actual`` must have the same infinity or NaN.
        rtol: tolerance relative to the largest expected element.
        atol: absolute tolerance, for results that cancel to zero.

    Raises:
        AssertionError: arrays differ; it names the array, the deviation and its position.

    Example:
        >>> assert_same_values({"e": 1.0}, {"e": 1.0 + 1e-14})
    """
    if not isinstance(expected, Mapping):
        actual, expected = {"array": actual}, {"array": expected}
    assert set(actual) == set(expected), (
        f"arrays are {', '.join(sorted(actual))}, expected {', '.join(sorted(expected))}"
    )
    for name in expected:
        x, y = np.asarray(actual[name]), np.asarray(expected[name])
        assert x.shape == y.shape, f"{name}: shape {x.shape}, expected {y.shape}"
        if y.size == 0:
            continue
        finite = np.isfinite(y)
        wrong = ~finite & ~((x == y) | (np.isnan(x) & np.isnan(y)))
        assert not wrong.any(), f"{name}{_first(wrong)} is {x[wrong][0]}, expected {y[wrong][0]}"
        if not finite.any():
            continue
        error = np.abs(np.where(finite, x, 0) - np.where(finite, y, 0))
        scale = float(np.max(np.abs(y[finite])))
        worst = float(np.max(error))
        if not worst <= max(atol, rtol * scale):
            at = _first(error == np.max(error)) if worst == worst else _first(np.isnan(error))
            raise AssertionError(
                f"{name}: max|x - y| = {worst:.3e}, max|y| = {scale:.3e}, "
                f"relative {worst / scale if scale else worst:.3e} above {rtol:.0e}, "
                f"largest at {name}{at}"
            )


def _first(mask: Array) -> str:
    """The position of the first true element, as text."""
    place = [int(k) for k in np.argwhere(mask)[0]]
    return f"[{','.join(map(str, place))}]" if place else ""


def _draw(
    tensor: Tensor,
    extents: Mapping[str, int],
    dtype: str,
    seed: tuple[int, int],
    signs: Signs,
    spread: bool,
) -> Array:
    """A random dense logical array with the symmetry of the tensor.

    ``spread`` gives vectors well separated elements: a denominator is a difference of them.
    """
    kind = element_type(tensor, dtype)
    shape = dense_shape(tensor, extents)
    if tensor.default is not None and tensor.is_input:
        return np.full(shape, float(tensor.default), kind)
    if prod(shape) * np.dtype(kind).itemsize > sys.maxsize:
        raise MemoryLimitError(
            f"{tensor.name} of shape {shape} needs 2^63 bytes or more: choose smaller extents"
        )
    rng = np.random.default_rng([*seed, zlib.crc32(tensor.name.encode())])
    value: Array = np.asarray(rng.normal(scale=0.5, size=shape))
    if spread and tensor.rank == 1:
        value = 1 + rng.permutation(shape[0]) + 0.2 * rng.uniform(size=shape)
    for (owner, block), sign in signs.items():
        if owner == tensor:
            part = []
            for base, space in zip(block, tensor.spaces, strict=True):
                before = space.before(base)
                start = sum(extents[b.name] for b in before or ())
                part.append(slice(start, start + extents[base.name]))
            key: tuple[Any, ...] = (*part, ...)
            value[key] = sign * rng.uniform(1, 2, size=value[key].shape)
    if kind == "complex128":
        small = 0.1 if spread or any(owner == tensor for owner, _ in signs) else 0.5
        value = value + small * 1j * rng.normal(size=shape)
    return _symmetric(tensor, value).astype(kind)


def _symmetric(tensor: Tensor, value: Array) -> Array:
    """The array with exact symmetry: each element is a copy of the first one of its orbit."""
    others = symmetry_group(tensor)[1:]
    if not others or not value.size:
        return value
    place = np.arange(value.size).reshape(value.shape)
    is_first = np.ones(value.shape, bool)
    for g in tensor.symmetry:
        is_first &= place <= np.transpose(place, np.argsort(g.perm))
    first = place[is_first]
    at = np.array(np.unravel_index(first, value.shape))
    strides = np.array(value.strides) // value.itemsize

    def image(g: Symmetry) -> Array:
        return np.asarray(strides[np.argsort(g.perm)] @ at)

    for g in others:
        kept = first <= image(g)
        if not kept.all():
            first, at = first[kept], at[:, kept]
    own = value.reshape(-1)[first]
    # Elements that a symmetry maps to themselves become zero, real or imaginary.
    for g in others:
        if g.sign < 0 or g.conj:
            own = np.where(image(g) == first, (own + _mate(g, own)) / 2, own)
    result = np.empty_like(value.reshape(-1))
    result[first] = own
    for g in others:
        result[image(g)] = _mate(g, own)
    return result.reshape(value.shape)


def _mate(g: Symmetry, values: Array) -> Array:
    """The values of the elements that a symmetry maps those with these values to."""
    return g.sign * (values.conj() if g.conj else values)


def _smallest(
    system: System, expr: Expr, arrays: Mapping[str, Array], extents: Mapping[str, int]
) -> float:
    """Smallest absolute value of an expression over the tensors of a system."""
    indices = expr_indices(expr)
    out = Tensor("|expression|", tuple(i.space for i in indices), Role.OUTPUT)
    equation = Equation(Ref(out, indices), (Term(Fraction(1), (Apply(expr),)),))
    probe = replace(system, tensors=(*system.tensors, out), equations=(*system.equations, equation))
    inputs, starts = split_starts(system, arrays)
    value = np.abs(evaluate_system(probe, inputs, extents, out=starts)[out.name])
    return float(np.min(value, initial=np.inf))
