#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header of lib/ and tools/ stands alone: header_tu.py SOURCE_DIR COMPILER.

A header that a source includes before all others of the project stands alone if that source does (lint.sources). Any
other one is compiled here, after nothing that it does not include itself. What a header needs of the standard library
is read from its text instead, because the standard headers, parsed once for all, are then most of the work saved."""

import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Where the names of namespace std are. A header may also have them from a project header that it includes.
HOME = {
    "algorithm": "find max min sort all_of any_of reverse find_if lower_bound binary_search count_if",
    "any": "any",
    "array": "array",
    "atomic": "atomic",
    "charconv": "from_chars from_chars_result",
    "chrono": "chrono",
    "concepts": "same_as",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "cstring": "memmove",
    "condition_variable": "condition_variable condition_variable_any",
    "cstddef": "size_t ptrdiff_t byte nullptr_t",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "deque": "deque",
    "exception": "current_exception exception exception_ptr rethrow_exception",
    "filesystem": "filesystem",
    "functional": "function less hash reference_wrapper",
    "initializer_list": "initializer_list",
    "iterator": "prev forward_iterator_tag",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared",
    "mutex": "mutex lock_guard unique_lock scoped_lock",
    "optional": "optional nullopt make_optional",
    "random": "minstd_rand mt19937 mt19937_64",
    "set": "set multiset",
    "shared_mutex": "shared_mutex shared_lock",
    "span": "span",
    "string": "string to_string char_traits u32string",
    "string_view": "string_view u32string_view",
    "type_traits": "is_integral_v",
    "system_error": "errc error_code system_error",
    "thread": "thread jthread",
    "tuple": "tuple tie",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "utility": "pair move forward exchange swap as_const in_place",
    "variant": "variant monostate visit get_if holds_alternative",
    "vector": "vector",
}
WHERE = {name: header for header, names in HOME.items() for name in names.split()}
# Named wherever one of these is, which every implementation takes along.
ALONG = {"utility": {"map", "set", "memory", "optional", "tuple", "variant", "functional", "vector", "string"},
         "cstddef": {"string", "vector", "string_view", "span", "array", "memory", "map", "set", "functional"},
         "functional": {"map", "set"}, "initializer_list": {"vector", "map", "set", "string"}, "optional": set(),
         "string_view": {"string"}, "exception": {"thread"}}


class Text:
    """What one header includes and names."""

    def __init__(self, path):
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.S)
        self.is_guarded = re.search(r"^#pragma once$", text, re.M) is not None
        self.standard = set(re.findall(r"^#include <([^>]+)>", text, re.M))
        self.project = re.findall(r'^#include "([^"]+)"', text, re.M)
        self.names = {}
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"\bstd::([a-z_0-9]+)", re.sub(r'"(\\.|[^"\\])*"', '""', line)):
                self.names.setdefault(name, number)


def reach(texts, name, seen=None):
    """The standard headers that a header includes, itself or by project headers."""
    seen = set() if seen is None else seen
    if name in seen or name not in texts:
        return set()
    seen.add(name)
    return texts[name].standard.union(*(reach(texts, other, seen) for other in texts[name].project))


def unnamed(texts, name):
    """The lines about names of std whose header is not included."""
    there = reach(texts, name)
    faults = []
    for used, line in texts[name].names.items():
        home = WHERE.get(used)
        if home is None:
            faults.append(f"{name}:{line}: std::{used}: in no header that this check knows: add it to HOME")
        elif home not in there and not ALONG.get(home, set()) & there:
            faults.append(f"{name}:{line}: std::{used}: expected #include <{home}>")
    return faults


def inside(texts, name, seen=None):
    """The project headers that a header includes, itself or by others."""
    seen = set() if seen is None else seen
    for other in texts[name].project:
        if other in texts and other not in seen:
            seen.add(other)
            inside(texts, other, seen)
    return seen


def chains(texts):
    """All headers in as few rows as there can be, each header included by the next one of its row: what stands before
    it there it includes itself, so it stands alone if it compiles."""
    holders = {name: [] for name in texts}
    for holder in texts:
        for name in inside(texts, holder) - {holder}:
            holders[name].append(holder)
    below = {}

    def placed(name, tried):
        """Puts a header below one that includes it; others move to make room."""
        for holder in holders[name]:
            if holder not in tried:
                tried.add(holder)
                if holder not in below or placed(below[holder], tried):
                    below[holder] = name
                    return True
        return False
    tops = [name for name in texts if not placed(name, set())]
    rows = []
    for name in tops:
        row = [name]
        while row[0] in below:
            row.insert(0, below[row[0]])
        rows.append(row)
    return rows


def proved_by_sources(source):
    """The headers that some source includes before all others of the project."""
    firsts = (re.search(r'^#include "([^"]+)"', path.read_text(), re.M)
              for top in ("lib", "tools") for path in (source / top).rglob("*.cpp"))
    return {first[1] for first in firsts if first}


class Compiler:
    USUAL = 10  # a standard header that so many headers name is worth to be read with every one of them

    def __init__(self, compiler, source, scratch):
        self.command = [
            compiler,
            "-std=c++20",
            "-Wall",
            "-Wextra",
            "-I",
            str(source / "lib"),
            "-I",
            str(source / "tools"),
            '-DKMM_VERSION="0"',
        ]
        self.standard = scratch / "standard.hpp"

    def prepare(self, texts):
        """Parses the usual standard headers, for all that are compiled after."""
        named = collections.Counter(name for text in texts.values() for name in text.standard)
        usual = sorted(name for name, times in named.items() if times >= self.USUAL)
        self.standard.write_text("".join(f"#include <{name}>\n" for name in usual))
        subprocess.run(
            [*self.command, "-x", "c++-header", str(self.standard), "-o", f"{self.standard}.gch"], check=True
        )

    def compiled(self, row):
        """What the compiler says of the headers of a row."""
        text = "".join(f'#include "{name}"\n' for name in row)
        done = subprocess.run(
            [*self.command, "-fsyntax-only", "-include", str(self.standard), "-x", "c++", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        return [f"{' '.join(row)}:\n{done.stderr}"] if done.returncode != 0 or done.stderr else []


def main():
    source = pathlib.Path(sys.argv[1])
    paths = sorted(source.glob("lib/**/*.hpp")) + sorted(source.glob("tools/**/*.hpp"))
    texts = {str(path.relative_to(source / path.relative_to(source).parts[0])): Text(path) for path in paths}
    faults = [fault for name in texts for fault in unnamed(texts, name)]
    faults += [f"{name}:1: expected #pragma once" for name, text in texts.items() if not text.is_guarded]
    proved = proved_by_sources(source)
    rows = [row for row in ([name for name in whole if name not in proved] for whole in chains(texts)) if row]
    with tempfile.TemporaryDirectory() as scratch, \
         concurrent.futures.ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        compiler = Compiler(sys.argv[2], source, pathlib.Path(scratch))
        compiler.prepare(texts)
        faults += [fault for said in pool.map(compiler.compiled, rows) for fault in said]
    print("\n".join(faults))
    print(f"{len(texts)} headers, {sum(map(len, rows))} of them compiled in {len(rows)} rows, {len(faults)} faults")
    return 1 if faults or not texts or sum(map(len, rows)) != len(texts.keys() - proved) else 0


if __name__ == "__main__":
    sys.exit(main())
