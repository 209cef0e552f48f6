"""What bench/orchestration measures: Table I of orcheck scaled down, by which files the processes write, and the numbers of processes."""
from typing import NamedTuple

MIB = 1 << 20
# Images in all, GB (Table I): class D at the fewest processes (32, or 36), 64, 128 (or 196) and 256; class C.
CLASS_D = {"LU": (12, 12, 14, 16), "CG": (20, 20, 21, 22), "BT": (26, 28, 31, 32), "SP": (22, 24, 27, 28), "FT": (81, 81, 81, 82)}
CLASS_C = {"LU": 2.5, "CG": 2.1, "BT": 4.2, "SP": 3.7, "FT": 9.3}
PROCESSES = (8, 16, 32, 64)  # for the paper's 32, 64, 128 and 256

LIMIT = "limit"
# Settings of Cairn's ways; the others are plain writers: `limit` with one file a node, each on one server.
WAYS = {
    LIMIT: None,
    "traditional": None,
    "vertical": {"flush_layout": "file-per-rank", "flush_slots": "0"},
    "marshaled": {"flush_layout": "file-per-rank", "flush_slots": "1"},
    "aggregated": {"flush_layout": "aggregated"},
}


class Set(NamedTuple):
    """Images of one program, of equal size."""
    program: str
    size: str  # class
    processes: int
    image_bytes: int

    def name(self):
        return f"{self.program}-{self.size}-{self.processes}"

    def bytes(self):
        return self.processes * self.image_bytes


def image_set(program, size, processes, mib_per_gb):
    gigabytes = CLASS_D[program][PROCESSES.index(processes)] if size == "D" else CLASS_C[program]
    return Set(program, size, processes, max(1, int(gigabytes * mib_per_gb * MIB / processes)) // 4096 * 4096)


def sets_of(processes, programs, scaled, mib_per_gb):
    """With the most processes all programs in both sizes (Figures 5 and 8); with fewer those that are scaled (Figures 6 and 7)."""
    if processes == PROCESSES[-1]:
        return [image_set(program, size, processes, mib_per_gb) for size in ("C", "D") for program in programs]
    return [image_set(program, "D", processes, mib_per_gb) for program in scaled]


def streams_wanted(way, processes, nodes, servers):
    """Files that a server has open at once, by the paper (256, 64 and 8 of 256 processes on 32 nodes and four servers); None: the paper has no such way."""
    return {"traditional": processes, "vertical": processes // servers, "marshaled": nodes // servers}.get(way)
