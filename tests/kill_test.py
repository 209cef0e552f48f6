"""Kills for real: ranks, daemons, whole nodes, at any instant; what comes back is the promise of ARCHITECTURE.md.

Usage: CAIRN_BUILD=build/release python3 tests/kill_test.py [Class[.test]]     CAIRN_KILL_ROUNDS=100 for a long run
A rank's memory is a function of rank and version, so every restored byte can be checked without a reference.
"""
import fcntl
import json
import os
import random
import shutil
import time
import unittest

from support import NOT_FOUND, OK, Nodes

NODES, RANKS_PER_NODE = 2, 2
RANKS = NODES * RANKS_PER_NODE
ROUNDS = int(os.environ.get("CAIRN_KILL_ROUNDS", "6"))

JOB = """
import random
RANK, RANKS, BYTES = {rank}, {ranks}, {bytes}

def content(version):
    return random.Random(RANK * 1000003 + version).randbytes(64) * (BYTES // 64)

s = Session("series", RANK, RANKS, job={job!r})
if s.opened != OK:
    tell(["open", s.opened, s.text()])
    sys.exit()
s.protect("memory", bytes(BYTES))
s.protect("number", (0).to_bytes(8, "little"))
status, version = s.restore()
number = int.from_bytes(s.buffers["number"].raw, "little")
whole = status != OK or (number == version and s.buffers["memory"].raw == content(version))
tell(["restored", status, version, whole, s.text(), s.warnings()])
if status != OK:
    version = 0
"""
CHECKPOINTS = """
while True:
    version += 1
    ctypes.memmove(s.buffers["memory"], content(version), BYTES)
    ctypes.memmove(s.buffers["number"], version.to_bytes(8, "little"), 8)
    status = s.checkpoint(version)
    if status == UNAVAILABLE:  # the daemon was killed while it was being started: the same version may be tried again
        status = s.checkpoint(version)
    tell(["captured", status, version, s.text()])
    {then}
"""


class Kill(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.nodes = Nodes(flush_files=2, retention_scratch_last=2, daemon_idle_s=60, **self.settings)
        self.addCleanup(self.nodes.__exit__)

    def start(self, then, size=1 << 20, checkpoints=True):
        code = JOB + (CHECKPOINTS if checkpoints else "")
        job = "job-%d" % random.getrandbits(60)
        ranks = [self.nodes.start(code.format(rank=r, ranks=RANKS, bytes=size, job=job, then=then), node=r // RANKS_PER_NODE)
                 for r in range(RANKS)]
        self.addCleanup(self.kill, ranks)
        return ranks

    def line(self, process, kind):
        text = process.stdout.readline()
        self.assertTrue(text, "a rank ended: " + (process.stderr.read() if process.poll() is not None else "silently"))
        told = json.loads(text)
        self.assertEqual(told[0], kind, told)
        return told

    def restored(self, ranks):
        """The version that all ranks agree on and hold bit for bit; 0 when there was none."""
        told = [self.line(process, "restored") for process in ranks]
        self.assertEqual(len({(t[1], t[2]) for t in told}), 1, told)
        self.assertTrue(all(t[3] for t in told), told)
        self.assertIn(told[0][1], (OK, 2), told)
        return told[0][2] if told[0][1] == OK else 0

    def committed(self):
        code, out, err = self.nodes.cairn("ls", "--json")
        self.assertEqual(code, 0, err)
        versions = [v for c in json.loads(out)["checkpoints"] for v in c["versions"] if v["state"] == "committed" and v["current"]]
        return max((v["version"] for v in versions), default=0)

    def until(self, condition, what, wait_s=60):
        end = time.monotonic() + wait_s
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.05)
        seen = [self.nodes.cairn("ls", "series")[1]] + [self.nodes.cairn("status", node=n)[1] for n in range(NODES)]
        self.fail(f"not within {wait_s} s: {what}\n" + "\n".join(seen))

    def kill(self, ranks, everything=True):
        self.nodes.kill_all(None if everything else [p.pid for p in ranks])
        for process in ranks:
            process.kill()
            if not process.stdout.closed:
                process.communicate()


class Ranks(Kill):
    def test_flush_outlives_the_ranks(self):
        """kill -9 of every rank right after capture: what was sealed is committed all the same."""
        ranks = self.start("hear()", size=8 << 20)
        self.assertEqual(self.restored(ranks), 0)
        for process in ranks:
            self.assertEqual(self.line(process, "captured")[1], OK)
        self.kill(ranks, everything=False)
        self.until(lambda: self.committed() == 1, "version 1 committed by daemons whose ranks are dead")
        code, out, err = self.nodes.cairn("verify", "series", 1)
        self.assertEqual(code, 0, out + err)
        files = [os.path.basename(f) for f in self.nodes.files("series", 1)]
        self.assertEqual([f.split(".")[0] for f in files], ["manifest", "part-0000-of-0002", "part-0001-of-0002"], files)


class Stopped(Kill):
    def images(self):
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.nodes.local) for name in names if name.startswith("slot-")]

    def test_memory_is_given_back_and_the_restart_reads_the_files(self):
        """`cairn stop` with all committed leaves nothing in scratch; killed daemons leave everything."""
        for way in ("stop", "kill"):
            ranks = self.start("tell(['waited', s.wait(version, wait_ms=60000)]); tell(['closed', s.close()]); sys.exit()")
            version = self.restored(ranks) + 1
            for process in ranks:
                for kind in ("captured", "waited", "closed"):
                    self.assertEqual(self.line(process, kind)[1], OK)
            for process in ranks:
                process.communicate(timeout=60)
            for node in range(NODES):
                if way == "stop":
                    code, out, err = self.nodes.cairn("stop", node=node)
                    self.assertEqual(code, 0, out + err)
            self.nodes.kill_all()
            self.assertEqual(bool(self.images()), way == "kill", self.images())
            again = self.start("hear()", checkpoints=False)
            self.assertEqual(self.restored(again), version)
            self.kill(again)


class Gone(unittest.TestCase):
    def test_a_daemon_that_was_stopped_has_ended(self):
        """When `cairn stop` says so its lock is free, and with it all that the process held of scratch. Large images take a while to give back."""
        with Nodes(daemon_idle_s=60) as nodes:
            for version in (1, 2, 3):
                told = nodes.run(f"""
                    s = Session("series")
                    s.protect("memory", bytes(200 << 20))
                    tell([s.restore()[0], s.checkpoint({version}), s.wait({version})])
                    tell(s.close())
                """)
                self.assertEqual(told, [[OK if version > 1 else NOT_FOUND, OK, OK], OK])
                self.assertEqual(nodes.cairn("stop")[0], 0)
                (room,) = os.listdir(nodes.scratch())
                with open(os.path.join(nodes.scratch(), room, "lock")) as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while a process holds it
                self.assertEqual(os.listdir(os.path.join(nodes.scratch(), room, "images")), [])


class Daemons(Kill):
    def test_daemon_finds_its_images_again(self):
        """Every daemon is killed once all is sealed; the next open starts others, which finish it."""
        ranks = self.start("hear()", size=8 << 20)
        self.assertEqual(self.restored(ranks), 0)
        for process in ranks:
            self.assertEqual(self.line(process, "captured")[1], OK)
        self.kill(ranks)
        again = self.start("hear()", size=8 << 20, checkpoints=False)
        self.assertEqual(self.restored(again), 1)
        self.kill(again)

    def test_killed_under_running_ranks(self):
        """Daemons die again and again while the ranks go on: each checkpoint works, and the newest commits in the end. (A daemon that is
        killed is started again by its keeper or by a call of a rank of its node, whichever is first.)"""
        ranks = self.start("time.sleep(0.05) if version < 40 else (tell(['waited', s.wait(40, wait_ms=60000), s.text()]), hear())")
        self.assertEqual(self.restored(ranks), 0)
        rng = random.Random(7)
        for number in range(40):
            for process in ranks:
                told = self.line(process, "captured")
                self.assertEqual(told[1], OK, told)
            daemons = self.nodes.daemons()
            if number % 8 == 3 and daemons:
                self.nodes.kill_all([rng.choice(daemons)])
        for process in ranks:
            told = self.line(process, "waited")
            self.assertEqual(told[1], OK, told)
        self.assertEqual(self.committed(), 40)
        self.kill(ranks)


class Everything(Kill):
    def test_any_instant(self):
        """Everything is killed at a random instant, sometimes a node's scratch is lost too; what comes back is whole, the same for all
        ranks, and never older than what had been committed."""
        seed = int(os.environ.get("CAIRN_KILL_SEED", random.getrandbits(32)))
        rng = random.Random(seed)
        for number in range(ROUNDS):
            with self.subTest(seed=seed, round=number):
                before = self.committed()
                ranks = self.start("time.sleep(0.02)", size=1 << 20)
                version = self.restored(ranks)
                self.assertGreaterEqual(version, before)
                time.sleep(rng.random() * 2)
                # The daemons a little later than the ranks, or the other way round, or all at once.
                way = rng.randrange(3)
                if way == 0:
                    self.nodes.kill_all([p.pid for p in ranks])
                    time.sleep(rng.random() * 0.3)
                elif way == 1:
                    self.nodes.kill_daemons()
                self.kill(ranks)
                if rng.random() < 0.3:
                    shutil.rmtree(self.nodes.scratch(rng.randrange(NODES)))
        before = self.committed()
        ranks = self.start("hear()", size=1 << 20, checkpoints=False)
        self.assertGreaterEqual(self.restored(ranks), before)
        self.assertGreater(before, 0, f"nothing was ever committed (seed {seed})")
        self.kill(ranks)


if __name__ == "__main__":
    unittest.main(verbosity=2)
