# SPDX-License-Identifier: Apache-2.0
"""usage: run_tests.py --bin DIR --fake DIR --inject PROGRAM TEST...   TEST: test_FILE[.Class[.method]]; exit 77 when
all were skipped."""
import argparse
import os
import pathlib
import sys
import unittest

import case
import fleet


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--fake", type=pathlib.Path, required=True)
    parser.add_argument("--inject", type=pathlib.Path, required=True)
    parser.add_argument("tests", nargs="+")
    options = parser.parse_args()
    os.environ["KMM_INJECT"] = str(options.inject)
    case.TOOLS = fleet.Tools(options.bin, options.fake)
    suite = unittest.defaultTestLoader.loadTestsFromNames(options.tests)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        return 1
    return 77 if result.testsRun == len(result.skipped) or (result.skipped and result.testsRun == 0) else 0


if __name__ == "__main__":
    sys.exit(main())
