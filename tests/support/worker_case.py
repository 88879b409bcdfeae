#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command of kmm-worker against a made-up host, an image in a registry of its own, and a scripted kernel.

Usage: worker_case.py CASE.json COMMAND...     in the current directory; makes ./host, prints what the command prints.

CASE.json (all optional):
  host     {"release", "tainted", "live": {NAME: {"srcversion", "taint", "refcnt", "holders": [..], "state", ...}},
            "files": {PATH: TEXT}, "modules": [KO...] of the host's own tree, "depmod": true for its index}
  image    {"repository", "tag", "kernel", "root" ("opt/"), "modules": [KO...], "files": {PATH: TEXT}}
           KO = {"name", "file", "srcversion", "vermagic", "depends", "modinfo": [..], "undefined": [..], "exported":
           [..],
                 "crcs": {SYMBOL: HEX}, "export_crcs": {SYMBOL: HEX}, "machine", "structure": bytes of struct
                 module, "bytes", "compress": "gzip" or "xz",
                 "signer", "tampered", "message": text in the place of a signature's};
           "links": {PATH: TARGET} in the image
           "signer": NAME signs it with the key of ./NAME.pem, a certificate that is made if it is not there; several
           as [NAME, NAME], in the order of the names if these are equally long
  verify_after   wait before the second look at a live module, "0s"
  kernel   {"load": {NAME: {"errno", "log": [..], "tainted", "sleep", "srcversion"}}, "unload": {NAME: {...}}}
In COMMAND, @REGISTRY@ stands for HOST:PORT. Standard input is handed on with the same replacement if there is a file
`stdin`.
"""

import gzip
import http.server
import io
import json
import lzma
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import threading

import oci_image

RELEASE = "6.1.0-99-demo"
VERMAGIC = RELEASE + " SMP preempt mod_unload modversions "


PACKERS = {"gzip": lambda data: gzip.compress(data, mtime=0), "xz": lzma.compress}


def fake_kernel(programs):
    """The library that answers in the kernel's place, beside the directory of the programs. The loader would go on
    without one that is not there, and the machine's own kernel would be asked."""
    library = programs.parent / "lib/libfake_kernel.so"
    if not library.exists():
        raise FileNotFoundError(f"{library} is not built")
    return library


def make_ko(spec):
    """The bytes of a module file, compressed where the case says so."""
    plain = plain_ko(spec)
    if "signer" in spec or "message" in spec:
        message = spec["message"].encode() if "message" in spec else sign(plain, spec["signer"])
        if spec.get("tampered"):
            plain = plain.replace(b"AAAA0000", b"AAAA0001")
        plain += message + struct.pack(">8BI", 0, 0, 2, 0, 0, 0, 0, 0, len(message)) + b"~Module signature appended~\n"
    return PACKERS.get(spec.get("compress"), bytes)(plain)


def sign(data, signers):
    """A detached PKCS#7 message, as the kernel's sign-file makes it. Serial numbers are made of the signers' names."""
    several = isinstance(signers, list)
    algorithm = ["rsa:2048"] if several else ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    keys = []
    for signer in signers if several else [signers]:
        key, certificate = pathlib.Path(signer + ".key"), pathlib.Path(signer + ".pem")
        keys += ["-signer", certificate, "-inkey", key]
        if not certificate.exists():
            make = ["openssl", "req", "-x509", "-newkey", *algorithm, "-nodes", "-keyout", key, "-out", certificate]
            serial = "0x" + signer.encode().hex()
            subprocess.run([*make, "-subj", f"/CN={signer}", "-set_serial", serial], check=True, capture_output=True)
    form = ["-binary", "-noattr", "-nocerts", "-outform", "DER", "-md", "sha256"]
    return subprocess.run(["openssl", "cms", "-sign", *form, *keys], input=data, check=True, capture_output=True).stdout


def plain_ko(spec):
    """The bytes of an ELF object as far as module loaders look."""
    if "bytes" in spec:
        return spec["bytes"].encode()
    entries = [f"srcversion={spec.get('srcversion', 'AAAA0000AAAA0000AAAA000')}", f"depends={spec.get('depends', '')}"]
    entries += spec.get("modinfo", [])
    if not any(entry.startswith("license=") for entry in entries):
        entries.append("license=GPL")
    entries += [f"name={spec['name']}", f"vermagic={spec.get('vermagic', VERMAGIC)}"]
    modinfo = b"".join(entry.encode() + b"\0" for entry in entries)
    strings, symbols = b"\0", b"\0" * 24
    absolute = 0xfff1
    for name, section, bind, value in (
        [("__ksymtab_" + n, 1, 0, 0) for n in spec.get("exported", [])]
        + [(n, 0, 1, 0) for n in spec.get("undefined", [])]
        + [("__crc_" + n, absolute, 0, int(crc, 16)) for n, crc in spec.get("export_crcs", {}).items()]
    ):
        symbols += struct.pack("<IBBHQQ", len(strings), bind << 4, 0, section, value, 0)
        strings += name.encode() + b"\0"
    exports = b"".join(n.encode() + b"\0" for n in spec.get("exported", []))
    structure = b"\0" * spec.get("structure", 896)
    parts = [("", 0, b"", 0), (".modinfo", 1, modinfo, 0), (".gnu.linkonce.this_module", 1, structure, 0),
             (".symtab", 2, symbols, 4), (".strtab", 3, strings, 0), ("__ksymtab_strings", 1, exports, 0)]
    versions = b"".join(struct.pack("<Q56s", int(crc, 16), n.encode()) for n, crc in spec.get("crcs", {}).items())
    if versions:
        parts.append(("__versions", 1, versions, 0))
    names = b"".join(name.encode() + b"\0" for name, *_ in parts) + b".shstrtab\0"
    parts.append((".shstrtab", 3, names, 0))
    body, table, at = b"\0" * 64, b"", 0
    for name, kind, data, link in parts:
        table += struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, len(body), len(data), link, 0, 1, 0)
        body += data
        at += len(name) + 1
    header = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack(
        "<HHIQQQIHHHHHH", 1, spec.get("machine", 62), 1, 0, 0, len(body), 0, 64, 0, 0, 64, len(parts), len(parts) - 1)
    return header + body[64:] + table


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def make_host(root, spec):
    release = spec.get("release", RELEASE)
    kernel = root / "proc/sys/kernel"
    put(kernel / "osrelease", release + "\n")
    put(kernel / "hostname", "node-a\n")
    put(kernel / "tainted", f"{spec.get('tainted', 0)}\n")
    put(kernel / "modules_disabled", "0\n")
    put(kernel / "random/boot_id", "11111111-2222-3333-4444-555555555555\n")
    put(root / "proc/cmdline", "quiet\n")
    put(root / "proc/self/status", "CapEff:\t0000000000010000\n")
    put(root / "proc/kallsyms", "0000000000000000 r __ksymtab__printk\n")
    put(root / "etc/os-release", 'PRETTY_NAME="Demo Linux 1"\n')
    put(root / "etc/machine-id", "00112233445566778899aabbccddeeff\n")
    put(root / "dev/kmsg", "6,1,1,-;booted\n")
    put(
        root / f"lib/modules/{release}/kernel/reference.ko",
        make_ko({"name": "reference", "modinfo": ["intree=Y"], "vermagic": VERMAGIC.replace(RELEASE, release)}),
    )
    put(root / "sys/module/firmware_class/parameters/path", "\n")
    lines = ""
    for name, live in spec.get("live", {}).items():
        base = root / "sys/module" / name
        put(base / "initstate", live.get("state", "live") + "\n")
        put(base / "refcnt", f"{live.get('refcnt', 0)}\n")
        put(base / "taint", live.get("taint", "OE") + "\n")
        for key in ("srcversion", "version"):
            if key in live:
                put(base / key, live[key] + "\n")
        (base / "holders").mkdir()
        for holder in live.get("holders", []):
            put(base / "holders" / holder, "")
        for key, value in live.get("parameters", {}).items():
            put(base / "parameters" / key, value + "\n")
        lines += f"{name} 16384 {live.get('refcnt', 0)} - Live 0x0\n"
    put(root / "proc/modules", lines)
    for ko in spec.get("modules", []):
        put(root / f"lib/modules/{release}/kernel" / ko.get("file", ko["name"] + ".ko"), make_ko(ko))
    for path, text in spec.get("files", {}).items():
        put(root / path, text)
    if spec.get("depmod"):
        subprocess.run(
            [shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin"), "-b", root, release],
            check=True,
            capture_output=True,
        )


def make_image(spec):
    """Every blob and manifest by the path it is asked for at."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tree = f"{spec.get('root', 'opt/')}lib/modules/{spec.get('kernel', RELEASE)}"
        files = {f"{tree}/{ko.get('file', ko['name'] + '.ko')}": make_ko(ko) for ko in spec.get("modules", [])}
        files.update({path: text.encode("latin-1") for path, text in spec.get("files", {}).items()})
        for path, data in sorted(files.items()):
            info = tarfile.TarInfo(path)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for path, target in sorted(spec.get("links", {}).items()):
            info = tarfile.TarInfo(path)
            info.type = tarfile.SYMTYPE
            info.linkname = target
            tar.addfile(info)
    plain = layer.getvalue()
    blobs = {}
    entry = oci_image.make_image([plain], blobs.__setitem__)
    manifest = blobs.pop(entry["digest"])
    base = f"/v2/{spec.get('repository', 'drivers/demo')}"
    served = {f"{base}/manifests/{name}": manifest for name in (spec.get("tag", "v2"), entry["digest"])}
    if spec.get("tampered"):
        blobs[oci_image.digest_of(plain)] = plain[:-1] + b"x"
    return served | {f"{base}/blobs/{name}": blob for name, blob in blobs.items()}


def registry(served):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            data = b"{}" if self.path == "/v2/" else served.get(self.path)
            self.send_response(404 if data is None else 200)
            data = data or b""
            if "/manifests/" in self.path:
                self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"127.0.0.1:{server.server_port}"


def main():
    case = json.loads(pathlib.Path(sys.argv[1]).read_text())
    root = pathlib.Path("host").absolute()
    address = registry(make_image(case.get("image", {})))
    make_host(root, json.loads(json.dumps(case.get("host", {})).replace("@REGISTRY@", address)))
    environment = dict(
        os.environ,
        KMM_HOST_ROOT=str(root),
        KMM_VERIFY_AFTER=case.get("verify_after", "0s"),
        TMPDIR=str(pathlib.Path("scratch").absolute()),
    )
    pathlib.Path("scratch").mkdir()
    if "kernel" in case:
        script = ""
        for call in ("load", "unload"):
            for name, answer in case["kernel"].get(call, {}).items():
                words = (
                    answer.get("errno", 0),
                    answer.get("tainted", "-"),
                    answer.get("sleep", 0),
                    answer.get("srcversion", "-"),
                )
                script += " ".join(map(str, (call, name, *words))) + "\n"
                script += "".join(f"log {line}\n" for line in answer.get("log", []))
        pathlib.Path("kernel.script").write_text(script)
        library = fake_kernel(pathlib.Path(shutil.which("kmm-worker")).parent)
        environment.update(LD_PRELOAD=str(library), FAKE_KERNEL_SCRIPT=str(pathlib.Path("kernel.script").absolute()),
                           ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0:detect_leaks=0")
    given = pathlib.Path("stdin").read_text().replace("@REGISTRY@", address) if pathlib.Path("stdin").exists() else ""
    done = subprocess.run(
        [word.replace("@REGISTRY@", address) for word in sys.argv[2:]],
        input=given.encode(),
        env=environment,
        check=False,
    )
    left = sorted(os.listdir("scratch"))
    if left:
        print("left behind:", *left)
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
