"""Arrays for the results of a call: new ones, or those that the caller gives in ``out``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import ArgumentError, ReadOnlyError, ShapeError
from ..arguments import check_dtype, check_here, describe, gap_extents, overlaps_itself
from ..device_protocol import Device
from ..memory import Ledger
from .layout import Output


class Results:
    """Results of one call: first the bytes that they need, then the arrays.

    Raises ArgumentError, DtypeError, ShapeError or ReadOnlyError if an array of ``out`` does not
    fit.

    Attributes:
        needed: bytes of the arrays that must be made.
        copied: outputs whose array in ``out`` kernels cannot write to.
        gaps: extents of the elements between those of arrays in ``out`` that kernels write to.
        working: array for each output that kernels write to, once allocated; C-contiguous where its
            tensor has no gaps.
    """

    __slots__ = ("_device", "_given", "_outputs", "copied", "gaps", "needed", "working")

    def __init__(
        self,
        device: Device,
        outputs: tuple[Output, ...],
        sources: Iterable[Any],
        out: dict[str, Any] | None,
    ) -> None:
        self._device = device
        self._outputs = outputs
        self._given = _check_out(outputs, out)
        self.working: dict[str, Any] = {}
        self.copied: list[str] = []
        self.needed = 0
        self.gaps: dict[str, int] = {}
        if not self._given:
            self.needed = sum([output.bytes for output in outputs])
            return
        sources = [source for source in sources if device.holds(source)]
        for output in outputs:
            name = output.tensor.name
            if name in self._given:
                target = self._given[name]
                _check_target(device, output, target)
                # A GPU compares bounds of arrays, which do not tell whether two parts overlap.
                in_place = device.on_cpu or len(self._given) == 1
                gaps = gap_extents(device, output.tensor, target) if in_place else None
                # Kernels assume that no array they write to is also an input.
                writable = gaps is not None or _is_direct(device, target)
                if writable and not _is_read(device, target, sources):
                    self.gaps |= gaps or {}
                    self.working[name] = target
                    continue
                self.copied.append(name)
            self.needed += output.bytes
        if len(self._given) > 1:
            _check_overlap(device, self._given)

    def allocate(self, ledger: Ledger) -> None:
        """Make the arrays that the caller did not give, or that kernels cannot write to."""
        device = self._device
        for output in self._outputs:
            name = output.tensor.name
            if name in self.working:
                continue
            self.working[name] = made = ledger.array(output.shape, output.dtype)
            if output.tensor.accumulate:
                start = self._given[name]
                made[...] = start if device.holds(start) else device.put(start)

    def clear(self) -> None:
        """Set the arrays to zero, but those of outputs that accumulate."""
        for output in self._outputs:
            if not output.tensor.accumulate:
                self.working[output.tensor.name][...] = 0

    @property
    def copied_bytes(self) -> int:
        """Bytes of the results that are copied to arrays in ``out``."""
        return sum(self._given[name].nbytes for name in self.copied)

    def finish(self, out: dict[str, Any] | None, *, on_device: bool) -> dict[str, Any]:
        """Copy results to arrays that kernels could not write to, and fill and return ``out``.

        New results stay on the device if ``on_device``; else they are copied to the CPU.
        """
        device = self._device
        returned: dict[str, Any] = {}
        for output in self._outputs:
            name = output.tensor.name
            working = self.working[name]
            target = self._given.get(name)
            if target is None:
                target = working if on_device else device.get(working)
            elif target is not working:
                target[...] = working if device.holds(target) else device.get(working)
            returned[name] = target
        if out is None:
            return returned
        out.update(returned)
        return out


def _is_direct(device: Device, array: Any) -> bool:
    """True where kernels can write to an array of the caller."""
    return device.holds(array) and device.direct(array)


def _is_read(device: Device, target: Any, sources: Iterable[Any]) -> bool:
    """True where a result would be written to the memory of an input on the device."""
    overlap = device.overlap
    for source in sources:  # noqa: SIM110  (a generator takes longer than the comparison)
        if overlap(target, source):
            return True
    return False


def _check_out(outputs: tuple[Output, ...], out: object) -> dict[str, Any]:
    """The arrays in ``out``, in the order of the outputs.

    Raises ArgumentError if it is not a dict, names an array that is not an output, or lacks the
    array that an accumulating output starts from.
    """
    if out is not None and not isinstance(out, dict):
        raise ArgumentError(
            f"out must be a dict of arrays by output name, found {type(out).__name__}"
        )
    given = out or {}
    started = [output.tensor.name for output in outputs if output.tensor.accumulate]
    if not given and not started:
        return given
    names = [output.tensor.name for output in outputs]
    unknown = [str(n) for n in given if n not in names]
    if unknown:
        raise ArgumentError(
            f"out has {', '.join(unknown)}, but the outputs are {', '.join(names)}: "
            f"name arrays in out by output"
        )
    for name in started:
        if name not in given:
            raise ArgumentError(
                f"output {name} accumulates: pass the array it starts from as "
                f'out={{"{name}": array}}'
            )
    return {n: given[n] for n in names if n in given}


def _check_target(device: Device, output: Output, target: Any) -> None:
    tensor, shape = output.tensor, output.shape
    if not isinstance(target, np.ndarray) and not device.holds(target):
        raise ArgumentError(
            f'out["{tensor.name}"] must be a {device.array_kind}, found {type(target).__name__}'
        )
    if isinstance(target, np.ma.MaskedArray):
        raise ArgumentError(f'out["{tensor.name}"] is a masked array: pass its .data')
    if not device.on_cpu and device.holds(target):
        check_here(f'out["{tensor.name}"]', target, device)
    check_dtype(tensor, output.dtype.name, np.dtype(target.dtype), target=True)
    if tuple(target.shape) != shape:
        raise ShapeError(
            f'out["{tensor.name}"] for {describe(tensor)} must have shape {shape}, '
            f"found {tuple(target.shape)}"
        )
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        raise ReadOnlyError(f'out["{tensor.name}"] is read-only: pass an array to write to')
    if overlaps_itself(target):
        raise ArgumentError(f'elements of out["{tensor.name}"] share memory: pass a copy of it')


def _check_overlap(device: Device, given: Mapping[str, Any]) -> None:
    """Raise ArgumentError, naming the two, if two results go to the same memory."""
    items = list(given.items())
    for n, (name, array) in enumerate(items):
        for other, second in items[:n]:
            if _overlap(device, array, second):
                raise ArgumentError(
                    f'out["{other}"] and out["{name}"] overlap in memory: pass separate arrays'
                )


def _overlap(device: Device, one: Any, other: Any) -> bool:
    """True where arrays of ``out`` have an element in common.

    A GPU compares the bounds of arrays, and an array with strides may be between the elements of
    another one: such arrays are copied, so they may be one.
    """
    if device.on_cpu or not (device.holds(one) or device.holds(other)):
        return np.shares_memory(one, other)
    return _is_direct(device, one) and _is_direct(device, other) and device.overlap(one, other)
