# SPDX-License-Identifier: Apache-2.0
"""Writes images FROM scratch as OCI layouts: same input, same bytes."""
import gzip
import hashlib
import io
import json
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def tar_layer(files, mode=0o644):
    """A tar of regular files {path in image: bytes} with their directories; fixed owner, mode and time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        seen = set()
        for path, data in sorted(files.items()):
            parts = path.split("/")[:-1]
            for depth in range(1, len(parts) + 1):
                directory = "/".join(parts[:depth])
                if directory not in seen and ".." not in parts:
                    seen.add(directory)
                    entry = tarfile.TarInfo(directory)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(entry)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def sparse_entry(path, real_size):
    """An old GNU sparse member that claims real_size bytes and brings none; the tar ends after it."""
    header = bytearray(512)

    def put(offset, text):
        header[offset:offset + len(text)] = text

    put(0, path.encode())
    put(100, b"0000644\0")
    put(108, b"0000000\0")
    put(116, b"0000000\0")
    put(124, b"00000000000\0")
    put(136, b"00000000000\0")
    header[156:157] = b"S"
    put(257, b"ustar  \0")
    big = b"%011o\0" % real_size if real_size < 8 ** 11 else b"\x80" + real_size.to_bytes(11, "big")
    header[386:398], header[398:410] = big, b"00000000000\0"  # one empty block at the very end
    put(483, big)
    put(148, b"        ")
    put(148, b"%06o\0 " % sum(header))
    return bytes(header) + b"\0" * 1024


def compress(data, level=6):
    return gzip.compress(data, compresslevel=level, mtime=0)


class Layout:
    """One OCI layout directory."""

    def __init__(self, directory):
        self.dir = directory
        (directory / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
        (directory / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        self.entries = []

    def blob(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        (self.dir / "blobs" / "sha256" / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def image(self, layers, architecture="amd64", annotations=None, command=(), config=None):
        """An image of ready compressed layers [(compressed, plain)], which runs `command`, or with that configuration;
        returns the descriptor of its manifest."""
        config = config or {
            "architecture": architecture,
            "os": "linux",
            "config": {"Entrypoint": list(command)} if command else {},
            "rootfs": {
                "type": "layers",
                "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest() for _, plain in layers],
            },
        }
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": self.blob(json.dumps(config, sort_keys=True).encode(), CONFIG),
                    "layers": [self.blob(packed, LAYER) for packed, _ in layers]}
        if annotations:
            manifest["annotations"] = annotations
        return self.blob(json.dumps(manifest, sort_keys=True).encode(), MANIFEST)

    def index(self, by_architecture):
        """An image index of {architecture: manifest descriptor}."""
        manifests = [dict(descriptor, platform={"architecture": architecture, "os": "linux"})
                     for architecture, descriptor in sorted(by_architecture.items())]
        document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
        return self.blob(json.dumps(document, sort_keys=True).encode(), INDEX)

    def tag(self, descriptor, name):
        self.entries.append(dict(descriptor, annotations={"org.opencontainers.image.ref.name": name}))
        (self.dir / "index.json").write_text(
            json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.entries}, sort_keys=True))
