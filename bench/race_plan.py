"""Which settings a race has and in which order, who runs in each, what its cards let through at most, and how long it takes. Measures nothing."""
from statistics import mean, median

import race_report
import race_sweep
from race_report import MIB, table

# Which of network and storage decides; MB/s of a node's and of a server's card.
GEOMETRIES = {"servers": {"node": 50, "server": 50}, "nics": {"node": 25, "server": 100}}
# A setting with everybody takes a quarter of an hour, and there are dozens. So the slowest, and the untuned, run with images of equal size on all
# nodes and the most files alone; the control with images of equal size; who makes the same files whatever K is, with the most files. With
# imbalances between none and the largest, and uneven images on fewer nodes, Cairn alone.
ONCE = ("veloc", "shared_file", "collective", "collective_k", "adios2", "adios2_best")
EQUAL_IMAGES = ("plain",)
MOST_FILES = race_report.WHATEVER_K
AT_A_SLOW_SERVER = ("cairn", "plain")  # the second with the most files
# A guess until something is measured: of what the cards of all C nodes and of all servers let through, and never more than AT_THE_LIMIT of
# those of the setting. Cairn and plain writers are near the limit of K files.
PACE = {"file_per_rank_placed": 0.95, "file_per_rank": 0.75, "veloc": 0.7, "shared_file": 0.3, "collective": 0.17, "collective_k": 0.25, "adios2": 0.5, "adios2_tuned": 0.5, "adios2_best": 0.5, "genericio": 0.5}
AT_THE_LIMIT = 0.9
AROUND_S = 25       # folders, MPI job, daemons, first versions
CLUSTER_S = 25
UNEVEN_DRAW = 1.5   # of 16 files that fall on servers by chance the fullest gets about so much more than its share


def rates_of(a, geometry):
    """MB/s that cards are set to."""
    rates = GEOMETRIES[geometry]
    return {"node": a.node_rate or rates["node"], "server": a.server_rate or rates["server"]}


def blocks(a):
    """The settings, what matters most first; several figures share one. A geometry's follow each other within a step: the cluster stays up."""
    seen = set()
    for step in ([application] if a.application else [all_contenders, slow_server, largest_imbalance, scaling, other_imbalances]):
        for geometry in a.geometry:
            base = {"kind": "flush", "geometry": geometry, "nodes": a.compute, "ranks": a.ranks, "size": a.size, "imbalance": 0, "slow": 0}
            for block in step(a, base):
                if race_report.key(block) not in seen:
                    seen.add(race_report.key(block))
                    yield block


def application(a, base):
    yield dict(base, kind="application", files=max(1, a.compute // 2), imbalance=a.imbalance[-1])


def all_contenders(a, base):
    """With --sweep, each after a sweep of the rivals' settings; what is best there runs in it, and wherever it is the nearest."""
    for files in a.files:
        block = dict(base, imbalance=a.imbalance[0], files=files)
        if a.sweep and swept(a, block):
            yield dict(block, kind="sweep")
        yield block


def slow_server(a, base):
    """Every server holds parts: with fewer files than servers nobody could go round the slow one."""
    if a.slow and base["geometry"] == "servers" and a.servers > 1:
        for files in a.files:
            if files >= a.servers:
                yield dict(base, imbalance=a.imbalance[0], files=files, slow=a.slow)


def largest_imbalance(a, base):
    for files in a.files:
        yield dict(base, imbalance=a.imbalance[-1], files=files)


def scaled(a):
    """Numbers of nodes and of files. Figures 4 to 6: K is at most half of the most nodes."""
    return [(nodes, min(nodes, max(1, a.compute // 2))) for nodes in a.nodes if nodes < a.compute]


def scaling(a, base):
    for nodes, files in scaled(a):
        yield dict(base, nodes=nodes, imbalance=a.imbalance[0], files=files)
        yield dict(base, nodes=nodes, imbalance=a.imbalance[0], files=files, size=a.size * a.compute // nodes)  # strong scaling


def other_imbalances(a, base):
    for imbalance in reversed(a.imbalance):
        for files in a.files:
            yield dict(base, imbalance=imbalance, files=files)
        for nodes, files in scaled(a):
            yield dict(base, nodes=nodes, imbalance=imbalance, files=files)


def contenders(a, block):
    """Those of the default that run in this setting; who was named runs everywhere but at a slow server."""
    equal, most = block["imbalance"] == 0, block["nodes"] < a.compute or block["files"] == max(a.files)
    if a.contenders:
        return [name for name in a.contenders if not block["slow"] or name in AT_A_SLOW_SERVER]
    if block["slow"]:
        return list(AT_A_SLOW_SERVER if most else AT_A_SLOW_SERVER[:1])
    unknown = () if a.sweep else ("adios2_best",)  # is what a sweep found
    between = block["imbalance"] not in (a.imbalance[0], a.imbalance[-1]) or not equal and block["nodes"] < a.compute
    return [name for name in race_report.CONTENDERS
            if not (name in unknown or between and name != "cairn" or name in ONCE and not (equal and most and block["nodes"] == a.compute) or name in EQUAL_IMAGES and not equal
                    or name in MOST_FILES and not most)]


def swept(a, block):
    """The contenders of a setting that have something to sweep."""
    return [name for name in contenders(a, dict(block, kind="flush")) if name in race_sweep.SWEPT]


def present(data, names):
    """Without those that are known not to be built in."""
    there = data.get("peers", race_report.OPTIONAL)
    return [name for name in names if name not in race_report.OPTIONAL or name.replace("_best", "_tuned") in there]


# ---- limits ----

def card_rates(a, data, block):
    """Bytes a second of each card of this setting, measured where that is done: nodes', servers'. The last server is the slow one. Cards that
    are set alike are alike: what they differ by when measured is noise, and noise only slows down, so the fastest is what they can do."""
    measured = data["rates"].get(block["geometry"])
    if measured:
        nodes, servers = [max(measured["node"].values())] * block["nodes"], [max(measured["server"].values())] * len(measured["server"])
    else:
        nominal = rates_of(a, block["geometry"])
        nodes, servers = [nominal["node"] * 1e6] * block["nodes"], [nominal["server"] * 1e6] * a.servers
    if block["slow"]:
        servers[-1] /= block["slow"]
    return nodes, servers


def limit(a, data, block):
    """Bytes a second, and what decides: all its nodes' cards; the servers that hold K files; or the fullest node, since all of a node's
    bytes leave through its own card, whoever writes them."""
    nodes, servers = card_rates(a, data, block)
    bounds = {"nodes": sum(nodes), "servers": sum(sorted(servers, reverse=True)[:block["files"]])}
    if "image_bytes" in block:
        held = [sum(block["image_bytes"][i * block["ranks"]:(i + 1) * block["ranks"]]) for i in range(block["nodes"])]
        bounds["fullest node"] = bounds["nodes"] * mean(held) / max(held)
    who = min(bounds, key=bounds.get)
    return bounds[who], who


# ---- time ----

def seconds_of(a, data, block, name):
    """One run of a contender: by what it reached in a setting like this one, else guessed."""
    bytes_ = block["size"] * block["ranks"] * block["nodes"]
    nodes, servers = card_rates(a, data, block)
    if block["slow"] and name != "cairn":  # its share of the bytes lies on the slow server
        return bytes_ / len(servers) / min(servers) * (UNEVEN_DRAW if name == "file_per_rank" else 1)
    alike = [b for b in race_report.flush_blocks(data, geometry=block["geometry"], files=block["files"], slow=0) if name in b["figures"]["contenders"]]
    if alike:
        share = median(b["figures"]["contenders"][name]["share"] for b in alike)
    elif name in PACE:
        all_nodes, _ = card_rates(a, data, dict(block, nodes=a.compute))
        return bytes_ / min(PACE[name] * min(sum(all_nodes), sum(servers)), AT_THE_LIMIT * min(sum(nodes), sum(servers)))
    else:
        share = AT_THE_LIMIT
    return bytes_ / (share * limit(a, data, block)[0])


def expected_s(a, data, block):
    """Seconds, roughly."""
    if block["kind"] == "application":
        return AROUND_S + (a.pairs * len(a.modes) + 1) * (a.period * a.periods + 5)
    if block["kind"] == "sweep":
        names = present(data, swept(a, block))
        return 2 * AROUND_S + sum(race_sweep.runs(name, block, a.servers) * a.sweep_rounds * (seconds_of(a, data, block, name) + 1) for name in names)
    flushes = sum(seconds_of(a, data, block, name) + 1 for name in present(data, contenders(a, block)))
    whole = block["size"] * block["ranks"] * block["nodes"] / limit(a, data, dict(block, slow=0))[0]
    return AROUND_S + a.rounds * flushes + restores(a, block) * (whole + 8)


def restores(a, block):
    return min(1, a.restores) if block["slow"] else a.restores  # there, only that the data is right


def text(a, data, todo):
    """The settings to come, in order, with minutes and the sum so far."""
    rows, sum_s, geometry = [], 0.0, None
    for block in todo:
        seconds = expected_s(a, data, block) + (CLUSTER_S if block["geometry"] != geometry else 0)
        geometry, sum_s = block["geometry"], sum_s + seconds
        rate, who = limit(a, data, block)
        runs = {"application": a.pairs, "sweep": a.sweep_rounds}.get(block["kind"], a.rounds)
        who_runs = len(a.modes) if block["kind"] == "application" else len(present(data, (swept if block["kind"] == "sweep" else contenders)(a, block)))
        rows.append([race_report.title(block), who_runs, runs, f"{rate / MIB:.0f}", who, f"{seconds / 60:.0f}", f"{sum_s / 60:.0f}"])
    return table(["settings to measure", ">contenders", ">rounds", ">limit, MiB/s", "by", ">minutes, about", ">sum"], rows)
