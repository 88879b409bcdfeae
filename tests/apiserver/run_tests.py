#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test classes on a testbed that is up: run_tests.py --dir DIR --bin DIR --fake DIR MODULE.CLASS..."""
import argparse
import os
import sys

sys.dont_write_bytecode = True

from testbed.servers import Cluster  # noqa: E402
from testbed.testing import run_suite  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--bin", required=True, help="where the tools are")
    parser.add_argument("--fake", required=True, help="where the program is that plays ssh")
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    cluster = Cluster(options.dir)
    if cluster.unavailable():
        print(f"SKIP: {cluster.unavailable()}")
        return 77
    if not cluster.running():
        print(f"the servers of {options.dir} are not running: {cluster.state()}")
        return 1
    os.environ.update(KMM_CLUSTER_DIR=options.dir, KMM_BIN_DIR=options.bin, KMM_FAKE_DIR=options.fake)
    return run_suite(options.tests)


if __name__ == "__main__":
    sys.exit(main())
