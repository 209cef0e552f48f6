#!/usr/bin/env python3
"""The examples, killed for real: a run that is ended by kill -9 half way and started again prints the checksum of an undisturbed run.

Usage: CAIRN_BUILD=<build folder> python3 examples/heat_test.py        (mpirun in PATH; four ranks on two virtual nodes)
Each rank is started through this file (--rank) in order to live on its node.
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests"))
from support import Nodes, find  # noqa: E402

RANKS = 4


def become_rank(program, *arguments):
    """Replaces this process by the program, on the virtual node of its rank."""
    node = int(os.environ["OMPI_COMM_WORLD_RANK"]) * 2 // RANKS
    os.environ["CAIRN_NODE"] = f"n{node}"
    os.environ["CAIRN_PATHS_SCRATCH"] = os.path.join(os.environ["CAIRN_TEST_LOCAL"], f"n{node}")
    os.execv(program, [program, *arguments])


class Heat(unittest.TestCase):
    program = "heat"

    def setUp(self):
        self.nodes = Nodes()
        self.addCleanup(self.nodes.__exit__)
        for node in range(2):
            self.nodes.scratch(node)

    def start(self, name, **more):
        environment = self.nodes.environment()
        environment["CAIRN_TEST_LOCAL"] = self.nodes.local
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                           # what a killed mpirun leaves behind goes with the nodes
                           OMPI_MCA_btl_vader_backing_directory=self.nodes.local, OMPI_MCA_orte_tmpdir_base=self.nodes.shared)
        options = {"steps": 300, "every": 20, "rows": 67, "columns": 64, **more}
        words = [word for key, value in options.items() for word in ("--" + key.replace("_", "-"), str(value))]
        return subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(RANKS), sys.executable, os.path.abspath(__file__), "--rank",
                                 find(self.program), *words, "--name", name], env=environment, cwd=self.nodes.shared,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, process):
        """(step it began with, last line)."""
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        begun = re.search(r"(?:starts at|goes on after) step (\d+)", out)
        self.assertTrue(begun, out + err)
        return int(begun.group(1)), out.strip().splitlines()[-1]

    def newest(self, name):
        committed = [int(os.path.basename(os.path.dirname(f))) for f in self.nodes.files(name) if os.path.basename(f).startswith("manifest")]
        return max(committed, default=0)

    def test_killed_and_resumed(self):
        begun, expected = self.ended(self.start("undisturbed"))
        self.assertEqual(begun, 0)
        self.assertRegex(expected, r"step 300 checksum [0-9a-f]{16}$")

        process = self.start("disturbed", pause_ms=20)
        for _ in range(6000):
            if self.newest("disturbed") >= 100 or process.poll() is not None:
                break
            time.sleep(0.01)
        self.assertIsNone(process.poll(), "it ended before it could be killed")
        for pid in self.nodes.ours():  # ranks and mpirun; their daemons live on
            if pid not in self.nodes.named("cairnd", "cairnd-keeper"):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        process.communicate(timeout=60)
        begun, last = self.ended(self.start("disturbed"))
        self.assertGreaterEqual(begun, 100)
        self.assertLess(begun, 300)
        self.assertEqual(last, expected)


class HeatCpp(Heat):
    program = "heat_cpp"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        become_rank(*sys.argv[2:])
    unittest.main(verbosity=2)
