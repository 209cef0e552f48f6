"""The ways of bench/orchestration on a cluster of the testbed: who writes, and what is counted: bytes on each server, files that grow there, which file a node's writes belong to."""
import contextlib
import json
import os
import selectors
import subprocess
import sys
import time

import race_cluster
import volume
from cluster import wait_for
from orchestration_plan import LIMIT, WAYS
from race_cluster import Trouble

HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAM = os.path.join(HERE, "orchestration_node.py")
STRIPED, STRIPED_MOUNT = "striped", "/mnt/striped"
STRIPED_BRICK = "/mnt/local/brick/striped"
MEMORY = "/dev/shm"
ANSWER_S = 600
EVERY_S = 0.25  # a sample of what grows
SOON_S = 0.5    # until all of a way know when to begin


def create_volumes(cluster):
    """The usual one, and one that cuts each file in 4 MiB, the least that GlusterFS knows, over all servers."""
    volume.create(cluster)

    def gluster(*words):
        cluster.run("s0", "gluster", "--mode=script", "volume", *words)

    gluster("create", STRIPED, *[f"{server}:{STRIPED_BRICK}" for server in cluster.servers], "force")
    gluster("set", STRIPED, "features.shard", "on")
    gluster("set", STRIPED, "features.shard-block-size", "4MB")
    gluster("set", STRIPED, "performance.client-io-threads", "on")
    gluster("start", STRIPED)
    race_cluster.on_all(cluster, cluster.compute, ["sh", "-ec", f"mkdir -p {STRIPED_MOUNT}; glusterfs --volfile-server=s0 --volfile-id={STRIPED} --log-file=/mnt/local/log/striped.log {STRIPED_MOUNT} </dev/null >/dev/null 2>&1"])
    for node in cluster.compute:
        wait_for(f"{STRIPED_MOUNT} on {node}", lambda node=node: f" {STRIPED_MOUNT} fuse.glusterfs" in cluster.run(node, "cat", "/proc/mounts"), 30)


class Helper:
    """A program on a node that takes orders and answers in JSON."""

    def __init__(self, cluster, node, words, environment=None):
        self.node, self.words, self._heard = node, words, b""
        told = ["env", *[f"{key}={value}" for key, value in (environment or {}).items()]]
        self.process = cluster.start(node, *told, sys.executable, "-B", PROGRAM, *map(str, words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=race_cluster.clean_environment())

    def order(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def answer(self):
        out, end = self.process.stdout, time.monotonic() + ANSWER_S
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while b"\n" not in self._heard:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise Trouble(f"{self.node}: {' '.join(map(str, self.words))}: no answer in {ANSWER_S} s")
                data = os.read(out.fileno(), 1 << 16)
                if not data:
                    raise Trouble(f"{self.node}: {' '.join(map(str, self.words))} ended with {self.process.wait(60)}")
                self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def end(self):
        self.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


class Growth:
    """On each server: how many files were being written in each sample."""

    def __init__(self, cluster):
        self.helpers = [Helper(cluster, server, ["growth", volume.BRICK, STRIPED_BRICK, EVERY_S]) for server in cluster.servers]
        for helper in self.helpers:
            helper.answer()

    def begin(self):
        for helper in self.helpers:
            helper.order("begin")

    def end_sample(self):
        """Of each server, the samples in which anything grew."""
        for helper in self.helpers:
            helper.order("end")
        return [[count for count in helper.answer()["samples"] if count] for helper in self.helpers]

    def end(self):
        for helper in self.helpers:
            helper.end()


class Way:
    """The processes of one job on the nodes, which write version after version in one way."""

    def __init__(self, cluster, name, processes, build):
        self.cluster, self.name, self.processes = cluster, name, processes
        self.each = processes // len(cluster.compute)
        self.key = f"{name}-{processes}"
        self.cairn = os.path.join(build, "bin", "cairn")
        self.persistent = f"{volume.MOUNT}/{self.key}"
        self.plain = f"{volume.MOUNT if name == LIMIT else STRIPED_MOUNT}/{self.key}"
        self.local = f"{MEMORY}/{self.key}"
        self.environment = {}
        if WAYS[name] is not None:
            settings = {"paths_scratch": self.local, "paths_persistent": self.persistent, "daemon_program": os.path.join(build, "bin", "cairnd"), "config": "", "flush_codec": "off", "background_cpu": "normal",
                        "retention_scratch_last": 1, "retention_persistent_last": 1, "trace_file": f"{self.local}/trace.json", "daemon_idle_s": 600, "deadlines_open_ms": 120000, **WAYS[name]}
            self.environment = {"CAIRN_BUILD": build, **{"CAIRN_" + key.upper(): value for key, value in settings.items()}}
        race_cluster.on_all(cluster, cluster.compute, ["mkdir", "-p", self.local, self.persistent if self.environment else self.plain])
        kind = ["cairn", self.key] if self.environment else ["plain", self.plain]
        self.helpers = []
        for index, node in enumerate(cluster.compute):
            more = [processes, f"job-{self.key}-{os.getpid()}"] if self.environment else [len(cluster.servers) if name == LIMIT else 0]
            self.helpers.append(Helper(cluster, node, [*kind, index * self.each, self.each, *more], self.environment))
        for helper in self.helpers:
            helper.answer()

    def write(self, version, image_bytes):
        begun = time.monotonic() + SOON_S + image_bytes * self.each / 1e9
        for helper in self.helpers:
            helper.order("go", version, image_bytes, repr(begun))
        said = [helper.answer() for helper in self.helpers]
        return {"durable_s": max(each["durable"] for each in said) - begun, "captured_s": max(each["captured"] for each in said) - begun, "begun": begun,
                "changes": [changes(sorted(map(tuple, each["writes"]))) for each in said if each["writes"]]}

    def bytes_by_server(self, version):
        """Of the version's files, on the servers' disks; what a daemon removes meanwhile is another version's."""
        brick = f"{volume.BRICK}/{self.key}" + (f"/{self.key}/{version}" if self.environment else "") if self.name != "traditional" else STRIPED_BRICK
        names = ["("] + ["-name", "part-*", "-o", "-name", "rank-*", ")"] if self.environment else ["!", "-path", "*/.glusterfs/*"]
        held = []
        for server in self.cluster.servers:
            said = self.cluster.run(server, "sh", "-c", 'test -d "$1" || exit 0; exec find "$@"', "sh", brick, *names, "-type", "f", "-printf", "%b\\n")
            held.append(sum(int(blocks) * 512 for blocks in said.split()))
        return held

    def forget(self):
        """A plain writer keeps one version, too."""
        if not self.environment:
            race_cluster.on_all(self.cluster, self.cluster.compute[:1], ["sh", "-c", f"rm -f {self.plain}/*"])
            wait_for("the shards of removed files to be gone", lambda: not any(self.bytes_by_server(0)), 120)  # they go behind

    def end(self):
        """Also the traces are whole then: {node: spans}."""
        for helper in self.helpers:
            helper.close()  # ranks of one job end together
        for helper in self.helpers:
            helper.end()
        if not self.environment:
            return {}
        with contextlib.suppress(Trouble):
            race_cluster.on_all(self.cluster, self.cluster.compute, [self.cairn, "stop"], self.environment)
        return {node: spans_of(self.cluster, node, self.local) for node in self.cluster.compute}


def changes(writes):
    """How often the file is another than that of the write before; `writes`: (moment, file), in order."""
    return sum(one[1] != other[1] for one, other in zip(writes, writes[1:]))


def spans_of(cluster, node, folder):
    """(begin, end, what, track, rank) of a node's daemon, in seconds."""
    spans = []
    for text in cluster.run(node, "sh", "-c", f"cat {folder}/trace-cairnd-*.json 2>/dev/null || true").split("\n"):
        with contextlib.suppress(ValueError):
            event = json.loads(text.strip().strip("[],"))
            if isinstance(event, dict) and event.get("ph") == "X":
                begin = event["ts"] / 1e6
                spans.append((begin, begin + event["dur"] / 1e6, event["name"], event.get("args", {}).get("rank"), event.get("tid")))
    return sorted(spans)


def of_flush(spans, begun, took):
    """Of the writes of a node between two moments: changes of file, the most files at once, and how long the node wrote nothing between two files, of the time of its writes."""
    writes = [span for span in spans if span[2] == "write local" and begun <= span[0] <= begun + took]
    if not writes:
        return None
    ranks = {}
    for begin, end, _, rank, _ in writes:
        first, last = ranks.get(rank, (begin, end))
        ranks[rank] = (min(first, begin), max(last, end))
    moments = sorted([(first, 1) for first, _ in ranks.values()] + [(last, -1) for _, last in ranks.values()])
    open_, most = 0, 0
    for _, step in moments:
        open_ += step
        most = max(most, open_)
    idle, reached = 0.0, writes[0][1]
    for begin, end, *_ in writes:
        idle += max(0.0, begin - reached)
        reached = max(reached, end)
    return {"changes": changes([(end, rank) for begin, end, _, rank, _ in sorted(writes, key=lambda span: span[1])]), "files": len(ranks), "at_once": most,
            "idle": idle / (reached - writes[0][0]) if reached > writes[0][0] else 0.0}
