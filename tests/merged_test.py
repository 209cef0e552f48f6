"""Images of one node that share runs (flush.merge_ranks): they come back byte for byte, all of them and one alone, and take no more than apart.

Usage: CAIRN_BUILD=build/release python3 tests/merged_test.py [Class[.test]]
"""
import os
import re
import time
import unittest

from support import OK, Nodes, find
from format_test import reader

# The same two variables in each rank, and a name and a state that are nobody else's. Their lengths differ, so that ranks are neither aligned nor equally long.
STEP = """
import math, random, struct
RANK, F64 = {rank}, 12
COUNT = 90_000 + 1000 * RANK
def field(kind, version):
    return struct.pack("<%dd" % COUNT, *(math.sin(i / (300 + 10 * kind)) + kind + version / 8 + RANK / 16 for i in range(COUNT)))
random.seed(RANK)
NAME = random.randbytes(1000 + 37 * RANK)
s = Session("field", RANK, 4, job="job-{job}")
s.protect("name", NAME)
for kind in (1, 2):
    s.protect("u%d" % kind, bytes(8 * COUNT), kind=F64, shape=[COUNT])
restored = s.restore({asked})
if {asked} is not NEWEST or restored[0] == OK:
    tell([restored[0], restored[1], bytes(s.buffers["name"]) == NAME and all(bytes(s.buffers["u%d" % kind]) == field(kind, restored[1]) for kind in (1, 2))])
for version in {versions}:
    for kind in (1, 2):
        ctypes.memmove(s.buffers["u%d" % kind], field(kind, version), 8 * COUNT)
    tell([s.checkpoint(version), s.wait(version), s.text()])
s.close()
"""
TAKE = """
import math, struct
s = Session("field", {rank}, 4, job="job-take")
field = struct.pack("<%dd" % {count}, *(math.sin(i / 300) + {rank} / 16 for i in range({count})))
s.protect("u", field, kind=12, shape=[{count}])
tell([s.checkpoint(1), s.wait(1)])
s.close()
"""
RESTART = """
import ctypes, math, struct
reads = ctypes.CDLL(None).part_bytes_read
reads.restype = ctypes.c_ulonglong
s = Session("field", {rank}, 4, job="job-{job}")
field = struct.pack("<%dd" % {count}, *(math.sin(i / 300) + {rank} / 16 for i in range({count})))
s.protect("u", bytes(8 * {count}), kind=12, shape=[{count}])
before = reads()
restored = s.restore()
tell([restored[0], bytes(s.buffers["u"])[:len(field)] == field, s.text(), reads() - before])
s.close()
"""
# Hardly shorter than it is, and then the same with a little more.
DRIFT = """
import array, ctypes, random
noise = random.Random({rank})
cells = [1 + noise.getrandbits(40) / 2**40 for _ in range({count})]
def field(version):
    return array.array("d", (cell + version / 2**44 for cell in cells)).tobytes()
s = Session("field", {rank}, 4, job="job-{job}")
s.protect("u", field(0), kind=12, shape=[{count}])
"""
TAKE_DRIFT = DRIFT + """
for version in (1, 2):
    ctypes.memmove(s.buffers["u"], field(version), 8 * {count})
    tell([s.checkpoint(version), s.wait(version)])
s.close()
"""
RESTART_DRIFT = DRIFT + """
reads = ctypes.CDLL(None).part_bytes_read
reads.restype = ctypes.c_ulonglong
before = reads()
restored = s.restore()
tell([restored[0], bytes(s.buffers["u"]) == field(2), s.text(), reads() - before])
s.close()
"""
RANKS = range(4)

# Cells dealt out to the ranks one by one, neighbours of which are hardly different: each rank holds nearly the same. Or random numbers, of which each rank has its own.
# Many times what the buffers of a daemon hold.
LARGE = """
import array, random
noise = random.Random({rank})
s = Session("large", {rank}, 4)
s.protect("u", array.array("d", (100 + noise.getrandbits(34) / 2**34 for _ in range({count}))).tobytes(), kind=12, shape=[{count}])
tell([s.checkpoint(1), s.wait(1, wait_ms=60000)])
s.close()
"""

DEALT = """
import random, struct
RANK, F64 = {rank}, 12
COUNT = 80_000
random.seed({seed})
CELLS = [random.random() for _ in range(COUNT)]
s = Session("{name}", RANK, 4, job="job-{job}")
s.protect("cells", bytes(8 * COUNT), kind=F64, shape=[COUNT])
s.restore(NEWEST)
for version in {versions}:
    bytes_now = struct.pack("<%dd" % COUNT, *(cell + version for cell in CELLS))
    ctypes.memmove(s.buffers["cells"], bytes_now, 8 * COUNT)
    tell([s.checkpoint(version), s.wait(version), bytes(s.buffers["cells"]) == bytes_now])
s.close()
"""


class Merged(unittest.TestCase):
    def start(self, **settings):
        self.nodes = Nodes(**{"flush_files": 2, "flush_codec": "fast", "flush_block_bytes": 16384, "flush_merge_bytes": 16384, "daemon_idle_s": 60, "background_cpu": "normal", **settings})
        self.addCleanup(self.nodes.__exit__)

    def take(self, job, versions, asked="NEWEST"):
        """What each rank told; two ranks a node."""
        processes = [self.nodes.start(STEP.format(rank=rank, job=job, versions=versions, asked=asked), node=rank // 2) for rank in RANKS]
        told = [self.nodes.told(process) for process in processes]
        for each in told:
            self.assertEqual([answer[:2] for answer in each[len(each) - len(versions):]], [[OK, OK]] * len(versions), told)
        return told

    def stored_bytes(self, number, name="field"):
        path = dict(reader.versions(os.path.join(self.nodes.persistent, name)))[number]
        return sum(part.bytes for part in reader.read_manifest(path)[1])

    def one_rank(self, number, name="field"):
        """How many times what is stored of a rank it must read alone, at most."""
        shown = self.nodes.cairn("show", name, number)[1]
        return float(re.search(r"one rank +reads at most ([0-9.]+) times", shown).group(1))

    def check_whole(self, number, job):
        for told in self.take(job, [], asked=str(number)):
            self.assertEqual(told, [[OK, number, True]])
        code, out, err = self.nodes.cairn("verify", "field", number, "--decode")
        self.assertEqual(code, 0, out + err)
        for rank in RANKS:
            self.assertEqual(self.nodes.cairn("extract", "field", number, "--rank", rank, "--region", "u2", "-o", os.path.join(self.nodes.shared, f"u2-{number}-{rank}"))[0], 0)

    def test_two_ranks_a_node_share_runs_and_come_back(self):
        self.start(flush_merge_ranks=1)
        self.take(1, [1])
        self.assertLess(self.one_rank(1), 1.01)
        self.nodes.kill_daemons()
        self.nodes.settings["flush_merge_ranks"] = 2
        self.take(2, [2])
        self.assertGreater(self.one_rank(2), 1.7)
        self.assertLess(self.one_rank(2), 2.3)
        self.assertLess(self.stored_bytes(2), 1.05 * self.stored_bytes(1))
        self.check_whole(2, 3)

    def test_images_that_others_write_are_merged_too(self):
        for settings in ({"flush_leaders": 1}, {"flush_leaders": 1, "flush_encode_at": "follower"}):
            with self.subTest(settings):
                self.start(flush_merge_ranks=64, flush_merge_bytes=4096, flush_files=1, **settings)
                self.take(1, [1, 2])
                self.assertGreater(self.one_rank(2), 1.7)
                self.check_whole(2, 3)

    def restart(self, node, count, script=RESTART):
        """Ranks 0 to 3 on one node whose scratch is empty: how many bytes of parts they read together."""
        plain = self.nodes.environment
        count_reads = find("libpart_reads_testing.so")
        self.nodes.environment = lambda *a, **more: {**plain(*a, **more), "LD_PRELOAD": " ".join(filter(None, [plain(*a, **more).get("LD_PRELOAD"), count_reads]))}
        processes = [self.nodes.start(script.format(rank=rank, job=node, count=count), node=node) for rank in RANKS]
        told = [self.nodes.told(process) for process in processes]
        self.nodes.environment = plain
        self.assertEqual([each[0][:3] for each in told], [[OK, True, ""]] * len(RANKS), told)
        return sum(each[0][3] for each in told)

    def check_read_once(self, count, take=TAKE, restart=RESTART, versions=(1,), **settings):
        """What is stored is read once a node; and by each rank where nothing can be shared."""
        self.start(flush_io="threads", **settings)
        processes = [self.nodes.start(take.format(rank=rank, count=count, job=0)) for rank in RANKS]
        for told in [self.nodes.told(process) for process in processes]:
            self.assertEqual(told, [[OK, OK]] * len(versions))
        there = dict(reader.versions(os.path.join(self.nodes.persistent, "field")))
        parts = [part for version in versions for part in reader.read_manifest(there[version])[1]]
        footers = sum(part.bytes - part.footer_offset for part in parts)
        stored = sum(part.footer_offset for part in parts)
        together = self.restart(1, count, restart)
        self.assertLess(together, 1.1 * stored + len(RANKS) * footers)
        self.assertEqual(self.nodes.cairn("start", node=2)[0], 0)
        root, = (entry.path for entry in os.scandir(self.nodes.scratch(2)) if entry.name.startswith("cairn-"))
        open(os.path.join(root, "shared"), "w").close()  # where a directory should be
        return together, self.restart(2, count, restart), root

    def test_ranks_that_start_again_read_what_they_share_once_a_node(self):
        together, alone, _ = self.check_read_once(400_000, flush_files=1, flush_merge_ranks=4, flush_merge_bytes=32768)
        self.assertGreater(alone, 3 * together)
        root, = (entry.path for entry in os.scandir(self.nodes.scratch(1)) if entry.name.startswith("cairn-"))
        self.assertEqual(os.listdir(os.path.join(root, "shared")), [])

    def test_a_base_is_read_once_a_node_too(self):
        together, alone, _ = self.check_read_once(200_000, take=TAKE_DRIFT, restart=RESTART_DRIFT, versions=(1, 2), flush_files=1, flush_merge_ranks=4, flush_merge_bytes=32768, flush_full_every=2)
        there = dict(reader.versions(os.path.join(self.nodes.persistent, "field")))
        self.assertEqual([base.version for base in reader.read_manifest(there[2])[0].bases], [1])
        self.assertGreater(self.one_rank(1), 3)
        self.assertGreater(alone, 3 * together)

    def test_small_images_are_read_once_a_node_too(self):
        for codec in ("fast", "off"):
            with self.subTest(codec):
                together, alone, _ = self.check_read_once(5_000, flush_codec=codec, flush_files=1)
                self.assertGreater(alone, 2 * together)

    def test_what_has_a_base_is_not_merged(self):
        self.start(flush_merge_ranks=2, flush_full_every=2)
        self.take(1, [1, 2])
        self.assertGreater(self.one_rank(1), 1.7)
        self.assertLess(self.one_rank(2), 1.1)
        self.check_whole(2, 3)

    def deal(self, name, versions, is_alike, job=1):
        """Four ranks of one node."""
        processes = [self.nodes.start(DEALT.format(name=name, rank=rank, seed=7 if is_alike else rank, job=f"{name}-{job}", versions=list(versions))) for rank in RANKS]
        for process in processes:
            self.assertEqual(self.nodes.told(process), [[OK, OK, True]] * len(versions))

    def merged_since(self, name, versions):
        """The first of these versions in whose runs the images of the node lie together; None: in none."""
        return next((version for version in versions if self.one_rank(version, name) > 3), None)

    def test_trials_find_that_ranks_hold_the_same_and_that_they_do_not(self):
        self.start(flush_files=1, flush_merge_ranks=4)
        self.deal("set", [1], is_alike=True)
        self.assertGreater(self.one_rank(1, "set"), 3)
        self.nodes.kill_daemons()
        self.nodes.settings["flush_merge_ranks"] = 0
        versions = range(1, 13)
        self.deal("alike", versions, is_alike=True)
        since = self.merged_since("alike", versions)
        self.assertIsNotNone(since, "no trial found what merging is worth")
        self.assertGreater(since, 2, "before two trials there is no reason")
        self.assertLess(self.stored_bytes(12, "alike"), 0.9 * self.stored_bytes(1, "alike"))
        self.assertAlmostEqual(self.stored_bytes(12, "alike") / self.stored_bytes(1, "set"), 1, delta=0.05)
        self.assertEqual(self.nodes.cairn("verify", "alike", 12, "--decode")[0], 0)
        self.deal("unlike", versions, is_alike=False)
        self.assertIsNone(self.merged_since("unlike", versions))
        # What was worth it is given up when the data change.
        self.deal("alike", range(13, 40), is_alike=False, job=2)
        self.assertLess(self.one_rank(39, "alike"), 1.1)

    def test_the_memory_of_a_daemon_is_that_of_its_buffers(self):
        """Four images of 24 MB, encoded by two threads: apart, and merged. What is mapped is scratch, and not looked at."""
        buffers, buffer_bytes, threads, program = 8, 6 << 20, 2, 24 << 20
        for ranks in (1, 4):
            with self.subTest(merge_ranks=ranks):
                self.start(flush_files=1, flush_merge_ranks=ranks, flush_buffers=buffers, flush_buffer_bytes=buffer_bytes, daemon_cpu_threads=threads)
                processes = [self.nodes.start(LARGE.format(rank=rank, count=3_000_000)) for rank in RANKS]
                most = 0
                while any(process.poll() is None for process in processes):
                    most = max([most, *(self.own_bytes(pid) for pid in self.nodes.daemons())])
                    time.sleep(0.002)
                for process in processes:
                    self.assertEqual(self.nodes.told(process), [[OK, OK]])
                self.assertEqual(self.one_rank(1, "large") > 3, ranks == 4)
                print(f"merge_ranks {ranks}: {most / 2**20:.1f} MiB")
                self.assertGreater(most, 4 << 20, "it was looked at while it worked")
                self.assertLess(most, buffers * buffer_bytes + program)

    @staticmethod
    def own_bytes(pid):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                found = re.search(r"RssAnon:\s+(\d+) kB", file.read())
        except OSError:
            return 0
        return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    unittest.main(verbosity=2)
