"""The paper's figures, with our bars: fgcs24 Figures 3 to 9 and 10 to 13, and Figures 1 and 2 of the poster, a PNG for each group."""
import race_report
from plot import BLUE, COLOURS, DARK, GREY, LIGHT, NAVY, RED, bars_wide, panels_of, pyplot_or_fail, tidy
from race_plan import AT_A_SLOW_SERVER
from race_report import CONTENDERS, GEOMETRY, MIB, MODES

GAP = 1.2  # bars, between groups
UNDER_NUMBERS = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.3}


def slots(groups, among=tuple(CONTENDERS)):
    """How many bars wide it is: of the groups' bars, and of the gaps between them."""
    return sum(sum(name in among for name in race_report.with_elsewhere(block)) + GAP for _, block in groups)


def clusters(axis, groups, among=tuple(CONTENDERS)):
    """groups: (label, block). A bar for each contender that ran, all of one width: MiB/s in the median, and of all rounds the slowest and the fastest. Paler,
    with the number in brackets: measured with another K, which makes no difference to it."""
    at, told, numbers, ticks = 0.0, set(), [], []

    def once(label):
        """For the legend."""
        fresh = label not in told
        told.add(label)
        return label if fresh else None

    for _, block in groups:
        found = {name: f for name, f in race_report.with_elsewhere(block).items() if name in among}
        limit = block["limit_bytes_per_s"] / MIB
        axis.plot([at - 0.5, at + len(found) - 0.5], [limit, limit], color=RED, lw=1.6, label=once("physical limit of K files"))
        ticks.append(at + (len(found) - 1) / 2)
        for name, f in found.items():
            here, value = name in block["figures"]["contenders"], f["bytes_per_s"] / MIB
            slowest, fastest = (value * f["seconds"] / f[which] for which in ("most_s", "least_s"))
            axis.bar(at, value, width=0.88, color=COLOURS[name], alpha=1 if here else 0.4, ecolor=DARK, capsize=2, label=once(CONTENDERS[name]),
                     yerr=[[value - slowest], [fastest - value]])  # all runs: a deviation would reach beyond what was measured
            shown = race_report.rate(f["bytes_per_s"])
            numbers.append((at, fastest, shown if here else f"({shown})"))
            at += 1
        at += GAP
    axis.set_xticks(ticks, [label for label, _ in groups], fontsize=8)
    top = max([y for _, y, _ in numbers] + [block["limit_bytes_per_s"] / MIB for _, block in groups])
    for x, y, number in numbers:
        axis.text(x, y + 0.022 * top, number, ha="center", va="bottom", rotation=90, fontsize=7, bbox=UNDER_NUMBERS)
    axis.set_ylim(0, top * 1.2)
    bars_wide(axis, at - GAP)
    axis.set_ylabel("MiB/s")


def one_legend(axes):
    """Beside the first row: what any of the panels has, once, in the order of the tables."""
    from matplotlib.patches import Patch  # loaded by now, where it is
    handles = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    order = list(CONTENDERS.values())
    labels = sorted(handles, key=lambda label: order.index(label) if label in order else len(order))
    colours = {CONTENDERS[name]: colour for name, colour in COLOURS.items()}
    shown = [Patch(color=colours[label]) if label in colours else handles[label] for label in labels]
    axes[0][-1].legend(shown, labels, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, fontsize=8)


def files_figure(pyplot, data):
    compute, panels = data["settings"]["compute"], []
    for geometry in GEOMETRY:
        found = race_report.flush_blocks(data, geometry=geometry, nodes=compute, imbalance=0, slow=0)
        if found:
            panels.append((geometry, [(f"C:K = {compute / b['files']:g}\nK = {b['files']}", b) for b in sorted(found, key=lambda b: b["files"])]))
    if not panels:
        return None
    figure, axes = panels_of(pyplot, len(panels), [max(slots(groups) for _, groups in panels)])
    for axis, (geometry, groups) in zip(axes.flat, panels):
        clusters(axis, groups)
        axis.set_title(f"Figure 3: {compute} nodes, K files, {GEOMETRY[geometry]}", fontsize=10)
        tidy(axis)
    one_legend(axes)
    return figure


def imbalance_figure(pyplot, data):
    """A row for each geometry, a column for each imbalance, as wide as it has bars."""
    compute, settings, panels = data["settings"]["compute"], data["settings"], {}
    for geometry in GEOMETRY:
        for imbalance in sorted({b["imbalance"] for b in race_report.flush_blocks(data, geometry=geometry, slow=0)}):
            found = [b for b in race_report.flush_blocks(data, geometry=geometry, imbalance=imbalance, size=settings["size"], slow=0)
                     if b["files"] == min(b["nodes"], max(1, compute // 2))]
            if found:
                panels[geometry, imbalance] = [(f"C = {b['nodes']}\nK = {b['files']}", b) for b in sorted(found, key=lambda b: b["nodes"])]
    if not panels:
        return None
    rows, columns = [g for g in GEOMETRY if any(g == geometry for geometry, _ in panels)], sorted({imbalance for _, imbalance in panels})
    figure, axes = panels_of(pyplot, len(rows), [max(slots(panels.get((g, i), [])) for g in rows) for i in columns])
    for row, geometry in zip(axes, rows):
        for axis, imbalance in zip(row, columns):
            if (geometry, imbalance) not in panels:
                axis.axis("off")
                continue
            clusters(axis, panels[geometry, imbalance])
            number = {0: "Figure 4: ", 10: "Figure 5: ", 20: "Figure 6: "}.get(imbalance, "")
            axis.set_title(f"{number}images +- {imbalance} %\n{GEOMETRY[geometry]}", fontsize=10)
            tidy(axis)
    one_legend(axes)
    return figure


def scaling_figure(pyplot, data):
    """Throughput over nodes, images of equal size: each rank's (weak) or all ranks' (strong) constant."""
    settings, panels = data["settings"], []
    for geometry in GEOMETRY:
        found = race_report.flush_blocks(data, geometry=geometry, imbalance=0, slow=0)
        whole = settings["size"] * settings["compute"]
        # All nodes write as many files as there are nodes, where that was run; else the most files.
        best = {}
        for block in found:
            for kind, fits in (("weak", block["size"] == settings["size"]), ("strong", block["size"] * block["nodes"] == whole)):
                at = (kind, block["nodes"])
                if fits and (at not in best or best[at]["files"] < block["files"] <= block["nodes"]):
                    best[at] = block
        for kind in ("weak", "strong"):
            line = [best[at] for at in sorted(best) if at[0] == kind]
            if len(line) > 1:
                panels.append((geometry, kind, line))
    if not panels:
        return None
    rows = (len(panels) + 1) // 2
    figure, axes = pyplot.subplots(rows, 2, figsize=(13, 4.6 * rows), dpi=110, layout="constrained", squeeze=False)
    for axis in list(axes.flat)[len(panels):]:
        axis.axis("off")
    for axis, (geometry, kind, line) in zip(axes.flat, panels):
        for name in CONTENDERS:
            points = [(b["nodes"], b["figures"]["contenders"][name]["bytes_per_s"] / MIB) for b in line if name in b["figures"]["contenders"]]
            if len(points) > 1:
                axis.plot(*zip(*points), marker="o", ms=4, color=COLOURS[name], lw=2.4 if name == "cairn" else 1.4, label=CONTENDERS[name])
        axis.plot([b["nodes"] for b in line], [b["limit_bytes_per_s"] / MIB for b in line], color=RED, ls="--", lw=1.4, label="physical limit")
        axis.set_xticks([b["nodes"] for b in line])
        axis.set_xlabel("nodes")
        axis.set_ylabel("MiB/s")
        axis.set_ylim(0)
        axis.set_title(f"Poster, Figure {1 if kind == 'weak' else 2}: {kind} scaling, {GEOMETRY[geometry]}", fontsize=10)
        tidy(axis)
        axis.legend(frameon=False, fontsize=7)
    return figure


def slow_figure(pyplot, data):
    """The settings with a slow server, each beside the same one without."""
    groups = []
    for block in race_report.flush_blocks(data):
        if block["slow"]:
            even = race_report.flush_blocks(data, **{name: block[name] for name in ("geometry", "nodes", "files", "imbalance", "size")}, slow=0)
            groups += [(f"K = {b['files']}\n" + (f"a server at 1/{b['slow']:g}" if b["slow"] else "all alike"), b) for b in even + [block]]
    if not groups:
        return None
    figure, axes = panels_of(pyplot, 1, [slots(groups, AT_A_SLOW_SERVER)])
    clusters(axes[0][0], groups, AT_A_SLOW_SERVER)
    axes[0][0].set_title("A slow storage server", fontsize=10)
    tidy(axes[0][0])
    one_legend(axes)
    return figure


def leader_panels(axes, leaders, first):
    """Figures 7 to 9, or 11 to 13: leaders; then the writers of the fastest and of the slowest."""
    def stacked(axis, labels, parts, rates):
        at, local, received = range(len(parts)), [w["local_s"] for w in parts], [w["received_s"] for w in parts]
        axis.bar(at, local, color=BLUE, width=0.65, label="local data")
        axis.bar(at, received, bottom=local, color=LIGHT, width=0.65, label="received data")
        for i, (w, rate) in enumerate(zip(parts, rates)):
            axis.text(i, 0.1, race_report.rate(rate), ha="center", va="bottom", fontsize=7, color="white" if w["local_s"] + w["received_s"] > 1 else DARK)
        axis.set_xticks(range(len(labels)), labels, fontsize=8)
        axis.set_ylabel("seconds")

    leaders = sorted(leaders, key=lambda each: each["seconds"])
    sums = []
    for leader in leaders:
        # What a leader spends is what its writers spend on average: they work side by side.
        busy = [w for w in leader["writers"] if w["received_bytes"] + w["local_bytes"] > 0] or leader["writers"]
        one = {name: sum(w[name] for w in leader["writers"]) for name in ("local_bytes", "received_bytes")}
        one.update({name: sum(w[name] for w in busy) / max(1, len(busy)) for name in ("local_s", "received_s")})
        sums.append(one)
    flushed = [(one["local_bytes"] + one["received_bytes"]) / leader["seconds"] for leader, one in zip(leaders, sums)]
    stacked(axes[0], [leader["node"] for leader in leaders], sums, flushed)
    axes[0].plot(range(len(leaders)), [leader["seconds"] for leader in leaders], color=NAVY, marker="_", ms=26, mew=2, ls="", label="its busiest writer")
    average = sum(leader["seconds"] for leader in leaders) / len(leaders)
    axes[0].axhline(average, color=DARK, ls=":", lw=1.4, label=f"mean of them, {average:.1f} s")
    axes[0].set_title(f"Figure {first}: leaders (numbers: MiB/s)", fontsize=10)
    for axis, leader, number, which in ((axes[1], leaders[0], first + 1, "fastest"), (axes[2], leaders[-1], first + 2, "slowest")):
        parts = [w for w in leader["writers"] if w["received_bytes"] + w["local_bytes"] > 0]
        rates = [(w["local_bytes"] + w["received_bytes"]) / (w["local_s"] + w["received_s"]) for w in parts]
        stacked(axis, [str(n) for n in range(len(parts))], parts, rates)
        axis.bar([len(parts)], [leader["seconds"]], color=NAVY, width=0.65, label="its busiest writer")
        axis.set_title(f"Figure {number}: writers of the {which}, {leader['node']}", fontsize=10)
    for axis in axes:
        tidy(axis)
        axis.set_ylim(0, max(leader["seconds"] for leader in leaders) * 1.35)  # one scale for all three, and room for the legend
        axis.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")


def leaders_figure(pyplot, data):
    found = [block for block in (race_report.most_uneven(data, geometry) for geometry in GEOMETRY) if block]
    if not found:
        return None
    figure, axes = pyplot.subplots(len(found), 3, figsize=(14, 4.6 * len(found)), dpi=110, layout="constrained", squeeze=False)
    for row, block in zip(axes, found):
        leader_panels(row, block["figures"]["leaders"][-1], 7)
        row[0].set_title(row[0].get_title() + "\n" + race_report.title(block), fontsize=10)
    return figure


def application_figure(pyplot, data):
    found = [b for b in data["blocks"] if b["kind"] == "application" and "figures" in b]
    if not found:
        return None
    figure, axes = pyplot.subplots(len(found), 4, figsize=(17, 4.6 * len(found)), dpi=110, layout="constrained", squeeze=False)
    for row, block in zip(axes, found):
        modes = block["figures"]["modes"]
        labels = [MODES[mode].replace(", ", ",\n") for mode in modes]
        axis = row[0]
        goes_on, waits = [f["seconds"] - f["blocked_s"] for f in modes.values()], [f["blocked_s"] for f in modes.values()]
        axis.bar(range(len(modes)), goes_on, color=GREY, width=0.65, label="computes, communicates")
        axis.bar(range(len(modes)), waits, bottom=goes_on, color=NAVY, width=0.65, label="waits in checkpoints")
        for i, f in enumerate(modes.values()):
            axis.text(i, f["seconds"], f"{f['seconds']:.1f} s\n{100 * f['slower_by_mean']:+.1f} %", ha="center", va="bottom", fontsize=8)
        axis.set_xticks(range(len(modes)), labels, fontsize=7)
        axis.set_ylim(0, max(f["seconds"] for f in modes.values()) * 1.3)
        axis.set_ylabel("seconds")
        axis.set_title(f"Figure 10: the application\n{race_report.title(block)}", fontsize=9)
        tidy(axis)
        axis.legend(frameon=False, fontsize=8)
        if block["figures"].get("leaders") and block["figures"]["leaders"][-1]:
            leader_panels(row[1:], block["figures"]["leaders"][-1], 11)
        else:
            for axis in row[1:]:
                axis.axis("off")
    return figure


FIGURES = {"figure-3": files_figure, "figures-4-to-6": imbalance_figure, "poster-1-2": scaling_figure, "slow-server": slow_figure, "figures-7-to-9": leaders_figure,
           "figures-10-to-13": application_figure}


def draw(data, prefix, mixed=False):
    """Paths of what was drawn: the figures for which the run has settings. mixed: as race_report.text has it."""
    found = race_report.refuse_mixed(data["blocks"], mixed)
    pyplot = pyplot_or_fail()
    paths = []
    m, s = data["machine"], data["settings"]
    for name, make in FIGURES.items():
        figure = make(pyplot, data)
        if figure is None:
            continue
        figure.suptitle(f"{data['cairn']}: {s['compute']} nodes x {s['ranks']} ranks, {race_report.bytes_text(s['size'])} a rank, "
                        f"{s['servers']} servers; a scale model on {m['cores']} cores"
                        + (f"\nnot one clean revision: {found.split(':')[0]}" if found else ""), fontsize=10)
        paths.append(f"{prefix}-{name}.png")
        figure.savefig(paths[-1])
        pyplot.close(figure)
    return paths
