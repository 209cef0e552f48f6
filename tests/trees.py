"""Directory trees for tests: one that has everything, what is to be kept of any, and a watcher of them. Only trees_test.py and bench/trees need it."""
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest

from support import OK, Nodes, find

IS_ROOT = os.geteuid() == 0


def holes(path):
    found, size = [], os.path.getsize(path)
    with open(path, "rb") as f:
        at = 0
        while at < size:
            hole = os.lseek(f.fileno(), at, os.SEEK_HOLE)
            if hole >= size:
                break
            try:
                at = os.lseek(f.fileno(), hole, os.SEEK_DATA)
            except OSError:  # nothing behind it
                at = size
            found.append((hole, at))
    return found


def content(path, mode):
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if not stat.S_ISREG(mode):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def entries(tree, ignore=()):
    """All that is to be kept, by path; what is another name of something says of what."""
    found, first = {}, {}
    tree = os.fsencode(tree)
    paths = [b""]
    for folder, folders, names in os.walk(tree):
        paths += [os.path.relpath(os.path.join(folder, name), tree) for name in folders + names]
    for path in sorted(paths):
        full = os.path.join(tree, path) if path else tree
        about = os.lstat(full)
        told = {"mode": about.st_mode, "owner": (about.st_uid, about.st_gid), "modified": about.st_mtime_ns,
                "attributes": {name: os.getxattr(full, name, follow_symlinks=False) for name in os.listxattr(full, follow_symlinks=False)},
                "device": about.st_rdev, "content": content(full, about.st_mode),
                "same as": first.setdefault((about.st_dev, about.st_ino), path)}
        if stat.S_ISREG(about.st_mode):
            told["bytes"] = about.st_size
            told["holes"] = holes(full)
        found[path] = {name: value for name, value in told.items() if name not in ignore}
    return found


def write(path, data, mode=0o644):
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def text(path):
    with open(path) as f:
        return f.read()


def make_special(top):
    os.mkfifo(top + "/pipe", 0o640)
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(top)  # the name of a socket is short
        bound.bind("socket")
        os.chdir(here)
    if IS_ROOT:
        os.mknod(top + "/null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        os.mknod(top + "/loop", 0o600 | stat.S_IFBLK, os.makedev(7, 200))
        os.link(top + "/null", top + "/null too")


def make_names(top):
    """Names that no region can have, and some that are like those that Cairn gives."""
    for name in (b"\xff\xfe not UTF-8", b"line\nfeed", b"-rf", b"~", b" ", "Gr\u00fc\u00dfe \u6c34".encode(), b".cairn-file-1", b".cairn-file-2", b".cairn-tree", b"watch", b"\\ \" ' $(x) %s {version}"):
        write(os.fsencode(top) + b"/" + name, b"in " + name)
    deep = os.fsencode(top)
    for letter in (b"a", b"b", b"c", b"d"):
        deep += b"/" + letter * 200
        os.mkdir(deep)
        write(deep + b"/" + letter * 255, letter * 100)
    os.makedirs(os.fsencode(top) + b"/" + b"d/" * 100 + b"end")


def make_holes(top):
    with open(top + "/sparse", "wb") as f:
        f.seek(3 << 20)
        f.write(b"in the middle")
        f.truncate(9 << 20)
    with open(top + "/only a hole", "wb") as f:
        f.truncate(1 << 20)
    write(top + "/zeros and no hole", bytes(1 << 20))


def make_modes(top):
    for mode in (0o000, 0o400, 0o444, 0o755, 0o4711, 0o2755, 0o7777) if IS_ROOT else (0o400, 0o444, 0o755):
        write(f"{top}/mode {mode:o}", b"m" * mode, mode)
    for name, mode in (("closed", 0o500), ("sticky", 0o1777)):
        os.mkdir(f"{top}/{name}")
        write(f"{top}/{name}/inside", b"in it")
        os.chmod(f"{top}/{name}", mode)


def make_tree(top, seed=1):
    """Everything that a tree can have."""
    drawn = random.Random(seed)
    os.makedirs(top + "/empty/also empty")
    write(top + "/large", drawn.randbytes(24 << 20))
    write(top + "/nothing", b"")
    for i in range(300):
        write(f"{top}/{i}.small", drawn.randbytes(drawn.randrange(1, 9000)))
    make_names(top)
    make_holes(top)
    make_modes(top)
    make_special(top)
    os.link(top + "/large", top + "/empty/large too")
    os.link(top + "/0.small", top + "/a first name")
    for name, target in (("relative", "large"), ("dangling", "not/there"), ("absolute", "/etc/passwd"), ("up", "../.."), ("folder", "empty")):
        os.symlink(target, f"{top}/{name}")
    os.link(top + "/dangling", top + "/dangling too", follow_symlinks=False)
    os.setxattr(top + "/large", "user.note", b"\x00\xff\n")
    os.setxattr(top + "/large", "user.empty", b"")
    os.setxattr(top + "/empty", "user.of a directory", b"x" * 1000)
    if IS_ROOT:
        os.setxattr(top + "/relative", "trusted.of a link", b"y", follow_symlinks=False)
        for name, owner in (("nothing", 12345), ("mode 4711", 54321), ("dangling", 777), ("pipe", 778), ("sticky", 779)):
            os.chown(f"{top}/{name}", owner, owner + 1, follow_symlinks=False)
        os.chmod(top + "/mode 4711", 0o4711)
    for n, (folder, folders, names) in enumerate(os.walk(top, topdown=False)):
        for m, name in enumerate(folders + names):
            os.utime(os.path.join(folder, name), ns=(10**18 + n, 10**18 + 1_000_000_007 * n + 13 * m), follow_symlinks=False)
    os.utime(top + "/nothing", ns=(0, -1))
    os.utime(top, ns=(10**18, 123_456_789))


class Watched(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)
        self.folder = os.path.join(self.nodes.shared, "images")
        self.staging = os.path.join(self.nodes.shared, "staging")
        os.mkdir(self.folder)
        os.mkdir(self.staging)

    def place(self, version):
        return f"{self.folder}/ckpt.{version}"

    def watch(self, *more):
        """A watcher, and what it has said so far, which grows."""
        watcher = subprocess.Popen([find("cairn"), "watch", "--json", "--name", "t", "--pattern", "ckpt.{version}", "-d", self.folder, *more], env=self.nodes.environment(),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = []

        def listen():
            for line in watcher.stdout:
                said.append(json.loads(line) if line.startswith("{") else {"event": "text", "text": line})
        listener = threading.Thread(target=listen)
        listener.start()
        self.addCleanup(watcher.stdout.close)
        self.addCleanup(listener.join)
        self.addCleanup(watcher.wait)
        self.addCleanup(lambda: watcher.poll() is None and watcher.kill())
        self.until(said, event="watching")
        return watcher, said

    def until(self, said, **like):
        """The deadline only keeps a test from hanging."""
        for _ in range(6000):
            for line in list(said):
                if all(value in line.get(name, "") if name == "text" else line.get(name) == value for name, value in like.items()):
                    return line
            time.sleep(0.01)
        self.fail(f"never said {like}: {said}")

    def end(self, watcher):
        watcher.send_signal(signal.SIGTERM)
        return watcher.wait(60)

    def extract(self, folder, version="newest", *more):
        code, out, err = self.nodes.cairn("extract", "t", version, "--files", os.path.join(self.nodes.shared, folder), *more)
        self.assertEqual(code, OK, err)
        return os.path.join(self.nodes.shared, folder)

    def assert_same(self, made, back):
        self.assertEqual(sorted(made), sorted(back))
        for path, told in made.items():
            self.assertEqual(told, back[path], path)
