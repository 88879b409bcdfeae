# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry on loopback, filled with module images. Guests see it as 10.0.2.2."""
import hashlib
import http.client
import os
import shutil

from . import kmods, ociimage, otherimages
from .common import LabError, alive, free_port, need, run, spawn, stop_process, wait_for

CONFIG = """version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage:
  filesystem: {{rootdirectory: {root}}}
  cache: {{blobdescriptor: inmemory}}
http:
  addr: 127.0.0.1:{port}
  secret: not-a-secret-on-loopback
{tls}"""

EIGHT_TIB = 8 * 2 ** 40


class Registry:
    """Two servers over one storage: plain HTTP, and TLS with a certificate of the lab's own CA."""

    def __init__(self, lab):
        self.lab = lab

    @property
    def port(self):
        return self.lab.state()["registry"]["port"]

    @property
    def tls_port(self):
        return self.lab.state()["registry"]["tls_port"]

    @property
    def storage(self):
        return self.lab.path("registry", "storage")

    def reference(self, name, tag, host="10.0.2.2"):
        """The image as a guest names it."""
        separator = "@" if tag.startswith("sha256:") else ":"
        return f"{host}:{self.port}/{name}{separator}{tag}"

    def certificates(self):
        """ca.pem, server.pem and server.key of the lab; made once."""
        base = self.lab.path("tls", ".")
        if not (base / "server.pem").exists():
            shutil.rmtree(base, ignore_errors=True)
            base.mkdir()
            key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650"]
            openssl = need("openssl")
            run([openssl, "req", "-x509", *key, "-subj", "/CN=kmm lab CA", "-keyout", base / "ca.key",
                 "-out", base / "ca.pem"])
            run([openssl, "req", "-new", *key[:-2], "-subj", "/CN=kmm lab registry", "-keyout", base / "server.key",
                 "-out", base / "server.csr"])
            (base / "server.ext").write_text("subjectAltName=IP:127.0.0.1,IP:10.0.2.2,DNS:localhost\n")
            run([openssl, "x509", "-req", "-in", base / "server.csr", "-CA", base / "ca.pem", "-CAkey",
                 base / "ca.key", "-CAcreateserial", "-days", "3650", "-extfile", base / "server.ext",
                 "-out", base / "server.pem"])
        return base

    def start(self):
        """Starts both servers unless they run; returns self."""
        known = self.lab.state().get("registry", {})
        if known and all(alive(known[k]) for k in ("pid", "tls_pid")):
            return self
        self.stop()
        tls = self.certificates()
        ports = {"port": free_port(), "tls_port": free_port()}
        pids = {}
        for kind in ("port", "tls_port"):
            files = f"  tls: {{certificate: {tls}/server.pem, key: {tls}/server.key}}\n" if kind == "tls_port" else ""
            config = self.lab.path("registry", f"{kind}.yml")
            config.write_text(CONFIG.format(root=self.storage, port=ports[kind], tls=files))
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("REGISTRY_", "OTEL_"))}
            pids[{"port": "pid", "tls_port": "tls_pid"}[kind]] = spawn(
                [need("docker-registry"), "serve", config], self.lab.path("registry", f"{kind}.log"), env=environment)
        self.lab.remember(registry={**ports, **pids})
        wait_for("the registry", lambda: self._answers(ports["port"]), 300, 0.05)
        return self

    @staticmethod
    def _answers(port):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/v2/")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def stop(self):
        known = self.lab.state().get("registry", {})
        for key in ("pid", "tls_pid"):
            if known.get(key):
                stop_process(known[key])
        self.lab.remember(registry={})

    def push(self, layout, tag, name):
        run([need("skopeo"), "copy", "--quiet", "--all", "--dest-tls-verify=false", "--insecure-policy",
             f"oci:{layout}:{tag}", f"docker://127.0.0.1:{self.port}/{name}:{tag}"])

    def blob_file(self, digest):
        value = digest.split(":", 1)[1]
        return self.storage / "docker/registry/v2/blobs/sha256" / value[:2] / value / "data"

    def damage(self, digest):
        """Changes one byte of a stored blob, length kept: the registry serves it under a digest that is not its own."""
        path = self.blob_file(digest)
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x20
        path.write_bytes(bytes(data))

    def replace(self, digest, old, new):
        """Replaces text of the same length in a stored blob (a manifest that stays readable)."""
        path = self.blob_file(digest)
        data = path.read_bytes()
        if data.count(old) != 1 or len(old) != len(new):
            raise LabError("the blob does not have that text exactly once")
        path.write_bytes(data.replace(old, new))

    def publish(self):
        """Builds and pushes every test image once (into an emptied, restarted registry if anything changed); returns
        {"name:tag": manifest digest}."""
        modules = kmods.build(self.lab)
        fingerprint = hashlib.sha256(b"".join(path.read_bytes() for variant in sorted(modules)
                                              for path in modules[variant].values()) +
                                     (kmods.HERE / "lab/ociimage.py").read_bytes() +
                                     (kmods.HERE / "lab/otherimages.py").read_bytes() +
                                     (kmods.HERE / "lab/registry.py").read_bytes()).hexdigest()
        known = self.lab.state().get("images", {})
        if known.get("fingerprint") == fingerprint and self.storage.exists():
            return known["digests"]
        self.stop()
        shutil.rmtree(self.storage, ignore_errors=True)
        self.start()
        digests = _Publisher(self, modules).all()
        self.lab.remember(images={"fingerprint": fingerprint, "digests": digests})
        return digests


class _Publisher:
    def __init__(self, registry, modules):
        self.registry, self.modules = registry, modules
        self.place = f"opt/lib/modules/{registry.lab.kernel}"
        self.digests = {}
        self.base = registry.lab.path("images", ".")
        shutil.rmtree(self.base, ignore_errors=True)

    def publish(self, name, tag, descriptor, layout):
        layout.tag(descriptor, tag)
        self.registry.push(layout.dir, tag, name)
        self.digests[f"{name}:{tag}"] = descriptor["digest"]

    def files(self, variant, *names):
        names = names or tuple(self.modules[variant])
        return {f"{self.place}/{n}.ko": self.modules[variant][n].read_bytes() for n in names}

    @staticmethod
    def layer(files):
        plain = ociimage.tar_layer(files)
        return ociimage.compress(plain), plain

    def plain(self, name, tag, files):
        layout = ociimage.Layout(self.base / name)
        self.publish(name, tag, layout.image([self.layer(files)], annotations={"org.kmm.build": tag}), layout)

    def all(self):
        for tag in ("v1", "v2", "v2-failinit", "v2-badmagic", "v2-unknown",
                    "v2-foreign-key"):
            self.plain("kmm-hello", tag, self.files(tag))
        self.plain("kmm-misc", "v1", self.files("misc"))
        self.plain(
            "kmm-firmware", "v1", {**self.files("misc", "kmm_odd"), "opt/firmware/kmm/odd.bin": b"the first firmware\n"}
        )
        self.plain("kmm-hello", "other-kernel",
                   {"opt/lib/modules/9.9.9/kmm_hello.ko": self.modules["v2"]["kmm_hello"].read_bytes()})
        self.platforms()
        self.digests.update(otherimages.publish(self.registry, self.modules, self.base, self.place))
        self.hostile()
        return self.digests

    def platforms(self):
        layout = ociimage.Layout(self.base / "kmm-multi")
        good = layout.image([self.layer(self.files("v2"))])
        other = layout.image([self.layer({"opt/lib/modules/other/readme": b"another architecture\n"})], "arm64")
        self.publish("kmm-multi", "v2", layout.index({"amd64": good, "arm64": other}), layout)

    def hostile(self):
        name = "kmm-hostile"
        module = self.modules["v2"]["kmm_hello"].read_bytes()
        files = self.files("v2")
        layout = ociimage.Layout(self.base / name)
        escape = ociimage.tar_layer({**files, f"{self.place}/../../../../../etc/kmm-escaped": b"escaped\n"})
        sparse = ociimage.sparse_entry(f"{self.place}/kmm_hello.ko", EIGHT_TIB)
        good = self.layer(files)
        salted = self.layer({**files, "opt/salt": b"a blob of its own\n"})
        variants = {"escape": (ociimage.compress(escape), escape), "sparse": (ociimage.compress(sparse), sparse),
                    "truncated": (good[0][:len(good[0]) * 2 // 3], good[1]), "tampered": salted,
                    "wrong-manifest": self.layer({**files, "opt/pepper": module[:64]})}
        for tag, packed in variants.items():
            self.publish(name, tag, layout.image([packed], annotations={"org.kmm.build": "genuine"}), layout)
        self.registry.damage("sha256:" + hashlib.sha256(salted[0]).hexdigest())
        self.registry.replace(self.digests[f"{name}:wrong-manifest"], b"genuine", b"forgery")
