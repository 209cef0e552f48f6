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
import unittest

from describe_test import WRITE, python
from support import INVALID, NOT_FOUND, OK, Nodes

SHAPE = (96, 192, 128)  # 18 MiB of numbers
BYTES = 8 * SHAPE[0] * SHAPE[1] * SHAPE[2]

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
        for text in ("20,50,60", "20", "10:30", "5,3:90"):
            axes = axes_of(text)
            wanted = 8 * len(axes[0]) * len(axes[1]) * len(axes[2])
            with self.subTest(text):
                read = self.check(text)
                self.assertEqual(read["decoded_bytes"], 0)
                self.assertLess(read["stored_bytes"], wanted + 2 * block)
        column = self.check(":,5,:3")["stored_bytes"]
        self.assertLessEqual(column, 2 * SHAPE[0] * block, "of each plane one block, or two")

    def test_of_merged_ranks_the_whole_group_is_decoded(self):
        self.take(ranks=4, flush_codec="fast", flush_merge_ranks=4, flush_merge_bytes=16384)
        for rank in range(4):
            read = self.check("20,50,60", rank)
            self.assertLessEqual(read["decoded_bytes"], 4 << 20)
        plane = self.check("7:9", 2)["decoded_bytes"]
        self.assertLessEqual(plane, 4 * 8 * 2 * SHAPE[1] * SHAPE[2] + 2 * (4 << 20))

    def test_what_is_wrong_is_said(self):
        self.take()
        ask = lambda *more: self.nodes.cairn("extract", "field", "1", "--rank", "0", "-o", "-", *more)
        for more, code, says in [
            (("--slice", "1"), INVALID, "--region NAME"),
            (("--region", "u", "--slice", "96"), INVALID, "axis 0: '96' is no place and no range of the 96"),
            (("--region", "u", "--slice", "1,1,1,1"), INVALID, "more axes than there are: 3"),
            (("--region", "u", "--slice", "1::2"), INVALID, "write 3, -1, 3:7, 3: or :"),
            (("--region", "u", "--array", "v"), NOT_FOUND, "region u has no array 'v'"),
        ]:
            with self.subTest(more):
                got, _, err = ask(*more)
                self.assertEqual(got, code, err)
                self.assertIn(says, err)
        got, out, _ = ask("--region", "front", "--slice", "40:50")
        self.assertEqual((got, out), (0, "".join(chr(i) for i in range(40, 50))))


class Files(unittest.TestCase):
    def test_an_array_of_a_file_that_describes_itself(self):
        """The front of .npy and safetensors files is read, and others as a whole."""
        nodes = Nodes(flush_files=1, flush_leaders=1, flush_codec="fast", daemon_idle_s=60)
        self.addCleanup(nodes.__exit__)
        folder = os.path.join(nodes.shared, "files")
        os.mkdir(folder)
        told = python(WRITE, folder)
        code, out, err = nodes.cairn("watch", "--name", "made", "--pattern", "?.{version}.*", "-d", folder, "--once")
        self.assertEqual(code, 0, out + err)
        code, out, _ = nodes.cairn("describe", *[os.path.join(folder, file) for file in told], "--json")
        described = {os.path.basename(each["file"]): each["extents"] for each in json.loads(out)["files"]}
        back = os.path.join(nodes.shared, "back")
        for file, extents in described.items():
            with open(os.path.join(folder, file), "rb") as opened:
                content = opened.read()
            for extent in extents:
                with self.subTest((file, extent["name"])):
                    begin, row = extent["offset"], extent["length"] // extent["shape"][0]
                    code, out, err = nodes.cairn("extract", "made", "1", "--rank", "0", "--region", file, "--array", extent["name"] or "-", "--slice", "2:5", "-o", back, "--force", "--json")
                    self.assertEqual(code, 0, out + err)
                    with open(back, "rb") as opened:
                        self.assertEqual(opened.read(), content[begin + 2 * row:begin + 5 * row])
                    got = json.loads(out)["slice"]
                    self.assertEqual((got["type"], got["big_endian"], got["of"]), (extent["type"], extent["big_endian"], extent["shape"]))
                    self.assertEqual("are read first" in err, not file.endswith((".safetensors", ".npy")) and os.path.getsize(os.path.join(folder, file)) > 1 << 20)


if __name__ == "__main__":
    unittest.main()
