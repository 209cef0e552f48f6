#!/usr/bin/env python3
"""Ten times the regions take about ten times as long, and not a hundred times: bench/regions measures, with real daemons, and this refuses the square.

Usage: CAIRN_BUILD=build/release tests/regions_test.py [CLASS...]
"""
import importlib.machinery
import importlib.util
import os
import unittest

import support

BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench", "regions")
SMALL, LARGE = 10_000, 100_000
# What takes the square takes a hundred times (60 and more was measured); what does not, some ten times, on a busy machine twice that.
RATIO_MOST = 30
LITTLE_S = 0.05  # what a busy machine takes for nothing


def load():
    loader = importlib.machinery.SourceFileLoader("bench_regions", BENCH)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_regions", loader))
    loader.exec_module(module)
    return module


class Many(unittest.TestCase):
    def test_a_restore_does_not_take_the_square_of_the_regions(self):
        bench = load()
        small, large = (bench.one(support, regions, 64) for regions in (SMALL, LARGE))
        for step in bench.STEPS:
            self.assertLess(large[step], RATIO_MOST * (small[step] + LITTLE_S), f"{step}: {small[step]:.2f} s for {SMALL}, {large[step]:.2f} s for {LARGE}")


if __name__ == "__main__":
    unittest.main()
