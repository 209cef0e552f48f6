"""What stands in the place of Cairn's own files and is not Cairn's: a link to somebody's file, a FIFO, a directory. Nobody else's file is written, nothing
waits for it, and it is named.

Usage: CAIRN_BUILD=build/release python3 tests/foreign_test.py [Class[.test]]
"""
import os
import unittest

from bad_input_test import Case
from support import OK

PRECIOUS = b"precious " * 100


class Foreign(Case):
    settings = {"daemon_idle_s": 60, "deadlines_open_ms": 10000}

    def precious(self):
        """Somebody else's file."""
        path = os.path.join(self.nodes.shared, "precious")
        with open(path, "wb") as file:
            file.write(PRECIOUS)
        return path

    def untouched(self):
        with open(os.path.join(self.nodes.shared, "precious"), "rb") as file:
            self.assertEqual(file.read(), PRECIOUS)

    def cairn(self, *arguments, code=OK):
        got, out, err = self.nodes.cairn(*arguments, wait_s=30)
        self.assertEqual(got, code, out + err)
        return out + err

    def log(self):
        (root,) = [name for name in os.listdir(self.nodes.scratch()) if name.startswith("cairn-")]
        with open(os.path.join(self.nodes.scratch(), root, "log"), encoding="utf-8") as file:
            return file.read()


class Reserve(Foreign):
    def replaced(self, make):
        """Another thing in the reserve's place: opens, removals and gc go on without a reserve, and name it."""
        self.keep_two()
        self.precious()
        reserve = os.path.join(self.nodes.persistent, ".cairn", "reserve")
        os.remove(reserve)
        make(reserve)
        before = os.lstat(reserve)
        restored = self.restore()
        self.assertEqual([restored[0], restored[1], restored[4]], [OK, 2, True], restored)
        self.restore()
        self.untouched()
        self.assertEqual(self.log().count("no-reserve"), 1, self.log())
        self.says(self.log(), reserve)
        self.cairn("stop")
        self.says(self.cairn("rm", "series", 1), reserve)
        leftover = os.path.join(self.nodes.persistent, ".tmp-" + "c" * 32)
        with open(leftover, "w", encoding="utf-8"):
            os.utime(leftover, (1, 1))
        self.says(self.cairn("gc", "--age", "0s"), reserve)
        after = os.lstat(reserve)
        self.assertEqual((after.st_ino, after.st_mode), (before.st_ino, before.st_mode))
        self.untouched()

    def test_a_link(self):
        self.replaced(lambda path: os.symlink(os.path.join(self.nodes.shared, "precious"), path))

    def test_a_file_with_another_name(self):
        self.replaced(lambda path: os.link(os.path.join(self.nodes.shared, "precious"), path))

    def test_a_fifo(self):
        self.replaced(os.mkfifo)

    def test_a_directory(self):
        self.replaced(os.mkdir)

    def test_a_link_to_nowhere(self):
        self.replaced(lambda path: os.symlink("nowhere", path))


if __name__ == "__main__":
    unittest.main(verbosity=2)
