# SPDX-License-Identifier: Apache-2.0
"""What a pull of an image of many files takes of memory: little for each, and none for what it prints or what a cache
keeps of it."""
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import case
import oci_image
from fleet import scratch

MANY, CACHED, KERNELS = 21_000, 40_000, 10
ROOM = 1 << 30  # bytes: of many small files, which disks take three times as long for
PEAK_MAX = 48 << 20  # bytes, of a pull of an image of any size
BYTES_FOR_EACH = 320  # the path, a node, a digest: about 250 in 2026; 590 with names and 1,500 with JSON before
# In a fresh interpreter: the size of this one would count as that of its child.
PEAK = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(done)"""


def layer_of(count, content):
    """A tar of `count` files; `content` gives the bytes of one by its number."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for number in range(count):
            info = tarfile.TarInfo(
                f"opt/lib/modules/6.1.0-{number % KERNELS}-test/kernel/drivers/net/ethernet/vendor/driver_{number:06d}.ko"
            )
            data = content(number)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write_layout(top, tar):
    """An OCI layout with one layer."""
    blobs = top / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    entry = oci_image.make_image([tar], lambda name, data: (blobs / name.removeprefix("sha256:")).write_bytes(data))
    (top / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    (top / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


def peak_of(words, stdout):
    """(bytes that the command had resident at most, its exit code, what it said besides)"""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )
    said, _, peak = done.stderr.rstrip("\n").rpartition("\n")
    return int(peak) * 1024, done.returncode, said


class ManyFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = str(case.TOOLS.bin / "kmm-worker")
        cls.top = scratch("memory", ROOM)
        write_layout(cls.top / "image", layer_of(MANY, lambda _number: b"text"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.top, ignore_errors=True)

    def peak(self, kernel, form):
        """(bytes resident at most, the output)"""
        out, said = self.top / "out", self.top / "said"
        words = [
            self.worker,
            "pull",
            f"oci:{self.top / 'image'}",
            "--platform",
            "linux/amd64",
            "--kernel",
            kernel,
            "--out",
            str(out),
            "--cache-size",
            "0",
            "-o",
            form,
        ]
        with open(said, "wb") as stdout:
            peak, code, errors = peak_of(words, stdout)
        self.assertEqual(code, 0, errors)
        shutil.rmtree(out)
        return peak, said.read_text()

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


class CachedFiles(unittest.TestCase):
    """With a cache, whose list of extracted files is as long as the image has files."""

    def test_peak(self):
        worker = str(case.TOOLS.bin / "kmm-worker")
        server, repository = oci_image.serve(layer_of(CACHED, lambda number: b"module %06d" % number))
        top = scratch("memory", ROOM)
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        with server:
            words = [
                worker,
                "pull",
                "--insecure",
                f"{repository}:v1",
                "--platform",
                "linux/amd64",
                "--kernel",
                "all",
                "--cache-dir",
                str(top / "cache"),
                "-o",
                "name",
            ]
            for what, policy in (("first", "Always"), ("cached", "Always"), ("cached", "Never")):
                with self.subTest(what=what, policy=policy):
                    out = top / "out"
                    with open(top / "said", "wb") as stdout:
                        peak, code, errors = peak_of([*words, "--out", str(out), "--image-pull-policy", policy], stdout)
                    self.assertEqual(code, 0, errors)
                    self.assertEqual((top / "said").read_text().count("\n"), CACHED)
                    self.assertEqual(len(list((top / "cache" / "extractions").iterdir())), 1)
                    self.assertEqual(len(list((top / "cache" / "blobs" / "sha256").iterdir())), CACHED + 3)
                    shutil.rmtree(out)
                    self.assertLessEqual(
                        peak, PEAK_MAX, f"{what} pull of {CACHED} files, {policy}: {peak / (1 << 20):.1f} MiB"
                    )
            for verb in ("list", "verify", "prune"):
                with open(top / "said", "wb") as stdout:
                    peak, code, errors = peak_of([worker, "cache", verb, "--cache-dir", str(top / "cache")], stdout)
                self.assertEqual(code, 0, errors)
                self.assertLessEqual(peak, PEAK_MAX, f"cache {verb} with {CACHED} files: {peak / (1 << 20):.1f} MiB")
            server.shutdown()


if __name__ == "__main__":
    unittest.main()
