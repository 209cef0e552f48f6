#!/usr/bin/env python3
"""The rules of scripts/lint that keep rooms and roles apart: each is given what it must refuse, in the spellings that somebody may think of, and what it must not.

Usage: tests/lint_test.py [CLASS...]
"""
import importlib.machinery
import importlib.util
import os
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load():
    loader = importlib.machinery.SourceFileLoader("lint", os.path.join(ROOT, "scripts", "lint"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", loader))
    loader.exec_module(module)
    return module


LINT = load()
# A line each that names the coordinator by its number.
NODE_0 = """
if (self == 0) return;
if (self != 0u) return;
if (self > 0) return;
if (self < 1) return;
if (!self) return;
if (from == 0) return;
return to == 0;
if (leader == NodeIndex{0}) return;
if (0 == self) return;
return 0 != from;
const Member& first = roster.members[0];
const Member& first = roster.members.at(0);
const Member& first = roster.members.front();
Node& leader = *cluster.nodes.front();
Node& leader = *nodes[0];
addresses[0] = address;
heard[0] = now;
network = networks.at(0);
job.node_name(0);
job.node_name(NodeIndex{0});
layout.job_node(key, 0);
send(flight, 0, message);
send(side(flight), 0, message);
send_to(flight, 0, address, message);
addresses.of(0);
NodeIndex coordinator = 0;
const auto whom = NodeIndex{0};
const auto whom = static_cast<NodeIndex>(0);
if (node == static_cast<NodeIndex>( 0u )) return;
const NodeIndex first = 0;
static constexpr NodeIndex first = 0u;
NodeIndex const first = 0;
const NodeIndex first(0);
constexpr NodeIndex zero{};
constexpr NodeIndex zero = {};
constexpr NodeIndex zero = NodeIndex();
const Ranks& ranks = roster.members.begin()->ranks;
const Ranks& ranks = job->roster->members.cbegin()->ranks;
const Member& first = *roster.members.begin();
Node* leader = nodes.data()->get();
if (job.self_index == 0) return;
if (job->self() == 0) return;
if (job.self == 0) return;
if (self() != NodeIndex{}) return;
if (0 == job->self) return;
if (!job->self) return;
if (job.self >= 1) return;
""".strip().split("\n")
# And what is none: loops over all nodes, defaults of plain values, numbers of other things.
NO_NODE_0 = """
for (NodeIndex node = 0; node < nodes.size(); ++node) join(node);
NodeIndex node = 0;
if (none_missing_below == 0) return;
if (range.to == 0) return;
if (!self->open()) return;
if (self == 10) return;
if (nodes[1]) return;
send(flight, to, message);
leader.counters = 0;
if (ranks[0] == rank) return;
if (from < 0.5) return;
const NodeIndex first = coordinator_of(roster);
const NodeIndex next = node + 1;
constexpr NodeIndex none = 0xffffffff;
const auto node = static_cast<NodeIndex>(i);
for (auto member = roster.members.begin(); member != roster.members.end(); ++member) join(*member);
const Member& member = *(roster.members.begin() + index);
if (!job.self_is_known) return;
if (yourself == 0) return;
if (range->begin == 0) return;
""".strip().split("\n")


def rooms_of(path, line):
    with open(os.path.join(ROOT, "ARCHITECTURE.md")) as f:
        return list(LINT.rule_rooms({"ARCHITECTURE.md": f.read().split("\n"), path: [line]}))


class Coordinator(unittest.TestCase):
    def found(self, line, path="src/engine/leader/lead.cpp"):
        return list(LINT.rule_coordinator({path: [line]}))

    def test_each_spelling_of_node_0_is_refused(self):
        for line in NODE_0:
            self.assertTrue(self.found(line), line)

    def test_what_is_no_node_0_is_not(self):
        for line in NO_NODE_0:
            self.assertFalse(self.found(line), line)

    def test_tests_may_name_their_nodes(self):
        self.assertFalse(self.found(NODE_0[0], "src/engine/leader/lead_test.cpp"))
        self.assertFalse(self.found(NODE_0[0], "src/proof/cluster.cpp"))


class Rooms(unittest.TestCase):
    def test_roles_do_not_include_each_other(self):
        for include in ('#include "engine/leader/leader.hpp"', "#include <engine/leader/leader.hpp>", '  #  include "engine/leader/leader.hpp"'):
            self.assertTrue(rooms_of("src/engine/follower/serve.cpp", include), include)

    def test_what_the_table_does_not_name_is_refused(self):
        self.assertTrue(rooms_of("src/read/fetch.cpp", '#include "engine/flight.hpp"'))
        self.assertTrue(rooms_of("src/cli/verify.cpp", '#include "proof/cluster.hpp"'))
        self.assertTrue(rooms_of("src/model/plan.cpp", '#include "world/world.hpp"'))

    def test_what_it_names_is_not(self):
        for path, include in (("src/engine/router/node.cpp", '#include "engine/leader/leader.hpp"'), ("src/engine/follower/serve.cpp", "#include <vector>"),
                              ("src/engine/follower/serve.cpp", '#include "engine/role.hpp"'), ("src/read/fetch_test.cpp", '#include "proof/cluster.hpp"')):
            self.assertFalse(rooms_of(path, include), include)

    def test_a_source_in_no_room_is_named(self):
        self.assertTrue(rooms_of("src/nowhere/file.cpp", ""))


class Skipped(unittest.TestCase):
    def found(self, line):
        return list(LINT.rule_skipped({"src/base/x_test.cpp": [line]}))

    def test_only_for_want_of_root_or_of_an_ordinary_user(self):
        skip, python = "GTEST_" "SKIP()", "@unittest" ".skip"  # not as one word: this file is read, too
        for line in (skip + ";", skip + ' << "too slow";', "TEST(X, " "DIS" "ABLED_y)", python + '("roots needs it")', python + '("some day")'):
            self.assertTrue(self.found(line), line)
        for line in (skip + ' << "ext2 needs root";', python + '("needs an ordinary user: root may")'):
            self.assertFalse(self.found(line), line)


if __name__ == "__main__":
    unittest.main()
