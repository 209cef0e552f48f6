#!/usr/bin/env python3
"""bench/mcrengine and bench/mcrengine_figures.py: what they take from other results, arithmetic of steps and percentages, and the programs of the nodes, on this host."""
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import mcrengine_plan as plan  # noqa: E402
import mcrengine_report as report  # noqa: E402
import mcrengine_scale_report as scale  # noqa: E402
import mcrengine_ways as ways  # noqa: E402

NODE = os.path.join(ROOT, "bench", "mcrengine_node.py")


class Figures(unittest.TestCase):
    def test_codecs_are_those_of_the_results(self):
        datas = plan.all_data()
        self.assertEqual([data.name for data in datas], ["ALE3D", "Cactus", "cosmo16_z9.84", "impl64_t0.100"])
        with open(os.path.join(ROOT, "bench", "results", "codecs.txt"), encoding="utf-8") as file:
            text = file.read()
        for data in datas[2:]:
            self.assertRegex(text, rf"{re.escape(data.name)} .*predict-planes-small +{data.cairn['small'].ratio}")
            self.assertGreater(data.aware.ratio, data.agnostic.ratio)
            self.assertGreater(data.first.bytes_per_s, data.aware.bytes_per_s)  # one pass of two
            self.assertGreater(data.first.back_per_s, data.aware.back_per_s)
            for mode in ("fast", "small"):
                self.assertRegex(text, rf"{re.escape(data.name)} .* {data.cairn[mode].bytes_per_s / 1e6:.0f} +{data.cairn[mode].back_per_s / 1e6:.0f}\n")
        self.assertAlmostEqual(datas[0].aware.ratio / datas[0].agnostic.ratio, 1.5 / 1.3)
        self.assertEqual(datas[0].cairn, {})

    def test_nodes_that_merge(self):
        self.assertEqual([plan.groups(count) for count in (384, 768, 15408)], [1, 2, 40])
        run = plan.written(768, 64, True)
        self.assertIn("job.nodes=2", run.sets)
        self.assertIn("job.image_bytes=2048", run.sets)  # 32 processes' bytes a writer
        self.assertIn("job.nodes=64", plan.written(768, 64, False).sets)
        self.assertIn("job.restart=1", run.sets)

    def test_steps_follow_each_other_but_for_the_first_pass(self):
        codec = plan.Codec(2, 1e6, 4e6)
        data = plan.Data("x", 3e6, codec, codec, plan.Codec(1.5, 6e6, 12e6), plan.Codec(4, 2e6, 8e6), {"fast": codec})
        simulated = lambda run: {"write_s": 10, "flush_s": 7, "restart_s": 5}  # noqa: E731
        self.assertEqual(plan.steps(simulated, data, "NoC+NoAgg", 384), {"write": 7, "seconds": 7})
        self.assertEqual(plan.steps(simulated, data, "C+NoAgg", 384), {"compress": 3, "write": 7, "seconds": 10})
        got = plan.steps(simulated, data, "Aware+Agg", 384)  # 96 MB a merging process
        self.assertEqual((got["fetch"], got["first pass"], got["compress"], got["write"]), (10, 16, 32, 7))
        self.assertEqual(got["seconds"], 55)  # 16 beside 10
        self.assertEqual(plan.restart_steps(simulated, data, "NoC+NoAgg", 384), {"read": 5, "seconds": 5})
        self.assertEqual(plan.restart_steps(simulated, data, "C+NoAgg", 384), {"read": 5, "decompress": 0.75, "seconds": 5.75})
        self.assertEqual(plan.restart_steps(simulated, data, "NoC+Agg", 384), {"read": 5, "send": 10, "seconds": 15})
        self.assertEqual(plan.restart_steps(simulated, data, "Agnostic+Agg", 384), {"read": 5, "decompress": 24, "send": 10, "seconds": 39})
        self.assertEqual(plan.restart_steps(simulated, data, "Aware+Agg", 384), {"read": 5, "decompress": 4, "split": 8, "send": 10, "seconds": 19})  # 8 beside 10
        self.assertEqual(plan.restart_steps(simulated, data, "fast", 384), {"restore": 5, "seconds": 5})

    def test_each_reads_what_it_wrote(self):
        data = plan.all_data()[2]
        runs = []
        plan.restart_steps(lambda run: runs.append(run) or {"write_s": 1, "restart_s": 1}, data, "C+NoAgg", 768, "storage.background=0.9")
        plan.restart_steps(lambda run: runs.append(run) or {"write_s": 1, "restart_s": 1}, data, "small", 768)
        self.assertEqual([runs[0].strategy, runs[1].strategy], ["file_per_rank", "cairn"])
        self.assertIn(f"job.image_bytes={round(87e6 / data.alone.ratio)}", runs[0].sets)
        self.assertIn("storage.background=0.9", runs[0].sets)
        self.assertIn(f"codec.decode_bytes_per_s={round(12 * data.cairn['small'].back_per_s)}", runs[1].sets)
        self.assertTrue(all("job.restart=1" in run.sets for run in runs))

    def test_percentages(self):
        rows = [{"data": "Cactus", "way": way, "processes": 32, "share": 1, "steps": {"write": write, "seconds": write + 1}, "restart": {"read": write - 1, "seconds": 2 * write}}
                for way, write in (("NoC+NoAgg", 9), ("NoC+Agg", 5))]
        self.assertAlmostEqual(report.claim(rows, "Cactus", "steps", "seconds", "NoC+NoAgg", "NoC+Agg", 1), 40)
        self.assertAlmostEqual(report.claim(rows, "Cactus", "steps", "rate", "NoC+NoAgg", "NoC+Agg", 1), 80)
        self.assertAlmostEqual(report.claim(rows, "Cactus", "restart", "seconds", "NoC+NoAgg", "NoC+Agg", 1), 400 / 9)
        self.assertAlmostEqual(report.claim(rows, "Cactus", "restart", "read", "NoC+NoAgg", "NoC+Agg", 1), 50)

    def test_steps_end_with_the_last_process(self):
        self.assertEqual(ways.spans(10, [{"fetch": 11, "write": 15}, {"fetch": 13, "write": 14}]), {"fetch": 3, "write": 2})
        self.assertEqual(ways.spans(10, [{"read": 12}, {"rebuild": 11}]), {"rebuild": 1, "read": 1})

    def test_what_is_replayed(self):
        rows = [{"scheme": "aware", "block": block, "pipeline": "mcrengine", "passes": passes, "stored": 100 // passes, "layout": 1, "encode_s": 2.0 * passes, "decode_s": 1.0 * passes, "merge_s": 0.5, "split_s": 0.25}
                for block in (0, 32768) for passes in (1, 2)]
        self.assertEqual(ways.replayed(rows), ways.Replayed(51, 2.5, 2, 1.25, 1))

    def test_ratios_are_of_each_round(self):
        self.assertEqual(scale.by_turns([2, 9, 4], [1, 3, 4]), 2)
        run = {"ways": {way: {"checkpoint_s": times, "checkpoint_steps": [{"write": each} for each in times]} for way, times in (("a", [4, 8]), ("b", [2, 4]))}}
        self.assertAlmostEqual(scale.less(run, "checkpoint", False, "a", "b"), 50)
        self.assertAlmostEqual(scale.less(run, "checkpoint", True, "a", "b"), 50)
        self.assertIsNone(scale.less(run, "checkpoint", True, "a", "c"))

    def test_a_small_run(self):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "x.json")
            subprocess.run([sys.executable, "-B", os.path.join(ROOT, "bench", "mcrengine_figures.py"), BUILD, "--short", "--no-plots", "--out", out], check=True, stdout=subprocess.DEVNULL)
            with open(out, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
            self.assertEqual({row["way"] for row in rows}, {*plan.PAPERS, *plan.CAIRNS})
            self.assertTrue(all(row[phase]["seconds"] > 0 for row in rows for phase in ("steps", "restart")))
            with open(os.path.join(folder, "x.txt"), encoding="utf-8") as file:
                text = file.read()
            for title in ("Figures 10 and 11, reads", "Figure 13: a restart of 384 processes"):
                self.assertIn(title, text)
            for title, published, *_ in report.CLAIMS:
                self.assertRegex(text, rf"{re.escape(title)} +{published} % +-?\d+ %")
            self.assertEqual(report.CLAIMS[-4:], tuple(each for each in report.CLAIMS if each[3] == "restart"))
            self.assertNotIn("not simulated", text)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nodes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.files = [self.path(f"rank{rank}") for rank in range(3)]
        for rank, file in enumerate(self.files):
            with open(file, "wb") as out:
                out.write(bytes([rank]) * (3_000_000 + rank) + hashlib.sha256(b"%d" % rank).digest())

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_all(self, *commands):
        begun = ["--at", repr(time.monotonic() + 0.2)]
        started = [subprocess.Popen([sys.executable, "-B", NODE, *command, *begun], stdout=subprocess.PIPE, text=True) for command in commands]
        said = [each.communicate(timeout=100)[0] for each in started]
        self.assertEqual([each.returncode for each in started], [0] * len(started))
        return [json.loads(each) for each in said]

    def assert_same(self, first, second):
        with open(first, "rb") as one, open(second, "rb") as other:
            self.assertTrue(one.read() == other.read(), second)

    def test_alone(self):
        wrote = self.run_all(["alone", "write", "--file", self.files[0], "--stored", self.path("stored"), "--gzip"])[0]
        self.assertEqual(list(wrote["steps"]), ["compress", "write"])
        self.assertEqual(wrote["stored"], os.path.getsize(self.path("stored")))
        self.assertLess(wrote["stored"], 100_000)
        self.assertEqual(list(self.run_all(["alone", "read", "--file", self.path("back"), "--stored", self.path("stored"), "--gzip"])[0]["steps"]), ["read", "decompress", "rebuild"])
        self.assert_same(self.files[0], self.path("back"))

    def merged(self, codec, back_codec, more):
        port = str(free_port())
        members = lambda way, files: [["member", way, "--rank", str(rank), "--file", file, "--host", "127.0.0.1", "--port", port] for rank, file in enumerate(files)]  # noqa: E731
        merge = ["merge", "write", "--port", port, "--members", "3", "--stored", self.path("stored")]
        wrote = self.run_all(merge + codec, *members("write", self.files))[0]
        self.assertEqual(wrote["stored"], os.path.getsize(self.path("stored")))
        sizes = ",".join(str(os.path.getsize(file)) for file in self.files)
        back = [self.path(f"back{rank}") for rank in range(3)]
        read = self.run_all([*merge[:1], "read", *merge[2:], "--sizes", sizes, *more, *back_codec], *members("read", back))[0]
        for file, other in zip(self.files, back):
            self.assert_same(file, other)
        return list(wrote["steps"]), list(read["steps"])

    def test_merged_as_they_are(self):
        self.assertEqual(self.merged([], [], []), (["fetch", "write"], ["read", "send"]))

    def test_merged_by_gzip(self):
        self.assertEqual(self.merged(["--gzip"], ["--gzip"], []), (["fetch", "compress", "write"], ["read", "decompress", "send"]))

    def test_replayed(self):
        with open(self.path("whole"), "wb") as whole:
            for file in self.files:
                with open(file, "rb") as part:
                    whole.write(part.read())
        replay = ["--replay", "1000", "0.01", "0.02"]
        self.assertEqual(self.merged(replay, replay, ["--file", self.path("whole")]), (["fetch", "first pass", "compress", "write"], ["read", "decompress", "split", "send"]))
        self.assertEqual(os.path.getsize(self.path("stored")), 1000)


if __name__ == "__main__":
    unittest.main()
