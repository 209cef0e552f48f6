#!/usr/bin/env python3
"""Files that describe themselves: `cairn describe` sees in them what the packages wrote that own the formats, and `cairn watch` stores them in less room, and gives them back byte for byte.

Usage: CAIRN_BUILD=build/release python3 tests/describe_test.py [Class[.test]]
"""
import collections
import io
import json
import math
import os
import pickle
import random
import subprocess
import sys
import types
import unittest
import unittest.mock
import zipfile

from support import BUILD, F64, INVALID, NEWEST, NOT_FOUND, OK, Nodes

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

# Many short arrays whose names differ by a number.
SHORT = """
import json, sys
import numpy as np
rng = np.random.default_rng(1)
np.savez(sys.argv[1] + "/s.1.npz", **{f"v{i}": 100 + rng.standard_normal(150) for i in range(400)})
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


# A program that keeps a file of its own form, or the same bytes through callbacks, and says what lies in it or does not. The second version is shorter than was said.
CALL = """
U64, VOID = ctypes.c_uint64, ctypes.c_void_p
s = Session({series!r})
with open({path!r}, "rb") as file:
    content = file.read()
contents = {{1: content, 2: content[:len(content) // 3]}}
now, back = [content], [b""]
if {callbacks}:
    def write(_, into, length):
        ctypes.memmove(into, now[0], length)
        return 0
    def read(_, source, length):
        back[0] = ctypes.string_at(source, length)
        return 0
    def size(_, place):
        place[0] = len(now[0])
        return 0
    MOVE = ctypes.CFUNCTYPE(ctypes.c_int, VOID, VOID, U64)
    kept = ctypes.CFUNCTYPE(ctypes.c_int, VOID, ctypes.POINTER(U64))(size), MOVE(write), MOVE(read)
    told = [s.lib.cairn_protect_callbacks(s.handle, b"made", *kept, VOID())]
else:
    told = [s.lib.cairn_route_file(s.handle, b"made", {path!r}.encode())]
describe = lambda offset, kind, *shape: s.lib.cairn_describe(s.handle, b"made", U64(offset), kind, len(shape), (U64 * len(shape))(*shape), b"grid/field")
for offset, kind, shape in {arrays}:
    told.append(describe(offset, kind, *shape))
    told.append(describe(offset, kind, *shape) == INVALID and "by an earlier description" in s.text())
for version in contents:
    now[0] = contents[version]
    with open({path!r}, "wb") as file:
        file.write(now[0])
    told += [s.checkpoint(version), s.wait(version)]
with open({path!r}, "wb") as file:
    file.write(b"other")
told.append(s.restore()[0])
if not {callbacks}:
    with open({path!r}, "rb") as file:
        back[0] = file.read()
told.append(back[0] == contents[2])
with open({path!r}, "wb") as file:
    file.write(content)
tell(told)
s.close()
"""


class Storage:
    """Of PyTorch's, what its files need: their bytes lie under this key."""
    def __init__(self, key, numbers):
        self.key, self.numbers = key, numbers


class Tensor:
    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape


def save_as_torch_does(path, shapes):
    """{name: shape} of f32, as torch.save() of a state_dict leaves it: a pickle that names storages, and an entry for each; what each storage holds. PyTorch itself is gigabytes, so it is no package of the tests."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    utils._rebuild_tensor_v2 = lambda *arguments: arguments
    utils._rebuild_tensor_v2.__module__, utils._rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return ("storage", torch.FloatStorage, value.key, "cpu", value.numbers) if isinstance(value, Storage) else None

        def reducer_override(self, value):
            if not isinstance(value, Tensor):
                return NotImplemented
            strides = tuple(math.prod(value.shape[axis + 1:]) for axis in range(len(value.shape)))
            return utils._rebuild_tensor_v2, (value.storage, 0, value.shape, strides, False, collections.OrderedDict())

    stored = {name: random.Random(name).randbytes(4 * math.prod(shape)) for name, shape in shapes.items()}
    pickled = io.BytesIO()
    with unittest.mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        Pickler(pickled, protocol=2).dump({name: Tensor(Storage(str(key), math.prod(shape)), shape) for key, (name, shape) in enumerate(shapes.items())})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {"data.pkl": pickled.getvalue(), "byteorder": b"little", **{f"data/{key}": content for key, content in enumerate(stored.values())}, "version": b"3\n"}.items():
            archive.writestr("weights/" + name, content)
    return stored


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

    def test_tensors_of_a_model_are_described(self):
        shapes = {f"layers.{layer}.{name}": shape for layer in range(6) for name, shape in {"attention.weight": (576, 192), "attention.bias": (576,), "wide.weight": (768, 192), "norm.weight": (192,)}.items()}
        stored = save_as_torch_does(os.path.join(self.folder, "weights.pt"), shapes)
        described, content = self.describe("weights.pt")["weights.pt"], self.read(self.folder, "weights.pt")
        seen = {each["name"]: each for each in described["extents"]}
        self.assertEqual({name: (tuple(each["shape"]), each["type"]) for name, each in seen.items()}, {name: (shape, "f32") for name, shape in shapes.items()})
        for name, each in seen.items():
            self.assertEqual(content[each["offset"]:each["offset"] + each["length"]], stored[name], name)
        self.assertGreater(described["described_bytes"], 0.99 * len(content))

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

    def test_which_names_are_alike_is_a_setting(self):
        """Arrays with one key are encoded side by side. The daemon reads it when it starts."""
        python(SHORT, self.folder)
        sizes = {}
        for rule in ("groups", "all"):
            self.nodes.settings["describe_names"] = rule
            sizes[rule] = self.stored("short-" + rule, "s.{version}.npz")
            self.assertEqual(self.nodes.cairn("stop")[0], 0)
            keys = {extent["key"] for extent in self.describe("s.1.npz")["s.1.npz"]["extents"]}
            self.assertEqual(keys, {"v# f64"} if rule == "all" else {f"v{i} f64" for i in range(400)})
        self.assertLess(sizes["all"], 0.95 * sizes["groups"])

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


class Calls(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=1, flush_leaders=1, flush_codec="fast", daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)
        self.path = os.path.join(self.nodes.shared, "r.1.dat")
        python(RECORDS, self.nodes.shared)
        with open(self.path, "rb") as file:
            self.content = b"!" + file.read()
        with open(self.path, "wb") as file:
            file.write(self.content)

    def stored(self, series, arrays=(), callbacks=False):
        """How long the parts of the two versions are, of which both come back byte for byte."""
        (told,) = self.nodes.run(CALL.format(series=series, path=self.path, callbacks=callbacks, arrays=list(arrays)))
        self.assertEqual(told, [OK] + [OK, True] * len(arrays) + [OK] * 4 + [OK, True])
        for version, length in ((1, len(self.content)), (2, len(self.content) // 3)):
            back = os.path.join(self.nodes.shared, f"{series}.{version}")
            code, out, err = self.nodes.cairn("extract", series, version, "--rank", 0, "--region", "made", "-o", back)
            self.assertEqual(code, 0, out + err)
            with open(back, "rb") as file:
                self.assertEqual(file.read(), self.content[:length])
        self.assertEqual(self.nodes.cairn("verify", series, "--decode")[0], 0)
        return [os.stat(path).st_size for version in (1, 2) for path in self.nodes.files(series, version) if "part-" in path]

    def test_a_call_describes_what_no_format_does(self):
        """A field of doubles behind a header of 41 bytes, in a routed file and through callbacks. The second version lacks most of the rows that were said."""
        plain = self.stored("plain")
        to_end, fixed = [(41, F64, (NEWEST, 300))], [(41, F64, (400, 300))]
        for series, arrays, callbacks in (("routed", to_end, False), ("fixed", fixed, False), ("called", to_end, True)):
            with self.subTest(series):
                for described, bare in zip(self.stored(series, arrays, callbacks), plain):
                    self.assertLess(described, 0.96 * bare)
        (region,) = json.loads(self.nodes.cairn("show", "routed", "--json")[1])["images"][0]["regions"]
        self.assertEqual(region["described"], [{"name": "grid/field", "type": "f64", "big_endian": False, "shape": [-1, 300], "offset": 41}])
        self.assertIn("described as 1 array", self.nodes.cairn("show", "routed")[1])

    def test_a_call_goes_before_rules(self):
        """Which say the wrong thing here: big-endian numbers."""
        with open(os.path.join(self.nodes.shared, "rules.toml"), "w", encoding="utf-8") as file:
            file.write('[[rule]]\nfiles = "made"\noffset = 42\ntype = ">f8"\n')
        self.nodes.settings["describe_rules"] = file.name
        ruled, called = self.stored("ruled"), self.stored("called", [(41, F64, (NEWEST, 300))])
        self.assertLess(called[0], 0.96 * ruled[0])

    def test_what_is_wrong_of_an_array_costs_room_and_no_bit(self):
        self.stored("wrong", [(0, 7 | 256, (7, 3)), (200, 14, (NEWEST, 11)), (180, 2, (20,))])


if __name__ == "__main__":
    unittest.main()
