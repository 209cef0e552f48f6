#!/usr/bin/env python3
"""Versions of a LAMMPS run as HDF5 files, one a rank: a copper crystal that melts, for the way of ratios over time (SC12, Figure 9).

Usage: bench/codecs_lammps.py FOLDER     LAMMPS' own restart files, one a rank, in FOLDER/restart; their records as HDF5 compounds in FOLDER/compound, and a file for each field in FOLDER/fields
"""
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

import h5py
import numpy as np

INTEGERS = ("id", "type", "ix", "iy", "iz")
INPUT = """units metal
atom_style atomic
boundary p p p
lattice fcc 3.615
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
pair_style eam
pair_coeff 1 1 {potential}
velocity all create 3200.0 376847 loop geom
neighbor 1.0 bin
fix 1 all nve
timestep 0.002
thermo 1000
dump d all custom {every} lmp-*.%.bin id type ix iy iz x y z vx vy vz
run {steps}
"""


def why_not():
    """Nothing where it can run."""
    if not shutil.which("lmp") or not shutil.which("mpirun"):
        return "lmp and mpirun (Debian: lammps, openmpi-bin) are not there"
    return None if potential() else "LAMMPS has no potential Cu_u3.eam here"


def potential():
    folders = [os.environ.get("LAMMPS_POTENTIALS", ""), "/usr/share/lammps/potentials"]
    return next((path for path in (os.path.join(folder, "Cu_u3.eam") for folder in folders) if os.path.exists(path)), None)


def read_dump(path):
    """One version of one rank: names of columns, and a row for each atom. The format is that of LAMMPS' tools/binary2txt.cpp, revision 2."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]
    magic = -take("q")
    if data[at:at + magic] != b"DUMPCUSTOM":
        raise ValueError(f"{path}: no binary dump of this kind")
    at += magic
    take("iiqqi6i6d")
    columns = take("i")
    units = take("i")
    at += units
    if take("b"):
        take("d")
    length = take("i")
    names = data[at:at + length].decode().split()
    at += length
    chunks = []
    for _ in range(take("i")):
        numbers = take("i")
        chunks.append(np.frombuffer(data, "<f8", numbers, at))
        at += 8 * numbers
    return names, np.concatenate(chunks).reshape(-1, columns)


def simulate(folder, text, ranks):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "in.eam"), "w") as file:
        file.write(text)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["mpirun", "--oversubscribe", "-np", str(ranks), "lmp", "-in", "in.eam", "-log", "none"], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("LAMMPS failed: " + (done.stderr or done.stdout)[-400:])


def restarts(folder, ranks=4, cells=28, steps=200):
    """Restart files as LAMMPS writes them, one a rank: eleven doubles an atom, of which the first says so."""
    text = INPUT.format(cells=cells, potential=potential(), every=steps, steps=steps)
    lines = [line for line in text.splitlines() if not line.startswith("dump")] + ["write_restart lmp.%.restart", ""]
    simulate(os.path.join(folder, "run"), "\n".join(lines), ranks)
    for name in ("restart", "compound", "fields"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    names = ["count", "x", "y", "z", "tag", "type", "mask", "image", "vx", "vy", "vz"]
    for rank in range(ranks):
        shutil.copy(os.path.join(folder, "run", f"lmp.{rank}.restart"), os.path.join(folder, "restart"))
        numbers = np.fromfile(os.path.join(folder, "run", f"lmp.{rank}.restart"), "<f8", offset=16)
        atoms = numbers[:len(numbers) // 11 * 11].reshape(-1, 11)
        atoms = np.ascontiguousarray(atoms[atoms[:, 0] == 11])
        with h5py.File(os.path.join(folder, "compound", f"lmp.{rank}.h5"), "w") as file:
            file["atoms"] = atoms.view([(name, "<f8") for name in names]).reshape(-1)
        for field, name in enumerate(names):
            np.save(os.path.join(folder, "fields", f"{rank}.{name}.npy"), np.ascontiguousarray(atoms[:, field]))


def run(folder, ranks=4, cells=14, versions=9, every=20):
    """The folders of the versions: folder/lammps-00 and on."""
    simulate(folder, INPUT.format(cells=cells, potential=potential(), every=every, steps=every * (versions - 1)), ranks)
    folders = []
    steps = sorted({int(re.match(r"lmp-(\d+)\.", os.path.basename(path)).group(1)) for path in glob.glob(os.path.join(folder, "lmp-*.bin"))})
    for version, step in enumerate(steps):
        folders.append(os.path.join(folder, f"lammps-{version:02d}"))
        os.makedirs(folders[-1], exist_ok=True)
        for rank in range(ranks):
            names, atoms = read_dump(os.path.join(folder, f"lmp-{step}.{rank}.bin"))
            with h5py.File(os.path.join(folders[-1], f"lmp_{step}.cpu{rank:04d}"), "w") as file:
                group = file.create_group("atoms")
                for column, name in enumerate(names):
                    group.create_dataset(name, data=atoms[:, column].astype(np.int32 if name in INTEGERS else np.float64))
    return folders


if __name__ == "__main__":
    if len(sys.argv) != 2 or why_not():
        sys.exit(why_not() or __doc__)
    restarts(sys.argv[1])
