"""The programs of Kristensen et al. (Table I), from their mathematical definitions.

Each runs one iteration, or a few columns of an elimination, on arrays made by ``make``; programs
that return arrays hand them out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any], Any]


def black_scholes(make: Any, count: int = 1_500_000) -> Any:
    """The mean price of European call options."""
    price, strike, rate, volatility, time = make.random(count), 65.0, 0.08, 0.3, 0.1
    price = price * 4.0 + 58.0
    spread = volatility * time**0.5
    one = (np.log(price / strike) + (rate + volatility**2 / 2) * time) / spread
    two = one - spread
    value = price * _normal(one) - strike * np.exp(-rate * time) * _normal(two)
    return value.sum() / count


def _normal(x: Any) -> Any:
    """The cumulative normal distribution, by a polynomial."""
    size = abs(x)
    k = 1.0 / (1.0 + 0.2316419 * size)
    series = 0.31938153 * k - 0.356563782 * k**2 + 1.781477937 * k**3
    series = series - 1.821255978 * k**4 + 1.330274429 * k**5
    tail = np.exp(-size * size / 2.0) * series / (2 * np.pi) ** 0.5
    return np.where(x < 0.0, tail, 1.0 - tail)


def game_of_life(make: Any, side: int = 10_000) -> Any:
    """Cells live with three neighbours, and live on with two."""
    grid = make.given(side, side)
    cells = grid[1:-1, 1:-1]
    places = itertools.product((slice(0, -2), slice(1, -1), slice(2, None)), repeat=2)
    around = None
    for rows, columns in places:
        if rows == columns == slice(1, -1):
            continue
        part = grid[rows, columns]
        around = part if around is None else around + part
    cells[...] = (around == 3.0) | (cells > 0.0) & (around == 2.0)
    return grid


def heat_equation(make: Any, side: int = 12_000) -> Any:
    """Jacobi's iteration, and how much it changes."""
    grid = make.given(side, side)
    cells = grid[1:-1, 1:-1]
    work = (cells + grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) * 0.2
    change = abs(work - cells).sum()
    cells[...] = work
    return grid, change


def leibnitz_pi(make: Any, count: int = 100_000_000) -> Any:
    """The series of pi."""
    n = make.arange(count) * 4.0 + 1.0
    return (1.0 / n - 1.0 / (n + 2.0)).sum() * 4.0


def gauss_elimination(make: Any, side: int = 2800, columns: int = 4) -> Any:
    """Elimination of the first columns of a matrix."""
    a = make.given(side, side)
    for c in range(1, columns + 1):
        factors = a[c:, c - 1 : c] / a[c - 1 : c, c - 1 : c]
        a[c:, c - 1 :] -= factors * a[c - 1 : c, c - 1 :]
    return a


def lu_factorization(make: Any, side: int = 2800, columns: int = 4) -> Any:
    """The first columns of the factors of a matrix."""
    upper, lower = make.given(side, side), make.zeros(side, side)
    for c in range(1, columns + 1):
        lower[c:, c - 1 : c] = upper[c:, c - 1 : c] / upper[c - 1 : c, c - 1 : c]
        upper[c:, c - 1 :] -= lower[c:, c - 1 : c] * upper[c - 1 : c, c - 1 :]
    return lower, upper


def monte_carlo_pi(make: Any, count: int = 100_000_000) -> Any:
    """The part of random points that is in a circle."""
    x, y = make.random(count), make.random(count)
    inside = np.less_equal(x * x + y * y, 1.0)
    return inside.sum() * 4.0 / count


def stencil_27_points(make: Any, side: int = 350) -> Any:
    """The mean of the 27 neighbours in three dimensions."""
    grid = make.given(side, side, side)
    places = (slice(0, -2), slice(1, -1), slice(2, None))
    total = None
    for place in itertools.product(places, repeat=3):
        part = grid[place]
        total = part if total is None else total + part
    mean = total / 27.0
    change = abs(mean - grid[1:-1, 1:-1, 1:-1]).sum()
    grid[1:-1, 1:-1, 1:-1] = mean
    return grid, change


def shallow_water(make: Any, side: int = 3200) -> Any:
    """One step of Lax and Wendroff for the height and the momenta of a flow."""
    h, u, v = (make.given(side + 2, side + 2) for _ in range(3))
    g, step = 9.8, 0.02
    for field in (h, u, v):
        field[:, 0], field[:, -1] = field[:, 1], field[:, -2]
        field[0, :], field[-1, :] = field[1, :], field[-2, :]

    def pressure(momentum: Any, height: Any) -> Any:
        return momentum * momentum / height + g / 2 * height * height

    rows = (slice(1, None), slice(1, -1)), (slice(None, -1), slice(1, -1))
    columns = (slice(1, -1), slice(1, None)), (slice(1, -1), slice(None, -1))
    halves = []
    for (ahead, behind), along, across in ((rows, u, v), (columns, v, u)):
        h1, h0, a1, a0, c1, c0 = (f[k] for f in (h, along, across) for k in (ahead, behind))
        height = (h1 + h0) / 2.0 - step / 2 * (a1 - a0)
        moved = (a1 + a0) / 2.0 - step / 2 * (pressure(a1, h1) - pressure(a0, h0))
        crossed = (c1 + c0) / 2.0 - step / 2 * (a1 * c1 / h1 - a0 * c0 / h0)
        halves.append((height, moved, crossed))
    (hx, ux, vx), (hy, vy, uy) = halves
    inner = (slice(1, -1), slice(1, -1))
    after, ahead = slice(None, -1), slice(1, None)
    h[inner] -= step * (ux[ahead] - ux[after]) + step * (vy[:, ahead] - vy[:, after])
    px, qx = pressure(ux, hx), ux * vx / hx
    py, qy = pressure(vy, hy), uy * vy / hy
    u[inner] -= step * (px[ahead] - px[after]) + step * (qy[:, ahead] - qy[:, after])
    v[inner] -= step * (qx[ahead] - qx[after]) + step * (py[:, ahead] - py[:, after])
    return h, u, v


def rosenbrock(make: Any, count: int = 200_000_000) -> Any:
    """The sum of Rosenbrock's function along a vector."""
    x = make.given(count)
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def over_relaxation(make: Any, side: int = 12_000) -> Any:
    """Successive over-relaxation: the red points of a chess board, then the black ones."""
    grid = make.given(side, side)
    change = None
    for odd in (0, 1):
        for row in (0, 1):
            column = (row + odd) % 2
            rows, columns = slice(1 + row, -1, 2), slice(1 + column, -1, 2)
            above, below = slice(row, -2, 2), slice(2 + row, None, 2)
            left, right = slice(column, -2, 2), slice(2 + column, None, 2)
            cells = grid[rows, columns]
            around = grid[above, columns] + grid[below, columns]
            around = around + grid[rows, left] + grid[rows, right]
            moved = 1.5 * (around * 0.25 - cells)
            part = abs(moved).sum()
            change = part if change is None else change + part
            cells += moved
    return grid, change


def n_body(make: Any, count: int = 6000) -> Any:
    """Newton's law between all pairs of bodies."""
    mass, *rest = (make.given(count) for _ in range(7))
    places, speeds = rest[:3], rest[3:]
    apart = [p[None, :] - p[:, None] for p in places]
    square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + 1e-9
    distance = np.sqrt(square)
    force = 6.67e-11 * mass[None, :] * mass[:, None] / square
    for place, speed, part in zip(places, speeds, apart, strict=True):
        speed += (force * part / distance).sum(axis=1) / mass * 0.1
        place += speed * 0.1
    return (*places, *speeds)


def n_body_nice(make: Any, planets: int = 40, asteroids: int = 2_000_000) -> Any:
    """Planets that move each other, and asteroids that they move."""
    mass = make.given(planets)
    places, speeds = ([make.given(planets) for _ in range(3)] for _ in range(2))
    small, small_speeds = ([make.given(asteroids) for _ in range(3)] for _ in range(2))
    for targets, moved in ((places, speeds), (small, small_speeds)):
        apart = [p[None, :] - q[:, None] for p, q in zip(places, targets, strict=True)]
        square = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2] + 1e-9
        pull = 6.67e-11 * mass[None, :] / (square * np.sqrt(square))
        for speed, part in zip(moved, apart, strict=True):
            speed += (pull * part).sum(axis=1) * 0.1
    for targets, moved in ((places, speeds), (small, small_speeds)):
        for place, speed in zip(targets, moved, strict=True):
            place += speed * 0.1
    return (*places, *speeds, *small, *small_speeds)


def lattice_boltzmann(make: Any, side: int = 150) -> Any:
    """D3Q19: collisions, and then the streaming of particles to their neighbours."""
    directions = [d for d in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, d)) < 3]
    flows = [make.given(side, side, side) for _ in directions]
    density = flows[0] + flows[1]
    for flow in flows[2:]:
        density = density + flow
    speeds = []
    for axis in range(3):
        total = None
        for direction, flow in zip(directions, flows, strict=True):
            if direction[axis]:
                term = flow if direction[axis] > 0 else -flow
                total = term if total is None else total + term
        speeds.append(total / density)
    square = speeds[0] * speeds[0] + speeds[1] * speeds[1] + speeds[2] * speeds[2]
    moved = []
    for direction, flow in zip(directions, flows, strict=True):
        along = None
        for component, speed in zip(direction, speeds, strict=True):
            if component:
                term = speed if component > 0 else -speed
                along = term if along is None else along + term
        weight = (1 / 3, 1 / 18, 1 / 36)[sum(map(abs, direction))]
        series = 1.0 - 1.5 * square
        if along is not None:
            series = series + 3.0 * along + 4.5 * along * along
        flow += 1.9 * (weight * density * series - flow)
        streamed = make.zeros(side, side, side)
        source = tuple(slice(max(0, -k), side - max(0, k)) for k in direction)
        target = tuple(slice(max(0, k), side - max(0, -k)) for k in direction)
        streamed[target] = flow[source]
        moved.append(streamed)
    return tuple(moved)


def water_ice(make: Any, side: int = 800) -> Any:
    """Heat in a field that melts and freezes: a temperature, an enthalpy and the part of ice."""
    enthalpy, ice = make.given(side, side), make.given(side, side)
    latent, water, frozen = 334.0, 4.18, 2.1
    heat = ice * frozen + (1.0 - ice) * water
    melted = enthalpy - (1.0 - ice) * latent
    temperature = melted / heat
    conductivity = 0.6 + ice * 1.6
    inner = temperature[1:-1, 1:-1]
    flow = temperature[:-2, 1:-1] + temperature[2:, 1:-1] - 2.0 * inner
    flow = flow + temperature[1:-1, :-2] + temperature[1:-1, 2:] - 2.0 * inner
    enthalpy[1:-1, 1:-1] += 0.01 * conductivity[1:-1, 1:-1] * flow
    for border, beside in ((0, 1), (-1, -2)):
        enthalpy[border, :] = enthalpy[beside, :]
        enthalpy[:, border] = enthalpy[:, beside]
    solid = np.less(enthalpy, 0.0)
    liquid = np.greater(enthalpy, latent)
    between = 1.0 - enthalpy / latent
    ice[...] = np.where(solid, 1.0, np.where(liquid, 0.0, between))
    return enthalpy, ice, abs(flow).sum()


PROGRAMS: dict[str, Program] = {
    "black_scholes": black_scholes,
    "game_of_life": game_of_life,
    "heat_equation": heat_equation,
    "leibnitz_pi": leibnitz_pi,
    "gauss_elimination": gauss_elimination,
    "lu_factorization": lu_factorization,
    "monte_carlo_pi": monte_carlo_pi,
    "stencil_27_points": stencil_27_points,
    "shallow_water": shallow_water,
    "rosenbrock": rosenbrock,
    "over_relaxation": over_relaxation,
    "n_body": n_body,
    "n_body_nice": n_body_nice,
    "lattice_boltzmann": lattice_boltzmann,
    "water_ice": water_ice,
}
