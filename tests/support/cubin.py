"""What a cubin, a file of ELF, says of its kernels: registers, local and shared memory.

Compilers of CUDA 12 and 13 write different versions of it; both have the sections that are read
here: ``.nv.info`` with attributes of functions, and ``.nv.shared.<kernel>``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_REGISTERS, _FRAME = 0x2F, 0x11  # attributes EIATTR_REGCOUNT, EIATTR_FRAME_SIZE
_WITH_BYTES = 4  # the format of an attribute that bytes follow


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the file."""

    name: str
    bytes: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Use:
    """Registers of a thread, its bytes of local memory, bytes of static shared memory."""

    registers: int
    stack: int
    shared: int


def uses_of(cubin: bytes) -> dict[str, Use]:
    """What the kernels of a cubin take, by name.

    Raises:
        ValueError: it is no cubin.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("no ELF file of 64 bits")
    sections = _sections(cubin)
    by_name = {section.name: section for section in sections}
    symbols = _symbols(by_name[".symtab"].content, by_name[".strtab"].content)
    found: dict[str, dict[int, int]] = {}
    for attribute, function, value in _attributes(by_name[".nv.info"].content):
        found.setdefault(symbols[function], {})[attribute] = value
    uses = {}
    for section in sections:
        if section.name.startswith(".text."):
            name = section.name.removeprefix(".text.")
            of = found.get(name, {})
            shared = by_name.get(f".nv.shared.{name}")
            uses[name] = Use(
                of.get(_REGISTERS, 0), of.get(_FRAME, 0), shared.bytes if shared else 0
            )
    return uses


def _sections(cubin: bytes) -> list[Section]:
    (begin,) = struct.unpack_from("<Q", cubin, 0x28)
    step, count, names_at = struct.unpack_from("<3H", cubin, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", cubin, begin + n * step) for n in range(count)]
    names = cubin[heads[names_at][4] :]
    return [
        Section(_text(names, name), size, b"" if type_ == 8 else cubin[at : at + size])
        for name, type_, _, _, at, size in heads
    ]


def _symbols(table: bytes, names: bytes) -> list[str]:
    return [_text(names, name) for name, *_ in struct.iter_unpack("<IBBHQQ", table)]


def _attributes(content: bytes) -> list[tuple[int, int, int]]:
    """Attribute, function and value, of those that have a function and a number."""
    found, at = [], 0
    while at + 4 <= len(content):
        format_, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if format_ == _WITH_BYTES:
            if size == 8:
                found.append((attribute, *struct.unpack_from("<II", content, at)))
            at += size
    return found


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()
