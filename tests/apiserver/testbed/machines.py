# SPDX-License-Identifier: Apache-2.0
"""Nodes with a kernel, a containerd and a kubelet of their own: virtual machines that join the API server of the testbed."""
import json
import pathlib
import shutil
import time

from lab import guest, kmods, ociimage
from lab.common import Lab, LabError, need, run, say, wait_for
from lab.nodes import Fleet
from lab.registry import Registry

from . import machine_disk

VERSIONS = ("v1", "v2")
MODULE = "kmm_hello"
READY_SECONDS = 240


class Machines:
    """The machines of a cluster and their registry, in the directory `machines` of the cluster's."""

    def __init__(self, cluster):
        self.cluster, self.lab = cluster, Lab(cluster.dir / "machines")
        self.fleet, self.registry = Fleet(self.lab), Registry(self.lab)

    def up(self, names, worker, build):
        """Starts the named machines afresh, and waits until their nodes are ready. `worker` is the kmm-worker for the image
        kmm-worker:1."""
        begun = time.monotonic()
        self.registry.start()
        disk = machine_disk.build_disk(self.lab, pathlib.Path(build))
        initrd = machine_disk.build_initrd(self.lab, self.cluster, f"10.0.2.2:{self.registry.port}")
        # Each machine writes into a file of its own, which ends with it.
        drive = f"file={disk},format=raw,if=virtio,cache=unsafe,snapshot=on"
        self.fleet.start(names, initrd, memory=768, devices=("-drive", drive))
        self.publish(pathlib.Path(worker))
        say(f"disk, images: {time.monotonic() - begun:.1f} s")
        for name in names:
            wait_for(f"node {name} to be ready", lambda name=name: self.is_ready(name), READY_SECONDS, 0.2)
        say(f"{' '.join(names)}: ready after {time.monotonic() - begun:.1f} s")

    def down(self):
        self.fleet.down()
        self.registry.stop()

    def is_ready(self, name):
        if name not in self.fleet.names() or not self.fleet.running():
            raise LabError(f"{name}: qemu has ended\n{self.fleet.console(name)[-2000:]}")
        status, text = self.cluster.api().raw("GET", f"/api/v1/nodes/{name}")
        conditions = json.loads(text)["status"].get("conditions", []) if status == 200 else []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def image(self, name, tag):
        return self.registry.reference(name, tag)

    def publish(self, worker):
        """Pushes the sandbox, the worker, and the module in two versions."""
        base = self.lab.path("images", ".")
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        pause = base / "pause-program"
        run(["gcc", "-Os", "-static", "-s", "-o", pause, machine_disk.OWN / "pause.c"])
        self._push("pause", "1", {"pause": pause.read_bytes()}, 0o755, ("/pause",))
        for version in VERSIONS:
            place = f"opt/lib/modules/{self.lab.kernel}/{MODULE}.ko"
            self._push("kmm-hello", version, {place: self.module(version).read_bytes()})
        archive = base / "kmm-worker.tar"
        run(["bash", machine_disk.ROOT / "manifests/worker-image/build.sh", archive, worker])
        run([need("skopeo"), "copy", "--quiet", "--dest-tls-verify=false", "--insecure-policy", f"oci-archive:{archive}",
             f"docker://127.0.0.1:{self.registry.port}/kmm-worker:1"])

    def _push(self, name, tag, files, mode=0o644, command=()):
        layout = ociimage.Layout(self.lab.path("images", name))
        plain = ociimage.tar_layer(files, mode)
        layout.tag(layout.image([(ociimage.compress(plain), plain)], command=command), tag)
        self.registry.push(layout.dir, tag, name)

    def module(self, version):
        """The module's file of a version; built when it is asked for first."""
        where = self.lab.dir / "modules" / version
        if not (where / f"{MODULE}.ko").exists():
            shutil.rmtree(where, ignore_errors=True)
            kmods.make(self.lab, where, kmods.BUILDS[version])
        return where / f"{MODULE}.ko"

    def identity(self, version):
        """The srcversion that the kernel shows of a version."""
        return run([need("modinfo"), "-F", "srcversion", self.module(version)]).stdout.strip()

    def live(self, name):
        """The version of the module that is in a machine's kernel, or None."""
        found = self.fleet.shell(name, f"cat /sys/module/{MODULE}/srcversion 2>/dev/null || true").strip()
        return {self.identity(version): version for version in VERSIONS}.get(found, found or None)

    def restart_kubelet(self, name):
        """As a crash would end it; init starts it again."""
        self.fleet.shell(name, "kill -9 $(pidof kubelet)")

    def restart(self, name):
        """The machine restarts at once, nothing is ended in an orderly way; its disk is written before."""
        self.fleet.ssh(name, "sync; echo b >/proc/sysrq-trigger", timeout=20)
        self.fleet.disconnect(name)
