#!/usr/bin/env python3
"""Real servers after a crash: the bricks of a GlusterFS volume taken back, each on its own, to any state in which a loss of power may leave it. The last version whose commit was
answered, or a newer one, comes back bit for bit from each, and no version from that one on is listed and damaged.

A small job commits versions while the older ones are removed, and each server's brick process is watched (brick_log.py, which says what a crash may leave). Then, so often as
CAIRN_COMBINATIONS says (1000): a moment is drawn from CAIRN_SEED, and for each brick how much is lost of what was not synced by then. The bricks are made anew from that, their
servers and the mount begin again, `cairn verify` and `cairn extract` read all of it, and at every twentieth a job starts again.

Not drawn: that a server had done one request in part (it makes a file, its identity, its second name and where it leads one after the other). GlusterFS itself does not come back
from all of these: bench/results/crashed-bricks.txt.

Usage: CAIRN_BUILD=build/release python3 tests/crashed_bricks_test.py [Class[.test]]; exit code 77 where there are no namespaces, no GlusterFS, or no strace.
"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "testbed"))
import testing  # noqa: E402
import volume  # noqa: E402
from brick_log import Recorder, write_tree  # noqa: E402
from cluster import LOCAL, Cluster, Trouble, wait_for  # noqa: E402
from support import find  # noqa: E402

SERVERS, RANKS, VERSIONS, IMAGE_BYTES = 4, 4, 7, 150_000
PERSISTENT = volume.MOUNT + "/checkpoints"
SCRATCH = LOCAL + "/scratch"
RESTART_EVERY = 20  # combinations: a job that starts again takes longer than everything else
COMBINATIONS = int(os.environ.get("CAIRN_COMBINATIONS", "1000"))
SEED = int(os.environ.get("CAIRN_SEED", "1"))
RANK = f"""
import random, sys, threading, time
sys.path.insert(0, sys.argv[1])
from support import *
def content(rank, version): return random.Random(version * 100 + rank).randbytes({IMAGE_BYTES})
def opened(rank, **more):
    s = Session("series", rank, {RANKS}, **more)
    assert s.opened == OK, s.text()
    s.protect("memory", bytes({IMAGE_BYTES}))
    return s
"""
TAKE = RANK + f"""
rank = int(sys.argv[2])
s = opened(rank)
for version in range(1, {VERSIONS} + 1):
    ctypes.memmove(s.buffers["memory"], content(rank, version), {IMAGE_BYTES})
    assert s.checkpoint(version) == OK, s.text()
    assert s.wait(version, wait_ms=120000) == OK, s.text()
    tell([version, time.time()])
s.close()
"""
# All ranks in one process: a restart on one node.
RESTART = RANK + f"""
found = [None] * {RANKS}
def back(rank):
    s = Session("series", rank, {RANKS}, job="after")
    found[rank] = [s.opened, 0, False, s.text()]
    if s.opened == OK:
        s.protect("memory", bytes({IMAGE_BYTES}))
        status, version = s.restore()
        found[rank] = [status, version, s.buffers["memory"].raw[:{IMAGE_BYTES}] == content(rank, version), s.text() + s.warnings()]
        s.close()
threads = [threading.Thread(target=back, args=(rank,)) for rank in range({RANKS})]
for each in threads: each.start()
for each in threads: each.join()
tell(found)
"""


class Bricks:
    """A cluster with a volume, of which every brick was watched while versions were committed and removed; and the volume again, from any state of its bricks."""

    def __init__(self):
        self.cluster = Cluster(1, 0, SERVERS, 0, 512, f"crashed-bricks-{os.getpid()}")
        try:
            volume.create(self.cluster, ping_timeout_s=10)
            self.cluster.run("n0", "mkdir", SCRATCH, PERSISTENT)
            self.env = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN_")}
            self.env.update(CAIRN_BUILD=os.path.abspath(os.environ.get("CAIRN_BUILD", "build/release")), CAIRN_PATHS_SCRATCH=SCRATCH, CAIRN_PATHS_PERSISTENT=PERSISTENT,
                            CAIRN_DAEMON_PROGRAM=find("cairnd"), CAIRN_FLUSH_FILES=str(RANKS), CAIRN_FLUSH_LEADERS="2", CAIRN_FLUSH_CODEC="off", CAIRN_BACKGROUND_CPU="normal",
                            CAIRN_RETENTION_PERSISTENT_LAST="2", CAIRN_DAEMON_IDLE_S="60", PYTHONDONTWRITEBYTECODE="1")
            self.commands, self.half_removed = {}, 0
            self.images = {version: [random.Random(version * 100 + rank).randbytes(IMAGE_BYTES) for rank in range(RANKS)] for version in range(1, VERSIONS + 1)}
            self.record()
        except BaseException:
            self.down()
            raise

    def down(self):
        self.cluster.down()

    def seen(self, server):
        return f"/proc/{self.cluster.node(server).pid}/root{volume.BRICK}"

    def brick_process(self, server):
        for pid in self.cluster.node(server).processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode().split("\0")[:-1]
                if "--brick-name" in words:
                    return pid, words
        return None, None

    def python(self, code, *words, node="virtual-0"):
        return subprocess.Popen(self.cluster.command("n0", ["python3", "-c", code, os.path.join(ROOT, "tests"), *map(str, words)]), env={**self.env, "CAIRN_NODE": node},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def told(process):
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, out + err
        return [json.loads(line) for line in out.splitlines()]

    def end(self, node, but=()):
        """Its processes, but those whose names begin so."""
        for pid in self.cluster.node(node).processes():
            with contextlib.suppress(OSError):  # ended meanwhile
                with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                    name = file.read()
                if not name.startswith(tuple(but)):
                    os.kill(pid, signal.SIGKILL)

    def record(self):
        recorders = {}
        for server in self.cluster.servers:
            pid, self.commands[server] = self.brick_process(server)
            recorders[server] = Recorder(pid, volume.BRICK, self.seen(server), os.path.join(self.cluster.directory, server + ".calls"))
        self.begun = time.time()
        told = [self.told(each) for each in [self.python(TAKE, rank, node=f"virtual-{rank // 2}") for rank in range(RANKS)]]
        self.answered = {version: min(each[version - 1][1] for each in told) for version in range(1, VERSIONS + 1)}
        time.sleep(2)  # what is removed at the end
        self.ended = time.time()
        self.end("n0", but=("gluster",))
        time.sleep(1)
        self.logs = {server: each.end() for server, each in recorders.items()}

    def put(self, trees):
        """The volume is ended, its bricks become these, and it begins again."""
        self.end("n0")
        self.cluster.run("n0", "sh", "-c", f"umount --lazy {volume.MOUNT} || true; rm -rf {SCRATCH}; mkdir {SCRATCH}")
        for server in self.cluster.servers:
            pid, _ = self.brick_process(server)
            if pid:
                os.kill(pid, signal.SIGKILL)
        for server in self.cluster.servers:
            wait_for(f"the end of the brick of {server}", lambda server=server: not self.brick_process(server)[0], 10)
            seen = self.seen(server)
            for name in os.listdir(seen):
                shutil.rmtree(os.path.join(seen, name))
            write_tree(trees[server], seen)
            self.cluster.run(server, "sh", "-c", f"exec {' '.join(self.commands[server])} </dev/null >/dev/null 2>&1")
        volume.mount(self.cluster, "n0")

    def shell(self, text):
        """On the compute node; what it said."""
        done = subprocess.run(self.cluster.command("n0", ["sh", "-c", text]), env={**self.env, "CAIRN_NODE": "virtual-0"}, capture_output=True, text=True, timeout=40,
                              stdin=subprocess.DEVNULL, check=False)
        return done.stdout + done.stderr

    def wrong_after(self, moment, trees, restarts):
        """What is wrong with the volume when its bricks are these: nothing is "". What was committed by that moment, or a newer version, must come back as it was taken."""
        wanted = max((version for version, at in self.answered.items() if at <= moment), default=0)
        self.put(trees)
        cairn, out = find("cairn"), LOCAL + "/image"
        extracts = "".join(f"{cairn} extract series --rank {rank} --region memory --force -o {out}.{rank} || exit 1; " for rank in range(RANKS))
        said = self.shell(f"rm -f {out}.*; {cairn} verify series; echo verified $?; {extracts}")
        version = self.extracted(out)
        if version < wanted:
            return f"version {wanted} was committed, and {version or 'nothing'} came back\n{said}"
        damaged = {int(found) for found in re.findall(r"^series +(\d+) .*damaged in", said, re.M)}
        if any(each >= wanted for each in damaged):
            return f"a version that is committed is damaged\n{said}"
        self.half_removed += bool(damaged)
        if restarts:
            (told,) = self.told(self.python(RESTART))
            if any(each[:3] != [0, told[0][1], True] for each in told) or told[0][1] < wanted:
                return f"version {wanted} was committed, and a job that starts again heard {told}"
        return ""

    def extracted(self, path):
        """The version that all of the images in these files are of; 0: none."""
        images = []
        for rank in range(RANKS):
            with contextlib.suppress(OSError), open(f"/proc/{self.cluster.node('n0').pid}/root{path}.{rank}", "rb") as file:
                images.append(file.read())
        return next((version for version in self.images if images == self.images[version]), 0)

class Combinations(unittest.TestCase):
    """One recording for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.bricks = Bricks()
        cls.addClassCleanup(cls.bricks.down)
        print(f"seed {SEED}; " + ", ".join(f"{server}: {len(log.ops)} operations, {len(log.syncs())} syncs" for server, log in cls.bricks.logs.items()), flush=True)

    def moment(self, draw):
        """Any one, or one right after a version's commit was answered."""
        answered = sorted(self.bricks.answered.values())
        return draw.uniform(answered[0], self.bricks.ended) if draw.random() < 0.5 else draw.choice(answered) + draw.random() * 0.01

    def wrong(self, number, ignored=None, restarts=False):
        draw = random.Random(f"{SEED} {number}")
        moment = self.moment(draw)
        trees = {server: log.after_crash(moment, draw, ignored(log) if ignored else ()) for server, log in self.bricks.logs.items()}
        try:
            said = self.bricks.wrong_after(moment, trees, restarts)
        except (subprocess.TimeoutExpired, Trouble) as error:
            said = f"hangs: {error}"
        return said and f"combination {number}, {moment - self.bricks.begun:.3f} s after the job began: {said}"


class Crashed(Combinations):
    def test_what_was_committed_comes_back(self):
        begun, wrong = time.monotonic(), []
        for number in range(COMBINATIONS):
            said = self.wrong(number, restarts=number % RESTART_EVERY == 0)
            if said:
                print(said, flush=True)
                wrong.append(said)
            if number % 50 == 49:
                print(f"{number + 1} combinations, {time.monotonic() - begun:.0f} s, {len(wrong)} wrong, {self.bricks.half_removed} with a version that was being removed", flush=True)
        self.assertEqual(wrong, [])


class Forgotten(Combinations):
    """Would it be seen if a sync were left out?"""

    def lost(self, ignored):
        return next((said for said in (self.wrong(number, ignored) for number in range(100)) if "came back" in said), "")

    def test_no_sync_of_a_manifest(self):
        self.assertIn("was committed, and", self.lost(lambda log: log.syncs("manifest.")))

    def test_no_sync_of_a_manifest_once_it_is_published(self):
        self.assertIn("was committed, and", self.lost(lambda log: log.syncs("manifest.", since_named=True)))

    def test_no_sync_of_parts(self):
        self.assertIn("was committed, and", self.lost(lambda log: log.syncs("part-")))


if __name__ == "__main__":
    if not shutil.which("strace"):
        print("SKIP crashed_bricks_test: missing packages: strace (scripts/setup testbed installs it)")
        sys.exit(77)
    testing.main()
