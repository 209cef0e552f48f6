"""Tables of what bench/codecs_run.py measured, in the order of SC12: Table III, Figures 6 to 8, Table IV, then what the paper did not have."""
import codecs_front as front

PAPER_IV = {"ALE3D": ("27.72 (32)", "6.6 (1)", "12.7 (32)", "6.6 (1)"), "Cactus": ("11.85 (32)", "10.69 (2)", "115 (1)", "98 (32)"),
            "Cosmology": ("20.59 (1)", "20.13 (32)", "21.14 (32)", "20.59 (1)"), "Implosion": ("38.43 (32)", "36.26 (1)", "38.83 (32)", "36.26 (1)")}
TIMED_BLOCK = 32 << 10
REFERENCE = "mcrengine"  # the paper's settings: FPC 2, fpzip 1-D, gzip 6
FASTER_WANTED = 8


def table(columns, rows):
    """Aligned; the first column and those that hold text to the left."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) if cells else len(name) for i, name in enumerate(columns)]
    is_left = [i == 0 or any(row[i] and not row[i][0].isdigit() and row[i][0] not in "-+(*" for row in cells) for i in range(len(columns))]

    def line(row):
        return "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in zip(row, widths, is_left)).rstrip()
    return "\n".join([line(columns), "  ".join("-" * width for width in widths), *map(line, cells)]) + "\n"


def size_text(block):
    if block < 1024:
        return f"{block} B"
    return f"{block >> 10} KiB" if block < 1 << 20 else f"{block >> 20} MiB"


def mb(each):
    return each["facts"]["bytes"] / 1e6


def speed(each, seconds):
    return f"{mb(each) / seconds:.0f}" if seconds else "-"


def pick(each, scheme, pipeline, passes, group=None, padded=False):
    group = group or each["facts"]["processes"]
    return [row for row in each["rows"] if (row["scheme"], row["pipeline"], row["passes"], row["group"], row["padded"]) == (scheme, pipeline, passes, group, padded)]


def best(rows):
    return max(rows, key=lambda row: row["ratio"]) if rows else None


def timed_row(each, scheme, pipeline, passes):
    """The one that was measured several times: blocks of 32 KiB; where none is, the best."""
    rows = pick(each, scheme, pipeline, passes)
    return next((row for row in rows if row["block"] in (0, TIMED_BLOCK)), best(rows))


def groups_of(each):
    return sorted({row["group"] for row in each["rows"]})


def blocks_of(each):
    return sorted({row["block"] for row in each["rows"] if row["block"]})


def characteristics(sets):
    rows = []
    for each in sets:
        f = each["facts"]
        of = {name: f["classes"][name] for name in ("f64", "f32", "other")}
        variables = "/".join(f"{100 * of[n]['variables'] / max(1, f['variables']):.0f}" for n in of)
        share = "/".join(f"{100 * of[n]['bytes'] / f['bytes']:.1f}" for n in of)
        rows.append([each["name"], f["processes"], f["files"], f"{mb(each):.1f}", f"{f['rank_bytes'][0] / 1e6:.2f}-{f['rank_bytes'][1] / 1e6:.2f}", f["variables"], f["rank_variables"], f["keys"],
                     f"{100 * f['described'] / f['bytes']:.1f} %", variables, share])
    return table(["set", "processes", "files", "MB", "MB a process", "variables", "a process", "keys", "described", "f64/f32/other, % of variables", "% of bytes"], rows)


def pipelines_of(each):
    return list(dict.fromkeys(row["pipeline"] for row in each["rows"]))


def schemes_table(each):
    """Ratio, and MB/s both ways, of all ranks in one group."""
    rows = []
    for pipeline in pipelines_of(each):
        for passes in (1, 2):
            cells = [pipeline, passes]
            for scheme in ("agnostic", "agnostic-block", "aware", "aware-block"):
                row, timed = best(pick(each, scheme, pipeline, passes)), timed_row(each, scheme, pipeline, passes)
                cells += [f"{row['ratio']:.3f}", speed(each, timed["encode_s"]), speed(each, timed["decode_s"])] if row else ["-"] * 3
                if scheme.endswith("block"):
                    cells.append(size_text(row["block"]) if row else "-")
            if any(cell != "-" for cell in cells[2:]):
                rows.append(cells)
    return table(["pipeline", "passes", "agnostic", "enc", "dec", "agnostic-block", "enc", "dec", "block", "aware", "enc", "dec", "aware-block", "enc", "dec", "block"], rows)


def merging_table(sets):
    """MB/s of copying into the merged order, and back."""
    rows = []
    for each in sets:
        cells = [each["name"]]
        for scheme in ("agnostic", "agnostic-block", "aware", "aware-block"):
            row = timed_row(each, scheme, "gzip", 1)
            cells += [speed(each, row.get("merge_s")), speed(each, row.get("split_s"))] if row else ["-", "-"]
        rows.append(cells)
    return table(["set", "agnostic", "back", "agnostic-block", "back", "aware", "back", "aware-block", "back"], rows)


GROUP_ROWS = (("agnostic", "gzip", 1), ("agnostic-block", "gzip", 1), ("aware", REFERENCE, 2), ("aware-block", REFERENCE, 2), ("aware", "mcrengine, FPC 2^16", 2), ("aware", "difference, shuffle, zstd-1", 1),
              ("agnostic", "Cairn predict-planes-zstd", 1), ("aware", "Cairn predict-planes-zstd", 1), ("aware-block", "Cairn predict-planes-zstd", 1))


def group_rows(each):
    for scheme, pipeline, passes in GROUP_ROWS:
        values = [best(pick(each, scheme, pipeline, passes, group)) for group in groups_of(each)]
        if any(values):
            yield scheme, pipeline, passes, values


def groups_table(sets):
    groups = sorted({group for each in sets for group in groups_of(each)})
    rows = []
    for each in sets:
        for scheme, pipeline, passes, values in group_rows(each):
            of = dict(zip(groups_of(each), values))
            rows.append([each["name"], scheme, pipeline, passes] + [f"{of[g]['ratio']:.3f}" if of.get(g) else "" for g in groups])
    return table(["set", "scheme", "pipeline", "passes"] + [f"group {g}" for g in groups], rows)


def blocks_table(sets):
    blocks = sorted({block for each in sets for block in blocks_of(each)})
    rows = []
    for each in sets:
        for scheme, pipeline, passes in (("agnostic-block", "gzip", 1), ("aware-block", REFERENCE, 2), ("aware-block", "mcrengine, FPC 2^16", 2), ("aware-block", "fpzip, true shape", 1),
                                         ("aware-block", "Cairn predict-planes-zstd", 1)):
            for padded in (False, True):
                of = {row["block"]: row["ratio"] for row in pick(each, scheme, pipeline, passes, None, padded)}
                if of:
                    whole = best(pick(each, scheme.replace("-block", ""), pipeline, passes))
                    rows.append([each["name"], scheme, pipeline, passes, "padded" if padded else "as they are", f"{whole['ratio']:.3f}" if whole else "-"] +
                                [f"{of[b]:.3f}" if b in of else "-" for b in blocks])
    return table(["set", "scheme", "pipeline", "passes", "last blocks", "no blocks"] + [size_text(b) for b in blocks], rows)


def improvements(each):
    """SC12, Equation 2: {scheme: [(percent, group)]}, the reference with two passes over agnostic with one."""
    found = {}
    for scheme in ("aware-block", "aware"):
        for group in groups_of(each):
            ours, theirs = best(pick(each, scheme, REFERENCE, 2, group)), best(pick(each, "agnostic", "gzip", 1, group))
            if ours and theirs:
                found.setdefault(scheme, []).append((100 * (ours["ratio"] / theirs["ratio"] - 1), group))
    return found


def improvement_table(sets):
    rows = []
    for each in sets:
        found = improvements(each)
        cells = [each["name"]]
        for scheme in ("aware-block", "aware"):
            cells += [f"{p:.2f} ({g})" for p, g in (max(found[scheme]), min(found[scheme]))] if found.get(scheme) else ["-", "-"]
        rows.append(cells)
    rows += [[f"{name} (paper)", *values] for name, values in PAPER_IV.items()]
    return table(["set", "aware-block, best %", "worst %", "aware, best %", "worst %"], rows)


def rivals_table(each):
    points = sorted(front.points_of(each), key=lambda p: -p["ratio"])
    rows = [[p["label"], p["way"], f"{p['ratio']:.3f}", f"{p['encode']:.0f}", f"{p['decode']:.0f}", "front" if p["encode_front"] else "", "front" if p["decode_front"] else ""] for p in points]
    return table(["codec", "what of", "ratio", "enc MB/s", "dec MB/s", "encode", "decode"], rows)


def speed_table(sets):
    """How many times as fast as the paper's pipeline, both ways, in the same run: files as they are, and the paper's merged by key, which it has to be."""
    rows = []
    for each in sets:
        ours = timed_row(each, "agnostic", "Cairn predict-planes-zstd", 1)
        for pipeline in (REFERENCE, "mcrengine, FPC 2^16"):
            theirs = timed_row(each, "aware", pipeline, 2)
            if ours and theirs and ours["encode_s"] and theirs["encode_s"]:
                faster = theirs["encode_s"] / ours["encode_s"]
                rows.append([each["name"], pipeline, speed(each, ours["encode_s"]), speed(each, theirs["encode_s"]), f"{faster:.1f}", f"{theirs['decode_s'] / ours['decode_s']:.1f}", "yes" if faster >= FASTER_WANTED else "no"])
    return table(["set", "beside", "Cairn enc", "its enc", "times", "times back", f"{FASTER_WANTED} times"], rows)


def where_cairn_lies(each):
    lines = []
    for p in front.points_of(each):
        if not p["label"].startswith("Cairn predict-planes-zstd") or "told nothing" in p["label"]:
            continue
        for way in ("encode", "decode"):
            better = front.better_than(p, front.points_of(each), way)
            if not better:
                lines.append(f"  {p['label']}, {p['way']}: on the front of {way} ({p['ratio']:.3f} at {p[way]:.0f} MB/s).")
            else:
                told = "; ".join(f"{q['label']}, {q['way']} ({q['ratio']:.3f} at {q[way]:.0f})" for q in better[:3])
                lines.append(f"  {p['label']}, {p['way']}: NOT on the front of {way} ({p['ratio']:.3f} at {p[way]:.0f} MB/s). Smaller and faster: {told}.")
    return "\n".join(lines) + "\n"


SERIES_ROWS = (("agnostic", "gzip", 1), ("agnostic-block", "gzip", 1), ("aware", REFERENCE, 2), ("aware-block", REFERENCE, 2), ("aware", "mcrengine, FPC 2^16", 2), ("aware", "difference, shuffle, zstd-1", 1),
               ("agnostic", "Cairn delta-shuffle-zstd", 1), ("agnostic", "Cairn predict-planes-zstd", 1), ("aware", "Cairn predict-planes-zstd", 1))


def series_table(versions):
    rows = []
    for scheme, pipeline, passes in SERIES_ROWS:
        values = [best(pick(each, scheme, pipeline, passes)) for each in versions]
        if all(values):
            rows.append([scheme, pipeline, passes] + [f"{row['ratio']:.3f}" for row in values])
    return table(["scheme", "pipeline", "passes"] + [f"v{n}" for n in range(len(versions))], rows)


def strided_table(sets):
    rows, others = [], []
    for each in sets:
        gains = []
        for pipeline, passes in (("gzip", 1), (REFERENCE, 2), ("mcrengine, FPC 2^16", 2), ("zstd-1", 1), ("fpzip, true shape", 1), ("difference, shuffle, zstd-1", 1), ("Cairn delta-shuffle-zstd", 1),
                                 ("Cairn predict-planes-zstd", 1)):
            aware, blocks = best(pick(each, "aware", pipeline, passes)), best(pick(each, "aware-block", pipeline, passes))
            if aware and blocks:
                gains.append([each["name"], pipeline, passes, f"{aware['ratio']:.3f}", f"{blocks['ratio']:.3f}", size_text(blocks["block"]), f"{100 * (blocks['ratio'] / aware['ratio'] - 1):+.1f} %"])
        if any(float(gain[-1].rstrip(" %")) >= 1 for gain in gains):
            rows += gains
        else:
            others.append(each["name"])
    told = f"\nLess than 1 % with each of these: {', '.join(others)}." if others else ""
    return table(["set", "pipeline", "passes", "aware", "aware-block", "block", "gain"], rows) + told


HEAD = """mcrEngine's tables (SC12) on our data: `make bench-codecs`, which measures sets that it makes itself; ARGS='FOLDER...' adds sets of one's own, one file a rank. Every round trip was compared.
Processor: {processor}, {cores} cores, others at work on them (load {load}); source {source}. Seconds are of the processor, of one thread; medians of {repeats} with all ranks in one group and blocks of 32 KiB,
elsewhere of one. They vary by up to a third with what shares the caches; ratios do not vary. MB are 10^6 bytes, of the files. Merging and splitting have a table of their own; describing files is in no figure.
Ratios count all that a restore needs: what was encoded, its lengths, and where what lies (by a list of offsets, lengths and keys, zstd). "aware" has what is in no array (HDF5's own bytes, texts) as a key of its own.
Keys are group/variable, type and class, digits in groups as one sign, in the order of ranks. gzip is level 6. mcrengine: FPC with 2^2 entries for f64, fpzip 1-D for f32, LZ4 (where the paper has QuickLZ 1) for all else,
variables under 100 bytes as they are; second pass gzip 6. To the agnostic schemes, which know no types, it is gzip. "shuffle" and "difference" are plain C++ of this bench. Cairn's codecs take the merged bytes in runs of 1 MiB (daemons' have 1 to 4 MiB and more), and compare
what they encoded; with "agnostic" it is what `cairn watch` does with a node's files today. Files merged by key are what Cairn does not do; in blocks it does with flush.merge_ranks. fpzip of PyPI leaves as it is
what is no float."""


def text(result):
    sets = result["sets"]
    repeats = max((row["repeats"] for each in sets for row in each["rows"]), default=1)
    parts = [HEAD.format(**result["machine"], repeats=repeats)]
    if any(row["encode_s"] is None for each in sets for row in each["rows"]):
        parts.append("Where the .json has no seconds, a run was kept for its ratios alone.")
    if result["skipped"]:
        parts.append("Left out: " + "; ".join(f"{each['what']} ({each['why']})" for each in result["skipped"]))
    parts += ["Table III: the sets", characteristics(sets)]
    for each in sets:
        parts += [f"{each['name']}: ratio, and MB/s of one processor, all {each['facts']['processes']} processes in one group; of block sizes the best ratio, speed at 32 KiB (Figure 6: one pass and two)", schemes_table(each)]
    parts += ["Cairn's `fast` (predict-planes-zstd, files as they are) beside the paper's pipeline (two passes, merged by key): how many times its speed, of one processor", speed_table(sets)]
    parts += ["Merging and splitting, MB/s (a copy in memory; blocks of 32 KiB)", merging_table(sets)]
    parts += ["Figure 7: ratio by group size; of block sizes the best", groups_table(sets)]
    parts += ["Figure 8: ratio by block size, all processes in one group; last blocks as they are, or filled up with zeros (\"-\": more than four times the bytes, or not tried)", blocks_table(sets)]
    parts += ["Table IV: relative improvement over agnostic (gzip, one pass), percent, group size in brackets; mcrengine, two passes", improvement_table(sets)]
    parts += ["Figure 1b, strided: what blocks of variables gain over whole variables, all processes in one group", strided_table(sets)]
    for each in sets:
        if each.get("rivals"):
            parts += [f"{each['name']}: others' codecs beside Cairn's, one processor. Of PyPI's each got whole arrays with their type, of each key as one or each by itself; pipelines merged by key, one pass", rivals_table(each), where_cairn_lies(each)]
    for name, versions in result["series"].items():
        parts += [f"Figure 9: ratio over {len(versions)} consecutive versions, {name} ({versions[0]['facts']['processes']} processes, {mb(versions[0]):.1f} MB each)", series_table(versions)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"
