#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node of a kubeadm cluster made of files, with programs that behave as kubeadm, the kubelet, systemctl, crictl and apt-get do there.

Usage: fake_kubeadm_node.py make ROOT [VERSION [worker]]
         writes the node (v1.34.4 unless said) below ROOT, and bin/chroot beside it, by which its programs are run
       fake_kubeadm_node.py binaries ROOT DIRECTORY VERSION [stages]
         puts kubeadm and kubelet of a version into DIRECTORY of the node
       fake_kubeadm_node.py chroot ROOT PROGRAM ARGUMENT...

ROOT/fake/behaviour is a JSON mapping of what goes wrong:
  die_at N        kubeadm is killed after N renames of manifests, its own process or (with "all") the job around it, too
  preflight [..]  kubeadm's checks that fail
  lie true        kubeadm reports success and does nothing
  hold true       kubeadm begins once ROOT/fake/go is there
  fail TEXT       the program of that name fails
  stale true      systemctl restart goes on running the old kubelet
ROOT/fake/log has a line for each call.
"""
import base64
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sys
import time

SUPPORT = pathlib.Path(__file__).resolve().parent
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ETCD = {"v1.34": "3.6.5-0", "v1.35": "3.6.6-0", "v1.33": "3.5.24-0"}
CERTS = SUPPORT / "kubeadm_certs"
BOOT = "11111111-2222-4333-8444-555555555555"


def etcd_of(version):
    return ETCD[version.rsplit(".", 1)[0]]


def manifest(component, version):
    tag = etcd_of(version) if component == "etcd" else version
    command = f"[{component}, --etcd-servers=https://127.0.0.1:2379]" if component == "kube-apiserver" else f"[{component}]"
    return (f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {component}, namespace: kube-system}}\nspec:\n  containers:\n"
            f"  - name: {component}\n    image: registry.k8s.io/{component}:{tag}\n    command: {command}\n")


def program(name, version):
    return f"#!/bin/sh\n# {name} {version}\nexec python3 {SUPPORT}/fake_kubeadm_node.py run \"$FAKE_ROOT\" {name} {version} \"$@\"\n"


def put(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def kubeconfig(user, data):
    return (f"apiVersion: v1\nkind: Config\ncurrent-context: {user}@kubernetes\ncontexts:\n- name: {user}@kubernetes\n"
            f"  context: {{cluster: kubernetes, user: {user}}}\nusers:\n- name: {user}\n  user:\n    {data}\n")


def start_kubelet(root, pid, text):
    """The process, as /proc shows it."""
    proc = root / "proc" / str(pid)
    put(proc / "comm", "kubelet\n")
    put(proc / "status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\n")
    (proc / "ns").mkdir()
    (proc / "ns/mnt").symlink_to("mnt:[1]")
    put(proc / "exe", text, 0o755)


def make(root, version="v1.34.4", role="", name="cp1", certs=CERTS):
    put(root / "proc/sys/kernel/hostname", name + "\n")
    put(root / "proc/sys/kernel/random/boot_id", BOOT + "\n")
    put(root / "proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
    (root / "proc/1/ns").mkdir(parents=True)
    (root / "proc/1/ns/mnt").symlink_to("mnt:[1]")
    put(root / "proc/1/comm", "systemd\n")
    put(root / "proc/1/status", "Name:\tsystemd\nUid:\t0\t0\t0\t0\n")
    put(root / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
    put(root / "etc/kubernetes/pki/ca.crt", (certs / "apiserver.crt").read_text())
    put(root / "etc/kubernetes/kubelet.conf", kubeconfig("default-auth", "client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem"), 0o600)
    put(root / "var/lib/kubelet/pki/kubelet-client-1.pem", (certs / "node.crt").read_text(), 0o600)
    (root / "var/lib/kubelet/pki/kubelet-client-current.pem").symlink_to("/var/lib/kubelet/pki/kubelet-client-1.pem")
    put(root / "var/lib/kubelet/config.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    put(root / "var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd.sock"\n')
    for tool in ("kubeadm", "kubelet", "crictl", "systemctl"):
        put(root / "usr/bin" / tool, program(tool, version), 0o755)
    start_kubelet(root, 77, program("kubelet", version))
    put(root / "fake/images", "")
    put(root / "fake/behaviour", "{}")
    if role != "worker":
        for component in COMPONENTS:
            put(root / f"etc/kubernetes/manifests/{component}.yaml", manifest(component, version), 0o600)
        put(root / "etc/kubernetes/pki/apiserver.crt", (certs / "apiserver.crt").read_text())
        put(root / "etc/kubernetes/pki/etcd/server.crt", (certs / "apiserver.crt").read_text())
        put(root / "etc/kubernetes/pki/etcd/server.key", "KEY\n", 0o600)
        admin = base64.b64encode((certs / "admin.crt").read_bytes()).decode()
        put(root / "etc/kubernetes/admin.conf", kubeconfig("kubernetes-admin", "client-certificate-data: " + admin), 0o600)


def make_with_programs(root, *words):
    make(root, *words)
    put(pathlib.Path("bin/chroot"), f"#!/bin/sh\nexec python3 {SUPPORT}/fake_kubeadm_node.py chroot \"$@\"\n", 0o755)


def binaries(root, directory, version, stages=""):
    base = root / directory.lstrip("/") / version.lstrip("v")
    for name in ("kubeadm", "kubelet"):
        path = base / (f"stage{2 if name == 'kubelet' else 1}/usr/bin/{name}" if stages else name)
        put(path, program(name, version), 0o755)
        put(path.parent / f"{name}.sha256", hashlib.sha256(path.read_bytes()).hexdigest() + "\n")


def inside(root, path):
    """Where a path of the node is, with its absolute links."""
    found = pathlib.PurePosixPath("/")
    parts = list(pathlib.PurePosixPath(path).parts[1:])
    while parts:
        step = found / parts.pop(0)
        real = root / str(step).lstrip("/")
        if real.is_symlink():
            target = pathlib.PurePosixPath(os.readlink(real))
            parts = [*(found / target).parts[1:], *parts]
            found = pathlib.PurePosixPath("/")
        else:
            found = step
    return root / str(found).lstrip("/")


def chroot(root, name, *arguments):
    root = root.resolve()
    os.environ["FAKE_ROOT"] = str(root)
    if name in ("cp", "mv", "rm", "mkdir", "ln", "chmod", "sync"):
        last = len(arguments) - 1
        words = []
        for index, word in enumerate(arguments):
            is_path = word.startswith("/") and not (name == "ln" and index < last)
            words.append(str(root / word.lstrip("/")) if is_path else word)
        os.execvp(name, [name, *words])
    path = inside(root, name if name.startswith("/") else f"/usr/bin/{name}")
    if not path.exists():
        sys.stderr.write(f"chroot: failed to run command '{name}': No such file or directory\n")
        sys.exit(127)
    os.execv(path, [str(path), *arguments])


def die_if(behaviour, renames):
    if behaviour.get("die_at") == renames:
        if behaviour.get("all"):
            os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def swap_manifests(root, version, behaviour):
    top = root / "etc/kubernetes"
    stamp = len(list((top / "tmp").glob("kubeadm-backup-manifests-*"))) if (top / "tmp").is_dir() else 0
    fresh, backup = top / "tmp/kubeadm-upgraded-manifests1", top / f"tmp/kubeadm-backup-manifests-2026-11-26-10-00-{stamp:02}"
    shutil.rmtree(fresh, ignore_errors=True)
    backup.mkdir(parents=True)
    for component in COMPONENTS:
        put(fresh / f"{component}.yaml", manifest(component, version), 0o600)
    renames = 0
    for component in COMPONENTS:
        real, new = top / f"manifests/{component}.yaml", fresh / f"{component}.yaml"
        if real.read_bytes() == new.read_bytes():
            print(f"[upgrade/staticpods] Current and new manifests of {component} are equal, skipping upgrade")
            continue
        for source, target in ((real, backup / real.name), (new, real)):
            die_if(behaviour, renames)
            source.rename(target)
            renames += 1
    die_if(behaviour, renames)


def kubeadm(root, version, arguments, behaviour):
    if arguments[:1] == ["version"]:
        print(version)
        return 0
    if arguments[:2] == ["config", "images"]:
        prefix = arguments[arguments.index("--image-repository") + 1] if "--image-repository" in arguments else "registry.k8s.io"
        if "--config" in arguments:
            version = inside(root, arguments[arguments.index("--config") + 1]).read_text().split()[-1]
        names = [f"{prefix}/{name}:{etcd_of(version) if name == 'etcd' else version}" for name in COMPONENTS]
        if arguments[2] == "list":
            print(*names, sep="\n")
        elif not behaviour.get("lie"):
            put(root / "fake/images", "\n".join(names))
        return 0
    while behaviour.get("hold") and not (root / "fake/go").exists():
        time.sleep(0.05)
    if behaviour.get("preflight"):
        sys.stderr.write("[preflight] Some fatal errors occurred:\n" + "".join(f"\t[ERROR {name}]: it is so\n" for name in behaviour["preflight"])
                         + "error execution phase preflight: preflight checks failed\n")
        return 1
    if behaviour.get("lie"):
        return 0
    if arguments[1] == "apply":
        if not (root / "etc/kubernetes/manifests/kube-apiserver.yaml").exists():
            sys.stderr.write("error execution phase preflight: [ERROR StaticPodManifest]: missing\n")
            return 1
        swap_manifests(root, version, behaviour)
        print(f'[upgrade] SUCCESS! A control plane node of your cluster was upgraded to "{version}".')
    elif not (root / "etc/kubernetes/manifests/kube-apiserver.yaml").exists():
        print("[upgrade] Skipping phase. Not a control plane node.")
    else:
        swap_manifests(root, version, behaviour)
    put(root / "var/lib/kubelet/config.yaml", f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n# {version}\n")
    return 0


def run(root, name, version, *arguments):
    behaviour = json.loads((root / "fake/behaviour").read_text())
    asks = arguments[:1] in (("version",), ("--version",), ("-s",)) or name == "crictl" or arguments[:3] == ("config", "images", "list") or "-s" in arguments
    if not asks:
        with open(root / "fake/log", "a", encoding="utf-8") as log:
            log.write(f"{name} {' '.join(arguments)}\n")
    if behaviour.get("fail") == name and not asks:
        sys.stderr.write(f"{name}: it fails\n")
        return 1
    if name == "kubelet":
        print(f"Kubernetes {version}")
        return 0
    if name == "crictl":
        tags = (root / "fake/images").read_text().split()
        print(json.dumps({"images": [{"id": tag, "repoTags": [tag]} for tag in tags]}))
        return 0
    if name == "systemctl":
        if arguments[0] == "restart" and not behaviour.get("stale"):
            old = next(path for path in (root / "proc").iterdir() if (path / "comm").exists() and (path / "comm").read_text() == "kubelet\n")
            shutil.rmtree(old)
            start_kubelet(root, int(old.name) + 1, inside(root, "/usr/bin/kubelet").read_text())
        return 0
    if name == "apt-get":
        for word in arguments:
            package, _, wanted = word.partition("=") if word.endswith("-*") else ("", "", "")
            if wanted and "-s" in arguments:
                print(f"Inst {package} [old] ({wanted} repository)")
                if behaviour.get("removes"):
                    print("Remv containerd [1.7]")
            elif wanted:
                put(root / "usr/bin" / package, program(package, "v" + wanted.removesuffix("-*")), 0o755)
        return 0
    if name in ("dpkg", "apt-mark"):
        return 0
    return kubeadm(root, version, list(arguments), behaviour)


def main():
    verb, root, *rest = sys.argv[1:]
    return {"make": make_with_programs, "binaries": binaries, "chroot": chroot, "run": run}[verb](pathlib.Path(root), *rest) or 0


if __name__ == "__main__":
    sys.exit(main())
