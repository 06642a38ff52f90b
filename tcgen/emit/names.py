"""Legal, unique and stable identifiers of generated code.

Names of the user's equations stay as they are if the language allows. Generated names start with
``tc_`` or ``N_``; a user's name with such a prefix is changed.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

_C_WORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while asm typeof
bool complex imaginary true false I NULL INFINITY NAN CMPLX noreturn alignas alignof assert offsetof
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t
main memset memcpy errno unix linux
sqrt exp log abs fabs cabs sin cos tanh conj creal cimag real imag
sqrtf expf logf fabsf sinf cosf tanhf csqrt cexp clog csin ccos ctanh
tan sinh cosh asin acos atan atan2 pow floor fmod copysign
tanf sinhf coshf asinf acosf atanf atan2f powf floorf fmodf copysignf
"""
_CUDA_WORDS = """
and and_eq bitand bitor bool catch char16_t char32_t char8_t class co_await co_return co_yield
compl concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export
false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public reinterpret_cast requires static_assert static_cast template this thread_local throw true
try typeid typename using virtual wchar_t xor xor_eq final override
threadIdx blockIdx blockDim gridDim warpSize half dim3 int2 int3 int4 float2 float3 float4 double2
double3 double4 min max fma rsqrt hypot erf j0 j1 jn y0 y1 yn norm signbit
isnan isinf isfinite ceil clock exit free malloc printf
"""
C_RESERVED = frozenset(_C_WORDS.split())
CUDA_RESERVED = C_RESERVED | frozenset(_CUDA_WORDS.split())
PYTHON_RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np"))


def legal(name: str, reserved: frozenset[str]) -> str:
    """An identifier as near to ``name`` as the language allows.

    Example:
        >>> legal("t2", C_RESERVED), legal("I", C_RESERVED), legal("tc_x", C_RESERVED)
        ('t2', 'I_', 'x_tc_x')
    """
    word = re.sub(r"[^A-Za-z0-9_]", "_", name) or "x"
    if word[0].isdigit() or word.startswith(("_", "tc_", "N_")):
        word = f"x_{word}"
    return f"{word}_" if word in reserved else word


def unique(names: Iterable[str], reserved: frozenset[str], taken: Iterable[str] = ()) -> list[str]:
    """Identifiers for names in their order; of two equal names the later one is changed.

    Example:
        >>> unique(["e", "I", "e"], C_RESERVED)
        ['e', 'I_', 'e_2']
    """
    used = set(taken)
    result = []
    for name in names:
        word = base = legal(name, reserved)
        number = 2
        while word in used:
            word = f"{base}_{number}"
            number += 1
        used.add(word)
        result.append(word)
    return result
