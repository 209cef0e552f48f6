"""What stands in the place of Cairn's own files and is not Cairn's: a link to somebody's file, a FIFO, a directory. Nobody else's file is written, nothing
waits for it, and it is named.

Usage: CAIRN_BUILD=build/release python3 tests/foreign_test.py [Class[.test]]
"""
import os
import shutil
import time
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


class Scratch(Foreign):
    """In the daemon's own directory."""

    settings = {"daemon_idle_s": 60, "deadlines_open_ms": 10000, "retention_free_at_end": "false"}

    def setUp(self):
        super().setUp()
        self.settings_are_of_one_file_system()
        for told in self.nodes.run(f"""
            s = Session("series")
            s.protect("field", bytes(range(256)) * 4096)
            for version in (1, 2):
                tell([s.checkpoint(version), s.wait(version), s.text()])
        """):
            self.assertEqual(told[0], OK, told)
        self.nodes.kill_daemons()
        (root,) = [name for name in os.listdir(self.nodes.scratch()) if name.startswith("cairn-")]
        self.root = os.path.join(self.nodes.scratch(), root)

    def settings_are_of_one_file_system(self):
        """A file there can have a second name in scratch."""
        self.nodes.shared, self.kept = self.nodes.local, self.nodes.shared
        self.addCleanup(shutil.rmtree, self.kept, True)

    def kinds(self):
        def precious():
            return os.path.join(self.nodes.shared, "precious")
        return {"link": lambda name: os.symlink(precious(), name), "second name": lambda name: os.link(precious(), name), "FIFO": os.mkfifo,
                "directory": os.mkdir}

    def goes_on(self):
        for command in (("ls", "series"), ("verify", "series"), ("extract", "series", "--rank", 0, "-o", os.path.join(self.nodes.shared, "image"))):
            self.cairn(*command)
        restored = self.restore()
        self.assertEqual([restored[0], restored[1]], [OK, 2], restored)

    def in_the_place_of(self, name):
        for kind, make in self.kinds().items():
            with self.subTest(kind):
                self.setUp()
                self.precious()
                path = os.path.join(self.root, name)
                os.remove(path)
                make(path)
                before = os.lstat(path)
                self.goes_on()
                self.untouched()
                (aside,) = [other for other in os.listdir(self.root) if other.startswith(name + ".damaged-")]
                after = os.lstat(os.path.join(self.root, aside))
                self.assertEqual((after.st_ino, after.st_mode), (before.st_ino, before.st_mode))
                self.says(self.log(), path, aside)

    def test_the_log(self):
        self.in_the_place_of("log")

    def test_the_note_of_the_boot(self):
        self.in_the_place_of("boot")

    def test_the_lock(self):
        for kind, make in self.kinds().items():
            with self.subTest(kind):
                self.setUp()
                self.precious()
                path = os.path.join(self.root, "lock")
                os.remove(path)
                make(path)
                (told,) = self.nodes.run("s = Session('series'); tell([s.opened, s.text()])")
                self.assertNotEqual(told[0], OK, told)
                self.says(told[1], path)
                self.untouched()

    def test_an_image_with_a_second_name(self):
        """As in a copy made of hard links: the slot is not written over for the next version."""
        images = os.path.join(self.root, "images")
        copies = {name: os.path.join(self.nodes.shared, name) for name in os.listdir(images)}
        contents = {}
        for name, copy in copies.items():
            os.link(os.path.join(images, name), copy)
            with open(copy, "rb") as file:
                contents[name] = file.read()
        (told,) = self.nodes.run("""
            s = Session("series")
            s.protect("field", bytes(1 << 20))
            told = [s.restore()]
            for version in range(3, 9):
                told.append([s.checkpoint(version), s.wait(version), s.text()])
            tell(told)
        """)
        self.assertEqual(told[0], [OK, 2])
        self.assertTrue(all(each[:2] == [OK, OK] for each in told[1:]), told)
        for name, copy in copies.items():
            with open(copy, "rb") as file:
                self.assertTrue(file.read() == contents[name], name)


class Removal(Foreign):
    def in_the_place_of(self, kind, content, command):
        """A directory instead of version 2's manifest or part: `cairn rm` removes the version all the same, and gc has nothing to object to."""
        self.keep_two()
        (path,) = [file for file in self.nodes.files("series", 2) if os.path.basename(file).startswith(kind)]
        os.remove(path)
        os.mkdir(path)
        if content:
            with open(os.path.join(path, "notes"), "w", encoding="utf-8") as file:
                file.write("somebody's")
        said = self.cairn(*command)
        folder = os.path.dirname(path)
        aside = [name for name in os.listdir(folder) if ".damaged-" in name] if os.path.exists(folder) else []
        if content:
            (name,) = aside
            self.assertTrue(name.startswith(kind), name)
            self.says(said, os.path.join(folder, name))
            with open(os.path.join(folder, name, "notes"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "somebody's")
        self.assertEqual(len(aside), 1 if content else 0)
        self.assertEqual([file for file in self.nodes.files("series", 2) if ".damaged-" not in file and "/part" in file], [])
        self.cairn("gc", "--age", "0s")
        restored = self.restore()
        self.assertEqual([restored[0], restored[1], restored[4]], [OK, 1, True], restored)

    def test_a_directory(self):
        for kind in ("manifest", "part-"):
            for content in (False, True):
                with self.subTest(kind, content=content):
                    self.setUp()
                    self.in_the_place_of(kind, content, ("rm", "series", 2, "--force"))

    def test_a_part_of_a_version_that_was_given_up(self):
        """What an earlier rm began and could not finish: gc takes the rest."""
        self.keep_two()
        (part,) = [file for file in self.nodes.files("series", 1) if os.path.basename(file).startswith("part-")]
        self.cairn("rm", "series", 1)
        os.makedirs(os.path.join(part, "full"))
        os.utime(part, (1, 1))
        said = self.cairn("gc", "--age", "0s", "--unknown")
        self.says(said, "note", ".damaged-")
        self.cairn("gc", "--age", "0s", "--unknown")


class Meeting(Foreign):
    def test_a_fifo_where_ranks_meet(self):
        """Rank 0 reads what another rank wrote there; it does not wait for who writes into a FIFO."""
        place = os.path.join(self.nodes.persistent, ".cairn", "rendezvous", "one-job")
        os.makedirs(place)
        os.mkfifo(os.path.join(place, "join-1"))
        code = "s = Session('series', {rank}, 2, job='one-job'); tell([s.opened, s.text()])"
        first = self.nodes.start(code.format(rank=0))
        time.sleep(1)
        self.assertEqual(self.nodes.run(code.format(rank=1)), [[OK, ""]])
        self.assertEqual(self.nodes.told(first), [[OK, ""]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
