#!/usr/bin/env python3
"""Files that describe themselves: `cairn describe` sees in them what the packages wrote that own the formats, and `cairn watch` stores them in less room, and gives them back byte for byte.

Usage: CAIRN_BUILD=build/release python3 tests/describe_test.py [Class[.test]]
"""
import json
import os
import subprocess
import unittest

from support import BUILD, Nodes

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# One field of three axes, as computed: smooth, with noise in the lower bits. Prints what is in each file: name, type in numpy's words, shape, and the bytes' checksum.
WRITE = """
import hashlib, json, sys
import numpy as np
folder = sys.argv[1]
x, y, z = np.meshgrid(*[np.linspace(0, 3, n) for n in (37, 41, 43)], indexing="ij")
smooth = np.sin(x + y) * np.cos(y * z) + 2
rng = np.random.default_rng(1)
field = smooth * (1 + 1e-9 * rng.standard_normal(smooth.shape))
arrays = {"density": field, "velocity/x": (field * 3).astype(">f4"), "ids": np.arange(5000, dtype="<i8").reshape(50, 100), "mask": (field > 2).astype("u1")}
told = {}

def tell(file, written):
    told[file] = {name: [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()] for name, array in written.items()}

np.save(folder + "/a.1.npy", field)
tell("a.1.npy", {"": field})
np.save(folder + "/f.1.npy", np.asfortranarray(field))
tell("f.1.npy", {"": np.ascontiguousarray(field.T)})
np.savez(folder + "/a.1.npz", **{name.replace("/", "_"): array for name, array in arrays.items()})
tell("a.1.npz", {name.replace("/", "_"): array for name, array in arrays.items()})
from safetensors.numpy import save_file
native = {name: array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()}
save_file(native, folder + "/a.1.safetensors")
tell("a.1.safetensors", native)
import h5py
with h5py.File(folder + "/a.1.h5", "w", libver=("earliest", "v108")) as file:
    for name, array in arrays.items():
        file[name] = array
tell("a.1.h5", arrays)
print(json.dumps(told))
"""


def python(code, *arguments):
    environment = os.path.join(BUILD, "python")
    subprocess.run([os.path.join(ROOT, "scripts", "python-environment"), environment], check=True, timeout=240)
    done = subprocess.run([os.path.join(environment, "bin", "python"), "-c", code, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


TYPES = {"f8": "f64", "f4": "f32", "i8": "i64", "u1": "u8"}


class Files(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=1, flush_leaders=1, flush_codec="fast", daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)
        self.folder = os.path.join(self.nodes.shared, "files")
        os.mkdir(self.folder)

    def describe(self, *files):
        code, out, err = self.nodes.cairn("describe", *[os.path.join(self.folder, file) for file in files], "--json")
        self.assertEqual(code, 0, out + err)
        return {os.path.basename(each["file"]): each for each in json.loads(out)["files"]}

    def read(self, folder, file):
        with open(os.path.join(folder, file), "rb") as opened:
            return opened.read()

    def test_arrays_are_where_the_packages_wrote_them(self):
        import hashlib
        told = python(WRITE, self.folder)
        described = self.describe(*told)
        for file, written in told.items():
            content = self.read(self.folder, file)
            seen = {each["name"]: each for each in described[file]["extents"]}
            self.assertEqual(sorted(seen), sorted(written), file)
            for name, (kind, shape, checksum) in written.items():
                extent = seen[name]
                self.assertEqual((extent["type"], extent["shape"]), (TYPES[kind[1:]], shape), (file, name))
                self.assertEqual(extent["big_endian"], kind[0] == ">", (file, name))
                data = content[extent["offset"]:extent["offset"] + extent["length"]]
                self.assertEqual(hashlib.sha256(data).hexdigest(), checksum, (file, name))
            self.assertGreater(described[file]["described_bytes"], 0.99 * len(content), file)

    def test_what_is_no_such_file_is_told(self):
        for name, content in {"a.txt": b"no numbers", "empty": b"", "b.npy": b"\x93NUMPY\x01\x00"}.items():
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(content)
        described = self.describe("a.txt", "empty", "b.npy")
        self.assertEqual([each["described_bytes"] for each in described.values()], [0, 0, 0])
        self.assertIn("no format", described["a.txt"]["why"])
        self.assertIn("npy: ", described["b.npy"]["why"])
        code, out, _ = self.nodes.cairn("describe", os.path.join(self.folder, "b.npy"))
        self.assertEqual(code, 0)
        self.assertIn("0.0 %", out)
        code, _, err = self.nodes.cairn("describe", os.path.join(self.folder, "none"))
        self.assertEqual(code, 2, err)

    def stored(self, series, pattern):
        """How long the version's part is; what comes back is what was taken."""
        code, out, err = self.nodes.cairn("watch", "--name", series, "--pattern", pattern, "-d", self.folder, "--once")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.nodes.cairn("verify", series)[0], 0)
        back = os.path.join(self.nodes.shared, "back-" + series)
        code, out, err = self.nodes.cairn("extract", series, "--files", back)
        self.assertEqual(code, 0, out + err)
        (file,) = os.listdir(back)
        self.assertEqual(self.read(back, file), self.read(self.folder, file), file)
        (part,) = [path for path in self.nodes.files(series, 1) if "part-" in path]
        return os.stat(part).st_size

    def test_files_are_predicted_along_their_axes_and_come_back(self):
        """Beside the same file behind eight bytes that hide what it is."""
        for file in python(WRITE, self.folder):
            with self.subTest(file):
                with open(os.path.join(self.folder, "hidden." + file), "wb") as hidden:
                    hidden.write(b"whatever" + self.read(self.folder, file))
                name, _, kind = file.split(".")
                described = self.stored(f"{name}-{kind}", f"{name}.{{version}}.{kind}")
                self.assertLess(described, 0.96 * self.stored(f"hidden-{name}-{kind}", f"hidden.{name}.{{version}}.{kind}"))


if __name__ == "__main__":
    unittest.main()
