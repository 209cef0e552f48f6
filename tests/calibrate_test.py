#!/usr/bin/env python3
"""bench/calibrate: cluster files of settings, verdicts, tables; that it compares and says with its exit code; that what is committed holds."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))
BENCH = os.path.join(ROOT, "bench")
sys.path.insert(0, BENCH)
import calibrate_clusters as clusters  # noqa: E402
import calibrate_shapes as shapes  # noqa: E402
import race_plan  # noqa: E402
import race_report  # noqa: E402

MIB = 1 << 20
RATES = {"node": {"n0": 10 * MIB, "n1": 11 * MIB, "n2": 90 * MIB}, "server": {"s0": 40 * MIB, "s1": 40 * MIB}}


def block(**other):
    nodes, files = other.get("nodes", 8), other.get("files", 8)
    one = {"kind": "flush", "geometry": "nics", "nodes": nodes, "ranks": 2, "size": MIB, "imbalance": 0, "slow": 0, "files": files, "bytes": 2 * nodes * MIB,
           "image_bytes": [MIB] * 2 * nodes, "limit_bytes_per_s": 80 * MIB,
           "rounds": [{"cairn": {"seconds": 2}, "genericio": {"seconds": 4}}] * 3}
    one.update(other)
    one["figures"] = {"contenders": {name: {"bytes_per_s": one["bytes"] / run["seconds"], "spread": 0} for name, run in one["rounds"][0].items()}}
    return one


class Clusters(unittest.TestCase):
    def test_a_setting_is_a_cluster_file(self):
        lines = clusters.cluster_of(block(slow=10), RATES, 4, {"at_offset": 0.5}).splitlines()
        for line in ("nodes = 8", "files = 4", "versions = 3", f"nic_out_bytes_per_s = {11 * MIB}", f"servers_bytes_per_s = [{40.0 * MIB}, {4.0 * MIB}]",
                     "at_offset = 0.5", "fsync_ms = 10"):
            self.assertIn(line, lines)
        self.assertEqual([line for line in lines if line.startswith("[")], ["[job]", "[node]", "[storage]", "[rivals]"])

    def test_who_makes_how_many_files(self):
        one = block(nodes=4, files=2)
        self.assertEqual({name: clusters.files_of(name, one) for name in ("cairn", "collective", "adios2", "genericio")},
                         {"cairn": 2, "collective": 1, "adios2": 4, "genericio": 2})
        for rival in clusters.RIVALS.values():
            self.assertIn(rival.constant_of or "genericio", clusters.RIVALS)

    def test_verdicts(self):
        def told(contender, reached, **other):
            return clusters.record(block(**other), contender, (reached, reached))

        self.assertEqual([clusters.verdict(told("cairn", rate * MIB)) for rate in (7.1, 7.3, 8, 8.7, 8.9)], ["NOT", "yes", "yes", "yes", "NOT"])
        self.assertEqual(clusters.verdict(told("genericio", 9 * MIB)), "fitted")
        self.assertEqual(clusters.verdict(told("genericio", 9 * MIB, files=4)), "NOT")
        off = [told("cairn", 7 * MIB), told("cairn", 8 * MIB), told("genericio", MIB, files=4)]
        self.assertEqual(clusters.missed(off), off[:1])
        self.assertAlmostEqual(off[0]["off"], -1 / 8)

    def gated(self, rate, first, limit=80, measured=(80, 40)):
        """A dozen settings: measured medians and first flushes, what simulation says of both, and the limit."""
        of = block(limit_bytes_per_s=limit * MIB, rounds=[{"cairn": {"seconds": 16 / measured[1]}}] + [{"cairn": {"seconds": 16 / measured[0]}}] * 2)
        of["figures"]["contenders"]["cairn"]["bytes_per_s"] = measured[0] * MIB
        return [clusters.record(of, "cairn", (rate * MIB, first * MIB))] * 12

    def test_the_limit_alone_fails_the_gate(self):
        good = self.gated(79, 41, limit=82)
        self.assertEqual(clusters.failed(good), [])
        self.assertEqual([met for *_, met in clusters.gates(clusters.as_the_limit(good))], [True, False, False, False])
        self.assertTrue(clusters.failed(clusters.as_the_limit(good)))

    def test_each_gate(self):
        for off, (rate, first) in {"furthest": (71, 41), "the mean, less": (76, 41), "first flushes: the mean": (79, 44)}.items():
            self.assertIn(off, " ".join(clusters.failed(self.gated(rate, first, limit=82))))
        nearly = self.gated(79, 41.9, limit=82, measured=(80, 42))[:10] + self.gated(79, 47, limit=82, measured=(80, 44))[:2]
        self.assertEqual(clusters.failed(nearly), [])
        worse = [dict(r, first_simulated_bytes_per_s=1.06 * r["first_measured_bytes_per_s"], limit_bytes_per_s=82 * MIB) for r in self.gated(79, 41, measured=(80, 80))]
        self.assertIn("nearer than the limit", " ".join(clusters.failed(worse)))

    def test_what_does_not_tell_a_simulation_from_the_limit_fails(self):
        """No gate that the limit meets is one."""
        records = self.gated(79, 41, limit=82)
        real, clusters.gates = clusters.gates, lambda of: [(what, allowed, reached, True) for what, allowed, reached, _ in real(of)]
        self.addCleanup(setattr, clusters, "gates", real)
        self.assertIn("do not tell", " ".join(clusters.failed(records)))

    def test_few_settings_have_no_means(self):
        self.assertEqual([what for what, *_ in clusters.gates(self.gated(71, 60)[:9])], ["medians: the furthest setting, at most"])
        self.assertEqual(clusters.gates([]), [])

    def test_the_limit_fails_on_what_is_committed(self):
        with open(os.path.join(BENCH, "results", "calibrate.json")) as f:
            records = json.load(f)["records"]
        self.assertEqual(clusters.failed(records), [])
        self.assertEqual([met for *_, met in clusters.gates(clusters.as_the_limit(records))], [True, False, False, False])

    def test_the_median_of_versions_and_the_first(self):
        runs = [{"versions": [{"bytes_per_s": rate} for rate in rates]} for rates in ((5, 9, 8), (4, 9, 9), (6, 8, 7))]
        self.assertEqual(clusters.throughput(runs[:1]), (8, 5))
        self.assertEqual(clusters.throughput(runs), (8, 5))
        self.assertEqual(clusters.throughput(runs[1:]), (7.5, 5))

    def test_tables_have_each_ratio_and_name_what_is_lacking(self):
        blocks = [block(files=files, imbalance=imbalance) for files, imbalance in ((8, 0), (4, 0), (8, 20))] + [block(nodes=4, files=4)]
        records = [clusters.record(b, "cairn", (b["bytes"] / 2, MIB)) for b in blocks]
        rows = [line.split() for line in clusters.ratios_table(records).splitlines()[2:]]
        self.assertEqual([(row[2], row[3]) for row in rows], [("1:1", "3"), ("2:1", "1")])
        self.assertEqual(list(clusters.not_measured(blocks)), ["NICs bind, C = 8, K = 4, images +- 20 %"])
        text = clusters.text("race-x", records, {}, blocks)
        self.assertIn("race-x: Cairn's 4 settings, simulated, differ by at most 0.0 %", text)
        widths = {len(line) for line in clusters.settings_table(records).splitlines()}
        self.assertEqual(len(widths), 1)


class Shapes(unittest.TestCase):
    """Those that nothing was fitted on."""
    COMMITS = [f"{number:040x}" for number in range(60)]

    def test_a_commit_draws_the_same_and_another_one_others(self):
        self.assertEqual(shapes.shapes("a" * 40), shapes.shapes("a" * 40))
        self.assertNotEqual(shapes.shapes("a" * 40), shapes.shapes("b" * 40))
        self.assertEqual(shapes.draw("a" * 40, 0, 0), {"kind": "flush", "geometry": "servers", "nodes": 6, "ranks": 3, "size": 96 * MIB, "imbalance": 0, "slow": 10, "files": 6})

    def test_race_can_run_them_in_minutes(self):
        drawn = [block for commit in self.COMMITS for block in shapes.shapes(commit)]
        for block in drawn:
            self.assertLessEqual(block["files"], block["nodes"])
            rates = race_plan.GEOMETRIES[block["geometry"]]
            limit = 1e6 * min(block["nodes"] * rates["node"], min(block["files"], shapes.SERVERS) * rates["server"])
            self.assertTrue(5 < block["size"] * block["nodes"] * block["ranks"] / limit < 14, block)
            if block["slow"]:
                self.assertTrue(block["geometry"] == "servers" and block["files"] >= shapes.SERVERS and block["imbalance"] == 0, block)
        for what, values in {"geometry": {"servers", "nics"}, "nodes": set(range(2, 9)), "ranks": {1, 2, 3, 4}, "slow": {0, 10}, "imbalance": {0, 5, 15, 20, 25, 30}}.items():
            self.assertEqual({block[what] for block in drawn}, values)

    def test_the_command_measures_that_shape(self):
        """What race would plan for it is the shape, and beside it at most the same without a slow server."""
        for commit in self.COMMITS[:6]:
            for shape, block in enumerate(shapes.shapes(commit)):
                words = shapes.command(commit, shape, block).split("'")[1].split()
                told = dict(zip(words[::2], words[1::2]))
                a = type("A", (), {"application": False, "geometry": [told["--geometry"]], "compute": int(told["--compute"]), "nodes": [int(told["--nodes"])], "sweep": False,
                                   "ranks": int(told["--ranks"]), "size": int(told["--size"].removesuffix("MiB")) * MIB, "imbalance": [int(told["--imbalance"])],
                                   "files": [int(told["--files"])], "slow": float(told["--slow"]), "servers": shapes.SERVERS, "contenders": ["cairn"]})
                planned = [race_report.key(one) for one in race_plan.blocks(a)]
                self.assertIn(race_report.key(block), planned)
                self.assertEqual(len(planned), 2 if block["slow"] else 1)
                self.assertEqual(f"race-{told['--name']}", shapes.name_of(commit, shape))

    def test_what_was_measured_before_is_not_drawn(self):
        first = shapes.shapes("c" * 40)
        again = shapes.shapes("c" * 40, known=first[:2])
        self.assertEqual(again[2:], first[2:])
        self.assertFalse(set(map(race_report.key, first[:2])) & set(map(race_report.key, again)))

    def test_it_must_be_near_and_nearer_than_the_limit(self):
        def told(rate, measured=80, limit=83):
            return clusters.record(block(limit_bytes_per_s=limit * MIB, rounds=[{"cairn": {"seconds": 16 / measured}}] * 3), "cairn", (rate * MIB,) * 2)

        self.assertEqual(shapes.failed([told(78), told(82)]), [])
        self.assertIn("where 4 %", " ".join(shapes.failed([told(76), told(80)])))
        self.assertIn("the limit of the cards", " ".join(shapes.failed([told(78, limit=81), told(82, limit=81)])))


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in os.listdir(BENCH):
            if name.endswith(".py") or name == "calibrate":
                shutil.copy(os.path.join(BENCH, name), self.folder)
        os.mkdir(os.path.join(self.folder, "results"))

    def results(self, blocks, name="race-main"):
        with open(os.path.join(self.folder, "results", name + ".json"), "w") as f:
            json.dump({"rates": {"nics": RATES, "servers": RATES}, "blocks": blocks}, f)

    def calibrate(self, *words, build=BUILD):
        done = subprocess.run([sys.executable, "-B", os.path.join(self.folder, "calibrate"), build, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def written(self):
        return sorted(name for name in os.listdir(os.path.join(self.folder, "results")) if not name.startswith("race-"))

    def test_it_compares_and_says_so_with_its_exit_code(self):
        right = block(size=64 * MIB, bytes=1024 * MIB, image_bytes=[64 * MIB] * 16, rounds=[{"cairn": {"seconds": 1024 / 80}}] * 2)  # two servers of 40
        self.results([right])
        code, out, err = self.calibrate()
        self.assertEqual((code, err), (0, ""), out + err)
        self.assertIn("the limit alone", out)
        self.assertEqual(self.written(), ["calibrate.json", "calibrate.txt"])
        self.results([dict(right, figures={"contenders": {"cairn": {"bytes_per_s": 40 * MIB, "spread": 0}}})])
        code, out, _ = self.calibrate("--no-rivals")
        self.assertEqual(code, 1)
        self.assertIn("NOT", out)

    def test_what_it_refuses(self):
        code, _, err = self.calibrate()
        self.assertEqual(code, 1)
        self.assertIn("race-main.json is missing", err)
        self.results([block()])
        code, _, err = self.calibrate("--only", "nothing like it")
        self.assertIn("no setting of race-main.json has 'nothing like it'", err)
        broken = os.path.join(self.folder, "broken", "bin")
        os.makedirs(broken)
        with open(os.path.join(broken, "cairn"), "w") as f:
            f.write("#!/bin/sh\necho no such thing >&2\nexit 7\n")
        os.chmod(f.name, stat.S_IRWXU)
        code, _, err = self.calibrate(build=os.path.dirname(broken))
        self.assertEqual(code, 1)
        self.assertIn("no such thing", err)
        self.assertEqual(self.written(), [])

    def test_it_measures_first_where_asked_for(self):
        race = os.path.join(self.folder, "race")
        self.results([block()], "made")
        with open(race, "w") as f:
            f.write(f"#!/bin/sh\necho \"$@\" > {self.folder}/asked\nmv {self.folder}/results/made.json {self.folder}/results/race-calibrate.json\n")
        os.chmod(race, stat.S_IRWXU)
        self.calibrate("--measure", "--rounds 3 --files 8,1")
        with open(os.path.join(self.folder, "asked")) as f:
            self.assertEqual(f.read().strip(), f"{BUILD} --name calibrate --rounds 3 --files 8,1")
        self.assertEqual(self.written(), ["calibrate.json", "calibrate.txt"])

    def test_drawn_shapes_are_told_measured_and_compared(self):
        commit = "d" * 40
        self.results([])
        code, out, err = self.calibrate("--drawn", commit)
        self.assertEqual((code, err), (2, ""))
        self.assertEqual(out.count("make race ARGS="), shapes.SHAPES)
        for shape, one in enumerate(shapes.shapes(commit)):
            ranks = one["nodes"] * one["ranks"]
            rates = {"node": {"n0": 50e6}, "server": {f"s{i}": 50e6 for i in range(shapes.SERVERS)}}
            rates = {"servers": rates, "nics": {**rates, "node": {"n0": 25e6}}}
            limit = min(one["nodes"] * rates[one["geometry"]]["node"]["n0"], min(one["files"], shapes.SERVERS) * 50e6)
            made = block(**one, bytes=ranks * one["size"], image_bytes=[one["size"]] * ranks, limit_bytes_per_s=limit, rounds=[{"cairn": {"seconds": ranks * one["size"] / limit}}] * 3)
            with open(os.path.join(self.folder, "results", shapes.name_of(commit, shape) + ".json"), "w") as f:
                json.dump({"rates": rates, "blocks": [made]}, f)
        code, out, err = self.calibrate("--drawn", commit)
        self.assertEqual(out.count("make race ARGS="), 0)
        self.assertEqual((code, "the limit of the cards alone is 0.0 % off" in err), (1, True), out + err)  # which here is what was measured


class Committed(unittest.TestCase):
    def test_every_setting_of_cairn_is_within_a_tenth(self):
        """Again, with the binary that was built now: an engine or a model that changed shows here."""
        out = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, out)
        for name in os.listdir(BENCH):
            if name.endswith(".py") or name == "calibrate":
                shutil.copy(os.path.join(BENCH, name), out)
        os.mkdir(os.path.join(out, "results"))
        shutil.copy(os.path.join(BENCH, "results", "race-main.json"), os.path.join(out, "results"))
        done = subprocess.run([sys.executable, "-B", os.path.join(out, "calibrate"), BUILD, "--no-rivals"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(out, "results", "calibrate.json")) as f:
            records = json.load(f)["records"]
        self.assertGreaterEqual(len(records), 33)
        for geometry in ("servers", "nics"):
            self.assertEqual({clusters.ratio(r) for r in records if r["geometry"] == geometry}, {"1:1", "2:1", "4:1", "8:1"})


if __name__ == "__main__":
    unittest.main()
