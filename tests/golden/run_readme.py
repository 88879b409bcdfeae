#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the ```console blocks of a page, one after the other, and compares what they print.

Usage: run_readme.py BIN_DIR PAGE FLEET. FLEET is copied to the current directory as `fleet`. KMM_ACCEPT=1 writes what
was printed into the page.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from run_golden import environment

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def run_block(block, work, env):
    text = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(["sh", "-c", line[2:]], cwd=work, env=env, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
            text += line + "\n" + done.stdout
    return text


def main():
    bin_dir, page, fleet = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory(prefix="kmm-readme-") as top:
        work = pathlib.Path(top) / "work"
        shutil.copytree(fleet, work / "fleet")
        env = environment(bin_dir, pathlib.Path(top))
        old = page.read_text()
        new = BLOCK.sub(lambda found: f"```console\n{run_block(found[1], work, env)}```", old)
    blocks = len(BLOCK.findall(old))
    if os.environ.get("KMM_ACCEPT") == "1":
        page.write_text(new)
        return 0
    if new != old:
        for want, have in zip(BLOCK.findall(old), BLOCK.findall(new)):
            if want != have:
                print(f"{page.name} says:\n{want}\nit is:\n{have}")
    print(f"{blocks} blocks")
    return 1 if new != old or not blocks else 0


if __name__ == "__main__":
    sys.exit(main())
