#!/usr/bin/env python3
"""What bench/race makes of raw times and settings: the plan, the limits, who is compared with whom. Plain arithmetic, without a cluster."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import machine  # noqa: E402
import plot  # noqa: E402
import race_plan  # noqa: E402
import race_plot  # noqa: E402
import race_report  # noqa: E402
import race_sweep  # noqa: E402

MIB = 1 << 20


class Figures(unittest.TestCase):
    def plan(self, *words):
        done = subprocess.run([os.path.join(ROOT, "bench", "race"), BUILD, "--plan", *words], capture_output=True, text=True, check=True)
        return [line.strip() for line in done.stdout.splitlines()[2:]]

    def test_the_plan_has_what_matters_first(self):
        lines = self.plan()
        self.assertEqual([line.split(",")[0] for line in lines[:10]], ["servers bind"] * 4 + ["NICs bind"] * 4 + ["servers bind"] * 2)
        for line, files in zip(lines, (8, 4, 2, 1, 8, 4, 2, 1, 8, 4)):
            self.assertIn(f"C = 8, K = {files}, 128 MiB a rank +- 0 %", line)
        self.assertEqual([i for i, line in enumerate(lines) if "a server at 1/10" in line], [8, 9])
        self.assertIn("+- 20 %", lines[10])
        self.assertEqual(len(set(lines)), len(lines))
        self.assertFalse([line for line in self.plan("--slow", "0") if "a server at" in line])

    def block(self, **other):
        return dict({"kind": "flush", "geometry": "nics", "nodes": 2, "ranks": 2, "size": 1, "imbalance": 0, "files": 2, "slow": 0}, **other)

    def test_the_limit(self):
        a = argparse.Namespace(node_rate=None, server_rate=None, compute=4, servers=2)
        data = {"rates": {"nics": {"node": {f"n{i}": 25.0 for i in range(4)}, "server": {"s0": 100.0, "s1": 90.0}}}}
        self.assertEqual(race_plan.limit(a, data, self.block()), (50, "nodes"))
        self.assertEqual(race_plan.limit(a, data, self.block(nodes=4, files=1)), (100, "nodes"))
        even = [10, 10, 10, 10]
        self.assertEqual(race_plan.limit(a, data, self.block(image_bytes=even)), (50, "nodes"))
        self.assertEqual(race_plan.limit(a, data, self.block(image_bytes=[10, 15, 10, 5])), (40, "fullest node"))
        self.assertEqual(race_plan.limit(a, data, self.block(slow=10)), (50, "nodes"))
        data["rates"]["nics"]["server"] = {"s0": 20.0, "s1": 20.0}
        self.assertEqual(race_plan.limit(a, data, self.block(files=1)), (20, "servers"))
        self.assertEqual(race_plan.limit(a, data, self.block(slow=10)), (22, "servers"))

    def test_how_even_the_servers_are(self):
        def held(*bytes_):
            return {f"s{i}": b for i, b in enumerate(bytes_)}
        self.assertEqual(race_report.uneven_of([held(8, 8), held(4, 12)], 2), {"uneven": 0.5, "uneven_over_versions": 1})
        turns = [held(8, 0, 0, 0), held(0, 8, 0, 0), held(0, 0, 8, 0), held(0, 0, 0, 8), held(8, 0, 0, 0)]
        self.assertEqual(race_report.uneven_of(turns, 1), {"uneven": 0, "uneven_over_versions": 4})
        self.assertEqual(race_report.uneven_of(turns[:3], 1), {})
        self.assertEqual(race_report.uneven_of([held(8, 8, 0, 0), held(8, 8, 0, 0)], 2), {"uneven": 1, "uneven_over_versions": 2})

    def test_rivals_use_no_more_servers(self):
        figures = {"contenders": {name: {"bytes_per_s": i} for i, name in enumerate(race_report.CONTENDERS)}}
        names = list(race_report.CONTENDERS)

        def rivals(files, limited_by="servers"):
            block = self.block(nodes=8, files=files, figures=figures, limited_by=limited_by)
            return {names[i] for i in race_report.rivals({"settings": {"servers": 4}}, block)}
        self.assertEqual(rivals(4), set(race_report.PEERS))
        self.assertEqual(rivals(2), set(race_report.PEERS) - {"file_per_rank", "veloc", "adios2", "adios2_best"})
        self.assertEqual(rivals(2, "nodes"), set(race_report.PEERS))  # more servers are of no use there

    def test_who_makes_the_same_files_whatever_k_is_runs_once(self):
        a = argparse.Namespace(compute=8, files=[8, 4], imbalance=[0, 10, 20], contenders=None, sweep=False)

        def run(**other):
            return set(race_plan.contenders(a, self.block(**dict({"nodes": 8, "files": 4}, **other))))
        self.assertEqual(run(files=8), set(race_report.CONTENDERS) - {"adios2_best"})
        self.assertEqual(run(), {"cairn", "plain", "adios2_tuned", "genericio"})
        self.assertEqual(run(files=8, imbalance=20), {"cairn", "file_per_rank_placed", "file_per_rank", "adios2_tuned", "genericio"})
        self.assertEqual(run(files=8, imbalance=10), {"cairn"})
        self.assertEqual(run(files=8, slow=10), {"cairn", "plain"})
        self.assertEqual(run(slow=10), {"cairn"})
        a.sweep = True
        self.assertEqual(run(files=8), set(race_report.CONTENDERS))
        self.assertNotIn("adios2_best", run())
        a.contenders = ["cairn", "shared_file"]
        self.assertEqual(run(), {"cairn", "shared_file"})
        self.assertEqual(run(slow=10), {"cairn"})

    def test_their_figures_are_quoted_where_only_k_differs(self):
        def with_figures(names, **other):
            runs = {name: {"seconds": 2, "blocked_s": 1, "cpu_s": {"cairnd": 0}} for name in names}
            return self.block(rounds=[runs], memcpy=[], restores=[], daemons=[], placed=[], bytes=8, limit_bytes_per_s=8, limited_by="nodes", **other)
        data = {"settings": {"compute": 2, "servers": 4}, "blocks": [with_figures(["shared_file", "plain"]), with_figures(["plain"], files=1),
                                                                    with_figures(["plain"], files=1, imbalance=20)]}
        race_report.derive(data)
        self.assertEqual([set(race_report.with_elsewhere(block)) for block in data["blocks"]],
                         [{"shared_file", "plain"}, {"shared_file", "plain"}, {"plain"}])
        self.assertIn("(0.0)", race_report.flush_table(data))

    # ---- what placement wins ----

    def ran(self, rates, **other):
        """A block in which these reached so many bytes a second."""
        runs = {name: {"seconds": 8 / rate, "blocked_s": 1, "cpu_s": {"cairnd": 0}} for name, rate in rates.items()}
        return self.block(**dict({"nodes": 8, "files": 4, "rounds": [runs], "memcpy": [1], "restores": [], "daemons": [], "placed": [], "bytes": 8, "limit_bytes_per_s": 8,
                                  "limited_by": "servers", "source": "abc"}, **other))

    def table_of(self, *blocks, servers=4):
        data = {"settings": {"compute": 8, "servers": servers}, "blocks": list(blocks)}
        race_report.derive(data)
        return [[cell.strip() for cell in line.split("  ") if cell] for line in race_report.placement_table(data).splitlines()[2:]]

    def test_what_placement_and_what_aggregation_win_are_told_apart(self):
        [row] = self.table_of(self.ran({"cairn": 4 * MIB, "file_per_rank": 2 * MIB, "file_per_rank_placed": 5 * MIB}))
        self.assertEqual(row[-2:], ["+150.0 %", "-20.0 %"])
        self.assertFalse(self.table_of(self.ran({"cairn": 4, "file_per_rank": 2, "file_per_rank_placed": 5}, files=2)))  # Cairn had fewer servers
        self.assertTrue(self.table_of(self.ran({"cairn": 4, "file_per_rank": 2, "file_per_rank_placed": 5}, files=2, limited_by="nodes")))

    def test_plain_writers_are_files_per_rank_that_are_placed_where_images_are_equal(self):
        old = {"cairn": 4 * MIB, "plain": 5 * MIB, "file_per_rank": 2 * MIB}
        self.assertIn("5.0 (plain)", " ".join(self.table_of(self.ran(old))[0]))
        self.assertFalse(self.table_of(self.ran(old, imbalance=20)))
        self.assertFalse(self.table_of(self.ran(old), servers=5))  # not all servers hold files

    # ---- one clean revision ----

    def test_a_table_refuses_to_mix_revisions(self):
        clean = [self.block(source="abc"), self.block(source="abc", files=1)]
        self.assertEqual(race_report.refuse_mixed(clean), "")
        self.assertEqual(race_report.refuse_mixed(clean + [self.block(failed="it fell", source="abd")]), "")  # is in no table
        for other, told in (({"source": "abd"}, "2 revisions: abc, abd"), ({"source": "abc-dirty"}, "1 not clean: abc, abc-dirty"), ({}, "1 not clean"),
                            ({"source": "abc", "binaries": "f00"}, "abc (f00)")):
            mixed = clean + [self.block(**other)]
            with self.assertRaisesRegex(race_report.Mixed, "one clean revision") as raised:
                race_report.refuse_mixed(mixed)
            self.assertIn(told, str(raised.exception))
            self.assertIn(told, race_report.refuse_mixed(mixed, allowed=True))
        with self.assertRaises(race_report.Mixed):
            race_report.refuse_mixed([self.block(source="abc-dirty")])  # alone, too

    def test_who_goes_on_with_a_json_goes_on_with_its_source(self):
        self.assertEqual(machine.refuse_other_source("abc", "abc", "x.json"), "")
        for before, here in (("abd", "abc"), ("abc-dirty", "abc-dirty"), (None, "abc"), ("unknown", "unknown")):
            self.assertIn("x.json", machine.refuse_other_source(before, here, "x.json"))

    def test_a_mixed_json_gives_tables_only_where_that_is_said(self):
        with open(os.path.join(ROOT, "bench", "results", "race-main.json")) as f:
            data = json.load(f)
        for number, block in enumerate(data["blocks"]):
            block["source"] = "abc" if number else "abd"
        with tempfile.TemporaryDirectory() as folder:
            def made(*words):
                return subprocess.run([os.path.join(ROOT, "bench", "race"), "--from", old, "--out", os.path.join(folder, "race.json"), *words], capture_output=True, text=True)
            old = os.path.join(folder, "old.json")
            with open(old, "w") as f:
                json.dump(data, f)
            refused = made()
            self.assertEqual((refused.returncode, os.listdir(folder)), (1, ["old.json"]), refused.stdout)
            self.assertIn("2 revisions: abc, abd", refused.stderr)
            allowed = made("--mixed")
            self.assertEqual(allowed.returncode, 0, allowed.stderr)
            self.assertIn("NOT ONE CLEAN REVISION", allowed.stdout)


class Sweeps(unittest.TestCase):
    BLOCK = {"kind": "flush", "geometry": "nics", "nodes": 8, "ranks": 2, "size": 128 * MIB, "imbalance": 0, "files": 4, "slow": 0}

    def tried(self, contender, fast, io="romio321"):
        """A sweep in which commands with `fast` in them take a second, and others two."""
        asked = []

        def measure(told):
            asked.append(told)
            return [1.0 if fast in told else 2.0]
        return asked, race_sweep.sweep(contender, io, self.BLOCK, 4, measure)

    def test_numbers_of_processes_follow_the_setting(self):
        def words(contender, setting, **other):
            return race_sweep.words(contender, setting, dict(self.BLOCK, **other), 4)
        self.assertEqual(words("adios2_tuned", {}), "files=4")
        self.assertEqual(words("adios2_tuned", {"files": "file", "aggregation": "TwoLevelShm", "writers": "rank", "chunk": 5}), "files=4 writers=16 aggregation=TwoLevelShm chunk=5")
        self.assertEqual(words("adios2_tuned", {"files": "file", "writers": "node"}, nodes=2), "files=4 writers=4")  # never fewer than files
        self.assertEqual(words("adios2_best", {"files": "rank", "writers": "node"}), "files=16 writers=16")
        self.assertEqual(words("collective_k", {"io": "romio321"}), "files=4")
        self.assertEqual(words("collective_k", {"cb_nodes": "node"}), "files=4 hints=cb_nodes:2")
        self.assertEqual(words("collective", {"cb_nodes": "rank", "striping_factor": "server"}), "files=1 hints=cb_nodes:16,striping_factor:4,cb_config_list:*:*")
        self.assertEqual(words("collective_k", {"cb_nodes": "one"}, files=8), "files=8 hints=cb_nodes:1")

    def test_a_stage_goes_on_with_what_was_best(self):
        asked, tried = self.tried("adios2_tuned", "writers=16")
        self.assertEqual(len(set(asked)), len(asked))
        self.assertEqual([one["setting"]["writers"] for one in tried if "chunk" in one["setting"]], ["rank"] * len(race_sweep.CHUNKS))
        asked, tried = self.tried("collective_k", "romio_cb_write:disable")
        self.assertEqual(asked[0], "files=4")  # as it comes is among them
        self.assertTrue(all("romio_cb_write:disable" in told for told in asked[-4:]), asked)
        self.assertTrue(all(one["setting"]["io"] == "romio321" for one in tried))
        self.assertTrue(any("striping_unit" in told for told in asked))

    def test_what_has_no_other_meaning_is_not_tried_again(self):
        one_node_a_file = dict(self.BLOCK, files=8)
        asked = []
        race_sweep.sweep("collective_k", "romio321", one_node_a_file, 4, lambda told: asked.append(told) or [1.0])
        self.assertEqual(len(set(asked)), len(asked))
        self.assertEqual(len([told for told in asked if "cb_nodes:1," in told and "cb_buffer" not in told and "striping" not in told]), 1)

    def data(self):
        def block(files, tried):
            return dict(self.BLOCK, kind="sweep", files=files, tried=[{"contender": c, "setting": s, "seconds": [t]} for c, s, t in tried], bytes=8, source="abc")
        ompio, romio = {"io": "ompio"}, {"io": "romio321"}
        return {"blocks": [block(8, [("adios2_tuned", {"chunk": 1}, 2), ("adios2_tuned", {"chunk": 2}, 1), ("collective", ompio, 1), ("collective", romio, 2),
                                     ("collective_k", ompio, 3), ("collective_k", romio, 2)]), block(1, [("adios2_tuned", {"chunk": 3}, 1)])]}

    def test_the_best_of_the_nearest_sweep_runs(self):
        data = self.data()
        self.assertEqual(race_sweep.best(data, dict(self.BLOCK, files=8), "adios2_tuned"), ({"chunk": 2}, 2))
        self.assertEqual(race_sweep.best(data, dict(self.BLOCK, files=2), "adios2_tuned"), ({"chunk": 3}, 1))
        self.assertEqual(race_sweep.best(data, dict(self.BLOCK, geometry="servers"), "adios2_tuned"), (None, 0))
        self.assertEqual(race_sweep.best(data, self.BLOCK, "genericio"), (None, 0))

    def test_a_job_has_the_implementation_of_mpi_io_that_was_faster(self):
        data = self.data()
        self.assertEqual(race_sweep.io_of(data, self.BLOCK, ["collective", "collective_k"]), "romio321")
        self.assertEqual(race_sweep.io_of(data, self.BLOCK, ["collective"]), "ompio")
        self.assertIsNone(race_sweep.io_of(data, self.BLOCK, ["cairn"]))
        self.assertEqual(race_sweep.best(data, self.BLOCK, "collective", "romio321"), ({"io": "romio321"}, 1))  # one job, one of them

    def test_everything_that_was_tried_is_in_the_table(self):
        lines = race_sweep.sweep_table(self.data()).splitlines()[2:]
        self.assertEqual(len(lines), 7)
        self.assertEqual([("chunk 2 B" in line, line.rstrip().endswith("best")) for line in lines[:2]], [(True, True), (False, False)])

    def test_the_plan_sweeps_before_it_races(self):
        done = subprocess.run([os.path.join(ROOT, "bench", "race"), BUILD, "--plan", "--sweep"], capture_output=True, text=True, check=True)
        lines = [line for line in done.stdout.splitlines() if "+- 0 %" in line and "C = 8" in line]
        self.assertEqual(["swept" in line for line in lines[:8]], [True, False] * 4)


class Look(unittest.TestCase):
    """Of figures, without drawing any."""

    class Axis:
        def set_xlim(self, low, high):
            self.wide = high - low

    def test_every_contender_has_a_colour_and_blue_is_cairns(self):
        self.assertEqual(set(plot.COLOURS), set(race_report.CONTENDERS))
        self.assertEqual(len(set(plot.COLOURS.values())), len(plot.COLOURS))
        self.assertEqual([name for name, colour in plot.COLOURS.items() if colour in (plot.BLUE, plot.LIGHT, plot.NAVY)], ["cairn"])
        self.assertNotIn(plot.RED, plot.COLOURS.values())

    def test_colours_stand_in_one_place(self):
        for name in os.listdir(os.path.join(ROOT, "bench")):
            if name.endswith("_plot.py"):
                with open(os.path.join(ROOT, "bench", name)) as f:
                    self.assertNotIn('BLUE = "#', f.read(), name)

    def test_one_bar_does_not_fill_its_panel(self):
        axis = self.Axis()
        for bars, wide in ((1, plot.BARS_LEAST), (plot.BARS_LEAST, plot.BARS_LEAST), (40, 40)):
            plot.bars_wide(axis, bars)
            self.assertAlmostEqual(axis.wide, wide + 1)

    def test_a_panel_is_as_wide_as_it_has_bars(self):
        block = {"figures": {"contenders": {"cairn": {}, "plain": {}}, "elsewhere": {"file_per_rank": {}}}}
        self.assertAlmostEqual(race_plot.slots([("a", block), ("b", block)]), 2 * (3 + race_plot.GAP))
        self.assertAlmostEqual(race_plot.slots([("a", block)], ("cairn",)), 1 + race_plot.GAP)


if __name__ == "__main__":
    unittest.main(verbosity=2)
