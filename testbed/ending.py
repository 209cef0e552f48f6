"""How a cluster ends, whoever ends it, also when its keeper is killed.

With the keeper die the first processes of the nodes, and with these all processes of the nodes. What stands outside is left to the cluster's will, a
process in the switch's network namespace that waits until the keeper is gone: it ends the programs on the login node (all that share that
namespace) and every nsenter that a pause has stopped together with what it started (it would keep the node's namespaces for ever), and takes the
cluster's directory away. Should it be killed as well, the next cluster of any name takes the directory away.

Usage: ending.py DIRECTORY; {process id: birth} of the nodes' first processes comes in as lines of JSON.
"""
import contextlib
import fcntl
import json
import os
import signal
import sys
import threading
import time

RUN = "/run/cairn-testbed"
LOCK = "lock"  # held by the keeper for life; says who that is
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def born(pid):
    """When a process began, in ticks since the machine's start; 0 when there is none. With the number it names a process for good: numbers are used again."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat") as f:
            return int(f.read().rsplit(")", 1)[1].split()[19])
    return 0


@contextlib.contextmanager
def uninterrupted():
    """A second Ctrl-C does not end the ending."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def entered(nodes):
    """The nsenter processes that entered one of these nodes ({process id of its first: birth}), dead or alive; not those of who has its number since."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{entry}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[:2] == [b"nsenter", b"-t"] and int(words[2]) in nodes:
                now = born(int(words[2]))
                if now in (0, nodes[int(words[2])]) or born(entry) < now:
                    found.append(int(entry))
    return found


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def zombie(pid):
    """Or not there at all."""
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    return True


# ---- a cluster's directory ----

def take(directory, make):
    """The lock of a cluster's directory, as an open file; None when it has a keeper, or is not there and shall not be made."""
    path, end = os.path.join(directory, LOCK), time.monotonic() + 1
    while True:
        if make:
            os.makedirs(directory, mode=0o700, exist_ok=True)
        try:
            lock = open(path, "a+" if make else "r+")
        except OSError:
            if not make:
                return None
            continue  # somebody takes it away just now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            holder, birth = keeper(directory)
            if make and born(holder) != birth and time.monotonic() < end:
                time.sleep(0.02)
                continue  # somebody looks whether there is a keeper, or is about to say who it is
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        lock.close()  # of a directory that was taken away meanwhile


def keeper(directory):
    """(process id, birth) of who has the lock, as it wrote; (0, 0) when that is not there."""
    with contextlib.suppress(OSError, ValueError):
        with open(os.path.join(directory, LOCK)) as f:
            pid, birth = map(int, f.read().split())
            return pid, birth
    return 0, 0


def remove(directory, lock):
    """By who has its lock, which goes last and is let go."""
    for entry in sorted(os.listdir(directory), key=lambda entry: entry == LOCK):
        os.unlink(os.path.join(directory, entry))
    with contextlib.suppress(OSError):
        os.rmdir(directory)  # unless somebody takes the name
        os.rmdir(RUN)        # unless another cluster is up
    lock.close()


def forget(directory):
    """Takes a directory away whose keeper is dead; whether it did."""
    lock = take(directory, make=False)
    if lock:
        remove(directory, lock)
        return True
    with contextlib.suppress(OSError):
        os.rmdir(directory)  # one without a lock is empty
        return True
    return False


def sweep():
    """Takes away all directories whose keepers are dead: a name with a process id in it does not come again."""
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(RUN):
            forget(os.path.join(RUN, name))


# ---- the will ----

def on_the_login_node():
    """All others in this network namespace."""
    mine, others = os.readlink("/proc/self/ns/net"), []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(entry) != os.getpid() and os.readlink(f"/proc/{entry}/ns/net") == mine:
                others.append(int(entry))
    return others


def end(found, within_s=10):
    """Until there are none, also of those that these have started meanwhile."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        living = [pid for pid in found() if not zombie(pid)]
        if not living:
            return
        kill(living)
        time.sleep(0.02)


def main():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    nodes = {}
    print("ready", flush=True)
    for line in sys.stdin:  # until the keeper is gone, or closes it
        nodes.update({int(pid): birth for pid, birth in json.loads(line).items()})
    end(lambda: entered(nodes))
    end(on_the_login_node)
    forget(sys.argv[1])


if __name__ == "__main__":
    main()
