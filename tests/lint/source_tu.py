#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source of lib/ and tools/ compiles by itself: source_tu.py SOURCE_DIR COMPILER.

The scripts build all sources of a room as one unit, where one has what those before it include. The presets build each
alone. The standard headers that most sources include are parsed once, for all of them. Whether texts fit their
arguments is found where programs are built: here fmt is one declaration, or that would be a sixth of the work.

With CI=true and not KMM_FULL=1: the sources that the last commits changed, those that prove a header which these
changed (lint.headers), and of all others a twelfth, another one with each commit. All together is a tenth of a whole
run."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STANDARD = """algorithm array atomic cerrno charconv chrono cmath condition_variable cstddef cstdint cstdlib cstring deque exception
filesystem fstream functional iterator limits map memory mutex optional set span sstream stdexcept string string_view system_error
thread tuple unordered_map utility vector fmt/format.h""".split()

FMT = """#pragma once
#include <string>
#include <string_view>
namespace fmt { template <class... Args> std::string format(std::string_view form, const Args&... args); }
"""


class Compiler:
    def __init__(self, compiler, source, scratch):
        self.parsed = scratch / "parsed.hpp"
        (scratch / "fmt").mkdir()
        (scratch / "fmt/format.h").write_text(FMT)
        self.command = [compiler, "-std=c++20", "-D_FILE_OFFSET_BITS=64", '-DKMM_VERSION="0"', f"-I{scratch}",
                        *(f"-I{source / directory}" for directory in ("lib", "tools"))]
        self.parsed.write_text("".join(f"#include <{name}>\n" for name in STANDARD))
        subprocess.run([*self.command, "-x", "c++-header", str(self.parsed), "-o", f"{self.parsed}.gch"], check=True)

    def compiled(self, path):
        """What the compiler says of a source."""
        done = subprocess.run(
            [*self.command, "-fsyntax-only", "-include", str(self.parsed), str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        errors = [line for line in done.stderr.splitlines() if re.search(r": (fatal )?error:", line)]
        return (errors[:3] or [f"{path}: {done.stderr}"]) if done.returncode != 0 else []


RECENT = 5
PARTS = 12


def git(source, *words):
    return subprocess.run(["git", "-C", source, *words], capture_output=True, text=True, check=False).stdout


def chosen(source, paths):
    """Those of `paths` whose turn it is; all where git cannot tell."""
    count = git(source, "rev-list", "--count", "HEAD").strip()
    if os.environ.get("CI") != "true" or os.environ.get("KMM_FULL") or not count.isdigit() or int(count) <= RECENT:
        return paths
    changed = set(git(source, "diff", "--name-only", f"HEAD~{RECENT}").splitlines())
    def is_chosen(number, path):
        first = re.search(r'^#include "([^"]+)"', path.read_text(), re.M)
        proved = {f"{top}/{first[1]}" for top in ("lib", "tools")} if first else set()
        return (
            number % PARTS == int(count) % PARTS
            or str(path.relative_to(source)) in changed
            or not proved.isdisjoint(changed)
        )
    return [path for number, path in enumerate(paths) if is_chosen(number, path)]


def main():
    source = pathlib.Path(sys.argv[1])
    every = [path for top in ("lib", "tools") for path in sorted((source / top).rglob("*.cpp"))]
    paths = chosen(source, every)
    with tempfile.TemporaryDirectory() as scratch, \
         concurrent.futures.ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        compiler = Compiler(sys.argv[2], source, pathlib.Path(scratch))
        said = pool.map(compiler.compiled, paths)
        faults = [line for lines in said for line in lines]
    print("\n".join(faults))
    print(f"{len(paths)} of {len(every)} sources, {len(faults)} faults")
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
