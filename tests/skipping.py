"""How a test that can not be tried here is skipped: by its name and with the reason, never passed over in silence.

A line `SKIP name: reason` for each; exit code 77, which ctest shows as skipped, where nothing but such tests ran. So what needs root, or an ordinary user,
stands in a class of its own: ctest has a line for each class. scripts/show-skipped gathers the lines at the end of `make test`.
"""
import os
import sys
import unittest

CODE = 77
NEEDS_ROOT = unittest.skipIf(os.geteuid() != 0, "needs root: only it gives files to another user")
NEEDS_NO_ROOT = unittest.skipIf(os.geteuid() == 0, "needs an ordinary user: root may read everything")


class _Counted(unittest.TextTestResult):
    """Also how many went well: whether skipped ones count as run differs between versions of Python."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.went_well = 0

    def addSuccess(self, test):  # noqa: N802
        super().addSuccess(test)
        self.went_well += 1


class _Runner(unittest.TextTestRunner):
    resultclass = _Counted


def name_of(test):
    return ".".join(test.id().split(".")[-2:])


def leave(what, reason):
    """For a whole suite, before it begins."""
    print(f"SKIP {what}: {reason}")
    sys.exit(CODE)


def main(verbosity=1):
    """In place of unittest.main()."""
    result = unittest.main(module="__main__", verbosity=verbosity, exit=False, testRunner=_Runner).result
    for test, reason in result.skipped:
        print(f"SKIP {name_of(test)}: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(CODE if result.skipped and result.went_well == 0 else 0)
