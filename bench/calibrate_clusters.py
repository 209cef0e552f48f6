"""What bench/calibrate compares: a cluster file for each setting of a race, who is simulated by which strategy, and what came out. Runs nothing."""
from statistics import mean, median

import race_report
from race_report import MIB, bytes_text, table

WITHIN = 0.10  # each setting; also of the limit of the cards alone, so this is not enough
# What the limit alone fails. It is nearly right where all is as it should be; it knows nothing of a job's first flush, of nodes that are not alike, of the
# time around the bytes. A simulation that is worth its name does.
FIRST_WITHIN = 0.07   # first flushes, the mean of all settings
FIRST_CLOSER = 0.75   # of the settings, in first flushes the simulation is nearer than the limit
GATED_SETTINGS = 10   # of fewer, means say nothing: only WITHIN counts

# What the scale model's file system costs beside the bytes: a request through FUSE and a brick, an operation, an fsync, operations on names; a message
# between namespaces; this host's memory. Of both geometries: only the cards differ.
CONSTANTS = {
    "storage": {"request_us": 300, "latency_us": 1000, "fsync_ms": 10, "metadata_ops_per_s": 2000, "target_bytes_per_s": 4e9, "write_behind_bytes": 1 << 20},
    "node": {"network_latency_us": 200, "memory_bytes_per_s": 1.2e9, "scratch_bytes_per_s": 3e9, "checksum_bytes_per_s": 4e9},
}


class Rival:
    """A contender of the race that a strategy models: with so many files (none: as many as Cairn), and whose constant; one without its own is predicted by that of
    another that goes the same way."""

    def __init__(self, strategy, files=None, constant_of=None):
        self.strategy, self.files, self.constant_of = strategy, files, constant_of


RIVALS = {
    "file_per_rank": Rival("file_per_rank"),
    "shared_file": Rival("at_offset", files=lambda block: 1, constant_of="file_per_rank"),
    "collective_k": Rival("two_phase"),
    "collective": Rival("two_phase", files=lambda block: 1, constant_of="collective_k"),
    "adios2": Rival("every_node", files=lambda block: block["nodes"]),
    "adios2_tuned": Rival("every_node"),
    "genericio": Rival("at_offset"),
}


def strategy_of(contender):
    return "cairn" if contender == "cairn" else RIVALS[contender].strategy


def files_of(contender, block):
    rival = RIVALS.get(contender)
    return rival.files(block) if rival and rival.files else block["files"]


def is_base(block):
    """Where constants of rivals are fitted: C = K, all nodes, images of equal size."""
    return block["files"] == block["nodes"] == 8 and not block["imbalance"] and not block["slow"]


def cluster_of(block, rates, files, efficiency=None):
    """The cluster file of one setting. Cards that are set alike are alike; what they differ by when measured is noise, so each has the median. efficiency: of
    strategies."""
    card, server = median(rates["node"].values()), median(rates["server"].values())
    servers = [server] * len(rates["server"])
    if block["slow"]:
        servers[-1] /= block["slow"]
    sections = {
        "job": {"nodes": block["nodes"], "ranks_per_node": block["ranks"], "image_bytes": block["size"], "images_bytes": block["image_bytes"],
                "files": files, "versions": len(block["rounds"])},
        "node": {"nic_out_bytes_per_s": card, "nic_in_bytes_per_s": card, **CONSTANTS["node"]},
        "storage": {"servers": len(servers), "targets": len(servers), "server_bytes_per_s": server, "servers_bytes_per_s": servers, **CONSTANTS["storage"]},
        "rivals": efficiency or {},
    }
    return "".join(f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()) for name, keys in sections.items())


def throughput(answers):
    """Bytes a second of answers of `cairn simulate --json`, one for each seed: the median of all versions, as of the race's rounds; and of the first ones, before
    leaders know what each can do."""
    rates = [[version["bytes_per_s"] for version in answer["versions"]] for answer in answers]
    return median(rate for each in rates for rate in each), median(each[0] for each in rates)


# ---- what came out ----

def record(block, contender, reached, constant=None):
    """reached: as throughput() tells."""
    simulated, first = reached
    figure = block["figures"]["contenders"][contender]
    own = contender in RIVALS and RIVALS[contender].constant_of is None
    return {"setting": race_report.title(block), "geometry": block["geometry"], "nodes": block["nodes"], "files": block["files"], "size": block["size"],
            "imbalance": block["imbalance"], "slow": block["slow"], "contender": contender, "measured_bytes_per_s": figure["bytes_per_s"],
            "measured_spread": figure["spread"], "limit_bytes_per_s": block["limit_bytes_per_s"], "simulated_bytes_per_s": simulated,
            "first_measured_bytes_per_s": block["bytes"] / block["rounds"][0][contender]["seconds"], "first_simulated_bytes_per_s": first,
            "off": simulated / figure["bytes_per_s"] - 1, "constant": constant, "fitted": own and is_base(block)}


def missed(records):
    return [r for r in records if r["contender"] == "cairn" and abs(r["off"]) > WITHIN]


def as_the_limit(records):
    """The records of somebody who knows nothing but the limit of the cards, and says that of every flush."""
    return [dict(r, simulated_bytes_per_s=r["limit_bytes_per_s"], first_simulated_bytes_per_s=r["limit_bytes_per_s"],
                 off=r["limit_bytes_per_s"] / r["measured_bytes_per_s"] - 1) for r in records if r["contender"] == "cairn"]


def first_off(r):
    return abs(r["first_simulated_bytes_per_s"] / r["first_measured_bytes_per_s"] - 1)


def gates(records):
    """(what, allowed, reached, met) of Cairn's settings. Reached and allowed are shares."""
    mine = [r for r in records if r["contender"] == "cairn"]
    if not mine:
        return []
    furthest = max(abs(r["off"]) for r in mine)
    out = [("medians: the furthest setting, at most", WITHIN, furthest, furthest <= WITHIN)]
    if len(mine) >= GATED_SETTINGS:
        limit = as_the_limit(mine)
        off, limit_off, first = mean(abs(r["off"]) for r in mine), mean(abs(r["off"]) for r in limit), mean(first_off(r) for r in mine)
        closer = mean(first_off(r) < first_off(other) for r, other in zip(mine, limit))
        out += [("medians: the mean, less than the limit's", limit_off, off, off < limit_off),
                ("first flushes: the mean, at most", FIRST_WITHIN, first, first <= FIRST_WITHIN),
                ("first flushes: nearer than the limit in so many, at least", FIRST_CLOSER, closer, closer >= FIRST_CLOSER)]
    return out


def failed(records):
    """Why the comparison fails, a line each: a gate, or that all of them would be met by the limit alone, which then are no gates."""
    lines = [f"{what} {100 * allowed:.1f} %, here {100 * reached:.1f} %" for what, allowed, reached, met in gates(records) if not met]
    found = gates(as_the_limit(records))
    if len(found) > 1 and all(met for *_, met in found):
        lines.append("the limit of the cards alone meets every gate: these results do not tell a simulation from it")
    return lines


def gates_table(records):
    rows = [[what, f"{100 * allowed:.1f} %", f"{100 * reached:.1f} %", "yes" if met else "NO", f"{100 * of_limit:.1f} %", "yes" if limit_met else "no"]
            for (what, allowed, reached, met), (_, _, of_limit, limit_met) in zip(gates(records), gates(as_the_limit(records)))]
    return table(["gate", "", ">simulation", ">met", ">the limit alone", ">met by it"], rows)


def verdict(r):
    return "fitted" if r["fitted"] else "yes" if abs(r["off"]) <= WITHIN else "NOT"


def percent(share):
    return f"{100 * share:+.1f} %"


def settings_table(records):
    """One row a setting and contender."""
    rows = [[race_report.GEOMETRY[r["geometry"]], r["nodes"], r["files"], bytes_text(r["size"]), f"{r['imbalance']} %", f"1/{r['slow']:g}" if r["slow"] else "",
             race_report.CONTENDERS[r["contender"]], f"{r['limit_bytes_per_s'] / MIB:.1f}", f"{r['measured_bytes_per_s'] / MIB:.1f}",
             f"{100 * r['measured_spread']:.0f} %", f"{r['simulated_bytes_per_s'] / MIB:.1f}", percent(r["off"]), verdict(r),
             *([f"{r[key] / MIB:.0f}" for key in ("first_measured_bytes_per_s", "first_simulated_bytes_per_s")] if r["contender"] == "cairn" else ["", ""])]
            for r in records]
    return table(["MiB/s", ">C", ">K", ">a rank", ">+-", ">slow", "who", ">limit", ">measured", ">spread", ">simulated", ">off", ">within 10 %",
                  ">first flush", ">simulated"], rows)


def ratio(r):
    common = next(d for d in (8, 4, 2, 1) if r["nodes"] % d == 0 and r["files"] % d == 0)
    return f"{r['nodes'] // common}:{r['files'] // common}"


def ratios_table(records):
    """Cairn by geometry and C:K: of all settings with it, the one that differs most."""
    groups = {}
    for r in records:
        if r["contender"] == "cairn":
            groups.setdefault((r["geometry"], ratio(r)), []).append(r)
    rows = []
    for geometry, c_k in sorted(groups, key=lambda group: (group[0] != "servers", int(group[1].split(":")[0]))):
        all_ = groups[geometry, c_k]
        worst = max(all_, key=lambda r: abs(r["off"]))
        rows.append([race_report.GEOMETRY[geometry], c_k, len(all_), percent(mean(r["off"] for r in all_)), percent(worst["off"]),
                     "yes" if not missed(all_) else "NOT"])
    return table(["Cairn", ">C:K", ">settings", ">off, mean", ">most", ">within 10 %"], rows)


def not_measured(blocks):
    """Settings on all nodes that a geometry has with some K and lacks with another: nothing to compare with."""
    flush = [b for b in blocks if b["kind"] == "flush" and b["nodes"] == 8 and not b["slow"]]
    for geometry in race_report.GEOMETRY:
        of = [b for b in flush if b["geometry"] == geometry]
        for imbalance in sorted({b["imbalance"] for b in of}):
            for files in sorted({b["files"] for b in of} - {b["files"] for b in of if b["imbalance"] == imbalance}):
                yield f"{race_report.GEOMETRY[geometry]}, C = 8, K = {files}, images +- {imbalance} %"


def constants_text(fitted):
    lines = ["constants, the same in both geometries: " + ", ".join(f"{section}.{key} = {value:g}" for section, keys in CONSTANTS.items() for key, value in keys.items())]
    for geometry in race_report.GEOMETRY:
        found = [f"{race_report.CONTENDERS[contender]} {constant:.3f}" for (of, contender), constant in fitted.items() if of == geometry]
        if found:
            lines.append(f"part of the cards' rate that rivals reach, fitted at C = K = 8 with equal images, {race_report.GEOMETRY[geometry]}: " + ", ".join(found))
    return "".join(f"  {line}\n" for line in lines)


def text(results, records, fitted, blocks):
    mine = [r for r in records if r["contender"] == "cairn"]
    out = ""
    if mine:
        limit = as_the_limit(mine)
        out += (f"{results}: Cairn's {len(mine)} settings, simulated, differ by at most {100 * max(abs(r['off']) for r in mine):.1f} % from what was measured, "
                f"{100 * mean(abs(r['off']) for r in mine):.1f} % in the mean; {len(missed(mine))} by more than {100 * WITHIN:.0f} %. "
                f"The limit of the cards by itself differs by at most {100 * max(abs(r['off']) for r in limit):.1f} %, {100 * mean(abs(r['off']) for r in limit):.1f} % in the mean, "
                f"and is further off than the simulation in {sum(abs(r['off']) < abs(l['off']) for r, l in zip(mine, limit))} settings; "
                f"in first flushes in {sum(first_off(r) < first_off(l) for r, l in zip(mine, limit))}.\n")
        found = race_report.mixture(blocks)
        if found:
            out += f"NOT ONE CLEAN REVISION was measured: {found}\n"
        out += f"\n{gates_table(records)}\n\n{ratios_table(records)}\n\n"
    peers = [r for r in records if r["contender"] != "cairn" and not r["fitted"]]
    if peers:
        near = sum(abs(r["off"]) <= WITHIN for r in peers)
        out += f"Of {len(peers)} settings of rivals that nothing was fitted on, {near} are within {100 * WITHIN:.0f} %.\n\n"
    out += constants_text(fitted) + "\n"
    lacking = list(not_measured(blocks))
    if lacking:
        out += "  not measured, so not compared: " + "; ".join(lacking) + "\n\n"
    return out + settings_table(records) + "\n"
