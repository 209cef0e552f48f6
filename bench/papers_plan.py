"""What is simulated: each run is a cluster file, a strategy and what is set otherwise. The strategies of fgcs24 and the runs of each paper, by name."""
from typing import NamedTuple

# fgcs24, Section 5.1: 10 TB/s of NVMe beside the 4.6 TB/s of disks that the cluster file has; as if every target had its part of both.
TIERS = {"disks": (), "all tiers": ("storage.target_bytes_per_s=10.37e9", "storage.server_bytes_per_s=31.1e9")}
NODES, SERVERS, TARGETS = 4096, 450, 1350


class Run(NamedTuple):
    cluster: str       # the file's name, without .toml
    strategy: str
    sets: tuple = ()   # KEY=VALUE

    def key(self):
        return " ".join((self.cluster, self.strategy, *sorted(self.sets)))


def sets(**values):
    """job__nodes=4 becomes job.nodes=4."""
    return tuple(f"{name.replace('__', '.')}={value}" for name, value in values.items())


class Frontier:
    """Runs on one tier with images that differ by so much. Asked for what came out by `simulated`, a function of a Run.

    `shrink` divides nodes, files, servers and targets alike, for trying things out: rates per node, file and target stay.
    """

    def __init__(self, simulated, tier="disks", imbalance=0.0, shrink=1, also=()):
        self.simulated, self.tier, self.imbalance, self.shrink, self.also = simulated, tier, imbalance, shrink, tuple(also)

    def at(self, imbalance):
        return Frontier(self.simulated, self.tier, imbalance, self.shrink, self.also)

    def run(self, strategy, nodes, files, *more, storage=1.0):
        """`storage`: servers and targets, of Frontier's."""
        less = self.shrink
        size = sets(job__nodes=max(1, nodes // less), job__files=max(1, files // less), job__imbalance=self.imbalance,
                    storage__servers=max(1, round(SERVERS * storage / less)), storage__targets=max(1, round(TARGETS * storage / less)))
        return self.simulated(Run("frontier", strategy, size + TIERS[self.tier] + self.also + more))

    def paper(self, nodes, files, *more, **other):
        """The strategy of fgcs24: the production engine with one leader a file, which writes the file to its end, wherever the file system puts it."""
        one_leader = sets(flush__leaders=max(1, files // self.shrink), flush__placement="interleaved", storage__placeable=0)
        return self.run("cairn", nodes, files, *one_leader, *more, **other)

    def shipped(self, nodes, files, *more, **other):
        return self.run("cairn", nodes, files, *more, **other)

    def adios2(self, nodes, files, *more, **other):
        return self.run("every_node", nodes, files, *more, **other)

    def genericio(self, nodes, files, *more, **other):
        return self.run("at_offset", nodes, files, *more, **other)

    # HACC: what others take of the disks, so that a file per rank comes to 70 % of them (fitted); what the application takes of the cards of
    # leaders, which write in the background, so that each writes half as fast as without it (fitted on Figure 11).
    HACC = ("storage.background=0.19",)

    def hacc_paper(self):
        return self.paper(2048, 1024, *self.HACC, "job.network_share=0.6")

    def hacc_files(self):
        return self.run("file_per_rank", 2048, 2048, *self.HACC)

    def hacc_genericio(self):
        return self.genericio(2048, 1024, *self.HACC)


class Theta:
    """One leader. To one file: as the text has it, with local data and four followers. To several files: all data comes from five nodes, to a node
    that only writes, since a leader with local data leads one part of a job with more nodes than files."""

    def __init__(self, simulated):
        self.simulated = simulated

    def leader(self, files, writers, placement="interleaved", followers=4):
        nodes = sets(job__nodes=followers + 1) + (sets(job__io_nodes=1) if files > 1 else ())
        return self.simulated(Run("theta", "cairn", nodes + sets(job__files=files, flush__writers=writers, flush__placement=placement)))

    def best(self, files, counts=(1, 4, 8, 16)):
        """The fewest writers within 1 % of the best. A file has at least one writer."""
        rates = {n: self.leader(files, n)["bytes_per_s"] for n in counts if n >= files}
        return min(n for n, rate in rates.items() if rate > 0.99 * max(rates.values()))


class Pvfs2:
    """ORCHECK. `procs` processes on as many nodes as divide them and are a multiple of the four servers, 32 at most: the text says so of 36 (12) and 196 (28)."""
    NODES = {16: 16, 32: 32, 36: 12, 64: 32, 128: 32, 196: 28, 256: 32}
    # Images in all, GB (Table I): class D at the fewest processes (32, and 36 for BT and SP), 64, 128 (196) and 256; class C at 256.
    CLASS_D = {"LU": (12, 12, 14, 16), "CG": (20, 20, 21, 22), "BT": (26, 28, 31, 32), "SP": (22, 24, 27, 28), "FT": (None, 81, 81, 82)}
    CLASS_C = {"LU": 2.5, "CG": 2.1, "BT": 4.2, "SP": 3.7, "FT": 9.3}

    def __init__(self, simulated):
        self.simulated = simulated

    def run(self, how, gigabytes, procs=256):
        nodes = self.NODES[procs]
        size = sets(job__nodes=nodes, job__ranks_per_node=procs // nodes, job__files=1, job__image_bytes=int(gigabytes * 2**30 / procs))
        return self.simulated(Run("pvfs2", how, size + (() if how == "file_per_rank" else sets(storage__stripes=1))))

    def traditional(self, gigabytes, procs=256):
        return self.run("file_per_rank", gigabytes, procs)

    def vertical(self, gigabytes, procs=256):
        return self.run("vertical", gigabytes, procs)

    def orchestrated(self, gigabytes, procs=256):
        return self.run("orchestrated", gigabytes, procs)

    def program(self, how, name, procs):
        """Class D of the program at so many processes, or about as many: some programs run on squares."""
        square = {32: 36, 128: 196}.get(procs, procs) if name in ("BT", "SP") else procs
        return self.run(how, self.CLASS_D[name][(32, 64, 128, 256).index(procs)], square)

    def saving(self, gigabytes):
        before, after = self.traditional(gigabytes)["flush_s"], self.orchestrated(gigabytes)["flush_s"]
        return (before - after) / before

    def lost(self, how, name):
        few, many = (self.program(how, name, procs)["bytes_per_s"] for procs in (32, 256))
        return (few - many) / few
