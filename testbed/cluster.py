"""A scale model of a cluster on one machine.

A node is a set of namespaces (network, host name, IPC, mounts, processes) with its own /dev/shm, /run and /mnt/local (node-local storage, a
tmpfs), and one network card: a veth pair shaped in both directions, plugged into a bridge in a namespace of its own, the switch. No route leads
out. Compute nodes are n0, n1, ...; storage servers s0, s1, ...; `head` is the login node: the host's processes and files on the
cluster's network, unshaped.

Order kept: the lock of the cluster's name, the switch, the will, nodes, cards, state file; nothing is told to anybody before it works. Everything
hangs on one process, the keeper (whoever constructed Cluster): each node's first process dies with its keeper, even if that is killed, and with it
go the node's processes, mounts and cards. The rest is the will's affair (ending.py).

Rates are MB/s of 10^6 bytes, as network cards are sold; 0 means not shaped.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import ending
from ending import RUN, born, zombie

NET = "10.77.0"
HEAD = "head"
SWITCH = "switch"
LOCAL = "/mnt/local"
FILLER = LOCAL + "/filler"


class Trouble(Exception):
    """What failed, where, and what to do."""


def sh(*command, **more):
    """Runs a command to its end; Trouble with what it said when it fails. Its output."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise Trouble(f"`{' '.join(map(str, command))}` ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def check_possible():
    """Trouble unless this machine can be a cluster."""
    if os.geteuid() != 0:
        raise Trouble("the testbed makes namespaces and network cards: run it as root")
    needed = {"unshare": "util-linux", "nsenter": "util-linux", "setpriv": "util-linux", "ip": "iproute2", "tc": "iproute2", "iptables": "iptables"}
    path = "/usr/sbin:/sbin:" + os.environ.get("PATH", "")
    missing = sorted({package for tool, package in needed.items() if not _on(path, tool)})
    if missing:
        raise Trouble("missing packages: " + " ".join(missing) + " (scripts/setup testbed installs them)")
    # Root in a container is often root in name only.
    attempt = "mount -t tmpfs tmpfs /mnt; ip link add v0 type veth peer name v1; tc qdisc add dev v0 root tbf rate 8mbit burst 131072 limit 262144"
    try:
        sh("unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-ec", attempt)
    except Trouble as trouble:
        raise Trouble("root may not make namespaces with network cards here; in a container it needs CAP_SYS_ADMIN and CAP_NET_ADMIN "
                      f"(docker run --privileged): {trouble}") from None


def _on(path, tool):
    return any(os.access(os.path.join(folder, tool), os.X_OK) for folder in path.split(":"))


def wait_for(what, test, within_s):
    """Until test() is true; Trouble naming `what` when it does not become so."""
    end = time.monotonic() + within_s
    while True:
        value = test()
        if value:
            return value
        if time.monotonic() > end:
            raise Trouble(f"{what} did not happen within {within_s} s")
        time.sleep(0.02)


# What a node's first process does before it falls asleep for good. Parameters: host name, MiB of /mnt/local, hosts file, receive and send window.
# TCP: reno with small windows and deep queues in the cards is nearly lossless and shares fairly when many send to one; bbr, which many
# kernels have as default, is more than ten times unfair there, and a namespace can not choose cubic.
FIRST_PROCESS = """
trap "" CHLD
set -e
hostname "$1"
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /mnt; mkdir /mnt/local; mount -t tmpfs -o size="$2"m tmpfs /mnt/local
mount --bind "$3" /etc/hosts
mount -t tmpfs tmpfs /run; mkdir -p /run/lock /mnt/local/tmp
ip link set lo up
sysctl -qw net.ipv4.tcp_congestion_control=reno
sysctl -qw net.ipv4.tcp_rmem="4096 65536 $4" net.ipv4.tcp_wmem="4096 65536 $4"
exec sleep infinity
"""
WINDOW_BYTES = 512 << 10
QUEUE_MS = 200  # how long a byte may wait in a card's queue


class Node:
    """One node of a running cluster, as its state file tells it."""

    def __init__(self, name, pid, born, address, rate_mb_s):
        self.name, self.pid, self.born, self.address, self.rate_mb_s = name, pid, born, address, rate_mb_s

    def alive(self):
        """Its first process is; not whoever has got its number since."""
        return self.born != 0 and born(self.pid) == self.born

    def enter(self):
        """The command line that runs what follows it inside the node."""
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p"]

    def processes(self):
        """Process ids (of the host) of all that runs in the node, its first process apart."""
        mine = os.readlink(f"/proc/{self.pid}/ns/pid")
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != self.pid:
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{entry}/ns/pid") == mine:
                        found.append(int(entry))
        return found


class View:
    """A running cluster, seen from any process: what one does with it. Cluster below is its keeper's view."""

    def __init__(self, name="default"):
        self.name = name
        self.directory = os.path.join(RUN, name)
        try:
            with open(os.path.join(self.directory, "cluster.json")) as f:
                state = json.load(f)
        except FileNotFoundError:
            raise Trouble(f"no cluster \"{name}\" is up (testbed/tb up)") from None
        self.keeper, self.keeper_born = state["keeper"], state["keeper_born"]
        self.nodes = {n: Node(n, **about) for n, about in state["nodes"].items()}

    def node(self, name):
        if name not in self.nodes:
            raise Trouble(f"there is no node {name}; there are {' '.join(self.nodes)}")
        if not self.nodes[name].alive():
            raise Trouble(f"node {name} is dead")
        return self.nodes[name]

    @property
    def compute(self):
        return [n for n in self.nodes if n.startswith("n")]

    @property
    def servers(self):
        return [n for n in self.nodes if n.startswith("s") and n != SWITCH]

    def command(self, node, command, folder="/"):
        """The command line that runs `command` on a node, or on the login node."""
        if node == HEAD:
            inner = f'mount --bind {self.directory}/hosts /etc/hosts; cd "$1"; shift; exec "$@"'
            return ["nsenter", "-t", str(self.node(SWITCH).pid), "-n", "-u", "unshare", "-m", "--propagation", "private",
                    "sh", "-c", inner, HEAD, folder] + list(command)
        inner = 'export TMPDIR=/mnt/local/tmp; exec "$@"'
        return self.node(node).enter() + [f"--wd={folder}", "--", "sh", "-c", inner, node] + list(command)

    def run(self, node, *command, **more):
        """Runs a command on a node to its end; its output; Trouble when it fails."""
        return sh(*self.command(node, command), **more)

    def start(self, node, *command, **more):
        """Starts a command on a node: a Popen."""
        return subprocess.Popen(self.command(node, command), **more)

    # ---- cards ----

    def rates(self):
        """{node: MB/s of its card as it is shaped now}, by asking the switch's ends."""
        shown = json.loads(sh("nsenter", "-t", self.node(SWITCH).pid, "-n", "tc", "-j", "qdisc", "show"))
        shaped = {q["dev"]: q["options"]["rate"] / 1e6 for q in shown if q["kind"] == "tbf"}
        return {node: shaped.get("p-" + node, 0) for node in self.nodes}

    def rate(self, node, rate_mb_s):
        """The card of a node, both directions, from now on."""
        if node == SWITCH:
            raise Trouble("the switch has no card of its own: name a node")
        _shape(self.node(node).pid, "eth0", rate_mb_s)
        _shape(self.node(SWITCH).pid, "p-" + node, rate_mb_s)

    def link(self, node, up):
        """Plugs the cable of a node in or out; in: until the card has noticed, which takes up to a second."""
        self.node(node)
        sh("nsenter", "-t", self.node(SWITCH).pid, "-n", "ip", "link", "set", "p-" + node, "up" if up else "down")
        if up:
            show = ["nsenter", "-t", self.node(SWITCH).pid, "-n", "ip", "-d", "link", "show", "p-" + node]
            wait_for(f"the cable of {node}", lambda: "state UP" in self.run(node, "ip", "link", "show", "eth0") and "state forwarding" in sh(*show), 10)

    def drop(self, node, percent):
        """Loses that share of what arrives at a node, at random; 0 ends it."""
        enter = ["nsenter", "-t", str(self.node(node).pid), "-n", "iptables"]
        sh(*enter, "-F", "INPUT")
        if percent:
            sh(*enter, "-A", "INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random", "--probability", percent / 100, "-j", "DROP")

    # ---- nodes ----

    def kill(self, node):
        """The node loses power: every process, its memory and its /mnt/local are gone. It does not come back."""
        dying = self.node(node)
        os.kill(dying.pid, signal.SIGKILL)
        _let_go(dying)
        wait_for(f"the end of {node}", lambda: not dying.alive() or zombie(dying.pid), 10)

    def crash(self, node):
        """The node loses power, and can be booted again: cable out, every process killed, its memory gone. /mnt/local is its disk and stays."""
        self.link(node, False)

        def killed():
            left = self.node(node).processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            _let_go(self.node(node))
            return not left

        wait_for(f"the end of all processes of {node}", killed, 20)
        self.run(node, "sh", "-c", "find /dev/shm -mindepth 1 -delete")

    def boot(self, node):
        """After a crash: the cable is in again. Nothing runs yet; volume.boot brings a server or a mount back."""
        self.link(node, True)

    def pause(self, node):
        self._signal(node, signal.SIGSTOP)

    def resume(self, node):
        self._signal(node, signal.SIGCONT)
        _let_go(self.node(node))

    def _signal(self, node, number):
        """To all its processes; again for those that were forked meanwhile."""
        told = set()
        while True:
            fresh = [pid for pid in self.node(node).processes() if pid not in told]
            if not fresh:
                return
            for pid in fresh:
                told.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def fill(self, node, leave_bytes=0):
        """Fills /mnt/local of a node (a server's bricks) but for so many bytes; `fill` with leave_bytes = None ends it."""
        if leave_bytes is None:
            self.run(node, "rm", "-f", FILLER)
            return
        # Somebody may be writing: most of it at once, then what is left, until there is none. One command: each takes some ten milliseconds to begin.
        more = f"more=$(($(df --output=avail -B1 {LOCAL} | tail -n 1) - {leave_bytes}))"
        margin = 4 << 20
        self.run(node, "sh", "-c", f"rm -f {FILLER}; {more}; "
                                   f"if [ $more -gt {margin} ]; then fallocate -l $((more - {margin})) {FILLER} || exit 1; fi; "
                                   f"{more}; if [ $more -gt 0 ]; then head -c $more /dev/zero >> {FILLER} 2>/dev/null || true; fi")

    # ---- programs ----

    def mpirun(self, hosts, command, options=(), environment=None, folder="/"):
        """The command line of an MPI job; hosts: {"n0": 2, "n1": 2}. It starts on the login node and ends when one of its nodes dies."""
        env = [f"{key}={value}" for key, value in (environment or {}).items()]
        exports = [word for key in (environment or {}) for word in ("-x", key)]
        agent = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tb")
        line = ["env", "OMPI_MCA_plm_rsh_agent=" + agent + " --cluster " + self.name + " rsh", *env,
                "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--host", ",".join(f"{node}:{ranks}" for node, ranks in hosts.items()),
                "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_num_concurrent", "32",
                "--mca", "oob_tcp_if_include", NET + ".0/24", "--mca", "btl_tcp_if_include", NET + ".0/24",
                "--mca", "pml", "ob1", "--mca", "btl", "tcp,vader,self", "--mca", "mpi_yield_when_idle", "1",
                *exports, *options]
        return self.command(HEAD, line + list(command), folder)


class Cluster(View):
    """The keeper of a new cluster; a context manager. rates in MB/s, local in MiB."""

    def __init__(self, compute=8, compute_rate_mb_s=50, servers=4, server_rate_mb_s=50, local_mib=2048, name="default"):
        check_possible()
        if not 1 <= compute <= 80 or not 0 <= servers <= 80:
            raise Trouble("1 to 80 compute nodes and 0 to 80 servers, please")
        self.name = name
        self.directory = os.path.join(RUN, name)
        self.nodes, self.keeper, self._first, self._lock, self._will = {}, os.getpid(), [], None, None
        self.keeper_born = born(self.keeper)
        try:
            self._take_name()
            self._write_hosts(compute, servers)
            self._make_node(SWITCH, NET + ".1", 1, 0)
            self._make_will()
            self._bridge()
            for i in range(compute):
                self._make_node(f"n{i}", f"{NET}.{10 + i}", local_mib, compute_rate_mb_s)
            for i in range(servers):
                self._make_node(f"s{i}", f"{NET}.{100 + i}", local_mib, server_rate_mb_s)
            for node in self.nodes.values():
                self._settle(node)
            for node in self.nodes.values():
                if node.name != SWITCH:
                    self._plug(node)
            self._publish()
        except BaseException:
            self.down()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    def _take_name(self):
        ending.sweep()
        self._lock = ending.take(self.directory, make=True)
        if not self._lock:
            raise Trouble(f"a cluster \"{self.name}\" is up already (testbed/tb down, or choose another --cluster)")
        self._lock.truncate(0)
        self._lock.write(f"{self.keeper} {self.keeper_born}")
        self._lock.flush()

    def _make_will(self):
        program = [sys.executable, os.path.abspath(ending.__file__), self.directory]
        with open(os.path.join(self.directory, "will.log"), "w") as log:
            self._will = subprocess.Popen(["nsenter", "-t", str(self.nodes[SWITCH].pid), "-n", *program], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=log, start_new_session=True, cwd="/", text=True)
        if self._will.stdout.readline() != "ready\n":
            raise Trouble(f"{program[1]} ended at once")

    def _write_hosts(self, compute, servers):
        with open(os.path.join(self.directory, "hosts"), "w") as f:
            f.write(f"127.0.0.1 localhost\n{NET}.1 {HEAD}\n")
            f.writelines(f"{NET}.{10 + i} n{i}\n" for i in range(compute))
            f.writelines(f"{NET}.{100 + i} s{i}\n" for i in range(servers))

    def _make_node(self, name, address, local_mib, rate_mb_s):
        log = open(os.path.join(self.directory, name + ".log"), "w")
        first = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "--propagation", "private", "bash", "-c", FIRST_PROCESS, "node", HEAD if name == SWITCH else name, str(local_mib),
             os.path.join(self.directory, "hosts"), str(WINDOW_BYTES)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")
        log.close()
        self._first.append(first)
        self.nodes[name] = Node(name, 0, 0, address, rate_mb_s)
        self.nodes[name].first = first
        if name == SWITCH:
            self._settle(self.nodes[name])

    def _settle(self, node):
        """Until the node's first process sleeps: then all of FIRST_PROCESS has happened."""

        def asleep():
            if node.first.poll() is not None:
                with open(os.path.join(self.directory, node.name + ".log")) as f:
                    raise Trouble(f"node {node.name} could not be made: {f.read().strip() or 'no word why'}")
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{node.first.pid}/task/{node.first.pid}/children") as f:
                    pid = int(f.read().split()[0])
                with open(f"/proc/{pid}/comm") as f:
                    return pid if f.read().strip() == "sleep" else 0
            return 0

        node.pid = wait_for(f"node {node.name}", asleep, 20)
        node.born = born(node.pid)

    def _bridge(self):
        inside = ["nsenter", "-t", str(self.nodes[SWITCH].pid), "-n", "ip"]
        sh(*inside, "link", "add", "br0", "type", "bridge")
        sh(*inside, "link", "set", "br0", "up")
        sh(*inside, "addr", "add", NET + ".1/24", "dev", "br0")

    def _plug(self, node):
        switch = self.nodes[SWITCH].pid
        sh("nsenter", "-t", switch, "-n", "ip", "link", "add", "p-" + node.name, "type", "veth", "peer", "name", "eth0", "netns", node.pid)
        sh("nsenter", "-t", switch, "-n", "ip", "link", "set", "p-" + node.name, "master", "br0", "up")
        sh("nsenter", "-t", node.pid, "-n", "ip", "addr", "add", node.address + "/24", "dev", "eth0")
        sh("nsenter", "-t", node.pid, "-n", "ip", "link", "set", "eth0", "up")
        _shape(node.pid, "eth0", node.rate_mb_s)
        _shape(switch, "p-" + node.name, node.rate_mb_s)

    def _publish(self):
        state = {"keeper": self.keeper, "keeper_born": self.keeper_born,
                 "nodes": {n.name: {"pid": n.pid, "born": n.born, "address": n.address, "rate_mb_s": n.rate_mb_s} for n in self.nodes.values()}}
        path = os.path.join(self.directory, "cluster.json")
        self._will.stdin.write(json.dumps({n.pid: n.born for n in self.nodes.values()}) + "\n")
        self._will.stdin.flush()
        with open(path + ".new", "w") as f:
            json.dump(state, f, indent=1)
        os.rename(path + ".new", path)

    def down(self):
        """Ends every process of every node and of the login node, then takes the directory away. Safe to call again."""
        with ending.uninterrupted():
            ending.kill([first.pid for first in self._first if first.poll() is None])
            for node in self.nodes.values():
                _let_go(node)
            for first in self._first:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    first.wait(10)
            self._first = []
            with contextlib.suppress(Trouble):  # a first process is gone when all processes of its node are
                wait_for("the end of all nodes", lambda: all(zombie(node.pid) for node in self.nodes.values() if node.alive()), 10)
            if self._will:
                with contextlib.suppress(OSError):
                    self._will.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._will.wait(20)
                self._will.stdout.close()
                self._will = None
            if self._lock:
                ending.remove(self.directory, self._lock)
                self._lock = None


def _shape(pid, device, rate_mb_s):
    if rate_mb_s == 0:
        subprocess.run(["nsenter", "-t", str(pid), "-n", "tc", "qdisc", "del", "dev", device, "root"], capture_output=True)
        return
    burst = max(131072, int(rate_mb_s * 2000))  # 2 ms, and at least two full offloaded packets
    limit = int(burst + rate_mb_s * 1000 * QUEUE_MS)
    sh("nsenter", "-t", pid, "-n", "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{int(rate_mb_s * 8000)}kbit",
       "burst", burst, "limit", limit)


def _let_go(node):
    """nsenter stops itself when what it started is stopped (pause), and would then keep a namespace whose processes were killed for ever."""
    for pid in ending.entered({node.pid: node.born}):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
