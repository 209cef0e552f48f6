"""Plots of what bench/codecs_run.py measured: fronts of ratio and speed of every set, and SC12's Figures 6 to 9."""
import codecs_front as front
import codecs_report as report
from plot import BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, RED, ROSE, pyplot_or_fail, tidy

COLOURS = {"cairn": BLUE, "paper": ORANGE, "plain": GREY, "rival": GREEN}
TEXTS = {**COLOURS, "plain": "#666666"}
NAMES = {"cairn": "Cairn", "paper": "the paper's (mcrengine: two passes)", "plain": "plain pipelines", "rival": "others (PyPI)"}
MARKS = {"merged by key": "o", "each key": "o", "files as they are": "D", "each array": "s"}
STYLES = {("agnostic", "gzip"): (GREY, "-", "o"), ("agnostic-block", "gzip"): (GREY, "--", "s"), ("aware", report.REFERENCE): (ORANGE, "-", "o"), ("aware-block", report.REFERENCE): (ORANGE, "--", "s"),
          ("aware", "mcrengine, FPC 2^16"): (PURPLE, "-", "o"), ("aware-block", "mcrengine, FPC 2^16"): (PURPLE, "--", "s"), ("aware", "difference, shuffle, zstd-1"): (ROSE, "-", "^"),
          ("agnostic", "Cairn delta-shuffle-zstd"): (LIGHT, "-", "D"), ("agnostic", "Cairn predict-planes-zstd"): (BLUE, "-", "D"), ("aware", "Cairn predict-planes-zstd"): (BLUE, "--", "o"),
          ("aware-block", "Cairn predict-planes-zstd"): (BLUE, ":", "s"), ("aware-block", "fpzip, true shape"): (GREEN, "--", "^")}


def name_of(point):
    short = {"files as they are": "files", "merged by key": "merged", "each key": "key", "each array": "array"}[point["way"]]
    return f"{point['label'].replace('predict-planes-zstd', 'planes').replace('delta-shuffle-zstd', 'delta')} ({short})"


def ticks_of_ratios(axis):
    ticks = [t for t in (1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 100) if axis.get_ylim()[0] <= t <= axis.get_ylim()[1]]
    axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axis.minorticks_off()
    axis.set_ylabel("ratio (log)")


def scatter(axis, points, way):
    for kind, colour in COLOURS.items():
        for p in points:
            if p["kind"] == kind:
                axis.scatter(p[way], p["ratio"], color=colour, marker=MARKS[p["way"]], s=46 if kind == "cairn" else 30, zorder=3 if kind == "cairn" else 2, edgecolors="black" if p[f"{way}_front"] else "none", linewidths=0.9)
    line = sorted((p for p in points if p[f"{way}_front"]), key=lambda p: p[way])
    axis.plot([p[way] for p in line], [p["ratio"] for p in line], color="#444444", lw=1, ls=":", zorder=1)
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    ticks = [base * ten for ten in (10, 100, 1000, 10000) for base in (1, 2, 5) if low <= base * ten <= high]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel(f"{way} MB/s of one processor (log)")
    axis.set_ylabel("ratio")
    tidy(axis)
    axis.margins(0.08)
    if max(p["ratio"] for p in points) > 4 * min(p["ratio"] for p in points):
        axis.set_yscale("log")
        ticks_of_ratios(axis)
    number(axis, line, [p for p in points if p["kind"] == "cairn" and not p[f"{way}_front"]], way)


def number(axis, line, cairn, way):
    """Names would lie over each other: numbers at the points, and what they are beside the plot."""
    told = [(p, str(i + 1)) for i, p in enumerate(line)] + [(p, chr(ord("a") + i)) for i, p in enumerate(sorted(cairn, key=lambda p: -p["ratio"]))]
    for p, mark in told:
        axis.annotate(mark, (p[way], p["ratio"]), xytext=(5, 4), textcoords="offset points", fontsize=8, color=TEXTS[p["kind"]], fontweight="bold")
    head = [("on the front, from slow to fast", None)] + [(f"{mark}  {name_of(p)}", p) for p, mark in told[:len(line)]] + ([("Cairn's that are not", None)] if cairn else [])
    head += [(f"{mark}  {name_of(p)}", p) for p, mark in told[len(line):]]
    for i, (words, p) in enumerate(head):
        axis.text(1.02, 0.98 - 0.052 * i, words, transform=axis.transAxes, fontsize=7.5, va="top", color=TEXTS[p["kind"]] if p else "#333333", fontweight="bold" if not p else "normal")


def fronts(pyplot, each):
    figure, axes = pyplot.subplots(1, 2, figsize=(17, 5.6), dpi=110, layout="constrained")
    points = [p for p in front.points_of(each) if p["label"] != "Cairn zero-runs"]  # far from all others in both; it is in the tables
    for axis, way in zip(axes, ("encode", "decode")):
        scatter(axis, points, way)
    for kind, colour in COLOURS.items():
        axes[0].scatter([], [], color=colour, label=NAMES[kind])
    for mark, label in (("o", "merged by key"), ("D", "files as they are"), ("s", "each array by itself")):
        axes[0].scatter([], [], color="none", edgecolors="#555555", marker=mark, label=label)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False, fontsize=8.5)
    figure.suptitle(f"{each['name']}, {each['facts']['processes']} processes, {report.mb(each):.1f} MB: upper right is better; the dotted line is the front (without zero-runs)", fontsize=11)
    return figure


def lines(axis, x, rows):
    for scheme, pipeline, passes, values in rows:
        colour, style, mark = STYLES.get((scheme, pipeline), (GREY, ":", "x"))
        at = [(i, row["ratio"]) for i, row in zip(x, values) if row]
        label = f"{scheme}: {pipeline}" + (", two passes" if passes == 2 else "")
        axis.plot([i for i, _ in at], [r for _, r in at], color=colour, ls=style, marker=mark, ms=4.5, lw=1.4, label=label)
    axis.set_ylabel("ratio")
    tidy(axis)


def legend_below(figure, axes, columns=3):
    seen = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    figure.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8.5)


def grid(pyplot, count, height=3.7):
    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(5 * columns, height * rows + 0.9), dpi=110, layout="constrained", squeeze=False)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.axis("off")
    return figure, flat[:count]


def figure_6(pyplot, sets):
    figure, axes = grid(pyplot, len(sets))
    for axis, each in zip(axes, sets):
        found = [(scheme, [report.best(report.pick(each, scheme, pipeline, passes)) for passes in (1, 2)]) for scheme, pipeline in
                 (("agnostic", "gzip"), ("agnostic-block", "gzip"), ("aware", report.REFERENCE), ("aware-block", report.REFERENCE))]
        for at, (_, rows) in enumerate(found):
            for nth, row in enumerate(rows):
                if row:
                    axis.bar(at + (nth - 0.5) * 0.38, row["ratio"], width=0.35, color=(GREY, ORANGE)[nth], label=("one pass", "two passes")[nth] if at == 0 else None)
                    axis.text(at + (nth - 0.5) * 0.38, row["ratio"], f"{row['ratio']:.2f}", ha="center", va="bottom", fontsize=7.5)
        axis.set_xticks(range(len(found)), [scheme for scheme, _ in found], fontsize=8.5)
        axis.set_ylabel("ratio")
        axis.set_title(each["name"], fontsize=10)
        axis.margins(y=0.12)
        tidy(axis)
    legend_below(figure, axes)
    figure.suptitle("SC12, Figure 6: one pass and two (mcrengine; agnostic: gzip), all processes in one group", fontsize=11)
    return figure


def figure_7(pyplot, sets):
    figure, axes = grid(pyplot, len(sets))
    for axis, each in zip(axes, sets):
        groups = report.groups_of(each)
        lines(axis, range(len(groups)), report.group_rows(each))
        axis.set_xticks(range(len(groups)), groups)
        axis.set_xlabel("processes in a group")
        axis.set_title(each["name"], fontsize=10)
    legend_below(figure, axes)
    figure.suptitle("SC12, Figure 7: ratio by group size; of block sizes the best", fontsize=11)
    return figure


def figure_8(pyplot, sets):
    figure, axes = grid(pyplot, len(sets))
    for axis, each in zip(axes, sets):
        blocks = report.blocks_of(each)
        rows = []
        for scheme, pipeline, passes in (("agnostic-block", "gzip", 1), ("aware-block", report.REFERENCE, 2), ("aware-block", "mcrengine, FPC 2^16", 2), ("aware-block", "fpzip, true shape", 1), ("aware-block", "Cairn predict-planes-zstd", 1)):
            of = {row["block"]: row for row in report.pick(each, scheme, pipeline, passes)}
            rows.append((scheme, pipeline, passes, [of.get(block) for block in blocks]))
        lines(axis, range(len(blocks)), rows)
        aware = report.best(report.pick(each, "aware", report.REFERENCE, 2))
        if aware:
            axis.axhline(aware["ratio"], color=ORANGE, lw=1, label=f"aware: {report.REFERENCE}, two passes")
        axis.set_xticks(range(len(blocks)), [report.size_text(block) for block in blocks], fontsize=8.5)
        axis.set_xlabel("bytes of a block")
        axis.set_title(each["name"], fontsize=10)
    legend_below(figure, axes)
    figure.suptitle("SC12, Figure 8: ratio by block size, all processes in one group", fontsize=11)
    return figure


def over_time(axis, versions, first):
    at = range(first, len(versions))
    lines(axis, at, [(scheme, pipeline, passes, [report.best(report.pick(each, scheme, pipeline, passes)) for each in versions[first:]]) for scheme, pipeline, passes in report.SERIES_ROWS])
    axis.set_xticks(at)
    axis.set_xlabel("version")


def figure_9(pyplot, series):
    """All versions above; below without the first, whose ratios are far from the others'."""
    figure, axes = pyplot.subplots(2, len(series), figsize=(6 * len(series), 9), dpi=110, layout="constrained", squeeze=False)
    for (name, versions), (all_of_them, later) in zip(series.items(), axes.T):
        over_time(all_of_them, versions, 0)
        over_time(later, versions, 1)
        all_of_them.set_yscale("log")
        ticks_of_ratios(all_of_them)
        all_of_them.set_title(f"{name}, {versions[0]['facts']['processes']} processes: all versions", fontsize=10)
        later.set_title(f"{name}: from version 1 on", fontsize=10)
    legend_below(figure, axes.flat)
    figure.suptitle("SC12, Figure 9: ratio over consecutive versions", fontsize=11)
    return figure


def draw(result, prefix):
    """Paths of what was drawn."""
    pyplot, paths = pyplot_or_fail(), []
    figures = [(f"front-{each['name']}", lambda each=each: fronts(pyplot, each)) for each in result["sets"]]
    for number, make in ((6, figure_6), (7, figure_7), (8, figure_8)):
        figures.append((f"figure-{number}", lambda make=make: make(pyplot, result["sets"])))
    if result["series"]:
        figures.append(("figure-9", lambda: figure_9(pyplot, result["series"])))
    for name, make in figures:
        figure = make()
        paths.append(f"{prefix}-{name}.png")
        figure.savefig(paths[-1])
        pyplot.close(figure)
    return paths
