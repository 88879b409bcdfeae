# SPDX-License-Identifier: Apache-2.0
"""Passwords and tokens that kmm-worker was given must not be in anything that it prints, writes or keeps."""
import base64
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import worker_case  # noqa: E402

PASSWORD, TOKEN, IDENTITY, PROXY = (f"canary-{word}-7c1f" for word in ("password", "token", "identity", "proxy"))
LOGIN = base64.b64encode(f"kmm:{PASSWORD}".encode()).decode()
FORBIDDEN = [PASSWORD, TOKEN, IDENTITY, PROXY, LOGIN.rstrip("=")] + [
    base64.b64encode(word.encode()).decode()[:-4] for word in (PASSWORD, TOKEN, IDENTITY, PROXY)]


def token_registry(served, accepts_login=True):
    """A registry that wants a token, which its token server gives to who knows the password. Returns its address."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, data=b"", headers=()):
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            if self.path.startswith("/token"):
                known = accepts_login and self.headers.get("Authorization") == f"Basic {LOGIN}"
                self.answer(200 if known else 401, json.dumps({"token": TOKEN}).encode())
            elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                realm = f'Bearer realm="http://{self.headers["Host"]}/token?also={TOKEN}",service="s"'
                said = json.dumps({"errors": [{"code": "UNAUTHORIZED", "message": "no"}]}).encode()
                self.answer(401, said, [("WWW-Authenticate", realm)])
            else:
                data = served.get(self.path)
                kind = (
                    [("Content-Type", "application/vnd.oci.image.manifest.v1+json")]
                    if "/manifests/" in self.path
                    else []
                )
                self.answer(404 if data is None else 200, data or b"", kind)

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(401, b"{}")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


class Secrets(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-secrets-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        worker_case.make_host(self.root / "host", {})
        self.given = set()
        (self.root / "script").write_text("")
        (self.root / "termination-log").write_text("")
        (self.root / "scratch").mkdir()
        image = worker_case.make_image({"modules": [{"name": "demo", "undefined": ["_printk"]}]})
        self.address = token_registry(image)
        self.closed = token_registry(image, accepts_login=False)

    def give(self, name, text):
        """A file with secrets, which the worker gets."""
        (self.root / name).write_text(text)
        self.given.add(name)
        return name

    def worker(self, *words, code=0, stdin="", fake=True, **more):
        environment = dict(
            os.environ,
            KMM_HOST_ROOT=str(self.root / "host"),
            TMPDIR=str(self.root / "scratch"),
            KMM_VERIFY_AFTER="0s",
            HOME=str(self.root),
            KMM_TERMINATION_LOG=str(self.root / "termination-log"),
            FAKE_KERNEL_SCRIPT=str(self.root / "script"),
            **more,
        )
        if fake:
            environment["LD_PRELOAD"] = str(worker_case.fake_kernel(case.TOOLS.bin))
        done = subprocess.run(
            [str(case.TOOLS.bin / "kmm-worker"), *words],
            cwd=self.root,
            env=environment,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), done.stdout)
        self.look_for_secrets(f"kmm-worker {words[0]}, exit {done.returncode}", done.stdout)
        return done.stdout

    def look_for_secrets(self, what, said):
        texts = {"what it printed": said.encode()}
        for path in self.root.rglob("*"):
            name = str(path.relative_to(self.root))
            if path.is_file() and name not in self.given:
                texts[name] = path.read_bytes()
        for where, data in texts.items():
            for word in FORBIDDEN:
                self.assertNotIn(word.encode(), data, f"{what}: {word} is in {where}")

    def auth(self, address):
        return json.dumps({"auths": {address: {"auth": LOGIN}, "other.example.com": {"identitytoken": IDENTITY}}})

    def test_success(self):
        self.give("auth.json", self.auth(self.address))
        image = f"{self.address}/drivers/demo:v2"
        common = ["--insecure", "-vv", "--cache-dir", "cache"]
        self.worker("pull", image, "--out", "out", "--authfile", "auth.json", *common)
        self.assertTrue((self.root / "out/opt/lib/modules" / worker_case.RELEASE / "demo.ko").exists())
        self.assertTrue(list((self.root / "cache").rglob("*")))
        self.worker("check", "--image", image, "--module", "demo", "--authfile", "auth.json", "-o", "json", *common)
        config = (
            f"containerImage: {image}\ninsecurePull: true\nkernelVersion: {worker_case.RELEASE}\nmodprobe: "
            f"{{moduleName: demo, dirName: /opt}}\n---\n"
            "apiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: drivers}\ntype: "
            "kubernetes.io/dockerconfigjson\ndata:\n"
            f"  .dockerconfigjson: {base64.b64encode(self.auth(self.address).encode()).decode()}\n"
        )
        self.assertIn(
            '"outcome": "loaded"', self.worker("load", "-", "-o", "json", "--cache-dir", "cache", stdin=config)
        )
        self.assertIn("loaded", (self.root / "termination-log").read_text())

    def test_failures(self):
        self.give("auth.json", self.auth(self.closed))
        image = f"{self.closed}/drivers/demo:v2"
        for output in ("table", "json"):
            self.worker(
                "pull", image, "--out", "out", "--authfile", "auth.json", "--insecure", "-vv", "-o", output, code=77
            )
            self.worker(
                "load",
                "--image",
                image,
                "--module",
                "demo",
                "--authfile",
                "auth.json",
                "--insecure",
                "-o",
                output,
                code=77,
            )
        self.assertIn("registry-auth", (self.root / "termination-log").read_text())
        # Files that hold a secret and are not what they should be.
        broken = {
            "cut.json": self.auth(self.closed)[:-3],
            "colon.json": json.dumps({"auths": {"h": {"auth": base64.b64encode(PASSWORD.encode()).decode()}}}),
            "type.json": json.dumps({"auths": {"h": {"auth": [PASSWORD]}}}),
            "base64.json": json.dumps({"auths": {"h": {"auth": "!" + LOGIN}}}),
            "list.json": json.dumps([{"auths": {"h": {"auth": LOGIN}}}]),
        }
        # One login that cannot be understood costs itself alone: then the registry refuses.
        of_one_login = ("colon.json", "type.json", "base64.json")
        for name, text in broken.items():
            self.give(name, text)
            code = 77 if name in of_one_login else 65
            said = self.worker("pull", image, "--out", "out", "--authfile", name, "--insecure", code=code)
            self.assertIn(name, said)
        secret = f"moduleNam: x\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: pull, namespace: drivers}}\nstringData: {{.dockerconfigjson: '{self.auth(self.closed)}'}}\n"
        self.worker("load", "-", code=78, stdin=secret)

    def test_proxy_and_reference(self):
        self.give("auth.json", self.auth("registry.invalid"))
        proxy = f"http://kmm:{PROXY}@127.0.0.1:1"
        # 124 where the machine is slow: the time is up before the next wait would be longer than what is left.
        self.worker(
            "pull",
            "registry.invalid/drivers/demo:v2",
            "--out",
            "out",
            "--authfile",
            "auth.json",
            "-vv",
            "--timeout",
            "3s",
            code=(69, 124),
            fake=False,
            https_proxy=proxy,
            http_proxy=proxy,
        )
        self.worker(
            "pull", f"https://kmm:{PASSWORD}@registry.invalid/drivers/demo:v2", "--out", "out", code=64, fake=False
        )


if __name__ == "__main__":
    unittest.main()
