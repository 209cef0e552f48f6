"""An application that computes and does nothing else: loops, one a process, which count. What a checkpoint costs it is what they count less.

Usage: Busy(LOOPS); as a program, by Busy alone: python durable_busy.py DESCRIPTOR INDEX LOOPS
"""
import mmap
import os
import subprocess
import sys
import tempfile

UNIT = range(2000)  # some 30 us


class Busy:
    def __init__(self, loops):
        self.file = tempfile.TemporaryFile()
        self.counts = counts_in(self.file.fileno(), loops)
        self.processes = [subprocess.Popen([sys.executable, "-B", os.path.realpath(__file__), str(self.file.fileno()), str(index), str(loops)], pass_fds=[self.file.fileno()], stdin=subprocess.DEVNULL)
                          for index in range(loops)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.file.close()

    def count(self):
        return sum(self.counts)


def counts_in(descriptor, loops):
    os.ftruncate(descriptor, 8 * loops)
    return memoryview(mmap.mmap(descriptor, 8 * loops)).cast("Q")


def loop(descriptor, index, loops):
    counts, parent = counts_in(descriptor, loops), os.getppid()
    while os.getppid() == parent:  # who was killed can not end its loops
        for _ in UNIT:
            pass
        counts[index] += 1


if __name__ == "__main__":
    loop(*map(int, sys.argv[1:]))
