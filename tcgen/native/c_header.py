"""The C interface of a library: one header with the types and functions of all programs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from .._version import __version__
from ..records.tensors import Role, Tensor
from ..resources import part, template_text
from .sources import NativeProgram

_FILE = "native/header.h"
_WIDEST = 108  # columns of a declaration without its attribute
_C_TYPES = {"float64": "double", "float32": "float", "complex128": "tcgen_complex"}


def prototypes(program: NativeProgram) -> dict[str, tuple[str, str]]:
    """For each function of a program: its declaration, and the statement that is its body."""
    x, table = program.symbol, f"&{program.name}_program"
    extents, inputs, outputs = (f"const {x}_{kind} *" for kind in ("extents", "inputs", "outputs"))
    memory = "void *workspace, size_t workspace_bytes, const tcgen_options *options"
    rest = "workspace, workspace_bytes, options"
    functions = {
        f"{x}_workspace_bytes": (
            f"int64_t {x}_workspace_bytes({extents}n, int threads)",
            f"return tcr_needed({table}, n, threads, 3);",
        ),
        x: (
            f"int {x}({extents}n, {inputs}in, {outputs}out, {memory})",
            f"return tcr_run({table}, 3, n, in, out, NULL, 0, {rest});",
        ),
        f"{x}_parts": (
            f"int64_t {x}_parts({extents}n)",
            f"return tcr_count_parts({table}, n);",
        ),
        f"{x}_plan_bytes": (
            f"size_t {x}_plan_bytes(void)",
            f"return tcr_layout_bytes({table});",
        ),
        f"{x}_plan": (
            f"int {x}_plan({extents}n, int threads, void *plan, size_t plan_bytes)",
            f"return tcr_make_plan({table}, n, threads, plan, plan_bytes);",
        ),
    }
    if program.binds:
        functions |= {
            f"{x}_state_bytes": (
                f"int64_t {x}_state_bytes({extents}n)",
                f"return tcr_needed({table}, n, 1, 0);",
            ),
            f"{x}_bind": (
                f"int {x}_bind({extents}n, {inputs}in, void *state, size_t state_bytes, {memory})",
                f"return tcr_run({table}, 1, n, in, NULL, state, state_bytes, {rest});",
            ),
            f"{x}_call": (
                f"int {x}_call({extents}n, {inputs}in, {outputs}out, const void *state, "
                f"size_t state_bytes, {memory})",
                f"return tcr_run({table}, 2, n, in, out, (void *)state, state_bytes, {rest});",
            ),
        }
    return functions


def header(name: str, programs: Sequence[NativeProgram], prefix: str) -> str:
    """The header ``NAME.h``."""
    has_complex = any(p.dtype(t) == "complex128" for p in programs for t in p.manifest.tensors)
    lines = part(
        _FILE,
        "library",
        name=name,
        guard=f"{prefix.upper()}LIBRARY_H",
        version=__version__,
        types=template_text("c/runtime/tcgen.h").splitlines(),
        complex=part(_FILE, "complex") if has_complex else [],
        prefix=prefix,
        programs=[line for program in programs for line in _program(program)],
    )
    return "\n".join([*lines, ""])


def _program(program: NativeProgram) -> list[str]:
    heads = {name: _wrapped(head) for name, (head, _) in prototypes(program).items()}
    x = program.symbol
    binding = []
    if program.binds:
        names = [heads[f"{x}_{kind}"] for kind in ("state_bytes", "bind", "call")]
        binding = part(_FILE, "binding", name=x, state_bytes=names[0], bind=names[1], call=names[2])
    return part(
        _FILE,
        "program",
        name=program.name,
        symbol=x,
        dtype=program.manifest.dtype,
        hash=program.plan_hash,
        equations=[f" *     {line}".replace("*/", "* /").rstrip() for line in program.equations],
        extents=", ".join(program.base_words.values()) or "none",
        inputs=[_field(program, t) for t in program.inputs] or ["char none;"],
        outputs=[_field(program, t) for t in program.outputs] or ["char none;"],
        workspace_bytes=heads[f"{x}_workspace_bytes"],
        run=heads[x],
        parts=heads[f"{x}_parts"],
        plan_bytes=heads[f"{x}_plan_bytes"],
        plan=heads[f"{x}_plan"],
        binding=binding,
    )


def _wrapped(head: str) -> str:
    return "\n".join(textwrap.wrap(head, _WIDEST, subsequent_indent="    "))


def _field(program: NativeProgram, tensor: Tensor) -> str:
    word = program.words[tensor.name]
    shape = "".join(f"[{n}]" for n in program.shape(tensor)) or "a number"
    notes = []
    if tensor.role is Role.INPUT and not tensor.volatile:
        notes.append("constant")
    if tensor.default is not None:
        notes.append(f"null stands for {tensor.default}")
    if tensor.accumulate:
        notes.append("added to")
    comment = "; ".join([shape, *notes])
    if tensor.role is Role.GENERATED:
        return f"tcgen_source {word}; /* tiles of {comment} */"
    constant = "const " if tensor.is_input else ""
    return f"{constant}{_C_TYPES[program.dtype(tensor)]} *{word}; /* {comment} */"
