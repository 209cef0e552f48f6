#!/usr/bin/env python3
"""`cairn tune` for real: what it says is consistent, it keeps to its time, it refuses what can not be with one clear error, and whatever happens it
leaves nothing behind.

Usage: CAIRN_BUILD=build/release python3 tests/tune_test.py [Class[.test]]
"""
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

import skipping
from support import CANCELLED, INVALID, IO_ERROR, NO_SPACE, NOT_FOUND, OK, PERMISSION, UNAVAILABLE, UNSUPPORTED, Nodes, find

NOBODY = 65534
SMALL = ["--size", "128KiB", "--local-files", "4", "--followers", "1"]


class Place(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes()
        self.addCleanup(self.nodes.__exit__)
        self.target = self.nodes.persistent
        self.places = [self.target, self.nodes.scratch()]

    def left(self):
        return [name for place in self.places for name in os.listdir(place)]

    def tune(self, *arguments, code=OK, **more):
        got, out, err = self.nodes.cairn("tune", *arguments, **more)
        self.assertEqual(got, code, out + err)
        if code != OK:
            self.assertEqual(out, "")
            self.assertTrue(err.startswith("cairn tune: "), err)
        return out, err

    def refuses(self, code, *words, arguments=(), **more):
        """One clear error that has these words, and nothing left."""
        _, err = self.tune(*arguments, code=code, **more)
        for word in words:
            self.assertIn(word, err)
        self.assertEqual(self.left(), [])
        return err

    def command(self, *arguments, **more):
        return subprocess.Popen([find("cairn"), "tune", *arguments], env=self.nodes.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, cwd=self.nodes.shared, **more)

    def in_the_middle(self, process):
        """Waits until it writes parts."""
        for _ in range(2000):
            for folder, _, names in os.walk(self.target):
                if any(name.startswith("part-") for name in names):
                    return
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            time.sleep(0.005)
        self.fail("it never wrote")

    # ---- what it says ----


class Tune(Place):
    def test_the_document_follows_from_the_runs(self):
        out, err = self.tune("--budget", "4s", *SMALL, "--writers", "1,4", "--buffer", "64KiB,1MiB", "--seed", "7", "--json")
        self.assertEqual((err, self.left()), ("", []))
        told = json.loads(out)
        self.assertLessEqual(told["took_s"], 4 + max(run["wall_s"] for run in told["runs"]))
        self.assertIn("buffers of 64.0 KiB hold whole blocks: tried as 256 KiB with blocks of 256 KiB, 1.00 MiB with blocks of 1.00 MiB, "
                      "4.00 MiB with blocks of 4.00 MiB", told["notes"])
        present = told["present"]
        for variant in told["variants"]:
            runs = [r for r in told["runs"] if r["settings"] == variant["settings"] and r["round"] > 0 and r["stage"] != "figures"]
            self.assertEqual(len(runs), variant["runs"])
            rate = statistics.median(r["received_bytes"] / r["write_s"] for r in runs)
            self.assertAlmostEqual(variant["received_bytes_per_s"] / rate, 1, 6)
            self.assertTrue(all(0 < r["write_s"] <= r["durable_s"] <= r["wall_s"] for r in runs))
        self.assertEqual(told["variants"][0]["settings"], present)
        self.assertEqual({v["settings"]["writers"] for v in told["variants"]} >= {1, 4, 8}, True)
        advice = told["recommended"]
        if advice["verdict"] == "better":
            self.assertGreater(advice["ratio_low"], 1)
            self.assertGreaterEqual(advice["pairs"], 6)
            self.assertTrue(advice["settings"])
        else:
            self.assertEqual(advice["settings"], {})

    def test_the_table_and_the_figures(self):
        figure = os.path.join(self.nodes.shared, "figures.svg")
        out, err = self.tune("--budget", "4s", *SMALL, "--writers", "1,4", "--files", "2,1", "--plot", figure)
        self.assertEqual((err, self.left()), ("", []))
        for word in ("as it is", "2 writers ", "interleaved", "local data by files", "1 file ", "recommended: ", "nothing of them is left"):
            self.assertIn(word, out)
        with open(figure) as file:
            svg = file.read()
        self.assertTrue(svg.startswith("<svg ") and "contiguous (equation 1)" in svg and "nan" not in svg)

    def test_writes_what_it_recommends_and_keeps_the_rest(self):
        """Where they lie: behind the link, with the permissions they had."""
        settings, place = os.path.join(self.nodes.shared, "cairn.toml"), os.path.join(self.nodes.shared, "ours.toml")
        os.symlink(place, settings)
        open(place, "w").close()
        os.chmod(place, 0o640)
        before = '# ours\n[flush]\nfiles = 3 # K\nwriters = 1\nbuffer_bytes = "1 MiB" # small\n\n[capture]\nwait_ms = 5000\n'
        with open(settings, "w") as file:
            file.write(before)
        self.nodes.settings.pop("flush_block_bytes")
        with open(settings, "a") as file:
            file.write("[deadlines]\nio_ms = 30000\n")
        before += "[deadlines]\nio_ms = 30000\n"
        out, err = self.tune("--budget", "5s", "--size", "4MiB", "--local-files", "4", "--followers", "1", "--writers", "1,4", "--buffer", "1MiB,4MiB",
                             "--block", "64KiB", "--split", "chunks", "--placement", "append", "--files", "1", "--json", "--write", flush_block_bytes=65536)
        wanted = json.loads(out)["recommended"]["settings"]
        with open(settings) as file:
            after = file.read()
        self.assertTrue(os.path.islink(settings))
        self.assertEqual(os.stat(place).st_mode & 0o777, 0o640)
        if not wanted:
            self.assertEqual(after, before)
            self.assertIn("nothing to change", err)
        for line in ("# ours", "files = 3 # K", "[capture]", "wait_ms = 5000"):
            self.assertIn(line, after.split("\n"))
        got = {s["key"]: s for s in json.loads(self.nodes.cairn("config", "--json", flush_block_bytes=65536)[1])["settings"]}
        for key, value in wanted.items():
            self.assertIn(str(value).lower(), (str(got[key]["value"]).lower(), got[key]["text"].lower()), key)
            self.assertIn("+ " + key.split(".")[1], err)

    def test_codecs_are_tried_on_files_and_the_best_is_written(self):
        """Numbers that one codec makes much of, and noise: what is slow to write is worth encoding, and noise is not."""
        import array
        ramp, noise = (os.path.join(self.nodes.shared, name) for name in ("ramp", "noise"))
        with open(ramp, "wb") as file:
            array.array("d", [1000 + i / 64 for i in range(200_000)]).tofile(file)
        with open(noise, "wb") as file:
            file.write(os.urandom(500_000))
        out, err = self.tune("--codecs", ramp, "--storage", "5 MB", "--json", "--write", flush_codec="off")
        told = json.loads(out)
        self.assertEqual((told["file_bytes"], told["bytes"], told["described_bytes"], told["images"]), (1_600_000, 1_600_000, 0, 1))
        recommended = told["recommended"]
        self.assertIn(recommended["codec"], ("auto", "delta-shuffle-zstd"))
        self.assertEqual(recommended["settings"]["flush.codec"], recommended["codec"])
        self.assertGreater(recommended["gain"], 4)
        rows = {each["codec"]: each for each in told["codecs"]}
        self.assertAlmostEqual(rows["off"]["ratio"], 1, 2)
        self.assertGreater(min(rows["fast"]["ratio"], rows["small"]["ratio"]), 4)
        self.assertGreaterEqual(rows["auto"]["durable_bytes_per_s"], 0.9 * rows["fast"]["durable_bytes_per_s"])
        with open(os.path.join(self.nodes.shared, "cairn.toml")) as file:
            self.assertIn(f'codec = "{recommended["codec"]}"', file.read())
        self.assertIn("+ codec", err)
        codec_of = lambda *arguments: json.loads(self.tune("--codecs", *arguments, "--json")[0])["recommended"]["codec"]
        self.assertEqual(codec_of(noise), "off")
        self.assertEqual(codec_of(noise, ramp), "auto")
        self.assertEqual(codec_of(ramp, "--storage", "1 TiB"), "off")
        self.assertIn("fast", self.tune("--codecs", ramp)[0])
        self.assertEqual(self.left(), [])
        self.refuses(INVALID, "--storage", arguments=["--storage", "5 MB"])
        self.refuses(INVALID, "--ranks", arguments=["--ranks"])
        self.refuses(INVALID, "--plot does not go with --codecs", arguments=["--codecs", ramp, "--plot", "figures.svg"])
        self.refuses(INVALID, "--sample", arguments=["--sample", "5 MB"])
        self.refuses(INVALID, "--storage", arguments=["--codecs", ramp, "--storage", "slow"])
        self.refuses(INVALID, "--sample", arguments=["--codecs", ramp, "--sample", "1 KB"])
        self.tune("--codecs", os.path.join(self.nodes.shared, "none"), code=NOT_FOUND)

    def test_what_ranks_have_in_common_is_merged(self):
        """Cells that are dealt out to ranks one by one, so that each rank's file is noise, and all of them are the same noise; and files that have nothing in common."""
        def files_of(name, contents):
            paths = [os.path.join(self.nodes.shared, f"{name}.{rank}") for rank in range(len(contents))]
            for path, content in zip(paths, contents):
                with open(path, "wb") as file:
                    file.write(content)
            return paths
        same, unlike = files_of("same", [os.urandom(1 << 20)] * 4), files_of("unlike", [os.urandom(1 << 20) for _ in range(4)])
        out, err = self.tune("--codecs", *same, "--ranks", "--json", "--write", flush_merge_ranks=1)
        told = json.loads(out)
        self.assertEqual(told["images"], 4)
        self.assertGreater(told["recommended"]["gain"], 2)
        self.assertEqual(told["recommended"]["settings"]["flush.merge_ranks"], 0)
        self.assertIn("+ merge_ranks = 0", err)
        best = max(told["merged"], key=lambda row: row["ratio"])
        self.assertEqual((best["merge_ranks"], best["images_a_run"]), (16, 4))
        self.assertGreater(best["ratio"], 2 * max(row["ratio"] for row in told["codecs"]))
        text = self.tune("--codecs", *same, "--ranks")[0]
        self.assertIn("Images that share runs", text)
        told = json.loads(self.tune("--codecs", *unlike, "--ranks", "--json")[0])
        self.assertEqual((told["recommended"]["codec"], told["recommended"]["settings"]), ("off", {}), "as it is set")
        told = json.loads(self.tune("--codecs", *same, "--json")[0])
        self.assertEqual((told["images"], told["merged"]), (1, []))
        self.assertIn("flush.equal_pages", self.tune("--codecs", *same, "--ranks", flush_equal_pages="true")[0])

    def test_of_large_files_a_sample_is_looked_at_in_little_memory(self):
        """Nothing is allocated that is as large as what is looked at."""
        import resource
        paths = [os.path.join(self.nodes.shared, f"large.{number}") for number in range(3)]
        for path in paths:
            with open(path, "wb") as file:
                file.truncate(400 << 20)
                for at in range(0, 400 << 20, 1 << 22):
                    os.pwrite(file.fileno(), os.urandom(4096), at)
        def limit():
            if not os.environ.get("CAIRN_PRELOAD"):  # sanitizers take more than any limit
                resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20))
        process = subprocess.Popen([find("cairn"), "tune", "--codecs", *paths, "--sample", "160 MiB", "--json"], env=self.nodes.environment(flush_buffer_bytes="4 MiB"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, preexec_fn=limit)
        out, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, OK, err)
        told = json.loads(out)
        self.assertEqual(told["file_bytes"], 1200 << 20)
        self.assertLessEqual(told["bytes"], 160 << 20)
        self.assertGreater(told["bytes"], 155 << 20)
        self.assertEqual(told["files_left_out"], 0)

    # ---- what ends it ----

    def test_a_signal_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.command("--budget", "60s", *SMALL)
            self.in_the_middle(process)
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, out, self.left()), (CANCELLED, "", []), err)

    def test_what_a_killed_run_left_the_next_one_names_and_removes(self):
        """And nothing else: not what a living run has, nor what is no run's."""
        os.mkdir(os.path.join(self.target, "series"))
        living = self.command("--budget", "60s", *SMALL)
        self.in_the_middle(living)
        stay = self.left()
        killed = self.command("--budget", "60s", "--size", "16MiB", "--local-files", "4", "--followers", "1")
        while len(self.left()) < len(stay) + 2:
            self.assertIsNone(killed.poll())
            time.sleep(0.005)
        killed.kill()
        killed.communicate()
        left = [name for name in self.left() if name not in stay]
        self.assertEqual(len(left), 2)
        out, _ = self.tune("--budget", "1s", *SMALL, "--json")
        notes = "\n".join(note for note in json.loads(out)["notes"] if note.startswith("removed "))
        self.assertEqual([name for name in left + stay if name in notes], left)
        self.assertEqual(sorted(self.left()), sorted(stay))
        living.send_signal(signal.SIGINT)
        living.communicate(timeout=30)
        self.assertEqual((living.returncode, self.left()), (CANCELLED, ["series"]))

    def test_it_never_mixes_with_checkpoints(self):
        process = self.command("--budget", "60s", *SMALL)
        self.in_the_middle(process)
        got, out, err = self.nodes.cairn("ls")
        gc = self.nodes.cairn("gc", "--age", "0 s")
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=30)
        self.assertEqual((got, process.returncode, gc[0]), (OK, CANCELLED, OK), (err, gc, told))
        self.assertNotIn("tune", out + gc[1])

    # ---- what it refuses ----

    def test_bad_options(self):
        for arguments, word in ((["--writers", "0"], "--writers '0'"), (["--writers", "many"], "--writers 'many'"), (["--writers", "1,1"], "--writers"),
                                (["--writers", " "], "--writers"), (["--placement", "random"], "append, interleaved"), (["--split", "both"], "--split"),
                                (["--block", "1000"], "--block '1000'"), (["--buffer", "1"], "--buffer '1'"), (["--direct", "perhaps"], "--direct"),
                                (["--io", "automatic"], "uring or threads"), (["--budget", "0s"], "--budget"), (["--budget", "soon"], "--budget"),
                                (["--size", "-1"], "--size"), (["--size", "0"], "--size"), (["--followers", "0"], "--followers '0'"),
                                (["--followers", "65"], "1 to 64"), (["--local-files", "0"], "--local-files"), (["--files", "0"], "--files"),
                                (["--files", "64", "--local-files", "4"], "64 files"), (["--metric", "speed"], "durable or written"),
                                (["--seed", "x"], "--seed")):
            with self.subTest(arguments=arguments):
                self.refuses(INVALID, word, arguments=arguments)

    def test_what_can_not_be_written_at_the_end_is_said_at_once(self):
        missing = os.path.join(self.nodes.shared, "missing", "figure.svg")
        self.refuses(NOT_FOUND, "--plot", missing, arguments=["--budget", "600s", "--plot", missing])
        self.assertFalse(os.path.exists(os.path.dirname(missing)))
        self.refuses(INVALID, "--plot", "not a regular file", arguments=["--budget", "600s", "--plot", "/dev/null"])

    def test_targets_that_can_not_be(self):
        missing, file = os.path.join(self.nodes.shared, "missing"), os.path.join(self.nodes.shared, "file")
        open(file, "w").close()
        self.refuses(NOT_FOUND, missing, "--persistent", arguments=["--persistent", missing])
        self.refuses(INVALID, file, "not a directory", arguments=["--persistent", file])
        self.refuses(NOT_FOUND, missing, "--scratch", arguments=["--scratch", missing])

    def test_an_unwritable_target(self):
        os.chmod(self.nodes.shared, 0o755)
        os.chmod(self.nodes.local, 0o755)
        os.chmod(self.target, 0o555)
        self.addCleanup(os.chmod, self.target, 0o755)
        os.chmod(self.nodes.scratch(), 0o777)
        drop = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
        # a program of this name that anybody may run, wherever the build lies
        program = shutil.copy(find("cairn"), self.nodes.shared)
        environment = {**self.nodes.environment(), "HOME": self.nodes.shared}
        done = subprocess.run([program, "tune", *SMALL, "--budget", "1s"], env=environment, capture_output=True, text=True, timeout=60,
                              cwd="/", **drop)
        self.assertEqual((done.returncode, done.stdout, self.left()), (PERMISSION, "", []), done.stderr)
        self.assertIn(self.target, done.stderr)

    def test_more_than_there_is_room_for(self):
        err = self.refuses(NO_SPACE, "--size", arguments=["--size", "1TiB"])
        self.assertEqual(len(err.strip().split("\n")), 1, err)

    def test_direct_that_is_not_to_be_had(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            self.places.append(memory)
            self.refuses(UNSUPPORTED, memory, "direct", arguments=["--persistent", memory, "--direct", "true", *SMALL])
            out, _ = self.tune("--persistent", memory, "--budget", "1s", *SMALL)
            self.assertTrue(re.search(r"note +" + memory + r": no direct I/O: .*left out", out), out)
            self.assertEqual(self.left(), [])

    def test_a_target_that_goes_away_in_the_middle(self):
        process = self.command("--budget", "60s", *SMALL)
        self.in_the_middle(process)
        shutil.rmtree(self.target, ignore_errors=True)
        shutil.rmtree(self.target, ignore_errors=True)
        out, err = process.communicate(timeout=60)
        # Which step meets it first decides the code: a file that is to be opened, a write, or the look at the job's own record before a commit.
        self.assertIn(process.returncode, (NOT_FOUND, IO_ERROR, UNAVAILABLE), err)
        self.assertEqual(out, "")
        self.assertIn(self.target, err)
        os.makedirs(self.target, exist_ok=True)


class Mounted(Place):
    def test_a_small_file_system_is_used_with_care_and_a_full_one_refused(self):
        """In a namespace of its own, so that the mount goes with it."""
        for size_kib, others_kib, code in ((32 << 10, 0, OK), (32 << 10, 30 << 10, NO_SPACE), (32 << 10, 33 << 10, NO_SPACE)):
            script = f"mount -t tmpfs -o size={size_kib}k none {self.target} && (head -c {others_kib}k /dev/zero > {self.target}/others || true) 2>/dev/null && "
            script += f"{find('cairn')} tune --budget 2s --followers 1 --json; code=$?; ls -A {self.target} >&2; exit $code"
            done = subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c", script], env=self.nodes.environment(),
                                  capture_output=True, text=True, timeout=60)
            if "unshare" in done.stderr or "mount" in done.stderr:  # then by size alone, in Tune
                self.skipTest("needs root, or a kernel that lets others mount in a namespace of their own: " + done.stderr.strip())
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertTrue(done.stderr.endswith("others\n") and "cairn-tune-" not in done.stderr, done.stderr)
            if code == OK:
                self.assertLessEqual(json.loads(done.stdout)["local_bytes"] * 2 * 2, size_kib << 10)
            else:
                self.assertIn(self.target, done.stderr)
                self.assertIn("Make room", done.stderr)


if __name__ == "__main__":
    skipping.main()
