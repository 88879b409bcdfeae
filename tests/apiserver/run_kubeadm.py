#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test classes on clusters that kubeadm makes: run_kubeadm.py --dir DIR --build DIR --bin DIR MODULE.CLASS...; as
root."""
import argparse
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "vm"))

from testbed import binaries, machine_disk  # noqa: E402
from testbed.testing import run_suite  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True, help="where the lab is; it must be on a disk")
    parser.add_argument("--build", required=True, help="where Go may work and packages are kept")
    parser.add_argument("--bin", required=True, help="where the tools are")
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    if os.geteuid() != 0 or not pathlib.Path("/sys/fs/cgroup").is_dir():
        print("SKIP: needs root, for namespaces")
        return 77
    build = pathlib.Path(options.build)
    try:
        binaries.build_all(build, (*binaries.KUBEADM, binaries.PATCH, binaries.CRICTL, binaries.ETCDUTL))
        machine_disk.packages(build / "machine-packages")
    except binaries.Unavailable as error:
        print(f"SKIP: {error}")
        return 77
    os.environ.update(KMM_LAB_DIR=options.dir, KMM_LAB_BUILD=options.build, KMM_BIN_DIR=options.bin)
    return run_suite(options.tests)


if __name__ == "__main__":
    sys.exit(main())
