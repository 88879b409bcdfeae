# SPDX-License-Identifier: Apache-2.0
"""Builds the test modules against the kernel headers, once."""
import hashlib
import shutil

from .common import HERE, LabError, headers, need, run

SOURCES = HERE / "modules"
# directory: {module: (source, text replacements)}
BUILDS = {
    "v1": {"kmm_hello": ("kmm_hello.c", {"@KMM_HELLO_VERSION@": "1"})},
    "v2": {"kmm_hello": ("kmm_hello.c", {"@KMM_HELLO_VERSION@": "2"})},
    "v2-failinit": {"kmm_hello": ("kmm_hello_failinit.c", {})},
    "v2-unknown": {"kmm_hello": ("kmm_hello_unknown.c", {})},
    "simple": {"simple_kmod": ("simple_kmod.c", {}), "simple_procfs_kmod": ("simple_procfs_kmod.c", {})},
    "misc": {"kmm_dep": ("kmm_dep.c", {}), "kmm_user": ("kmm_user.c", {}), "kmm_busy": ("kmm_busy.c", {}),
             "kmm_odd": ("kmm_odd.c", {}), "kmm_soft": ("kmm_soft.c", {})},
}


def make(lab, where, modules):
    """Builds {module: (source, text replacements)} in a new directory."""
    where.mkdir(parents=True)
    for name, (source, replacements) in modules.items():
        text = (SOURCES / source).read_text()
        for old, new in replacements.items():
            text = text.replace(old, new)
        (where / f"{name}.c").write_text(text)
    (where / "Kbuild").write_text("".join(f"obj-m += {name}.o\n" for name in modules))
    run(["make", "-C", headers(lab.kernel), f"M={where}", "KBUILD_MODPOST_WARN=1", "modules"])


def _fingerprint(kernel):
    digest = hashlib.sha256(kernel.encode())
    for source in sorted(SOURCES.glob("*.c")):
        digest.update(source.read_bytes())
    digest.update((HERE / "lab/kmods.py").read_bytes())
    return digest.hexdigest()


def _foreign_vermagic(data, kernel):
    """The same file as if built for another kernel: another release and no SMP (with symbol versions a kernel forgives
    the release alone)."""
    own = b"vermagic=" + kernel.encode() + b" SMP "
    if data.count(own) != 1:
        raise LabError("the module has no vermagic of this kernel")
    start = data.index(own)
    end = data.index(b"\0", start)
    other = data[start:end].replace(own, b"vermagic=9" + kernel.encode()[1:] + b" ")
    return data[:start] + other.ljust(end - start, b"\0") + data[end:]


def _sign(base, lab):
    """v2 with a signature that is right, by a key that no kernel knows."""
    where = base / "v2-foreign-key"
    where.mkdir()
    key, certificate = where / "key.pem", where / "certificate.pem"
    run(
        [
            need("openssl"),
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "3650",
            "-subj",
            "/CN=Somebody's own key",
            "-keyout",
            key,
            "-out",
            certificate,
        ]
    )
    run([headers(lab.kernel) / "scripts/sign-file", "sha256", key, certificate, base / "v2" / "kmm_hello.ko",
         where / "kmm_hello.ko"])


def build(lab):
    """Builds all variants; returns {variant: {module: path}}. Nothing is done when sources and kernel are unchanged."""
    base = lab.path("modules", ".")
    stamp = base / "stamp"
    fingerprint = _fingerprint(lab.kernel)
    if not (stamp.exists() and stamp.read_text() == fingerprint):
        shutil.rmtree(base, ignore_errors=True)
        for variant, modules in BUILDS.items():
            make(lab, base / variant, modules)
        bad = base / "v2-badmagic"
        bad.mkdir()
        good = (base / "v2" / "kmm_hello.ko").read_bytes()
        (bad / "kmm_hello.ko").write_bytes(_foreign_vermagic(good, lab.kernel))
        _sign(base, lab)
        stamp.write_text(fingerprint)
    found = {variant: {name: base / variant / f"{name}.ko" for name in modules} for variant, modules in BUILDS.items()}
    found["v2-badmagic"] = {"kmm_hello": base / "v2-badmagic" / "kmm_hello.ko"}
    found["v2-foreign-key"] = {"kmm_hello": base / "v2-foreign-key" / "kmm_hello.ko"}
    return found
