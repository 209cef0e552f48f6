#!/usr/bin/env python3
"""When it pays to encode before data are sent (`flush.encode_at = "follower"`): simulated flushes over networks and storage of several rates, with few leaders and many, for codecs that are fast or slow and make much or little of the data.

Usage: bench/encode_at.py build/release/bin/cairn        makes the tables in bench/results/encode-at.txt, in some minutes; the same every time
"""
import itertools
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from report import table  # noqa: E402

NODES, RANKS, IMAGE = 8, 2, 64 << 20
CLUSTER = """
[job]
nodes = {nodes}
ranks_per_node = {ranks}
image_bytes = {image}
imbalance = 0.1
files = {leaders}
versions = {versions}
[node]
nic_out_bytes_per_s = {card}
nic_in_bytes_per_s = {card}
memory_bytes_per_s = "4 GiB"
scratch_bytes_per_s = "8 GiB"
checksum_bytes_per_s = "8 GiB"
[storage]
servers = 4
server_bytes_per_s = {server}
targets = 4
target_bytes_per_s = {server}
spans = 1
[flush]
codec = "{codec}"
encode_at = "{at}"
leaders = {leaders}
[codec]
ratio = {ratio}
bytes_per_s = {encode}
"""
LEARNING, VERSIONS = 1, 3
SEEDS = (1, 2)
CARDS = (125e6, 1.25e9, 12.5e9)
SINKS = (100e6, 1e9, 5e9)
LEADERS = (1, 2, 4, 8)
CODECS = ((1.5, 500e6), (3, 500e6), (1.5, 2e9), (1.5, 50e6))
WAYS = {"off": ("off", "leader"), "leader": ("fast", "leader"), "follower": ("fast", "follower")}
DIFFERENT = 1.03
ALL_BYTES = NODES * RANKS * IMAGE


def flush_s(cairn, **values):
    """Of one version, once the first is over; the mean of the seeds, which draw the images' sizes."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(CLUSTER.format(nodes=NODES, ranks=RANKS, image=IMAGE, versions=LEARNING + VERSIONS, **values))
        file.flush()
        answers = [json.loads(subprocess.run([cairn, "simulate", file.name, "--json", "--seed", str(seed)], capture_output=True, text=True, check=True).stdout)[0] for seed in SEEDS]
    return sum(version["flush_s"] for answer in answers for version in answer["versions"][LEARNING:]) / len(SEEDS) / VERSIONS


def main():
    cairn = sys.argv[1]
    rows, alike, later = [], [], []
    for (ratio, encode), leaders, card, sink in itertools.product(CODECS, LEADERS, CARDS, SINKS):
        took = {way: flush_s(cairn, codec=codec, at=at, leaders=leaders, card=card, server=sink / 4, ratio=ratio, encode=encode) for way, (codec, at) in WAYS.items()}
        sooner = took["leader"] / took["follower"]
        what = [ratio, f"{encode / 1e6:.0f}", leaders, f"{card / 1e6:.0f}", f"{sink / 1e6:.0f}", *(f"{took[way]:.2f}" for way in WAYS), f"{sooner:.2f}", f"{took['off'] / took['follower']:.2f}",
                f"{ALL_BYTES / leaders / encode:.2f}", f"{ALL_BYTES / NODES / encode:.2f}"]
        if 1 / DIFFERENT < sooner < DIFFERENT:
            alike.append((leaders, sooner))
        else:
            (rows if sooner > 1 else later).append(what)
    names = ["ratio", "encode MB/s", "leaders", "card MB/s", "storage MB/s", "off s", "leader s", "follower s", "sooner", "than off", "leaders encode s", "each node s"]
    print("Where followers that encode are sooner:\n\n" + table(names, rows))
    print("\nWhere they are later:\n\n" + table(names, later))
    print("\nOf " + f"{len(CODECS) * len(LEADERS) * len(CARDS) * len(SINKS)} cases " + f"{len(rows)} are sooner, {len(later)} later by more than {DIFFERENT - 1:.0%}; those that are as soon, by leaders: " +
          ", ".join(f"{leaders}: {sum(each[0] == leaders for each in alike)} of {len(CODECS) * len(CARDS) * len(SINKS)}" for leaders in LEADERS))


if __name__ == "__main__":
    main()
