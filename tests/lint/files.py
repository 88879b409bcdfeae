#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every file of the project: length, licence line, paths of a developer's machine, links of the pages.

Usage: files.py SOURCE_DIR CHECK, CHECK being one of length, licence, machine-paths, links, unfinished, threads, errno,
neutral.
"""

import io
import pathlib
import re
import subprocess
import sys
import tokenize

LINES_MAX = 500
COLUMNS_MAX = 120
RAW_STRING = re.compile(r'R"([^\s()\\]{0,16})\(.*?\)\1"', re.S)  # what another program reads keeps its own lines
SHELL = re.compile(r"#!\S*/(env )?(ba)?sh\b")
PAGE_MAX = 8192  # bytes of a page of docs/
SOURCES = {".cpp", ".hpp", ".c", ".h", ".cc"}
LICENSED = SOURCES | {".py", ".sh", ".cmake", ".bats"}
# The pattern is cut in pieces so that it does not find itself.
MACHINE = re.compile(
    r"/wo" r"rk/|/tmp/(tr" r"ees|b-[a-z]\b)|/fa" r"rm/|deb\.deb" r"ian\.org|proxy\.gol" r"ang|registry\.npm" r"js"
)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
# Where a thread is started: by its type, as a member, or in a list of them.
THREAD = re.compile(r"std::j?thread\(|\bthread_\(\[|\bthreads\.emplace")
ERRNO_ARGUMENT = re.compile(r"(?:\(\s*errno\s*,|,\s*errno\s*[,)]|\bfrom_errno\(\s*errno\b)")
# Rooms that carry any procedure, and words of one of them; the names of our commands and namespaces are not such words.
NEUTRAL = ("lib/upgrade/engine/", "lib/upgrade/drive/", "lib/upgrade/actor_parts/")
FOREIGN = re.compile(
    r"modules?\b|(?<![.\"/-])\bkmm\b(?!::|-upgrade|-worker|tools)|labels?\b|firmware|unload|insmod|modprobe|kubeadm|recipe|chart",
    re.I,
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def tracked(source):
    listed = subprocess.run(["git", "-C", str(source), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
        return [source / name for name in names if name and (source / name).is_file()]
    return [path for path in source.rglob("*") if path.is_file() and "/." not in str(path.relative_to(source))]


def text_of(path):
    data = path.read_bytes()
    return "" if b"\0" in data[:8192] else data.decode("utf-8", "replace")


def is_script(path, text):
    return text.startswith("#!") or path.suffix in LICENSED or path.name == "CMakeLists.txt"


def is_shell(path, text):
    """Whether this is a shell script; the commands of a golden case are one too."""
    return path.suffix == ".sh" or SHELL.match(text) or path.match("tests/golden/*/*/cmd")


def without_raw_strings(text):
    return RAW_STRING.sub(lambda raw: "\n" * raw.group().count("\n"), text)


def without_texts(text):
    """Python without lines that consist of a long text: data, which no wrapping makes clearer. Docstrings stay."""
    lines = text.split("\n")
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_long = token.type == tokenize.STRING and max(map(len, token.string.split("\n"))) > COLUMNS_MAX // 2
        is_docstring = before in (tokenize.NEWLINE, tokenize.INDENT)
        for number in range(token.start[0], token.end[0] + 1) if is_long and not is_docstring else ():
            lines[number - 1] = ""
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token.type
    return "\n".join(lines)


def check_length(path, text):
    lines = text.count("\n")
    if path.suffix in SOURCES | {".py", ".sh"} and lines > LINES_MAX:
        yield f"{lines} lines, at most {LINES_MAX}: it wants a second file or a new room"
    if path.suffix in SOURCES | {".py", ".cmake"} or path.name == "CMakeLists.txt" or is_shell(path, text):
        without = without_texts if path.suffix == ".py" else without_raw_strings
        for number, line in enumerate(without(text).split("\n"), 1):
            if len(line) > COLUMNS_MAX:
                yield f"line {number}: {len(line)} columns, at most {COLUMNS_MAX}"
    size = len(text.encode())
    if path.suffix == ".md" and path.parent.name in ("docs", "schema") and size > PAGE_MAX:
        yield f"{size} bytes, at most {PAGE_MAX}: a page answers one question"


def check_licence(path, text):
    if (
        text
        and is_script(path, text)
        and "SPDX-License-Identifier: Apache-2.0" not in "".join(text.splitlines(True)[:3])
    ):
        # Kernel modules for the tests say GPL-2.0, as the kernel demands.
        if "SPDX-License-Identifier: GPL-2.0" not in text[:200]:
            yield "no SPDX-License-Identifier in the first three lines"


def check_machine_paths(_path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE.search(line):
            yield f"line {number}: path or host of a developer's machine: {line.strip()[:80]}"


def check_threads(path, text):
    """What leaves a thread's function ends the whole program without a word: a file that starts one catches
    everything."""
    if path.suffix in SOURCES and "tests" not in path.parts and THREAD.search(text) and "catch (...)" not in text:
        yield "starts a thread, but has no catch (...): an exception that is not an Error would end the program"


def check_unfinished(path, text):
    if path.suffix in LICENSED:
        for number, line in enumerate(text.splitlines(), 1):
            if UNFINISHED.search(line):
                yield f"line {number}: unfinished mark: {line.strip()[:80]}"


def anchors(text):
    for line in text.splitlines():
        heading = re.match(r"#+\s+(.*)", line)
        if heading:
            yield re.sub(r"[^\w\- ]", "", heading[1].strip().lower()).replace(" ", "-")


def check_links(path, text):
    if path.suffix != ".md":
        return
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    for target in LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (path.parent / name) if name else path
        if not other.exists():
            yield f"link to {target}: no such file"
        elif anchor and other.suffix == ".md" and anchor not in set(anchors(other.read_text())):
            yield f"link to {target}: no such heading"


def check_errno(path, text):
    """errno as an argument of a call may be read after another argument was made, which can change it."""
    if path.suffix in SOURCES and {"lib", "tools"} & set(path.parts):
        for number, line in enumerate(text.splitlines(), 1):
            if ERRNO_ARGUMENT.search(line):
                yield f"line {number}: errno is an argument: use LastErrno().error(...), or save it first: {line.strip()[:80]}"


def check_neutral(path, text):
    """The engine and its hands know no procedure."""
    if path.suffix not in SOURCES or not any(room in path.as_posix() for room in NEUTRAL):
        return
    for number, line in enumerate(text.splitlines(), 1):
        word = FOREIGN.search(line.replace("namespace kmm", ""))
        if word:
            yield f"line {number}: \"{word[0]}\" is a word of one procedure: {line.strip()[:80]}"


CHECKS = {
    "length": check_length, "licence": check_licence, "machine-paths": check_machine_paths,
    "links": check_links, "threads": check_threads, "unfinished": check_unfinished, "errno": check_errno,
    "neutral": check_neutral,
}


def main():
    source, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    faults = files = 0
    for path in tracked(source):
        files += 1
        for fault in CHECKS[name](path, text_of(path)):
            faults += 1
            print(f"{path.relative_to(source)}: {fault}")
    print(f"{name}: {files} files, {faults} faults")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
