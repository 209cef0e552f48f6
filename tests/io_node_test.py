"""A dedicated I/O node beside the nodes of a job, with real daemons: it writes everything, and when it is killed the job goes on without it.

Usage: CAIRN_BUILD=build/release python3 tests/io_node_test.py [Class[.test]]
"""
import json
import os
import signal
import unittest

from support import EXISTS, OK, Nodes

BYTES = 3_000_000
JOB = """
import random
RANK, BYTES = {rank}, {bytes}

def content(version):
    return random.Random(RANK * 1000003 + version).randbytes(64) * (BYTES // 64)

s = Session("series", RANK, 2, job={job!r})
warnings = s.warnings()
s.protect("memory", bytes(len(content(0))))
status, version = s.restore() if s.opened == OK else (s.opened, 0)
tell([s.opened, version if status == OK else 0, status != OK or s.buffers["memory"].raw == content(version), s.text(), warnings])
for order in iter(hear, ""):
    ctypes.memmove(s.buffers["memory"], content(int(order)), len(content(0)))
    status = s.checkpoint(int(order))
    if status == OK:
        status = s.wait(int(order))
    tell([status, s.text()])
"""


class IoNode(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=2, flush_io_nodes="all", daemon_idle_s=60, network_heartbeat_ms=200, network_peer_timeout_ms=2000,
                           daemon_restart="false")
        self.addCleanup(self.nodes.__exit__)
        self.jobs = 0

    def open(self, **more):
        """Two ranks, one on each of n0 and n1, and what they told at open: the version restored."""
        self.jobs += 1
        ranks = [self.nodes.start(JOB.format(rank=r, bytes=BYTES, job=f"job-{self.jobs}"), node=r, **more) for r in range(2)]
        self.addCleanup(self.end, ranks)
        told = [json.loads(p.stdout.readline() or "null") for p in ranks]
        for line in told:
            self.assertEqual(line and [line[0], line[2]], [OK, True], told)
        self.assertEqual(told[0][1], told[1][1])
        return ranks, told[0][1], told[0][4]

    @staticmethod
    def end(ranks):
        for process in ranks:
            if process.poll() is None:
                process.kill()
            if not process.stdout.closed:
                process.communicate()

    def commit(self, ranks, version):
        for process in ranks:
            process.stdin.write(f"{version}\n")
            process.stdin.flush()
        for process in ranks:
            told = json.loads(process.stdout.readline() or "null")
            self.assertEqual(told and told[0], OK, told)

    def cairn(self, *arguments, code=OK, **more):
        got, out, err = self.nodes.cairn(*arguments, **more)
        self.assertEqual(got, code, out + err)
        return out + err

    def status(self, node):
        return json.loads(self.cairn("status", "--json", "--node", f"n{node}", node=node))["nodes"][0]

    def offered(self):
        return sorted(os.listdir(os.path.join(self.nodes.persistent, ".cairn", "io-nodes")))

    def test_writes_while_it_lives(self):
        self.assertIn("I/O node n2", self.cairn("start", "--io-node", node=2))
        self.assertEqual(self.offered(), ["n2"])
        ranks, _, warned = self.open()
        self.assertNotIn("io_nodes", warned)
        self.commit(ranks, 1)
        io = self.status(2)
        self.assertTrue(io["io_node"])
        self.assertFalse(self.status(0)["io_node"])
        self.assertGreaterEqual(io["written_bytes"], 2 * (BYTES // 64 * 64))
        self.assertEqual([self.status(n)["written_bytes"] for n in (0, 1)], [0, 0])
        # Killed: what it had offered still stands there, and the next versions commit all the same.
        os.kill(io["pid"], signal.SIGKILL)
        self.nodes.kill_all([io["pid"]])
        self.commit(ranks, 2)
        self.commit(ranks, 3)
        self.assertGreater(self.status(0)["written_bytes"] + self.status(1)["written_bytes"], 0)
        self.assertEqual(self.offered(), ["n2"])
        # Started again, it is found by the job that runs.
        self.cairn("start", "--io-node", node=2)
        for version in (4, 5, 6):
            self.commit(ranks, version)
        self.assertGreater(self.status(2)["written_bytes"], 0)
        self.end(ranks)
        ranks, restored, _ = self.open()
        self.assertEqual(restored, 6)
        self.end(ranks)
        self.cairn("rm", "series", 2)
        self.cairn("gc", "--age", "0")
        self.cairn("stop", node=2)
        self.assertEqual(self.offered(), [])

    def test_a_dead_one_harms_no_open(self):
        self.cairn("start", "--io-node", node=2)
        self.nodes.kill_all([self.status(2)["pid"]])
        ranks, _, warned = self.open(flush_io_nodes="n2, n9")
        self.assertIn("flush.io_nodes names n9", warned)
        self.assertNotIn("names n2", warned)
        self.commit(ranks, 1)
        self.assertEqual(self.status(0)["attempts_failed"], 0)

    def test_a_daemon_of_ranks_does_not_become_one(self):
        self.cairn("start", node=2)
        self.assertIn("cairn stop", self.cairn("start", "--io-node", node=2, code=EXISTS))
        self.cairn("stop", node=2)
        self.cairn("start", "--io-node", node=2)
        self.assertIn("I/O nodes: n2", self.cairn("status", node=2))


if __name__ == "__main__":
    unittest.main()
