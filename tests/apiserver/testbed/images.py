# SPDX-License-Identifier: Apache-2.0
"""Images of the lab with kubeadm, and a registry that serves them from the files that they were made of."""
import hashlib
import http.server
import io
import json
import re
import shutil
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


class Images:
    """Blobs below a directory, and which image is which manifest: index.json."""

    def __init__(self, directory):
        self.dir, self.names = directory, {}
        directory.mkdir(parents=True, exist_ok=True)

    def _keep(self, data):
        digest = hashlib.sha256(data).hexdigest()
        (self.dir / digest).write_bytes(data)
        return f"sha256:{digest}", len(data)

    def layer(self, program, path, links):
        """A layer with a program and more names of it; nothing is compressed. Returns (digest, size)."""
        fresh = self.dir / "layer"
        with tarfile.open(fresh, "w", format=tarfile.PAX_FORMAT) as tar:
            seen = set()
            for name in (path, *links):
                for depth in range(1, name.count("/") + 1):
                    directory = "/".join(name.split("/")[:depth])
                    if directory not in seen:
                        seen.add(directory)
                        entry = tarfile.TarInfo(directory)
                        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                        tar.addfile(entry)
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = program.stat().st_size, 0o755
            with open(program, "rb") as file:
                tar.addfile(entry, file)
            for link in links:
                entry = tarfile.TarInfo(link)
                entry.type, entry.linkname, entry.mode = tarfile.LNKTYPE, path, 0o755
                tar.addfile(entry)
        with open(fresh, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = fresh.stat().st_size
        fresh.rename(self.dir / digest)
        return f"sha256:{digest}", size

    def tag(self, reference, layer, entry=(), more=()):
        """Makes an image of a layer, and of `more` over it; `reference` is NAME:TAG."""
        layers = (layer, *more)
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {
                "Labels": {"lab": reference},
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                "Entrypoint": list(entry),
            },
            "rootfs": {"type": "layers", "diff_ids": [each[0] for each in layers]},
        }
        digest, size = self._keep(json.dumps(config).encode())
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": {"mediaType": CONFIG, "digest": digest, "size": size},
                    "layers": [{"mediaType": LAYER, "digest": each[0], "size": each[1]} for each in layers]}
        self.names[reference] = self._keep(json.dumps(manifest).encode())[0]
        (self.dir / "index.json").write_text(json.dumps(self.names))

    def archive(self, name, path):
        """Takes an OCI archive in, as build.sh of manifests/worker-image makes it. Returns NAME@DIGEST of its image."""
        with tarfile.open(path) as packed:
            for entry in packed:
                digest = entry.name.removeprefix("./").removeprefix("blobs/sha256/")
                if entry.isfile() and len(digest) == 64:
                    (self.dir / digest).write_bytes(packed.extractfile(entry).read())
            index = json.load(packed.extractfile("./index.json"))
        return f"{name}@{index['manifests'][0]['digest']}"

    def of_version(self, program, references, stand, beside_etcd=()):
        """The images that kubeadm names: those of `program`, which is all of Kubernetes, and the others, of the layer
        `stand`. The layers `beside_etcd` are only in that of etcd."""
        layer = self.layer(program, "usr/local/bin/kubernetes", [f"usr/local/bin/{name}" for name in PROGRAMS])
        for reference in references:
            name = reference.partition(":")[0]
            self.tag(
                reference,
                layer if name in PROGRAMS else stand,
                () if name in PROGRAMS else (f"/usr/local/bin/{name}",),
                beside_etcd if name == "etcd" else (),
            )


class Door(http.server.BaseHTTPRequestHandler):
    """Reads only: GET and HEAD of manifests, by tag or digest, and of blobs. `directory` is that of Images."""
    protocol_version = "HTTP/1.1"
    directory = None

    def do_GET(self):
        if self.path == "/v2/":
            return self._send(200, b"{}", "application/json")
        found = re.fullmatch(r"/v2/(.+)/(manifests|blobs)/([^/]+)", self.path)
        names = json.loads((self.directory / "index.json").read_text())
        digest = found and (found[3] if ":" in found[3] else names.get(f"{found[1]}:{found[3]}"))
        path = self.directory / (digest or "sha256:none").removeprefix("sha256:")
        if not path.is_file():
            return self._send(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', "application/json")
        return self._send(200, path, MANIFEST if found[2] == "manifests" else "application/octet-stream", digest)

    do_HEAD = do_GET

    def _send(self, status, body, kind, digest=""):
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command == "GET":
            with io.BytesIO(body) if isinstance(body, bytes) else open(body, "rb") as source:
                shutil.copyfileobj(source, self.wfile, 1 << 20)

    def log_message(self, *_):
        pass


def registry(directory, address, port):
    door = type("Registry", (Door,), {"directory": directory})
    return http.server.ThreadingHTTPServer((address, port), door)
