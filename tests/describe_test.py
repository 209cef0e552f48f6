#!/usr/bin/env python3
"""Files that describe themselves: `cairn describe` sees in them what the packages wrote that own the formats, and `cairn watch` stores them in less room, and gives them back byte for byte.

Usage: CAIRN_BUILD=build/release python3 tests/describe_test.py [Class[.test]]
"""
import json
import os
import subprocess
import unittest

from support import BUILD, INVALID, NOT_FOUND, Nodes

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


# Records of fields that are smooth along them, and the same with a dataset for each field; and a field of two axes behind a header of 40 bytes, which no format describes.
RECORDS = """
import json, sys
import h5py
import numpy as np
folder = sys.argv[1]
rng = np.random.default_rng(1)
x = np.linspace(0, 30, 20000)
fields = [(2 + np.sin(x * (1 + i / 5) + i)) * 10.0 ** (i - 5) * (1 + 1e-9 * rng.standard_normal(len(x))) for i in range(14)]
records = np.zeros(len(x), np.dtype([(f"f{i}", "<f8") for i in range(14)] + [("step", "<i4"), ("of", "<i4")]))
for i, field in enumerate(fields):
    records[f"f{i}"] = field
records["step"] = np.arange(len(x))
with h5py.File(folder + "/r.1.h5", "w", libver=("earliest", "v108")) as file:
    file["table"] = records
with h5py.File(folder + "/f.1.h5", "w", libver=("earliest", "v108")) as file:
    for name in records.dtype.names:
        file[name] = records[name]
x, y = np.meshgrid(*[np.linspace(0, 3, n) for n in (400, 300)], indexing="ij")
with open(folder + "/r.1.dat", "wb") as file:
    file.write(b"a program's own header, of 40 bytes now." + ((np.sin(x + y) * np.cos(x * y) + 2) * (1 + 1e-9 * rng.standard_normal(x.shape))).tobytes())
print(json.dumps([]))
"""

RULES = """
[[rule]]
files = "r.*.dat"
offset = 40
type = "<f8"
shape = [-1, 300]
name = "table"
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
        self.assertEqual(self.nodes.cairn("verify", series, "--decode")[0], 0)
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


    def hide(self, file):
        with open(os.path.join(self.folder, "hidden." + file), "wb") as hidden:
            hidden.write(b"whatever" + self.read(self.folder, file))

    def test_records_take_as_little_as_their_fields(self):
        """Also where nobody tells of them."""
        python(RECORDS, self.folder)
        (table,) = self.describe("r.1.h5")["r.1.h5"]["extents"]
        self.assertEqual((table["name"], table["type"], table["shape"]), ("table", "u64", [20000, 15]))
        self.hide("r.1.h5")
        fields = self.stored("fields", "f.{version}.h5")
        self.assertLess(self.stored("records", "r.{version}.h5"), 1.04 * fields)
        self.assertLess(self.stored("hidden-records", "hidden.r.{version}.h5"), 1.04 * fields)

    def rules(self, text):
        path = os.path.join(self.nodes.shared, "rules.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_a_rule_describes_what_no_format_does(self):
        """The daemon reads it when it starts: the first one has none."""
        python(RECORDS, self.folder)
        plain = self.stored("plain", "r.{version}.dat")
        self.assertEqual(self.nodes.cairn("stop")[0], 0)
        self.nodes.settings["describe_rules"] = self.rules(RULES)
        ruled = self.stored("ruled", "r.{version}.dat")
        self.assertLess(ruled, 0.96 * plain)
        described = self.describe("r.1.dat")["r.1.dat"]
        self.assertEqual((described["format"], described["extents"][0]["shape"], described["extents"][0]["offset"]), ("rule", [400, 300], 40))

    def test_rules_that_are_wrong_are_named(self):
        with open(os.path.join(self.folder, "a.1.dat"), "wb") as file:
            file.write(bytes(100))
        file = os.path.join(self.folder, "a.1.dat")
        wrong = self.rules(RULES + '[[rule]]\nfiles = "*"\ntype = "f8"\n')
        says = r'rules.toml:8: rule 2: type = "f8" does not say the byte order: write "<f8"'
        code, _, err = self.nodes.cairn("describe", file, "--rules", wrong)
        self.assertEqual(code, INVALID)
        self.assertRegex(err, says)
        code, _, err = self.nodes.cairn("describe", file, "--rules", wrong + ".none")
        self.assertEqual(code, NOT_FOUND, err)
        self.nodes.settings["describe_rules"] = wrong
        for command in (("watch", "--name", "a", "--pattern", "a.{version}.dat", "-d", self.folder, "--once"), ("start",)):
            code, out, err = self.nodes.cairn(*command)
            self.assertNotEqual(code, 0, out)
            self.assertRegex(err, says)


if __name__ == "__main__":
    unittest.main()
