"""The papers' figures with simulated bars, and where the text puts them: a PNG each."""
import papers_figures
from papers_plan import TIERS, Frontier, Pvfs2, Theta
from plot import BLUE, DARK, GREEN, GREY, LIGHT, ORANGE, RED, ROSE, pyplot_or_fail, tidy

GIB, MIB = 1 << 30, 1 << 20
STRATEGIES = (("paper", "Cairn's engine, the paper's way", BLUE), ("adios2", "ADIOS2 (every node)", GREEN), ("genericio", "GenericIO (at offset)", ROSE))
TIER = {"disks": "disks, 4,284 GiB/s", "all tiers": "all tiers, 13,039 GiB/s"}  # 4.6 and 14 TB/s in the text


def bars(axis, groups, marks):
    """groups: (label, {strategy: run}); marks: {(group, strategy): rate that the text implies}."""
    width, top = 0.26, max(run["bytes_per_s"] for _, runs in groups for run in runs.values()) / GIB
    for at, (_, runs) in enumerate(groups):
        for nth, (name, label, colour) in enumerate(STRATEGIES):
            x, rate = at + (nth - 1) * width, runs[name]["bytes_per_s"] / GIB
            axis.bar(x, rate, width=0.92 * width, color=colour, label=label if at == 0 else None)
            axis.text(x, 0.02 * top, f"{rate:,.0f}", ha="center", va="bottom", fontsize=7, rotation=90, color="white")
            if (at, name) in marks:
                axis.plot([x - 0.46 * width, x + 0.46 * width], [marks[at, name] / GIB] * 2, color=RED, lw=2)
    axis.plot([], [], color=RED, lw=2, label="where the text puts a rival, from the blue bar")
    axis.set_xticks(range(len(groups)), [label for label, _ in groups], fontsize=9)
    axis.set_ylabel("GiB/s")
    tidy(axis)


def of_blue(run, times):
    return run["bytes_per_s"] * times


def figure_3(pyplot, simulated):
    figure, axes = pyplot.subplots(2, 2, figsize=(13, 8), dpi=110, layout="constrained", sharey="row")
    times = {(0, "adios2"): 1.5, (0, "genericio"): 1.5, (1, "adios2"): 1 / 1.16, (1, "genericio"): 1 / 2.2, (2, "adios2"): 1 / 2, (2, "genericio"): 1 / 2}
    for row, tier in zip(axes, TIERS):
        for axis, imbalance in zip(row, (0, 0.2)):
            f = Frontier(simulated.run, tier, imbalance, simulated.shrink)
            groups = [(f"K = {files:,}\n{4096 // files}:1", {name: getattr(f, name)(4096, files) for name, _, _ in STRATEGIES}) for files in (1024, 2048, 4096)]
            bars(axis, groups, {key: of_blue(groups[key[0]][1]["paper"], each) for key, each in times.items()})
            axis.set_title(f"{TIER[tier]}; images {'equal' if not imbalance else '+- 20 %'}", fontsize=10)
    axes[1][1].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle("fgcs24, Figure 3: 4,096 nodes, K files; higher is better (red at K = 4,096: at most this)", fontsize=11)
    return figure


def figures_4_to_6(pyplot, simulated):
    figure, axes = pyplot.subplots(2, 3, figsize=(15, 8), dpi=110, layout="constrained", sharey="row")
    texts = {0: {(0, "adios2"): 1 / 2, (0, "genericio"): 1 / 5, (1, "adios2"): 1 / 2, (1, "genericio"): 1 / 5, (2, "adios2"): 1.08},
             0.1: {(2, "genericio"): 1 / 2}, 0.2: {(2, "genericio"): 1 / 2}}
    for row, tier in zip(axes, TIERS):
        for axis, (number, imbalance) in zip(row, ((4, 0), (5, 0.1), (6, 0.2))):
            f = Frontier(simulated.run, tier, imbalance, simulated.shrink)
            groups = [(f"C = {nodes:,}\nK = {files:,}", {name: getattr(f, name)(nodes, files) for name, _, _ in STRATEGIES})
                      for nodes, files in ((1024, 1024), (2048, 2048), (4096, 2048))]
            bars(axis, groups, {key: of_blue(groups[key[0]][1]["paper"], each) for key, each in texts[imbalance].items()})
            axis.set_title(f"Figure {number}: images {'equal' if not imbalance else f'+- {100 * imbalance:.0f} %'}; {TIER[tier]}", fontsize=10)
    for row in axes:
        row[0].set_ylim(0, 1.35 * max(axis.get_ylim()[1] for axis in row))  # room for the legend
    axes[0][0].legend(frameon=False, fontsize=9, loc="upper left")
    figure.suptitle("fgcs24, Figures 4 to 6: C nodes, K files; higher is better", fontsize=11)
    return figure


def figure_7(pyplot, simulated):
    figure, axes = pyplot.subplots(1, 2, figsize=(13, 4.6), dpi=110, layout="constrained", sharey=True)
    slowest = max(Frontier(simulated.run, tier, 0.2, simulated.shrink).paper(4096, 2048)["leaders"][-1]["seconds"] for tier in TIERS)
    for axis, tier in zip(axes, TIERS):
        run = Frontier(simulated.run, tier, 0.2, simulated.shrink).paper(4096, 2048)
        leaders = run["leaders"]
        of_all = [each["received_s"] + each["local_s"] for each in leaders]
        local = [each["seconds"] * each["local_s"] / both for each, both in zip(leaders, of_all)]
        received = [each["seconds"] - part for each, part in zip(leaders, local)]
        at = range(len(leaders))
        axis.bar(at, local, color=BLUE, width=0.65, label="local data")
        axis.bar(at, received, bottom=local, color=LIGHT, width=0.65, label="received data")
        for i, each in enumerate(leaders):
            axis.text(i, 0.1, f"{each['bytes'] / each['seconds'] / GIB:.1f}", ha="center", va="bottom", fontsize=8, color="white")
        mean = leaders[-1]["seconds"] / run["slowest_leader"]
        axis.axhline(mean, color=DARK, ls=":", lw=1.4, label=f"mean of all, {mean:.1f} s")
        axis.axhline(1.12 * mean, color=RED, lw=1.6, label="the text: the slowest, at most 12 % above")
        axis.set_xticks(list(at), [f"{each['node']:,}" for each in leaders], fontsize=8)
        axis.set_xlabel("leader (node), from the fastest to the slowest, at equal steps of the order")
        axis.set_ylabel("seconds")
        axis.set_ylim(0, 1.35 * slowest)
        axis.set_title(f"{TIER[tier]}: the slowest {100 * (run['slowest_leader'] - 1):.0f} % above the mean (numbers: GiB/s)", fontsize=10)
        tidy(axis)
        axis.legend(frameon=False, fontsize=8, loc="upper center", ncols=2)
    figure.suptitle("fgcs24, Figure 7: leaders of the paper's way, C = 4,096, K = 2,048, images +- 20 %", fontsize=11)
    return figure


def ispdc23(pyplot, simulated):
    figure, axes = pyplot.subplots(1, 3, figsize=(14, 4.4), dpi=110, layout="constrained", sharey=True)
    theta = Theta(simulated.run)
    texts = {1: [(8, 1.0, "^", "the text: more than")], 4: [(8, 2.5, "_", "the text"), (16, 1.5, "_", None)], 8: [(8, 2.5, "_", "the text")]}
    for axis, files in zip(axes, (1, 4, 8)):
        counts = [n for n in (1, 2, 4, 8, 16) if n >= files]
        for placement, colour, style in (("interleaved", BLUE, "-"), ("contiguous", LIGHT, "--")):
            runs = [theta.leader(files, n, placement)["bytes_per_s"] / GIB for n in counts]
            axis.plot(range(len(counts)), runs, marker="o", ms=5, color=colour, ls=style, label=placement)
        for n, value, mark, label in texts[files]:
            axis.plot([counts.index(n)], [value], marker=mark, ms=16 if mark == "_" else 9, mew=2.4, color=RED, ls="", label=label)
        axis.set_xticks(range(len(counts)), counts)
        axis.set_xlabel("writers")
        axis.set_ylabel("GiB/s of one leader")
        axis.set_ylim(0, 3)
        axis.margins(x=0.15)
        axis.set_title(f"Figure {(1, 4, 8).index(files) + 1}: {files} file{'s' if files > 1 else ''}", fontsize=10)
        tidy(axis)
        axis.legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle("ispdc23, Figures 1 to 3: one leader, four followers, 40 GiB", fontsize=11)
    return figure


def orcheck(pyplot, simulated):
    figure, axes = pyplot.subplots(1, 2, figsize=(13, 4.6), dpi=110, layout="constrained")
    p, counts = Pvfs2(simulated.run), (16, 32, 64, 128, 256)
    ways = (("traditional", "traditional", GREY), ("vertical", "vertical placement", GREEN), ("orchestrated", "and staged marshaling", ORANGE))
    for way, label, colour in ways:
        axes[0].plot(range(len(counts)), [getattr(p, way)(16, n)["bytes_per_s"] / MIB for n in counts], marker="o", ms=5, color=colour, label=label)
    first = p.traditional(16, 16)["bytes_per_s"] / MIB
    axes[0].plot([len(counts) - 1], [first / 2], marker="_", ms=18, mew=2.4, color=RED, ls="", label="the text: half of 16 processes'")
    axes[0].set_xticks(range(len(counts)), counts)
    axes[0].set_xlabel("processes")
    axes[0].set_ylabel("MiB/s")
    axes[0].set_ylim(0)
    axes[0].set_title("Figure 1: 16 GB in all", fontsize=10)
    axes[0].legend(frameon=False, fontsize=8, loc="lower left")
    told = {("LU", "traditional"): 157.41, ("LU", "orchestrated"): 105.99}
    for at, name in enumerate(papers_figures.PROGRAMS):
        for nth, (way, label, colour) in enumerate(ways):
            seconds = getattr(p, way)(Pvfs2.CLASS_D[name][3])["flush_s"]
            x = at + (nth - 1) * 0.26
            axes[1].bar(x, seconds, width=0.24, color=colour, label=label if at == 0 else None)
            axes[1].text(x, seconds, f"{seconds:.0f}", ha="center", va="bottom", fontsize=7)
            if (name, way) in told:
                axes[1].plot([x - 0.12, x + 0.12], [told[name, way]] * 2, color=RED, lw=2, label="the text" if way == "orchestrated" else None)
    both = [getattr(p, way)(82)["flush_s"] for way in ("traditional", "orchestrated")]
    axes[1].plot([4 + 0.14, 4 + 0.38], [both[0] - 254] * 2, color=RED, lw=2)
    axes[1].set_xticks(range(5), papers_figures.PROGRAMS)
    axes[1].set_ylabel("seconds")
    axes[1].set_title("Figure 5: class D, 256 processes (red at FT: 254 s less than the grey bar)", fontsize=10)
    axes[1].legend(frameon=False, fontsize=8, loc="upper left")
    for axis in axes:
        tidy(axis)
    figure.suptitle("orcheck: 32 nodes, four PVFS2 servers", fontsize=11)
    return figure


FIGURES = {"fgcs24": {"fgcs24-figure-3": figure_3, "fgcs24-figures-4-to-6": figures_4_to_6, "fgcs24-figure-7": figure_7},
           "ispdc23": {"ispdc23-figures-1-to-3": ispdc23}, "orcheck": {"orcheck-figures-1-and-5": orcheck}}


class Asked:
    """What plots ask for: `run` as everywhere, and how much smaller Frontier is."""

    def __init__(self, run, shrink):
        self.run, self.shrink = run, shrink


def draw(papers, run, shrink, prefix):
    """Paths of what was drawn."""
    pyplot, paths = pyplot_or_fail(), []
    for paper in papers:
        for name, make in FIGURES[paper].items():
            figure = make(pyplot, Asked(run, shrink))
            if shrink > 1 and paper == "fgcs24":
                figure.suptitle(figure._suptitle.get_text() + f"; nodes, files, servers, targets and so GiB/s divided by {shrink}", fontsize=11)
            paths.append(f"{prefix}-{name}.png")
            figure.savefig(paths[-1])
            pyplot.close(figure)
    return paths
