"""Where bench/durable has its nodes: on the cluster of the testbed, or as virtual nodes on this machine, which write below any folder.

Both run commands on nodes and say where a node's own memory is, where all nodes write, and what lies there.
"""
import glob
import os
import shutil
import subprocess
import tempfile

import race_cluster
from cluster import sh

MEMORY = "/dev/shm"


class Testbed(race_cluster.Cluster):
    """Each node has a /dev/shm of its own; all see GlusterFS."""

    shared = race_cluster.volume.MOUNT

    def local(self, _):
        return MEMORY

    def stored_bytes(self, folder):
        """That the parts of a version take on the servers' disks, footers and all."""
        return sum(race_cluster.bytes_by_server(self, folder).values())

    def published(self, _):
        """Nobody knows but the nodes: clients of the file system may see a stamp late."""


class Here:
    """Virtual nodes (CAIRN_NODE) of this machine, which meet over its loopback. Nothing of them is left at the end."""

    def __init__(self, sink, nodes):
        self.compute = [f"n{index}" for index in range(nodes)]
        os.makedirs(sink, exist_ok=True)
        self.shared = tempfile.mkdtemp(prefix="durable-", dir=sink)
        self.memory = tempfile.mkdtemp(prefix="cairn-durable-", dir=MEMORY)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.shared, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)

    def local(self, node):
        return os.path.join(self.memory, node)

    def run(self, node, *command, **more):
        return sh(*self._on(node, command), **more)

    def start(self, node, *command, **more):
        return subprocess.Popen(self._on(node, command), **more)

    def _on(self, node, command):
        return ["env", f"CAIRN_NODE={node}", *command]

    def stored_bytes(self, folder):
        return sum(os.stat(part).st_blocks * 512 for part in glob.glob(f"{folder}/**/part-*", recursive=True))

    def published(self, folder):
        """When the manifest of a version got its name: a watcher looks for it every 25 ms, which is much of a flush that takes 200."""
        return max(os.stat(manifest).st_ctime for manifest in glob.glob(f"{folder}/manifest.*"))


def file_system_of(folder):
    """Of what is mounted there, the last of several."""
    said = subprocess.run(["findmnt", "--noheadings", "--output", "FSTYPE", "--target", folder], capture_output=True, text=True, check=True).stdout
    return said.split()[-1]
