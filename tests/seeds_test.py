#!/usr/bin/env python3
"""cairn_seeds, cairn_exhaustive and tests/mutants.py as programs: what they are told wrong is one clear line, and what they print can be run again."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SEEDS = os.path.join(os.environ.get("CAIRN_BUILD", os.path.join(os.path.dirname(HERE), "build", "release")), "src", "proof", "cairn_seeds")
EXHAUSTIVE = os.path.join(os.path.dirname(SEEDS), "cairn_exhaustive")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


class Arguments(unittest.TestCase):
    def refuses(self, expected, *arguments):
        done = run(SEEDS, *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertEqual(done.stderr, f"cairn_seeds: {expected}\n", arguments)

    def test_wrong_ones_are_one_line(self):
        self.refuses("--count: '0' is not a number from 1 to 9223372036854775807", "--count", "0")
        self.refuses("--from: '-1' is not a number from 0 to 9223372036854775807", "--from", "-1")
        self.refuses("--jobs: '2x' is not a number from 1 to 1024", "--jobs", "2x")
        self.refuses("'--seed' is no option, or lacks its value (--help)", "--seed")
        self.refuses("'--colour' is no option (--help)", "--colour", "blue")
        self.refuses("--trace is for one seed: give --seed or --scenario, too", "--trace")
        self.refuses("--reach: there is no situation 'colour' (situations.hpp)", "--reach", "colour")
        self.refuses("--scenario: a scenario has no 'colour'", "--scenario", "colour=blue")

    def test_steered_scenarios_name_a_situation_that_random_seeds_do_not_reach(self):
        def refuses(expected, text):
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write(text)
                file.flush()
                self.refuses(f"--steered: {file.name} {expected}", "--steered", file.name)
        refuses("line 2: there is no situation 'colour' (situations.hpp)", "# a comment\ncolour ranks=1\n")
        refuses("line 1: random seeds reach 'daemon_killed'", "daemon_killed ranks=1\n")
        self.refuses("--steered: /no/such/file: can not be read", "--steered", "/no/such/file")

    def test_help(self):
        done = run(SEEDS, "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--scenario TEXT", done.stdout)


class Runs(unittest.TestCase):
    def test_a_seed_and_its_text_are_the_same_run(self):
        seed = run(SEEDS, "--seed", "11")
        self.assertEqual(seed.returncode, 0, seed.stdout)
        text, story = seed.stdout.split("\n", 1)
        self.assertTrue(story)
        again = run(SEEDS, "--scenario", text)
        self.assertEqual(again.stdout, seed.stdout)

    def test_seeds_are_counted_and_what_they_met_is_told(self):
        done = run(SEEDS, "--from", "5", "--count", "12", "--jobs", "3")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"\n12 seeds in [0-9.]+ s \(\d+ seeds/s\), 0 failed; \d+ versions committed, \d+ faults at steps\n$")
        self.assertRegex(done.stdout, r"work changed hands +\d+ +\d+\.\d % of seeds\n")

    def test_a_situation_that_no_seed_reaches_fails(self):
        steered = os.path.join(os.path.dirname(HERE), "src", "proof", "steered_seeds.txt")
        done = run(SEEDS, "--from", "5", "--count", "2", "--jobs", "2", "--steered", steered)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, r" 0 +0\.0 % of seeds  NOT REACHED\n")
        self.assertIn(f"steered scenarios ({steered})", done.stdout)

    def test_a_steered_scenario_that_leads_elsewhere_fails(self):
        with open(os.path.join(os.path.dirname(HERE), "src", "proof", "steered_seeds.txt")) as file:
            lines = file.read().splitlines()
        first = next(i for i, line in enumerate(lines) if not line.startswith("#"))
        for led_elsewhere in (False, True):
            if led_elsewhere:
                lines[first] = lines[first].split(" ")[0] + " ranks=1 steps=capture:1"
            with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
                file.write("\n".join(lines) + "\n")
                file.flush()
                done = run(SEEDS, "--from", "5", "--count", "1", "--jobs", "2", "--steered", file.name)
            told = done.stdout[done.stdout.index("steered scenarios"):]
            for line in range(first + 1, len(lines) + 1):
                missed = led_elsewhere and line == first + 1
                self.assertRegex(told, rf" line {line}{'  NOT REACHED' if missed else ''}\n")

    def test_the_smallest_that_reaches_a_situation_reaches_it(self):
        done = run(SEEDS, "--reach", "cancelled", "--from", "1", "--count", "60", "--shrink-s", "20")
        self.assertEqual(done.returncode, 0, done.stdout)
        name, scenario = done.stdout.rstrip("\n").split(" ", 1)
        self.assertEqual(name, "cancelled")
        self.assertIn("cancel version", run(SEEDS, "--scenario", scenario).stdout)

    def test_one_that_hangs_is_told_and_shrunk(self):
        """A hundred ranks that capture two hundred times take longer than the second that they are given."""
        steps = ",".join(f"capture:{i}" for i in range(200))
        done = run(SEEDS, "--scenario", f"ranks=25,25,25,25 files=9 image=3000000 steps={steps}", "--limit-s", "1", "--shrink-s", "6")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: hangs: no end after 1 s of processor time", done.stdout)
        self.assertTrue(re.search(r"smallest that fails so \(\d+ tries in \d+ s", done.stdout), done.stdout)
        self.assertIn("again: ", done.stdout)


class Exhaustive(unittest.TestCase):
    """All of it is ctest's every_fault."""

    def refuses(self, expected, *arguments):
        done = run(EXHAUSTIVE, *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertEqual(done.stderr, f"cairn_exhaustive: {expected}\n", arguments)

    def test_wrong_arguments_are_one_line(self):
        self.refuses("--jobs: '0' is not a number from 1 to 1024", "--jobs", "0")
        self.refuses("'--states' is no option, or lacks its value (--help)", "--states")
        self.refuses("'--colour' is no option (--help)", "--colour", "blue")
        self.refuses("--trace is for one run: give --fault, too", "--trace")
        self.refuses("--from: '7' is no round and slice (as in 0.17; a round has 251 slices)", "--from", "7")
        self.refuses("--from: '0.251' is no round and slice (as in 0.17; a round has 251 slices)", "--from", "0.251")
        self.refuses("--fault: '17:kill:0' does not begin with a job (as in K=1 L=1)", "--fault", "17:kill:0")
        self.refuses("--fault: '17:explode' is no fault (as in 17:kill:0, 40:power, o23:hang)", "--fault", "K=1 L=1 17:explode")

    def test_help(self):
        done = run(EXHAUSTIVE, "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--fault TEXT", done.stdout)

    def test_one_run_is_told_and_is_the_same_again(self):
        faults = "K=1 L=2 300:kill:0 310:cut"
        first = run(EXHAUSTIVE, "--fault", faults)
        self.assertEqual(first.returncode, 0, first.stdout)
        self.assertIn("strikes: 310:cut\n", first.stdout)
        self.assertEqual(run(EXHAUSTIVE, "--fault", faults).stdout, first.stdout)

    def test_faults_that_strike_nowhere_are_no_good_run(self):
        done = run(EXHAUSTIVE, "--fault", "K=1 L=1 999999:cut")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: not all of these faults are possible there\n", done.stdout)


class Mutants(unittest.TestCase):
    def test_wrong_arguments_are_one_line(self):
        done = run(sys.executable, os.path.join(HERE, "mutants.py"), "--only", "no-such-bug")
        self.assertEqual((done.returncode, done.stderr), (1, "mutants: there is no mutant no-such-bug (--list)\n"))

    def test_they_are_listed(self):
        done = run(sys.executable, os.path.join(HERE, "mutants.py"), "--list")
        self.assertEqual(done.returncode, 0)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 24)


if __name__ == "__main__":
    unittest.main()
