"""A kernel of a PTX text as C++ that ptx.h and the emulator's runtime give a meaning.

Registers become variables that hold bits; every access of memory, barrier, shuffle and matrix
product becomes a call that is told its line of the PTX. Shared arrays lie in a window with gaps
between them, at odd multiples of the alignment that the text promises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .operations import TYPES, result, with_carry
from .parse import (
    BYTES,
    Array,
    Brace,
    Function,
    Instruction,
    Label,
    PtxError,
    Registers,
    Text,
)

GAP = 256  # bytes between shared arrays, that nobody may touch
_SPECIAL = {
    **{f"%tid.{x}": f"emulated::thread_index().{x}" for x in "xyz"},
    **{f"%ntid.{x}": f"emulated::block_extent().{x}" for x in "xyz"},
    **{f"%ctaid.{x}": f"emulated::block_index().{x}" for x in "xyz"},
    **{f"%nctaid.{x}": f"emulated::grid_extent().{x}" for x in "xyz"},
    "%laneid": "ptx::lane()",
    "%lanemask_lt": "((1u << ptx::lane()) - 1)",
    "WARP_SZ": "32",
}
_SPACES = ("global", "shared", "local", "const", "param")
_ATOMICS = {
    "add": "old + value",
    "exch": "value",
    "min": "old < value ? old : value",
    "max": "old > value ? old : value",
    "and": "old & value",
    "or": "old | value",
    "xor": "old ^ value",
}
_MMA = re.compile(r"m(\d+)n8k(\d+)")
_MMA_TYPES = {  # of the sums and the factors; TF32 has the bits of a float32
    ("f64",) * 4: ("f64", "f64"),
    ("f32", "tf32", "tf32", "f32"): ("f32", "f32"),
}


@dataclass(frozen=True, slots=True)
class SharedArray:
    """Where a static shared array lies in the window."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Translation:
    """A kernel in C++: its shared arrays, its constant ones by the names of their variables."""

    code: str
    shared: tuple[SharedArray, ...]
    constants: tuple[str, ...]


def translate(text: Text, kernel: str, kinds: Sequence[str]) -> Translation:
    """The C++ of a kernel and of the functions that it calls.

    Args:
        text: that has it.
        kernel: its name.
        kinds: for each parameter the fields of an ``emulated::Parameter``.

    Raises:
        PtxError: an instruction has no translation.
    """
    functions, arrays = text.needs(kernel)
    own = [i for f in functions for i in f.body if isinstance(i, Array) and i.space == "shared"]
    every = [a for a in arrays if a.space == "shared"] + own
    shared, window = _placed([a for a in every if a.bytes is not None])
    symbols = {s.name: f"ptx::window({s.offset})" for s in shared}
    symbols |= {a.name: "ptx::launched()" for a in every if a.bytes is None}
    fixed = [a for a in arrays if a.space in ("global", "const")]
    symbols |= {a.name: f"(uint64_t)constant_{a.name.replace('$', '_')}" for a in fixed}
    lines = [
        '#include "ptx.h"',
        f"alignas(1024) char tcgen_ptx_window[{window}];",
        *(_constant(a) for a in fixed),
        *(f"{_declared(f)};" for f in functions if not f.kernel),
    ]
    for function in functions:
        lines += _Function(function, symbols, functions).lines()
    last = functions[-1]
    lines += [
        f"static const emulated::Parameter tcgen_parameters[] = {{{', '.join((*kinds, '{}'))}}};",
        'extern "C" __attribute__((visibility("default"))) const emulated::Signature '
        f"tcgen_signature_{kernel};",
        f"const emulated::Signature tcgen_signature_{kernel} = "
        f"{{{_cpp_name(kernel)}, {last.threads}, {len(kinds)}, tcgen_parameters}};",
    ]
    return Translation("\n".join(lines) + "\n", shared, tuple(f"constant_{a.name}" for a in fixed))


def _placed(arrays: Sequence[Array]) -> tuple[tuple[SharedArray, ...], int]:
    placed, offset = list[SharedArray](), GAP
    for array in arrays:
        assert array.bytes is not None
        step = 2 * max(array.align, 4)
        offset = -(-offset // step) * step + (array.align if array.align < 16 else 0)
        placed.append(SharedArray(array.name, offset, array.bytes))
        offset += array.bytes + GAP
    return tuple(placed), offset


def _constant(array: Array) -> str:
    """An array with its values. It may be written nowhere: the emulator lets kernels read it."""
    type_ = TYPES[f"u{8 * array.item}"]
    values = ", ".join(_bits(v, 8 * array.item) for v in array.values)
    count = (array.bytes or array.item) // array.item
    name = f"constant_{array.name.replace('$', '_')}"
    return (
        f'extern "C" {{ __attribute__((used, aligned({max(array.align, 4)}))) '
        f"{type_} {name}[{count}] = {{{values}}}; }}"
    )


def _bits(value: str, bits: int) -> str:
    """A number of the text as bits of that many."""
    if value[:2] in ("0d", "0D", "0f", "0F"):
        return f"0x{value[2:]}ull"
    number = int(value.rstrip("U"), 0) & ((1 << bits) - 1)
    return f"{number}ull"


def _cpp_name(name: str) -> str:
    return "ptx_" + name.replace("$", "_")


def _declared(function: Function) -> str:
    if function.kernel:
        return f"static void {_cpp_name(function.name)}(void **arguments)"
    passed = (*function.results, *function.parameters)
    parameters = ", ".join(f"unsigned char *{_register(n)}" for n, _ in passed)
    return f"static void {_cpp_name(function.name)}({parameters})"


def _register(name: str) -> str:
    return "r_" + name.lstrip("%").replace("$", "_")


@dataclass(slots=True)
class _Function:
    """Translates one function."""

    function: Function
    symbols: dict[str, str]
    functions: Sequence[Function]
    types: dict[str, str] = field(default_factory=dict)
    depots: list[Array] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The function in C++."""
        self.symbols = dict(self.symbols)
        self.depots = [i for i in self.function.body if isinstance(i, Array) and i.space == "local"]
        self.symbols |= {a.name: f"(uint64_t){_register(a.name)}" for a in self.depots}
        made = [f"{_declared(self.function)} {{"]
        for depot in self.depots:
            name = _register(depot.name)
            made.append(f"alignas({max(depot.align, 16)}) char {name}[{depot.bytes}];")
            made.append(f"__builtin_memset({name}, 0xff, {depot.bytes});")
        made.append("bool carry = false; (void)carry;")
        # The declarations of the function come first: no jump may pass an initial value.
        depth, inner = 0, list[str]()
        for item in self.function.body:
            if isinstance(item, Brace):
                depth += 1 if item.opens else -1
                inner.append("{" if item.opens else "}")
            elif isinstance(item, Registers):
                (inner if depth else made).extend(self._registers(item, poison=not depth))
            elif isinstance(item, Label):
                inner.append(f"{item.name.replace('$', 'L_')}:;")
            elif isinstance(item, Instruction):
                inner.append(self._guarded(item))
            elif item.space == "param":
                inner.append(f"alignas(16) unsigned char {_register(item.name)}[{item.bytes}];")
        return [*made, *inner, "}"]

    def _registers(self, item: Registers, poison: bool) -> list[str]:
        kind = "b" + item.type[1:] if item.type != "pred" else "pred"
        self.types |= dict.fromkeys(item.names, kind)
        if not poison:
            return [f"{TYPES[kind]} {', '.join(_register(n) for n in item.names)};"]
        value = "false" if kind == "pred" else f"({TYPES[kind]})0xdeadbeefdeadbeefull"
        return [f"{TYPES[kind]} {', '.join(f'{_register(n)} = {value}' for n in item.names)};"]

    def _guarded(self, item: Instruction) -> str:
        try:
            made = self._instruction(item)
        except (KeyError, IndexError, StopIteration, ValueError, AttributeError) as error:
            raise PtxError(f"{item}: not translated ({error!r})") from error
        if made is None:
            raise PtxError(f"{item}: not translated")
        if item.guard:
            return f"if ({self._read(item.guard, 'pred')}) {{ {made} }}"
        return made

    # ---- operands ------------------------------------------------------------------------------

    def _read(self, operand: str, type_: str) -> str:
        """An operand as a value of a type."""
        cpp = TYPES[type_]
        if operand in self.types:
            name, kind = _register(operand), self.types[operand]
            if type_[0] == "f":
                bits = f"(uint{type_[1:]}_t){name}"
                return f"__builtin_bit_cast({cpp}, {bits})"
            return f"({cpp}){name}" if kind != type_ else name
        if operand.startswith("!") and operand[1:] in self.types:
            return f"!{_register(operand[1:])}"
        if operand in _SPECIAL:
            return f"({cpp}){_SPECIAL[operand]}"
        if operand in self.symbols:
            return f"({cpp})({self.symbols[operand]})"
        bits = 64 if type_ == "pred" else int(type_[1:])
        number = _bits(operand, 64 if operand[:2] not in ("0f", "0F") else 32)
        if type_[0] == "f":
            return f"__builtin_bit_cast({cpp}, (uint{bits}_t){number})"
        return f"({cpp}){number}"

    def _write(self, register: str, type_: str, value: str) -> str:
        """Put a value of a type into a register; ``_`` takes none."""
        if register == "_":
            return f"(void)({value});"
        kind = self.types[register]
        if type_[0] == "f":
            value = f"__builtin_bit_cast(uint{type_[1:]}_t, ({TYPES[type_]})({value}))"
            type_ = kind
        return f"{_register(register)} = ({TYPES[kind]})({TYPES[type_]})({value});"

    def _address(self, operand: str) -> str:
        """What stands in brackets, as 64 bits."""
        inner = operand.strip("[]")
        base, _, offset = inner.partition("+")
        value = self._read(base.strip(), "u64")
        return f"({value} + ({offset.strip()}ll))" if offset else f"({value})"

    def _vector(self, operand: str) -> list[str]:
        return [x.strip() for x in operand.strip("{}").split(",")]

    def _elements(self, item: Instruction, operand: str) -> list[str]:
        """The registers of a load or store of one value or of several."""
        found = self._vector(operand)
        count = next((int(p[1]) for p in item.parts if p in ("v2", "v4", "v8")), 1)
        if len(found) != count:
            raise PtxError(f"{item}: {len(found)} registers")
        return found

    # ---- instructions --------------------------------------------------------------------------

    def _instruction(self, item: Instruction) -> str | None:
        parts, operands = item.parts, item.operands
        match parts[0]:
            case "bra":
                return f"goto {operands[0].replace('$', 'L_')};"
            case "ret" | "exit":
                return "return;"
            case "trap":
                return f"emulated::trap({item.line});"
            case "membar" | "fence" | "nanosleep":
                return "emulated::fence();"
            case "ld" | "ldu":
                return self._load(item)
            case "st":
                return self._store(item)
            case "atom" | "red":
                return self._atomic(item)
            case "cp":
                return self._copy(item)
            case "bar" | "barrier":
                return self._barrier(item)
            case "shfl" | "vote" | "activemask" | "mma":
                return self._of_warp(item)
            case "call":
                return self._call(item)
            case "cvta":
                return self._generic(item)
            case "isspacep":
                return self._write(
                    operands[0],
                    "pred",
                    f'ptx::in_space({self._read(operands[1], "u64")}, "{parts[1]}")',
                )
            case "mov" if "{" in "".join(operands):
                return self._packed(item)
        return self._computed(item)

    def _computed(self, item: Instruction) -> str | None:
        parts, operands = item.parts, item.operands

        def read(number: int, type_: str) -> str:
            return self._read(operands[number], type_)

        if found := with_carry(parts, read):
            type_, whole = found
            bits = type_[1:]
            return (
                f"{{ unsigned __int128 whole = {whole}; carry = (whole >> {bits}) & 1; "
                f"{self._write(operands[0], type_, 'whole')} }}"
            )
        made = result(parts, read)
        if made is None:
            return None
        targets = operands[0].split("|")
        written = self._write(targets[0].strip(), *made)
        if len(targets) > 1:
            written += self._write(targets[1].strip(), "pred", f"!({made[1]})")
        return written

    def _packed(self, item: Instruction) -> str:
        """Registers side by side in a longer one, and back."""
        target, source = item.operands
        whole = item.parts[-1]
        if target.startswith("{"):
            names = self._vector(target)
            bits = int(whole[1:]) // len(names)
            value = self._read(source, f"u{whole[1:]}")
            pieces = (
                self._write(n, f"u{bits}", f"whole >> {i * bits}") for i, n in enumerate(names)
            )
            return f"{{ uint64_t whole = {value}; {' '.join(pieces)} }}"
        names = self._vector(source)
        bits = int(whole[1:]) // len(names)
        shifted = (
            f"(uint64_t){self._read(n, f'u{bits}')} << {i * bits}" for i, n in enumerate(names)
        )
        return self._write(target, f"u{whole[1:]}", " | ".join(f"({s})" for s in shifted))

    def _space(self, item: Instruction) -> str:
        return next((p for p in item.parts[1:] if p.partition("::")[0] in _SPACES), "generic")

    def _pointer(self, item: Instruction, operand: str, bytes_: int, access: str) -> str:
        """A checked pointer to what an instruction accesses."""
        space = self._space(item).partition("::")[0]
        address = self._address(operand)
        if space == "local" and self.function.kernel:
            depot = self.depots[0]
            return (
                f"ptx::local({address}, {_register(depot.name)}, {depot.bytes}, {bytes_}, "
                f"{item.line})"
            )
        if space == "local":  # of the caller, maybe: any of the thread's
            space = "generic"
        call = {"const": "constant"}.get(space, space)
        return f"ptx::{call}({address}, {bytes_}, emulated::Access::{access}, {item.line})"

    def _parameter(self, operand: str) -> str:
        """A pointer into a parameter of the kernel, of this function or of a call."""
        name, _, offset = operand.strip("[]").partition("+")
        more = f" + {offset.strip()}" if offset else ""
        if self.function.kernel:
            for number, (parameter, _) in enumerate(self.function.parameters):
                if parameter == name:
                    return f"((const char *)arguments[{number}]{more})"
        return f"({_register(name)}{more})"

    def _load(self, item: Instruction) -> str:
        type_ = item.parts[-1]
        item_bytes = BYTES[type_[1:]]
        targets = self._elements(item, item.operands[0])
        if self._space(item).startswith("param"):
            pointer = self._parameter(item.operands[1])
        else:
            access = "read_only" if "nc" in item.parts else "read"
            bytes_ = item_bytes * len(targets)
            pointer = self._pointer(item, item.operands[1], bytes_, access)
        loads = (
            self._write(t, type_, f"ptx::get<{TYPES[type_]}>(at, {i})")
            for i, t in enumerate(targets)
        )
        return f"{{ const void *at = {pointer}; {' '.join(loads)} }}"

    def _store(self, item: Instruction) -> str:
        type_ = item.parts[-1]
        item_bytes = BYTES[type_[1:]]
        sources = self._elements(item, item.operands[1])
        if self._space(item).startswith("param"):
            pointer = f"(void *){self._parameter(item.operands[0])}"
        else:
            bytes_ = item_bytes * len(sources)
            pointer = self._pointer(item, item.operands[0], bytes_, "write")
        stores = (
            f"ptx::put<{TYPES[type_]}>(at, {i}, {self._read(s, type_)});"
            for i, s in enumerate(sources)
        )
        return f"{{ void *at = {pointer}; {' '.join(stores)} }}"

    def _atomic(self, item: Instruction) -> str:
        type_ = item.parts[-1]
        cpp = TYPES[type_]
        operands = item.operands if item.parts[0] == "atom" else ("_", *item.operands)
        target, address, *values = operands
        kind = next(p for p in item.parts[1:] if p in (*_ATOMICS, "cas"))
        pointer = self._pointer(item, address, BYTES[type_[1:]], "atomic")
        if kind == "cas":
            wanted, new = (self._read(v, type_) for v in values)
            change = f"old == ({wanted}) ? ({new}) : old"
        else:
            change = f"({_ATOMICS[kind]})"
        value = self._read(values[-1], type_)
        kept = "" if target == "_" else self._write(target, type_, "old")
        return (
            f"{{ void *at = {pointer}; const {cpp} old = ptx::get<{cpp}>(at, 0); "
            f"const {cpp} value = {value}; (void)value; ptx::put<{cpp}>(at, 0, ({cpp})({change})); "
            f"{kept} }}"
        )

    def _copy(self, item: Instruction) -> str | None:
        """cp.async and what waits for it. A fourth operand says how many bytes are read."""
        parts, operands = item.parts, item.operands
        if "commit_group" in parts:
            return "emulated::cp_async_commit();"
        if "wait_group" in parts:
            return f"ptx::wait_for_copies({operands[0]}, {item.line});"
        if "wait_all" in parts:
            return f"emulated::cp_async_commit(); ptx::wait_for_copies(0, {item.line});"
        if parts[1] != "async" or parts[2] not in ("ca", "cg"):
            return None
        target, source, bytes_, *rest = operands
        read = self._read(rest[0], "u32") if rest else bytes_
        return (
            f"ptx::copy({self._address(target)}, {self._address(source)}, {bytes_}, {read}, "
            f"{item.line});"
        )

    def _barrier(self, item: Instruction) -> str | None:
        parts, operands = item.parts, item.operands
        if parts[1] == "warp":
            return f"emulated::warp_barrier({self._read(operands[0], 'u32')}, {item.line});"
        if "cta" in parts:
            parts = tuple(p for p in parts if p != "cta")
        numbers = operands[1:] if parts[1] == "red" else operands
        if numbers[0] != "0" or (parts[1] == "sync" and len(numbers) > 1):
            return None  # named barriers
        call = 'emulated::block_barrier("bar.{0}", emulated::Vote::{1}, {2}, {3})'
        if parts[1] == "sync":
            return call.format("sync", "none", 0, item.line) + ";"
        if parts[1] != "red":
            return None
        vote = {"or": "any", "and": "all", "popc": "count"}[parts[2]]
        value = call.format("red", vote, self._read(operands[-1], "pred"), item.line)
        return self._write(operands[0], "u32" if vote == "count" else "pred", value)

    def _of_warp(self, item: Instruction) -> str | None:
        parts, operands, line = item.parts, item.operands, item.line
        if parts[0] == "activemask":
            return self._write(operands[0], "u32", "emulated::live_lanes()")
        if parts[0] == "shfl":
            target, _, valid = (x.strip() for x in operands[0].partition("|"))
            value, lane, clamp, mask = (self._read(x, "u32") for x in operands[1:])
            passed = f"ptx::Lane::{parts[2]}, {value}, {lane}, {clamp}, {mask}, {line}, in_range"
            kept = self._write(target, "u32", "got")
            kept += self._write(valid, "pred", "in_range") if valid else ""
            return f"{{ bool in_range; uint32_t got = ptx::shuffle({passed}); {kept} }}"
        if parts[0] == "vote":
            mask = self._read(operands[2], "u32")
            votes = (
                f'emulated::ballot("vote.sync", {mask}, {self._read(operands[1], "pred")}, {line})'
            )
            kinds = {"ballot": "{0}", "any": "{0} != 0", "all": "{0} == {1}"}
            type_ = "u32" if parts[2] == "ballot" else "pred"
            return self._write(operands[0], type_, kinds[parts[2]].format(votes, mask))
        shape = next((m for p in parts if (m := _MMA.fullmatch(p))), None)
        kinds = _MMA_TYPES.get(parts[-4:])
        if shape is None or kinds is None or parts[4:6] != ("row", "col"):
            return None
        of_sum, of_factor = kinds
        d, a, b, c = (self._vector(x) for x in operands)
        values = [
            f"double {name}[] = {{{', '.join(self._read(x, type_) for x in registers)}}};"
            for name, registers, type_ in (
                ("a", a, of_factor),
                ("b", b, of_factor),
                ("d", c, of_sum),
            )
        ]
        kept = " ".join(self._write(x, of_sum, f"{TYPES[of_sum]}(d[{i}])") for i, x in enumerate(d))
        called = f"ptx::product({shape[1]}, {shape[2]}, d, a, b, {line});"
        return f"{{ {' '.join(values)} {called} {kept} }}"

    def _call(self, item: Instruction) -> str | None:
        names = [n for n in item.operands if not n.startswith("(")]
        called = [f for f in self.functions if f.name == names[0]]
        if not called:
            return None
        passed = [x for o in item.operands if o.startswith("(") for x in o.strip("()").split(",")]
        arguments = ", ".join(_register(x.strip()) for x in passed if x.strip())
        return f"{_cpp_name(called[0].name)}({arguments});"

    def _generic(self, item: Instruction) -> str:
        """Between addresses of a state space and generic ones; only shared ones differ."""
        value = self._read(item.operands[1], "u64")
        if "shared" in item.parts:
            call = "to_shared" if "to" in item.parts else "from_shared"
            value = f"ptx::{call}({value})"
        return self._write(item.operands[0], "u64", value)
