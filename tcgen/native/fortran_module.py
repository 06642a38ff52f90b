"""The Fortran 2008 interface of a library: a module over the C interface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._version import __version__
from ..records.tensors import Role, Tensor
from ..resources import part
from .sources import NativeProgram

_FILE = "native/module.f90"
_F_TYPES = {
    "float64": "real(c_double)",
    "float32": "real(c_float)",
    "complex128": "complex(c_double_complex)",
}
_WIDEST = 120  # columns; a line of Fortran 2008 has at most 132


def fortran_module(name: str, programs: Sequence[NativeProgram], prefix: str, build: int) -> str:
    """The source ``NAME.f90``."""
    lines = part(
        _FILE,
        "module",
        name=name,
        version=__version__,
        prefix=prefix,
        build=build,
        types=[line for p in programs for line in _types(p)],
        interfaces=[line for p in programs for line in _interfaces(p)],
        procedures=[line for p in programs for line in _procedures(p)],
    )
    return "\n".join([*(piece for line in lines for piece in _wrapped(line)), ""])


def _wrapped(line: str) -> Iterable[str]:
    """A line in pieces that end after a comma."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    if line.lstrip().startswith("!"):
        yield line[:_WIDEST]
        return
    while len(line) > _WIDEST:
        cut = line.rfind(", ", 0, _WIDEST) + 1
        yield line[:cut] + " &"
        line = indent + line[cut + 1 :]
    yield line


def _types(program: NativeProgram) -> list[str]:
    def pointer(tensor: Tensor) -> str:
        kind = "type(tcgen_source)" if tensor.role is Role.GENERATED else "type(c_ptr)"
        return f"{kind} :: {program.words[tensor.name]}"

    public = ["", "_workspace_bytes", "_parts", "_plan_bytes", "_plan"]
    public += ["_state_bytes", "_bind", "_call"] if program.binds else []
    return part(
        _FILE,
        "types",
        name=program.name,
        public=", ".join(f"{program.name}{suffix}" for suffix in public),
        dtype=program.manifest.dtype,
        equations=[f"!   {line}" for line in program.equations],
        extents=", ".join(program.base_words.values()) or "none",
        inputs=[pointer(t) for t in program.inputs] or ["integer(c_signed_char) :: none"],
        outputs=[pointer(t) for t in program.outputs],
    )


def _interfaces(program: NativeProgram) -> list[str]:
    name, symbol = program.name, program.symbol
    lines = part(_FILE, "sizes", name=name, symbol=symbol)
    lines += part(_FILE, "run_c", name=name, symbol=symbol)
    if program.binds:
        lines += part(_FILE, "bound_c", name=name, symbol=symbol)
    return lines


def _procedures(program: NativeProgram) -> list[str]:
    lines = _procedure(program, "")
    if program.binds:
        lines += _procedure(program, "_bind") + _procedure(program, "_call")
    return lines


def _procedure(program: NativeProgram, suffix: str) -> list[str]:
    words, outputs = program.words, () if suffix == "_bind" else program.outputs
    tensors = sorted((*program.inputs, *outputs), key=lambda t: t.default is not None)
    state = ["state"] if suffix else []
    arguments = ["n", *(words[t.name] for t in tensors), *state]
    declared, passed = [], []
    for t in tensors:
        word, struct = words[t.name], "in" if t.is_input else "out"
        declared.append(_declaration(program, t))
        if t.role is Role.GENERATED:
            passed.append(f"{struct}%{word} = {word}")
        elif t.default is not None:
            passed += [
                f"{struct}%{word} = c_null_ptr",
                f"if (present({word})) {struct}%{word} = c_loc({word})",
            ]
        else:
            passed.append(f"{struct}%{word} = c_loc({word})")
    given = ["n", "in", *(["out"] if suffix != "_bind" else [])]
    if suffix:
        intent = "in" if suffix == "_call" else "inout"
        declared.append(f"integer(c_int8_t), intent({intent}), target, contiguous :: state(:)")
        given += ["c_loc(state)", "size(state, kind=c_size_t)"]
    return part(
        _FILE,
        "procedure",
        name=program.name,
        suffix=suffix,
        arguments=", ".join([*arguments, "workspace", "status", "options", "message"]),
        declared=declared,
        out=[f"type({program.name}_outputs) :: out"] if suffix != "_bind" else [],
        passed=passed,
        given=", ".join(given),
    )


def _declaration(program: NativeProgram, tensor: Tensor) -> str:
    word = program.words[tensor.name]
    if tensor.role is Role.GENERATED:
        return f"type(tcgen_source), intent(in) :: {word}"
    shape = ", ".join(reversed(program.shape(tensor, lambda base: f"n%{base}")))
    intent = "in" if tensor.is_input else "inout" if tensor.accumulate else "out"
    optional = ", optional" if tensor.default is not None else ""
    kind = _F_TYPES[program.dtype(tensor)]
    return f"{kind}, intent({intent}), target{optional} :: {word}{f'({shape})' if shape else ''}"
