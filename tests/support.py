"""What the end-to-end tests stand on: temporary nodes, real daemons, and the C API through ctypes.

A Nodes object is one machine room: a scratch directory for each virtual node, one persistent directory, and a random word in the
environment of all that is started, by which everything is ended again. Usage of a test: python3 tests/x_test.py BUILD_FOLDER.
"""
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid

OK, INVALID, NOT_FOUND, EXISTS, NO_SPACE, IO_ERROR, CORRUPT, UNAVAILABLE, DEADLINE, SUPERSEDED, CANCELLED, PERMISSION, \
    UNSUPPORTED, INTERNAL = range(14)
CAPTURED, SEALED, COMMITTED = 1, 2, 3
U8, F32, F64 = 2, 11, 12
NEWEST = 2**64 - 1
BUILD = os.path.abspath(os.environ.get("CAIRN_BUILD", "build/release"))


def find(name):
    """Path of a built program or library."""
    for folder, folders, names in os.walk(BUILD):
        folders[:] = [f for f in folders if f not in ("CMakeFiles", "python")]  # nothing of ours; the latter is of scripts/python-environment
        if name in names and os.path.isfile(os.path.join(folder, name)):
            return os.path.join(folder, name)
    sys.exit(f"{name} is not in {BUILD}")


def memory_folder():
    """/dev/shm where it has room, for images and for MPI's own segments (containers often give it 64 MiB); else None."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return None
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) and room.f_bavail * room.f_frsize >= 1 << 29 else None


class Nodes:
    def __init__(self, **settings):
        """settings: section_key=value, as in CAIRN_SECTION_KEY."""
        self.local = tempfile.mkdtemp(prefix="cairn-test-", dir=memory_folder())
        self.shared = tempfile.mkdtemp(prefix="cairn-test-")
        self.persistent = os.path.join(self.shared, "persistent")
        os.mkdir(self.persistent)
        self.word = uuid.uuid4().hex
        # auto goes by measured times, and merging by trials that end early where no core is idle: what is stored how would be another thing from run to run.
        self.settings = {"flush_codec": "off", "flush_merge_ranks": 1, "daemon_idle_s": 20, "deadlines_open_ms": 30000, "flush_block_bytes": 65536, **settings}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill_all()
        shutil.rmtree(self.local, ignore_errors=True)
        shutil.rmtree(self.shared, ignore_errors=True)

    def scratch(self, node=0):
        path = os.path.join(self.local, f"n{node}")
        os.makedirs(path, exist_ok=True)
        return path

    def environment(self, node=0, **more):
        base = {k: v for k, v in os.environ.items() if not k.startswith("CAIRN_")}
        base.update(CAIRN_BUILD=BUILD, CAIRN_TEST_WORD=self.word, CAIRN_NODE=f"n{node}", CAIRN_PATHS_SCRATCH=self.scratch(node),
                    CAIRN_PATHS_PERSISTENT=self.persistent, CAIRN_DAEMON_PROGRAM=find("cairnd"), PYTHONDONTWRITEBYTECODE="1")
        if os.environ.get("CAIRN_PRELOAD"):  # a build with sanitizers: Python itself was made without
            base.update(LD_PRELOAD=os.environ["CAIRN_PRELOAD"], ASAN_OPTIONS="detect_leaks=0")
        base.update({"CAIRN_" + k.upper(): str(v) for k, v in {**self.settings, **more}.items()})
        return base

    def cairn(self, *arguments, node=0, wait_s=60, **more):
        """One `cairn` command: (exit code, stdout, stderr)."""
        done = subprocess.run([find("cairn"), *map(str, arguments)], env=self.environment(node, **more), capture_output=True,
                              text=True, timeout=wait_s, stdin=subprocess.DEVNULL, cwd=self.shared)
        return done.returncode, done.stdout, done.stderr

    def start(self, code, node=0, **more):
        """A process that runs `code` with this module's names; prints with tell(), reads its orders with hear()."""
        prelude = f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); from support import *\n"
        return subprocess.Popen([sys.executable, "-c", prelude + textwrap.dedent(code)], env=self.environment(node, **more),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.shared)

    def run(self, code, node=0, wait_s=60, **more):
        """What the process told, as a list; a process that crashes or hangs is an AssertionError with its stderr."""
        return self.told(self.start(code, node, **more), wait_s)

    @staticmethod
    def told(process, wait_s=60):
        try:
            out, err = process.communicate(timeout=wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"hangs: {out}\n{err}") from None
        assert process.returncode == 0, f"ended with {process.returncode}: {out}\n{err}"
        try:
            return [json.loads(line) for line in out.splitlines()]
        except ValueError as error:
            raise AssertionError(f"told what is no JSON ({error}); the last 500 of {len(out)} characters: {out[-500:]!r}\n{err}") from None

    def ours(self):
        mark = f"CAIRN_TEST_WORD={self.word}".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    with open(f"/proc/{name}/environ", "rb") as f:
                        if mark in f.read().split(b"\0"):
                            found.append(int(name))
                except OSError:
                    pass  # ended meanwhile, or somebody else's
        return found

    def named(self, *names):
        found = []
        for pid in self.ours():
            try:
                with open(f"/proc/{pid}/comm") as f:
                    if f.read().strip() in names:
                        found.append(pid)
            except OSError:
                pass
        return found

    def daemons(self):
        """Without their keepers, which start them again."""
        return self.named("cairnd")

    def kill_daemons(self):
        """For good: with their keepers."""
        while left := self.named("cairnd", "cairnd-keeper"):
            self.kill_all(left)

    def forget_scratch(self, nodes=2):
        """Ends the daemons, and takes the images away: what is restored then comes from the parts."""
        for node in range(nodes):
            self.cairn("stop", node=node)
        self.kill_daemons()
        for node in range(nodes):
            for folder, _, names in os.walk(self.scratch(node)):
                for name in names:
                    if name.startswith("slot-"):
                        os.remove(os.path.join(folder, name))

    def kill_all(self, pids=None):
        for _ in range(200):
            left = [p for p in self.ours() if pids is None or p in pids]
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)

    def files(self, name, version=None):
        """Paths of parts and manifests of a series, or of one version."""
        top = os.path.join(self.persistent, name, *([str(version)] if version else []))
        return sorted(os.path.join(folder, n) for folder, _, names in os.walk(top) for n in names
                      if n.startswith(("part-", "manifest")))


def tell(value):
    print(json.dumps(value), flush=True)


def hear():
    return sys.stdin.readline().strip()


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("rank", ctypes.c_uint32), ("ranks", ctypes.c_uint32),
                ("job", ctypes.c_char_p), ("node", ctypes.c_char_p), ("config_file", ctypes.c_char_p),
                ("overrides", ctypes.POINTER(ctypes.c_char_p))]


class Session:
    """The C API, thinly: every method returns the status; text() is the error."""

    def __init__(self, name, rank=0, ranks=1, job="test-job", config=None, **overrides):
        self.lib = ctypes.CDLL(find("libcairn.so"))
        self.lib.cairn_last_error.restype = ctypes.c_char_p
        self.lib.cairn_warnings.restype = ctypes.c_char_p
        texts = [f"{k.replace('__', '.')}={v}".encode() for k, v in overrides.items()]
        array = (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
        self.handle = ctypes.c_void_p()
        self.buffers = {}
        options = Options(ctypes.sizeof(Options), name if isinstance(name, (bytes, type(None))) else name.encode(), rank, ranks,
                          job.encode() if job else None, None, config.encode() if config else None, array)
        self.opened = self.lib.cairn_open(ctypes.byref(options), ctypes.byref(self.handle))

    def text(self):
        return self.lib.cairn_last_error(self.handle).decode("utf-8", "replace")

    def warnings(self):
        return self.lib.cairn_warnings(self.handle).decode("utf-8", "replace")

    def protect(self, region, content, kind=U8, shape=None):
        """Protects a copy of `content`; self.buffers[region].raw is what is in it now."""
        buffer = ctypes.create_string_buffer(content, len(content)) if content else ctypes.create_string_buffer(1)
        shape = shape or [len(content)]
        status = self.protect_at(region, ctypes.addressof(buffer), kind, shape)
        if status == OK:
            self.buffers[region] = buffer
        return status

    def protect_at(self, region, address, kind, shape):
        dims = (ctypes.c_uint64 * len(shape))(*shape)
        return self.lib.cairn_protect(self.handle, region.encode(), ctypes.c_void_p(address), kind, len(shape), dims)

    def unprotect(self, region):
        return self.lib.cairn_unprotect(self.handle, region.encode())

    def checkpoint(self, version):
        return self.lib.cairn_checkpoint(self.handle, ctypes.c_uint64(version))

    def wait(self, version, level=COMMITTED, wait_ms=30000):
        return self.lib.cairn_wait(self.handle, ctypes.c_uint64(version), level, ctypes.c_uint64(wait_ms))

    def restore(self, version=NEWEST):
        got = ctypes.c_uint64()
        status = self.lib.cairn_restore(self.handle, ctypes.c_uint64(version), ctypes.byref(got))
        return status, got.value

    def close(self):
        status = self.lib.cairn_close(self.handle)
        self.handle = ctypes.c_void_p()
        return status
