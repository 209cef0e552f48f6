"""Runs `cairn simulate` and keeps of its answer what tables and plots need."""
import json
import os
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

CLUSTERS = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "examples", "clusters")
SHOWN_LEADERS = 13


class Trouble(Exception):
    pass


def save(data, out):
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out + ".new", "w") as f:
        json.dump(data, f, indent=1)
        f.write("\n")
    os.rename(out + ".new", out)


def words(binary, run):
    out = [binary, "simulate", os.path.join(CLUSTERS, run.cluster + ".toml"), "--json", "--strategy", run.strategy]
    if run.cluster in ("frontier", "sierra"):  # exact shares cost the square of what is under way: of a restart, some reads of every rank
        out += ["--sharing", "queued"]
    for key, value in dict(each.split("=", 1) for each in run.sets).items():  # a later one wins
        out += ["--set", f"{key}={value}"]
    return out


def told(leader):
    sums = {name: sum(w[name] for w in leader["writers"]) for name in ("received_s", "local_s", "received_bytes", "local_bytes")}
    return {"node": leader["node"], "seconds": leader["seconds"], "bytes": leader["bytes"], "writers": len(leader["writers"]), **sums}


def summary(answer):
    """Of the last version: seconds and bytes, and some leaders, from the fastest to the slowest."""
    last = answer["versions"][-1]
    leaders = sorted((each for each in last["leaders"] if each["bytes"] > 0), key=lambda each: each["seconds"])
    if last["flush_s"] <= 0 or not leaders:
        raise Trouble("the answer of cairn simulate has no flush in it")
    seconds = [each["seconds"] for each in leaders]
    shown = sorted({round(i * (len(leaders) - 1) / (SHOWN_LEADERS - 1)) for i in range(SHOWN_LEADERS)})
    return {
        "nodes": answer["nodes"], "files": answer["files"], "writing_nodes": answer["writing_nodes"], "bytes": last["bytes"],
        "flush_s": last["flush_s"], "bytes_per_s": last["bytes"] / last["flush_s"], "blocked_s": last["capture_s"],
        "elect_s": last["elect_s"], "write_s": last["write_s"], "commit_s": last["commit_s"],
        "slowest_leader": seconds[-1] * len(seconds) / sum(seconds),
        "leader_rate": sum(each["bytes"] / each["seconds"] for each in leaders) / len(leaders),
        "leaders": [told(leaders[i]) for i in shown], "bounds": answer["bounds"], "events": answer["events"],
        **{key: answer[key] for key in ("restart_s",) if key in answer},  # with job.restart
    }


def simulate(binary, run):
    """What came out, with what it took."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(words(binary, run), stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # so that Popen does not wait for it again
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            said = err.read().decode(errors="replace").strip() or "it said nothing"
            raise Trouble(f"{' '.join(words(binary, run))}\n  exit code {process.returncode}: {said}")
        try:
            got = summary(json.load(out)[0])
        except (ValueError, KeyError, IndexError) as trouble:
            raise Trouble(f"{' '.join(words(binary, run))}\n  its answer is not what is expected: {trouble!r}") from trouble
    return {**got, "took_s": round(time.monotonic() - begun, 2), "cpu_s": round(used.ru_utime + used.ru_stime, 2), "memory_bytes": used.ru_maxrss * 1024}


def simulate_all(binary, runs, results, jobs, done):
    """Adds to `results` what is missing, `jobs` at a time, the longest first; `done` is called after each. The first trouble ends it."""
    todo = sorted((run for key, run in runs.items() if key not in results), key=expected, reverse=True)
    lock, failed = threading.Lock(), []

    def one(run):
        if failed:
            return
        try:
            got = simulate(binary, run)
        except (Trouble, OSError) as trouble:
            failed.append(trouble)
            return
        with lock:
            results[run.key()] = got
            done(run, got, len(todo))

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, todo))
    if failed:
        raise failed[0] if isinstance(failed[0], Trouble) else Trouble(str(failed[0]))


def expected(run):
    """The engine costs far more than a model of a rival; then nodes decide."""
    nodes = next((int(each.split("=")[1]) for each in run.sets if each.startswith("job.nodes=")), 1)
    return (run.strategy == "cairn", nodes)
