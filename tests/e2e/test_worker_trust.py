# SPDX-License-Identifier: Apache-2.0
"""Signatures of images between real programs: Debian's docker-registry; openssl, which signs; skopeo, which signs and
judges, too.

Debian 12 builds skopeo without sigstore: then it judges only what needs no signature. KMM_SIGSTORE_SKOPEO names a
skopeo that has it.
"""
import base64
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
import urllib.error
import urllib.request

import case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cosign_key  # noqa: E402
import worker_case  # noqa: E402

NEEDED = ("docker-registry", "skopeo", "openssl")
CONFIG = """version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {root}/storage}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
OCI = "application/vnd.oci.image."
PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
ANNOTATION = "dev.cosignproject.cosign/signature"
SIGNED_TYPE = "cosign container image signature"
KERNEL = "6.1.0-99-demo"
ACCEPT = {"type": "insecureAcceptAnything"}
REJECT = {"type": "reject"}


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          **more)
    if done.returncode != 0:
        raise AssertionError(f"{words[0]}: exit {done.returncode}\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


class Registry(unittest.TestCase):
    """A registry with an image, and keys."""

    @classmethod
    def setUpClass(cls):
        missing = [name for name in NEEDED if not shutil.which(name)]
        if missing:
            raise unittest.SkipTest("not installed: " + ", ".join(missing))
        cls.skopeo = os.environ.get("KMM_SIGSTORE_SKOPEO") or shutil.which("skopeo")
        cls.knows_sigstore = b"sigstore disabled" not in pathlib.Path(cls.skopeo).read_bytes()

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kmm-trust-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        (self.root / "registries.d").mkdir()
        (self.root / "registries.d/default.yaml").write_text("default-docker:\n  use-sigstore-attachments: true\n")
        (self.root / "passphrase").write_text("opensesame")
        (self.root / "anything.json").write_text(json.dumps({"default": [ACCEPT]}))
        for name in ("ours", "other"):
            self.key(name, "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        self.address = self.registry()
        self.manifest = self.push("team/driver", "v1")

    def key(self, name, kind, *more):
        run("openssl", "genpkey", "-algorithm", kind, *more, "-out", self.root / f"{name}.pem")
        run("openssl", "pkey", "-in", self.root / f"{name}.pem", "-pubout", "-out", self.root / f"{name}.pub")
        der = run("openssl", "pkcs8", "-topk8", "-nocrypt", "-in", self.root / f"{name}.pem", "-outform", "DER")
        (self.root / f"{name}.key").write_text(cosign_key.encrypted(der, b"opensesame"))

    def registry(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (self.root / "registry.yml").write_text(CONFIG.format(root=self.root, port=port))
        server = subprocess.Popen(["docker-registry", "serve", self.root / "registry.yml"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        return f"127.0.0.1:{port}"

    def request(self, method, path, data=None, kind="application/octet-stream"):
        url = path if path.startswith("http") else f"http://{self.address}/v2/{path}"
        asked = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": kind})
        with urllib.request.urlopen(asked, timeout=600) as answer:
            return answer.headers

    def blob(self, repository, data, kind):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        place = self.request("POST", f"{repository}/blobs/uploads/", b"")["Location"]
        self.request("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", data)
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    def document(self, repository, name, kind, body):
        """Pushes a manifest; returns its digest."""
        text = json.dumps({"schemaVersion": 2, "mediaType": kind, **body}).encode()
        digest = "sha256:" + hashlib.sha256(text).hexdigest()
        self.request("PUT", f"{repository}/manifests/{name or digest}", text, kind)
        return {"mediaType": kind, "digest": digest, "size": len(text)}

    def push(self, repository, name, module="demo"):
        (self.root / f"{module}.ko").write_bytes(worker_case.make_ko({"name": module}))
        with tarfile.open(self.root / "layer.tar", "w") as archive:
            archive.add(self.root / f"{module}.ko", f"opt/lib/modules/{KERNEL}/{module}.ko")
        layer = self.blob(repository, (self.root / "layer.tar").read_bytes(), OCI + "layer.v1.tar")
        config = self.blob(repository, json.dumps({"architecture": "amd64", "os": "linux",
                                                   "rootfs": {"type": "layers",
                                                              "diff_ids": [layer["digest"]]}}).encode(),
                                                              OCI + "config.v1+json")
        return self.document(repository, name, OCI + "manifest.v1+json", {"config": config, "layers": [layer]})

    def payload(self, reference, digest=None, **changes):
        """The bytes that cosign signs, changed by hand."""
        critical = {"identity": {"docker-reference": reference},
                    "image": {"docker-manifest-digest": digest or self.manifest["digest"]},
                    "type": SIGNED_TYPE, **changes.pop("critical", {})}
        return json.dumps({"critical": critical, "optional": None, **changes}).encode()

    def signature(self, payload, key="ours"):
        if "ED25519" in run("openssl", "pkey", "-in", self.root / f"{key}.pem", "-text", "-noout").decode().upper():
            (self.root / "payload").write_bytes(payload)
            return run("openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.root / f"{key}.pem", "-in",
                       self.root / "payload")
        return run("openssl", "dgst", "-sha256", "-sign", self.root / f"{key}.pem", input=payload)

    def attach(self, repository, digest, *signatures, kind=PAYLOAD):
        """Puts (payload, signature) pairs beside an image, as cosign does."""
        layers = [{**self.blob(repository, payload, kind),
                   "annotations": {ANNOTATION: base64.b64encode(signature).decode()}}
                  for payload, signature in signatures]
        config = self.blob(repository, b"{}", OCI + "config.v1+json")
        self.document(repository, digest.replace(":", "-") + ".sig", OCI + "manifest.v1+json",
                      {"config": config, "layers": layers})

    def sign(self, payload, key="ours", repository="team/driver"):
        self.attach(repository, self.manifest["digest"], (payload, self.signature(payload, key)))

    def policy(self, requirements, scope="", default=REJECT):
        file = self.root / "policy.json"
        file.write_text(json.dumps({"default": [default], "transports": {"docker": {scope: requirements}}}))
        return file

    def sigstore(self, identity=None, key="ours"):
        made = {"type": "sigstoreSigned", "keyPath": str(self.root / f"{key}.pub")}
        return [{**made, "signedIdentity": identity} if identity else made]

    def worker(self, reference, *more, code=0):
        out = self.root / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = subprocess.run([str(case.TOOLS.bin / "kmm-worker"), "pull", f"{self.address}/{reference}", "--insecure",
                               "--out", str(out), "--kernel", "all",
                               *map(str, more)], env={**os.environ, "TMPDIR": str(self.root)}, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertEqual(out.exists(), code == 0, "what is not trusted leaves nothing")
        return done.stdout


class Trusted(Registry):
    def skopeo_takes(self, reference, policy):
        """None if this skopeo cannot tell."""
        if not self.knows_sigstore and "sigstoreSigned" in policy.read_text():
            return None
        shutil.rmtree(self.root / "copy", ignore_errors=True)
        done = subprocess.run([self.skopeo, "--policy", policy, "--registries.d", self.root / "registries.d", "copy",
                               "--src-tls-verify=false", "--remove-signatures",
                               f"docker://{self.address}/{reference}", f"dir:{self.root}/copy"], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            self.assertRegex(done.stdout, "rejected|invalid policy|Source image|Signature")
        return done.returncode == 0

    def both(self, reference, policy, expected, why):
        """skopeo and kmm-worker judge alike."""
        with self.subTest(why):
            self.assertIn(self.skopeo_takes(reference, policy), (expected, None), "skopeo")
            self.worker(reference, "--policy", policy, code=0 if expected else 76)

    def test_signatures_that_skopeo_made(self):
        if not self.knows_sigstore:
            self.skipTest("this skopeo is built without sigstore")
        target = f"docker://{self.address}/team/driver:signed"
        run(self.skopeo, "--policy", self.root / "anything.json", "--registries.d", self.root / "registries.d", "copy",
            "--src-tls-verify=false", "--dest-tls-verify=false",
            "--sign-by-sigstore-private-key", self.root / "ours.key", "--sign-passphrase-file",
            self.root / "passphrase", f"docker://{self.address}/team/driver:v1", target)
        self.worker("team/driver:signed", "--signature-key", self.root / "ours.pub")
        self.worker("team/driver:signed", "--signature-key", self.root / "other.pub", "--signature-key",
                    self.root / "ours.pub")
        said = self.worker("team/driver:signed", "--signature-key", self.root / "other.pub", code=76)
        self.assertIn("signature-rejected", said)
        self.both("team/driver:signed", self.policy(self.sigstore()), True, "signed under this very name")
        self.both("team/driver:v1", self.policy(self.sigstore()), False, "the same image under another tag")
        self.both("team/driver:v1", self.policy(self.sigstore({"type": "matchRepository"})), True,
                  "any tag of the repository")
        self.both(f"team/driver@{self.manifest['digest']}", self.policy(self.sigstore()), True, "by digest")
        self.both(f"team/driver@{self.manifest['digest']}", self.policy(self.sigstore({"type": "matchExact"})), False,
                  "by digest, exactly")
        unsigned = self.push("team/driver", "other", "other")
        said = self.worker("team/driver:other", "--signature-key", self.root / "ours.pub", code=76)
        self.assertIn("image-unsigned", said)
        self.both(f"team/driver@{unsigned['digest']}", self.policy(self.sigstore()), False, "unsigned")

    def test_scopes_and_requirements(self):
        name = f"{self.address}/team/driver"
        self.sign(self.payload(f"{name}:v1"))
        signed, host = self.sigstore(), self.address
        for scope, expected in (("", True), (host, True), (f"{host}/team", True), (name, True), (f"{name}:v1", True),
                                (f"{name}:v2", False), (f"{host}/te", False),
                                ("*.0.0.1", True), ("*.1", True), ("*.0.1", True), ("127.0.0.1", False),
                                ("*.example.com", False), (f"{name}/more", False)):
            self.both("team/driver:v1", self.policy(signed, scope), expected, f"scope {scope}")
            self.both("team/driver:v1", self.policy([REJECT], scope, ACCEPT), not expected, f"rejecting scope {scope}")
        policy = self.root / "policy.json"
        for text, expected in (({"default": signed}, True), ({"default": [ACCEPT]}, True),
                               ({"default": [REJECT]}, False), ({"default": [ACCEPT, REJECT]}, False),
                               ({"default": [ACCEPT, *signed]}, True), ({"default": self.sigstore(key="other")}, False),
                               ({"default": signed + self.sigstore(key="other")}, False),
                               ({"default": [REJECT], "transports": {"docker": {"": [REJECT], host: [REJECT],
                                                                                f"{host}/team": signed}}}, True),
                               ({"default": signed, "transports": {"docker": {f"{host}/team": [REJECT]}}}, False),
                               ({"default": signed, "transports": {"oci": {"": [REJECT]}}}, True)):
            policy.write_text(json.dumps(text))
            self.both("team/driver:v1", policy, expected, json.dumps(text))

    def test_identities(self):
        name, digest = f"{self.address}/team/driver", self.manifest["digest"]
        exact, repository = {"type": "matchExact"}, {"type": "matchRepository"}
        for claimed, identity, reference, expected in (
                (f"{name}:v1", None, "team/driver:v1", True), (name, None, "team/driver:v1", False),
                (f"{name}:v2", None, "team/driver:v1", False),
                (f"{name}@{digest}", None, "team/driver:v1", False),
                (f"{name}@{digest}", exact, f"team/driver@{digest}", True),
                (f"{self.address}/team/other:v1", None, "team/driver:v1", False),
                (f"{self.address}/team/other:v1", repository, "team/driver:v1", False),
                (name, repository, "team/driver:v1", True), (f"{name}:v1", exact, "team/driver:v1", True),
                (name, exact, "team/driver:v1", False),
                ("vendor.example/product:1", {"type": "exactReference", "dockerReference": "vendor.example/product:1"},
                 "team/driver:v1", True),
                ("vendor.example/product:2", {"type": "exactReference", "dockerReference": "vendor.example/product:1"},
                 "team/driver:v1", False),
                ("vendor.example/product:2", {"type": "exactRepository", "dockerRepository": "vendor.example/product"},
                 "team/driver:v1", True),
                ("busybox:2", {"type": "exactRepository", "dockerRepository": "docker.io/library/busybox"},
                 "team/driver:v1", True),
                ("vendor.example/driver:v1", {"type": "remapIdentity", "prefix": f"{self.address}/team",
                                              "signedPrefix": "vendor.example"}, "team/driver:v1", True),
                ("vendor.example/driver:v2", {"type": "remapIdentity", "prefix": f"{self.address}/team",
                                              "signedPrefix": "vendor.example"}, "team/driver:v1", False),
                ("vendor.example/driver:v1", {"type": "remapIdentity", "prefix": f"{self.address}/te",
                                              "signedPrefix": "vendor.example"}, "team/driver:v1", False),
                (f"{name}:v1", {"type": "remapIdentity", "prefix": "elsewhere.example/team",
                                "signedPrefix": "vendor.example"}, "team/driver:v1", True),
                ("not a name", repository, "team/driver:v1", False), ("", repository, "team/driver:v1", False)):
            self.sign(self.payload(claimed))
            self.both(reference, self.policy(self.sigstore(identity)), expected, f"{claimed} for {identity}")

    def test_each_member_wrong(self):
        name = f"{self.address}/team/driver:v1"
        another, good = "sha256:" + "0" * 64, self.payload(name)
        policy = self.policy(self.sigstore())
        self.sign(good)
        self.both("team/driver:v1", policy, True, "as it must be")
        for why, payload in (("another digest", self.payload(name, another)),
                             ("another type", self.payload(name, critical={"type": "atomic container signature"})),
                             ("an unknown member", self.payload(name, more=1)),
                             ("an unknown critical member", self.payload(name, critical={"more": 1})),
                             ("no type", self.payload(name, critical={"type": None})),
                             ("a digest that is none", self.payload(name, "sha256:abc")),
                             ("an identity that is a list", self.payload(name, critical={"identity": [name]})),
                             ("not JSON", b"{"), ("nothing", b" "),
                             ("no optional", good.replace(b', "optional": null', b"")), ("two documents", good + good),
                             ("a digest twice", good.replace(b'"docker-manifest-digest"',
                                                             f'"docker-manifest-digest": "{another}", "docker-manifest-digest"'.encode())),
                             ("a half second", self.payload(name, optional={"timestamp": 1.5})),
                             ("a creator that is a number", self.payload(name, optional={"creator": 1}))):
            self.sign(payload)
            self.both("team/driver:v1", policy, False, why)
        for why, payload in (("an annotation", self.payload(name, optional={"team": "drivers", "creator": "somebody",
                                                                            "timestamp": 1700000000})),):
            self.sign(payload)
            self.both("team/driver:v1", policy, True, why)
        self.sign(good, "other")
        self.both("team/driver:v1", policy, False, "another key")
        digest, signature = self.manifest["digest"], self.signature(good)
        for why, pair in (("a changed payload", (good + b" ", signature)),
                          ("a changed signature", (good, signature[:-1] + bytes([signature[-1] ^ 1]))),
                          ("a short signature", (good, signature[:-1])),
                          ("a longer signature", (good, signature + b"\0")), ("no signature", (good, b""))):
            self.attach("team/driver", digest, pair)
            self.both("team/driver:v1", policy, False, why)
        self.attach("team/driver", digest, (good, signature), kind="application/vnd.dsse.envelope.v1+json")
        self.both("team/driver:v1", policy, False, "an attestation")
        bad = self.payload(name, another)
        self.attach("team/driver", digest, (bad, self.signature(bad)), (good, self.signature(good, "other")),
                    (good, signature))
        self.both("team/driver:v1", policy, True, "the third of three")

    def test_kinds_of_keys(self):
        payload = self.payload(f"{self.address}/team/driver:v1")
        for name, kind, *more in (("p384", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"),
                                  ("rsa", "rsa", "-pkeyopt", "rsa_keygen_bits:2048"), ("ed", "ed25519")):
            self.key(name, kind, *more)
            self.sign(payload, name)
            self.both("team/driver:v1", self.policy(self.sigstore(key=name)), True, name)
            self.both("team/driver:v1", self.policy(self.sigstore()), False, f"{name} for another key")
            data = base64.b64encode((self.root / f"{name}.pub").read_bytes()).decode()
            self.both("team/driver:v1", self.policy([{"type": "sigstoreSigned", "keyData": data}]), True,
                      f"{name} as keyData")

    def test_index(self):
        """A signature of the index proves its images, as cosign means it; one of the platform's manifest does, too, as
        skopeo asks for."""
        child = {**self.manifest, "platform": {"os": "linux", "architecture": "amd64"}}
        index = self.document("team/driver", "all", OCI + "index.v1+json", {"manifests": [child]})
        key = self.root / "ours.pub"
        self.worker("team/driver:all", "--signature-key", key, code=76)
        of_index = self.payload(f"{self.address}/team/driver", index["digest"])
        self.attach("team/driver", index["digest"], (of_index, self.signature(of_index)))
        self.worker("team/driver:all", "--signature-key", key)
        self.worker("team/driver:v1", "--signature-key", key, code=76)
        self.attach("team/driver", index["digest"])
        self.sign(self.payload(f"{self.address}/team/driver:all"))
        self.both("team/driver:all", self.policy(self.sigstore()), True, "a signature of the platform's manifest")

    def test_cache_keeps_signatures_and_nothing_that_is_not_trusted(self):
        cache, key = self.root / "cache", self.root / "ours.pub"
        more = ("--cache-dir", cache, "--signature-key", key)
        self.worker("team/driver:v1", *more, code=76)
        self.assertEqual([str(file) for file in cache.rglob("*") if file.is_file() and file.name != "lock"], [])
        self.sign(self.payload(f"{self.address}/team/driver"))
        self.worker("team/driver:v1", *more)
        with self.assertRaises(urllib.error.HTTPError):
            self.request("GET", "team/driver/manifests/absent")
        shutil.rmtree(self.root / "storage")
        self.worker("team/driver:v1", *more, "--image-pull-policy", "Never")
        self.worker("team/driver:v1", *more, "--image-pull-policy", "IfNotPresent")
        self.worker("team/driver:v1", "--cache-dir", cache, "--signature-key", self.root / "other.pub",
                    "--image-pull-policy", "Never", code=76)

    def test_what_cannot_be_checked(self):
        gpg = {"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/etc/pki/key.gpg"}
        said = self.worker("team/driver:v1", "--policy", self.policy([gpg]), code=78)
        self.assertIn("signedBy", said)
        self.worker("team/driver:v1", "--policy", self.policy([gpg], "vendor.example", ACCEPT))
        for wrong in ({"type": "sigstoreSigned"}, {**REJECT, "more": 1},
                      {"type": "sigstoreSigned", "keyPath": "a", "keyData": "YQ=="}, {"type": "Reject"}, {}, []):
            policy = self.policy([wrong], "vendor.example", ACCEPT)
            with self.subTest(wrong):
                self.assertFalse(self.skopeo_takes("team/driver:v1", policy))
                self.worker("team/driver:v1", "--policy", policy, code=65)


MODULE = """apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata: {{name: demo, namespace: drivers}}
spec:
  moduleLoader:
    container:
      version: {version}
      registryTLS: {{insecure: true}}
      modprobe: {{moduleName: demo}}
      kernelMappings: [{{regexp: '^.+$', containerImage: '{image}'}}]
  selector: {{role: worker}}
"""
NODE = """apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {{role: worker}}}}
status: {{nodeInfo: {{kernelVersion: {kernel}, bootID: boot, architecture: amd64}}}}
"""


class Upgraded(Registry):
    """kmm-upgrade passes on who must have signed images."""

    def setUp(self):
        super().setUp()
        worker_case.make_host(self.root / "host", {})
        for name in ("nodes", "modules"):
            (self.root / "cluster" / name).mkdir(parents=True)
        (self.root / "cluster/nodes/node-a.yaml").write_text(NODE.format(name="node-a", kernel=KERNEL))
        self.edit("v1")
        worker = self.root / "worker"
        library = case.TOOLS.bin.parent / "lib/libfake_kernel.so"
        if not library.exists():
            self.skipTest("the kernel of the golden cases is not built")
        (self.root / "script").touch()
        program = f'LD_PRELOAD={library} FAKE_KERNEL_SCRIPT={self.root}/script {case.TOOLS.bin}/kmm-worker "$@"'
        worker.write_text(f'#!/bin/sh\necho "$@" >>{self.root}/calls\nif [ "$1" = status ]; then {program}; else tee -a {self.root}/inputs | {program}; fi\n')
        worker.chmod(0o755)

    def edit(self, version):
        image = f"{self.address}/team/driver:{version}"
        (self.root / "cluster/modules/demo.yaml").write_text(MODULE.format(version=version, image=image))

    def upgrade(self, *arguments, code=0, **environment):
        scratch = self.root / "scratch"
        scratch.mkdir(exist_ok=True)
        done = subprocess.run([str(case.TOOLS.bin / "kmm-upgrade"), *map(str, arguments), "--cluster",
                               str(self.root / "cluster"), "--state-dir", str(self.root / "state")],
                              env={**os.environ, "KMM_HOST_ROOT": str(self.root / "host"), "KMM_VERIFY_AFTER": "0s",
                                   "TMPDIR": str(scratch), "HOME": str(self.root),
                                   "XDG_CONFIG_HOME": str(self.root / "config"), **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def begin(self, *more, **rest):
        return self.upgrade("start", "module", "drivers/demo", "--to", "v1", "--via", "local", "--worker",
                            self.root / "worker", *more, **rest)

    def is_live(self):
        return (self.root / "host/sys/module/demo").exists()

    def calls(self, verb):
        file = self.root / "calls"
        return [line for line in file.read_text().splitlines() if line.startswith(verb)] if file.exists() else []

    def test_unsigned_is_refused_before_anything_is_changed(self):
        said = self.begin("--signature-key", self.root / "ours.pub", code=10)
        self.assertIn("image-unsigned", said)
        self.begin("--policy", self.policy([REJECT], default=ACCEPT), code=10)
        self.assertFalse((self.root / "state/journal.ndjson").exists())
        self.assertEqual(self.calls("load"), [])

    def test_signed_is_loaded_and_keys_go_along(self):
        self.sign(self.payload(f"{self.address}/team/driver"))
        policy = self.policy(self.sigstore({"type": "matchRepository"}))
        self.begin("--policy", policy, "--signature-key", self.root / "ours.pub")
        self.assertTrue(self.is_live())
        for verb in ("check", "load"):
            self.assertTrue(self.calls(verb))
            self.assertTrue(all("--policy-in-input" in call for call in self.calls(verb)), self.calls(verb))
        self.assertNotIn(str(self.root / "ours.pub"), (self.root / "inputs").read_text(), "nodes do not have that file")

    def test_resume_uses_what_start_was_given(self):
        self.sign(self.payload(f"{self.address}/team/driver"))
        key = self.root / "moved.pub"
        shutil.copy(self.root / "ours.pub", key)
        self.begin("--signature-key", key, "--manual", code=11)
        key.unlink()
        self.attach("team/driver", self.manifest["digest"])
        self.upgrade("resume", code=11)
        self.assertFalse(self.is_live())
        self.sign(self.payload(f"{self.address}/team/driver"))
        self.upgrade("retry", "node-a")
        self.assertTrue(self.is_live())

    def test_a_signature_of_the_index_alone_is_refused_before_the_old_module_goes(self):
        """load names the digest that check saw, which is that of the platform's manifest."""
        child = {**self.manifest, "platform": {"os": "linux", "architecture": "amd64"}}
        index = self.document("team/driver", "v1", OCI + "index.v1+json", {"manifests": [child]})
        of_index = self.payload(f"{self.address}/team/driver", index["digest"])
        self.attach("team/driver", index["digest"], (of_index, self.signature(of_index)))
        said = self.begin("--signature-key", self.root / "ours.pub", code=10)
        self.assertIn("image-unsigned", said)
        self.sign(self.payload(f"{self.address}/team/driver"))
        self.begin("--signature-key", self.root / "ours.pub")
        self.assertTrue(self.is_live())

    def test_environment_and_ways_that_cannot(self):
        self.begin(code=10, KMM_SIGNATURE_KEY=str(self.root / "ours.pub"))
        self.begin("--signature-key", self.root / "absent.pub", code=66)
        said = self.upgrade("start", "module", "drivers/demo", "--to", "v1", "--via", "operator", "--signature-key",
                            self.root / "ours.pub", code=64)
        self.assertIn("KMM checks no signatures", said)
        self.assertEqual(self.calls("load"), [])

