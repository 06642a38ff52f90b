"""PTX instructions that compute: what each writes, as an expression of C++.

Operands come as expressions of the instruction's type. Memory, control flow and the lanes of a warp
are in ``translate.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

TYPES = {
    "pred": "bool",
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "f32": "float",
    "f64": "double",
}
_COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_ROUNDINGS = {"i": "rint", "z": "trunc", "m": "floor", "p": "ceil"}
_FLOAT_CALLS = {
    "sqrt": "__builtin_sqrt{f}({0})",
    "rsqrt": "1/__builtin_sqrt{f}({0})",
    "rcp": "1/({0})",
    "abs": "__builtin_fabs{f}({0})",
    "neg": "-({0})",
    "ex2": "__builtin_exp2{f}({0})",
    "lg2": "__builtin_log2{f}({0})",
    "sin": "__builtin_sin{f}({0})",
    "cos": "__builtin_cos{f}({0})",
    "tanh": "__builtin_tanh{f}({0})",
    "min": "__builtin_fmin{f}({0}, {1})",
    "max": "__builtin_fmax{f}({0}, {1})",
    "fma": "__builtin_fma{f}({0}, {1}, {2})",
    "mad": "__builtin_fma{f}({0}, {1}, {2})",
    "copysign": "__builtin_copysign{f}({1}, {0})",
}
_BIT_CALLS = {
    "popc": "__builtin_popcountll({0})",
    "clz": "({0} ? __builtin_clzll({0}) - (64 - {bits}) : {bits})",
    "brev": "ptx::reversed({0}, {bits})",
    "bfi": "ptx::bit_field_insert<{u}>({0}, {1}, {2}, {3})",
    "bfe": "ptx::bit_field_extract<{t}>({0}, {1}, {2})",
    "prmt": "ptx::permuted({0}, {1}, {2})",
    "cnot": "{0} == 0",
}

Read = Callable[[int, str], str]


def result(parts: Sequence[str], read: Read) -> tuple[str, str] | None:
    """Type and expression of the result; None for an instruction that is none of these.

    Args:
        parts: of the name of the instruction.
        read: the expression of an operand as a value of a type.
    """
    name, type_ = parts[0], parts[-1]
    if type_ not in TYPES:
        return None
    if name in ("mov", "cvta"):
        return type_, read(1, type_)
    if name == "cvt":
        return _conversion(parts, read)
    if name == "setp":
        return "pred", _comparison(parts, read)
    if name == "selp":
        return type_, f"{read(3, 'pred')} ? {read(1, type_)} : {read(2, type_)}"
    if name == "slct":
        chosen = f"{read(3, type_)} >= 0 ? {read(1, parts[-2])} : {read(2, parts[-2])}"
        return parts[-2], chosen
    if name == "testp":
        tests = {"infinite": "isinf", "finite": "isfinite", "notanumber": "isnan"}
        return "pred", f"__builtin_{tests[parts[1]]}({read(1, type_)})"
    if type_ == "pred":
        return "pred", _logic(name, read)
    if type_[0] == "f":
        found = _float(parts, read)
        return (type_, found) if found else None
    return _integer(parts, read)


def _logic(name: str, read: Read) -> str:
    if name == "not":
        return f"!{read(1, 'pred')}"
    sign = {"and": "&&", "or": "||", "xor": "!="}[name]
    return f"{read(1, 'pred')} {sign} {read(2, 'pred')}"


def _float(parts: Sequence[str], read: Read) -> str | None:
    """Subnormal numbers of 32 bits count as zero where the instruction says ``ftz``."""
    name, type_ = parts[0], parts[-1]
    flush = "ptx::flushed" if "ftz" in parts else ""

    def operand(number: int) -> str:
        return f"{flush}({read(number, type_)})"

    if name in ("add", "sub", "mul", "div"):
        value = f"{operand(1)} {_SIGNS[name]} {operand(2)}"
    elif name in _FLOAT_CALLS:
        pattern = _FLOAT_CALLS[name]
        count = sum(f"{{{n}}}" in pattern for n in range(3))
        suffix = "f" if type_ == "f32" else ""
        value = pattern.format(*(operand(n + 1) for n in range(count)), f=suffix)
    else:
        return None
    return f"{flush}({value})"


def _integer(parts: Sequence[str], read: Read) -> tuple[str, str] | None:
    name, type_ = parts[0], parts[-1]
    bits = int(type_[1:])
    unsigned = f"u{bits}"
    if "cc" in parts or name in ("addc", "subc", "madc"):
        return None
    if name in ("mul", "mad", "mul24", "mad24"):
        return _product(parts, read)
    if name in ("add", "sub", "and", "or", "xor"):
        return unsigned, f"{read(1, unsigned)} {_SIGNS[name]} {read(2, unsigned)}"
    if name in ("div", "rem"):
        return (
            type_,
            f"ptx::{'quotient' if name == 'div' else 'rest'}({read(1, type_)}, {read(2, type_)})",
        )
    if name in ("min", "max"):
        sign = "<" if name == "min" else ">"
        a, b = read(1, type_), read(2, type_)
        return type_, f"{a} {sign} {b} ? {a} : {b}"
    if name == "neg":
        return unsigned, f"0 - {read(1, unsigned)}"
    if name == "abs":
        return unsigned, f"{read(1, type_)} < 0 ? 0 - {read(1, unsigned)} : {read(1, unsigned)}"
    if name == "not":
        return unsigned, f"~{read(1, unsigned)}"
    if name in ("shl", "shr"):
        call = "left" if name == "shl" else "right"
        return type_, f"ptx::{call}<{TYPES[type_]}>({read(1, type_)}, {read(2, 'u32')})"
    if name == "shf":
        mode = "true" if "wrap" in parts else "false"
        call = "funnel_left" if parts[1] == "l" else "funnel_right"
        values = ", ".join(read(n, "u32") for n in (1, 2, 3))
        return "u32", f"ptx::{call}({values}, {mode})"
    if name == "lop3":
        values = ", ".join(read(n, "u32") for n in (1, 2, 3, 4))
        return "u32", f"ptx::logic_of_three({values})"
    if name in _BIT_CALLS:
        wide = {"bfi": (unsigned, unsigned, "u32", "u32"), "bfe": (type_, "u32", "u32")}
        types = wide.get(name, (unsigned,) * (3 if name == "prmt" else 1))
        values = [read(n + 1, t) for n, t in enumerate(types)]
        made = _BIT_CALLS[name].format(*values, bits=bits, t=TYPES[type_], u=TYPES[unsigned])
        return ("u32" if name in ("popc", "clz") else type_), made
    return None


def _product(parts: Sequence[str], read: Read) -> tuple[str, str]:
    """Of integers: the low half, the high half or all of it, and a sum with it."""
    name, type_ = parts[0], parts[-1]
    bits, added = int(type_[1:]), name.startswith("mad")
    half = next((p for p in parts[1:-1] if p in ("lo", "hi", "wide")), "lo")
    wide = f"{type_[0]}{2 * bits}" if bits < 64 else ""
    long = TYPES[wide] if wide else ("__int128" if type_[0] == "s" else "unsigned __int128")
    whole = f"({long}){read(1, type_)}*({long}){read(2, type_)}"
    if half == "wide":
        return wide, f"{whole} + {read(3, wide)}" if added else whole
    unsigned = f"u{bits}"
    kept = f"({TYPES[unsigned]})(({whole}) >> {bits})"
    if half == "lo":
        kept = f"(uint64_t){read(1, unsigned)}*(uint64_t){read(2, unsigned)}"
    return unsigned, f"{kept} + {read(3, unsigned)}" if added else kept


def _conversion(parts: Sequence[str], read: Read) -> tuple[str, str]:
    target, source = parts[-2], parts[-1]
    value = read(1, source)
    if target == "tf32":
        return "b32", f"ptx::tf32({value})"
    if source[0] == "f" and "ftz" in parts:
        value = f"ptx::flushed({value})"
    rounding = next((p for p in parts if p in ("rni", "rzi", "rmi", "rpi")), None)
    if source[0] == "f" and rounding:
        value = f"__builtin_{_ROUNDINGS[rounding[1] if rounding[1] != 'n' else 'i']}({value})"
    if source[0] == "f" and target[0] != "f":
        return target, f"ptx::saturated<{TYPES[target]}>({value})"
    if "sat" in parts and target[0] == "f":
        value = f"__builtin_fmin(1, __builtin_fmax(0, {value}))"
    return target, f"({TYPES[target]})({value})"


def _comparison(parts: Sequence[str], read: Read) -> str:
    type_, test = parts[-1], parts[1]
    a, b = read(1, type_), read(2, type_)
    if type_[0] == "f":
        either = f"(__builtin_isnan({a}) || __builtin_isnan({b}))"
        if test in ("num", "nan"):
            value = either if test == "nan" else f"!{either}"
        elif len(test) == 3:
            value = f"({either} || {a} {_COMPARISONS[test[:2]]} {b})"
        else:
            value = f"(!{either} && {a} {_COMPARISONS[test]} {b})"
    else:
        value = f"({a} {_COMPARISONS[test]} {b})"
    if parts[2] in ("and", "or", "xor"):
        sign = {"and": "&&", "or": "||", "xor": "!="}[parts[2]]
        return f"{value} {sign} {read(3, 'pred')}"
    return value


def with_carry(parts: Sequence[str], read: Read) -> tuple[str, str] | None:
    """Type and sum of instructions that take or leave a carry; None for others.

    The sum has 128 bits. The bit behind those of the type is the carry, or the borrow.
    """
    name, type_ = parts[0], parts[-1]
    if type_ not in TYPES or not ("cc" in parts or name in ("addc", "subc", "madc")):
        return None
    unsigned = f"u{type_[1:]}"
    taken = "carry" if name in ("addc", "subc", "madc") else "0"
    a, b = (f"(unsigned __int128){read(n, unsigned)}" for n in (1, 2))
    if name in ("add", "addc"):
        return unsigned, f"{a} + {b} + {taken}"
    if name in ("sub", "subc"):
        return unsigned, f"{a} - {b} - {taken}"
    _, product = _product(("mul", *parts[1:]), read)
    whole = f"(unsigned __int128)({TYPES[unsigned]})({product})"
    return unsigned, f"{whole} + {read(3, unsigned)} + {taken}"
