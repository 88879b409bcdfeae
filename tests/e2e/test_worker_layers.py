# SPDX-License-Identifier: Apache-2.0
"""Images of random layers: what a pull takes of them is what umoci unpacks, or nothing. KMM_RANDOM_IMAGES says how many
of each kind (default 250; twice as many of links to modules elsewhere)."""
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import case
import oci_image
from fleet import scratch

KERNEL, OTHER = "6.1.0-1-test", "6.1.0-2-test"
NAMES = ["x.ko", "y.ko", "a", "b", "c", "d"]
TYPES = {"file": tarfile.REGTYPE, "directory": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard link": tarfile.LNKTYPE}
REFUSED, NOT_THERE = 16, 66
COUNT = int(os.environ.get("KMM_RANDOM_IMAGES", "250"))


class Layer:
    """Entries that a sound tar of one layer may have: each path once, nothing below what is not a directory."""

    def __init__(self):
        self.entries = {}  # path -> (kind, text of a file or target)

    def add(self, path, kind, text=""):
        above = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        room = all(self.entries.get(parent, ("directory",))[0] == "directory" for parent in above)
        if (
            room
            and path not in self.entries
            and (kind == "directory" or not any(there.startswith(path + "/") for there in self.entries))
        ):
            self.entries[path] = (kind, text)

    def files(self):
        return [path for path, (kind, _) in self.entries.items() if kind == "file"]

    def tar(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path, (kind, text) in self.entries.items():
                info = tarfile.TarInfo(path)
                info.type, info.mode = TYPES[kind], 0o755
                if kind == "file":
                    info.size = len(text)
                else:
                    info.linkname = text
                tar.addfile(info, io.BytesIO(text.encode()))
        return out.getvalue()


class Maker:
    """Makes layers of files, directories, links and whiteouts in and beside the directory of a kernel's modules."""

    def __init__(self, seed, places, targets, first):
        self.random, self.places, self.targets, self.first = random.Random(seed), places, targets, first

    def layers(self):
        return [self.layer(number) for number in range(self.random.randint(1, 4))]

    def layer(self, number):
        layer = Layer()
        if number == 0:
            for path, kind, target in self.random.choice(self.first):
                layer.add(path, kind, target)
        for _ in range(self.random.randint(1, 8)):
            self.entry(layer, number)
        return layer

    def entry(self, layer, number):
        place = self.random.choice(self.places[:4] if self.random.random() < 0.75 else self.places)
        name = self.random.choice(NAMES)
        path = f"{place}/{name}".lstrip("/")
        kind = self.random.choices(
            ["file", "directory", "link", "hard link", "whiteout", "opaque"], [45, 15, 10, 8, 16, 6]
        )[0]
        if kind == "whiteout":
            layer.add(f"{place}/.wh.{name}".lstrip("/"), "file")
        elif kind == "opaque":
            layer.add(f"{place}/.wh..wh..opq".lstrip("/"), "file")
        elif kind == "hard link":
            files = [there for there in layer.files() if there.startswith(self.places[0]) and ".wh." not in there]
            if files and path.startswith(self.places[0]):
                layer.add(path, kind, self.random.choice(files))
        elif kind == "link":
            inside = any(path.startswith(kernel + "/") for kernel in self.places[:2])
            layer.add(
                path,
                kind,
                self.random.choice(["x.ko", "a", "b/x.ko", ".", "a/b", "y.ko", "c"] + ([] if inside else self.targets)),
            )
        else:
            layer.add(path, kind, f"{number}-{self.random.randint(0, 999)}" if kind == "file" else "")


class FarMaker(Maker):
    """Makes layers whose modules are links, hard and symbolic, to modules elsewhere, also below what are links."""

    def entry(self, layer, number):
        place, name = self.random.choice(self.places), self.random.choice("pqrs") + ".ko"
        far, path = f"{self.random.choice(self.places)}/{self.random.choice('pqrs')}.ko", f"{place}/{name}"
        kinds = ["file", "link", "hard link", "whiteout", "opaque", "way"]
        kind = self.random.choices(kinds, [45, 15, 12, 12, 6, 10])[0]
        files = [there for there in layer.files() if ".wh." not in there]
        if kind == "file":
            layer.add(path, kind, f"{number}-{self.random.randint(0, 999)}")
        elif kind == "link":
            layer.add(path, kind, self.random.choice(["/" + far, os.path.relpath(far, place), name]))
        elif kind == "hard link" and files:
            layer.add(path, kind, self.random.choice(files))
        elif kind == "way":
            layer.add(self.random.choice(["lib", "srv", "usr/lib"]), "link", self.random.choice(self.targets))
        elif kind != "hard link":
            layer.add(f"{place}/.wh.{name if kind == 'whiteout' else '.wh..opq'}", "file")


def resolve(root, path):
    """Where `path` leads in a file system whose root is the directory `root`."""
    todo, at, links = path.split("/")[::-1], [], 0
    while todo:
        piece = todo.pop()
        if piece == "..":
            at = at[:-1]
        elif piece not in ("", "."):
            there = root.joinpath(*at, piece)
            if not there.is_symlink():
                at.append(piece)
                continue
            links += 1
            if links > 40:
                return root / "nowhere"
            target = os.readlink(there)
            at = [] if target.startswith("/") else at
            todo += target.split("/")[::-1]
    return root.joinpath(*at)


def tree(root, directory):
    """What `directory` of the unpacked image `root` holds: {path: text or target}, without directories and links that
    lead nowhere."""
    top, found = resolve(root, directory), {}
    for place, directories, files in os.walk(top):
        for name in directories + files:
            path = pathlib.Path(place, name)
            if path.is_symlink():
                if resolve(root, str(path.relative_to(root))).exists():
                    found[str(path.relative_to(top))] = "-> " + os.readlink(path)
            elif path.is_file():
                found[str(path.relative_to(top))] = path.read_text()
    return found


def modules(root, directory):
    """The modules below `directory` of the unpacked image `root`, whatever links they are: {path: text}."""
    top, found = resolve(root, directory), {}
    for place, directories, files in os.walk(top):
        for name in directories + files:
            end = resolve(root, str(pathlib.Path(place, name).relative_to(root)))
            if end.is_file():
                found[str(pathlib.Path(place, name).relative_to(top))] = end.read_text()
    return found


class RandomLayers(unittest.TestCase):
    def setUp(self):
        self.top = scratch("layers", 1 << 26)
        self.addCleanup(shutil.rmtree, self.top, True)
        if not shutil.which("umoci"):
            self.skipTest("no umoci")

    def unpack(self, layers, dir_name, tree=tree):
        """(umoci's tree, None where it fails; ours; the exit code of ours and what it said)"""
        shutil.rmtree(self.top, ignore_errors=True)
        image, theirs, ours = self.top / "image", self.top / "umoci", self.top / "ours"
        blobs = image / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        entry = oci_image.make_image(
            [layer.tar() for layer in layers],
            lambda name, data: (blobs / name.removeprefix("sha256:")).write_bytes(data),
        )
        entry["annotations"] = {"org.opencontainers.image.ref.name": "v1"}
        (image / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
        (image / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        unpacked = subprocess.run(
            ["umoci", "raw", "unpack", "--rootless", "--image", f"{image}:v1", theirs],
            capture_output=True,
            text=True,
            check=False,
        )
        pulled = subprocess.run(
            [
                case.TOOLS.bin / "kmm-worker",
                "pull",
                f"oci:{image}:v1",
                "--kernel",
                KERNEL,
                "--dir-name",
                dir_name,
                "--out",
                ours,
                "--cache-size",
                "0",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        directory = f"{dir_name}/lib/modules/{KERNEL}"
        return (
            None if unpacked.returncode else tree(theirs, directory),
            tree(ours, directory),
            pulled.returncode,
            pulled.stderr,
        )

    def compare(self, seed, layers, dir_name):
        want, got, code, said = self.unpack(layers, dir_name)
        told = "\n".join([f"image {seed}: exit {code}", said] + [f"{layer.entries}" for layer in layers])
        if code not in (0, NOT_THERE):
            self.assertEqual(got, {}, told)
            links = any(kind == "link" for layer in layers for kind, _ in layer.entries.values())
            self.assertTrue(
                want is None or (code == REFUSED and links), told
            )  # without links there is nothing to refuse
        elif want is not None:
            self.assertEqual(got, want, told)
        else:
            self.assertNotEqual(dir_name, "/opt", told)  # where all that can be wrong is among the modules
        return want is not None and code == 0

    def test_layers_are_put_on_each_other_as_umoci_does(self):
        kernel = f"opt/lib/modules/{KERNEL}"
        places = [
            kernel,
            kernel + "/a",
            kernel + "/a/b",
            kernel + "/c",
            f"opt/lib/modules/{OTHER}",
            "opt/lib/modules",
            "opt/lib",
            "opt",
            "srv",
            "",
        ]
        first = [[], [(kernel, "directory", "")]]
        same = [
            self.compare(seed, Maker(seed, places, ["../a", "x.ko"], first).layers(), "/opt") for seed in range(COUNT)
        ]
        self.assertGreater(sum(same), COUNT // 2)

    def test_links_on_the_way_and_beside_it_lead_where_they_do_for_umoci(self):
        kernel, real = f"lib/modules/{KERNEL}", f"usr/lib/modules/{KERNEL}"
        places = [
            kernel,
            real,
            kernel + "/a",
            real + "/a",
            f"usr/lib/modules/{OTHER}",
            "lib/modules",
            "usr/lib",
            "lib",
            "srv",
            "usr",
            "",
            "usr/lib/modules",
        ]
        targets = ["usr/lib", "/usr/lib", OTHER, "../lib", "usr", "/usr", "srv"]
        first = [
            [("lib/modules", "directory", "")],
            [("lib/modules", "directory", "")],
            [("usr", "directory", ""), ("lib", "link", "usr/lib")],
            [("usr", "directory", ""), ("lib", "link", "/usr/lib")],
            [("lib/modules", "link", "../usr/lib/modules")],
            [("lib/modules", "link", "/srv")],
            [(kernel, "link", OTHER)],
            [(kernel, "link", f"/lib/modules/{OTHER}")],
            [("usr", "link", "srv")],
        ]
        same = [self.compare(seed, Maker(seed, places, targets, first).layers(), "/") for seed in range(COUNT)]
        self.assertGreater(sum(same), COUNT // 4)

    def test_a_module_that_is_a_link_to_one_elsewhere_has_the_bytes_that_it_has_for_umoci(self):
        kernel = f"opt/lib/modules/{KERNEL}"
        places = [kernel, kernel + "/a", f"usr/lib/modules/{OTHER}", f"lib/modules/{OTHER}", "srv", "usr/lib"]
        targets, whole = ["usr/lib", "/usr/lib", "/srv", "../srv", "lib"], 0
        first = [[], [("usr", "directory", ""), ("lib", "link", "usr/lib")]]
        for seed in range(2 * COUNT):
            layers = FarMaker(seed, places, targets, first).layers()
            want, got, code, said = self.unpack(layers, "/opt", modules)
            told = "\n".join([f"image {seed}: exit {code}", said] + [f"{layer.entries}" for layer in layers])
            if code != 0 or want is None:
                continue
            self.assertEqual(got, {path: want.get(path) for path in got}, told)
            if got != want:
                self.assertIn("dangling-link", said, told)
            whole += got == want
        self.assertGreater(whole, COUNT // 2)
