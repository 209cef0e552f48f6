"""What the release with format 1 would have left where today's wrote: frames, rosters, images and committed versions, rewritten in place by FORMAT.md.

Version 1 had no region index: an image was its regions' bytes, and what regions there are stood in the slot's header and in the footer of each part that holds some
of it. Neither had it cuts, nor parts runs. FlatBuffers' own compiler makes the records; none of Cairn's code is used, and what examples/reader reads.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "examples", "reader"))
import reader  # noqa: E402

SLOT_HEADER = 4096


def flatc(*arguments):
    subprocess.run([shutil.which("flatc"), *arguments], check=True, capture_output=True, timeout=60)


# Every field that version 1 had in a record, those of the tables in it included: with the golden files of that version nothing else comes.
KEY, LINE = "name version incarnation high low ranks", "epoch parent"
IMAGE = "rank bytes regions kind type shape offset length"
FIELDS = {schema: set(names.split()) for schema, names in {
    "roster.fbs": f"{KEY} {LINE} secret files members node address",
    "image.fbs": f"key {KEY} {LINE} {IMAGE} block_bytes place image checksums_offset data_offset",
    "part.fbs": f"key {KEY} {IMAGE} attempt attempt_id part parts block_bytes data_bytes images extents image_offset part_offset checksums",
    "manifest.fbs": f"key {KEY} {LINE} attempt_id abandoned nodes image_bytes block_bytes wall_time_s parts file bytes footer_offset footer_checksum"}.items()}


def names_in(record):
    if isinstance(record, list):
        return set().union(*map(names_in, record))
    return set(record).union(*map(names_in, record.values())) if isinstance(record, dict) else set()


def compiled(schema, arguments, given, made, data):
    """What flatc makes of one file."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, given), "wb") as file:
            file.write(data)
        place = ["-o", folder + "/", "-I", os.path.join(ROOT, "src", "format"), os.path.join(ROOT, "src", "format", schema)]
        flatc(*arguments, *place, *(["--"] if given.endswith(".bin") else []), os.path.join(folder, given))
        return reader.read(os.path.join(folder, made))


def unpacked(schema, body):
    """The FlatBuffers record as JSON. What is absent has its default."""
    return json.loads(compiled(schema, ["--json", "--raw-binary", "--strict-json"], "record.bin", "record.json", body))


def repacked(schema, record):
    return compiled(schema, ["-b"], "record.json", "record.bin", json.dumps(record).encode())


def packed(schema, record):
    """The record of version 1."""
    assert names_in(record) <= FIELDS[schema], (schema, names_in(record) - FIELDS[schema])
    return repacked(schema, record)


def frame(magic, body, version=1):
    start = magic + struct.pack("<IIQQ", version, 0, len(body), reader.checksum(body))
    return start + struct.pack("<Q", reader.checksum(start)) + body


def write(path, data, at=None):
    """The whole file, or what is at an offset of it; the file stays the same one, with its mode."""
    mode = os.stat(path).st_mode
    os.chmod(path, 0o600)
    with open(path, "r+b") as file:
        file.seek(at or 0)
        file.write(data)
        if at is None:
            file.truncate()
    os.chmod(path, mode)


def version_of(path, at=0):
    """The format version that a frame says."""
    return struct.unpack("<I", reader.read(path, at + 8, 4))[0]


def make_frame_old(path, at=0):
    """Only its header: the body means the same in version 1."""
    start = bytearray(reader.read(path, at, 32))
    assert start[:5] == b"CAIRN" and struct.unpack_from("<I", start, 8) == (2,), (path, bytes(start))
    struct.pack_into("<I", start, 8, 1)
    write(path, bytes(start) + struct.pack("<Q", reader.checksum(bytes(start))), at)


def make_roster_old(path):
    record = unpacked("roster.fbs", reader.read(path)[40:])
    assert record.pop("format") == 2, record
    write(path, frame(b"CAIRNros", packed("roster.fbs", record)))


def image_old(image, data):
    """What version 1 says of an image, whose index told its regions, and the bytes that it had: those up to the end of the last region."""
    index_bytes = image.get("index_bytes", 0)
    regions = reader.regions(reader.RECORDS["Image"](image.get("rank", 0), len(data), [], 0, index_bytes), data)
    length = max((region.offset + region.length for region in regions), default=0)
    assert bool(index_bytes) == bool(data) and not any(data[length:len(data) - index_bytes]), image
    told = [{name: getattr(region, name) for name in ("name", "kind", "type", "shape", "offset", "length")} for region in regions]
    assert not any(region.global_shape for region in regions), "version 1 has no blocks of arrays"
    return {"rank": image.get("rank", 0), "bytes": length, "regions": told}, data[:length]


def block_sums(data, block):
    return [reader.checksum(data[at:at + block]) for at in range(0, len(data), block)]


def up(number, multiple):
    return -(-number // multiple) * multiple


def read_slot(path):
    """The header's record, and the image's bytes."""
    length = struct.unpack("<Q", reader.read(path, SLOT_HEADER + 16, 8))[0]
    record = unpacked("image.fbs", reader.read(path, SLOT_HEADER + 40, length))
    return record, reader.read(path, record["place"]["data_offset"], record["image"].get("bytes", 0))


def slot_table(record, data):
    """The table of an image of version 1, a checksum for each block, and its proof."""
    sums = block_sums(data, record["block_bytes"])
    table = struct.pack(f"<{len(sums)}Q", *sums)
    incarnation = record["key"]["incarnation"]
    proof = struct.pack("<6Q", incarnation["high"], incarnation["low"], record["key"]["version"], record["image"].get("rank", 0), len(data), record["block_bytes"])
    return table, reader.checksum(proof + table)


def make_image_old(path):
    """A slot, laid out anew: with its regions in it the header is longer."""
    record, data = read_slot(path)
    record["image"], data = image_old(record["image"], data)
    header = frame(b"CAIRNimg", packed("image.fbs", record))
    table, proof = slot_table(record, data)
    checksums_at = up(SLOT_HEADER + len(header), 64)
    data_at = up(checksums_at + len(table), 4096)
    record["place"] = {"checksums_offset": checksums_at, "data_offset": data_at}
    slot = bytearray(max(data_at + up(len(data), 4096), os.path.getsize(path)))  # no slot gets smaller when another image takes it
    state = reader.read(path, 0, SLOT_HEADER)
    slot[:SLOT_HEADER] = state
    slot[SLOT_HEADER:SLOT_HEADER + len(header)] = frame(b"CAIRNimg", packed("image.fbs", record))
    slot[data_at:data_at + len(data)] = data
    if state[8:16] == b"CRNCSUMD":
        slot[checksums_at:checksums_at + len(table)] = table
        struct.pack_into("<Q", slot, 16, proof)
    write(path, bytes(slot))


def make_records_old(*tops):
    """Every image header, roster and record below these folders, but for what belongs to committed versions: how many of which magic there were."""
    seen = {}
    for path in (os.path.join(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names):
        if not os.path.isfile(path):
            continue
        at = SLOT_HEADER if os.path.basename(path).startswith("slot-") else 0
        magic = reader.read(path, at, 8)
        if magic == b"CAIRNimg":
            make_image_old(path)
        elif magic in (b"CAIRNopn", b"CAIRNfrm", b"CAIRNnod"):
            make_frame_old(path, at)
        elif magic == b"CAIRNros":
            make_roster_old(path)
        else:
            continue
        assert version_of(path, at) == 1
        seen[magic] = seen.get(magic, 0) + 1
    return seen


def make_part_old(path, part, images):
    """Each piece an extent of its own, on a multiple of the block size, and nothing of an index; returns what the manifest says of it."""
    footer, _ = reader.read_footer(path, part.bytes)
    start, length = struct.unpack_from("<QQ", reader.read(path, part.bytes - 48))
    record = unpacked("part.fbs", reader.read(path, start, length))
    block, data, extents = footer.block_bytes, bytearray(), []
    for piece in reader.pieces(footer):
        raw = reader.raw(path, piece)[:max(0, images[piece.rank]["bytes"] - piece.image_offset)]
        if not raw:
            continue
        assert piece.image_offset % block == 0 and (len(raw) % block == 0 or piece.image_offset + len(raw) == images[piece.rank]["bytes"]), piece
        extents.append({"rank": piece.rank, "image_offset": piece.image_offset, "length": len(raw), "part_offset": len(data), "checksums": block_sums(raw, block)})
        data += raw
        data += bytes(-len(data) % block)
    assert not record.get("prefix_bytes") and not record.get("bases") and part.root == 0, record
    for later in ("codecs", "covers", "runs", "bases"):
        record.pop(later, None)
    held = {extent["rank"] for extent in extents}
    record["images"] = [images[each.rank] for each in footer.images if each.rank in held or images[each.rank]["bytes"] == 0]
    record["extents"], record["data_bytes"] = extents, len(data)
    body = packed("part.fbs", record)
    trailer = struct.pack("<QQQII", len(data), len(body), reader.checksum(body), 1, 0)
    trailer += struct.pack("<Q", reader.checksum(trailer)) + b"CAIRNprt"
    write(path, bytes(data) + body + trailer)
    return {"file": part.file, "bytes": len(data) + len(body) + len(trailer), "footer_offset": len(data), "footer_checksum": reader.checksum(body),
            "ranks": sorted(image["rank"] for image in record["images"])}


def make_version_old(manifest):
    """A committed version: its parts, and the manifest that names them."""
    whole, (_, parts) = reader.Version(manifest), reader.read_manifest(manifest)
    images = {rank: image_old(image._asdict(), whole.image(rank))[0] for rank, image in whole.images.items()}
    length = struct.unpack("<Q", reader.read(manifest, 16, 8))[0]
    record = unpacked("manifest.fbs", reader.read(manifest, 40, length))
    assert not record.get("bases") and not record.get("roots"), record
    for later in ("layout", "files", "part_records", "rank_parts", "bases", "page_checksums", "roots"):
        record.pop(later, None)
    record["image_bytes"] = sum(image["bytes"] for image in images.values())
    record["parts"] = [make_part_old(os.path.join(os.path.dirname(manifest), part.file), part, images) for part in parts]
    write(manifest, frame(b"CAIRNman", packed("manifest.fbs", record)))
