"""What is mounted over persistent, and taken away, while a job runs: what is called committed is found when the job's own file system is back.

Usage: CAIRN_BUILD=build/release python3 tests/mount_test.py [Class[.test]]; exit code 77 where nothing may be mounted. In a namespace of its own,
so that no mount outlives it.
"""
import ctypes
import json
import os
import subprocess
import time
import unittest

import skipping
from support import DEADLINE, OK, PERMISSION, UNAVAILABLE, Nodes, find

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)

JOB = """
s = Session("series")
tell([s.opened, s.text()])
s.protect("memory", bytes(200000))
while order := hear():
    version, wait_ms = map(int, order.split())
    status = s.checkpoint(version)
    tell([status, s.wait(version, wait_ms=wait_ms), s.text()] if status == OK else [status, status, s.text()])
"""
RESTART = """
s = Session("series")
s.protect("memory", bytes(200000))
tell([s.restore(), s.text()])
"""


def private_mounts():
    """False where it is not allowed."""
    if libc.unshare(CLONE_NEWNS) != 0:
        return False
    return libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) == 0


def mount_tmpfs(path, size="64m"):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "cairn-test", path], check=True)


def unmount(path):
    subprocess.run(["umount", "--lazy", path], check=True)


class Mounts(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=1, daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)
        self.job = None
        self.addCleanup(self.end)

    def end(self):
        if self.job and self.job.poll() is None:
            self.job.kill()
            self.job.communicate()

    def begin(self):
        self.job = self.nodes.start(JOB)
        self.assertEqual(self.told()[0], OK)

    def told(self):
        return json.loads(self.job.stdout.readline() or "null")

    def take(self, version, wait_ms=60000):
        """(captured, committed, the text of the last that failed)"""
        self.job.stdin.write(f"{version} {wait_ms}\n")
        self.job.stdin.flush()
        return self.told()

    def restarted(self):
        return self.nodes.run(RESTART)[0]

    def committed_in(self, version, seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            code, out, _ = self.nodes.cairn("ls", "series", "--json")
            if code == 0 and any(v["version"] == version and v["state"] == "committed" for v in json.loads(out)["checkpoints"][0]["versions"]):
                return True
            time.sleep(0.2)
        return False

    def test_another_file_system_is_mounted_over_it_while_a_job_runs(self):
        self.begin()
        self.assertEqual(self.take(1)[:2], [OK, OK])
        mount_tmpfs(self.nodes.persistent)
        captured, committed, text = self.take(2)
        self.assertEqual((captured, committed), (OK, UNAVAILABLE), text)
        self.assertIn("is the file system mounted", text)
        self.assertIn("stays in scratch", text)
        self.assertEqual(os.listdir(self.nodes.persistent), [], "and nothing is left there")
        self.nodes.kill_daemons()
        code, out, err = self.nodes.cairn("stop")  # nobody is there to be asked
        self.assertEqual(code, DEADLINE, out + err)
        self.assertIn("left in scratch, without a daemon: series version 2", out)
        self.nodes.cairn("start")  # this one knows only what scratch holds
        time.sleep(2)
        self.assertNotIn("series", os.listdir(self.nodes.persistent))
        unmount(self.nodes.persistent)
        self.assertTrue(self.committed_in(2), "it is tried again")
        self.end()
        self.assertEqual(self.restarted(), [[OK, 2], ""])

    def test_it_goes_away_while_a_job_runs(self):
        """What is then seen is the directory that it was mounted on."""
        mount_tmpfs(self.nodes.persistent)
        held = os.path.join(self.nodes.shared, "held")
        os.mkdir(held)
        subprocess.run(["mount", "--bind", self.nodes.persistent, held], check=True)  # so that it can come back
        self.begin()
        self.assertEqual(self.take(1)[:2], [OK, OK])
        unmount(self.nodes.persistent)
        self.assertEqual(self.take(2)[:2], [OK, UNAVAILABLE])
        subprocess.run(["mount", "--bind", held, self.nodes.persistent], check=True)
        self.assertTrue(self.committed_in(2))
        self.assertEqual(self.take(3)[:2], [OK, OK])
        self.end()
        self.assertEqual(self.restarted(), [[OK, 3], ""])
        unmount(self.nodes.persistent)
        unmount(held)

    def test_a_daemon_that_is_stopped_uses_its_time_when_it_is_back(self):
        """However long ago the last try was, it tries at once, and again while there is time."""
        for back_after_s in (0, 3):
            with self.subTest(back_after_s=back_after_s):
                self.begin()
                mount_tmpfs(self.nodes.persistent)
                version = 1 + back_after_s
                self.assertEqual(self.take(version)[:2], [OK, UNAVAILABLE])
                time.sleep(20)  # the pauses between tries have become longer than the wait that follows
                self.end()
                stop = subprocess.Popen([find("cairn"), "stop", "--wait", "15 s"], env=self.nodes.environment(), cwd=self.nodes.shared,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                time.sleep(back_after_s)
                unmount(self.nodes.persistent)
                out, err = stop.communicate(timeout=60)
                self.assertEqual(stop.returncode, 0, out + err)
                self.assertTrue(any("manifest" in path for path in self.nodes.files("series", version)))

    def test_it_becomes_read_only_while_a_job_runs(self):
        mount_tmpfs(self.nodes.persistent)
        self.begin()
        self.assertEqual(self.take(1)[:2], [OK, OK])
        subprocess.run(["mount", "-o", "remount,ro", self.nodes.persistent], check=True)
        captured, committed, text = self.take(2)
        self.assertEqual((captured, committed), (OK, PERMISSION), text)
        self.assertIn("Read-only file system", text)
        self.assertEqual(text.count(self.nodes.persistent), 1, "the path is named once: " + text)
        self.end()
        unmount(self.nodes.persistent)


if __name__ == "__main__":
    if not private_mounts():
        skipping.leave("Mounts", "needs root: mount(2) is not allowed here")
    skipping.main(verbosity=2)
