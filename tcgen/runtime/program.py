"""Programs that the user calls: ``program(**arrays)``, ``program.bind(**constants)``."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy.typing as npt

from .. import runtime
from ..artifact.folder import Artifact
from ..artifact.manifest import SOURCES, Manifest
from ..errors import ArgumentError, UnavailableError
from .arguments import (
    check_names,
    find_extents,
    only_inputs,
    read_inputs,
    refuse_positional,
    shape_of,
)
from .bound import BoundProgram
from .dlpack import adopt_all, adopt_arguments
from .execution import Execution
from .host_device import HostDevice
from .queries import ProgramQueries

Array = npt.NDArray[Any]


class Program(ProgramQueries):
    """A compiled program.

    An array has the axes of its stored tensor, with any strides.

    Attributes:
        artifact: files of the program.
    """

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact
        self._execution = Execution(_runs_here(artifact))

    def __repr__(self) -> str:
        inputs = ", ".join(t.name for t in self._execution.inputs)
        outputs = ", ".join(t.name for t in self.manifest.outputs)
        manifest = self.manifest
        return f"<{manifest.name}({inputs}) -> {outputs}, {manifest.target}, {manifest.dtype}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Program, (self.artifact,))

    @property
    def manifest(self) -> Manifest:
        """The description of the program for the runtime."""
        return self._execution.manifest

    @property
    def source(self) -> str:
        """The generated source."""
        return self.artifact.text(SOURCES[self.manifest.target])

    def save(self, folder: str | Path, *, objects: bool = False) -> Path:
        """Write the artifact; ``tcgen.load(folder)`` or importing the folder brings it back.

        Args:
            folder: folder to write; an older artifact there is replaced.
            objects: also write the compiled objects, so that machines with the same processor need
                no C compiler; other machines compile the source.

        Raises:
            ArgumentError: objects of a program that is not for the target cpu.
            ArtifactError: the folder holds something that is not an artifact.
            BuildError: the compiler is missing or failed.
            UnavailableError: the folder cannot be written.
        """
        if not objects:
            return self.artifact.save(folder)
        from .cpu.backend import CpuBackend  # noqa: PLC0415  (other targets need no ctypes)

        backend = self._execution.backend
        if not isinstance(backend, CpuBackend):
            raise ArgumentError(
                f"{self.manifest.name} is for the target {self.manifest.target}, which has no "
                f"compiled objects here: leave objects out, or compile for the target cpu"
            )
        return backend.with_objects(self.artifact).save(folder)

    def building(self) -> AbstractContextManager[None]:
        """Compile in the background what the first call would compile, while the context runs.

        The first call waits for it, and raises its errors; an exception in the context ends it. On
        a GPU and in NumPy nothing is compiled.

        Raises:
            BuildError: the compiler is missing.
        """
        from .cpu.backend import CpuBackend  # noqa: PLC0415  (other targets need no ctypes)

        backend = self._execution.backend
        return backend.building() if isinstance(backend, CpuBackend) else nullcontext()

    def build(self) -> None:
        """Compile now everything that calls would compile, also kernels that only some calls need.

        Raises:
            BuildError: the compiler is missing or failed.
            UnavailableError: the program is for a GPU, and there is none, or no CuPy.
        """
        self._execution.backend.build()

    def extents_for(self, /, **arrays: object) -> dict[str, int]:
        """Extents of the base spaces in a call with these arrays; not all inputs are needed.

        Raises:
            ArgumentError, DtypeError, ShapeError, ExtentError: an array does not fit.
        """
        wanted = tuple(t for t in self._execution.inputs if t.name in arrays)
        check_names(self.manifest.name, wanted, arrays)
        sources = read_inputs(HostDevice(), wanted, arrays, self.manifest.dtype)
        return find_extents(self.manifest, {n: shape_of(a) for n, a in sources.items()})

    def __call__(
        self,
        /,
        *positional: object,
        out: dict[str, Any] | None = None,
        part: tuple[int, int] | Any = None,
        strict: bool = True,
        **arrays: object,
    ) -> dict[str, Array]:
        """Run the program, or a part of it.

        Args:
            strict: if true, reject arrays that are not inputs; if False, ignore them, so that one
                dictionary of arrays serves several programs.
            out: arrays for some or all results, which are overwritten (or added to, where the
                output accumulates); the other results are put into it.
            part: first and end of the parts that run, half open, within :meth:`parts`; all by
                default. The results of calls that run every part once add up to those of the whole.
            arrays: each input by its name.
            positional: refused, since equations do not order their inputs.

        Raises:
            ArgumentError, DtypeError, ShapeError, ExtentError: an array does not fit.
            MemoryLimitError: the extents need more than the program's limit.
            BuildError: the first call cannot compile the source.
        """
        execution, name = self._execution, self.manifest.name
        if positional:
            refuse_positional(name, execution.inputs)
        if not strict:
            arrays = only_inputs(execution.inputs, arrays)
        device = execution.device
        if device.on_cpu:
            return execution.call(execution.reader.read(name, device, arrays), out, part=part)
        own, own_out, back = adopt_arguments(device, arrays, out)
        return back(execution.call(execution.reader.read(name, device, own), own_out, part=part))

    def bind(self, /, *, strict: bool = True, **constants: object) -> BoundProgram:
        """Fix the constant inputs, and compute once all that depends only on them.

        Arrays in C order (for a GPU: CuPy arrays in C order) are not copied: leave them as they are
        while the bound program is in use, or bind again.

        Args:
            strict: if true, reject arrays that are not constant inputs; if False, ignore them.
            constants: each constant input by its name.

        Raises:
            ArgumentError: a constant is missing, or an input is volatile.
        """
        inputs = self._execution.inputs
        expected = tuple(t for t in inputs if not t.volatile)
        if not strict:
            constants = only_inputs(expected, constants)
        volatile = [n for n in constants if any(t.name == n and t.volatile for t in inputs)]
        if volatile:
            raise ArgumentError(
                f"{self.manifest.name}: {', '.join(volatile)} may change at each call: pass it to "
                f"the bound program, or declare it constant"
            )
        check_names(f"{self.manifest.name}.bind", expected, constants)
        device = self._execution.device
        constants, _ = adopt_all(device, constants)
        given = read_inputs(device, expected, constants, self.manifest.dtype)
        return BoundProgram(self._execution, given)

    def distribute(self, where: object, memory: Any = None, **options: Any) -> Any:
        """Call :func:`tcgen.distribute` with this program.

        Raises:
            UnavailableError: the program belongs to a saved folder, which runs without tcgen.
        """
        if runtime.distribute is None:
            raise UnavailableError(
                "a program that is imported from its folder runs on one machine: "
                "install tcgen, and call tcgen.distribute(tcgen.load(folder), ...)"
            )
        return runtime.distribute(self, where, memory, **options)


def _runs_here(artifact: Artifact) -> Artifact:
    """The artifact, or its fallback if neither a compiler nor its objects can be used.

    Raises:
        ArtifactError: the fallback, or the index of the objects, is damaged.
    """
    fallback = artifact.fallback()
    if fallback is None:
        return artifact
    from .cpu.bundled_objects import read_objects  # noqa: PLC0415  (other programs need no ctypes)
    from .cpu.toolchain import no_compiler  # noqa: PLC0415

    missing = None if read_objects(artifact).objects else no_compiler()
    if missing is None:
        return artifact
    warnings.warn(
        f"NumPy runs {artifact.manifest.name}: {missing[0]}", RuntimeWarning, stacklevel=3
    )
    return fallback


def load(folder: str | Path) -> Program:
    """A saved program, whose first call compiles its source if the cache has no object.

    Args:
        folder: folder that ``tcgen compile`` or :meth:`Program.save` wrote.

    Raises:
        ArtifactError: the folder is missing or damaged, or another version of tcgen wrote it.
    """
    return Program(Artifact.load(folder))
