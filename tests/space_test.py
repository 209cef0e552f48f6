#!/usr/bin/env python3
"""What a part takes where runs are encoded: its encoded bytes, its index, and at most 1 % and 64 KiB, by the file's size: no hole is counted off. Prints the figures.

Usage: CAIRN_BUILD=build/release python3 tests/space_test.py [Class[.test]]
"""
import os
import unittest

from support import OK, Nodes
from format_test import reader

RANKS, NODES = 8, 4
STRETCH = 65536

# Three fields of a rank: one that gets much shorter, one that gets a little shorter, noise. Of unequal lengths from rank to rank, so that work changes hands.
RANK = """
import array, math, random
COUNT = 120_000 + 40_000 * ({rank} % 3)
numbers = random.Random({rank})
s = Session("space", {rank}, {ranks}, job="space")
fields = [array.array("d", (math.sin(i / 400) + {rank} for i in range(COUNT))),
          array.array("d", ((math.sin(i / 90) + 2) * (1 + 1e-7 * numbers.random()) for i in range(COUNT))), numbers.randbytes(COUNT)]
for name, field in enumerate(fields):
    s.protect("f%d" % name, bytes(field), kind=12 if name < 2 else 2, shape=[len(field)])
s.restore()
tell([s.checkpoint(1), s.wait(1)])
s.close()
"""

WAYS = {
    "one file, one leader": {"flush_files": 1, "flush_leaders": 1},
    "one file, four leaders": {"flush_files": 1, "flush_leaders": 4},
    "two files, four leaders": {"flush_files": 2, "flush_leaders": 4},
    "four files, four leaders": {"flush_files": 4, "flush_leaders": 4},
    "one file, encoded before it is sent": {"flush_files": 1, "flush_leaders": 1, "flush_encode_at": "follower"},
    "two files, ranks merged": {"flush_files": 2, "flush_leaders": 4, "flush_merge_ranks": 2, "flush_block_bytes": 16384},
    "two files, codec small": {"flush_files": 2, "flush_leaders": 4, "flush_codec": "small"},
}


class Encoded(unittest.TestCase):
    def test_a_part_takes_what_is_encoded(self):
        print(f"{'':36} {'raw bytes':>11} {'encoded':>11} {'index':>7} {'files':>11} {'more':>6} {'of the bar':>10}")
        for way, settings in WAYS.items():
            with self.subTest(way), Nodes(**{"flush_codec": "fast", "background_cpu": "normal", **settings}) as nodes:
                for process in [nodes.start(RANK.format(rank=rank, ranks=RANKS), node=rank * NODES // RANKS) for rank in range(RANKS)]:
                    self.assertEqual(nodes.told(process, 120), [[OK, OK]])
                self.check(way, dict(reader.versions(os.path.join(nodes.persistent, "space")))[1])

    def check(self, way, path):
        """Each part by itself, however many leaders wrote in it: as much as one leader may leave is enough for all."""
        entries = reader.read_manifest(path)[1]
        stored = {}
        for _, piece, part in sum(reader.Version(path).pieces.values(), []):
            stored[os.path.basename(part), piece.run.part_offset] = piece.run.stored_bytes
        encoded, index, files, over = 0, 0, 0, 0.0
        for entry in entries:
            runs = sum(bytes_of for (part, _), bytes_of in stored.items() if part == os.path.basename(entry.file))
            size = os.stat(os.path.join(os.path.dirname(path), entry.file)).st_size
            its_index = entry.bytes - entry.footer_offset
            most = runs // 100 + STRETCH
            self.assertEqual(size, entry.bytes)
            self.assertGreater(runs, 0)
            self.assertLessEqual(size - its_index - runs, most, f"{entry.file}: what is neither encoded nor index")
            encoded, index, files, over = encoded + runs, index + its_index, files + size, max(over, (size - its_index - runs) / most)
        raw = sum(image.bytes for image in reader.Version(path).images.values())
        self.assertLess(encoded, 0.8 * raw, "most of it is encoded")
        print(f"{way:36} {raw:11,} {encoded:11,} {index:7,} {files:11,} {(files - index - encoded) / encoded:6.2%} {over:10.0%}")


if __name__ == "__main__":
    unittest.main()
