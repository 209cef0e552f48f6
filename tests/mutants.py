#!/usr/bin/env python3
"""Mutants: small bugs planted in the engine, one at a time (tests/mutants.toml, tests/mutants/*.toml), each of which the seeded clusters of `make sim`
must find, but for those that say why they can not (`survives`), and which test fails with them: these are planted when they are named with --only, and with
--by-tests, where the tests that they name must fail.

Usage: tests/mutants.py [--only NAME,NAME] [--by-tests] [--count N] [--jobs N] [--write FILE] | --list | --check     (`make mutants`)

Works on a copy of the tree under build/mutants, never on the checkout; builds only what a bug changes. --list names the mutants, --check only
looks whether each can still be planted, and the tests that it names are there (part of `make test`). Exit code 1 when one survived, or when seeds or
tests fail without any.
"""
import argparse
import contextlib
import functools
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
SEEDS = os.path.join(TREE, "build", "release", "src", "proof", "cairn_seeds")  # each source by itself: a bug is one or two of them
TESTS = os.path.join(TREE, "build", "tests")  # as everybody builds them
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
        tests_of(mutant)
    return rules, mutants


@functools.cache
def sources_of_tests():
    """{Suite.Test, or Suite.Parameter of a table of named ones: its file}."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, "src", "**", "*_test.cpp"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for suite, test in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", text, re.M):
            found[f"{suite}.{test}"] = path
        for suite in re.findall(r"^TEST_P\((\w+), ", text, re.M):
            found.update(dict.fromkeys((f"{suite}.{parameter}" for parameter in re.findall(r'^    \{"(\w+)", ', text, re.M)), path))
    return found


def tests_of(mutant):
    """{program: its tests that a survivor says fail with it}."""
    sources, found = sources_of_tests(), {}
    for test in re.findall(r"\b[A-Z]\w*\.[A-Z]\w*\b", mutant.get("survives", "")):
        if test not in sources:
            fail(f"{mutant['name']}: there is no test {test}")
        rooms = os.path.relpath(sources[test], os.path.join(ROOT, "src")).split(os.sep)
        room = "_".join(rooms[:2]) if rooms[0] == "world" and len(rooms) > 2 else rooms[0]
        found.setdefault(f"test_{room}", []).append(test)
    return found


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
    return build_in("build/release", ["-DCMAKE_UNITY_BUILD=OFF"], jobs, ["cairn_seeds"])


def build_tests(jobs, programs):
    """And the daemon, which some of them start."""
    return build_in("build/tests", [], jobs, [*programs, "cairnd"])


def build_in(folder, options, jobs, targets):
    with open(LOG, "w") as log:
        if not os.path.exists(os.path.join(TREE, folder, "build.ninja")):
            if subprocess.run(["cmake", "--preset", "release", "-B", folder, *options], cwd=TREE, stdout=log, stderr=log).returncode != 0:
                return False
        return subprocess.run(["ninja", "-C", folder, f"-j{jobs}", *targets], cwd=TREE, stdout=log, stderr=log).returncode == 0


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


def failing(program, tests):
    """Of these tests, those that fail."""
    [path] = glob.glob(os.path.join(TESTS, "src", "**", program), recursive=True)
    found = []
    for test in tests:
        suite, name = test.split(".")
        done = subprocess.run([path, f"--gtest_filter={test}:*/{test}/*:*/{suite}.*/{name}", "--gtest_fail_fast"], capture_output=True, text=True, timeout=600)
        if re.search(r"^\[==========\] 0 tests ", done.stdout, re.M):
            fail(f"{program} does not have {test}")
        if done.returncode != 0:
            found.append(test)
    return found


def shorten(text, length):
    text = re.sub(r"[0-9a-f]{16,}", "...", text)
    return text if len(text) <= length else text[: length - 3] + "..."


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][len("Usage: "):], add_help=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--by-tests", action="store_true", help="those that seeds do not find: the tests that they name must fail")
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
    chosen = [mutant for mutant in mutants if not only or mutant["name"] in only]
    if options.by_tests:
        return by_tests(options, [mutant for mutant in chosen if tests_of(mutant)])
    return by_seeds(options, rules, [mutant for mutant in chosen if only or "survives" not in mutant], [mutant for mutant in mutants if "survives" in mutant])


@contextlib.contextmanager
def bug(mutant):
    """While it is planted in the copy."""
    path = os.path.join(TREE, mutant["file"])
    with open(path) as file:
        right = file.read()
    try:
        with open(path, "w") as file:
            file.write(planted(mutant))
        yield
    finally:
        with open(path, "w") as file:
            file.write(right)


class Table:
    """What is told, and in the end written."""

    def __init__(self, options):
        self.path, self.lines = options.write, []

    def tell(self, line):
        print(line, flush=True)
        self.lines.append(line)

    def write(self):
        if self.path:
            with open(self.path, "w") as file:
                file.write("\n".join(self.lines) + "\n")


def by_tests(options, mutants):
    """Each of the tests that a survivor names must fail with it, and pass without."""
    table, killed = Table(options), 0
    programs = sorted({program for mutant in mutants for program in tests_of(mutant)})
    copy_tree()
    if not build_tests(options.jobs, programs):
        fail(f"the tree does not build: {LOG}")
    for program in programs:
        if wrong := failing(program, sorted({test for mutant in mutants for test in tests_of(mutant).get(program, [])})):
            fail(f"{' '.join(wrong)} of {program} fail without any mutant, too")
    table.tell("# make mutants ARGS=--by-tests")
    table.tell("# Mutants that the seeds do not find, and the tests that fail with each.")
    table.tell("")
    for mutant in mutants:
        survived = []
        with bug(mutant):
            built = build_tests(options.jobs, list(tests_of(mutant)))
            for program, tests in tests_of(mutant).items() if built else ():
                survived += sorted(set(tests) - set(failing(program, tests)))
        killed += built and not survived
        said = "NO BUILD" if not built else f"SURVIVED {' '.join(survived)}" if survived else " ".join(sum(tests_of(mutant).values(), []))
        table.tell(f"{mutant['name']:46} {said}")
    table.tell("")
    table.tell(f"{killed} of {len(mutants)} killed")
    table.write()
    return 0 if killed == len(mutants) else 1


def by_seeds(options, rules, mutants, survivors):
    table = Table(options)
    tell = table.tell
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
        with bug(mutant):
            built = build(options.jobs)
            seed, how, took = run_seeds(options) if built else (None, f"the compiler: {LOG}", 0)
        if seed is not None and subprocess.run([RIGHT, "--seed", str(seed), "--shrink", "0"], capture_output=True).returncode != 0:
            fail(f"seed {seed} fails without any mutant, too")
        killed += seed is not None
        after = f"{seed} seeds" if seed is not None else "SURVIVED" if built else "NO BUILD"
        tell(f"{mutant['name']:34} {mutant['rule']:>4} {after:>13} {took:5.0f}s  {mutant['breaks']}")
        if how:
            tell(f"{'':61}by: {shorten(how, 120)}")
    tell("")
    tell(f"{killed} of {len(mutants)} killed")
    tell("")
    tell("Known to survive, and why that is so, or which other test fails with it (--by-tests):")
    for mutant in survivors:
        tell(f"  {mutant['name']:34} {mutant['breaks']}")
        tell(f"  {'':34} {mutant['survives']}")
    tell("")
    tell("Rules (ARCHITECTURE.md, The promise):")
    for number, text in rules.items():
        tell(f"  {number:>2}  {text}")
    table.write()
    return 0 if killed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
