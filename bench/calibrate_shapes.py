"""Shapes that nothing was fitted on: drawn by the hash of the commit that froze the model, so that nobody chose them, and who changes the model draws others.
What they are, how they are measured, and whether the simulation is good enough on them. Runs nothing but git."""
import hashlib
import subprocess
from statistics import mean

import race_plan
import race_report
from calibrate_clusters import as_the_limit, percent
from race_report import MIB, table

SHAPES = 5
WITHIN = 0.04  # each shape; and the mean nearer than that of the limit
FROZEN = ("src/simulate", "src/world/sim", "bench/calibrate_clusters.py")  # the model; not the engine, which is run and not modelled
SERVERS, ROUNDS = 4, 4
FLUSH_S = (6, 9, 12)  # at the limit: long enough to be a figure, short enough for five minutes with all that is around it
SLOW = 10


def frozen(root):
    """The last commit that touched the model. ValueError where it was changed since: then nothing is frozen."""
    def git(*words):
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()

    if git("status", "--porcelain", "--", *FROZEN):
        raise ValueError(f"{', '.join(FROZEN)}: changed and not committed; commit first, shapes are drawn by that commit's hash")
    return git("log", "-1", "--format=%H", "--", *FROZEN)


def pick(commit, shape, turn, what, of):
    """The same everywhere, and each independent of the others."""
    return of[int(hashlib.sha256(f"{commit} {shape} {turn} {what}".encode()).hexdigest(), 16) % len(of)]


def draw(commit, shape, turn):
    def one(what, of):
        return pick(commit, shape, turn, what, of)

    geometry, nodes, ranks = one("geometry", sorted(race_plan.GEOMETRIES)), one("nodes", range(2, 9)), one("ranks", (1, 2, 3, 4))
    files = one("files", range(1, nodes + 1))
    rates = race_plan.GEOMETRIES[geometry]
    limit = min(nodes * rates["node"], min(files, SERVERS) * rates["server"]) * 1e6
    size = max(4 * MIB, round(limit * one("seconds", FLUSH_S) / (nodes * ranks) / (4 * MIB)) * 4 * MIB)
    slow = SLOW if geometry == "servers" and files >= SERVERS and one("slow", (False, True)) else 0  # as race has it: where every server holds parts
    imbalance = 0 if slow else one("imbalance", (0, 5, 15, 20, 25, 30))                              # and with images of equal size
    return {"kind": "flush", "geometry": geometry, "nodes": nodes, "ranks": ranks, "size": size, "imbalance": imbalance, "slow": slow, "files": files}


def shapes(commit, known=()):
    """SHAPES of them, none of which is in `known` (settings that were measured before), nor there twice."""
    taken, out = {race_report.key(block) for block in known}, []
    for shape in range(SHAPES):
        turn = 0
        while race_report.key(block := draw(commit, shape, turn)) in taken:
            turn += 1
        taken.add(race_report.key(block))
        out.append(block)
    return out


def name_of(commit, shape):
    return f"race-drawn-{commit[:8]}-{shape + 1}"


def command(commit, shape, block):
    """What measures it. A slow server's setting comes with that of none, which race measures first."""
    name = name_of(commit, shape)[len("race-"):]
    return (f"make race ARGS='--name {name} --geometry {block['geometry']} --compute {block['nodes']} --nodes {block['nodes']} --ranks {block['ranks']} "
            f"--size {block['size'] // MIB}MiB --imbalance {block['imbalance']} --files {block['files']} --slow {block['slow']} "
            f"--contenders cairn --rounds {ROUNDS} --restores 1'")


def measured(block, results):
    """The block of the race's JSON that is this shape; None: not there yet."""
    return next((each for each in results["blocks"] if each["kind"] == "flush" and each.get("figures") and race_report.key(each) == race_report.key(block)), None)


def failed(records):
    """Why the simulation is not good enough, a line each."""
    lines = [f"{r['setting']}: {percent(r['off'])} where {100 * WITHIN:.0f} % are allowed" for r in records if abs(r["off"]) > WITHIN]
    ours, limits = (mean(abs(r["off"]) for r in of) for of in (records, as_the_limit(records)))
    if ours >= limits:
        lines.append(f"{100 * ours:.1f} % off in the mean, where the limit of the cards alone is {100 * limits:.1f} % off")
    return lines


def text(commit, drawn, records):
    """records: by the number of the shape."""
    rows = [[shape + 1, race_report.title(block), block["ranks"],
             *([f"{r['limit_bytes_per_s'] / MIB:.1f}", f"{r['measured_bytes_per_s'] / MIB:.1f}", f"{r['simulated_bytes_per_s'] / MIB:.1f}", percent(r["off"]),
                percent(as_the_limit([r])[0]["off"])] if (r := records.get(shape)) else ["", "not measured", "", "", ""])]
            for shape, block in enumerate(drawn)]
    out = f"shapes drawn by {commit}, the last commit of {', '.join(FROZEN)}\n\n"
    out += table(["", "shape", ">ranks", ">limit", ">measured", ">simulated", ">off", ">the limit, off"], rows) + "\n"
    lacking = [command(commit, shape, block) for shape, block in enumerate(drawn) if shape not in records]
    if lacking:
        out += "\nto measure, as root on a machine that does nothing else; then this again:\n\n" + "".join(f"{each}\n" for each in lacking)
    return out
