#!/usr/bin/env python3
"""bench/orchestration: sizes of images, what is counted of writes and of growing files, and its verdicts. The cluster itself is the testbed's to test."""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import orchestration_plan as plan  # noqa: E402
import orchestration_report as report  # noqa: E402
import orchestration_ways as ways  # noqa: E402

NODE = os.path.join(ROOT, "bench", "orchestration_node.py")


def row(way, processes, seconds, servers=(25, 25, 25, 25), samples=((2, 2), (2, 3)), captured=0.0, nodes=()):
    each = plan.image_set("LU", "D", processes, 16)
    return {"set": each._asdict(), "way": way, "bytes": each.bytes(), "durable_s": captured + seconds, "captured_s": captured, "samples": samples, "servers": servers, "nodes": list(nodes), "changes": [], "load": 1.0}


class Arithmetic(unittest.TestCase):
    def test_images_have_the_sizes_of_the_table(self):
        self.assertEqual(plan.image_set("LU", "D", 64, 16).image_bytes, 4 << 20)  # 16 GB of 256 processes
        self.assertEqual(plan.image_set("BT", "D", 8, 16).bytes(), 26 * 16 << 20)
        self.assertEqual(plan.image_set("CG", "C", 64, 64).bytes() // 64 % 4096, 0)
        self.assertEqual({each.size for each in plan.sets_of(64, ["LU"], [], 16)}, {"C", "D"})
        self.assertEqual([each.program for each in plan.sets_of(8, ["FT"], ["LU", "BT"], 16)], ["LU", "BT"])

    def test_streams_are_the_papers(self):
        self.assertEqual([plan.streams_wanted(way, 256, 32, 4) for way in ("traditional", "vertical", "marshaled", "aggregated")], [256, 64, 8, None])

    def test_changes_of_file(self):
        self.assertEqual(ways.changes([(1, 7), (2, 7), (3, 8), (4, 7)]), 2)
        self.assertEqual(ways.changes([]), 0)

    def test_what_a_node_wrote(self):
        spans = [(0, 9, "take", None, 1), (1.0, 2.0, "write local", 0, 1), (2.0, 3.0, "write local", 0, 1), (4.0, 5.0, "write local", 1, 1), (4.5, 6.0, "write local", 2, 2), (90, 91, "write local", 3, 1)]
        found = ways.of_flush(spans, 0.5, 10)
        self.assertEqual((found["files"], found["changes"], found["at_once"]), (3, 2, 2))
        self.assertAlmostEqual(found["idle"], 1 / 5)
        self.assertIsNone(ways.of_flush(spans, 50, 10))

    def test_rates_go_by_what_comes_after_the_capture(self):
        self.assertAlmostEqual(report.rate(row("vertical", 64, 4, captured=3)), 64)
        self.assertEqual(report.evenness(row("vertical", 64, 4, servers=(30, 30, 30, 10))), 1.2)

    def test_verdicts(self):
        about = {"cluster": {"nodes": 8, "servers": 4}, "limit": row("limit", 8, 3)}  # 192 MiB: 64 MiB/s
        lines = report.goals({**about, "runs": [row("traditional", 64, 5), row("marshaled", 64, 4.2), row("marshaled", 8, 3.0)]})
        self.assertEqual([line.count(": reached") for line in lines if "of the limit" in line], [2, 3])
        self.assertTrue(any("marshaled loses 5 %" in line and line.endswith(": reached") for line in lines), lines)
        lines = report.goals({**about, "runs": [row("traditional", 64, 4), row("marshaled", 64, 5, servers=(30, 25, 25, 20)), row("marshaled", 8, 3.0)]})
        self.assertEqual([line.count("NOT REACHED") for line in lines if "of the limit" in line], [0, 3])
        self.assertTrue(any("marshaled loses 20 %" in line and line.endswith("NOT REACHED") for line in lines), lines)


class OnANode(unittest.TestCase):
    def ask(self, process, *words):
        if words:
            process.stdin.write(" ".join(map(str, words)) + "\n")
            process.stdin.flush()
        return json.loads(process.stdout.readline())

    def test_plain_writers_are_durable_and_tell_their_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen([sys.executable, "-B", NODE, "plain", folder, "2", "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                self.assertTrue(self.ask(process)["ready"])
                said = self.ask(process, "go", 5, 3 << 20, time.monotonic())
                process.stdin.close()
            self.assertEqual({name: os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)}, {"5.2": 3 << 20, "5.3": 3 << 20})
            self.assertEqual(sorted(rank for _, rank in said["writes"]), [2, 2, 2, 3, 3, 3])
            self.assertGreaterEqual(said["durable"], max(moment for moment, _ in said["writes"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
