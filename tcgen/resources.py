"""Templates: plain text with ``$name`` places, filled exactly; and the shipped specs.

Templates lie in the package of a wheel, and beside it in an editable install. A file is one
template, or several *parts*, each under a line ``//: name``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from string import Template

from .errors import TcgenError, UnavailableError, VerifyError


@cache
def template_text(name: str) -> str:
    """Text of a template, named by its path in the templates folder: ``c/gemm.c``.

    Raises UnavailableError, which names both places, if it is in neither.
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

    Raises VerifyError for a place without a value, or a value without a place.
    """
    template = Template("\n".join(template_text(name) for name in names))
    places = sorted(template.get_identifiers())
    if places != sorted(values):
        raise VerifyError(
            f"template {', '.join(names)} has the places {', '.join(places) or '(none)'}, "
            f"but the values are {', '.join(sorted(values)) or '(none)'}"
        )
    return template.substitute(values)


# A place on a line of its own, which takes any number of lines; or a place inside a line.
_PLACE = re.compile(
    r"^(?P<indent> *)\$(?P<lines>\w+)\n|\$(?:(?P<name>\w+)|\{(?P<braced>\w+)\})", re.M
)


def part(file: str, name: str, /, *owners: object, **values: object) -> list[str]:
    """The lines of one part of the template ``file``, a path in the templates folder.

    A place on a line of its own also takes a list of lines, which get its indentation; an empty
    list leaves nothing. A place that has no value takes the attribute of its name of one of the
    ``owners``.

    Raises VerifyError if there is no such part, for a place without a value, or a value without a
    place.
    """
    text, places = _parts(file).get(name, ("", frozenset()))
    for place in sorted(places - values.keys()):
        owner = next((o for o in owners if hasattr(o, place)), None)
        if owner is not None:
            values[place] = getattr(owner, place)
    if not text or places != values.keys():
        raise VerifyError(
            f"part {name} of template {file} has the places {', '.join(sorted(places))}, "
            f"but the values are {', '.join(sorted(values))}"
        )

    def filled(place: re.Match[str]) -> str:
        value = values[place[place.lastgroup or ""]]
        if place["lines"] is None:
            return str(value).lower() if isinstance(value, bool) else str(value)
        lines = value if isinstance(value, list) else [value]
        return "".join([f"{place['indent']}{line}\n" if line else "\n" for line in lines])

    return _PLACE.sub(filled, text).splitlines()


@cache
def _parts(file: str) -> Mapping[str, tuple[str, frozenset[str]]]:
    """The text and the places of each part of a template, by name."""
    _, *parts = re.split(r"^//: (\w+)\n", template_text(file), flags=re.M)
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        places = frozenset(p for place in _PLACE.finditer(text) for p in place.groups()[1:] if p)
        found[name] = (text.rstrip("\n") + "\n", places)
    return found


def spec_path(name: str) -> Path:
    """Path of a spec that ships with tcgen; a method without its spin is the closed-shell one.

    Raises:
        TcgenError: there is no such spec; the message lists those that ship.

    Example:
        >>> spec_path("mp2_closed_shell").name
        'mp2_closed_shell.spec'
        >>> spec_path("ccsd.spec").name
        'ccsd_closed_shell.spec'
    """
    path = find_spec(str(name))
    if path is None:
        raise TcgenError(f"no spec named {name!r:.80}; there are: {', '.join(shipped_specs())}")
    return path


def find_spec(name: str) -> Path | None:
    """Path of the shipped spec of a name, with or without .spec; None if there is none."""
    paths, stem = shipped_specs(), name.removesuffix(".spec")
    return paths.get(stem) or paths.get(f"{stem}_closed_shell")


def similar_specs(name: str) -> list[str]:
    """Names of shipped specs that begin with ``name``, short ones first, then similar ones."""
    stem, names = name.removesuffix(".spec"), list(shipped_specs())
    methods = {n.removesuffix("_closed_shell"): n for n in names} | {n: n for n in names}
    near = [methods[n] for n in get_close_matches(stem, methods, n=4)]
    begin = sorted((n for n in names if stem and n.startswith(stem)), key=len)
    return list(dict.fromkeys([*begin, *near]))[:4]


def shipped_specs() -> dict[str, Path]:
    """The specs that ship with tcgen, by name, in order; TcgenError if their folder is missing."""
    here = Path(__file__).parent
    for folder in (here / "specs", here.parent / "specs"):
        if folder.is_dir():
            return {p.stem: p for p in sorted(folder.glob("*.spec"))}
    raise TcgenError(f"the specs folder is missing from this installation of tcgen ({here})")
