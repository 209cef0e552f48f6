#!/usr/bin/env python3
"""FORMAT.md suffices: examples/reader/reader.py, written from that page alone, reads what today's Cairn commits, and the golden part.

Usage: CAIRN_BUILD=build/release python3 tests/format_test.py [Class[.test]]
"""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from support import CORRUPT, OK, Nodes, find

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
READER = os.path.join(ROOT, "examples", "reader", "reader.py")
sys.path.insert(0, os.path.dirname(READER))
import reader  # noqa: E402

RANKS = 3
SIZES = [200_000, 65_536 * 3, 1]  # blocks are 64 KiB: a short last one, whole ones, a single byte


def content(rank, version):
    return random.Random(rank * 100 + version).randbytes(SIZES[rank])


JOB = """
import random
RANK, SIZE = {rank}, {size}
def content(version):
    return random.Random(RANK * 100 + version).randbytes(SIZE)
s = Session("series", RANK, {ranks}, job={job!r})
restored = s.protect("field/u", bytes(SIZE)), s.protect("step", bytes(8), kind=8, shape=[1]), s.restore({version})
for version in {versions}:
    ctypes.memmove(s.buffers["field/u"], content(version), SIZE)
    ctypes.memmove(s.buffers["step"], version.to_bytes(8, "little"), 8)
    tell([s.checkpoint(version), s.wait(version), s.text()])
s.close()
"""


SMALL = """
import random
s = Session({series!r}, {rank}, {ranks}, job="small")
s.protect("x", random.Random({rank}).randbytes({size}))
s.restore()
tell([s.checkpoint(1), s.wait(1)])
s.close()
"""


ROUTED = """
s = Session("routed", {rank}, 3, job="routed")
path = os.path.join({folder!r}, "made.{rank}")
with open(path, "wb") as f:
    f.write(bytes([{rank}]) * 3_000_000)
routed = s.lib.cairn_route_file(s.handle, b"out/{rank}", path.encode())
s.restore()
tell([routed, s.checkpoint(1), s.wait(1)])
s.close()
"""


def zeros_and_others(rank):
    data = bytearray(5_000_000)
    data[1_000_000 * rank:1_000_000 * (rank + 1)] = random.Random(rank).randbytes(1_000_000)
    return bytes(data)


BLOCKS = """
s = Session("blocks", {rank}, 3, job="blocks")
U16, U64 = 4, ctypes.c_uint64
block = ctypes.create_string_buffer(bytes(range({at} * 14, ({at} + {rows}) * 14)), {rows} * 14)
def protect(rows, at):
    return s.lib.cairn_protect_block(s.handle, b"u", ctypes.c_void_p(ctypes.addressof(block)), U16, 2, (U64 * 2)(rows, 7), (U64 * 2)(9, 7), (U64 * 2)(at, 0))
protected = protect({rows}, {at})
s.restore()
tell([protected, s.checkpoint(1), s.wait(1)])
beyond = protect({rows}, 9)
s.unprotect("u")
tell(beyond != OK and protect({rows}, {at} + 1 if {at} == 0 else {at} - 1) == OK and s.restore(1)[0] != OK)
s.close()
"""


ZEROS = """
import random
NONE = None
data = bytearray(5_000_000)
data[1_000_000 * {rank}:1_000_000 * ({rank} + 1)] = random.Random({rank}).randbytes(1_000_000)
s = Session("zeros", {rank}, 2, job="zeros" + str({version}))
s.protect("x", bytes(data) if {version} is None else bytes(len(data)))
if {version} is None:
    s.restore()
    tell([s.checkpoint(1), s.wait(1)])
else:
    tell([s.restore({version})[0], s.buffers["x"].raw[:len(data)] == bytes(data)])
s.close()
"""


PLANES = {"fast": "predict-planes-zstd", "small": "predict-planes-small"}  # what parts call what the setting calls otherwise

FIELD = """
import array, math
EDGE, F64 = {edge}, 12
def field():
    along = [[math.sin(rate * i) for i in range(EDGE)] for rate in (0.19, 0.11, 0.07)]
    return array.array("d", [round(2 ** 24 * (x * y * (z + {rank}) + 3)) / 2 ** 24 for z in along[2] for y in along[1] for x in along[0]]).tobytes()
s = Session("field", {rank}, 2, job="field" + str({restores}))
block = ctypes.create_string_buffer(bytes(8 * EDGE ** 3) if {restores} else field(), 8 * EDGE ** 3)
shape = (ctypes.c_uint64 * 3)(*((EDGE, EDGE, EDGE) if {shaped} else (1, 1, EDGE ** 3)))
protected = s.lib.cairn_protect(s.handle, b"u", ctypes.c_void_p(ctypes.addressof(block)), F64, 3, shape)
if {restores}:
    tell([protected, s.restore(1)[0], block.raw == field()])
else:
    s.restore()
    tell([protected, s.checkpoint(1), s.wait(1)])
s.close()
"""

# As FIELD, but records of six numbers that have nothing to do with each other, told as rows of numbers, or not at all.
RECORDS = FIELD.replace("def field():", "import random\ndef field():\n    r = random.Random({rank})\n    return array.array('d', [v for i in range(EDGE ** 3 // 6) for v in (11, i * 3.6 % 100, r.random(), 1, 1e5 + i, r.gauss(0, 1))] + [0] * (EDGE ** 3 % 6)).tobytes()\ndef other():").replace(
    "(EDGE, EDGE, EDGE)", "(1, EDGE ** 3 // 6, 6)")


class Reader(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=2, daemon_idle_s=60)
        self.addCleanup(self.nodes.__exit__)
        self.series = os.path.join(self.nodes.persistent, "series")

    def take(self, job, versions, restored):
        """A run of all ranks, on two nodes, that restores one version and takes others, all committed."""
        ranks = [self.nodes.start(JOB.format(rank=r, size=SIZES[r], ranks=RANKS, job=job, version=restored, versions=versions), node=r // 2)
                 for r in range(RANKS)]
        for process in ranks:
            for checkpoint, committed, text in self.nodes.told(process):
                self.assertEqual((checkpoint, committed), (OK, OK), text)

    def damaged(self, path, at):
        """What the command says of version 3 when one bit of the byte at `at` (from the end when negative) is flipped."""
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
            place, byte = file.tell(), file.read(1)[0]
            for written in (byte ^ 4, byte):
                file.seek(place)
                file.write(bytes([written]))
                file.flush()
                if written != byte:
                    done = subprocess.run([READER, self.series, "3"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout)
        return done.stderr

    def test_every_byte_and_the_lineage(self):
        self.take("first", [1, 2, 3], 0)
        self.take("second", [3, 4], 2)  # goes back to 2: the first 3 is not in the lineage any more
        known = dict(reader.versions(self.series))
        self.assertEqual(sorted(known), [1, 2, 3, 4])
        self.assertEqual(len(os.listdir(os.path.dirname(known[3]))), 2 * 3)
        for version, path in known.items():
            whole = reader.Version(path)
            self.assertEqual(sorted(whole.images), list(range(RANKS)))
            for rank in range(RANKS):
                self.assertEqual(whole.region(rank, "field/u"), content(rank, version))
                self.assertEqual(whole.region(rank, "step"), version.to_bytes(8, "little"))
        self.assertEqual([r.type for r in reader.regions(whole.images[0], whole.image(0))], [2, 8])

        said = subprocess.run([READER, self.series, "4", "1", "field/u"], capture_output=True, timeout=60)
        self.assertEqual(said.stdout, content(1, 4))

        _, parts = reader.read_manifest(known[3])
        part = os.path.join(os.path.dirname(known[3]), parts[0].file)
        self.assertRegex(self.damaged(part, 100), r"part-0000.*block 0 of rank \d is damaged")
        self.assertIn("footer is damaged", self.damaged(part, -60))
        self.assertIn("trailer is damaged", self.damaged(part, -40))
        self.assertIn("part records are damaged", self.damaged(known[3], -1))
        self.assertIn("body is damaged", self.damaged(known[3], 100))
        self.assertIn("header is damaged", self.damaged(known[3], 20))

    def test_small_images_share_their_part(self):
        """A part takes at most its bytes, its index, 1 % and 64 KiB a leader, however its images lie in blocks of 1 MiB: 4 x 520 KiB took 4 MiB."""
        for series, size, count in (("half", 520 << 10, 4), ("tiny", 1000, 24), ("odd", 700_001, 3)):
            nodes = Nodes(flush_files=1, flush_block_bytes=1 << 20, daemon_idle_s=60)
            self.addCleanup(nodes.__exit__)
            ranks = [nodes.start(SMALL.format(rank=r, size=size, ranks=count, series=series), node=r % 2) for r in range(count)]
            for process in ranks:
                self.assertEqual(nodes.told(process), [[OK, OK]])
            path = dict(reader.versions(os.path.join(nodes.persistent, series)))[1]
            part = reader.read_manifest(path)[1][0]
            bytes_there = os.stat(os.path.join(os.path.dirname(path), part.file)).st_size
            index = part.bytes - part.footer_offset
            self.assertLessEqual(bytes_there, size * count * 1.01 + index + 2 * 65536, series)
            whole = reader.Version(path)
            for rank in range(count):
                self.assertEqual(whole.region(rank, "x"), random.Random(rank).randbytes(size))
            if series == "tiny":
                runs = {piece.run.part_offset for _, piece, _ in sum(whole.pieces.values(), [])}
                self.assertLessEqual(len(runs), 2, "each leader's images are in one run")

    def test_blocks_of_a_global_array(self):
        """Each rank protects its rows of one array, and a reader of the files puts the array together, and another block does not fit."""
        nodes = Nodes(flush_files=2, daemon_idle_s=60)
        self.addCleanup(nodes.__exit__)
        ranks = [nodes.start(BLOCKS.format(rank=r, at=[0, 3, 5][r], rows=[3, 2, 4][r]), node=r // 2) for r in range(3)]
        for process in ranks:
            self.assertEqual(nodes.told(process), [[OK, OK, OK], True])
        whole = reader.Version(dict(reader.versions(os.path.join(nodes.persistent, "blocks")))[1])
        array = bytearray(9 * 7 * 2)
        for rank, image in whole.images.items():
            region = reader.regions(image, whole.image(rank))[0]
            self.assertEqual((region.shape[1], region.global_shape, region.global_offset[1]), (7, [9, 7], 0))
            first = region.global_offset[0] * 7 * 2
            array[first:first + region.length] = whole.region(rank, "u")
        self.assertEqual(bytes(array), bytes(range(9 * 7 * 2)))
        self.assertIn("2 x 7 at 3, 0 of 9 x 7", nodes.cairn("show", "blocks")[1])

    def test_routed_files_of_one_rank(self):
        """An image lies in both parts: rank 1's, unless a leader that was idle took work. Who asks for the files of rank 0 needs nothing of rank 1."""
        nodes = Nodes(flush_files=2, daemon_idle_s=60)
        self.addCleanup(nodes.__exit__)
        for process in [nodes.start(ROUTED.format(rank=r, folder=nodes.shared), node=r // 2) for r in range(3)]:
            self.assertEqual(nodes.told(process), [[OK, OK, OK]])
        parts = reader.read_manifest(dict(reader.versions(os.path.join(nodes.persistent, "routed")))[1])[1]
        self.assertTrue(set(parts[0].ranks) & set(parts[1].ranks), parts)
        code, out, err = nodes.cairn("extract", "routed", "--files", os.path.join(nodes.shared, "back"), "--rank", "0")
        self.assertEqual(code, 0, out + err)
        with open(os.path.join(nodes.shared, "back", "out", "0"), "rb") as file:
            self.assertEqual(file.read(), bytes(3_000_000))
        self.assertFalse(os.path.exists(os.path.join(nodes.shared, "back", "out", "1")))

    def test_codecs_by_default(self):
        """Which versions are encoded depends on how long things took; all are read back, by Cairn and by the reader."""
        del self.nodes.settings["flush_codec"]
        codec = next(each for each in json.loads(self.nodes.cairn("config", "--json")[1])["settings"] if each["key"] == "flush.codec")
        self.assertEqual((codec["text"], codec["from"]), ("auto", "default"))
        self.take("first", [1, 2, 3, 4, 5], 0)
        for version, path in reader.versions(self.series):
            whole = reader.Version(path)
            for rank in range(RANKS):
                self.assertEqual(whole.region(rank, "field/u"), content(rank, version))
        code, out, err = self.nodes.cairn("verify", "series", "--decode")
        self.assertEqual(code, 0, out + err)
        self.take("second", [6], 5)

    def test_other_placement_by_default(self):
        """Nothing is encoded where writers have fixed places, and that is no error."""
        del self.nodes.settings["flush_codec"]
        self.nodes.settings["flush_placement"] = "interleaved"
        self.take("first", [1, 2, 3], 0)
        for _, path in reader.versions(self.series):
            self.assertFalse(any(piece.codec for _, piece, _ in sum(reader.Version(path).pieces.values(), [])))

    def test_zero_runs(self):
        """Data with zeros take less with flush.codec, come back bit for bit by every way, and damage in what is stored is named."""
        self.encoded(Nodes(flush_files=1, flush_codec="zero-runs", daemon_idle_s=60), "zero-runs")

    def test_numbers(self):
        """The same with a codec for numbers."""
        self.encoded(Nodes(flush_files=1, flush_codec="delta-shuffle-zstd", daemon_idle_s=60), "delta-shuffle-zstd")

    def test_planes(self):
        """And with one for arrays, of bytes that are none."""
        self.encoded(Nodes(flush_files=1, flush_codec="fast", daemon_idle_s=60), PLANES["fast"])

    def test_zero_runs_before_ship(self):
        """So they do where the node that has them encodes them, and then less is sent: one node writes, and gets the other's."""
        sent = {}
        for where in ("leader", "follower"):
            nodes = Nodes(flush_files=1, flush_leaders=1, flush_codec="zero-runs", flush_encode_at=where, daemon_idle_s=60)
            self.encoded(nodes, "zero-runs")
            told = [json.loads(nodes.cairn("status", "--json", node=node)[1]) for node in range(2)]
            sent[where] = sum(node["sent_bytes"] for each in told for node in each["nodes"])
        self.assertGreaterEqual(sent["leader"], 5_000_000)
        self.assertGreater(sent["follower"], 1_000_000, "what is no zeros")
        self.assertLess(sent["follower"], 2_500_000)

    def test_arrays_are_predicted_along_their_axes(self):
        """What a region was protected as is known to who encodes it: its own node, also before it is sent. A reader needs nothing of that."""
        self.fields(edge=48, node_of=(0, 1), runs_of_several=False)

    def test_images_of_a_pack_are_arrays_too(self):
        """Two ranks of a node whose images share a run: it holds the same variable of both, each with its axes."""
        self.fields(edge=24, node_of=(0, 0), runs_of_several=True)

    def test_records_are_taken_apart(self):
        """Whether they are told or found on a sample; a reader puts them together again."""
        self.fields(edge=48, node_of=(0, 1), runs_of_several=False, script=RECORDS, shorter=1.01)

    def fields(self, edge, node_of, runs_of_several, script=FIELD, shorter=0.9):
        stored = {}
        for shaped, mode in ((False, "fast"), (True, "fast"), (True, "small")):
            nodes = Nodes(flush_files=1, flush_leaders=1, flush_codec=mode, flush_encode_at="follower", daemon_idle_s=60)
            self.addCleanup(nodes.__exit__)
            for restores in (False, True):
                ranks = [nodes.start(script.format(rank=r, edge=edge, shaped=shaped, restores=restores), node=node_of[r]) for r in range(2)]
                for process in ranks:
                    self.assertEqual(nodes.told(process), [[OK, OK, True if restores else OK]])
            path = dict(reader.versions(os.path.join(nodes.persistent, "field")))[1]
            whole = reader.Version(path)
            runs = {piece.run.part_offset: piece.run.stored_bytes for _, piece, _ in sum(whole.pieces.values(), []) if piece.codec}
            stored[shaped, mode] = sum(runs.values())
            self.assertEqual(any(len(piece.run.pieces) > 1 for _, piece, _ in sum(whole.pieces.values(), [])), runs_of_several)
            self.assertIn(PLANES[mode], nodes.cairn("show", "field", "--pieces")[1])
            self.assertEqual(nodes.cairn("verify", "field", "--decode")[0], 0)
            code, out, err = nodes.cairn("extract", "field", "--rank", "1", "--region", "u", "-o", os.path.join(nodes.shared, "u"))
            self.assertEqual(code, 0, out + err)
            with open(os.path.join(nodes.shared, "u"), "rb") as file:
                self.assertEqual(file.read(), whole.region(1, "u"), "as Cairn decodes it and as the reader does")
        plain, shaped, small = stored.values()
        self.assertGreater(small, 0)
        self.assertLess(shaped, shorter * plain)
        self.assertLess(small, max(shorter, 1) * shaped)
        if script is RECORDS:
            self.assertLess(plain, 0.55 * 2 * 8 * edge ** 3, "three of six numbers are noise, and of these an eighth is none")

    def encoded(self, nodes, codec):
        self.addCleanup(nodes.__exit__)
        ranks = [nodes.start(ZEROS.format(rank=r, version="NONE"), node=r) for r in range(2)]
        for process in ranks:
            self.assertEqual(nodes.told(process), [[OK, OK]])
        path = dict(reader.versions(os.path.join(nodes.persistent, "zeros")))[1]
        part = os.path.join(os.path.dirname(path), reader.read_manifest(path)[1][0].file)
        whole = reader.Version(path)
        stored = {piece.run.part_offset: piece.run.stored_bytes for _, piece, _ in sum(whole.pieces.values(), [])}
        self.assertLess(sum(stored.values()), 2_500_000, "of 2 x 5,000,000 bytes, of which a fifth are no zeros")
        entry = reader.read_manifest(path)[1][0]
        self.assertLessEqual(os.stat(part).st_size, sum(stored.values()) * 1.01 + entry.bytes - entry.footer_offset + 2 * 65536, "what is stored, the index, 1 %, 64 KiB a leader")
        for rank in range(2):
            self.assertEqual(whole.region(rank, "x"), zeros_and_others(rank))
        for process in [nodes.start(ZEROS.format(rank=r, version="1"), node=r) for r in range(2)]:
            self.assertEqual(nodes.told(process), [[OK, True]], "restored from the part")
        code, out, err = nodes.cairn("verify", "zeros", "--decode")
        self.assertEqual(code, 0, out + err)
        self.assertIn(codec, nodes.cairn("show", "zeros", "--pieces")[1])
        run = next(piece.run for offset, piece, _ in sorted(whole.pieces[1], key=lambda each: each[0]) if piece.codec)  # not the one of the region index
        with open(part, "r+b") as file:
            file.seek(run.part_offset + run.stored_bytes // 2)
            byte = file.read(1)[0]
            file.seek(run.part_offset + run.stored_bytes // 2)
            file.write(bytes([byte ^ 4]))
        code, out, err = nodes.cairn("verify", "zeros")
        self.assertNotEqual(code, 0)
        self.assertRegex(out, r"part-0000.* 1 +x .*encoded bytes")

    def test_damaged_records(self):
        self.take("first", [1, 2], 0)
        self.take("second", [3], 1)
        lineage = os.path.join(self.series, "lineage")
        for name in sorted(os.listdir(lineage)):
            with open(os.path.join(lineage, name), "r+b") as file:
                file.seek(60)
                byte = file.read(1)[0]
                file.seek(60)
                file.write(bytes([byte ^ 4]))
        self.assertEqual(sorted(dict(reader.versions(self.series))), [1, 3], "manifests tell the same")
        shutil.rmtree(os.path.join(self.series, "3"))
        with self.assertRaisesRegex(reader.Corrupt, r"\.from.*nothing else tells"):
            reader.versions(self.series)

    def test_worked_example(self):
        for version, size, footer_checksum in (("v1", 13040, 0x29fce7f2f3a351aa), ("v2", 13208, 0x487cb0fb7676f0c0)):
            path = os.path.join(ROOT, "tests", "golden", version, "part")
            footer, checksum = reader.read_footer(path, size)
            self.assertEqual(checksum, footer_checksum)
            self.assertEqual((footer.key.name, footer.key.version, footer.part, footer.parts, footer.ranks), ("melt", 7, 0, 1, 3))
            self.assertEqual((footer.block_bytes, footer.data_bytes), (4096, 12288))
            images = {image.rank: image for image in footer.images}
            self.assertEqual({rank: image.bytes for rank, image in images.items()}, {0: 5000, 1: 40, 2: 0})
            self.assertEqual([(r.name, r.kind, r.type, r.shape, r.offset, r.length) for r in images[0].regions],
                             [("x", 0, 12, [5, 100], 0, 4000), ("step", 0, 7, [], 4000, 8), ("rng", 1, 0, [992], 4008, 992)])
            self.assertEqual([r.name for r in images[1].regions], ["out/restart.1"])
            pieces = list(reader.pieces(footer))
            self.assertEqual([(p.rank, p.image_offset, p.length, p.run.part_offset + p.at) for p in pieces], [(1, 0, 40, 0), (0, 0, 5000, 4096)])
            data = reader.read(path)
            self.assertEqual([reader.checksum(data[at:end]) for at, end in ((0, 40), (4096, 8192), (8192, 9096))], [expected for piece in pieces for _, expected in piece.units])

    @staticmethod
    def alone(*arguments):
        """The command, with no daemon and no settings."""
        done = subprocess.run([find("cairn"), *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_differences_to_an_older_version(self):
        """A pair of versions of three ranks (src/copies/based_testing.hpp): what the newer one has is the older one's with little changes."""
        def changed(rank, older):
            image = bytearray(older)
            for i in range(0, len(older) - 7, 8):
                if rank == 2:
                    image[i + 3] ^= i // 8 % 3
                    image[i + 7] ^= i // 8 % 2
                else:
                    number, = struct.unpack_from("<Q", older, i)
                    struct.pack_into("<Q", image, i, number + (i // 8 % 5 if rank == 0 else (i // 8) ** 2 * 1_000_000) & 2**64 - 1)
            return bytes(image)

        with tempfile.TemporaryDirectory() as folder:
            series = os.path.join(folder, "based")
            shutil.copytree(os.path.join(ROOT, "tests", "golden", "v2", "based"), series)
            older, newer = (os.path.join(series, str(version), "manifest." + "%016x%016x" % (1, 2)) for version in (10, 12))
            self.assertEqual([base.version for base in reader.Version(newer).manifest.bases], [10])
            self.assertEqual({bool(piece.base) for _, piece, _ in reader.Version(newer).pieces[0]}, {True, False})
            for rank in range(3):
                image = os.path.join(folder, f"image-{rank}")
                self.assertEqual(reader.Version(newer).image(rank), changed(rank, reader.Version(older).image(rank)))
                self.assertEqual(self.alone("extract", "based", "12", "--rank", str(rank), "-o", image, "--persistent", folder)[0], 0)
                self.assertEqual(reader.read(image), reader.Version(newer).image(rank))
            self.assertIn("predict-planes-zstd from version 10", self.alone("show", "based", "--pieces", "--persistent", folder)[1])
            for depth in ([], ["--decode"]):
                self.assertEqual(self.alone("verify", "based", *depth, "--persistent", folder)[0], 0)
            part = os.path.join(series, "10", reader.read_manifest(older)[1][1].file)
            with open(part, "r+b") as file:
                file.seek(16)
                byte = file.read(1)
                file.seek(16)
                file.write(bytes([byte[0] ^ 1]))
            with self.assertRaisesRegex(reader.Corrupt, "needs version 10, its base: .*is damaged"):
                reader.Version(newer).image(0)
            for depth in ([], ["--decode"]):
                code, out, _ = self.alone("verify", "based", "12", "--json", *depth, "--persistent", folder)
                self.assertEqual((code, [(damage["rank"], damage["region"], "needs version 10, its base: " in damage["text"]) for damage in json.loads(out)["versions"][0]["damage"]]),
                                 (CORRUPT, [(0, "field-0", True)]))
            os.unlink(older)
            with self.assertRaisesRegex(reader.Corrupt, "needs version 10, its base: "):
                reader.Version(newer).image(1)

    def test_as_many_covers_as_pieces(self):
        """A cover is found by a search: a footer of 20,000 costs 10 times what one of 2,000 does, and not 100 times."""

        class Cover:
            looks = 0

            def __init__(self, place):
                self.rank, self.at, self.length, self.checksums, self.cuts = place // 100, place % 100 * 8192, 4096, [place], []

            @property
            def image_offset(self):
                Cover.looks += 1
                return self.at

        def footer(count, gap=0):
            runs = [reader.RECORDS["StoredRun"](i * 4096, 4096, 0, 0, [(i // 100, i % 100 * 8192 + gap, 4096, 0)], 0) for i in reversed(range(count))]
            made = dict.fromkeys(reader.RECORDS["Footer"]._fields, ())
            return reader.RECORDS["Footer"](**{**made, "block_bytes": 4096, "covers": [Cover(i) for i in range(count)], "runs": runs})

        looks = {}
        for count in (2_000, 20_000):
            Cover.looks = 0
            self.assertEqual([piece.units for piece in reader.pieces(footer(count))], [[(4096, i)] for i in reversed(range(count))])
            looks[count] = Cover.looks
        self.assertLessEqual(looks[20_000], 10 * looks[2_000])
        with self.assertRaisesRegex(reader.Corrupt, "rank 19 at 815104: no cover"):
            list(reader.pieces(footer(2_000, gap=4096)))
        swapped = footer(2)
        swapped.covers.reverse()
        with self.assertRaisesRegex(reader.Corrupt, "covers are not by rank"):
            list(reader.pieces(swapped))


if __name__ == "__main__":
    unittest.main(verbosity=2)
