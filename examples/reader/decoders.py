"""The codecs of Cairn's parts (FORMAT.md, "Codecs"), each as one function; reader.py looks for them by name. Nothing is checked here: whoever asks compares checksums of the raw bytes."""
import ctypes
import struct
import subprocess


def zero_runs(stored, wanted, _base):
    """The first raw bytes of a run with the codec of that name, as many as are wanted."""
    data, at = bytearray(), 0
    while at + 8 <= len(stored) and len(data) < wanted:
        literal, zeros = struct.unpack_from("<II", stored, at)
        data += stored[at + 8:at + 8 + literal]
        data += bytes(min(zeros, max(0, wanted - len(data))))
        at += 8 + literal
    return bytes(data[:wanted])


def numbers(stored, wanted, _base):
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


def planes(stored, wanted, base):
    """All raw bytes of a run with the codec predict-planes-zstd or predict-planes-small, of which there are `wanted`; `base` is what they were in an older version, or None."""
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
    count = 1 + max((stretch for _, _, stretch in pieces), default=-1)
    before = stretches_of(pieces, count, base) if base is not None else None
    contents, rest_at = [], 0
    while at < len(stored):
        length, follow, width, flags, strides, columns = struct.unpack_from("<IIBBBB", stored, at)
        content, stretch = stored[at + 12:at + 12 + follow], len(contents)
        if flags & 64:
            content = zstandard(content)
        elif columns:
            content = columns_of(content, length, columns)
        elif width:
            older = before[min(stretch, count)][rest_at:rest_at + length] if flags & 16 else None
            numbers_of_it, used = planes_of(content, length, width, flags, strides, older)
            content = numbers_of_it + content[used:]
        contents.append(content)
        rest_at += length if stretch >= count else 0
        at += 12 + follow
    rest, used, taken, data = b"".join(contents[count:]), 0, [0] * count, bytearray()
    for begin, length, stretch in pieces:
        gap = begin - len(data)
        data += rest[used:used + gap] + contents[stretch][taken[stretch]:taken[stretch] + length]
        used, taken[stretch] = used + gap, taken[stretch] + length
    return bytes(data + rest[used:])


def stretches_of(pieces, count, raw):
    """Raw bytes as they are divided among the stretches of arrays, and last the rest."""
    stretches, at = [bytearray() for _ in range(count + 1)], 0
    for begin, length, stretch in pieces:
        stretches[count] += raw[at:begin]
        stretches[stretch] += raw[begin:begin + length]
        at = begin + length
    stretches[count] += raw[at:]
    return stretches


def columns_of(content, length, columns):
    """The bytes of a stretch of records, of which each column is stored by itself."""
    record, before = struct.unpack_from("<HH", content)
    count, at, fields = (length - before) // record, 4, []
    for _ in range(columns):
        wide, width, flags, strides = struct.unpack_from("<BBBB", content, at)
        column, used = planes_of(content[at + 4:], count * wide, width, flags, strides, None) if width else (content[at + 4:at + 4 + count * wide], count * wide)
        fields.append([column[i * wide:(i + 1) * wide] for i in range(count)])
        at += 4 + used
    return content[at:at + before] + b"".join(b"".join(each) for each in zip(*fields)) + content[at + before:]


def planes_of(content, length, width, flags, strides, older):
    """The whole numbers of so many bytes, and how many bytes tell of them."""
    count, modulus = length // width, 1 << 8 * width
    stride, at, found = struct.unpack_from(f"<{strides}I", content), 4 * strides, []
    for _ in range(width):
        head, = struct.unpack_from("<I", content, at)
        follow, at = head & 0xFFFFFF, at + 4
        found.append(plane_of(head >> 24, content[at:at + follow], count, found[-1] if found else b""))
        at += follow
    values = [int.from_bytes(each, "big") for each in zip(*found)]  # the highest plane is the first
    if strides or flags & 16:
        values = [value >> 1 ^ -(value & 1) for value in values]
    if flags & 8:
        values = summed(values, stride, width)
    else:
        for each in reversed(stride):
            for i in range(each, count):
                values[i] += values[i - each]
        if flags & 16:
            values = [value + before for value, before in zip(values, numbers_in(older, width, flags, modulus))]
        values = [value % modulus for value in values]
        if flags & 1:
            values = [ordered(value, modulus) for value in values]
        if flags & 4:
            values = [value >> 1 | (value & 1) * modulus // 2 for value in values]
    return b"".join(value.to_bytes(width, "big" if flags & 2 else "little") for value in values), at


def numbers_in(raw, width, flags, modulus):
    """The numbers of raw bytes, turned as those that are stored were: what planes_of does at its end, the other way round."""
    values = [int.from_bytes(raw[at:at + width], "big" if flags & 2 else "little") for at in range(0, len(raw) // width * width, width)]
    if flags & 4:
        values = [value << 1 & modulus - 1 | value * 2 // modulus for value in values]
    if flags & 1:
        values = [ordered(value, modulus) for value in values]
    return values


def ordered(bits, modulus):
    return bits ^ (modulus // 2 - 1) if bits >= modulus // 2 else bits


def summed(values, stride, width):
    """The bits of numbers of which `values` says how far each lies from what those before it predict, in floating point."""
    bits_as, number_as, number, modulus = ("<Q", "<d", ctypes.c_double, 1 << 64) if width == 8 else ("<I", "<f", ctypes.c_float, 1 << 32)
    corners = []
    for subset in range((1 << len(stride)) - 1, 0, -1):
        axes = [each for bit, each in enumerate(stride) if subset >> bit & 1]
        corners.append((sum(axes), 1 if len(axes) % 2 else -1))
    numbers, found = [], []
    for i, value in enumerate(values):
        prediction = 0.0
        for back, sign in corners:
            if back <= i:
                prediction = number(prediction + sign * numbers[i - back]).value
        if prediction != prediction:
            prediction = 0.0
        likely, = struct.unpack(bits_as, bytes(number(prediction)))
        bits = ordered((value + ordered(likely, modulus)) % modulus, modulus)
        found.append(bits)
        numbers.append(struct.unpack(number_as, struct.pack(bits_as, bits))[0])
    return found


def plane_of(kind, stored, count, above):
    if kind == 0:
        return stored
    if kind == 1:
        return zstandard(stored)
    if kind == 3:
        return stored * count
    at, table_of = 0, [0] * 256
    if kind >= 4:
        table_of = []
        while len(table_of) < 256:
            table_of += [stored[at]] * (1 + stored[at + 1])
            at += 2
    tables = []
    for _ in range(1 + max(table_of)):
        slots, value = [], 0  # for each of the 4096: the value whose it is, its share, and how far it is in that
        while value < 256:
            first, second = stored[at:at + 2]
            if first == 0:
                value, at = value + 1 + second, at + 2
                continue
            share, at = (first, at + 1) if first < 128 else ((first - 128) << 8 | second, at + 2)
            slots += [(value, share, within) for within in range(share)]
            value += 1
        tables.append(slots)
    states, at, plane = list(struct.unpack_from("<4I", stored, at)), at + 16, bytearray()
    for i in range(count):
        state = states[i % 4]
        before = sum(plane[max(0, i - 8):i]) if kind == 5 else 0
        context = above[i] if kind == 4 else before if before < 64 else 64 + (before - 64) // 11
        value, share, within = tables[table_of[context]][state % 4096]
        state = share * (state // 4096) + within
        if state < 32768:
            state, at = state << 16 | struct.unpack_from("<H", stored, at)[0], at + 2
        states[i % 4] = state
        plane.append(value)
    return bytes(plane)


CODECS = {"zero-runs": zero_runs, "delta-shuffle-zstd": numbers, "predict-planes-zstd": planes, "predict-planes-small": planes}  # by name: (stored bytes, how many raw ones are wanted, what they were in the base or None) to at least those
WITH_BASE = {"predict-planes-zstd", "predict-planes-small"}  # those that know what to do with a base
