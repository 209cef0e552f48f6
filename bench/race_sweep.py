"""Rivals are swept: which of their settings are tried in one setting of the race, in stages, and which is the best. Measures nothing itself.

A stage tries all combinations of what it varies, with what was best in the stages before; so what interacts stands in one stage. Numbers of processes
are said as file, node, rank or server, each meaning one for each of these, so that what is best on all nodes is something on fewer nodes, too.
"""
import itertools
from statistics import median

import race_report
from report import MIB, table

IOS = ("ompio", "romio321")  # Open MPI's two implementations of MPI-IO; chosen when a job starts
AS_IT_COMES = {}

# ADIOS2: where not everybody writes in two levels, each file has one writer at a time, so writers are as many as files.
K_FILES = [{"files": "file", "aggregation": "TwoLevelShm", "writers": who} for who in ("file", "node", "rank")] + [
    {"files": "file", "aggregation": way, "writers": "file"} for way in ("EveryoneWrites", "EveryoneWritesSerial")]
ANY_FILES = [dict(each, files=who, writers=who if each["writers"] == "file" else each["writers"]) for who in ("server", "node", "rank") for each in K_FILES]
CHUNKS = [{"chunk": chunk} for chunk in (0, 16 * MIB, 64 * MIB)]  # 0: as large as the largest image

# MPI-IO, per file. ROMIO takes one process of a node unless told otherwise (cb_config_list).
CB_NODES = [{"cb_nodes": who} for who in ("one", "node", "rank")]
CB_BUFFERS = [{"cb_buffer_size": size} for size in (4 * MIB, 16 * MIB, 64 * MIB)]
STRIPES = [{"striping_factor": "server", "striping_unit": MIB}]
COLLECTIVE = {"romio321": ([dict(each, romio_cb_write="enable") for each in CB_NODES] + [{"romio_cb_write": "disable"}], CB_BUFFERS, STRIPES),
              "ompio": (CB_NODES + [{"collective_buffering": "false"}], CB_BUFFERS, STRIPES)}

STAGES = {"adios2_tuned": (K_FILES, CHUNKS), "adios2_best": (ANY_FILES, CHUNKS), "collective": COLLECTIVE, "collective_k": COLLECTIVE}
SWEPT = tuple(STAGES)


def has_io(contender):
    return contender.startswith("collective")


# ---- a setting as the program is told it ----

def count(block, servers, who, files):
    """How many `who` says; of MPI-IO's for one file of `files`, of ADIOS2's (files None) in all."""
    whole = {"one": 1, "node": block["nodes"], "rank": block["nodes"] * block["ranks"], "server": servers, "file": block["files"]}[who]
    return whole if files is None or who in ("one", "server") else max(1, whole // files)


def words(contender, setting, block, servers):
    """Of the command, files= included."""
    ranks = block["nodes"] * block["ranks"]
    if not has_io(contender):
        files = min(ranks, count(block, servers, setting.get("files", "file"), None))
        out = {"files": files}
        if "writers" in setting:
            out["writers"] = min(ranks, max(files, count(block, servers, setting["writers"], None)))
        out.update({name: setting[name] for name in ("aggregation", "chunk") if name in setting})
        return " ".join(f"{name}={value}" for name, value in out.items())
    files = 1 if contender == "collective" else block["files"]
    hints = {name: count(block, servers, value, files) if isinstance(value, str) and name in ("cb_nodes", "striping_factor") else value
             for name, value in setting.items() if name != "io"}
    if setting.get("cb_nodes") == "rank":
        hints["cb_config_list"] = "*:*"
    return f"files={files}" + (" hints=" + ",".join(f"{name}:{value}" for name, value in hints.items()) if hints else "")


def setting_text(setting):
    def shown(name, value):
        if name in ("chunk", "cb_buffer_size", "striping_unit"):
            return "image" if value == 0 else race_report.bytes_text(value)
        return {"one": "1", "file": "K"}.get(value, f"one a {value}") if name in ("files", "writers", "cb_nodes", "striping_factor") else str(value)
    return ", ".join(f"{name} {shown(name, value)}" for name, value in setting.items()) or "as it comes"


def untold(contender):
    """What runs where nothing was swept."""
    return "as it comes" if has_io(contender) else "as its manual advises"


# ---- the sweep ----

def sweep(contender, io, block, servers, measure):
    """What was tried, in order: [{contender, setting, seconds}]. measure: the command's words to seconds, a list."""
    stages = STAGES[contender][io] if has_io(contender) else STAGES[contender]
    begin = {"io": io} if has_io(contender) else {}
    best, tried, known = begin, [], {}
    for number, stage in enumerate(stages):
        for change in ([AS_IT_COMES] if number == 0 and has_io(contender) else []) + list(stage):
            setting = {**best, **change} if number else {**begin, **change}
            told = words(contender, setting, block, servers)
            if told not in known:
                known[told] = measure(told)
                tried.append({"contender": contender, "setting": setting, "told": told, "seconds": known[told]})
        best = min(tried, key=lambda each: median(each["seconds"]))["setting"]
    return tried


def runs(contender, block, servers, ios=IOS):
    """How many sweep() will measure, at most."""
    sizes = []
    for io in ios if has_io(contender) else ios[:1]:
        sizes.append(len(sweep(contender, io, block, servers, lambda told: [1.0])))
    return sum(sizes)


def blocks_of(data, geometry):
    return [b for b in data["blocks"] if b["kind"] == "sweep" and b["geometry"] == geometry and b.get("tried") and "failed" not in b]


def tried_of(data, block, contender):
    """Of the sweep nearest to this setting: the same cards, the same K where that was swept, else the next."""
    found = [b for b in blocks_of(data, block["geometry"]) if any(each["contender"] == contender for each in b["tried"])]
    if not found:
        return []
    nearest = min(found, key=lambda b: (abs(b["files"] - block["files"]), b["files"]))
    return [each for each in nearest["tried"] if each["contender"] == contender]


def io_of(data, block, among):
    """The implementation of MPI-IO that the job of a setting takes: with which MPI-IO into K files was fastest, or into one where nothing else runs."""
    for contender in ("collective_k", "collective"):
        tried = tried_of(data, block, contender) if contender in among else []
        if tried:
            return min(tried, key=lambda each: median(each["seconds"]))["setting"]["io"]
    return None


def best(data, block, contender, io=None):
    """The best setting of the sweep, and of how many; (None, 0) where there was none. Of MPI-IO's, among those of the implementation that the job has."""
    tried = tried_of(data, block, contender)
    possible = [each for each in tried if not has_io(contender) or each["setting"]["io"] == io]
    return (min(possible, key=lambda each: median(each["seconds"]))["setting"], len(possible)) if possible else (None, 0)


def sweep_table(data):
    """Everything that was tried, the fastest of each contender first and marked: it is what runs in the tables above."""
    rows = []
    for block in data["blocks"]:
        if block["kind"] != "sweep" or "tried" not in block:
            continue
        for contender, found in itertools.groupby(block["tried"], key=lambda each: each["contender"]):
            of_one = sorted(found, key=lambda each: median(each["seconds"]))
            for nth, each in enumerate(of_one):
                rates = [block["bytes"] / seconds for seconds in each["seconds"]]
                rows.append([race_report.title(block) if nth == 0 else "", race_report.CONTENDERS[contender] if nth == 0 else "", setting_text(each["setting"]),
                             race_report.rate(median(rates)), f"{race_report.rate(min(rates))} - {race_report.rate(max(rates))}", len(rates),
                             "best" if nth == 0 else ""])
    return table(["swept", "who", "setting", ">MiB/s", ">slowest - fastest", ">runs", ""], rows)
