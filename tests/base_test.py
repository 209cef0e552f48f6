"""Versions that are stored as what changed since an older one, their base: shorter, and read by every way; and what becomes of them when the base is damaged, or somebody wants to remove it.

Usage: CAIRN_BUILD=build/release python3 tests/base_test.py [Class[.test]]
"""
import os
import unittest

from support import OK, Nodes
from format_test import reader

# Weights, which each step changes a little.
TRAIN = """
import random, struct
RANK, COUNT, F32 = {rank}, 200_000, 11
random.seed(RANK)
weights = [random.gauss(0, 0.02) for _ in range(COUNT)]
def trained(version):
    random.seed(1000 * RANK + version)
    return struct.pack("<%df" % COUNT, *(each + version * 1e-5 * random.gauss(0, 1) for each in weights))
s = Session("train", RANK, 2, job="job-{job}")
s.protect("w", bytes(4 * COUNT), kind=F32, shape=[COUNT])
restored = s.restore({asked})
if {asked} is not NEWEST or restored[0] == OK:
    tell([restored[0], restored[1], bytes(s.buffers["w"]) == trained(restored[1])])
for version in {versions}:
    ctypes.memmove(s.buffers["w"], trained(version), 4 * COUNT)
    tell([s.checkpoint(version), s.wait(version), s.text()])
s.close()
"""


class Based(unittest.TestCase):
    def start(self, **settings):
        self.nodes = Nodes(flush_files=2, flush_codec="fast", flush_full_every=3, daemon_idle_s=60, **settings)
        self.addCleanup(self.nodes.__exit__)
        self.series = os.path.join(self.nodes.persistent, "train")

    def ranks(self, job, versions, asked="NEWEST"):
        processes = [self.nodes.start(TRAIN.format(rank=rank, job=job, versions=versions, asked=asked), node=rank) for rank in range(2)]
        return [self.nodes.told(process) for process in processes]

    def take(self, job, versions):
        for told in self.ranks(job, versions):
            self.assertEqual([each[:2] for each in told[-len(versions):]], [[OK, OK]] * len(versions), told)

    def stored_bytes(self):
        """By version: of all its parts, and on which it depends."""
        found = {}
        for version, path in reader.versions(self.series):
            head, parts = reader.read_manifest(path)
            found[version] = (sum(part.bytes for part in parts), [base.version for base in head.bases])
        return found

    def test_what_changed_little_takes_little_and_comes_back(self):
        self.start()
        self.take(1, [1, 2, 3, 4])
        stored = self.stored_bytes()
        self.assertEqual({version: bases for version, (_, bases) in stored.items()}, {1: [], 2: [1], 3: [1], 4: []})
        for version in (2, 3):
            self.assertLess(stored[version][0], 0.93 * stored[1][0])
        for version, path in reader.versions(self.series):
            self.assertEqual(len(reader.Version(path).region(1, "w")), 800_000, "a reader without Cairn's code has it too")
        for version in (3, 2):
            for told in self.ranks(10 + version, [], asked=str(version)):
                self.assertEqual(told, [[OK, version, True]])
        self.assertRegex(self.nodes.cairn("show", "train", "3")[1], "depends on +version 1 ")
        code, out, err = self.nodes.cairn("verify", "train", "--decode")
        self.assertEqual(code, 0, out + err)

    def test_a_new_daemon_begins_with_a_whole_version(self):
        self.start()
        self.take(1, [1, 2])
        self.nodes.kill_daemons()
        self.take(2, [3, 4])
        self.assertEqual({version: bases for version, (_, bases) in self.stored_bytes().items()}, {1: [], 2: [1], 3: [], 4: [3]})

    def test_a_base_stays(self):
        self.start()
        self.take(1, [1, 2])
        self.assertNotEqual(self.nodes.cairn("rm", "--force", "train", "1")[0], 0)
        self.assertIn(1, self.stored_bytes())
        self.assertEqual(self.nodes.cairn("rm", "--force", "train", "2")[0], 0)
        self.assertEqual(self.nodes.cairn("rm", "--force", "train", "1")[0], 0)

    def test_damage_in_a_base_is_told_of_what_depends_on_it(self):
        self.start()
        self.take(1, [1, 2])
        self.nodes.kill_daemons()
        path = dict(reader.versions(self.series))[1]
        part = os.path.join(os.path.dirname(path), reader.read_manifest(path)[1][0].file)
        with open(part, "r+b") as file:
            file.seek(100_000)
            byte = file.read(1)[0]
            file.seek(100_000)
            file.write(bytes([byte ^ 4]))
        for version in ("1", "2"):
            for how in ([], ["--decode"]):
                code, out, err = self.nodes.cairn("verify", "train", version, *how)
                self.assertNotEqual(code, 0, (version, how, out + err))
                self.assertRegex(out, "part-0000")
        self.assertRegex(self.nodes.cairn("verify", "train", "2")[1], "version 1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
