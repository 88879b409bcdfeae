# SPDX-License-Identifier: Apache-2.0
"""Stands between a command and the API server: writes down its requests, and can end either of them at any request.

A request is told to `hook(record, moment)` twice, one request at a time: at "before" the server has not seen it, at
"after" it has answered, and the command does not know that yet. A hook that returns False drops the connection there.
Watches, which never end, are answered with their first bytes.
"""
import dataclasses
import http.client
import http.server
import json
import socket
import ssl
import threading
import time
import urllib.parse

CHANGING = ("POST", "PUT", "PATCH", "DELETE")


@dataclasses.dataclass
class Record:
    """One request: its number from 1, method, path with query, body, the status of the answer, 0 without one, and when
    it came."""
    number: int
    method: str
    path: str
    body: bytes
    status: int = 0
    time: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def resource(self):
        return urllib.parse.urlsplit(self.path).path

    @property
    def changes(self):
        """Whether it may change an object; reviews of rights and requests on trial do not."""
        return (self.method in CHANGING and "dryRun=All" not in self.path and
                "/apis/authorization.k8s.io/" not in self.path and "/apis/authentication.k8s.io/" not in self.path)

    def document(self):
        return json.loads(self.body) if self.body else None

    def __str__(self):
        return f"{self.number} {self.method} {self.path} -> {self.status}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 120
    disable_nagle_algorithm = True

    def setup(self):
        # Here, in the connection's own thread: a client that dies in the handshake holds up nobody.
        self.upstream = None
        self.request.do_handshake()
        super().setup()

    def finish(self):
        if self.upstream:
            self.server.proxy.forget(self.upstream)
            self.upstream.close()
        super().finish()

    def log_message(self, *_):
        pass

    def _forward(self):
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        record = proxy.begin(self.command, self.path, body)
        if record is None:
            self.close_connection = True
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")}
        if self.upstream is None:
            self.upstream = proxy.connect()
        try:
            self.upstream.request(self.command, self.path, body or None, headers)
            answer = self.upstream.getresponse()
            if "watch=" in self.path and answer.status == 200:
                self._stream(record, answer)
                return
            data = answer.read()
        except (OSError, http.client.HTTPException):
            # What the command sees of a server that is gone: a connection that ends.
            self.close_connection = True
            return
        record.status = answer.status
        if not proxy.end(record):
            self.close_connection = True
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, record, answer):
        record.status = answer.status
        self.close_connection = True
        if not self.server.proxy.end(record):
            return
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := answer.read1(65536):
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # a peer that was killed


class Proxy:
    """Listens on a loopback port with the certificate of the API server. `with Proxy(cluster) as proxy`."""

    def __init__(self, cluster):
        pki = cluster.dir / "pki"
        self.target = cluster.state()["port"]
        self.client_side = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        listening.load_cert_chain(pki / "api.crt", pki / "api.key")
        self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.socket = listening.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.proxy = self
        self.port = self.server.server_address[1]
        self.lock, self.turn = threading.Lock(), threading.Lock()
        self.upstreams, self.records, self.hook = set(), [], None
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.reset()
        self.server.shutdown()
        self.server.server_close()

    def connect(self):
        connection = http.client.HTTPSConnection("127.0.0.1", self.target, timeout=120, context=self.client_side)
        with self.lock:
            self.upstreams.add(connection)
        return connection

    def forget(self, connection):
        with self.lock:
            self.upstreams.discard(connection)

    def reset(self, hook=None):
        """Ends all connections that are left, forgets the requests, and has a new hook; returns the requests."""
        with self.lock:
            for connection in self.upstreams:
                if connection.sock:
                    try:
                        connection.sock.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            records, self.records, self.hook = self.records, [], hook
        return records

    def begin(self, method, path, body):
        with self.turn:
            record = Record(len(self.records) + 1, method, path, body)
            self.records.append(record)
            hook = self.hook
            return record if hook is None or hook(record, "before") is not False else None

    def end(self, record):
        with self.turn:
            return self.hook is None or self.hook(record, "after") is not False

    def changing(self):
        """The requests so far that may have changed something."""
        return [record for record in self.records if record.changes]
