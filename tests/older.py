"""What the release with format 1 would have left where today's wrote: frames, rosters and committed versions, rewritten in place by FORMAT.md.

Records are the same FlatBuffers in both versions but for the roster's `format` and a part's footer, which FlatBuffers' own compiler makes here; none of
Cairn's code is used, and what examples/reader reads.
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


def changed(schema, body, change):
    """The FlatBuffers record, written anew after `change` was made to it as JSON. What is absent in the result has its default."""
    with tempfile.TemporaryDirectory() as folder:
        binary, text = os.path.join(folder, "record.bin"), os.path.join(folder, "record.json")
        place = ["-o", folder + "/", "-I", os.path.join(ROOT, "src", "format"), os.path.join(ROOT, "src", "format", schema)]
        with open(binary, "wb") as file:
            file.write(body)
        flatc("--json", "--raw-binary", "--strict-json", *place, "--", binary)
        with open(text) as file:
            record = json.load(file)
        change(record)
        with open(text, "w") as file:
            json.dump(record, file)
        flatc("-b", *place, text)
        with open(binary, "rb") as file:
            return file.read()


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
    def change(record):
        assert record.pop("format") == 2, record
    write(path, frame(b"CAIRNros", changed("roster.fbs", reader.read(path)[40:], change)))


def make_image_old(path):
    """A slot: its header knows no cuts, and its table, where it is filled, has a checksum for each block."""
    state = {}

    def change(record):
        record["image"].pop("cuts", None)
        state.update(record)
    length = struct.unpack("<Q", reader.read(path, SLOT_HEADER + 16, 8))[0]
    write(path, frame(b"CAIRNimg", changed("image.fbs", reader.read(path, SLOT_HEADER + 40, length), change)), SLOT_HEADER)
    if reader.read(path, 8, 8) == b"CRNCSUMD":
        image, block = state["image"], state["block_bytes"]
        data = reader.read(path, state["place"]["data_offset"], image.get("bytes", 0))
        table = struct.pack(f"<{-(-len(data) // block)}Q", *(reader.checksum(data[at:at + block]) for at in range(0, len(data), block)))
        incarnation = state["key"]["incarnation"]
        proof = struct.pack("<6Q", incarnation["high"], incarnation["low"], state["key"]["version"], image.get("rank", 0), len(data), block)
        write(path, table, state["place"]["checksums_offset"])
        write(path, struct.pack("<Q", reader.checksum(proof + table)), 16)


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


def make_part_old(path, part):
    """Each piece an extent of its own, on a multiple of the block size; returns what the manifest says of it."""
    footer, _ = reader.read_footer(path, part.bytes)
    start, length = struct.unpack_from("<QQ", reader.read(path, part.bytes - 48))
    data, extents = bytearray(), []
    for piece in reader.pieces(footer):
        raw = reader.raw(path, piece)
        extents.append({"rank": piece.rank, "image_offset": piece.image_offset, "length": piece.length, "part_offset": len(data),
                        "checksums": [reader.checksum(raw[at:at + footer.block_bytes]) for at in range(0, len(raw), footer.block_bytes)]})
        data += raw
        data += bytes(-len(data) % footer.block_bytes)

    def change(record):
        for later in ("codecs", "covers", "runs"):
            record.pop(later, None)
        for image in record["images"]:
            image.pop("cuts", None)
        record["extents"], record["data_bytes"] = extents, len(data)
    body = changed("part.fbs", reader.read(path, start, length), change)
    trailer = struct.pack("<QQQII", len(data), len(body), reader.checksum(body), 1, 0)
    trailer += struct.pack("<Q", reader.checksum(trailer)) + b"CAIRNprt"
    write(path, bytes(data) + body + trailer)
    return {"file": part.file, "bytes": len(data) + len(body) + len(trailer), "footer_offset": len(data), "footer_checksum": reader.checksum(body),
            "ranks": part.ranks, "root": part.root}


def make_version_old(manifest):
    """A committed version: its parts, and the manifest that names them."""
    _, parts = reader.read_manifest(manifest)

    def change(record):
        for later in ("layout", "files", "part_records", "rank_parts", "bases", "page_checksums"):
            record.pop(later, None)
        record["parts"] = [make_part_old(os.path.join(os.path.dirname(manifest), part.file), part) for part in parts]
    length = struct.unpack("<Q", reader.read(manifest, 16, 8))[0]
    write(manifest, frame(b"CAIRNman", changed("manifest.fbs", reader.read(manifest, 40, length), change)))
