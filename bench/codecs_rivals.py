#!/usr/bin/env python3
"""Others' codecs from PyPI on the arrays of a set that cairn_codecs_tables wrote out: ratio, and MB/s of one processor both ways.

Usage: bench/codecs_rivals.py SET.json [--repeats N]     JSON on standard output; exit code 1 where something does not come back as it was

Each is given what its users would give it: arrays of numbers of their type, once all of a key (the same variable of all ranks) as one, and once each by itself. What is in no array goes through zstd at
level 1 for all of them, as cairn_codecs_tables measured it, and where the arrays lie counts as it does for Cairn. Seconds are of the process, all its threads, with one asked for.
"""
import argparse
import importlib
import importlib.metadata
import json
import os
import statistics
import sys
import time
import warnings

import numpy as np

TYPES = {"i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}
NUMBER_BYTES = 4  # how long each compressed array is


def bits(array):
    return array.view(f"u{array.itemsize}")


class Blosc2:
    package = "blosc2"

    def __init__(self, label, codec, level, filters):
        import blosc2
        blosc2.set_nthreads(1)
        self.module, self.name = blosc2, f"blosc2 {label}"
        self.how = {"codec": getattr(blosc2.Codec, codec), "clevel": level, "nthreads": 1, "filters": [getattr(blosc2.Filter, name) for name in filters], "filters_meta": [0] * len(filters)}

    def encode(self, array):
        return self.module.compress2(array, typesize=array.itemsize, **self.how)

    def decode(self, stored, like):
        return self.module.decompress2(stored, nthreads=1)


class Pcodec:
    package = "pcodec"

    def __init__(self, level):
        from pcodec import ChunkConfig, standalone
        self.module, self.how, self.name = standalone, ChunkConfig(compression_level=level), f"pcodec level {level}"

    def encode(self, array):
        return self.module.simple_compress(array.reshape(-1), self.how)

    def decode(self, stored, like):
        return self.module.simple_decompress(stored)


class OpenZL:
    package = "openzl"

    def __init__(self, level, with_difference=False):
        import openzl.ext as zl
        self.zl = zl
        self.name = f"openzl numeric{', difference' if with_difference else ''}, level {level}"
        self.compressor = zl.Compressor()
        for what in (self.compressor,):
            what.set_parameter(zl.CParam.FormatVersion, zl.MAX_FORMAT_VERSION)
            what.set_parameter(zl.CParam.CompressionLevel, level)
        graph = zl.graphs.Compress()(self.compressor)
        if with_difference:
            graph = zl.nodes.DeltaInt()(self.compressor, zl.nodes.Zigzag()(self.compressor, graph))
        self.compressor.select_starting_graph(graph)
        self.context = zl.CCtx()
        self.level = level

    def encode(self, array):
        zl = self.zl
        self.context.ref_compressor(self.compressor)
        self.context.set_parameter(zl.CParam.FormatVersion, zl.MAX_FORMAT_VERSION)
        self.context.set_parameter(zl.CParam.CompressionLevel, self.level)
        return self.context.compress([zl.Input(zl.Type.Numeric, bits(array.reshape(-1)))])

    def decode(self, stored, like):
        return self.zl.DCtx().decompress(stored)[0].content.as_nparray()


class ZipNN:
    package = "zipnn"

    def __init__(self):
        warnings.simplefilter("ignore")
        from zipnn import ZipNN as module
        self.name = "zipnn (f64 as pairs of f32)"
        self.of = {2: module(bytearray_dtype="bfloat16", input_format="byte", threads=1), 4: module(bytearray_dtype="float32", input_format="byte", threads=1)}

    def encode(self, array):
        return bytes(self.of[2 if array.itemsize <= 2 else 4].compress(bytearray(array.tobytes())))

    def decode(self, stored, like):
        return bytes(self.of[2 if like.itemsize <= 2 else 4].decompress(stored))


class Fpzip:
    package = "fpzip"

    def __init__(self):
        import fpzip
        self.module, self.name = fpzip, "fpzip (PyPI), shape"

    def encode(self, array):
        if array.dtype.kind != "f" or array.itemsize < 4:
            raise TypeError("floats only")
        while array.ndim > 4:
            array = array.reshape(-1, *array.shape[2:])
        return self.module.compress(array, precision=0, order="C")

    def decode(self, stored, like):
        return self.module.decompress(stored, order="C")


CANDIDATES = {
    "openzl": [lambda: OpenZL(1), lambda: OpenZL(6), lambda: OpenZL(1, True)],
    "pcodec": [lambda: Pcodec(2), lambda: Pcodec(8)],
    "blosc2": [lambda: Blosc2("shuffle, LZ4", "LZ4", 5, ["SHUFFLE"]), lambda: Blosc2("shuffle, zstd-1", "ZSTD", 1, ["SHUFFLE"]), lambda: Blosc2("bitshuffle, zstd-1", "ZSTD", 1, ["BITSHUFFLE"]),
               lambda: Blosc2("shuffle, bytedelta, zstd-1", "ZSTD", 1, ["SHUFFLE", "BYTEDELTA"])],
    "fpzip": [Fpzip],
    "zipnn": [ZipNN],
}


def rivals():
    found, skipped = [], []
    for package, makes in CANDIDATES.items():
        try:
            importlib.import_module(package)
            found += [make() for make in makes]
        except Exception as error:  # of whatever kind: it is left out by name
            skipped.append({"package": package, "why": str(error).split("\n")[0]})
    return found, skipped


def arrays_of(description, data, by_key):
    """Arrays as programs hold them, copies in their type where NumPy has it; of the other byte order, as integers."""
    found = []
    for stream in description["streams"]:
        if not stream["key"]:
            continue
        dtype = np.dtype(TYPES.get(stream["type"], "u1")).newbyteorder("<")
        if stream["big_endian"]:
            dtype = np.dtype(f"u{dtype.itemsize}")
        at, all_of_it = stream["offset"], np.frombuffer(data, np.uint8, stream["length"], stream["offset"]).copy().view(dtype)
        shapes = [array["shape"] or [1] for array in stream["arrays"]]
        if by_key:
            alike = shapes.count(shapes[0]) == len(shapes) and stream["type"] in TYPES and np.prod(shapes[0]) * len(shapes) == all_of_it.size
            found.append(all_of_it.reshape(len(shapes), *[1] * (3 - len(shapes[0])), *shapes[0]) if alike else all_of_it)  # fields of up to three axes
            continue
        for array, shape in zip(stream["arrays"], shapes):
            one = np.frombuffer(data, np.uint8, array["length"], at).copy().view(dtype)
            found.append(one.reshape(shape) if np.prod(shape) == one.size else one)
            at += array["length"]
    return found


def encoded(rival, array, refused):
    """Nothing where the codec takes no such type, or makes it longer: it is stored as it is."""
    try:
        stored = rival.encode(array)
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        refused[str(array.dtype)] = str(error).split("\n")[0][:100]
        return None
    return stored if len(stored) < array.nbytes else None


def measure(rival, arrays, repeats):
    times, refused = [], {}
    for _ in range(repeats):
        begun = time.process_time()
        stored = [encoded(rival, array, refused) for array in arrays]
        middle = time.process_time()
        back = [None if one is None else rival.decode(one, array) for one, array in zip(stored, arrays)]
        times.append((middle - begun, time.process_time() - middle))
    for one, array in zip(back, arrays):
        if one is not None and memoryview(one).tobytes() != array.tobytes():
            raise AssertionError(f"{rival.name}: what was encoded does not come back")
    return {"stored": sum((array.nbytes if one is None else len(one)) + NUMBER_BYTES for one, array in zip(stored, arrays)), "left_raw": sum(array.nbytes for one, array in zip(stored, arrays) if one is None),
            "refused": refused, "encode_s": statistics.median(t[0] for t in times), "decode_s": statistics.median(t[1] for t in times)}


def run(path, repeats):
    with open(path) as file:
        description = json.load(file)
    with open(os.path.splitext(path)[0] + ".bin", "rb") as file:
        data = file.read()
    found, skipped = rivals()
    rows = []
    for way, by_key in (("each key", True), ("each array", False)):
        arrays = arrays_of(description, data, by_key)
        for rival in found:
            row = measure(rival, arrays, repeats)
            for what in ("stored", "encode_s", "decode_s"):
                row[what] += description["skeleton"][what]
            row["stored"] += description["layout"]
            rows.append({"rival": rival.name, "version": importlib.metadata.version(rival.package), "way": way, "ratio": description["bytes"] / row["stored"], **row, "repeats": repeats})
    return {"name": description["name"], "rows": rows, "skipped": skipped}


def main():
    parser = argparse.ArgumentParser(description="others' codecs on the arrays of a set")
    parser.add_argument("set")
    parser.add_argument("--repeats", type=int, default=3)
    wanted = parser.parse_args()
    try:
        print(json.dumps(run(wanted.set, wanted.repeats), indent=1))
    except AssertionError as error:
        print(f"codecs_rivals: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
