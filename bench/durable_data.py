"""Larger sets of checkpoint files from small ones: copies that differ. Each copy of a file has every array of floating point numbers multiplied by a random factor of the copy's own, so that no two blocks are
equal and what a codec makes of them stays what it was.

Usage: python durable_data.py FROM TO BYTES FOLDERS     needs h5py; TO/0 ... get the copies in turn
"""
import os
import shutil
import sys

import h5py
import numpy as np


def scale(path, factor):
    """Every floating point dataset of an HDF5 file; what is no HDF5 file stays as it is."""
    if not h5py.is_hdf5(path):
        return
    with h5py.File(path, "r+") as file:
        def visit(_, thing):
            if isinstance(thing, h5py.Dataset) and thing.dtype.kind == "f" and thing.size > 0:
                with np.errstate(over="ignore", invalid="ignore"):
                    thing[...] = thing[...] * thing.dtype.type(factor)
        file.visititems(visit)


def enlarge(source, target, wanted_bytes, folders):
    files = sorted(os.path.join(where, name) for where, _, names in os.walk(source) for name in names)
    if not files:
        raise SystemExit(f"{source}: no file is below it")
    for folder in range(folders):
        os.makedirs(os.path.join(target, str(folder)))
    rng = np.random.default_rng(20)
    have, copy = 0, 0
    while have < wanted_bytes:
        for number, file in enumerate(files):
            name = os.path.join(target, str(number * folders // len(files)), f"{copy:04d}.{os.path.basename(file)}")
            shutil.copyfile(file, name)
            scale(name, float(rng.uniform(0.5, 2.0)))
            have += os.path.getsize(name)
        copy += 1


if __name__ == "__main__":
    enlarge(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
