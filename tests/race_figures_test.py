#!/usr/bin/env python3
"""What bench/race makes of raw times and settings: the plan, the limits, who is compared with whom. Plain arithmetic, without a cluster."""
import argparse
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import race_plan  # noqa: E402
import race_report  # noqa: E402


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
        self.assertEqual(rivals(2), set(race_report.PEERS) - {"file_per_rank", "adios2"})
        self.assertEqual(rivals(2, "nodes"), set(race_report.PEERS))  # more servers are of no use there

    def test_who_makes_the_same_files_whatever_k_is_runs_once(self):
        a = argparse.Namespace(compute=8, files=[8, 4], imbalance=[0, 10, 20], contenders=None)

        def run(**other):
            return set(race_plan.contenders(a, self.block(**dict({"nodes": 8, "files": 4}, **other))))
        self.assertEqual(run(files=8), set(race_report.CONTENDERS))
        self.assertEqual(run(), {"cairn", "plain", "adios2_tuned", "genericio"})
        self.assertEqual(run(files=8, imbalance=20), {"cairn", "file_per_rank", "adios2_tuned", "genericio"})
        self.assertEqual(run(files=8, imbalance=10), {"cairn"})
        self.assertEqual(run(files=8, slow=10), {"cairn", "plain"})
        self.assertEqual(run(slow=10), {"cairn"})
        a.contenders = ["cairn", "shared_file"]
        self.assertEqual(run(), {"cairn", "shared_file"})
        self.assertEqual(run(slow=10), {"cairn"})

    def test_their_figures_are_quoted_where_only_k_differs(self):
        def with_figures(names, **other):
            runs = {name: {"seconds": 2, "blocked_s": 1, "cpu_s": {"cairnd": 0}} for name in names}
            return self.block(rounds=[runs], memcpy=[], restores=[], daemons=[], placed=[], bytes=8, limit_bytes_per_s=8, limited_by="nodes", **other)
        data = {"settings": {"compute": 2, "servers": 1}, "blocks": [with_figures(["shared_file", "plain"]), with_figures(["plain"], files=1),
                                                                    with_figures(["plain"], files=1, imbalance=20)]}
        race_report.derive(data)
        self.assertEqual([set(race_report.with_elsewhere(block)) for block in data["blocks"]],
                         [{"shared_file", "plain"}, {"shared_file", "plain"}, {"plain"}])
        self.assertIn("(0.0)", race_report.flush_table(data))


if __name__ == "__main__":
    unittest.main(verbosity=2)
