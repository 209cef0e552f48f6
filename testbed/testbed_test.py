#!/usr/bin/env python3
"""The testbed against its own promises, on a small cluster: rates, files placed on servers, MPI, every fault, and that nothing is left behind."""
import contextlib
import json
import os
import random
import shutil
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
from cluster import HEAD, LOCAL, RUN, Cluster, Trouble, View, born, wait_for, zombie  # noqa: E402

TB = os.path.join(HERE, "tb")
NAME = f"test-{os.getpid()}"
PFS = volume.MOUNT
RATE = 40


def tb(*words, check=True, **more):
    done = subprocess.run([TB, "--cluster", NAME, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)
    if check and done.returncode != 0:
        raise AssertionError(f"tb {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done


def inhabitants(cluster):
    """(process id, birth) of all that is in a network namespace of the cluster, on its login node, too."""
    spaces = {os.readlink(f"/proc/{node.pid}/ns/net") for node in cluster.nodes.values() if node.alive()}
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{entry}/ns/net") in spaces:
                found.add((int(entry), born(entry)))
        except OSError:
            pass
    return found


def left_behind(were=()):
    """What still names our cluster: directories, processes that carry its hosts file or that were in it, mounts."""
    found = [os.path.join(RUN, NAME)] if os.path.exists(os.path.join(RUN, NAME)) else []
    done = subprocess.run(["pgrep", "-f", os.path.join(RUN, NAME)], capture_output=True, text=True)
    found += ["process " + pid for pid in done.stdout.split()]
    found += [f"inhabitant {pid}" for pid, birth in were if born(pid) == birth and not zombie(pid)]
    with open("/proc/mounts") as f:
        found += [line for line in f if NAME in line or "glusterfs" in line]
    return found


def comm(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()


def stopped(pid):
    return " T " in Path(f"/proc/{pid}/stat").read_text()


def seconds(cluster, node, *command):
    begin = time.monotonic()
    cluster.run(node, *command)
    return time.monotonic() - begin


class OneCluster(unittest.TestCase):
    """A cluster of three nodes and two servers for all tests here."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(3, RATE, 2, RATE, 256, NAME)
        cls.addClassCleanup(cls.cluster.down)
        volume.create(cls.cluster, ping_timeout_s=5)

    def test_a_card_is_as_fast_as_it_was_set(self):
        c, bytes_, slower = self.cluster, 60 << 20, 4

        def shown():
            return float(next(line for line in tb("ls").stdout.splitlines() if line.startswith("n0 ")).split()[2])

        def send():
            return seconds(c, "n0", "dd", "if=/dev/zero", f"of={PFS}/rate", "bs=1M", f"count={bytes_ >> 20}", "conv=fsync")

        def receive():
            volume.remount(c, "n0")  # or it would be read from memory
            return seconds(c, "n0", "dd", f"if={PFS}/rate", "of=/dev/null", "bs=1M")

        c.run("n0", "touch", f"{PFS}/" + volume.placed("rate", 1))
        for transfer in (send, receive):
            self.assertEqual(shown(), RATE)
            quick = transfer()
            # Never faster than the card, whatever the machine does besides; slower by what the machine does besides.
            self.assertGreater(quick, 0.9 * bytes_ / (RATE * 1e6))
            tb("rate", "n0", str(RATE / slower))
            self.assertEqual(shown(), RATE / slower)
            slow = transfer()
            c.rate("n0", RATE)
            self.assertGreater(slow, 0.9 * bytes_ / (RATE / slower * 1e6))
            self.assertLess(slow, 2 * slower * quick)
        c.rate("n0", 0)
        self.assertEqual(shown(), 0)
        c.rate("n0", RATE)
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
            wait_for("its nsenter to stop with it", lambda: stopped(program.pid), 10)
        self.assertIsNotNone(program.wait(10))

    def test_run_takes_it_down_and_hands_the_exit_code_on(self):
        command = "{} exec n0 hostname; exit 3".format(TB)
        done = tb("run", "--compute", "1", "--servers", "0", "--", "sh", "-c", command, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (3, "n0"), done.stderr)
        self.assertEqual(left_behind(), [])

    def populated(self):
        """A cluster with a program on a node, one on a node that is paused, and one on the login node; and who is in it."""
        tb("up", "--compute", "2", "--servers", "1")
        view = View(NAME)
        for node in ("n0", HEAD, "n1"):
            program = view.start(node, "sleep", "1000", start_new_session=True)
            self.addCleanup(program.wait, 10)
            wait_for("the program", lambda: "sleep" in {comm(pid) for pid in [program.pid, *(view.node(node).processes() if node != HEAD else ())]}, 10)
        view.pause("n1")
        wait_for("its nsenter to stop with it", lambda: stopped(program.pid), 10)
        return view, inhabitants(view)

    def test_what_runs_on_the_login_node_goes_too(self):
        _, were = self.populated()
        tb("down")
        self.assertEqual(left_behind(were), [])

    def test_a_killed_keeper_takes_all_with_it(self):
        view, were = self.populated()
        os.kill(view.keeper, signal.SIGKILL)
        wait_for("the end of all", lambda: not left_behind(were), 30)
        tb("up", "--compute", "1", "--servers", "0")

    def test_what_a_killed_keeper_left_is_swept(self):
        for name in (NAME, NAME + "-sibling"):
            place = os.path.join(RUN, name)
            self.addCleanup(shutil.rmtree, place, ignore_errors=True)
            os.makedirs(place)
            Path(place, "lock").write_text("1 1")
            Path(place, "n0.log").touch()
        tb("down")  # without a cluster.json
        self.assertFalse(os.path.exists(os.path.join(RUN, NAME)))
        self.assertIn("no cluster", tb("down", check=False).stderr)
        tb("up", "--compute", "1", "--servers", "0")
        self.assertFalse(os.path.exists(os.path.join(RUN, NAME + "-sibling")))

    def test_down_while_it_comes_up(self):
        started = subprocess.Popen([TB, "--cluster", NAME, "up", "--servers", "4"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lock = Path(RUN, NAME, "lock")
        wait_for("a keeper", lambda: lock.exists() and lock.read_text(), 30)
        tb("down")
        _, said = started.communicate(timeout=30)
        self.assertEqual(started.returncode, 1, said)
        self.assertEqual(left_behind(), [])

    def test_a_number_that_another_process_has_by_now_is_left_alone(self):
        tb("up", "--compute", "2", "--servers", "0")
        path = os.path.join(RUN, NAME, "cluster.json")
        with open(path) as f:
            whole = f.read()
        state = json.loads(whole)
        with subprocess.Popen(["sleep", "1000"]) as stranger:
            state["nodes"]["n1"]["pid"] = stranger.pid
            lock = Path(RUN, NAME, "lock")
            says = lock.read_text()
            lock.write_text(f"{stranger.pid} {says.split()[1]}")
            with open(path, "w") as f:
                json.dump(state, f)
            self.assertIn("n1 is dead", tb("pause", "n1", check=False).stderr)
            self.assertIn("not by the process that it names", tb("down", check=False).stderr)
            self.assertIsNone(stranger.poll())
            stranger.kill()
            lock.write_text(says)
        with open(path, "w") as f:
            f.write(whole)

    def test_interrupted_at_any_moment(self):
        moments = random.Random(7)
        size = ["--compute", "2", "--servers", "1"]
        for words in [["run", *size, "--", "sleep", "5"], ["up", *size]] * 4:
            started = subprocess.Popen([TB, "--cluster", NAME, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(moments.uniform(0.1, 5))
            were = set()
            with contextlib.suppress(Trouble):
                were = inhabitants(View(NAME))
            for _ in range(3):  # whoever is impatient does not interrupt the end
                started.send_signal(moments.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
                time.sleep(moments.choice([0, 0.02, 0.3]))
            started.wait(60)
            if words[0] == "up" and started.returncode == 0:  # it was quicker
                tb("down")
            self.assertEqual(left_behind(were), [], words)

    def test_interrupted_while_it_is_shown(self):
        """The cluster is up by then, and stays; or the end comes first, and nothing is left. The keeper's output is closed right before it says "up"."""
        for pause in (0, 0.005, 0.02, 0.05):
            started = subprocess.Popen([TB, "--cluster", NAME, "up", "--compute", "2", "--servers", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            wait_for("a keeper that is done", lambda: self.keepers_output() == os.devnull, 30)
            time.sleep(pause)
            started.send_signal(signal.SIGTERM)
            _, said = started.communicate(timeout=60)
            if started.returncode == 0:
                tb("down")
            else:
                self.assertIn(b"interrupted", said)
            self.assertEqual(left_behind(), [])

    def keepers_output(self):
        with contextlib.suppress(OSError, ValueError, IndexError):  # the lock is taken before its file says whose it is
            return os.readlink(f"/proc/{int(Path(RUN, NAME, 'lock').read_text().split()[0])}/fd/2")

    def test_only_root(self):
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, TB, "up"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run it as root", done.stderr)

    def test_root_in_name_only(self):
        powerless = ["setpriv", "--bounding-set", "-sys_admin,-net_admin", "--inh-caps", "-sys_admin,-net_admin", sys.executable]
        done = subprocess.run([*powerless, TB, "--cluster", NAME, "up"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("CAP_SYS_ADMIN", done.stderr)
        done = subprocess.run([*powerless, "-B", os.path.realpath(__file__)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 77, done.stderr)


if __name__ == "__main__":
    testing.main()
