# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver, kube-controller-manager and the fake kubelet as processes on loopback."""
import json
import pathlib
import secrets
import shutil
import socket
import sys

from lab.common import LabError, alive, free_port, need, run, say, spawn, stop_process, wait_for

from . import binaries
from .client import Api, kubeconfig

HERE = pathlib.Path(__file__).resolve().parent.parent
# The order in which the controllers start, a few a second; without the rest a namespace is ready in a second.
CONTROLLERS = (
    "serviceaccount-token-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "daemonset-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "deployment-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "persistentvolume-binder-controller",
)
SERVICES = "10.96.0.0/16"


def is_free(port):
    """Whether a server could listen on that port of loopback now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
            return True
        except OSError:
            return False


OPENSSL = """
[ca]
basicConstraints=critical,CA:true
keyUsage=critical,keyCertSign,cRLSign,digitalSignature
[api]
basicConstraints=CA:false
extendedKeyUsage=serverAuth
subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.0.2.2,IP:10.96.0.1
[admin]
basicConstraints=CA:false
extendedKeyUsage=clientAuth
"""


class Cluster:
    """One testbed in a directory: its certificates, ports and processes (cluster.json), logs and etcd's data."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory).resolve()

    def state(self):
        try:
            return json.loads((self.dir / "cluster.json").read_text())
        except FileNotFoundError:
            return {}

    def remember(self, **values):
        state = dict(self.state(), **values)
        temporary = self.dir / "cluster.json.new"
        temporary.write_text(json.dumps(state, indent=2) + "\n")
        temporary.rename(self.dir / "cluster.json")

    @property
    def kubeconfig(self):
        return self.dir / "kubeconfig"

    def api(self, token=None):
        return Api(self.dir, token)

    def _certificates(self):
        pki = self.dir / "pki"
        pki.mkdir(parents=True, mode=0o700)
        config = pki / "openssl.cnf"
        config.write_text("[req]\ndistinguished_name=dn\n[dn]\n" + OPENSSL)
        openssl = need("openssl")
        for name, subject in (
            ("ca", "/CN=testbed-ca"),
            ("api", "/CN=kube-apiserver"),
            ("admin", "/O=system:masters/CN=admin"),
        ):
            run([openssl, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", pki / f"{name}.key"])
            request = [openssl, "req", "-new", "-key", pki / f"{name}.key", "-subj", subject, "-config", config]
            if name == "ca":
                run([*request, "-x509", "-days", "30", "-extensions", "ca", "-out", pki / "ca.crt"])
            else:
                run([*request, "-out", pki / f"{name}.csr"])
                run(
                    [
                        openssl,
                        "x509",
                        "-req",
                        "-in",
                        pki / f"{name}.csr",
                        "-CA",
                        pki / "ca.crt",
                        "-CAkey",
                        pki / "ca.key",
                        "-set_serial",
                        f"0x{secrets.token_hex(8)}",
                        "-days",
                        "30",
                        "-extfile",
                        config,
                        "-extensions",
                        name,
                        "-out",
                        pki / f"{name}.crt",
                    ]
                )
        run([openssl, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", pki / "sa.key"])
        run([openssl, "ec", "-in", pki / "sa.key", "-pubout", "-out", pki / "sa.pub"])

    def _start(self, name, arguments):
        """Starts a server of the Go binary, or the fake kubelet, and remembers its pid."""
        pids = self.state().get("pids", {})
        if name in pids and alive(pids[name]):
            raise LabError(f"{name} is running already")
        program = [sys.executable, HERE / "kmm_cluster.py"] if name == "kubelet" else [binaries.servers(), name]
        pids[name] = spawn([*program, *arguments], self.dir / f"{name}.log")
        self.remember(pids=pids)

    def start_etcd(self):
        state = self.state()
        client, peer = (f"http://127.0.0.1:{state[port]}" for port in ("etcd", "etcd_peer"))
        self._start(
            "etcd",
            [
                "--data-dir",
                self.dir / "etcd",
                "--listen-client-urls",
                client,
                "--advertise-client-urls",
                client,
                "--listen-peer-urls",
                peer,
                "--initial-advertise-peer-urls",
                peer,
                "--initial-cluster",
                f"default={peer}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )

    def start_apiserver(self):
        """Starts the API server, on the port that it had; see wait_ready."""
        state, pki = self.state(), self.dir / "pki"
        # Threads of a killed one may still hold it, or a connection that somebody opened meanwhile.
        wait_for(f"port {state['port']} to be free", lambda: is_free(state["port"]), 300, 0.02)
        self._start(
            "kube-apiserver",
            [
                f"--etcd-servers=http://127.0.0.1:{state['etcd']}",
                "--bind-address=127.0.0.1",
                f"--secure-port={state['port']}",
                # An address of loopback is refused as an endpoint of the Service `kubernetes`.
                "--advertise-address=10.0.2.2",
                f"--tls-cert-file={pki / 'api.crt'}",
                f"--tls-private-key-file={pki / 'api.key'}",
                f"--client-ca-file={pki / 'ca.crt'}",
                f"--service-account-key-file={pki / 'sa.pub'}",
                f"--service-account-signing-key-file={pki / 'sa.key'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-cluster-ip-range={SERVICES}",
                f"--token-auth-file={self.dir / 'tokens.csv'}",
                "--authorization-mode=Node,RBAC",
                # A new node would be tainted as not ready until the controllers have looked at it.
                "--enable-admission-plugins=NodeRestriction",
                "--disable-admission-plugins=TaintNodesByCondition",
                "--allow-privileged=true",
                "--kubelet-preferred-address-types=InternalIP",
                "--profiling=false",
            ],
        )

    def start_controllers(self):
        pki = self.dir / "pki"
        self._start("kube-controller-manager", [
            f"--kubeconfig={self.dir / 'controllers.kubeconfig'}", "--leader-elect=false", "--secure-port=0",
            "--use-service-account-credentials=true", f"--service-account-private-key-file={pki / 'sa.key'}",
            f"--root-ca-file={pki / 'ca.crt'}", f"--controllers={','.join(CONTROLLERS)}",
            # Nobody renews Leases for the fake nodes: what their condition Ready says is what a test wrote.
            "--node-monitor-grace-period=1000h", "--kube-api-qps=200", "--kube-api-burst=400",
            "--concurrent-daemonset-syncs=4"])

    def start_kubelet(self):
        self._start("kubelet", ["--dir", self.dir, "kubelet"])

    def wait_ready(self, timeout=600):
        """Waits until the API server serves requests."""
        api = self.api()

        def up():
            pid = self.state()["pids"]["kube-apiserver"]
            if not alive(pid):
                raise LabError("kube-apiserver ended:\n" + self.tail("kube-apiserver"))
            return api.ready()
        wait_for("the API server to be ready", up, timeout, 0.05)
        return api

    def tail(self, name, lines=15):
        """The last lines of a server's log."""
        try:
            return "\n".join((self.dir / f"{name}.log").read_text("utf-8", "replace").splitlines()[-lines:])
        except FileNotFoundError:
            return f"{name} has no log"

    def running(self):
        pids = self.state().get("pids", {})
        return bool(pids) and all(alive(pid) for pid in pids.values())

    def unavailable(self, reason=None):
        """Why there is no cluster: writes a reason, or reads the one that was written."""
        path = self.dir / "unavailable"
        if reason is not None:
            self.dir.mkdir(parents=True, exist_ok=True)
            path.write_text(reason + "\n")
        return path.read_text() if path.exists() else None

    def up(self, build, real=()):
        """Everything from nothing: an empty cluster with its fake kubelet. `build` is where Go may work. Nodes named in
        `real` may join, each with a token of its own."""
        binaries.build(pathlib.Path(build), bool(real))
        self.down()
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self._certificates()
        token, controllers = secrets.token_hex(16), secrets.token_hex(16)
        tokens = {name: secrets.token_hex(16) for name in real}
        self.remember(port=free_port(), etcd=free_port(), etcd_peer=free_port(), token=token, real=tokens)
        port = self.state()["port"]
        (self.dir / "tokens.csv").write_text(f'{token},admin-token,admin-uid,"system:masters"\n'
                                             f"{controllers},system:kube-controller-manager,controllers-uid,\n" +
                                             "".join(f'{secret},system:node:{name},{name}-uid,"system:nodes"\n'
                                                     for name, secret in tokens.items()))
        self.kubeconfig.write_text(kubeconfig(self.dir, port, token))
        text = json.loads(kubeconfig(self.dir, port, controllers))
        text["current-context"] = "token"
        (self.dir / "controllers.kubeconfig").write_text(json.dumps(text))
        for name in (self.kubeconfig, self.dir / "controllers.kubeconfig", self.dir / "tokens.csv"):
            name.chmod(0o600)
        self.start_etcd()
        self.start_apiserver()
        api = self.wait_ready()
        self.start_controllers()
        self.start_kubelet()
        # Pods are refused in a namespace before it has this account.
        wait_for("the controllers to serve namespace default",
                 lambda: api.raw("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, 60, 0.05)
        say(f"the API server is ready: {self.kubeconfig}")

    def kill_apiserver(self):
        """As a crash would: SIGKILL."""
        stop_process(self.state()["pids"]["kube-apiserver"], grace=0)
        wait_for("the API server to be gone", lambda: not alive(self.state()["pids"]["kube-apiserver"]), 300, 0.01)

    def down(self):
        pids = self.state().get("pids", {})
        for name in ("kubelet", "kube-controller-manager", "kube-apiserver", "etcd"):
            if name in pids:
                stop_process(pids.pop(name))
        if self.dir.exists() and self.state():
            self.remember(pids=pids)
