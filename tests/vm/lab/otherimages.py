# SPDX-License-Identifier: Apache-2.0
"""The same module in images of other tools: umoci, skopeo, docker's own formats, zstd, twenty layers with whiteouts."""
import json

from .common import need, run

NAME = "kmm-other"
LAYERS = 20


class _Umoci:
    """An image that umoci makes, layer by layer."""

    def __init__(self, directory, tag):
        self.directory, self.image = directory, f"{directory}:{tag}"
        if not directory.exists():
            run([need("umoci"), "init", "--layout", directory])
        run([need("umoci"), "new", "--image", self.image])
        run([need("umoci"), "config", "--image", self.image, "--architecture", "amd64", "--os", "linux"])

    def insert(self, source, target):
        run([need("umoci"), "insert", "--rootless", "--image", self.image, source, f"/{target}"])

    def remove(self, target):
        run([need("umoci"), "insert", "--rootless", "--image", self.image, "--whiteout", f"/{target}"])


def _copy(source, target, *options):
    run([need("skopeo"), "copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false", *options, source, target])


def _digest(path):
    """The manifest of the only image of a layout."""
    return json.loads((path / "index.json").read_text())["manifests"][0]["digest"]


def publish(registry, modules, base, place):
    """Pushes kmm-other with a tag for each tool; returns {"name:tag": digest} where the digest is known. Below `base`
    are
    left: layout-zstd (an OCI layout) and docker.tar (an archive of docker)."""
    where = base / NAME
    module = modules["v2"]["kmm_hello"]
    target = f"docker://127.0.0.1:{registry.port}/{NAME}"
    made = _Umoci(where, "umoci")
    made.insert(module, f"{place}/kmm_hello.ko")
    _copy(f"oci:{where}:umoci", f"{target}:umoci")
    _copy(f"oci:{where}:umoci", f"{target}:schema2", "--format", "v2s2")
    _copy(f"oci:{where}:umoci", f"docker-archive:{base / 'docker.tar'}:lab/{NAME}:archive")
    zstd = base / "layout-zstd"
    _copy(f"oci:{where}:umoci", f"oci:{zstd}:zstd", "--dest-compress", "--dest-compress-format", "zstd")
    _copy(f"oci:{zstd}:zstd", f"{target}:zstd")
    _twenty_layers(where, modules, place)
    _copy(f"oci:{where}:layers", f"{target}:layers")
    return {f"{NAME}:zstd": _digest(zstd)}


def _twenty_layers(where, modules, place):
    """v1 first, taken away, v2 in its place; a whole directory with another v1 comes and goes."""
    made = _Umoci(where, "layers")
    readme = where.parent / "readme"
    made.insert(modules["v1"]["kmm_hello"], f"{place}/kmm_hello.ko")
    made.insert(modules["misc"]["kmm_busy"], f"{place}/kmm_busy.ko")
    made.insert(modules["v1"]["kmm_hello"], f"{place}/updates/kmm_hello.ko")
    for number in range(4, LAYERS - 3):
        readme.write_text(f"layer {number}\n")
        made.insert(readme, f"opt/readme-{number % 3}")
    made.remove(f"{place}/kmm_hello.ko")
    made.remove(f"{place}/updates")
    made.remove(f"{place}/kmm_busy.ko")
    made.insert(modules["v2"]["kmm_hello"], f"{place}/kmm_hello.ko")
