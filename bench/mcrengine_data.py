"""One HDF5 file a process from the small files of a set: each process has some of the set's files, and copies of them that differ (durable_data.py), as groups of its one file.

Usage: python mcrengine_data.py FROM TO BYTES_EACH PROCESSES NODES     needs h5py; TO/0 ... get the processes of each node, which are a group, and TO/group-0.raw ... all its files, one after the other
"""
import os
import sys

import h5py
import numpy as np


def numbers(group, factor):
    """Every floating point array below it, multiplied."""
    def visit(_, thing):
        if isinstance(thing, h5py.Dataset) and thing.dtype.kind == "f" and thing.size > 0:
            with np.errstate(over="ignore", invalid="ignore"):
                thing[...] = thing[...] * thing.dtype.type(factor)
    group.visititems(visit)


def mine(files, process, processes):
    """The set's files that are this process's: its share, at least one, neighbours together."""
    first = process * len(files) // processes
    return files[first:max(first + 1, (process + 1) * len(files) // processes)]


def make(path, files, wanted_bytes, rng):
    have, copy = 0, 0
    with h5py.File(path, "w") as target:
        while have < wanted_bytes:
            for number, name in enumerate(files):
                with h5py.File(name, "r") as source:
                    group = target.create_group(f"copy{copy:04d}.{number:04d}")
                    for each in source:
                        source.copy(each, group)
                numbers(group, float(rng.uniform(0.5, 2.0)))
                have += os.path.getsize(name)
            copy += 1


def main(source, target, wanted_bytes, processes, nodes):
    files = [name for name in sorted(os.path.join(where, name) for where, _, names in os.walk(source) for name in names) if h5py.is_hdf5(name)]
    if not files:
        raise SystemExit(f"{source}: no HDF5 file is below it")
    rng = np.random.default_rng(20)
    for node in range(nodes):
        os.makedirs(os.path.join(target, str(node)))
    for process in range(processes):
        node = process * nodes // processes
        make(os.path.join(target, str(node), f"rank{process:04d}.h5"), mine(files, process, processes), wanted_bytes, rng)
    for node in range(nodes):
        with open(os.path.join(target, f"group-{node}.raw"), "wb") as whole:
            for name in sorted(os.listdir(os.path.join(target, str(node)))):
                with open(os.path.join(target, str(node), name), "rb") as file:
                    whole.write(file.read())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
