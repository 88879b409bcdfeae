#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays a HTML page out in headless Chromium and prints, for each width in pixels, whether it fits.

Usage: page_layout.py FILE WIDTH...

One line a width: "WIDTH fits", or what is wrong with it: the page is wider than its window, folded parts opened, or a
name or time (class k) is broken into several lines. Exit 1 if anything is wrong, 77 if there is no Chromium. The page
may hold no scripts: it is put into a frame of a page that measures it.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MEASURE = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">
<iframe id="page" style="border:0;width:%(width)dpx;height:800px" srcdoc="%(page)s"></iframe>
<pre id="found"></pre>
<script>
const frame = document.getElementById("page");
const measure = () => {
  const page = frame.contentDocument;
  for (const folded of page.querySelectorAll("details")) folded.open = true;
  const broken = [];
  for (const cell of page.querySelectorAll("td.k")) {
    const range = page.createRange();
    range.selectNodeContents(cell);
    const tops = new Set([...range.getClientRects()].map(rect => Math.round(rect.top)));
    if (tops.size > 1 && broken.length < 5) broken.push(cell.textContent);
  }
  const root = page.documentElement;
  document.getElementById("found").textContent = "FOUND" + JSON.stringify(
    {cells: page.querySelectorAll("td.k").length, scroll: root.scrollWidth, client: root.clientWidth, broken}) + "END";
  frame.remove();
};
frame.contentDocument && frame.contentDocument.readyState === "complete" && frame.contentDocument.body.childElementCount ? measure() : frame.onload = measure;
</script>"""


def measure(chromium, page, width, directory):
    wrapper = directory / f"measure-{width}.html"
    wrapper.write_text(MEASURE % {"width": width, "page": html.escape(page)})
    command = [
        chromium,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        f"--user-data-dir={directory}/profile",
        "--window-size=1400,900",
        "--virtual-time-budget=20000",
        "--timeout=120000",
        "--dump-dom",
        f"file://{wrapper}",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=dict(os.environ, HOME=str(directory))
    )
    found = re.search(r'id="found">FOUND(.*?)END<', done.stdout, re.S)
    if not found:
        sys.exit(f"Chromium measured nothing (exit {done.returncode}): {done.stderr[-1000:]}")
    return json.loads(html.unescape(found[1]))


def main():
    chromium = shutil.which("chromium")
    if not chromium:
        print("SKIP: no chromium")
        return 77
    page, bad = pathlib.Path(sys.argv[1]).read_text(), 0
    with tempfile.TemporaryDirectory() as directory:
        for width in map(int, sys.argv[2:]):
            found = measure(chromium, page, width, pathlib.Path(directory))
            faults = []
            if found["client"] != width and not width - 20 <= found["client"] < width:
                faults.append(f"was laid out in {found['client']} pixels")
            if found["scroll"] > found["client"]:
                faults.append(f"is {found['scroll']} pixels wide in a window of {found['client']}")
            if found["cells"] == 0:
                faults.append("has no names or times")
            if found["broken"]:
                faults.append(f"breaks {found['broken']}")
            print(width, "; ".join(faults) or "fits")
            bad += bool(faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
