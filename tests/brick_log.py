"""What a server of a GlusterFS volume asks of the file system that its brick lies on, in order, and every state in which a crash may leave that brick.

`Recorder` watches a brick's process (strace) and takes the brick as it is when that begins. `Log` has what changed it since, and what was synced. `Log.after_crash` is the brick
as a loss of power leaves it: a tree of inodes, which `write_tree` makes.

What stays after a crash at a moment, whatever else is lost:
 - what the fsync of a file, answered before, found of that file: its bytes, its size, its attributes;
 - names and attributes as the journals of XFS and ext4, on which bricks lie, keep them: in the order in which they were made, up to the last of that file. What was made of other
   files' names after that is not kept by it, and no other file's bytes. A name that nobody synced the file of after it was made can be lost.
Of all else any suffix is lost: of names and attributes one, of the bytes of files the same one, or of each file one of its own; the first write that is lost may stay in part.
"""
import os
import re
import stat
import subprocess
import time
from dataclasses import dataclass, field

CHANGES = ("openat,open,creat,mknod,mknodat,mkdir,mkdirat,symlink,symlinkat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,"
           "write,pwrite64,pwritev,pwritev2,copy_file_range,truncate,ftruncate,fallocate,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr,"
           "chown,lchown,fchown,fchownat,chmod,fchmod,fchmodat,fsync,fdatasync,sync,syncfs,sync_file_range,close,dup,dup2,dup3,io_uring_enter,io_submit,writev,sendmsg")
PAGE = 4096


class Unknown(Exception):
    """A line of the log that the model has no meaning for."""


@dataclass
class Inode:
    mode: int
    owner: tuple = (0, 0)
    link: str = ""                                  # where a symbolic link leads
    content: bytes = b""
    attributes: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)       # of a directory: {name: number of an inode}


@dataclass
class Op:
    kind: str                                       # names, data, size, attribute, mode, owner, fsync, sync
    begun: float
    ended: float
    line: int                                       # of its beginning and end in the log: what ended before another began is before it
    end_line: int
    request: tuple                                  # the one that the server had when it did this, which ends with its answer
    inode: int = 0
    changes: list = field(default_factory=list)     # names: [(directory, name, inode or None)]; all of it or nothing
    offset: int = 0
    value: object = None

    def concerns(self):
        if self.kind == "names":
            return {number for directory, _, number in self.changes} | {directory for directory, _, _ in self.changes} | {self.inode}
        return {self.inode}


def read_tree(root):
    """{number: Inode} of all below a directory, which is number 0."""
    numbers, tree = {}, {}

    def take(path):
        about = os.lstat(path)
        key = (about.st_dev, about.st_ino)
        if key in numbers:
            return numbers[key]
        number = numbers[key] = len(numbers)
        inode = tree[number] = Inode(about.st_mode, (about.st_uid, about.st_gid))
        inode.attributes = {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}
        if stat.S_ISLNK(about.st_mode):
            inode.link = os.readlink(path)
        elif stat.S_ISDIR(about.st_mode):
            inode.names = {name: take(os.path.join(path, name)) for name in sorted(os.listdir(path))}
        elif stat.S_ISREG(about.st_mode):
            with open(path, "rb") as file:
                inode.content = file.read()
        return number

    take(root)
    return tree


def write_tree(tree, root):
    """Makes it below an empty directory."""
    made = {}

    def put(number, path):
        inode = tree[number]
        if number in made and not stat.S_ISDIR(inode.mode):
            os.link(made[number], path, follow_symlinks=False)
            return
        made[number] = path
        if stat.S_ISLNK(inode.mode):
            os.symlink(inode.link, path)
        elif stat.S_ISDIR(inode.mode):
            if number != 0:
                os.mkdir(path)
        else:
            with open(path, "xb") as file:
                file.write(inode.content)
        os.chown(path, *inode.owner, follow_symlinks=False)
        if not stat.S_ISLNK(inode.mode):
            os.chmod(path, stat.S_IMODE(inode.mode))
        for name, value in inode.attributes.items():
            os.setxattr(path, name, value, follow_symlinks=False)
        for name, below in inode.names.items():
            put(below, os.path.join(path, name))

    put(0, root)


def told(tree):
    """A tree in a form that can be compared: {path: what is there}, with the first path of an inode in place of its number."""
    found, first = {}, {}

    def tell(number, path):
        inode = tree[number]
        seen = first.setdefault(number, path)
        found[path] = (seen, inode.mode, inode.owner, inode.link, inode.content, tuple(sorted(inode.attributes.items())))
        for name in sorted(inode.names):
            tell(inode.names[name], f"{path}/{name}")

    tell(0, "")
    return found


class Recorder:
    """Watches the process of a brick from the outside. `root` is where the brick lies as the process sees it, `seen` as we do."""

    def __init__(self, pid, root, seen, path):
        self.root, self.seen, self.path, self.begun = root, seen, path, time.time()
        self.strace = subprocess.Popen(["strace", "-f", "-ttt", "-T", "-y", "-xx", "-s", str(64 << 20), "-e", "trace=" + CHANGES, "-o", path, "-p", str(pid)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = self.strace.stderr.readline()
        if "attached" not in said:
            raise Unknown(f"strace: {said.strip() or 'ended'}")
        self.base = read_tree(seen)  # nobody writes yet

    def end(self):
        """The Log; the brick must be idle, and is what the log says then: else Unknown."""
        now = told(read_tree(self.seen))
        self.strace.terminate()
        self.strace.communicate(timeout=60)
        log = Log(self.base, self.root, self.path)
        ours = told(log.at_end())
        wrong = sorted(path for path in now.keys() | ours.keys() if now.get(path) != ours.get(path))
        if wrong:
            raise Unknown(f"the log does not lead to the brick as it is: {wrong[:5]}, {[(str(now.get(p))[:300], str(ours.get(p))[:300]) for p in wrong[:2]]}")
        return log


TOKEN = re.compile(r'\s*(?:"(?P<text>(?:\\x[0-9a-f]{2})*)"(?P<cut>\.\.\.)?|(?P<fd>AT_FDCWD|-?\d+)<(?P<at>[^>]*)>(?:\(deleted\))?|(?P<word>[^,]*))\s*(?:,|$)')
LINE = re.compile(r"(\d+)\s+([\d.]+) (.*)", re.S)
CALL = re.compile(r"(\w+)\((.*)\)\s+= (-?\d+|\?)(?:<([^>]*)>(?:\(deleted\))?)?([^<]*)(?:<([\d.]+)>)?$", re.S)


def plain(text):
    return bytes.fromhex(text.replace("\\x", ""))


def calls(path):
    """(name, arguments, what it returned, begun, ended, first line, last line, request) of all calls that succeeded, in the order in which they ended."""
    pending, answers = {}, {}
    with open(path, encoding="ascii") as file:
        for number, text in enumerate(file):
            thread, at, said = LINE.match(text.rstrip("\n")).groups()
            if said.endswith("<unfinished ...>"):
                pending[thread] = (said[:-len("<unfinished ...>")].rstrip(), float(at), number)
                continue
            begun, line = float(at), number
            if said.startswith("<... "):
                if thread not in pending:
                    continue  # began before we looked
                head, begun, line = pending.pop(thread)
                said = head + said[said.index("resumed>") + len("resumed>"):]
            match = CALL.match(said)
            if not match:
                if said.startswith(("+++", "---")) or said.endswith("<detached ...>"):
                    continue
                raise Unknown(said[:300])
            name, arguments, returned, _, _, took = match.groups()
            if name in ("writev", "sendmsg"):
                answers[thread] = answers.get(thread, 0) + 1
            elif returned != "?" and int(returned) >= 0:
                yield name, arguments, int(returned), begun, begun + float(took or 0), line, number, (thread, answers.get(thread, 0))


def split(arguments):
    """Strings as bytes, descriptors as (number, path), all else as text."""
    found, at = [], 0
    while at < len(arguments):
        match = TOKEN.match(arguments, at)
        at = match.end()
        if match["cut"]:
            raise Unknown("a string was cut: " + arguments[:200])
        if match["text"] is not None:
            found.append(plain(match["text"]))
        elif match["fd"] is not None:
            found.append((match["fd"], plain(match["at"]).decode() if match["at"].startswith("\\x") or not match["at"] else match["at"]))
        else:
            found.append(match["word"])
    return found


class Log:
    """What became of a brick."""

    def __init__(self, base, root, path):
        self.base, self.root, self.ops = base, root, []
        self.tree = {number: Inode(i.mode, i.owner, i.link, i.content, dict(i.attributes), dict(i.names)) for number, i in base.items()}  # names: as of the last line read
        self.born = {}                                                        # {number: Inode as it was made}
        self.open = {}
        for call in calls(path):
            self._take(*call)

    # ---- reading ----

    def _find(self, path, follow=False, depth=0):
        """(directory, name, inode or None) of a path below the brick; None for one elsewhere."""
        if depth > 20:
            raise Unknown(path + ": too many links")
        path = os.path.normpath(path)
        if path != self.root and not path.startswith(self.root + "/"):
            return None
        at, walked = 0, self.root
        words = path[len(self.root):].strip("/").split("/") if path != self.root else []
        for index, word in enumerate(words):
            below = self.tree[at].names.get(word)
            last = index == len(words) - 1
            if below is not None and stat.S_ISLNK(self.tree[below].mode) and (follow or not last):
                return self._find(os.path.join(walked, self.tree[below].link, *words[index + 1:]), follow, depth + 1)
            if last:
                return at, word, below
            if below is None:
                raise Unknown(f"{path}: there is no {word}")
            at, walked = below, walked + "/" + word
        return at, "", at

    def _place(self, at, path, follow=False):
        path = path.decode()
        if path == "" and isinstance(at, tuple):
            return self._find(at[1])
        return self._find(path if path.startswith("/") else os.path.join(at[1], path), follow)

    def _of_fd(self, fd):
        number = int(fd[0])
        if number in self.open:
            return self.open[number]
        place = self._find(fd[1]) if fd[1].startswith("/") else None
        return place[2] if place else None

    def _take(self, name, arguments, returned, *when):
        handler = getattr(self, "_" + name, None)
        if handler is None:
            if name in ("sync_file_range", "write"):
                return
            raise Unknown(f"{name}({arguments[:200]})")
        handler(split(arguments), returned, when)

    def _add(self, kind, when, **more):
        self.ops.append(Op(kind, *when, **more))
        return self.ops[-1]

    def _change(self, when, changes, inode):
        for directory, name, number in changes:
            if number is None:
                self.tree[directory].names.pop(name, None)
            else:
                self.tree[directory].names[name] = number
        self._add("names", when, changes=changes, inode=inode)

    def _make(self, place, when, mode, link=""):
        if not place:
            return None
        number = len(self.tree)
        self.tree[number] = Inode(mode, link=link)
        self.born[number] = Inode(mode, link=link)
        self._change(when, [(place[0], place[1], number)], number)
        return number

    def _openat(self, words, returned, when):
        flags = words[2]
        place = self._place(words[0], words[1], follow="O_NOFOLLOW" not in flags)
        number = place[2] if place else None
        if place and number is None:
            if "O_CREAT" not in flags:
                raise Unknown(f"opened what is not there: {words[1]}")
            number = self._make(place, when, stat.S_IFREG | int(words[3], 8) & 0o7777)
        elif place and "O_TRUNC" in flags:
            self._add("size", when, inode=number, value=0)
        self.open[returned] = number

    def _close(self, words, _, __):
        self.open.pop(int(words[0][0]), None)

    def _dup(self, words, returned, _):
        self.open[returned] = self._of_fd(words[0])

    def _mkdirat(self, words, _, when):
        self._make(self._place(words[0], words[1]), when, stat.S_IFDIR | int(words[2], 8))

    def _mkdir(self, words, _, when):
        self._mkdirat([("AT_FDCWD", "/"), *words], 0, when)

    def _mknodat(self, words, _, when):
        kinds = {"S_IFREG": stat.S_IFREG, "S_ISVTX": stat.S_ISVTX}
        mode = 0
        for word in words[2].split("|"):
            mode |= kinds[word] if word in kinds else int(word, 8)
        self._make(self._place(words[0], words[1]), when, mode)

    def _symlinkat(self, words, _, when):
        self._make(self._place(words[1], words[2]), when, stat.S_IFLNK | 0o777, words[0].decode())

    def _linkat(self, words, _, when):
        number, to = self._place(words[0], words[1])[2], self._place(words[2], words[3])
        self._change(when, [(to[0], to[1], number)], number)

    def _rename(self, words, _, when):
        self._renameat([("AT_FDCWD", "/"), words[0], ("AT_FDCWD", "/"), words[1]], 0, when)

    def _renameat(self, words, _, when):
        old, new = self._place(words[0], words[1]), self._place(words[2], words[3])
        if old[2] == new[2]:
            return  # two names of one file: nothing happens
        self._change(when, [(old[0], old[1], None), (new[0], new[1], old[2])], old[2])

    def _unlinkat(self, words, _, when):
        place = self._place(words[0], words[1])
        if place:
            self._change(when, [(place[0], place[1], None)], place[2])

    def _unlink(self, words, _, when):
        self._unlinkat([("AT_FDCWD", "/"), words[0]], 0, when)

    _rmdir = _unlink

    def _pwrite64(self, words, returned, when):
        number = self._of_fd(words[0])
        if number is not None:
            self._add("data", when, inode=number, offset=int(words[3]), value=words[1][:returned])

    def _ftruncate(self, words, _, when):
        self._add("size", when, inode=self._of_fd(words[0]), value=int(words[1]))

    def _truncate(self, words, _, when):
        self._add("size", when, inode=self._place(("AT_FDCWD", "/"), words[0], True)[2], value=int(words[1]))

    def _fsetxattr(self, words, _, when):
        self._attribute(self._of_fd(words[0]), words, when)

    def _lsetxattr(self, words, _, when):
        place = self._place(("AT_FDCWD", "/"), words[0])
        self._attribute(place[2] if place else None, words, when)

    def _attribute(self, number, words, when):
        if number is not None:
            value = words[2] if len(words) > 3 else None
            self._add("attribute", when, inode=number, value=(words[1].decode(), b"" if value == "NULL" else value))

    _lremovexattr, _fremovexattr = _lsetxattr, _fsetxattr

    def _fchown(self, words, _, when):
        self._add("owner", when, inode=self._of_fd(words[0]), value=words[1:3])

    def _lchown(self, words, _, when):
        self._add("owner", when, inode=self._place(("AT_FDCWD", "/"), words[0])[2], value=words[1:3])

    _chown = _lchown

    def _fchmod(self, words, _, when):
        self._add("mode", when, inode=self._of_fd(words[0]), value=int(words[1], 8))

    def _chmod(self, words, _, when):
        self._add("mode", when, inode=self._place(("AT_FDCWD", "/"), words[0])[2], value=int(words[1], 8))

    def _fsync(self, words, _, when):
        number = self._of_fd(words[0])
        if number is not None:
            self._add("fsync", when, inode=number)

    _fdatasync = _fsync

    # ---- states ----

    def syncs(self, prefix="", since_named=False):
        """Indexes of the fsyncs of files that had a name with this beginning; since_named: of those that came after it."""
        named, found = {}, set()
        for index, op in enumerate(self.ops):
            for _, name, number in op.changes:
                if number is not None and name.startswith(prefix):
                    named.setdefault(number, index)
        for index, op in enumerate(self.ops):
            if op.kind == "fsync" and op.inode in named and (not since_named or index > named[op.inode]):
                found.add(index)
        return found

    def at_end(self):
        return self._applied([(op, None) for op in self.ops])

    def after_crash(self, moment, draw, ignored=(), halves=False):
        """The brick after a loss of power at that time, as `draw` (a random.Random) has it; fsyncs at these indexes of ops count for nothing. halves: what the server did for one
        request may be lost in part."""
        begun = {op.request for op in self.ops if op.begun <= moment}
        ops = [op for op in self.ops if op.begun <= moment or not halves and op.request in begun]
        syncs = [op for index, op in enumerate(self.ops) if op.kind == "fsync" and op.ended <= moment and index not in ignored]
        synced_names, synced = self._synced(ops, syncs)
        first, last = {}, {}
        for index, op in enumerate(ops):
            request = index if halves else op.request
            first.setdefault(request, index)
            last[request] = index
        begins = [first[index if halves else op.request] for index, op in enumerate(ops)]
        ends = [last[index if halves else op.request] for index, op in enumerate(ops)]
        return self._applied(self._drawn(ops, begins, ends, synced_names, synced, draw))

    @staticmethod
    def _drawn(ops, begins, ends, synced_names, synced, draw):
        """What is kept of these operations, as `_applied` takes it: all that is synced, and of the rest what lies before ends that are drawn."""
        mood = draw.randrange(4)
        undecided = [index for index, op in enumerate(ops) if index not in synced and index >= synced_names and op.kind != "fsync"]
        names_end = {0: -1, 1: len(ops)}.get(mood, draw.choice(undecided) if undecided else -1)
        has_own_ends = mood > 1 and draw.random() < 0.5
        own_ends, torn, kept = {}, set(), []
        for index, op in enumerate(ops):
            if op.kind in ("data", "size"):
                end = own_ends.setdefault(op.inode, draw.randrange(len(ops) + 1)) if has_own_ends else names_end
                if index in synced or ends[index] < end:
                    kept.append((op, None))
                else:
                    if op.kind == "data" and op.inode not in torn and draw.random() < 0.5:
                        kept.append((op, draw.randrange(len(op.value) // PAGE + 1) * PAGE))
                    torn.add(op.inode)
            elif op.kind != "fsync" and (begins[index] < synced_names or ends[index] < names_end):
                kept.append((op, None))
        return kept

    @staticmethod
    def _synced(ops, syncs):
        """How many of them, from the first on, have names and attributes that are durable; which are bytes that are."""
        names, found = 0, set()
        for sync in syncs:
            for index, op in enumerate(ops):
                if op.end_line >= sync.line or op.kind == "fsync" or sync.inode not in op.concerns():
                    continue
                if op.kind in ("data", "size"):
                    found.add(index)
                else:
                    names = max(names, index + 1)
        return names, found

    def _applied(self, kept):
        """The tree that these (Op, bytes of it or None for all) make of the base."""
        tree = {number: Inode(i.mode, i.owner, i.link, i.content, dict(i.attributes), dict(i.names)) for number, i in {**self.base, **self.born}.items()}
        for op, part in kept:
            inode = tree.get(op.inode)
            if op.kind == "names":
                for directory, name, number in op.changes:
                    if number is None:
                        tree[directory].names.pop(name, None)
                    else:
                        tree[directory].names[name] = number
            elif op.kind == "data":
                value = op.value if part is None else op.value[:part]
                if value:
                    before = inode.content[:op.offset].ljust(op.offset, b"\0")
                    inode.content = before + value + inode.content[op.offset + len(value):]
            elif op.kind == "size":
                inode.content = inode.content[:op.value].ljust(op.value, b"\0")
            elif op.kind == "attribute":
                inode.attributes.pop(op.value[0], None)
                if op.value[1] is not None:
                    inode.attributes[op.value[0]] = op.value[1]
            elif op.kind == "mode":
                inode.mode = stat.S_IFMT(inode.mode) | op.value
            elif op.kind == "owner":
                inode.owner = tuple(int(new) if int(new) not in (-1, 2**32 - 1) else old for new, old in zip(op.value, inode.owner, strict=True))
        return tree
