"""What runs on the nodes for bench/orchestration. Orders come as lines of words, answers are lines of JSON; moments are of the clock that all nodes share.

Usage: orchestration_node.py plain FOLDER FIRST COUNT [SERVERS]              processes FIRST ... of the job write a file each, all at once; with SERVERS each on one of them
       orchestration_node.py cairn NAME FIRST COUNT PROCESSES JOB            the same processes are ranks of Cairn's
         orders: go VERSION IMAGE_BYTES AT        {"begun", "captured", "durable": moments, "writes": [[moment, rank], ...] of plain}
       orchestration_node.py growth FOLDER... EVERY_S                        a server: which files grow
         orders: begin, then end                  {"samples": [files that had grown before and grew later, or did just now; of each sample, ...]}
"""
import json
import os
import select
import sys
import threading
import time

PIECE = 1 << 20
WAIT_MS = 600_000


def until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


def at_once(count, work):
    """work(i) in a thread each; the first error is raised."""
    failed = []

    def one(i):
        try:
            work(i)
        except Exception as error:  # pylint: disable=broad-except
            failed.append(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


class Plain:
    """Processes that write a file each, in pieces, durable."""

    def __init__(self, folder, first, count, servers=0):
        self.folder, self.first, self.count, self.servers = folder, int(first), int(count), int(servers)
        self.noise = os.urandom(4 * PIECE)

    def write(self, version, image_bytes, begun):
        writes, ends = [], [0.0] * self.count
        until(begun)

        def one(i):
            rank = self.first + i
            place = f"@gv-dht:gv-client-{rank % self.servers}" if self.servers else ""
            with open(f"{self.folder}/{version}.{rank}{place}", "wb", buffering=0) as file:
                for at in range(0, image_bytes, PIECE):
                    piece = at % len(self.noise)
                    file.write(memoryview(self.noise)[piece:piece + min(PIECE, image_bytes - at)])
                    writes.append((time.monotonic(), rank))
                os.fsync(file.fileno())
            ends[i] = time.monotonic()

        at_once(self.count, one)
        return {"begun": begun, "captured": begun, "durable": max(ends), "writes": writes}


class Cairn:
    """Ranks of one job, a session each."""

    def __init__(self, name, first, count, processes, job):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "tests"))
        import support
        self.support = support
        self.sessions = [None] * int(count)

        def opened(i):
            self.sessions[i] = support.Session(name, int(first) + i, int(processes), job)
            self.check(self.sessions[i].opened, i)

        at_once(len(self.sessions), opened)

    def check(self, status, i):
        if status != self.support.OK:
            raise RuntimeError(f"session {i}: {self.sessions[i].text()}")

    def write(self, version, image_bytes, begun):
        captured, durable = [0.0] * len(self.sessions), [0.0] * len(self.sessions)
        noise = os.urandom(PIECE)
        for i, session in enumerate(self.sessions):
            self.check(session.protect("image", (noise * (image_bytes // PIECE + 1))[:image_bytes]), i)
        until(begun)

        def one(i):
            self.check(self.sessions[i].checkpoint(version), i)
            captured[i] = time.monotonic()
            self.check(self.sessions[i].wait(version, wait_ms=WAIT_MS), i)
            durable[i] = time.monotonic()

        at_once(len(self.sessions), one)
        for i, session in enumerate(self.sessions):
            self.check(session.unprotect("image"), i)
            session.buffers.clear()
        return {"begun": begun, "captured": max(captured), "durable": max(durable), "writes": []}

    def close(self):
        at_once(len(self.sessions), lambda i: self.sessions[i].close())


def held(folders):
    """{file: bytes on disk} of a server's bricks; the shards of a file of a sharded volume are one with it."""
    found = {}
    for folder in folders:
        for where, names, files in os.walk(folder):
            names[:] = [name for name in names if name != ".glusterfs"]
            for name in files:
                path = os.path.join(where, name)
                try:
                    blocks = os.stat(path).st_blocks
                    of = name.rsplit(".", 1)[0] if where.endswith("/.shard") else os.getxattr(path, "trusted.gfid").hex()
                except OSError:
                    continue  # renamed or removed meanwhile
                key = of.replace("-", "")
                found[key] = found.get(key, 0) + blocks
    return found


def growth(*words):
    *folders, every = words
    print(json.dumps({"ready": True}), flush=True)
    while sys.stdin.readline():
        grew, count, before = {}, 0, held(folders)
        while not select.select([sys.stdin], [], [], float(every))[0]:
            now = held(folders)
            for file, blocks in now.items():
                if blocks > before.get(file, 0):
                    grew[file] = (grew.get(file, (count, 0))[0], count)
            before, count = now, count + 1
        sys.stdin.readline()
        print(json.dumps({"samples": [sum(first <= at <= last for first, last in grew.values()) for at in range(count)]}), flush=True)


def serve(worker):
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        _, version, image_bytes, begun = line.split()
        print(json.dumps(worker.write(int(version), int(image_bytes), float(begun))), flush=True)


def main(kind, *words):
    if kind == "growth":
        return growth(*words)
    if kind == "plain":
        return serve(Plain(*words))
    ranks = Cairn(*words)
    serve(ranks)
    return ranks.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
