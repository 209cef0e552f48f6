"""The figures that follow from the raw times of a race, and the tables for people. Nothing is measured here."""
from math import gcd
from statistics import mean, median, stdev

import race_sweep
from report import FRESH_SLOTS, MIB, bytes_text, seconds_text, table

CONTENDERS = {
    "cairn": "Cairn", "plain": "plain writers, placed", "file_per_rank_placed": "file per rank, placed", "file_per_rank": "file per rank, unplaced",
    "veloc": "VELOC's way, replayed", "shared_file": "one file, own offsets", "collective": "MPI-IO collective", "collective_k": "MPI-IO collective, K files",
    "adios2": "ADIOS2 BP5", "adios2_tuned": "ADIOS2 BP5, K files", "adios2_best": "ADIOS2 BP5, any files", "genericio": "GenericIO",
}
OPTIONAL = ("adios2", "adios2_tuned", "adios2_best", "genericio")  # where CMake found them
# Make the same files, however many Cairn makes.
WHATEVER_K = ("file_per_rank_placed", "file_per_rank", "veloc", "shared_file", "collective", "adios2", "adios2_best")
# A file per rank that is placed is nobody's way to write: it is there to tell what placement wins from what aggregation does.
PEERS = tuple(name for name in CONTENDERS if name not in ("cairn", "plain", "file_per_rank_placed"))
MODES = {"none": "no checkpoints", "cairn": "Cairn", "file_per_rank": "file per rank, in the background",
         "collective": "MPI-IO collective, synchronous"}
GEOMETRY = {"servers": "servers bind", "nics": "NICs bind"}

# Student's t, two-sided 95 %, by degrees of freedom; above 30 the normal distribution's is near enough.
T95 = [0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07,
       2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04]


def key(block):
    return tuple(block[name] for name in ("kind", "geometry", "nodes", "ranks", "size", "imbalance", "files", "slow"))


def title(block):
    return (f"{GEOMETRY[block['geometry']]}, C = {block['nodes']}, K = {block['files']}, {bytes_text(block['size'])} a rank +- {block['imbalance']} %"
            + {"application": ", application", "sweep": ", rivals swept"}.get(block["kind"], "") + (f", a server at 1/{block['slow']:g}" if block["slow"] else ""))


def rate(bytes_per_s):
    return f"{bytes_per_s / MIB:.0f}" if bytes_per_s >= 100 * MIB else f"{bytes_per_s / MIB:.1f}"


def percent(share, digits=0):
    return f"{100 * share:.{digits}f} %"


class Mixed(Exception):
    """Results of several sources, or of sources that nobody can get again."""


def stamp_of(block):
    return block.get("source", "unknown") + (f" ({block['binaries']})" if "binaries" in block else "")


def mixture(blocks):
    """Empty where all of them come from one clean revision; else what they come from."""
    sources = sorted({stamp_of(block) for block in blocks if "failed" not in block})
    unclean = [source for source in sources if source.split(" ")[0].endswith("-dirty") or source.startswith("unknown")]
    if len(sources) < 2 and not unclean:
        return ""
    return (f"{len(sources)} revisions" if len(sources) > 1 else "a revision") + (f", {len(unclean)} not clean" if unclean else "") + ": " + ", ".join(sources)


def refuse_mixed(blocks, allowed=False):
    """A table has results of one clean revision; `allowed`: it says that it has not."""
    found = mixture(blocks)
    if found and not allowed:
        raise Mixed(f"all results in a table come from one clean revision, and here is {found}. Commit what is changed, and measure all again under another "
                    "--name; --mixed goes on, and every table says that it is no such comparison")
    return found


def result(block):
    """One line, for who waits."""
    if block["kind"] == "sweep":
        return f"{len(block['tried'])} settings of rivals tried"
    figures = block.get("figures")
    if figures is None:
        derive_block(block)
        figures = block["figures"]
    if block["kind"] == "application":
        return ", ".join(f"{MODES[mode]} {f['slower_by_mean'] * 100:+.1f} %" for mode, f in figures["modes"].items() if mode != "none")
    parts = [f"{CONTENDERS[name]} {rate(f['bytes_per_s'])}" for name, f in figures["contenders"].items()]
    return f"limit {rate(block['limit_bytes_per_s'])} MiB/s; " + ", ".join(parts)


# ---- figures ----

def derive(data):
    """Adds `figures` to each setting, and `bars`, the goals and what was reached."""
    for block in data["blocks"]:
        if block.get("rounds"):
            derive_block(block)
    for block in flush_blocks(data):
        by_plain_writers(data, block)
    for block in flush_blocks(data):
        block["figures"]["elsewhere"] = elsewhere(data, block)
    data["bars"] = bars(data)


def derive_block(block):
    block["figures"] = application_figures(block) if block["kind"] == "application" else flush_figures(block)


def by_plain_writers(data, block):
    """In races from before files per rank were placed by themselves: where images are of equal size and all servers hold files, plain writers are that, a
    file of each rank with as many bytes, onto all servers in turns."""
    found, servers = block["figures"]["contenders"], data["settings"]["servers"]
    if "plain" in found and "file_per_rank_placed" not in found and not block["imbalance"] and not block["slow"] and block["files"] >= servers:
        found["file_per_rank_placed"] = dict(found["plain"], by="plain")


def flush_figures(block):
    limit, contenders = block["limit_bytes_per_s"], {}
    for name in CONTENDERS:
        runs = [one[name] for one in block["rounds"] if name in one]
        if not runs:
            continue
        seconds = [run["seconds"] for run in runs]
        # Versions 1 and 2 of Cairn fill fresh slots of scratch; what an application waits for is measured once they are recycled.
        waits = [run["blocked_s"] for run in runs]
        waits = waits[FRESH_SLOTS:] or waits
        contenders[name] = {
            "seconds": median(seconds), "bytes_per_s": block["bytes"] / median(seconds), "share": block["bytes"] / median(seconds) / limit,
            "spread": (max(seconds) - min(seconds)) / median(seconds), "least_s": min(seconds), "most_s": max(seconds),
            "blocked_s": median(waits),
            "cpu_s_per_gib": {who: median(run["cpu_s"][who] for run in runs) / (block["bytes"] / 2**30) for who in runs[0]["cpu_s"]},
        }
    figures = {"contenders": contenders, "memcpy_s": median(block["memcpy"]) if block["memcpy"] else None}
    if block["restores"]:
        figures["restore_s"] = median(each["seconds"] for each in block["restores"])
        if not block["slow"]:  # there the bytes do not lie evenly
            figures["restore_share"] = block["bytes"] / figures["restore_s"] / limit
    if block["daemons"]:
        figures["leaders"] = [leaders_of(daemons, before) for daemons, before in zip(block["daemons"], [[]] + block["daemons"])]
        slowest = [max(each["seconds"] for each in one) / mean(each["seconds"] for each in one) - 1 for one in figures["leaders"] if one]
        if slowest:
            figures["slowest_leader"] = median(slowest)
    if block["placed"] and not block["slow"]:
        figures.update(uneven_of(block["placed"], block["files"]))
    return figures


def elsewhere(data, block):
    """Figures of those who make the same files whatever K is and ran in a setting that is like this one but for K."""
    alike = flush_blocks(data, **{name: block[name] for name in ("geometry", "nodes", "ranks", "size", "imbalance", "slow")})
    return {name: f for other in alike for name, f in other["figures"]["contenders"].items()
            if name in WHATEVER_K and name not in block["figures"]["contenders"]}


def with_elsewhere(block):
    """Of all contenders, in the order of the tables."""
    found = dict(block["figures"].get("elsewhere", {}), **block["figures"]["contenders"])
    return {name: found[name] for name in CONTENDERS if name in found}


def uneven_of(placed, files):
    """How far the fullest or emptiest server is from the mean: in each version where K files can lie on all servers, else over the versions in
    which each server has its turn equally often. Nothing when there were not so many."""
    servers = list(placed[0])
    cycle = 1 if files >= len(servers) else len(servers) // gcd(files, len(servers))
    sums = [{server: sum(one[server] for one in placed[at:at + cycle]) for server in servers} for at in range(len(placed) - cycle + 1)]
    return {"uneven": max(abs(held / mean(one.values()) - 1) for one in sums for held in one.values()), "uneven_over_versions": cycle} if sums else {}


def leaders_of(daemons, before):
    """The nodes that wrote in this flush (written_bytes counts from the daemon's start), and how long the busiest of each one's writers wrote: as in
    the paper's Figure 7. When its flush ended would say nothing, since all end together."""
    had = {each["node"]: each["written_bytes"] for each in before}
    wrote = [(each, each["written_bytes"] - had.get(each["node"], 0)) for each in daemons]
    return [{"node": each["node"], "seconds": max(w["received_s"] + w["local_s"] for w in each["writers"]), "bytes": bytes_, "writers": each["writers"]}
            for each, bytes_ in wrote if bytes_ > 0]


def application_figures(block):
    modes = {}
    for mode in block["rounds"][0]:
        runs = [one[mode] for one in block["rounds"]]
        pairs = [one[mode]["seconds"] / one["none"]["seconds"] - 1 for one in block["rounds"]]
        half = T95[min(len(pairs) - 1, len(T95) - 1)] * stdev(pairs) / len(pairs) ** 0.5
        checkpointed = block["bytes"] / 2**30 * runs[0]["checkpoints"]
        modes[mode] = {
            "seconds": median(run["seconds"] for run in runs), "slower_by_mean": mean(pairs), "slower_by_median": median(pairs),
            "slower_by_most": mean(pairs) + half, "slower_by_least": mean(pairs) - half, "blocked_s": median(run["blocked_s"] for run in runs),
            "communicate_s": median(run["communicate_s"] for run in runs), "compute_s": median(run.get("compute_s", 0) for run in runs), "finish_s": median(run["finish_s"] for run in runs),
            "cpu_s": {who: median(run["cpu_s"][who] for run in runs) for who in runs[0]["cpu_s"]},
        }
        if checkpointed and mode != "none":
            # What the checkpoints cost: beyond what the same program takes without them.
            more = [sum(one[mode]["cpu_s"].values()) - sum(one["none"]["cpu_s"].values()) for one in block["rounds"]]
            modes[mode]["cpu_s_per_gib"] = median(more) / checkpointed
            modes[mode]["daemon_cpu_s_per_gib"] = modes[mode]["cpu_s"]["cairnd"] / checkpointed
    figures = {"modes": modes}
    if block["daemons"]:
        figures["leaders"] = [leaders_of(daemons, before) for daemons, before in zip(block["daemons"], [[]] + block["daemons"])]
    return figures


def flush_blocks(data, **wanted):
    return [b for b in data["blocks"] if b["kind"] == "flush" and "figures" in b and "failed" not in b
            and all(b[name] == value for name, value in wanted.items())]


def bar(what, goal, got, most=False):
    return {"what": what, "goal": goal, "got": got, "most": most, "met": got <= goal if most else got >= goal}


def rivals(data, block):
    """Rates of the peers; where servers decide, of those whose files can lie on no more servers than K files can: more let more through."""
    servers = data["settings"]["servers"]
    ranks = block["nodes"] * block["ranks"]
    files = {"file_per_rank": ranks, "veloc": ranks, "adios2_best": ranks, "adios2": block["nodes"], "shared_file": 1, "collective": 1}
    return [f["bytes_per_s"] for peer, f in with_elsewhere(block).items()
            if peer in PEERS and (block["limited_by"] != "servers" or min(files.get(peer, block["files"]), servers) <= min(block["files"], servers))]


def flush_bars(data, block):
    figures, name, servers = block["figures"], title(block), data["settings"]["servers"]
    cairn, others = figures["contenders"]["cairn"], rivals(data, block)
    if block["slow"]:
        yield bar(f"{name}: flush, of bytes / sum of the servers' rates", 1.15, 1 / cairn["share"], most=True)
    elif block["nodes"] == data["settings"]["compute"] and block["imbalance"] == 0:
        yield bar(f"{name}: of the limit", 0.95 if block["geometry"] == "nics" or block["files"] >= servers else 0.93, cairn["share"])
    if others:
        away = [CONTENDERS[peer] for peer in PEERS if peer not in with_elsewhere(block)]
        yield bar(f"{name}: of the fastest peer" + (f" (not run: {', '.join(away)})" if away else ""), 1.0, cairn["bytes_per_s"] / max(others))
    if not block["slow"]:
        yield from even_bars(data, block)


def even_bars(data, block):
    """Where all servers are alike."""
    figures, name = block["figures"], title(block)
    cairn = figures["contenders"]["cairn"]
    if "slowest_leader" in figures:
        yield bar(f"{name}: slowest leader above the mean", 0.05, figures["slowest_leader"], most=True)
    if "uneven" in figures:
        over = figures["uneven_over_versions"]
        yield bar(f"{name}: fullest or emptiest server, of the mean" + (f", over {over} versions" if over > 1 else ""), 0.01, figures["uneven"], most=True)
    yield bar(f"{name}: blocked, of a memcpy", 1.3, cairn["blocked_s"] / figures["memcpy_s"], most=True)
    if "restore_share" in figures:
        yield bar(f"{name}: restore, of the limit", 0.90, figures["restore_share"])
    even = flush_blocks(data, geometry=block["geometry"], nodes=block["nodes"], files=block["files"], size=block["size"], imbalance=0, slow=0)
    if block["imbalance"] == 20 and even and "cairn" in even[0]["figures"]["contenders"]:
        level = even[0]["figures"]["contenders"]["cairn"]
        yield bar(f"{name}: imbalance costs, of each one's limit (flush {cairn['seconds'] / level['seconds'] - 1:+.1%})", 0.03,
                  1 - cairn["share"] / level["share"], most=True)


def bars(data):
    out = [each for block in flush_blocks(data) if "cairn" in block["figures"]["contenders"] for each in flush_bars(data, block)]
    for block in data["blocks"]:
        if block["kind"] == "application" and "cairn" in block.get("figures", {}).get("modes", ()) and "failed" not in block:
            cairn = block["figures"]["modes"]["cairn"]
            bounds = f"{len(block['rounds'])} pairs, 95 %: {percent(cairn['slower_by_least'], 2)} to {percent(cairn['slower_by_most'], 2)}"
            out.append(bar(f"{title(block)}: slowed by ({bounds})", 0.01, cairn["slower_by_mean"], most=True))
    return out


# ---- tables ----

def rates_table(data):
    rows = []
    for geometry, rates in data["rates"].items():
        for who in ("node", "server"):
            values = list(rates[who].values())
            shown = (rates["set"][who] * 1e6, median(values), min(values), max(values))
            rows.append([GEOMETRY[geometry], f"{len(values)} {who}s"] + [rate(each) for each in shown])
    return table(["MiB/s of one card", "", ">set", ">median into files", ">least", ">most"], rows)


SHORT = {"cairn": ">Cairn", "plain": ">plain", "file_per_rank_placed": ">files placed", "file_per_rank": ">unplaced", "veloc": ">VELOC replayed",
         "shared_file": ">one file", "collective": ">MPI-IO", "collective_k": ">MPI-IO K", "adios2": ">ADIOS2", "adios2_tuned": ">ADIOS2 K",
         "adios2_best": ">ADIOS2 any", "genericio": ">GenericIO"}


def range_table(data):
    """Of everybody who ran in a setting, the slowest and the fastest round. Files whose place the file system chooses, by their names, which change
    from round to round, lie well together at times and badly at others."""
    blocks = flush_blocks(data)
    names = [name for name in CONTENDERS if any(name in block["figures"]["contenders"] for block in blocks)]
    rows = []
    for block in blocks:
        found = block["figures"]["contenders"]
        rows.append([title(block)] + [f"{rate(block['bytes'] / found[n]['most_s'])} - {rate(block['bytes'] / found[n]['least_s'])}" if n in found else "-"
                                      for n in names])
    return table(["MiB/s, slowest - fastest"] + [SHORT[name] for name in names], rows)


def flush_table(data):
    """A row for each setting: MiB/s of everybody; in brackets where it was measured with another K, which makes no difference to it."""
    blocks = flush_blocks(data)
    names = [name for name in CONTENDERS if any(name in block["figures"]["contenders"] for block in blocks)]
    rows = []
    for block in blocks:
        figures = with_elsewhere(block)
        cairn = figures.get("cairn")
        shown = {name: rate(f["bytes_per_s"]) if name in block["figures"]["contenders"] else f"({rate(f['bytes_per_s'])})" for name, f in figures.items()}
        rows.append([GEOMETRY[block["geometry"]], block["nodes"], block["files"], bytes_text(block["size"]), f"{block['imbalance']} %",
                     f"1/{block['slow']:g}" if block["slow"] else "", rate(block["limit_bytes_per_s"]), block["limited_by"]]
                    + [shown.get(name, "-") for name in names]
                    + ([percent(cairn["share"]), percent(cairn["spread"])] if cairn else ["-", "-"]))
    return table(["MiB/s, medians", ">C", ">K", ">a rank", ">+-", ">slow", ">limit", "by"] + [SHORT[name] for name in names] + [">Cairn of limit", ">spread"], rows)


def placement_table(data):
    """What placement wins, a file per rank either way; and what Cairn wins or loses beside it, whose files are K and placed the same. Only where as many
    servers hold Cairn's files, or nodes decide: else Cairn has fewer servers, and that would be told instead."""
    rows = []
    for block in flush_blocks(data, slow=0):
        found = with_elsewhere(block)
        if not {"cairn", "file_per_rank", "file_per_rank_placed"} <= set(found) or block["limited_by"] == "servers" and block["files"] < data["settings"]["servers"]:
            continue
        cairn, placed, unplaced = (found[name] for name in ("cairn", "file_per_rank_placed", "file_per_rank"))
        rows.append([title(block), rate(block["limit_bytes_per_s"]), rate(unplaced["bytes_per_s"]), rate(placed["bytes_per_s"]) + (" (plain)" if "by" in placed else ""),
                     rate(cairn["bytes_per_s"]), f"{100 * (placed['bytes_per_s'] / unplaced['bytes_per_s'] - 1):+.1f} %",
                     f"{100 * (cairn['bytes_per_s'] / placed['bytes_per_s'] - 1):+.1f} %"])
    return table(["MiB/s, medians", ">limit", ">file per rank", ">the same, placed", ">Cairn, K files", ">placement wins", ">aggregation, beside it"], rows) if rows else ""


def told_table(data):
    """What rivals were told in each setting."""
    rows = [[title(block) if nth == 0 else "", CONTENDERS[name], told["text"], f"best of {told['swept']}" if told["swept"] else "not swept"]
            for block in flush_blocks(data) for nth, (name, told) in enumerate(block.get("told", {}).items())]
    return table(["rivals are told", "who", "setting", "swept"], rows) if rows else ""


def blocked_table(data):
    rows = []
    for block in flush_blocks(data):
        figures = block["figures"]
        cairn = figures["contenders"].get("cairn")
        if not cairn:
            continue
        waits = [f["blocked_s"] for name, f in with_elsewhere(block).items() if name in PEERS]
        leader = percent(figures["slowest_leader"], 1) if "slowest_leader" in figures else "-"
        restore = [seconds_text(figures["restore_s"]) if "restore_s" in figures else "-",
                   percent(figures["restore_share"]) if "restore_share" in figures else "-"]
        rows.append([title(block), seconds_text(cairn["blocked_s"]), seconds_text(figures["memcpy_s"]),
                     f"{cairn['blocked_s'] / figures['memcpy_s']:.2f}", seconds_text(min(waits)) if waits else "-",
                     f"{cairn['cpu_s_per_gib']['cairnd']:.2f}", leader] + restore)
    return table(["Cairn", ">application waits, s", ">memcpy, s", ">ratio", ">best peer waits, s", ">cairnd CPU s/GiB", ">slowest leader",
                  ">restore, s", ">of limit"], rows)


def source_table(data):
    """What measured each setting, and how busy the machine was before."""
    rows = [[title(block), stamp_of(block), f"{block['load_before']:.1f}" if "load_before" in block else "-", len(block.get("rounds", ())) or ""]
            for block in data["blocks"] if "failed" not in block]
    return table(["measured with", "source", ">load before", ">rounds"], rows)


def leaders_table(block):
    """The paper's Figures 7 to 9 in numbers: leaders of the last round, with writers those of the fastest and of the slowest."""
    rows = []
    leaders = sorted(block["figures"]["leaders"][-1], key=lambda each: each["seconds"])
    for leader in leaders:
        if leader not in (leaders[0], leaders[-1]):
            rows.append([leader["node"], seconds_text(leader["seconds"])] + [""] * 5)
            continue
        for number, w in enumerate(leader["writers"]):
            if w["received_bytes"] + w["local_bytes"] == 0:
                continue
            rows.append([leader["node"] if number == 0 else "", seconds_text(leader["seconds"]) if number == 0 else "", number,
                         seconds_text(w["received_s"]), bytes_text(w["received_bytes"]), seconds_text(w["local_s"]), bytes_text(w["local_bytes"])])
    return table(["leader", ">writes s", ">writer", ">received s", ">received", ">local s", ">local"], rows)


def most_uneven(data, geometry):
    """The setting of Figures 7 to 9: all nodes, two nodes a leader, the largest imbalance; or what there is of it."""
    compute = data["settings"]["compute"]
    found = [b for b in flush_blocks(data, geometry=geometry, slow=0) if b["figures"].get("leaders") and b["figures"]["leaders"][-1]]
    return max(found, key=lambda b: (b["nodes"], b["files"] == max(1, compute // 2), b["imbalance"]), default=None)


def application_table(block):
    rows = []
    for mode, f in block["figures"]["modes"].items():
        by, least, most = (percent(f["slower_by_" + which], 2) for which in ("mean", "least", "most"))
        slower = "" if mode == "none" else f"{by} ({least} to {most})"
        cpu = [f"{f['cpu_s_per_gib']:.2f}", f"{f['daemon_cpu_s_per_gib']:.2f}"] if "cpu_s_per_gib" in f else ["", ""]
        rows.append([MODES[mode], seconds_text(f["seconds"]), slower, seconds_text(f["blocked_s"]), seconds_text(f["communicate_s"]),
                     seconds_text(f["compute_s"]), seconds_text(f["finish_s"])] + cpu)
    head = (f"{title(block)}: {len(block['rounds'])} runs of {block['steps']} steps each, interleaved, a checkpoint every {block['every']} steps; "
            "slower than without, mean of pairs (95 %)")
    return head + "\n" + table(["", ">runs, s", ">slower", ">blocked s", ">communicates s", ">computes s", ">then s", ">CPU s/GiB", ">cairnd's"], rows)


def bars_table(data):
    rows = [[b["what"], ("at most " if b["most"] else "") + percent(b["goal"], 0), percent(b["got"], 1), "yes" if b["met"] else "NO"]
            for b in data["bars"]]
    return table(["goal, on a quiet machine", ">goal", ">measured", "reached"], rows)


def text(data, mixed=False):
    """mixed: also of more than one revision, or of one that is not clean; each table is then headed so. Else Mixed."""
    found = refuse_mixed(data["blocks"], mixed)
    m, s = data["machine"], data["settings"]
    libraries = "".join(f", {name} {version}" for name, version in data.get("libraries", {}).items())
    head = (f"{data['cairn']}, {s['compute']} nodes x {s['ranks']} ranks, {s['servers']} servers, {bytes_text(s['size'])} a rank (seed {s['seed']})\n"
            f"{m['cores']} cores ({m['processor']}), {bytes_text(m['memory_bytes'])}, Linux {m['kernel']}, {m['system']}, {m['mpi']}{libraries}; "
            f"load before: {m['load_before']}; took {data.get('took_s', 0):.0f} s\n{data['command']}")
    others = [block for block in data["blocks"] if "machine" in block]
    if others:
        head += f"\n{len(others)} of {len(data['blocks'])} settings on another machine, the last: {others[-1]['machine']['processor']}, Linux {others[-1]['machine']['kernel']}"
    if found:
        head += f"\nNOT ONE CLEAN REVISION, so rows are not to be compared with each other: {found}"
    parts = [head]
    if data["rates"]:
        parts.append(rates_table(data))
    if flush_blocks(data):
        parts += [part for part in (flush_table(data), placement_table(data), told_table(data), range_table(data), blocked_table(data)) if part]
    if any(block["kind"] == "sweep" for block in data["blocks"]):
        parts.append(race_sweep.sweep_table(data))
    for geometry in GEOMETRY:
        block = most_uneven(data, geometry)
        if block:
            parts.append(f"Leaders and their writers, last flush of {title(block)}\n" + leaders_table(block))
    parts += [application_table(b) for b in data["blocks"] if b["kind"] == "application" and "figures" in b]
    parts += [f"FAILED: {title(b)}: {b['failed']}" for b in data["blocks"] if "failed" in b]
    parts.append(source_table(data))
    if data["bars"]:
        parts.append(bars_table(data))
    return "\n\n".join(parts)
