#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what kmm-worker costs on a node: `check` of a tree of many modules, `load` of a cached image.

Usage: node_bench.py BUILD_DIR MODULE.ko [FILES]                  prints a table for docs/performance.md
       node_bench.py BUILD_DIR MODULE.ko FILES OTHER_WORKER RUNS  the ratios to another kmm-worker, RUNS times in turns

The tree holds FILES (default 5,000) variants of MODULE.ko, a real module of at least 8 letters in its name and without
a compressed form; the host is made up, with 200,000 lines of kallsyms. The kernel of `load` is the library of the
goldens, so that its own time does not count. Everything lies on a tmpfs; each row is the best of five runs, processor
time beside the clock.
"""

import ctypes
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import oci_image  # noqa: E402
import pull_bench  # noqa: E402
import worker_case  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36  # Linux include/uapi/linux/prctl.h


def variants(original, directory, count):
    """Modules m0000000, m0000001, ...: another name and srcversion, the rest as it was."""
    data = original.read_bytes()
    name = re.search(rb"\0name=([^\0]+)\0", data).group(1)
    release = re.search(rb"\0vermagic=(\S+)", data).group(1).decode()
    directory.mkdir()
    for number in range(count):
        changed = b"m%0*d" % (len(name) - 1, number)
        # The name stands in .modinfo and, between zeros, in .gnu.linkonce.this_module; what it is needed for elsewhere
        # stays.
        body = data.replace(b"\0name=" + name + b"\0", b"\0name=" + changed + b"\0")
        body = body.replace(bytes(16) + name + bytes(16), bytes(16) + changed + bytes(16))
        (directory / (changed.decode() + ".ko")).write_bytes(body)
    return release, re.search(rb"\0vermagic=([^\0]+)", data).group(1).decode(), "m" + "0" * (len(name) - 1)


def run_once(command, environment):
    """(seconds, seconds of processor time of all its processes, what it printed)."""
    start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    spent = time.monotonic() - start
    try:  # processes that end with the command and that nobody has waited for are ours, see main()
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime, done.stdout


def best(command, environment, runs=5):
    """The quickest run."""
    return min(run_once(command, environment) for _ in range(runs))


def system_calls(command, environment):
    counts = subprocess.run(
        ["strace", "-f", "-c", "-U", "calls,name", "-o", "/dev/stdout", *command, "-q", "-o", "name"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    return int(re.search(r"^\s*(\d+)\s+total$", counts, re.M).group(1))


def check_command(worker, module, count, top):
    tree, host, scratch = (top / name for name in ("tree", "host", "scratch"))
    release, vermagic, name = variants(module, tree, count)
    scratch.mkdir()
    worker_case.make_host(host, {"release": release})
    worker_case.put(host / f"lib/modules/{release}/kernel/reference.ko",
                    worker_case.make_ko({"name": "reference", "modinfo": ["intree=Y"], "vermagic": vermagic}))
    undefined = subprocess.run(["nm", "-u", module], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    symbols = [f"0000000000000000 t symbol_{number}\n" for number in range(200_000)]
    symbols += [f"0000000000000000 r __ksymtab_{symbol}\n" for symbol in undefined if symbol != "U"]
    worker_case.put(host / "proc/kallsyms", "".join(symbols))
    depends = re.search(rb"\0depends=([^\0]*)\0", module.read_bytes()).group(1).decode()
    for need in filter(None, depends.split(",")):
        worker_case.put(host / f"sys/module/{need}/initstate", "live\n")
    environment = dict(os.environ, KMM_HOST_ROOT=str(host), TMPDIR=str(scratch))
    return [worker, "check", "--image", f"dir:{tree}", "--module", name, "-o", "json"], environment


class Loads:
    """Loads of a small module out of a layer that holds `beside` MB of another kernel as well, each followed by an
    unload."""

    def __init__(self, build, top, beside):
        other = random.Random(1).randbytes(beside * 1_000_000).decode("latin-1")
        case = {
            "image": {
                "modules": [{"name": "demo", "undefined": ["_printk"]}],
                "files": {"opt/lib/modules/other/big.ko": other},
            }
        }
        self.top = top / f"load-{beside}"
        host, scratch = (self.top / name for name in ("load-host", "load-scratch"))
        scratch.mkdir(parents=True)
        worker_case.make_host(host, {})
        self.address = worker_case.registry(worker_case.make_image(case["image"]))
        (self.top / "script").write_text("")
        self.kernel = str(build / "lib/libfake_kernel.so")
        self.environment = dict(os.environ, KMM_HOST_ROOT=str(host), TMPDIR=str(scratch), KMM_VERIFY_AFTER="0s",
                                FAKE_KERNEL_SCRIPT=str(self.top / "script"))

    def command(self, worker, cache="cache"):
        return [
            worker,
            "load",
            "--image",
            f"{self.address}/drivers/demo:v2",
            "--module",
            "demo",
            "--insecure",
            "--cache-dir",
            str(self.top / cache),
            "--image-pull-policy",
            "IfNotPresent",
        ]

    def once(self, worker, cache="cache"):
        preloaded = dict(self.environment, LD_PRELOAD=self.kernel)
        spent = run_once([*self.command(worker, cache), "-o", "json"], preloaded)
        subprocess.run(
            [worker, "unload", "--module", "demo", "-q"], env=preloaded, stdout=subprocess.DEVNULL, check=True
        )
        return spent

    def pull(self, worker, *options):
        out = self.top / "out"
        shutil.rmtree(out, ignore_errors=True)
        return run_once(
            [
                worker,
                "pull",
                f"{self.address}/drivers/demo:v2",
                "--kernel",
                "all",
                "--out",
                str(out),
                "--insecure",
                *options,
            ],
            self.environment,
        )

    def row(self, worker):
        rows = [self.once(worker) for _ in range(8)]
        traced = ["env", f"LD_PRELOAD={self.kernel}", *self.command(worker)]
        return min(rows[1:]), system_calls(traced, self.environment)  # the first one fills the cache


class Layer:
    """Pulls of the layer of pull_bench.py, which has the modules of ten kernels."""

    def __init__(self, top):
        plain, packed = pull_bench.make_layer(391)
        self.server, self.repository = oci_image.serve(plain, packed)
        self.out = top / "layer-out"

    def pull(self, worker, kernel):
        shutil.rmtree(self.out, ignore_errors=True)
        command = [worker, "pull", f"{self.repository}:v1", "--insecure", "--out", str(self.out), "-q"]
        return run_once([*command, "--kernel", kernel], dict(os.environ))


def print_ratios(worker, other, runs, command, environment, loads, large, layer):
    """The best of `runs` runs of each, one after the other, so that what else the machine does hits both."""
    ways = {"check": lambda program, _: run_once([program, *command[1:]], environment),
            "load of a cached module": loads.once,
            "pull of 116 MB, everything": lambda program, _: layer.pull(program, "all"),
            "pull of 116 MB, one kernel of ten": lambda program, _: layer.pull(program, pull_bench.KERNELS[3]),
            "pull of a small image": lambda program, _: loads.pull(program),
            "pull of one file of 100 MB that gzip cannot shrink": lambda program, _: large.pull(program),
            "pull of a cached image": lambda program, whose: loads.pull(program, "--cache-dir", str(loads.top / whose))}
    print("| what | seconds | ratio | processor seconds | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for what, way in ways.items():
        pairs = [(way(worker, "ours"), way(other, "theirs")) for _ in range(runs + 1)][1:]
        ours, theirs = ([min(pair[which][column] for pair in pairs) for column in (0, 1)] for which in (0, 1))
        print(f"| {what} | {ours[0]:.4f} | {ours[0] / theirs[0]:.2f} | {ours[1]:.4f} | {ours[1] / theirs[1]:.2f} |")


def main():
    build, module = pathlib.Path(sys.argv[1]).absolute(), pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    worker = str(build / "bin/kmm-worker")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        top = pathlib.Path(directory)
        command, environment = check_command(worker, module, count, top)
        if len(sys.argv) > 5:
            return print_ratios(worker, sys.argv[4], int(sys.argv[5]), command, environment, Loads(build, top, 0),
                                Loads(build, top, 100), Layer(top))
        checked = best(command, environment)
        loads = [(beside, *Loads(build, top, beside).row(worker)) for beside in (0, 100)]
    print("| what | seconds | processor seconds | phases in ms |\n| --- | --- | --- | --- |")
    rows = [(f"check of {count} modules", checked)]
    rows += [
        (f"load of a cached module, {beside} MB beside it in the layer, {calls} system calls", loaded)
        for beside, loaded, calls in loads
    ]
    for what, (seconds, cpu, document) in rows:
        phases = json.loads(document)["durationsMs"]
        print(
            f"| {what} | {seconds:.3f} | {cpu:.3f} | {', '.join(f'{name} {phases[name]}' for name in sorted(phases))} |"
        )


if __name__ == "__main__":
    main()
