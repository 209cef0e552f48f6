"""What the benchmark's scripts share: sizes and lists on the command line, and facts of this machine."""
import argparse
import hashlib
import mmap
import os
import platform
import subprocess

MIB = 1 << 20
SIZE_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30, "K": 1 << 10, "M": MIB, "G": 1 << 30}


def size(text):
    number = text.rstrip("KMGiB ")
    unit = text[len(number):].strip()
    if unit not in SIZE_UNITS:
        raise argparse.ArgumentTypeError(f"{text}: a size is a number with KiB, MiB or GiB")
    return int(float(number) * SIZE_UNITS[unit])


def numbers(text):
    return [int(each) for each in text.split(",")]


def words(text):
    return [each.strip() for each in text.split(",") if each.strip()]


def available_bytes():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def warm_memory(wanted_bytes):
    """Touches free memory and gives it back, so that what is allocated next is no page's first touch in a while.

    A virtual machine gives free memory back to its host after seconds, and the host takes a fault for each page that is touched again: writing a
    byte into every page of 14 GiB went at 0.42 GiB/s the first time and 1.9 GiB/s once warm. A file system in memory pays that with every file.
    """
    keep_free = 1 << 30
    length = min(wanted_bytes, available_bytes() - keep_free)
    if length > 0:
        mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def facts():
    def first(path, key):
        try:
            with open(path) as f:
                return next(line.split(":", 1)[1].strip() for line in f if line.startswith(key))
        except (OSError, StopIteration):
            return "unknown"

    return {
        "cores": os.cpu_count(), "processor": first("/proc/cpuinfo", "model name"),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "kernel": platform.release(),
        "system": first_line_of_system(), "mpi": version_of(["mpirun", "--version"]),
        "load_before": round(os.getloadavg()[0], 1),
    }


def version_of(command):
    """The first line that a command says."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split("\n")[0].strip()
    except OSError:
        return "unknown"


def source_of(folder):
    """The commit that the sources are at, with "-dirty" where they are not what it says (results are no sources)."""
    commit = version_of(["git", "-C", folder, "describe", "--always"])
    changed = version_of(["git", "-C", folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude)results"])
    return commit + ("-dirty" if changed else "") if commit else "unknown"


def refuse_other_source(before, here, path):
    """What goes on with results of another source makes a table of two. Why not, or nothing; a JSON from before sources were told is of another one."""
    if before == here and not here.endswith("-dirty") and here != "unknown":
        return ""
    return f"--more: {path} is of {before or 'an unknown source'}, and this is {here}: a table has results of one clean revision. Without --more all is measured again"


def hash_of(paths):
    """A short one, of these files together: two builds that are not the same differ in it."""
    total = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            total.update(f.read())
    return total.hexdigest()[:12]


def first_line_of_system():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return platform.system()
