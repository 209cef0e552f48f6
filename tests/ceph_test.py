#!/usr/bin/env python3
"""The driver of CephFS (placement.driver = cephfs) on a real one, mounted by ceph-fuse, with real daemons and ranks: parts lie in the data pools that placement.targets names, `cairn
layout` tells the truth about it, and what becomes of a version where a pool is none of the file system's, where the client may set no layout, and where a pool is full or does not
answer; what was committed comes back after all of Ceph was restarted.

Usage: CAIRN_BUILD=build/release python3 tests/ceph_test.py [Class[.test]]; exit code 77 where no namespaces or no Ceph can be had.
"""
import contextlib
import json
import os
import re
import signal
import sys
import unittest

import ceph_cluster
from ceph_cluster import Ceph, wait_for
from drivers_test import NODES, Driven
from roots_test import RANK, RANKS
from support import DEADLINE, NO_SPACE, OK, Nodes

DEFAULT, A, B, SMALL = "data", "fast_a", "fast_b", "small"
FILES = "/mnt/files"
PLAIN = "/mnt/plain"  # by a client without the flag p
TIMED = "/mnt/timed"  # by one that does not wait for an OSD for ever
POOLS = {DEFAULT: 0, SMALL: 0, A: 1, B: 2}  # and on which OSD each lies

# A version for each line that it hears. A wait ends when the first attempt at it failed, too.
IN_STEPS = RANK + """
version = 0
while hear():
    version += 1
    ctypes.memmove(s.buffers["memory"], content(version), len(content(version)))
    tell([s.checkpoint(version), s.wait(version, wait_ms=60000), s.text()])
s.close()
"""


def setUpModule():
    global cluster
    cluster = Ceph(POOLS)
    unittest.addModuleCleanup(cluster.end)
    cluster.mount(FILES)
    print(cluster.ask("version"), flush=True)


def pool_of(path):
    return os.getxattr(path, "ceph.file.layout.pool").decode()


class OnCephFs(Driven):
    driver = "automatic"

    def setUp(self):
        super().setUp()
        self.nodes.persistent = os.path.join(FILES, self.id().rsplit(".", 1)[1])
        os.mkdir(self.nodes.persistent)
        self.nodes.settings["placement_targets"] = f"{A}, {B}"

    def pools(self, version, word="part-"):
        """File name -> pool, asked of the file system."""
        folder, found = os.path.join(self.nodes.persistent, "series", str(version)), {}
        for name in sorted(os.listdir(folder)):
            with contextlib.suppress(FileNotFoundError):  # taken away just now
                if name.startswith(word):
                    found[name] = pool_of(os.path.join(folder, name))
        return found

    def counted(self, version, word="part-"):
        pools = list(self.pools(version, word).values())
        return {pool: pools.count(pool) for pool in pools}

    def begin(self):
        """A job that waits for step()."""
        self.running = [self.nodes.start(f"rank = {rank}\n" + IN_STEPS, rank // 2) for rank in range(RANKS)]
        self.addCleanup(self.end)

    def step(self):
        """Its next version: what each rank tells."""
        for each in self.running:
            each.stdin.write("next\n")
            each.stdin.flush()
        return [json.loads(each.stdout.readline() or "null") for each in self.running]

    def end(self):
        """None of its ranks crashed."""
        for each in self.running:
            each.stdin.close()
            each.stdin = None
        running, self.running = self.running, []
        for each in running:
            Nodes.told(each)

    def not_placed(self, node):
        return [line for line in self.log(node).splitlines() if " not-placed " in line]

    def explained(self):
        """File name -> where it lies, as Cairn says."""
        return dict(re.findall(r"(?m)^((?:part|rank|manifest)\S*) +\S+ \S+ +(\S.*?) *$", self.cairn("layout", "--explain", "series", "--all")))


class Placed(OnCephFs):
    def test_parts_are_spread_evenly_over_the_pools_that_are_named(self):
        self.start([A, B])
        self.take(1, 2)
        for version in (1, 2):
            self.assertEqual(self.counted(version), {A: RANKS // 2, B: RANKS // 2})
            self.assertEqual(self.counted(version, "manifest"), {DEFAULT: 1}, "what is no part lies where the directory has it")
        for node in range(NODES):
            self.assertEqual(self.not_placed(node), [])
            self.assertRegex(self.log(node), f"storage-targets driver=cephfs.*{A}.*{B}")
        self.restored(2)

    def test_layout_tells_the_truth(self):
        seen = json.loads(self.cairn("layout", "--json"))
        self.assertEqual([seen["driver"], seen["file_system"], [target["name"] for target in seen["targets"]]], ["cephfs", "fuse.ceph-fuse", [A, B]])
        self.assertIn("ceph.file.layout.pool", self.cairn("layout"))
        self.start([A, B])
        self.take(1)
        self.assertEqual({name: where for name, where in self.explained().items() if name.startswith("part-")}, {name: "pool " + pool for name, pool in self.pools(1).items()})

    def test_without_names_nothing_is_chosen_and_the_log_asks_for_them(self):
        del self.nodes.settings["placement_targets"]
        self.assertIn("placement.targets names them", self.cairn("layout"))
        self.take(1)
        self.until(lambda: "placement.targets names them" in self.log(0))
        self.assertEqual(self.counted(1), {DEFAULT: RANKS})
        self.restored(1)

    def test_files_of_a_node_lie_in_its_pool_as_the_map_says(self):
        self.nodes.settings.update(flush_layout="file-per-rank", flush_files=0)
        self.start([A, B])
        self.take(1)
        path = os.path.join(self.nodes.persistent, "series", "targets")
        self.until(lambda: os.path.exists(path))
        with open(path, encoding="utf-8") as file:
            self.assertEqual([line.strip() for line in file if line[0].isdigit()], [f"0 {A}", f"1 {B}"])
        self.assertEqual(list(self.pools(1, "rank-").values()), [A, A, B, B])
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"0 {B}\n1 {A}\n")
        self.take(2)
        self.assertEqual(list(self.pools(2, "rank-").values()), [B, B, A, A])
        self.restored(2)

    def test_the_layout_of_the_directory_holds_for_what_is_not_placed(self):
        os.setxattr(self.nodes.persistent, "ceph.dir.layout.pool", SMALL.encode())
        os.setxattr(self.nodes.persistent, "ceph.dir.layout.stripe_unit", b"1048576")
        self.assertEqual(json.loads(self.cairn("layout", "--json"))["block_bytes"], 1 << 20)
        self.take(1)
        self.assertEqual([self.counted(1), self.counted(1, "manifest")], [{A: 2, B: 2}, {SMALL: 1}])


class Refused(OnCephFs):
    def test_a_pool_that_is_not_of_the_file_system_costs_the_place_only(self):
        cluster.ask("osd pool create", pool="elsewhere", pg_num=1)
        for version, name in enumerate(("nowhere", "elsewhere"), 1):
            with self.subTest(pool=name):
                self.nodes.settings["placement_targets"] = f"{A}, {name}"
                self.start([A, name])
                self.take(version)
                self.assertEqual(self.counted(version), {A: 2, DEFAULT: 2})
                told = [[line for line in self.not_placed(node) if f"target={name} " in line] for node in range(NODES)]
                self.assertLessEqual(max(map(len, told)), 1, "once by each daemon that writes such a part")
                self.assertRegex("".join(sum(told, [])), rf"{name} \(placement\.targets\) is no data pool of this file system")
                self.restored(version)
                self.nodes.forget_scratch()

    def test_a_client_that_may_set_no_layout_is_told_once(self):
        if PLAIN not in cluster.mounts:
            cluster.allow("plain", "rw")
            cluster.mount(PLAIN, "plain")
        self.nodes.persistent = self.nodes.persistent.replace(FILES, PLAIN)
        self.start([A, B])
        self.take(1, 2)
        self.assertEqual(self.counted(2), {DEFAULT: RANKS})
        for node in range(NODES):
            self.assertEqual(len(self.not_placed(node)), 1, self.log(node))
            self.assertIn("takes the flag p in its capabilities", self.not_placed(node)[0])
        self.restored(2)


class Full(OnCephFs):
    """A pool with a quota that is used up."""

    def setUp(self):
        super().setUp()
        self.filler = os.path.join(FILES, "filler")
        self.addCleanup(self.free)

    def health(self, is_full):
        wait_for(f"POOL_FULL {is_full}", lambda: ("POOL_FULL" in cluster.ask("health", detail="detail")) == is_full, ceph_cluster.WITHIN_S)

    def fill(self):
        cluster.ask("osd pool set-quota", pool=SMALL, field="max_bytes", val="100000")
        with open(self.filler, "wb") as file:
            os.setxattr(self.filler, "ceph.file.layout.pool", SMALL.encode())
            file.write(bytes(1 << 20))
        self.health(True)

    def free(self):
        cluster.ask("osd pool set-quota", pool=SMALL, field="max_bytes", val="0")
        self.health(False)
        if os.path.exists(self.filler):
            os.remove(self.filler)

    def test_what_it_does_not_take_is_written_to_another(self):
        self.fill()
        self.nodes.settings["placement_targets"] = f"{A}, {SMALL}"
        self.start([A, SMALL])
        self.take(1, 2)
        self.assertEqual([self.counted(1), self.counted(2)], [{A: RANKS}] * 2)
        self.assertRegex(self.logs(), rf"target-left-out .*{SMALL}.*No space left on device")
        self.restored(2)

    def test_where_no_other_is_named_the_pool_of_the_directory_takes_it(self):
        self.fill()
        self.nodes.settings["placement_targets"] = SMALL
        self.start([SMALL])
        self.take(1)
        self.assertEqual(self.counted(1), {DEFAULT: RANKS})
        self.restored(1)

    def test_where_that_is_full_too_the_error_says_why_and_the_version_waits(self):
        os.setxattr(self.nodes.persistent, "ceph.dir.layout.pool", SMALL.encode())
        self.nodes.settings["placement_targets"] = SMALL
        self.start([SMALL])
        self.begin()
        self.step()
        self.fill()
        for told in self.step():
            self.assertEqual(told[:2], [OK, NO_SPACE], told)
            self.assertIn("No space left on device", told[2])
        self.free()
        for told in self.step():
            self.assertEqual(told[:2], [OK, OK], told)
        self.end()
        self.assertEqual([self.counted(version) for version in (1, 3)], [{SMALL: RANKS}] * 2)
        self.restored(3)


class Away(OnCephFs):
    """What hangs, and is answered some time, or never."""

    def setUp(self):
        super().setUp()
        self.nodes.settings["deadlines_io_ms"] = 6000

    def test_a_metadata_server_that_comes_back_costs_time_only(self):
        self.start([A, B])
        self.begin()
        self.step()
        cluster.stop("mds.a", force=True)
        for told in self.step():
            self.assertEqual(told[:2], [OK, DEADLINE], told)
        cluster.start("mds.a")
        for told in self.step():
            self.assertEqual(told[:2], [OK, OK], told)
        self.end()
        self.restored(3)

    @contextlib.contextmanager
    def silent(self, name):
        """The OSD on which a pool lies answers nobody."""
        osd = cluster.running[f"osd.{POOLS[name]}"]
        osd.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            osd.send_signal(signal.SIGCONT)

    def test_what_a_pool_does_not_take_in_time_is_written_to_another(self):
        """Where the client gives such a call up, by rados_osd_op_timeout."""
        if TIMED not in cluster.mounts:
            cluster.mount(TIMED, "admin", "--rados-osd-op-timeout", "3")
        self.nodes.persistent = self.nodes.persistent.replace(FILES, TIMED)
        self.start([A, B])
        self.begin()
        self.step()
        with self.silent(B):
            for told in self.step():
                self.assertEqual(told[:2], [OK, OK], told)
        self.assertEqual(self.counted(1), {A: 2, B: 2})
        self.until(lambda: self.counted(2) == {A: RANKS})  # what was written to the other may be taken away after the commit
        self.assertRegex(self.logs(), f"part-replaced .*from={B} to={A}")
        self.end()
        self.restored(2)

    def test_so_is_what_one_never_answers_to(self):
        """The kernel holds a directory while a file in it is removed at which a call hangs: nothing is removed before the commit."""
        self.start([A, B])
        self.begin()
        self.step()
        with self.silent(B):
            for told in self.step():
                self.assertEqual(told[:2], [OK, OK], told)
            for told in self.step():
                self.assertEqual(told[:2], [OK, OK], told)
        self.assertNotIn(B, self.counted(3))
        self.end()
        self.restored(3)


class Restarted(OnCephFs):
    def test_what_was_committed_comes_back(self):
        self.start([A, B])
        self.take(1)
        self.nodes.forget_scratch()
        client = cluster.unmount(FILES)
        cluster.restart()
        cluster.mount(FILES, client)
        self.assertEqual(self.counted(1), {A: 2, B: 2})
        self.restored(1)
        self.take(2)
        self.assertEqual(self.counted(2), {A: 2, B: 2})
        self.restored(2)


if __name__ == "__main__":
    if not ceph_cluster.inside():
        sys.exit(77)
    unittest.main(verbosity=2)
