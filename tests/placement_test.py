#!/usr/bin/env python3
"""Storage targets on a real file system: what is detected on volumes of GlusterFS of each kind, that a file made with it lies where it
should, and what a daemon makes of it, also when the file system hangs."""
import json
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "testbed"))
import testing  # noqa: E402
import volume  # noqa: E402
from cluster import LOCAL, Cluster, wait_for  # noqa: E402
from support import find  # noqa: E402

PFS = volume.MOUNT
SERVERS = 3
NAMES = [f"{volume.VOLUME}-client-{i}" for i in range(SERVERS)]


class OnVolumes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(2, 0, SERVERS, 0, 256, f"placement-{os.getpid()}")
        cls.addClassCleanup(cls.cluster.down)
        volume.create(cls.cluster)

    def targets(self, *words, user=()):
        done = subprocess.run(self.cluster.command("n0", [*user, find("cairn_targets"), *words]), capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout.split(), done.stderr

    def another_volume(self, name, *words, option=None):
        """A further volume over the same servers, mounted on n0: its path."""
        def gluster(*rest):
            self.cluster.run("s0", "gluster", "--mode=script", "volume", *rest)
        bricks = [w if ":" not in w else f"{w.split(':')[0]}:{LOCAL}/brick/{name}{w.split(':')[1]}" for w in words]
        gluster("create", name, *bricks, "force")
        if option:
            gluster("set", name, *option)
        gluster("start", name)
        path = f"{LOCAL}/{name}"
        self.cluster.run("n0", "sh", "-ec", f"mkdir {path}; glusterfs --volfile-server=s0 --volfile-id={name} --log-file={LOCAL}/log/{name}.log {path}")
        wait_for(path, lambda: f" {path} fuse.glusterfs" in self.cluster.run("n0", "cat", "/proc/mounts"), 20)
        return path

    def test_a_file_lies_on_the_target_it_was_made_for(self):
        c = self.cluster
        c.run("n0", "mkdir", f"{PFS}/here")
        self.assertEqual(self.targets(f"{PFS}/here", "file"), (0, NAMES, ""))
        for server, name in enumerate(NAMES):
            self.assertEqual(volume.server_of(c, "n1", f"{PFS}/here/file-{name}"), f"s{server}")
        self.assertEqual(sorted(c.run("n1", "ls", f"{PFS}/here").split()), [f"file-{name}" for name in NAMES])

    def test_nobody_needs_to_be_root(self):
        self.cluster.run("n0", "sh", "-ec", f"mkdir {PFS}/theirs; chown 65534 {PFS}/theirs; chmod 700 {PFS}/theirs")
        user = ["setpriv", "--reuid", "65534", "--clear-groups"]
        self.assertEqual(self.targets(f"{PFS}/theirs", "file", user=user), (0, NAMES, ""))
        for server, name in enumerate(NAMES):
            self.assertEqual(volume.server_of(self.cluster, "n1", f"{PFS}/theirs/file-{name}"), f"s{server}")

    def test_a_directory_that_is_not_there_yet(self):
        self.assertEqual(self.targets(f"{PFS}/not/yet"), (0, NAMES, ""))

    def test_copies_of_one_another_are_one_target(self):
        path = self.another_volume("pairs", "replica", "2", "s0:a", "s1:a", "s2:b", "s0:b")
        names = ["pairs-replicate-0", "pairs-replicate-1"]
        self.assertEqual(self.targets(path, "file"), (0, names, ""))
        for copies, name in enumerate(names):
            about = self.cluster.run("n0", "python3", "-c", f"import os; print(os.getxattr('{path}/file-{name}', 'trusted.glusterfs.pathinfo'))")
            self.assertIn(name, about)
            self.assertNotIn(names[1 - copies], about)

    def test_where_nothing_can_be_chosen(self):
        one = self.another_volume("one", "s1:a")
        self.assertRegex(self.targets(one)[2], "unavailable: .*does not distribute files over several servers")
        cut = self.another_volume("cut", "s0:a", "s1:a", option=("features.shard", "on"))
        self.assertRegex(self.targets(cut)[2], "unavailable: .*spreads each file over all servers")
        coded = self.another_volume("coded", "disperse", "3", "redundancy", "1", "s0:a", "s1:a", "s2:a")
        self.assertRegex(self.targets(coded)[2], "unavailable: GlusterFS does not say")
        self.assertRegex(self.targets(LOCAL)[2], "unsupported: .*not on GlusterFS but on tmpfs")


class OfADaemon(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster(1, 0, SERVERS, 0, 256, f"placement-{os.getpid()}")
        self.addCleanup(self.cluster.down)
        volume.create(self.cluster)
        self.scratch = f"{LOCAL}/scratch"
        self.cluster.run("n0", "mkdir", self.scratch)

    def cairn(self, *words, **settings):
        base = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN_")}
        base.update(CAIRN_PATHS_SCRATCH=self.scratch, CAIRN_PATHS_PERSISTENT=f"{PFS}/checkpoints", CAIRN_DAEMON_PROGRAM=find("cairnd"),
                    **{"CAIRN_" + key.upper(): str(value) for key, value in settings.items()})
        return self.cluster.run("n0", find("cairn"), *words, env=base, timeout=60)

    def shown(self):
        return json.loads(self.cairn("status", "--json"))["nodes"][0]["targets"]

    def log(self):
        return self.cluster.run("n0", "sh", "-c", f"cat $(find {self.scratch} -name log)")

    def test_they_are_found_logged_once_and_shown(self):
        self.cairn("start")
        wait_for("the targets", lambda: self.shown() == NAMES, 20)
        self.assertEqual(self.log().count("storage-targets driver=glusterfs"), 1)
        self.cairn("stop")
        self.cairn("start", placement_targets=f"{NAMES[2]}, {NAMES[0]}")
        wait_for("the targets", lambda: self.shown() == [NAMES[2], NAMES[0]], 20)
        self.cairn("stop")
        self.cairn("start", placement_targets=f"{NAMES[2]}, nobody")
        wait_for("the error", lambda: f"there is no storage target nobody (placement.targets); there are {', '.join(NAMES)}" in self.log(), 20)
        self.assertEqual(self.shown(), [])
        self.cairn("stop")

    RANK = """
import sys
sys.path.insert(0, sys.argv[1])
from support import *
rank = int(sys.argv[2])
s = Session("series", rank, 2)
assert s.opened == OK, s.text()
s.protect("memory", bytes([rank + 1]) * 3000000)
for version in (1, 2):
    assert s.checkpoint(version) == OK, s.text()
    assert s.wait(version, wait_ms=60000) == OK, s.text()
s.close()
"""

    def test_files_of_ranks_lie_where_their_nodes_write(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN_")}
        env.update(CAIRN_BUILD=os.path.abspath(os.environ.get("CAIRN_BUILD", "build/release")), CAIRN_PATHS_SCRATCH=self.scratch, CAIRN_PATHS_PERSISTENT=f"{PFS}/checkpoints", CAIRN_DAEMON_PROGRAM=find("cairnd"),
                   CAIRN_FLUSH_LAYOUT="file-per-rank", CAIRN_FLUSH_CODEC="off", CAIRN_BACKGROUND_CPU="normal", PYTHONDONTWRITEBYTECODE="1")
        command = self.cluster.command("n0", ["python3", "-c", self.RANK, os.path.join(ROOT, "tests")])
        self.cluster.run("n0", "mkdir", f"{PFS}/checkpoints")
        running = [subprocess.Popen([*command, str(rank)], env={**env, "CAIRN_NODE": f"virtual-{rank}"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(2)]
        for each in running:
            out, _ = each.communicate(timeout=100)
            self.assertEqual(each.returncode, 0, out)
        for version in (1, 2):
            folder = f"{PFS}/checkpoints/series/{version}"
            names = sorted(name for name in self.cluster.run("n0", "ls", folder).split() if name.startswith("rank-"))
            self.assertEqual([volume.server_of(self.cluster, "n0", f"{folder}/{name}") for name in names], ["s0", "s1"])
        lines = [f"0 {NAMES[0]}", f"1 {NAMES[1]}"]
        wait_for("the map", lambda: self.cluster.run("n0", "sh", "-c", f"cat {PFS}/checkpoints/series/targets || true").splitlines()[-2:] == lines, 20)
        self.assertRegex(self.cairn("layout", "--explain", "series"), rf"rank-0001-of-0002\S* +[0-9.]+ MiB +s1:{LOCAL}")
        seen = json.loads(self.cairn("layout", "--nodes", "2", "--json"))
        self.assertEqual([seen["driver"], [target["name"] for target in seen["targets"]]], ["glusterfs", NAMES])
        self.assertEqual(seen["expected"]["hints"], ["no number of files fills all targets: a file lies on one of them, and there are at most as many files as ranks, 2"])
        for node in range(2):
            self.cairn("stop", "--node", f"virtual-{node}")

    def test_a_file_system_that_hangs_stops_nobody(self):
        self.cluster.pause("s1")
        self.cairn("start", deadlines_io_ms=500)
        wait_for("the deadline", lambda: "no-storage-targets" in self.log(), 20)
        self.assertIn("deadline passed: looking for the storage targets of", self.log())
        self.assertEqual(self.shown(), [])
        self.cairn("stop")
        self.assertRegex(self.log(), r"(?s)no-storage-targets.* ended ")
        self.cluster.resume("s1")


if __name__ == "__main__":
    testing.main()
