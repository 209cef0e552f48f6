"""Tables of what bench/mcrengine_figures.py simulated, in the order of SC12: Figures 10 to 13, and the percentages of its text beside what comes out."""
import mcrengine_plan as plan
from report import table

# Of a row: the checkpoint ("steps", Table I) and the restart ("restart", Table II); what is transferred alone first, then Cairn's.
STEPS = {"steps": (("fetch", "fetch (3-7)"), ("first pass", "first pass (8)"), ("compress", "gzip (9a)"), ("write", "write (9b)"), ("flush", "all at once")),
         "restart": (("read", "read (1a)"), ("decompress", "gunzip (1b)"), ("split", "first pass back, split (2-3a)"), ("send", "send (3b-4)"), ("restore", "all at once"))}
ALONE = {"steps": ("write", "flush"), "restart": ("read", "restore")}
# (what, published %, data, of what, of which step, before, after); Section VII.
CLAIMS = (("Figure 11, Cactus: writes faster by, NoC+NoAgg to NoC+Agg (fitted)", 26, "Cactus", "steps", "rate", "NoC+NoAgg", "NoC+Agg"),
          ("Figure 12, ALE3D: checkpoint, NoC+NoAgg to Aware+Agg", 87, "ALE3D", "steps", "seconds", "NoC+NoAgg", "Aware+Agg"),
          ("Figure 12, Cactus: checkpoint, NoC+Agg to Aware+Agg", 32, "Cactus", "steps", "seconds", "NoC+Agg", "Aware+Agg"),
          ("Figure 12, ALE3D: write alone, Agnostic+Agg to Aware+Agg", 92, "ALE3D", "steps", "write", "Agnostic+Agg", "Aware+Agg"),
          ("Figure 12, Cactus: write alone, Agnostic+Agg to Aware+Agg", 86, "Cactus", "steps", "write", "Agnostic+Agg", "Aware+Agg"),
          ("Figure 13, ALE3D: restart, NoC+NoAgg to Aware+Agg", 62, "ALE3D", "restart", "seconds", "NoC+NoAgg", "Aware+Agg"),
          ("Figure 13, ALE3D: restart, C+NoAgg to Aware+Agg", 80, "ALE3D", "restart", "seconds", "C+NoAgg", "Aware+Agg"),
          ("Figure 13, ALE3D: read alone, Agnostic+Agg to Aware+Agg", 43, "ALE3D", "restart", "read", "Agnostic+Agg", "Aware+Agg"),
          ("Figure 13, Cactus: read alone, Agnostic+Agg to Aware+Agg", 71, "Cactus", "restart", "read", "Agnostic+Agg", "Aware+Agg"))
HEAD = """mcrEngine's Figures 10 to 13 (SC12, Section VII) on a simulated machine like the paper's: five ways of its Table V, and Cairn's modes, up to 15,408 processes.

Seconds are of `cairn simulate` on examples/clusters/sierra.toml (fetch, write, read, all at once), or the bytes of a process divided by the speed of a codec (first pass, gzip, and back). Nothing was measured on such a machine.
Given by the paper: 15,408 processes, one a core of 12 a node, groups of 32, as many nodes that merge as Equation 3 says (40), InfiniBand QDR, a file system of 30 GB/s, 87 MB a process of Cactus and 154.2 MB of ALE3D,
and what a writer writes with each scheme (Cactus 2.4 and 1.2 GB, ALE3D 1.5 and 1.3 GB).
Assumed: 3.2 GB/s a card; 30 servers with a target each; ALE3D's 154.2 MB are of each process; compressed alone a checkpoint gets as small as agnostic merging makes it (gzip looks back 32 KiB); files on local disks,
headers and 100-byte variables cost nothing; storage reads as fast as it writes, and a further reader costs at a target what a further writer does; sending variables back takes as long as fetching them; in Cairn's modes all cores of a
node decode when it restarts; the process counts below 15,408 (the figures are pictures). Fitted: what a further writer costs at a target, on one number (26 %).
What was not told: how fast the paper's codecs were. Speeds, of all four sets, are of one core of our machine: ALE3D and Cactus have those of our cosmology. Cores of 2012 are slower: compressing took longer there than here. `small` is "fast" with the ratio and
speeds of small.
The five ways are the paper's: steps one after the other (Tables I and II), but for the first pass, which goes on while more is fetched, and, on its way back, while what was split is sent; writing and reading are IOR, a file for each writer. Cairn's modes are the production engine: every node leads,
480 files, encoding with half of a node's cores while it ships and writes; the first version counts, of auto the third (it stores the first as it is, and has decided by then). The application waits for none of it: in Cairn's modes and in mcrEngine it goes on once its
image is in memory. It does wait for a restart: from its start, with nothing in memory, until the last process has its image; Cairn's is the production reader in all processes at once (job.restart of `cairn simulate`). Our two sets have 87 MB a process, too: as if a set were that much larger, at its ratio.
Repeat: make simulate-mcrengine (half an hour of one core; the same every time). Source: {source}.
"""


def pick(rows, data, way, count, share=1, phase="steps"):
    return next(row[phase] for row in rows if (row["data"], row["way"], row["processes"], row["share"]) == (data, way, count, share))


def known(rows, key):
    return list(dict.fromkeys(row[key] for row in rows))


def less(before, after):
    """By how many percent `after` is shorter."""
    return 100 * (1 - after / before)


def percent(value):
    return f"{round(value)} %"  # never -0


def codecs_table(datas):
    def cell(codec):
        return [f"{codec.ratio:.2f}", f"{codec.bytes_per_s / 1e6:.0f}", f"{codec.back_per_s / 1e6:.0f}"]
    rows = []
    for data in datas:
        cairn = [cell(data.cairn[mode]) if data.cairn else ["-", "-", "-"] for mode in ("fast", "small")]
        rows.append([data.name, f"{data.image_bytes / 1e6:.1f}", *cell(data.agnostic), *cell(data.aware), *cairn[0], *cairn[1]])
    return table(["set", "MB a process", *(title for codec in ("gzip", "FPC, fpzip, LZ, gzip", "fast", "small") for title in (codec, "MB/s", "back"))], rows)


def alone_table(rows, phase):
    """Figures 10 and 11: seconds to the file system alone, or from there."""
    paper, cairn = ALONE[phase]
    counts = known(rows, "processes")
    out = []
    for data in known(rows, "data"):
        for way in plan.PAPERS + plan.CAIRNS:
            if any((row["data"], row["way"]) == (data, way) for row in rows):
                steps = [pick(rows, data, way, count, phase=phase) for count in counts]
                out.append([data, name_of(way)] + [f"{each.get(paper, each.get(cairn)):.2f}" for each in steps])
    return table(["set", "way", *(f"{count:,}" for count in counts)], out)


def name_of(way):
    return f"Cairn {way}" if way in plan.CAIRNS else way


def steps_table(rows, share, phase):
    """Figures 12 and 13."""
    count = known(rows, "processes")[-1]
    out = []
    for data in known(rows, "data"):
        before = pick(rows, data, "NoC+NoAgg", count, share, phase)["seconds"]
        for way in plan.PAPERS + plan.CAIRNS:
            if any((row["data"], row["way"]) == (data, way) for row in rows):
                steps = pick(rows, data, way, count, share, phase)
                out.append([data, name_of(way)] + [f"{steps[key]:.1f}" if key in steps else "-" for key, _ in STEPS[phase]] + [f"{steps['seconds']:.1f}", percent(less(before, steps["seconds"]))])
    return table(["set", "way", *(title for _, title in STEPS[phase]), "seconds", "less than NoC+NoAgg"], out)


def claim(rows, data, phase, what, before, after, share):
    count = known(rows, "processes")[-1]
    first, second = pick(rows, data, before, count, share, phase), pick(rows, data, after, count, share, phase)
    if what == "rate":
        return 100 * (first["write"] / second["write"] - 1)
    return less(first[what], second[what])


def claims_table(rows):
    shares = known(rows, "share")
    out = [[title, f"{published} %"] + [percent(claim(rows, *of, share)) for share in shares] for title, published, *of in CLAIMS]
    return table(["what", "published", *(f"{30 * share:.0f} GB/s" for share in shares)], out)


def beside(rows, data, way, count, share, phase):
    """Seconds, and by how much they are less than NoC+NoAgg's; nothing where it was not simulated."""
    if not any((row["data"], row["way"], row["processes"], row["share"]) == (data, way, count, share) for row in rows):
        return ["-", "-"]
    before, took = (pick(rows, data, each, count, share, phase)["seconds"] for each in ("NoC+NoAgg", way))
    return [f"{took:.1f}", percent(less(before, took))]


def shares_table(rows, phase):
    """Cairn's modes beside the paper's best, as the file system gets slower."""
    shares, count = known(rows, "share"), known(rows, "processes")[-1]
    out = []
    for data in known(rows, "data"):
        for way in plan.PAPERS + plan.CAIRNS:
            if any((row["data"], row["way"]) == (data, way) for row in rows):
                out.append([data, name_of(way)] + [cell for share in shares for cell in beside(rows, data, way, count, share, phase)])
    return table(["set", "way"] + [cell for share in shares for cell in (f"{30 * share:.0f} GB/s", "less")], out)


def text(rows, datas, source):
    count = f"{known(rows, 'processes')[-1]:,}"
    parts = [HEAD.format(source=source.removeprefix("cairn ")),
             "Published beside simulated, at what the job gets of the file system's 30 GB/s; less by so many percent, and more where there is a minus. What Agnostic+Agg and Aware+Agg write and read differs by 13 % (ALE3D, 1.5 and 1.3 GB)\n"
             "and 50 % (Cactus, 2.4 and 1.2 GB): no more can come out here, whatever the file system is.\n", claims_table(rows),
             "Ratios, and MB/s of one core, there and back (bench/results/codecs-tables.json: gzip of merged files, and mcrengine in two passes merged by variable, all of a set in one group; codecs.txt: predict-planes-zstd and -small with arrays told;"
             "\nratios of ALE3D and Cactus are the paper's sizes):\n", codecs_table(datas),
             "Figures 10 and 11, writes: seconds to the file system alone, by processes (Cairn: all of the flush)\n", alone_table(rows, "steps"),
             "Figures 10 and 11, reads: seconds from the file system alone, by processes (Cairn: all of the restart)\n", alone_table(rows, "restart"),
             f"Figure 12: a checkpoint of {count} processes, seconds of the steps of Table I, file system of 30 GB/s\n", steps_table(rows, 1, "steps"),
             f"Figure 13: a restart of {count} processes, seconds of the steps of Table II, file system of 30 GB/s\n", steps_table(rows, 1, "restart")]
    if len(known(rows, "share")) > 1:
        parts += [f"Figure 12 with less of the file system: a checkpoint of {count} processes, seconds, and less than NoC+NoAgg\n", shares_table(rows, "steps"),
                  f"Figure 13 with less of the file system: a restart of {count} processes, seconds, and less than NoC+NoAgg\n", shares_table(rows, "restart")]
    return "\n".join(part if part.endswith("\n") else part + "\n" for part in parts)
