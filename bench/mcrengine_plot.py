"""SC12's Figures 10 to 13 as PNG: simulated ones of bench/mcrengine_figures.py, and those of the small cluster by bench/mcrengine."""
from statistics import median

import mcrengine_plan as plan
import mcrengine_scale_report as scale
from mcrengine_report import ALONE
from plot import BLUE, DARK, GREEN, GREY, LIGHT, NAVY, ORANGE, PURPLE, ROSE, pyplot_or_fail, tidy

LINES = {"NoC+NoAgg": (GREY, "-", "o"), "C+NoAgg": (DARK, "--", "o"), "NoC+Agg": (DARK, "-", "s"), "Agnostic+Agg": (ROSE, "-", "s"), "Aware+Agg": (ORANGE, "-", "s"),
         "Cairn off": (LIGHT, "-", "D"), "Cairn fast": (BLUE, "-", "D"), "Cairn small": (NAVY, "-", "D"), "Cairn auto": (BLUE, ":", "x")}
STEPS = {"fetch": ("fetch (3-7)", PURPLE), "first pass": ("first pass (8)", ROSE), "compress": ("gzip (9a)", ORANGE), "write": ("write (9b)", GREY), "flush": ("Cairn: all at once", BLUE),
         "read": ("read (1a)", GREY), "decompress": ("gunzip (1b)", ORANGE), "split": ("first pass back, split (2-3a)", ROSE), "send": ("send (3b-4)", PURPLE), "rebuild": ("rebuild (5-6)", GREEN),
         "extract": ("Cairn: all at once", BLUE), "restore": ("Cairn: all at once", BLUE)}
# What goes on beside another step, which ends later or is the longer one: drawn as far as it is longer.
BESIDE = {"first pass": "fetch", "split": "send"}


def name_of(way):
    return f"Cairn {way}" if way in plan.CAIRNS else way


def counts_axis(axis, counts):
    axis.set_xscale("log")
    axis.set_xticks(counts, [f"{count:,}" for count in counts], fontsize=7.5, rotation=35)
    axis.minorticks_off()
    axis.set_xlabel("processes")
    tidy(axis)


def lines(axis, counts, by_way):
    """by_way: {way: seconds at each count}."""
    for way, seconds in by_way.items():
        colour, style, mark = LINES[way]
        axis.plot(counts, seconds, color=colour, ls=style, marker=mark, ms=4.5, lw=1.6, label=way, markerfacecolor="white" if way in ("Agnostic+Agg", "NoC+Agg") else colour)
    counts_axis(axis, counts)


def stacked(axis, bars):
    """bars: [(way, {step: seconds}, seconds in all)]; what goes on beside another step is told in the tables alone."""
    top = max(total for _, _, total in bars)
    for at, (_, steps, total) in enumerate(bars):
        bottom = 0
        for step, (_, colour) in STEPS.items():
            if step in steps:
                axis.bar(at, steps[step], bottom=bottom, color=colour, width=0.7)
                bottom += steps[step]
        axis.text(at, max(bottom, total) + 0.015 * top, f"{total:.1f}" if total < 100 else f"{total:.0f}", ha="center", fontsize=8)
    axis.set_xticks(range(len(bars)), [way.replace("+", "\n+").replace(" ", "\n") for way, _, _ in bars], fontsize=7)
    axis.set_ylim(0, 1.12 * top)
    axis.set_ylabel("seconds")
    tidy(axis)


def step_legend(figure, steps):
    shown = {}
    for step in steps:
        label, colour = STEPS[step]
        shown[label] = colour
    handles = [figure.axes[0].bar([0], [0], color=colour) for colour in shown.values()]
    figure.legend(handles, list(shown), loc="outside lower center", ncols=len(shown), frameon=False, fontsize=9)


def figures_10_11(pyplot, rows):
    names = list(dict.fromkeys(row["data"] for row in rows))[1:]  # not ALE3D: the paper has Cactus
    counts = sorted({row["processes"] for row in rows})
    figure, axes = pyplot.subplots(2, len(names), figsize=(16, 10), dpi=110, layout="constrained", sharey=True)
    for line, phase, title in zip(axes, ("steps", "restart"), ("written", "read")):
        paper, cairn = ALONE[phase]
        for axis, name in zip(line, names):
            of = {}
            for row in sorted((row for row in rows if row["data"] == name and row["share"] == 1), key=lambda row: row["processes"]):
                of.setdefault(name_of(row["way"]), []).append(row[phase].get(paper, row[phase].get(cairn)))
            lines(axis, counts, of)
            axis.set_yscale("log")
            axis.set_yticks((0.5, 1, 2, 5, 10, 20, 50), ("0.5", "1", "2", "5", "10", "20", "50"))
            axis.minorticks_off()
            axis.set_title(f"{name}: {title}, 87 MB a process", fontsize=10)
    axes[0][0].set_ylabel("seconds until all is in the file system (Cairn: encoded, too)")
    axes[1][0].set_ylabel("seconds until all is read (Cairn: decoded, and in memory)")
    figure.legend(*axes[0][-1].get_legend_handles_labels(), loc="outside lower center", ncols=9, frameon=False, fontsize=8.5)
    figure.suptitle("SC12, Figures 10 and 11, simulated: writes and reads alone; lower is better. Below 1,000 processes N / 32 files are fewer than the file system's 30 targets", fontsize=11)
    return figure


def end_to_end(pyplot, rows, phase, steps, title):
    """Figures 12 and 13."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    count, shares = max(row["processes"] for row in rows), (1, 0.1)
    figure, axes = pyplot.subplots(2, len(names), figsize=(19, 9), dpi=110, layout="constrained")
    for line, share in zip(axes, shares):
        for axis, name in zip(line, names):
            bars = []
            for row in rows:
                if (row["data"], row["processes"], row["share"]) == (name, count, share):
                    taken = dict(row[phase])
                    total = taken.pop("seconds")
                    for step, other in BESIDE.items():
                        if step in taken:
                            taken[step] = max(0, taken[step] - taken[other])
                    bars.append((name_of(row["way"]), taken, total))
            stacked(axis, bars)
            axis.set_title(f"{name}; file system {30 * share:.0f} GB/s", fontsize=10)
    step_legend(figure, steps)
    figure.suptitle(f"SC12, {title}; lower is better", fontsize=11)
    return figure


def figure_12(pyplot, rows):
    title = f"Figure 12: {max(row['processes'] for row in rows):,} processes, a checkpoint from end to end. fetch, write and Cairn's are simulated, gzip is bytes divided by a measured speed, and the first pass ends before fetching does"
    return end_to_end(pyplot, rows, "steps", ("fetch", "compress", "write", "flush"), title)


def figure_13(pyplot, rows):
    title = f"Figure 13: {max(row['processes'] for row in rows):,} processes, a restart from end to end. read and Cairn's are simulated, gunzip is bytes divided by a measured speed; the first pass back and splitting end before sending does"
    return end_to_end(pyplot, rows, "restart", ("read", "decompress", "send", "restore"), title)


def draw(rows, base):
    pyplot = pyplot_or_fail()
    paths = []
    for name, figure in (("figures-10-and-11", figures_10_11), ("figure-12", figure_12), ("figure-13", figure_13)):
        paths.append(f"{base}-{name}.png")
        drawn = figure(pyplot, rows)
        drawn.savefig(paths[-1])
        pyplot.close(drawn)
    return paths


def scale_10_11(pyplot, result):
    names = list(dict.fromkeys(run["set"] for run in result["runs"]))
    figure, axes = pyplot.subplots(2, len(names), figsize=(7 * len(names), 9), dpi=110, layout="constrained", squeeze=False)
    for column, name in zip(axes.T, names):
        runs = sorted((run for run in result["runs"] if run["set"] == name), key=lambda run: run["processes"])
        for axis, what, title in zip(column, ("checkpoint", "restart"), ("written", "read")):
            lines(axis, [run["processes"] for run in runs], {way: [scale.transfer_s(run, way, what) for run in runs] for way in runs[0]["ways"]})
            axis.set_title(f"{name}: {title}", fontsize=10)
            axis.set_ylabel("seconds (Cairn: all of it)")
            axis.set_ylim(0)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=9, frameon=False, fontsize=8.5)
    figure.suptitle("SC12, Figures 10 and 11, measured on the small cluster: files to the file system and back, without what comes before and after; medians, lower is better", fontsize=11)
    return figure


def scale_12_13(pyplot, result):
    runs = scale.largest(result)
    figure, axes = pyplot.subplots(2, len(runs), figsize=(8 * len(runs), 9), dpi=110, layout="constrained", squeeze=False)
    used = []
    for column, run in zip(axes.T, runs):
        for axis, what, title in zip(column, ("checkpoint", "restart"), ("Figure 12, checkpoint", "Figure 13, restart")):
            bars = [(way, scale.median_steps(found[f"{what}_steps"]), median(found[f"{what}_s"])) for way, found in run["ways"].items()]
            used += [step for _, steps, _ in bars for step in steps]
            stacked(axis, bars)
            axis.set_title(f"{title}: {run['set']}, {run['processes']} processes, {run['raw_bytes'] / 1e6:.0f} MB", fontsize=10)
    step_legend(figure, [step for step in STEPS if step in used])
    figure.suptitle("SC12, Figures 12 and 13, measured on the small cluster (medians, of each step by itself); lower is better", fontsize=11)
    return figure


def draw_scale(result, base):
    pyplot = pyplot_or_fail()
    paths = []
    for name, figure in (("figures-10-and-11", scale_10_11), ("figures-12-and-13", scale_12_13)):
        paths.append(f"{base}-{name}.png")
        drawn = figure(pyplot, result)
        drawn.savefig(paths[-1])
        pyplot.close(drawn)
    return paths
