"""mcrEngine's Table V on a simulated machine: ways to checkpoint and to restart, what is simulated of each, and what its steps take (SC12, Sections IV-B to VII).

Three kinds of seconds, and no others: of `cairn simulate`; of bytes divided by a codec's speed that bench/codecs_run.py measured ("computed"); published ones.
"""
import json
import os
import re
from typing import NamedTuple

from codecs_run import spread
from papers_plan import Run, sets

HERE = os.path.dirname(os.path.realpath(__file__))
CORES, GROUP = 12, 32                            # a node's, and processes of an aggregator process (one a core)
COUNTS = (384, 768, 1536, 3072, 6144, 15408)
FABRIC = ("storage.target_bytes_per_s=1e14", "storage.server_bytes_per_s=1e14", "storage.crowd=0")  # storage that takes all at once: what is left is the way there
VERSIONS = (1, 3)                                # the last counts; auto has decided by then, and stores the first as it is
PAPERS = ("NoC+NoAgg", "C+NoAgg", "NoC+Agg", "Agnostic+Agg", "Aware+Agg")
CAIRNS = ("off", "fast", "small", "auto")
DAEMON_THREADS = CORES // 2                      # that encode: half of a node's cores, as cairnd takes them


class Codec(NamedTuple):
    ratio: float
    bytes_per_s: float  # one core; raw bytes
    back_per_s: float   # the same, back


class Data(NamedTuple):
    """What every process has, and what codecs make of it."""
    name: str
    image_bytes: float
    alone: Codec      # C+NoAgg
    agnostic: Codec   # Agnostic+Agg
    first: Codec      # Aware+Agg, its first pass; the second is gzip
    aware: Codec      # both passes
    cairn: dict       # fast and small; nothing where only the paper has the data


def tables_row(each, scheme, pipeline, passes):
    """Of all processes of a set in one group: the only rows that were timed."""
    wanted = (scheme, 0, pipeline, passes, each["facts"]["processes"], False)
    return next(row for row in each["rows"] if (row["scheme"], row["block"], row["pipeline"], row["passes"], row["group"], row["padded"]) == wanted)


def codec_of(each, scheme, pipeline, passes):
    row = tables_row(each, scheme, pipeline, passes)
    back_s = row["decode_s"] + (row["split_s"] if scheme == "aware" else 0)  # variables go back to where they were
    return Codec(row["ratio"], each["facts"]["bytes"] / row["encode_s"], each["facts"]["bytes"] / back_s)


def cairn_codecs(text, name):
    """Of results/codecs.txt: the lines of this set where arrays are told."""
    found = {}
    for mode, codec in (("fast", "predict-planes-zstd"), ("small", "predict-planes-small")):
        line = re.search(rf"^{re.escape(name)} +[\d.]+ +[\d.]+ % +{codec} +([\d.]+) +(\d+) +(\d+)", text, re.M)
        found[mode] = Codec(float(line.group(1)), float(line.group(2)) * 1e6, float(line.group(3)) * 1e6)
    found["auto"] = found["fast"]
    return found


def our_data(each, text, image_bytes):
    alone = codec_of(each, "agnostic", "gzip", 1)
    return Data(each["name"], image_bytes, alone, alone, codec_of(each, "aware", "mcrengine", 1), codec_of(each, "aware", "mcrengine", 2), cairn_codecs(text, each["name"]))


def paper_data(name, image_bytes, per_writer, like):
    """Of the paper: bytes of a writer for each scheme (Section VII-A); speeds are those of `like`, since it tells none."""
    raw = GROUP * image_bytes
    agnostic = like.agnostic._replace(ratio=raw / per_writer["agnostic"])
    return Data(name, image_bytes, agnostic, agnostic, like.first, like.aware._replace(ratio=raw / per_writer["aware"]), {})


def all_data(results=os.path.join(HERE, "results")):
    with open(os.path.join(results, "codecs-tables.json")) as file:
        of = {each["name"]: each for each in spread(json.load(file))["sets"]}
    with open(os.path.join(results, "codecs.txt")) as file:
        text = file.read()
    cactus = 87e6
    ours = [our_data(of[name], text, cactus) for name in ("cosmo16_z9.84", "impl64_t0.100")]
    return [paper_data("ALE3D", 154.2e6, {"agnostic": 1.5e9, "aware": 1.3e9}, ours[0]), paper_data("Cactus", cactus, {"agnostic": 2.4e9, "aware": 1.2e9}, ours[0]), *ours]


def groups(count):
    """Aggregator nodes, each with a process a core (Equation 3); 15,408 are 40.1."""
    return max(1, count // (CORES * GROUP))


def written(count, bytes_, aggregated, *more):
    """IOR: every writer writes a file of its own, N writers or one for each group, and reads it again."""
    nodes = groups(count) if aggregated else count // CORES
    return Run("sierra", "file_per_rank", sets(job__nodes=nodes, job__ranks_per_node=CORES, job__files=nodes * CORES, job__image_bytes=round(count * bytes_ / (nodes * CORES)), job__restart=1) + more)


def fetched(count, bytes_):
    """All of it to the aggregator nodes, which is all that is left of a flush where storage takes no time. Sending it back takes as long: the same bytes over the same cards."""
    return Run("sierra", "cairn", sets(job__nodes=count // CORES, job__io_nodes=groups(count), job__files=groups(count), job__image_bytes=round(bytes_)) + FABRIC)


def cairn(data, count, mode, *more):
    """The production engine, every node a leader; `small` is what the simulator calls fast, with the ratio and the speed of small."""
    size = sets(job__nodes=count // CORES, job__files=groups(count) * CORES, job__image_bytes=round(data.image_bytes), job__versions=VERSIONS[mode == "auto"], job__restart=1)
    if mode == "off":
        return Run("sierra", "cairn", size + more)
    codec = data.cairn[mode]
    how = sets(flush__codec="auto" if mode == "auto" else "fast", codec__ratio=codec.ratio, codec__bytes_per_s=round(DAEMON_THREADS * codec.bytes_per_s), codec__decode_bytes_per_s=round(CORES * codec.back_per_s))
    return Run("sierra", "cairn", size + how + more)


def share_of(data, way, count):
    """Bytes of one core: of a process itself, or of an aggregator process."""
    return data.image_bytes * (1 if way == "C+NoAgg" else count / (groups(count) * CORES))


def encode_s(data, way, count):
    """Seconds of one core of its share, by step."""
    share = share_of(data, way, count)
    if way == "C+NoAgg":
        return {"compress": share / data.alone.bytes_per_s}
    if way == "Agnostic+Agg":
        return {"compress": share / data.agnostic.bytes_per_s}
    if way == "Aware+Agg":
        first = share / data.first.bytes_per_s
        return {"first pass": first, "compress": share / data.aware.bytes_per_s - first}
    return {}


def decode_s(data, way, count):
    """The same, back."""
    share = share_of(data, way, count)
    if way == "C+NoAgg":
        return {"decompress": share / data.alone.back_per_s}
    if way == "Agnostic+Agg":
        return {"decompress": share / data.agnostic.back_per_s}
    if way == "Aware+Agg":
        first = share / data.first.back_per_s
        return {"decompress": share / data.aware.back_per_s - first, "split": first}
    return {}


def ratio(data, way):
    return {"C+NoAgg": data.alone.ratio, "Agnostic+Agg": data.agnostic.ratio, "Aware+Agg": data.aware.ratio}.get(way, 1)


def steps(simulated, data, way, count, *more):
    """Seconds of the steps of Table I, one after the other but for the first pass, which goes on while more is fetched; `seconds` is all of it."""
    if way in CAIRNS:
        got = simulated(cairn(data, count, way, *more))
        return {"flush": got["flush_s"], "seconds": got["flush_s"]}
    out = {"fetch": simulated(fetched(count, data.image_bytes))["write_s"]} if way.endswith("+Agg") else {}
    out.update(encode_s(data, way, count))
    out["write"] = simulated(written(count, data.image_bytes / ratio(data, way), way.endswith("+Agg"), *more))["flush_s"]
    overlapped = min(out.get("fetch", 0), out.get("first pass", 0))
    return {**out, "seconds": sum(out.values()) - overlapped}


def restart_steps(simulated, data, way, count, *more):
    """The same of Table II: read, gunzip, then the first pass back and splitting, while what was split is sent."""
    if way in CAIRNS:
        got = simulated(cairn(data, count, way, *more))
        return {"restore": got["restart_s"], "seconds": got["restart_s"]}
    out = {"read": simulated(written(count, data.image_bytes / ratio(data, way), way.endswith("+Agg"), *more))["restart_s"]}
    out.update(decode_s(data, way, count))
    if way.endswith("+Agg"):
        out["send"] = simulated(fetched(count, data.image_bytes))["write_s"]
    overlapped = min(out.get("send", 0), out.get("split", 0))
    return {**out, "seconds": sum(out.values()) - overlapped}


def ways(data):
    return PAPERS + (CAIRNS if data.cairn else ())
