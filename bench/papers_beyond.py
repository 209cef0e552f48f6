"""What the papers did not have, on their Frontier: several leaders a file, work that changes hands, placement, dedicated I/O nodes; and sizes up to
65,536 nodes. Runs of minutes to hours each, with --scale."""
import papers_figures
from papers_plan import NODES, Frontier, sets
from report import bytes_text, seconds_text, table

GIB = 1 << 30
SIZES = (1024, 4096, 16384, 65536)
SIZES_IMAGE = "64MiB"  # what is simulated is kept chunk by chunk: 65,536 nodes x 8 x 1 GiB take some 40 GiB of memory
FILE_SYSTEM_PLACES = sets(storage__placeable=0)


def ways(f, files):
    """(what, run) of Cairn, each with one thing more than the one before."""
    leaders = sets(flush__leaders=max(1, files // f.shrink))
    yield "the paper's: one leader a file, to the end", f.paper(NODES, files)
    if f.tier == "disks" and files == 1024:
        yield "+ work changes hands", f.shipped(NODES, files, *leaders, *FILE_SYSTEM_PLACES)
    if f.tier == "disks":
        yield "+ several leaders a file, all nodes", f.shipped(NODES, files, *FILE_SYSTEM_PLACES)
    yield "+ targets chosen: Cairn as shipped, a job's first flush", f.shipped(NODES, files)
    if f.tier == "all tiers" and files == 4096:  # that cards decide, so that each node had better write its own, shows in the first
        yield "the same, its second", f.shipped(NODES, files, "job.versions=2")
    if f.tier == "disks" and files == 1024:
        for count in (256, 64):
            yield f"as shipped, {count} dedicated I/O nodes", f.shipped(NODES, files, *sets(job__io_nodes=max(1, count // f.shrink)))


def rivals(f, files):
    yield "ADIOS2 (fitted)", f.adios2(NODES, files)
    yield "GenericIO (fitted)", f.genericio(NODES, files)
    yield "MPI-IO in two phases (not fitted)", f.run("two_phase", NODES, files)
    if files == 1024:
        yield "file per rank (not fitted)", f.run("file_per_rank", NODES, files)


def adios2_published(files):
    """How many times the rate of the paper's strategy ADIOS2 has in the text (Figure 3), and whether that is a bound: the text says how much it is below."""
    text = papers_figures.published()[f"fgcs24-fig3-k{files}-adios2"]
    faster = text["what"].split(": ")[1].startswith("ADIOS2")
    return (text["value"] if faster else 1 / text["value"]), text["relation"] != "about"


def reached(run):
    """The nearest bound, and how much of it. A file per rank is not held by the targets of K files."""
    bounds = [each for each in run["bounds"] if run["files"] <= run["nodes"] or "files lie on" not in each["what"]]
    return (bounds[0]["what"], f"{100 * run['bytes_per_s'] / bounds[0]['bytes_per_s']:.0f} %") if bounds else ("", "")


def gained(run, than):
    return f"{run['bytes_per_s'] / than['bytes_per_s']:.2f}"


def as_published(paper, files):
    """ADIOS2 as the text has it, in the same units: what it is simulated with may be off, so what stands against it is told against this, too."""
    times, is_bound = adios2_published(files)
    sign = "<= " if is_bound else ""
    return ["ADIOS2 as published, from the paper's way", ("" if not is_bound else ">= ") + seconds_text(paper["flush_s"] / times),
            f"{sign}{times * paper['bytes_per_s'] / GIB:,.0f}", f"{sign}{times:.2f}", "", "", ""]


def ways_table(simulated, shrink):
    rows = []
    for tier in ("disks", "all tiers"):
        f = Frontier(simulated, tier, 0.2, shrink)
        for files in (1024, 2048, 4096):
            paper = f.paper(NODES, files)
            for what, run in (*ways(f, files), *rivals(f, files)):
                bound, share = reached(run)
                rows.append([tier, f"{files:,}", what, seconds_text(run["flush_s"]), f"{run['bytes_per_s'] / GIB:,.0f}", gained(run, paper),
                             f"+{100 * (run['slowest_leader'] - 1):.0f} %", bound, share])
            rows.append([tier, f"{files:,}", *as_published(paper, files)])
    less = f"; nodes, files, servers and targets divided by {shrink}, and so are rates and bounds" if shrink > 1 else ""
    return (f"What the papers did not have: Frontier, {NODES:,} nodes, images +- 20 %{less}\n"
            + table(["storage", ">K", "", ">flush s", ">GiB/s", ">of the paper's", ">slowest leader", "nearest bound", ">reached"], rows))


def sizes_table(simulated, nodes_max):
    """Storage grows with the nodes, so that what is left is what size itself costs."""
    rows = []
    f = Frontier(simulated, "disks", 0.2)
    for nodes in (each for each in SIZES if each <= nodes_max):
        run = f.shipped(nodes, nodes // 4, *sets(job__image_bytes=SIZES_IMAGE), storage=nodes / NODES)
        bound, share = reached(run)
        rows.append([f"{nodes:,}", f"{8 * nodes:,}", f"{nodes // 4:,}", seconds_text(run["elect_s"]), seconds_text(run["write_s"]), seconds_text(run["commit_s"]),
                     f"{run['bytes_per_s'] / GIB:,.0f}", bound, share, f"{run['cpu_s']:,.0f}", bytes_text(run["memory_bytes"])])
    return (f"Sizes: Cairn as shipped, K = C / 4, images of {SIZES_IMAGE} +- 20 %, servers and targets in proportion to the nodes\n"
            + table([">nodes", ">ranks", ">K", ">elect s", ">write s", ">commit s", ">GiB/s", "nearest bound", ">reached", ">simulated in, CPU s", ">memory"], rows))


def against_adios2(paper, ours, simulated_adios2, files=1024):
    """Cairn's rate over that of ADIOS2 as it is published, and as it is simulated; and how far the one is from the other. Since the text gives ADIOS2
    relative to the paper's strategy, so is the first: both are simulated, and their ratio times the published one."""
    times, _ = adios2_published(files)
    return {"published": ours["bytes_per_s"] / (times * paper["bytes_per_s"]), "simulated": ours["bytes_per_s"] / simulated_adios2["bytes_per_s"],
            "adios2_off": simulated_adios2["bytes_per_s"] / paper["bytes_per_s"] / times - 1}


def gain_text(simulated, shrink):
    """The 4:1 of Figure 3, where the paper's strategy loses to ADIOS2."""
    lines = []
    for tier in ("disks", "all tiers"):
        f = Frontier(simulated, tier, 0.2, shrink)
        paper, ours, adios2 = f.paper(NODES, 1024), f.shipped(NODES, 1024), f.adios2(NODES, 1024)
        bound, share = reached(ours)
        of = against_adios2(paper, ours, adios2)
        lines.append(f"  * {tier}: {gained(ours, paper)} times the paper's strategy; {of['published']:.2f} times ADIOS2 as published, {of['simulated']:.2f} times ADIOS2 as simulated, "
                     f"which is {100 * of['adios2_off']:+.0f} % from the text here (the paper's strategy: {1 / adios2_published(1024)[0]:.2f} and {gained(paper, adios2)}). "
                     f"Bound by {bound}, of which it reaches {share}; the paper's is bound by the cards of its {paper['writing_nodes']:,} leaders.")
    return "What Cairn would gain on Frontier at 4:1 (K = 1,024), and what bounds it\n" + "\n".join(lines)


def parts(simulated, shrink, nodes_max):
    return [ways_table(simulated, shrink), gain_text(simulated, shrink), sizes_table(simulated, nodes_max)]
