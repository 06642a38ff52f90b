"""Excited, ionised and attached states as a table and as a spectrum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, UnavailableError, pip_install
from ..ir.layouts import Array

EV = 27.211386245981  # electronvolts of a Hartree (CODATA 2022)
_WIDTH = 0.2  # standard deviation of a line of a spectrum, in eV


@dataclass(frozen=True, slots=True)
class State:
    """One state, with all of its roots.

    Attributes:
        energy: difference to the energy of the ground state, in Hartree.
        roots: numbers of its roots, from 0: over spin orbitals a triplet has three.
        multiplicity: 2S + 1; None if the spin is not known, as for an open-shell reference.
        s2: the expectation value of S^2 of the right vector.
        irrep: name of its irreducible representation, if orbitals have labels.
        strength: oscillator strength; None without left vectors, or without a basis set.
        moments: squares <0|x|k><k|x|0> of the transition moments along x, y and z, atomic units.
        dyson: Dyson norm of an ionised or attached state, or None.
        leading: the largest amplitudes of the right vector, which has the norm 1, and their
            orbitals, counted from 0 with frozen ones: (0.98, "3 -> 4").
    """

    energy: float
    roots: tuple[int, ...]
    multiplicity: int | None = None
    s2: float | None = None
    irrep: str | None = None
    strength: float | None = None
    moments: tuple[float, float, float] | None = None
    dyson: float | None = None
    leading: tuple[tuple[float, str], ...] = ()

    @property
    def ev(self) -> float:
        """The energy in electronvolts."""
        return self.energy * EV

    def as_json(self) -> dict[str, Any]:
        """All attributes, and the energy in electronvolts."""
        return {**asdict(self), "ev": self.ev}


class States(tuple[State, ...]):
    """States in the order of their energies; printed as a table.

    Example:
        >>> print(States([State(0.25, (0,), 1, 0.0, "B1", 0.0421, leading=((0.98, "4 -> 5"),))]))
        state   E/Hartree      E/eV  2S+1  irrep  strength  leading amplitudes
            1    0.250000    6.8028     1     B1    0.0421  0.98 (4 -> 5)
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The rows of the table; columns of which nothing is known are left out."""
        columns = self._columns()
        widths = [max(map(len, column)) for column in columns[:-1]]
        rows = zip(*columns, strict=True)
        return [
            "  ".join([f"{x:>{w}}" for x, w in zip(row, widths, strict=False)] + [row[-1]]).rstrip()
            for row in rows
        ]

    def _repr_html_(self) -> str:
        """The table, for a notebook."""
        first, *rows = zip(*self._columns(), strict=True)
        head = "".join(f"<th>{escape(x)}</th>" for x in first)
        body = "".join(f"<tr>{''.join(f'<td>{escape(x)}</td>' for x in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _columns(self) -> list[list[str]]:
        def column(title: str, text: Callable[[State], str | None]) -> list[list[str]]:
            found = [text(state) for state in self]
            known = any(x is not None for x in found)
            return [[title, *(x or "" for x in found)]] if known else []

        def number(value: float | None, digits: int) -> str | None:
            return None if value is None else f"{round(value, digits) + 0.0:.{digits}f}"

        numbers = [str(n) for n in range(1, len(self) + 1)]
        return [
            ["state", *numbers],
            ["E/Hartree", *(number(s.energy, 6) or "" for s in self)],
            ["  E/eV", *(number(s.ev, 4) or "" for s in self)],
            *column("2S+1", lambda s: number(s.multiplicity, 0)),
            *column("irrep", lambda s: s.irrep),
            *column("strength", lambda s: number(s.strength, 4)),
            *column("Dyson", lambda s: number(s.dyson, 4)),
            [
                "leading amplitudes",
                *(", ".join(f"{c:.2f} ({text})" for c, text in s.leading) for s in self),
            ],
        ]

    def spectrum(self, energies: Any, *, width: float = _WIDTH) -> Array:
        """Sum of strengths times Gaussians of a standard deviation ``width`` at energies, in eV.

        Raises:
            ArgumentError: a state has no strength.
        """
        places = np.asarray(energies, float)
        total = np.zeros_like(places)
        for state in self:
            if state.strength is None:
                raise ArgumentError(
                    "these states have no strengths: compute them with moments=True (--states)"
                )
            shape = np.exp(-(((places - state.ev) / width) ** 2) / 2)
            total += state.strength * shape / (width * np.sqrt(2 * np.pi))
        return total

    def plot(self, path: str | Path, *, width: float = _WIDTH) -> Path:
        """Draw the spectrum and its lines into a picture file, with matplotlib.

        Raises:
            ArgumentError: the tuple is empty, a state has no strength, or the name of the file
                ends in no format of pictures.
            UnavailableError: matplotlib is not installed.
        """
        if not self:
            raise ArgumentError("a spectrum needs at least one state to draw")
        energies = [state.ev for state in self]
        places = np.linspace(min(energies) - 5 * width, max(energies) + 5 * width, 1000)
        curve = self.spectrum(places, width=width)
        figure = figure_for(path)
        axes = figure.add_subplot()
        axes.plot(places, curve)
        weights = [state.strength or 0.0 for state in self]
        peak = max(map(abs, weights)) or 1.0
        scale = float(curve.max() or 1.0) / peak
        axes.vlines(energies, 0, [scale * weight for weight in weights], colors="gray")
        axes.set_xlabel("energy / eV")
        axes.set_ylabel("strength / (1/eV)")
        figure.savefig(path)
        return Path(path)


def figure_for(path: str | Path) -> Any:
    """An empty figure of matplotlib that can be saved to a file of this name.

    Raises:
        ArgumentError: the name ends in no format of pictures.
        UnavailableError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  (an optional dependency)
    except ImportError:
        raise UnavailableError(
            f"pictures are drawn by matplotlib, which is not installed: pip install matplotlib, or "
            f"{pip_install('plot')}"
        ) from None
    figure = Figure(figsize=(6, 4), layout="constrained")
    formats = figure.canvas.get_supported_filetypes()
    if Path(path).suffix[1:].lower() not in formats:
        raise ArgumentError(
            f"{path} names no format of pictures: write .{', .'.join(sorted(formats))}"
        )
    return figure


def states_from_json(records: Sequence[Mapping[str, Any]]) -> States:
    """The states that :meth:`State.as_json` wrote."""
    names = [f.name for f in fields(State)]
    # Files of earlier versions lack names.
    kept = [{n: record[n] for n in names if n in record} for record in records]
    for one in kept:
        one["roots"] = tuple(one["roots"])
        one["leading"] = tuple((float(c), str(x)) for c, x in one["leading"])
        one["moments"] = None if one["moments"] is None else tuple(one["moments"])
    return States(State(**one) for one in kept)
