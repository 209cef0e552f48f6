"""The codecs of Cairn's parts (FORMAT.md, "Codecs"), each as one function; reader.py looks for them by name. Nothing is checked here: whoever asks compares checksums of the raw bytes."""
import struct
import subprocess


def zero_runs(stored, wanted):
    """The first raw bytes of a run with the codec of that name, as many as are wanted."""
    data, at = bytearray(), 0
    while at + 8 <= len(stored) and len(data) < wanted:
        literal, zeros = struct.unpack_from("<II", stored, at)
        data += stored[at + 8:at + 8 + literal]
        data += bytes(min(zeros, max(0, wanted - len(data))))
        at += 8 + literal
    return bytes(data[:wanted])


def numbers(stored, wanted):
    """The first raw bytes of a run with the codec delta-shuffle-zstd, as many as are wanted or more."""
    data, at = bytearray(), 0
    while at + 6 <= len(stored) and len(data) < wanted:
        length, width, lag = struct.unpack_from("<IBB", stored, at)
        stretch = stored[at + 6:at + 6 + length]
        data += stretch if width == 0 else numbers_of(stretch, width, lag)
        at += 6 + length
    return bytes(data)


def zstandard(frame):
    return subprocess.run(["zstd", "-dc"], input=frame, stdout=subprocess.PIPE, check=True).stdout  # the program, since Python before 3.14 has no Zstandard


def numbers_of(stretch, width, lag):
    content = zstandard(stretch)
    count, modulus = len(content) // width, 1 << 8 * width
    values = [int.from_bytes(each, "little") for each in zip(*(content[byte * count:(byte + 1) * count] for byte in range(width)))]
    if lag:
        values = [value >> 1 ^ -(value & 1) for value in values]
        for i in range(lag, count):
            values[i] += values[i - lag]
    return b"".join((value % modulus).to_bytes(width, "little") for value in values) + content[count * width:]


def planes(stored, wanted):
    """All raw bytes of a run with the codec predict-planes-zstd, of which there are `wanted`."""
    at, laid, pieces = 0, 0, []

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = stored[at], at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    for _ in range(number()):
        before, length, stretch = number(), number(), number()
        pieces.append((laid + before, length, stretch))
        laid += before + length
    contents = []
    while at < len(stored):
        length, follow, width, flags, strides = struct.unpack_from("<IIBBBx", stored, at)
        content = stored[at + 12:at + 12 + follow]
        content = content if width == 0 else planes_of(content, length, width, flags, strides)
        contents.append(content)
        at += 12 + follow
    count = 1 + max((stretch for _, _, stretch in pieces), default=-1)
    rest, used, taken, data = b"".join(contents[count:]), 0, [0] * count, bytearray()
    for begin, length, stretch in pieces:
        before = begin - len(data)
        data += rest[used:used + before] + contents[stretch][taken[stretch]:taken[stretch] + length]
        used, taken[stretch] = used + before, taken[stretch] + length
    return bytes(data + rest[used:])


def planes_of(content, length, width, flags, strides):
    count, modulus = length // width, 1 << 8 * width
    stride, at, found = struct.unpack_from(f"<{strides}I", content), 4 * strides, []
    for _ in range(width):
        follow, = struct.unpack_from("<I", content, at)
        plane = content[at + 4:at + 4 + follow]
        found.append(plane if follow == count else zstandard(plane))
        at += 4 + follow
    values = [int.from_bytes(each, "little") for each in zip(*found)]
    if strides:
        values = [value >> 1 ^ -(value & 1) for value in values]
    for each in reversed(stride):
        for i in range(each, count):
            values[i] += values[i - each]
    values = [value % modulus for value in values]
    if flags & 1:
        values = [value ^ (modulus // 2 - 1) if value >= modulus // 2 else value for value in values]
    return b"".join(value.to_bytes(width, "big" if flags & 2 else "little") for value in values) + content[at:]


CODECS = {"zero-runs": zero_runs, "delta-shuffle-zstd": numbers, "predict-planes-zstd": planes}  # by name: (stored bytes, how many raw ones are wanted) to at least those
