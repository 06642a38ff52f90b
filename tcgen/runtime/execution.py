"""Executes a compiled program: owns its backend, and caches the layouts of recent calls.

Programs and bound programs check arguments; both run here. A call allocates its own
arena and scratch, so calls from several threads do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..artifact.folder import Artifact
from ..artifact.manifest import Manifest
from ..records.tensors import Role, Tensor
from .arguments import Reader, Source, check_here, find_extents, gap_extents, shape_of
from .call.layout import CallLayout, resolve_layout
from .call.phase import Backend, ConstantState, run_phases
from .call.results import Results
from .device_protocol import Device
from .memory import Ledger, check_limit
from .parts import checked_part
from .symmetry import SAMPLES, check_symmetry, packed_generators

Array = npt.NDArray[Any]
_MAX_CACHED = 256  # shapes of inputs, and layouts, of a program


class Execution:
    """The calls of one program.

    ``inputs`` are in declared order. ``allocated_bytes`` is the peak of the latest call in bytes
    beyond the inputs.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self.manifest = manifest = artifact.manifest
        self.inputs = tuple(t for t in manifest.tensors if t.is_input)
        self.reader = Reader(self.inputs, manifest.dtype)
        self.backend = _backend(artifact)
        self.allocated_bytes = 0
        self._bases = manifest.bases
        self._names = tuple(t.name for t in self.inputs)
        self._whole = tuple(t for t in self.inputs if t.role is Role.INPUT)
        self._gapped = tuple(t for t in manifest.tensors if t.gaps)
        # The caches are thread-safe, and hold values that are never changed.
        cached = lru_cache(maxsize=_MAX_CACHED)
        self._extents = cached(partial(_extents, manifest, self.inputs))
        self._layouts = cached(partial(resolve_layout, manifest))
        self._sampled: frozenset[str] = frozenset()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Execution, (self.artifact,))

    @property
    def device(self) -> Device:
        """The memory of the kernels; UnavailableError if that is a GPU's, without a GPU or CuPy."""
        return self.backend.device

    def start(self) -> None:
        """Load the kernels; compile them if that was never done."""
        _ = self.backend.threads  # read from the library of the kernels

    def on_device(self, sources: Mapping[str, Source]) -> bool:
        """True if results stay on the device, since inputs are there."""
        device = self.backend.device
        return device.on_cpu or any(map(device.holds, sources.values()))

    def extents(self, sources: Mapping[str, Source]) -> Mapping[str, int]:
        """Extents of a call; those of recent shapes are cached."""
        extents = self._extents(tuple([shape_of(sources[name]) for name in self._names]))
        if not self._gapped:
            return extents
        gaps = self._no_gaps()
        for tensor in self._gapped:
            if tensor.name in sources:
                gaps |= gap_extents(self.device, tensor, sources[tensor.name]) or {}
        return {**extents, **gaps}

    def inferred_extents(self, constants: Mapping[str, Source]) -> Mapping[str, int]:
        """Extents inferred from a subset of the inputs, which are in C order."""
        shapes = {name: shape_of(array) for name, array in constants.items()}
        return {**find_extents(self.manifest, shapes, complete=False), **self._no_gaps()}

    def _no_gaps(self) -> dict[str, int]:
        """Gaps of new arrays and of copies: none."""
        return {base: 0 for t in self._gapped for base in t.gaps if base is not None}

    def layout(self, extents: Mapping[str, int]) -> CallLayout:
        """The layout of calls at these extents, with as many threads as there are."""
        return self._layouts(tuple([extents[b] for b in self._bases]), self.backend.threads)

    def constant_layout(self, extents: Mapping[str, int]) -> CallLayout:
        """The layout of the constant phase, at the extents that it needs or at more of them."""
        return self._layouts(tuple(map(extents.get, self._bases)), self.backend.threads)

    def layout_within_limit(self, layout: CallLayout, other: int) -> CallLayout:
        """The layout with as many threads as fit the memory limit beside ``other`` bytes."""
        limit = self.manifest.memory_limit
        if limit is not None:
            while layout.threads > 1 and layout.use.arenas + other > limit:
                values = tuple(map(layout.extents.get, self._bases))
                layout = self._layouts(values, layout.threads - 1)
        return layout

    def sample(self, sources: Mapping[str, Source]) -> None:
        """Check once a few elements of each input whose symmetry the plan relies on."""
        if len(self._sampled) == len(self.inputs) or self._sampled >= sources.keys():
            return
        for tensor in self.inputs:
            array = sources.get(tensor.name)
            if array is None or tensor.name in self._sampled:
                continue
            if not tensor.symmetry:
                pass
            elif not isinstance(array, np.ndarray):
                # A later call may give an array in place of a callable.
                continue
            elif tensor.storage.packed:
                check_symmetry(tensor.name, array, packed_generators(tensor), samples=SAMPLES)
            else:
                generators = [(s.perm, s.sign, s.conj) for s in tensor.symmetry]
                logical = array.transpose(np.argsort(tensor.stored_order))
                check_symmetry(tensor.name, logical, generators, samples=SAMPLES)
            self._sampled |= {tensor.name}

    def hold(self, constants: Mapping[str, Source]) -> tuple[dict[str, Source], int]:
        """Checked constants as kernels take them, for calls on any stream; the bytes copied."""
        device = self.device
        ledger = Ledger(device)
        held = dict(constants)
        for tensor in self._whole:
            if tensor.name in held:
                array = held[tensor.name]
                if not _is_direct(device, tensor.name, array):
                    held[tensor.name] = ledger.copy(array)
        device.wait()
        return held, ledger.now

    def call(
        self,
        sources: Mapping[str, Source],
        out: dict[str, Any] | None,
        note: Callable[[int], None] | None = None,
        part: object = None,
    ) -> dict[str, Array]:
        """Run both phases on inputs that :func:`read_inputs` accepted, or that are known to fit.

        ``note`` is called with the bytes of inputs and results that were copied because kernels
        cannot read or write them in place. For the other arguments and errors see :meth:`run`.
        """
        extents = self.extents(sources)
        if part is None:
            self.sample(sources)
        here = self.on_device(sources)
        return self.run(sources, extents, out, None, on_device=here, note=note, part=part)

    def run(
        self,
        sources: Mapping[str, Source],
        extents: Mapping[str, int],
        out: dict[str, Any] | None,
        state: ConstantState | None,
        *,
        on_device: bool,
        note: Callable[[int], None] | None = None,
        part: object = None,
    ) -> dict[str, Array]:
        """Run the volatile phase; without a state, run the constant phase first.

        ``sources`` has every input, checked, and ``extents`` all base spaces; ``out`` has arrays
        for some or all results. New results stay on the device if ``on_device``. ``part`` is the
        first and the end of the parts, whose inputs are not checked, or None for all.

        Raises:
            MemoryLimitError: the call needs more than the program's limit.
            ArgumentError, DtypeError, ShapeError: a result does not fit.
            BuildError: the first call cannot compile the source.
        """
        device, manifest = self.backend.device, self.manifest
        if not device.on_cpu:
            device.begin()
        numbers = None if part is None else checked_part(manifest, part, extents)
        layout = self.layout(extents)
        arrays: dict[str, Any] = {}
        copied: list[str] = []
        for tensor in self._whole:
            name = tensor.name
            arrays[name] = array = sources[name]
            if not _is_direct(device, name, array) and (gap_extents(device, tensor, array) is None):
                copied.append(name)
        results = Results(device, layout.outputs, sources.values(), out)
        if results.gaps:
            layout = self.layout({**extents, **results.gaps})
        held = 0 if state is None else state.bytes_beside_arena
        if manifest.memory_limit is not None:
            other = held + results.needed + sum(arrays[name].nbytes for name in copied)
            layout = self.layout_within_limit(layout, other)
            needed = layout.use.arenas + other
            check_limit(manifest, extents, needed, (*copied, *results.copied), device.direct_kind)
        ledger = Ledger(device, held)
        results.allocate(ledger)  # first: fails before inputs are copied
        for name in copied:
            arrays[name] = ledger.copy(arrays[name])
        arrays |= results.working
        if numbers is not None:
            results.clear()
        if numbers is None or numbers[0] < numbers[1]:
            run_phases(self.backend, layout, sources, arrays, state, ledger, numbers)
        self.allocated_bytes = ledger.peak
        if note is not None:
            note(sum(arrays[n].nbytes for n in copied) + results.copied_bytes)
        return results.finish(out, on_device=on_device)


def _backend(artifact: Artifact) -> Backend:
    """The backend of the artifact's target; the others are not loaded."""
    match artifact.manifest.target:
        case "cpu":
            from .cpu.backend import CpuBackend  # noqa: PLC0415

            return CpuBackend(artifact)
        case "cuda":
            from .gpu.backend import GpuBackend  # noqa: PLC0415

            return GpuBackend(artifact)
        case _:
            from .numpy_backend import NumpyBackend  # noqa: PLC0415

            return NumpyBackend(artifact)


def _is_direct(device: Device, name: str, array: Any) -> bool:
    """True where kernels can read an input as it is: on the device, in C order."""
    if not device.holds(array):
        return False
    if not device.on_cpu and device.elsewhere(array) is not None:
        check_here(name, array, device)
    return device.direct(array)


def _extents(
    manifest: Manifest, inputs: tuple[Tensor, ...], shapes: tuple[tuple[int, ...] | None, ...]
) -> Mapping[str, int]:
    """Extents of a call from the shapes of its inputs."""
    names = (tensor.name for tensor in inputs)
    return MappingProxyType(find_extents(manifest, dict(zip(names, shapes, strict=True))))
