"""The programs of DelayRepay that numexpr's expressions can say.

numexpr takes element-wise expressions of whole arrays and sums. Slices are taken by NumPy before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .delayrepay import PROGRAMS

Program = Callable[..., Any]


def _evaluate(text: str, **arrays: Any) -> Any:
    return importlib.import_module("numexpr").evaluate(text, arrays)


def _arc_distance(t1: Any, t2: Any, p1: Any, p2: Any) -> Any:
    near = _evaluate(
        "sin((t2 - t1) / 2)**2 + cos(t1) * cos(t2) * sin((p2 - p1) / 2)**2",
        t1=t1,
        t2=t2,
        p1=p1,
        p2=p2,
    )
    return _evaluate("2 * arctan2(sqrt(near), sqrt(1 - near))", near=near)


def _evolve(g: Any) -> Any:
    a, b, c, d = (np.roll(g, n, axis) for n in (1, -1) for axis in (0, 1))
    return _evaluate("g + 0.1 * (a + b + c + d - 4 * g)", g=g, a=a, b=b, c=c, d=d)


def _harris(image: Any) -> Any:
    near, x, y = image[:-1, :-1], image[1:, :-1], image[:-1, 1:]
    dx, dy = _evaluate("x - z", x=x, z=near), _evaluate("y - z", y=y, z=near)
    return _evaluate("x * x * (y * y) - (x * y) * (x * y) - 0.05 * (x * x + y * y)**2", x=dx, y=dy)


def _l2norm(x: Any) -> Any:
    return np.sqrt(_evaluate("sum(abs(x)**2, axis=1)", x=x))


def _laplacian(x: Any) -> Any:
    out = _evaluate(
        "abs(4 * m - a - b - c - d)",
        m=x[1:-1, 1:-1],
        a=x[:-2, 1:-1],
        b=x[2:, 1:-1],
        c=x[1:-1, :-2],
        d=x[1:-1, 2:],
    )
    return _evaluate("out / most", out=out, most=max(1, out.max()) + 1e-9)


def _log_likelihood(d: Any) -> Any:
    scale = np.sqrt(2 * np.pi) * 0.5
    return _evaluate("sum(log(exp(-((d - 0.3)**2) / 0.5) / scale))", d=d, scale=scale)


def _lstsqr(x: Any, y: Any) -> Any:
    mx, my = x.mean(), y.mean()
    products = _evaluate("sum((x - mx) * (y - my))", x=x, y=y, mx=mx, my=my)
    return my - products / _evaluate("sum((x - mx)**2)", x=x, mx=mx) * mx


def _pythagorean(x: Any) -> Any:
    return _evaluate("sin(x)**2 + cos(x)**2", x=x)


def _rosen(x: Any) -> Any:
    return _evaluate("sum(100 * (y - x**2)**2 + (1 - x)**2)", x=x[:-1], y=x[1:])


def _specialconvolve(a: Any) -> Any:
    rows = _evaluate("a + b + c", a=a[1:-1], b=a[:-2], c=a[2:])
    return _evaluate(
        "a + b + c - 9 * m", a=rows[:, 1:-1], b=rows[:, :-2], c=rows[:, 2:], m=a[1:-1, 1:-1]
    )


def _vibr_energy(h: Any, a: Any) -> Any:
    return _evaluate("exp(-h * 0.5 - a * 0.25)", h=h, a=a)


_WRITTEN: dict[str, Program] = {
    "arc_distance": _arc_distance,
    "evolve": _evolve,
    "harris": _harris,
    "l2norm": _l2norm,
    "laplacian": _laplacian,
    "log_likelihood": _log_likelihood,
    "lstsqr": _lstsqr,
    "pythagorean": _pythagorean,
    "rosen": _rosen,
    "specialconvolve": _specialconvolve,
    "vibr_energy": _vibr_energy,
}


def in_numexpr(run: Program) -> Program:
    """The program in numexpr's expressions.

    Raises:
        NotImplementedError: it is no program that they can say.
    """
    for name, written in _WRITTEN.items():
        if PROGRAMS[name].run is run:
            return written
    raise NotImplementedError
