#!/usr/bin/env python3
"""A test that can not be tried here is skipped by name: what skipping.py makes of a suite, and what scripts/show-skipped gathers of a ctest run."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
SUITE = """
import sys, unittest
sys.path.insert(0, {tests!r})
import skipping

class Works(unittest.TestCase):
    def test_it(self):
        pass

class Half(unittest.TestCase):
    def test_it(self):
        pass
    def test_other(self):
        self.skipTest("no moon")

@unittest.skip("needs root, and a moon")
class None_(unittest.TestCase):
    def test_it(self):
        pass

class Fails(unittest.TestCase):
    def test_it(self):
        self.fail("so")
    def test_other(self):
        self.skipTest("no moon")

if __name__ == "__main__":
    skipping.main()
"""
JUNIT = """<?xml version="1.0"?>
<testsuite name="x" tests="5">
  <testcase name="tune.Mounted" classname="tune.Mounted" time="0.1" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
    <system-out>s\nOK (skipped=1)\nSKIP Mounted.test_small: needs root\n</system-out></testcase>
  <testcase name="Files.stamps" classname="Files.stamps" time="0.1" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>[ RUN      ] Files.stamps\n/a/b_test.cpp:95: Skipped\next2 needs root\n\n[  SKIPPED ] Files.stamps (0 ms)</system-out></testcase>
  <testcase name="half.Half" classname="half.Half" time="0.1" status="run"><system-out>.s\nSKIP Half.test_other: no moon\n</system-out></testcase>
  <testcase name="good.Good" classname="good.Good" time="0.1" status="run"><system-out>..\n</system-out></testcase>
  <testcase name="dumb.Dumb" classname="dumb.Dumb" time="0.1" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out></system-out></testcase>
</testsuite>
"""


def can_run(python, user):
    try:
        return subprocess.run([python, "-c", ""], **user).returncode == 0
    except OSError:
        return False


class Classes(unittest.TestCase):
    def run_suite(self, name):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "suite.py")
            with open(path, "w") as f:
                f.write(SUITE.format(tests=os.path.join(ROOT, "tests")))
            done = subprocess.run([sys.executable, "-B", path, name], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_what_was_not_tried_is_no_success(self):
        self.assertEqual(self.run_suite("Works"), (0, ""))
        self.assertEqual(self.run_suite("None_"), (77, "SKIP None_.test_it: needs root, and a moon\n"))
        self.assertEqual(self.run_suite("Half"), (0, "SKIP Half.test_other: no moon\n"))
        self.assertEqual(self.run_suite("Fails"), (1, "SKIP Fails.test_other: no moon\n"))

    def test_every_test_in_want_of_root_says_so(self):
        """As an ordinary user: each ends with 77 and names itself."""
        if os.geteuid() != 0:
            self.skipTest("needs root, which can become an ordinary user")
        ordinary = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/", "capture_output": True, "text": True}
        python = next((each for each in (sys.executable, "/usr/bin/python3") if can_run(each, ordinary)), None)
        if not python:
            self.skipTest("other users can not run this Python")
        with tempfile.TemporaryDirectory() as folder:  # the sources may lie where nobody else may look
            os.chmod(folder, 0o755)
            for name in ("tests", "testbed", "bench", "examples"):
                subprocess.run(["cp", "-r", os.path.join(ROOT, name), folder], check=True)
            subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
            for suite, names in {"bad_input": ["AnotherUser"], "mount": ["Mounts"], "full": ["Full"], "roots": ["Full"], "replaced": ["Replaced"], "shared": ["Shared"],
                                 "trees": ["Owners"], "race": [], "placement": ["OnVolumes"], "dead_brick": []}.items():
                done = subprocess.run([python, "-B", os.path.join(folder, "tests", suite + "_test.py"), *names],
                                      env={"PATH": os.environ["PATH"], "CAIRN_BUILD": os.environ.get("CAIRN_BUILD", os.path.join(ROOT, "build/release"))}, **ordinary)
                with self.subTest(suite=suite):
                    self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
                    self.assertRegex(done.stdout, r"(?m)^SKIP \S+: .*root")


class Gathered(unittest.TestCase):
    def test_each_by_name_and_with_its_reason(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(JUNIT)
            file.flush()
            done = subprocess.run([os.path.join(ROOT, "scripts", "show-skipped"), file.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip().splitlines(), ["4 skipped here:", "  tune.Mounted: needs root", "  Files.stamps: ext2 needs root", "  half.Half, Half.test_other: no moon",
                                                            "  dumb.Dumb: it does not say why"])


if __name__ == "__main__":
    unittest.main()
