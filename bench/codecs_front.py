"""Points of ratio and speed, and which of them no other one beats in both."""

KINDS = (("Cairn", "cairn"), ("mcrengine", "paper"), ("gzip", "paper"), ("fpzip 1-D", "paper"))


def kind_of(pipeline):
    return next((kind for begin, kind in KINDS if pipeline.startswith(begin)), "plain")


def points_of(each):
    """One group of all ranks, one pass (mcrengine: two, as the paper has it), merged by key; Cairn's also with files as they are; and others' codecs."""
    megabytes = each["facts"]["bytes"] / 1e6
    points = []

    def add(label, way, kind, ratio, encode_s, decode_s):
        if encode_s and decode_s:
            points.append({"label": label, "way": way, "kind": kind, "ratio": ratio, "encode": megabytes / encode_s, "decode": megabytes / decode_s})
    for row in each["rows"]:
        if row["group"] != each["facts"]["processes"] or row["padded"]:
            continue
        kind, is_paper = kind_of(row["pipeline"]), row["pipeline"].startswith("mcrengine")
        if row["scheme"] == "aware" and row["passes"] == (2 if is_paper else 1):
            add(row["pipeline"], "merged by key", kind, row["ratio"], row["encode_s"], row["decode_s"])
        elif row["scheme"] == "agnostic" and row["passes"] == 1 and kind == "cairn":
            add(row["pipeline"], "files as they are", kind, row["ratio"], row["encode_s"], row["decode_s"])
    for row in each.get("rivals", []):
        add(row["rival"], row["way"], "rival", row["ratio"], row["encode_s"], row["decode_s"])
    for point in points:
        for way in ("encode", "decode"):
            point[f"{way}_front"] = not better_than(point, points, way)
    return points


def better_than(point, points, way):
    """Those that are smaller and faster, the smallest first."""
    return sorted((other for other in points if other["ratio"] > point["ratio"] and other[way] > point[way]), key=lambda other: -other["ratio"])
