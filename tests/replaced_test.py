"""A storage target that stops answering, or fills up, while a version is written, with real daemons: what lay on it is written again to another one, within the
attempt, and the version commits and comes back.

Four roots (storage.directories) are file systems in files of their own, on loop devices. One is frozen in mid-flush (fsfreeze: every write waits until it is thawed), or filled.

Usage: CAIRN_BUILD=build/release python3 tests/replaced_test.py [Class[.test]]; exit code 77 where nothing may be mounted. In a namespace of its own, so that no mount
outlives it.
"""
import contextlib
import os
import subprocess
import threading
import time
import unittest

import skipping
from mount_test import private_mounts
from support import OK, Nodes

RANKS = 4
IMAGE_BYTES = 8 << 20
RANK = f"""
import random
def content(version):
    return random.Random(version * 1000 + rank).randbytes(int(os.environ.get("IMAGE_BYTES", {IMAGE_BYTES})))
s = Session("series", rank, {RANKS})
assert s.opened == OK, s.text()
s.protect("memory", content(0))
"""
TAKE = RANK + """
for version in versions:
    ctypes.memmove(s.buffers["memory"], content(version), len(content(version)))
    begun = time.monotonic()
    assert s.checkpoint(version) == OK, s.text()
    blocked = time.monotonic() - begun
    assert s.wait(version, wait_ms=120000) == OK, s.text()
    tell([version, blocked, time.monotonic() - begun])
tell([s.close()])
"""
RESTORE = RANK + """
status, version = s.restore()
tell([status, version, s.buffers["memory"].raw == content(version), s.text()])
s.close()
"""


class Disk:
    """A small file system of its own, mounted at `path`."""

    def __init__(self, image, path, megabytes):
        with open(image, "wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", image], check=True)
        os.mkdir(path)
        subprocess.run(["mount", "-o", "loop", image, path], check=True)
        self.path, self.is_frozen = path, False

    def freeze(self):
        subprocess.run(["fsfreeze", "--freeze", self.path], check=True)
        self.is_frozen = True

    def thaw(self):
        if self.is_frozen:
            subprocess.run(["fsfreeze", "--unfreeze", self.path], check=True)
            self.is_frozen = False

    def close(self):
        self.thaw()
        subprocess.run(["umount", "--lazy", self.path], check=True)


class Cluster:
    """Two nodes with two ranks each, whose parts lie on four disks, one part on each."""

    def __init__(self, megabytes=64, **settings):
        self.closing = contextlib.ExitStack()
        self.nodes = Nodes(**{"flush_files": RANKS, "flush_leaders": 2, "deadlines_target_ms": 1000, "deadlines_restore_ms": 20000, "daemon_idle_s": 60, **settings})
        self.closing.callback(self.nodes.__exit__)
        self.disks = []
        for name in "abcd":
            disk = Disk(os.path.join(self.nodes.shared, name + ".img"), os.path.join(self.nodes.shared, name), megabytes)
            self.closing.callback(disk.close)
            self.disks.append(disk)
        self.nodes.settings["storage_directories"] = ", ".join(disk.path for disk in self.disks)

    def job(self, code, versions=()):
        running = [self.nodes.start(f"rank, versions = {rank}, {versions}\n" + code, rank // 2) for rank in range(RANKS)]
        return [Nodes.told(each, 180) for each in running]

    def parts(self, disk):
        return sorted(name for _, _, names in os.walk(self.disks[disk].path) for name in names if name.startswith("part-"))

    def part_bytes(self, disk):
        total = 0
        for folder, _, names in os.walk(self.disks[disk].path):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512 if name.startswith("part-") else 0
        return total

    def log(self, node=0):
        (root,) = [name for name in os.listdir(self.nodes.scratch(node)) if name.startswith("cairn-")]
        with open(os.path.join(self.nodes.scratch(node), root, "log"), encoding="utf-8") as file:
            return file.read()

    def when_written(self, disk, what, least=1):
        """Calls `what` as soon as so many bytes of parts are on this disk; a thread to be joined."""

        def wait():
            until = time.monotonic() + 60
            while self.part_bytes(disk) < least and time.monotonic() < until:
                time.sleep(0.001)
            what()

        thread = threading.Thread(target=wait)
        thread.start()
        return thread


class Replaced(unittest.TestCase):
    def begin(self, **settings):
        cluster = Cluster(**settings)
        self.addCleanup(cluster.closing.close)
        return cluster

    def expect_in_first_attempt(self, cluster, away):
        """Version 1 is committed, without a part on that disk, and nothing was tried again but one part."""
        log = cluster.log()
        self.assertEqual(log.count(" part-replaced "), 1, log)
        code, out, err = cluster.nodes.cairn("show", "series", "1")
        self.assertEqual(code, OK, err)
        self.assertNotIn(cluster.disks[away].path + "/series/1", out)
        code, out, err = cluster.nodes.cairn("verify", "series", "1")
        self.assertEqual(code, OK, out + err)

    def expect_back(self, cluster):
        cluster.nodes.forget_scratch()
        for told in cluster.job(RESTORE):
            self.assertEqual(told[0][:3], [OK, 1, True], told)

    def test_a_target_that_stops_answering(self):
        cluster = self.begin()
        frozen = cluster.when_written(2, cluster.disks[2].freeze)
        told = cluster.job(TAKE, (1,))
        frozen.join()
        self.assertTrue(cluster.disks[2].is_frozen)
        self.assertEqual([each[-1][0] for each in told], [OK] * RANKS)
        self.expect_in_first_attempt(cluster, 2)
        cluster.disks[2].thaw()
        self.expect_back(cluster)
        code, out, err = cluster.nodes.cairn("gc", "--age", "0s")
        self.assertEqual(code, OK, out + err)
        self.assertEqual(cluster.parts(2), [], "what the daemon could not remove at the time")

    def test_a_target_that_fills_up(self):
        cluster = self.begin(megabytes=24)
        fill = lambda: subprocess.run(["fallocate", "--length", "22M", os.path.join(cluster.disks[1].path, "somebody-elses")], check=False, stderr=subprocess.DEVNULL)  # noqa: E731
        filled = cluster.when_written(1, fill)
        told = cluster.job(TAKE, (1,))
        filled.join()
        self.assertEqual([each[-1][0] for each in told], [OK] * RANKS)
        if "part-replaced" in cluster.log():  # what was written before there was no room stays whole
            self.expect_in_first_attempt(cluster, 1)
        self.expect_back(cluster)


if __name__ == "__main__":
    if not private_mounts():
        skipping.leave("Replaced", "needs root: mount(2) is not allowed here")
    skipping.main(verbosity=2)
