# SPDX-License-Identifier: Apache-2.0
"""KMM's worker, played on a node: the same steps in the same order, with Debian's own modprobe (sequence: the
operator's cmd/worker and internal/worker). What it does there is what the tests set kmm-worker beside."""
import shlex

# In place of the container's /tmp.
ROOT = "/run/operator"
CONF = "/run/modprobe.d/softdep.conf"
FIRMWARE_CLASS = "/sys/module/firmware_class/parameters/path"
MODPROBE, DEPMOD = "/opt/lab/modprobe", "/opt/lab/depmod"


class Operator:
    """Each of `load` and `unload` returns (exit code, everything it printed)."""

    def __init__(self, fleet, node, kernel):
        self.fleet, self.node, self.kernel = fleet, node, kernel

    def clean(self):
        self.fleet.shell(self.node, f"rm -rf {ROOT} {CONF}; mkdir -p {ROOT} {CONF.rpartition('/')[0]}")

    def extract(self, image, index=True, firmware=None):
        """What the init container copies out of an image. Images for KMM bring the index that depmod made when they
        were built."""
        options = f" --image-firmware {firmware}" if firmware else ""
        self.fleet.shell(
            self.node,
            f"rm -rf {ROOT}/opt && kmm-worker pull {image} --insecure --out {ROOT} -q -o name{options}"
            + (f" && {DEPMOD} -b {ROOT}/opt {self.kernel}" if index else ""),
        )

    def _run(self, steps):
        done = self.fleet.ssh(self.node, "set -e\n" + "\n".join(steps))
        return done.returncode, done.stdout + done.stderr

    def load(
        self, module="kmm_hello", parameters=(), args=(), raw=(), order=(), remove=(), firmware=None, firmware_path=None
    ):
        steps = [f"rm -f {CONF}"]
        if firmware_path is not None:
            path = shlex.quote(firmware_path)
            steps.append(f"[ \"$(cat {FIRMWARE_CLASS})\" = {path} ] || printf %s {path} >{FIRMWARE_CLASS} || exit 1")
        if remove:
            # By the names of files, of whatever kernel, as a regular expression.
            steps += [f"gone=; for name in {shlex.join(remove)}; do "
                      "if find /lib/modules -type f | grep -q \"/$name.ko[^/]*$\"; then gone=\"$gone $name\"; fi; done",
                      f"[ -z \"$gone\" ] || {MODPROBE} -rv $gone || exit 1"]
        if firmware:
            steps.append(f"mkdir -p {firmware_path}; cp -R {ROOT}{firmware}/. {firmware_path}/ || exit 1")
        if order:
            steps += [f"echo softdep {name} pre: {needed} >>{CONF}" for name, needed in zip(order, order[1:])]
        words = raw or ["-vd", ROOT + "/opt", *args, module, *parameters]
        return self._run([*steps, f"{MODPROBE} {shlex.join(words)} || exit 1"])

    def unload(self, module="kmm_hello", args=(), raw=(), order=(), firmware=None, firmware_path=None):
        words = raw or ["-rvd", ROOT + "/opt", *args, *(order or [module])]
        steps = [f"{MODPROBE} {shlex.join(words)} || exit 1"]
        if firmware:
            steps.append(
                f"cd {ROOT}{firmware}; find . ! -type d | while read -r file; do rm {firmware_path}/$file || true; done"
            )
        return self._run(steps)
