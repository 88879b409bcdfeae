# SPDX-License-Identifier: Apache-2.0
"""Nodes with a kernel, a containerd and a kubelet of their own: virtual machines that join the API server of the
testbed."""
import gzip
import json
import os
import pathlib
import re
import shutil
import tarfile
import time

from lab import guest, kmods, ociimage
from lab.common import Lab, LabError, need, run, say, wait_for
from lab.nodes import Fleet
from lab.registry import Registry

from . import machine_disk

VERSIONS = ("v1", "v2")
MODULE = "kmm_hello"
READY_SECONDS = 300
FAULT_SECONDS = 600
# Few processes: a machine has one slow processor.
UNTIL = "timeout {} sh -c 'until {}; do sleep 0.3; done'"
UNTIL_GONE = UNTIL.format(FAULT_SECONDS, f"[ ! -d /sys/module/{MODULE} ]")
UNTIL_LIVE = (
    UNTIL.format(FAULT_SECONDS, f"read -r state </sys/module/{MODULE}/initstate && [ \"$state\" = live ]")
    + " 2>/dev/null"
)


class Machines:
    """The machines of a cluster and their registry, in the directory `machines` of the cluster's."""

    def __init__(self, cluster):
        self.cluster, self.lab = cluster, Lab(cluster.dir / "machines")
        self.fleet, self.registry = Fleet(self.lab), Registry(self.lab)

    def up(self, names, programs, build):
        """Starts the named machines afresh, and waits until their nodes are ready. Each of `programs`, a kmm-worker and
        a kmm-upgrade, becomes the image of its name with the tag 1."""
        begun = time.monotonic()
        self.registry.start()
        disk = machine_disk.build_disk(self.lab, pathlib.Path(build))
        initrd = machine_disk.build_initrd(self.lab, self.cluster, f"10.0.2.2:{self.registry.port}")
        # Each machine writes into a file of its own, which ends with it.
        drive = f"file={disk},format=raw,if=virtio,cache=unsafe,snapshot=on"
        self.fleet.start(names, initrd, memory=768, devices=("-drive", drive))
        self.publish([pathlib.Path(program) for program in programs])
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
        node = json.loads(text) if status == 200 else {"spec": {}, "status": {}}
        # A controller takes away the taint of a node that was not ready, a moment later.
        return not node["spec"].get("taints") and any(c["type"] == "Ready" and c["status"] == "True"
                                                      for c in node["status"].get("conditions", []))

    def image(self, name, tag):
        return self.registry.reference(name, tag)

    def publish(self, programs):
        """Pushes the sandbox, the programs, and the module in two versions."""
        base = self.lab.path("images", ".")
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir()
        pause = base / "pause-program"
        run(["gcc", "-Os", "-static", "-s", "-o", pause, machine_disk.OWN / "pause.c"])
        self._push("pause", "1", {"pause": pause.read_bytes()}, 0o755, ("/pause",))
        for version in VERSIONS:
            place = f"opt/lib/modules/{self.lab.kernel}/{MODULE}.ko"
            self._push("kmm-hello", version, {place: self.module(version).read_bytes()})
        for program in programs:
            self._push_program(base, program)

    def _push_program(self, base, program):
        """The image that an admin would build, with its layers stored instead of compressed, since an emulated
        processor needs longer to unpack them than to fetch them; and without the tables of ICU, half of the image,
        which only archives in XML ask for."""
        name = program.name
        archive, hollow = base / f"{name}.tar", base / f"{name}.hollow"
        hollow.mkdir()
        for library, number in set(re.findall(r"(libicudata\.so\.(\d+))", run([need("ldd"), program]).stdout)):
            (base / "hollow.c").write_text(f"const char icudt{number}_dat[64];\n")
            run(["gcc", "-shared", "-nostdlib", f"-Wl,-soname,{library}", "-o", hollow / library, base / "hollow.c"])
        run(["bash", machine_disk.ROOT / "manifests/worker-image/build.sh", archive, program],
            env=dict(os.environ, LD_LIBRARY_PATH=str(hollow)))
        with tarfile.open(archive) as packed:
            read = {file.name.removeprefix("./"): packed.extractfile(file).read() for file in packed if file.isfile()}
        blobs = {path.replace("blobs/sha256/", "sha256:"): data for path, data in read.items()}
        manifest = json.loads(blobs[json.loads(read["index.json"])["manifests"][0]["digest"]])
        plain = [gzip.decompress(blobs[layer["digest"]]) for layer in manifest["layers"]]
        layout = ociimage.Layout(base / name)
        layout.tag(layout.image([(ociimage.compress(layer, 0), layer) for layer in plain],
                                config=json.loads(blobs[manifest["config"]["digest"]])), "1")
        self.registry.push(layout.dir, "1", name)

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

    def clean(self):
        """Brings all machines back to nothing loaded."""
        self.fleet.each(f"[ ! -d /sys/module/{MODULE} ] || rmmod {MODULE}")

    def restart_kubelet_without(self, name):
        """Waits until the module has left the kernel of a machine, kills its kubelet at that moment, and waits until
        init has started it again. Returns the ids of the process that was killed and of the next one."""
        return self.fleet.shell(
            name,
            f"{UNTIL_GONE} && old=$(pidof kubelet) && kill -9 $old && "
            "until new=$(pidof kubelet) && [ $new != $old ]; do sleep 0.3; done && echo $old $new",
        ).split()

    def restart_with(self, name):
        """Waits until a module that replaces another is live in the kernel of a machine, and resets it at that moment,
        as a power switch would. Its images are on the disk before: containerd does not see to that."""
        self.fleet.shell(name, f"{UNTIL_GONE} && sync && {UNTIL_LIVE}")
        self.fleet.reset(name)
        self.fleet.disconnect(name)
