# A nonlinear wave in three dimensions: differences of fourth order, Runge-Kutta of fourth order, periodic sides.
import sys
import numpy as np

cells, steps = int(sys.argv[1]), int(sys.argv[2])
spacing = 1.0 / cells
time_step = 0.25 * spacing


def laplacian(u):
    result = -7.5 * u
    for axis in range(3):
        result += (4 / 3) * (np.roll(u, 1, axis) + np.roll(u, -1, axis))
        result -= (1 / 12) * (np.roll(u, 2, axis) + np.roll(u, -2, axis))
    return result / spacing**2


def dissipation(u):
    result = 18.0 * u
    for axis in range(3):
        result -= 4 * (np.roll(u, 1, axis) + np.roll(u, -1, axis))
        result += np.roll(u, 2, axis) + np.roll(u, -2, axis)
    return -0.01 / spacing * result


def change(u, v):
    return v + dissipation(u), laplacian(u) - u * u * u + dissipation(v)


x, y, z = np.meshgrid(*[np.arange(cells) * spacing - 0.5] * 3, indexing="ij")
u = np.reciprocal(1 + 60 * (x * x + 2 * y * y + z * z))
v = np.zeros_like(u)
for step in range(steps):
    a, b = change(u, v)
    c, d = change(u + time_step / 2 * a, v + time_step / 2 * b)
    e, f = change(u + time_step / 2 * c, v + time_step / 2 * d)
    g, h = change(u + time_step * e, v + time_step * f)
    u = u + time_step / 6 * (a + 2 * c + 2 * e + g)
    v = v + time_step / 6 * (b + 2 * d + 2 * f + h)
    print(step, "%.12e %.12e" % (u[0, 0, 0], (u * u).sum()))
