# SPDX-License-Identifier: Apache-2.0
"""A registry that shows a manifest to user:good alone, while a command runs; @REGISTRY@ in it is its address."""
import base64
import hashlib
import http.server
import json
import subprocess
import sys
import threading

GOOD = "Basic " + base64.b64encode(b"user:good").decode()
CONFIG = b'{"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}'
MANIFEST = json.dumps({
    "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": [],
    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "size": len(CONFIG),
               "digest": "sha256:" + hashlib.sha256(CONFIG).hexdigest()},
}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        allowed = self.headers.get("Authorization") == GOOD
        found = CONFIG if "/blobs/" in self.path else MANIFEST
        body = found if allowed else b'{"errors": [{"code": "UNAUTHORIZED", "message": "who are you"}]}'
        self.send_response(200 if allowed else 401)
        if not allowed:
            self.send_header("WWW-Authenticate", 'Basic realm="private"')
        media = "application/vnd.oci.image.manifest.v1+json" if allowed else "application/json"
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = "127.0.0.1:%d" % server.server_port
done = subprocess.run(["sh", sys.argv[1], address], capture_output=True, text=True, check=False)
print((done.stdout + done.stderr).replace(address, "REGISTRY"), end="")
