#!/usr/bin/env python3
"""A server of a real GlusterFS volume stops answering for ever in the middle of a version: what lay on it is written again to the others once the file system's ping timeout
has passed, the application is not blocked meanwhile, and the version comes back.

Usage: CAIRN_BUILD=build/release python3 tests/dead_brick_test.py [Class[.test]]; exit code 77 where no namespaces or GlusterFS can be had. Prints the times.
"""
import json
import os
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "testbed"))
import testing  # noqa: E402
import volume  # noqa: E402
from cluster import LOCAL, Cluster, wait_for  # noqa: E402
from support import find  # noqa: E402

PFS = volume.MOUNT
SERVERS, RATE_MB_S, RANKS, IMAGE_BYTES, PING_S = 4, 8, 4, 48_000_000, 3
RANK = """
import random, sys, time
sys.path.insert(0, sys.argv[1])
from support import *
rank, versions = int(sys.argv[2]), [int(word) for word in sys.argv[3:]]
s = Session("series", rank, RANKS)
assert s.opened == OK, s.text()
def content(version): return random.Random(version * 100 + rank).randbytes(IMAGE_BYTES)
s.protect("memory", bytes(IMAGE_BYTES))
""".replace("RANKS", str(RANKS)).replace("IMAGE_BYTES", str(IMAGE_BYTES))
TAKE = RANK + """
for version in versions:
    ctypes.memmove(s.buffers["memory"], content(version), len(content(version)))
    begun = time.monotonic()
    assert s.checkpoint(version) == OK, s.text()
    blocked = time.monotonic() - begun
    status = s.wait(version, wait_ms=120000)
    tell([status, blocked, time.monotonic() - begun, s.text()])
    time.sleep(5)  # for who looks where names lie while nothing is written
s.close()
"""
BACK = RANK + """
status, version = s.restore()
tell([status, version, s.buffers["memory"].raw[:IMAGE_BYTES] == content(version), s.text()])
s.close()
""".replace("IMAGE_BYTES", str(IMAGE_BYTES))


class OneOfFour(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(1, 200, SERVERS, RATE_MB_S, 1024, f"dead-brick-{os.getpid()}")
        self.addCleanup(self.cluster.down)
        volume.create(self.cluster, ping_timeout_s=PING_S)
        self.scratch = f"{LOCAL}/scratch"
        self.cluster.run("n0", "mkdir", self.scratch, f"{PFS}/checkpoints")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN_")}
        self.env.update(CAIRN_BUILD=os.path.abspath(os.environ.get("CAIRN_BUILD", "build/release")), CAIRN_PATHS_SCRATCH=self.scratch, CAIRN_PATHS_PERSISTENT=f"{PFS}/checkpoints",
                        CAIRN_DAEMON_PROGRAM=find("cairnd"), CAIRN_FLUSH_FILES=str(SERVERS), CAIRN_FLUSH_LEADERS="2", CAIRN_FLUSH_CODEC="off", CAIRN_BACKGROUND_CPU="normal",
                        CAIRN_DAEMON_IDLE_S="120", PYTHONDONTWRITEBYTECODE="1")

    def start(self, code, *versions):
        command = self.cluster.command("n0", ["python3", "-c", code, os.path.join(ROOT, "tests")])
        return [subprocess.Popen([*command, str(rank), *map(str, versions)], env={**self.env, "CAIRN_NODE": f"virtual-{rank // 2}"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for rank in range(RANKS)]

    def told(self, running):
        lines = []
        for each in running:
            out, err = each.communicate(timeout=200)
            self.assertEqual(each.returncode, 0, out + err)
            lines.append([json.loads(line) for line in out.splitlines()])
        return lines

    def on_brick(self, server, version):
        """Bytes of this version's parts that lie there, as the server itself sees them."""
        out = self.cluster.run(server, "sh", "-c", f"du -c --block-size=1 {volume.BRICK}/checkpoints/series/{version}/part-* 2>/dev/null | tail -1")
        return int(out.split()[0]) if out.split() else 0

    def log(self):
        return self.cluster.run("n0", "sh", "-c", f"cat $(find {self.scratch} -name log)")

    def servers_with(self, name):
        """Those on whose bricks something of that name lies. Asked of each by itself: who asks the file system waits behind what is written."""
        return {f"s{i}" for i in range(SERVERS) if self.cluster.run(f"s{i}", "sh", "-c", f"find {volume.BRICK}/checkpoints/series/{name} -size +0 2>/dev/null || true").split()}

    def servers_of_names(self):
        """Those that a commit of version 2 needs: of the job's record and of the manifest. A name that differs from the manifest's as rsync's temporary ones do lies where that will."""
        folder = f"{PFS}/checkpoints/series"
        listed = lambda: self.cluster.run("n0", "sh", "-c", f"cd {folder}/1 2>/dev/null && ls -t manifest.* 2>/dev/null || true").split()  # noqa: E731
        wait_for("the first manifest", listed, 90)
        alike = f".{listed()[0]}.alike"
        self.cluster.run("n0", "sh", "-ec", f"mkdir -p {folder}/2; echo > {folder}/2/{alike}")
        servers = self.servers_with("lineage/*.open") | self.servers_with("lineage/*.from") | self.servers_with(f"2/{alike}")
        self.cluster.run("n0", "rm", f"{folder}/2/{alike}")
        return servers

    def kill_in_the_middle_of_the_second(self, holds_names):
        names = self.servers_of_names()
        server = next(f"s{i}" for i in range(SERVERS) if (f"s{i}" in names) == holds_names)
        wait_for("a part on the server that will die", lambda: self.on_brick(server, 2) > IMAGE_BYTES // 4, 60)
        self.cluster.pause(server)
        return server

    def test_the_version_is_committed_on_the_other_three(self):
        running = self.start(TAKE, 1, 2)
        server = self.kill_in_the_middle_of_the_second(holds_names=False)
        told = self.told(running)
        self.assertEqual([each[1][0] for each in told], [0] * RANKS, told)
        normal = max(each[0][2] for each in told)
        dead, blocked = max(each[1][2] for each in told), max(each[1][1] for each in told)
        log = self.log()
        print(f"without {normal:.2f} s, with {server} dead {dead:.2f} s, of which {PING_S} s are the ping timeout: {(dead - PING_S) / normal:.2f} times; blocked {blocked:.3f} s;"
              f" {log.count(' part-replaced ')} part(s) written again, {log.count(' attempt-failed ')} attempt(s) failed", flush=True)
        self.assertGreaterEqual(log.count(" part-replaced "), 1, log)
        self.cluster.resume(server)  # ranks that open a job make files of names that may be its own
        for each in self.told(self.start(BACK)):
            self.assertEqual(each[0][:3], [0, 2, True], each)

    def test_where_the_commit_needs_the_dead_server_it_comes_when_that_is_back(self):
        running = self.start(TAKE, 1, 2)
        server = self.kill_in_the_middle_of_the_second(holds_names=True)
        told = self.told(running)
        print(f"{server} dead: blocked {max(each[1][1] for each in told):.3f} s; then {told[0][1][3]}", flush=True)
        self.assertNotIn(0, [each[1][0] for each in told], "it was not committed")
        self.assertTrue(all(each[1][3] for each in told), told)
        self.cluster.resume(server)
        wait_for("the commit", lambda: self.cluster.run("n0", "sh", "-c", f"ls {PFS}/checkpoints/series/2/manifest.* 2>/dev/null || true"), 90)
        for each in self.told(self.start(BACK)):
            self.assertEqual(each[0][:3], [0, 2, True], each)


if __name__ == "__main__":
    testing.main()
