#!/usr/bin/env python3
"""bench/papers: ratios, errors and bounds; that every published number has a recipe; a small run end to end; a binary that fails."""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import papers_beyond  # noqa: E402
import papers_figures  # noqa: E402
import papers_plan  # noqa: E402
import papers_report  # noqa: E402
import papers_run  # noqa: E402


def answer(flush_s, leaders=((1, 10),)):
    writers = [{"received_s": 1, "local_s": 1, "received_bytes": 1, "local_bytes": 1}]
    version = {"bytes": 100, "flush_s": flush_s, "capture_s": 0, "elect_s": 0, "write_s": flush_s, "commit_s": 0,
               "leaders": [{"node": i, "seconds": s, "bytes": b, "writers": writers} for i, (s, b) in enumerate(leaders)]}
    return {"nodes": 4, "files": 2, "writing_nodes": len(leaders), "versions": [version], "bounds": [], "events": 1}


class Arithmetic(unittest.TestCase):
    def test_errors_and_bounds(self):
        self.assertAlmostEqual(papers_figures.verdict("about", 2, 3)["error"], 0.5)
        self.assertAlmostEqual(papers_figures.verdict("value", 100, 71)["error"], -0.29)
        for relation, value, got, met in (("at least", 2, 2.5, True), ("at least", 2, 1.99, True), ("at least", 2, 1.97, False), ("at most", 1.1, 1.05, True),
                                          ("at most", 1.1, 1.12, False), ("clearly below", 1, 0.9, True), ("clearly below", 1, 1.0, False)):
            self.assertEqual(papers_figures.verdict(relation, value, got), {"met": met}, (relation, value, got))
        with self.assertRaises(KeyError):
            papers_figures.verdict("round about", 1, 1)

    def test_rates_and_times_go_opposite_ways(self):
        fast, slow = papers_run.summary(answer(2)), papers_run.summary(answer(6))
        self.assertAlmostEqual(papers_figures.rate(fast, slow), 3)
        self.assertAlmostEqual(papers_figures.time(fast, slow), 1 / 3)

    def test_the_slowest_leader_is_above_the_mean(self):
        run = papers_run.summary(answer(5, ((1, 10), (2, 10), (3, 10), (1, 0))))  # one that wrote nothing does not count
        self.assertAlmostEqual(run["slowest_leader"], 1.5)
        self.assertAlmostEqual(run["leader_rate"], (10 + 5 + 10 / 3) / 3)
        self.assertEqual([each["node"] for each in run["leaders"]], [0, 1, 2])

    def test_every_published_number_has_a_recipe_or_is_context(self):
        texts = papers_figures.published()
        recipes = papers_figures.FGCS24 + papers_figures.HACC + papers_figures.ISPDC23 + papers_figures.ORCHECK
        self.assertEqual({ident for ident, text in texts.items() if not text.get("context")}, {recipe.ident for recipe in recipes})
        self.assertEqual(len({recipe.ident for recipe in recipes}), len(recipes))

    def test_notes_name_each_run_once(self):
        notes = papers_figures.Notes()
        rows = papers_figures.rows(notes, papers_figures.published(), 8)
        papers_beyond.parts(notes, 8, 4096)
        self.assertEqual(len(notes.runs), len({run.key() for run in notes.runs.values()}))
        self.assertIn("frontier cairn flush.leaders=128 flush.placement=interleaved job.files=128 job.imbalance=0 job.nodes=512 storage.placeable=0 "
                      "storage.servers=56 storage.targets=169", notes.runs)
        both = [row["tier"] for row in rows if row["id"] == "fgcs24-fig3-k1024-adios2"]
        self.assertEqual(both, ["disks", "all tiers"] * 2)  # at two imbalances: the text leaves it open

    def test_adios2_as_published_stands_beside_the_simulated_one(self):
        self.assertEqual(papers_beyond.adios2_published(1024), (1.5, False))
        self.assertAlmostEqual(papers_beyond.adios2_published(2048)[0], 1 / 1.16)
        self.assertEqual(papers_beyond.adios2_published(4096), (0.5, True))
        of = papers_beyond.against_adios2(*({"bytes_per_s": rate} for rate in (100, 164, 126)))
        self.assertAlmostEqual(of["published"], 164 / 150)
        self.assertAlmostEqual(of["simulated"], 164 / 126)
        self.assertAlmostEqual(of["adios2_off"], 126 / 150 - 1)

    def test_what_is_committed_gives_the_figures_of_the_text(self):
        """bench/README.md and the changelog quote these."""
        with open(os.path.join(ROOT, "bench", "results", "papers.json")) as f:
            data = json.load(f)
        text = papers_beyond.gain_text(lambda run: data["runs"][run.key()], data["shrink"])
        with open(os.path.join(ROOT, "bench", "README.md")) as f:
            told = f.read()
        for published, simulated, off in (("1.09", "1.30", "-16 %"), ("2.24", "2.69", "-17 %")):
            self.assertIn(f"{published} times ADIOS2 as published, {simulated} times ADIOS2 as simulated, which is {off}", text)
            self.assertIn(published, told)

    def test_what_disagrees_is_told(self):
        row = {"paper": "orcheck", "id": "x", "figure": "5", "what": "it", "kind": "predicted", "relation": "about", "value": 2, "simulated": 3, "error": 0.5}
        always, partly = papers_report.disagreements([row, dict(row, id="y", error=0.1), dict(row, id="z", kind="fitted")])
        self.assertEqual((always, partly), (["orcheck Figure 5, it: published 2.00, simulated 3.00 (+50 %)"], []))
        always, partly = papers_report.disagreements([row, dict(row, error=0.0)])
        self.assertEqual((len(always), len(partly)), (0, 1))


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "small.json")

    def papers(self, *words):
        return subprocess.run([sys.executable, "-B", os.path.join(ROOT, "bench", "papers"), BUILD, "--no-plots", "--out", self.out, *words],
                              capture_output=True, text=True, timeout=250, check=False)

    def script(self, text):
        path = os.path.join(self.folder.name, "cairn")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def test_a_small_cluster(self):
        done = self.papers("--only", "orcheck")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.out) as f:
            rows = {row["id"]: row for row in json.load(f)["rows"]}
        lu = rows["orcheck-fig5-lu-traditional"]
        self.assertEqual(lu["kind"], "fitted")
        self.assertLess(abs(lu["error"]), 0.01)  # what it was fitted on
        self.assertAlmostEqual(lu["error"], lu["simulated"] / 157.41 - 1)
        right = [row["id"] for row in rows.values() if row["kind"] == "predicted" and (row["met"] if "met" in row else abs(row["error"]) <= 0.1)]
        self.assertEqual({ident for ident, row in rows.items() if row["kind"] == "predicted"} - set(right), {"orcheck-fig6-lu-doubling", "orcheck-fig8-class-c"})
        for ident in ("orcheck-fig5-lu-orchestrated", "orcheck-fig7-bt-traditional"):  # what the other two constants were fitted on
            self.assertEqual(rows[ident]["kind"], "fitted")
            self.assertTrue(rows[ident].get("met", abs(rows[ident].get("error", 1)) < 0.01), ident)
        again = self.papers("--only", "orcheck", "--from")  # no runs, and no binary
        self.assertEqual((again.returncode, "cairn simulate beside" in again.stdout), (0, True), again.stderr)
        lacking = self.papers("--only", "ispdc23", "--from")
        self.assertEqual((lacking.returncode, "lacks" in lacking.stderr), (1, True), lacking.stderr)
        again = self.papers("--only", "orcheck", "--more", "--mixed")  # nothing left to run; while one writes code its sources are not committed
        self.assertEqual((again.returncode, " of " in again.stdout.split("cairn simulate beside")[0]), (0, False), again.stdout)

    def test_a_json_of_another_revision_is_refused(self):
        with open(self.out, "w") as f:
            json.dump({"shrink": 1, "runs": {}, "cairn": "cairn 0000000"}, f)
        binary = self.script("exit 3\n")
        done = self.papers("--only", "orcheck", "--more", "--binary", binary)
        self.assertEqual((done.returncode, "is of 0000000, and this is" in done.stderr), (1, True), done.stderr)
        done = self.papers("--only", "orcheck", "--more", "--mixed", "--binary", binary)
        self.assertIn("exit code 3", done.stderr)

    def test_a_binary_that_fails_is_told(self):
        done = self.papers("--only", "orcheck", "--binary", self.script("echo 'no such key' >&2; exit 3\n"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 3: no such key", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_an_answer_that_is_none_is_told(self):
        for text in ("echo '[]'\n", "echo not json\n", "echo '[{\"versions\": []}]'\n"):
            done = self.papers("--only", "orcheck", "--binary", self.script(text))
            self.assertEqual(done.returncode, 1)
            self.assertIn("its answer is not what is expected", done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_no_binary(self):
        done = self.papers("--binary", os.path.join(self.folder.name, "none"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("make build", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
