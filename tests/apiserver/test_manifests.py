# SPDX-License-Identifier: Apache-2.0
"""The files of manifests/ on a real API server: accepted without a warning, with the rights that the commands need."""
import copy
import json
import pathlib
import re
import tempfile

from hostile_pods import CANARY, HOSTILE, HOSTILE_ON_NODES, put_in
from hostile_sets import HOSTILE_SETS, PLUGIN_MODULES, daemon_set_of
from testbed import manifests
from testbed.client import Api
from testbed.fleet import Fleet
from testbed.proxy import Proxy
from testbed.servers import is_free
from testbed.testing import ROOT, ClusterCase

HERE = ROOT / "manifests"


class Installed(ClusterCase):
    def setUp(self):
        super().setUp()
        manifests.install_definitions(self.api, ROOT)

    def apply(self, name):
        """Applies a directory or a file of manifests/; it goes when the test ends."""
        path = HERE / name
        for thing in manifests.apply(self.api, path):
            if thing["kind"] != "Namespace":
                self.addCleanup(self.api.delete, self.api.path_of(thing))
        self.assertEqual(self.api.warnings, [])

    def install(self):
        self.namespace("kmm-tools")
        self.apply("rbac/namespace.yaml")
        self.apply("rbac")

    def bind(self, namespace, *components):
        """The component for one namespace, and others."""
        for component in ("rbac-namespace", *components):
            self.bind_component(namespace, component)

    def bind_component(self, namespace, component):
        self.kubectl(
            "apply",
            "-n",
            namespace,
            "-f",
            HERE / component / "binding.yaml",
            "--server-side",
            "--field-manager=testbed",
            "--validate=strict",
        )

    def token(self, account):
        """A token of an account in kmm-tools, as a Pod gets it."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        return self.api.request("POST", f"/api/v1/namespaces/kmm-tools/serviceaccounts/{account}/token", request)[
            "status"
        ]["token"]


class Manifests(Installed):
    def test_the_definitions_and_rights(self):
        self.install()
        # Again: nothing to change, nothing in conflict.
        self.assertEqual([t["metadata"]["resourceVersion"] for t in manifests.apply(self.api, HERE / "rbac")],
                         [t["metadata"]["resourceVersion"] for t in manifests.apply(self.api, HERE / "rbac")])

    def test_kinds_that_are_lacking_are_created_as_here(self):
        fleet = Fleet(self, "kinds", count=1, via="self")
        paths = [f"{manifests.DEFINITIONS}/{name}.kmm.sigs.x-k8s.io" for name in ("nodemodulesconfigs", "modules")]
        before = [self.api.get(path)["spec"] for path in paths]
        self.addCleanup(manifests.install_definitions, self.api, ROOT)

        def remove(paths):
            for path in paths:
                self.api.delete(path)
                self.wait(f"{path} to be gone", lambda path=path: self.api.raw("GET", path)[0] == 404)
                group = "/apis/kmm.sigs.x-k8s.io/v1beta1"
                self.wait(
                    "the kind to be gone",
                    lambda: self.api.raw("GET", f"{group}/{path.split('/')[-1].split('.')[0]}")[0] == 404,
                )

        # Without NodeModulesConfig an upgrade makes the kind and is walked; without both, apply makes them for the
        # Modules to come.
        remove(paths[:1])
        self.assertIn(
            "creating CustomResourceDefinition nodemodulesconfigs.",
            fleet.run(*fleet.start("v1"), "--kubeconfig", fleet.access()),
        )
        self.assertTrue(all(fleet.live().values()), fleet.live())
        self.free(f"/apis/kmm.sigs.x-k8s.io/v1beta1/namespaces/{fleet.namespace}/modules/{fleet.name}")
        remove(paths)
        fleet.run("apply", *fleet.how, "--kubeconfig", fleet.access())
        self.assertEqual([self.api.get(path)["spec"] for path in paths], before)

    def test_the_example_drivers(self):
        for namespace in ("gpu-drivers", "network-drivers"):
            self.namespace(namespace)
        self.apply("examples/drivers")
        self.tool("kmm-plan", "validate", "-f", HERE / "examples/drivers")

    def test_every_kustomization(self):
        # The namespace is restricted: a template whose Pods would be refused gives a warning.
        self.install()
        manifests.install_definitions(self.api, ROOT, "tests/apiserver/definitions")
        self.addCleanup(self.api.delete, f"{manifests.DEFINITIONS}/prometheusrules.monitoring.coreos.com")
        for file in sorted(HERE.rglob("kustomization.yaml")):
            # As the manager of what is there: nothing is in conflict.
            self.kubectl(
                "apply",
                "-k",
                file.parent,
                "--server-side",
                "--field-manager=testbed",
                "--dry-run=server",
                "--validate=strict",
            )


# Of a Module that needs all rights. It is only refused, never loaded.
PLUGINS = {"dra": {"driverName": "rights.example.com", "container": {"image": "registry.example/dra:1"}}}


class Rights(Installed):
    """The commands with no more than the rights of manifests/rbac, and with one less."""

    def setUp(self):
        super().setUp()
        self.install()
        self.apply("rbac-drain")
        self.fleet = Fleet(self, "rights", via="self")
        self.bind(self.fleet.namespace, "rbac-device-plugins")

    def role(self, name):
        return f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"

    def allowed(self, account, rule, verb, namespace=""):
        """Waits until the server knows what the role says of a verb."""
        attributes = {"verb": verb, "group": rule["apiGroups"][0], "name": (rule.get("resourceNames") or [""])[0]}
        attributes["resource"], _, attributes["subresource"] = rule["resources"][0].partition("/")
        attributes["namespace"] = namespace
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": f"system:serviceaccount:kmm-tools:{account}", "resourceAttributes": attributes}}
        return self.api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"][
            "allowed"
        ]

    def one_less(self, role):
        """(rules, rule, verb, resource) with each right of a role left out once."""
        rules = self.api.get(self.role(role))["rules"]
        for i, rule in enumerate(rules):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    fewer = copy.deepcopy(rules)
                    fewer[i]["verbs"] = [v for v in rule["verbs"] if v != verb]
                    others = [r for r in rule["resources"] if r != resource]
                    if others:
                        fewer.append(dict(rule, resources=others, verbs=[verb]))
                    yield [r for r in fewer if r["verbs"]], dict(rule, resources=[resource]), verb, resource

    def test_kmm_plan(self):
        access = self.fleet.access(token=self.token("kmm-plan"))
        rule = {"apiGroups": ["kmm.sigs.x-k8s.io"], "resources": ["nodemodulesconfigs"]}
        self.wait("the rights to be known", lambda: self.allowed("kmm-plan", rule, "list"))
        for line in (
            ("show",),
            ("matrix",),
            ("validate",),
            ("render",),
            ("why", self.fleet.names[0], self.fleet.module),
        ):
            self.tool("kmm-plan", *line, "--kubeconfig", access)
        # Nothing may be tried on the server, so it is compared here.
        label = f"kmm.node.kubernetes.io/version-module.{self.fleet.namespace}.{self.fleet.name}"
        self.api.patch(f"/api/v1/nodes/{self.fleet.names[0]}", {"metadata": {"labels": {label: "v1"}}})
        self.tool("kmm-plan", "diff", "--kubeconfig", access, expect=2)
        for verb in ("create", "update", "patch", "delete"):
            self.assertFalse(self.allowed("kmm-plan", rule, verb), verb)

    def test_a_server_that_has_just_been_started(self):
        access = self.fleet.access(token=self.token("kmm-plan"))
        self.cluster.kill_apiserver()
        self.cluster.start_apiserver()
        self.addCleanup(self.cluster.wait_ready)
        # It answers a moment before it has read its roles.
        self.wait("its port to be open", lambda: not is_free(self.cluster.state()["port"]), 60)
        self.tool("kmm-plan", "show", "--kubeconfig", access)

    def test_kmm_upgrade(self):
        with Proxy(self.cluster) as proxy:
            access = self.fleet.access(proxy.port, self.token("kmm-upgrade"))
            start, count = self.fleet.start("v1"), 0
            everything = self.fleet.start("v1", "--evict-users")
            self.fleet.edit("v1", PLUGINS)
            # A server that does not yet know the installed role says no to all, and a moment later yes to all.
            roles = {
                "kmm-upgrade": "",
                "kmm-upgrade-namespace": self.fleet.namespace,
                "kmm-upgrade-device-plugins": self.fleet.namespace,
                "kmm-upgrade-drain": "",
            }
            for role, where in roles.items():
                for rule in self.api.get(self.role(role))["rules"]:
                    self.wait(
                        "the role to be known",
                        lambda rule=rule, where=where: self.allowed("kmm-upgrade", rule, rule["verbs"][0], where),
                    )
            for role, where in roles.items():
                whole = self.api.get(self.role(role))["rules"]
                for fewer, rule, verb, resource in self.one_less(role):
                    if resource == "secrets" or (where and (resource, verb) == ("daemonsets", "get")):
                        continue  # needed only where a Module names one; the role for drains has it, too
                    self.api.patch(self.role(role), {"rules": fewer})
                    self.wait(
                        "the right to be gone",
                        lambda rule=rule, verb=verb, where=where: not self.allowed("kmm-upgrade", rule, verb, where),
                    )
                    said = self.fleet.run(*everything, "--kubeconfig", access, expect=77)
                    self.assertIn("code:    forbidden", said)
                    self.assertRegex(said, rf"right: +{verb} {resource.split('/')[0]}", said)
                    self.assertEqual([], list(map(str, proxy.changing())), f"without {verb} {resource}: {said}")
                    self.assertFalse(self.fleet.recorded(), said)
                    count += 1
                if role != list(roles)[-1]:
                    self.api.patch(self.role(role), {"rules": whole})
                    for each in whole:
                        self.wait(
                            "the role to be whole",
                            lambda each=each, where=where: all(
                                self.allowed("kmm-upgrade", each, v, where) for v in each["verbs"]
                            ),
                        )
            # What the error said is what is needed, and takes no other right away.
            hint = re.sub("^ {11}", "", said.split("apply this:\n")[1].split("\n  code:")[0], flags=re.M)
            with tempfile.TemporaryDirectory() as scratch:
                file = pathlib.Path(scratch, "hint.yaml")
                file.write_text(hint + "\n")
                for thing in manifests.apply(self.api, file):
                    self.addCleanup(self.api.delete, self.api.path_of(thing))
            self.wait("the right to be back", lambda: self.allowed("kmm-upgrade", rule, verb))
            print(f"{count} rights left out one at a time")
            proxy.reset()
            self.fleet.edit("v1")
            self.fleet.run(*start, "--kubeconfig", access)
            self.assertEqual([], [str(r) for r in proxy.changing() if r.status >= 300])


class Admission(Installed):
    """The account kmm-upgrade makes worker Pods and DaemonSets of device plugins, and no others."""

    def test_worker_pods_and_no_others(self):
        self.install()
        self.apply("admission")
        # A Pod of a class that is not there is refused by the server itself.
        runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "other"}}
        self.api.create(dict(runtime, handler="other"))
        self.addCleanup(self.api.delete, self.api.path_of(runtime))
        fleet = Fleet(self, "admission", count=1, via="self")
        self.bind(fleet.namespace)
        pods = f"/api/v1/namespaces/{fleet.namespace}/pods"
        account = Api(self.cluster.dir, self.token("kmm-upgrade"))

        def create(pod):
            """(status, message) of a Pod that is not kept."""
            status, data = account.raw("POST", pods, pod, query={"dryRun": "All"})
            return status, json.loads(data).get("message", "")

        plain = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x"},
            "spec": {"containers": [{"name": "x", "image": "x"}]},
        }
        # Until the server has read role and policy it refuses, then admits, everything.
        self.wait("the policy to be known", lambda: "kmm-upgrade-worker-pods" in create(plain)[1])
        with Proxy(self.cluster) as proxy:
            fleet.run(*fleet.start("v1"), "--kubeconfig", fleet.access(proxy.port, account.token))
            made = [
                json.loads(record.body)
                for record in proxy.reset()
                if record.method == "POST" and record.resource == pods
            ]
        self.assertTrue(all(fleet.live().values()), fleet.live())
        by_verb = {pod["spec"]["containers"][0]["args"][0]: pod for pod in made}
        self.assertEqual(set(by_verb), {"status", "check", "load"})
        for verb, why, change in HOSTILE:
            pod = copy.deepcopy(by_verb[verb])
            self.assertEqual(create(pod)[0], 201, "it was good as it was")
            change(pod, pod["spec"], pod["spec"]["containers"][0])
            with self.subTest(f"{verb}: {why}"):
                status, said = create(pod)
                self.assertIn("kmm-upgrade-worker-pods", said, f"{status} {said}")
        # Others make what they like.
        self.assertEqual(self.api.raw("POST", pods, plain, query={"dryRun": "All"})[0], 201)
        self.pods_of_others(fleet.namespace, account, plain)

    def pods_of_others(self, namespace, account, plain):
        """With the right to change Pods, as rbac-recipe gives it."""
        self.api.create(dict(plain, metadata={"name": "other", "namespace": namespace}))
        path = f"/api/v1/namespaces/{namespace}/pods/other"
        self.addCleanup(self.free, path)
        self.allow(namespace, [{"apiGroups": [""], "resources": ["pods", "pods/ephemeralcontainers"],
                                "verbs": ["get", "patch"]}])
        changes = {
            path: {"spec": {"containers": [{"name": "x", "image": "y"}]}},
            f"{path}/ephemeralcontainers": {"spec": {"ephemeralContainers": [{"name": "z", "image": "z"}]}},
        }
        for where, change in changes.items():
            def refused(where=where, change=change):
                status, data = account.raw("PATCH", where, change, "application/strategic-merge-patch+json",
                                           {"dryRun": "All"})
                self.assertEqual(status // 100, 4, where)
                return "kmm-upgrade-worker-pods" in json.loads(data).get("message", "")
            self.wait(f"{where} to be refused by the policy", refused)

    def allow(self, namespace, rules):
        """Gives the account more rights in a namespace until the test ends."""
        meta = {"name": "test-more", "namespace": namespace}
        group = "rbac.authorization.k8s.io"
        role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": meta, "rules": rules}
        binding = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": meta,
                   "roleRef": {"apiGroup": group, "kind": "Role", "name": meta["name"]},
                   "subjects": [{"kind": "ServiceAccount", "name": "kmm-upgrade", "namespace": "kmm-tools"}]}
        for thing in (role, binding):
            self.api.create(thing)
            self.addCleanup(self.api.delete, self.api.path_of(thing))

    def test_device_plugins_and_no_other_daemonsets(self):
        self.install()
        self.apply("admission")
        fleet = Fleet(self, "plugins", count=1, via="self")
        self.bind(fleet.namespace, "rbac-device-plugins")
        account = Api(self.cluster.dir, self.token("kmm-upgrade"))
        sets = f"/apis/apps/v1/namespaces/{fleet.namespace}/daemonsets"
        space = f"/api/v1/namespaces/{fleet.namespace}"

        def put(daemon_set):
            """(status, message) of a DaemonSet that is not kept."""
            path = f"{sets}/{daemon_set['metadata']['name']}"
            status, data = account.raw("PATCH", path, daemon_set, "application/apply-patch+yaml",
                                       {"dryRun": "All", "fieldManager": "test", "force": "true"})
            return status, json.loads(data).get("message", "")

        for role, more in PLUGIN_MODULES.items():
            fleet.edit("v1", more)
            rendered = self.tool("kmm-plan", "render", role, "--namespace", fleet.namespace, "-o", "json",
                                 "--kubeconfig", fleet.access())
            good = daemon_set_of(json.loads(rendered))
            self.api.patch(space, {"metadata": {"annotations": {"kmmtools.dev/device-plugins": None}}})
            self.wait("a Module that is not named to be refused", lambda good=good: "annotation" in put(good)[1])
            # An empty name is none, as is left where the last one was taken out.
            self.api.patch(space, {"metadata": {"annotations": {"kmmtools.dev/device-plugins": f"x,{fleet.name},"}}})
            self.wait(f"{role} to be accepted", lambda good=good: put(good)[0] in (200, 201), 60)
            for why, change in HOSTILE_SETS:
                daemon_set = copy.deepcopy(good)
                change(daemon_set, daemon_set["spec"]["template"]["spec"])
                with self.subTest(f"{role}: {why}"):
                    status, said = put(daemon_set)
                    self.assertIn("kmm-upgrade-device-plugins", said, f"{status} {said}")


class OnNodes(Installed):
    """Pods of a Kubernetes upgrade: those of facts as kmm-upgrade makes them, those of steps as docs/kubernetes-pods.md
    says."""

    def test_pods_of_a_kubernetes_upgrade(self):
        self.install()
        self.apply("admission")
        fleet = Fleet(self, "on-nodes", count=1, via="self")
        self.bind("kube-system")
        self.bind(fleet.namespace)
        self.addCleanup(self.kubectl, "delete", "-n", "kube-system", "rolebinding", "kmm-upgrade", "--ignore-not-found")
        pods = "/api/v1/namespaces/kube-system/pods"
        account = Api(self.cluster.dir, self.token("kmm-upgrade"))

        def create(pod, path=pods):
            """(status, message) of a Pod that is not kept."""
            status, data = account.raw("POST", path, pod, query={"dryRun": "All"})
            return status, json.loads(data).get("message", "")

        facts = self.pod_of_facts(fleet, pods)
        self.assertEqual(facts["spec"]["containers"][0]["args"][:2], ["kubernetes", "facts"])
        self.wait("the rights to be known", lambda: create(facts)[0] == 201 or "cannot create" not in create(facts)[1])
        step = copy.deepcopy(facts)
        put_in(step["metadata"], name=facts["metadata"]["name"].replace("-facts-", "-kubelet-"))
        step["metadata"]["labels"] = {
            key: value.replace("kubernetes-facts", "kubernetes-kubelet")
            for key, value in facts["metadata"]["labels"].items()
        }
        put_in(step["spec"], hostPID=True, volumes=[])
        worker = step["spec"]["containers"][0]
        worker["args"] = ["kubernetes", "kubelet", "--target", "v1.35.4"]
        worker["volumeMounts"] = []
        worker["env"] = [each for each in worker["env"] if each["name"] != "KMM_NODE_ROOT"]
        worker["env"].append({"name": "KMM_NODE_NAMESPACES", "value": "/proc/1/ns"})
        worker["securityContext"] = {"privileged": True, "readOnlyRootFilesystem": True, "runAsUser": 0}
        good = {"facts": facts, "kubelet": step, "canary": CANARY}
        # A policy that has just been made is enforced a moment later.
        bad = dict(facts, spec=dict(facts["spec"], hostPID=True))
        self.wait("the policy to be enforced", lambda: "kmm-upgrade-worker-pods" in create(bad)[1])
        for verb, pod in good.items():
            self.assertEqual(create(pod)[0], 201, f"{verb}: {create(pod)}")
            other = copy.deepcopy(pod)
            other["metadata"]["namespace"] = fleet.namespace
            status, said = create(other, f"/api/v1/namespaces/{fleet.namespace}/pods")
            self.assertIn("kmm-upgrade-worker-pods", said, f"{verb} elsewhere: {status} {said}")
        for verb, why, change in HOSTILE_ON_NODES:
            pod = copy.deepcopy(good[verb])
            change(pod, pod["spec"], pod["spec"]["containers"][0])
            with self.subTest(f"{verb}: {why}"):
                status, said = create(pod)
                self.assertIn("kmm-upgrade-worker-pods", said, f"{status} {said}")

        # The image that the policy names is the only one.
        path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kmm-upgrade-worker-pods"
        image = facts["spec"]["containers"][0]["image"]
        validation = {"expression": f"variables.worker.image == '{image}'", "message": "expected another image"}
        self.api.patch(path, {"spec": {"validations": [*self.api.get(path)["spec"]["validations"], validation]}})
        other = copy.deepcopy(step)
        other["spec"]["containers"][0]["image"] = image.replace(64 * "a", 64 * "b")
        self.wait("another image to be refused", lambda: "expected another image" in create(other)[1])
        self.assertEqual(create(step)[0], 201)

    def pod_of_facts(self, fleet, pods):
        """What kmm-upgrade asks the server to make, and the server has made, when it asks a node."""
        with Proxy(self.cluster) as proxy:
            child = fleet.begin("health", "--via", "self", "--worker-image", "registry.example/kmm-worker@sha256:"
                                + 64 * "a", "--kubeconfig", fleet.access(proxy.port))

            def made():
                for record in proxy.changing():
                    if record.method == "POST" and record.resource == pods and record.status:
                        return record
                self.assertIsNone(child.poll(), child.stdout.read() if child.poll() is not None else "")
                return None
            record = self.wait("a Pod of facts", made)
            child.kill()
            child.communicate()
        self.assertEqual(record.status, 201, record)
        for pod in self.api.items(pods):
            if pod["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "kmm-upgrade":
                self.api.delete(f"{pods}/{pod['metadata']['name']}", gracePeriodSeconds=0)
        return json.loads(record.body)
