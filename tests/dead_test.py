"""Images that nobody can need leave scratch: a job was killed while one node held a version that another one never took, and the next one went on
from an older version. Beside real daemons on two virtual nodes, one rank each.

Usage: CAIRN_BUILD=build/release python3 tests/dead_test.py [Class[.test]]
"""
import json
import os
import random
import signal
import time
import unittest

from support import NOT_FOUND, OK, SUPERSEDED, Nodes

BYTES = 4 << 20
ROUNDS = 3

JOB = """
RANK, RANKS, BYTES = {rank}, {ranks}, {bytes}
s = Session("series", RANK, RANKS, job={job!r})
if s.opened != OK:
    tell(["open", s.opened, s.text()])
    sys.exit()
s.protect("memory", bytes(BYTES))
status, version = s.restore()
tell(["restored", status, version, s.text(), s.buffers["memory"].raw == bytes([version % 251]) * BYTES])
while True:
    order, _, version = hear().partition(" ")
    version = int(version or 0)
    if order == "take":
        ctypes.memmove(s.buffers["memory"], bytes([version % 251]) * BYTES, BYTES)
        tell(["took", s.checkpoint(version), version, s.text()])
    elif order == "wait":
        tell(["waited", s.wait(version, wait_ms=120000), version, s.text()])
    else:
        tell(["closed", s.close()])
        break
"""


class Case(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.nodes = Nodes(flush_files=1, retention_scratch_last=2, daemon_idle_s=120, capture_scratch_bytes=18 << 20, **self.settings)
        self.addCleanup(self.nodes.__exit__)

    def start(self, *nodes):
        """The ranks of a job, on these nodes, or on both; they go on from the newest version, which is returned, 0 for none."""
        nodes, job = nodes or (0, 1), "job-%d" % random.getrandbits(60)
        self.ranks = [self.nodes.start(JOB.format(rank=r, ranks=len(nodes), bytes=BYTES, job=job), node=n) for r, n in enumerate(nodes)]
        self.addCleanup(self.end, self.ranks)
        told = [self.hear(process, "restored") for process in self.ranks]
        self.assertEqual(len({tuple(t[1:3]) for t in told}), 1, told)
        self.assertTrue(all(t[1] == NOT_FOUND or t[1] == OK and t[4] for t in told), told)
        return told[0][2] if told[0][1] == OK else 0

    @staticmethod
    def end(processes):
        for process in processes:
            process.kill()
            if not process.stdout.closed:
                process.communicate()

    def hear(self, process, kind):
        text = process.stdout.readline()
        self.assertTrue(text, "a rank ended")
        told = json.loads(text)
        self.assertEqual(told[0], kind, told)
        return told

    def order(self, words, kind, *ranks, code=OK):
        """Says it to some ranks, or all, and hears how it went."""
        chosen = [self.ranks[r] for r in ranks] or self.ranks
        for process in chosen:
            process.stdin.write(words + "\n")
            process.stdin.flush()
        for process in chosen:
            told = self.hear(process, kind)
            self.assertEqual(told[1], code, told)

    def take(self, version, *ranks, commits=True):
        self.order(f"take {version}", "took", *ranks)
        if commits:
            self.order(f"wait {version}", "waited", *ranks)

    def kill(self):
        self.nodes.kill_all()
        self.end(self.ranks)

    def cairn(self, *arguments, code=0, **more):
        got, out, err = self.nodes.cairn(*arguments, **more)
        self.assertEqual(got, code, out + err)
        return out

    def versions(self, *states):
        """As persistent and the scratch of either node show them."""
        seen = [json.loads(self.cairn("ls", "series", "--json", node=node))["checkpoints"] for node in range(2)]
        return sorted({(v["version"], v["incarnation"]) for series in seen for s in series for v in s["versions"] if v["state"] in states})

    def committed(self):
        return [version for version, _ in self.versions("committed")]

    def under_way(self):
        """Versions that a daemon does not call committed."""
        nodes = [n for node in range(2) for n in json.loads(self.cairn("status", "--json", node=node))["nodes"]]
        return [(n["node"], v["version"], v["text"]) for n in nodes for v in n["versions"] if v["level"] != "committed"]

    def until(self, condition, what, wait_s=60):
        end = time.monotonic() + wait_s
        while not condition():
            if time.monotonic() > end:
                self.fail(f"not within {wait_s} s: {what}\n" + self.nodes.cairn("ls", "series")[1] + self.nodes.cairn("status")[1])
            time.sleep(0.05)

    def all_gone(self):
        self.until(lambda: not self.versions("partial", "unfinished") and not self.under_way(), "what is dead has gone")

    def half_a_version(self, version):
        """The job is killed, with every daemon, when one node holds a version and the other does not."""
        self.take(version, 1, commits=False)
        self.kill()

    def stop(self):
        for node in range(2):
            self.cairn("stop", node=node)


class Dead(Case):
    def test_three_killed_jobs(self):
        """Each left an image of its own on the second node. They go as soon as the next job has chosen where it goes on from."""
        self.start()
        self.take(1)
        for _ in range(ROUNDS):
            self.half_a_version(2)
            self.assertEqual(self.start(), 1)
            self.all_gone()
        for version in range(2, 6):
            self.take(version)
        self.assertEqual(self.committed(), [1, 2, 3, 4, 5])
        self.all_gone()
        self.end(self.ranks)
        self.stop()
        self.cairn("verify")

    def test_nothing_was_ever_committed(self):
        """Each job begins anew, so nothing says which of them counts until one has committed."""
        for _ in range(ROUNDS):
            self.assertEqual(self.start(), 0)
            self.half_a_version(1)
        self.assertEqual(self.start(), 0)
        self.assertEqual(len(self.versions("partial")), ROUNDS)
        self.take(1)
        self.all_gone()
        self.end(self.ranks)
        self.stop()

    def test_what_is_whole_below_still_commits(self):
        """Two versions are in scratch alone: one on both nodes, which the next job goes on from, and a newer one on a single node."""
        self.start()
        self.take(1)
        self.take(2, commits=False)
        self.half_a_version(3)
        self.assertEqual(self.start(), 2)
        self.until(lambda: self.committed() == [1, 2], "the version that was gone on from is committed")
        self.all_gone()
        self.end(self.ranks)
        self.stop()

    def test_a_daemon_that_was_away(self):
        """The next job runs on the first node alone, and the second one's daemon is started when it has long gone on. What attempts left goes, too."""
        self.start()
        self.take(1)
        self.half_a_version(2)
        half = self.versions("committed")[0][1][:16]
        os.mkdir(os.path.join(self.nodes.persistent, "series", "2"))
        part = os.path.join(self.nodes.persistent, "series", "2", f"part-0000-of-0001.{half}{'7' * 16}")
        with open(part, "wb") as file:
            file.write(bytes(70000))
        self.assertEqual(self.start(0, 0), 1)
        self.take(2)
        self.assertEqual([v for v, _ in self.versions("partial")], [2])
        self.assertTrue(os.path.exists(part))
        self.cairn("start", node=1)
        self.all_gone()
        self.until(lambda: not os.path.exists(part), "its part is removed")
        self.assertEqual(self.committed(), [1, 2])
        self.end(self.ranks)
        self.stop()

    def test_the_old_job_only_stood_still(self):
        """Daemons and ranks live; the ranks stand still while another job goes on. They are told when they go on themselves."""
        self.start()
        self.take(1)
        self.take(2, 1, commits=False)
        old = self.ranks
        for process in old:
            process.send_signal(signal.SIGSTOP)
        self.assertEqual(self.start(), 1)
        self.all_gone()
        self.take(2)
        for process in old:
            process.send_signal(signal.SIGCONT)
        self.end(self.ranks)
        self.ranks = old
        self.order("wait 2", "waited", 1, code=SUPERSEDED)
        self.order("take 2", "took", 0, code=SUPERSEDED)
        self.end(old)
        self.stop()
        self.assertEqual(self.committed(), [1, 2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
