#!/usr/bin/env python3
"""Parts that are safetensors files, with their index beside them: the safetensors package reads them, and to Cairn they are versions like any other.

Of class Files safetensors_testing (src/format) writes them, with Cairn's own format code and without a gap; of class Layout real daemons do, with flush.layout = safetensors.
The package takes neither gaps nor bytes behind the tensors, so what it reads is nothing else.
Usage: CAIRN_BUILD=build/release python3 tests/safetensors_test.py [Class[.test]]
"""
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import unittest

from support import BUILD, OK, Nodes, find

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "examples", "reader"))
import reader  # noqa: E402

TYPES = {"F64": (8, 12), "F32": (4, 11), "I64": (8, 7), "F16": (2, 9), "I32": (4, 5), "I16": (2, 3), "I8": (1, 1), "U8": (1, 2)}  # bytes, and the number in cairn.h
# rank, name, type, shape; in the order in which files have them: by size of the type, as the package itself writes them, and so of both ranks in turn.
TENSORS = [
    (0, "layers.0.weight", "F64", [33, 71]),
    (1, "layers.1.weight", "F64", [1]),
    (1, "optimizer/step", "I64", []),
    (0, "layers.0.bias", "F32", [1021]),
    (1, "layers.1.none", "F32", [0, 3]),
    (1, "layers.1.bias", "F32", [5, 5, 5]),
    (0, "positions", "I32", [7]),
    (1, "layers.1.half", "F16", [4099]),
    (0, "layers.0.pairs", "I16", [3, 1]),
    (0, "layers.0.mask", "U8", [12_289]),
    (1, "tokens", "U8", [8191]),
    (1, "signs", "I8", [3]),
]
RANKS = 2
PROTECTED = [each for each in TENSORS if each[3] and 0 not in each[3]]  # cairn_protect takes neither a single number nor an empty array
LAYOUTS = {"part": 1, "rank": RANKS, "node": RANKS}  # files of each


def length(dtype, shape):
    count = 1
    for dimension in shape:
        count *= dimension
    return count * TYPES[dtype][0]


def content(name, dtype, shape):
    return random.Random(name).randbytes(length(dtype, shape))


def image(rank):
    return b"".join(content(*tensor) for each, *tensor in TENSORS if each == rank)


def with_a_gap(file):
    """The same safetensors file with one byte between its last two tensors."""
    data = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:data])
    last = max(header.values(), key=lambda tensor: tensor["data_offsets"])
    begin = data + last["data_offsets"][0]
    last["data_offsets"] = [offset + 1 for offset in last["data_offsets"]]
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + file[data:begin] + b"\0" + file[begin:]


# What the package has of a file: by each of its two ways of reading, or what it says against it.
PACKAGE = """
import json, sys
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file
told = lambda array: [array.dtype.name, list(array.shape), array.tobytes().hex()]
try:
    with safe_open(sys.argv[1], framework="numpy") as file:
        opened = {name: told(file.get_tensor(name)) for name in file.keys()}
    print(json.dumps([opened, {name: told(array) for name, array in load_file(sys.argv[1]).items()}]))
except SafetensorError as error:
    print(json.dumps(str(error)))
"""
NUMPY = {"F": "float", "I": "int", "U": "uint"}

RESTORE = """
import random
s = Session({series!r}, {rank}, 2, job={series!r})
tensors = {tensors}
protected = [s.protect(name, bytes(size), kind, shape) for name, kind, shape, size in tensors]
restored = s.restore(1)
same = [s.buffers[name].raw[:size] == random.Random(name).randbytes(size) for name, kind, shape, size in tensors]
text = s.text()
tell([protected, restored, text, same, s.checkpoint(2), s.wait(2)])
s.close()
"""


class Package(unittest.TestCase):
    """With the package at hand."""

    @classmethod
    def setUpClass(cls):
        environment = os.path.join(BUILD, "python")
        subprocess.run([os.path.join(ROOT, "scripts", "python-environment"), environment], check=True, timeout=240)
        cls.python = os.path.join(environment, "bin", "python")

    def package(self, path):
        done = subprocess.run([self.python, "-c", PACKAGE, path], check=True, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)


class Files(Package):
    def setUp(self):
        self.nodes = Nodes(daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)

    def written(self, layout, those=tuple(TENSORS)):
        """The series' name; it is that of the layout."""
        lines = "".join(f"{rank} {name} {dtype} {TYPES[dtype][1]} {' '.join(map(str, shape))}\n" for rank, name, dtype, shape in those)
        tensors = b"".join(content(*tensor) for _, *tensor in those)
        subprocess.run([find("safetensors_testing"), self.nodes.persistent, layout, layout], input=lines.encode() + b"\n" + tensors, check=True, timeout=60)
        return layout

    def directory(self, series):
        return os.path.join(self.nodes.persistent, series, "1")

    def restored(self, series):
        """What each of the ranks tells that restore it and go on."""
        ranks = []
        for rank in range(RANKS):
            tensors = [(name, TYPES[dtype][1], shape, length(dtype, shape)) for each, name, dtype, shape in PROTECTED if each == rank]
            ranks.append(self.nodes.start(RESTORE.format(series=series, rank=rank, tensors=tensors), node=rank))
        for process in ranks:
            (told,) = self.nodes.told(process)
            protected, restored, _, same, captured, committed = told
            self.assertEqual((set(protected), restored, set(same), captured, committed), ({OK}, [OK, 1], {True}, OK, OK), told)

    def parts(self, series):
        """Paths of parts."""
        folder = self.directory(series)
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if not name.startswith("manifest") and not name.endswith(".index"))

    def cairn(self, *words):
        code, out, err = self.nodes.cairn(*words)
        self.assertEqual(code, 0, out + err)
        return out

    def test_the_package_reads_them(self):
        for layout, count in LAYOUTS.items():
            series = self.written(layout)
            files = self.parts(series)
            self.assertEqual([os.path.basename(path)[:17] for path in files], [f"{layout}-{number:04}-of-{count:04}" for number in range(count)])
            for number, path in enumerate(files):
                expected = {name: [NUMPY[dtype[0]] + dtype[1:], shape, content(name, dtype, shape).hex()]
                            for rank, name, dtype, shape in TENSORS if count == 1 or rank == number}
                self.assertEqual(self.package(path), [expected, expected])
                for damaged in (reader.read(path) + b"\0", with_a_gap(reader.read(path))):
                    with open(path, "wb") as file:
                        file.write(damaged)
                    self.assertRegex(self.package(path), "(?i)incomplete|invalid.*offset", "the package takes more than tensors, so the comparison above says little")

    def test_cairn_reads_them(self):
        for layout in LAYOUTS:
            series = self.written(layout)
            self.assertIn(series, self.cairn("ls"))
            self.cairn("verify", series)
            shown = self.cairn("show", series)
            whole = reader.Version(dict(reader.versions(os.path.join(self.nodes.persistent, series)))[1])
            self.assertEqual(sorted(whole.images), list(range(RANKS)))
            for rank in range(RANKS):
                path = os.path.join(self.nodes.shared, "image")
                self.cairn("extract", series, "--rank", rank, "-o", path, "--force")
                self.assertEqual(reader.read(path), image(rank))
                self.assertEqual(whole.image(rank), image(rank))
            for rank, name, dtype, shape in TENSORS:
                self.assertIn(name, shown)
                self.cairn("extract", series, "--rank", rank, "--region", name, "-o", path, "--force")
                self.assertEqual(reader.read(path), content(name, dtype, shape), name)
                self.assertEqual(whole.region(rank, name), content(name, dtype, shape), name)

    def test_ranks_restore_them(self):
        for layout in LAYOUTS:
            series = self.written(layout, PROTECTED)
            self.restored(series)
            self.assertEqual(list(dict(reader.versions(os.path.join(self.nodes.persistent, series)))), [1, 2], "the job goes on from it")
            self.cairn("verify", series)

    def test_parts_and_indexes_are_kept_and_removed(self):
        for layout, count in LAYOUTS.items():
            series = self.written(layout)
            there = os.listdir(self.directory(series))
            self.assertEqual(len(there), 2 * count + 1)
            self.cairn("gc", "--age", "0s", "--unknown")
            self.assertEqual(os.listdir(self.directory(series)), there)
            self.cairn("rm", series, 1, "--force")
            self.assertEqual([name for name in os.listdir(self.directory(series)) if not name.startswith("manifest")], [])

    def verify_says(self, series, *patterns):
        code, out, err = self.nodes.cairn("verify", series)
        self.assertNotEqual(code, 0, out)
        for pattern in patterns:
            self.assertRegex(out + err, pattern)

    @contextlib.contextmanager
    def flipped(self, path, at):
        """One bit of that byte is another for a while."""
        data = reader.read(path)
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(bytes([data[at] ^ 4]))
        try:
            yield
        finally:
            with open(path, "wb") as file:
                file.write(data)

    @contextlib.contextmanager
    def away(self, path):
        os.rename(path, path + ".away")
        try:
            yield
        finally:
            os.rename(path + ".away", path)

    def test_damage_is_named(self):
        for layout in LAYOUTS:
            series = self.written(layout)
            for path in self.parts(series):
                part, index = os.path.basename(path), path + ".index"
                header_bytes = 8 + int.from_bytes(reader.read(path, 0, 8), "little")
                for at in (0, 20, header_bytes - 1):
                    with self.flipped(path, at):
                        self.verify_says(series, f"{part}.*what stands before its data is damaged", "A restart does without")
                header, end = json.loads(reader.read(path, 8, header_bytes - 8)), 0
                for rank, name, dtype, shape in TENSORS:
                    begin, end = header[name]["data_offsets"] if name in header else (end, end)
                    for at in (begin, end - 1) if begin < end else ():
                        with self.flipped(path, header_bytes + at):
                            self.verify_says(series, rf"{part} +\d+ +{rank} +{re.escape(name)} +checksum differs", "A restart passes damaged versions over")
                self.assertEqual(header_bytes + end, os.path.getsize(path))
                for at in (100, -60, -1):
                    with self.flipped(index, at % os.path.getsize(index)):
                        self.verify_says(series, rf"{part}\.index")
                with self.away(index):
                    self.verify_says(series, rf"{part}\.index: is missing")
                with self.away(path):
                    self.verify_says(series, rf"{part}: the part is missing")
                self.cairn("verify", series)

    def test_a_restart_does_without_what_stands_before_the_data(self):
        series = self.written("rank", PROTECTED)
        with self.flipped(self.parts(series)[0], 20):
            self.restored(series)


# Four ranks on two nodes: each has tensors of its own, one that all have, and one that is not of Cairn's alignment.
TAKE = """
import random
s = Session("model", rank, 4, job="model")
def content(version, name, size): return random.Random(f"{version} {name} {rank}").randbytes(size)
for name, kind, shape, size in tensors:
    assert s.protect(name, bytes(size), kind, shape) == OK, s.text()
for version in versions:
    for name, kind, shape, size in tensors:
        ctypes.memmove(s.buffers[name], content(version, name, size), size)
    assert s.checkpoint(version) == OK, s.text()
    told = s.wait(version, wait_ms=60000)
    if told != OK:
        tell([told, s.text()])
        sys.exit()
tell([s.close()])
"""
BACK = """
import random
s = Session("model", rank, 4, job="model")
def content(version, name, size): return random.Random(f"{version} {name} {rank}").randbytes(size)
for name, kind, shape, size in tensors:
    assert s.protect(name, bytes(size), kind, shape) == OK, s.text()
status, version = s.restore()
tell([status, version, all(s.buffers[name].raw[:size] == content(version, name, size) for name, kind, shape, size in tensors), s.text()])
s.close()
"""
INDEX = "model.safetensors.index.json"


class Layout(Package):
    RANKS = 4

    def setUp(self):
        self.nodes = Nodes(daemon_idle_s=60, flush_layout="safetensors", flush_files=2, flush_block_bytes="4KiB", flush_buffer_bytes="64KiB", flush_buffers=4)
        self.addCleanup(self.nodes.__exit__)

    @staticmethod
    def tensors(rank):
        """name, its type's number in cairn.h, shape, bytes."""
        mine = [(f"layers.{rank}.weight", "F32", [257, 33 + rank]), (f"layers.{rank}.mask", "U8", [4097 + rank]), (f"layers.{rank}.step", "I64", [1]), ("shared/scale", "F16", [31])]
        return [(name, TYPES[dtype][1], shape, length(dtype, shape)) for name, dtype, shape in mine], {name: (dtype, shape) for name, dtype, shape in mine}

    def job(self, script, versions=(), tensors=None):
        ranks = []
        for rank in range(self.RANKS):
            code = f"rank = {rank}\nversions = {versions!r}\ntensors = {tensors or self.tensors(rank)[0]!r}\n" + script
            ranks.append(self.nodes.start(code, node=rank // 2))
        return [self.nodes.told(process)[0] for process in ranks]

    def take(self, *versions):
        self.assertEqual(self.job(TAKE, versions), [[OK]] * self.RANKS)

    def directory(self, version):
        return os.path.join(self.nodes.persistent, "model", str(version))

    def files(self, version):
        return sorted(name for name in os.listdir(self.directory(version)) if name.endswith(".safetensors"))

    def expected(self, version, rank):
        """name -> what the package tells of it, of a rank's tensors."""
        types = self.tensors(rank)[1]
        told = {}
        for name, (dtype, shape) in types.items():
            data = random.Random(f"{version} {name} {rank}").randbytes(length(dtype, shape))
            told[name] = [NUMPY[dtype[0]] + dtype[1:], shape, data.hex()]
        return told

    def of_package(self, path):
        """The tensors that are not Cairn's own."""
        opened, loaded = self.package(path)
        self.assertEqual(opened, loaded)
        return {name: told for name, told in opened.items() if not name.startswith("cairn//")}

    def restored(self, version):
        self.nodes.forget_scratch()
        for told in self.job(BACK):
            self.assertEqual(told[:3], [OK, version, True], told)

    def test_the_package_reads_a_version_that_daemons_committed(self):
        self.take(1, 2)
        for version in (1, 2):
            files = self.files(version)
            self.assertEqual([name[:20] for name in files], ["tensors-0000-of-0002", "tensors-0001-of-0002"])
            for number, name in enumerate(files):
                expected = {}
                for rank in (2 * number, 2 * number + 1):
                    told = self.expected(version, rank)
                    expected[f"shared/scale//rank{rank}"] = told.pop("shared/scale")
                    expected.update(told)
                self.assertEqual(self.of_package(os.path.join(self.directory(version), name)), expected)
            with open(os.path.join(self.directory(version), INDEX), encoding="utf-8") as file:
                index = json.load(file)
            self.assertEqual(index["metadata"]["total_size"], sum(size for rank in range(self.RANKS) for *_, size in self.tensors(rank)[0]))
            self.assertEqual(index["weight_map"]["layers.3.weight"], files[1])
            self.assertEqual(len(index["weight_map"]), 4 * self.RANKS)
        code, out, err = self.nodes.cairn("show", "model", "2")
        self.assertEqual(code, 0, out + err)
        self.assertIn("safetensors", out)
        self.nodes.cairn("verify", "model")
        self.restored(2)

    def test_files_as_many_as_ranks_have_every_tensor_under_its_own_name(self):
        self.nodes.settings["flush_files"] = self.RANKS
        self.take(1)
        for rank, name in enumerate(self.files(1)):
            self.assertEqual(self.of_package(os.path.join(self.directory(1), name)), self.expected(1, rank))
        self.restored(1)

    def test_one_file_has_all(self):
        self.nodes.settings["flush_files"] = 1
        self.take(1)
        (name,) = self.files(1)
        self.assertEqual(len(self.of_package(os.path.join(self.directory(1), name))), 4 * self.RANKS)
        self.restored(1)

    def test_it_takes_little_more_than_its_tensors(self):
        """Arrays of some size: the header, the way to the next image and Cairn's own indexes together."""
        self.nodes.settings.update(flush_buffer_bytes="1MiB", flush_block_bytes="1MiB")
        large = [(f"w{i}", TYPES["F32"][1], [1 << 18], 1 << 20) for i in range(16)]
        self.assertEqual(self.job(TAKE, (1,), large), [[OK]] * self.RANKS)
        stored = sum(os.path.getsize(os.path.join(self.directory(1), name)) for name in os.listdir(self.directory(1)))
        self.assertLess(stored, 1.001 * self.RANKS * 16 * (1 << 20))

    def test_all_of_it_is_removed(self):
        self.take(1, 2, 3)
        there = sorted(os.listdir(self.directory(1)))
        self.assertEqual(self.nodes.cairn("gc", "--age", "0s", "--unknown")[0], 0)
        self.assertEqual(sorted(os.listdir(self.directory(1))), there)
        code, out, err = self.nodes.cairn("rm", "model", "1", "--force")
        self.assertEqual(code, 0, out + err)
        left = [name for name in os.listdir(self.directory(1)) if not name.startswith("manifest")] if os.path.exists(self.directory(1)) else []
        self.assertEqual(left, [])

    def test_it_can_not_be_encoded(self):
        code, out, err = self.nodes.cairn("config", flush_codec="fast")
        self.assertNotEqual(code, 0)
        self.assertRegex(out + err, "flush.codec .*can not be with flush.layout")


if __name__ == "__main__":
    unittest.main(verbosity=2)
