"""Layouts: a file for each rank or node (flush.layout), with real daemons: whose images each file has, on which target it lies, that the map of nodes to targets is kept,
obeyed and made anew, and that all else is as with aggregated parts.

Usage: CAIRN_BUILD=build/release python3 tests/layout_test.py [Class[.test]].
"""
import json
import os
import time
import unittest

from roots_test import RANK, RANKS, RESTORE, TAKE, Roots
from support import INVALID, OK, Nodes

NODES = 2
OPENED = RANK + "tell([s.opened, s.text()]); s.close()\n"


class Layouts(Roots):
    def setUp(self):
        super().setUp()
        self.nodes.settings["flush_files"] = 0

    def layout(self, name, **more):
        self.nodes.settings.update(flush_layout=name, **more)

    def shown(self, version):
        return json.loads(self.cairn("show", "series", str(version), "--json"))

    def files(self, version, word):
        """root -> names of that version's files there."""
        return {root: sorted(name for folder, _, names in os.walk(root) for name in names
                             if name.startswith(word + "-") and os.path.basename(folder) == str(version)) for root in self.roots}

    @property
    def map_path(self):
        return os.path.join(self.nodes.persistent, "series", "targets")

    def map(self):
        with open(self.map_path, encoding="utf-8") as file:
            return [line.split(" ", 1)[1].strip() for line in file if line[0].isdigit()]

    def becomes(self, expected):
        """The map is written beside what comes after the commit."""
        for _ in range(600):
            if os.path.exists(self.map_path) and self.map() == expected:
                return
            time.sleep(0.05)
        self.assertEqual(self.map(), expected)

    def change(self, text):
        """As a person would, when the first job has left its map."""
        self.becomes(self.roots)
        with open(self.map_path, "w", encoding="utf-8") as file:
            file.write(text)

    def restored(self, version):
        self.nodes.forget_scratch()
        for told in self.job(RESTORE):
            self.assertEqual(told[:3], [OK, version, True], told)
        self.cairn("verify", "series", "--decode")


class FilePerRank(Layouts):
    def test_each_rank_has_a_file_on_the_target_of_its_node(self):
        self.layout("file-per-rank")
        self.take(1, 2)
        for version in (1, 2):
            files = self.files(version, "rank")
            for node, root in enumerate(self.roots):  # by count, and the same in each version
                self.assertEqual([name[:17] for name in files[root]], [f"rank-{rank:04}-of-{RANKS:04}" for rank in (2 * node, 2 * node + 1)])
            shown = self.shown(version)
            self.assertEqual(shown["layout"], "file-per-rank")
            self.assertEqual(shown["node_targets"], self.roots)
            self.assertEqual([part["ranks"] for part in shown["parts"]], [[rank] for rank in range(RANKS)])
        self.becomes(self.roots)
        self.assertIn(f"{self.roots[0]} (node 0)", self.cairn("show", "series", "2"))
        self.restored(2)
        self.assertEqual(self.read_alone(2).region(3, "memory"), self.content(3, 2))

    @staticmethod
    def content(rank, version):
        return bytes((version * 7 + rank * 31 + i) % 251 for i in range(1000)) * 300

    def test_codecs_work_within_the_file(self):
        self.layout("file-per-rank", flush_codec="fast", flush_merge_ranks=4)
        self.take(1)
        for part in self.shown(1)["parts"]:
            for run in part["runs"]:
                self.assertEqual(len({piece["rank"] for piece in run["pieces"]}), 1)
        self.restored(1)

    def test_a_number_of_files_beside_it_is_an_error(self):
        for layout in ("file-per-rank", "file-per-node"):
            self.layout(layout, flush_files=2)
            for told in self.job(OPENED):
                self.assertEqual(told[0], INVALID, told)
                self.assertIn("flush.files (CAIRN_FLUSH_FILES) must be 0 with flush.layout (CAIRN_FLUSH_LAYOUT)", told[1])

    def test_a_map_that_a_person_changed_is_obeyed(self):
        self.layout("file-per-rank")
        self.take(1)
        self.change(f"0 {self.roots[1]}\n1 {self.roots[1]}\n")
        self.take(2)
        self.assertEqual([len(names) for names in self.files(2, "rank").values()], [0, RANKS])
        self.assertEqual(self.shown(2)["node_targets"], [self.roots[1]] * NODES)
        self.assertEqual(self.map(), [self.roots[1]] * NODES, "it is left as it is")
        self.restored(2)

    def test_an_unknown_target_in_the_map_is_told_once_and_costs_nothing(self):
        self.layout("file-per-rank")
        self.take(1)
        self.change(f"0 {self.roots[1]}\n1 /nowhere\n")
        self.take(2, 3)
        self.assertEqual(sum(map(len, self.files(3, "rank").values())), RANKS)
        self.assertEqual(self.log(0).count("/nowhere"), 1, self.log(0))
        self.restored(3)

    def test_a_map_that_can_not_be_read_is_left_to_its_writer(self):
        self.layout("file-per-rank")
        self.take(1)
        self.change("0 here\n0 there\n")
        self.take(2)
        self.assertEqual(self.map(), ["here", "there"])
        self.assertEqual(self.shown(2)["node_targets"], self.roots)
        self.assertIn("line 2: node 0 where node 1 should stand", self.log(0))


class FilePerNode(Layouts):
    def test_each_node_has_a_file_on_its_target(self):
        self.layout("file-per-node")
        self.take(1)
        files = self.files(1, "node")
        for node, root in enumerate(self.roots):
            self.assertEqual([name[:17] for name in files[root]], [f"node-{node:04}-of-{NODES:04}"])
        self.assertEqual([part["ranks"] for part in self.shown(1)["parts"]], [[0, 1], [2, 3]])
        self.assertEqual(self.shown(1)["layout"], "file-per-node")
        self.restored(1)

    def test_another_number_of_nodes_makes_the_map_anew(self):
        self.layout("file-per-node")
        self.take(1)
        self.becomes(self.roots)
        running = [self.nodes.start(f"rank, versions = {rank}, (2,)\n" + TAKE, rank) for rank in range(RANKS)]  # a node each
        for each in running:
            self.assertEqual(Nodes.told(each)[0][0], OK)
        self.becomes(self.roots * 2)
        self.assertEqual([len(names) for names in self.files(2, "node").values()], [2, 2])
        self.assertIn("it is of 2 nodes, and this job has 4", self.log(0))
        self.take(3)
        self.becomes(self.roots)
        self.assertEqual(self.shown(3)["node_targets"], self.roots)
        self.restored(3)

    def test_layouts_can_change_from_job_to_job(self):
        for version, layout in enumerate(("file-per-node", "aggregated", "file-per-rank"), 1):
            self.layout(layout)
            self.take(version)
            self.assertEqual(self.shown(version)["layout"], layout)
        self.restored(3)
        self.cairn("verify", "series", "1")


if __name__ == "__main__":
    unittest.main(verbosity=2)
