#!/usr/bin/env python3
"""mcrEngine's tables on sets of checkpoints: merging schemes, codecs, others' compressors, versions of two simulations. `make bench-codecs` runs it.

Usage: bench/codecs_run.py BUILD [FOLDER...] [--name NAME] [--all] [--repeats N] [--more FOLDER] [--from NAME] [--short]

FOLDER: a set of checkpoints, one file a rank or more. A set of our own shock code, one whose zones are dealt to ranks in turn, and versions of the shock code and of LAMMPS come besides.
Writes bench/results/codecs-NAME.json, .txt and .png. --more keeps what is measured there, and measures what is not there yet. --from only makes tables and plots of a JSON that is there.
--short prints what Cairn's own codecs make of the folders (results/codecs.txt), and no more.
Exit code: 1 where something does not come back as it was, or can not be read.
"""
import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "results")
SERIES = ("gzip", "mcrengine", "mcrengine, FPC 2^16", "difference, shuffle, zstd-1", "Cairn delta-shuffle-zstd", "Cairn predict-planes-zstd")
SERIES_BLOCK = "4096"
# Memory that is freed stays the process's: what the system takes to give pages anew is no codec's, and on virtual machines more than many of them take.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30)}


class Failed(Exception):
    """What ends the bench; its words are for people."""


def run_json(command, path):
    """The JSON that a program prints, kept in a file: there already, it is not measured again."""
    if not os.path.exists(path):
        with open(path + ".new", "w") as out:
            code = subprocess.run(command, stdout=out, env={**os.environ, **KEEP_MEMORY}).returncode
        if code:
            raise Failed(f"{os.path.basename(command[1] if command[0] == sys.executable else command[0])} ended with {code} (above)")
        os.rename(path + ".new", path)
    with open(path) as file:
        return json.load(file)


def measured(build, folder, work, wanted):
    """All of one set: the sweep, and others' codecs."""
    name = os.path.basename(os.path.normpath(folder))
    options = ["--repeats", str(wanted.repeats)] + (["--all"] if wanted.all else [])
    print(f"{name}: merging schemes and pipelines", flush=True)
    made = run_json([os.path.join(build, "bin/cairn_codecs_tables"), *options, "--export", work, folder], os.path.join(work, f"tables-{name}.json"))
    if importlib.util.find_spec("numpy") is None:
        return {**made["sets"][0], "rivals": []}, made["skipped"] + [{"package": "others' codecs", "why": "no numpy"}]
    print(f"{name}: others' codecs", flush=True)
    others = run_json([sys.executable, os.path.join(HERE, "codecs_rivals.py"), os.path.join(work, f"{name}.json"), "--repeats", str(wanted.repeats)], os.path.join(work, f"rivals-{name}.json"))
    return {**made["sets"][0], "rivals": others["rows"]}, made["skipped"] + others["skipped"]


def series(build, name, make, work):
    """Ratios of consecutive versions."""
    path = os.path.join(work, f"series-{name}.json")
    folders = [] if os.path.exists(path) else make(os.path.join(work, name))
    print(f"{name}: versions", flush=True)
    command = [os.path.join(build, "bin/cairn_codecs_tables"), "--one-group", "--blocks", SERIES_BLOCK]
    for pipeline in SERIES:
        command += ["--only", pipeline]
    return [{"name": each["name"], "facts": each["facts"], "rows": each["rows"]} for each in run_json([*command, *folders], path)["sets"]]


def own_sets(work):
    """Folders of the last version of the shock code, and of the one whose zones are dealt in turn."""
    import codecs_shock
    found = []
    for name, how in (("shock", {"cells": 192, "versions": 10}), ("strided", {"cells": 8, "width": 256, "versions": 3, "distribution": "zones", "groups": 256})):
        folder = os.path.join(work, name)
        if not os.path.isdir(folder):  # renamed when it is whole: one that was ended in between is made anew
            shutil.rmtree(folder + ".part", ignore_errors=True)
            codecs_shock.run(folder + ".part", name=name, **how)
            os.rename(folder + ".part", folder)
        found.append(sorted(os.path.join(folder, each) for each in os.listdir(folder)))
    return found


def machine():
    """Facts, and no paths or names."""
    with open("/proc/cpuinfo") as file:
        models = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    source = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    return {"processor": models[0] if models else "unknown", "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "source": source}


def measure_all(build, wanted, work):
    result = {"machine": machine(), "sets": [], "series": {}, "skipped": []}
    skipped = {}
    try:
        shock, strided = own_sets(work)
    except ImportError as error:
        shock = strided = []
        skipped["the shock code"] = str(error)
    for folder in [*wanted.folders, *shock[-1:], *strided[-1:]]:
        found, lacking = measured(build, folder, work, wanted)
        result["sets"].append(found)
        skipped.update({each.get("pipeline") or each["package"]: each["why"] for each in lacking})
    if shock:
        result["series"]["shock"] = series(build, "shock", lambda _: shock, work)
    try:
        import codecs_lammps
        why = codecs_lammps.why_not()
    except ImportError as error:
        why = str(error)
    if why:
        skipped["LAMMPS"] = why
    else:
        result["series"]["lammps"] = series(build, "lammps", codecs_lammps.run, work)
    result["skipped"] = [{"what": what, "why": why} for what, why in skipped.items()]
    return result


def compact(result):
    """Rows as lists, which takes a third."""
    columns = ["scheme", "block", "group", "padded", "pipeline", "passes", "stored", "layout", "encode_s", "decode_s", "merge_s", "split_s", "repeats"]
    for each in [*result["sets"], *[version for versions in result["series"].values() for version in versions]]:
        each["rows"] = [[round(row[c], 6) if c.endswith("_s") and row.get(c) is not None else row.get(c) for c in columns] for row in each["rows"]]
    return {"columns": columns, **result}


def spread(result):
    """As measured, from what compact() made."""
    for each in [*result["sets"], *[version for versions in result["series"].values() for version in versions]]:
        each["rows"] = [dict(zip(result["columns"], row)) for row in each["rows"]]
        for row in each["rows"]:
            row["ratio"] = each["facts"]["bytes"] / row["stored"]
    return result


def write_json(result, path):
    text = json.dumps(compact(result), separators=(",", ":"))
    with open(path, "w") as file:
        file.write(text.replace('],["', '],\n["').replace('},{"', '},\n{"') + "\n")


def tables_and_plots(name):
    import codecs_report
    base = os.path.join(RESULTS, f"codecs-{name}")
    with open(base + ".json") as file:
        result = spread(json.load(file))
    text = codecs_report.text(result)
    with open(base + ".txt", "w") as file:
        file.write(text)
    print(text)
    try:
        import codecs_plot
        for path in codecs_plot.draw(result, base.replace("-tables", "")):
            print(os.path.relpath(path))
    except (ImportError, OSError) as error:
        print(f"no plots: {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(prog="make bench-codecs", description="merging schemes, codecs and others' compressors on checkpoints")
    parser.add_argument("build")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help="sets of checkpoints")
    parser.add_argument("--name", default="tables", help="of the results: bench/results/codecs-NAME")
    parser.add_argument("--all", action="store_true", help="every pipeline with every block size in every group size: hours on large sets")
    parser.add_argument("--repeats", type=int, default=3, help="the median counts")
    parser.add_argument("--more", metavar="FOLDER", help="where what was measured is kept, and what is there is not measured again")
    parser.add_argument("--from", dest="made", metavar="NAME", help="tables and plots of a JSON that is there")
    parser.add_argument("--short", action="store_true", help="Cairn's own codecs alone, as results/codecs.txt has them")
    wanted = parser.parse_args()
    if wanted.short and not wanted.folders:
        parser.error("--short needs folders")
    if wanted.made:
        tables_and_plots(wanted.made)
        return 0
    try:
        if wanted.folders:
            subprocess.run([os.path.join(wanted.build, "bin/cairn_codecs"), *wanted.folders], check=True)
        if wanted.short:
            return 0
        with tempfile.TemporaryDirectory(prefix="cairn-codecs-") as scratch:
            work = wanted.more or scratch
            os.makedirs(work, exist_ok=True)
            result = measure_all(wanted.build, wanted, work)
        write_json(result, os.path.join(RESULTS, f"codecs-{wanted.name}.json"))
    except (Failed, subprocess.CalledProcessError, RuntimeError) as error:
        print(f"bench-codecs: {error}", file=sys.stderr)
        return 1
    tables_and_plots(wanted.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
