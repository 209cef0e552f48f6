"""Damaged files under persistent: each damage against restore and the commands that read. Real library, real daemons.

Usage: CAIRN_BUILD=build/release python3 tests/damage_test.py [Class[.test]]
"""
import os
import socket
import unittest

from bad_input_test import Case
from support import NOT_FOUND, OK


def bind(path):
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(os.path.dirname(path))  # the name of a socket is short
        bound.bind(os.path.basename(path))
        os.chdir(here)


# What can stand in a file's place, and what makes it.
NO_FILES = {"directory": os.mkdir, "FIFO": os.mkfifo, "socket": bind, "device": lambda path: os.symlink("/dev/zero", path),
            "nowhere": lambda path: os.symlink("nowhere", path)}


class Files(Case):
    def damaged(self, change, kind, *words, parts=1):
        """Changes a file of version 2: `verify` names it, restore falls back to 1 and says why, version 2 by number is an error."""
        self.keep_two()
        (path,) = [f for f in self.nodes.files("series", 2) if os.path.basename(f).startswith(kind)]
        change(path)
        code, out, err = self.nodes.cairn("verify", "series", 2)
        self.assertNotEqual(code, 0, out)
        self.says(out + err, *words)
        asked = self.restore("2")
        self.assertNotEqual(asked[0], OK, asked)
        self.says(asked[2], *words)
        fallen = self.restore()
        self.assertEqual([fallen[0], fallen[1], fallen[4]], [OK, 1, True], fallen)
        self.says(fallen[3], "2")
        code, out, err = self.nodes.cairn("verify", "series", 1)
        self.assertEqual(code, 0, out + err)

    @staticmethod
    def patch(offset, data=None):
        def change(path):
            os.chmod(path, 0o644)
            with open(path, "r+b") as f:
                f.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
                here = f.read(len(data) if data else 1)
                f.seek(-len(here), os.SEEK_CUR)
                f.write(data or bytes([here[0] ^ 1]))
        return change

    @staticmethod
    def cut(path):
        os.truncate(path, os.path.getsize(path) // 2)

    @staticmethod
    def foreign(path):
        size = os.path.getsize(path)
        with open(path, "wb") as f:
            f.write(b"this is no file of ours" * (size // 23 + 1))

    def test_part_bit_flipped(self):
        self.damaged(self.patch(300000), "part-", "part-0000-of-0001", "field")

    def test_part_footer_flipped(self):
        self.damaged(self.patch(-100), "part-", "part-0000-of-0001")

    def test_part_truncated(self):
        self.damaged(self.cut, "part-", "part-0000-of-0001")

    def test_part_missing(self):
        self.damaged(os.remove, "part-", "part-0000-of-0001")

    def test_part_foreign(self):
        self.damaged(self.foreign, "part-", "part-0000-of-0001")

    def test_manifest_bit_flipped(self):
        self.damaged(self.patch(60), "manifest", "manifest")

    def test_manifest_truncated(self):
        self.damaged(self.cut, "manifest", "manifest")

    def test_manifest_foreign(self):
        self.damaged(self.foreign, "manifest", "manifest")

    def test_manifest_empty(self):
        self.damaged(lambda path: os.truncate(path, 0), "manifest", "manifest")

    @staticmethod
    def becomes(make):
        """Something else stands in the file's place: `make` makes it."""
        def change(path):
            os.remove(path)
            make(path)
        return change

    def test_part_is_no_file(self):
        for name, make in NO_FILES.items():
            with self.subTest(name):
                self.setUp()
                self.damaged(self.becomes(make), "part-", "part-0000-of-0001")

    def test_manifest_is_no_file(self):
        """What stands in a manifest's place is there: the version is damaged, and not one that was never committed."""
        for name, make in NO_FILES.items():
            with self.subTest(name):
                self.setUp()
                self.damaged(self.becomes(make), "manifest", "manifest", "not a file")

    def test_manifest_missing(self):
        """A version without a manifest was never committed: the one before it is the newest."""
        self.keep_two()
        (path,) = [f for f in self.nodes.files("series", 2) if os.path.basename(f).startswith("manifest")]
        os.remove(path)
        fallen = self.restore()
        self.assertEqual([fallen[0], fallen[1], fallen[4]], [OK, 1, True], fallen)
        self.assertEqual(self.restore("2")[0], NOT_FOUND)


if __name__ == "__main__":
    unittest.main(verbosity=2)
