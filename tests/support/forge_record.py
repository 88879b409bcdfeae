# SPDX-License-Identifier: Apache-2.0
"""forge_record.py [--keep-seals] DIRECTORY [OLD NEW]...

What somebody who may write a record, and has not the key of its user, does to it: each OLD of the journal becomes NEW,
CRC and chain are put right, the seals are taken off (or left as they are), and the snapshot goes.
"""
import hashlib
import pathlib
import re
import sys


def crc32c(text):
    value = 0xFFFFFFFF
    for byte in text:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def forge(directory, changes=(), keep_seals=False):
    journal = pathlib.Path(directory) / "journal.ndjson"
    lines, prev = [], b"0" * 64
    for line in journal.read_bytes().split(b"\n")[:-1]:
        for old, new in changes:
            line = line.replace(old.encode(), new.encode())
        line = re.sub(rb'"prev":"[0-9a-f]{64}"', b'"prev":"' + prev + b'"', line, count=1)
        body = line[:line.rindex(b',"crc":"')]
        if not keep_seals:
            body = re.sub(rb',"mac":"[0-9a-f]{64}"$', b"", body)
        line = body + b',"crc":"%08x"}' % crc32c(body)
        prev = hashlib.sha256(line).hexdigest().encode()
        lines.append(line)
    journal.write_bytes(b"\n".join(lines) + b"\n")
    (journal.parent / "upgrade.json").unlink(missing_ok=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    keeps = words[0] == "--keep-seals"
    where, *pairs = words[keeps:]
    forge(where, list(zip(pairs[::2], pairs[1::2])), keeps)
