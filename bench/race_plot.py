"""The paper's figures, with our bars: fgcs24 Figures 3 to 9 and 10 to 13, and Figures 1 and 2 of the poster, a PNG for each group."""
import race_report
from plot import BLUE, GREY, LIGHT, RED, pyplot_or_fail, tidy
from race_plan import AT_A_SLOW_SERVER
from race_report import CONTENDERS, GEOMETRY, MIB, MODES

GREEN, ORANGE, NAVY = "#5a9367", "#e08e45", "#12263a"
COLOURS = {"cairn": BLUE, "plain": GREY, "file_per_rank": "#8d6a9f", "shared_file": "#c5a3cf", "collective": ORANGE, "collective_k": "#f2c48d",
           "adios2": GREEN, "adios2_tuned": "#a3c9a8", "genericio": "#b56576"}


def clusters(axis, groups, among=tuple(CONTENDERS)):
    """groups: (label, block). One bar a contender: seconds; Cairn's stands on what the application waits for. The number is MiB/s."""
    names = [name for name in among if any(name in race_report.with_elsewhere(block) for _, block in groups)]
    width = 0.85 / max(1, len(names))
    numbers, told = [], set()

    def once(label):
        """For the legend."""
        fresh = label not in told
        told.add(label)
        return label if fresh else None

    for at, (_, block) in enumerate(groups):
        for nth, name in enumerate(names):
            f = race_report.with_elsewhere(block).get(name)
            if not f:
                continue
            x = at + (nth - (len(names) - 1) / 2) * width
            below = f["blocked_s"] if name == "cairn" else 0
            axis.bar(x, f["seconds"], bottom=below, width=0.94 * width, color=COLOURS[name], ecolor="#444444", capsize=2,
                     yerr=[[f["seconds"] - f["least_s"]], [f["most_s"] - f["seconds"]]],  # all runs: a deviation would reach beyond what was measured
                     label=once(CONTENDERS[name]))
            if below:
                axis.bar(x, below, width=0.94 * width, color=NAVY, label=once("application waits for Cairn"))
            numbers.append((x, below + f["most_s"], race_report.rate(f["bytes_per_s"])))
        limit_s = block["bytes"] / block["limit_bytes_per_s"]
        axis.plot([at - 0.46, at + 0.46], [limit_s, limit_s], color=RED, lw=1.6, label=once("physical limit of K files"))
    axis.set_xticks(range(len(groups)), [label for label, _ in groups], fontsize=8)
    top = max(y for _, y, _ in numbers)
    for x, y, number in numbers:
        axis.text(x, y + 0.022 * top, number, ha="center", va="bottom", rotation=90, fontsize=7)
    axis.set_ylim(0, top * 1.16)
    axis.set_ylabel("seconds")


def legend_beside(axis):
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)


def files_figure(pyplot, data):
    compute, panels = data["settings"]["compute"], []
    for geometry in GEOMETRY:
        found = race_report.flush_blocks(data, geometry=geometry, nodes=compute, imbalance=0, slow=0)
        if found:
            panels.append((geometry, [(f"C:K = {compute / b['files']:g}\nK = {b['files']}", b) for b in sorted(found, key=lambda b: b["files"])]))
    if not panels:
        return None
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(13, 4.6 * len(panels)), dpi=110, layout="constrained", squeeze=False)
    for axis, (geometry, groups) in zip(axes.flat, panels):
        clusters(axis, groups)
        axis.set_title(f"Figure 3: {compute} nodes, K files, {GEOMETRY[geometry]} (numbers: MiB/s; lower is better)")
        tidy(axis)
        legend_beside(axis)
    return figure


def imbalance_figure(pyplot, data):
    compute, panels = data["settings"]["compute"], []
    for geometry in GEOMETRY:
        for imbalance in sorted({b["imbalance"] for b in race_report.flush_blocks(data, geometry=geometry, slow=0)}):
            found = [b for b in race_report.flush_blocks(data, geometry=geometry, imbalance=imbalance, size=data["settings"]["size"], slow=0)
                     if b["files"] == min(b["nodes"], max(1, compute // 2))]
            if found:
                panels.append((geometry, imbalance, [(f"C = {b['nodes']}\nK = {b['files']}", b) for b in sorted(found, key=lambda b: b["nodes"])]))
    if not panels:
        return None
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(13, 3.4 * len(panels)), dpi=110, layout="constrained", squeeze=False)
    for axis, (geometry, imbalance, groups) in zip(axes.flat, panels):
        clusters(axis, groups)
        number = {0: "Figure 4: ", 10: "Figure 5: ", 20: "Figure 6: "}.get(imbalance, "")
        axis.set_title(f"{number}images +- {imbalance} %, {GEOMETRY[geometry]}")
        tidy(axis)
        legend_beside(axis)
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
        axis.set_title(f"Poster, Figure {1 if kind == 'weak' else 2}: {kind} scaling, {GEOMETRY[geometry]}")
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
    figure, axis = pyplot.subplots(figsize=(9, 4), dpi=110, layout="constrained")
    clusters(axis, groups, AT_A_SLOW_SERVER)
    axis.set_title("A slow storage server (numbers: MiB/s; lower is better)")
    tidy(axis)
    legend_beside(axis)
    return figure


def leader_panels(axes, leaders, first):
    """Figures 7 to 9, or 11 to 13: leaders; then the writers of the fastest and of the slowest."""
    def stacked(axis, labels, parts, rates):
        at, local, received = range(len(parts)), [w["local_s"] for w in parts], [w["received_s"] for w in parts]
        axis.bar(at, local, color=BLUE, width=0.65, label="local data")
        axis.bar(at, received, bottom=local, color=ORANGE, width=0.65, label="received data")
        for i, (w, rate) in enumerate(zip(parts, rates)):
            axis.text(i, w["local_s"] + w["received_s"], race_report.rate(rate), ha="center", va="bottom", fontsize=7)
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
    axes[0].plot(range(len(leaders)), [leader["seconds"] for leader in leaders], color=GREEN, marker="_", ms=26, mew=2, ls="", label="its busiest writer")
    average = sum(leader["seconds"] for leader in leaders) / len(leaders)
    axes[0].axhline(average, color="#444444", ls=":", lw=1.4, label=f"mean of them, {average:.1f} s")
    axes[0].set_title(f"Figure {first}: leaders (numbers: MiB/s)")
    for axis, leader, number, which in ((axes[1], leaders[0], first + 1, "fastest"), (axes[2], leaders[-1], first + 2, "slowest")):
        parts = [w for w in leader["writers"] if w["received_bytes"] + w["local_bytes"] > 0]
        rates = [(w["local_bytes"] + w["received_bytes"]) / (w["local_s"] + w["received_s"]) for w in parts]
        stacked(axis, [str(n) for n in range(len(parts))], parts, rates)
        axis.bar([len(parts)], [leader["seconds"]], color=GREEN, width=0.65, label="its busiest writer")
        axis.set_title(f"Figure {number}: writers of the {which}, {leader['node']}")
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
        row[0].set_title(row[0].get_title() + "\n" + race_report.title(block), fontsize=9)
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
        axis.bar(range(len(modes)), goes_on, color=GREEN, width=0.65, label="computes, communicates")
        axis.bar(range(len(modes)), waits, bottom=goes_on, color=BLUE, width=0.65, label="waits in checkpoints")
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


def draw(data, prefix):
    """Paths of what was drawn: the figures for which the run has settings."""
    pyplot = pyplot_or_fail()
    paths = []
    m, s = data["machine"], data["settings"]
    for name, make in FIGURES.items():
        figure = make(pyplot, data)
        if figure is None:
            continue
        figure.suptitle(f"{data['cairn']}: {s['compute']} nodes x {s['ranks']} ranks, {race_report.bytes_text(s['size'])} a rank, "
                        f"{s['servers']} servers; a scale model on {m['cores']} cores", fontsize=10)
        paths.append(f"{prefix}-{name}.png")
        figure.savefig(paths[-1])
        pyplot.close(figure)
    return paths
