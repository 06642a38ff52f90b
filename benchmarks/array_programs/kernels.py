"""Small scientific kernels, each as one writes it with NumPy.

A kernel takes arrays and returns the array that it is for. It may write to its arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = tuple[Any, ...]


def jacobi_1d(a: Any, b: Any) -> Any:
    """Averages of three neighbours, in turn into one array and the other."""
    for _ in range(10):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3
    return a


def jacobi_2d(a: Any, b: Any) -> Any:
    """Averages of five neighbours."""
    for _ in range(10):
        for x, y in ((a, b), (b, a)):
            y[1:-1, 1:-1] = 0.2 * (
                x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[2:, 1:-1] + x[:-2, 1:-1]
            )
    return a


def heat_3d(a: Any, b: Any) -> Any:
    """Explicit Euler steps of the heat equation, second differences along three axes."""
    for _ in range(5):
        for x, y in ((a, b), (b, a)):
            middle = x[1:-1, 1:-1, 1:-1]
            y[1:-1, 1:-1, 1:-1] = (
                0.125 * (x[2:, 1:-1, 1:-1] - 2 * middle + x[:-2, 1:-1, 1:-1])
                + 0.125 * (x[1:-1, 2:, 1:-1] - 2 * middle + x[1:-1, :-2, 1:-1])
                + 0.125 * (x[1:-1, 1:-1, 2:] - 2 * middle + x[1:-1, 1:-1, :-2])
                + middle
            )
    return a


def fdtd_2d(ex: Any, ey: Any, hz: Any) -> Any:
    """Maxwell's equations in the plane on staggered grids."""
    for step in range(10):
        ey[0, :] = float(step)
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz


def conv2d(image: Any, filters: Any) -> Any:
    """Correlation of a batch of images with filters, a shifted product for each element."""
    height, width = filters.shape[:2]
    rows, columns = image.shape[1] - height + 1, image.shape[2] - width + 1
    out = np.zeros((image.shape[0], rows, columns, filters.shape[3]))
    for i in range(height):
        for j in range(width):
            part = image[:, i : i + rows, j : j + columns, :]
            out = out + np.tensordot(part, filters[i, j], 1)
    return out


def deriche(image: Any) -> Any:
    """Recursive smoothing: along the rows forwards and backwards, then along the columns."""
    alpha = 0.25
    k = (1 - np.exp(-alpha)) ** 2 / (1 + 2 * alpha * np.exp(-alpha) - np.exp(2 * alpha))
    a1, a2 = k, k * np.exp(-alpha) * (alpha - 1)
    a3, a4 = k * np.exp(-alpha) * (alpha + 1), -k * np.exp(-2 * alpha)
    b1, b2 = 2.0 ** (-alpha), -np.exp(-2 * alpha)
    x = image
    for _ in range(2):
        forth, back = x * 0, x * 0
        forth[:, 0] = a1 * x[:, 0]
        forth[:, 1] = a1 * x[:, 1] + a2 * x[:, 0] + b1 * forth[:, 0]
        for j in range(2, x.shape[1]):
            forth[:, j] = (
                a1 * x[:, j] + a2 * x[:, j - 1] + b1 * forth[:, j - 1] + b2 * forth[:, j - 2]
            )
        back[:, -2] = a3 * x[:, -1]
        for j in range(x.shape[1] - 3, -1, -1):
            back[:, j] = (
                a3 * x[:, j + 1] + a4 * x[:, j + 2] + b1 * back[:, j + 1] + b2 * back[:, j + 2]
            )
        x = (forth + back).T
    return x


def cavity_flow(u: Any, v: Any, p: Any) -> Any:
    """Incompressible flow in a box whose lid moves: pressure by iteration, then velocities."""
    dx = dy = 2 / (u.shape[0] - 1)
    dt, nu = 0.001, 0.1
    for _ in range(5):
        dudx = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
        dvdy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        cross = (u[2:, 1:-1] - u[:-2, 1:-1]) * (v[1:-1, 2:] - v[1:-1, :-2]) / (4 * dx * dy)
        source = (dudx + dvdy) / dt - dudx**2 - 2 * cross - dvdy**2
        for _ in range(5):
            old = p.copy()
            p[1:-1, 1:-1] = (
                (old[1:-1, 2:] + old[1:-1, :-2]) * dy**2
                + (old[2:, 1:-1] + old[:-2, 1:-1]) * dx**2
                - dx**2 * dy**2 * source
            ) / (2 * (dx**2 + dy**2))
            p[:, -1], p[0, :], p[:, 0], p[-1, :] = p[:, -2], p[1, :], p[:, 1], 0
        for f, grad in ((u, p[1:-1, 2:] - p[1:-1, :-2]), (v, p[2:, 1:-1] - p[:-2, 1:-1])):
            middle = f[1:-1, 1:-1]
            f[1:-1, 1:-1] = (
                middle
                - u[1:-1, 1:-1] * dt / dx * (middle - f[1:-1, :-2])
                - v[1:-1, 1:-1] * dt / dy * (middle - f[:-2, 1:-1])
                - dt / (2 * dx) * grad
                + nu * dt / dx**2 * (f[1:-1, 2:] - 2 * middle + f[1:-1, :-2])
                + nu * dt / dy**2 * (f[2:, 1:-1] - 2 * middle + f[:-2, 1:-1])
            )
        u[0, :], u[:, 0], u[:, -1], u[-1, :] = 0, 0, 0, 1
        v[0, :], v[-1, :], v[:, 0], v[:, -1] = 0, 0, 0, 0
    return u


def durbin(r: Any) -> Any:
    """Levinson and Durbin's recursion for a Toeplitz system."""
    y = r * 0
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def softmax(x: Any) -> Any:
    """Softmax along the last axis."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def hdiff(f: Any, coefficient: Any) -> Any:
    """Horizontal diffusion with limited fluxes, as in weather models."""
    laplace = 4 * f[1:-1, 1:-1] - (f[2:, 1:-1] + f[:-2, 1:-1] + f[1:-1, 2:] + f[1:-1, :-2])
    flux = laplace[1:, 1:-1] - laplace[:-1, 1:-1]
    flux = np.where(flux * (f[2:-1, 2:-2] - f[1:-2, 2:-2]) > 0, 0, flux)
    other = laplace[1:-1, 1:] - laplace[1:-1, :-1]
    other = np.where(other * (f[2:-2, 2:-1] - f[2:-2, 1:-2]) > 0, 0, other)
    change = flux[1:, :] - flux[:-1, :] + other[:, 1:] - other[:, :-1]
    return f[2:-2, 2:-2] - coefficient[2:-2, 2:-2] * change


def nbody(pos: Any, mass: Any, vel: Any) -> Any:
    """Bodies that attract each other, with softened forces; all pairs at once."""
    for _ in range(3):
        apart = pos[None, :, :] - pos[:, None, :]
        inverse = ((apart**2).sum(2) + 0.01) ** -1
        vel += 0.01 * (apart * (inverse * np.sqrt(inverse))[:, :, None] * mass[:, :, None]).sum(1)
        pos += vel * 0.01
    return pos


def floyd_warshall(path: Any) -> Any:
    """Shortest paths between all pairs."""
    for k in range(path.shape[0]):
        path[:] = np.minimum(path, path[:, k][:, None] + path[k, :][None, :])
    return path


def gramschmidt(a: Any) -> Any:
    """Orthogonal columns, one after the other."""
    q = a * 0
    for k in range(a.shape[1]):
        q[:, k] = a[:, k] / np.sqrt(np.dot(a[:, k], a[:, k]))
        for j in range(k + 1, a.shape[1]):
            a[:, j] -= q[:, k] * np.dot(q[:, k], a[:, j])
    return q


def covariance(data: Any) -> Any:
    """Covariance of the columns."""
    centred = data - data.mean(0)
    return centred.T @ centred / (data.shape[0] - 1.0)


def correlation(data: Any) -> Any:
    """Correlation of the columns."""
    centred = data - np.mean(data, axis=0)
    centred = centred / np.sqrt((centred * centred).mean(0))
    return centred.T @ centred / data.shape[0]


def go_fast(a: Any) -> Any:
    """A matrix, shifted by the sum of the hyperbolic tangents of its diagonal."""
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def compute(x: Any, y: Any) -> Any:
    """Clipped values, scaled and added."""
    return np.clip(x, 0.2, 0.7) * 4 + y * 3 + 9


def arc_distance(t1: Any, p1: Any, t2: Any, p2: Any) -> Any:
    """Distances on the sphere."""
    near = np.sin((t2 - t1) / 2) ** 2 + np.cos(t1) * np.cos(t2) * np.sin((p2 - p1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(near), np.sqrt(1 - near))


def mlp(x: Any, w1: Any, w2: Any) -> Any:
    """Two layers of a network."""
    hidden = x @ w1
    hidden = hidden * (hidden > 0)
    return softmax(hidden @ w2)


def atax(a: Any, x: Any) -> Any:
    """A product with a matrix, and one with its transpose."""
    return (a @ x) @ a


def gemver(a: Any, u: Any, v: Any, x: Any) -> Any:
    """A rank-one update and products with the updated matrix."""
    updated = a + u[:, None] * v[None, :]
    y = 0.5 * (x @ updated)
    return updated @ y


def mandelbrot(c: Any) -> Any:
    """Iterations of a point of the plane until it leaves a disk."""
    z, count = c * 0, np.abs(c) * 0
    for _ in range(20):
        inside = abs(z) < 2.0
        count = count + inside
        z = np.where(inside, z * z + c, z)
    return count


def scattering(g: Any, d: Any) -> Any:
    """A self-energy: small matrix products, summed over energies and momenta."""
    total = g * 0
    for shift in range(g.shape[0]):
        total += np.roll(g, shift, axis=0) @ d[shift]
    return total


@dataclass(frozen=True)
class Kernel:
    """A kernel and the shapes of its arguments at two sizes.

    Attributes:
        run: the kernel.
        small: shapes.
        medium: shapes.
        kind: element type.
    """

    run: Callable[..., Any]
    small: tuple[tuple[int, ...], ...]
    medium: tuple[tuple[int, ...], ...]
    kind: str = "float64"

    def arguments(self, size: str) -> Arrays:
        """New arrays."""
        rng = np.random.default_rng(0)
        shapes = self.small if size == "S" else self.medium
        if self.kind == "complex128":
            return tuple(rng.random(s) * 3 - 2 + 1j * (rng.random(s) * 3 - 1.5) for s in shapes)
        return tuple(rng.random(s) + 0.1 for s in shapes)


KERNELS: dict[str, Kernel] = {
    "jacobi_1d": Kernel(jacobi_1d, ((3200,),) * 2, ((400_000,),) * 2),
    "jacobi_2d": Kernel(jacobi_2d, ((150, 150),) * 2, ((1000, 1000),) * 2),
    "heat_3d": Kernel(heat_3d, ((25, 25, 25),) * 2, ((110, 110, 110),) * 2),
    "fdtd_2d": Kernel(fdtd_2d, ((200, 220),) * 3, ((1000, 1200),) * 3),
    "conv2d": Kernel(conv2d, ((2, 32, 32, 3), (3, 3, 3, 8)), ((4, 96, 96, 3), (5, 5, 3, 16))),
    "deriche": Kernel(deriche, ((100, 80),), ((720, 480),)),
    "cavity_flow": Kernel(cavity_flow, ((61, 61),) * 3, ((701, 701),) * 3),
    "durbin": Kernel(durbin, ((400,),), ((2000,),)),
    "softmax": Kernel(softmax, ((8, 4, 32, 32),), ((16, 8, 128, 128),)),
    "hdiff": Kernel(hdiff, ((64, 64, 16),) * 2, ((132, 132, 80),) * 2),
    "nbody": Kernel(nbody, ((25, 3), (25, 1), (25, 3)), ((400, 3), (400, 1), (400, 3))),
    "floyd_warshall": Kernel(floyd_warshall, ((60, 60),), ((300, 300),)),
    "gramschmidt": Kernel(gramschmidt, ((60, 40),), ((300, 150),)),
    "covariance": Kernel(covariance, ((120, 100),), ((1400, 600),)),
    "correlation": Kernel(correlation, ((120, 100),), ((1400, 600),)),
    "go_fast": Kernel(go_fast, ((300, 300),), ((2000, 2000),)),
    "compute": Kernel(compute, ((200, 200),) * 2, ((2000, 1500),) * 2),
    "arc_distance": Kernel(arc_distance, ((10_000,),) * 4, ((1_000_000,),) * 4),
    "mlp": Kernel(mlp, ((8, 30), (30, 60), (60, 10)), ((64, 300), (300, 900), (900, 100))),
    "atax": Kernel(atax, ((150, 120), (120,)), ((2000, 1800), (1800,))),
    "gemver": Kernel(gemver, ((120, 120),) + ((120,),) * 3, ((1800, 1800),) + ((1800,),) * 3),
    "mandelbrot": Kernel(mandelbrot, ((60, 60),), ((400, 400),), "complex128"),
    "scattering": Kernel(scattering, ((4, 20, 8, 8),) * 2, ((8, 200, 16, 16),) * 2),
}
