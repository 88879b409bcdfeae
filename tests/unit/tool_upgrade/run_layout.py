#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: run_layout.py UNIT_TESTS PAGE_LAYOUT   Pages of 3 and of 2,000 nodes, made by the unit tests, in Chromium;
exit 77 without one."""
import os
import pathlib
import subprocess
import sys
import tempfile

unit, layout = sys.argv[1:]
with tempfile.TemporaryDirectory() as directory:
    subprocess.run(
        [unit, "-tc=pages that are laid out"],
        env=dict(os.environ, KMM_PAGES=directory),
        check=True,
        stdout=subprocess.DEVNULL,
    )
    pages = sorted(pathlib.Path(directory).iterdir())
    if len(pages) != 2:
        sys.exit(f"expected two pages, found {pages}")
    ends = []
    for page in pages:
        print(f"{page.name}: {page.stat().st_size} bytes", flush=True)
        ends.append(subprocess.run([sys.executable, layout, str(page), "400", "1200"], check=False).returncode)
sys.exit(max(ends))
