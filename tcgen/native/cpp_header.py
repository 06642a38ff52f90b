"""The C++20 interface of a library: a class for each program, over the C interface."""

from __future__ import annotations

from collections.abc import Sequence

from .._version import __version__
from ..records.tensors import Role, Tensor
from ..resources import part
from .sources import NativeProgram

_FILE = "native/header.hpp"
_CPP_TYPES = {"float64": "double", "float32": "float", "complex128": "std::complex<double>"}


def cpp_header(name: str, programs: Sequence[NativeProgram]) -> str:
    """The header ``NAME.hpp``."""
    classes = [line for program in programs for line in _class(program)]
    shared = part(_FILE, "shared")
    lines = part(_FILE, "library", name=name, version=__version__, shared=shared, classes=classes)
    return "\n".join([*lines, ""])


def _class(program: NativeProgram) -> list[str]:
    whole = [t for t in (*program.inputs, *program.outputs) if t.role is not Role.GENERATED]
    passed = [
        f"in.{program.words[t.name]}.{'c()' if t.role is Role.GENERATED else 'data()'}"
        for t in program.inputs
    ]
    rethrow = [
        f"in.{program.words[t.name]}.rethrow();" for t in program.inputs if t.role is Role.GENERATED
    ]
    symbol, given = program.symbol, ", ".join(passed)
    return part(
        _FILE,
        "program",
        name=program.name,
        symbol=symbol,
        message=f"{program.prefix}message",
        inputs=[_field(program, t) for t in program.inputs],
        outputs=[_field(program, t) for t in program.outputs],
        checks_in=[_check(program, t) for t in whole if t.is_input],
        checks_out=[_check(program, t) for t in whole if not t.is_input],
        given=given,
        made=", ".join(f"out.{program.words[t.name]}.data()" for t in program.outputs),
        run=part(_FILE, "run_bound" if program.binds else "run", symbol=symbol),
        rethrow=rethrow,
        bind=part(_FILE, "bind", symbol=symbol, given=given, rethrow=rethrow)
        if program.binds
        else [],
    )


def _field(program: NativeProgram, tensor: Tensor) -> str:
    word = program.words[tensor.name]
    if tensor.role is Role.GENERATED:
        return f"tcgen::source {word};"
    kind = _CPP_TYPES[program.dtype(tensor)]
    return f"std::span<{'const ' if tensor.is_input else ''}{kind}> {word};"


def _check(program: NativeProgram, tensor: Tensor) -> str:
    word = program.words[tensor.name]
    size = "*".join(f"({n})" for n in program.shape(tensor, lambda base: f"n.{base}")) or "1"
    owner, optional = "in" if tensor.is_input else "out", str(tensor.default is not None).lower()
    return f'tcgen::check("{program.name}", "{word}", {owner}.{word}.size(), {size}, {optional});'
