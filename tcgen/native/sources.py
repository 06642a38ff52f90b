"""Programs of a library: compiled equations or artifacts, with names for all languages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from .._version import __version__
from ..artifact.folder import Artifact
from ..artifact.manifest import Manifest
from ..emit.scope import CUDA_RESERVED, legal
from ..errors import ArgumentError
from ..frontend import spec_text
from ..ir.system import System
from ..records.loops import Fetch, host_items
from ..records.tensors import Role, Space, Tensor, element_type

# Names of arguments and procedures beside the tensors; CUDA_RESERVED has the words of C and C++.
_TAKEN = (
    *("n", "in", "out", "state", "workspace", "options", "status", "message", "bytes", "given"),
    *("made", "build", "report", "chosen", "library_build", "library_message"),
)
_LONGEST = 40  # characters of a name: Fortran has 63, of which prefix and suffix take some


def names(wanted: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Names that C, C++ and Fortran allow; Fortran does not tell ``T`` from ``t``.

    Example:
        >>> names(["t", "T", "new", "n"], taken=["n"])
        ['t', 'T_2', 'new_', 'n_2']
    """
    used = {name.lower() for name in taken}
    found = []
    for name in wanted:
        word = base = legal(name, CUDA_RESERVED)
        number = 2
        while word.lower() in used:
            word = f"{base}_{number}"
            number += 1
        used.add(word.lower())
        found.append(word)
    return found


@dataclass(frozen=True)
class NativeProgram:
    """A program of a library.

    Attributes:
        artifact: its compiled form for the CPU.
        system: its equations.
        name: name in C++ and Fortran, and behind the library's prefix in C.
        prefix: prefix of all symbols of the library.
    """

    artifact: Artifact
    system: System
    name: str
    prefix: str

    @property
    def manifest(self) -> Manifest:
        """Description of the program."""
        return self.artifact.manifest

    @property
    def symbol(self) -> str:
        """Name of its function in C."""
        return self.prefix + self.name

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """Inputs, in order."""
        return tuple(t for t in self.manifest.tensors if t.is_input)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Results, in order."""
        return self.manifest.outputs

    @property
    def binds(self) -> bool:
        """True if the constant phase has work, so that the program can be bound."""
        return bool(self.manifest.host_constant)

    @cached_property
    def words(self) -> dict[str, str]:
        """Name of each argument and result in the source, by tensor."""
        tensors = [t.name for t in self.manifest.tensors]
        return dict(zip(tensors, names(tensors, _TAKEN), strict=True))

    @cached_property
    def base_words(self) -> dict[str, str]:
        """Name of each extent in the source, by base space."""
        return dict(zip(self.manifest.bases, names(self.manifest.bases), strict=True))

    @cached_property
    def equations(self) -> list[str]:
        """Lines of the equations, as a spec."""
        return spec_text(self.system).strip().splitlines()

    @property
    def plan_hash(self) -> str:
        """Digest of the plan: equal for equal plans."""
        return hashlib.sha256(self.artifact.text("plan.json").encode()).hexdigest()[:16]

    def dtype(self, tensor: Tensor) -> str:
        """Element type of an argument or result."""
        return element_type(tensor, self.manifest.dtype)

    def tile_order(self, tensor: Tensor) -> tuple[int, ...]:
        """Logical axes of the tiles of a source, slowest first."""
        for item in host_items((*self.manifest.host_constant, *self.manifest.host_volatile)):
            if isinstance(item, Fetch):
                buffer = next(b for b in self.manifest.buffers if b.name == item.buffer)
                if buffer.source == tensor.name:
                    return buffer.order
        return tensor.stored_order

    def shape(self, tensor: Tensor, base: Callable[[str], str] = str) -> list[str]:
        """Lengths of the axes in memory, slowest first, as expressions of C and Fortran.

        ``base`` has the expression of an extent.
        """

        def extent(space: Space) -> str:
            text = " + ".join(base(self.base_words[b.name]) for b in space.bases)
            return f"({text})" if len(space.bases) > 1 else text

        if tensor.role is Role.GENERATED:
            return [extent(tensor.spaces[axis]) for axis in self.tile_order(tensor)]
        lengths = []
        for axis, pack in tensor.stored():
            n = extent(tensor.spaces[axis])
            if pack is None:
                lengths.append(n)
                continue
            # Each quotient is a binomial coefficient, so that no digit is lost.
            sign = "-" if pack.antisymmetric else "+"
            steps = (f"*({n} {sign} {k})/{k + 1}" for k in range(1, pack.count))
            lengths.append("".join([n, *steps]))
        return lengths


def named(
    found: Iterable[tuple[Artifact, System]], library_name: str, prefix: str
) -> list[NativeProgram]:
    """The programs of a library.

    Raises:
        ArgumentError: a program cannot be in a library, or two things have one name.
    """
    programs: list[NativeProgram] = []
    for artifact, system in found:
        refuse_unfit(artifact)
        (name,) = names([artifact.manifest.name], _TAKEN)
        if len(name) > _LONGEST:
            raise ArgumentError(
                f"the program name {name} has more than {_LONGEST} characters, which Fortran does "
                f"not take with its suffixes: rename the spec"
            )
        if name.lower() == library_name.lower():
            raise ArgumentError(
                f"the library and its program have the name {name}, which Fortran does not allow "
                f"for a module: give the library another one"
            )
        if any(p.name.lower() == name.lower() for p in programs):
            raise ArgumentError(f"two programs have the name {name}: rename one of the specs")
        programs.append(NativeProgram(artifact, system, name, prefix))
    return programs


def refuse_unfit(artifact: Artifact) -> None:
    """Raise an ArgumentError that says why a program cannot be in a library, and what to do."""
    manifest, why = artifact.manifest, ""
    if manifest.target != "cpu":
        why = f"it is compiled for the target {manifest.target}: compile it for the target cpu"
    elif manifest.tcgen_version != __version__:
        why = (
            f"it was compiled by tcgen {manifest.tcgen_version}, and this is {__version__}: "
            f"compile it again"
        )
    elif any(t.gaps for t in manifest.tensors):
        why = "its arguments are slices of larger arrays: compile it from a spec"
    elif long := next((t.name for t in manifest.tensors if len(t.name) > _LONGEST), None):
        why = (
            f"the name {long} has more than {_LONGEST} characters, which Fortran does not take: "
            f"rename the tensor"
        )
    if why:
        raise ArgumentError(f"{manifest.name} cannot be in a library: {why}")
