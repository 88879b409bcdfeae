# SPDX-License-Identifier: Apache-2.0
"""manifests/rbac-kubernetes on a real API server: whole upgrades of Kubernetes, by ssh and by Pods, by an account that
has these rights and no others. What an upgrade asks the server for is what its requests say: a right that no request
needs is a fault, and so is a request that is refused."""
import datetime
import json
import os
import pathlib
import re
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from test_manifests import HERE, Installed
from testbed import manifests
from testbed.client import kubeconfig
from testbed.kubelet import SSH
from testbed.proxy import Proxy
from testbed.testing import ROOT

sys.path.insert(0, str(ROOT / "tests/support"))
import instant_nodes  # noqa: E402

FIRST, TARGET = "v1.35.3", instant_nodes.TARGET
ACCOUNT = "system:serviceaccount:kmm-tools:kmm-upgrade"
IGNORED = ("--ignore-checks", "drain-unmanaged,other-orchestrators")
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kmm-upgrade-freeze"
NOTICE = "/api/v1/namespaces/kube-system/configmaps/kmm-upgrade-freeze"


class Nodes(instant_nodes.Nodes):
    """They follow the real server."""
    api = None

    def call(self, node, words):
        code, text = super().call(node, words)
        try:
            # A short one is whole in the termination message.
            return code, json.dumps(json.loads(text), separators=(",", ":"))
        except ValueError:
            return code, text

    def follow(self, node):
        plane, kubelet = self.versions[node]
        self.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"nodeInfo": {"kubeletVersion": kubelet}}})
        for component in instant_nodes.COMPONENTS if node.startswith("cp") else ():
            path = f"/api/v1/namespaces/kube-system/pods/{component}-{node}"
            image = {"name": component, "image": f"registry.k8s.io/{component}:{plane}"}
            change = [{"op": "replace", "path": "/spec/containers/0/image", "value": image["image"]}]
            self.api.request("PATCH", path, json.dumps(change), "application/json-patch+json", {})
            self.api.patch(f"{path}/status", {"status": {"containerStatuses": [status_of(image)]}})
        if node == "cp1":
            path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
            data = self.api.get(path)["data"]["ClusterConfiguration"]
            data = re.sub(r"(kubernetesVersion: ).*", rf"\g<1>{plane}", data)
            self.api.patch(path, {"data": {"ClusterConfiguration": data}})


def status_of(container):
    return {"name": container["name"], "image": container["image"], "imageID": container["image"], "ready": True,
            "restartCount": 0, "state": {"running": {}}}


def right_of(record):
    """The rights (verb, group, resource, namespace, name) that a request takes; what it asks about, if it asks for
    rights."""
    url = urllib.parse.urlsplit(record.path)
    parts, query = url.path.strip("/").split("/"), urllib.parse.parse_qs(url.query)
    if parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return []
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    if rest[0] == "selfsubjectaccessreviews":
        asked = record.document()["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        return [(asked["verb"], asked["group"], resource, asked.get("namespace", ""), asked.get("name", ""))]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(record.method)
    verb = verb or ("get" if name else "watch" if "watch" in query else "list")
    # A list of one object, by its name, takes the right to that one.
    selected = query.get("fieldSelector", [""])[0]
    if verb == "list" and selected.startswith("metadata.name="):
        name = selected.removeprefix("metadata.name=")
    rights = [(verb, group, "/".join([rest[0], *rest[2:]]), namespace, name)]
    if record.method == "PATCH" and record.status == 201:
        rights.append(("create", group, rest[0], namespace, ""))
    return rights


def covers(rule, namespace, resource, verb, right):
    return (
        right[:3] == (verb, rule["apiGroups"][0], resource)
        and namespace in ("", right[3])
        and ("resourceNames" not in rule or right[4] in rule["resourceNames"])
    )


class Rights(Installed):
    def setUp(self):
        super().setUp()
        self.namespace("kmm-tools")
        self.apply("rbac/namespace.yaml")
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "kmm-upgrade", "namespace": "kmm-tools"},
        }
        self.api.apply(account)
        self.addCleanup(self.api.delete, self.api.path_of(account))
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="kmm-rights-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        for path in (NOTICE, POLICY, POLICY.replace("policies/", "policybindings/")):
            self.addCleanup(self.free, path)
        self.nodes = Nodes(self.work / "models", self.bin, self.fake, FIRST)
        Nodes.api = self.cluster.api()
        self.serve_ssh()
        self.load()
        self.define_orders()
        for name in ("rbac-kubernetes", "rbac-kubernetes-pods", "admission"):
            self.apply(name)

    def serve_ssh(self):
        program = self.work / "bin/ssh"
        program.parent.mkdir()
        program.write_text(instant_nodes.SSH.format(python=sys.executable, socket=str(self.work / "socket")))
        program.chmod(0o755)
        instant_nodes.Ssh.nodes = self.nodes
        server = socketserver.ThreadingUnixStreamServer(str(self.work / "socket"), instant_nodes.Ssh)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def load(self):
        """A kubeadm cluster of two nodes, whose kubelets renew their Leases."""
        text = subprocess.run(
            [sys.executable, str(ROOT / "tests/support/kubeadm_dump.py"), "--kinds", "Node,Pod,ConfigMap,Deployment",
             f"cp1={FIRST}/{FIRST}", f"w1={FIRST}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for thing in json.loads(text)["items"]:
            meta = thing["metadata"]
            if meta.get("namespace", "kube-system") != "kube-system":
                self.namespace(meta["namespace"])
            meta.pop("ownerReferences", None)  # which are not there
            if thing["kind"] == "Deployment":
                thing["spec"]["paused"] = True  # its Pods are among those of the dump
            path = self.api.path_of(thing)
            if thing["kind"] == "Node":
                behind = {"program": str(self.work / "bin/ssh"), "nodes": str(self.work)}
                meta["annotations"] = {SSH: json.dumps(behind)}
            self.addCleanup(self.api.delete, path, **({"gracePeriodSeconds": 0} if thing["kind"] == "Pod" else {}))
            self.api.create({key: part for key, part in thing.items() if key != "status" or thing["kind"] == "Node"})
            if thing["kind"] == "Pod":
                statuses = [status_of(container) for container in thing["spec"]["containers"]]
                self.api.patch(f"{path}/status", {"status": dict(thing["status"], containerStatuses=statuses)})
        ended = threading.Event()
        renewing = threading.Thread(target=self.renew, args=(ended, self.cluster.api()), daemon=True)
        renewing.start()
        self.addCleanup(renewing.join)
        self.addCleanup(ended.set)

    def define_orders(self):
        """The kinds by which other programs change a cluster, which checks list where they are defined."""
        for kind, plural, group in (
            ("Application", "applications", "argoproj.io"),
            ("HelmRelease", "helmreleases", "helm.toolkit.fluxcd.io"),
            ("Kustomization", "kustomizations", "kustomize.toolkit.fluxcd.io"),
            ("Plan", "plans", "upgrade.cattle.io"),
        ):
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            definition = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {
                    "group": group,
                    "names": {"kind": kind, "plural": plural},
                    "scope": "Namespaced",
                    "versions": [
                        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                    ],
                },
            }
            self.api.apply(definition)
            self.addCleanup(self.api.delete, self.api.path_of(definition))
            path = f"/apis/{group}/v1/{plural}"
            self.wait(f"{plural} to be served", lambda path=path: self.api.raw("GET", path)[0] == 200, 60)

    @staticmethod
    def renew(ended, api):
        paths = []
        while not ended.wait(0.2):
            now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            for name in ("cp1", "w1"):
                lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                         "metadata": {"name": name, "namespace": "kube-node-lease"},
                         "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}}
                api.apply(lease)
                paths.append(api.path_of(lease))
        for path in set(paths):
            api.delete(path)

    def upgrade(self, *words, expect=0):
        environment = {"PATH": f"{self.work}/bin:{os.environ['PATH']}", "KMM_STATE_DIR": str(self.work / "state"),
                       "KUBECONFIG": str(self.access)}
        return self.tool("kmm-upgrade", *words, expect=expect, env=environment)

    def rules(self):
        """(rule, namespace of its Role) of all roles, as the server has them."""
        for directory in ("rbac-kubernetes", "rbac-kubernetes-pods"):
            for file in sorted((HERE / directory).glob("*.yaml")):
                for stub, _ in manifests.documents(file) if file.name != "kustomization.yaml" else ():
                    if stub["kind"] in ("Role", "ClusterRole"):
                        for rule in self.api.get(self.api.path_of(stub))["rules"]:
                            yield rule, stub["metadata"].get("namespace", "")

    def allowed(self, verb, group, resource, namespace="", name=""):
        resource, _, subresource = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource,
                      "namespace": namespace, "name": name}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": ACCOUNT, "resourceAttributes": attributes}}
        return self.api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"][
            "allowed"
        ]

    def bind_releases(self):
        name, group = "kmm-upgrade-releases", "rbac.authorization.k8s.io"
        binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                   "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                   "subjects": [{"kind": "ServiceAccount", "name": "kmm-upgrade", "namespace": "kmm-tools"}]}
        self.api.apply(binding)
        self.addCleanup(self.api.delete, self.api.path_of(binding))
        self.wait("Secrets to be readable", lambda: self.allowed("list", "", "secrets"))

    def networking(self):
        """Options with one manifest, for which the account has rights of its own."""
        name, group = "test-networking", "rbac.authorization.k8s.io"
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "kube-system"}}
        file = self.work / "networking" / TARGET / "network.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(manifest))
        role = {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": manifest["metadata"],
            "rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get", "patch"]}
            ],
        }
        binding = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": manifest["metadata"],
                   "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
                   "subjects": [{"kind": "ServiceAccount", "name": "kmm-upgrade", "namespace": "kmm-tools"}]}
        for thing in (role, binding):
            self.api.apply(thing)
            self.addCleanup(self.api.delete, self.api.path_of(thing))
        self.addCleanup(self.api.delete, self.api.path_of(manifest))
        self.wait("the rights to be known", lambda: self.allowed("patch", "", "configmaps", "kube-system", name))
        return "--networking", self.work / "networking", "--canary-image", "registry.example/busybox:1"

    def check(self, *reach):
        shown = self.upgrade(
            "check",
            "kubernetes",
            TARGET,
            "--versions",
            self.work / "versions.yaml",
            *IGNORED,
            "--switch",
            "binaries",
            *reach,
            "-o",
            "json",
        )
        return {each["id"]: (each["outcome"], each["detail"]) for each in json.loads(shown)["checks"]}

    def test_whole_upgrades(self):
        (self.work / "versions.yaml").write_text(f"versions:\n- version: {FIRST}\n- version: {TARGET}\n")
        start = ("start", "kubernetes", TARGET, "--versions", self.work / "versions.yaml", "--switch", "binaries",
                 "--no-etcd-snapshot", "--force", *IGNORED)
        by_pods = ("--via", "self", "--worker-image", instant_nodes.IMAGE)
        for rule, namespace in self.rules():
            if rule["resources"] != ["configmaps", "secrets"]:
                names = rule.get("resourceNames", [""])
                self.wait("the rights to be known", lambda: self.allowed(
                    rule["verbs"][0], rule["apiGroups"][0], rule["resources"][0], namespace, names[0]))
        with Proxy(self.cluster) as proxy:
            self.access = self.work / "kubeconfig"
            config = json.loads(kubeconfig(self.cluster.dir, proxy.port, self.token("kmm-upgrade")))
            self.access.write_text(json.dumps(dict(config, **{"current-context": "token"})))
            self.access.chmod(0o600)
            # Without Secrets a check is skipped, and nothing fails.
            found = self.check("--via", "ssh")
            self.assertEqual(found["admin-rights"], ("OK", "this user may do what an upgrade does"))
            self.assertEqual(found["removed-api-helm"][0], "SKIP")
            refused = {right for record in proxy.reset() if record.status == 403 for right in right_of(record)}
            self.assertEqual({right[:3] for right in refused}, {("list", "", "secrets"), ("list", "", "configmaps")})
            self.bind_releases()
            # There and back by ssh, with the freeze and its proof.
            self.upgrade("versions")
            self.upgrade("versions", "--scan")
            self.upgrade("health", "--via", "ssh", *IGNORED)
            self.assertEqual(self.check("--via", "ssh")["removed-api-helm"][0], "OK")
            self.upgrade(*start, "--via", "ssh", "--until", "upgraded-first-master", expect=11)
            self.assertEqual(self.api.get(NOTICE)["data"]["mode"], "enforced")
            self.upgrade("guard", "--", "false", expect=75)
            self.upgrade("unfreeze")
            self.upgrade("abort", "--rollback", "all")
            self.upgrade("delete")
            # To the end by Pods, and with those that try the network, past the policy of manifests/admission.
            self.check(*by_pods)
            self.upgrade("versions", "--scan", *by_pods)
            self.upgrade(*start, *by_pods, *self.networking(), "--until", "downloaded-images", expect=11)
            self.upgrade("resume")
            self.upgrade("delete")
            records = proxy.reset()
        nodes = {
            name: self.api.get(f"/api/v1/nodes/{name}")["status"]["nodeInfo"]["kubeletVersion"]
            for name in ("cp1", "w1")
        }
        self.assertEqual(nodes, {"cp1": TARGET, "w1": TARGET})
        self.assertEqual(
            [str(record) for record in records if record.status in (401, 403) and "dryRun" not in record.path], []
        )
        used = {right for record in records for right in right_of(record)}
        unused = [f"{verb} {resource} in {namespace or 'all'}: {rule.get('resourceNames', '')}"
                  for rule, namespace in self.rules() for resource in rule["resources"] for verb in rule["verbs"]
                  if not any(covers(rule, namespace, resource, verb, right) for right in used)]
        self.assertEqual(unused, [])
        print(f"{len(used)} rights were used")
