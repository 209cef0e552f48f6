"""Checkpoints without scratch (capture.mode = through), with real daemons: ranks are held until their bytes are durable, writes that fail are repeated from their
memory, and what can not be made durable is an error on all of them, with the older version as it was.

Usage: CAIRN_BUILD=build/release python3 tests/through_test.py [Class[.test]].
"""
import json
import os
import re
import signal
import time
import unittest

from support import CANCELLED, DEADLINE, INVALID, IO_ERROR, OK, UNSUPPORTED, Nodes, find

RANKS, IMAGE_BYTES, MIB = 4, 3_000_000, 1 << 20
RANK = """
def content(version):
    return bytes((version * 7 + rank * 31 + i) % 251 for i in range(1000)) * (image_bytes // 1000)
s = Session(name, rank, ranks)
assert s.opened == OK, s.text()
s.protect("small", bytes([rank] * 77))
s.protect("memory", content(0))
s.protect("last", bytes([rank, 9]))
"""
# What each checkpoint gave, its text, and whether it is committed then; of all versions first, then of what stdin says.
TAKE = RANK + """
def take(version):
    ctypes.memmove(s.buffers["memory"], content(version), image_bytes)
    status = s.checkpoint(version)
    tell([status, s.text() if status else "", status == OK and s.wait(version, wait_ms=0)])
for version in versions:
    take(version)
while order := hear():
    take(int(order))
tell(s.close())
"""
RESTORE = RANK + """
status, version = s.restore()
tell([status, version, s.buffers["memory"].raw == content(version), s.buffers["small"].raw == bytes([rank] * 77), s.buffers["last"].raw == bytes([rank, 9]), s.text()])
s.close()
"""


class Through(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(capture_mode="through", flush_io="threads", flush_attempts_max=2, daemon_idle_s=60, background_cpu="normal", background_io="normal", network_heartbeat_ms=200, network_peer_timeout_ms=4000)
        self.addCleanup(self.nodes.__exit__)
        self.writes = os.path.join(self.nodes.shared, "writes")
        os.mkdir(self.writes)
        plain, preload = self.nodes.environment, find("libpart_writes_testing.so")
        self.nodes.environment = lambda *a, **more: {**plain(*a, **more), "TEST_WRITES": self.writes, "LD_PRELOAD": " ".join(filter(None, [plain(*a, **more).get("LD_PRELOAD"), preload]))}
        self.running = []
        self.addCleanup(self.end)

    def end(self):
        for each in self.running:
            if each.poll() is None:
                each.kill()
            each.communicate()

    def writes_are(self, *what):
        for name in ("slow", "fail", "fail-once"):
            path = os.path.join(self.writes, name)
            if name in what:
                open(path, "w", encoding="utf-8").close()
            elif os.path.exists(path):
                os.remove(path)

    def begin(self, code, ranks=RANKS, versions=(), image_bytes=IMAGE_BYTES, name="series", on_a_node=2):
        head = f"ranks, versions, image_bytes, name = {ranks}, {versions}, {image_bytes}, {name!r}\n"
        self.running = [self.nodes.start(f"rank = {rank}\n" + head + code, rank // on_a_node) for rank in range(ranks)]
        return self.running

    @staticmethod
    def heard(process):
        """The next that it tells. Who hangs is ended by ctest."""
        return json.loads(process.stdout.readline() or "null")

    @staticmethod
    def order(running, version):
        for each in running:
            each.stdin.write(f"{version}\n")
            each.stdin.flush()

    def told(self, running, wait_s=120):
        """All that each told, when there are no more orders."""
        for each in running:
            each.stdin.close()
            each.stdin = None
        return [Nodes.told(each, wait_s) for each in running]

    def take(self, *versions, **more):
        for told in self.told(self.begin(TAKE, versions=versions, **more)):
            for version, one in zip(versions, told):
                self.assertEqual(one, [OK, "", OK], f"version {version}")

    def restored(self, version, **more):
        self.nodes.forget_scratch()
        for told in self.told(self.begin(RESTORE, **more)):
            self.assertEqual(told[0], [OK, version, True, True, True, ""])

    def slots(self):
        return [name for _, _, names in os.walk(self.nodes.local) for name in names if name.startswith("slot-")]

    def part_bytes(self, version):
        top = os.path.join(self.nodes.persistent, "series", str(version))
        return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(top) for name in names if not name.startswith("manifest"))

    def status(self, node=0):
        return json.loads(self.nodes.cairn("status", "--json", "--node", f"n{node}", node=node)[1])["nodes"][0]

    def becomes(self, holds, what):
        for _ in range(1200):
            if holds():
                return
            time.sleep(0.05)
        self.fail(f"never: {what}")


class Layouts(Through):
    def test_ranks_are_held_until_it_is_committed_and_there_is_no_slot(self):
        for name, more in (("aggregated", {}), ("file-per-rank", {"flush_slots": 1}), ("file-per-node", {"flush_slots": 2})):
            with self.subTest(name):
                self.nodes.settings.update(flush_layout=name, **more)
                self.take(1, 2, name=name)
                self.assertEqual(self.slots(), [])
                code, out, err = self.nodes.cairn("verify", name, "--decode")
                self.assertEqual(code, 0, out + err)
                self.restored(2, name=name)

    def begun_at_once(self, slots):
        """How many ranks' files of a node have some of their bytes at a time, at most."""
        self.nodes.settings.update(flush_layout="file-per-rank", flush_slots=slots)
        self.writes_are("slow")
        name, most = f"with-{slots}", 0
        running = self.begin(TAKE, versions=(1,), name=name, on_a_node=RANKS)
        while not any("manifest" in each for each in self.nodes.files(name)):
            sizes = []
            for folder, _, names in os.walk(os.path.join(self.nodes.persistent, name)):
                sizes += [os.path.getsize(os.path.join(folder, each)) for each in names if each.startswith("rank-")]
            most = max(most, sum(0 < size < IMAGE_BYTES for size in sizes))
            self.assertEqual([each for each in running if each.poll()], [])
            time.sleep(0.02)
        for told in self.told(running):
            self.assertEqual(told[0], [OK, "", OK])
        self.nodes.kill_daemons()  # the next one has other settings
        return most

    def test_slots_bound_how_many_images_of_a_node_stream(self):
        self.assertLessEqual(self.begun_at_once(1), 2)  # one is written, and one is made ready
        self.assertGreater(self.begun_at_once(0), 2)

    def test_codecs_and_small_images(self):
        self.nodes.settings.update(flush_codec="fast", flush_encode_at="follower", flush_merge_ranks=4)
        self.take(1, image_bytes=5000, name="small")
        self.restored(1, image_bytes=5000, name="small")
        self.take(1, name="larger")
        self.restored(1, name="larger")

    def test_sealed_is_committed(self):
        code = RANK + "tell([s.checkpoint(1), s.wait(1, SEALED, 0), s.wait(1, CAPTURED, 0), s.wait(1, COMMITTED, 0)])\n"
        for told in self.told(self.begin(code, ranks=2)):
            self.assertEqual(told, [[OK] * 4])


class Memory(Through):
    IMAGE = 96_000_000

    def test_an_image_many_times_as_large_as_all_windows(self):
        """Both ranks' images on one node, whose windows are four of 4 MiB."""
        code = RANK + """
def memory(what):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what + ":"))
ctypes.memmove(s.buffers["memory"], content(1), image_bytes)
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
status = s.checkpoint(1)
tell([status, s.text(), memory("VmHWM") - before])
"""
        grown = []
        for (told,) in self.told(self.begin(code, ranks=2, image_bytes=self.IMAGE)):
            self.assertEqual(told[:2], [OK, ""])
            grown.append(told[2])
        (daemon,) = self.nodes.daemons()
        with open(f"/proc/{daemon}/status", encoding="utf-8") as file:
            daemon_bytes = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024
        # What ranks and daemon share counts in each of them here, and in the machine once.
        self.assertLess(daemon_bytes + max(grown), 64 * MIB, f"daemon {daemon_bytes}, ranks {grown}")
        self.assertEqual(self.slots(), [])
        self.restored(1, ranks=2, image_bytes=self.IMAGE)


class Failures(Through):
    def test_a_write_that_fails_is_repeated_from_memory(self):
        self.take(1)
        self.writes_are("fail-once")
        self.take(2)
        self.assertEqual(os.listdir(self.writes), [], "one has failed")
        self.assertGreaterEqual(sum(self.status(node)["attempts_failed"] for node in (0, 1)), 1)
        self.restored(2)

    def test_a_second_failure_is_an_error_on_all_ranks(self):
        running = self.begin(TAKE, versions=(1,))
        for each in running:
            self.assertEqual(self.heard(each), [OK, "", OK])
        self.writes_are("fail")
        self.order(running, 2)
        told = [self.heard(each) for each in running]
        for one in told:
            self.assertIn(one[0], (IO_ERROR, CANCELLED), told)
            self.assertIn('version 2 of "series"', one[1])
        self.assertIn(IO_ERROR, [one[0] for one in told])
        self.assertEqual(len([name for name in self.nodes.files("series", 2) if "part-" in name]), 0, "nothing of it is left but a tombstone")
        self.writes_are()
        self.order(running, 3)  # and the next one is taken
        for each in running:
            self.assertEqual(self.heard(each), [OK, "", OK])
        self.end()
        self.restored(3)

    def test_then_the_older_version_comes_back(self):
        self.take(1)
        self.writes_are("fail")
        for told in self.told(self.begin(TAKE, versions=(2,))):
            self.assertIn(told[0][0], (IO_ERROR, CANCELLED), told)
        self.writes_are()
        self.restored(1)

    def test_a_rank_that_does_not_come_is_named(self):
        self.nodes.settings["capture_wait_ms"] = 1500
        running = self.begin(TAKE, ranks=2)
        self.order(running[:1], 1)
        status, text, _ = self.heard(running[0])
        self.assertEqual(status, DEADLINE, text)
        self.assertIn("rank 1", text)
        self.assertIn("capture.wait_ms", text)


class Killed(Through):
    def begin_slowly(self):
        self.take(1)
        self.writes_are("slow")
        running = self.begin(TAKE, versions=(2,), image_bytes=30_000_000)
        self.becomes(lambda: self.part_bytes(2) > 0, "it flows")
        return running

    def test_a_rank(self):
        running = self.begin_slowly()
        running[1].kill()
        for rank in (0, 2, 3):
            told = self.heard(running[rank])
            self.assertNotEqual(told[0], OK, told)
            self.assertIn('version 2 of "series"', told[1])
            self.assertRegex(told[1], "rank 1's image, which its process gives|a rank that was to give its image has ended")
        self.end()
        self.writes_are()
        self.restored(1)

    def daemon(self, node):
        running = self.begin_slowly()
        pid = self.status(node)["pid"]
        os.kill(pid, signal.SIGKILL)
        self.writes_are()
        told = [each[0] for each in self.told(running)]
        taken = [one[0] == OK for one in told]
        self.assertIn(taken, ([True] * RANKS, [False] * RANKS), told)
        self.restored(2, image_bytes=30_000_000) if taken[0] else self.restored(1)
        return told

    def test_a_daemon(self):
        self.daemon(1)

    def test_the_coordinators_daemon(self):
        self.daemon(0)

    def test_a_daemon_that_ranks_start_again(self):
        self.nodes.settings["daemon_restart"] = "false"
        self.daemon(1)


    def test_a_rank_that_stands_still(self):
        """Nobody waits for it for ever, and it hears so when it goes on."""
        self.nodes.settings["deadlines_io_ms"] = 2000
        running = self.begin_slowly()
        still = running.pop(1)
        still.send_signal(signal.SIGSTOP)
        self.writes_are()
        for each in running:
            self.assertNotEqual(self.heard(each)[0], OK)
        still.send_signal(signal.SIGCONT)
        self.assertNotEqual(self.heard(still)[0], OK)
        running.append(still)
        for (closed,) in self.told(running):
            self.assertEqual(closed, OK)
        self.restored(1)


class Refused(Through):
    def test_callback_regions(self):
        code = RANK + """
size = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))(lambda c, b: 0)
both = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)(lambda c, i, b: 0)
assert s.lib.cairn_protect_callbacks(s.handle, b"called", size, both, both, None) == OK
tell([s.checkpoint(1), s.text()])
s.unprotect("called")
tell(s.checkpoint(1))
"""
        ((refused, text), taken), = self.told(self.begin(code, ranks=1))
        self.assertEqual(refused, UNSUPPORTED)
        self.assertIn('region "called" is a callback region', text)
        self.assertEqual(taken, OK)

    def test_routed_files_are_read_where_they_lie(self):
        code = RANK + """
path = os.path.join(os.getcwd(), "routed")
with open(path, "wb") as file:
    file.write(content(5))
assert s.lib.cairn_route_file(s.handle, b"file", path.encode()) == OK
status = s.checkpoint(1)
os.remove(path)
tell([status, s.text(), s.restore()[0], s.text(), open(path, "rb").read() == content(5)])
"""
        self.assertEqual(self.told(self.begin(code, ranks=1)), [[[OK, "", OK, "", True]]])

    def test_what_needs_scratch(self):
        code, out, err = self.nodes.cairn("watch", "--name", "series", "--pattern", "state-{version}.dat", "--files", 1)
        self.assertEqual(code, INVALID, out + err)
        self.assertIn("cairn watch needs scratch", out + err)
        self.nodes.settings["capture_checksums"] = "capture"
        text = self.nodes.cairn("config")[2]
        self.assertIn("capture.checksums (CAIRN_CAPTURE_CHECKSUMS) must be daemon with capture.mode (CAIRN_CAPTURE_MODE)", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
