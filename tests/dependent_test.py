"""A version whose parts are those of an older one: it is read by every way, and the older one stays as long as it does.

Such versions are what a later capture of changes will publish. Here FORMAT.md's reader and FlatBuffers' own compiler make one, with none of Cairn's code.

Usage: CAIRN_BUILD=build/release python3 tests/dependent_test.py [Class[.test]]
"""
import json
import os
import secrets
import struct
import time
import unittest

import older
from older import reader
from support import CORRUPT, OK, PERMISSION, Nodes

JOB = """
RANK, RANKS, VERSIONS, RESTORED = {rank}, 2, {versions}, {restored}
s = Session("series", RANK, RANKS, job="job-{job}")
if s.opened != OK:
    tell(["open", s.opened, s.text()])
    sys.exit()
s.protect("memory", bytes(300000))
if RESTORED:
    status, found = s.restore()
    tell([status, bytes(s.buffers["memory"]) == bytes([RANK + 16 * RESTORED]) * 300000, s.text()])
for version in VERSIONS:
    ctypes.memmove(s.buffers["memory"], bytes([RANK + 16 * version]) * 300000, 300000)
    status = s.checkpoint(version)
    tell([status, status == OK and s.wait(version) == OK, s.text()])
"""


def publish_dependent(series, base, version):
    """Publishes `version`, which has all its parts from `base`, in the same incarnation."""
    path = dict(reader.versions(series))[base]
    data = reader.read(path)
    body_end = 40 + struct.unpack_from("<Q", data, 16)[0]
    head, parts = reader.read_manifest(path)
    tables = bytearray(data[body_end:])
    for place in range(len(parts)):
        struct.pack_into("<I", tables, place * reader.RECORD_BYTES + 36, 1)  # the record's origin: the first base

    record = older.unpacked("manifest.fbs", data[40:body_end])
    incarnation = record["key"]["incarnation"]
    record["bases"] = [{"incarnation": incarnation, "version": base, "attempt_id": record["attempt_id"], "files": record.pop("files")}]
    record["key"]["version"] = version
    record["attempt_id"] = {"high": incarnation["high"], "low": secrets.randbits(63)}
    record["page_checksums"] = [reader.checksum(bytes(tables[at:at + reader.PAGE_BYTES])) for at in range(0, len(tables), reader.PAGE_BYTES)]
    folder = os.path.join(series, str(version))
    os.mkdir(folder)
    with open(os.path.join(folder, os.path.basename(path)), "wb") as file:
        file.write(older.frame(b"CAIRNman", older.repacked("manifest.fbs", record), 2) + tables)


class Dependent(unittest.TestCase):
    def start(self, **settings):
        self.nodes = Nodes(flush_files=2, daemon_idle_s=60, **settings)
        self.addCleanup(self.nodes.__exit__)
        self.series = os.path.join(self.nodes.persistent, "series")

    def job(self, number, versions, restored=0):
        ranks = [self.nodes.start(JOB.format(rank=rank, versions=versions, restored=restored, job=number), node=rank) for rank in range(2)]
        for process in ranks:
            for told in self.nodes.told(process):
                self.assertEqual(told[:2], [OK, True], told)

    def cairn(self, *arguments, code=OK):
        got, out, err = self.nodes.cairn(*arguments)
        self.assertEqual(got, code, out + err)
        return out + err

    def committed(self):
        listed = json.loads(self.nodes.cairn("ls", "series", "--json")[1])["checkpoints"][0]["versions"]
        return [each["version"] for each in listed if each["state"] == "committed"]

    def test_read_by_every_way(self):
        self.start()
        self.job(1, [1, 2])
        publish_dependent(self.series, 1, 3)
        self.cairn("verify", "series")
        self.assertRegex(self.cairn("show", "series", "3"), r"depends on +version 1")
        self.assertEqual([v["version"] for v in json.loads(self.cairn("show", "series", "3", "--json"))["parts"]], [1, 1])
        whole = reader.Version(dict(reader.versions(self.series))[3])
        for rank in range(2):
            self.assertEqual(whole.region(rank, "memory"), bytes([rank + 16]) * 300000)
            back = os.path.join(self.nodes.shared, f"back-{rank}")
            self.cairn("extract", "series", "3", "--rank", rank, "--region", "memory", "--output", back)
            with open(back, "rb") as file:
                self.assertEqual(file.read(), bytes([rank + 16]) * 300000)
        self.nodes.kill_daemons()
        self.job(2, [4], restored=1)  # version 3 is the newest, with the bytes of 1
        self.cairn("verify", "series")

    def test_its_base_stays(self):
        self.start(retention_persistent_last=1, retention_persistent_every=5)
        self.job(1, [1])
        publish_dependent(self.series, 1, 5)
        self.assertIn("version 5 depends on it", self.cairn("rm", "series", 1, code=PERMISSION))
        self.assertIn("version 5 depends on it", self.cairn("rm", "series", 1, "--force", code=PERMISSION))
        spared = json.loads(self.nodes.cairn("gc", "--json")[1])["spared"]
        self.assertEqual([(s["version"], "version 5 depends on it" in s["why"]) for s in spared if s["version"] == 1], [(1, True)], spared)
        self.nodes.kill_daemons()
        self.job(2, [6, 7], restored=1)
        until = time.monotonic() + 20
        while 6 in self.committed() and time.monotonic() < until:  # the rule is applied behind the commit
            time.sleep(0.05)
        self.assertEqual(self.committed(), [1, 5, 7])
        self.cairn("verify", "series")
        self.cairn("rm", "series", 1, 5)
        self.assertEqual(self.committed(), [7])
        self.assertEqual([f for f in self.nodes.files("series", 1) if "part-" in f], [])

    def test_a_missing_base_is_named(self):
        self.start()
        self.job(1, [1, 2])
        publish_dependent(self.series, 1, 3)
        part = next(f for f in self.nodes.files("series", 1) if "part-0001" in f)
        os.remove(part)
        self.assertRegex(self.cairn("verify", "series", 3, code=CORRUPT), r"1/part-0001-of-0002\.\w+: the part is missing, on which series version 3 depends")
        self.nodes.kill_daemons()
        self.job(2, [], restored=2)  # passes it over


if __name__ == "__main__":
    unittest.main(verbosity=2)
