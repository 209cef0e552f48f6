#!/usr/bin/env python3
"""bench/codecs: FPC and the four merging schemes give back every byte, damage is noticed; fronts, relative improvements and tables; JSON that comes back. Usage: python3 tests/codecs_tables_test.py [Class]"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from support import find

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import codecs_front  # noqa: E402
import codecs_report  # noqa: E402
import codecs_run  # noqa: E402


class Bytes(unittest.TestCase):
    def check(self, what):
        done = subprocess.run([find("cairn_codecs_check"), what], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_fpc_gives_back_every_byte(self):
        self.check("fpc")

    def test_the_four_schemes_give_back_every_byte(self):
        self.check("merging")

    def test_each_pipeline_gives_back_every_byte(self):
        self.check("pipelines")

    def test_a_damaged_byte_is_noticed(self):
        self.check("damage")


def row(scheme, pipeline, passes, stored, group=4, block=0, padded=False, encode_s=0.01, decode_s=0.001):
    return {"scheme": scheme, "block": block, "group": group, "padded": padded, "pipeline": pipeline, "passes": passes, "stored": stored, "layout": 10, "ratio": 1_000_000 / stored, "encode_s": encode_s,
            "decode_s": decode_s, "merge_s": 0.001, "split_s": 0.001, "repeats": 1}


def one_set(rows, rivals=()):
    kinds = {name: {"variables": 1, "bytes": 1000} for name in ("f64", "f32", "other")}
    facts = {"processes": 4, "files": 4, "bytes": 1_000_000, "rank_bytes": [1, 2], "variables": 3, "rank_variables": "1-1", "keys": 3, "described": 3000, "classes": kinds}
    return {"name": "a-set", "facts": facts, "rows": rows, "rivals": list(rivals)}


def rival(name, ratio, encode_s, decode_s):
    return {"rival": name, "version": "1", "way": "each key", "ratio": ratio, "encode_s": encode_s, "decode_s": decode_s, "stored": 1, "repeats": 1}


class Tables(unittest.TestCase):
    rows = [row("agnostic", "gzip", 1, 800_000), row("agnostic", "gzip", 1, 750_000, group=1), row("aware", "mcrengine", 2, 500_000), row("aware", "mcrengine", 2, 600_000, group=1),
            row("aware-block", "mcrengine", 2, 450_000, block=512), row("aware-block", "mcrengine", 2, 400_000, block=4096), row("aware-block", "mcrengine", 2, 900_000, block=4096, padded=True),
            row("agnostic", "Cairn predict-planes-zstd", 1, 500_000, encode_s=0.002), row("aware", "Cairn predict-planes-zstd", 1, 480_000, encode_s=0.002)]

    def test_who_lies_on_the_front(self):
        each = one_set(self.rows, [rival("fast", 1.5, 0.0005, 0.01), rival("better", 2.05, 0.001, 0.01)])
        of = {(p["label"], p["way"]): p for p in codecs_front.points_of(each)}
        self.assertTrue(of["fast", "each key"]["encode_front"])
        self.assertTrue(of["better", "each key"]["encode_front"])
        self.assertFalse(of["Cairn predict-planes-zstd", "files as they are"]["encode_front"], "the other one is smaller and faster")
        self.assertTrue(of["Cairn predict-planes-zstd", "merged by key"]["decode_front"])
        text = codecs_report.where_cairn_lies(each)
        self.assertIn("files as they are: NOT on the front of encode (2.000 at 500 MB/s). Smaller and faster: better, each key (2.050 at 1000)", text)

    def test_speed_is_compared_with_the_papers_pipeline_of_all_ranks(self):
        rows = self.rows + [row("aware", "mcrengine, FPC 2^16", 2, 490_000, encode_s=0.016, decode_s=0.003), row("aware", "mcrengine, FPC 2^16", 2, 490_000, group=1, encode_s=1)]
        lines = [line.split() for line in codecs_report.speed_table([one_set(rows)]).splitlines()[2:]]
        self.assertEqual([line[-5:] for line in lines], [["500", "100", "5.0", "1.0", "no"], ["500", "62", "8.0", "3.0", "yes"]])
        self.assertEqual(codecs_report.speed_table([one_set(rows[:6])]).count("\n"), 2, "nothing of Cairn's, nothing to compare")

    def test_relative_improvement_is_that_of_the_paper(self):
        found = codecs_report.improvements(one_set(self.rows))
        self.assertEqual([(round(p, 6), g) for p, g in found["aware"]], [(25.0, 1), (60.0, 4)])
        self.assertEqual([(round(p, 6), g) for p, g in found["aware-block"]], [(100.0, 4)], "the best block size, and none that is padded")

    def test_a_result_comes_back_from_its_file_and_makes_tables(self):
        result = {"machine": {"processor": "p", "cores": 1, "load": 0, "source": "s"}, "sets": [one_set(list(self.rows))], "series": {"own": [one_set(list(self.rows))]}, "skipped": [{"what": "a codec", "why": "not here"}]}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            codecs_run.write_json(json.loads(json.dumps(result)), path)
            with open(path) as file:
                back = codecs_run.spread(json.load(file))
        self.assertEqual(back["sets"], result["sets"])
        text = codecs_report.text(back)
        for words in ("a codec (not here)", "aware-block, best %", "100.00 (4)", "Figure 9", "padded"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
