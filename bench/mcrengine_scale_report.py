"""Tables of what bench/mcrengine measured on the small cluster: checkpoint and restart by way and processes, steps of SC12's Tables I and II, and the paper's percentages beside what came out."""
from statistics import median

from report import table

TRANSFER = {"checkpoint": ("write", "flush"), "restart": ("read", "extract")}
# (what, published %, "checkpoint" or "restart", end to end or the transfer alone, before, after); Section VII.
CLAIMS = (("checkpoint, NoC+NoAgg to Aware+Agg", "87 (ALE3D)", "checkpoint", False, "NoC+NoAgg", "Aware+Agg"),
          ("checkpoint, NoC+Agg to Aware+Agg", "32 (Cactus)", "checkpoint", False, "NoC+Agg", "Aware+Agg"),
          ("write alone, Agnostic+Agg to Aware+Agg", "92, 86 (ALE3D, Cactus)", "checkpoint", True, "Agnostic+Agg", "Aware+Agg"),
          ("restart, NoC+NoAgg to Aware+Agg", "62 (ALE3D)", "restart", False, "NoC+NoAgg", "Aware+Agg"),
          ("restart, C+NoAgg to Aware+Agg", "80 (ALE3D)", "restart", False, "C+NoAgg", "Aware+Agg"),
          ("read alone, Agnostic+Agg to Aware+Agg", "43, 71 (ALE3D, Cactus)", "restart", True, "Agnostic+Agg", "Aware+Agg"))
CAIRN_CLAIMS = tuple((f"{what}, {before} to {after}", "-", what, False, before, after) for after in ("Cairn fast", "Cairn small", "Cairn auto") for before in ("NoC+NoAgg", "Aware+Agg")
                     for what in ("checkpoint", "restart"))
CHECKPOINT_STEPS = (("fetch", "fetch (3-7)"), ("first pass", "first pass (8)"), ("compress", "gzip (9a)"), ("write", "write (9b)"), ("flush", "all at once"))
RESTART_STEPS = (("read", "read (1a)"), ("decompress", "gunzip (1b)"), ("split", "decode, split (2-3a)"), ("send", "send (3b-4)"), ("rebuild", "rebuild (5-6)"), ("extract", "all at once"))
HEAD = """mcrEngine's Figures 10 to 13 (SC12, Section VII) on a small cluster: checkpoint and restart from end to end, for five ways of its Table V and Cairn's modes.

{nodes} nodes with the processes, one more that merges for mcrEngine's ways, {servers} servers of GlusterFS (testbed/): {node_rate:g} MB/s a node's card, {server_rate:g} MB/s a server's. All of them share {cores} cores.
Each process has one HDF5 file: its share of a set of real checkpoints, and copies whose floating-point arrays are multiplied by a factor of the copy's own, in groups. Ways take turns, {rounds} rounds count; then {restores} restarts of
the last version, by turns, every file compared. Seconds are medians; "NoC+NoAgg / it" is the median of the ratios of each round.
NoC+NoAgg, C+NoAgg: every process writes its own file and fsyncs it, as it is or by gzip -6 (zlib). NoC+Agg, Agnostic+Agg, Aware+Agg: groups of as many processes as a node has; who merges gets their files over its one card,
a process for each group, and writes a file for each. Agnostic: gzip -6 of the concatenated files. Aware: merged by variable, FPC (2^2), fpzip 1-D, LZ, then gzip -6; since bin/cairn_codecs_tables measures that and
keeps nothing, who merges spends the processor seconds that were measured for this group before, and writes as many bytes of noise; its restart reads them, spends what decoding took, and sends the real files.
Steps come one after the other, as Tables I and II number them; a step ends when the last process is done with it. Merging counts as the first pass, which is not done beside fetching as in the paper (it takes some hundredths of a second).
All their files are put on the servers in turn, so chance decides nothing; but a group's file is as long as the group compresses, and the longest is waited for, where Cairn's are of equal size. What was written is dropped from the page cache, and the client's own cache is off: reads come from the servers.
Cairn: `cairn watch` on each node, K = {nodes} files, "captured" of the last node to "committed" of the last; back: `cairn extract` on all nodes at once. Its steps go on side by side. What its application waits for, the capture, is in no
figure, as local writes are in none of the others. Two versions before those that count, in which auto learns. background.cpu = normal: with others at work on the cores, its default (idle) waits for them, and the other ways do not.
{others}
Repeat: make bench-mcrengine ARGS='FOLDER...' (root). Source: {source}.
"""


def largest(result):
    """Of each set the run with most processes."""
    found = {}
    for run in result["runs"]:
        if run["set"] not in found or run["processes"] > found[run["set"]]["processes"]:
            found[run["set"]] = run
    return list(found.values())


def median_steps(rounds):
    names = list(dict.fromkeys(name for steps in rounds for name in steps))
    return {name: median(steps.get(name, 0) for steps in rounds) for name in names}


def transfer_s(run, way, what):
    steps = median_steps(run["ways"][way][f"{what}_steps"])
    return next(steps[name] for name in TRANSFER[what] if name in steps)


def by_turns(before, after):
    """The median of how many times sooner, round by round."""
    return median(first / second for first, second in zip(before, after))


def ways_table(result):
    rows = []
    for run in result["runs"]:
        base = run["ways"].get("NoC+NoAgg")
        for way, found in run["ways"].items():
            cells = [run["set"], run["processes"], f"{run['raw_bytes'] / 1e6:.0f}", way, f"{run['raw_bytes'] / found['stored_bytes']:.3f}"]
            for what in ("checkpoint", "restart"):
                times = found[f"{what}_s"]
                cells += [f"{median(times):.2f}", f"{min(times):.2f} to {max(times):.2f}", f"{by_turns(base[f'{what}_s'], times):.2f}" if base else "-"]
            rows.append(cells)
    return table(["set", ">processes", ">MB", "way", ">ratio", ">checkpoint s", ">all", ">NoC+NoAgg / it", ">restart s", ">all", ">NoC+NoAgg / it"], rows)


def steps_table(result, what, steps):
    rows = []
    for run in result["runs"]:
        for way, found in run["ways"].items():
            medians = median_steps(found[f"{what}_steps"])
            rows.append([run["set"], run["processes"], way] + [f"{medians[name]:.2f}" if name in medians else "-" for name, _ in steps])
    return table(["set", ">processes", "way"] + [">" + title for _, title in steps], rows)


def less(run, what, is_transfer, before, after):
    """By how many percent `after` is shorter; nothing where a way is missing."""
    if before not in run["ways"] or after not in run["ways"]:
        return None
    if is_transfer:
        return 100 * (1 - transfer_s(run, after, what) / transfer_s(run, before, what))
    return 100 * (1 - 1 / by_turns(run["ways"][before][f"{what}_s"], run["ways"][after][f"{what}_s"]))


def claims_table(result):
    rows = []
    for title, published, what, is_transfer, before, after in CLAIMS + CAIRN_CLAIMS:
        values = [less(run, what, is_transfer, before, after) for run in result["runs"]]
        rows.append([title, published] + ["-" if value is None else f"{value:.0f}" for value in values])
    return table(["less by %", "published"] + [f">{run['set']}, {run['processes']}" for run in result["runs"]], rows)


def text(result):
    result = {**result, "runs": sorted(result["runs"], key=lambda run: (run["set"], run["processes"]))}
    loads = [run["load"] for run in result["runs"]]
    others = f"Other work ran on these cores (the load after each run was {min(loads):g} to {max(loads):g}): compare ways of one run, not seconds of different ones." if max(loads) > 2 else "Nothing else ran there."
    head = HEAD.format(**result["cluster"], cores=result["machine"]["cores"], source=result["source"], others=others)
    parts = [head, "Checkpoint and restart\n", ways_table(result), "\nThe paper's percentages, and ours, by set and processes (Cairn's restarts beside them)\n", claims_table(result),
             "\nFigure 12: seconds of the steps of Table I\n", steps_table(result, "checkpoint", CHECKPOINT_STEPS), "\nFigure 13: seconds of the steps of Table II\n", steps_table(result, "restart", RESTART_STEPS)]
    return "\n".join(parts) + "\n"
