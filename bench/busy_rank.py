"""One rank of bench/busy: it computes without a pause, and captures a version whenever one is due. Arguments: one word of JSON; prints one.

  {way, library, name, job, rank, ranks, bytes, warm_s, due_s: [seconds after the first], scratch, persistent}
  way none computes only, files has the version copied to scratch, and a child of nice 10 copies that to the file system (the way of VELOC in its
  asynchronous mode, replayed), every other way is Cairn.
"""
import ctypes
import json
import os
import subprocess
import sys
import time

UNIT = range(3000)   # some 50 us
POLL_S = 0.01        # whether the newest version is committed
NO_LONGER_S = 30     # than this after the last checkpoint

COPY = "import os, shutil, sys\nos.nice(10)\nshutil.copyfile(sys.argv[1], sys.argv[2] + '.part')\nwith open(sys.argv[2] + '.part', 'rb') as f:\n    os.fsync(f.fileno())\nos.rename(sys.argv[2] + '.part', sys.argv[2])"


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("rank", ctypes.c_uint32), ("ranks", ctypes.c_uint32),
                ("job", ctypes.c_char_p), ("node", ctypes.c_char_p), ("config_file", ctypes.c_char_p), ("overrides", ctypes.c_void_p)]


class Nothing:
    def __init__(self, about):
        pass

    def checkpoint(self, version):
        pass

    def is_committed(self, version):
        return True

    def end(self):
        pass


class Files:
    def __init__(self, about):
        self.memory = ctypes.create_string_buffer(b"\1" * about["bytes"], about["bytes"])
        self.scratch, self.target = (os.path.join(about[k], f"rank-{about['rank']}") for k in ("scratch", "persistent"))
        self.copy = None

    def checkpoint(self, version):
        if self.copy:
            self.copy.wait()
        with open(self.scratch, "wb", buffering=0) as f:
            f.write(self.memory)
        self.copy = subprocess.Popen([sys.executable, "-c", COPY, self.scratch, f"{self.target}-{version}"])

    def is_committed(self, version):
        return self.copy.poll() is not None

    def end(self):
        self.copy.wait()


class Cairn:
    def __init__(self, about):
        self.lib = ctypes.CDLL(about["library"])
        self.lib.cairn_last_error.restype = ctypes.c_char_p
        self.session = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), about["name"].encode(), about["rank"], about["ranks"], about["job"].encode(), None, None, None)
        self.check(self.lib.cairn_open(ctypes.byref(options), ctypes.byref(self.session)))
        self.memory = ctypes.create_string_buffer(b"\1" * about["bytes"], about["bytes"])
        self.series = os.path.join(about["persistent"], about["name"])
        dimensions = (ctypes.c_uint64 * 1)(about["bytes"])
        self.check(self.lib.cairn_protect(self.session, b"memory", self.memory, 1, 1, dimensions))

    def check(self, code):
        if code != 0:
            raise SystemExit(f"rank: {code}: {self.lib.cairn_last_error(self.session).decode()}")

    def checkpoint(self, version):
        self.check(self.lib.cairn_checkpoint(self.session, ctypes.c_uint64(version)))

    def is_committed(self, version):
        try:  # as soon as it is there: the daemon may be late to say so
            return any(name.startswith("manifest.") for name in os.listdir(os.path.join(self.series, str(version))))
        except FileNotFoundError:
            return False

    def end(self):
        self.lib.cairn_close(self.session)


def main(about):
    way = {"none": Nothing, "files": Files}.get(about["way"], Cairn)(about)
    if about["warm_s"] is None:  # ranks that exit at once
        way.checkpoint(1)
        return {"captured": time.time()}
    begun = time.perf_counter()
    units, version, captured, polled = 0, 0, None, 0.0
    versions, windows = [], []
    due = [about["warm_s"] + each for each in about["due_s"]]
    last_unit, window = begun, begun
    while True:
        for _ in UNIT:
            pass
        units += 1
        now = time.perf_counter()
        at = now - begun
        if captured is not None and now - polled >= POLL_S:
            polled = now
            if way.is_committed(version):
                versions[-1]["committed_s"] = time.perf_counter() - captured
                captured = None
        if version < len(due) and at >= due[version]:
            windows.append([now - window, units])
            version += 1
            way.checkpoint(version)
            captured = time.perf_counter()
            versions.append({"blocked_s": captured - now, "at": time.time(), "committed_s": None})
            units, window = 0, captured
        elif version == len(due) and at >= due[-1] + about["last_s"] and (captured is None or at >= due[-1] + NO_LONGER_S):
            windows.append([now - window, units])
            break
    way.end()
    return {"versions": versions, "windows": windows}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))), flush=True)
