"""The 21 array programs of Morton et al. (DelayRepay), Table 1.

Source: Delayed Execution for Kernel Fusion in Python (DLS 2020). The programs are written from what
they compute.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernels import Kernel


def arc_distance(t1: Any, t2: Any, p1: Any, p2: Any) -> Any:
    near = np.sin((t2 - t1) / 2) ** 2 + np.cos(t1) * np.cos(t2) * np.sin((p2 - p1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(near), np.sqrt(1 - near))


def harris(image: Any) -> Any:
    dx, dy = image[1:, :-1] - image[:-1, :-1], image[:-1, 1:] - image[:-1, :-1]
    a, b, c = dx * dx, dy * dy, dx * dy
    return a * b - c * c - 0.05 * (a + b) ** 2


def laplacian(x: Any) -> Any:
    out = abs(4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:])
    out /= max(1, out.max()) + 1e-9
    return out


def grayscott(u: Any, v: Any) -> Any:
    for _ in range(3):
        middle = u[1:-1, 1:-1]
        other = v[1:-1, 1:-1]
        reaction = middle * other * other
        lu = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * middle
        lv = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * other
        u[1:-1, 1:-1] = middle + 0.16 * lu - reaction + 0.06 * (1 - middle)
        v[1:-1, 1:-1] = other + 0.08 * lv + reaction - 0.12 * other
    return u + v


def create_grid(x: Any, z: Any) -> Any:
    z[:, :, 0] = x.reshape(-1, 1)
    z[:, :, 1] = x
    return z.reshape(-1, 3)


def hasting(y: Any, t: Any) -> Any:
    first = y[0] * (1 - y[0]) - 5 * y[0] * y[1] / (1 + 3 * y[0])
    eaten = 0.1 * y[1] * y[2] / (1 + 2 * y[1])
    t[0], t[1], t[2] = first, first - eaten - 0.4 * y[1], eaten - 0.01 * y[2]
    return t


def network(x: Any, y: Any, w1: Any, w2: Any) -> Any:
    for _ in range(3):
        hidden = 1 / (1 + np.exp(-(x @ w1)))
        out = 1 / (1 + np.exp(-np.dot(hidden, w2)))
        last = (y - out) * out * (1 - out)
        first = np.dot(last, w2.T) * hidden * (1 - hidden)
        w2 += np.dot(hidden.T, last)
        w1 += np.dot(x.T, first)
    return x @ w1 @ w2


def repeating(x: Any, y: Any) -> Any:
    y[: x.size] = x
    y[x.size :] = np.repeat(x + 1, 3)
    return y


def specialconvolve(a: Any) -> Any:
    rows = a[1:-1] + a[:-2] + a[2:]
    return rows[:, 1:-1] + rows[:, :-2] + rows[:, 2:] - 9 * a[1:-1, 1:-1]


def slope(x: Any, y: Any) -> Any:
    dx, dy = x - x.mean(), y - y.mean()
    return y.mean() - np.sum(dx * dy) / np.sum(dx**2) * x.mean()


PROGRAMS: dict[str, Kernel] = {
    "arc_distance": Kernel(
        arc_distance,
        ((9,), (9,), (9,), (9,)),
        ((10**6,),) * 4,
    ),
    "create_grid": Kernel(
        create_grid,
        ((4,), (4, 4, 3)),
        ((1500,), (1500, 1500, 3)),
    ),
    "cronbach": Kernel(
        lambda x: 5 / 4 * (1 - x.var(1, ddof=1).sum() / x.sum(0).var(ddof=1)),
        ((5, 7),),
        ((2000, 2000),),
    ),
    "distance": Kernel(
        lambda a, b: -2 * np.dot(a, b.T) + np.sum(np.square(a), 1)[:, None] + np.sum(b * b, 1),
        ((4, 3), (5, 3)),
        ((2000, 64), (2000, 64)),
    ),
    "evolve": Kernel(
        lambda g: g + 0.1 * (sum(np.roll(g, n, a) for n in (1, -1) for a in (0, 1)) - 4 * g),
        ((5, 6),),
        ((2000, 2000),),
    ),
    "grayscott": Kernel(
        grayscott,
        ((7, 6), (7, 6)),
        ((1500, 1500),) * 2,
    ),
    "harris": Kernel(
        harris,
        ((6, 7),),
        ((2500, 2500),),
    ),
    "hasting": Kernel(
        hasting,
        ((3,), (3,)),
        ((3,), (3,)),
    ),
    "l1norm": Kernel(
        lambda x, y: np.sum(abs(x[:, None, :] - y), -1),
        ((4, 3), (5, 3)),
        ((500, 64), (500, 64)),
    ),
    "l2norm": Kernel(
        lambda x: np.sqrt(np.sum(abs(x) ** 2, 1)),
        ((4, 5),),
        ((2000, 2000),),
    ),
    "laplacian": Kernel(
        laplacian,
        ((6, 7),),
        ((2500, 2500),),
    ),
    "log_likelihood": Kernel(
        lambda d: np.log(np.exp(-((d - 0.3) ** 2) / 0.5) / (np.sqrt(2 * np.pi) * 0.5)).sum(),
        ((11,),),
        ((4 * 10**6,),),
    ),
    "lstsqr": Kernel(
        slope,
        ((8,), (8,)),
        ((4 * 10**6,),) * 2,
    ),
    "nn": Kernel(
        network,
        ((6, 3), (6, 2), (3, 4), (4, 2)),
        ((2000, 50), (2000, 10), (50, 64), (64, 10)),
    ),
    "pairwise": Kernel(
        lambda p: np.sum((p[None, :] - p[:, None]) ** 2, -1) ** 0.5,
        ((5, 3),),
        ((900, 3),),
    ),
    "pythagorean": Kernel(
        lambda x: np.sin(x) ** 2 + np.cos(x) ** 2,
        ((3, 4),),
        ((2000, 2000),),
    ),
    "repeating": Kernel(
        repeating,
        ((4,), (16,)),
        ((10**6,), (4 * 10**6,)),
    ),
    "reverse_cumsum": Kernel(
        lambda x: np.cumsum((x * 2)[::-1])[::-1],
        ((6,),),
        ((4 * 10**6,),),
    ),
    "rosen": Kernel(
        lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(),
        ((9,),),
        ((4 * 10**6,),),
    ),
    "specialconvolve": Kernel(
        specialconvolve,
        ((5, 6),),
        ((2500, 2500),),
    ),
    "vibr_energy": Kernel(
        lambda h, a: np.exp(-h * 0.5 - a * 0.25),
        ((7,), (7,)),
        ((4 * 10**6,),) * 2,
    ),
}
