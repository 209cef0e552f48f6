"""One rank of the job in tests/faults.py: orders come in as lines of JSON, each is answered by one. Its memory is a function of rank, version and
run (which job took it), so that whoever restores it can check every bit without a reference.

  ["open", {name, rank, ranks, run, job, bytes}]   ["checkpoint", version]   ["wait", version, level, ms]   ["restore", version]   ["close"]
  answer: {"status": ..., "text": ..., and for restore "version", "run" and "whole"}
"""
import ctypes
import json
import random
import struct
import sys

from support import OK, Session


def content(rank, version, run, size):
    return random.Random(f"{rank} {version} {run}").randbytes(size)


class Rank:
    def __init__(self):
        self.session = None

    def open(self, about):
        self.rank, self.run, self.size = about["rank"], about["run"], about["bytes"]
        self.session = Session(about["name"], about["rank"], about["ranks"], job=about["job"])
        if self.session.opened != OK:
            return {"status": self.session.opened}
        self.session.protect("numbers", bytes(16))
        return {"status": self.session.protect("memory", bytes(self.size))}

    def checkpoint(self, version):
        ctypes.memmove(self.session.buffers["memory"], content(self.rank, version, self.run, self.size), self.size)
        ctypes.memmove(self.session.buffers["numbers"], struct.pack("<QQ", version, self.run), 16)
        return {"status": self.session.checkpoint(version)}

    def wait(self, version, level, wait_ms):
        return {"status": self.session.wait(version, level, wait_ms)}

    def restore(self, version):
        status, got = self.session.restore(version)
        number, run = struct.unpack("<QQ", self.session.buffers["numbers"].raw)
        whole = number == got and self.session.buffers["memory"].raw == content(self.rank, got, run, self.size)
        return {"status": status, "version": got, "run": run, "whole": status == OK and whole, "warnings": self.session.warnings()}

    def close(self):
        return {"status": self.session.close()}


def main():
    rank = Rank()
    for line in sys.stdin:
        order, *words = json.loads(line)
        answer = getattr(rank, order)(*words)
        answer["text"] = rank.session.text() if answer["status"] != OK else ""
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
