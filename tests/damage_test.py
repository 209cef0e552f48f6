"""Damaged files under persistent: each damage against restore and the commands that read. Real library, real daemons.

Usage: CAIRN_BUILD=build/release python3 tests/damage_test.py [Class[.test]]
"""
import json
import os
import shutil
import socket
import textwrap

import skipping
from bad_input_test import Case
from support import CORRUPT, NOT_FOUND, OK


def bind(path):
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(os.path.dirname(path))  # the name of a socket is short
        bound.bind(os.path.basename(path))
        os.chdir(here)


# What can stand in a file's place, and what makes it.
NO_FILES = {"directory": os.mkdir, "FIFO": os.mkfifo, "socket": bind, "device": lambda path: os.symlink("/dev/zero", path),
            "nowhere": lambda path: os.symlink("nowhere", path),
            "through a file": lambda path: os.symlink("/etc/passwd/x", path),
            "to itself": lambda path: os.symlink(os.path.basename(path), path),
            "too long": lambda path: os.symlink("n" * 300, path)}


class Files(Case):
    def damaged(self, change, kind, *words, parts=1):
        """Changes a file of version 2: `verify` names it, restore falls back to 1 and says why, version 2 by number is an error."""
        self.keep_two()
        (path,) = [f for f in self.nodes.files("series", 2) if os.path.basename(f).startswith(kind)]
        change(path)
        code, out, err = self.nodes.cairn("verify", "series", 2)
        self.assertEqual(code, CORRUPT, out + err)
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

    def test_region_index_flipped(self):
        def change(path):
            with open(path, "rb") as f:
                at = f.read().index(b"CAIRNreg")
            self.patch(at - 100)(path)
        self.damaged(change, "part-", "part-0000-of-0001", "(the region index)")
        code, out, err = self.nodes.cairn("show", "series", 2)  # all else is there to be shown
        self.assertEqual(code, 0, out + err)
        self.says(err, "the regions of rank 0 are not known", "checksum differs")
        self.says(out, "part-0000-of-0001")

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


class Repaired(Case):
    """What a restart does, and the command that repairs."""

    def setUp(self):
        super().setUp()
        self.lineage = os.path.join(self.nodes.persistent, "series", "lineage")

    def records(self, suffix):
        return sorted(os.path.join(self.lineage, n) for n in os.listdir(self.lineage) if n.endswith(suffix))

    def go_on(self, restored, *taken):
        """A job that restores one version and takes others, all committed."""
        told = self.nodes.run(f"""
            s = Session("series")
            s.protect("field", bytes(1 << 20))
            tell([s.restore({restored})[0], OK, s.text()])
            s.protect("second", b"only from version 2 on")
            for version in {list(taken)}:
                tell([s.checkpoint(version), s.wait(version), s.text()])
            s.close()
        """)
        for each in told:
            self.assertEqual(each[:2], [OK, OK], told)
        self.nodes.kill_all()
        shutil.rmtree(self.nodes.scratch())
        self.nodes.scratch()

    def flip(self, path, at=60):
        with open(path, "r+b") as f:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 8]))

    def repair(self, *options, code=OK):
        done = self.nodes.cairn("repair", "series", *options)
        self.assertEqual(done[0], code, done)
        return done[1] + done[2]

    def verified(self, records, code):
        """By `verify`, whose tables and JSON name these records, whatever their versions are; asked for one version it only says so."""
        for options in ((), ("--json",)):
            ended, out, err = self.nodes.cairn("verify", "series", *options)
            self.assertEqual(ended, code, out + err)
            self.says(err, *records)
            if options:
                document = json.loads(out)
                self.assertEqual(len(document["lineage_damage"]), len(records), document)
                for record, damage in zip(records, document["lineage_damage"]):
                    self.assertEqual([damage["checkpoint"], damage["code"]], ["series", "corrupt"])
                    self.says(damage["text"], record, "cairn repair series")
                self.assertTrue(all(version["whole"] for version in document["versions"]), document)
            else:
                self.says(out, *records)
        ended, out, err = self.nodes.cairn("verify", "series", 2)
        self.assertEqual(ended, OK, out + err)
        self.says(out, *records)


class Lineage(Repaired):
    """Records under lineage/, and directories."""

    def test_verify_names_records(self):
        self.keep_two()
        self.verified([], OK)
        record = self.records("open")[0]
        self.flip(record)
        self.verified([record], CORRUPT)
        self.repair()
        self.verified([], OK)

    def test_records_that_manifests_tell_too(self):
        """A restart passes each over, and says so; repaired, nobody says anything any more."""
        self.keep_two()
        self.go_on(2, 3)
        whole = self.nodes.persistent + "-whole"
        shutil.copytree(self.nodes.persistent, whole)
        for path in self.records("open") + self.records("from"):
            with self.subTest(os.path.basename(path)):
                shutil.rmtree(self.nodes.persistent)
                shutil.copytree(whole, self.nodes.persistent)
                self.flip(path)
                restored = self.restore()
                self.assertEqual([restored[0], restored[1], restored[4]], [OK, 3, True], restored)
                self.says(restored[3], path, "cairn repair series")
                self.says(self.repair(), path)
                restored = self.restore()
                self.assertEqual([restored[0], restored[1], restored[3], restored[4]], [OK, 3, "", True], restored)
                self.nodes.kill_all()

    def test_commits_go_on(self):
        """The job that runs, and one after it, while an old record is damaged and while the newest is."""
        self.keep_two()
        for record in (self.records("open")[0], None):
            process = self.nodes.start("""
                s = Session("series")
                s.protect("field", bytes(1 << 20))
                tell(s.restore()[0])
                s.protect("second", b"only from version 2 on")
                version = int(hear())
                tell([s.checkpoint(version), s.wait(version), s.text()])
                s.close()
            """)
            self.assertEqual(process.stdout.readline().strip(), "0")
            self.flip(record or self.records("open")[-1])
            process.stdin.write("3\n" if record else "4\n")
            process.stdin.flush()
            self.assertEqual(self.nodes.told(process)[0][:2], [OK, OK])

    def test_the_only_record_of_going_back(self):
        """It may decide what the newest version is: one error that names it and the command, and nothing older silently."""
        self.keep_two()
        self.go_on(1)  # goes back, and commits nothing
        (record,) = self.records("from")
        self.flip(record)
        for version in ("NEWEST", "2"):
            refused = self.restore(version)
            self.assertEqual(refused[0], CORRUPT, refused)
            self.says(refused[2], record, "cairn repair series")
        self.verified([record], CORRUPT)
        self.assertEqual(self.nodes.cairn("extract", "series", 2, "--rank", 0, "-o", os.path.join(self.nodes.shared, "image"))[0], OK)
        self.says(self.repair(code=CORRUPT), record, "--forget")
        self.assertEqual(self.restore()[0], CORRUPT)
        self.says(self.repair("--forget"), record, "a restart takes version 2")
        restored = self.restore()
        self.assertEqual([restored[0], restored[1], restored[4]], [OK, 2, True], restored)

    def test_lineage_is_no_directory(self):
        def file(path):
            with open(path, "w") as f:
                f.write("not a directory")

        for what, make in (("file", file), ("link to itself", lambda path: os.symlink("lineage", path)), ("link to nowhere", NO_FILES["nowhere"])):
            with self.subTest(what):
                self.setUp()
                self.keep_two()
                shutil.rmtree(self.lineage)
                make(self.lineage)
                told = self.nodes.run("s = Session('series'); tell([s.opened, s.text()])")
                self.fails(told[0], CORRUPT, self.lineage, "cairn repair series --forget")
                self.verified([self.lineage], CORRUPT)
                self.repair("--forget")
                restored = self.restore()
                self.assertEqual([restored[0], restored[1], restored[4]], [OK, 2, True], restored)

    def test_a_version_directory_is_none(self):
        """An old one is passed over; the newest one as any damaged version is."""
        for version, expected in ((1, 2), (2, 1)):
            with self.subTest(version):
                self.setUp()
                self.keep_two()
                directory = os.path.join(self.nodes.persistent, "series", str(version))
                shutil.rmtree(directory)
                os.symlink(str(version), directory)  # to itself
                restored = self.restore()
                self.assertEqual([restored[0], restored[1], restored[4]], [OK, expected, True], restored)
                self.says(restored[3], directory, "cairn repair series")
                self.assertNotEqual(self.restore(str(version))[0], OK)
                # The restore that failed was an open that left nothing: it might have committed there, as far as can be seen.
                self.repair(*(["--forget"] if version == 2 else []))
                self.assertEqual(self.nodes.cairn("verify", "series")[0], OK)


@skipping.NEEDS_NO_ROOT
class Unlisted(Repaired):
    def test_a_directory_that_may_not_be_listed(self):
        self.keep_two()
        directory = os.path.join(self.nodes.persistent, "series", "1")
        os.chmod(directory, 0)
        restored = self.restore()
        os.chmod(directory, 0o755)
        self.assertEqual([restored[0], restored[1]], [OK, 2], restored)
        self.says(restored[3], directory)


class Scratch(Case):
    """An image that is damaged in scratch before it is flushed."""
    RANK = """
        s = Session("series", rank, 2)
        assert s.opened == OK, s.text()
        s.protect("field", bytes([rank + 1]) * 1000000)
        for version in (1, 2):
            hear()
            tell([s.checkpoint(version)])
            hear()
            tell([s.wait(version, wait_ms=60000), s.text()])
        s.close()
    """

    def ask(self, running, *ranks):
        for rank in ranks:
            running[rank].stdin.write("\n")
            running[rank].stdin.flush()
        return [json.loads(running[rank].stdout.readline()) for rank in ranks]

    def test_what_was_captured_with_checksums_and_changed_since_is_not_committed(self):
        self.nodes.settings["capture_checksums"] = "capture"
        running = [self.nodes.start(f"rank = {rank}\n" + textwrap.dedent(self.RANK), rank) for rank in range(2)]
        self.assertEqual(self.ask(running, 0), [[OK]])  # the other rank is missing: nobody reads this image yet
        (slot,) = [os.path.join(folder, name) for folder, _, names in os.walk(self.nodes.scratch(0)) for name in names if name.startswith("slot-")]
        with open(slot, "r+b") as file:
            file.seek(700000)
            file.write(b"\xff")
        self.assertEqual(self.ask(running, 1), [[OK]])
        for status, text in self.ask(running, 0, 1):
            self.assertNotEqual(status, OK)
            self.says(text, "the image of rank 0", "are not those that were captured")
        self.assertEqual(self.ask(running, 0, 1), [[OK], [OK]])  # another version is not concerned
        self.assertEqual([told[0] for told in self.ask(running, 0, 1)], [OK, OK])
        for each in running:
            self.assertEqual(each.wait(60), 0)
        self.assertEqual(self.nodes.cairn("verify", "series", 2)[0], 0)
        self.assertFalse(self.nodes.files("series", 1), "no manifest, no parts")


if __name__ == "__main__":
    skipping.main(verbosity=2)
