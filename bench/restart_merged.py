#!/usr/bin/env python3
"""How long a job takes to start again whose ranks share runs: each file, --times end to end, is one rank's memory, all ranks are processes of one node, and the version lies in parts alone.

Usage: bench/restart_merged.py BUILD[,BUILD...] FOLDER... [--ranks 4,16] [--rounds 5] [--codec fast] [--turn BYTES] [--merge RANKS] [--times N]

Prints, for each folder and number of ranks, the median of the slowest rank's time in cairn_restore, its least and its most. By turns in each round: every BUILD as it is, and where "alone" stands the last of them with nothing shared
(a file where the directory for what is shared would be). merge_ranks is the number of ranks, unless --merge says another.
Exit code: 1 where a byte does not come back.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import shutil
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
RANK = """
import ctypes, os, sys, time
sys.path.insert(0, os.path.join({here!r}, "..", "tests"))
from support import *
content = open({path!r}, "rb").read() * {times}
s = Session("set", {rank}, {ranks}, job={job!r})
if s.opened: sys.exit("open: " + s.text())
s.protect("data", content if {takes} else bytes(len(content)))
if {takes}:
    tell([s.checkpoint(1), s.wait(1, wait_ms=300000), s.text()])
else:
    begun = time.monotonic()
    status, version = s.restore()
    took = time.monotonic() - begun
    tell([status, took, bytes(s.buffers["data"])[:len(content)] == content, s.warnings() + s.text()])
s.close()
"""


class Job:
    def __init__(self, build, files, times, settings):
        self.files, self.times = files, times
        self.place = tempfile.mkdtemp(prefix="cairn-restart-", dir="/dev/shm")
        os.mkdir(self.place + "/persistent")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("CAIRN_")}
        self.environment.update(CAIRN_PATHS_PERSISTENT=self.place + "/persistent", CAIRN_CONFIG="", CAIRN_DEADLINES_OPEN_MS="120000", CAIRN_DAEMON_IDLE_S="5", CAIRN_BACKGROUND_CPU="normal",
                                CAIRN_FLUSH_FILES="1", **settings)
        self.use(build)

    def use(self, build):
        self.environment.update(CAIRN_BUILD=os.path.abspath(build), CAIRN_DAEMON_PROGRAM=os.path.abspath(build) + "/bin/cairnd")

    def run(self, node, takes):
        """What each rank told."""
        scratch = os.path.join(self.place, node)
        os.makedirs(scratch, exist_ok=True)
        environment = dict(self.environment, CAIRN_NODE=node, CAIRN_PATHS_SCRATCH=scratch)
        job = uuid.uuid4().hex
        ranks = [subprocess.Popen([sys.executable, "-B", "-c", RANK.format(here=HERE, path=path, rank=rank, ranks=len(self.files), job=job, takes=takes, times=self.times)], env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank, path in enumerate(self.files)]
        told = [rank.communicate(timeout=600) for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit("a rank failed: " + "".join(err for out, err in told))
        subprocess.run([self.environment["CAIRN_BUILD"] + "/bin/cairn", "stop"], env=environment, stdin=subprocess.DEVNULL, capture_output=True)
        return [json.loads(out) for out, err in told]

    def restart_s(self, node, alone):
        if alone:  # a daemon makes its own directories
            environment = dict(self.environment, CAIRN_NODE=node, CAIRN_PATHS_SCRATCH=os.path.join(self.place, node))
            os.makedirs(os.path.join(self.place, node), exist_ok=True)
            subprocess.run([self.environment["CAIRN_BUILD"] + "/bin/cairn", "start"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
            for root in glob.glob(os.path.join(self.place, node, "cairn-*")):
                open(root + "/shared", "w").close()
        told = self.run(node, False)
        shutil.rmtree(os.path.join(self.place, node), ignore_errors=True)
        for status, took, is_right, text in told:
            if status or not is_right:
                sys.exit(f"a rank did not get its bytes: {text}")
            if text and not alone:
                print("  " + text.strip())
        return max(took for status, took, is_right, text in told)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("builds")
    arguments.add_argument("folders", nargs="+")
    arguments.add_argument("--ranks", default="4,16")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--codec", default="fast")
    arguments.add_argument("--turn", default="32768")
    arguments.add_argument("--block", default="16384")
    arguments.add_argument("--merge", type=int)
    arguments.add_argument("--times", type=int, default=1)
    options = arguments.parse_args()
    builds = options.builds.split(",")
    for folder in options.folders:
        files = sorted(path for path in glob.glob(folder + "/*") if os.path.isfile(path))
        for ranks in map(int, options.ranks.split(",")):
            settings = {"CAIRN_FLUSH_CODEC": options.codec, "CAIRN_FLUSH_BLOCK_BYTES": options.block, "CAIRN_FLUSH_MERGE_BYTES": options.turn, "CAIRN_FLUSH_MERGE_RANKS": str(options.merge or ranks)}
            job = Job(builds[-1], files[:ranks], options.times, settings)
            try:
                for sealed, committed, text in job.run("n0", True):
                    if sealed or committed:
                        sys.exit(f"a rank could not take a version: {text}")
                shutil.rmtree(job.place + "/n0")
                parts = glob.glob(job.place + "/persistent/set/1/part-*")
                print(f"{os.path.basename(folder)}, {ranks} ranks: {options.times * sum(map(os.path.getsize, job.files))} bytes, {sum(map(os.path.getsize, parts))} in parts")
                times = {}
                for round_number in range(options.rounds):
                    for build, alone in [(build, False) for build in builds] + [(builds[-1], True)]:
                        job.use(build)
                        times.setdefault((build, alone), []).append(job.restart_s(f"r{round_number}", alone))
                for (build, alone), took in times.items():
                    print(f"  {build + (' alone' if alone else ''):40} median {statistics.median(took):.3f} s ({min(took):.3f} to {max(took):.3f})")
            finally:
                shutil.rmtree(job.place, ignore_errors=True)


if __name__ == "__main__":
    main()
