#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one golden case: a command line against the texts it must print.

A case is a directory tests/golden/TOOL/CASE with
  cmd          one command line, run without a shell, which may go on behind a backslash at a line's end;
               or several lines, run by sh -e
  in/          optional: copied to a temporary directory, which is the current directory
  expect.out   standard output, absent = empty
  expect.err   standard error, absent = empty
  expect.exit  exit code, absent = 0
  normalise    optional: lines "REGEXP => TEXT" applied to what was printed, after the built-in ones
  needs        optional: "root"; without it the case is skipped (exit 77)

KMM_ACCEPT=1 writes what was printed as the new expectation. Review it like code.
Of several cases --jobs run at a time, in one process: a skipped one is named and is no failure.
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

SKIP = 77
TIMEOUT_SECONDS = 1200

BUILT_IN = [
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"(?<![\d:.-])\d\d:\d\d:\d\d(?![\d:.-])"), "<clock>"),
    (re.compile(r"\b(kmm-(?:plan|upgrade|worker)) \d+\.\d+\.\d+\b"), r"\1 <version>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\bpid \d+"), "pid <n>"),
    (re.compile(r'"durationMs": \d+'), '"durationMs": <ms>'),
]


def normalise(text, top, rules):
    for path in {str(top), os.path.realpath(top)}:
        text = text.replace(f"{path}/work", "<dir>").replace(f"{path}/home", "<home>")
    host = socket.gethostname()
    if len(host) > 2:
        text = re.sub(r"(?<![\w.-])" + re.escape(host) + r"(?![\w-])", "<host>", text)
    text = text.replace(os.uname().release, "<kernel>")
    for pattern, replacement in BUILT_IN + rules:
        text = pattern.sub(replacement, text)
    return text


def read_rules(case):
    rules = []
    path = case / "normalise"
    if path.exists():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            pattern, arrow, replacement = line.partition(" => ")
            if not arrow:
                sys.exit(f"{path}:{number}: expected REGEXP => TEXT")
            rules.append((re.compile(pattern, re.MULTILINE), replacement))
    return rules


def environment(bin_dir, home):
    kept = {
        name: value for name, value in os.environ.items() if name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
    }
    kept.update(
        PATH=f"{bin_dir}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        HOME=str(home), XDG_STATE_HOME=str(home / "state"), XDG_CONFIG_HOME=str(home / "config"),
        LC_ALL="C.UTF-8", TERM="dumb", TZ="UTC", COLUMNS="80",
        KMM_SUPPORT=str(pathlib.Path(__file__).resolve().parent.parent / "support"),
    )
    return kept


def command_of(case):
    text = (case / "cmd").read_text()
    lines = [line for line in text.replace("\\\n", "").splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) == 1:
        return shlex.split(lines[0])
    return ["sh", "-e", "-c", text]


def run(case, bin_dir):
    with tempfile.TemporaryDirectory(prefix="kmm-golden-") as top:
        top = pathlib.Path(top)
        work, home = top / "work", top / "home"
        if (case / "in").exists():
            shutil.copytree(case / "in", work, symlinks=True)
        else:
            work.mkdir()
        home.mkdir()
        done = subprocess.run(
            command_of(case), cwd=work, env=environment(bin_dir, home), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS, check=False,
        )
        rules = read_rules(case)
        out = normalise(done.stdout.decode("utf-8", "backslashreplace"), top, rules)
        err = normalise(done.stderr.decode("utf-8", "backslashreplace"), top, rules)
        return {"expect.out": out, "expect.err": err, "expect.exit": f"{done.returncode}\n"}


def expected(case, name):
    path = case / name
    if path.exists():
        return path.read_text()
    return "0\n" if name == "expect.exit" else ""


def accept(case, printed):
    for name, text in printed.items():
        path = case / name
        empty = text == ("0\n" if name == "expect.exit" else "")
        if empty and path.exists():
            path.unlink()
        elif not empty:
            path.write_text(text)


def check(case, bin_dir):
    """(exit code, what to say) of one case."""
    needs = (case / "needs").read_text().split() if (case / "needs").exists() else []
    if "root" in needs and os.geteuid() != 0:
        return SKIP, "SKIP: needs root\n"
    try:
        printed = run(case, bin_dir)
    except subprocess.TimeoutExpired:
        return 1, f"it takes longer than {TIMEOUT_SECONDS} seconds\n"
    if os.environ.get("KMM_ACCEPT") == "1":
        accept(case, printed)
        return 0, ""
    said = ""
    for name, text in printed.items():
        want = expected(case, name)
        if want == text:
            continue
        said += "".join(
            line if line.endswith("\n") else line + "\n\\ no newline at the end\n"
            for line in difflib.unified_diff(
                want.splitlines(True), text.splitlines(True), f"{case.name}/{name}", "printed")
        )
    if said:
        said += "if this is intended: KMM_ACCEPT=1 ctest -R golden\n"
    return (1 if said else 0), said


def main():
    parser = argparse.ArgumentParser(description="run golden cases")
    parser.add_argument("--bin", required=True, help="directory of the kmm-* programs")
    parser.add_argument("--jobs", type=int, default=1, help="how many cases at a time")
    parser.add_argument("cases", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    bin_dir = os.path.abspath(arguments.bin)
    if len(arguments.cases) == 1:
        code, said = check(arguments.cases[0], bin_dir)
        sys.stdout.write(said)
        return code
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda case: check(case, bin_dir), arguments.cases)
        for case, (code, said) in zip(arguments.cases, results):
            failed += code not in (0, SKIP)
            if said:
                print(f"{case.name}:\n{said}", end="", flush=True)
    print(f"{len(arguments.cases)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
