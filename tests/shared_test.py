"""Two users of one persistent directory: a group's, with the set-group-ID bit, serves both; each sees the other's series.

Usage: CAIRN_BUILD=build/release python3 tests/shared_test.py [Class[.test]]; exit code 77 where nobody can become another user, or other users can not run
this build.
"""
import os
import subprocess
import unittest

import skipping
from support import BUILD, OK, PERMISSION, Nodes, find

GROUP, USERS = 64200, (64201, 64202)

JOB = """
import os
os.umask({umask})
os.environ["HOME"] = "/"
os.setgroups([])
os.setgid({group})
os.setuid({user})
s = Session("series-{user}")
s.protect("memory", bytes(200000))
status = s.checkpoint(1)
tell([s.opened, status, s.wait(1), s.text()])
s.close()
"""


RESTORE = """
import os
os.umask({umask})
os.environ["HOME"] = "/"
os.setgroups([])
os.setgid({group})
os.setuid({user})
s = Session("{name}", job="another")
s.protect("memory", bytes(200000))
status, version = s.restore()
tell([status, version, s.text()])
if status == OK:
    status = s.checkpoint(version + 1)
    tell([status, s.wait(version + 1), s.text()])
s.close()
"""


def as_user(user):
    os.setgroups([])
    os.setgid(GROUP)
    os.setuid(user)


def other_users_can_run_it():
    if os.geteuid() != 0:
        return False
    try:
        return subprocess.run([find("cairn"), "--version"], preexec_fn=lambda: as_user(USERS[0]), capture_output=True).returncode == 0
    except (PermissionError, subprocess.SubprocessError):
        return False


class Shared(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=1)
        self.addCleanup(self.nodes.__exit__)
        os.chmod(self.nodes.local, 0o755)
        os.chmod(self.nodes.shared, 0o755)
        os.chown(self.nodes.persistent, 0, GROUP)
        for node, user in enumerate(USERS):
            os.chown(self.nodes.scratch(node), user, GROUP)

    def take(self, node, umask=0o022):
        return self.nodes.run(JOB.format(group=GROUP, user=USERS[node], umask=umask), node=node)[0]

    def restored(self, node, name, umask=0o077):
        return self.nodes.run(RESTORE.format(group=GROUP, user=USERS[node], umask=umask, name=name), node=node)[0]

    def cairn(self, *arguments):
        """As the first of the users."""
        return subprocess.run([find("cairn"), *arguments], env={**self.nodes.environment(), "HOME": "/"}, preexec_fn=lambda: as_user(USERS[0]),
                              capture_output=True, text=True, cwd="/")

    def modes(self, name):
        return {oct(os.stat(os.path.join(folder, each)).st_mode & 0o777) for folder, _, names in os.walk(self.nodes.persistent) for each in names if name in each}

    def test_both_commit_and_see_each_other(self):
        os.chmod(self.nodes.persistent, 0o2775)
        for node in range(2):
            opened, captured, committed, text = self.take(node)
            self.assertEqual((opened, captured, committed), (OK, OK, OK), text)
        done = self.cairn("ls")
        self.assertEqual(done.returncode, 0, done.stderr)
        for user in USERS:
            self.assertIn(f"series-{user}", done.stdout)
        done = self.cairn("rm", f"series-{USERS[1]}", "1", "--force")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_strict_umask_keeps_no_member_out(self):
        """Each restores and goes on with what the other took; only what holds a job's secret is its user's alone."""
        os.chmod(self.nodes.persistent, 0o2775)
        self.assertEqual(self.take(0, umask=0o077)[:3], [OK, OK, OK])
        self.assertEqual(self.restored(1, f"series-{USERS[0]}"), [OK, 1, ""])
        self.assertEqual(self.restored(0, f"series-{USERS[0]}"), [OK, 2, ""])
        for name in ("manifest", "part-", ".open", ".from"):
            self.assertEqual(self.modes(name), {"0o640"}, name)
        self.assertEqual(self.modes("reserve"), {"0o660"})
        self.assertEqual(self.modes("roster"), {"0o600"})
        done = self.cairn("rm", f"series-{USERS[0]}", "2")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_may_not_be_read_is_not_to_be_repaired(self):
        os.chmod(self.nodes.persistent, 0o2775)
        self.assertEqual(self.take(1)[:3], [OK, OK, OK])
        series = f"series-{USERS[1]}"
        for path in [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(self.nodes.persistent, series)) for name in names]:
            os.chmod(path, 0o600)
        for command in (("ls", series), ("verify", series), ("repair", series)):
            done = self.cairn(*command)
            said = done.stdout + done.stderr
            self.assertIn("chmod g+r", said, command)
            self.assertNotIn("cairn repair " + series, said, command)
            self.assertNotIn("--forget", said, command)
        status, _, text = self.restored(0, series)
        self.assertEqual(status, PERMISSION, text)
        self.assertIn("chmod g+r", text)
        self.assertNotIn("--forget", text)

    def test_a_newest_version_that_may_not_be_read_is_not_left_behind(self):
        """It may be whole: a restart that went back would go on beside it, and it would never be looked for again."""
        os.chmod(self.nodes.persistent, 0o2775)
        self.assertEqual(self.take(0)[:3], [OK, OK, OK])
        series = f"series-{USERS[0]}"
        self.assertEqual(self.restored(1, series), [OK, 1, ""])  # and version 2 is taken
        folder = os.path.join(self.nodes.persistent, series, "2")
        for kind in ("manifest", "part-"):
            path = next(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(kind))
            os.chmod(path, 0o600)
            status, _, text = self.restored(0, series)
            self.assertEqual(status, PERMISSION, text)
            for words in ("version 2", os.path.basename(path), "chmod g+r", "an older version by its number"):
                self.assertIn(words, text)
            os.chmod(path, 0o640)
        self.assertEqual(self.restored(0, series), [OK, 2, ""])

    def test_a_sticky_one_is_refused_by_name(self):
        os.chmod(self.nodes.persistent, 0o1777)
        self.assertEqual(self.take(0)[:3], [OK, OK, OK])
        opened, _, _, text = self.take(1)
        self.assertNotEqual(opened, OK)
        self.assertIn("/.cairn", text)
        self.assertIn("ermission denied", text)


if __name__ == "__main__":
    if not other_users_can_run_it():
        skipping.leave("Shared", "needs root, and a build that other users can run" if os.geteuid() != 0 else "other users can not run this build: its folder is closed to them")
    skipping.main(verbosity=2)
