#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every header of lib/ and tools/ alone, twice included: header_tu.py SOURCE_DIR COMPILER."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys


def compile_alone(compiler, source, header):
    name = header.relative_to(source / header.relative_to(source).parts[0])
    text = f'#include "{name}"\n#include "{name}"\n'
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-I", str(source / "lib"),
               "-I", str(source / "tools"), '-DKMM_VERSION="0"', "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return name, done.returncode, done.stderr


def main():
    source, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    headers = sorted(source.glob("lib/*/*.hpp")) + sorted(source.glob("tools/*/*.hpp"))
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        for name, code, said in pool.map(lambda header: compile_alone(compiler, source, header), headers):
            if code != 0 or said:
                faults += 1
                print(f"{name}:\n{said}")
    print(f"{len(headers)} headers, {faults} faults")
    return 1 if faults or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
