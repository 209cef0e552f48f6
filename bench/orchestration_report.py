"""Tables and the picture of bench/orchestration, and what was wanted beside what came out."""
import json
import os
import statistics

import orchestration_plan as plan
from plot import BLUE, GREY, LIGHT, NAVY, RED, pyplot_or_fail, tidy
from report import table

MIB = 1 << 20
COLOURS = {"traditional": GREY, "vertical": LIGHT, "marshaled": NAVY, "aggregated": BLUE}  # all but the first are Cairn
ABOUT = """orcheck's Figures 5 to 8 scaled down: {nodes} nodes ({node_rate:g} MB/s each) and {servers} GlusterFS servers ({server_rate:g} MB/s each) in namespaces of one machine with {cores} cores, {mib_per_gb:g} MiB for each GB of Table I.
Others used the cores meanwhile (load before {load}, and beside each row): seconds are too long by what they took, counts are not. One run each. These servers have no disk heads: what interleaving costs there is in papers.txt.
traditional: a file a process in a volume that cuts files (4 MiB, the least that GlusterFS knows: a smaller image is one shard). vertical: Cairn's file-per-rank by its map, flush.slots = 0. marshaled: the same with slots = 1.
aggregated: Cairn's default. Blocked: from the moment when all processes begin until the last goes on: with plain writers when it has fsync behind it, with Cairn when its copy into scratch is made (memory that is touched for
the first time, on cores that others use). Durable: of plain writers the same; with Cairn from then until the last knows of the commit, the manifest and its fsync included. MiB/s go by durable, as cards do by that time alone.
Limit: {limit:.1f} MiB/s, the most that anything reached here; plain files, one a node and placed evenly on the servers, reached {plain:.1f} before (cards: {cards:.1f}).
Most / mean: bytes on the servers' disks. Streams: files that a server has begun and that grow there yet, by samples of 0.25 s, median and most (two of a node where one ends and the next begins).
Changes: of the file between consecutive writes of a node, mean over nodes (least: files of the node - 1). At once: files of a node between their first and last write, most. Idle: of a node's time of writing, without any write under way.
Machine: {machine}. Source: {source}.
Repeat: {command}
"""


def durable_s(row):
    return row["durable_s"] - row["captured_s"]


def rate(row):
    return row["bytes"] / MIB / durable_s(row)


def grown(row):
    samples = [count for server in row["samples"] for count in server]
    return (statistics.median(samples), max(samples)) if samples else (0, 0)


def evenness(row):
    mean = statistics.mean(row["servers"])
    return max(row["servers"]) / mean if mean else 0.0


def changes(row):
    counts = [node["changes"] for node in row["nodes"]] or row["changes"]
    return statistics.mean(counts) if counts else None


def or_dash(value, form):
    return "-" if value is None else form.format(value)


def set_text(row):
    return f"{row['set']['program']}, {row['set']['size']}, {row['set']['processes']}"


def limit_of(result):
    """What others disturb is no limit: of the plain files that were written for it, or of any way that was faster."""
    return max(rate(row) for row in [result["limit"], *result["runs"]])


def rows_of(result):
    limit, out = limit_of(result), []
    for row in sorted(result["runs"], key=lambda row: (-row["set"]["processes"], row["set"]["size"] == "C")):
        middle, most = grown(row)
        per_node = row["set"]["processes"] / result["cluster"]["nodes"]
        at_once = max((node["at_once"] for node in row["nodes"]), default=None)
        idle = statistics.mean(node["idle"] for node in row["nodes"]) if row["nodes"] else None
        out.append([set_text(row), row["way"], f"{row['bytes'] / MIB:.0f}", f"{row['captured_s'] or row['durable_s']:.2f}", f"{durable_s(row):.2f}", f"{rate(row):.1f}", f"{100 * rate(row) / limit:.0f} %", f"{evenness(row):.3f}", f"{middle:g}, {most}",
                    f"{or_dash(changes(row), '{:.0f}')} ({per_node - 1:.0f})", or_dash(at_once, "{}"), or_dash(idle, "{:.0%}"), f"{row['load']:.0f}"])
    return out


def by(result, **wanted):
    """{way: row} of a set."""
    return {row["way"]: row for row in result["runs"] if all(row["set"][key] == value for key, value in wanted.items())}


def verdict(holds):
    return "reached" if holds else "NOT REACHED"


def goals(result):
    """What was wanted, of the sets that were measured."""
    limit, lines, sets = limit_of(result), [], sorted({(row["set"]["size"], -row["set"]["processes"], row["set"]["program"]) for row in result["runs"]}, reverse=True)
    for size, fewer, program in sets:
        rows = by(result, size=size, processes=-fewer, program=program)
        if "marshaled" not in rows:
            continue
        it, what = rows["marshaled"], f"{program}, {size}, {-fewer}"
        lines.append(f"{what}: marshaled reaches {100 * rate(it) / limit:.0f} % of the limit (wanted: 93 %): {verdict(rate(it) >= 0.93 * limit)}; bytes per server {100 * (evenness(it) - 1):.1f} % above even (wanted: at most 2 %): "
                     f"{verdict(evenness(it) <= 1.02)}" + (f"; {rate(it) / rate(rows['traditional']):.2f} of traditional's rate (wanted: 1): {verdict(rate(it) >= rate(rows['traditional']))}" if "traditional" in rows else ""))
    for program in sorted({row["set"]["program"] for row in result["runs"]}):
        found = [by(result, size="D", processes=count, program=program) for count in (plan.PROCESSES[0], plan.PROCESSES[-1])]
        for way in plan.WAYS:
            if all(way in each for each in found):
                lost = 1 - rate(found[1][way]) / rate(found[0][way])
                lines.append(f"{program}, D: {way} loses {100 * lost:.0f} % of its rate from {plan.PROCESSES[0]} to {plan.PROCESSES[-1]} processes" + (f" (wanted: at most 5 %): {verdict(lost <= 0.05)}" if way == "marshaled" else ""))
    most = max((row["set"]["processes"] for row in result["runs"]), default=0)
    for way in plan.WAYS:
        wanted = plan.streams_wanted(way, most, result["cluster"]["nodes"], result["cluster"]["servers"])
        found = [grown(row)[0] for row in result["runs"] if row["way"] == way and row["set"]["processes"] == most and row["set"]["size"] == "D"]
        if found and wanted:
            lines.append(f"{most} processes, D, {way}: {statistics.median(found):g} files at once at a server (by the paper's count {wanted})")
    return lines


def text(result):
    machine, cluster = result["machine"], result["cluster"]
    about = {**cluster, "cores": machine["cores"], "load": machine["load_before"], "limit": limit_of(result), "plain": rate(result["limit"]), "cards": cluster["servers"] * cluster["server_rate"] * 1e6 / MIB,
             "machine": f"{machine['processor']}, Linux {machine['kernel']}", "source": result["source"], "command": result["command"]}
    headings = ["set, class, processes", "way", ">MiB", ">blocked s", ">durable s", ">MiB/s", ">of limit", ">most / mean", ">streams", ">changes (least)", ">at once", ">idle", ">load"]
    return "\n".join([ABOUT.format(**about), table(headings, rows_of(result)), "", *goals(result)]) + "\n"


def draw(result, path):
    pyplot = pyplot_or_fail()
    figure, axes = pyplot.subplots(1, 3, figsize=(16, 4.6), dpi=110, layout="constrained")
    ways = [way for way in COLOURS if any(row["way"] == way for row in result["runs"])]
    for axis, size, title in ((axes[0], "D", "Figure 5: class D"), (axes[1], "C", "Figure 8: class C")):
        most = max(row["set"]["processes"] for row in result["runs"])
        programs = [program for program in plan.CLASS_D if by(result, size=size, processes=most, program=program)]
        for nth, way in enumerate(ways):
            found = {i: rows[way] for i, rows in enumerate(by(result, size=size, processes=most, program=program) for program in programs) if way in rows}
            axis.bar([i + (nth - (len(ways) - 1) / 2) * 0.2 for i in found], [durable_s(row) for row in found.values()], width=0.18, color=COLOURS[way], label=way)
        axis.set_xticks(range(len(programs)), programs)
        axis.set_ylabel("seconds until durable")
        axis.set_title(f"{title}, {most} processes", fontsize=10)
    scaled = [program for program in plan.CLASS_D if len({row["set"]["processes"] for row in result["runs"] if row["set"]["program"] == program}) > 1]
    counts = sorted({row["set"]["processes"] for row in result["runs"]})
    for way in ways:
        for program, style in zip(scaled, ("-", "--", ":")):
            at = [i for i, count in enumerate(counts) if way in by(result, size="D", processes=count, program=program)]
            axes[2].plot(at, [rate(by(result, size="D", processes=counts[i], program=program)[way]) for i in at], style, marker="o", color=COLOURS[way], label=f"{way}, {program}")
    axes[2].axhline(rate(result["limit"]), color=RED, lw=1.4, label="limit")
    axes[2].set_xticks(range(len(counts)), counts)
    axes[2].set_xlabel("processes")
    axes[2].set_ylabel("MiB/s")
    axes[2].set_ylim(0)
    axes[2].set_title("Figures 6 and 7: class D", fontsize=10)
    for axis in axes:
        tidy(axis)
        axis.legend(frameon=False, fontsize=8)
    figure.suptitle("orcheck on the scale model: servers without disk heads, cores shared with others", fontsize=11)
    figure.savefig(path)


def write(out):
    with open(out, encoding="utf-8") as file:
        result = json.load(file)
    base = os.path.splitext(out)[0]
    with open(base + ".txt", "w", encoding="utf-8") as file:
        file.write(text(result))
    print(text(result))
    try:
        draw(result, base + ".png")
        print("drawn:   " + os.path.relpath(base + ".png"))
    except OSError as trouble:  # without matplotlib there are the tables
        print(f"not drawn: {trouble}")
