"""Tables of bench/durable, and what was wanted beside what came out. Seconds and counts in, text out."""
import math
import statistics

from report import table

LATER_WANTED = 1.02  # off / auto is at least its inverse
LOSS_WANTED = 0.003
HERE = """How soon checkpoints are durable, and back, by how they are stored: {nodes} nodes on one machine with {cores} cores, `cairn watch` on each, images in memory, parts below a folder of one disk or memory ({name}).
The files of a set are enlarged by copies that differ (every floating-point array of a copy multiplied by a factor of its own). Ways take turns, one version each a round; {rounds} rounds count, after two in which auto learns.
Durable: from the last node's "captured" until the manifest has its name; medians, and the order statistics that hold the median of the pairs in 96 of 100 cases or more. Back: `cairn extract` on all nodes at once, median of
{restores}, every file compared. Ratio: of the bytes that the parts take, footers and all. Encoded: of the versions that count, those of which anything was stored encoded.
Machine: {machine}; load before: {load}. Source: {source}.
Repeat: {command}
"""
BUSY = """What an application loses: so many loops count for {period:g} s from the moment when a checkpoint's files are closed, so a checkpoint comes every {period:g} s, capture, flush and all. Ways take turns, {pairs} versions
each, after two that do not count. Loses: what the loops count less than beside {first}, of {first}; median of the pairs and its interval. What a version does after that time is in no figure; how long it takes until it is durable stands beside.
"""


def interval(values):
    """The median, and the order statistics that hold it in at least 96 of 100 cases; of fewer than seven values these are the outermost, and hold it less often."""
    ordered = sorted(values)
    count, cut = len(ordered), 0
    while 2 * (cut + 1) < count and 2 * sum(math.comb(count, below) for below in range(cut + 2)) <= 0.04 * 2**count:
        cut += 1
    return statistics.median(ordered), ordered[cut], ordered[-1 - cut]


def durable_table(sets, codecs):
    first = codecs[0]
    headings, rows = ["set", "MB", "codec", "ratio", "durable s", f"{first} / it", "its interval", "of the ratio", "encoded", "back s", f"{first} / it"], []
    for each in sets:
        base = each["codecs"][first]
        for codec, found in each["codecs"].items():
            ratio = base["stored_bytes"] / found["stored_bytes"]
            middle, low, high = interval(sooner(base, found))
            back = statistics.median(found["back_s"])
            rows.append([each["set"], f"{each['raw_bytes'] / 1e6:.0f}", codec, f"{ratio:.3f}", f"{statistics.median(found['durable_s']):.3f}", f"{middle:.3f}", f"{low:.3f} to {high:.3f}",
                         f"{100 * middle / ratio:.0f} %", f"{sum(found['encoded'])} of {len(found['encoded'])}", f"{back:.2f}", f"{statistics.median(base['back_s']) / back:.3f}"])
    return table(headings, rows)


def sooner(base, found):
    return [off / it for off, it in zip(base["durable_s"], found["durable_s"])]


def losses(load, codec, first):
    """Shares of what the loops count beside the first codec, pair by pair."""
    return [1 - it / off for off, it in zip(load["codecs"][first]["rates"], load["codecs"][codec]["rates"])]


def busy_table(sets, codecs):
    first, rows = codecs[0], []
    for each in sets:
        for load in each["loads"]:
            for codec, found in load["codecs"].items():
                middle, low, high = interval(losses(load, codec, first))
                rows.append([each["set"], f"{load['raw_bytes'] / 1e6:.0f}", load["loops"], codec, f"{statistics.median(found['rates']):.0f}", f"{100 * middle:.2f} %", f"{100 * low:.2f} to {100 * high:.2f} %",
                             f"{statistics.median(found['durable_s']):.2f}", f"{sum(found['encoded'])} of {len(found['encoded'])}"])
    return table(["set", "MB", "busy loops", "codec", "counts a s", "loses", "its interval", "durable after s", "encoded"], rows)


def wanted(sets, codecs, cores):
    """A line for each goal and set: what auto is for, and may not cost."""
    if "auto" not in codecs:
        return []
    first, lines = codecs[0], []
    for each in sets:
        middle, low, _ = interval(sooner(each["codecs"][first], each["codecs"]["auto"]))
        lines.append(f"{each['set']}: auto is durable {describe(1 / middle - 1, 'later', 'sooner')} than {first}, at worst {describe(1 / low - 1, 'later', 'sooner')} by its interval (wanted: at most 2 % later): "
                     f"{verdict(1 / middle <= LATER_WANTED, 1 / low <= LATER_WANTED)}")
        for load in each["loads"]:
            middle, _, high = interval(losses(load, "auto", first))
            lines.append(f"{each['set']}: beside {load['loops']} busy loops auto costs {100 * middle:.2f} % more than {first}, at worst {100 * high:.2f} % by its interval (wanted: at most 0.3 %): "
                         f"{verdict(middle <= LOSS_WANTED, high <= LOSS_WANTED)}")
            if load["loops"] >= cores:
                encoded = sum(load["codecs"]["auto"]["encoded"])
                lines.append(f"{each['set']}: with all cores busy auto encoded {encoded} of {len(load['codecs']['auto']['encoded'])} versions (wanted: none): {verdict(encoded == 0, True)}")
    return lines


def describe(share, more, less):
    return f"{abs(100 * share):.1f} % {more if share > 0 else less}"


def verdict(middle_holds, interval_holds):
    return ("reached" if interval_holds else "reached by the median, not by the interval") if middle_holds else "NOT REACHED"


def text(result):
    """The report of a folder on this machine."""
    about, sets, codecs = result["about"], result["sets"], result["codecs"]
    lines = [HERE.format(**about), durable_table(sets, codecs), ""]
    if any(each["loads"] for each in sets):
        lines += [BUSY.format(first=codecs[0], **about), busy_table(sets, codecs), ""]
    return "\n".join(lines + wanted(sets, codecs, about["cores"])) + "\n"
