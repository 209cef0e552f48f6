#!/usr/bin/env python3
"""What runs on the nodes for mcrEngine's five ways (SC12, Table V): a process of the application, or a process that merges a group. One JSON object at the end: when each step ended, by the clock that all nodes share.

Usage: mcrengine_node.py alone write|read --at MOMENT --file F --stored S --server K [--gzip]      a process by itself: its file to the file system, or back
       mcrengine_node.py member write|read --at MOMENT --rank R --file F --host H --port P           a process of a group: sends its file to who merges, or gets it back
       mcrengine_node.py merge write|read --at MOMENT --port P --members N --stored S --server K     who merges a group: [--gzip | --replay BYTES FIRST_S SECOND_S] [--sizes N,...]

MOMENT: of the clock, at which all begin. --gzip: level 6. --replay: a codec that is measured elsewhere: so many seconds of the processor, in two passes, and so many bytes of noise in the file.
"""
import argparse
import json
import os
import socket
import struct
import sys
import threading
import time
import zlib

HEAD = struct.Struct("<qq")  # rank, bytes
PIECE = 1 << 20
CONNECT_S = 30


def until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


def store(path, server, data):
    """A fresh file, on that server of GlusterFS where one is named, in pieces, durable."""
    with open(path if server is None else f"{path}@gv-dht:gv-client-{server}", "wb", buffering=0) as file:
        for at in range(0, len(data), PIECE):
            file.write(data[at:at + PIECE])
        os.fsync(file.fileno())


def forget(path):
    """Drops what the page cache has of it: what is read comes from the servers."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def load(path):
    pieces = []
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            pieces.append(piece)
    return b"".join(pieces)


def gzip(data):
    """As gzip -6 does."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def gunzip(data):
    return zlib.decompress(data, 31)


def burn(seconds):
    """Of this thread's processor."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def receive(connection, count):
    data = bytearray(count)
    view, have = memoryview(data), 0
    while have < count:
        got = connection.recv_into(view[have:have + PIECE])
        if got == 0:
            raise ConnectionError("a member went away")
        have += got
    return bytes(data)


class Steps:
    """When each step ended, and what each is called."""

    def __init__(self):
        self.ended = {}

    def end(self, name):
        self.ended[name] = time.monotonic()

    def tell(self, **more):
        print(json.dumps({"steps": self.ended, **more}), flush=True)


def alone(a):
    steps = Steps()
    if a.way == "write":
        until(a.at)
        data = load(a.file)
        if a.gzip:
            data = gzip(data)
            steps.end("compress")
        store(a.stored, a.server, data)
        steps.end("write")
        return steps.tell(stored=len(data))
    forget(a.stored)
    until(a.at)
    data = load(a.stored)
    steps.end("read")
    if a.gzip:
        data = gunzip(data)
        steps.end("decompress")
    with open(a.file, "wb") as file:
        file.write(data)
    steps.end("rebuild")
    return steps.tell()


def connected(host, port):
    begun = time.monotonic()
    while True:
        try:
            return socket.create_connection((host, port), CONNECT_S)
        except ConnectionRefusedError:
            if time.monotonic() > begun + CONNECT_S:
                raise
            time.sleep(0.02)


def member(a):
    steps = Steps()
    with connected(a.host, a.port) as connection:
        connection.settimeout(None)
        if a.way == "write":
            data = load(a.file)
            connection.sendall(HEAD.pack(a.rank, len(data)))
            until(a.at)
            connection.sendall(data)
            steps.end("fetch")
        else:
            connection.sendall(HEAD.pack(a.rank, 0))
            _, count = HEAD.unpack(receive(connection, HEAD.size))
            data = receive(connection, count)
            steps.end("send")
            with open(a.file, "wb") as file:
                file.write(data)
            steps.end("rebuild")
    steps.tell()


def accepted(a):
    """(rank, bytes, connection) of all members, by rank."""
    with socket.create_server(("", a.port)) as server:
        found = []
        for _ in range(a.members):
            connection, _ = server.accept()
            found.append((*HEAD.unpack(receive(connection, HEAD.size)), connection))
    return sorted(found, key=lambda each: each[0])


def at_once(work, items):
    """What work makes of each, a thread each."""
    out = [None] * len(items)

    def one(index):
        out[index] = work(items[index])
    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(items))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out


def merge(a):
    steps, members = Steps(), accepted(a)
    if a.way == "write":
        noise = os.urandom(int(a.replay[0])) if a.replay else None
        data = b"".join(at_once(lambda each: receive(each[2], each[1]), members))
        steps.end("fetch")
        if a.gzip:
            data = gzip(data)
            steps.end("compress")
        if a.replay:
            burn(a.replay[1])
            steps.end("first pass")
            burn(a.replay[2])
            steps.end("compress")
            data = noise
        store(a.stored, a.server, data)
        steps.end("write")
        return steps.tell(stored=len(data))
    raw = load(a.file) if a.replay else None  # what the decoder would make: members in order
    forget(a.stored)
    until(a.at)
    data = load(a.stored)
    steps.end("read")
    if a.gzip:
        data = gunzip(data)
        steps.end("decompress")
    if a.replay:
        burn(a.replay[2])
        steps.end("decompress")
        burn(a.replay[1])
        steps.end("split")
        data = raw
    at, jobs = 0, []
    for (_, _, connection), count in zip(members, a.sizes):
        jobs.append((connection, data[at:at + count]))
        at += count
    at_once(lambda each: each[0].sendall(HEAD.pack(0, len(each[1])) + each[1]), jobs)
    steps.end("send")
    return steps.tell()


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("role", choices=("alone", "member", "merge"))
    p.add_argument("way", choices=("write", "read"))
    p.add_argument("--at", type=float, required=True, help="when all begin")
    p.add_argument("--rank", type=int)
    p.add_argument("--file", help="of the process; of merge read --replay: all members' files, one after the other")
    p.add_argument("--stored", help="in the file system")
    p.add_argument("--server", type=int, help="that the stored file lies on")
    p.add_argument("--host")
    p.add_argument("--port", type=int)
    p.add_argument("--members", type=int)
    p.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")], help="of the members' files, to split what was read")
    p.add_argument("--gzip", action="store_true")
    p.add_argument("--replay", type=float, nargs=3, metavar=("BYTES", "FIRST_S", "SECOND_S"))
    return p.parse_args()


if __name__ == "__main__":
    asked = arguments()
    sys.exit({"alone": alone, "member": member, "merge": merge}[asked.role](asked))
