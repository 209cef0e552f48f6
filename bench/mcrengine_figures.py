#!/usr/bin/env python3
"""mcrEngine's Figures 10 to 13 on a simulated machine like the paper's, up to 15,408 processes, with Cairn's modes beside its five ways, and the paper's percentages beside what comes out.

Usage: bench/mcrengine_figures.py BUILD [--short] [--more] [--out JSON]     (make simulate-mcrengine)

Writes results/mcrengine.json after each run, at the end mcrengine.txt and plots. --short: 384 processes alone, told and not kept.
Exit code 1 when a run fails, never because a number differs.
"""
import argparse
import json
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import machine  # noqa: E402
import mcrengine_plan as plan  # noqa: E402
import mcrengine_report  # noqa: E402
import papers_run  # noqa: E402
from papers_figures import Notes  # noqa: E402
from papers_run import save  # noqa: E402

SHARES = (1, 1 / 3, 0.1)  # of the file system's 30 GB/s, that the job gets; Cairn's modes take minutes each: fast with all and a tenth, the others with all


def arguments():
    parser = argparse.ArgumentParser(prog="bench/mcrengine_figures.py", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build directory, such as build/release")
    parser.add_argument("--binary", help="another cairn than the build's")
    parser.add_argument("--out", help="the JSON, with .txt and -*.png beside it, instead of results/mcrengine.json")
    parser.add_argument("--short", action="store_true", help="384 processes, for trying things out: told and not kept, but with --out")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs at a time")
    parser.add_argument("--more", action="store_true", help="go on with a JSON that is there")
    parser.add_argument("--no-plots", action="store_true")
    a = parser.parse_args()
    if a.short and not a.out:
        a.kept = tempfile.TemporaryDirectory()  # as long as the program runs
        a.out, a.no_plots = os.path.join(a.kept.name, "short.json"), True
    a.out = a.out or os.path.join(HERE, "results", "mcrengine.json")
    return a


def slower(share):
    return () if share == 1 else (f"storage.background={1 - share:.4f}",)


def everything(simulated, counts):
    """Rows of steps, by data, way and processes; with less of the file system at the most processes alone."""
    rows = []
    for data in plan.all_data():
        for way in plan.ways(data):
            for count in counts:
                for share in SHARES if count == counts[-1] else (1,):
                    if way in plan.CAIRNS and share not in ((1, 0.1) if way == "fast" else (1,)):
                        continue
                    asked = (simulated, data, way, count, *slower(share))
                    rows.append({"data": data.name, "way": way, "processes": count, "share": share, "steps": plan.steps(*asked), "restart": plan.restart_steps(*asked)})
    return rows


class Known:
    """What was simulated, by Run; papers_run asks for no more."""

    def __init__(self, runs):
        self.runs = runs

    def __call__(self, run):
        return self.runs[run.key()]


def begun(a):
    if a.more and os.path.exists(a.out):
        with open(a.out, encoding="utf-8") as f:
            data = json.load(f)
        runs = data["runs"]
        why = machine.refuse_other_source(data["cairn"].removeprefix("cairn "), machine.source_of(HERE), a.out)
        if why:
            raise papers_run.Trouble(why)
    else:
        runs = {}
    return {"cairn": "cairn " + machine.source_of(HERE), "runs": runs}


def main():
    a = arguments()
    counts = plan.COUNTS[:1] if a.short else plan.COUNTS
    binary = a.binary or os.path.join(a.build, "bin", "cairn")
    clock = time.monotonic()

    def done(run, got, _):
        for unused in ("leaders", "bounds"):
            got.pop(unused, None)
        print(f"{time.monotonic() - clock:6.0f} s  {got['flush_s']:8.2f} s  {got.get('restart_s', 0):8.2f} s  {run.key()}", flush=True)
        save(data, a.out)

    try:
        data = begun(a)
        notes = Notes()
        everything(notes, counts)
        papers_run.simulate_all(binary, notes.runs, data["runs"], a.jobs, done)
        data["rows"] = everything(Known(data["runs"]), counts)
        text = mcrengine_report.text(data["rows"], plan.all_data(), data["cairn"])
        save(data, a.out)
        with open(os.path.splitext(a.out)[0] + ".txt", "w", encoding="utf-8") as f:
            f.write(text)
        print(text)
        if not a.no_plots:
            import mcrengine_plot
            for path in mcrengine_plot.draw(data["rows"], os.path.splitext(a.out)[0]):
                print("drawn:   " + os.path.relpath(path))
    except papers_run.Trouble as trouble:
        print(f"bench/mcrengine_figures.py: {trouble}", file=sys.stderr)
        return 1
    except OSError as trouble:  # without matplotlib there are the tables
        print(f"not drawn: {trouble}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
