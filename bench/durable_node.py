"""What a node does with files for bench/durable, some thousands at once.

Usage: python durable_node.py stage FROM TO VERSION      the files of a version, named NAME.VERSION.of: links where that can be, else copies
       python durable_node.py release STAGED FILES       the program closes its checkpoint: what was there goes
       python durable_node.py compare FROM BACK VERSION
"""
import filecmp
import os
import shutil
import sys


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def main(command, source, target, version=""):
    if command == "release":
        for name in os.listdir(target):
            os.remove(os.path.join(target, name))
        for name in os.listdir(source):
            os.rename(os.path.join(source, name), os.path.join(target, name))
        return 0
    pairs = [(os.path.join(source, name), os.path.join(target, f"{name}.{version}.of")) for name in sorted(os.listdir(source))]
    if command == "stage":
        for one, other in pairs:
            link_or_copy(one, other)
        return 0
    differ = [other for one, other in pairs if not filecmp.cmp(one, other, shallow=False)]
    print("\n".join(f"{name} differs from what was captured" for name in differ[:10]), file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
