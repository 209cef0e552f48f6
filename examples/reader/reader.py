#!/usr/bin/env python3
"""Reads what Cairn committed, with none of Cairn's code: an implementation of FORMAT.md for readers of FORMAT.md.

    reader.py PERSISTENT/NAME                        versions of the current lineage
    reader.py PERSISTENT/NAME VERSION                ranks and regions of one, every checksum compared
    reader.py PERSISTENT/NAME VERSION RANK REGION    the region's bytes to stdout

Python's own library and libxxhash (for XXH3) is all it needs, and for encoded runs decoders.py and the program zstd. Order: numbers and FlatBuffers, frame, manifest, part, lineage, the region index, a version, the command.
It checks what it relies on and not each invariant of FORMAT.md; `cairn verify` does.
"""
import bisect
import collections
import ctypes
import ctypes.util
import itertools
import os
import re
import struct
import sys

from decoders import CODECS, WITH_BASE

xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

class Corrupt(Exception):
    """Bytes are not what FORMAT.md says they are."""


class Unavailable(Exception):
    """Bytes can not be had now: nothing is known of them."""


def require(holds, text):
    if not holds:
        raise Corrupt(text)


def checksum(data):
    return xxhash.XXH3_64bits(data, len(data))


# ---- FlatBuffers: the tables of src/format/*.fbs, fields in their order ----

NUMBERS = {"bool": "<?", "u8": "<B", "u32": "<I", "u64": "<Q"}
STRUCTS = {"Id": "<QQ", "Parent": "<QQQ", "Piece": "<I4xQQQ"}
TABLES = {
    "Key": "name:string version:u64 incarnation:Id",
    "Region": "name:string kind:u8 type:u8 shape:[u64] offset:u64 length:u64 global_shape:[u64] global_offset:[u64] described:[DescribedArray]",
    "DescribedArray": "name:string type:u8 big_endian:bool shape:[u64] offset:u64",
    "Image": "rank:u32 bytes:u64 regions:[Region] cuts:u64 index_bytes:u64",
    "PageRef": "first_name:string offset:u64 length:u64",
    "RegionPage": "regions:[Region] below:[PageRef]",
    "Extent": "rank:u32 image_offset:u64 length:u64 part_offset:u64 checksums:[u64]",
    "Cover": "rank:u32 image_offset:u64 length:u64 checksums:[u64] cuts:[u64]",
    "StoredRun": "part_offset:u64 stored_bytes:u64 codec:u32 checksum:u64 pieces:[Piece] base:u32",
    "BaseRun": "incarnation:Id version:u64 part:u32 part_offset:u64",
    "Codec": "name:string parameters:string",
    "Footer": "key:Key attempt:u32 attempt_id:Id part:u32 parts:u32 ranks:u32 block_bytes:u64 data_bytes:u64 images:[Image] extents:[Extent] "
              "codecs:[Codec] covers:[Cover] runs:[StoredRun] bases:[BaseRun] prefix_bytes:u64 prefix_checksum:u64",
    "PartInfo": "file:string bytes:u64 footer_offset:u64 footer_checksum:u64 ranks:[u32] root:u32",
    "Manifest": "key:Key epoch:u64 parent:Parent attempt_id:Id abandoned:bool ranks:u32 nodes:u32 image_bytes:u64 block_bytes:u64 "
                "wall_time_s:u64 parts:[PartInfo] roots:[string] layout:u8 files:u32 part_records:u32 rank_parts:u32 bases:[Base] page_checksums:[u64]",
    "Base": "incarnation:Id version:u64 attempt_id:Id files:u32 layout:u8",
    "OpenRecord": "incarnation:Id epoch:u64 host:string pid:u64 wall_time_s:u64 ranks:u32",
    "FromRecord": "incarnation:Id parent:Parent looked:bool whole:[Parent]",
}
RECORDS = {name: collections.namedtuple(name, [field.split(":")[0] for field in fields.split()]) for name, fields in TABLES.items()}


def number(kind, data, at):
    return struct.unpack_from(kind, data, at)[0]


def vector(data, at, item, item_bytes):
    count = number("<I", data, at)
    require(at + 4 + count * item_bytes <= len(data), "a vector goes beyond its buffer")
    return [item(at + 4 + i * item_bytes) for i in range(count)]


def value(kind, data, at):
    """What stands at `at` for a field or element of this kind; strings, vectors and tables stand there as an offset."""
    if kind in NUMBERS:
        return number(NUMBERS[kind], data, at)
    if kind in STRUCTS:
        return struct.unpack_from(STRUCTS[kind], data, at)
    there = at + number("<I", data, at)
    if kind == "string":
        length = number("<I", data, there)
        require(there + 4 + length <= len(data), "a string goes beyond its buffer")
        return data[there + 4:there + 4 + length].decode()
    if kind.startswith("["):
        item = kind[1:-1]
        in_place = {**NUMBERS, **STRUCTS}.get(item)
        item_bytes = struct.calcsize(in_place) if in_place else 4
        return vector(data, there, lambda each: value(item, data, each), item_bytes)
    return table(kind, data, there)


def table(name, data, at):
    """A table as a namespace; a field that is absent has its default."""
    vtable = at - number("<i", data, at)
    values = []
    for slot, field in enumerate(TABLES[name].split()):
        kind = field.split(":")[1]
        place = 4 + 2 * slot
        offset = number("<H", data, vtable + place) if place < number("<H", data, vtable) else 0
        absent = [] if kind.startswith("[") else "" if kind == "string" else None if kind in TABLES or kind in STRUCTS else 0
        values.append(value(kind, data, at + offset) if offset else absent)
    return RECORDS[name](*values)


def root(name, data):
    try:
        return table(name, data, number("<I", data, 0))
    except (struct.error, UnicodeDecodeError, RecursionError) as error:
        raise Corrupt(f"not a FlatBuffers {name}: {error}") from None


# ---- frame ----

def read(path, offset=0, length=-1):
    require(os.path.isfile(path), f"{path}: is no file")  # whoever opens a FIFO hangs
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(length)


def frame(path, magic, name):
    """The record of a file in a frame: not Cairn's, damaged, or newer, told in this order."""
    record, behind = frame_and_more(path, magic, name)
    require(not behind, f"{path}: its length is wrong")
    return record


def frame_and_more(path, magic, name):
    """The same, and what stands behind it."""
    data = read(path)
    require(len(data) >= 40 and data[:8] == magic, f"{path}: not {magic.decode()}")
    version, zero, length, body_checksum, header_checksum = struct.unpack_from("<IIQQQ", data, 8)
    require(checksum(data[:32]) == header_checksum, f"{path}: its header is damaged")
    require(version in (1, 2), f"{path}: format version {version}; this reader knows 1 and 2")
    require(zero == 0 and 40 + length <= len(data), f"{path}: its length is wrong")
    body = data[40:40 + length]
    require(checksum(body) == body_checksum, f"{path}: its body is damaged")
    return root(name, body), data[40 + length:]


# ---- manifest ----

Part = collections.namedtuple("Part", "file bytes footer_offset footer_checksum ranks root base number attempt_id index_bytes")
LAYOUTS = ("part", "rank", "node", "tensors")
RECORD_BYTES, PAGE_BYTES = 48, 65536


def read_manifest(path):
    """The manifest's head, and its parts: in version 1 it names them, in version 2 they are records behind it."""
    head, tables = frame_and_more(path, b"CAIRNman", "Manifest")
    if head.part_records == 0:
        require(not tables, f"{path}: its length is wrong")
        return head, [Part(os.path.basename(each.file), each.bytes, each.footer_offset, each.footer_checksum, each.ranks, each.root, None, number,
                           head.attempt_id, 0) for number, each in enumerate(head.parts)]
    entries = head.part_records * RECORD_BYTES
    numbers = entries + 4 * (head.ranks + 1)
    require(len(tables) == numbers + 4 * head.rank_parts, f"{path}: its part records are not as long as it says")
    pages = [tables[at:at + PAGE_BYTES] for at in range(0, len(tables), PAGE_BYTES)]
    require([checksum(page) for page in pages] == head.page_checksums, f"{path}: its part records are damaged")
    begins = struct.unpack_from(f"<{head.ranks + 1}I", tables, entries)
    places = struct.unpack_from(f"<{head.rank_parts}I", tables, numbers)
    ranks = collections.defaultdict(list)
    for rank, (begin, end) in enumerate(zip(begins, begins[1:])):
        for place in places[begin:end]:
            ranks[place].append(rank)
    return head, [part_of(head, tables[place * RECORD_BYTES:(place + 1) * RECORD_BYTES], ranks[place]) for place in range(head.part_records)]


def part_of(head, record, ranks):
    size, footer_offset, footer_checksum, index_bytes, root_number, origin, number, replacement = struct.unpack("<QQQQIIII", record)
    require(origin <= len(head.bases), f"a part is of base {origin} of {len(head.bases)}")
    base = head.bases[origin - 1] if origin else None
    of = base or head  # both say the attempt, how many files there are, and of which layout
    file = f"{LAYOUTS[of.layout]}-{number:04}-of-{of.files:04}.%016x%016x" % of.attempt_id + (f".{replacement}" if replacement else "") + (".safetensors" if LAYOUTS[of.layout] == "tensors" else "")
    return Part(file, size, footer_offset, footer_checksum, ranks, root_number, base, number, of.attempt_id, index_bytes)


# ---- part ----

def read_footer(path, part_bytes, index_bytes=0):
    """The footer of a part and its checksum, from the trailer on; both end the part, or are a file beside it."""
    require(os.path.getsize(path) == part_bytes, f"{path}: not {part_bytes} bytes")
    size = index_bytes or part_bytes
    path += ".index" if index_bytes else ""
    require(os.path.getsize(path) == size, f"{path}: not {size} bytes")
    trailer = read(path, size - 48)
    offset, length, footer_checksum, version, zero, trailer_checksum = struct.unpack_from("<QQQIIQ", trailer)
    require(trailer[40:] == b"CAIRNprt", f"{path}: no trailer")
    require(checksum(trailer[:32]) == trailer_checksum, f"{path}: its trailer is damaged")
    require(version in (1, 2), f"{path}: format version {version}; this reader knows 1 and 2")
    require(zero == 0 and offset + length + 48 == size, f"{path}: its trailer is wrong")
    data = read(path, offset, length)
    require(checksum(data) == footer_checksum, f"{path}: its footer is damaged")
    footer = root("Footer", data)
    require(footer.data_bytes == (part_bytes if index_bytes else offset), f"{path}: its footer is elsewhere")
    return footer, footer_checksum


Piece = collections.namedtuple("Piece", "rank image_offset length units run at codec base")  # units: (length, checksum)
ExtentRun = collections.namedtuple("ExtentRun", "part_offset stored_bytes")


def units_of(cover, cuts, block_bytes):
    """The lengths of its units, which end at blocks and cuts of the image, each with its checksum."""
    begin, end = cover.image_offset, cover.image_offset + cover.length
    inside = {cut for cut in cuts if begin < cut < end} | set(range(begin // block_bytes * block_bytes + block_bytes, end, block_bytes))
    places = [begin, *sorted(inside), end]
    require(len(cover.checksums) == len(places) - 1, f"rank {cover.rank} at {begin}: {len(cover.checksums)} checksums for {len(places) - 1} units")
    return [(b - a, checksum) for a, b, checksum in zip(places, places[1:], cover.checksums)]


def pieces(footer):
    """What a part holds, of whichever version: raw bytes of an image, their checksums, and where in which stored run they are."""
    for extent in footer.extents:  # version 1: each is a run of its own
        units = units_of(extent, [], footer.block_bytes)
        yield Piece(extent.rank, extent.image_offset, extent.length, units, ExtentRun(extent.part_offset, extent.length), 0, None, None)
    starts = [(cover.rank, cover.image_offset) for cover in footer.covers]  # each is searched for, since there may be as many as pieces
    require(all(a < b for a, b in zip(starts, starts[1:])), "covers are not by rank and image offset")
    units, ends = {}, {}  # of a cover: lengths with checksums, and where they end in it
    for run in footer.runs:
        require(run.base <= len(footer.bases), f"a run has base {run.base} of {len(footer.bases)}")
        require(run.codec <= len(footer.codecs), f"a run has codec {run.codec} of {len(footer.codecs)}")
        codec = footer.codecs[run.codec - 1] if run.codec else None
        base = footer.bases[run.base - 1] if run.base else None
        for rank, image_offset, length, at in run.pieces:
            place = bisect.bisect(starts, (rank, image_offset)) - 1
            cover = footer.covers[place] if place >= 0 else None
            inside = cover and cover.rank == rank and image_offset + length <= cover.image_offset + cover.length
            require(inside, f"rank {rank} at {image_offset}: no cover with its checksums")
            if place not in units:
                units[place] = units_of(cover, cover.cuts, footer.block_bytes)
                ends[place] = list(itertools.accumulate(each for each, _ in units[place]))
            begin = image_offset - cover.image_offset
            those = units[place][bisect.bisect(ends[place], begin):bisect.bisect(ends[place], begin + length)]
            require(sum(each for each, _ in those) == length, f"rank {rank} at {image_offset}: no whole units of its cover")
            yield Piece(rank, image_offset, length, those, run, at, codec, base)


def raw(path, piece, older=None):
    """The raw bytes of a piece; `older` has those of its run in the version that is its base."""
    if piece.codec is None:
        data = read(path, piece.run.part_offset + piece.at, piece.length)
    else:
        require(piece.codec.name in CODECS and not piece.codec.parameters, f"{path}: encoded with {piece.codec.name}, which this reader does not know")
        stored = read(path, piece.run.part_offset, piece.run.stored_bytes)
        require(checksum(stored) == piece.run.checksum, f"{path}: the run at {piece.run.part_offset} is damaged")
        data = CODECS[piece.codec.name](stored, piece.at + piece.length if piece.base is None else len(older), older)[piece.at:piece.at + piece.length]
    require(len(data) == piece.length, f"{path}: too short")
    return data


# ---- lineage ----

def records(series):
    """Epochs and parents of the incarnations that the lineage's records tell; and by epoch, why a .from can not be read."""
    epochs, parents, lost = {}, {}, {}
    for name in sorted(os.listdir(os.path.join(series, "lineage"))):
        path, epoch = os.path.join(series, "lineage", name), int(name[:10]) if re.fullmatch(r"\d{10}\.(open|from)", name) else 0
        try:
            if epoch and name.endswith(".open"):
                epochs[frame(path, b"CAIRNopn", "OpenRecord").incarnation] = epoch
            elif epoch:
                record = frame(path, b"CAIRNfrm", "FromRecord")
                epochs[record.incarnation], parents[record.incarnation] = epoch, record.parent
        except Corrupt as error:
            if name.endswith(".from"):  # a .open decides nothing by itself
                lost[epoch] = str(error)
    return epochs, parents, lost


def versions(series):
    """[(version, path of its manifest)] of the current lineage, oldest first."""
    epochs, parents, lost = records(series)
    committed = {}
    for directory in (d for d in os.listdir(series) if re.fullmatch(r"[1-9]\d*", d)):
        for name in os.listdir(os.path.join(series, directory)):
            if not re.fullmatch(r"manifest\.[0-9a-f]{32}", name):
                continue
            path = os.path.join(series, directory, name)
            manifest, _ = frame_and_more(path, b"CAIRNman", "Manifest")
            require(manifest.key.version == int(directory) and "%016x%016x" % manifest.key.incarnation == name[9:], f"{path}: another's")
            if not manifest.abandoned:
                committed.setdefault(manifest.key.incarnation, []).append((manifest.key.version, path))
                epochs.setdefault(manifest.key.incarnation, manifest.epoch)
                parents.setdefault(manifest.key.incarnation, manifest.parent)
                lost.pop(epochs[manifest.key.incarnation], None)
    heads = [i for i in epochs if i in committed or any(parents.get(i, ())) or epochs[i] in lost]
    at = max(heads, key=epochs.get, default=None)
    above = [epoch for epoch in lost if epoch > epochs.get(at, 0)]
    require(not above, f"{lost[above[0]] if above else ''}: it may be the newest, and nothing else tells what it came from")
    found, limit = [], 2**64 - 1
    while at and any(at):
        why = lost.get(epochs[at]) if at in epochs else next(iter(lost.values()), None)
        require(why is None, f"{why}: nothing else tells what it came from")
        found += [each for each in committed.get(at, []) if each[0] <= limit]
        parent = parents.get(at, (0, 0, 0))
        at, limit = parent[:2], min(limit, parent[2])
    return sorted(found)


# ---- the region index ----

def regions(image, data):
    """What an image's regions are, as they lie in it: told beside it, or by the index that ends it."""
    if image.index_bytes == 0:
        return image.regions
    index = data[len(data) - image.index_bytes:]
    require(len(index) >= 32 and index[-8:] == b"CAIRNreg", f"rank {image.rank}: its region index does not end as one")
    at, length, count = struct.unpack_from("<QQQ", index, len(index) - 32)
    found = list(below(index[:-32], at, length, 0))
    require(len(found) == count, f"rank {image.rank}: its region index has {len(found)} regions, and says {count}")
    return sorted(found, key=lambda region: (region.offset, region.length, region.name))


def below(index, at, length, level):
    require(level < 16 and at + length <= len(index), "a page of a region index goes beyond it, or is too deep")
    page = root("RegionPage", index[at:at + length])
    yield from page.regions
    end = 0
    for ref in page.below:
        require(end <= ref.offset and ref.offset + ref.length <= at, "a page of a region index is not where it can be")
        end = ref.offset + ref.length
        yield from below(index, ref.offset, ref.length, level + 1)


# ---- a version ----

class Version:
    def __init__(self, manifest_path, is_base=False):
        directory = os.path.dirname(manifest_path)
        self.path, self.is_base, self.bases, self.known = manifest_path, is_base, {}, {}
        self.manifest, parts = read_manifest(manifest_path)
        self.images, self.pieces = {}, collections.defaultdict(list)
        for place, info in enumerate(parts):
            require(info.root <= len(self.manifest.roots), f"{manifest_path}: part {place} lies below a root that it does not name")
            key = self.manifest.key if info.base is None else self.manifest.key._replace(version=info.base.version, incarnation=info.base.incarnation)
            top = os.path.dirname(os.path.dirname(directory)) if info.root == 0 else self.manifest.roots[info.root - 1]
            path = os.path.join(top, os.path.basename(os.path.dirname(directory)), str(key.version), info.file)
            try:
                footer, footer_checksum = read_footer(path, info.bytes, info.index_bytes)
            except (FileNotFoundError, NotADirectoryError):
                if info.root != 0 and not os.path.isdir(os.path.join(top, ".cairn")):
                    raise Unavailable(f"{path}: it is not there, nor is {top}/.cairn: is its file system mounted?") from None
                raise Corrupt(f"{path}: the part is missing") from None
            there = sorted(image.rank for image in footer.images)
            same = (footer_checksum == info.footer_checksum and footer.key == key and footer.part == info.number and
                    footer.attempt_id == info.attempt_id and footer.block_bytes == self.manifest.block_bytes and
                    (there == info.ranks if info.base is None else set(info.ranks) <= set(there)))
            require(same, f"{path}: does not belong to {manifest_path}")
            self.images.update((image.rank, image) for image in footer.images if image.rank in info.ranks)
            for piece in pieces(footer):
                if piece.rank in info.ranks:
                    self.pieces[piece.rank].append((piece.image_offset, piece, path))

    def image(self, rank):
        """All bytes of a rank's image, each unit compared with its checksum first."""
        data, block = bytearray(), self.manifest.block_bytes
        require(rank in self.images, f"there is no rank {rank}")
        for image_offset, piece, path in sorted(self.pieces[rank], key=lambda each: each[0]):
            require(image_offset == len(data), f"rank {rank}: its pieces leave a gap")
            found = raw(path, piece, self.older(path, piece))
            begin = 0
            for length, expected in piece.units:
                where = (piece.run.part_offset + piece.at + begin) // block
                require(checksum(found[begin:begin + length]) == expected, f"{path}: block {where} of rank {rank} is damaged")
                begin += length
            data += found
        require(len(data) == self.images[rank].bytes, f"rank {rank}: its image is not all there")
        return bytes(data)

    def older(self, path, piece):
        """What the bytes of a piece's run are in the images of its base, of which all are read before; None where it has none."""
        if piece.base is None:
            return None
        where = f"{path}: the run at {piece.run.part_offset}"
        require(not self.is_base, f"{where}: has a base, and is needed of one: this reader reads no more than two versions for one")
        require(piece.codec.name in WITH_BASE and piece.base.part == piece.base.part_offset == 0, f"{where}: is encoded against a run of another version, which this reader can not do")
        of = piece.base.incarnation, piece.base.version
        require(of in [(base.incarnation, base.version) for base in self.manifest.bases], f"{where}: its base is not in the manifest")
        try:
            if of not in self.bases:
                series = os.path.dirname(os.path.dirname(self.path))
                self.bases[of] = Version(os.path.join(series, str(of[1]), "manifest.%016x%016x" % of[0]), is_base=True)
            older = b"".join(self.bases[of].bytes_of(*each[:3]) for each in piece.run.pieces)
        except Corrupt as error:
            raise Corrupt(f"{where}: needs version {of[1]}, its base: {error}") from None
        return older

    def bytes_of(self, rank, image_offset, length):
        if rank not in self.known:
            self.known[rank] = self.image(rank)
        found = self.known[rank][image_offset:image_offset + length]
        require(len(found) == length, f"rank {rank}: its image is shorter than a newer one")
        return found

    def region(self, rank, name):
        image = self.image(rank)
        for region in regions(self.images[rank], image):
            if region.name == name:
                return image[region.offset:region.offset + region.length]
        raise Corrupt(f"rank {rank} has no region {name}")


# ---- the command ----

def main(series, version=None, rank=None, region=None):
    require(os.path.isdir(os.path.join(series, "lineage")), f"{series}: no checkpoints lie here: give <persistent>/<name>")
    known = dict(versions(series))
    if version is None:
        for each, path in known.items():
            print(each, path)
        return
    require(int(version) in known, f"{series}: no version {version} in the current lineage")
    whole = Version(known[int(version)])
    if region is not None:
        sys.stdout.buffer.write(whole.region(int(rank), region))
        return
    for each_rank, image in sorted(whole.images.items()):
        data = whole.image(each_rank)
        print(f"rank {each_rank}: {image.bytes} bytes, checksums hold")
        for each in regions(image, data):
            print(f"    {each.name}: kind {each.kind}, type {each.type}, shape {each.shape}, {each.length} bytes")


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        sys.exit()
    if len(sys.argv) not in (2, 3, 5):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (Corrupt, Unavailable, OSError) as error:
        sys.exit(f"reader.py: {error}")
