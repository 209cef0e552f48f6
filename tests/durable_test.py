#!/usr/bin/env python3
"""bench/durable: intervals and what follows from them, what nodes do with files, the application that counts, and all of it on this machine, as short as it can be."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "bench"))
import durable_busy as busy  # noqa: E402
import durable_report as report  # noqa: E402
from support import BUILD, memory_folder  # noqa: E402


def way(durable_s, encoded=0):
    return {"durable_s": durable_s, "encoded": [i < encoded for i in range(len(durable_s))], "back_s": [1.0], "stored_bytes": 100}


def found(auto_s, rates, encoded=0):
    """A set: without a codec 1 s, and 1000 counts a second."""
    loads = [{"loops": 2, "raw_bytes": 100, "codecs": {"off": {**way([1.0] * 9), "rates": [1000.0] * 9}, "auto": {**way([1.0] * 9, encoded), "rates": rates}}}]
    return {"set": "fields", "raw_bytes": 200, "codecs": {"off": way([1.0] * len(auto_s)), "auto": way(auto_s)}, "loads": loads}


class Arithmetic(unittest.TestCase):
    def test_interval(self):
        """Of 25 fair coins fewer than 7 or more than 18 show heads in 15 of 1000 cases, fewer than 8 or more than 17 in 43."""
        self.assertEqual(report.interval([9, 1, 5]), (5, 1, 9))
        self.assertEqual(report.interval(list(range(9))), (4, 1, 7))
        self.assertEqual(report.interval(list(range(25))), (12, 6, 18))

    def lines(self, *of):
        return report.wanted([found(*of)], ["off", "auto"], 2)

    def test_what_was_wanted(self):
        later, loses, chosen = self.lines([1.01] * 9, [998.0] * 9)
        self.assertTrue(later.endswith(": reached") and "1.0 % later" in later, later)
        self.assertTrue(loses.endswith(": reached") and "0.20 %" in loses, loses)
        self.assertTrue(chosen.endswith(": reached"), chosen)

    def test_what_was_missed(self):
        later, loses, chosen = self.lines([1.1] * 9, [990.0] * 9, 1)
        for line in (later, loses, chosen):
            self.assertIn("NOT REACHED", line)

    def test_a_median_alone_is_said_to_be_one(self):
        later, loses, _ = self.lines([1.0] * 5 + [1.1] * 4, [1000.0] * 5 + [900.0] * 4)
        for line in (later, loses):
            self.assertIn("not by the interval", line)


class OnThisMachine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=memory_folder())
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        path = os.path.join(self.folder, *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def file(self, *names, text):
        with open(self.path(*names), "w", encoding="utf-8") as file:
            file.write(text)

    def on_node(self, *words):
        return subprocess.run([sys.executable, "-B", os.path.join(BENCH, "durable_node.py"), *words], capture_output=True, text=True).returncode

    def test_files_of_a_version(self):
        self.file("from", "a", text="first")
        self.file("staged", "none", text="")
        self.file("files", "a.1.of", text="older")
        os.remove(self.path("staged", "none"))
        self.assertEqual(self.on_node("stage", self.path("from"), self.path("staged"), "2"), 0)
        self.assertEqual(os.listdir(self.path("files")), ["a.1.of"])
        self.assertEqual(self.on_node("release", self.path("staged"), self.path("files")), 0)
        self.assertEqual((os.listdir(self.path("files")), os.listdir(self.path("staged"))), (["a.2.of"], []))
        self.assertEqual(self.on_node("compare", self.path("from"), self.path("files"), "2"), 0)
        self.file("from", "a", text="other")
        os.remove(self.path("files", "a.2.of"))
        self.file("files", "a.2.of", text="wrong")
        self.assertEqual(self.on_node("compare", self.path("from"), self.path("files"), "2"), 1)

    def test_every_loop_counts(self):
        with busy.Busy(2) as loops:
            while not all(loops.counts):
                pass
            before = loops.count()
            while loops.count() == before:
                pass
        after = loops.count()
        self.assertGreater(after, before)
        self.assertEqual([process.poll() is None for process in loops.processes], [False, False])

    def test_all_of_it(self):
        """Two virtual nodes, both ways, the application; what came back was compared, and nothing is left."""
        for index in range(4):
            self.file("set", f"file{index}", text=f"{index} " * 50_000)
        sink, out = self.path("sink", "."), self.path("found.json")
        subprocess.run([os.path.join(ROOT, "scripts", "python-environment"), os.path.join(BUILD, "python")], check=True)
        short = ["--size", "1MiB", "--busy-size", "1MiB", "--rounds", "1", "--restores", "1", "--pairs", "1", "--period", "0.5", "--loops", "1", "--set", "background.cpu=normal"]
        done = subprocess.run([os.path.join(BENCH, "durable"), BUILD, "--sink", sink, "--codecs", "off,fast", *short, "--out", out, self.path("set")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf-8") as file:
            one = json.load(file)["sets"][0]
        self.assertEqual({codec: of["encoded"] for codec, of in one["codecs"].items()}, {"off": [False], "fast": [True]})
        self.assertLess(one["codecs"]["fast"]["stored_bytes"], one["codecs"]["off"]["stored_bytes"])
        self.assertGreater(one["loads"][0]["codecs"]["fast"]["rates"][0], 0)
        self.assertEqual(os.listdir(sink), [])
        with open(self.path("found.txt"), encoding="utf-8") as file:
            self.assertIn("busy loops", file.read())


if __name__ == "__main__":
    unittest.main()
