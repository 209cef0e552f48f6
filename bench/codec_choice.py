#!/usr/bin/env python3
"""Whether `flush.codec = "auto"` is ever later than `off`, or much later than `fast`: simulated flushes over storage of 5 MB/s to 5 GB/s, for data that codecs make much of and nothing of, and for data half of which is of the other kind.

Usage: bench/codec_choice.py build/release/bin/cairn        makes the table in bench/results/codec-choice.txt, in half a minute; the same every time
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from report import table  # noqa: E402

CLUSTER = """
[job]
nodes = 8
ranks_per_node = 2
image_bytes = "{image}"
imbalance = 0.1
files = 4
versions = {versions}
[node]
nic_out_bytes_per_s = 10e9
nic_in_bytes_per_s = 10e9
memory_bytes_per_s = "4 GiB"
scratch_bytes_per_s = "8 GiB"
checksum_bytes_per_s = "8 GiB"
[storage]
servers = 4
server_bytes_per_s = {server}
targets = 4
target_bytes_per_s = {server}
[flush]
codec = "{codec}"
leaders = 8
[codec]
ratio = {ratio}
bytes_per_s = {encode}
hard_share = {hard}
hard_ratio = 1.1
hard_bytes_per_s = 40e6
"""
LEARNING = 2  # versions that do not count: all ways have them
VERSIONS = 12
SEEDS = range(1, 6)
SINKS = (5e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1e9, 2e9, 3e9, 5e9)


def flush_s(cairn, **values):
    """Of the versions that count, one after the other; the mean of several seeds, which draw the images' sizes."""
    text = CLUSTER.format(versions=LEARNING + VERSIONS, image="64 MiB" if values["server"] > 50e6 else "16 MiB", **values)
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        answers = [json.loads(subprocess.run([cairn, "simulate", file.name, "--json", "--seed", str(seed)], capture_output=True, text=True, check=True).stdout)[0] for seed in SEEDS]
    return sum(version["flush_s"] for answer in answers for version in answer["versions"][LEARNING:]) / len(SEEDS)


def main():
    cairn = sys.argv[1]
    rows, worst = [], 0
    for ratio, encode, hard in ((3, 500e6, 0), (1.5, 500e6, 0), (1.5, 50e6, 0), (1.02, 500e6, 0), (4, 1e9, 0.5)):
        for sink in SINKS:
            took = {codec: flush_s(cairn, codec=codec, server=sink / 4, ratio=ratio, encode=encode, hard=hard) for codec in ("off", "fast", "auto")}
            worst = max(worst, took["auto"] / took["off"])
            rows.append([f"{ratio}", f"{8 * encode / 1e6:.0f}", f"{hard:.1f}", f"{sink / 1e6:.0f}", *(f"{took[codec] / VERSIONS:.3f}" for codec in took), f"{took['auto'] / took['off']:.3f}",
                         f"{took['auto'] / min(took.values()):.3f}"])
    print(table(["ratio", "nodes encode MB/s", "hard", "storage MB/s", "off s", "fast s", "auto s", "auto / off", "auto / the sooner"], rows))
    print(f"\nauto / off at most {worst:.3f}")


if __name__ == "__main__":
    main()
