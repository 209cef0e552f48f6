"""What the race does on a cluster of the testbed: an MPI job that takes commands, Cairn's daemons on the nodes, CPU seconds, measured rates."""
import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "testbed"))
import volume  # noqa: E402
from cluster import Cluster, Trouble, check_possible  # noqa: E402, F401 (bench/race has them from here)

MIB = 1 << 20
SCRATCH = "/dev/shm"
FOLDER = volume.MOUNT + "/race"
PERSISTENT = FOLDER + "/persistent"
PLAIN = FOLDER + "/plain"
START_S = 120          # an MPI job over all nodes
COMMAND_S = 120        # a command of Cairn's on every node
COUNTED = ("cairnd", "cairn_race", "glusterfs", "glusterfsd")
TICKS = os.sysconf("SC_CLK_TCK")


def clean_environment():
    """Nothing of the user's own Cairn: what the nodes' processes are told stands in the JSON."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")}


# MPI-IO keeps a shared file pointer, which nobody asked for, in a file that is opened before all nodes see it: then all wait for ever.
MPI_OPTIONS = ("--mca", "sharedfp", "^lockedfile")


class Job:
    """cairn_race over some nodes. ask() sends a command and gives its answer."""

    def __init__(self, cluster, program, hosts, arguments, environment, folder, io=None):
        """io: Open MPI's implementation of MPI-IO; None: the one that it takes."""
        options = MPI_OPTIONS + (("--mca", "io", io) if io else ())
        line = cluster.mpirun(hosts, [program] + [str(word) for word in arguments], options, environment)
        self._said = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, cwd=folder, start_new_session=True,
                                         env=clean_environment())
        self._heard = b""
        try:
            self.ready = self._answer("the start of the MPI job", START_S)
        except BaseException:
            self.kill()
            raise

    def ask(self, command, within_s):
        try:
            self._process.stdin.write((command + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: told below, with what it said
        return self._answer(command, within_s)

    def _answer(self, what, within_s):
        """The next answer; other lines (libraries that print) are passed over."""
        out = self._process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while True:
                line, newline, rest = self._heard.partition(b"\n")
                if newline:
                    self._heard = rest
                    if line.startswith(b"@race "):
                        return json.loads(line[6:])
                    continue
                if not selector.select(within_s):
                    raise Trouble(f"{what}: no answer within {within_s:.0f} s{self._last_words()}")
                data = os.read(out.fileno(), 1 << 16)
                if not data:
                    raise Trouble(f"{what}: the MPI job ended with {self._process.wait(60)}{self._last_words()}")
                self._heard += data

    def _last_words(self):
        self._said.seek(0)
        said = self._said.read().strip()
        return ":\n" + said[-3000:] if said else ""

    def end(self):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(60)
        self.kill()

    def kill(self):
        """mpirun ends its ranks when it is told to end; what then still lives is the nodes' and dies with them."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)
        for stream in (self._process.stdin, self._process.stdout, self._said):
            with contextlib.suppress(OSError):
                stream.close()


def first(count):
    """The first so many servers, as a command names them."""
    return ",".join(str(k) for k in range(count))


def make_folders(cluster):
    cluster.run("n0", "sh", "-ec", f"rm -rf {FOLDER}; mkdir -p {PERSISTENT} {PLAIN}")


def on_all(cluster, nodes, command, environment=None):
    """Runs a command on all these nodes at once; their outputs, in order."""
    words = ["env"] + [f"{key}={value}" for key, value in (environment or {}).items()] + list(command)
    started = [(node, cluster.start(node, *words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=clean_environment())) for node in nodes]
    out = []
    for node, process in started:
        try:
            said, complained = process.communicate(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Trouble(f"`{' '.join(command)}` on {node} did not end within {COMMAND_S} s") from None
        if process.returncode != 0:
            raise Trouble(f"`{' '.join(command)}` on {node} ended with {process.returncode}: {complained.strip() or said.strip()}")
        out.append(said)
    return out


def stop_daemons(cluster, nodes, cairn, environment):
    """They end; scratch is empty then, as on nodes that a job is given."""
    on_all(cluster, nodes, ["sh", "-c", f"{cairn} stop >/dev/null 2>&1; rm -rf {SCRATCH}/cairn-*"], environment)


LEADER_KEYS = ("node", "sent_bytes", "received_bytes", "written_bytes", "anonymous_peak_bytes", "attempts_failed", "last_flush_s",
               "last_flush_bytes", "writers")


def daemons(cluster, nodes, cairn, environment):
    """What `cairn status` says of each node's daemon."""
    found = []
    for text in on_all(cluster, nodes, [cairn, "status", "--json"], environment):
        found += [{key: node[key] for key in LEADER_KEYS if key in node} for node in json.loads(text)["nodes"]]
    return found


def bytes_by_server(cluster, folder):
    """Bytes that the parts in a folder of the file system take on each server's disk: asked there, since a client may remember older sizes."""
    held, brick = {}, volume.BRICK + folder[len(volume.MOUNT):]
    for server in cluster.servers:
        said = cluster.run(server, "find", brick, "-name", "part-*", "-type", "f", "-printf", "%b\\n")
        held[server] = sum(int(blocks) * 512 for blocks in said.split())
    return held


def cpu_seconds(cluster):
    """So far, of all processes of all nodes, by name of program."""
    spaces = set()
    for node in cluster.nodes.values():
        with contextlib.suppress(OSError):
            spaces.add(os.readlink(f"/proc/{node.pid}/ns/pid"))
    total = dict.fromkeys(COUNTED, 0.0)
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{entry}/ns/pid") not in spaces:
                continue
            with open(f"/proc/{entry}/stat") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            if name in total:
                fields = rest.split()
                total[name] += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def spent(before, after):
    return {name: round(after[name] - before[name], 3) for name in after}


def measured_rates(cluster, job, nodes, ranks, seconds, nominal):
    """Bytes a second that each node's card, then each server's, lets through into files: the better of two. nominal: MB/s they were set to."""
    def rate(words, bytes_):
        took = min(job.ask(f"plain bytes={bytes_} {words}", 60 + 20 * seconds)["seconds"] for _ in range(2))
        return bytes_ / took

    every = first(len(cluster.servers))
    rates = {"node": {}, "server": {}}
    for i, node in enumerate(nodes):
        mine = [str(i * ranks + r) for r in range(ranks)]
        writers = max(ranks, len(cluster.servers))
        limit = min(nominal["node"], nominal["server"] * len(cluster.servers))
        rates["node"][node] = rate(f"ranks={','.join(mine)} servers={every} count={writers}", int(seconds * limit * 1e6))
    for k, server in enumerate(cluster.servers):
        limit = min(nominal["server"], nominal["node"] * len(nodes))
        rates["server"][server] = rate(f"servers={k}", int(seconds * limit * 1e6))
    return rates
