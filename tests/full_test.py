"""Persistent that is full to its last block: what is committed is restored, extracted and removed by Cairn's own means.

Usage: CAIRN_BUILD=build/release python3 tests/full_test.py [Class[.test]]; exit code 77 where nothing may be mounted. In a namespace of its own, so that
no mount outlives it.
"""
import os
import shutil
import subprocess
import sys
import unittest

import skipping
from mount_test import mount_tmpfs, private_mounts, unmount
from support import NO_SPACE, OK, Nodes

IMAGE_BYTES = 200_000
JOB = f"""
s = Session("series")
assert s.opened == OK, s.text()
s.protect("memory", bytes({IMAGE_BYTES}))
for version in range(1, 5):
    ctypes.memmove(s.buffers["memory"], bytes([version]) * {IMAGE_BYTES}, {IMAGE_BYTES})
    assert s.checkpoint(version) == OK, s.text()
    assert s.wait(version) == OK, s.text()
tell(s.close())
"""
RESTART = f"""
s = Session("series")
if s.opened != OK:
    tell([s.opened, s.text()])
    sys.exit()
s.protect("memory", bytes({IMAGE_BYTES}))
status, version = s.restore()
tell([status, version, s.buffers["memory"].raw == bytes([version]) * {IMAGE_BYTES}, s.text()])
s.close()
"""


class Full(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(flush_files=1, daemon_idle_s=60, flush_block_bytes=4096)
        self.addCleanup(self.nodes.__exit__)
        mount_tmpfs(self.nodes.persistent, "8m")
        self.addCleanup(unmount, self.nodes.persistent)
        self.assertEqual(self.nodes.run(JOB), [OK])
        self.reserve = os.path.join(self.nodes.persistent, ".cairn", "reserve")
        self.assertEqual(os.path.getsize(self.reserve), 1 << 20)

    def fill(self):
        """Nothing but persistent is left of the job, and there is no block free."""
        self.nodes.cairn("stop")
        self.nodes.kill_daemons()
        shutil.rmtree(self.nodes.local)
        self.fill_again()

    def fill_again(self):
        with open(os.path.join(self.nodes.persistent, "others"), "ab", buffering=0) as file:
            try:
                while file.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass
        self.assertEqual(self.free_bytes(), 0)

    def free_bytes(self):
        room = os.statvfs(self.nodes.persistent)
        return room.f_bavail * room.f_frsize

    def cairn(self, *arguments, code=OK, **more):
        got, out, err = self.nodes.cairn(*arguments, **more)
        self.assertEqual(got, code, out + err)
        return out + err

    def extracted(self, version):
        path = os.path.join(self.nodes.shared, f"image-{version}")
        self.cairn("extract", "series", version, "--rank", 0, "--output", path)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), bytes([version]) * IMAGE_BYTES)

    def listed(self):
        """Every file under persistent but the jobs' records, with its size and when it was last changed."""
        found = {}
        for folder, _, names in os.walk(self.nodes.persistent):
            for name in names:
                status = os.stat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = (status.st_size, status.st_mtime_ns)
        return found

    def test_a_restart_restores(self):
        self.fill()
        before = len(self.nodes.files("series"))
        self.assertEqual(self.nodes.run(RESTART), [[OK, 4, True, ""]])
        self.assertEqual(len(self.nodes.files("series")), before)
        self.nodes.cairn("stop")
        for _ in range(5):  # what an open takes out of the reserve is not lost to the next one
            self.assertEqual(self.nodes.run(RESTART)[0][:3], [OK, 4, True])
        self.assertGreater(os.path.getsize(self.reserve), 512 << 10)

    def test_looking_writes_nothing(self):
        self.fill()
        before = self.listed()
        for version in (1, 4):
            self.extracted(version)
        for command in ("ls", "verify", "show"):
            self.cairn(command, "series")
        self.assertEqual(self.listed(), before)

    def test_removing_makes_room(self):
        self.fill()
        self.cairn("rm", "series", 1)
        self.assertGreater(self.free_bytes(), 0)
        self.assertEqual(os.path.getsize(self.reserve), 1 << 20, "and the reserve is whole again")
        self.fill_again()
        self.assertIn("beyond the retention rule", self.cairn("gc", "series", "--age", "0s", retention_persistent_last=2))
        self.assertEqual(len(self.nodes.files("series", 2)), 0)
        self.assertEqual(self.nodes.run(RESTART), [[OK, 4, True, ""]])

    def test_without_the_reserve(self):
        """Nothing new fits: a restart says so, and removing works all the same."""
        self.fill()
        os.remove(self.reserve)
        self.fill_again()
        status, text = self.nodes.run(RESTART)[0]
        self.assertEqual(status, NO_SPACE, text)
        self.assertIn("`cairn rm`", text)
        self.assertFalse([name for name in os.listdir(os.path.join(self.nodes.persistent, "series", "lineage")) if name.startswith(".tmp-")])
        self.extracted(4)
        self.cairn("rm", "series", 1)
        self.assertEqual(len(self.nodes.files("series", 1)), 0)
        self.assertTrue(os.path.exists(self.reserve), "of what became free")
        self.assertEqual(self.nodes.run(RESTART), [[OK, 4, True, ""]])

    def test_gc_without_the_reserve(self):
        self.fill()
        os.remove(self.reserve)
        self.fill_again()
        self.cairn("gc", "series", "--age", "0s", retention_persistent_last=1)
        for version in (1, 2, 3):
            self.assertEqual(self.nodes.files("series", version), [])
        self.assertGreater(os.path.getsize(self.reserve), 0, "of what became free")
        self.assertEqual(self.nodes.run(RESTART), [[OK, 4, True, ""]])

    def test_no_inode_is_free(self):
        """Room there is, and yet no file can be made: the reason is named."""
        self.nodes.cairn("stop")
        counted = os.statvfs(self.nodes.persistent)
        subprocess.run(["mount", "-o", f"remount,nr_inodes={counted.f_files - counted.f_ffree}", self.nodes.persistent], check=True)
        status, text = self.nodes.run(RESTART)[0]
        self.assertEqual(status, NO_SPACE, text)
        self.assertIn("no inode free", text)
        self.extracted(4)
        self.cairn("rm", "series", 1, 2, 3)
        self.assertEqual(self.nodes.run(RESTART)[0][:3], [OK, 4, True])

    def precious(self, path):
        """Somebody else's, under another name in the place of one of Cairn's files."""
        content = os.urandom(1 << 20)
        with open(path, "wb") as file:
            file.write(content)

        def check():
            with open(path, "rb") as file:
                self.assertEqual(file.read(), content)
        return check

    def test_what_stands_in_the_reserves_place_is_not_cut(self):
        """A link to somebody's file: there is no room then, and the file stays as it is."""
        for link in (os.symlink, os.link):
            with self.subTest(link.__name__):
                self.setUp()
                os.remove(self.reserve)
                path = os.path.join(self.nodes.persistent, "precious")
                check = self.precious(path)
                link(path, self.reserve)
                self.fill()
                self.assertEqual(self.nodes.run(RESTART)[0][0], NO_SPACE)
                self.cairn("rm", "series", 1)
                self.assertEqual(self.nodes.run(RESTART), [[OK, 4, True, ""]])
                check()

    def test_a_manifest_with_another_name_is_not_written_over(self):
        """As in a copy made of hard links (`cp -al`), or where it is a link: the copy stays whole when the version is removed without any room."""
        for link in (os.symlink, os.link):
            with self.subTest(link.__name__):
                self.setUp()
                (manifest,) = [path for path in self.nodes.files("series", 1) if "manifest" in path]
                copy = os.path.join(self.nodes.persistent, "copy")
                os.rename(manifest, copy)
                link(copy, manifest)
                with open(copy, "rb") as file:
                    content = file.read()
                os.remove(self.reserve)
                self.fill()
                self.cairn("rm", "series", 1)
                self.assertEqual([path for path in self.nodes.files("series", 1) if "part" in path], [])
                with open(copy, "rb") as file:
                    self.assertEqual(file.read(), content)


if __name__ == "__main__":
    if not private_mounts():
        skipping.leave("Full", "needs root: mount(2) is not allowed here")
    skipping.main(verbosity=2)
