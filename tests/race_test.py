#!/usr/bin/env python3
"""bench/race against its own promises, on the smallest cluster: everybody ran in every round, nobody was faster than the cards, what was
restored is what was checkpointed, the JSON alone makes the tables again, and nothing is left behind, also when it is interrupted."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))
sys.path.insert(0, os.path.join(ROOT, "testbed"))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import race_report  # noqa: E402
import race_sweep  # noqa: E402
import testing  # noqa: E402
from cluster import RUN, wait_for  # noqa: E402

NODES, CARD_MB_S, MEAN_BYTES, ROUNDS = 2, 50, 4 << 20, 2
SMALLEST = ["--geometry", "servers", "--compute", str(NODES), "--ranks", "1", "--servers", "1", "--size", "4MiB", "--imbalance", "20",
            "--restores", "1", "--rate-seconds", "0.2", "--mixed"]  # while one writes code its sources are not committed
EVERYBODY = ["--files", "2", "--nodes", "2", "--rounds", str(ROUNDS), "--contenders", ",".join(race_report.CONTENDERS)]
CARD_MARGIN = 1.1  # what the cards and their queues let through at once, before they count
WITHIN_S = 120


def start(*words):
    return subprocess.Popen([os.path.join(ROOT, "bench", "race"), BUILD, *SMALLEST, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def race(*words):
    process = start(*words)
    said, _ = process.communicate(timeout=WITHIN_S)
    return process, said


def left_behind(pid):
    """Directory and processes of the cluster of the race with this process id."""
    place = os.path.join(RUN, f"race-{pid}")
    done = subprocess.run(["pgrep", "-f", place], capture_output=True, text=True)
    return ([place] if os.path.exists(place) else []) + ["process " + pid for pid in done.stdout.split()]


class Smallest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cairn-race-test-")
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "race.json")

    def json(self):
        with open(self.out) as f:
            return json.load(f)

    def test_everybody_runs_and_the_data_is_right(self):
        process, said = race(*EVERYBODY, "--out", self.out)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("every image came back bit for bit", said)
        self.assertEqual(left_behind(process.pid), [])
        data = self.json()
        [block] = data["blocks"]
        self.assertEqual(len(block["image_bytes"]), NODES)
        self.assertEqual(sum(block["image_bytes"]), block["bytes"])
        self.assertGreater(max(block["image_bytes"]), min(block["image_bytes"]))
        for size in block["image_bytes"]:
            self.assertTrue(0.8 * MEAN_BYTES - 8 <= size <= 1.2 * MEAN_BYTES, size)
        self.assertEqual(len(block["rounds"]), ROUNDS)
        shortest_s = block["bytes"] / (CARD_MARGIN * CARD_MB_S * 1e6)  # all goes to one server
        for one in block["rounds"]:
            self.assertEqual(set(race_report.CONTENDERS) - set(race_report.OPTIONAL), set(one) - set(race_report.OPTIONAL))
            for name, run in one.items():
                self.assertGreater(run["seconds"] + (run["blocked_s"] if name in ("cairn", "veloc") else 0), shortest_s, name)
        for cards in ("node", "server"):
            for bytes_per_s in data["rates"]["servers"][cards].values():
                self.assertTrue(0 < bytes_per_s < CARD_MARGIN * CARD_MB_S * 1e6)
        self.assertTrue(all(each["same"] for each in block["restores"]) and len(block["restores"]) == 1)
        self.assertGreater(block["restores"][0]["seconds"], shortest_s)  # from the server, not from somebody's memory
        for leaders in block["figures"]["leaders"]:
            written = sum(w["received_bytes"] + w["local_bytes"] for leader in leaders for w in leader["writers"])
            indexes = written - block["bytes"]  # every image ends with one, of one region
            self.assertTrue(0 < indexes < 1024 * NODES, indexes)
        for held in block["placed"]:  # blocks are whole in the files, and there is a footer
            self.assertTrue(block["bytes"] <= sum(held.values()) <= 1.3 * block["bytes"] + (4 << 20), held)
        self.redrawn_and_complete(said)

    def redrawn_and_complete(self, said):
        """The JSON has all that the tables need; and --more finds nothing left to measure."""
        before = self.json()
        _, again = race("--from", self.out)
        self.assertIn(race_report.flush_table(before), said)
        self.assertIn(race_report.flush_table(before), again)
        process, more = race(*EVERYBODY, "--out", self.out, "--more")
        self.assertEqual(process.returncode, 0, more)
        self.assertEqual(self.json()["blocks"], before["blocks"])

    def test_a_sweep_finds_what_rivals_are_told(self):
        process, said = race("--files", "2", "--nodes", "2", "--rounds", "1", "--sweep", "--sweep-rounds", "1", "--contenders", "cairn,collective_k,file_per_rank_placed", "--out", self.out)
        self.assertEqual(process.returncode, 0, said)
        swept, block = self.json()["blocks"]
        self.assertEqual({each["setting"]["io"] for each in swept["tried"]}, set(race_sweep.IOS))
        best = min(swept["tried"], key=lambda each: each["seconds"][0])
        self.assertEqual(block["told"]["collective_k"]["setting"], best["setting"])
        self.assertEqual(block["io"], best["setting"]["io"])
        self.assertEqual((block["source"], block["binaries"]), (swept["source"], swept["binaries"]))
        self.assertIn("best of", said)
        self.assertEqual(left_behind(process.pid), [])

    def test_the_application(self):
        process, said = race("--application", "--pairs", "2", "--period", "1", "--periods", "2", "--step-ms", "100", "--message", "64KiB", "--out", self.out)
        self.assertEqual(process.returncode, 0, said)
        [block] = self.json()["blocks"]
        for one in block["rounds"]:
            self.assertEqual(list(race_report.MODES), sorted(one, key=list(race_report.MODES).index))
            for mode, run in one.items():
                self.assertGreater(run["seconds"], block["steps"] * 0.1)
                self.assertEqual(run["checkpoints"], 0 if mode == "none" else 2)
        self.assertTrue(all(each["same"] for each in block["restores"]))
        self.assertEqual(left_behind(process.pid), [])

    def test_interrupted(self):
        process = start("--rounds", "1000", "--files", "1", "--nodes", "2", "--out", self.out)
        place = os.path.join(RUN, f"race-{process.pid}")
        wait_for("the cluster", lambda: os.path.exists(place), 30)
        time.sleep(8)  # anywhere between here and the rounds
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertEqual(left_behind(process.pid), [])


if __name__ == "__main__":
    testing.main()
