#!/usr/bin/env python3
"""What merging does to real checkpoints: each file is one rank's image, all on one node, through a real daemon, with merge_ranks 1 and more, and 0, where trials say it.

Usage: bench/codecs_merged.py BUILD FOLDER... [--codecs fast,...] [--ranks 1,4,16] [--turns BYTES,...] [--block BYTES]

With 0 the same files are one version of a job after the other, eight in all, and the last one counts.
Prints, for each folder and setting: bytes of the images by those of the part, what of the part its footer is, how many times what is stored of it a rank must read alone, at most, and the daemon's processor time until the
commit (its start and descriptions of HDF5 files by another process not counted apart).
Every rank's file is extracted and compared.
Exit code: 1 where a file does not come back.
"""
import argparse
import filecmp
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid


class Run:
    """One version of a folder's files under one setting."""

    def __init__(self, build, files, settings):
        self.build, self.files, self.version = build, files, 0
        self.place = tempfile.mkdtemp(prefix="cairn-merged-", dir="/dev/shm")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("CAIRN_")}
        self.environment.update(CAIRN_NODE="n0", CAIRN_PATHS_SCRATCH=self.place + "/scratch", CAIRN_PATHS_PERSISTENT=self.place + "/persistent", CAIRN_CONFIG="", CAIRN_DAEMON_PROGRAM=f"{build}/bin/cairnd",
                                CAIRN_DEADLINES_OPEN_MS="120000", CAIRN_DAEMON_IDLE_S="60", CAIRN_BACKGROUND_CPU="normal", **settings)
        for name in ("scratch", "persistent"):
            os.mkdir(os.path.join(self.place, name))

    def cairn(self, *arguments):
        return subprocess.run([f"{self.build}/bin/cairn", *map(str, arguments)], env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def name(self, rank):
        return f"{os.path.basename(self.files[rank])}.{self.version}.of"

    def write(self, versions):
        """Captured and committed, so many times."""
        job, watchers = uuid.uuid4().hex, []
        for rank, path in enumerate(self.files):
            folder = os.path.join(self.place, f"files-{rank}")
            os.mkdir(folder)
            for self.version in range(1, versions + 1):
                shutil.copyfile(path, os.path.join(folder, self.name(rank)))
        for rank in range(len(self.files)):
            watchers.append(subprocess.Popen([f"{self.build}/bin/cairn", "watch", "--name", "set", "--pattern", "*.{version}.of", "-d", os.path.join(self.place, f"files-{rank}"), "--index", str(rank), "--watchers",
                                              str(len(self.files)), "--job", job, "--files", "1", "--files-max", "1", "--once"], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        told = [watcher.communicate(timeout=300)[1] for watcher in watchers]
        if any(watcher.returncode for watcher in watchers):
            sys.exit("a watcher failed: " + "".join(told))

    def daemon_s(self):
        """Processor time of the daemon so far."""
        for folder in glob.glob("/proc/[0-9]*"):
            try:
                with open(folder + "/environ", "rb") as environ, open(folder + "/stat") as stat:
                    name, numbers = stat.read().rsplit(")", 1)
                    if name.endswith("(cairnd") and (self.place + "/scratch").encode() in environ.read():
                        return sum(map(int, numbers.split()[11:13])) / os.sysconf("SC_CLK_TCK")
            except OSError:
                continue
        return float("nan")

    def check(self):
        back = os.path.join(self.place, "back")
        done = self.cairn("extract", "set", self.version, "--files", back)
        if done.returncode:
            sys.exit(done.stderr)
        for rank, path in enumerate(self.files):
            if not filecmp.cmp(path, os.path.join(back, self.name(rank)), shallow=False):
                sys.exit(f"{path} did not come back")

    def figures(self):
        parts = glob.glob(self.place + f"/persistent/set/{self.version}/part-*")
        stored = sum(os.path.getsize(part) for part in parts)
        footers = 0
        for part in parts:
            with open(part, "rb") as file:
                file.seek(-48, os.SEEK_END)
                footers += 48 + int.from_bytes(file.read(16)[8:], "little")
        images = sum(map(os.path.getsize, self.files))
        alone = re.search(r"one rank +reads at most ([0-9.]+) times", self.cairn("show", "set", self.version).stdout)
        return images / stored, stored, footers, alone.group(1) if alone else "-"

    def end(self):
        self.cairn("stop")
        shutil.rmtree(self.place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--codecs", default="fast,delta-shuffle-zstd")
    parser.add_argument("--ranks", default="1,4,16")
    parser.add_argument("--turns", default="16384,65536,1048576")
    parser.add_argument("--block", default="16384")
    told = parser.parse_args()
    print(f"{'files of':<20}  {'codec':<18}  {'images':>6}  {'turn':>8}  {'ratio':>7}  {'stored':>9}  {'footer':>7}  {'one rank':>8}  {'daemon s':>8}")
    for folder in told.folders:
        files = [path for path in sorted(glob.glob(folder + "/*")) if os.path.isfile(path)]
        for codec in told.codecs.split(","):
            for ranks in told.ranks.split(","):
                for turn in told.turns.split(",") if ranks != "1" else ["-"]:
                    settings = {"CAIRN_FLUSH_CODEC": codec, "CAIRN_FLUSH_BLOCK_BYTES": told.block, "CAIRN_FLUSH_MERGE_RANKS": ranks}
                    if turn != "-":
                        settings["CAIRN_FLUSH_MERGE_BYTES"] = turn
                    run = Run(os.path.abspath(told.build), files, settings)
                    try:
                        run.write(8 if ranks == "0" else 1)
                        daemon_s = run.daemon_s()
                        run.check()
                        ratio, stored, footers, alone = run.figures()
                        print(f"{os.path.basename(folder.rstrip('/')):<20}  {codec:<18}  {ranks:>6}  {turn:>8}  {ratio:7.3f}  {stored:9}  {footers:7}  {alone:>8}  {daemon_s:8.2f}", flush=True)
                    finally:
                        run.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
