"""A caller that does everything wrong: every call comes back with a status and a text, nothing crashes, nothing hangs. Each test is a
process of its own, whose death or silence is its failure.

Usage: CAIRN_BUILD=build/release python3 tests/hostile_test.py [Class[.test]]
"""
import textwrap
import unittest

from support import CANCELLED, INVALID, NO_SPACE, NOT_FOUND, OK, Nodes

# The calls behind a session, with arguments for each; every one of them returns a status.
CALLS = """
    lib = ctypes.CDLL(find("libcairn.so"))
    lib.cairn_last_error.restype = lib.cairn_warnings.restype = lib.cairn_status_name.restype = ctypes.c_char_p
    def u64(n): return ctypes.c_uint64(n)
    null = ctypes.c_void_p()
    CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    SIZE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64))
    def every_call(handle):
        return {
            "protect": lambda: lib.cairn_protect(handle, b"x", null, 2, 1, null),
            "protect_nothing": lambda: lib.cairn_protect(handle, null, null, -7, 1 << 31, null),
            "protect_callbacks": lambda: lib.cairn_protect_callbacks(handle, null, null, null, null, null),
            "route_file": lambda: lib.cairn_route_file(handle, null, null),
            "describe": lambda: lib.cairn_describe(handle, null, u64(NEWEST), -1, 1 << 31, null, null),
            "describe_nothing": lambda: lib.cairn_describe(handle, b"x", u64(0), 12, 1, (ctypes.c_uint64 * 1)(1), null),
            "unprotect": lambda: lib.cairn_unprotect(handle, null),
            "checkpoint_0": lambda: lib.cairn_checkpoint(handle, u64(0)),
            "checkpoint_newest": lambda: lib.cairn_checkpoint(handle, u64(NEWEST)),
            "wait": lambda: lib.cairn_wait(handle, u64(9), 3, u64(NEWEST)),
            "wait_level": lambda: lib.cairn_wait(handle, u64(1), 99, u64(0)),
            "test": lambda: lib.cairn_test(handle, u64(NEWEST), -1),
            "cancel": lambda: lib.cairn_cancel(handle, u64(NEWEST)),
            "newest": lambda: lib.cairn_newest(handle, null),
            "newest_not_above": lambda: lib.cairn_newest_not_above(handle, u64(0), null),
            "list": lambda: lib.cairn_list(handle, null, ctypes.c_size_t(NEWEST), null),
            "region_bytes": lambda: lib.cairn_region_bytes(handle, u64(NEWEST), null, null),
            "regions": lambda: lib.cairn_regions(handle, u64(NEWEST), null, ctypes.c_size_t(NEWEST), null),
            "restore_7": lambda: lib.cairn_restore(handle, u64(7), null),
            "restore_regions": lambda: lib.cairn_restore_regions(handle, u64(NEWEST), null, ctypes.c_size_t(NEWEST), null),
        }
"""


class Calls(unittest.TestCase):
    def setUp(self):
        self.nodes = Nodes(capture_wait_ms=500)
        self.addCleanup(self.nodes.__exit__)

    def run_calls(self, code, **more):
        """[name, status, text] of every call."""
        return self.nodes.run(textwrap.dedent(CALLS) + textwrap.dedent(code), **more)

    def all_refused(self, told, *codes):
        self.assertTrue(told)
        for name, status, text in told:
            self.assertIn(status, codes, (name, status, text))
            self.assertTrue(0 < len(text) < 2000, (name, status, text))

    def test_no_session(self):
        told = self.run_calls("""
            for name, call in every_call(null).items():
                tell([name, call(), lib.cairn_last_error(null).decode()])
            tell(["close", lib.cairn_close(null), lib.cairn_warnings(null).decode()])
            for number in (-1, 0, 13, 14, 2**31 - 1):
                tell(["name", number, lib.cairn_status_name(number).decode()])
        """)
        self.all_refused(told[:-6], INVALID)
        self.assertEqual(told[-6], ["close", OK, ""])
        self.assertEqual([t[2] for t in told[-5:]], ["unknown", "ok", "internal", "unknown", "unknown"])

    def test_open(self):
        told = self.run_calls("""
            handle = ctypes.c_void_p(77)
            here = ctypes.byref(handle)
            def opened(name, *more, place=here):
                status = lib.cairn_open(ctypes.byref(Options(*more)) if more else null, place)
                tell([name, status, lib.cairn_last_error(null).decode()])
            size = ctypes.sizeof(Options)
            array = lambda *texts: (ctypes.c_char_p * (len(texts) + 1))(*texts, None)
            opened("no options")
            opened("no place", size, b"a", 0, 1, None, None, None, None, place=null)
            opened("no size", 0, b"a", 0, 1, None, None, None, None)
            opened("another size", 1 << 40, b"a", 0, 1, None, None, None, None)
            opened("no name", size, None, 0, 1, None, None, None, None)
            opened("huge name", size, b"n" * (1 << 20), 0, 1, None, None, None, None)
            opened("rank", size, b"a", 5, 2, None, None, None, None)
            opened("ranks", size, b"a", 0, 2**32 - 1, b"job", None, None, None)
            opened("no job", size, b"a", 0, 2, None, None, None, None)
            opened("huge job", size, b"a", 0, 2, b"j" * (1 << 20), None, None, None)
            opened("job elsewhere", size, b"a", 0, 2, b"../../etc", None, None, None)
            opened("huge node", size, b"a", 0, 1, None, b"n" * (1 << 20), None, None)
            opened("huge override", size, b"a", 0, 1, None, None, None, array(b"x" * (1 << 20)))
            opened("empty override", size, b"a", 0, 1, None, None, None, array(b""))
            opened("no exchange", size, b"a", 0, 1, None, None, b"/dev/zero", None)
            tell(["exchange", lib.cairn_open_exchange(null, null, null), lib.cairn_last_error(null).decode()])
            tell(["handle", INVALID, str(handle.value)])
        """)
        self.all_refused(told, INVALID)
        self.assertEqual(told[-1][2], "None")  # NULL, whatever it was before

    def test_in_any_order(self):
        told = self.run_calls("""
            s = Session("series")
            for name, call in every_call(s.handle).items():
                tell([name, call(), lib.cairn_last_error(s.handle).decode()])
            tell(["fine", s.checkpoint(1), "nothing protected"])
            tell(["fine", s.restore()[0], s.text()])
            tell(["fine", s.protect("field", b"123"), ""])
            tell(["fine", s.checkpoint(2), s.text()])
            tell(["fine", s.checkpoint(NEWEST - 1), s.text()])
            tell(["fine", s.wait(NEWEST - 1), s.text()])
            tell(["fine", s.restore()[0], s.text()])
            tell(["fine", s.close(), ""])
        """)
        self.all_refused([t for t in told if t[0] != "fine"], INVALID, NOT_FOUND)
        for name, status, text in told[-8:]:
            self.assertEqual((name, status), ("fine", OK), text)

    def test_after_close(self):
        told = self.run_calls("""
            s = Session("series")
            closed = s.handle
            s.close()
            for handle in (closed, ctypes.c_void_p(8), ctypes.c_void_p(2**64 - 1)):
                for name, call in every_call(handle).items():
                    tell([name, call(), lib.cairn_last_error(handle).decode()])
                tell(["close", lib.cairn_close(handle), lib.cairn_last_error(handle).decode()])
                tell(["warnings", INVALID, lib.cairn_warnings(handle).decode() or "none"])
        """)
        self.all_refused(told, INVALID)

    def test_inside_a_callback(self):
        told = self.run_calls("""
            s = Session("series")
            s.protect("field", b"123")
            calls = every_call(s.handle)
            inside = []
            def all_calls(*_):
                for name, call in calls.items():
                    inside.append([name, call(), lib.cairn_last_error(s.handle).decode()])
                inside.append(["checkpoint", s.checkpoint(5), s.text()])
                inside.append(["close", lib.cairn_close(s.handle), s.text()])
                return 0
            def size(_, bytes):
                bytes[0] = 3
                return all_calls()
            kept = SIZE(size), CALLBACK(all_calls), CALLBACK(all_calls)
            tell(["fine", lib.cairn_protect_callbacks(s.handle, b"called", *kept, null), s.text()])
            tell(["fine", s.checkpoint(1), s.text()])
            tell(["fine", s.restore()[0], s.text()])
            for each in inside:
                tell(each)
        """)
        for name, status, text in told[:3]:
            self.assertEqual(status, OK, text)
        self.assertEqual(len(told), 3 + 3 * 22)
        self.all_refused(told[3:], INVALID)

    def test_callbacks_that_lie(self):
        told = self.run_calls("""
            s = Session("series")
            def protect(name, bytes, code=0):
                def size(_, place):
                    place[0] = bytes
                    return code
                kept = SIZE(size), CALLBACK(lambda *_: code), CALLBACK(lambda *_: code)
                s.buffers[name] = kept
                lib.cairn_protect_callbacks(s.handle, name.encode(), *kept, null)
            for name, bytes in (("endless", 2**64 - 1), ("huge", 2**62), ("large", 2**50)):
                protect(name, bytes)
                tell([name, s.checkpoint(1), s.text()])
                s.unprotect(name)
            protect("refuses", 8, code=-5)
            tell(["refuses", s.checkpoint(1), s.text()])
            s.unprotect("refuses")
            protect("empty", 0)
            tell(["fine", s.checkpoint(1), s.text()])
        """)
        self.all_refused(told[:-1], INVALID, NO_SPACE, CANCELLED)
        self.assertEqual(told[-1][1], OK, told)

    def test_regions(self):
        told = self.run_calls("""
            s = Session("series")
            buffer = ctypes.create_string_buffer(64)
            def protect(name, region, type=2, ndim=1, shape=(64,), at=ctypes.addressof(buffer)):
                dims = (ctypes.c_uint64 * len(shape))(*shape)
                status = lib.cairn_protect(s.handle, region, ctypes.c_void_p(at), type, ctypes.c_uint32(ndim), dims)
                tell([name, status, s.text()])
            protect("empty name", b"")
            protect("huge name", b"r" * (1 << 20))
            protect("not UTF-8", b"\\xff\\xfe")
            protect("control", b"a\\x1b[2J")
            protect("dots", b"a/../b")
            protect("type", b"x", type=2**31 - 1)
            protect("no dimension", b"x", ndim=0)
            protect("dimensions", b"x", ndim=2**32 - 1)
            protect("zero", b"x", ndim=2, shape=(5, 0))
            protect("overflow", b"x", ndim=2, shape=(2**63, 4))
            protect("all memory", b"x", shape=(2**64 - 1,))
            for at in (1, 2**47, 2**64 - 64):
                lib.cairn_protect(s.handle, b"x", ctypes.c_void_p(at), 2, 1, (ctypes.c_uint64 * 1)(64))
                tell(["address", s.checkpoint(1), s.text()])
                tell(["address", s.restore(3)[0], s.text()])
                s.unprotect("x")
            for path in (b"/", b"/dev/zero", b"p" * 100000):
                lib.cairn_route_file(s.handle, b"x", path)
                tell(["route", s.checkpoint(1), s.text()])
                s.unprotect("x")
            tell(["fine", s.checkpoint(1), s.text()])
        """)
        for name, status, text in told[:-1]:
            self.assertNotEqual(status, OK, name)
            self.assertTrue(text, name)
            self.assertNotIn("\x1b", text)
        self.assertEqual(told[-1][1], OK, told)

    def test_closed_by_another_thread(self):
        """Not allowed, and still no crash: calls under way end, calls that come later are refused."""
        told = self.run_calls("""
            import threading
            for round in range(5):
                s = Session("series")
                handle = s.handle
                s.protect("field", bytes(1 << 20))
                seen = set()
                def go_on(call):
                    while True:
                        status = call()
                        seen.add(status)
                        if status == INVALID:
                            break
                version = iter(range(round * 100000 + 1, 1 << 40))
                threads = [threading.Thread(target=go_on, args=(call,)) for call in (
                    lambda: lib.cairn_checkpoint(handle, u64(next(version))),
                    lambda: lib.cairn_wait(handle, u64(round * 100000 + 1), 3, u64(50)),
                    lambda: lib.cairn_newest(handle, ctypes.byref(ctypes.c_uint64())))]
                for thread in threads:
                    thread.start()
                time.sleep(0.2)
                status = lib.cairn_close(handle)
                for thread in threads:
                    thread.join()
                tell([status, sorted(seen)])
        """)
        self.assertEqual([t[0] for t in told], [OK] * 5, told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
