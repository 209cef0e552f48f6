"""The cases of faults_test.py: which fault, where, at which step of the flush, and who leads.

n0 coordinates. K = 2 parts on two servers. Shapes of a job:
  all lead    n0 and n1 part 0, n2 and n3 part 1; the first of each makes the file and writes its footer. Every node keeps its data until it writes
  two lead    n0 leads for n1, n2 for n3: half of the data travels between nodes
  n3 writes   n3 is a dedicated I/O node, the ranks are on the others: all of the data travels
"""
from dataclasses import dataclass

from faults import FAULTS

STEPS = ("capture", "sealed", "part made", "writing", "written", "committed")
SHAPES = {"all lead": {}, "two lead": {"flush_leaders": 2}, "n3 writes": {"flush_io_nodes": "n3"}}


@dataclass(frozen=True)
class Case:
    fault: str
    where: str  # a node; for a server "-": one that holds a part
    step: str
    shape: str = "all lead"

    def __str__(self):
        return f"{self.fault} {self.where} at {self.step}" + (f", {self.shape}" if self.shape != "all lead" else "")

    def io_node(self):
        """Its name, where there is one."""
        return SHAPES[self.shape].get("flush_io_nodes")


def every_case():
    cases = []
    for fault in FAULTS:
        if fault == "server missing":
            cases += [Case(fault, server, "open") for server in ("s0", "s1")]
        elif fault.startswith("server"):
            cases += [Case(fault, "-", step) for step in ("sealed", "part made", "writing", "written")]
        elif fault == "card slow":
            cases += [Case(fault, node, "writing") for node in ("n0", "n2")]
        else:
            steps = STEPS if fault in ("node killed", "daemon killed") else ("sealed", "writing", "written")
            nodes = ("n0", "n1", "n2") if not fault.startswith(("node paused", "node left", "packets", "daemon away")) else ("n0", "n2")
            cases += [Case(fault, node, step) for node in nodes for step in steps]
    for fault in ("node killed", "daemon killed", "daemon paused", "cable out", "packets lost", "card slow"):
        cases += [Case(fault, node, "writing", "two lead") for node in ("n2", "n3")]  # a leader, and a follower that answers its credits
    for fault in ("node killed", "daemon killed", "daemon paused", "cable out"):
        cases += [Case(fault, "n3", step, "n3 writes") for step in ("sealed", "writing")]
    cases += [Case("server killed", "-", "writing", shape) for shape in ("two lead", "n3 writes")]
    return cases


FEW = [Case("node killed", "n2", "writing"), Case("node killed", "n1", "capture"), Case("daemon killed", "n2", "writing"),
       Case("node killed", "n0", "written"), Case("daemon paused", "n2", "written"), Case("cable out", "n0", "writing"),
       Case("server killed", "-", "writing"), Case("server paused", "-", "part made"), Case("server full", "-", "part made"),
       Case("server slow", "-", "writing"), Case("daemon killed", "n3", "writing", "two lead")]
