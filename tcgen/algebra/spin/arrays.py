"""Arrays of spin orbitals as arrays of blocks, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...ir.layouts import Array, pack, unpack
from ...ir.system import System
from ...ir.tensor import Packing, Space, Tensor
from ...records.loops import stored_shape
from ...simplices import extent_of
from .integrate import SpinIntegration, integrate
from .labels import SPINS, UNLABELLED, Pattern, has_labels, patterns


def spin_blocks(
    system: System,
    arrays: Mapping[str, Any],
    form: str,
    *,
    orbspin: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Array]:
    """Blocks of arrays over spin orbitals, for the equations that :func:`spin_integrated` makes.

    Args:
        system: the equations over spin orbitals.
        arrays: inputs or outputs of ``system`` by name, whole arrays as programs take them:
            ``stored`` and ``packed`` as declared.
        form: form of the equations, see :func:`spin_integrated`.
        orbspin: spins of the orbitals by space, 0 for alpha and 1 for beta, as PySCF writes them.
            By default the first half is alpha.

    Returns:
        The arrays of all blocks of ``arrays``, by name.

    Raises:
        ArgumentError: a name or space is unknown, or spins do not fit the form.
        ShapeError: an array has other axes than its tensor.

    Example:
        >>> from tcgen import read_spec
        >>> system = read_spec('''
        ... space o occupied
        ... space v virtual
        ... index i : o
        ... index a : v
        ... input t1[o,v]
        ... output e
        ... e = t1[i,a]*t1[i,a]''')
        >>> t1 = np.kron(np.eye(2), np.array([[0.1, 0.2]]))  # one orbital, two virtual ones
        >>> spin_blocks(system, {"t1": t1}, "closed-shell")
        {'t1': array([[0.1, 0.2]])}
        >>> whole = spin_orbital(system, {"t1": np.array([[0.1, 0.2]])}, "closed-shell")
        >>> np.array_equal(whole["t1"], t1)
        True
    """
    integration = integrate(system, form)
    _check_spaces(integration.source, orbspin or {})
    tensors = _named(integration, arrays)
    places = _places(integration, tensors, arrays, orbspin or {})
    sizes = {space.name: _extent(space, places) for space, _ in places}
    result = {}
    for block in integration.blocks:
        if block.source.name in tensors:
            whole = _dense(block.source, np.asarray(arrays[block.source.name]), sizes)
            part = whole[_grid(block.source, block.pattern, places)]
            result[block.tensor.name] = pack(block.tensor, block.sign * part.transpose(block.axes))
    return result


def spin_orbital(
    system: System,
    arrays: Mapping[str, Any],
    form: str,
    *,
    orbspin: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Array]:
    """Arrays over spin orbitals from blocks: what :func:`spin_blocks` undoes.

    Args:
        system: the equations over spin orbitals.
        arrays: inputs or outputs of ``spin_integrated(system, form)``, by name, with all blocks of
            a tensor.
        form: form of the equations, see :func:`spin_integrated`.
        orbspin: spins of the orbitals, see :func:`spin_blocks`. By default alpha orbitals stand
            before beta orbitals.

    Returns:
        The whole arrays by the names of ``system``. Elements that the integrated equations do not
        read are zero.

    Raises:
        ArgumentError: a name is unknown, a block is missing, or spins do not fit the form.
        ShapeError: an array has other axes than its block.
    """
    integration = integrate(system, form)
    _check_spaces(integration.source, orbspin or {})
    known = {block.tensor.name: block for block in integration.blocks}
    _check_names(arrays, known, integration.system.name)
    sources = {known[name].source: None for name in arrays}
    missing = [n for n, block in known.items() if block.source in sources and n not in arrays]
    if missing:
        raise ArgumentError(f"give all blocks of a tensor: {', '.join(missing)} is missing")
    given = {name: np.asarray(array) for name, array in arrays.items()}
    extents = _extents([(known[name].tensor, array) for name, array in given.items()])
    places: Places = {}
    for space in dict.fromkeys(s for source in sources for s in source.spaces):
        for base in space.bases:
            counts = []
            for number, letter in enumerate(SPINS):
                new = integration.table.spaces.space(base, letter)
                if new not in extents:
                    extents[new] = _spins(base, orbspin or {}).count(number)
                counts.append(extents[new])
            places |= _spin_places(base, counts, orbspin or {})
    sizes = {space.name: extent for space, extent in extents.items()}
    dense = {n: _dense(known[n].tensor, array, sizes) for n, array in given.items()}
    return {s.name: pack(s, _whole(s, integration, dense, places)) for s in sources}


Places = dict[tuple[Space, str], list[int]]


def _whole(
    source: Tensor, integration: SpinIntegration, given: Mapping[str, Array], places: Places
) -> Array:
    """The array of a tensor over spin orbitals, from the arrays of its blocks."""
    blocks = [b.tensor.name for b in integration.blocks if b.source == source]
    dtype = np.result_type(np.float64, *(given[name] for name in blocks))
    whole = np.zeros([_extent(space, places) for space in source.spaces], dtype)
    for pattern in patterns(source.spaces):
        value: Any = 0
        for part in integration.table.parts(source, pattern):
            if part.tensor.name in given:
                array = given[part.tensor.name].transpose(np.argsort(part.axes))
                value = value + float(part.number) * array
        whole[_grid(source, pattern, places)] = value
    return whole


def _letters(space: Space) -> str:
    return SPINS if has_labels(space) else UNLABELLED


def _extent(space: Space, places: Places) -> int:
    return sum(len(places[base, x]) for base in space.bases for x in _letters(base))


def _grid(tensor: Tensor, pattern: Pattern, places: Places) -> Any:
    """Index of a block in an array over spin orbitals."""
    axes = []
    for space, spin in zip(tensor.spaces, pattern, strict=True):
        start, chosen = 0, []
        for base in space.bases:
            chosen += [start + n for n in places[base, spin]]
            start += sum(len(places[base, x]) for x in _letters(base))
        axes.append(chosen)
    return np.ix_(*axes) if axes else ()


def _named(integration: SpinIntegration, arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    known = {block.source.name: block.source for block in integration.blocks}
    _check_names(arrays, known, integration.source.name)
    return {name: known[name] for name in arrays}


def _check_names(arrays: Mapping[str, Any], known: Mapping[str, object], system: str) -> None:
    unknown = [name for name in arrays if name not in known]
    if unknown:
        raise ArgumentError(
            f"{', '.join(unknown)} is neither input nor output of {system}, which has "
            f"{', '.join(known)}"
        )


def _check_spaces(system: System, orbspin: Mapping[str, Sequence[int]]) -> None:
    known = [s.name for s in system.spaces if has_labels(s) and not s.parts]
    unknown = [name for name in orbspin if name not in known]
    if unknown:
        raise ArgumentError(
            f"orbspin: {system.name} has no space {', '.join(unknown)} over spin orbitals; it has "
            f"{', '.join(known)}"
        )


def _places(
    integration: SpinIntegration,
    tensors: Mapping[str, Tensor],
    arrays: Mapping[str, Any],
    orbspin: Mapping[str, Sequence[int]],
) -> Places:
    """Places of the orbitals of each spin in the axes of arrays over spin orbitals."""
    extents = _extents([(tensor, np.asarray(arrays[n])) for n, tensor in tensors.items()])
    for tensor in tensors.values():
        for base in (b for space in tensor.spaces for b in space.bases):
            if base not in extents:
                extents[base] = len(_spins(base, orbspin))
    places: Places = {}
    for space, extent in extents.items():
        if not has_labels(space):
            places[space, UNLABELLED] = list(range(extent))
            continue
        if space.name not in orbspin and extent % 2:
            raise ArgumentError(
                f"space {space.name} has {extent} spin orbitals, an odd number: say which are "
                f'alpha, such as orbspin={{"{space.name}": [0, 1, 0]}}'
            )
        spins = orbspin.get(space.name)
        counts = [extent // 2] * 2
        if spins is not None:
            counts = [list(spins).count(number) for number in (0, 1)]
        if sum(counts) != extent or (integration.table.closed and counts[0] != counts[1]):
            raise ArgumentError(
                f"orbspin of space {space.name} has {counts[0]} alpha and {counts[1]} beta "
                f"orbitals, but the space has {extent} spin orbitals"
                + (", half of each spin in a closed shell" if integration.table.closed else "")
            )
        places |= _spin_places(space, counts, orbspin)
    return places


def _spins(space: Space, orbspin: Mapping[str, Sequence[int]]) -> list[int]:
    """Spins of the orbitals of a space whose extent follows from no axis."""
    if space.name not in orbspin:
        raise ArgumentError(
            f"no axis over {space.name} alone shows its extent: give its spins, such as "
            f'orbspin={{"{space.name}": [0, 0, 1, 1]}}'
        )
    return list(orbspin[space.name])


def _spin_places(
    space: Space, counts: Sequence[int], orbspin: Mapping[str, Sequence[int]]
) -> Places:
    """Places of the orbitals of one base space."""
    if not has_labels(space):
        return {(space, UNLABELLED): list(range(counts[0]))}
    spins = orbspin.get(space.name)
    if spins is None:
        spins = [0] * counts[0] + [1] * counts[1]
    places = {
        (space, letter): [n for n, spin in enumerate(spins) if spin == number]
        for number, letter in enumerate(SPINS)
    }
    if [len(places[space, letter]) for letter in SPINS] != list(counts):
        raise ArgumentError(
            f"orbspin of space {space.name} must have {counts[0]} times 0 (alpha) and {counts[1]} "
            f"times 1 (beta), as the arrays have"
        )
    return places


def _extents(arrays: Sequence[tuple[Tensor, Array]]) -> dict[Space, int]:
    """Extents of base spaces, from axes over one base space each, packed ones last.

    Packed antisymmetric axes without values have extent 0 or 1, which other axes must show.
    """
    axes: list[tuple[Tensor, Array, int, int, Packing | None]] = []
    for tensor, array in arrays:
        if array.ndim != tensor.stored_rank:
            raise ShapeError(
                f"{tensor.name} has shape {array.shape}, but {tensor.stored_rank} axes: give the "
                f"whole array"
            )
        stored = zip(tensor.stored(), array.shape, strict=True)
        axes += ((tensor, array, axis, values, packing) for (axis, packing), values in stored)
    extents: dict[Space, int] = {}
    for tensor, array, axis, values, packing in sorted(axes, key=lambda a: a[-1] is not None):
        space, extent = tensor.spaces[axis], values
        if packing is not None:
            found = extent_of(values, packing.count, packing.antisymmetric)
            if found is None:
                raise ShapeError(
                    f"{tensor.name} has shape {array.shape}, but no extent of space {space.name} "
                    f"makes {values} values of {packing.count} packed axes"
                )
            if values == 0 and packing.antisymmetric:
                continue
            extent = found
        if not space.parts and extents.setdefault(space, extent) != extent:
            raise ShapeError(
                f"{tensor.name} has shape {array.shape}, but space {space.name} has extent "
                f"{extents[space]} in another axis"
            )
    return extents


def _dense(tensor: Tensor, array: Array, extents: Mapping[str, int]) -> Array:
    """The array with all elements, its axes in declared order."""
    shape = stored_shape(tensor, extents)
    if array.shape != shape:
        raise ShapeError(f"{tensor.name} has shape {array.shape}, but {shape} fits the other axes")
    return unpack(tensor, array, extents)
