#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a pull from a registry on loopback against inflating and hashing the same layer.

Usage: pull_bench.py BIN_DIR [MEBIBYTES]     needs igzip and openssl; prints a table for docs/performance.md

Peers that are installed are measured too: skopeo with umoci, and curl with sha256sum and tar. umoci has two ways to
unpack: "unpack" makes a runtime's bundle, with a list of all files and their digests, and "raw unpack" the files alone.

The layer holds ten kernels' directories of module-like files (MEBIBYTES in all, default 391), gzip-compressed about
3.5:1. Every row is the best of three runs; files are written to a tmpfs, so that the disk is not measured.
"""

import io
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import oci_image

PEAK = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
KERNELS = [f"6.1.0-{number}-bench" for number in range(10)]


def make_layer(mebibytes):
    """A tar and its gzip form: noise of a quarter of the size, repeated at a distance, as code and symbol tables
    are."""
    noise = random.Random(1)
    out = io.BytesIO()
    size = mebibytes * (1 << 20) // 200
    with tarfile.open(fileobj=out, mode="w") as tar:
        for kernel in KERNELS:
            for number in range(20):
                words = [noise.randbytes(9) for _ in range(1500)]
                body = b"".join(noise.choice(words) + bytes(7) for _ in range(size // 16))
                info = tarfile.TarInfo(f"opt/lib/modules/{kernel}/m{number}.ko")
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
    plain = out.getvalue()
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return plain, packer.compress(plain) + packer.flush()


def best(command, before=lambda: None, runs=3):
    """(seconds, seconds of processor time) of the quickest run."""
    times = []
    for _ in range(runs):
        before()
        start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        line = ["bash", "-o", "pipefail", "-c", command] if isinstance(command, str) else command
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((time.monotonic() - start, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime))
    return min(times)


def main():
    worker = pathlib.Path(sys.argv[1]) / "kmm-worker"
    missing = [program for program in ("igzip", "openssl") if not shutil.which(program)]
    if missing:
        sys.exit(f"not found: {', '.join(missing)} (igzip is in Debian's package isal)")
    plain, layer = make_layer(int(sys.argv[2]) if len(sys.argv) > 2 else 391)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as top:
        file, out, cache = (os.path.join(top, name) for name in ("layer.tar.gz", "out", "cache"))
        pathlib.Path(file).write_bytes(layer)
        _server, repository = oci_image.serve(plain, layer)
        host, path = repository.split("/", 1)
        url = f"http://{host}/v2/{path}/blobs/{oci_image.digest_of(layer)}"

        def clean():
            shutil.rmtree(out, ignore_errors=True)

        pull = [str(worker), "pull", "--insecure", repository + ":v1", "--out", out, "-q"]
        limit = best(f"igzip -dc {file} | openssl dgst -sha256")
        rows = [
            ("igzip -dc LAYER \\| openssl dgst -sha256", limit),
            ("pull, everything", best(pull + ["--kernel", "all"], clean)),
            ("pull, one kernel of ten", best(pull + ["--kernel", KERNELS[3]], clean)),
            ("pull of a cached image, one kernel", best(pull + ["--kernel", KERNELS[3], "--cache-dir", cache], clean)),
        ]
        if shutil.which("curl"):
            tar = f"mkdir {out}; curl -s {url} | tee >(sha256sum >/dev/null) | tar -xz -C {out}"
            rows.append(("curl \\| tee >(sha256sum) \\| tar xz", best(tar, clean)))
        if shutil.which("skopeo") and shutil.which("umoci"):
            copy = f"rm -rf {top}/oci; skopeo copy -q --src-tls-verify=false docker://{repository}:v1 oci:{top}/oci:v1"
            owner = "" if os.geteuid() == 0 else "--rootless"
            rows += [
                (
                    f"skopeo copy and umoci {unpack}",
                    best(f"{copy} && umoci {unpack} {owner} --image {top}/oci:v1 {out}", clean),
                )
                for unpack in ("unpack", "raw unpack")
            ]
            shutil.rmtree(f"{top}/oci", ignore_errors=True)
        clean()
        # A fresh interpreter: the size of this one would count as that of its children.
        peak = (
            int(
                subprocess.run(
                    [sys.executable, "-c", PEAK, *pull, "--kernel", "all"], check=True, stdout=subprocess.PIPE
                ).stdout.split()[-1]
            )
            // 1024
        )
    print(f"layer: {len(layer) / 1e6:.0f} MB gzip, {len(plain) / 1e6:.0f} MB plain\n")
    print("| what | seconds | ratio | processor seconds | ratio |\n| --- | --- | --- | --- | --- |")
    for name, (seconds, cpu) in rows:
        print(f"| {name} | {seconds:.2f} | {seconds / limit[0]:.2f} | {cpu:.2f} | {cpu / limit[1]:.2f} |")
    print(f"\nresident size of the pull of everything: at most {peak} MiB")


if __name__ == "__main__":
    main()
