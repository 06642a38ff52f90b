"""Runs einsum calls by their routes: a generated kernel, or the einsum of the array library.

The route follows from the signature of a call, so that a repeated signature needs neither checks
nor a decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..compiler.program_cache import LeastRecentlyUsed
from ..environment import einsum_min_flops
from ..errors import ArgumentError, DtypeError, EinsumError
from ..frontend.einsum import LETTERS, Expression, Update, contraction_path
from ..options import DTYPES, parse_bytes
from .kernel_route import KernelRoute, kernel_route, stored_labels
from .libraries import MAX_OPERANDS, NUMPY, Library, takes_pairs
from .programs import written
from .report import count_call
from .signature import Arrays, Dtype, Signature, checked, read_dtype

_MAX_ROUTES = 4096  # cached signatures; each takes a few kilobytes
_UNKNOWN: Any = object()


def run_einsum(
    library: Library,
    subscripts: str | Expression,
    arrays: Arrays,
    out: Any,
    optimize: Any = True,
    dtype: npt.DTypeLike | None = None,
    order: str | None = "K",
    casting: str = "safe",
    memory_limit: str | int | None = None,
    update: Update | None = None,
) -> Any:
    """The result of a call of :func:`tcgen.einsum`, whose keywords these are, by its route.

    ``subscripts`` are text or labels; ``update`` is the factor of the result, and whether it is
    added to ``out``. The result is NotImplemented if a kernel cannot apply it in place.
    """
    path = None if optimize is True else contraction_path(optimize, len(arrays))
    if order is not None and not isinstance(order, str):
        raise ArgumentError(f"order={order!r} is not one of 'C', 'F', 'A' and 'K'")
    if not isinstance(casting, str):
        raise DtypeError(f"einsum: casting must be str, not {type(casting).__name__}")
    requested = None if dtype is None else read_dtype(dtype, native=library is not NUMPY)
    limit = None if memory_limit is None else parse_bytes(memory_limit)
    kinds = tuple([(a.shape, a.strides, a.dtype) for a in arrays])
    out_kind = None
    if out is not None:
        out_kind = (out.shape, out.strides, out.dtype, type(out))
    rules = (path, requested, order, casting, limit, einsum_min_flops(), update)
    key = (library, subscripts, kinds, out_kind, *rules)
    route = _routes.get(key, _UNKNOWN)
    if route is _UNKNOWN:
        stand_ins = tuple([library.stand_in(a) for a in arrays])
        target = None if out is None else library.stand_in(out)
        route = choose_route(checked(subscripts, stand_ins, target, *rules), library)
        _routes.add(key, route)
    return NotImplemented if route is None else route.run(arrays, out)


@dataclass(frozen=True, slots=True, eq=False)
class LibraryRoute:
    """Calls that the array library runs.

    ``row`` is that of the report: expression, element type, route and reason; ``subscripts`` are in
    the library's letters. With ``scalar``, products of pairs give an array, for which NumPy's own
    loop gives a scalar; ``swapped`` is the element type of a new result with non-native byte order,
    else None.
    """

    library: Library
    row: tuple[str, str, str, str]
    subscripts: str
    keywords: dict[str, Any]
    scalar: bool
    swapped: Dtype | None

    def run(self, arrays: Arrays, out: Any) -> Any:
        """The result, in ``out`` if there is one; raises as the library's ``einsum``."""
        count_call(self.row)
        result = self.library.einsum(self.subscripts, arrays, out, self.keywords)
        if self.swapped is not None:
            result = result.astype(self.swapped)
        return result[()] if self.scalar else result


@dataclass(frozen=True, slots=True, eq=False)
class BroadcastRoute:
    """Calls with broadcast labels: elements of all operands repeat along them in memory.

    Attributes:
        inner: route of the call without these labels.
        indices: index of each operand that drops their axes.
        factor: product of the extents of the summed broadcast labels.
        expand: index of the inner result that inserts an axis for each unsummed one.
        fortran: the result is in Fortran order.
        swapped: element type of a new result with non-native byte order, else None.
    """

    library: Library
    inner: Route
    indices: tuple[tuple[Any, ...], ...]
    factor: int
    expand: tuple[slice | None, ...]
    shape: tuple[int, ...]
    fortran: bool
    dtype: Dtype
    swapped: Dtype | None

    def run(self, arrays: Arrays, out: Any) -> Any:
        """The result, in ``out`` if there is one."""
        parts = tuple(array[index] for array, index in zip(arrays, self.indices, strict=True))
        values = self.inner.run(parts, None).astype(self.dtype, copy=False)
        if self.factor != 1:
            values = values * self.dtype.type(self.factor)
        values = values[self.expand]
        if out is not None:
            self.library.assign(out, values)  # the cast was checked before
            return out
        if not self.shape and self.swapped is None:
            return values
        shape = self.shape[::-1] if self.fortran else self.shape
        result = self.library.empty(shape, self.swapped or self.dtype)
        result = result.transpose() if self.fortran else result
        result[...] = values
        return result if self.shape else result[()]


Route: TypeAlias = KernelRoute | LibraryRoute | BroadcastRoute
_routes: LeastRecentlyUsed[Route | None] = LeastRecentlyUsed(lambda: _MAX_ROUTES)


def choose_route(call: Signature, library: Library) -> Route | None:
    """The route of calls of a signature; None for an update that no kernel can apply in place."""
    network = _small_network(call) if library is NUMPY else None
    if network is not None:
        return _library_route(network, library, "tiny")
    reason = "a view of the operand" if call.view else _delegation_reason(call)
    broadcast = set(range(len(call.extents))) - (stored_labels(call) if reason is None else set())
    if call.update is not None:
        direct = call.out is None or call.direct
        return kernel_route(call, library) if reason is None and not broadcast and direct else None
    if reason is None:
        if broadcast:
            return _broadcast_route(call, library, broadcast)
        return kernel_route(call, library)
    if call.memory_limit is not None and reason.startswith("no kernels"):
        raise DtypeError(f"memory_limit needs generated code: {reason}; use {', '.join(DTYPES)}")
    return _library_route(call, library, reason)


def _small_network(call: Signature) -> Signature | None:
    """The call with a path, if it is a network of tensors that takes few flops in pairs.

    One loop nest over all its labels would take many, and a program for it seconds to compile.
    """
    many = len(call.arrays) > MAX_OPERANDS or len(call.extents) > len(LETTERS)
    if len(call.arrays) < 3 or many or call.flops < call.min_flops:
        return None
    if call.memory_limit is not None or call.update is not None or not takes_pairs(call):
        return None
    path = call.path
    if path is None:
        text = _in_letters(call.expression)
        path = tuple(np.einsum_path(text, *call.arrays, optimize="greedy")[0][1:])
    network = replace(call, path=path)
    return network if network.path_flops < call.min_flops else None


def _delegation_reason(call: Signature) -> str | None:
    """The reason why the library runs this call; None if a kernel runs it."""
    dtype = call.dtype or call.arrays[0].dtype
    if call.dtype is None or _name(dtype) not in DTYPES:
        return f"no kernels for {_name(dtype)}"
    # Starting a program takes longer than its kernel saves.
    min_flops = call.min_flops * (4 if call.suits_blas else 1)
    small = call.memory_limit is None and call.flops < min_flops
    fits = len(call.extents) <= len(LETTERS) and len(call.arrays) <= MAX_OPERANDS
    return "tiny" if small and fits else None


def _library_route(call: Signature, library: Library, reason: str) -> LibraryRoute:
    if len(call.extents) > len(LETTERS):
        raise EinsumError(
            f"{len(call.extents)} labels on {call.dtype or 'object'} arrays: {library.title}, "
            f"which runs them, takes {len(LETTERS)}; cast the operands to {', '.join(DTYPES)}"
        )
    keywords, expression = library.keywords(call), call.expression
    new_number = library is NUMPY and call.out is None and not expression.output
    return LibraryRoute(
        library,
        (written(expression), _name(call.dtype or call.arrays[0].dtype), library.name, reason),
        _in_letters(expression),
        keywords,
        new_number and "optimize" in keywords,
        call.swapped,
    )


@lru_cache(maxsize=4096)
def _in_letters(expression: Expression) -> str:
    """Subscripts in the letters that NumPy accepts."""
    terms = ("".join(LETTERS[n] for n in labels) for labels in expression.inputs)
    return f"{','.join(terms)}->{''.join(LETTERS[n] for n in expression.output)}"


def _broadcast_route(call: Signature, library: Library, broadcast: set[int]) -> BroadcastRoute:
    assert call.dtype is not None
    indices = tuple(
        (..., *(0 if label in broadcast else slice(None) for label in labels))
        for labels in call.expression.inputs
    )
    numbers = {n: k for k, n in enumerate(sorted(set(range(len(call.extents))) - broadcast))}
    expression = Expression(
        tuple(tuple(numbers[n] for n in t if n in numbers) for t in call.expression.inputs),
        tuple(numbers[n] for n in call.expression.output if n in numbers),
        tuple(call.expression.names[n] for n in numbers),
    )
    inner = choose_route(
        replace(
            call,
            expression=expression,
            arrays=tuple(a[index] for a, index in zip(call.arrays, indices, strict=True)),
            extents=tuple(call.extents[n] for n in numbers),
            out=None,
            requested_dtype=None if call.requested_dtype is None else call.dtype,
        ),
        library,
    )
    assert inner is not None, "without an update every call has a route"
    return BroadcastRoute(
        library,
        inner,
        indices,
        math.prod(call.extents[n] for n in broadcast.difference(call.expression.output)),
        tuple(None if n in broadcast else slice(None) for n in call.expression.output),
        call.shape,
        call.order == "F",
        call.dtype,
        call.swapped,
    )


@lru_cache(maxsize=256)
def _name(dtype: Dtype) -> str:
    """Name of an element type; NumPy composes it at each request."""
    return str(dtype)
