"""Bad input, one test each: one clear error that names the thing and what to do, and nothing lost. Real library, real daemons.

Usage: CAIRN_BUILD=build/release python3 tests/bad_input_test.py [Class[.test]]
Order: settings, directories, names, versions, routed files, regions, restore, ranks, daemons, two jobs. Damaged files: damage_test.py.
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import skipping
from support import DEADLINE, INVALID, IO_ERROR, NO_SPACE, NOT_FOUND, OK, PERMISSION, SUPERSEDED, UNAVAILABLE, Nodes

DATA = "bytes(range(256)) * 4096"  # 1 MiB, each block its own checksum but the same bytes
KEEP = f"""
    s = Session("series")
    tell([s.opened, s.text()])
    s.protect("field", {DATA})
    tell([s.checkpoint(1), s.wait(1), s.text()])
    s.protect("second", b"only from version 2 on")
    tell([s.checkpoint(2), s.wait(2), s.text()])
    tell([s.close()])
"""


class Case(unittest.TestCase):
    settings = {}

    def setUp(self):
        self.nodes = Nodes(**self.settings)
        self.addCleanup(self.nodes.__exit__)

    def says(self, text, *words):
        for word in words:
            self.assertIn(word.lower(), text.lower())

    def fails(self, told, code, *words):
        """`told` is [status, text]."""
        self.assertEqual(told[0], code, told)
        self.says(told[1], *words)

    def open(self, name="'series'", words=(), code=INVALID, environment=None, **overrides):
        given = "".join(f", {k}={v!r}" for k, v in overrides.items())
        told = self.nodes.run(f"s = Session({name}{given}); tell([s.opened, s.text()])", **(environment or {}))
        self.fails(told[0], code, *words)

    def keep_two(self):
        """Versions 1 and 2, committed, and the daemon ended."""
        for told in self.nodes.run(KEEP):
            self.assertEqual(told[0], OK, told)
        self.nodes.kill_all()
        shutil.rmtree(self.nodes.scratch())
        self.nodes.scratch()

    def restore(self, version="NEWEST", **more):
        told = self.nodes.run(f"""
            s = Session("series")
            tell([s.opened, s.text()])
            s.protect("field", bytes(1 << 20))
            status, version = s.restore({version})
            tell([status, version, s.text(), s.warnings(), s.buffers["field"].raw == {DATA}])
        """, **more)
        self.assertEqual(told[0][0], OK, told)
        return told[1]


class Settings(Case):
    def config(self, text):
        path = os.path.join(self.nodes.shared, "cairn.toml")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_unknown_key(self):
        path = self.config("[flush]\nfils = 2\n")
        self.open(config=path, words=["cairn.toml", "2", "fils"])

    def test_bad_value(self):
        path = self.config("[flush]\nwriters = -3\n")
        self.open(config=path, words=["cairn.toml", "2", "flush.writers"])

    def test_not_toml(self):
        path = self.config("[flush\n")
        self.open(config=path, words=["cairn.toml", "1"])

    def test_unreadable(self):
        self.open(config="/nonexistent/cairn.toml", code=NOT_FOUND, words=["/nonexistent/cairn.toml", "named by cairn_options.config_file"])
        self.open(config=self.nodes.shared, words=[self.nodes.shared])

    def test_bad_variable(self):
        self.open(environment={"flush_files": "many"}, words=["CAIRN_FLUSH_FILES", "many"])

    def test_files_outside_the_ranks(self):
        self.open(flush__files=2, words=["flush.files", "1"])


class Directories(Case):
    def test_scratch_missing(self):
        self.open(environment={"paths_scratch": "/nonexistent/scratch"}, code=NOT_FOUND, words=["/nonexistent/scratch", "scratch"])

    def test_persistent_missing(self):
        self.open(environment={"paths_persistent": "/nonexistent/there"}, code=NOT_FOUND, words=["/nonexistent/there", "persistent"])

    def test_persistent_is_a_file(self):
        path = os.path.join(self.nodes.shared, "file")
        open(path, "w").close()
        told = self.nodes.run("s = Session('series'); tell([s.opened, s.text()])", paths_persistent=path)[0]
        self.assertNotEqual(told[0], OK)
        self.says(told[1], path)

    def test_not_writable(self):
        """/proc refuses everybody, root too."""
        told = self.nodes.run("s = Session('series'); tell([s.opened, s.text()])", paths_persistent="/proc")[0]
        self.assertNotEqual(told[0], OK)
        self.says(told[1], "/proc")

    def test_same_file_system(self):
        told = self.nodes.run("s = Session('series'); tell([s.opened, s.warnings()])",
                              paths_scratch=os.path.join(self.nodes.shared))[0]
        self.assertEqual(told[0], OK, told)
        self.says(told[1], "same file system")

    def test_scratch_full(self):
        """An image of 8 TiB that is mapped but not backed; the version after it is fine."""
        told = self.nodes.run("""
            import mmap
            s = Session("series", capture__wait_ms=300)
            huge = mmap.mmap(-1, 8 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
            at = ctypes.addressof(ctypes.c_char.from_buffer(huge))
            tell([s.protect_at("huge", at, U8, [8 << 40]), s.text()])
            tell([s.checkpoint(1), s.text()])
            s.unprotect("huge")
            s.protect("field", b"small")
            tell([s.checkpoint(1), s.text()])
            tell([s.wait(1), s.text()])
        """)
        self.assertEqual(told[0][0], OK, told)
        self.fails(told[1], NO_SPACE, "scratch", self.nodes.scratch())
        self.assertEqual([t[0] for t in told[2:]], [OK, OK], told)


    def test_scratch_cap(self):
        """capture.scratch_bytes holds although the file system has more: what waits is served when a version is committed; what can
        never be served is told who holds scratch, and the setting."""
        told = self.nodes.run("""
            s = Session("series", capture__scratch_bytes="3 MiB")
            s.protect("field", bytes(1 << 20))
            for version in range(1, 7):
                tell([s.checkpoint(version), s.text()])
            tell([s.wait(6), s.text()])
        """)
        self.assertEqual([t[0] for t in told], [OK] * 7, told)
        held = sum(os.stat(os.path.join(folder, n)).st_size for folder, _, names in os.walk(self.nodes.scratch()) for n in names
                   if n.startswith("slot-"))
        self.assertTrue(1 << 20 <= held <= 3 << 20, held)

    def test_scratch_cap_too_small(self):
        told = self.nodes.run("""
            s = Session("series", capture__scratch_bytes="1.5 MiB", capture__wait_ms=300)
            s.protect("field", bytes(1 << 20))
            tell([s.checkpoint(1), s.text()])
            tell([s.wait(1), s.text()])
            tell([s.checkpoint(2), s.text()])
            s.protect("more", bytes(1 << 20))
            tell([s.checkpoint(2), s.text()])
            s.unprotect("field"); s.unprotect("more")
            s.protect("field", bytes(1 << 18))
            tell([s.checkpoint(2), s.text()])
        """)
        self.assertEqual([t[0] for t in told[:2]], [OK, OK], told)
        self.fails(told[2], NO_SPACE, self.nodes.scratch(), "series version 1 holds", "committed", "1.50 MiB", "capture.scratch_bytes")
        self.fails(told[3], NO_SPACE, self.nodes.scratch(), "larger than all", "1.50 MiB", "capture.scratch_bytes")
        self.assertEqual(told[4][0], OK, told)


class Names(Case):
    def test_names(self):
        for bad in ("a/b", "..", "../up", "", ".hidden", "x" * 129, "new\nline"):
            with self.subTest(name=bad):
                self.open(name=repr(bad), words=["name"])
        self.assertEqual(os.listdir(self.nodes.shared), ["persistent"])

    def test_null(self):
        self.open(name="None", words=["name"])


class Versions(Case):
    def test_not_increasing(self):
        told = self.nodes.run("""
            s = Session("series")
            s.protect("field", b"abc")
            for version in (0, 5, 5, 4, 6):
                tell([s.checkpoint(version), s.text()])
            tell([s.wait(6), s.text()])
        """)
        self.fails(told[0], INVALID, "0")
        self.assertEqual(told[1][0], OK, told)
        self.fails(told[2], INVALID, "5")
        self.fails(told[3], INVALID, "4", "5")
        self.assertEqual([told[4][0], told[5][0]], [OK, OK], told)

    def test_unknown_to_wait(self):
        told = self.nodes.run("s = Session('series'); tell([s.wait(7), s.text()])")
        self.fails(told[0], NOT_FOUND, "7")


class Routed(Case):
    def test_a_file_that_is_written_while_it_is_copied_is_refused(self):
        path = os.path.join(self.nodes.shared, "routed")
        with open(path, "wb") as file:
            file.write(bytes(64 << 20))
        writer = subprocess.Popen([sys.executable, "-c", f"""
import itertools, os
file = os.open({path!r}, os.O_WRONLY)
print(flush=True)
for k in itertools.count():
    os.pwrite(file, bytes([k % 251]) * 4096, 4096 * (k * 37 % 16384))
"""], stdout=subprocess.PIPE)
        self.addCleanup(writer.stdout.close)
        self.addCleanup(writer.wait)
        self.addCleanup(writer.kill)
        writer.stdout.readline()
        told = self.nodes.run(f"""
            s = Session("series")
            assert s.lib.cairn_route_file(s.handle, b"file", {path!r}.encode()) == OK
            tell([s.checkpoint(1), s.text()])
            tell([s.close()])
        """)
        self.fails(told[0], IO_ERROR, "it was written while it was copied", path)
        self.assertEqual(told[1], [OK])
        writer.kill()
        writer.wait()
        told = self.nodes.run(f"""
            s = Session("series")
            assert s.lib.cairn_route_file(s.handle, b"file", {path!r}.encode()) == OK
            tell([s.checkpoint(1), s.wait(1, wait_ms=60000), s.text()])
        """)
        self.assertEqual(told[0][:2], [OK, OK], told)


class Regions(Case):
    def test_twice(self):
        told = self.nodes.run("""
            s = Session("series")
            tell([s.protect("field", b"abc"), s.text()])
            tell([s.protect("field", b"abc"), s.text()])
        """)
        self.assertEqual(told[0][0], OK)
        self.assertEqual(told[1][0], 3)
        self.says(told[1][1], "field")

    def test_zero(self):
        told = self.nodes.run("""
            s = Session("series")
            tell([s.protect("field", b"", shape=[0]), s.text()])
            tell([s.protect("field", b"abc", shape=[1 << 40, 1 << 40]), s.text()])
            tell([s.protect_at("field", 0, U8, [3]), s.text()])
            tell([s.protect("field", b"abc", kind=99), s.text()])
        """)
        for each in told:
            self.fails(each, INVALID, "field")

    def test_unmapped(self):
        told = self.nodes.run("""
            import mmap
            s = Session("series")
            m = mmap.mmap(-1, 1 << 20)
            at = ctypes.addressof(ctypes.c_char.from_buffer(m))
            s.protect("good", b"abc")
            tell([s.protect_at("gone", at, U8, [1 << 20]), s.text()])
            ctypes.CDLL(None).munmap(ctypes.c_void_p(at), ctypes.c_size_t(1 << 20))
            tell([s.checkpoint(1), s.text()])
            s.unprotect("gone")
            tell([s.checkpoint(1), s.text()])
            tell([s.wait(1), s.text()])
            sys.stdout.flush()
            os._exit(0)
        """)
        self.assertEqual(told[0][0], OK)
        self.fails(told[1], INVALID, "gone", "mapped")
        self.assertEqual([told[2][0], told[3][0]], [OK, OK], told)


class Restore(Case):
    def restore_into(self, protect, *words, ranks=1, code=INVALID):
        self.keep_two()
        told = self.nodes.run(f"s = Session('series'); {protect}; status, v = s.restore(1); tell([status, s.text()])")
        self.fails(told[0], code, *words)

    def test_smaller(self):
        self.restore_into("s.protect('field', bytes(1000))", "field", "1000", "1048576")

    def test_other_type(self):
        self.restore_into("s.protect('field', bytes(1 << 20), F32, [1 << 18])", "field")

    def test_region_that_it_lacks(self):
        self.restore_into("s.protect('fjeld', bytes(10))", "fjeld", code=NOT_FOUND)

    def test_no_such_version(self):
        self.keep_two()
        told = self.restore("9")
        self.assertEqual(told[0], NOT_FOUND)
        self.says(told[2], "9")

    def test_nothing_there(self):
        told = self.nodes.run("s = Session('series'); s.protect('f', b'abc'); status, v = s.restore(); tell([status, s.text()])")
        self.fails(told[0], NOT_FOUND, "series")

    def test_other_number_of_ranks(self):
        self.keep_two()
        code = """
            s = Session("series", {rank}, 2)
            s.protect("field", bytes(1 << 20))
            status, v = s.restore(1)
            tell([status, s.text()])
        """
        both = [self.nodes.start(code.format(rank=r)) for r in range(2)]
        for process in both:
            told = self.nodes.told(process)
            self.fails(told[0], INVALID, "rank")


class Ranks(Case):
    def test_never_calls(self):
        told = self.nodes.run("s = Session('series', 0, 2); tell([s.opened, s.text()])", deadlines_open_ms=1500)
        self.assertIn(told[0][0], (DEADLINE, UNAVAILABLE), told)
        self.says(told[0][1], "1")

    def test_never_checkpoints(self):
        """The version is abandoned, and the one after it commits."""
        code = """
            s = Session("series", {rank}, 2)
            s.protect("field", b"abc")
            if {rank} == 0: tell([s.checkpoint(1), s.text()])
            if {rank} == 0: tell([s.wait(1), s.text()])
            hear()
            tell([s.checkpoint(2), s.text()])
            tell([s.wait(2), s.text()])
        """
        ranks = [self.nodes.start(code.format(rank=r), deadlines_version_ms=5000) for r in range(2)]  # also for the second one, on a busy machine
        first = [ranks[0].stdout.readline() for _ in range(2)]
        for process in ranks:
            process.stdin.write("\n")
            process.stdin.flush()
        import json
        self.assertEqual(json.loads(first[0])[0], OK, first)
        abandoned = json.loads(first[1])
        self.assertIn(abandoned[0], (DEADLINE, UNAVAILABLE), abandoned)
        self.says(abandoned[1], "rank", "1")
        for process in ranks:
            self.assertEqual([t[0] for t in self.nodes.told(process)], [OK, OK])


class Daemons(Case):
    def test_not_there(self):
        self.open(environment={"daemon_program": "/nonexistent/cairnd"}, code=UNAVAILABLE, words=["/nonexistent/cairnd"])

    def test_does_not_run(self):
        self.open(environment={"daemon_program": "/bin/false", "daemon_start_wait_ms": 1000}, code=UNAVAILABLE, words=["/bin/false"])

    def test_dies(self):
        """Killed between two checkpoints: the next starts another, which finishes both."""
        process = self.nodes.start(f"""
            s = Session("series")
            s.protect("field", {DATA})
            tell([s.checkpoint(1), s.text()])
            hear()
            tell([s.checkpoint(2), s.text()])
            tell([s.wait(1), s.text()])
            tell([s.wait(2), s.text()])
        """)
        process.stdout.readline()
        daemons = self.nodes.daemons()
        self.assertEqual(len(daemons), 1)
        self.nodes.kill_all(daemons)
        process.stdin.write("\n")
        process.stdin.flush()
        told = self.nodes.told(process)
        self.assertEqual([t[0] for t in told], [OK, OK, OK], told)
        self.assertNotEqual(self.nodes.daemons(), daemons)


@skipping.NEEDS_ROOT
class AnotherUser(Case):
    def test_of_another_user(self):
        """The place where the daemon of this user would be belongs to another one."""
        self.nodes.run("s = Session('series'); tell(s.opened)")
        self.nodes.kill_all()
        (root,) = [os.path.join(self.nodes.scratch(), n) for n in os.listdir(self.nodes.scratch())]
        os.chown(root, 65534, 65534)
        self.open(code=PERMISSION, words=[root])


class TwoJobs(Case):
    def test_same_name(self):
        """The later open wins; the earlier job is told, and commits nothing any more."""
        first = self.nodes.start("""
            s = Session("series", job="first")
            s.protect("field", b"first")
            tell([s.checkpoint(1), s.wait(1), s.text()])
            hear()
            tell([s.checkpoint(2), s.text()])
            tell([s.wait(2), s.text()])
        """)
        first.stdout.readline()
        second = self.nodes.run("""
            s = Session("series", job="second")
            s.protect("field", b"12345")
            status, version = s.restore()
            tell([status, version, s.text(), s.buffers["field"].raw.decode()])
            s.protect("more", b"second")
            tell([s.checkpoint(2), s.wait(2), s.text()])
        """)
        self.assertEqual(second[0], [OK, 1, second[0][2], "first"], second)
        self.assertEqual(second[1][:2], [OK, OK], second)
        first.stdin.write("\n")
        first.stdin.flush()
        told = self.nodes.told(first)
        self.assertIn(SUPERSEDED, [told[0][0], told[1][0]], told)
        third = self.nodes.run("""
            s = Session("series", job="third")
            s.protect("field", bytes(5)); s.protect("more", bytes(6))
            status, version = s.restore()
            tell([status, version, s.text(), s.buffers["more"].raw.decode()])
        """)
        self.assertEqual([third[0][0], third[0][1], third[0][3]], [OK, 2, "second"], third)

    def test_every_rank_is_told(self):
        """Also a rank on a node that the later job does not use."""
        code = """
            s = Session("series", {rank}, 2, job="first")
            s.protect("field", b"first")
            tell([s.checkpoint(1), s.wait(1), s.text()])
            hear()
            tell([s.checkpoint(2), s.text()])
            tell([s.checkpoint(2), s.text()])
        """
        first = [self.nodes.start(code.format(rank=rank), node=rank) for rank in range(2)]
        for process in first:
            told = json.loads(process.stdout.readline())
            self.assertEqual(told[:2], [OK, OK], told)
        self.assertEqual(self.nodes.run("tell(Session('series', job='second').opened)", node=2), [OK])
        for process in first:
            process.stdin.write("\n")
            process.stdin.flush()
            for told in self.nodes.told(process):
                self.fails(told, SUPERSEDED, "opened again", "process", "two jobs")


if __name__ == "__main__":
    skipping.main(verbosity=2)
