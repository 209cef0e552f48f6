"""Nodes with two network cards of different rate, as namespaces with two links each, with real daemons: the fastest one over which they reach each other
carries the data, a setting takes another, and one that leads nowhere costs no version. Needs root.

Usage: CAIRN_BUILD=build/release python3 tests/cards_test.py [Class[.test]]
"""
import json
import os
import subprocess
import sys
import time
import unittest

import skipping
from support import OK, Nodes, find

BYTES = 12_000_000
ADDRESS = {"slow": "10.66.1.", "fast": "10.66.2."}
RANK = """
s = Session("series", {rank}, {ranks}, job={job!r})
s.protect("memory", random.Random({rank}).randbytes({bytes}))
tell([s.opened, s.text()])
for order in iter(hear, ""):
    status = s.checkpoint(int(order))
    if status == OK:
        status = s.wait(int(order), wait_ms=60000)
    tell([status, s.text()])
"""


def sh(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


class Namespace:
    """A network of its own; ends with this process at the latest."""

    def __init__(self):
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo up; exec sleep 3600"], stdout=subprocess.PIPE)
        if not self.holder.stdout.readline():
            raise OSError("no network namespace can be made")
        self.ip("link", "set", "lo", "up")

    def inside(self, *words):
        return ["nsenter", "-t", str(self.holder.pid), "-n", *map(str, words)]

    def ip(self, *words):
        return sh(*self.inside("ip", *words))

    def carried(self, interface):
        """Bytes received and sent over a card so far."""
        for line in sh(*self.inside("cat", "/proc/net/dev")).splitlines():
            if line.strip().startswith(interface + ":"):
                numbers = line.split(":")[1].split()
                return int(numbers[0]) + int(numbers[8])
        raise AssertionError("no interface " + interface)

    def end(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


class Machines(Nodes):
    """Nodes whose processes run in namespaces of their own. Each link is a switch with a port for each of its nodes."""

    def __init__(self, count, fast=None, ip6=False, **settings):
        super().__init__(network_rates="slow=1000,fast=40000", network_heartbeat_ms=200, network_peer_timeout_ms=8000, flush_files=1, flush_leaders=1,
                         daemon_restart="false", daemon_idle_s=60, **settings)
        self.spaces, self.switch, self.ip6 = [], Namespace(), ip6
        for link in ADDRESS:
            self.switch.ip("link", "add", "sw-" + link, "type", "bridge")
            self.switch.ip("link", "set", "sw-" + link, "up")
        for node in range(count):
            self.spaces.append(Namespace())
            for link in ADDRESS:  # the slow one first: it is libfabric's choice
                if link == "slow" or fast is None or node in fast:
                    self.plug(node, link)

    def plug(self, node, link):
        space, port = self.spaces[node], f"{link}{node}"
        self.switch.ip("link", "add", port, "type", "veth", "peer", "name", link, "netns", space.holder.pid)
        self.switch.ip("link", "set", port, "master", "sw-" + link, "up")
        address = f"fd00:{ADDRESS[link].split('.')[2]}::{node + 1}/64" if self.ip6 else f"{ADDRESS[link]}{node + 1}/24"
        space.ip("addr", "add", address, "dev", link, *["nodad"] * self.ip6)
        space.ip("link", "set", link, "up")

    def cut(self, node, link):
        """What is sent vanishes, and the card does not see it: it has its carrier."""
        self.switch.ip("link", "set", f"{link}{node}", "nomaster")

    def mend(self, node, link):
        self.switch.ip("link", "set", f"{link}{node}", "master", "sw-" + link)

    def start(self, code, node=0, **more):
        prelude = f"import sys, random; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); from support import *\n"
        return subprocess.Popen(self.spaces[node].inside(sys.executable, "-c", prelude + code), env=self.environment(node, **more),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.shared)

    def status(self, node):
        """What the node's daemon says of itself, and the same as text."""
        shown = [subprocess.run(self.spaces[node].inside(find("cairn"), "status", *how), env=self.environment(node), capture_output=True, text=True, timeout=60)
                 for how in ([], ["--json"])]
        assert all(done.returncode == 0 for done in shown), shown
        return json.loads(shown[1].stdout)["nodes"][0], shown[0].stdout

    def log(self, node):
        text = ""
        for folder, _, names in os.walk(self.scratch(node)):
            if "log" in names:
                with open(os.path.join(folder, "log")) as f:
                    text += f.read()
        return text

    def end(self):
        self.__exit__()
        for space in [*self.spaces, self.switch]:
            space.end()


class TwoCards(unittest.TestCase):
    def machines(self, count=2, **more):
        self.nodes = Machines(count, **more)
        self.addCleanup(self.nodes.end)
        self.count = count

    def open(self, settings=lambda node: {}):
        """One rank a node. Node 0's image is the largest: it leads, and the others send to it."""
        self.ranks = [self.nodes.start(RANK.format(rank=r, ranks=self.count, job="job", bytes=BYTES + (BYTES if r == 0 else 0)), node=r, **settings(r))
                      for r in range(self.count)]
        self.addCleanup(self.close)
        self.hear()

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()

    def hear(self):
        told = [json.loads(rank.stdout.readline() or "null") for rank in self.ranks]
        self.assertEqual([line and line[0] for line in told], [OK] * self.count, (told, [self.nodes.log(n)[-2000:] for n in range(self.count)]))

    def commit(self, version):
        """Bytes that each card of each node carried meanwhile, as {link: [of node 0, ...]}."""
        cards = [[link for link in ADDRESS if f" {link}:" in " " + sh(*space.inside("cat", "/proc/net/dev")).replace("\n", " ")] for space in self.nodes.spaces]
        before = [{link: space.carried(link) for link in has} for space, has in zip(self.nodes.spaces, cards)]
        for rank in self.ranks:
            rank.stdin.write(f"{version}\n")
            rank.stdin.flush()
        self.hear()
        return {link: [space.carried(link) - was[link] if link in was else None for space, was in zip(self.nodes.spaces, before)] for link in ADDRESS}

    def assert_over(self, carried, link, nodes):
        other = next(each for each in ADDRESS if each != link)
        for node in nodes:
            self.assertGreater(carried[link][node], BYTES, (carried, self.nodes.log(node)[-2000:]))
            if carried[other][node] is not None:
                self.assertLess(carried[other][node], BYTES // 4, (carried, self.nodes.log(node)[-2000:]))

    def test_the_fastest_is_used_and_named(self):
        self.machines()
        self.open()
        self.assert_over(self.commit(1), "fast", [0, 1])
        for node in range(2):
            status, text = self.nodes.status(node)
            self.assertEqual(status["card"], {"interface": "fast", "rate_mbps": 40000, "why": "the fastest of 2"})
            self.assertEqual([(card["interface"], card["nodes"]) for card in status["cards"]], [("fast", 1), ("slow", 0)])
            self.assertIn("network card: fast, 40 Gb/s, to 1 node (the fastest of 2; others: slow, 1 Gb/s)", text)
            self.assertRegex(self.nodes.log(node), r" card .*interface=fast .*rate=.?40 Gb/s.?.* why=.?the fastest of 2")

    def test_the_fastest_is_used_with_ip6_too(self):
        self.machines(ip6=True)
        self.open()
        self.assert_over(self.commit(1), "fast", [0, 1])

    def test_a_setting_takes_the_other(self):
        self.machines(network_interface="slow")
        self.open()
        self.assert_over(self.commit(1), "slow", [0, 1])
        status, text = self.nodes.status(0)
        self.assertEqual(status["card"], {"interface": "slow", "rate_mbps": 1000, "why": "network.interface"})
        self.assertTrue(status["address"].startswith("tcp://" + ADDRESS["slow"]), status)
        self.assertIn("network card: slow, 1 Gb/s, to 1 node (network.interface)", text)

    def test_a_setting_of_one_node_holds_for_both_directions(self):
        self.machines()
        self.open(lambda node: {"network_interface": "slow"} if node == 1 else {})
        self.assert_over(self.commit(1), "slow", [0, 1])

    def test_rates_that_are_alike_change_nothing(self):
        self.machines()
        self.nodes.settings["network_rates"] = ""  # a veth says 10 Gb/s, whatever it is
        self.open()
        self.assert_over(self.commit(1), "slow", [0, 1])
        self.assertEqual(self.nodes.status(0)[0]["card"], {"interface": "slow", "rate_mbps": 10000, "why": "the first of 2"})

    def test_a_node_without_the_fast_one_is_reached_over_the_slow_one(self):
        self.machines(3, fast=[0, 1])
        self.open()
        carried = self.commit(1)
        self.assert_over(carried, "fast", [1])
        self.assert_over(carried, "slow", [2])
        self.assertTrue(self.nodes.status(2)[0]["address"].startswith("tcp://" + ADDRESS["slow"]), "one card: as ever")
        self.assertEqual([card["nodes"] for card in self.nodes.status(0)[0]["cards"]], [1, 1])

    def test_one_that_leads_nowhere_is_not_used(self):
        self.machines()
        self.nodes.cut(1, "fast")
        self.open()
        self.assert_over(self.commit(1), "slow", [0, 1])
        for node in range(2):
            status = self.nodes.status(node)[0]
            self.assertEqual(status["attempts_failed"], 0, self.nodes.log(node)[-2000:])
            self.assertEqual(status["card"]["interface"], "slow")
            self.assertIn("card-not-usable", self.nodes.log(node))

    def test_one_that_dies_is_left_and_taken_again(self):
        self.machines()
        self.open()
        self.assert_over(self.commit(1), "fast", [0, 1])
        self.nodes.cut(1, "fast")
        self.assert_over(self.commit(2), "slow", [0, 1])
        self.nodes.mend(1, "fast")
        for version in range(3, 150):  # it is looked for again, now and then
            time.sleep(1)
            carried = self.commit(version)
            if carried["fast"][0] > BYTES:
                break
        else:
            self.fail(f"not used again: {carried}")

    def test_an_address_that_all_hosts_have_is_not_used(self):
        self.machines()
        for space in self.nodes.spaces:  # as if of hardware, and the fastest: nothing but trying tells
            space.ip("link", "del", "fast")
            space.ip("link", "add", "fast", "type", "veth", "peer", "name", "inside")
            space.ip("addr", "add", "172.17.0.1/16", "dev", "fast")
            space.ip("link", "set", "fast", "up")
            space.ip("link", "set", "inside", "up")
        self.open()
        self.assert_over(self.commit(1), "slow", [0, 1])

    def test_bridges_of_containers_are_no_cards(self):
        self.machines(fast=[])
        for space in self.nodes.spaces:
            space.ip("link", "add", "fast", "type", "bridge")
            space.ip("link", "add", "c0", "type", "veth", "peer", "name", "c1")
            space.ip("link", "set", "c0", "master", "fast", "up")
            space.ip("link", "set", "c1", "up")
            space.ip("addr", "add", "172.17.0.1/16", "dev", "fast")
            space.ip("link", "set", "fast", "up")
        self.open()
        self.assert_over(self.commit(1), "slow", [0, 1])
        status = self.nodes.status(0)[0]
        self.assertEqual(status["card"], {"interface": "slow", "rate_mbps": 1000, "why": "the only one"})
        self.assertTrue(status["address"].startswith("tcp://" + ADDRESS["slow"]), status)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skipping.leave("TwoCards", "needs root: namespaces with links between them")
    try:
        first, second = Namespace(), Namespace()
        first.ip("link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", second.holder.pid)
        first.ip("link", "add", "sw", "type", "bridge")
    except OSError as problem:
        skipping.leave("TwoCards", f"needs namespaces with links between them: {problem}")
    first.end(), second.end()
    skipping.main()
