# SPDX-License-Identifier: Apache-2.0
"""kmm-worker sign between real programs: Debian's docker-registry with TLS and a password, the kernel's sign-file,
skopeo."""
import base64
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import worker_case  # noqa: E402
from injection import inject, usable  # noqa: E402

SIGN_FILE = pathlib.Path("/usr/lib/linux-kbuild-6.1/scripts/sign-file")
NEEDED = ("docker-registry", "skopeo", "openssl")
CONFIG = """version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {root}/storage}}}}
auth: {{htpasswd: {{realm: basic, path: {root}/htpasswd}}}}
http: {{addr: "127.0.0.1:{port}", tls: {{certificate: {root}/tls.pem, key: {root}/tls.key}}}}
"""
HTPASSWD = (
    "kmm:$2b$04$4h.uQ8Y7D3z.J/hdRTxizOa1vOWGi4zFyW/2lzuyxmx1N8PeGU32y\n"  # of the user kmm with the password opensesame
)
# By these a signing changes files; its temporary directory is the business of others.
SIGN_CALLS = ("write", "fsync", "rename", "unlink", "mkdir", "fchmod", "flock")
DIRECTORY = "opt/lib/modules/6.1.0-99-demo"
FLEET = """apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata: {{name: demo, namespace: drivers}}
spec:
  moduleLoader:
    container:
      modprobe: {{moduleName: demo}}
      kernelMappings: [{{regexp: '.*', containerImage: "{image}"}}]
  selector: {{role: worker}}
---
apiVersion: v1
kind: Node
metadata: {{name: node-a, labels: {{role: worker}}}}
status: {{nodeInfo: {{kernelVersion: 6.1.0-99-demo, bootID: b1, architecture: amd64}}}}
"""


def run(*words, **more):
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more
    )
    if done.returncode != 0:
        raise AssertionError(f"{words[0]}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


class Signing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in NEEDED if not shutil.which(name)] + ([] if SIGN_FILE.exists() else [str(SIGN_FILE)])
        if missing:
            raise unittest.SkipTest("not installed: " + ", ".join(missing))

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-sign-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.certificate("key.pem", "cert.pem", "/CN=demo signer")
        self.image()

    def certificate(self, key, name, subject, *more):
        run("openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject,
            "-keyout", self.root / key, "-out", self.root / name, *more)

    def image(self, layout="layout", modules=(("demo.ko", {}), ("packed.ko.gz", {"compress": "gzip"}))):
        """A layout with one image: a plain module and a compressed one, or those of `modules`."""
        layout, tar = self.root / layout, self.root / "layer.tar"
        (layout / "blobs/sha256").mkdir(parents=True)
        with tarfile.open(tar, "w") as archive:
            for name, more in modules:
                (self.root / name).write_bytes(worker_case.make_ko({"name": name.split(".", maxsplit=1)[0], **more}))
                archive.add(self.root / name, f"{DIRECTORY}/{name}")

        def put(kind, data):
            digest = hashlib.sha256(data).hexdigest()
            (layout / "blobs/sha256" / digest).write_bytes(data)
            return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)}
        layer = put("layer.v1.tar", tar.read_bytes())
        config = put(
            "config.v1+json",
            json.dumps(
                {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
            ).encode(),
        )
        manifest = put(
            "manifest.v1+json",
            json.dumps(
                {
                    "schemaVersion": 2,
                    "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": config,
                    "layers": [layer],
                }
            ).encode(),
        )
        manifest["annotations"] = {"org.opencontainers.image.ref.name": "v1"}
        (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))

    def registry(self):
        """Starts a registry with TLS and a password; returns its address."""
        self.certificate("tls.key", "tls.pem", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
        (self.root / "htpasswd").write_text(HTPASSWD)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (self.root / "registry.yml").write_text(CONFIG.format(root=self.root, port=port))
        server = subprocess.Popen(
            ["docker-registry", "serve", self.root / "registry.yml"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        login = base64.b64encode(b"kmm:opensesame").decode()
        (self.root / "auth.json").write_text(json.dumps({"auths": {f"127.0.0.1:{port}": {"auth": login}}}))
        return f"127.0.0.1:{port}"

    def worker(self, *words, code=0, **environment):
        done = subprocess.run(
            [str(case.TOOLS.bin / "kmm-worker"), *map(str, words)],
            cwd=self.root,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def expected(self, name):
        """The module as sign-file signs it."""
        plain = (self.root / name).read_bytes()
        path = self.root / "expected.ko"
        path.write_bytes(gzip.decompress(plain) if name.endswith(".gz") else plain)
        run(SIGN_FILE, "sha256", self.root / "key.pem", self.root / "cert.pem", path)
        return path.read_bytes()

    def check_pulled(self, reference, *more):
        shutil.rmtree(self.root / "out", ignore_errors=True)
        self.worker("pull", reference, "--kernel", "all", "--out", "out", *more)
        self.assertEqual((self.root / "out" / DIRECTORY / "demo.ko").read_bytes(), self.expected("demo.ko"))
        packed = (self.root / "out" / DIRECTORY / "packed.ko.gz").read_bytes()
        self.assertEqual(gzip.decompress(packed), self.expected("packed.ko.gz"))

    def test_from_layout_to_registry_to_registry(self):
        address = self.registry()
        login = ("--ca-file", "tls.pem", "--authfile", "auth.json")
        keys = ("--key", "key.pem", "--cert", "cert.pem")
        first = json.loads(
            self.worker("sign", "oci:layout:v1", "--to", f"{address}/team/demo:v1", *keys, *login, "-o", "json")
        )
        self.check_pulled(f"{address}/team/demo:v1", *login)
        shown = run(
            "skopeo",
            "inspect",
            "--raw",
            "--tls-verify=false",
            "--authfile",
            self.root / "auth.json",
            f"docker://{address}/team/demo:v1",
        )
        self.assertEqual("sha256:" + hashlib.sha256(shown.encode()).hexdigest(), first["image"]["digest"])
        # What has this very signature stays as it is, and blobs are taken over from the other repository.
        second = json.loads(
            self.worker(
                "sign", f"{address}/team/demo:v1", "--to", f"{address}/other/demo:v2", *keys, *login, "-o", "json"
            )
        )
        self.assertEqual((second["outcome"], second["image"]["digest"]), ("unchanged", first["image"]["digest"]))
        self.check_pulled(f"{address}/other/demo:v2", *login)
        refused = self.worker(
            "sign", "oci:layout:v1", "--to", f"{address}/team/demo:v3", *keys, "--ca-file", "tls.pem", code=77
        )
        self.assertIn("registry-auth", refused)
        self.assertNotIn("PRIVATE", refused)
        # OpenSSL's variable names authorities besides the system's; what is not there is passed over, as other clients
        # do.
        again = ("pull", f"{address}/team/demo:v1", "--kernel", "all", "--out", "elsewhere", "--authfile", "auth.json")
        self.assertIn("code:    tls\n", self.worker(*again, code=76, SSL_CERT_FILE="absent.pem"))
        self.assertIn(
            "CA file of SSL_CERT_FILE auth.json: expected certificates",
            self.worker(*again, code=65, SSL_CERT_FILE="auth.json"),
        )
        self.worker(*again, SSL_CERT_FILE="tls.pem")

    def test_authorities_of_a_registry_count_for_kmm_plan_too(self):
        """Where podman has them, in a mount namespace of its own."""
        own = pathlib.Path("/etc/containers")
        if not own.is_dir() or subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
            raise unittest.SkipTest("nothing can be mounted here, or there is no /etc/containers")
        address = self.registry()
        self.worker("sign", "oci:layout:v1", "--to", f"{address}/team/demo:v1", "--key", "key.pem", "--cert",
                    "cert.pem", "--ca-file", "tls.pem", "--authfile", "auth.json")
        containers = self.root / "containers"
        shutil.copytree(own, containers, symlinks=True)
        shutil.rmtree(containers / "certs.d", ignore_errors=True)
        (self.root / "fleet.yaml").write_text(FLEET.format(image=f"{address}/team/demo:v1"))
        asked = ["unshare", "-m", "sh", "-c", f'mount --bind {containers} {own} && exec "$@"', "sh",
                 str(case.TOOLS.bin / "kmm-plan"), "images", "-f", "fleet.yaml", "--check-images", "--authfile",
                 "auth.json"]
        for code in (10, 0):
            done = subprocess.run(asked, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
            self.assertEqual(done.returncode, code, done.stdout)
            (containers / "certs.d" / address).mkdir(parents=True, exist_ok=True)
            shutil.copy(self.root / "tls.pem", containers / "certs.d" / address / "ca.crt")
        self.assertIn("sha256:", done.stdout)

    def test_interrupted_between_modules(self):
        """A signal ends signing before anything is written, and the next run is whole."""
        self.image("many", [(f"m{number}.ko", {}) for number in range(400)])
        scratch = self.root / "scratch"
        scratch.mkdir()
        words = [
            str(case.TOOLS.bin / "kmm-worker"),
            "sign",
            "oci:many:v1",
            "--to",
            "oci:signed:v1",
            "--key",
            "key.pem",
            "--cert",
            "cert.pem",
        ]
        for signal, code in (("TERM", 143), ("INT", 130), ("HUP", 129)):
            ran = subprocess.Popen(
                ["env", f"--default-signal={signal}", *words],
                cwd=self.root,
                env=dict(os.environ, TMPDIR=str(scratch)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            while ran.poll() is None and not list(scratch.glob("kmm-sign-*/1/opt")):
                time.sleep(0.001)
            subprocess.run(["kill", f"-{signal}", str(ran.pid)], check=False)
            said = ran.communicate(timeout=600)[1]
            self.assertEqual(ran.returncode, code, said)
            self.assertIn("interrupted while signing; nothing was written", said)
            self.assertFalse((self.root / "signed").exists())
            self.assertEqual(list(scratch.iterdir()), [])
        self.assertIn("signed", self.worker(*words[1:]))

    def test_after_a_kill_anywhere(self):
        """Signing is killed wherever it changes something: the layout keeps its names, and the next run leaves nothing
        but images."""
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        words = [
            str(case.TOOLS.bin / "kmm-worker"),
            "sign",
            "oci:layout:v1",
            "--key",
            "key.pem",
            "--cert",
            "cert.pem",
            "-q",
        ]
        scratch = self.root / "scratch"
        scratch.mkdir()
        more = {"cwd": self.root, "env": dict(os.environ, TMPDIR=str(scratch)), "check": False, "text": True,
                "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        run(*words, "--to", "oci:before:old", "--hash", "sha512", cwd=self.root)
        tried = 0
        for place, to in (("oci:signed:new", "signed"), ("oci-archive:signed.tar:new", "signed.tar")):
            for call in SIGN_CALLS:
                for point in range(1, 200):
                    shutil.rmtree(self.root / "signed", ignore_errors=True)
                    (self.root / "signed.tar").unlink(missing_ok=True)
                    if to == "signed":
                        shutil.copytree(self.root / "before", self.root / to)
                    if (
                        subprocess.run(
                            [*inject(call, f"signal=KILL:when={point}"), *words, "--to", place], **more
                        ).returncode
                        == 0
                    ):
                        break
                    tried += 1
                    where = f"{place}, killed at {call} {point}"
                    if to == "signed":
                        self.assertIn("old", self.names(to), where)
                    done = subprocess.run([*words, "--to", place], **more)
                    self.assertEqual(done.returncode, 0, f"{where}: {done.stdout}")
                    left = [str(path) for path in self.root.rglob("*kmm-tmp*")] + [
                        str(path) for path in scratch.iterdir()
                    ]
                    self.assertEqual(left, [], where)
                    if to == "signed":
                        self.assertEqual(self.names(to), ["new", "old"], where)
                    self.check_pulled(place)
        print(f"{tried} points", file=sys.stderr)
        self.assertGreater(tried, 60)

    def test_full_disk(self):
        """One error with a hint, nothing half done, and the next run is whole."""
        if not usable():
            raise unittest.SkipTest("processes cannot be traced here")
        words = [str(case.TOOLS.bin / "kmm-worker"), "sign", "oci:layout:v1", "--key", "key.pem", "--cert", "cert.pem"]
        for place, name in (("oci:signed:new", "signed"), ("oci-archive:signed.tar:new", "signed.tar")):
            for point in (1, 2, 3, 4, 5, 6):
                shutil.rmtree(self.root / "signed", ignore_errors=True)
                (self.root / "signed.tar").unlink(missing_ok=True)
                done = subprocess.run(
                    [*inject("fsync", f"error=ENOSPC:when={point}+"), *words, "--to", place],
                    cwd=self.root,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                if done.returncode == 0:
                    break
                self.assertEqual(done.returncode, 74, done.stdout)
                self.assertEqual(done.stdout.count("error:"), 1, done.stdout)
                self.assertIn("hint:    free blocks or inodes on its file system", done.stdout)
                self.assertEqual([str(path) for path in self.root.rglob("*kmm-tmp*")], [])
                if (self.root / "signed.tar").exists() or (self.root / "signed/index.json").exists():
                    self.check_pulled(place)  # the directory could not be synced: the image is there, and whole
                elif name == "signed":
                    self.assertEqual(list((self.root / "signed/blobs").rglob("*/*")), [])
                self.worker(*words[1:], "--to", place)
                self.check_pulled(place)
            self.assertGreater(point, 1, name)

    def names(self, layout):
        index = json.loads((self.root / layout / "index.json").read_text())
        return sorted(manifest["annotations"]["org.opencontainers.image.ref.name"] for manifest in index["manifests"])

    def test_archives(self):
        run(
            "skopeo",
            "copy",
            "--insecure-policy",
            "-f",
            "v2s2",
            "oci:layout:v1",
            "docker-archive:saved.tar:demo:v1",
            cwd=self.root,
        )
        self.worker("sign", "docker-archive:saved.tar", "--to", "oci:one:v1", "--key", "key.pem", "--cert", "cert.pem")
        self.check_pulled("oci:one:v1")
        self.worker("sign", "oci:layout:v1", "--to", "oci:two:v1", "--key", "key.pem", "--cert", "cert.pem")
        run("skopeo", "copy", "--insecure-policy", "oci:two:v1", "oci-archive:two.tar:v1", cwd=self.root)
        self.check_pulled("oci-archive:two.tar:v1")

    def test_the_key_is_in_another_process_than_the_image(self):
        """Looks for the key in the memory of a worker that waits for a registry, and of the process beside it."""
        if os.geteuid() != 0:
            self.skipTest("needs root to look into other processes")
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            worker = subprocess.Popen(
                [
                    str(case.TOOLS.bin / "kmm-worker"),
                    "sign",
                    f"127.0.0.1:{silent.getsockname()[1]}/team/driver:v1",
                    "--insecure",
                    "--to",
                    "oci:out:v1",
                    "--key",
                    "key.pem",
                    "--cert",
                    "cert.pem",
                ],
                cwd=self.root,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            try:
                silent.settimeout(60)
                connection, _ = silent.accept()  # by now the key is read
                children = pathlib.Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
                self.assertEqual(len(children), 2)  # one starts what parses the image
                holders = [pid for pid in children if "Seccomp:\t2" in pathlib.Path(f"/proc/{pid}/status").read_text()]
                self.assertEqual(len(holders), 1)
                text = run("openssl", "rsa", "-in", self.root / "key.pem", "-noout", "-text")
                prime = bytes.fromhex(
                    "".join(text.split("prime1:")[1].split("prime2:")[0].split()).replace(":", "")
                ).lstrip(b"\0")
                line = (self.root / "key.pem").read_text().splitlines()[5].encode()
                forms = {"the number": prime[::-1], "its bytes": prime, "the file": line}
                found = {
                    pid: [name for name, form in forms.items() if form in self.memory(pid)]
                    for pid in (str(worker.pid), *children)
                }
                for pid in {str(worker.pid), *children} - set(holders):
                    self.assertEqual(found[pid], [], "in a process that has to do with the image")
                self.assertIn("the number", found[holders[0]])
                self.assertNotIn("the file", found[holders[0]], "its text is overwritten")
                for pid in found:
                    self.assertEqual(
                        pathlib.Path(f"/proc/{pid}/limits").read_text().split("Max core file size")[1].split()[0], "0"
                    )
                status = pathlib.Path(f"/proc/{holders[0]}/status").read_text()
                self.assertRegex(status, r"CapEff:\t0000000000000000|CapEff:\t0000000[04]0000000[0-9a-f]")
                self.assertIn("Seccomp:\t2", status)
                connection.close()
            finally:
                worker.kill()
                worker.communicate()
        for _ in range(100):  # it ends with whoever asks it
            if not pathlib.Path(f"/proc/{holders[0]}").exists():
                break
            time.sleep(0.1)
        else:
            self.fail("the process with the key goes on")

    def test_a_key_that_others_may_use_is_refused(self):
        for mode, code in ((0o600, 0), (0o400, 0), (0o640, 77), (0o604, 77), (0o660, 77)):
            (self.root / "key.pem").chmod(mode)
            shutil.rmtree(self.root / "out", ignore_errors=True)
            for variables, expected in (({}, code), ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, 0)):
                done = subprocess.run(
                    [
                        str(case.TOOLS.bin / "kmm-worker"),
                        "sign",
                        "oci:layout:v1",
                        "--to",
                        "oci:out:v1",
                        "--key",
                        "key.pem",
                        "--cert",
                        "cert.pem",
                    ],
                    cwd=self.root,
                    env={**os.environ, **variables},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                with self.subTest(mode=oct(mode), **variables):
                    self.assertEqual(done.returncode, expected, done.stdout)
                    self.assertEqual("key-readable" in done.stdout, code != 0)

    @staticmethod
    def memory(pid):
        """All that a process has in memory and may be read."""
        parts = []
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
                place, rights, *rest = line.split()
                if "r" not in rights or rest[-1:] in (["[vvar]"], ["[vsyscall]"], ["[vvar_vclock]"]):
                    continue
                start, end = (int(number, 16) for number in place.split("-"))
                try:
                    file.seek(start)
                    parts.append(file.read(end - start))
                except OSError:
                    continue
        return b"".join(parts)


if __name__ == "__main__":
    unittest.main()
