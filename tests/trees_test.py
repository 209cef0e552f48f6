#!/usr/bin/env python3
"""Directory trees as images: `cairn watch` takes them when they are complete and never as a mixture, `cairn extract` brings them back the same, and an index that lies does no harm.

Usage: CAIRN_BUILD=build/release python3 tests/trees_test.py [Class[.test]]; the class Criu ends with exit code 77 where there is no criu, or where the kernel refuses it.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

import skipping
from format_test import reader
from support import CORRUPT, EXISTS, IO_ERROR, NOT_FOUND, OK, find
from trees import Watched, entries, make_names, make_tree, text, write

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Kept(Watched):
    def test_renamed_into_place_it_comes_back_entry_by_entry(self):
        watcher, said = self.watch()
        make_tree(self.staging + "/x")
        made = entries(self.staging + "/x")
        os.rename(self.staging + "/x", self.place(1))
        committed = self.until(said, event="committed", version=1)
        self.assertEqual(committed["files"], 1)
        watcher.kill()
        watcher.wait()
        self.nodes.kill_daemons()
        self.nodes.forget_scratch()
        shutil.rmtree(self.folder)
        self.assert_same(made, entries(self.extract("back", 1) + "/ckpt.1"))
        self.assertEqual(os.listdir(self.nodes.shared + "/back"), ["ckpt.1"], "nothing else is left there")
        for codec in ("fast", "small"):
            with self.subTest(codec=codec):
                self.again_with(codec, made)

    def again_with(self, codec, made):
        """What was extracted is watched in its turn."""
        series = self.nodes.shared + "/" + codec
        code, _, err = self.nodes.cairn("watch", "--name", codec, "--pattern", "ckpt.{version}", "-d", self.nodes.shared + "/back", "--once", "--set", "flush.codec=" + codec, wait_s=120)
        self.assertEqual(code, OK, err)
        self.assertEqual(self.nodes.cairn("extract", codec, "--files", series)[0], OK)
        self.assert_same(made, entries(series + "/ckpt.1"))

    def test_another_is_replaced_only_by_force(self):
        os.mkdir(self.place(1))
        write(self.place(1) + "/a", b"first")
        os.makedirs(self.place(2))
        self.assertEqual(self.nodes.cairn("watch", "--name", "t", "--pattern", "ckpt.{version}", "-d", self.folder, "--once")[0], OK)
        made = entries(self.place(1))
        back = self.extract("back", 1)
        write(back + "/ckpt.1/b", b"mine")
        code, _, err = self.nodes.cairn("extract", "t", 1, "--files", back)
        self.assertEqual(code, EXISTS, err)
        self.assertEqual(text(back + "/ckpt.1/b"), "mine")
        self.extract("back", 1, "--force")
        self.assert_same(made, entries(back + "/ckpt.1"))
        self.extract("back", 2)
        self.assertEqual(sorted(os.listdir(back)), ["ckpt.1", "ckpt.2"])
        code, out, _ = self.nodes.cairn("extract", "t", 1, "--rank", 0, "--region", "ckpt.1/a", "-o", "-")
        self.assertEqual((code, out), (OK, "first"))

    def test_originals_that_are_committed_are_removed_with_all_in_them(self):
        watcher, said = self.watch("--delete-older", "1")
        for version in (1, 2):
            make_tree(f"{self.staging}/{version}", version)
            os.rename(f"{self.staging}/{version}", self.place(version))
            self.until(said, event="committed", version=version)
        self.until(said, event="removed", version=1)
        self.assertEqual(os.listdir(self.folder), ["ckpt.2"])
        self.assertEqual(self.end(watcher), 0)


@skipping.NEEDS_ROOT
class Owners(Watched):
    def test_without_root_the_owner_is_said_to_be_missing_and_the_rest_comes_back(self):
        make_tree(self.place(1))
        self.assertEqual(self.nodes.cairn("watch", "--name", "t", "--pattern", "ckpt.{version}", "-d", self.folder, "--once")[0], OK)
        made = entries(self.place(1), ("owner", "attributes"))
        os.chmod(self.nodes.shared, 0o755)
        target = self.nodes.shared + "/back"
        os.mkdir(target)
        os.chown(target, 64201, 64201)
        environment = {**self.nodes.environment(), "HOME": "/", "CAIRN_PATHS_SCRATCH": self.nodes.shared + "/none"}
        done = subprocess.run([find("cairn"), "extract", "t", "--files", target], env=environment, user=64201, group=64201, extra_groups=[], capture_output=True, text=True, cwd="/")
        if "ermission denied" in done.stderr and done.returncode != OK:
            self.skipTest("another user can not run this build, or read what it stored: " + done.stderr.strip())
        self.assertEqual(done.returncode, OK, done.stderr)
        self.assertEqual(sorted(line.split(" of ")[0] for line in done.stderr.splitlines()), [f"cairn extract: note: {what}" for what in ("extended attributes", "the device nodes", "the owners")])
        back = entries(target + "/ckpt.1", ("owner", "attributes"))
        for path in (b"null", b"null too", b"loop"):
            self.assertNotIn(path, back)
            del made[path]
        for path in (b"mode 4711", b"mode 2755", b"mode 7777"):
            self.assertEqual(back[path]["mode"] & 0o6000, 0, path)
            made[path]["mode"] &= ~0o6000
        self.assert_same(made, back)


class WhenTaken(Watched):
    def test_made_in_place_it_is_taken_when_its_last_file_is_closed(self):
        watcher, said = self.watch("--last-file", "done", "--settle-ms", "1")
        for version in (1, 2):
            os.mkdir(self.place(version))
            write(self.place(version) + "/a", b"a" * version)
            write(self.place(version) + "/not done", b"")
        os.makedirs(self.place(1) + "/below/done")
        last = open(self.place(1) + "/done", "wb")
        last.write(b"not yet")
        last.flush()
        time.sleep(1.5)  # there is time to take it wrongly
        self.assertEqual([line for line in said if line["event"] == "captured"], [])
        last.close()
        self.until(said, event="committed", version=1)
        self.assert_same(entries(self.place(1)), entries(self.extract("back", 1) + "/ckpt.1"))
        write(self.place(2) + "/done", b"")
        self.until(said, event="committed", version=2)
        os.mkdir(self.place(3))
        self.assertNotEqual(self.end(watcher), 0, "one that has no last file is lost at the end, and said to be")
        self.until(said, event="lost", version=3, text="has no done yet")

    def test_a_last_file_that_is_moved_there_counts(self):
        watcher, said = self.watch("--last-file", "done", "--settle-ms", "1")
        os.mkdir(self.place(1))
        write(self.place(1) + "/tmp", b"")
        os.rename(self.place(1) + "/tmp", self.place(1) + "/done")
        self.until(said, event="committed", version=1)
        self.assertEqual(self.end(watcher), 0)

    def test_made_in_place_it_is_otherwise_taken_at_the_end(self):
        watcher, said = self.watch("--settle-ms", "1")
        for version in (1, 2):
            make_tree(self.place(version), version)
        self.until(said, event="note", version=2, text="--last-file")
        self.assertEqual([line for line in said if line["event"] == "captured"], [])
        self.assertEqual(self.end(watcher), 0, said)
        for version in (1, 2):
            self.assert_same(entries(self.place(version)), entries(self.extract("back", version) + f"/ckpt.{version}"))

    def test_or_when_the_command_ends(self):
        write(self.nodes.shared + "/program", f"#!/bin/sh\nset -e\necho it speaks\nfor v in 1 2; do mkdir {self.folder}/ckpt.$v; echo $1 >{self.folder}/ckpt.$v/a; sleep 1; echo $2 >{self.folder}/ckpt.$v/b; done\nexit $3\n".encode(), 0o755)
        for failed in (0, 3):
            watch = ("watch", "--name", f"t{failed}", "--pattern", "ckpt.{version}", "-d", self.folder, "--settle-ms", "1", "--json", "--", self.nodes.shared + "/program", "--json", "", failed)
            code, out, err = self.nodes.cairn(*watch)
            events = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(code, IO_ERROR if failed else OK, err)
            self.assertIn("it speaks", err)
            if failed:
                self.assertIn("ended with exit code 3", err)
            self.assertEqual([line["version"] for line in events if line["event"] == "committed"], [1, 2], out)
            self.assertEqual(self.nodes.cairn("extract", f"t{failed}", 2, "--files", self.nodes.shared + f"/back{failed}")[0], OK)
            self.assert_same(entries(self.place(2)), entries(self.nodes.shared + f"/back{failed}/ckpt.2"))
            for version in (1, 2):
                shutil.rmtree(self.place(version))
        code, _, err = self.nodes.cairn("watch", "--name", "none", "--pattern", "ckpt.{version}", "-d", self.folder, "--", self.folder + "/no such program")
        self.assertEqual(code, NOT_FOUND, err)

    def test_a_command_is_told_to_end_and_what_it_then_writes_is_taken(self):
        write(self.nodes.shared + "/program", f"#!/bin/sh\ntrap 'mkdir {self.folder}/ckpt.1; sleep 1; echo last >{self.folder}/ckpt.1/a; exit 0' TERM\nwhile :; do sleep 0.1; done\n".encode(), 0o755)
        watcher, said = self.watch("--", self.nodes.shared + "/program")
        time.sleep(0.5)  # so that it has its trap
        self.assertEqual(self.end(watcher), 0, said)
        self.until(said, event="committed", version=1)
        self.assertEqual(text(self.extract("back", 1) + "/ckpt.1/a"), "last\n")

    def test_what_is_there_at_the_start_and_what_is_idle(self):
        make_tree(self.place(1))
        watcher, said = self.watch("--idle-exit", "1s")
        make_tree(self.place(2))
        self.assertEqual(watcher.wait(60), 0, said)
        self.until(said, event="ended", committed=2)

    def test_open_for_writing_it_is_not_taken(self):
        watcher, said = self.watch("--settle-ms", "1")
        os.makedirs(self.staging + "/x/deep")
        with open(self.staging + "/x/deep/file", "wb") as held:
            os.rename(self.staging + "/x", self.place(1))
            self.until(said, event="note", version=1, text="ckpt.1/deep/file is open for writing")
            self.assertEqual([line for line in said if line["event"] == "captured"], [])
            held.write(b"whole")
        self.until(said, event="committed", version=1)
        self.assertEqual(text(self.extract("back", 1) + "/ckpt.1/deep/file"), "whole")
        self.assertEqual(self.end(watcher), 0)

    def test_changed_while_it_is_captured_it_is_never_a_mixture(self):
        """Once the first file of a tree lies in scratch, and before the last one does, both are written."""
        watcher, said = self.watch("--files", "1")
        refused = False
        for version in range(1, 40):
            old, new = os.urandom(32), os.urandom(32)
            os.mkdir(self.staging + "/x")
            for name in ("a", "z"):
                write(f"{self.staging}/x/{name}", old)
            with open(self.staging + "/x/m", "wb") as f:
                f.write(os.urandom(1 << 20) * 150)
            os.rename(self.staging + "/x", self.place(version))
            while not self.lies_in_scratch(old) and not any(line.get("version") == version and line["event"] != "note" for line in said):
                pass
            for name in ("a", "z"):
                write(f"{self.place(version)}/{name}", new)
            self.until_over(said, version)
            if any(line["event"] == "committed" and line["version"] == version for line in said):
                back = self.extract(f"back-{version}", version) + f"/ckpt.{version}"
                with open(back + "/a", "rb") as a, open(back + "/z", "rb") as z:
                    self.assertEqual(a.read() == old, z.read() == old, "a mixture")
                shutil.rmtree(self.nodes.shared + f"/back-{version}")
            shutil.rmtree(self.place(version))
            refused |= any(line["event"] == "note" and "changed while it was captured" in line["text"] for line in said)
            if refused and version >= 3:
                break
        self.assertTrue(refused, "no version of many was changed while it was captured: the test does not test")

    def lies_in_scratch(self, data):
        for folder, _, names in os.walk(self.nodes.scratch()):
            for name in names:
                if name.startswith("slot-"):
                    with open(os.path.join(folder, name), "rb") as f:
                        if data in f.read(1 << 17):
                            return True
        return False

    def until_over(self, said, version):
        for _ in range(6000):
            if any(line["event"] in ("committed", "lost") and line["version"] == version for line in list(said)):
                return
            time.sleep(0.01)
        self.fail(f"version {version} is neither committed nor lost: {said}")


HOSTILE = """
index, files = bytes.fromhex({index!r}), {files!r}
s = Session({name!r})
SIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
GIVE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
def size(context, told):
    told[0] = len(index)
    return 0
def give(context, into, length):
    ctypes.memmove(into, index, length)
    return 0
kept = SIZE(size), GIVE(give), GIVE(lambda context, data, length: 0)
tell(s.lib.cairn_protect_callbacks(s.handle, b"watch.trees", *kept, None))
for region, path in files:
    tell(s.lib.cairn_route_file(s.handle, region.encode(), path.encode()))
tell([s.checkpoint(1), s.wait(1)])
s.close()
"""


class Hostile(Watched):
    """The golden index, which is valid, and what becomes of it when it lies."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(ROOT, "tests", "golden", "v2", "tree-index"), "rb") as f:
            self.golden = f.read()
        self.files = []
        for region, length in (("ckpt.7/core", 1_000_000), ("ckpt.7/.cairn-file-1", 40)):
            path = os.path.join(self.nodes.shared, os.path.basename(region))
            write(path, bytes(4096) + b"c" * (length - 8192) + bytes(4096) if length > 8192 else b"a" * length)
            self.files.append((region, path))

    def series(self, name, index, files):
        self.assertEqual(set(map(str, self.nodes.run(HOSTILE.format(index=index.hex(), files=files, name=name)))), {"0", "[0, 0]"})

    def changed(self, before, after):
        """The same number of bytes in place of others, with checksums that are right."""
        self.assertEqual((self.golden.count(before), len(before)), (1, len(after)))
        body = self.golden[40:].replace(before, after)
        head = bytearray(self.golden[:40])
        head[24:32] = reader.checksum(body).to_bytes(8, "little")
        head[32:40] = reader.checksum(bytes(head[:32])).to_bytes(8, "little")
        return bytes(head) + body

    def outcome(self, name):
        code, _, err = self.nodes.cairn("extract", name, "--files", self.nodes.shared + "/out/" + name)
        outside = sorted(set(os.listdir(self.nodes.shared)) - {"persistent", "images", "staging", "core", ".cairn-file-1", "out"})
        return code, err, outside

    def test_what_is_true_comes_back(self):
        self.series("true", self.golden, self.files)
        code, err, outside = self.outcome("true")
        self.assertEqual((code, outside), (OK, []), err)
        back = self.nodes.shared + "/out/true/ckpt.7"
        self.assertEqual(os.readlink(back + "/up"), "../../etc/passwd")
        self.assertTrue(os.path.samefile(back + "/core", back + "/same"))
        with open(back + "/core", "rb") as core, open(self.nodes.shared + "/core", "rb") as routed:
            self.assertEqual(core.read(), routed.read(), "bytes where the index says a hole was are written, if they are not zero")
        self.assertEqual(os.listdir(self.nodes.shared + "/out/true/ckpt.8"), [])

    def test_what_leads_outside_is_refused(self):
        lies = {"above": (b"d/empty", b"../mpty"), "root": (b"d/empty", b"/tmp/xy"), "here": (b"d/empty", b"d/./pty"), "nothing": (b"d/empty", b"d//mpty"), "nul": (b"d/empty", b"d/e\0pty"),
                "link": (b"d/socket", b"up/ocket"), "tree": (b"ckpt.8", b"../k.8"), "region": (b"ckpt.7/.cairn-file-1", b"../../../cairn-file-1"[:20])}
        for name, (before, after) in lies.items():
            with self.subTest(name):
                self.series(name, self.changed(before, after), self.files)
                code, err, outside = self.outcome(name)
                self.assertEqual((code, outside), (CORRUPT, []), err)
                self.assertFalse(os.path.exists(self.nodes.shared + "/out/" + name), "nothing was made")

    def test_files_that_are_not_there_or_too_many_are_refused(self):
        other = os.path.join(self.nodes.shared, "core")
        for name, files in {"none": [], "one": self.files[:1], "short": [(self.files[0][0], self.files[1][1]), self.files[1]], "more": self.files + [("ckpt.7/up/more", other)],
                            "same": self.files + [("ckpt.8", other)]}.items():
            with self.subTest(name):
                self.series(name, self.golden, files)
                code, err, outside = self.outcome(name)
                self.assertEqual((code, outside), (CORRUPT, []), err)

    def test_no_index_at_all_is_refused(self):
        for name, index in {"empty": b"", "text": b"not an index" * 10, "cut": self.golden[:-1], "newer": None}.items():
            with self.subTest(name):
                if index is None:
                    head = bytearray(self.golden[:40])
                    head[8] += 1
                    index = bytes(head[:32]) + reader.checksum(bytes(head[:32])).to_bytes(8, "little") + self.golden[40:]
                self.series(name, index, self.files)
                code, err, _ = self.outcome(name)
                self.assertNotEqual(code, OK, err)


class Programs(Watched):
    """Trees that programs make."""

    def taken_back(self):
        """The tree of the program, lost and restored at its old place."""
        self.assertEqual(self.nodes.cairn("watch", "--name", "t", "--pattern", "ckpt.{version}", "-d", self.folder, "--once", wait_s=200)[0], OK)
        made = entries(self.place(1))
        shutil.rmtree(self.place(1))
        self.extract("images", 1)
        self.assert_same(made, entries(self.place(1)))
        return self.place(1)

    def test_a_python_environment_runs(self):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.place(1)], check=True)
        back = self.taken_back()
        told = subprocess.run([back + "/bin/python", "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True)
        self.assertEqual(told.stdout.strip(), back, told.stderr)

    def test_a_repository_of_git_is_whole(self):
        if not shutil.which("git"):
            print("left out: there is no git")
            return
        git = ["git", "-C", self.place(1), "-c", "user.name=x", "-c", "user.email=x@x"]
        subprocess.run(["git", "init", "-q", self.place(1)], check=True)
        make_names(self.place(1))
        subprocess.run([*git, "add", "-A"], check=True, capture_output=True)
        subprocess.run([*git, "commit", "-qm", "all"], check=True)
        self.taken_back()
        for command in (["fsck", "--strict"], ["status", "--porcelain"]):
            done = subprocess.run([*git, *command], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


COUNT = """
import os, sys, time
n = 0
while True:
    n += 1
    with open(sys.argv[1] + ".new", "w") as f:
        f.write(str(n))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(0.01)
"""


class Criu(Watched):
    """A process that knows nothing of checkpoints, of which criu leaves a directory."""

    def counted(self, at_least):
        for _ in range(3000):
            if os.path.exists(self.count) and int(text(self.count) or 0) >= at_least:
                return int(text(self.count))
            time.sleep(0.01)
        self.fail(f"it does not count to {at_least}")

    def test_a_process_goes_on_from_the_tree_that_comes_back(self):
        self.count = self.nodes.shared + "/count"
        process = subprocess.Popen([sys.executable, "-c", COUNT, self.count], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.counted(10)
        watcher, said = self.watch()
        os.mkdir(self.staging + "/x")
        subprocess.run(["criu", "dump", "-t", str(process.pid), "-D", self.staging + "/x"], check=True)
        process.wait()
        reached = int(text(self.count))
        os.rename(self.staging + "/x", self.place(1))
        self.until(said, event="committed", version=1)
        self.assertEqual(self.end(watcher), 0)
        made = entries(self.place(1))
        back = self.extract("back", 1) + "/ckpt.1"
        self.assert_same(made, entries(back))
        pidfile = self.nodes.shared + "/pid"
        subprocess.run(["criu", "restore", "-d", "-D", back, "--pidfile", pidfile], check=True)
        self.addCleanup(lambda: os.kill(int(text(pidfile)), signal.SIGKILL))
        self.assertGreaterEqual(self.counted(reached + 10), reached + 10)


def why_no_criu():
    """None: it can be used."""
    if not shutil.which("criu"):
        return "there is no criu"
    done = subprocess.run(["criu", "check"], capture_output=True, text=True)
    return None if done.returncode == 0 else "`criu check` refuses: " + (done.stderr.strip().splitlines() or ["without a word"])[0]


if __name__ == "__main__":
    if any(argument.startswith("Criu") for argument in sys.argv[1:]) and (why := why_no_criu()):
        skipping.leave("Criu", why)
    if len(sys.argv) == 1 and why_no_criu():
        print("SKIP Criu:", why_no_criu())
        del Criu
    skipping.main()
