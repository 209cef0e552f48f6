"""What the tests of faults stand on: a job without MPI on a cluster of the testbed, what one can see of a flush from outside, and the faults.

Cards are slow while a flush is watched, so that it lasts seconds, and fast otherwise. How far a flush is, is read from the disks of the servers:
which files a version has there, and how many bytes of them; nothing of Cairn is asked.
"""
import collections
import contextlib
import json
import math
import os
import select
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "testbed"))
import volume  # noqa: E402
from cluster import Cluster, Trouble, wait_for  # noqa: E402
from support import BUILD, COMMITTED, DEADLINE, NEWEST, OK, find  # noqa: E402

NODES, SERVERS, RANKS_PER_NODE, FILES = 4, 2, 2, 2
RANKS = NODES * RANKS_PER_NODE
IMAGE_BYTES = 4 << 20
NODE_MB_S, SERVER_MB_S = 12, 6  # while a flush is watched: about 3 s when both servers hold a part, 6 s when one does
SCRATCH = "/dev/shm"
SERIES = "series"
PING_S = 4          # until GlusterFS gives a silent server up
PEER_S = 2.5        # until Cairn gives a silent daemon up
SETTINGS = {
    "flush_files": FILES, "flush_block_bytes": 65536, "flush_buffer_bytes": 1 << 20,
    "network_heartbeat_ms": 250, "network_peer_timeout_ms": int(PEER_S * 1000),
    "deadlines_io_ms": 12000, "deadlines_version_ms": 6000, "deadlines_open_ms": 90000, "deadlines_restore_ms": 20000,
    "daemon_idle_s": 600, "daemon_start_wait_ms": 20000,
}
ANSWER_S = 60       # any single order; beyond it a rank hangs


class Failure(Exception):
    """A promise that was not kept."""


def check(true, what):
    if not true:
        raise Failure(what)


class Rank:
    """A process of the job on a node; ask() sends an order, answer() has what it said, or None when it is dead."""

    def __init__(self, site, node, rank):
        self.node, self.rank, self._heard = node, rank, b""
        words = [f"{key}={value}" for key, value in site.environment().items()]
        self.process = site.cluster.start(node, "env", *words, sys.executable, os.path.join(HERE, "faults_rank.py"), stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=site.said, start_new_session=True)

    def ask(self, *order):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write((json.dumps(order) + "\n").encode())
            self.process.stdin.flush()

    def answer(self, end):
        out = self.process.stdout.fileno()
        while b"\n" not in self._heard:
            left = end - time.monotonic()
            if not select.select([out], [], [], max(0, left))[0]:
                if left > 0:
                    continue
                raise Failure(f"rank {self.rank} on {self.node} hangs")
            data = os.read(out, 1 << 16)
            if not data:
                return None
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()  # nsenter alone: the rank itself is then found by check_empty
            self.process.wait(10)
        self.process.stdout.close()


class Job:
    """Ranks on nodes: place[rank] is a node. Orders go to all that live, answers are by rank."""

    number = 0

    def __init__(self, site, place, opened=True):
        """opened: only when all are in. Else await_open says so later."""
        Job.number += 1
        self.run = Job.number
        self.ranks = [Rank(site, node, rank) for rank, node in enumerate(place)]
        about = {"name": SERIES, "ranks": len(place), "run": self.run, "job": f"job-{os.getpid()}-{self.run}", "bytes": IMAGE_BYTES}
        for rank in self.ranks:
            rank.ask("open", {**about, "rank": rank.rank})
        if opened:
            self.await_open()

    def await_open(self):
        self.all_ok(self.answers(within_s=ANSWER_S + SETTINGS["deadlines_open_ms"] / 1000), "open")

    def tell(self, *order, nodes=None):
        told = [rank for rank in self.ranks if nodes is None or rank.node in nodes]
        for rank in told:
            rank.ask(*order)
        return told

    def answers(self, told=None, within_s=ANSWER_S):
        end = time.monotonic() + within_s
        found = {rank.rank: rank.answer(end) for rank in (self.ranks if told is None else told)}
        return {rank: answer for rank, answer in found.items() if answer is not None}

    def all(self, *order, nodes=None):
        return self.answers(self.tell(*order, nodes=nodes))

    def all_ok(self, answers, what):
        check(len(answers) == len(self.ranks), f"{what}: ranks {sorted({r.rank for r in self.ranks} - set(answers))} ended")
        wrong = [f"rank {rank}: {answer['text']}" for rank, answer in answers.items() if answer["status"] != OK]
        check(not wrong, f"{what}: {'; '.join(wrong)}")  # all: one that gave up early is why the others waited in vain

    def commit(self, version):
        self.all_ok(self.all("checkpoint", version), f"checkpoint {version}")
        self.all_ok(self.all("wait", version, COMMITTED, 30000), f"wait for version {version}")

    def restored(self):
        """(version, the run that took it) of the newest: what all ranks agree on, bit for bit."""
        answers = self.all("restore", NEWEST)
        self.all_ok(answers, "restore")
        check(all(a["whole"] for a in answers.values()), f"restored bytes are wrong: {answers}")
        found = {(a["version"], a["run"]) for a in answers.values()}
        check(len(found) == 1, f"ranks restored different versions: {answers}")
        return found.pop()

    def end(self, site, nodes):
        """The processes are gone at the end: closed when all live, else killed, as a launcher does with a job that lost a node."""
        if {rank.node for rank in self.ranks} <= set(nodes):
            self.all_ok(self.all("close"), "close")
        else:
            site.kill(nodes, "python")
        for rank in self.ranks:
            rank.end()


class Site:
    """The cluster with its file system, and one case's directories on it."""

    def __init__(self, name, folder):
        self.folder = folder
        self.said = open(os.path.join(folder, "said"), "w+")
        self.case, self.settings = "none", {}
        self.cluster = Cluster(NODES, NODE_MB_S, SERVERS, SERVER_MB_S, 512, name)
        try:
            volume.create(self.cluster, PING_S)
            self.speed(slow=False)
        except BaseException:
            self.down()
            raise

    def down(self):
        self.cluster.down()
        self.said.close()

    @property
    def nodes(self):
        return self.cluster.compute

    @property
    def persistent(self):
        return f"{volume.MOUNT}/{self.case}"

    def environment(self):
        return {"CAIRN_BUILD": BUILD, "CAIRN_CONFIG": "", "CAIRN_PATHS_SCRATCH": SCRATCH, "CAIRN_PATHS_PERSISTENT": self.persistent,
                "CAIRN_DAEMON_PROGRAM": find("cairnd"), "PYTHONDONTWRITEBYTECODE": "1",
                **{"CAIRN_" + key.upper(): str(value) for key, value in {**SETTINGS, **self.settings}.items()}}

    def speed(self, slow):
        for node in self.cluster.compute + self.cluster.servers:
            rate = SERVER_MB_S if node in self.cluster.servers else NODE_MB_S
            self.cluster.rate(node, rate if slow else 0)

    def cairn(self, node, *words, within_s=ANSWER_S):
        """A `cairn` command on a node: (exit code, output, errors)."""
        line = ["env", *(f"{key}={value}" for key, value in self.environment().items()), find("cairn"), *map(str, words)]
        try:
            done = subprocess.run(self.cluster.command(node, line), capture_output=True, text=True, timeout=within_s, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise Failure(f"`cairn {' '.join(map(str, words))}` on {node} hangs") from None
        return done.returncode, done.stdout, done.stderr

    # ---- what one sees from outside ----

    def on_disks(self, version):
        """Of each file of a version on a server's disk: (its name, the server, os.stat of it)."""
        for server in self.cluster.servers:
            place = f"/proc/{self.cluster.node(server).pid}/root{volume.BRICK}/{self.case}/{SERIES}/{version}"
            with contextlib.suppress(OSError):
                for entry in os.scandir(place):
                    with contextlib.suppress(OSError):
                        about = entry.stat()
                        if stat.S_IMODE(about.st_mode) != stat.S_ISVTX:  # GlusterFS's pointer to another server
                            yield entry.name, server, about

    def stored(self, version):
        """What the servers' disks have of a version: {file: (server, bytes that are really there)}."""
        return {name: (server, about.st_blocks * 512) for name, server, about in self.on_disks(version)}

    def part_bytes(self, version):
        """As long as its parts say they are, holes included."""
        return sum(about.st_size for name, _, about in self.on_disks(version) if name.startswith("part-"))

    def stored_bytes(self, version):
        """In the parts of the attempt that has come furthest; those of one attempt share the last word of their names."""
        of_attempts = collections.Counter()
        for name, (_, size) in self.stored(version).items():
            if name.startswith("part-"):
                of_attempts[name.rsplit(".", 1)[-1]] += size
        return max(of_attempts.values(), default=0)

    def committed(self, version):
        return any(name.startswith("manifest.") for name in self.stored(version))

    def processes(self, node):
        """(process id of the host, name) of all that runs on a node."""
        found = []
        for pid in self.cluster.node(node).processes():
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/comm") as f:
                    found.append((pid, f.read().strip()))
        return found

    def daemon(self, node):
        """Process id of a node's daemon, or None."""
        return next((pid for pid, name in self.processes(node) if name == "cairnd"), None)

    def kill(self, nodes, name):
        """Ends the processes of that name on these nodes."""
        for node in nodes:
            for pid, theirs in self.processes(node):
                if theirs.startswith(name):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def in_scratch(self, node, version):
        """Ranks whose images of a version a node's scratch has."""
        code, out, err = self.cairn(node, "ls", SERIES, "--json")
        check(code == 0, f"cairn ls on {node}: {err}")
        [series] = json.loads(out)["checkpoints"]
        return sorted({rank for row in series["versions"] if row["version"] == version for rank in row["scratch_ranks"]})

    def received_bytes(self):
        """By all daemons, from others."""
        found = 0
        for node in self.nodes:
            code, out, _ = self.cairn(node, "status", "--json")
            found += sum(each["received_bytes"] for each in json.loads(out)["nodes"]) if code == 0 else 0
        return found

    def start_io_node(self, node):
        code, out, err = self.cairn(node, "start", "--io-node")
        check(code == 0, f"cairn start --io-node on {node}: {out}{err}")

    def log(self, node):
        """Of a node's daemon, as far as the node has it."""
        text, place = "", f"/proc/{self.cluster.node(node).pid}/root{SCRATCH}"
        with contextlib.suppress(OSError):
            for entry in sorted(os.listdir(place)):
                with contextlib.suppress(OSError), open(f"{place}/{entry}/log", errors="replace") as f:
                    text += f.read()
        return text

    def logs(self):
        """Of all daemons: for whoever reads a failure."""
        text = "".join(f"--- {node}\n{self.log(node)}" for node in self.nodes)
        self.said.flush()
        self.said.seek(0)
        return text + "--- said by ranks\n" + self.said.read()[-4000:]

    # ---- a case ----

    def begin(self, case, settings):
        """settings: of this case alone."""
        self.case, self.settings = case, settings
        self.cluster.run("n0", "mkdir", self.persistent)

    def stop(self, nodes, unfinished):
        """`cairn stop` ends every daemon; 8 says that something is not committed."""
        for node in nodes:
            code, out, err = self.cairn(node, "stop", "--wait", "5 s", within_s=30)
            check(code in ((0, 8) if unfinished else (0,)), f"cairn stop on {node} ended with {code}: {out}{err}")

    def clear(self):
        """As the case found it."""
        for node in self.nodes:
            self.cluster.run(node, "sh", "-c", f"rm -rf {SCRATCH}/cairn-*")

        def removed():
            # A client that died in the middle of a call leaves names that the servers settle after it fell silent; until then a directory may not be empty, though nothing is listed.
            done = subprocess.run(self.cluster.command("n0", ["rm", "-rf", self.persistent]), capture_output=True, text=True)
            self.left = done.stderr.strip()
            return done.returncode == 0

        try:
            wait_for("the removal of the case's files", removed, 5 * PING_S)
        except Trouble as trouble:
            raise Trouble(f"{trouble}: {self.left}") from None

    def check_empty(self, nodes):
        """Nothing of the case runs any more but the file system."""
        def left():
            return [f"{name} on {node}" for node in nodes for _, name in self.processes(node) if not name.startswith("glusterfs")]

        try:
            wait_for("the end", lambda: not left(), 10)
        except Trouble:
            raise Failure(f"left running: {left()}") from None


@dataclass(frozen=True)
class Fault:
    begin: object           # (site, where)
    end: object = None      # None: it does not pass
    lasts_s: float = 0      # infinite: until version 2 is committed
    settings: dict = field(default_factory=dict)


def await_keeper(site, node):
    """Nobody starts the daemon by hand. A rank that waits may be quicker than the keeper, which says what it saw all the same."""
    def back():
        log = site.log(node)
        return 0 < log.count(" daemon-died ") < log.count(" started version=")

    try:
        wait_for(f"the daemon on {node}", back, 10)
    except Trouble:
        raise Failure(f"the daemon on {node} was not started again by its keeper") from None


def signal_daemon(number):
    def send(site, node):
        pid = site.daemon(node)
        check(pid, f"no daemon on {node}")
        os.kill(pid, number)
    return send


def end_away(site, node):
    check(site.daemon(node) is None, f"somebody has started a daemon on {node}: it was not away")
    code, out, err = site.cairn(node, "start")
    check(code == 0, f"cairn start on {node}: {out}{err}")


def fill(site, server):
    site.cluster.fill(server, 0)


FAULTS = {
    "node killed": Fault(lambda site, where: site.cluster.crash(where)),
    "daemon killed": Fault(signal_daemon(signal.SIGKILL), await_keeper),
    "daemon away": Fault(signal_daemon(signal.SIGKILL), end_away, 2 * PEER_S, {"daemon_restart": "false"}),
    "daemon paused": Fault(signal_daemon(signal.SIGSTOP), signal_daemon(signal.SIGCONT), 3 * PEER_S),
    "node paused": Fault(lambda site, where: site.cluster.pause(where), lambda site, where: site.cluster.resume(where), 3 * PEER_S),
    "cable out": Fault(lambda site, where: site.cluster.link(where, False), lambda site, where: site.cluster.link(where, True), 3 * PEER_S),
    "packets lost": Fault(lambda site, where: site.cluster.drop(where, 5), lambda site, where: site.cluster.drop(where, 0), 3 * PEER_S),
    "node left": Fault(lambda site, where: site.cluster.pause(where)),
    "server killed": Fault(lambda site, where: site.cluster.crash(where), lambda site, where: volume.boot(site.cluster, where), 2 * PING_S),
    "server paused": Fault(lambda site, where: site.cluster.pause(where), lambda site, where: site.cluster.resume(where), 2 * PING_S),
    "server full": Fault(fill, lambda site, where: site.cluster.fill(where, None), 8),
    "server missing": Fault(lambda site, where: site.cluster.crash(where), lambda site, where: volume.boot(site.cluster, where), 2 * PING_S),
    "server slow": Fault(lambda site, where: site.cluster.rate(where, SERVER_MB_S / 5),
                         lambda site, where: site.cluster.rate(where, SERVER_MB_S), math.inf),
    "card slow": Fault(lambda site, where: site.cluster.rate(where, NODE_MB_S / 5),
                       lambda site, where: site.cluster.rate(where, NODE_MB_S), math.inf),
}


__all__ = ["COMMITTED", "DEADLINE", "FAULTS", "Failure", "Job", "NEWEST", "OK", "Site", "check"]
