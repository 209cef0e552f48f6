"""Bars of a run as PNG: shares of what the machine can do, what the application waits for, seconds of each writer, memory."""
import report

# One look for all figures. Blue is Cairn, in its shades: light what of it is received or in the background or another way of it, navy what an application
# waits for. Red is no contender: limits, goals, what a text says. Rates are MiB/s, or GiB/s where all of a figure are thousands; times are seconds.
BLUE, LIGHT, NAVY, GREY, RED, DARK = "#2f6690", "#81a4cd", "#12263a", "#b5b5b5", "#c1121f", "#444444"
GREEN, ORANGE, ROSE, PURPLE = "#5a9367", "#e08e45", "#b56576", "#8d6a9f"
COLOURS = {"cairn": BLUE, "plain": GREY, "file_per_rank_placed": "#5f4470", "file_per_rank": PURPLE, "veloc": "#d1b3d9", "shared_file": "#8a7f72",
           "collective": ORANGE, "collective_k": "#f2c48d", "adios2": GREEN, "adios2_tuned": "#a3c9a8", "adios2_best": "#2f5d3a", "genericio": ROSE}
BAR_INCHES, PANEL_INCHES, BARS_LEAST = 0.17, 3.6, 12  # of a bar, of a panel's height; a panel is at least so many bars wide, so that one does not fill it


def bars_wide(axis, bars):
    """Bars of width 1 from 0 on: with few of them there is room beside them instead of wider ones."""
    beside = max(0.0, BARS_LEAST - bars) / 2
    axis.set_xlim(-1 - beside, bars + beside)


def panels_of(pyplot, rows, columns):
    """A figure, and its axes by row and column. columns: how many bars each is to hold; bars are as wide in every panel."""
    widths = [max(BARS_LEAST, bars) + 2 for bars in columns]
    size = (max(6.5, BAR_INCHES * sum(widths) + 0.7 * len(columns) + 2.4), PANEL_INCHES * rows + 0.5)
    return pyplot.subplots(rows, len(columns), figsize=size, dpi=110, layout="constrained", squeeze=False, width_ratios=widths)


def shares(axis, data):
    names, values, goals, limits = [], [], [], {"capture": 0.85, "flush": 0.80}
    for run in data["runs"]:
        if run["kind"] == "memory":
            continue
        own = run["kind"] == "capture_checksums"
        for step in ("capture", "flush") if not own else ("capture",):
            names.append(f"{step}\n" + ("checksums in pass" if own else run["title"]))
            values.append(100 * run["figures"][f"{step}, steady state"]["share"])
            goals.append(40 if own else 100 * limits[step] if step == "capture" or run["files"] == max(1, run["nodes"]) else None)
        if "restore from the files" in run["figures"]:
            names.append(f"restore\n{run['title']}")
            values.append(100 * run["figures"]["restore from the files"]["share"])
            goals.append(None)
    axis.bar(range(len(names)), values, color=BLUE, width=0.65)
    for i, (value, goal) in enumerate(zip(values, goals)):
        axis.text(i, value + 1.5, f"{value:.0f}", ha="center", fontsize=8)
        if goal:
            axis.plot([i - 0.42, i + 0.42], [goal, goal], color=RED, lw=1.6, label="goal" if i == 0 else None)
    axis.set_xticks(range(len(names)), names, fontsize=7.5)
    axis.set_ylabel("% of plain memcpy, write, read")
    axis.set_ylim(0, max(110, max(values) * 1.12))
    axis.set_title("Share of what the machine can do")
    axis.legend(loc="upper right", frameon=False, fontsize=8)


def waits(axis, data):
    rows = []
    for run in report.main_runs(data):
        rows.append((f"Cairn\n{run['title']}", run["figures"]["capture, steady state"]["seconds"], run["figures"]["flush, steady state"]["seconds"]))
    figures = report.main_runs(data)[0]["figures"]
    for name in ("file per rank", "one file, own offsets", "MPI-IO collective"):
        if name in figures:
            rows.append((name.replace(", ", ",\n").replace("MPI-IO ", "MPI-IO\n").replace("file per", "file\nper"), figures[name]["seconds"], 0))
    at = range(len(rows))
    axis.bar(at, [r[1] for r in rows], color=[NAVY if r[2] else GREY for r in rows], width=0.65)
    axis.bar(at, [r[2] for r in rows], bottom=[r[1] for r in rows], color=BLUE, width=0.65)
    top = max(r[1] + r[2] for r in rows)
    for i, (_, wait, more) in enumerate(rows):
        axis.text(i, wait + more + 0.015 * top, f"waits {wait:.2f} s", ha="center", fontsize=8)
    axis.bar([0], [0], color=NAVY, label="application waits")
    axis.bar([0], [0], color=BLUE, label="in the background")
    axis.bar([0], [0], color=GREY, label="application waits, without Cairn")
    axis.set_xticks(at, [r[0] for r in rows], fontsize=8)
    axis.set_ylabel("seconds until durable")
    axis.set_ylim(0, top * 1.3)
    axis.set_title("What a checkpoint costs")
    axis.legend(loc="upper right", frameon=False, fontsize=8)


def writers(axis, data):
    run = report.main_runs(data)[-1]
    bars = [(d["node"], n, w) for d in run["daemons"] for n, w in enumerate(d["writers"]) if w["received_bytes"] + w["local_bytes"] > 0]
    at = range(len(bars))
    axis.bar(at, [b[2]["local_s"] for b in bars], color=BLUE, width=0.65, label="local data")
    axis.bar(at, [b[2]["received_s"] for b in bars], bottom=[b[2]["local_s"] for b in bars], color=LIGHT, width=0.65, label="received data")
    axis.set_xticks(at, [f"{node}\n{n}" if i == 0 or bars[i - 1][0] != node else str(n) for i, (node, n, _) in enumerate(bars)], fontsize=8)
    axis.set_ylabel("seconds")
    axis.set_ylim(0, max((b[2]["local_s"] + b[2]["received_s"] for b in bars), default=1) * 1.3)
    axis.set_title(f"Writers of the leader{'s' if run['files'] > 1 else ''}, {run['title']}")
    axis.legend(loc="upper right", frameon=False, fontsize=8)


def memory(axis, data):
    runs = [run for run in data["runs"] if run["kind"] == "memory"]
    allowed = report.allowed_bytes(data) / report.MIB
    values = [report.peak_bytes(run) / report.MIB for run in runs]
    axis.bar(range(len(runs)), values, color=BLUE, width=0.5)
    for i, value in enumerate(values):
        axis.text(i, value + 0.015 * allowed, f"{value:.0f}", ha="center", fontsize=8)
    axis.axhline(allowed, color=RED, lw=1.6, label=f"goal: buffers + 64 MiB = {allowed:.0f} MiB")
    axis.set_xticks(range(len(runs)), [run["title"].removeprefix("memory: image of ").replace(", ", "\n", 1) for run in runs], fontsize=8)
    axis.set_ylabel("MiB, at peak")
    axis.set_ylim(0, allowed * 1.3)
    axis.set_title("Anonymous memory of a daemon")
    axis.legend(loc="upper right", frameon=False, fontsize=8)


def pyplot_or_fail():
    try:
        import matplotlib
    except ImportError:
        raise OSError("--plot needs matplotlib for this python3: on Debian and Ubuntu `apt install python3-matplotlib`") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    return pyplot


def tidy(axis):
    axis.spines[["top", "right"]].set_visible(False)
    axis.yaxis.grid(True, color="#e6e6e6")
    axis.set_axisbelow(True)


def draw(data, path):
    pyplot = pyplot_or_fail()
    with_memory = any(run["kind"] == "memory" for run in data["runs"])
    figure, axes = pyplot.subplots(2, 2, figsize=(13, 8.5), dpi=110, layout="constrained")
    panels = list(axes.flat)
    for drawing, axis in zip([shares, waits, writers] + ([memory] if with_memory else []), panels):
        drawing(axis, data)
        tidy(axis)
    if not with_memory:
        panels[3].axis("off")
    m, s = data["machine"], data["settings"]
    figure.suptitle(f"{data['cairn']}: {s['ranks']} ranks on {s['nodes']} virtual nodes, {report.bytes_text(s['size'])} a rank; "
                    f"{m['cores']} cores, {m['scratch']} to {m['persistent']}", fontsize=11)
    figure.savefig(path)
    return path
