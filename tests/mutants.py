#!/usr/bin/env python3
"""Mutants: small bugs planted in the engine, one at a time (tests/mutants.toml, tests/mutants/*.toml), each of which the seeded clusters of `make sim`
must find, but for those that say why they can not (`survives`): they are planted when they are named with --only.

Usage: tests/mutants.py [--only NAME,NAME] [--count N] [--jobs N] [--write FILE] | --list | --check     (`make mutants`)

Works on a copy of the tree under build/mutants, never on the checkout; builds only what a bug changes. --list names the mutants, --check only
looks whether each can still be planted (part of `make test`). Exit code 1 when one survived, or when seeds fail without any.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import time

try:
    import tomllib
except ImportError:
    sys.exit("tests/mutants.py needs Python 3.11 or newer (tomllib)")

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.join(ROOT, "build", "mutants")
SEEDS = os.path.join(TREE, "build", "release", "src", "proof", "cairn_seeds")
RIGHT = SEEDS + ".right"  # without any bug planted
LOG = os.path.join(TREE, "build.log")


def fail(text):
    sys.exit(f"mutants: {text}")


def load_rules():
    """{number: name} of the table in ARCHITECTURE.md whose head is `rule | name | what holds`."""
    rules, inside = {}, False
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells == ["rule", "name", "what holds"]:
                inside = True
            elif not line.startswith("|"):
                inside = False
            elif inside and cells[0].isdigit():
                rules[int(cells[0])] = cells[1]
    return rules


def load():
    rules, mutants = load_rules(), []
    for path in [os.path.join(ROOT, "tests", "mutants.toml"), *sorted(glob.glob(os.path.join(ROOT, "tests", "mutants", "*.toml")))]:
        with open(path, "rb") as file:
            mutants += tomllib.load(file)["mutant"]
    names = [mutant["name"] for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            fail(f"two mutants are called {name}")
    for mutant in mutants:
        missing = {"name", "file", "find", "replace", "breaks", "rule"} - mutant.keys()
        if missing:
            fail(f"{mutant['name']}: lacks {', '.join(sorted(missing))}")
        if mutant["rule"] not in rules:
            fail(f"{mutant['name']}: there is no rule {mutant['rule']} in ARCHITECTURE.md")
        planted(mutant)
    return rules, mutants


def planted(mutant):
    """The file's text with the bug in it."""
    with open(os.path.join(ROOT, mutant["file"])) as file:
        text = file.read()
    found = text.count(mutant["find"])
    if found != 1:
        fail(f"{mutant['name']}: what it replaces stands {found} times in {mutant['file']}, not once")
    return text.replace(mutant["find"], mutant["replace"])


def write_if_changed(path, data):
    """An unchanged file keeps its time, so that nothing is built for it."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def copy_tree():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", ".", ":!bench/results"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = os.path.join(ROOT, name)
        if not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            write_if_changed(os.path.join(TREE, name), file.read())
        if os.access(path, os.X_OK):
            os.chmod(os.path.join(TREE, name), 0o755)


def build(jobs):
    with open(LOG, "w") as log:
        if not os.path.exists(os.path.join(TREE, "build", "release", "build.ninja")):
            if subprocess.run(["cmake", "--preset", "release", "-DCMAKE_UNITY_BUILD=OFF"], cwd=TREE, stdout=log, stderr=log).returncode != 0:
                return False
        return subprocess.run(["ninja", "-C", "build/release", f"-j{jobs}", "cairn_seeds"], cwd=TREE, stdout=log, stderr=log).returncode == 0


def run_seeds(options):
    """The first seed that fails, how, and in how many seconds; None when all are well."""
    begun = time.monotonic()
    command = [SEEDS, "--count", str(options.count), "--failures", "1", "--shrink", "0", "--limit-s", "30", "--jobs", str(options.jobs)]
    done = subprocess.run(command, capture_output=True, text=True)
    took = time.monotonic() - begun
    if done.returncode == 0:
        return None, "", took
    found = re.search(r"^seed (\d+): (.*)$", done.stdout, re.M)
    if not found:
        fail(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return int(found.group(1)), found.group(2), took


def shorten(text, length):
    text = re.sub(r"[0-9a-f]{16,}", "...", text)
    return text if len(text) <= length else text[: length - 3] + "..."


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):], add_help=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=3000, help="seeds that each mutant has to survive")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", metavar="FILE", help="the table goes there, too")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rules, mutants = load()
    if options.check:
        return 0
    if options.list:
        for mutant in mutants:
            print(f"{mutant['name']:34} {mutant['file']:28} rule {mutant['rule']}: {mutant['breaks']}" + ("" if "survives" not in mutant else f" (survives: {mutant['survives']})"))
        return 0
    only = set(filter(None, options.only.split(",")))
    unknown = only - {mutant["name"] for mutant in mutants}
    if unknown:
        fail(f"there is no mutant {', '.join(sorted(unknown))} (--list)")
    if options.count < 1 or options.jobs < 1:
        fail("--count and --jobs are at least 1")
    return run(options, rules, [mutant for mutant in mutants if (mutant["name"] in only if only else "survives" not in mutant)],
               [mutant for mutant in mutants if "survives" in mutant])


def run(options, rules, mutants, survivors):
    lines = []

    def tell(line):
        print(line, flush=True)
        lines.append(line)

    copy_tree()
    if not build(options.jobs):
        fail(f"the tree does not build: {LOG}")
    shutil.copy2(SEEDS, RIGHT)
    tell(f"# make mutants ARGS='--count {options.count}'")
    tell(f"# A mutant is killed by the first seed that fails with it and passes without it; it survives when {options.count} seeds pass.")
    tell("")
    tell(f"{'mutant':34} {'rule':>4} {'killed after':>13} {'in':>6}  what it breaks, and by what it was found")
    killed = 0
    for mutant in mutants:
        path = os.path.join(TREE, mutant["file"])
        with open(path) as file:
            right = file.read()
        try:
            with open(path, "w") as file:
                file.write(planted(mutant))
            if not build(options.jobs):
                fail(f"{mutant['name']} does not build: {LOG}")
            seed, how, took = run_seeds(options)
        finally:
            with open(path, "w") as file:
                file.write(right)
        if seed is not None and subprocess.run([RIGHT, "--seed", str(seed), "--shrink", "0"], capture_output=True).returncode != 0:
            fail(f"seed {seed} fails without any mutant, too")
        killed += seed is not None
        after = f"{seed} seeds" if seed is not None else "SURVIVED"
        tell(f"{mutant['name']:34} {mutant['rule']:>4} {after:>13} {took:5.0f}s  {mutant['breaks']}")
        if how:
            tell(f"{'':61}by: {shorten(how, 120)}")
    tell("")
    tell(f"{killed} of {len(mutants)} killed")
    tell("")
    tell("Known to survive, and why that is so, or which other test fails with it:")
    for mutant in survivors:
        tell(f"  {mutant['name']:34} {mutant['breaks']}")
        tell(f"  {'':34} {mutant['survives']}")
    tell("")
    tell("Rules (ARCHITECTURE.md, The promise):")
    for number, text in rules.items():
        tell(f"  {number:>2}  {text}")
    if options.write:
        with open(options.write, "w") as file:
            file.write("\n".join(lines) + "\n")
    return 0 if killed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
