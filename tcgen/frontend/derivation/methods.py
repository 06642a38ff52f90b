"""The ansatz of a method by its name: CCSDT, QCISD, EOM-IP-CCSD, ..."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...errors import ArgumentError

_RANKS = "SDTQPH"  # singles, doubles, triples, quadruples, pentuples, hextuples
_NAME = re.compile(
    r"(?:EOM_(?P<sector>EE|IP|EA|DIP|DEA)_)?(?P<family>LCC|CC|CI|QCI|UCC)"
    rf"(?P<ranks>[{_RANKS}]+|[23])(?P<order>_3)?(?:_(?P<kind>LEFT|LAMBDA|DENSITY))?"
)
# Holes and particles of an excitation of rank 1, beside those of each further rank.
_SECTORS = {"EE": (1, 1), "IP": (1, 0), "EA": (0, 1), "DIP": (2, 0), "DEA": (0, 2)}
_CC = "J. Cizek, J. Chem. Phys. 45, 4256 (1966)"
_SOURCES = {
    "CCSD": "G. D. Purvis, R. J. Bartlett, J. Chem. Phys. 76, 1910 (1982)",
    "CCSDT": "J. Noga, R. J. Bartlett, J. Chem. Phys. 86, 7041 (1987)",
    "CCSDTQ": "S. A. Kucharski, R. J. Bartlett, J. Chem. Phys. 97, 4282 (1992)",
    "CCSDT_3": "M. Urban, J. Noga, S. J. Cole, R. J. Bartlett, J. Chem. Phys. 83, 4041 (1985)",
    "CC2": "O. Christiansen, H. Koch, P. Jorgensen, Chem. Phys. Lett. 243, 409 (1995)",
    "CC3": "H. Koch, O. Christiansen, P. Jorgensen et al., J. Chem. Phys. 106, 1808 (1997)",
    "QCISD": "J. A. Pople, M. Head-Gordon, K. Raghavachari, J. Chem. Phys. 87, 5968 (1987)",
    "EE": "J. F. Stanton, R. J. Bartlett, J. Chem. Phys. 98, 7029 (1993)",
    "IP": "J. F. Stanton, J. Gauss, J. Chem. Phys. 101, 8938 (1994)",
    "EA": "M. Nooijen, R. J. Bartlett, J. Chem. Phys. 102, 3629 (1995)",
    "UCC": "R. J. Bartlett, S. A. Kucharski, J. Noga, Chem. Phys. Lett. 155, 133 (1989)",
    "CI": "I. Shavitt, in Methods of Electronic Structure Theory, p. 189 (1977)",
}
KNOWN = (
    "CCD, CCSD, CCSDT, CCSDTQ, CC2, CC3, CCSDT-3, LCCD, LCCSD, QCISD, CISD to CISDTQ, UCCSD, "
    "EOM-EE-, EOM-IP-, EOM-EA-, EOM-DIP-, EOM-DEA-CCSD, and -lambda, -density or -left behind them"
)


@dataclass(frozen=True, slots=True)
class Method:
    """A method: ``kind`` is "" or what is made of the derived equations by derivatives."""

    name: str
    title: str
    source: str
    ansatz: str
    kind: str


def find_method(name: str, commutators: int | None = None) -> Method | None:
    """The method of a name in any case, with - or _; None if the name is none of a method.

    ``commutators`` truncates exp(-T) H exp(T) after so many commutators, which unitary ansätze,
    whose series do not end, need.

    Raises:
        ArgumentError: ``commutators`` is missing, or given to a method that has no series.

    Example:
        >>> print(find_method("lccd").ansatz)
        T = t2
        e = <0| H + [H, T] |0>
        r = <T| H + [H, T] |0>
    """
    upper = re.sub(r"[-\s]", "_", name).upper()
    match = _NAME.fullmatch(upper)
    places = [_RANKS.index(x) for x in match["ranks"]] if match and match["ranks"].isalpha() else []
    if match is None or places != sorted(set(places)):
        return None
    family, sector, order, kind = match["family"], match["sector"], match["order"], match["kind"]
    plain = f"{family}{match['ranks']}{order or ''}"
    if (
        (not places and family != "CC")
        or (order and plain != "CCSDT_3")
        or (family == "QCI" and plain != "QCISD")
        or (sector and (family != "CC" or not places or order or kind in ("LAMBDA", "DENSITY")))
        or (kind and family == "CI")
        or (kind == "LEFT" and not sector)
    ):
        return None
    ranks = [p + 1 for p in places] or [*range(1, int(match["ranks"]) + 1)]
    if commutators is not None and (family not in ("CC", "UCC") or not places or order):
        raise ArgumentError(f"commutators={commutators}: {name} has no series to truncate")
    if commutators is None and family == "UCC":
        raise ArgumentError(
            f"{name}: the series of a unitary ansatz does not end: say after how many commutators "
            f"it is truncated, commutators=2 (--commutators 2)"
        )
    hbar = "exp(-T) H exp(T)"
    if commutators is not None:
        hbar = f"bch(H, {'T - adj(T)' if family == 'UCC' else 'T'}, {commutators})"
    lines = _lines(family, plain, ranks, hbar)
    if sector:
        vectors = " + ".join(_vector(sector, n) for n in range(1, max(ranks) + 1))
        lines = [lines[0], f"R = {vectors}", f"s = <R| [{hbar}, R] |0>"]
    short = plain.lower() if family != "UCC" else f"unitary_{plain[1:].lower()}"
    short += f"_{commutators}" if commutators is not None else ""
    spoken = f"{plain.replace('_', '-')}"
    spoken += f" to {commutators} commutators" if commutators is not None else ""
    source = _SOURCES.get(sector or plain, _SOURCES.get(family, _CC))
    title = {None: spoken, "LAMBDA": f"Lambda equations of {spoken}"}.get(kind, spoken)
    if sector:
        title = f"EOM-{sector}-{spoken}, {'left' if kind else 'right'} vectors"
    elif kind == "DENSITY":
        title = f"Densities of {spoken}"
    parts = (f"eom_{sector.lower()}" if sector else "", short, (kind or "").lower())
    return Method("_".join(filter(None, parts)), title, source, "\n".join(lines), parts[2])


def _vector(sector: str, rank: int) -> str:
    """r2{v+ o o} of EOM-IP; excitations that keep the number of electrons need no braces."""
    holes, particles = (n + rank - 1 for n in _SECTORS[sector])
    braces = " ".join(["v+"] * particles + ["o"] * holes)
    return f"r{rank}" if sector == "EE" else f"r{rank}{{{braces}}}"


def _lines(family: str, plain: str, ranks: list[int], hbar: str) -> list[str]:
    """The ansatz of the ground state."""
    letter = "c" if family == "CI" else "t"
    amplitudes = f"{letter.upper()} = {' + '.join(f'{letter}{n}' for n in ranks)}"
    energy, whole = f"e = <0| {hbar} |0>", f"r = <T| {hbar} |0>"
    if family == "CI":
        return [amplitudes, "e = <0| H C |0>", "r = <C| H (1 + C) - e C |0>"]
    if family == "LCC":
        return [amplitudes, "e = <0| H + [H, T] |0>", "r = <T| H + [H, T] |0>"]
    if family == "QCI":
        return [
            amplitudes,
            "e = <0| [H, T] |0>",
            "r1 = <t1| H + [H, T] + [[H, t1], t2] |0>",
            "r2 = <t2| H + [H, T] + 1/2 [[H, t2], t2] |0>",
        ]
    last = {
        "CC2": "r2 = <t2| exp(-t1) H exp(t1) + [F, t2] |0>",
        "CC3": "r3 = <t3| [exp(-t1) H exp(t1), t2] + [F, t3] |0>",
        "CCSDT_3": "r3 = <t3| exp(-t1 - t2) H exp(t1 + t2) + [F, t3] |0>",
    }.get(plain)
    if last is None:
        return [amplitudes, energy, whole]
    lower = " + ".join(f"t{n}" for n in ranks[:-1])
    return [amplitudes, energy, f"r = <{lower}| {hbar} |0>", last]
