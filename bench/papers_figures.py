"""How each published number comes out of runs, and how far it is from the text. Asked with a `simulated` that only takes notes, the same recipes say
which runs are needed.
"""
import os
import tomllib
from typing import Callable, NamedTuple

import papers_plan
from papers_plan import Frontier, Pvfs2, Theta

GIB, GB = 1 << 30, 1e9
FITTED, PREDICTED, INPUT = "fitted", "predicted", "input"
NEAR = 0.01   # a bound is met within so much: rounding in the text, and ours
CLEAR = 0.05  # less than this is no clear drop


class Recipe(NamedTuple):
    ident: str
    kind: str
    value: Callable       # of the paper's runs: Frontier, Theta or Pvfs2
    imbalances: tuple = ()  # Frontier: those to try, where the text leaves it open both


def rate(of, over):
    return of["bytes_per_s"] / over["bytes_per_s"]


def time(of, over):
    return of["flush_s"] / over["flush_s"]


def leader_rate(run):
    return run["bytes_per_s"] / run["writing_nodes"]


def most(values):
    return max(values)


OPEN, EVEN, TEN, TWENTY = (0, 0.2), (0,), (0.1,), (0.2,)

FGCS24 = (
    Recipe("fgcs24-fig3-k1024-adios2", PREDICTED, lambda f: rate(f.adios2(4096, 1024), f.paper(4096, 1024)), OPEN),
    Recipe("fgcs24-fig3-k1024-genericio", PREDICTED, lambda f: rate(f.genericio(4096, 1024), f.paper(4096, 1024)), OPEN),
    Recipe("fgcs24-fig3-k2048-adios2", PREDICTED, lambda f: rate(f.paper(4096, 2048), f.adios2(4096, 2048)), OPEN),
    Recipe("fgcs24-fig3-k2048-genericio", PREDICTED, lambda f: rate(f.paper(4096, 2048), f.genericio(4096, 2048)), OPEN),
    Recipe("fgcs24-fig3-k4096-adios2", PREDICTED, lambda f: rate(f.paper(4096, 4096), f.adios2(4096, 4096)), OPEN),
    Recipe("fgcs24-fig3-k4096-genericio", PREDICTED, lambda f: rate(f.paper(4096, 4096), f.genericio(4096, 4096)), OPEN),
    Recipe("fgcs24-fig3-cairn-drop", PREDICTED, lambda f: rate(f.paper(4096, 1024), f.paper(4096, 4096)), OPEN),
    Recipe("fgcs24-fig4-c1024-adios2", FITTED, lambda f: rate(f.paper(1024, 1024), f.adios2(1024, 1024)), EVEN),
    Recipe("fgcs24-fig4-c1024-genericio", FITTED, lambda f: rate(f.paper(1024, 1024), f.genericio(1024, 1024)), EVEN),
    Recipe("fgcs24-fig4-c2048-adios2", PREDICTED, lambda f: rate(f.paper(2048, 2048), f.adios2(2048, 2048)), EVEN),
    Recipe("fgcs24-fig4-c2048-genericio", PREDICTED, lambda f: rate(f.paper(2048, 2048), f.genericio(2048, 2048)), EVEN),
    Recipe("fgcs24-fig4-c4096-adios2", PREDICTED, lambda f: rate(f.adios2(4096, 2048), f.paper(4096, 2048)), EVEN),
    Recipe("fgcs24-fig4-cairn-2to1", PREDICTED, lambda f: time(f.paper(4096, 2048), f.paper(2048, 2048)), EVEN),
    Recipe("fgcs24-fig5-c1024-rise", PREDICTED, lambda f: time(f.paper(1024, 1024), f.at(0).paper(1024, 1024)), TEN),
    Recipe("fgcs24-fig5-c2048-rise", PREDICTED, lambda f: time(f.paper(2048, 2048), f.at(0).paper(2048, 2048)), TEN),
    Recipe("fgcs24-fig5-c4096-2to1", PREDICTED, lambda f: time(f.paper(4096, 2048), f.at(0).paper(2048, 2048)), TEN),
    Recipe("fgcs24-fig5-c4096-genericio", PREDICTED, lambda f: rate(f.paper(4096, 2048), f.genericio(4096, 2048)), TEN),
    Recipe("fgcs24-fig6-c1024-rise", PREDICTED, lambda f: time(f.paper(1024, 1024), f.at(0).paper(1024, 1024)), TWENTY),
    Recipe("fgcs24-fig6-c2048-rise", PREDICTED, lambda f: time(f.paper(2048, 2048), f.at(0).paper(2048, 2048)), TWENTY),
    Recipe("fgcs24-fig6-c4096-2to1", PREDICTED, lambda f: time(f.paper(4096, 2048), f.at(0).paper(2048, 2048)), TWENTY),
    Recipe("fgcs24-fig6-c4096-genericio", PREDICTED, lambda f: rate(f.paper(4096, 2048), f.genericio(4096, 2048)), TWENTY),
    Recipe("fgcs24-fig56-overhead-equal", PREDICTED, lambda f: time(f.paper(4096, 2048), f.at(0.1).paper(4096, 2048)), TWENTY),
    Recipe("fgcs24-fig6-genericio-steady", PREDICTED, lambda f: time(f.genericio(4096, 2048), f.at(0).genericio(4096, 2048)), TWENTY),
    Recipe("fgcs24-fig6-adios2-imbalance", FITTED, lambda f: time(f.adios2(4096, 2048), f.at(0).adios2(4096, 2048)), TWENTY),
    Recipe("fgcs24-fig7-leader-rate", INPUT, lambda f: f.paper(4096, 2048)["leader_rate"] / GB, TWENTY),
    Recipe("fgcs24-fig7-slowest", PREDICTED, lambda f: f.paper(4096, 2048)["slowest_leader"], TWENTY),
)

# At work beside HACC the text compares with the disks: there only.
HACC = (
    Recipe("fgcs24-fig10-time", PREDICTED, lambda f: time(f.hacc_paper(), f.hacc_files()), TWENTY),
    Recipe("fgcs24-fig10-throughput", PREDICTED, lambda f: rate(f.hacc_files(), f.hacc_paper()), TWENTY),
    Recipe("fgcs24-fig10-hdd-share", FITTED, lambda f: f.hacc_files()["bytes_per_s"] / (4.6e12 / f.shrink), TWENTY),
    Recipe("fgcs24-fig10-genericio", PREDICTED, lambda f: rate(f.hacc_paper(), f.hacc_genericio()), TWENTY),
    Recipe("fgcs24-fig11-slowdown", FITTED, lambda f: leader_rate(f.paper(4096, 2048)) / leader_rate(f.hacc_paper()), TWENTY),
    Recipe("fgcs24-fig11-slowest", PREDICTED, lambda f: f.hacc_paper()["slowest_leader"], TWENTY),
)

ISPDC23 = (
    Recipe("ispdc23-fig1-best", PREDICTED, lambda t: t.best(1)),
    Recipe("ispdc23-fig1-8writers", PREDICTED, lambda t: t.leader(1, 8)["bytes_per_s"] / GIB),
    Recipe("ispdc23-fig1-16writers", PREDICTED, lambda t: rate(t.leader(1, 16), t.leader(1, 8))),
    Recipe("ispdc23-fig1-interleaved", PREDICTED, lambda t: rate(t.leader(1, 8), t.leader(1, 8, "contiguous"))),
    Recipe("ispdc23-fig1-followers", PREDICTED, lambda t: rate(t.leader(1, 8, followers=64), t.leader(1, 8, followers=1))),
    Recipe("ispdc23-fig2-best", PREDICTED, lambda t: t.best(4)),
    Recipe("ispdc23-fig2-8writers", FITTED, lambda t: t.leader(4, 8)["bytes_per_s"] / GIB),
    Recipe("ispdc23-fig2-16writers", FITTED, lambda t: t.leader(4, 16)["bytes_per_s"] / GIB),
    Recipe("ispdc23-fig2-4writer", PREDICTED, lambda t: t.leader(4, 4)["bytes_per_s"] / GIB),
    Recipe("ispdc23-fig2-contiguous", PREDICTED, lambda t: rate(t.leader(4, 8, "contiguous"), t.leader(4, 8))),
    Recipe("ispdc23-fig3-8writers", PREDICTED, lambda t: rate(t.leader(8, 8), t.leader(4, 8))),
    Recipe("ispdc23-fig3-8writers-abs", PREDICTED, lambda t: t.leader(8, 8)["bytes_per_s"] / GIB),
)

PROGRAMS = tuple(Pvfs2.CLASS_D)


def doubled(p, name):
    """The most that twice the processes add to an orchestrated checkpoint."""
    times = [p.program("orchestrated", name, procs)["flush_s"] for procs in (32, 64, 128, 256)]
    return most(many / few for few, many in zip(times, times[1:]))


def level(p, name):
    fewest = 64 if Pvfs2.CLASS_D[name][0] is None else 32
    return rate(p.program("orchestrated", name, 256), p.program("orchestrated", name, fewest))


ORCHECK = (
    Recipe("orcheck-fig1-halved", PREDICTED, lambda p: rate(p.traditional(16, 256), p.traditional(16, 16))),
    Recipe("orcheck-fig5-lu-traditional", FITTED, lambda p: p.traditional(16)["flush_s"]),
    Recipe("orcheck-fig5-lu-orchestrated", FITTED, lambda p: p.orchestrated(16)["flush_s"]),
    Recipe("orcheck-fig5-ft-saving", PREDICTED, lambda p: p.traditional(82)["flush_s"] - p.orchestrated(82)["flush_s"]),
    Recipe("orcheck-fig5-lu-saving", PREDICTED, lambda p: p.saving(16)),
    Recipe("orcheck-fig5-vertical", PREDICTED, lambda p: time(p.vertical(16), p.traditional(16))),
    Recipe("orcheck-saving", PREDICTED, lambda p: min(p.saving(Pvfs2.CLASS_D[name][3]) for name in PROGRAMS)),
    Recipe("orcheck-fig6-lu-doubling", PREDICTED, lambda p: doubled(p, "LU")),
    Recipe("orcheck-fig6-cg-doubling", PREDICTED, lambda p: doubled(p, "CG")),
    Recipe("orcheck-fig7-lu-orchestrated", PREDICTED, lambda p: p.lost("orchestrated", "LU")),
    Recipe("orcheck-fig7-lu-traditional", PREDICTED, lambda p: p.lost("file_per_rank", "LU")),
    Recipe("orcheck-fig7-bt-orchestrated", PREDICTED, lambda p: p.lost("orchestrated", "BT")),
    Recipe("orcheck-fig7-bt-traditional", FITTED, lambda p: p.lost("file_per_rank", "BT")),
    Recipe("orcheck-fig7-sp-orchestrated", PREDICTED, lambda p: p.lost("orchestrated", "SP")),
    Recipe("orcheck-fig7-sp-traditional", PREDICTED, lambda p: p.lost("file_per_rank", "SP")),
    Recipe("orcheck-fig7-cg-stable", PREDICTED, lambda p: level(p, "CG")),
    Recipe("orcheck-fig7-ft-stable", PREDICTED, lambda p: level(p, "FT")),
    Recipe("orcheck-fig8-class-c", PREDICTED, lambda p: min(p.saving(Pvfs2.CLASS_C[name]) for name in ("LU", "CG", "BT", "SP"))),
    Recipe("orcheck-fig8-class-d", PREDICTED, lambda p: sum(p.saving(Pvfs2.CLASS_D[name][3]) for name in PROGRAMS) / len(PROGRAMS)),
)

# The text gives one rate for a node and a span (2 to 2.5 GiB/s); the cluster file takes the span, each node its own. What if all had its middle?
ALIKE = ("node.nic_out_bytes_per_s=2.25GiB", "node.nic_in_bytes_per_s=2.25GiB")
ALL_ALIKE = ("fgcs24-fig6-c1024-rise", "fgcs24-fig7-slowest")


def published(path=None):
    with open(path or os.path.join(os.path.dirname(os.path.realpath(__file__)), "published.toml"), "rb") as f:
        return {each["id"]: each for each in tomllib.load(f)["figure"]}


def verdict(relation, value, got):
    """{error: share} for a number, {met: bool} for a bound."""
    if relation in ("about", "value"):
        return {"error": got / value - 1}
    bounds = {"at least": got >= value * (1 - NEAR), "at most": got <= value * (1 + NEAR), "clearly below": got < value * (1 - CLEAR)}
    return {"met": bounds[relation]}


def row(text, recipe, got, **more):
    out = {"id": recipe.ident, "kind": recipe.kind, "simulated": got, **more, **verdict(text["relation"], text["value"], got)}
    return {**{name: text[name] for name in ("figure", "what", "relation", "value", "where")}, **out}


def rows(simulated, texts, shrink=1, papers=("fgcs24", "ispdc23", "orcheck")):
    """Every published number with what came out; of Frontier on each tier, and at each imbalance that the text may mean."""
    out = []

    def add(recipe, of, **more):
        out.append(row(texts[recipe.ident], recipe, recipe.value(of), **more))

    if "fgcs24" in papers:
        for recipe in FGCS24 + HACC:
            for imbalance in recipe.imbalances:
                for tier in papers_plan.TIERS if recipe in FGCS24 else ("disks",):
                    add(recipe, Frontier(simulated, tier, imbalance, shrink), paper="fgcs24", imbalance=imbalance, tier=tier)
        for recipe in FGCS24:
            if recipe.ident in ALL_ALIKE:
                of = Frontier(simulated, "all tiers", recipe.imbalances[0], shrink, ALIKE)
                add(recipe, of, paper="fgcs24", imbalance=recipe.imbalances[0], tier="all tiers", also="all nodes at 2.25 GiB/s")
    for paper, recipes, of in (("ispdc23", ISPDC23, Theta), ("orcheck", ORCHECK, Pvfs2)):
        if paper in papers:
            for recipe in recipes:
                add(recipe, of(simulated), paper=paper)
    return out


class Notes:
    """In place of results: which runs are asked for, in order."""

    class Anything(dict):
        def __missing__(self, name):
            return [] if name in ("bounds", "leaders") else 1

    def __init__(self):
        self.runs = {}

    def __call__(self, run):
        self.runs.setdefault(run.key(), run)
        return self.Anything()
