#!/usr/bin/env python3
"""The testbed against its own promises, on a small cluster: rates, files placed on servers, MPI, every fault, and that nothing is left behind."""
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import testing  # noqa: E402
import volume  # noqa: E402
from cluster import LOCAL, RUN, Cluster, Trouble, View, wait_for  # noqa: E402

TB = os.path.join(HERE, "tb")
NAME = f"test-{os.getpid()}"
PFS = volume.MOUNT
RATE = 40


def tb(*words, check=True, **more):
    done = subprocess.run([TB, "--cluster", NAME, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"tb {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done


def left_behind():
    """What still names our cluster: directories, processes that carry its hosts file, mounts."""
    found = [os.path.join(RUN, NAME)] if os.path.exists(os.path.join(RUN, NAME)) else []
    done = subprocess.run(["pgrep", "-f", os.path.join(RUN, NAME)], capture_output=True, text=True)
    found += ["process " + pid for pid in done.stdout.split()]
    with open("/proc/mounts") as f:
        found += [line for line in f if NAME in line or "glusterfs" in line]
    return found


def seconds_to_write(cluster, node, path, mib):
    begin = time.monotonic()
    cluster.run(node, "dd", "if=/dev/zero", "of=" + path, "bs=1M", f"count={mib}", "conv=fsync")
    return time.monotonic() - begin


class OneCluster(unittest.TestCase):
    """A cluster of three nodes and two servers for all tests here."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(3, RATE, 2, RATE, 256, NAME)
        cls.addClassCleanup(cls.cluster.down)
        volume.create(cls.cluster, ping_timeout_s=5)

    def test_a_card_is_as_fast_as_it_was_set(self):
        c = self.cluster
        quick = seconds_to_write(c, "n0", f"{PFS}/rate", 60)
        # Never faster than the card, whatever the machine does besides; slower by what the machine does besides.
        self.assertGreater(quick, 0.9 * 60 * 1.048576 / RATE)
        c.rate("n0", RATE / 4)
        slow = seconds_to_write(c, "n0", f"{PFS}/rate", 60)
        c.rate("n0", RATE)
        self.assertGreater(slow, 0.9 * 60 * 1.048576 / (RATE / 4))
        c.run("n0", "rm", f"{PFS}/rate")

    def test_a_file_lies_where_it_was_placed(self):
        c = self.cluster
        for server in (0, 1):
            for i in range(3):
                c.run("n1", "touch", f"{PFS}/" + volume.placed(f"file{i}-{server}", server))
                self.assertEqual(volume.server_of(c, "n2", f"{PFS}/file{i}-{server}"), f"s{server}")
        self.assertEqual(len(c.run("n0", "ls", PFS).split()), 6)
        c.run("n0", "sh", "-c", f"rm {PFS}/file*")

    def test_mpi_runs_over_the_nodes(self):
        done = subprocess.run(self.cluster.mpirun({"n0": 2, "n2": 1}, ["hostname"]), capture_output=True, text=True, timeout=60)
        self.assertEqual(sorted(done.stdout.split()), ["n0", "n0", "n2"], done.stderr)

    def test_nodes_do_not_share_memory_or_local_files(self):
        for folder in ("/dev/shm", LOCAL):
            self.cluster.run("n0", "touch", folder + "/mine")
            self.assertNotIn("mine", self.cluster.run("n1", "ls", folder))
            self.assertFalse(os.path.exists(folder + "/mine"))

    def test_a_paused_node_stands_still_and_goes_on(self):
        counting = self.cluster.start("n1", "sh", "-c", "while :; do echo; sleep 0.02; done", stdout=subprocess.PIPE)
        os.set_blocking(counting.stdout.fileno(), False)
        wait_for("the first line", counting.stdout.readline, 10)
        self.cluster.pause("n1")
        time.sleep(0.1)
        counting.stdout.read()
        time.sleep(0.3)
        self.assertFalse(counting.stdout.read())
        self.cluster.resume("n1")
        wait_for("another line", counting.stdout.readline, 10)
        counting.kill()
        counting.wait()
        counting.stdout.close()

    def test_a_cable_that_is_out_lets_nothing_through(self):
        def reaches():
            code = "import socket; socket.create_connection(('s0', 24007), 1).close()"
            return subprocess.run(self.cluster.command("n2", ["python3", "-c", code]), capture_output=True).returncode == 0
        self.assertTrue(reaches())
        self.cluster.link("n2", False)
        self.assertFalse(reaches())
        self.cluster.link("n2", True)
        wait_for("the cable to work again", reaches, 20)

    def test_lost_packets_slow_a_node_down_but_lose_no_data(self):
        c = self.cluster
        c.drop("n0", 1)
        c.run("n0", "sh", "-c", f"head -c 100000 /dev/zero | tr '\\0' x > {PFS}/dropped")
        self.assertIn("statistic", c.run("n0", "iptables", "-S", "INPUT"))
        c.drop("n0", 0)
        self.assertEqual(c.run("n1", "sh", "-c", f"tr -d x < {PFS}/dropped | wc -c; stat -c %s {PFS}/dropped").split(), ["0", "100000"])
        c.run("n0", "rm", f"{PFS}/dropped")

    def test_a_full_server_says_so(self):
        c = self.cluster
        c.fill("s1", 4 << 20)
        write = ["dd", "if=/dev/zero", f"of={PFS}/" + volume.placed("big", 1), "bs=1M", "count=32", "conv=fsync"]
        done = subprocess.run(c.command("n0", write), capture_output=True, text=True)
        self.assertIn("No space left", done.stderr)
        c.run("n0", "rm", "-f", f"{PFS}/big")
        c.fill("s1", None)
        # A server looks at its free space every few seconds.
        wait_for("room on s1", lambda: subprocess.run(c.command("n0", write), capture_output=True).returncode == 0, 30)
        c.run("n0", "rm", f"{PFS}/big")

    def test_a_crashed_node_boots_with_its_disk_and_nothing_else(self):
        c = self.cluster
        c.run("n0", "sh", "-c", f"for i in 0 1; do echo kept > {PFS}/$i@gv-dht:gv-client-$i; done")
        c.run("n1", "sh", "-c", f"touch /dev/shm/lost {LOCAL}/kept")
        running = c.start("n1", "sleep", "1000")
        for node in ("n1", "s1"):
            c.crash(node)
            self.assertEqual(c.node(node).processes(), [])
        self.assertNotEqual(running.wait(10), 0)
        for node in ("s1", "n1"):
            volume.boot(c, node)
        self.assertEqual(c.run("n1", "ls", "/dev/shm", LOCAL + "/kept").split(), [LOCAL + "/kept", "/dev/shm:"])
        read = ["sh", "-c", f"cat {PFS}/0 {PFS}/1"]
        for node in ("n1", "n0"):  # clients find a server again after some seconds
            wait_for("both files", lambda: subprocess.run(c.command(node, read), capture_output=True).stdout == b"kept\nkept\n", 30)
        c.run("n0", "rm", f"{PFS}/0", f"{PFS}/1")

    def test_the_name_is_taken(self):
        with self.assertRaisesRegex(Trouble, "up already"):
            Cluster(1, 0, 0, 0, 16, NAME)

    def test_words_that_mean_nothing(self):
        self.assertIn("there is no node n9", tb("exec", "n9", "true", check=False).stderr)
        self.assertIn("and which command", tb("exec", "n0", check=False).stderr)
        with self.assertRaisesRegex(Trouble, "no cluster"):
            View("another")


class ComingAndGoing(unittest.TestCase):
    def tearDown(self):
        tb("down", check=False)
        self.assertEqual(left_behind(), [])

    def test_up_and_down(self):
        self.assertIn("n1", tb("up", "--compute", "2", "--servers", "1").stdout)
        self.assertEqual(tb("exec", "n1", "hostname").stdout.strip(), "n1")
        self.assertEqual(tb("exec", "n1", "sh", "-c", "exit 7", check=False).returncode, 7)
        tb("kill", "n1")
        self.assertIn("dead", tb("ls").stdout)
        tb("down")
        self.assertEqual(left_behind(), [])

    def test_what_was_paused_goes_too(self):
        with Cluster(1, 0, 0, 0, 16, NAME) as cluster:
            program = cluster.start("n0", "sleep", "1000")
            wait_for("the program", lambda: cluster.node("n0").processes(), 10)
            cluster.pause("n0")
            wait_for("its nsenter to stop with it", lambda: " T " in Path(f"/proc/{program.pid}/stat").read_text(), 10)
        self.assertIsNotNone(program.wait(10))

    def test_run_takes_it_down_and_hands_the_exit_code_on(self):
        command = "{} exec n0 hostname; exit 3".format(TB)
        done = tb("run", "--compute", "1", "--servers", "0", "--", "sh", "-c", command, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (3, "n0"), done.stderr)
        self.assertEqual(left_behind(), [])

    def test_a_killed_keeper_takes_all_with_it(self):
        tb("up", "--compute", "2", "--servers", "1")
        pids = [node.pid for node in View(NAME).nodes.values()]
        os.kill(View(NAME).keeper, signal.SIGKILL)
        wait_for("the end of all nodes", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 20)
        tb("up", "--compute", "1", "--servers", "0")  # takes the name over

    def test_a_number_that_another_process_has_by_now_is_left_alone(self):
        tb("up", "--compute", "2", "--servers", "0")
        path = os.path.join(RUN, NAME, "cluster.json")
        with open(path) as f:
            whole = f.read()
        state = json.loads(whole)
        with subprocess.Popen(["sleep", "1000"]) as stranger:
            state["nodes"]["n1"]["pid"] = state["keeper"] = stranger.pid
            with open(path, "w") as f:
                json.dump(state, f)
            self.assertIn("n1 is dead", tb("pause", "n1", check=False).stderr)
            self.assertIn("is up already", tb("down", check=False).stderr)  # the real keeper has the lock
            self.assertIsNone(stranger.poll())
            stranger.kill()
        with open(path, "w") as f:
            f.write(whole)

    def test_interrupted_at_any_moment(self):
        moments = random.Random(7)
        for _ in range(6):
            started = subprocess.Popen([TB, "--cluster", NAME, "run", "--compute", "2", "--servers", "1", "--", "sleep", "5"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(moments.uniform(0.1, 5))
            started.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM]))
            started.wait(60)
            self.assertEqual(left_behind(), [])

    def test_only_root(self):
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, TB, "up"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run it as root", done.stderr)


if __name__ == "__main__":
    testing.main()
