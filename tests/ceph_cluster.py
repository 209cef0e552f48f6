"""A Ceph cluster with a file system on this machine, in namespaces of its own: one monitor, one manager, one metadata server, a few OSDs in memory, mounts by ceph-fuse.

`inside` starts a test again in namespaces (network with nothing but loopback, mounts, processes) whose first process dies with whoever started it: with that end all of Ceph's
daemons, the mounts and what lay in memory, also where the test is killed.

Usage, to look at one: python3 tests/ceph_cluster.py COMMAND...; the file system is at /mnt/files, `ceph -c /mnt/ceph/conf` speaks to it.

Order kept: the monitor before the keys of the others, OSDs before pools, pools before the file system, the metadata server before a mount.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "testbed"))
from cluster import Trouble, sh, wait_for  # noqa: E402

NAME = "files"           # of the file system
HOME = "/mnt/ceph"       # keys, logs, what the monitor keeps: in memory
OSD_BYTES = 1 << 30
MARK = "CAIRN_TEST_INSIDE"
WITHIN_S = 120
PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph-authtool", "monmaptool")
CONFIG = f"""
[global]
fsid = {{fsid}}
mon host = 127.0.0.1:6789
mon initial members = a
public addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {HOME}/keyring
run dir = {HOME}/run
admin socket = {HOME}/run/$name.asok
log file = {HOME}/log/$name
mon data = {HOME}/$name
mgr data = {HOME}/$name
mds data = {HOME}/$name
osd data = {HOME}/$name
mon allow pool size one = true
mon allow pool delete = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd class update on start = false
osd objectstore = memstore
memstore device bytes = {OSD_BYTES}
osd fast shutdown = false
osd memory target = 939524096
osd op num shards = 2
mds cache memory limit = 67108864
mgr stats period = 1
mgr initial modules =
"""

# What `ceph` does with a command: itself it takes seconds to start, on a busy machine. By the system's Python, for which the library is installed.
ASK = """
import json, sys
import rados
with rados.Rados(conffile=sys.argv[1], conf={"client_mount_timeout": "60"}) as cluster:
    for line in sys.stdin:
        code, out, said = cluster.mon_command(line, b"", 60)
        print(json.dumps([code, out.decode() or said]), flush=True)
"""


def why_not():
    """Nothing where a cluster can be."""
    if os.geteuid() != 0:
        return "namespaces and mounts take root"
    missing = [name for name in (*PROGRAMS, "ip", "unshare", "setpriv") if not shutil.which(name, path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))]
    if missing:
        return f"missing: {' '.join(missing)} (scripts/setup ceph and scripts/setup testbed install them)"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse can not be opened ({error.strerror}), and CephFS is mounted through it"
    return None


def inside():
    """False where no cluster can be, and why was printed. Else this process is in namespaces when it returns; the one outside ends with its exit code."""
    if os.environ.get(MARK):
        return True
    reason = why_not()
    if reason:
        print(f"SKIP ceph_test: {reason}")
        return False
    # Temporary files lie in memory that goes with the namespaces, too. Their first process takes over whoever loses a parent. It is not the test, which waits for its own children only.
    first = 'mount -t tmpfs tmpfs /mnt && mount -t tmpfs tmpfs /dev/shm && mkdir /mnt/tmp && ip link set lo up || exit 77; "$@"; exit $?'
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
               "bash", "-c", first, "first", sys.executable, "-B", *sys.argv]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the inner one's to end by
    done = subprocess.run(command, env={**os.environ, MARK: "1", "TMPDIR": "/mnt/tmp"}, preexec_fn=lambda: signal.signal(signal.SIGINT, before), check=False)
    sys.exit(done.returncode)


class Ceph:
    """A context manager. pools: names of the data pools, and on which OSD each lies (0, 1, ...). In the first are files of which nobody says otherwise; beside it lies the metadata."""

    def __init__(self, pools):
        self.pools, self.osds, self.running, self.mounts, self.asking = dict(pools), max(pools.values()) + 1, {}, {}, None
        for folder in ("run", "log", "mon.a", "mgr.a", "mds.a"):
            os.makedirs(f"{HOME}/{folder}")
        self.config = f"{HOME}/conf"
        self.fsid = str(uuid.uuid4())
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(fsid=self.fsid))
        try:
            self._begin_monitor()
            self._key("mgr.a", caps=["mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"])
            self.start("mgr.a")
            for number in range(self.osds):
                self._begin_osd(number)
            self._begin_files()
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    # ---- daemons ----

    def start(self, name):
        """mon.a, mgr.a, mds.a, osd.0, ... In a session of its own, as all of them: Ctrl-C reaches the test alone, which ends them one after the other."""
        kind, which = name.split(".")
        with open(f"{HOME}/log/{name}.out", "ab") as out:
            self.running[name] = subprocess.Popen([f"ceph-{kind}", "-f", "-c", self.config, "-i", which], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)

    def stop(self, *names, force=False):
        for name in names:
            self.running[name].send_signal(signal.SIGKILL if force else signal.SIGTERM)
        for name in names:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.running[name].wait(30)
            self.running[name].kill()
            self.running.pop(name).wait()

    def restart(self):
        """All daemons; what the OSDs have in memory they keep."""
        names = list(self.running)
        for kind in ("mds", "osd", "mgr", "mon"):
            self.stop(*(name for name in names if name.startswith(kind)))
        for name in names:
            self.start(name)
        self._until_active()

    def end(self):
        for where in list(self.mounts):
            self.unmount(where)
        for name in list(self.running):
            self.stop(name, force=True)
        if self.asking:
            self.asking.kill()
            self.asking.communicate()
        shutil.rmtree(HOME, ignore_errors=True)

    # ---- what is asked of it ----

    def ask(self, prefix, **more):
        """A command of `ceph`, with its arguments by their names."""
        if not self.asking or self.asking.poll() is not None:
            with open(f"{HOME}/log/ask.out", "ab") as out:
                self.asking = subprocess.Popen(["/usr/bin/python3", "-c", ASK, self.config], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, text=True, start_new_session=True)
        self.asking.stdin.write(json.dumps({"prefix": prefix, **more}) + "\n")
        self.asking.stdin.flush()
        code, said = json.loads(self.asking.stdout.readline() or f'[-1, "see {HOME}/log/ask.out"]')
        if code < 0:
            raise Trouble(f"ceph {prefix} {more}: {said} ({code})")
        return said

    def _key(self, entity, prefix="auth get-or-create", **more):
        with open(f"{HOME}/keyring", "a", encoding="utf-8") as file:
            file.write(self.ask(prefix, entity=entity, **more) + "\n")

    def allow(self, client, rights):
        """A client that may do that below the file system's root: rw, rwp."""
        self._key(f"client.{client}", "fs authorize", filesystem=NAME, caps=["/", rights])

    # ---- mounts ----

    def mount(self, where, client="admin", *options):
        os.makedirs(where, exist_ok=True)
        with open(f"{HOME}/log/fuse.out", "ab") as out:
            process = subprocess.Popen(["ceph-fuse", "-f", "-c", self.config, "-n", f"client.{client}", where, *options], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        self.mounts[where] = (process, client)
        wait_for(f"the mount at {where}", lambda: os.path.ismount(where) or process.poll() is not None, WITHIN_S)
        if process.poll() is not None:
            raise Trouble(f"ceph-fuse ended with {process.returncode}: see {HOME}/log/fuse.out")

    def unmount(self, where):
        process, client = self.mounts.pop(where)
        subprocess.run(["umount", where], capture_output=True, check=False)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        subprocess.run(["umount", "--lazy", where], capture_output=True, check=False)
        return client

    # ---- the beginning ----

    def _begin_monitor(self):
        keyring = f"{HOME}/keyring"
        sh("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        sh("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mds", "allow *", "--cap", "mgr", "allow *")
        sh("monmaptool", "--create", "--addv", "a", "[v1:127.0.0.1:6789]", "--fsid", self.fsid, f"{HOME}/monmap")
        sh("ceph-mon", "-c", self.config, "--mkfs", "-i", "a", "--monmap", f"{HOME}/monmap", "--keyring", keyring)
        self.start("mon.a")

    def _begin_osd(self, number):
        name, made = f"osd.{number}", str(uuid.uuid4())
        os.makedirs(f"{HOME}/{name}")
        self.ask("osd new", uuid=made, id=number)
        self._key(name, caps=["mon", "allow profile osd", "mgr", "allow profile osd", "osd", "allow *"])
        sh("ceph-osd", "-c", self.config, "-i", str(number), "--mkfs", "--osd-uuid", made)
        self.ask("osd crush add", id=number, weight=1.0, args=["root=default"])
        self.ask("osd crush set-device-class", **{"class": f"only_{number}", "ids": [str(number)]})
        self.ask("osd crush rule create-replicated", name=f"only_{number}", root="default", type="osd", **{"class": f"only_{number}"})
        self.start(name)

    def _begin_files(self):
        first, *more = self.pools
        for pool, number in {"metadata": self.pools[first], **self.pools}.items():
            self.ask("osd pool create", pool=pool, pg_num=4, pool_type="replicated", rule=f"only_{number}")
        self.ask("fs new", fs_name=NAME, metadata="metadata", data=first)
        for pool in more:
            self.ask("fs add_data_pool", fs_name=NAME, pool=pool)
        self._key("mds.a", caps=["mon", "allow profile mds", "osd", "allow rwx", "mds", "allow *"])
        self.start("mds.a")
        self._until_active()

    def _until_active(self):
        wait_for("all OSDs", lambda: f"{self.osds} up" in self.ask("osd stat"), WITHIN_S)
        wait_for("the metadata server", lambda: "up:active" in self.ask("mds stat"), WITHIN_S)


def main():
    if not inside():
        sys.exit(77)
    begun = time.monotonic()
    with Ceph({"data": 0, "fast_a": 1, "fast_b": 2}) as cluster:
        cluster.mount("/mnt/files")
        print(f"there after {time.monotonic() - begun:.1f} s", flush=True)
        done = subprocess.run(sys.argv[1:] or ["bash"], check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
