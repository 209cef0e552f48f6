"""What images of one node have in common is stored once (flush.equal_pages): every rank gets its bytes back, and damage in a shared place is the damage of each of them.

Usage: CAIRN_BUILD=build/release python3 tests/equal_pages_test.py [Class[.test]]
"""
import collections
import json
import os
import random
import shutil
import unittest

from format_test import reader
from support import CORRUPT, OK, Nodes

# Pages of its own first, of which each rank has another number, so that what follows lies elsewhere in each image; then what all have in common, and more of its own.
STEP = """
import random
RANK = {rank}
PAGE = 4096
own, common = random.Random(RANK), random.Random(99)
CONTENT = {{"1 own": own.randbytes((1 + RANK) * PAGE), "2 common": common.randbytes(1500 * PAGE), "3 own": own.randbytes(300 * PAGE + 100 * RANK)}}
s = Session("alike", RANK, 4, job="job-{job}")
for name, content in CONTENT.items():
    s.protect(name, content if {version} else bytes(len(content)))
if {version}:
    tell([s.checkpoint({version}), s.wait({version}), s.text()])
else:
    status, number = s.restore({asked})
    tell([status, number, all(s.buffers[name].raw == content for name, content in CONTENT.items()), s.text()])
s.close()
"""
RANKS = range(4)

# Nothing but zeros: one run has all of it, many times over.
ZEROS = """
import resource
BYTES = {bytes}
s = Session("zeros", {rank}, 2, job="job-{job}")
s.protect("all", bytes(BYTES))
if {version}:
    tell([s.checkpoint({version}), s.wait({version}), s.text()])
else:
    status, number = s.restore()
    tell([status, s.buffers["all"].raw.count(0) == BYTES, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10, s.text()])
s.close()
"""


class Ranks(unittest.TestCase):
    def start(self, **settings):
        self.nodes = Nodes(**{"flush_files": 1, "flush_equal_pages": "true", "flush_block_bytes": 4096, "daemon_idle_s": 60, **settings})
        self.addCleanup(self.nodes.__exit__)

    def all(self, job, version=0, asked="NEWEST"):
        processes = [self.nodes.start(STEP.format(rank=rank, job=job, version=version, asked=asked)) for rank in RANKS]
        return [self.nodes.told(process, wait_s=120)[0] for process in processes]

    def take(self, version):
        self.assertEqual([told[:2] for told in self.all(f"take-{version}", version)], [[OK, OK]] * len(RANKS))

    def restored(self, job, asked="NEWEST"):
        """From parts alone."""
        self.nodes.kill_daemons()
        self.nodes.forget_scratch()
        return self.all(job, asked=asked)

    def shown(self, version):
        code, out, err = self.nodes.cairn("show", "alike", version, "--json")
        self.assertEqual(code, OK, err)
        return json.loads(out)

    def stored(self, version):
        """By raw bytes."""
        shown = self.shown(version)
        return sum(run["stored_bytes"] for part in shown["parts"] for run in part["runs"]) / shown["image_bytes"]

    def shared(self, version):
        """Path, place and holders of what most ranks share, a piece in the middle of an image."""
        path = dict(reader.versions(os.path.join(self.nodes.persistent, "alike")))[version]
        holders = collections.defaultdict(set)
        part = reader.read_manifest(path)[1][0]
        file = os.path.join(os.path.dirname(path), part.file)
        for piece in reader.pieces(reader.read_footer(file, part.bytes)[0]):
            for at in range(piece.at, piece.at + piece.length, 4096):
                holders[piece.run.part_offset + at].add(piece.rank)
        place = max(holders, key=lambda at: len(holders[at]))
        return file, place, holders[place]

    def check_whole(self, version):
        self.assertEqual(self.restored(f"back-{version}", version), [[OK, version, True, ""]] * len(RANKS))
        for depth in ([], ["--decode"]):
            code, out, err = self.nodes.cairn("verify", "alike", version, *depth)
            self.assertEqual(code, OK, out + err)

    def test_what_they_have_in_common_is_stored_once(self):
        self.start()
        self.take(1)
        self.assertLess(self.stored(1), 0.6)
        shown = self.shown(1)
        self.assertGreater(shown["stored_once_bytes"], 0.4 * shown["image_bytes"])
        self.assertLess(os.path.getsize(self.shared(1)[0]), 0.62 * shown["image_bytes"], "and leaves no gap")
        self.assertIn("stored once", self.nodes.cairn("show", "alike", 1)[1])
        self.check_whole(1)
        for rank in RANKS:
            path = f"{self.nodes.shared}/common-{rank}"
            self.assertEqual(self.nodes.cairn("extract", "alike", 1, "--rank", rank, "--region", "2 common", "-o", path)[0], OK)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), random.Random(99).randbytes(1500 * 4096))

    def test_a_restart_needs_no_memory_for_all_that_share_a_place(self):
        self.start(flush_block_bytes=65536)
        size = 96 << 20

        def ranks(job, version=0):
            return [self.nodes.told(each, wait_s=120)[0] for each in [self.nodes.start(ZEROS.format(rank=rank, job=job, version=version, bytes=size)) for rank in range(2)]]
        self.assertEqual([told[:2] for told in ranks("take", 1)], [[OK, OK]] * 2)
        stored = sum(os.path.getsize(path) for path in self.nodes.files("zeros", 1))
        self.assertLess(stored, size // 8, "most of it is stored once")
        self.nodes.kill_daemons()
        self.nodes.forget_scratch()
        for status, is_whole, most, text in ranks("back"):
            self.assertEqual((status, is_whole), (OK, True), text)
            self.assertLess(most, 3.5 * size, "its own bytes twice here, those that are compared, and buffers; not the sum of all pieces of a run besides")

    def test_each_of_them_is_named_where_it_is_damaged(self):
        self.start()
        self.take(1)
        file, place, holders = self.shared(1)
        self.assertEqual(holders, set(RANKS))
        with open(file, "r+b") as f:
            f.seek(place + 100)
            byte = f.read(1)[0]
            f.seek(place + 100)
            f.write(bytes([byte ^ 4]))
        code, out, err = self.nodes.cairn("verify", "alike", 1)
        self.assertEqual(code, CORRUPT, out + err)
        for rank in RANKS:
            self.assertRegex(out + err, rf"\b{rank}\b.*2 common", f"rank {rank}")
        for told in self.restored("asked", 1):
            self.assertNotEqual(told[0], OK, told)
            self.assertIn("region 2 common: checksum differs", told[3], "of the first rank, all ranks are told")
        for rank in RANKS:
            code, _, err = self.nodes.cairn("extract", "alike", 1, "--rank", rank, "--region", "2 common", "-o", f"{self.nodes.shared}/common-{rank}")
            self.assertEqual(code, CORRUPT, err)
            self.assertIn(f"rank {rank}, region 2 common: checksum differs", err)
            self.assertEqual(self.nodes.cairn("extract", "alike", 1, "--rank", rank, "--region", "3 own", "-o", f"{self.nodes.shared}/own-{rank}")[0], OK)

    def test_with_a_codec_and_several_files(self):
        self.start(flush_codec="fast", flush_files=2, flush_merge_ranks=0)
        self.take(1)
        self.assertGreater(self.shown(1)["stored_once_bytes"], 0)
        self.check_whole(1)

    def test_nobody_asked_for_it(self):
        self.start(flush_equal_pages="false")
        self.take(1)
        self.assertGreater(self.stored(1), 0.99)
        self.assertEqual(self.shown(1)["stored_once_bytes"], 0)


class Watched(unittest.TestCase):
    """Trees and files as a program like CRIU leaves them: one file for the memory of each process, which have pages in common."""

    def test_files_of_one_node_that_have_pages_in_common(self):
        nodes = Nodes(flush_files=1, flush_equal_pages="true", flush_block_bytes=4096)
        self.addCleanup(nodes.__exit__)
        folder = nodes.shared + "/dumps"
        made = {}
        library = random.Random(1).randbytes(700 * 4096)
        for process in range(4):
            own = random.Random(10 + process)
            made[f"ckpt.1/pages-{process}.img"] = own.randbytes((3 + process) * 4096) + library + own.randbytes(100 * 4096 + 33)
            made[f"ckpt.1/core-{process}.img"] = own.randbytes(900)
        os.makedirs(folder + "/ckpt.1")
        for path, content in made.items():
            with open(f"{folder}/{path}", "wb") as f:
                f.write(content)
        code, _, err = nodes.cairn("watch", "--name", "dumps", "--pattern", "ckpt.{version}", "-d", folder, "--once", wait_s=120)
        self.assertEqual(code, OK, err)
        shown = json.loads(nodes.cairn("show", "dumps", 1, "--json")[1])
        self.assertLess(sum(run["stored_bytes"] for part in shown["parts"] for run in part["runs"]), 0.6 * shown["image_bytes"])
        nodes.kill_daemons()
        nodes.forget_scratch()
        shutil.rmtree(folder)
        self.assertEqual(nodes.cairn("verify", "dumps")[0], OK)
        self.assertEqual(nodes.cairn("extract", "dumps", "--files", nodes.shared + "/back")[0], OK)
        for path, content in made.items():
            with open(f"{nodes.shared}/back/{path}", "rb") as f:
                self.assertEqual(f.read(), content, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
