"""The format was raised from 1 to 2: what the older release left is read, taken over and written anew. Real library, real daemons.

Usage: CAIRN_BUILD=build/release python3 tests/upgrade_test.py [Class[.test]]
The older release's files are today's, rewritten (older.py), while no process runs: without region index, cuts and runs, as version 1 had none.
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import older
from older import reader
from support import CORRUPT, OK, Nodes

RANKS, NODES, BLOCK = 4, 2, 65536  # two ranks on each node
SIZES = [200_000, 3 * BLOCK, 1, 0]  # a short last block, whole ones, a single byte, an empty image

JOB = """
import random
RANK, SIZE = {rank}, {size}
def content(version):
    return random.Random(RANK * 100 + version).randbytes(SIZE)
s = Session("series", RANK, {ranks}, job={job!r})
if SIZE:
    s.protect("field/u", bytes(SIZE))
    s.protect("step", bytes(8), kind=8, shape=[1])
status, version = s.restore({version})
right = status != OK or not SIZE or [s.buffers["field/u"].raw[:SIZE], int.from_bytes(s.buffers["step"].raw, "little")] == [content(version), version]
tell(["restored", s.opened, status, version, right, s.text()])
while order := hear():
    word, version = order.split()
    version = int(version)
    if word == "take":
        if SIZE:
            ctypes.memmove(s.buffers["field/u"], content(version), SIZE)
            ctypes.memmove(s.buffers["step"], version.to_bytes(8, "little"), 8)
        tell(["took", s.checkpoint(version), s.text()])
    else:
        tell(["waited", s.wait(version, wait_ms=60000), s.text()])
"""


def content(rank, version):
    return random.Random(rank * 100 + version).randbytes(SIZES[rank])


class Upgrade(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=2, flush_block_bytes=BLOCK, daemon_idle_s=120)
        self.addCleanup(self.nodes.__exit__)
        self.series = os.path.join(self.nodes.persistent, "series")

    # ---- a job ----

    def start(self, newest, version="NEWEST"):
        """The ranks of a new job; what they restore is `newest`, bit for bit, and 0 is nothing."""
        job = "job-%d" % random.getrandbits(60)
        self.ranks = [self.nodes.start(JOB.format(rank=r, size=SIZES[r], ranks=RANKS, job=job, version=version), node=r * NODES // RANKS)
                      for r in range(RANKS)]
        self.addCleanup(self.end, self.ranks)
        for process in self.ranks:
            told = self.hear(process, "restored")
            self.assertEqual(told[1], OK, told)
            self.assertEqual([told[2] == OK and told[3], told[4]], [newest or False, True], told)

    @staticmethod
    def end(processes):
        for process in processes:
            process.kill()
            if not process.stdout.closed:
                process.communicate()

    def kill(self):
        self.nodes.kill_all()
        self.end(self.ranks)

    def hear(self, process, kind):
        text = process.stdout.readline()
        self.assertTrue(text, "a rank ended: " + (process.stderr.read() if process.poll() is not None else "silently"))
        told = json.loads(text)
        self.assertEqual(told[0], kind, told)
        return told

    def order(self, words, kind, ranks=range(RANKS)):
        for rank in ranks:
            self.ranks[rank].stdin.write(words + "\n")
            self.ranks[rank].stdin.flush()
        for rank in ranks:
            told = self.hear(self.ranks[rank], kind)
            self.assertEqual(told[1], OK, told)

    def commit(self, version):
        self.order(f"take {version}", "took")
        self.order(f"wait {version}", "waited")

    def coordinator(self):
        """The process that is the daemon of node 0."""
        for pid in self.nodes.daemons():
            with open(f"/proc/{pid}/environ", "rb") as file:
                if b"CAIRN_NODE=n0" in file.read().split(b"\0"):
                    return pid
        self.fail("node 0 has no daemon")

    def seal(self, version):
        """All ranks seal it, and it can not be flushed: the coordinator stands still before the last of them has."""
        self.order(f"take {version}", "took", range(RANKS // NODES))
        os.kill(self.coordinator(), signal.SIGSTOP)
        self.order(f"take {version}", "took", range(RANKS // NODES, RANKS))
        self.kill()
        self.assertEqual(self.nodes.files("series", version), [])

    # ---- what is there ----

    def cairn(self, *arguments, code=OK, node=0):
        got, out, err = self.nodes.cairn(*arguments, node=node)
        self.assertEqual(got, code, out + err)
        return out + err if code else out

    def until_committed(self, version):
        end = time.monotonic() + 60
        while not any(os.path.basename(f).startswith("manifest") for f in self.nodes.files("series", version)):
            if time.monotonic() > end:
                self.fail(f"version {version} is not committed within 60 s:\n" + "".join(self.nodes.cairn("status", node=n)[1] for n in range(NODES)))
            time.sleep(0.05)

    def expect_whole(self, version, format_version, indexed):
        """In files of this format, which `cairn verify` and the reader of examples/ read bit for bit. Only what was captured since format 2 has a region index."""
        for path in self.nodes.files("series", version):
            found = older.version_of(path) if "manifest" in path else struct.unpack_from("<I", reader.read(path, os.path.getsize(path) - 24))[0]
            self.assertEqual(found, format_version, path)
        self.cairn("verify", "series", version)
        whole = reader.Version(dict(reader.versions(self.series))[version])
        self.assertEqual(whole.images[RANKS - 1].bytes, 0)
        self.assertEqual(whole.manifest.image_bytes, sum(image.bytes for image in whole.images.values()))
        for rank, image in whole.images.items():
            self.assertEqual(image.index_bytes > 0, indexed and SIZES[rank] > 0, image)
            self.assertEqual(len(image.regions), 0 if indexed or not SIZES[rank] else 2, image)
            self.assertTrue(indexed or image.bytes == max((r.offset + r.length for r in image.regions), default=0), image)
        for rank in range(RANKS - 1):
            self.assertEqual(whole.region(rank, "field/u"), content(rank, version), f"rank {rank}")
            self.assertEqual(whole.region(rank, "step"), version.to_bytes(8, "little"), f"rank {rank}")
        said = subprocess.run([sys.executable, reader.__file__, self.series, str(version)], capture_output=True, text=True, timeout=60)
        self.assertEqual((said.returncode, said.stdout.count("checksums hold")), (0, RANKS), said.stdout + said.stderr)

    def expect_regions(self, version):
        """`cairn` knows them by name, and gives each by itself."""
        shown = self.cairn("show", "series", version, "--pieces")
        self.assertEqual([shown.count(name) for name in ("field/u", "step")], 2 * [RANKS - 1], shown)
        for rank, size in enumerate(SIZES[:-1]):
            for name, bytes_of_it in (("field/u", content(rank, version)), ("step", version.to_bytes(8, "little"))):
                path = os.path.join(self.nodes.shared, f"{version}-{rank}-{os.path.basename(name)}")
                self.cairn("extract", "series", version, "--rank", rank, "--region", name, "--output", path)
                self.assertEqual(reader.read(path), bytes_of_it, f"rank {rank} {name}")


class Golden(unittest.TestCase):
    """What older.py lets a record of version 1 have is what the files have that version 1 itself wrote."""

    def test_fields(self):
        seen = {}
        for name, schema in (("image-header", "image"), ("manifest", "manifest"), ("manifest-abandoned", "manifest"), ("roster", "roster"), ("part", "part")):
            path = os.path.join(older.ROOT, "tests", "golden", "v1", name)
            start, length = struct.unpack_from("<QQ", reader.read(path, os.path.getsize(path) - 48)) if name == "part" else (40, *struct.unpack("<Q", reader.read(path, 16, 8)))
            record = older.unpacked(schema + ".fbs", reader.read(path, start, length))
            self.assertEqual(older.unpacked(schema + ".fbs", older.packed(schema + ".fbs", record)), record)  # which refuses a later field
            seen.setdefault(schema + ".fbs", set()).update(older.names_in(record))
        seen["image.fbs"].add("rank")  # these are 0 there, which is their default
        seen["part.fbs"].update(["part", "image_offset"])
        for schema, names in seen.items():
            self.assertEqual(names, older.FIELDS[schema], schema)


class Images(Upgrade):
    """Nothing is committed yet, or not the newest: all that there is of it is in scratch."""

    def leave(self):
        """By the older release: version 1 committed by one job, version 2 sealed and not flushed by another that went on from it."""
        self.start(0)
        self.commit(1)
        self.kill()
        self.start(1)
        self.seal(2)
        older.make_version_old(dict(reader.versions(self.series))[1])
        seen = older.make_records_old(self.nodes.local, self.nodes.persistent)
        self.assertEqual(set(seen), {b"CAIRNimg", b"CAIRNros", b"CAIRNnod", b"CAIRNopn", b"CAIRNfrm"}, seen)
        self.assertGreaterEqual(seen[b"CAIRNimg"], RANKS, seen)
        self.expect_slots(2)

    def expect_slots(self, version):
        """Of every rank one is sealed, as the older release had it: its header tells the regions, and its data are these and nothing more. Gives their files."""
        ranks, paths = set(), []
        for path in (os.path.join(folder, name) for folder, _, names in os.walk(self.nodes.local) for name in names if name.startswith("slot-")):
            record, data = older.read_slot(path)
            image, sealed = record["image"], reader.read(path, 0, 8) == b"CRNSEALD"
            if not sealed or record["key"]["version"] != version:
                continue
            self.assertEqual(older.version_of(path, older.SLOT_HEADER), 1)
            self.assertLessEqual(set(image), {"rank", "bytes", "regions"})  # no cuts, no index_bytes
            rank = image.get("rank", 0)
            told = {r["name"]: data[r.get("offset", 0):r.get("offset", 0) + r["length"]] for r in image["regions"]}
            right = {"field/u": content(rank, version), "step": version.to_bytes(8, "little")}
            self.assertEqual(told, right if SIZES[rank] else {}, f"rank {rank}")
            self.assertEqual(len(data), max((r.get("offset", 0) + r["length"] for r in image["regions"]), default=0), image)
            self.assertNotIn(b"CAIRNreg", data)
            ranks.add(rank)
            paths.append(path)
        self.assertEqual(ranks, set(range(RANKS)))
        return paths

    def expect_both(self):
        """Whoever commits an image that has no index tells its regions in the part."""
        self.until_committed(2)
        self.expect_whole(1, 1, indexed=False)
        self.expect_whole(2, 2, indexed=False)
        self.expect_regions(1)
        self.expect_regions(2)

    def test_daemons_that_start_commit_them(self):
        """`cairn start` on each node, and no program: as an administrator does after an upgrade."""
        self.leave()
        for node in range(NODES):
            self.cairn("start", node=node)
        self.expect_both()
        self.start(2)
        self.commit(3)
        self.expect_whole(3, 2, indexed=True)

    def test_a_job_goes_on_from_them(self):
        """The next open finds the newest version in scratch alone; its daemons finish it."""
        self.leave()
        self.start(2)
        self.commit(3)
        self.expect_both()
        self.expect_whole(3, 2, indexed=True)

    def test_their_checksums_hold(self):
        """Those that a capture made, beside a proof: the machine seems to have been started again, so that a daemon asks for both before it believes an image."""
        self.nodes.settings["capture_checksums"] = "capture"
        self.leave()
        for path in self.expect_slots(2):
            self.assertEqual(reader.read(path, 8, 8), b"CRNCSUMD")
        boots = [os.path.join(folder, name) for folder, _, names in os.walk(self.nodes.local) for name in names if name == "boot"]
        self.assertEqual(len(boots), NODES)
        for path in boots:
            older.write(path, b"00000000-0000-4000-8000-000000000000\n")
        for node in range(NODES):
            self.cairn("start", node=node)
        self.expect_both()


class Files(Upgrade):
    """Committed versions of format 1; scratch is gone."""

    def leave(self, *versions):
        self.start(0)
        for version in versions:
            self.commit(version)
        self.kill()
        for version, path in reader.versions(self.series):
            older.make_version_old(path)
        older.make_records_old(self.nodes.persistent)
        for node in range(NODES):
            shutil.rmtree(self.nodes.scratch(node))
            self.nodes.scratch(node)

    def test_restore_and_commands(self):
        self.leave(1, 2)
        for version in (1, 2):
            self.expect_whole(version, 1, indexed=False)
            self.expect_regions(version)
        listed = json.loads(self.cairn("ls", "series", "--json"))["checkpoints"][0]["versions"]
        self.assertEqual([(v["version"], v["state"]) for v in listed], [(1, "committed"), (2, "committed")])
        self.start(2)
        self.commit(3)
        self.kill()
        self.start(1, version=1)  # goes back; versions of both formats lie side by side
        self.commit(2)
        known = dict(reader.versions(self.series))
        self.assertEqual(sorted(known), [1, 2])
        self.assertEqual(older.version_of(known[2]), 2)
        self.cairn("verify", "series", 2)
        self.cairn("rm", "series", 1)
        self.assertEqual(sorted(dict(reader.versions(self.series))), [2])

    def test_damage_is_named(self):
        """Each block of a part of format 1 has its checksum still."""
        self.leave(1)
        (part,) = [f for f in self.nodes.files("series", 1) if "part-0000" in f]
        footer, _ = reader.read_footer(part, os.path.getsize(part))
        extent = max(footer.extents, key=lambda each: each.length)
        at = extent.part_offset + BLOCK  # in its second block
        older.write(part, bytes([reader.read(part, at, 1)[0] ^ 1]), at)
        self.assertRegex(self.cairn("verify", "series", 1, code=CORRUPT), rf"part-0000-of-0002\.\w+ +1 +{extent.rank} +field/u +checksum differs")


if __name__ == "__main__":
    unittest.main(verbosity=2)
