# SPDX-License-Identifier: Apache-2.0
"""Finds every system call of a command's main thread that can change something, and makes it the last or a failing
one."""
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess

from fleet import scratch

# Everything by which kmm-upgrade changes a file, a lock or another process. Between two of them nothing that outlives
# the process changes, so a kill at any other call leaves what a kill at the next of these leaves.
CHANGING = (
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "ftruncate",
    "fallocate",
    "mkdir",
    "mkdirat",
    "rmdir",
    "chmod",
    "fchmod",
    "fchmodat",
    "fcntl",
    "close",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "kill",
    "flock",
    "symlink",
    "utimensat",
    "exit_group",
)


def changes(name, line, root):
    """Many opens and closes change nothing: libraries, documents that are read, pipes of children."""
    if name == "openat":
        return str(root) in line and any(flag in line for flag in ("O_CREAT", "O_WRONLY", "O_RDWR"))
    if name == "close":
        return any(path in line for path in (".kmm-tmp", "/lock>", "journal.ndjson"))
    return name != "fcntl" or str(root) in line


def points(fleet, arguments, changing=CHANGING, only=None):
    """[(system call, how many-th)] of a dry run of `arguments` on a copy of `fleet`. `only`: a path part that the
    call's line must have."""
    where = scratch("dry")
    try:
        world = fleet.copy(where / "w")
        log = where / "strace"
        prefix = ("strace", "-y", "-qq", "-o", log, "-e", "trace=" + ",".join("?" + name for name in changing),
                  "-e", "signal=none")
        done = world.run(*arguments, prefix=prefix)
        count, found = collections.Counter(), []
        for line in log.read_text(errors="replace").splitlines():
            match = re.match(r"([a-z0-9_]+)\(", line)
            if not match:
                continue
            name = match[1]
            count[name] += 1
            if not changes(name, line, world.root) or (only and only not in line):
                continue
            found.append((name, count[name]))
        return found, done
    finally:
        shutil.rmtree(where, ignore_errors=True)


def tried(found, nth=2):
    """Those of the calls that are tried: every `nth`, with KMM_FULL=1 all."""
    return found if os.environ.get("KMM_FULL") else found[::nth]


def every(cases, body, workers=2):
    """Runs body(case) for all cases; returns [(case, fault)] of those whose body returned a text."""
    faults = []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for case, fault in zip(cases, pool.map(body, cases)):
            if fault:
                faults.append((case, fault))
    return faults


def inject(names, what):
    """The prefix that makes calls of `names`, separated by commas, do `what`, e.g. "signal=KILL:when=3": see
    inject.cpp."""
    return (os.environ["KMM_INJECT"], f"{names}:{what}")


def usable():
    """True where processes may be traced: with both programs."""
    for command in (("strace", "-qq", "-o", "/dev/null", "true"), (*inject("getpid", "error=EIO"), "true")):
        try:
            if (
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
                != 0
            ):
                return False
        except FileNotFoundError:
            return False
    return True
