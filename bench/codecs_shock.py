#!/usr/bin/env python3
"""A small shock code of our own: checkpoints of a blast in two dimensions, as many versions and ranks as one likes, for `make bench-codecs`.

Usage: bench/codecs_shock.py FOLDER [--cells N] [--width CELLS] [--ranks M] [--versions V] [--distribution blocks|rows|zones] [--groups G]

The Euler equations of an ideal gas, finite volumes, the slopes limited (MUSCL, minmod), HLL at the faces, Heun's steps; a layered gas with a dense ball in it, blown up near a corner. So there are shocks,
contact lines, smooth flow, and gas that nothing has reached yet. Each version is a folder of HDF5 files, one a rank, as Enzo's are: a group for the rank's grid, arrays of doubles, of floats, of integers, and scalars.

--distribution blocks gives each rank a rectangle (SC12, Figure 1a: segmented); rows deals rows out in turn, rank r has rows r, r + M, r + 2M ..., and zones does so with cells (Figure 1b: strided).
--groups G adds what codes with radiation have: the opacities of each cell for G groups of photons, looked up in a table by material and temperature. Cells side by side often have the same.
"""
import argparse
import os

import numpy as np

GAMMA = 1.4


def initial(cells, width):
    """Density, momenta, energy; which material each cell is of."""
    y, x = np.meshgrid((np.arange(cells) + 0.5) / cells, (np.arange(width) + 0.5) / width, indexing="ij")
    material = 1 + (y * 5 + 0.4 * np.sin(6 * x)).astype(np.int32)
    density = 1.0 + 0.25 * material
    ball = (x - 0.62) ** 2 + (y - 0.55) ** 2 < 0.02
    density[ball], material[ball] = 4.0, 9
    pressure = 0.1 * np.exp(-0.5 * y)
    pressure[(x - 0.3) ** 2 + (y - 0.3) ** 2 < 0.004] = 40.0
    zero = np.zeros_like(density)
    return np.stack([density, zero, zero.copy(), pressure / (GAMMA - 1)]), material


def primitive(u):
    density, velocity_x, velocity_y = u[0], u[1] / u[0], u[2] / u[0]
    return np.stack([density, velocity_x, velocity_y, np.maximum((GAMMA - 1) * (u[3] - 0.5 * density * (velocity_x ** 2 + velocity_y ** 2)), 1e-8)])


def flux(w, axis):
    density, velocity, pressure = w[0], w[1 + axis], w[3]
    energy = pressure / (GAMMA - 1) + 0.5 * density * (w[1] ** 2 + w[2] ** 2)
    f = np.stack([density * velocity, density * w[1] * velocity, density * w[2] * velocity, (energy + pressure) * velocity])
    f[1 + axis] += pressure
    return f, np.stack([density, density * w[1], density * w[2], energy])


def along(w, axis):
    """What flows out of each cell along an axis (0: x, the last): differences of HLL fluxes."""
    at = 2 - axis
    padded = np.pad(w, [(0, 0)] + [(2, 2) if n == at else (0, 0) for n in (1, 2)], mode="edge")
    step = np.diff(padded, axis=at)
    less = np.moveaxis(step, at, 0)
    slope = np.where(less[1:] * less[:-1] > 0, np.where(np.abs(less[1:]) < np.abs(less[:-1]), less[1:], less[:-1]), 0.0)
    cells = np.moveaxis(padded, at, 0)[1:-1]
    left, right = np.moveaxis(cells + 0.5 * slope, 0, at), np.moveaxis(cells - 0.5 * slope, 0, at)
    cut = [slice(None)] * 3
    cut[at] = slice(None, -1)
    left = left[tuple(cut)]
    cut[at] = slice(1, None)
    right = right[tuple(cut)]
    f_left, u_left = flux(left, axis)
    f_right, u_right = flux(right, axis)
    sound = [np.sqrt(GAMMA * side[3] / side[0]) for side in (left, right)]
    low = np.minimum(np.minimum(left[1 + axis] - sound[0], right[1 + axis] - sound[1]), 0)
    high = np.maximum(np.maximum(left[1 + axis] + sound[0], right[1 + axis] + sound[1]), 0)
    return np.diff((high * f_left - low * f_right + low * high * (u_right - u_left)) / (high - low), axis=at)


def advance(u, dx, dy, seconds):
    """To so much later, in as many steps as are stable."""
    while seconds > 0:
        w = primitive(u)
        fastest = max(((np.abs(w[1]) + np.sqrt(GAMMA * w[3] / w[0])) / dx).max(), ((np.abs(w[2]) + np.sqrt(GAMMA * w[3] / w[0])) / dy).max())
        step = min(seconds, 0.4 / fastest)
        change = [along(w, 0) / dx + along(w, 1) / dy]
        w = primitive(u - step * change[0])
        u = u - 0.5 * step * (change[0] + along(w, 0) / dx + along(w, 1) / dy)
        seconds -= step
    return u


def owned(array, rank, ranks, distribution):
    """The part of a global array that a rank has."""
    if distribution == "rows":
        return array[rank::ranks]
    if distribution == "zones":
        return array.reshape(-1, *array.shape[2:])[rank::ranks]
    side = int(round(ranks ** 0.5))
    while ranks % side:
        side -= 1
    rows, columns = array.shape[0] // side, array.shape[1] // (ranks // side)
    row, column = divmod(rank, ranks // side)
    return array[row * rows:(row + 1) * rows, column * columns:(column + 1) * columns]


def opacities(material, temperature, groups, bins_a_decade=24):
    """Of each cell, for each group: a power of the temperature's bin, with edges that belong to the material."""
    random = np.random.default_rng(7)
    at = (np.arange(groups) + 0.5) / groups
    table = np.exp(random.normal(size=(10, groups)).cumsum(axis=1) * 0.05) * np.exp(-3 * at)
    temperature_bin = np.round(np.log10(temperature) * bins_a_decade) / bins_a_decade
    return table[material] * (10.0 ** temperature_bin[..., None]) ** (-3.5 + at)


def save(folder, version, time, u, material, ranks, distribution, groups=0):
    import h5py
    w = primitive(u)
    reached = (np.abs(w[1]) + np.abs(w[2]) > 1e-9).astype(np.int32)
    arrays = {"Density": w[0], "x-velocity": w[1], "y-velocity": w[2], "TotalEnergy": u[3] / u[0], "Temperature": (w[3] / w[0]).astype(np.float32), "Pressure": w[3].astype(np.float32),
              "Material": material, "Reached": reached}
    if groups:
        arrays["Opacity"] = opacities(material, w[3] / w[0], groups)
    os.makedirs(folder, exist_ok=True)
    for rank in range(ranks):
        with h5py.File(os.path.join(folder, f"shock{version:04d}.cpu{rank:04d}"), "w") as file:
            group = file.create_group(f"Grid{rank + 1:08d}")
            for name, array in arrays.items():
                group.create_dataset(name, data=np.ascontiguousarray(owned(array, rank, ranks, distribution)))
            group.create_dataset("Time", data=np.float64(time))
            group.create_dataset("Cycle", data=np.int64(version))
            group.create_dataset("Corner", data=np.array([rank, ranks, version], dtype=np.int32))


def run(folder, cells=256, ranks=16, versions=10, distribution="blocks", width=None, groups=0, name="shock", seconds=0.24):
    """The folders of the versions: folder/NAME-00 and on. The first one is the initial state."""
    width = width or cells
    u, material = initial(cells, width)
    folders = []
    for version in range(versions):
        if version:
            u = advance(u, 1 / width, 1 / cells, seconds / (versions - 1))
        folders.append(os.path.join(folder, f"{name}-{version:02d}"))
        save(folders[-1], version, version * seconds / max(1, versions - 1), u, material, ranks, distribution, groups)
    return folders


def main():
    parser = argparse.ArgumentParser(description="a small shock code")
    parser.add_argument("folder")
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--width", type=int, help="cells of a row (as many as there are rows)")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--versions", type=int, default=10)
    parser.add_argument("--distribution", choices=("blocks", "rows", "zones"), default="blocks")
    parser.add_argument("--groups", type=int, default=0, help="of photons, whose opacities each cell has")
    wanted = parser.parse_args()
    for folder in run(wanted.folder, wanted.cells, wanted.ranks, wanted.versions, wanted.distribution, wanted.width, wanted.groups):
        print(folder)


if __name__ == "__main__":
    main()
