#!/usr/bin/env python3
"""Slices: `cairn extract --slice` gives what is asked for of an array, and reads and decodes no more than the blocks and runs that hold it.

Usage: CAIRN_BUILD=build/release python3 tests/slice_test.py [Class[.test]]
"""
import array
import functools
import itertools
import json
import os
import random
import subprocess
import unittest

from describe_test import python
from support import BUILD, INVALID, NOT_FOUND, OK, Nodes

SHAPE = (96, 192, 128)  # 18 MiB of numbers
BYTES = 8 * SHAPE[0] * SHAPE[1] * SHAPE[2]

# Files of some MiB: what is asked for lies behind the first one. One chunk that is all of a dataset, some that are not, axes in another order, single numbers.
WRITE = """
import json, sys
import numpy as np
folder = sys.argv[1]
rng = np.random.default_rng(1)
field = 100 + rng.standard_normal((240, 50, 70))
small = np.arange(1000, dtype=">i4").reshape(10, 100)
np.save(folder + "/c.1.npy", field)
np.save(folder + "/f.1.npy", np.asfortranarray(field))
np.savez(folder + "/z.1.npz", field=field, small=small, step=np.int64(5))
from safetensors.numpy import save_file
save_file({"field": field, "small": small.astype("<i4"), "step": np.array(5)}, folder + "/s.1.safetensors")
import h5py
with h5py.File(folder + "/h.1.h5", "w", libver=("earliest", "v108")) as file:
    file["field"] = field
    file["group/small"] = small
    file["step"] = np.int64(5)
    file.create_dataset("whole", data=small, chunks=small.shape)
    file.create_dataset("log", data=np.arange(100.0), maxshape=(None,), chunks=(1000,))
    file.create_dataset("pieces", data=np.arange(2000.0), chunks=(1000,))
    half = file.create_dataset("half", (2000,), "<f8", chunks=(1000,), fillvalue=7)
    half[1000:] = np.arange(1000.0)
    file["records"] = np.zeros(3, np.dtype([("a", "f8"), ("b", "i2")]))
    file.create_dataset("packed", data=np.zeros((1000, 10)), chunks=(1000, 10), compression="gzip")
for name, value in {"field": field, "small": small, "step": np.int64(5)}.items():
    open(folder + "/" + name + ".expected", "wb").write(value[2:5].tobytes() if value.shape else value.tobytes())
print(json.dumps([]))
"""


# What a program says of its own bytes, and of a part of them twice.
CALL = """
import array
s = Session("told", 0, 1)
s.protect("made", bytes(24) + array.array("d", range(300)).tobytes() + bytes(1000), kind=0)
told = s.lib.cairn_describe(s.handle, b"made", ctypes.c_uint64(24), 12, 2, (ctypes.c_uint64 * 2)(30, 10), b"grid")
tell([told, s.checkpoint(1), s.wait(1), s.text()])
s.close()
"""


# A field of noise about a line, which a codec makes a third shorter; between two regions that leave it on no boundary of a block.
FIELD = """
import array, random
RANK = {rank}
COUNT = {count}
noise = random.Random(RANK)
s = Session("field", RANK, {ranks}, job="job-slice")
s.protect("front", bytes(range(77)))
s.protect("u", array.array("d", (100 + noise.getrandbits(34) / 2**34 for i in range(COUNT))).tobytes(), kind=12, shape={shape})
s.protect("back", bytes(1000))
tell([s.checkpoint(1), s.wait(1), s.text()])
s.close()
"""


@functools.cache
def field(rank):
    noise = random.Random(rank)
    return array.array("d", (100 + noise.getrandbits(34) / 2**34 for _ in range(BYTES // 8)))


def numbers_in(axes, rank=0):
    """What numpy would give of it, as bytes; an axis is a range."""
    numbers = field(rank)
    return array.array("d", (numbers[(i * SHAPE[1] + j) * SHAPE[2] + k] for i, j, k in itertools.product(*axes))).tobytes()


def axes_of(text):
    """Python's own reading of it."""
    words = (text.split(",") + [":"] * len(SHAPE))[:len(SHAPE)]
    axes = []
    for word, extent in zip(words, SHAPE):
        places = range(extent)
        axes.append(eval("places[%s]" % word, {"places": places}) if ":" in word else [places[int(word)]])  # pylint: disable=eval-used
    return axes


class Regions(unittest.TestCase):
    def take(self, ranks=1, **settings):
        self.nodes = Nodes(**{"flush_files": 1, "flush_leaders": 1, "flush_block_bytes": 16384, "daemon_idle_s": 60, "background_cpu": "normal", **settings})
        self.addCleanup(self.nodes.__exit__)
        processes = [self.nodes.start(FIELD.format(rank=rank, ranks=ranks, count=BYTES // 8, shape=list(SHAPE))) for rank in range(ranks)]
        for process in processes:
            self.assertEqual(self.nodes.told(process)[-1][:2], [OK, OK])

    def slice(self, text, rank=0):
        """Its bytes, and what was read for them. The same by a file and as a stream."""
        file = os.path.join(self.nodes.shared, "slice")
        code, out, err = self.nodes.cairn("extract", "field", "1", "--rank", str(rank), "--region", "u", "--slice", text, "-o", file, "--force", "--json")
        self.assertEqual(code, 0, out + err)
        with open(file, "rb") as opened:
            content = opened.read()
        told = json.loads(out)
        streamed = subprocess.run([os.path.join(BUILD, "bin", "cairn"), "extract", "field", "1", "--rank", str(rank), "--region", "u", "--slice", text, "-o", "-"],
                                  env=self.nodes.environment(flush_buffer_bytes=65536), capture_output=True, timeout=60, check=False)
        self.assertEqual((streamed.returncode, streamed.stdout == content), (0, True), streamed.stderr)
        self.assertEqual(told["slice"]["of"], list(SHAPE))
        self.assertEqual(told["slice"]["shape"], [len(axis) for axis in axes_of(text)])
        self.assertEqual(told["files"][0]["bytes"], len(content))
        return content, told["read"]

    def check(self, text, rank=0):
        content, read = self.slice(text, rank)
        self.assertEqual(content, numbers_in(axes_of(text), rank), text)
        return read

    def test_what_is_asked_for_comes(self):
        self.take(flush_codec="fast")
        for text in ("0", "-1", "3:7", ":,5", ":,:,7", "10:20,-3:,:5", "5:5", ":", "95,191,127", "0,0,0", "1:40,1:90,1:120"):
            with self.subTest(text):
                self.check(text)

    def test_no_more_than_one_run_more_is_decoded(self):
        """A run is what one number takes; a stretch of the array takes the rest of its first and last run, too."""
        self.take(flush_codec="fast")
        runs = [self.check("%d,50,60" % plane)["decoded_bytes"] for plane in range(0, SHAPE[0], 8)]
        self.assertGreater(min(runs), 0)
        run = max(runs)
        self.assertLess(run, BYTES // 3)
        for text in ("20", "3:5", "10:30", "7,3:90", "40:"):
            axes = axes_of(text)
            wanted = 8 * len(axes[0]) * len(axes[1]) * len(axes[2])
            with self.subTest(text):
                self.assertLess(self.check(text)["decoded_bytes"], wanted + 2 * run)
        read = self.check(":,5,:3")
        self.assertGreater(read["decoded_bytes"], BYTES // 2, "a column touches every run")

    def test_without_a_codec_blocks_are_read(self):
        self.take(flush_codec="off")
        block = 16384
        self.assertEqual(self.check("5:5"), {"stored_bytes": 0, "decoded_bytes": 0, "base_bytes": 0})
        for text in ("20,50,60", "20", "10:30", "5,3:90"):
            axes = axes_of(text)
            wanted = 8 * len(axes[0]) * len(axes[1]) * len(axes[2])
            with self.subTest(text):
                read = self.check(text)
                self.assertEqual(read["decoded_bytes"], 0)
                self.assertLess(read["stored_bytes"], wanted + 2 * block)
                self.assertGreaterEqual(read["stored_bytes"], wanted)
        column = self.check(":,5,:3")["stored_bytes"]
        self.assertLessEqual(column, 2 * SHAPE[0] * block, "of each plane one block, or two")

    def test_of_merged_ranks_the_whole_group_is_decoded(self):
        self.take(ranks=4, flush_codec="fast", flush_merge_ranks=4, flush_merge_bytes=16384)
        for rank in range(4):
            read = self.check("20,50,60", rank)
            self.assertLessEqual(read["decoded_bytes"], 4 << 20)
        wanted = 8 * 20 * SHAPE[1] * SHAPE[2]
        planes = self.check("7:27", 2)["decoded_bytes"]
        self.assertLess(planes, 4 * wanted + 2 * (4 << 20))
        self.assertGreater(planes, 3 * wanted, "they are merged")

    def test_what_is_wrong_is_said(self):
        self.take()
        ask = lambda *more: self.nodes.cairn("extract", "field", "1", "--rank", "0", "-o", "-", *more)
        for more, code, says in [
            (("--slice", "1"), INVALID, "--region NAME"),
            (("--region", "u", "--slice", "96"), INVALID, "axis 0: '96' is no place and no range of the 96"),
            (("--region", "u", "--slice", "1,1,1,1"), INVALID, "more axes than there are: 3"),
            (("--region", "u", "--slice", "1::2"), INVALID, "write 3, -1, 3:7, 3: or : (steps are not had)"),
            (("--region", "u", "--array", "v"), NOT_FOUND, "region u has no array 'v'"),
        ]:
            with self.subTest(more):
                got, _, err = ask(*more)
                self.assertEqual(got, code, err)
                self.assertIn(says, err)
        got, out, _ = ask("--region", "front", "--slice", "40:50")
        self.assertEqual((got, out), (0, "".join(chr(i) for i in range(40, 50))))


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = Nodes(flush_files=1, flush_leaders=1, flush_codec="fast", daemon_idle_s=60)
        cls.addClassCleanup(cls.nodes.__exit__)
        cls.folder = os.path.join(cls.nodes.shared, "files")
        os.mkdir(cls.folder)
        python(WRITE, cls.folder)
        code, out, err = cls.nodes.cairn("watch", "--name", "made", "--pattern", "?.{version}.*", "-d", cls.folder, "--once")
        assert code == 0, out + err

    def ask(self, file, array_name, *more):
        back = os.path.join(self.nodes.shared, "back")
        code, out, err = self.nodes.cairn("extract", "made", "1", "--rank", "0", "--region", file, "--array", array_name, *more, "-o", back, "--force", "--json")
        content = b""
        if code == 0:
            with open(back, "rb") as opened:
                content = opened.read()
        return code, content, json.loads(out), err

    def expected(self, name):
        with open(os.path.join(self.folder, name + ".expected"), "rb") as opened:
            return opened.read()

    def test_an_array_of_a_file_that_describes_itself(self):
        """The front of .npy and safetensors files is read, and others as a whole."""
        size = 8 * 240 * 50 * 70
        for file, name, big in [("c.1.npy", "-", False), ("z.1.npz", "field", False), ("s.1.safetensors", "field", False), ("h.1.h5", "field", False), ("z.1.npz", "small", True), ("h.1.h5", "group/small", True),
                                ("h.1.h5", "whole", True)]:
            with self.subTest((file, name)):
                code, content, told, err = self.ask(file, name, "--slice", "2:5")
                self.assertEqual(code, 0, err)
                of = "field" if name in ("-", "field") else "small"
                self.assertEqual(content, self.expected(of))
                self.assertEqual((told["slice"]["type"], told["slice"]["big_endian"]), ("f64" if of == "field" else "i32", big))
                self.assertEqual(told["slice"]["of"], [240, 50, 70] if of == "field" else [10, 100])
                is_front_enough = file.endswith((".npy", ".safetensors"))
                self.assertEqual("are read first" in err, not is_front_enough, err)
                read = told["read"]["decoded_bytes"] + told["read"]["stored_bytes"]
                if is_front_enough:
                    self.assertLess(read, 0.9 * size)
                else:
                    self.assertGreater(read, size, "what is read first counts")

    def test_a_single_number(self):
        for file in ("z.1.npz", "s.1.safetensors", "h.1.h5"):
            with self.subTest(file):
                code, content, told, err = self.ask(file, "step")
                self.assertEqual((code, content), (0, self.expected("step")), err)
                self.assertEqual(told["slice"]["shape"], [])
                self.assertEqual(self.ask(file, "step", "--slice", "0")[0], INVALID)

    def test_what_does_not_lie_as_it_is_named_is_refused(self):
        """A chunk is not its dataset, though it may be the only one."""
        for file, name, says in [("h.1.h5", "log", "in pieces"), ("h.1.h5", "pieces", "in pieces"), ("h.1.h5", "half", "in pieces"), ("h.1.h5", "packed", "is not stored as it is"), ("h.1.h5", "records", "it holds records"),
                                 ("f.1.npy", "-", "order of its axes"), ("h.1.h5", "none", "has no array 'none'; it has ")]:
            with self.subTest((file, name)):
                code, _, told, err = self.ask(file, name, "--slice", "0")
                self.assertNotEqual(code, 0)
                self.assertIn(says, told["error"]["text"], err)

    def test_what_a_program_says_of_its_bytes(self):
        self.assertEqual(self.nodes.run(CALL)[0][:3], [OK, OK, OK])
        back = os.path.join(self.nodes.shared, "grid")
        code, out, err = self.nodes.cairn("extract", "told", "1", "--rank", "0", "--region", "made", "--array", "grid", "--slice", "3:5,-2:", "-o", back)
        self.assertEqual(code, 0, out + err)
        self.assertIn("f64, 2 x 2 of 30 x 10", out)
        with open(back, "rb") as opened:
            self.assertEqual(opened.read(), array.array("d", [38, 39, 48, 49]).tobytes())


if __name__ == "__main__":
    unittest.main()
