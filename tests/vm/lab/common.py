# SPDX-License-Identifier: Apache-2.0
"""What the parts of the lab share: running programs, free ports, the kernel in use, the lab's directory."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
NODES = ("node-a", "node-b", "node-c")


class LabError(Exception):
    """Something of the lab itself did not work (not the tools under test)."""


def run(args, **options):
    """Runs a program and returns its completed process; a non-zero end is a LabError with the program's own words."""
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise LabError(f"{' '.join(map(str, args))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def need(program):
    """The full path of a program, also from the sbin directories."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = shutil.which(program, path=path)
    if not found:
        raise LabError(f"{program} is not installed; scripts/test.sh and scripts/demo.sh install what the lab needs")
    return found


def headers(kernel):
    """Where Debian's package of headers is."""
    return pathlib.Path(f"/usr/src/linux-headers-{kernel}")


def kernel_release(cloud=False):
    """The newest kernel that has an image, modules and headers on this host: of Debian's packages for machines in a
    cloud, or of the others."""
    wanted = os.environ.get("KMM_VM_KERNEL")
    found = [p.name[len("vmlinuz-"):] for p in pathlib.Path("/boot").glob("vmlinuz-*")]
    found = [k for k in found if headers(k).joinpath("Makefile").exists() and
             pathlib.Path("/lib/modules", k, "modules.dep").exists() and ("-cloud-" in k) == cloud]
    if wanted and not cloud:
        found = [k for k in found if k == wanted]
    if not found:
        kind = "cloud-amd64" if cloud else "amd64"
        raise LabError(
            f"no kernel has its image, modules and headers here; install linux-image-{kind} linux-headers-{kind}"
        )
    return max(found, key=lambda k: [int(n) if n.isdigit() else 0 for n in k.replace("-", ".").split(".")])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, probe, timeout, interval=0.1):
    """Waits until probe() is true; LabError names what was waited for."""
    end = time.monotonic() + timeout
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise LabError(f"timed out after {timeout} s waiting for {what}")
        time.sleep(interval)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def stop_process(pid, grace=5.0):
    """SIGTERM, then SIGKILL, to one process that this lab started."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, grace)):
        if not alive(pid):
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        end = time.monotonic() + patience
        while alive(pid) and time.monotonic() < end:
            time.sleep(0.02)


def spawn(args, log, **options):
    """Starts a program of its own session, output to a file; returns its pid."""
    with open(log, "ab") as out:
        child = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True, **options)
    return child.pid


def say(text):
    print(text, file=sys.stderr, flush=True)


class Lab:
    """A directory with everything of one lab, and its small memory (ports, pids) in lab.json."""

    def __init__(self, directory, kernel=None):
        self.dir = pathlib.Path(directory).resolve()
        self.dir.mkdir(parents=True, exist_ok=True)
        self.kernel = kernel or kernel_release()

    @property
    def _file(self):
        return self.dir / "lab.json"

    def state(self):
        try:
            return json.loads(self._file.read_text())
        except FileNotFoundError:
            return {}

    def remember(self, **values):
        with open(self._file.with_suffix(".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = self.state()
            state.update(values)
            temporary = self._file.with_suffix(".new")
            temporary.write_text(json.dumps(state, indent=2) + "\n")
            temporary.rename(self._file)

    def path(self, *parts):
        path = self.dir.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
