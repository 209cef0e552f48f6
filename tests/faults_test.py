#!/usr/bin/env python3
"""Faults on a real distributed file system: nodes, daemons, servers and cables fail at each step of a flush, and what ARCHITECTURE.md promises holds.

Usage: CAIRN_BUILD=build/release tests/faults_test.py [--all] [--list] [--keep FOLDER] [WORD...]
--all: every fault at every step; else a few. WORD: only cases whose line has it. Root only; exit code 77 where the testbed can not be.

Each case: version 1 is committed. Version 2 is captured, and at a step of its flush something fails. All ranks that live wait for version 2, and are
told within a bound that it is committed, or why not, with the name of the node or file concerned. Then
  what passes (a daemon started again, a cable, a server): version 2 commits by itself once the fault is gone, and another job restores it on other
  nodes, bit for bit, from the file system;
  a node killed with its scratch: version 2 is committed, or abandoned with that node and its ranks in the error; the other nodes' images are still
  in scratch; a job on the other nodes restores the newest committed version;
  a node left behind: it stands still, the job goes on without it from the newest committed version, and then it wakes up, believing that version 2 is
  its to lead or to commit: what the new job has committed stands;
  a server that is away when a job begins: the job waits for it in open, and goes on;
  a dedicated I/O node that is lost: it holds nothing of its own, version 2 is written by the others.
In the end: version 3 is taken and commits, every committed version is K parts and a manifest and nothing else, whose parts are no longer than what they
store and a hundredth, whatever work moved, on as many servers as there can be unless a fault took one away, `cairn verify` finds no damage, `cairn stop` ends every daemon, and no process is left.

A fault must meet the flush, or the case shows nothing: a version that is whole before the fault is there, or whose attempt the fault should have broken and
did not, is a case to repeat, on a new cluster; one that misses five times has failed.
"""
import argparse
import contextlib
import itertools
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import faults
from faults import COMMITTED, DEADLINE, FAULTS, FILES, IMAGE_BYTES, NEWEST, OK, PEER_S, RANKS, Failure, Job, Site, check
from faults_cases import FEW, SHAPES, every_case
from cluster import Trouble, check_possible, wait_for
import volume

IO_S, VERSION_S, RESTORE_S = (faults.SETTINGS[f"deadlines_{key}_ms"] / 1000 for key in ("io", "version", "restore"))
FLUSH_S = RANKS * IMAGE_BYTES / 1e6 / faults.SERVER_MB_S  # when one server takes all
ALLOWED_S = 10      # for a machine that does other things besides
# From the fault until every living rank is told how it ended: a node that is not heard of, I/O that hangs, and images that do not come.
TOLD_S = PEER_S + IO_S + VERSION_S + ALLOWED_S
# From the fault's end until version 2 is committed: what hung ends, fails once more, and then it is written.
COMMITTED_S = PEER_S + 2 * IO_S + VERSION_S + FLUSH_S + ALLOWED_S
TRIES = 5
CREEP_MB_S = 0.1  # of a node
# Whose end a version that is not written yet must wait for, because the node's data is needed; daemons that start again break an attempt, too, and
# so do servers, but then all may go to the other one.
AWAY = ("daemon away", "daemon paused", "node paused", "cable out")
BREAKING = AWAY + ("daemon killed", "server killed", "server paused", "server full")
# All servers are there all the time, and nobody can think that they are not.
SERVERS_UNTOUCHED = ("node killed", "daemon killed", "daemon away", "daemon paused")
SLOW = ("server slow", "card slow")


class Missed(Failure):
    """The fault did not meet the flush."""


class Run:
    """One case on a site."""

    def __init__(self, site, case):
        self.site, self.case = site, case
        self.fault = FAULTS[case.fault]
        self.where = case.where
        self.lasting = self.fault.end is None
        self.io_node = case.io_node()

    def keep_log(self, folder):
        """Where it is."""
        path = os.path.join(folder, re.sub(r"\W+", "-", str(self.case)) + ".log")
        with open(path, "w") as f:
            f.write(f"{self.case}\nfiles of version 2: {self.site.stored(2)}, as long as {self.site.part_bytes(2)} bytes\n{self.site.logs()}")
        return path

    def run(self):
        """How it ended."""
        site = self.site
        site.begin(re.sub(r"\W+", "-", str(self.case)), {**SHAPES[self.case.shape], **self.fault.settings})
        self.place = self.placed_on(site.nodes)
        if self.case.step == "open":
            return self.begun_without(self.place)
        if self.io_node:
            site.start_io_node(self.io_node)
        job = Job(site, self.place)
        job.commit(1)
        self.check_files(1)
        check(self.case.shape == "all lead" or site.received_bytes() > 0, f"nothing travels between nodes with {SHAPES[self.case.shape]}")
        site.speed(slow=True)
        self.late = (self.where if self.where in site.nodes else site.nodes[-1]) if self.case.step == "capture" else None
        on_time = [node for node in self.hosts(site.nodes) if node != self.late]
        checkpointed = job.all("checkpoint", 2, nodes=on_time)
        check(all(a["status"] == OK for a in checkpointed.values()), f"checkpoint 2: {checkpointed}")
        self.await_step()
        if self.where == "-":
            held = [server for name, (server, _) in site.stored(2).items() if name.startswith("part-")]
            self.where = held[0] if held else site.cluster.servers[-1]
        living = [node for node in site.nodes if not (self.lasting and node == self.where)]
        self.seen = set(site.stored(2))
        self.fault.begin(site, self.where)
        self.check_in_time()
        if self.case.step == "written":
            self.at_rate(faults.NODE_MB_S)
        if self.case.fault == "node left":
            return self.left_behind(job, living)
        outcome = self.outcome(job, living, on_time)
        site.speed(slow=False) if not self.lasting else self.quicken(living)
        restored = self.afterwards(job, living)
        return f"{outcome}; version {restored} restored"

    def hosts(self, nodes):
        """Of these, the nodes that run ranks."""
        return [node for node in nodes if node != self.io_node]

    def placed_on(self, nodes, turn=0):
        """Where each rank runs: the same number on each node, as far as that goes, the first ones on the node whose turn it is."""
        hosts = self.hosts(nodes)
        return [hosts[(rank * len(hosts) // RANKS + turn) % len(hosts)] for rank in range(RANKS)]

    def begun_without(self, place):
        """A server is away when the job begins, and comes back; directories that were made in between take GlusterFS up to a minute."""
        site, begun = self.site, time.monotonic()
        self.fault.begin(site, self.where)
        job = Job(site, place, opened=False)
        time.sleep(self.fault.lasts_s)
        self.fault.end(site, self.where)
        job.await_open()
        self.told_s = time.monotonic() - begun
        check(self.told_s > self.fault.lasts_s, f"the job began without {self.where}")
        for version in (1, 2):
            job.commit(version)
        self.committed = True
        return f"waited for it; version {self.afterwards(job, site.nodes)} restored"

    @property
    def early(self):
        """Not all data was in the file system when it happened."""
        return self.case.step not in ("written", "committed")

    def check_in_time(self):
        """The fault is there, and the flush still needs what it takes away."""
        site, server = self.site, self.where in self.site.cluster.servers
        if self.case.step != "committed" and site.committed(2):
            raise Missed("version 2 was committed before the fault was there")
        needed = RANKS * IMAGE_BYTES / FILES if server else RANKS * IMAGE_BYTES
        there = sum(size for name, (on, size) in site.stored(2).items() if name.startswith("part-") and (not server or on == self.where))
        if self.early and there >= needed:
            raise Missed(f"all of version 2 was {'on ' + self.where if server else 'in the file system'} before the fault was there")

    def at_rate(self, mb_s):
        for node in self.site.nodes:
            self.site.cluster.rate(node, mb_s)

    def quicken(self, living):
        for node in living + self.site.cluster.servers:
            self.site.cluster.rate(node, 0)

    def await_step(self):
        """Until the flush of version 2 has come that far; for how long it stays there is the flush's affair."""
        site, step = self.site, self.case.step
        reached = {
            "capture": lambda: True,
            "sealed": lambda: True,
            "part made": lambda: any(name.startswith("part-") for name in site.stored(2)),
            "writing": lambda: site.stored_bytes(2) > RANKS * IMAGE_BYTES / 3,
            "written": lambda: site.stored_bytes(2) >= RANKS * IMAGE_BYTES or site.committed(2),
            "committed": lambda: site.committed(2),
        }[step]
        end, creeps = time.monotonic() + TOLD_S, False
        while not reached():
            if step == "written" and creeps != (site.stored_bytes(2) > 0.95 * RANKS * IMAGE_BYTES):
                if creeps:  # heartbeats creep, too, and a leader may seem silent; another attempt would take minutes
                    raise Missed("an attempt that was nearly written ended by itself, before the fault was there")
                self.at_rate(CREEP_MB_S)  # or it is committed before the fault is there
                creeps = True
            if time.monotonic() > end:
                raise (Missed if creeps else Failure)(f"version 2 did not come as far as \"{step}\" within {TOLD_S} s")
            time.sleep(0.003)

    def outcome(self, job, living, on_time):
        """Lets the fault last and end; what the ranks were told, in words."""
        site, begun = self.site, time.monotonic()
        # A rank that waits starts a daemon where there is none.
        later = [self.late or self.where] if self.late or self.case.fault == "daemon away" else []
        told = self.tell_to_wait(job, [node for node in self.hosts(living) if node in on_time and node not in later])
        if not self.lasting:
            self.last()
            if self.late:
                late = job.all("checkpoint", 2, nodes=[self.late])
                check(all(a["status"] == OK for a in late.values()), f"checkpoint 2: {late}")
            told += self.tell_to_wait(job, later)
        ended = time.monotonic()
        answers = job.answers(told)
        check(len(answers) == len(told), f"ranks that should live ended: {sorted({r.rank for r in told} - set(answers))}")
        self.told_s = time.monotonic() - begun
        errors = [self.error_of(rank, answer) for rank, answer in answers.items() if answer["status"] != OK]
        check(not errors or self.case.fault not in SLOW, f"slow is not failed, but the ranks were told so: {errors}")
        if self.lasting:
            return self.outcome_of_loss(job, living, told, errors)
        while errors_now := [a["text"] for a in job.all("wait", 2, COMMITTED, 1000).values() if a["status"] != OK]:
            check(time.monotonic() < ended + COMMITTED_S, f"not committed {COMMITTED_S} s after the fault was gone: {errors_now[0]}")
            time.sleep(0.2)
        self.committed = True
        check(site.committed(2), "the ranks were told that version 2 is committed, and there is no manifest")
        self.check_met(errors)
        return f"told \"{errors[0]}\", then committed" if errors else "committed"

    def tell_to_wait(self, job, nodes):
        within_s = COMMITTED_S if self.case.fault in SLOW else TOLD_S
        return job.tell("wait", 2, COMMITTED, int(within_s * 1000), nodes=nodes)

    def last(self):
        """Through the fault, to its end."""
        if self.fault.lasts_s == math.inf:
            try:
                wait_for("the commit of version 2", lambda: self.site.committed(2), COMMITTED_S)
            except Trouble as trouble:
                raise Failure(f"{trouble}, while \"{self.case.fault}\" lasted") from None
        else:
            time.sleep(self.fault.lasts_s)
        if self.case.fault in AWAY and self.early and self.site.committed(2) and self.where != self.io_node:
            raise Missed(f"version 2 was committed without {self.where}, whose data was there before the fault")
        self.fault.end(self.site, self.where)

    def bytes_on(self, server):
        return sum(size for on, size in self.site.stored(2).values() if on == server)

    def check_met(self, errors):
        """An attempt broke: the ranks were told so, or a part that was there then is none of the committed ones; their names have the attempt. A full
        server can also lose its share to another within the attempt."""
        if self.case.fault not in BREAKING or self.case.step not in ("part made", "writing") or errors:
            return
        if self.case.shape != "all lead" and self.where == "n3":
            return  # a follower that is back in time is only asked again; without an I/O node others write, and nobody is told
        parts = {name for name in self.seen if name.startswith("part-")}
        # Parts of failed attempts go after the commit.
        with contextlib.suppress(Trouble):
            wait_for("the end of an attempt's parts", lambda: not parts <= set(self.site.stored(2)), ALLOWED_S)
        lost_share = self.case.fault == "server full" and self.bytes_on(self.where) < 0.9 * RANKS * IMAGE_BYTES / FILES
        if parts <= set(self.site.stored(2)) and not lost_share:
            raise Missed("the attempt that the fault should have broken was committed, and nobody was told an error")

    def outcome_of_loss(self, job, living, told, errors):
        """A node is gone for good."""
        site = self.site
        check(len(errors) in (0, len(told)) or site.committed(2), f"committed for some, not for all: {errors}")
        self.committed = site.committed(2)
        check(self.committed or errors, "the ranks were told that version 2 is committed, and there is no manifest")
        if self.where == self.io_node:
            check(self.committed, f"an I/O node holds nothing of its own, and yet: {errors}")
        if self.committed:
            if self.early and self.where != self.io_node:
                raise Missed(f"version 2 was committed without {self.where}, whose data was there before the fault")
            return "committed"
        for node in self.hosts(living):
            mine = [rank.rank for rank in job.ranks if rank.node == node]
            check(site.in_scratch(node, 2) == mine, f"of {mine}, sealed on {node}, {site.in_scratch(node, 2)} are still in scratch")
        return f"told \"{errors[0]}\""

    def left_behind(self, job, living):
        """The job's launcher gives it up; another job goes on elsewhere; then the node wakes up."""
        site, begun = self.site, time.monotonic()
        site.speed(slow=False)
        site.kill(living, "python")
        place = self.placed_on(living)
        other, told = Job(site, place), ""
        texts = {answer["text"] for answer in other.all("restore", NEWEST).values()}
        if any(texts):
            # A GlusterFS client that stands still while it makes a directory keeps it locked. Then everybody is told so, in time.
            check(all(f"{volume.MOUNT}/" in text for text in texts), f"restore gave up without naming a directory: {texts}")
            told = f"told \"{texts.pop()}\", "
            site.cluster.resume(self.where)
            site.kill(living, "python")
            other = Job(site, place)
        asked = time.monotonic()
        version, run = other.restored()
        check(time.monotonic() - asked < RESTORE_S + ALLOWED_S, f"a restore without the node took longer than {RESTORE_S + ALLOWED_S} s")
        check(version in (1, 2) and run == job.run, f"version {version} of run {run} was restored")
        other.commit(version + 1)
        self.told_s = time.monotonic() - begun
        site.cluster.resume(self.where)
        time.sleep(2 * PEER_S)
        site.kill(site.nodes, "python")
        for each in job.ranks + other.ranks:
            each.end()
        third = Job(site, self.place)
        check(third.restored() == (version + 1, other.run), "what the second job committed was not restored")
        third.commit(version + 2)
        self.check_files(version + 2)
        third.end(site, site.nodes)
        self.verify_and_stop(site.nodes, unfinished=True)
        return f"{told}went on from version {version}; version {version + 1} stood"

    def error_of(self, rank, answer):
        """Its text, which must name what is concerned."""
        text = answer["text"]
        check(answer["status"] != DEADLINE or "abandoned" in text, f"rank {rank} was told nothing within {TOLD_S} s: {text}")
        if self.lasting:
            ranks = " ".join(str(rank) for rank, node in enumerate(self.place) if node == self.where)
            named = re.search(rf"\({self.where}, ranks {ranks}\)", text)
        else:
            named = re.search(rf"\(n\d, ranks [\d ]+\)|{volume.MOUNT}/|{faults.SCRATCH}/", text)
        check(named, f"rank {rank}: the error names neither node nor file: {text}")
        return text

    def afterwards(self, job, living):
        """Another job, each rank on another node than before, restores and goes on."""
        site = self.site
        job.end(site, living)
        if self.case.fault.startswith("server"):
            self.await_server(living)
        expected = 2 if self.committed else 1
        again = Job(site, self.placed_on(living, turn=1))
        restored, _ = again.restored()
        check(restored == expected, f"version {restored} was restored, not {expected}")
        again.commit(3)
        again.end(site, living)
        for version in (1, 2, 3) if self.committed else (1, 3):
            self.check_files(version)
        self.verify_and_stop(living, unfinished=not self.committed)
        return restored

    def await_server(self, nodes):
        """Until every node sees all files again and can write: until then GlusterFS says of what lies on that server that it is not there."""
        cluster, folder = self.site.cluster, self.site.persistent
        number, tries = cluster.servers.index(self.where), itertools.count()

        def back(node):
            # A new name each time: what a try that failed leaves in the file system's own books would make the next one fail, too.
            name = f"probe-{node}-{next(tries)}"
            write = f"head -c 100000 /dev/zero > {folder}/{volume.placed(name, number)} && rm {folder}/{name} && ls -A {folder}/{faults.SERIES}/2"
            done = subprocess.run(cluster.command(node, ["sh", "-c", write]), capture_output=True, text=True)
            self.probed = f"{name}: {done.stderr.strip() or done.stdout.split()}"
            return done.returncode == 0 and set(self.site.stored(2)) <= set(done.stdout.split())

        for node in nodes:
            try:
                wait_for(f"{self.where} seen by {node}", lambda: back(node), COMMITTED_S)
            except Trouble as trouble:
                raise Failure(f"{trouble}: {self.probed}") from None

    def verify_and_stop(self, nodes, unfinished):
        site = self.site
        reader = next(node for node in reversed(nodes) if node != self.where)  # whose file system was there all the time
        code, out, err = site.cairn(reader, "verify", faults.SERIES)
        check(code == 0, f"cairn verify ended with {code}: {out}{err}")
        site.stop(nodes, unfinished)
        site.check_empty(nodes)

    def check_files(self, version):
        """K parts and a manifest, spread over the servers. Parts of failed attempts go by the coordinator's hand, after the commit; those on a server that
        was away then, a little later."""
        wanted = ["manifest", *(f"part-{part:04}-of-{FILES:04}" for part in range(FILES))]

        def there():
            return sorted(self.site.stored(version))

        try:
            wait_for("exactly the files of a version", lambda: [name.split(".")[0] for name in there()] == wanted, 30)
        except Trouble:
            raise Failure(f"version {version} has these files: {' '.join(there())}") from None
        leaders = min(self.site.settings.get("flush_leaders", len(self.site.nodes)), len(self.site.nodes))  # who led is not told: as many as may
        most = RANKS * IMAGE_BYTES * 1.01 + leaders * 65536
        check(self.site.part_bytes(version) <= most, f"the parts of version {version} are {self.site.part_bytes(version)} bytes long, not at most {most:.0f}")
        if self.case.fault in SERVERS_UNTOUCHED or version == 1 and self.case.step != "open":
            servers = {server for name, (server, _) in self.site.stored(version).items() if name.startswith("part-")}
            check(len(servers) == min(FILES, len(self.site.cluster.servers)), f"all parts of version {version} are on {' '.join(servers)}")


class Sites:
    """One after the other: a cluster serves many cases, until one fails."""

    def __init__(self, folder):
        self.folder, self.number, self.site = folder, 0, None

    def get(self):
        if self.site is None:
            self.number += 1
            self.site = Site(f"faults-{os.getpid()}-{self.number}", self.folder)
        return self.site

    def down(self):
        site, self.site = self.site, None
        if site is not None:
            site.down()


def attempt(case, sites, folder):
    """Runs it; the run, and how it ended. Failure or Trouble when it failed."""
    run = Run(sites.get(), case)
    try:
        how = run.run()
        run.keep_log(folder)
        if case.fault == "node killed":
            volume.boot(run.site.cluster, run.where)
        run.site.clear()
        return run, how
    except (Failure, Trouble) as failure:
        text = f"{failure} ({run.keep_log(folder)})"
        sites.down()
        raise type(failure)(text) from None


def run_all(cases, folder, failed):
    """Prints the table, and adds the cases that failed to `failed`."""
    sites = Sites(folder)
    print(f"{'fault':15}{'where':7}{'step':11}{'leaders':11}{'told, s':>8}{'in all, s':>10}  how it ended")
    try:
        for case in cases:
            for tries in range(1, TRIES + 1):
                begun, told, where = time.monotonic(), "-", case.where
                again = False
                try:
                    run, how = attempt(case, sites, folder)
                    told, where = f"{run.told_s:.1f}", run.where
                except (Failure, Trouble) as failure:
                    again = isinstance(failure, Missed) and tries < TRIES
                    how = f"{'to be repeated' if again else 'FAILED'}: {failure}"
                    if not again:
                        failed.append(case)
                print(f"{case.fault:15}{where:7}{case.step:11}{case.shape:11}{told:>8}{time.monotonic() - begun:>10.1f}  {how}", flush=True)
                if not again:
                    break
    finally:
        sites.down()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--all", action="store_true", help="every fault at every step")
    p.add_argument("--list", action="store_true", help="only name the cases")
    p.add_argument("--keep", metavar="FOLDER", help="where the daemons' logs of each case go")
    p.add_argument("word", nargs="*", help="only cases whose line has it")
    a = p.parse_args()
    cases = [case for case in (every_case() if a.all or a.word else FEW) if all(word in str(case) for word in a.word)]
    if a.list:
        print("\n".join(map(str, cases)))
        return 0
    try:
        check_possible()
        volume.check_possible()
    except Trouble as trouble:
        print(f"SKIP faults_test: {trouble}")
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    folder, failed = a.keep or tempfile.mkdtemp(prefix="cairn-faults-"), []
    os.makedirs(folder, exist_ok=True)
    try:
        run_all(cases, folder, failed)
    finally:
        if failed:
            print(f"what the daemons said is in {folder}")
        elif not a.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(cases) - len(failed)} of {len(cases)} cases kept the promises")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
