#!/usr/bin/python3 -ISB
# SPDX-License-Identifier: Apache-2.0
"""The first process of a node: keeps containerd, the kubelet and sshd running, obeys systemctl, and buries what others
leave."""
import os
import selectors
import shlex
import signal
import socket
import subprocess
import time

SOCKET = "/run/lab-init"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def kubelet():
    """What Kubernetes' own unit of systemd starts."""
    words = ["/usr/bin/kubelet", "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
             "--kubeconfig=/etc/kubernetes/kubelet.conf", "--config=/var/lib/kubelet/config.yaml"]
    for path, name in (("/var/lib/kubelet/kubeadm-flags.env", "KUBELET_KUBEADM_ARGS"),
                       ("/etc/default/kubelet", "KUBELET_EXTRA_ARGS")):
        try:
            with open(path, encoding="utf-8") as file:
                for line in file:
                    key, _, value = line.strip().partition("=")
                    if key == name:
                        words += [word for part in shlex.split(value) for word in part.split()]
        except FileNotFoundError:
            pass
    return words


SERVICES = {"containerd": lambda: ["/usr/bin/containerd"],
            "ssh": lambda: ["/usr/sbin/dropbear", "-F", "-E", "-s", "-r", "/etc/dropbear/host", "-p", "22"],
            "kubelet": kubelet}


class Service:
    def __init__(self, name):
        self.name, self.pid, self.wanted, self.not_before = name, 0, True, 0.0

    def start(self):
        with open(f"/var/log/{self.name}.log", "ab") as log:
            environment = {"PATH": PATH, "HOME": "/root", "GOGC": "200"}
            self.pid = subprocess.Popen(SERVICES[self.name](), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env=environment, start_new_session=True, cwd="/").pid

    def stop(self):
        if not self.pid:
            return
        os.kill(self.pid, signal.SIGTERM)
        for _ in range(900):
            bury()
            if not self.pid:
                return
            time.sleep(0.1)
        os.kill(self.pid, signal.SIGKILL)
        while self.pid:
            bury()
            time.sleep(0.05)


services = {name: Service(name) for name in SERVICES}


def bury():
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        for service in services.values():
            if service.pid == pid:
                service.pid, service.not_before = 0, time.monotonic() + 1


def obey(words):
    verb, names = (words or ["help"])[0], [name.removesuffix(".service") for name in words[1:]]
    if verb in ("daemon-reload", "reset-failed", "list-unit-files", "enable"):
        return "0 "
    if len(names) != 1 or names[0] not in services:
        return f"{4 if verb == 'is-enabled' else 5} Unit {' '.join(names) or verb} not found."
    service = services[names[0]]
    if verb == "is-active":
        return "0 active" if service.pid else "3 inactive" if not service.wanted else "3 activating"
    if verb == "is-enabled":
        return "0 enabled"
    if verb in ("stop", "restart"):
        service.wanted = False
        service.stop()
    if verb in ("start", "restart"):
        service.wanted = True
        if not service.pid:
            service.start()
    if verb == "show":
        state = "active" if service.pid else "inactive"
        return f"0 MainPID={service.pid}\nActiveState={state}\nLoadState=loaded"
    return "0 " if verb in ("start", "stop", "restart", "status") else f"1 Unknown command verb {verb}."


def main():
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    door = socket.socket(socket.AF_UNIX)
    door.bind(SOCKET)
    door.listen(8)
    chooser = selectors.DefaultSelector()
    chooser.register(door, selectors.EVENT_READ)
    chooser.register(reader, selectors.EVENT_READ)
    while True:
        bury()
        for service in services.values():
            if service.wanted and not service.pid and time.monotonic() >= service.not_before:
                service.start()
        for key, _ in chooser.select(0.5):
            if key.fd == reader:
                try:
                    os.read(reader, 4096)
                except BlockingIOError:
                    pass
                continue
            line, _ = door.accept()
            with line:
                try:
                    answer = obey(line.recv(4096).decode().split())
                    line.sendall(answer.encode())
                except OSError:
                    pass


main()
