"""Simulated over measured: a panel for each geometry, Cairn and its rivals."""
import race_report
from calibrate_clusters import WITHIN
from plot import COLOURS, GREY, RED, pyplot_or_fail
from race_report import CONTENDERS, GEOMETRY, MIB


def panel(axis, records, geometry):
    mine = [r for r in records if r["geometry"] == geometry]
    values = [r[key] / MIB for r in mine for key in ("measured_bytes_per_s", "simulated_bytes_per_s")]
    least, most = 0.85 * min(values), 1.15 * max(values)
    ends = [least, most]
    axis.fill_between(ends, [(1 - WITHIN) * x for x in ends], [(1 + WITHIN) * x for x in ends], color="#eef2f6", label="within 10 %")
    axis.plot(ends, ends, color=GREY, lw=1)
    for contender in reversed(list(CONTENDERS)):  # Cairn on top
        told = False
        for fitted in (False, True):
            points = [r for r in mine if r["contender"] == contender and r["fitted"] == fitted]
            if points:
                axis.scatter([r["measured_bytes_per_s"] / MIB for r in points], [r["simulated_bytes_per_s"] / MIB for r in points], s=46 if contender == "cairn" else 26,
                             color="none" if fitted else COLOURS[contender], edgecolor=COLOURS[contender], linewidths=1.2,
                             label=None if told else CONTENDERS[contender], zorder=4 if contender == "cairn" else 3)
                told = True
    axis.set_xscale("log")
    axis.set_yscale("log")
    ticks = [t for t in (10, 20, 30, 50, 70, 100, 150, 200, 300, 500) if least <= t <= most]
    for set_ticks in (axis.set_xticks, axis.set_yticks):
        set_ticks(ticks, [str(t) for t in ticks])
        set_ticks([], minor=True)
    axis.set_xlim(least, most)
    axis.set_ylim(least, most)
    axis.set_aspect("equal")
    axis.set_xlabel("measured, MiB/s")
    axis.set_ylabel("simulated, MiB/s")
    axis.set_title(GEOMETRY[geometry])
    axis.spines[["top", "right"]].set_visible(False)


def draw(records, path):
    pyplot = pyplot_or_fail()
    geometries = [g for g in race_report.GEOMETRY if any(r["geometry"] == g for r in records)]
    figure, axes = pyplot.subplots(1, len(geometries), figsize=(6.2 * len(geometries) + 2, 6), dpi=110, layout="constrained", squeeze=False)
    for axis, geometry in zip(axes.flat, geometries):
        panel(axis, records, geometry)
    handles, labels = [], []
    for axis in axes.flat:  # the union: not all ran in both
        for handle, label in zip(*axis.get_legend_handles_labels()):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    order = sorted(range(len(labels)), key=lambda i: list(CONTENDERS.values()).index(labels[i]) if labels[i] in CONTENDERS.values() else -1)
    handles.append(pyplot.Line2D([], [], marker="o", ls="", color="none", markeredgecolor=RED))
    labels.append("hollow: fitted there")
    order.append(len(labels) - 1)
    axes.flat[-1].legend([handles[i] for i in order], [labels[i] for i in order], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    figure.savefig(path)
    pyplot.close(figure)
    return path
