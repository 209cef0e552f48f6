"""Drivers of file systems that are not here (placement.driver = lustre, cephfs, beegfs, orangefs; a real CephFS: ceph_test.py), with real daemons: programs that take the place of `lfs` and `beegfs-ctl` keep what they are asked,
and answer as recorded. Each file is made on its target, what can not be placed is there all the same and told once, and nothing waits for a tool that hangs.

Usage: CAIRN_BUILD=build/release python3 tests/drivers_test.py [Class[.test]].
"""
import json
import os
import re
import stat
import time
import unittest

from roots_test import RANKS, RESTORE, Roots
from support import OK

NODES = 2
OSTS = 4
DF = "UUID 1K-blocks Used Available Use% Mounted on\n" + "testfs-MDT0000_UUID 1165900 72292 1000548 7% /mnt[MDT:0]\n" + "".join(
    f"testfs-OST{i:04x}_UUID 73974480 1275640 {68608480 - i * 1024} 2% /mnt[OST:{i}]\n" for i in range(OSTS)) + "\nfilesystem_summary: 1 1 1 1% /mnt\n"
LIST = """TargetID     Reachability  Consistency        Total         Free    %      ITotal       IFree    %   NodeID
========     ============  ===========        =====         ====    =      ======       =====    =   ======
     101           Online         Good     465.4GiB     232.5GiB  50%       48.8M       48.8M 100%        1
     202           Online         Good     465.4GiB     232.5GiB  50%       48.8M       48.8M 100%        2
     303          Offline         Good       0.0GiB       0.0GiB   0%        0.0M        0.0M   0%        3
"""
# Its last word is the file; what it is asked is kept in one write.
KEEP = """#!/bin/sh
echo "$@" >> {asked}
for last; do :; done
"""
LFS = KEEP + """
case "$1 $2 $3" in
df*) {df} cat {answer} ;;
"getstripe --directory --pool") echo ;;
"getstripe --directory --stripe-size") echo 1048576 ;;
"getstripe --yaml"*) echo "lmm_objects:"; echo "      - l_ost_idx: 3" ;;
setstripe*) {setstripe} set -C; : > "$last" ;;
*) echo "lfs: unknown" >&2; exit 1 ;;
esac
"""
BEEGFS = KEEP + """
case "$1" in
--listtargets) cat {answer} ;;
--createfile) {create} set -C; : > "$last" ;;
--getentryinfo) printf '+ Storage targets:\\n  + 101 @ node1 [ID: 1]\\n' ;;
esac
"""


class Driven(Roots):
    driver = None

    def setUp(self):
        super().setUp()
        del self.nodes.settings["storage_directories"]
        self.nodes.settings.update(placement_driver=self.driver, flush_files=RANKS)
        self.programs = os.path.join(self.nodes.shared, "bin")
        os.mkdir(self.programs)
        before = os.environ["PATH"]
        os.environ["PATH"] = self.programs + ":" + before
        self.addCleanup(os.environ.__setitem__, "PATH", before)

    @property
    def asked_path(self):
        return os.path.join(self.nodes.shared, "asked")

    def install(self, name, script, answer, **more):
        answer_path = os.path.join(self.nodes.shared, "answer")
        with open(answer_path, "w", encoding="utf-8") as file:
            file.write(answer)
        path = os.path.join(self.programs, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(script.format(asked=self.asked_path, answer=answer_path, **more))
        os.chmod(path + ".new", stat.S_IRWXU)
        os.rename(path + ".new", path)

    def asked(self, word):
        if not os.path.exists(self.asked_path):
            return []
        with open(self.asked_path, encoding="utf-8") as file:
            return [line.strip() for line in file if line.startswith(word)]

    def start(self, targets):
        """Daemons that know these."""
        for node in range(NODES):
            self.cairn("start", node=node)
            self.until(lambda node=node: json.loads(self.cairn("status", "--json", node=node))["nodes"][0]["targets"] == targets)

    def until(self, condition):
        for _ in range(1200):
            if condition():
                return
            time.sleep(0.05)
        self.assertTrue(condition())

    def logs(self):
        return "".join(self.log(node) for node in range(NODES))

    def restored(self, version):
        self.nodes.forget_scratch()
        for told in self.job(RESTORE):
            self.assertEqual(told[:3], [OK, version, True], told)
        self.cairn("verify", "series", "--decode")


class Lustre(Driven):
    driver = "lustre"
    names = [f"testfs-OST{i:04x}" for i in range(OSTS)]

    def lfs(self, df="", setstripe=""):
        self.install("lfs", LFS, DF, df=df, setstripe=setstripe)

    def placed(self, version):
        """File name -> index of the OST that it was made on."""
        calls = [re.fullmatch(rf"setstripe -c 1 -i (\d+) {re.escape(self.nodes.persistent)}/series/{version}/(\S+)", line) for line in self.asked("setstripe")]
        return {call[2]: int(call[1]) for call in calls if call}

    def test_each_part_is_made_whole_on_its_ost(self):
        self.lfs()
        self.start(self.names)
        self.take(1, 2)
        for version in (1, 2):
            placed = self.placed(version)
            self.assertEqual(sorted(placed), self.parts(version=version))
            self.assertEqual(sorted(placed.values()), list(range(OSTS)), "the same bytes on each")
        self.assertEqual(len(self.asked("setstripe")), 2 * RANKS, "nothing else is placed, and nothing twice")
        self.assertNotIn("not-placed", self.logs())
        self.restored(2)

    def test_only_the_targets_that_are_named(self):
        self.lfs()
        self.nodes.settings["placement_targets"] = f"{self.names[3]}, {self.names[1]}"
        self.start([self.names[3], self.names[1]])
        self.take(1)
        self.assertEqual(sorted(self.placed(1).values()), [1, 1, 3, 3])

    def test_files_of_a_node_share_its_ost(self):
        self.lfs()
        self.nodes.settings.update(flush_layout="file-per-rank", flush_files=0)
        self.start(self.names)
        self.take(1)
        self.assertEqual([index for _, index in sorted(self.placed(1).items())], [0, 0, 1, 1])
        self.restored(1)

    def test_a_full_ost_gets_nothing(self):
        full = re.sub(r"(?m)^(testfs-OST0002_UUID.*)$", r"\1 S", DF)
        self.install("lfs", LFS, full, df="", setstripe="")
        self.start([name for name in self.names if not name.endswith("2")])
        self.take(1)
        self.assertEqual(sorted(set(self.placed(1).values())), [0, 1, 3])

    def test_what_may_not_be_placed_is_there_all_the_same_and_told_once(self):
        self.lfs(setstripe="echo 'lfs setstripe: setstripe error: Operation not permitted' >&2; exit 1;")
        self.start(self.names)
        self.take(1, 2)
        for node in range(NODES):
            self.assertEqual(self.log(node).count("not-placed"), 1, self.log(node))
        self.assertIn("Operation not permitted", self.logs())
        self.restored(2)

    def test_a_file_that_was_made_without_its_layout_is_taken(self):
        self.lfs(setstripe=": > \"$last\"; echo 'error on ioctl' >&2; exit 1;")
        self.start(self.names)
        self.take(1)
        self.restored(1)

    def test_without_the_tool_the_log_says_what_is_missing(self):
        self.take(1)
        self.until(lambda: "no-storage-targets" in self.log(0))
        self.assertIn("there is no program lfs here", self.log(0))
        self.restored(1)

    def test_a_tool_that_hangs_holds_nobody_up(self):
        self.lfs(df="sleep 1000;")
        self.nodes.settings["deadlines_io_ms"] = 2000
        self.take(1)
        self.until(lambda: "deadline" in "".join(line for line in self.log(0).splitlines(True) if "no-storage-targets" in line))
        self.assertEqual(self.asked("setstripe"), [])
        self.restored(1)

    def test_one_that_hangs_while_a_file_is_made_is_left_alone(self):
        self.lfs(setstripe="sleep 1000;")
        self.nodes.settings["deadlines_io_ms"] = 4000
        self.start(self.names)
        self.take(1, 2)
        self.assertIn("not-placed", self.logs())
        self.assertLessEqual(len(self.asked("setstripe")), RANKS, "the first version's, at most")
        self.restored(2)

    def test_layout_tells_it_in_the_words_of_lustre(self):
        self.lfs()
        self.nodes.settings["flush_files"] = 0
        told = self.cairn("layout", "--nodes", "2")
        self.assertIn("lfs setstripe -c 1 -i INDEX", told)
        self.assertRegex(told, r"testfs-OST0003 +65\.4 GiB")
        seen = json.loads(self.cairn("layout", "--json"))
        self.assertEqual([seen["driver"], seen["block_bytes"], len(seen["targets"])], ["lustre", 1 << 20, OSTS])
        self.take(1)
        self.assertRegex(self.cairn("layout", "--explain", "series"), r"part-0001-of-\d+\S* +\S+ \S+ +OST0003")


class BeeGfs(Driven):
    driver = "beegfs"

    def test_each_part_is_made_on_its_target(self):
        self.install("beegfs-ctl", BEEGFS, LIST, create="")
        self.start(["101", "202"])
        self.take(1)
        calls = self.asked("--createfile")
        self.assertEqual(sorted(call.split()[1] for call in calls), ["--targets=101"] * 2 + ["--targets=202"] * 2)
        for call in calls:
            self.assertRegex(call, rf"^--createfile --targets=\d+ --numtargets=1 --access=0644 --uid={os.geteuid()} --gid={os.getegid()} {re.escape(self.nodes.persistent)}/series/1/part-\S+$")
        self.assertIn(f"--listtargets --nodetype=storage --state --spaceinfo --mount={self.nodes.persistent}", self.asked("--listtargets"))
        self.assertRegex(self.cairn("layout", "--explain", "series"), "target 101")
        self.restored(1)

    def test_who_is_not_root_is_told_once(self):
        self.install("beegfs-ctl", BEEGFS, LIST, create="echo 'Error: This operation requires root privileges.' >&2; exit 1;")
        self.start(["101", "202"])
        self.take(1)
        self.assertIn("requires root privileges", self.logs())
        self.restored(1)


class CephFs(Driven):
    driver = "cephfs"

    def test_a_file_system_without_the_attribute_loses_the_place_only(self):
        self.nodes.settings["placement_targets"] = "data_a, data_b"
        self.start(["data_a", "data_b"])
        self.take(1)
        self.assertRegex(self.logs(), r"not-placed.*ceph\.file\.layout\.pool")
        self.assertIn("ceph.file.layout.pool", self.cairn("layout"))
        self.restored(1)

    def test_pools_that_nobody_names_are_asked_for(self):
        self.take(1)
        self.until(lambda: "no-storage-targets" in self.log(0))
        self.assertIn("placement.targets names them", self.log(0))


class OrangeFs(Driven):
    driver = "orangefs"

    def test_directories_of_versions_get_their_attributes_and_the_log_says_what_is_not_promised(self):
        for node in range(NODES):
            self.cairn("start", node=node)
            self.until(lambda node=node: "durability is not promised" in self.log(node))
        self.take(1)
        for node in range(NODES):
            self.assertEqual(self.log(node).count("durability is not promised"), 1)
        self.assertEqual(os.getxattr(os.path.join(self.nodes.persistent, "series", "1"), "user.pvfs2.num_dfiles"), b"00001\0")
        self.assertEqual(os.listxattr(self.nodes.persistent), [], "of no other directory")
        self.assertRegex(self.cairn("layout"), r"warning +durability is not promised")
        self.restored(1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
