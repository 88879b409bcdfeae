# SPDX-License-Identifier: Apache-2.0
"""An OCI image, and a registry on loopback that serves one of one layer."""
import hashlib
import http.server
import json
import threading

KIND, MANIFEST = "application/vnd.oci.image.", "manifest.v1+json"


def digest_of(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def make_image(tars, put, layer=None):
    """The descriptor of the manifest of an image with the layers `tars`; one is served as its gzip form `layer` if
    there is one; `put` takes each part."""
    def keep(kind, data):
        name = digest_of(data)
        put(name, data)
        return {"mediaType": KIND + kind, "digest": name, "size": len(data)}

    config = keep(
        "config.v1+json",
        json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "rootfs": {"type": "layers", "diff_ids": [digest_of(tar) for tar in tars]},
            }
        ).encode(),
    )
    layers = [keep("layer.v1.tar", tar) for tar in tars] if layer is None else [keep("layer.v1.tar+gzip", layer)]
    return keep(
        MANIFEST,
        json.dumps({"schemaVersion": 2, "mediaType": KIND + MANIFEST, "config": config, "layers": layers}).encode(),
    )


def serve(tar, layer=None):
    """A registry with one image of one layer, tagged v1: its server, and the name of the image without the tag."""
    answers = {}
    entry = make_image([tar], answers.__setitem__, layer)
    answers["v1"] = answers[entry["digest"]]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = answers.get(self.path.rsplit("/", 1)[1], b"")
            self.send_response(200)
            if body is answers["v1"]:
                self.send_header("Content-Type", entry["mediaType"])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"127.0.0.1:{server.server_port}/test/image"
