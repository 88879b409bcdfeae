#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test classes on the nodes of a lab that is up: run_tests.py --lab DIR --bin DIR MODULE.CLASS..."""
import argparse
import os
import sys
import unittest

sys.dont_write_bytecode = True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lab", required=True)
    parser.add_argument("--bin", required=True)
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    os.environ["KMM_LAB_DIR"], os.environ["KMM_BIN_DIR"] = options.lab, options.bin
    suite = unittest.defaultTestLoader.loadTestsFromNames(options.tests)
    if suite.countTestCases() == 0:
        print("no tests found", file=sys.stderr)
        return 1
    return 0 if unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
