"""`cairn watch` on some nodes (durable_sites.py), and how long its versions take until they are durable, and back."""
import json
import os
import subprocess
import sys
import threading
import time

import race_cluster
from race_cluster import Trouble

WAIT_S = 600
AGAIN = "-again"  # a way with the same codec as another: how far two differ that do not differ
ON_NODE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "durable_node.py")


class Watchers:
    """`cairn watch` on each node, one series."""

    def __init__(self, site, nodes, cairn, codec, folder, files, more=None):
        """`codec`: of the setting, or that and AGAIN; `folder`: below the file system; `files`: how many a version has on each of the nodes; `more`: settings, as environment."""
        self.site, self.nodes, self.cairn, self.codec = site, nodes, cairn, codec
        self.said, self.news = {}, threading.Condition()
        self.persistent = f"{site.shared}/{folder}/{codec}"
        self.places = {node: f"{site.local(node)}/{folder}-{codec}" for node in nodes}
        self.environment = {"CAIRN_PATHS_PERSISTENT": self.persistent, "CAIRN_FLUSH_CODEC": codec.removesuffix(AGAIN), "CAIRN_CONFIG": "", "CAIRN_FLUSH_FILES": str(len(nodes)), "CAIRN_RETENTION_SCRATCH_LAST": "1",
                            "CAIRN_RETENTION_PERSISTENT_LAST": "1", **(more or {})}
        for node, place in self.places.items():
            site.run(node, "mkdir", "-p", place + "/files", place + "/staged", place + "/scratch", self.persistent)
        self.processes = [self._start(node, "watch", "--name", codec, "--pattern", "*.{version}.of", "-d", self.places[node] + "/files", "--index", str(index), "--watchers", str(len(nodes)),
                                      "--job", f"{folder}-{codec}-{os.getpid()}", "--files", str(files[index]), "--json", stdout=subprocess.PIPE) for index, node in enumerate(nodes)]
        for index, process in enumerate(self.processes):
            threading.Thread(target=self._hear, args=(index, process.stdout), daemon=True).start()

    def _start(self, node, *words, **more):
        """A command of Cairn's on a node."""
        told = ["env", f"CAIRN_PATHS_SCRATCH={self.places[node]}/scratch"] + [f"{key}={value}" for key, value in self.environment.items()]
        return self.site.start(node, *told, self.cairn, *words, stdin=subprocess.DEVNULL, text=True, env=race_cluster.clean_environment(), **more)

    def _hear(self, index, lines):
        for line in lines:
            now = time.time()
            try:
                event = json.loads(line)
            except ValueError:
                continue
            with self.news:
                self.said[event.get("event"), event.get("version"), index] = now
                self.news.notify_all()

    def when(self, event, version):
        """When the last node said so."""
        wanted = [(event, version, index) for index in range(len(self.processes))]
        with self.news:
            if not self.news.wait_for(lambda: all(each in self.said for each in wanted), WAIT_S):
                raise Trouble(f"{self.codec}: version {version} was not {event} in {WAIT_S} s")
            return max(self.said[each] for each in wanted)

    def stage(self, version, sources):
        """The files of a version, a folder a node, where they can be released at once."""
        self._on_nodes([("stage", source, self.places[node] + "/staged", str(version)) for node, source in zip(self.nodes, sources)])

    def release(self):
        """The program closes its checkpoint on all nodes."""
        self._on_nodes([("release", place + "/staged", place + "/files") for place in self.places.values()])

    def _on_nodes(self, words):
        """durable_node.py on all nodes at once, told these words each."""
        started = [self.site.start(node, sys.executable, "-B", ON_NODE, *each, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for node, each in zip(self.nodes, words)]
        for process, each in zip(started, words):
            _, complained = process.communicate(timeout=WAIT_S)
            if process.returncode:
                raise Trouble(f"{self.codec}: {' '.join(each)}: {complained.strip()}")

    def durable_s(self, version, sources):
        self.stage(version, sources)
        self.release()
        return self.committed_s(version)

    def committed_s(self, version):
        captured, committed = self.when("captured", version), self.when("committed", version)
        return (self.site.published(self._folder(version)) or committed) - captured

    def back_s(self, sources, version):
        """All nodes at once; what came back is compared."""
        for node, place in self.places.items():
            self.site.run(node, "rm", "-rf", place + "/back")
        begun = time.monotonic()
        processes = [self._start(node, "extract", self.codec, "--rank", str(index), "--files", self.places[node] + "/back", stdout=subprocess.DEVNULL) for index, node in enumerate(self.nodes)]
        if any([process.wait(WAIT_S) for process in processes]):
            raise Trouble(f"{self.codec}: version {version} did not come back")
        took = time.monotonic() - begun
        self._on_nodes([("compare", source, self.places[node] + "/back", str(version)) for node, source in zip(self.nodes, sources)])
        return took

    def _folder(self, version):
        return f"{self.persistent}/{self.codec}/{version}"

    def stored_bytes(self, version):
        return self.site.stored_bytes(self._folder(version))

    def is_encoded(self, version):
        """Any of it."""
        said, _ = self._start(self.nodes[0], "show", self.codec, str(version), "--json", stdout=subprocess.PIPE).communicate(timeout=WAIT_S)
        return any(run["codec"] != "raw" for part in json.loads(said)["parts"] for run in part["runs"])

    def end(self):
        for process in self.processes:
            process.terminate()
        end_all(self.processes)
        # On this machine daemons would outlive the folders that they write to.
        end_all([self._start(node, "stop", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for node in self.nodes])


def end_all(processes):
    for process in processes:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
