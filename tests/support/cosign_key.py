# SPDX-License-Identifier: Apache-2.0
"""Private keys as cosign and skopeo keep them: PKCS #8 under scrypt and NaCl's secretbox (XSalsa20 and Poly1305)."""
import base64
import hashlib
import json
import os
import struct

MASK = 0xFFFFFFFF
ROUND = (
    (0, 4, 8, 12),
    (5, 9, 13, 1),
    (10, 14, 2, 6),
    (15, 3, 7, 11),
    (0, 1, 2, 3),
    (5, 6, 7, 4),
    (10, 11, 8, 9),
    (15, 12, 13, 14),
)


def _rounds(words):
    words = list(words)
    for _ in range(10):
        for a, b, c, d in ROUND:
            for into, left, right, bits in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
                total = (words[left] + words[right]) & MASK
                words[into] ^= ((total << bits) | (total >> (32 - bits))) & MASK
    return words


def _state(key, tail):
    k, t, c = struct.unpack("<8I", key), struct.unpack("<4I", tail), struct.unpack("<4I", b"expand 32-byte k")
    return [c[0], *k[:4], c[1], *t, c[2], *k[4:], c[3]]


def _hsalsa(key, nonce):
    words = _rounds(_state(key, nonce))
    return struct.pack("<8I", *(words[i] for i in (0, 5, 10, 15, 6, 7, 8, 9)))


def _stream(key, nonce, size):
    inner, out, block = _hsalsa(key, nonce[:16]), b"", 0
    while len(out) < size:
        state = _state(inner, nonce[16:] + struct.pack("<Q", block))
        out += struct.pack("<16I", *((a + b) & MASK for a, b in zip(state, _rounds(state))))
        block += 1
    return out[:size]


def _poly1305(key, message):
    r, s = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF, int.from_bytes(key[16:32], "little")
    total = 0
    for i in range(0, len(message), 16):
        total = (total + int.from_bytes(message[i:i + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return ((total + s) & ((1 << 128) - 1)).to_bytes(16, "little")


def encrypted(der, passphrase):
    """The PEM text of the PKCS #8 key `der`."""
    salt, nonce = os.urandom(32), os.urandom(24)
    key = hashlib.scrypt(passphrase, salt=salt, n=32768, r=8, p=1, dklen=32, maxmem=64 << 20)
    stream = _stream(key, nonce, 32 + len(der))
    cipher = bytes(a ^ b for a, b in zip(der, stream[32:]))
    text = base64.b64encode
    body = json.dumps({"kdf": {"name": "scrypt", "params": {"N": 32768, "r": 8, "p": 1}, "salt": text(salt).decode()},
                       "cipher": {"name": "nacl/secretbox", "nonce": text(nonce).decode()},
                       "ciphertext": text(_poly1305(stream[:32], cipher) + cipher).decode()})
    lines = text(body.encode()).decode()
    wrapped = "\n".join(lines[i:i + 64] for i in range(0, len(lines), 64))
    return f"-----BEGIN ENCRYPTED COSIGN PRIVATE KEY-----\n{wrapped}\n-----END ENCRYPTED COSIGN PRIVATE KEY-----\n"
