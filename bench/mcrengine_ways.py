"""mcrEngine's five ways (SC12, Table V) and Cairn's, on a cluster of the testbed: each writes a version and reads it back, and says when its steps ended.

alone   every process writes its own file, as it is or by gzip
merged  every group's processes send their files to one process on a node beside them, which writes one file: as it is, by gzip, or by mcrEngine's codecs. Those are replayed, since bin/cairn_codecs_tables measures and
        keeps nothing: as many seconds of the processor, and as many bytes of noise
"""
import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

import race_cluster
from durable_sites import MEMORY
from durable_watchers import Watchers
from race_cluster import Trouble

HERE = os.path.dirname(os.path.realpath(__file__))
NODE_PROGRAM = os.path.join(HERE, "mcrengine_node.py")
PAPERS = {"NoC+NoAgg": ("alone", None), "C+NoAgg": ("alone", "gzip"), "NoC+Agg": ("merged", None), "Agnostic+Agg": ("merged", "gzip"), "Aware+Agg": ("merged", "replay")}
CAIRNS = {f"Cairn {codec}": codec for codec in ("off", "fast", "small", "auto")}
READY_S = 0.5  # until every process of a way runs, with 25 ms more for each
WAIT_S = 600
FIRST_PORT = 7000


class Replayed(NamedTuple):
    """What mcrEngine's codecs take of one group: seconds of a processor, and bytes. Merging counts as the first pass, splitting as its way back."""
    stored: int
    first_s: float
    second_s: float
    first_back_s: float
    second_back_s: float


def replayed(rows):
    """Of the rows of bin/cairn_codecs_tables: aware, not in blocks."""
    one, two = ({row["passes"]: row for row in rows if (row["scheme"], row["block"], row["pipeline"]) == ("aware", 0, "mcrengine")}[passes] for passes in (1, 2))
    return Replayed(two["stored"] + two["layout"], one["merge_s"] + one["encode_s"], two["encode_s"] - one["encode_s"], one["split_s"] + one["decode_s"], two["decode_s"] - one["decode_s"])


def measure_replay(build, folder):
    said = subprocess.run([os.path.join(build, "bin", "cairn_codecs_tables"), "--only", "mcrengine", "--blocks", "32768", "--one-group", folder], capture_output=True, text=True, check=True).stdout
    return replayed(json.loads(said)["sets"][0]["rows"])


def spans(begun, ended):
    """{step: seconds}: from when the last process had done with the step before until the last had done with this one; `ended`: {step: moment} of each process."""
    last = {}
    for each in ended:
        for step, moment in each.items():
            last[step] = max(moment, last.get(step, begun))
    out, before = {}, begun
    for step, moment in sorted(last.items(), key=lambda item: item[1]):
        out[step] = max(0.0, moment - before)
        before = max(before, moment)
    return out


class Set:
    """The processes' files of one set on the nodes, and what merging their groups takes."""

    def __init__(self, folder, nodes, replays):
        self.nodes, self.replays = nodes, replays
        self.files = [sorted(os.path.join(folder, str(node), name) for name in os.listdir(os.path.join(folder, str(node)))) for node in range(len(nodes))]
        self.sizes = [[os.path.getsize(file) for file in files] for files in self.files]
        self.whole = [os.path.join(folder, f"group-{node}.raw") for node in range(len(nodes))]
        self.bytes = sum(map(sum, self.sizes))
        self.count = sum(map(len, self.files))


class Paper:
    """One of the five ways."""

    def __init__(self, cluster, name, data, folder, merger):
        """`merger`: the node that merges."""
        self.cluster, self.name, self.data, self.merger = cluster, name, data, merger
        self.shape, self.codec = PAPERS[name]
        self.folder, self.local = f"{cluster.shared}/{folder}/{name}", f"{MEMORY}/{folder}-{name}"
        race_cluster.on_all(cluster, [*data.nodes, merger], ["mkdir", "-p", self.folder, self.local])
        self.stored = 0

    def _of_codec(self, group, back):
        if self.codec == "gzip":
            return ["--gzip"]
        if self.codec != "replay":
            return []
        of = self.data.replays[group]
        return ["--replay", str(of.stored), *map(str, (of.first_back_s, of.second_back_s) if back else (of.first_s, of.second_s))]

    def _alone(self, way, version):
        rank = 0
        for node, files in zip(self.data.nodes, self.data.files):
            for file in files:
                server = rank % len(self.cluster.servers)
                target = file if way == "write" else f"{self.local}/{os.path.basename(file)}"
                yield node, ["alone", way, "--file", target, "--stored", f"{self.folder}/{version}.{rank}", "--server", str(server), *self._of_codec(0, way == "read")]
                rank += 1

    def _merged(self, way, version):
        address = self.cluster.node(self.merger).address
        for group, (node, files) in enumerate(zip(self.data.nodes, self.data.files)):
            port = str(FIRST_PORT + group)
            more = ["--file", self.data.whole[group], "--sizes", ",".join(map(str, self.data.sizes[group]))] if way == "read" else []
            yield self.merger, ["merge", way, "--port", port, "--members", str(len(files)), "--stored", f"{self.folder}/{version}.{group}", "--server", str(group % len(self.cluster.servers)), *more,
                                *self._of_codec(group, way == "read")]
            for rank, file in enumerate(files):
                target = file if way == "write" else f"{self.local}/{os.path.basename(file)}"
                yield node, ["member", way, "--rank", str(rank), "--file", target, "--host", address, "--port", port]

    def _run(self, way, version):
        """(seconds, steps): all processes begin at one moment."""
        todo = list(self._alone(way, version) if self.shape == "alone" else self._merged(way, version))
        begun = time.monotonic() + READY_S + 0.05 * len(todo)
        started = [self.cluster.start(node, sys.executable, "-B", NODE_PROGRAM, *command, "--at", repr(begun), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for node, command in todo]
        said = [process.communicate(timeout=WAIT_S)[0] for process in started]
        if any(process.returncode for process in started):
            raise Trouble(f"{self.name}: version {version} could not be {'written' if way == 'write' else 'read'}")
        said = [json.loads(each) for each in said]
        if way == "write":
            self.stored = sum(each.get("stored", 0) for each in said)
        steps = spans(begun, [each["steps"] for each in said])
        return sum(steps.values()), steps

    def write(self, version):
        race_cluster.on_all(self.cluster, self.data.nodes[:1], ["sh", "-c", f"rm -f {self.folder}/*"])
        return self._run("write", version)

    def read(self, version):
        race_cluster.on_all(self.cluster, self.data.nodes, ["sh", "-c", f"rm -f {self.local}/*"])
        result = self._run("read", version)
        for node, files in zip(self.data.nodes, self.data.files):
            for file in files:
                self.cluster.run(node, "cmp", file, f"{self.local}/{os.path.basename(file)}")
        return result

    def stored_bytes(self, _):
        return self.stored

    def end(self):
        """Nothing runs any more, and the cluster takes the files with it."""


class Cairn:
    """One of Cairn's modes: `cairn watch` on the nodes, `cairn extract`. Its steps go on side by side, and nobody tells them apart."""

    def __init__(self, cluster, name, data, folder, build):
        self.watchers = Watchers(cluster, data.nodes, os.path.join(os.path.abspath(build), "bin", "cairn"), CAIRNS[name], folder, [len(files) for files in data.files],
                                 {"CAIRN_BACKGROUND_CPU": "normal"})
        self.sources = [os.path.dirname(files[0]) for files in data.files]

    def write(self, version):
        took = self.watchers.durable_s(version, self.sources)
        return took, {"flush": took}

    def read(self, version):
        took = self.watchers.back_s(self.sources, version)
        return took, {"extract": took}

    def stored_bytes(self, version):
        return self.watchers.stored_bytes(version)

    def end(self):
        self.watchers.end()
