"""Parts below several roots (storage.directories), with real daemons: where they lie, that a root which is away is named and nothing is concluded from it, that
all of a version goes, and that a root without room is left out.

Usage: CAIRN_BUILD=build/release python3 tests/roots_test.py [Class[.test]]; exit code 77 where nothing may be mounted. In a namespace of its own, so that
no mount outlives it.
"""
import json
import os
import subprocess
import sys
import unittest

import skipping
from mount_test import mount_tmpfs, private_mounts, unmount
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples", "reader"))
import reader  # noqa: E402
from support import CORRUPT, OK, UNAVAILABLE, Nodes

RANKS = 4
IMAGE_BYTES = 300_000
RANK = f"""
def content(version):
    return bytes((version * 7 + rank * 31 + i) % 251 for i in range(1000)) * ({IMAGE_BYTES} // 1000)
s = Session("series", rank, {RANKS})
if s.opened != OK:
    tell([s.opened, s.text()])
    sys.exit()
s.protect("memory", content(0))
"""
TAKE = RANK + """
for version in versions:
    ctypes.memmove(s.buffers["memory"], content(version), len(content(version)))
    assert s.checkpoint(version) == OK, s.text()
    assert s.wait(version, wait_ms=60000) == OK, s.text()
tell([s.close()])
"""
RESTORE = RANK + """
status, version = s.restore()
tell([status, version, s.buffers["memory"].raw == content(version), s.text()])
s.close()
"""


GO_BACK = RANK + """
import os, time
for version in (1, 2):
    ctypes.memmove(s.buffers["memory"], content(version), len(content(version)))
    assert s.checkpoint(version) == OK, s.text()
    assert s.wait(version, wait_ms=60000) == OK, s.text()
if rank == 0:
    for root in ROOTS:
        os.rename(root, root + "-away")
while any(os.path.exists(root) for root in ROOTS):
    time.sleep(0.01)
status, version = s.restore(1)
same = s.buffers["memory"].raw == content(1)
taken = s.checkpoint(3)
if rank == 0:
    for root in ROOTS:
        os.rename(root + "-away", root)
tell([status, version, same, taken, s.wait(3, wait_ms=60000)])
s.close()
"""


class Roots(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=RANKS, flush_block_bytes=4096, deadlines_restore_ms=5000, daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)
        self.roots = [os.path.join(self.nodes.shared, name) for name in ("fast-a", "fast-b")]
        for root in self.roots:
            os.mkdir(root)
        self.nodes.settings["storage_directories"] = ", ".join(self.roots)

    def job(self, code, versions=()):
        """What each rank told; two ranks on each of two nodes."""
        running = [self.nodes.start(f"rank, versions = {rank}, {versions}\n" + code, rank // 2) for rank in range(RANKS)]
        return [Nodes.told(each)[0] for each in running]

    def take(self, *versions):
        for told in self.job(TAKE, versions):
            self.assertEqual(told[0], OK, told)

    def parts(self, top=None, version=None):
        """Names of part files below a directory, of one version or all."""
        found = []
        for folder, _, names in os.walk(top or self.nodes.persistent):
            found += [name for name in names if name.startswith("part-") and (version is None or os.path.basename(folder) == str(version))]
        return sorted(found)

    def read_alone(self, version):
        """By the reader that has none of Cairn's code."""
        return reader.Version(dict(reader.versions(os.path.join(self.nodes.persistent, "series")))[version])

    def log(self, node):
        (root,) = [name for name in os.listdir(self.nodes.scratch(node)) if name.startswith("cairn-")]
        with open(os.path.join(self.nodes.scratch(node), root, "log"), encoding="utf-8") as file:
            return file.read()

    def cairn(self, *arguments, code=OK, **more):
        got, out, err = self.nodes.cairn(*arguments, **more)
        self.assertEqual(got, code, out + err)
        return out + err


class Placed(Roots):
    def test_parts_go_round_the_roots_and_come_back(self):
        self.take(1, 2)
        self.assertEqual(self.parts(), [])
        for root in self.roots:
            for version in (1, 2):
                self.assertEqual(len(self.parts(root, version)), 2, f"{root} {version}")
            self.assertEqual(sorted(os.listdir(root)), [".cairn", "series"])
        self.nodes.forget_scratch()
        for told in self.job(RESTORE):
            self.assertEqual(told[:3], [OK, 2, True], told)
        self.cairn("verify", "series")
        # Who reads needs no settings.
        self.cairn("verify", "series", storage_directories="")
        shown = json.loads(self.cairn("show", "series", "2", "--json", storage_directories=""))
        self.assertEqual(sorted(part["root"] for part in shown["parts"]), sorted(self.roots * 2))
        whole = self.read_alone(2)
        for rank in range(RANKS):
            content = bytes((2 * 7 + rank * 31 + i) % 251 for i in range(1000)) * (IMAGE_BYTES // 1000)
            self.assertEqual(whole.region(rank, "memory"), content)
        listed = json.loads(self.cairn("ls", "series", "--json", storage_directories=""))
        self.assertGreater(listed["checkpoints"][0]["versions"][-1]["stored_bytes"], RANKS * IMAGE_BYTES)

    def test_a_root_that_is_away_is_named_and_nothing_else_is_said(self):
        self.take(1)
        self.nodes.forget_scratch()
        away = self.roots[1] + "-away"
        for mount_point in (False, True):  # nothing at all, or the empty directory that a file system was mounted on
            os.rename(self.roots[1], away)
            if mount_point:
                os.mkdir(self.roots[1])
            for told in self.job(RESTORE):
                self.assertEqual(told[0], UNAVAILABLE, told)
                self.assertIn(self.roots[1] + "/series/1/part-", told[3])
                self.assertRegex(told[3], r"holds parts \d and \d of series version 1")
            said = self.cairn("verify", "series", code=UNAVAILABLE)
            self.assertIn(self.roots[1] + "/series/1/part-", said)
            self.assertNotIn("missing", said)
            with self.assertRaisesRegex(reader.Unavailable, r"/series/1/part-.*fast-b/\.cairn"):
                self.read_alone(1)
            if mount_point:
                os.rmdir(self.roots[1])
            os.rename(away, self.roots[1])
        self.nodes.forget_scratch()
        for told in self.job(RESTORE):
            self.assertEqual(told[:3], [OK, 1, True], told)
        os.remove(os.path.join(self.roots[1], "series", "1", self.parts(self.roots[1])[0]))
        with self.assertRaisesRegex(reader.Corrupt, "the part is missing"):
            self.read_alone(1)
        self.assertIn("the part is missing", self.cairn("verify", "series", code=CORRUPT))


class NotThere(Roots):
    def test_an_open_is_refused_where_none_is_there(self):
        for root in self.roots:
            os.rename(root, root + "-away")
        for status, text in self.job(RESTORE):
            self.assertEqual(status, UNAVAILABLE, "and nobody takes it for an open without a checkpoint: " + text)
            self.assertIn("storage.directories", text)
            self.assertIn(self.roots[0], text)
        os.rename(self.roots[0] + "-away", self.roots[0])
        self.take(1)
        self.assertEqual(len(self.parts(self.roots[0], 1)), RANKS)
        logs = "".join(self.log(node) for node in range(2))
        self.assertRegex(logs, f"target-left-out .*{self.roots[1]}", "one of several: it goes without, and the log says so")

    def test_a_session_goes_back_while_none_is_there(self):
        """From scratch: what becomes of the directories of an open session is no reason to begin anew."""
        for told in self.job(GO_BACK.replace("ROOTS", repr(self.roots))):
            self.assertEqual(told, [OK, 1, True, OK, OK])


class Persistent(Roots):
    """Named among the roots, to be used like them, it is none of them: what lies there is told, and removed, as everywhere."""

    def setUp(self):
        super().setUp()
        self.roots = self.roots[:1]
        self.nodes.settings["storage_directories"] = f"{self.nodes.persistent}, {self.roots[0]}"

    def test_its_files_are_told_once(self):
        self.take(1)
        self.assertEqual([len(self.parts(top, 1)) for top in (self.nodes.persistent, self.roots[0])], [2, 2])
        stored = sum(os.path.getsize(os.path.join(folder, name)) for top in (self.nodes.persistent, self.roots[0])
                     for folder, _, names in os.walk(os.path.join(top, "series", "1")) for name in names)
        for directories in (self.nodes.settings["storage_directories"], ""):
            listed = json.loads(self.cairn("ls", "series", "--json", storage_directories=directories))
            self.assertEqual(listed["checkpoints"][0]["versions"][-1]["stored_bytes"], stored)
        shown = json.loads(self.cairn("show", "series", "1", "--json", storage_directories=""))
        self.assertEqual(sorted(part["root"] for part in shown["parts"]), sorted([self.nodes.persistent, self.roots[0]] * 2))
        self.nodes.forget_scratch()
        for told in self.job(RESTORE):
            self.assertEqual(told[:3], [OK, 1, True], told)
        self.cairn("verify", "series")
        self.cairn("rm", "series", "1", "--force")
        self.assertEqual([self.parts(top) for top in (self.nodes.persistent, self.roots[0])], [[], []])


class Removed(Roots):
    def test_rm_takes_all_of_it(self):
        self.take(1, 2)
        self.cairn("rm", "series", "1", storage_directories="")
        for root in self.roots:
            self.assertEqual(self.parts(root, 1), [])
            self.assertEqual(os.listdir(os.path.join(root, "series")), ["2"])
            self.assertEqual(len(self.parts(root, 2)), 2)

    def test_a_root_that_never_got_a_part_keeps_nothing(self):
        self.nodes.settings["flush_files"] = 1
        self.take(1, 2)
        self.assertEqual(sorted(len(self.parts(root)) for root in self.roots), [1, 1])
        idle = next(root for root in self.roots if not self.parts(root, 1))
        os.rename(idle, idle + "-away")
        self.cairn("rm", "series", "1")
        self.assertEqual([self.parts(root, 1) for root in self.roots], [[], []])

    def test_what_is_away_goes_when_it_is_back(self):
        self.take(1, 2)
        away = self.roots[0] + "-away"
        os.rename(self.roots[0], away)
        said = self.cairn("rm", "series", "1", code=UNAVAILABLE)
        self.assertIn(self.roots[0], said)
        self.assertIn("cairn gc", said)
        self.assertEqual(self.parts(self.roots[1], 1), [])
        said = self.cairn("gc", "series", "--age", "0 s", storage_directories="")
        self.assertIn(self.roots[0], said)
        self.assertIn("spared", said)
        self.assertEqual(len(self.parts(away, 1)), 2)
        os.rename(away, self.roots[0])
        self.cairn("gc", "series", "--age", "0 s", storage_directories="")
        self.assertEqual(self.parts(self.roots[0], 1), [])
        self.assertEqual(len(self.parts(self.roots[0], 2)), 2)

    def test_gc_takes_what_attempts_left_below_roots(self):
        self.take(1)
        self.nodes.forget_scratch()
        (manifest,) = [n for n in os.listdir(os.path.join(self.nodes.persistent, "series", "1")) if n.startswith("manifest.")]
        half = manifest.removeprefix("manifest.")[:16]
        for version in ("1", "7"):
            folder = os.path.join(self.roots[0], "series", version)
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"part-0000-of-0004.{half}00000000000000aa"), "w") as file:
                file.write("left")
        os.utime(os.path.join(self.roots[0], "series", "7", f"part-0000-of-0004.{half}00000000000000aa"), (1, 1))
        before = self.parts(self.roots[1])
        self.cairn("gc", "series", "--age", "1 s")
        self.assertEqual(len(self.parts(self.roots[0], 1)), 2)
        self.assertEqual(self.parts(self.roots[0], 7), [])
        self.assertEqual(self.parts(self.roots[1]), before)
        self.cairn("verify", "series")


class Full(Roots):
    def test_a_root_without_room_is_left_out(self):
        mount_tmpfs(self.roots[0], "100k")
        self.addCleanup(unmount, self.roots[0])
        self.take(1)
        self.assertEqual(self.parts(self.roots[0]), [])
        self.assertEqual(len(self.parts(self.roots[1], 1)), RANKS)
        self.nodes.forget_scratch()
        for told in self.job(RESTORE):
            self.assertEqual(told[:3], [OK, 1, True], told)

    def test_an_open_is_refused_where_nothing_can_be_written(self):
        for root in self.roots:
            mount_tmpfs(root)
            self.addCleanup(unmount, root)
            subprocess.run(["mount", "-o", "remount,ro", root], check=True)
        for status, text in self.job(RESTORE):
            self.assertEqual(status, UNAVAILABLE, text)
            self.assertIn(self.roots[0], text)
        subprocess.run(["mount", "-o", "remount,rw", self.roots[1]], check=True)
        self.take(1)
        self.assertEqual(len(self.parts(self.roots[1], 1)), RANKS)

    def test_a_root_that_is_missing_is_left_out_and_told(self):
        os.rmdir(self.roots[0])
        self.take(1)
        self.assertEqual(len(self.parts(self.roots[1], 1)), RANKS)
        self.assertFalse(os.path.exists(self.roots[0]))


if __name__ == "__main__":
    if not private_mounts():
        if sys.argv[1:] == ["Full"]:
            skipping.leave("Full", "needs root: mount(2) is not allowed here")
        Full = unittest.skip("needs root: mount(2) is not allowed here")(Full)
    skipping.main(verbosity=2)
