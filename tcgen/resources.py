"""Templates: plain text with ``$name`` places, filled exactly.

Templates lie in the package of a wheel, and beside it in an editable install.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template

from .errors import TcgenError, UnavailableError, VerifyError


@cache
def template_text(name: str) -> str:
    """Text of a template, named by its path in the templates folder: ``c/gemm.c``.

    Raises:
        UnavailableError: it is in neither place; both are named.
    """
    package = Path(__file__).parent
    places = (package / "templates" / name, package.parent / "templates" / name)
    for path in places:
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise UnavailableError(
        f"template {name} is neither at {places[0]} nor at {places[1]}: install tcgen again"
    )


def fill(*names: str, **values: str) -> str:
    """A template with every place filled; of several templates one text, in this order.

    Raises:
        VerifyError: a place without a value, or a value without a place.
    """
    template = Template("\n".join(template_text(name) for name in names))
    places = sorted(template.get_identifiers())
    if places != sorted(values):
        raise VerifyError(
            f"template {', '.join(names)} has the places {', '.join(places) or '(none)'}, "
            f"but the values are {', '.join(sorted(values)) or '(none)'}"
        )
    return template.substitute(values)


def spec_path(name: str) -> Path:
    """Path of a spec that ships with tcgen.

    Raises:
        TcgenError: there is no such spec; the message lists those that ship.

    Example:
        >>> spec_path("mp2_closed_shell").name
        'mp2_closed_shell.spec'
    """
    paths = shipped_specs()
    stem = str(name).removesuffix(".spec")
    if stem not in paths:
        raise TcgenError(f"no spec named {name!r:.80}; there are: {', '.join(paths)}")
    return paths[stem]


def shipped_specs() -> dict[str, Path]:
    """The specs that ship with tcgen, by name, in alphabetical order.

    Raises:
        TcgenError: their folder is missing.
    """
    here = Path(__file__).parent
    for folder in (here / "specs", here.parent / "specs"):
        if folder.is_dir():
            return {p.stem: p for p in sorted(folder.glob("*.spec"))}
    raise TcgenError(f"the specs folder is missing from this installation of tcgen ({here})")
