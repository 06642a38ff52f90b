"""The Python side of an artifact: a typed function, and the runtime that travels with it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..artifact.manifest import Manifest
from ..errors import ArgumentError
from ..options import KEYWORDS
from ..records.tensors import Role, Tensor, element_type
from ..resources import fill
from .scope import PYTHON_RESERVED, unique

_NEEDS = {
    "cpu": " and a C compiler (once for each machine); SciPy's BLAS is used if it is there",
    "cuda": ", CuPy, and a GPU with its driver",
    "numpy": "; SciPy's BLAS is used if it is there",
}
_TRAVELS = (
    "cache_files.py",
    "dtypes.py",
    "environment.py",
    "errors.py",
    "hardware.py",
    "options.py",
    "simplices.py",
)


def package_text(manifest: Manifest) -> str:
    """``__init__.py``: a function of the program's name with a keyword for each input.

    Raises:
        ArgumentError: an input has the name of the keyword ``out`` or ``part``.
    """
    inputs = [t for t in manifest.tensors if t.is_input]
    for name in (t.name for t in inputs if t.name in KEYWORDS):
        raise ArgumentError(
            f"an input named {name} cannot be passed, since {name}= {KEYWORDS[name]}: "
            f"rename the input"
        )
    # Builtins may be parameters; keywords of the language may not.
    words = unique((t.name for t in inputs), PYTHON_RESERVED, taken=(*KEYWORDS, "program"))
    name = unique((manifest.name,), PYTHON_RESERVED, taken=("program", "Program", "Any", "npt"))[0]
    pairs = list(zip(inputs, words, strict=True))
    pairs.sort(key=lambda p: p[0].default is not None)
    parameters = [
        "*",
        *(_parameter(t, w, manifest.dtype) for t, w in pairs),
        "out: dict[str, Any] | None = None",
        "part: tuple[int, int] | None = None",
    ]
    passed = [f'**{{"{t.name}": {w}}}' if t.name != w else f"{t.name}={w}" for t, w in pairs]
    needs = _NEEDS[manifest.target]
    return fill(
        "artifact/package.py.txt",
        title=f"{manifest.name}: a compiled tensor program ({manifest.dtype}).",
        version=manifest.tcgen_version,
        needs=needs,
        arguments="\n".join(f"    {describe(t, manifest.dtype)}" for t in inputs) or "    none",
        results="\n".join(f"    {describe(t, manifest.dtype)}" for t in manifest.outputs),
        name=name,
        parameters="\n    " + ",\n    ".join(parameters) + ",\n",
        passed="".join(f", {p}" for p in passed),
        public=", ".join(f'"{n}"' for n in sorted({name, "program"})),
    )


def _parameter(tensor: Tensor, word: str, dtype: str) -> str:
    if tensor.default is None:
        kind = "npt.ArrayLike" if tensor.role is Role.INPUT else "Any"
        return f"{word}: {kind}"
    number = "complex" if element_type(tensor, dtype) == "complex128" else "float"
    return f"{word}: {number} = {float(tensor.default)!r}"


def describe(tensor: Tensor, dtype: str) -> str:
    """One line, such as ``t2(o, o, v, v) float64, constant``; ``v >= v`` is a packed triangle."""
    axes = []
    for axis, pair in tensor.stored():
        space = tensor.spaces[axis].name
        if pair is None:
            axes.append(space)
        else:
            axes.append((" > " if pair.antisymmetric else " >= ").join([space] * pair.count))
    notes = [element_type(tensor, dtype)]
    if tensor.role is Role.GENERATED:
        notes.append("f(out, ranges) or an array that slices, read tile by tile")
    if not tensor.volatile and tensor.is_input:
        notes.append("constant")
    if tensor.default is not None:
        notes.append(f"default {tensor.default}")
    if tensor.accumulate:
        notes.append("added to the array in out")
    return f"{tensor.name}({', '.join(axes)}) {', '.join(notes)}"


@cache
def runtime_files() -> tuple[tuple[str, str], ...]:
    """The runtime, file by file, as it runs inside an artifact."""
    package = Path(__file__).parents[1]
    paths = [package / name for name in _TRAVELS]
    for folder in ("artifact", "records", "runtime", "thresholds"):
        paths += sorted((package / folder).rglob("*.py"))
    files = [
        ("_tcgen/__init__.py", '"""The part of tcgen that runs programs, copied verbatim."""\n')
    ]
    for path in paths:
        name = path.relative_to(package).as_posix()
        files.append((f"_tcgen/{name}", path.read_text(encoding="utf-8")))
    return tuple(files)
