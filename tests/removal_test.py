"""cairn rm, gc, verify and extract beside real daemons: what is removed does not come back, and what is not committed can be looked at.

Usage: CAIRN_BUILD=build/release python3 tests/removal_test.py [Class[.test]]
"""
import json
import os
import random
import shutil
import subprocess
import time
import unittest

from support import NOT_FOUND, OK, Nodes, find

ROUNDS = int(os.environ.get("CAIRN_KILL_ROUNDS", "20"))

JOB = """
RANK, RANKS, VERSIONS = {rank}, {ranks}, {versions}
s = Session("series", RANK, RANKS, job="one-job")
if s.opened != OK:
    tell(["open", s.opened, s.text()])
    sys.exit()
s.protect("memory", bytes(300000))
for version in VERSIONS:
    ctypes.memmove(s.buffers["memory"], bytes([RANK + 16 * version]) * 300000, 300000)
    status = s.checkpoint(version)
    if status == OK and {wait}:
        status = s.wait(version)
    tell([version, status, s.text()])
hear()
"""


class Removal(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=1, retention_scratch_last=9, daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)

    def start(self, ranks, versions, wait=True):
        """One rank a node; ends with every version captured, and committed where that is waited for."""
        processes = [self.nodes.start(JOB.format(rank=r, ranks=ranks, versions=versions, wait=wait), node=r) for r in range(ranks)]
        self.addCleanup(self.end, processes)
        for process in processes:
            for version in versions:
                told = json.loads(process.stdout.readline() or "null")
                self.assertEqual(told and told[:2], [version, OK], told)
        return processes

    @staticmethod
    def end(processes):
        for process in processes:
            if process.poll() is None:
                process.kill()
            if not process.stdout.closed:
                process.communicate()

    def cairn(self, *arguments, code=OK, **more):
        got, out, err = self.nodes.cairn(*arguments, **more)
        self.assertEqual(got, code, out + err)
        return out, err

    def states(self):
        out, _ = self.cairn("ls", "series", "--json")
        return {v["version"]: v["state"] for v in json.loads(out)["checkpoints"][0]["versions"]}

    def daemons_anew(self, nodes):
        """kill -9 of all, and others that know what is in scratch and on persistent."""
        self.nodes.kill_daemons()
        for node in range(nodes):
            self.cairn("start", node=node)

    def test_a_removed_version_stays_removed(self):
        processes = self.start(2, [1, 2, 3])
        _, err = self.cairn("rm", "series", 1)
        self.assertIn("tombstone", err)
        self.assertIn("newest", self.cairn("rm", "series", 3, code=1)[1])
        time.sleep(1.1)  # old is what changed in an earlier second
        out = json.loads(self.cairn("gc", "--json", "--age", "0")[0])
        self.assertEqual(out["removed"], [], "the job is on record")
        self.end(processes)
        self.daemons_anew(2)
        time.sleep(2)  # they would have begun by now
        self.assertEqual(self.states(), {1: "given up", 2: "committed", 3: "committed"})
        for node in range(2):
            self.cairn("stop", node=node)
        out = json.loads(self.cairn("gc", "--json", "--age", "0")[0])
        self.assertEqual([r["version"] for r in out["removed"]], [1], out)
        self.assertFalse(os.path.exists(os.path.join(self.nodes.persistent, "series", "1")))
        for node in range(2):  # and now nobody is left who could
            self.cairn("start", node=node)
        time.sleep(2)
        self.assertEqual(self.states(), {2: "committed", 3: "committed"})
        self.cairn("verify")

    def test_rm_killed_at_any_moment(self):
        """kill -9 of `cairn rm`: the version is whole or removed, and gc or another rm finishes what it began."""
        self.end(self.start(1, [1, 2]))
        self.nodes.kill_daemons()
        pristine = os.path.join(self.nodes.shared, "pristine")
        shutil.copytree(self.nodes.persistent, pristine)
        version = os.path.join(self.nodes.persistent, "series", "1")
        began = time.monotonic()
        self.cairn("rm", "series", 1)
        whole_s = time.monotonic() - began
        for _ in range(ROUNDS):
            shutil.rmtree(self.nodes.persistent)
            shutil.copytree(pristine, self.nodes.persistent)
            rm = subprocess.Popen([find("cairn"), "rm", "series", "1"], env=self.nodes.environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.random() * whole_s)
            rm.kill()
            said_done = rm.wait() == 0
            state = self.states()[1]
            self.assertIn(state, ("committed", "given up"))
            self.assertFalse(said_done and state == "committed")
            if state == "committed":
                self.cairn("verify", "series", 1)
                self.cairn("rm", "series", 1)
            else:
                self.cairn("gc")
            self.assertEqual(len([n for n in os.listdir(version) if n.startswith("part")]), 0)
            self.assertEqual(self.states(), {1: "given up", 2: "committed"})

    def test_what_killed_ranks_left_where_they_met(self):
        """Without MPI they talk through files: those stay while the job may be alive, and go when it is over."""
        processes = self.start(2, [1])
        met = os.path.join(self.nodes.persistent, ".cairn", "rendezvous", "one-job")
        for folder, folders, files in os.walk(met):
            for name in folders + files:
                os.utime(os.path.join(folder, name), (1, 1))
        out = json.loads(self.cairn("gc", "--json")[0])
        self.assertEqual((out["removed"], ["daemon of this host" in r["why"] for r in out["spared"]]), ([], [True]))
        for process in processes:  # they go on, and end well
            process.stdin.write("go\n")
            process.stdin.flush()
            process.wait(timeout=60)
        self.end(processes)
        self.assertTrue(os.path.exists(met), "ranks that end without a close leave it behind")
        self.nodes.kill_daemons()
        out = json.loads(self.cairn("gc", "--json")[0])
        self.assertEqual((out["removed"], ["on record" in r["why"] for r in out["spared"]]), ([], [True]))
        jobs = os.path.join(self.nodes.persistent, ".cairn")
        for _ in range(10):  # one that is stopped before it has looked at scratch forgets nothing
            for node in range(2):
                self.cairn("start", node=node)
            for node in range(2):
                self.cairn("stop", node=node)
            if not any(os.path.exists(os.path.join(jobs, job, "roster")) for job in os.listdir(jobs)):
                break
        out = json.loads(self.cairn("gc", "--json")[0])
        self.assertTrue(any("one-job" in r["why"] for r in out["removed"]), out)
        self.assertFalse(os.path.exists(met))

    def test_gc_spares_what_a_job_may_come_back_to(self):
        """Every daemon is dead, and nobody can tell whether for good: the roster stands, so the attempt at version 2 may be in flight."""
        processes = self.start(2, [1])
        self.end(processes)
        self.nodes.kill_daemons()
        out, _ = self.cairn("ls", "series", "--json")
        half = json.loads(out)["checkpoints"][0]["versions"][0]["incarnation"][:16]
        os.mkdir(os.path.join(self.nodes.persistent, "series", "2"))
        part = os.path.join(self.nodes.persistent, "series", "2", f"part-0000-of-0001.{half}{'7' * 16}")
        with open(part, "wb") as f:
            f.write(bytes(70000))
        os.utime(part, (1, 1))
        out = json.loads(self.cairn("gc", "--json")[0])
        self.assertEqual(out["removed"], [])
        self.assertEqual([(r["version"], "on record" in r["why"]) for r in out["spared"] if r["version"]], [(2, True)])  # 0: where its ranks met
        for node in range(2):  # they come back, find nothing to finish, and say so
            self.cairn("start", node=node)
        for node in range(2):
            self.cairn("stop", node=node)
        out = json.loads(self.cairn("gc", "--json")[0])
        self.assertEqual([r["version"] for r in out["removed"]], [2], out)
        self.assertFalse(os.path.exists(part))
        self.assertEqual(self.states()[1], "committed")

    def test_what_is_only_in_scratch(self):
        """A shared directory that takes nothing: versions stay in scratch, and can be checked and taken out all the same."""
        processes = self.start(1, [1])
        self.nodes.kill_daemons()
        self.end(processes)
        series = os.path.join(self.nodes.persistent, "series")
        os.rename(os.path.join(series, "1"), os.path.join(self.nodes.shared, "away"))
        self.assertEqual(self.states(), {1: "sealed"})
        verdict = json.loads(self.cairn("verify", "series", 1, "--json")[0])["versions"][0]
        self.assertEqual((verdict["level"], verdict["whole"]), ("scratch", True), "its daemon made the checksums")
        _, err = self.cairn("extract", "series", 1, "--rank", 0, "--region", "memory", "-o", "out")
        self.assertIn("not committed", err)
        with open(os.path.join(self.nodes.shared, "out"), "rb") as f:
            self.assertEqual(f.read(), bytes([16]) * 300000)
        self.cairn("extract", "series", 2, "--rank", 0, "-o", "none", code=NOT_FOUND)


if __name__ == "__main__":
    unittest.main(verbosity=2)
