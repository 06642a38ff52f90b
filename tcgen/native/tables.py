"""A manifest as the tables of the C runtime (``templates/c/runtime/runtime.h``)."""

from __future__ import annotations

from collections.abc import Iterable

from ..artifact.manifest import KernelEntry
from ..dtypes import BY_NAME
from ..records.loops import Buffer
from ..records.tensors import Packing, Role, Tensor
from ..runtime.host_program import on_host
from ..runtime.symmetry import packed_generators
from .sources import NativeProgram

_ROLES = {Role.INPUT: "TCR_INPUT", Role.GENERATED: "TCR_SOURCE", Role.OUTPUT: "TCR_OUTPUT"}


def array_of(kind: str, items: Iterable[str]) -> str:
    """A constant array as an expression; NULL if it is empty."""
    listed = ", ".join(items)
    return f"(const {kind}[]){{{listed}}}" if listed else "NULL"


def entries(program: NativeProgram) -> dict[str, int]:
    """Places in the table of addresses: buffers, then packing memory by kernel (``@name``)."""
    manifest = program.manifest
    names = [b.name for b in manifest.buffers if b.place != "register"]
    names += [f"@{k.name}" for k in manifest.kernels if k.contractions]
    return {name: place for place, name in enumerate(names)}


def tables(program: NativeProgram) -> list[str]:
    """Definitions of a program's tables; the last one is ``NAME_program``."""
    manifest, name = program.manifest, program.name
    spaces = {s.name: n for n, s in enumerate(manifest.spaces)}
    bases = {b: n for n, b in enumerate(manifest.bases)}
    place = entries(program)
    buffers = {b.name: n for n, b in enumerate(manifest.buffers)}
    tensors = {t.name: n for n, t in enumerate(manifest.tensors)}
    constant = {t.name for t in manifest.constant_outputs}
    once = manifest.parts.once if manifest.parts else ()

    def axes(entry: Tensor | Buffer) -> str:
        def axis(logical: int, pack: Packing | None) -> str:
            length = entry.axes[logical].length if isinstance(entry, Buffer) else None
            count, strict = (pack.count, int(pack.antisymmetric)) if pack else (1, 0)
            return f"{{{spaces[entry.spaces[logical].name]}, {length or 0}, {count}, {strict}}}"

        return array_of("tcr_axis", (axis(*stored) for stored in entry.stored()))

    def array(entry: Tensor | Buffer, dtype: str) -> str:
        item, count = BY_NAME[dtype].itemsize, len(entry.stored())
        return f'{{"{entry.name}", {item}, {count}, {axes(entry)}}}'

    def tensor(t: Tensor) -> str:
        dtype = BY_NAME[program.dtype(t)]
        struct = f"{program.symbol}_{'inputs' if t.is_input else 'outputs'}"
        is_constant = t.name in constant if t.role is Role.OUTPUT else not t.volatile
        generators = [
            f"{{{array_of('signed char', map(str, perm))}, {sign}, {int(conj)}}}"
            for perm, sign, conj in packed_generators(t)
        ]
        otherwise = "NULL"
        if t.default is not None:
            otherwise = f"&(const {dtype.c_type}){{{float(t.default)!r}}}"
        return (
            f"    {{{array(t, dtype.name)}, {_ROLES[t.role]}, {int(is_constant)}, "
            f"{int(t.accumulate)}, {dtype.parts - 1}, offsetof({struct}, {program.words[t.name]}), "
            f"{otherwise}, {len(generators)}, {array_of('tcr_generator', generators)}}},"
        )

    def buffer(b: Buffer) -> str:
        held = tensors[b.source] if b.place == "caller" else -1
        return (
            f"    {{{array(b, b.dtype)}, {held}, {int(b.keep)}, {place.get(b.name, -1)}, "
            f"{b.live[0]}, {b.live[1]}, {b.rank}}},"
        )

    def products(kernel: KernelEntry) -> Iterable[str]:
        for dtype, groups, staged in kernel.contractions:
            lengths = (f"{{{spaces[s]}, {tile or 0}}}" for group in groups for s, tile in group)
            counts = ", ".join(str(len(group)) for group in groups)
            element = BY_NAME[dtype]
            yield (
                f"{{{element.itemsize}, {element.parts}, {int(staged)}, {{{counts}}}, "
                f"{array_of('tcr_length', lengths)}}}"
            )

    def kernel(k: KernelEntry) -> str:
        own = array_of("int", (str(buffers[b]) for b in k.private))
        return (
            f"    {{{len(k.private)}, {len(k.contractions)}, {place.get(f'@{k.name}', -1)}, "
            f"{int(k.name in once)}, {k.live[0]}, {k.live[1]}, {own}, "
            f"{array_of('tcr_product', products(k))}}},"
        )

    chain = manifest.parts.chain if manifest.parts else ()
    loops = (
        f"{{{spaces[v.space.name]}, {v.tile or 1}, {int(n > 0 and v.below is not None)}}}"
        for n, v in enumerate(chain)
    )
    space = (
        f"{{{len(s.bases)}, {array_of('int', (str(bases[b.name]) for b in s.bases))}}}"
        for s in manifest.spaces
    )
    phases = (("constant", manifest.host_constant), ("volatile", manifest.host_volatile))
    walks = [f"{name}_{phase}" if on_host(manifest, host) else "NULL" for phase, host in phases]
    counts = ", ".join(
        str(len(x)) for x in (bases, tensors, buffers, manifest.kernels, chain, place)
    )
    quoted = (f'"{b}"' for b in bases)
    return [
        f"static const tcr_tensor {name}_tensors[] = {{",
        *map(tensor, manifest.tensors),
        "};",
        f"static const tcr_buffer {name}_buffers[] = {{",
        *map(buffer, manifest.buffers),
        "};",
        f"static const tcr_kernel {name}_kernels[] = {{",
        *map(kernel, manifest.kernels),
        "};",
        f"static const tcr_program {name}_program = {{",
        f'    "{name}", {counts}, {int(manifest.tight)}, {manifest.constant_positions},',
        f"    {manifest.memory_limit or 0}, {array_of('char *const', quoted)},",
        f"    {array_of('tcr_space', space)},",
        f"    {name}_tensors, {name}_buffers, {name}_kernels, {array_of('tcr_loop', loops)},",
        f"    {name}_functions, {{{', '.join(walks)}}},",
        f"    {{{', '.join(str(int(bool(host))) for _, host in phases)}}},",
        "};",
    ]
