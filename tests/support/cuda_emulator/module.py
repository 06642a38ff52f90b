"""EmulatedModule: cupy.RawModule's interface, for kernels that run on the CPU under watch."""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from . import abi
from .build import KernelText, Variable, build, source_line

# Bytes of shared memory of a block that a kernel may ask for: CUDA C++ Programming Guide, table
# "Technical Specifications per Compute Capability".
SHARED_LIMITS = {
    75: 65536,
    80: 166912,
    86: 101376,
    89: 101376,
    90: 232448,
    100: 232448,
    103: 232448,
    120: 101376,
}
STATIC_LIMIT = 49152
GAP = 1 << 24  # between arguments: an index that runs far off still finds nothing
BASE_ALIGNMENT = 256


class EmulationError(Exception):
    """A fault of a kernel or of its launch.

    Attributes:
        kind: "out of bounds", "unwritten", "race", "divergent barrier", "misaligned", "const",
            "mask", "cp.async", "arithmetic", "trap" or "launch".
        kernel: its name.
        block, thread: indices, None for a fault of the launch.
        line: of the source where known.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        kernel: str,
        block: tuple[int, ...] | None = None,
        thread: tuple[int, ...] | None = None,
        line: int | None = None,
    ) -> None:
        where = f", block {block}, thread {thread}" if block is not None else ""
        super().__init__(f"{kernel}{where}: {kind}: {message}")
        self.kind, self.kernel, self.block, self.thread, self.line = (
            kind,
            kernel,
            block,
            thread,
            line,
        )


@dataclass(slots=True)
class _Span:
    """Memory of arguments that overlap: one copy stands for all of them during a launch."""

    low: int
    high: int
    alignment: int  # of `low`, counted from the array that owns the memory
    names: list[str]
    writable: bool
    begin: int = 0


class EmulatedModule:
    """Kernels of a text, compiled for emulation.

    Args:
        code: CUDA C++ with ``extern "C" __global__`` kernels.
        arch: compute capability x 10, as in sm_90: what the text may use, and its limits.
        defines: macros, ``"NAME"`` or ``"NAME=value"``.
        file_name: what messages call the text.

    Raises:
        RuntimeError: no g++, or the text does not compile.
    """

    def __init__(
        self,
        code: str,
        *,
        arch: int = 90,
        defines: Sequence[str] = (),
        file_name: str = "kernels.cu",
    ) -> None:
        self.code, self.arch, self.file_name = code, arch, file_name
        built = build(code, file_name, arch, tuple(defines))
        self.path, self._variables = built.path, built.variables
        self._library = ctypes.CDLL(str(self.path))
        weakref.finalize(self, self._library.tcgen_release)
        self._kernels = {kernel.name: kernel for kernel in built.kernels}
        self._memory = np.empty(0, np.uint8)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the kernels, in the order of the text."""
        return tuple(self._kernels)

    def memory(self, bytes_: int) -> int:
        """Address of as many bytes; pages of gaps are never touched, so they cost nothing."""
        if self._memory.size < bytes_:
            self._memory = np.empty(2 * bytes_, np.uint8)
        return self._memory.ctypes.data

    def line_of(self, address: int) -> int | None:
        """Line of the text of a return address in the library."""
        return source_line(self.path, address, self.file_name)

    def get_function(self, name: str) -> EmulatedKernel:
        """The kernel of that name.

        Raises:
            KeyError: there is none.
        """
        return EmulatedKernel(self, self._library, self._kernels[name], self._variables)


class EmulatedKernel:
    """A kernel: ``kernel(grid, block, args, shared_mem=0)``.

    Args are NumPy arrays, which stand for device pointers to their memory, and NumPy scalars.

    Attributes:
        max_dynamic_shared_size_bytes: as CuPy's; must be raised for launches that ask for more.
        library: that has its code.
        seed: of the order in which blocks and threads run.
        blocks: the numbers of those that run; None: all of them.
        in_place: kernels get the arrays and not copies with gaps between them. So they may be
            larger than memory if few blocks run, but what lies behind an array may be another one.
    """

    def __init__(
        self,
        module: EmulatedModule,
        library: ctypes.CDLL,
        text: KernelText,
        variables: Sequence[Variable],
    ) -> None:
        self.name, self.arch, self.seed = text.name, module.arch, 0
        self.blocks: Sequence[int] | None = None
        self.in_place = False
        self._module, self.library, self._names = module, library, text.parameters
        self._signature = abi.Signature.in_dll(library, f"tcgen_signature_{text.name}")
        # An array of a device function may belong to any kernel, one of another kernel may not.
        others = set(module.names) - {text.name}
        self._variables = [v for v in variables if not v.red_zone and v.function not in others]
        self.shared_size_bytes = sum(v.bytes for v in self._variables if v.function is not None)
        self.max_dynamic_shared_size_bytes = max(0, STATIC_LIMIT - self.shared_size_bytes)

    def __call__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
    ) -> None:
        """Run all blocks; raises EmulationError at the first fault. Results are in the arrays."""
        grid3, block3 = _three(grid), _three(block)
        self._check_launch(grid3, block3, shared_mem)
        parameters = self._signature.parameters[: self._signature.count]
        if len(args) != len(parameters):
            self._refuse(f"{len(args)} arguments for {len(parameters)} parameters")
        spans, owners, values = self._arguments(args, parameters)
        self._place(spans)
        pointers = (ctypes.c_void_p * max(1, len(args)))()
        kept: list[Any] = []
        for i, (span_at, value) in enumerate(zip(owners, values, strict=True)):
            if span_at is None:
                kept.append(ctypes.create_string_buffer(value.tobytes(), value.nbytes))
            else:
                address = value.__array_interface__["data"][0]
                span = spans[span_at]
                moved = span.begin + address - span.low if value.size else 0
                kept.append(ctypes.c_void_p(moved))
            pointers[i] = ctypes.addressof(kept[-1])
        report = self._emulate(grid3, block3, shared_mem, spans, pointers)
        if report is not None:
            self._raise(report)
        for span in spans:
            if span.writable and not self.in_place:
                ctypes.memmove(span.low, span.begin, span.high - span.low)

    def _place(self, spans: Sequence[_Span]) -> None:
        """Copies of the arguments between gaps, or the arguments themselves."""
        if self.in_place:
            for span in spans:
                span.begin = span.low
            return
        sizes = [span.high - span.low + GAP + BASE_ALIGNMENT for span in spans]
        position = self._module.memory(sum(sizes) + GAP) + GAP
        for span, size in zip(spans, sizes, strict=True):
            span.begin = position + (span.alignment - position) % BASE_ALIGNMENT
            ctypes.memmove(span.begin, span.low, span.high - span.low)
            position += size

    def _emulate(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared_mem: int,
        spans: Sequence[_Span],
        pointers: ctypes.Array[ctypes.c_void_p],
    ) -> abi.Report | None:
        regions = (abi.Region * max(1, len(spans)))()
        for region, span in zip(regions, spans, strict=False):
            region.begin, region.bytes = span.begin, span.high - span.low
            region.writable, region.name = span.writable, " = ".join(span.names).encode()
        variables = (abi.Variable * max(1, len(self._variables)))()
        for passed, variable in zip(variables, self._variables, strict=False):
            passed.address, passed.bytes = variable.address, variable.bytes
            passed.shared, passed.name = variable.function is not None, variable.name.encode()
        chosen = self.blocks or ()
        launch = abi.Launch(
            signature=ctypes.addressof(self._signature),
            arguments=pointers,
            grid=grid,
            block=block,
            dynamic_shared=shared_mem,
            seed=self.seed,
            regions=regions,
            variables=variables,
            region_count=len(spans),
            variable_count=len(self._variables),
            chosen=(ctypes.c_uint32 * len(chosen))(*chosen),
            chosen_count=len(chosen),
        )
        report = abi.Report()
        failed = self.library.tcgen_emulate(ctypes.byref(launch), ctypes.byref(report))
        return report if failed else None

    def _arguments(
        self, args: Sequence[Any], parameters: Sequence[abi.Parameter]
    ) -> tuple[list[_Span], list[int | None], list[Any]]:
        """Spans of memory; for each argument its span, or None and the value it stands for."""
        values: list[Any] = []
        pieces: list[tuple[_Span, int]] = []
        for i, (argument, parameter) in enumerate(zip(args, parameters, strict=True)):
            name = self._names[i]
            if parameter.pointer:
                values.append(self._array(argument, parameter, name))
                if argument.size:
                    low, high = np.lib.array_utils.byte_bounds(argument)
                    offset = (low - _owner_address(argument)) % BASE_ALIGNMENT
                    pieces.append((_Span(low, high, offset, [name], parameter.pointer == 2), i))
            else:
                values.append(self._scalar(argument, parameter, name))
        pieces.sort(key=lambda piece: (piece[0].low, piece[1]))
        spans: list[_Span] = []
        owners: list[int | None] = [None] * len(args)
        for piece, i in pieces:
            if spans and piece.low < spans[-1].high:
                last = spans[-1]
                last.high = max(last.high, piece.high)
                last.names += piece.names
                last.writable = last.writable or piece.writable
            else:
                spans.append(piece)
            owners[i] = len(spans) - 1
        for i, owner in enumerate(owners):
            if owner is None and parameters[i].pointer:  # an empty array: a null pointer
                values[i] = np.zeros(1, np.uintp)
        return spans, owners, values

    def _array(self, array: Any, parameter: abi.Parameter, name: str) -> npt.NDArray[Any]:
        if not isinstance(array, np.ndarray):
            self._refuse(f"argument {name} is {array!r} where the kernel takes a pointer")
        if any(stride < 0 for stride in array.strides):
            self._refuse(f"argument {name} has a negative stride")
        kind = parameter.kind.decode()
        same = array.itemsize == parameter.element and array.dtype.kind == kind
        vectors = kind == "s" and array.nbytes % max(1, parameter.element) == 0
        if not (same or vectors or kind == "v"):
            self._refuse(
                f"argument {name} is an array of {array.dtype} where the kernel takes a pointer to "
                f"{_named(kind, parameter.element)}"
            )
        return array

    def _scalar(self, value: Any, parameter: abi.Parameter, name: str) -> Any:
        scalar = np.asarray(value)  # as CuPy does: int is int64, float is float64
        kind = parameter.kind.decode()
        fits = kind == scalar.dtype.kind or (kind == "s" and scalar.dtype.kind in "cV")
        if scalar.ndim or scalar.dtype.itemsize != parameter.bytes or not fits:
            self._refuse(
                f"argument {name} is {value!r} of type {scalar.dtype} where the kernel takes "
                f"{_named(kind, parameter.bytes)}"
            )
        return scalar

    def _check_launch(
        self, grid: tuple[int, int, int], block: tuple[int, int, int], shared_mem: int
    ) -> None:
        threads = int(np.prod(block))
        most = self._signature.max_threads or 1024
        if min(grid) < 1 or min(block) < 1:
            self._refuse(f"grid {grid} and block {block}: an extent is not positive")
        if grid[0] >= 2**31 or max(grid[1:]) > 65535:
            self._refuse(f"grid {grid}: the limits are (2147483647, 65535, 65535)")
        if max(block[:2]) > 1024 or block[2] > 64 or threads > 1024:
            self._refuse(f"block {block}: the limits are (1024, 1024, 64), and 1024 threads")
        if threads > most:
            self._refuse(f"{threads} threads; __launch_bounds__ promises at most {most}")
        if self.shared_size_bytes > STATIC_LIMIT:
            self._refuse(
                f"{self.shared_size_bytes} bytes of static shared memory; {STATIC_LIMIT} fit"
            )
        limit = SHARED_LIMITS[self.arch]
        if self.shared_size_bytes + shared_mem > limit:
            self._refuse(
                f"{self.shared_size_bytes} + {shared_mem} bytes of shared memory; "
                f"a block of sm_{self.arch} has {limit}"
            )
        if shared_mem > self.max_dynamic_shared_size_bytes:
            self._refuse(
                f"{shared_mem} bytes of dynamic shared memory; set max_dynamic_shared_size_bytes, "
                f"which is {self.max_dynamic_shared_size_bytes}"
            )

    def _refuse(self, message: str) -> NoReturn:
        raise EmulationError("launch", message, self.name)

    def _raise(self, report: abi.Report) -> NoReturn:
        lines = {}
        file_name = self._module.file_name
        for place in ("here", "there"):
            line = getattr(report, f"{place}_line") or None
            address = getattr(report, place)
            if line is None and address:
                line = self._module.line_of(address)
            lines[place] = line
        message = re.sub(
            r"\{(here|there)\}",
            lambda m: f"{file_name}:{lines[m.group(1)] or '?'}",
            report.message.decode(),
        )
        raise EmulationError(
            report.kind.decode(),
            message,
            self.name,
            tuple(report.block),
            tuple(report.thread),
            lines["here"],
        )


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*(int(n) for n in extents), 1, 1)[:3]
    return x, y, z


def _named(kind: str, size: int) -> str:
    kinds = {"f": "float", "i": "int", "u": "unsigned", "s": "a structure of", "v": "void"}
    return f"{kinds[kind]} {8 * size} bits"


def _owner_address(array: npt.NDArray[Any]) -> int:
    """Address of the array that owns the memory: on a device it would be aligned."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return int(owner.__array_interface__["data"][0])
