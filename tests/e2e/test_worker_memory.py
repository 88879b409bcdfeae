# SPDX-License-Identifier: Apache-2.0
"""What a pull of an image of many files takes of memory: little for each, and none for what it prints."""
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import case

MANY, KERNELS = 21_000, 10
BYTES_FOR_EACH = 320  # the path, a node, a digest: about 250 in 2026; 590 with names and 1,500 with JSON before
# In a fresh interpreter: the size of this one would count as that of its child.
PEAK = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done)"""
KIND = "application/vnd.oci.image."


def layer_of(count):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(count):
            info = tarfile.TarInfo(f"opt/lib/modules/6.1.0-{number % KERNELS}-test/kernel/drivers/net/ethernet/vendor/driver_{number:06d}.ko")
            info.size = 4
            tar.addfile(info, io.BytesIO(b"text"))
    return out.getvalue()


def write_layout(top, count):
    """An OCI layout with one layer of `count` files."""
    blobs = top / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(kind, data):
        name = hashlib.sha256(data).hexdigest()
        (blobs / name).write_bytes(data)
        return {"mediaType": KIND + kind, "digest": "sha256:" + name, "size": len(data)}

    layer = put("layer.v1.tar", layer_of(count))
    config = put("config.v1+json", json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}).encode())
    manifest = {"schemaVersion": 2, "mediaType": KIND + "manifest.v1+json", "config": config, "layers": [layer]}
    entry = put("manifest.v1+json", json.dumps(manifest).encode())
    (top / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (top / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


class ManyFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = str(case.TOOLS.bin / "kmm-worker")
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="kmm-memory-"))
        write_layout(cls.top / "image", MANY)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top, ignore_errors=True)

    def peak(self, kernel, form):
        """(bytes resident at most, the output)"""
        out, said = self.top / "out", self.top / "said"
        words = [self.worker, "pull", f"oci:{self.top / 'image'}", "--platform", "linux/amd64", "--kernel", kernel, "--out", str(out), "--cache-size", "0", "-o", form]
        with open(said, "wb") as stdout:
            done = subprocess.run([sys.executable, "-c", PEAK, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.rmtree(out)
        return int(done.stderr.split()[-1]) * 1024, said.read_text()

    def check(self, form, listed):
        # Of the same layer, so that buffers are as full both times.
        one, text = self.peak("6.1.0-3-test", form)
        self.assertEqual(listed(text), MANY // KERNELS)
        whole, text = self.peak("all", form)
        self.assertEqual(listed(text), MANY)
        each = (whole - one) / (MANY - MANY // KERNELS)
        self.assertLessEqual(each, BYTES_FOR_EACH, f"{form}: {one >> 20} MiB for one kernel, {whole >> 20} MiB for all")

    def test_names(self):
        self.check("name", lambda text: text.count("\n"))

    def test_table(self):
        self.check("table", lambda text: text.count(".ko\n"))

    def test_json(self):
        self.check("json", lambda text: len(json.loads(text)["files"]))

    def test_yaml(self):
        self.check("yaml", lambda text: text.count("- path: "))


if __name__ == "__main__":
    unittest.main()
