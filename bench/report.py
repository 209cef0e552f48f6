"""The figures that follow from the seconds of a run, and the tables for people. Bytes and seconds in, text out; nothing is measured here."""
from statistics import median

MIB = 1 << 20
FRESH_SLOTS = 2
LEAD_S = 5  # seconds before a checkpoint with which its slot can be there
FIRST_GOALS = (1 / 2, 1 / 1.3)
ALLOWANCE_BYTES = 64 * MIB  # of a daemon beside its buffers


def bytes_text(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024


def seconds_text(seconds):
    return f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"


def rate_text(bytes_per_s):
    return f"{bytes_per_s / (1 << 30):.2f} GiB/s"


def measured(times, plain, bytes_, of):
    """Median seconds, and the median of the shares of each round: what disturbs a round disturbs both."""
    seconds = median(times)
    out = {"seconds": seconds, "bytes_per_s": bytes_ / seconds}
    if plain:
        out["share"], out["of"] = median(p / t for p, t in zip(plain, times)), of
    return out


def first(seconds, memcpy, bytes_):
    """One time, and its share of the median of all rounds: what it is compared with is cold in the first round, too."""
    share = {"share": median(memcpy) / seconds, "of": "memcpy"} if memcpy else {}
    return {"seconds": seconds, "bytes_per_s": bytes_ / seconds, **share}


def derive(data):
    """Adds `figures` to each run, and `bars`, the goals and what was reached."""
    for run in data["runs"]:
        bytes_, s = run["checkpoint"]["bytes"], run["checkpoint"]["seconds"]
        # With one version kept in scratch, versions 1 and 2 fill fresh slots; from the third on slots are recycled.
        steady = slice(FRESH_SLOTS, None) if run["rounds"] > FRESH_SLOTS else slice(0, None)
        plain = lambda key, part=steady: s.get(key, [])[part]  # noqa: E731
        f = run["figures"] = {}
        for i in range(FRESH_SLOTS):
            f[f"capture, version {i + 1}"] = first(s["capture"][i], s.get("memcpy"), bytes_)
        if "fresh_memcpy" in s:
            f["memcpy into fresh memory"] = first(median(s["fresh_memcpy"]), s.get("memcpy"), bytes_)
        f["capture, steady state"] = measured(s["capture"][steady], plain("memcpy"), bytes_, "memcpy")
        f["flush, cold (versions 1, 2)"] = measured(s["flush"][:FRESH_SLOTS], plain("plain_write", slice(0, FRESH_SLOTS)), bytes_, "plain write")
        f["flush, steady state"] = measured(s["flush"][steady], plain("plain_write"), bytes_, "plain write")
        if "plain_write_files" in s:
            f["flush, beside a writer a file"] = measured(s["flush"][steady], plain("plain_write_files"), bytes_, "plain write")
        f["restore from scratch"] = measured(s["restore"], s.get("plain_read"), bytes_, "plain read")
        if "restore_run" in run:
            r = run["restore_run"]["seconds"]
            f["restore from the files"] = measured(r["restore"], r["plain_read"], bytes_, "plain read")
            f["plain read"] = measured(r["plain_read"], None, bytes_, "")
        for key, name in (("memcpy", "plain memcpy"), ("plain_write", "plain write"), ("plain_write_files", "plain write, a writer a file"), ("file_per_rank", "file per rank"),
                          ("shared_file", "one file, own offsets"), ("collective", "MPI-IO collective")):
            times = plain(key, slice(0, None)) if key in ("file_per_rank", "shared_file", "collective") else plain(key)
            if times:
                f[name] = measured(times, None, bytes_, "")
    data["bars"] = bars(data)


def main_runs(data):
    return [run for run in data["runs"] if run["kind"] == "main"]


def allowed_bytes(data):
    return data["settings"]["buffers"] * data["settings"]["buffer_size"] + ALLOWANCE_BYTES


def peak_bytes(run):
    return max((d["anonymous_peak_bytes"] for d in run["daemons"]), default=0)


def bars(data):
    out = []
    for run in data["runs"]:
        if run["kind"] == "memory":
            out.append({"what": "daemon memory, " + run["title"].split(": ", 1)[1], "goal_bytes": allowed_bytes(data), "got_bytes": peak_bytes(run)})
        elif run["files"] == max(1, run["nodes"]):
            capture = run["figures"]["capture, steady state"]["share"]
            if run["kind"] == "main":
                out.append({"what": "capture, steady state, of memcpy", "goal": 0.85, "got": capture})
                if data["settings"].get("lead", 0) >= LEAD_S:
                    out += [{"what": f"capture, version {i + 1}, of memcpy", "goal": goal, "got": run["figures"][f"capture, version {i + 1}"]["share"]}
                            for i, goal in enumerate(FIRST_GOALS)]
                out.append({"what": f"flush, {run['title']}, of plain write", "goal": 0.80, "got": run["figures"]["flush, steady state"]["share"]})
            else:
                out.append({"what": "capture with checksums in the pass, of memcpy", "goal": 0.40, "got": capture})
    return out


def table(headings, rows):
    """Columns as wide as they need; those whose heading starts with '>' to the right."""
    right = [h.startswith(">") for h in headings]
    rows = [[h.lstrip(">") for h in headings]] + [[str(c) for c in row] for row in rows]
    width = [max(len(row[i]) for row in rows) for i in range(len(headings))]
    lines = ["  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, width, right)).rstrip() for row in rows]
    return "\n".join(["  " + line for line in [lines[0], "  ".join("-" * w for w in width)] + lines[1:]])


def spread(sizes):
    mean = sum(sizes) / len(sizes)
    return [bytes_text(min(sizes)), bytes_text(mean), bytes_text(max(sizes)), f"{max(sizes) / mean:.2f}" if mean else "-"]


def sizes_table(data):
    run = main_runs(data)[0]
    ranks, sizes = run["ranks"], run["checkpoint"]["image_bytes"]
    rows = [[f"{ranks} ranks"] + spread(sizes)]
    nodes = run["nodes"]
    if nodes:
        by_node = [sum(s for rank, s in enumerate(sizes) if rank * nodes // ranks == n) for n in range(nodes)]
        rows.append([f"{nodes} nodes"] + spread(by_node))
        for each in main_runs(data):
            groups = min(each["files"], nodes)
            by_group = [sum(b for n, b in enumerate(by_node) if n * groups // nodes == g) for g in range(groups)]
            rows.append([f"{groups} group{'s' if groups > 1 else ''} ({each['title']})"] + spread(by_group))
    return table(["bytes of", ">least", ">mean", ">most", ">most/mean"], rows)


def figures_table(data):
    rows = []
    for run in data["runs"]:
        if run["kind"] == "memory":
            continue
        if rows:
            rows.append([""] * 4)
        rows.append([run["title"], "", "", ""])
        names = run["figures"] if run["kind"] == "main" else ["capture, steady state", "flush, steady state", "plain memcpy", "plain write"]
        for name in names:
            figure = run["figures"].get(name)
            if figure and name not in ("file per rank", "one file, own offsets", "MPI-IO collective"):
                share = f"{100 * figure['share']:.0f} % of {figure['of']}" if "share" in figure else ""
                rows.append(["  " + name, seconds_text(figure["seconds"]), rate_text(figure["bytes_per_s"]), share])
    return table(["", ">seconds", ">rate", "share"], rows)


def waits_table(data):
    rows = []
    for run in main_runs(data):
        capture, flush = (run["figures"][f"{step}, steady state"]["seconds"] for step in ("capture", "flush"))
        rows.append([f"Cairn, {run['title']}", seconds_text(capture), seconds_text(capture + flush), f"{run['files']}"])
    figures = main_runs(data)[0]["figures"]
    for name, files in (("file per rank", data["settings"]["ranks"]), ("one file, own offsets", 1), ("MPI-IO collective", 1)):
        if name in figures:
            rows.append([name, seconds_text(figures[name]["seconds"]), seconds_text(figures[name]["seconds"]), files])
    return table(["", ">application waits, s", ">durable after, s", ">files"], rows)


def leaders_table(data):
    rows = []
    for run in main_runs(data):
        for daemon in run["daemons"]:
            for number, w in enumerate(daemon["writers"]):
                if w["received_bytes"] + w["local_bytes"] == 0:
                    continue
                first = number == 0
                rows.append([run["title"] if first else "", daemon["node"] if first else "",
                             seconds_text(daemon["last_flush_s"]) if first else "", number,
                             seconds_text(w["received_s"]), bytes_text(w["received_bytes"]),
                             seconds_text(w["local_s"]), bytes_text(w["local_bytes"])])
    return table(["", "leader", ">flush s", ">writer", ">received s", ">received", ">local s", ">local"], rows)


def memory_table(data):
    rows = []
    for run in data["runs"]:
        peak = peak_bytes(run)
        client = max(run[phase]["client_anonymous_bytes"] for phase in ("checkpoint", "restore_run") if phase in run)
        rows.append([run["title"].removeprefix("memory: "), bytes_text(peak), bytes_text(allowed_bytes(data)), bytes_text(client)])
    return table(["anonymous memory at peak", ">a daemon", ">allowed", ">a client, its own data apart"], rows)


def bars_table(data):
    rows = []
    for bar in data["bars"]:
        if "goal_bytes" in bar:
            met = bar["got_bytes"] <= bar["goal_bytes"]
            rows.append([bar["what"], "at most " + bytes_text(bar["goal_bytes"]), bytes_text(bar["got_bytes"]), "yes" if met else "NO"])
        else:
            rows.append([bar["what"], f"{100 * bar['goal']:.0f} %", f"{100 * bar['got']:.0f} %", "yes" if bar["got"] >= bar["goal"] else "NO"])
    return table(["goal, on a quiet machine", ">goal", ">measured", "reached"], rows)


def text(data):
    m, s = data["machine"], data["settings"]
    head = (f"{data['cairn']}, {s['ranks']} ranks on {s['nodes']} nodes, {bytes_text(s['size'])} a rank +- {100 * s['imbalance']:.0f} % "
            f"(seed {s['seed']}), {s['writers']} writers, {s['buffers']} buffers of {bytes_text(s['buffer_size'])}, "
            f"blocks of {bytes_text(s['block_size'])}\n"
            f"{m['cores']} cores ({m['processor']}), {bytes_text(m['memory_bytes'])}, Linux {m['kernel']}, {m['system']}; "
            f"{m['scratch']} to {m['persistent']}; load before: {m['load_before']}; took {data['took_s']:.0f} s")
    parts = [head, sizes_table(data), figures_table(data), waits_table(data),
             "Seconds of each writer on received and on local data, last flush (the paper's Figures 7 to 9)\n" + leaders_table(data),
             memory_table(data), bars_table(data)]
    return "\n\n" + "\n\n".join(parts)
