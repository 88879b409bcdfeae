# SPDX-License-Identifier: Apache-2.0
"""kmm-upgrade start kubernetes on nodes that have an etcd: no change without a snapshot that is whole."""
import base64
import hashlib
import http.server
import json
import threading

from kubernetes_fleet import TARGET
from test_kubernetes_upgrade import OLD, Case


class Gateway(http.server.BaseHTTPRequestHandler):
    """etcd's gateway: it serves what `server.snapshot` is, in messages."""

    def do_POST(self):
        self.server.asked.append(self.path)
        data = self.server.snapshot
        lines = []
        for at in range(0, len(data), 1000):
            part = data[at:at + 1000]
            lines.append(json.dumps({"result": {"remaining_bytes": str(len(data) - at - len(part)), "blob": base64.b64encode(part).decode()}}))
        text = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Backed(Case):
    """Every control plane has a snapshot of its etcd before anything changes."""
    needs_tracing = False

    def setUp(self):
        super().setUp()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        self.server.asked = []
        pages = bytes(16) + bytes.fromhex("edda0ced") + bytes(4076)
        self.server.snapshot = pages + hashlib.sha256(pages).digest()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        for node in ("cp1", "cp2"):
            manifest = self.fleet.nodes / node / "etc/kubernetes/manifests/etcd.yaml"
            url = f"http://127.0.0.1:{self.server.server_port}"
            manifest.write_text(manifest.read_text().replace("[etcd]", f"[etcd, --listen-client-urls={url}]"))
            self.fleet.follow(node)

    def snapshots(self):
        return sorted(path.relative_to(self.fleet.nodes).parts[0] for path in self.fleet.nodes.glob("*/var/lib/kmm-node/backups/*/etcd.db")
                      if path.read_bytes() == self.server.snapshot)

    def test_snapshots(self):
        words = ("start", "kubernetes", TARGET, "--switch", "binaries")
        whole = self.server.snapshot
        self.server.snapshot = whole[:2000] + b"x" + whole[2001:]
        self.assertIn("snapshot-damaged", self.must(*words, exit_code=11))
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.applies()), (OLD, []))
        self.server.snapshot = whole
        self.must("retry", "cp1")
        self.require_complete()
        self.assertEqual(self.snapshots(), ["cp1", "cp2"])
        self.assertEqual(set(self.server.asked), {"/v3/maintenance/snapshot"})

    def test_none_to_be_had(self):
        self.server.shutdown()
        self.server.server_close()
        self.assertIn("etcd-unreachable", self.must("start", "kubernetes", TARGET, "--switch", "binaries", exit_code=11))
        self.assertEqual((self.fleet.control_plane("cp1"), self.fleet.applies()), (OLD, []))
