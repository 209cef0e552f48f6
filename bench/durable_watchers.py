"""`cairn watch` on the nodes of a cluster of the testbed, and how long its versions take until they are durable, and back."""
import json
import os
import subprocess
import threading
import time

import race_cluster
from race_cluster import Trouble

WAIT_S = 600
LOCAL = "/dev/shm"
SHARED = race_cluster.volume.MOUNT


class Watchers:
    """`cairn watch` on each node, one series."""

    def __init__(self, cluster, nodes, cairn, codec, folder, files, more=None):
        """`folder`: below the file system; `files`: how many a version has on each of the nodes; `more`: settings, as environment."""
        self.cluster, self.nodes, self.cairn, self.codec, self.files = cluster, nodes, cairn, codec, files
        self.said, self.news = {}, threading.Condition()
        self.place = f"{LOCAL}/{folder}-{codec}"
        self.environment = {"CAIRN_PATHS_SCRATCH": self.place + "/scratch", "CAIRN_PATHS_PERSISTENT": f"{SHARED}/{folder}/{codec}", "CAIRN_FLUSH_CODEC": codec, "CAIRN_CONFIG": "",
                            "CAIRN_FLUSH_FILES": str(len(nodes)), "CAIRN_RETENTION_SCRATCH_LAST": "1", "CAIRN_RETENTION_PERSISTENT_LAST": "1", **(more or {})}
        race_cluster.on_all(cluster, nodes, ["mkdir", "-p", self.place + "/files", self.place + "/staged", self.place + "/scratch", f"{SHARED}/{folder}/{codec}"])
        told = ["env"] + [f"{key}={value}" for key, value in self.environment.items()]
        self.processes = [cluster.start(node, *told, cairn, "watch", "--name", codec, "--pattern", "*.{version}.of", "-d", self.place + "/files", "--index", str(index), "--watchers",
                                        str(len(nodes)), "--job", f"{folder}-{codec}-{os.getpid()}", "--files", str(files[index]), "--json", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                        env=race_cluster.clean_environment()) for index, node in enumerate(nodes)]
        for index, process in enumerate(self.processes):
            threading.Thread(target=self._hear, args=(index, process.stdout), daemon=True).start()

    def _hear(self, index, lines):
        for line in lines:
            now = time.monotonic()
            try:
                event = json.loads(line)
            except ValueError:
                continue
            with self.news:
                self.said[event.get("event"), event.get("version"), index] = now
                self.news.notify_all()

    def _when(self, event, version):
        """When the last node said so."""
        wanted = [(event, version, index) for index in range(len(self.processes))]
        with self.news:
            if not self.news.wait_for(lambda: all(each in self.said for each in wanted), WAIT_S):
                raise Trouble(f"{self.codec}: version {version} was not {event} in {WAIT_S} s")
            return max(self.said[each] for each in wanted)

    def durable_s(self, version, sources):
        """One version of these files, a folder a node."""
        copies = f"for f in $0/*; do cp \"$f\" {self.place}/staged/${{f##*/}}.{version}.of; done"
        for node, source in zip(self.nodes, sources):
            self.cluster.run(node, "sh", "-ec", copies, source)
        race_cluster.on_all(self.cluster, self.nodes, ["sh", "-ec", f"rm -f {self.place}/files/*; mv {self.place}/staged/* {self.place}/files/"])
        captured = self._when("captured", version)
        return self._when("committed", version) - captured

    def back_s(self, sources, version):
        """All nodes at once; what came back is compared."""
        back = self.place + "/back"
        race_cluster.on_all(self.cluster, self.nodes, ["rm", "-rf", back])
        told = ["env"] + [f"{key}={value}" for key, value in self.environment.items()]
        begun = time.monotonic()
        processes = [self.cluster.start(node, *told, self.cairn, "extract", self.codec, "--rank", str(index), "--files", back, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        env=race_cluster.clean_environment()) for index, node in enumerate(self.nodes)]
        if any([process.wait(WAIT_S) for process in processes]):
            raise Trouble(f"{self.codec}: version {version} did not come back")
        took = time.monotonic() - begun
        compare = f"for f in $0/*; do cmp \"$f\" {back}/${{f##*/}}.{version}.of; done"
        for node, source in zip(self.nodes, sources):
            self.cluster.run(node, "sh", "-ec", compare, source)
        return took

    def stored_bytes(self, version):
        """That its parts take on the servers' disks, footers and all."""
        return sum(race_cluster.bytes_by_server(self.cluster, f"{self.environment['CAIRN_PATHS_PERSISTENT']}/{self.codec}/{version}").values())

    def end(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
