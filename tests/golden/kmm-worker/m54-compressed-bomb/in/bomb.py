# SPDX-License-Identifier: Apache-2.0
"""Writes modules/demo.ko.gz: 600 MiB of zeros in 600 KiB."""
import os
import zlib

packer = zlib.compressobj(9, zlib.DEFLATED, -15)
block = packer.compress(b"\0" * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
os.mkdir("modules")
with open("modules/demo.ko.gz", "wb") as out:
    out.write(b"\x1f\x8b\x08\0\0\0\0\0\0\3" + block * 600)
