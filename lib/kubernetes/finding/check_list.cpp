// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/finding/check_list.hpp"

#include <algorithm>
#include <iterator>

namespace kmm::kubernetes {
namespace {

constexpr std::string_view k_node = "needs --via ssh, which asks each node";
constexpr std::string_view k_control_planes = "needs --via ssh, which asks each control-plane node";

constexpr CheckInfo k_checks[] = {
    {"version-known", false, Weight::fatal, "the target is in the metadata",
     "name a listed version, or add it with --versions FILE", ""},
    {"version-path", false, Weight::fatal, "there is a way to the target, one minor at a time",
     "add the versions between to the metadata with --versions FILE", ""},
    {"known-issues", false, Weight::ignorable, "no version on the way, and no etcd, has a known issue that harms",
     "name a version without it, and list versions without it in the metadata (--versions FILE)", ""},
    {"versions-uniform", true, Weight::ignorable, "all control planes and kubelets run one version",
     "kmm-upgrade resume goes on with a run under way; else: start with --ignore-checks versions-uniform", ""},
    {"skew-after-step", true, Weight::fatal, "versions stay within the supported skew, now and after each step",
     "upgrade the older kubelets first", ""},
    {"kubelet-not-newer", true, Weight::fatal, "no kubelet is newer than an API server",
     "bring the kubelet back to the version of the control plane", ""},
    {"node-reach", true, Weight::fatal, "every node answers",
     "kmm-worker kubernetes facts must print on the node what it is",
     ""},
    {"apiserver-each-ready", true, Weight::fatal, "each API server says that it is ready",
     "look at the line that fails in /readyz?verbose", k_control_planes},
    {"nodes-ready", true, Weight::fatal, "every node is Ready",
     "repair the node, or remove it from the cluster", ""},
    {"node-pressure", true, Weight::ignorable, "no node lacks memory, disk space or process ids",
     "free what the condition names; NetworkUnavailable: see the Pods of the network add-on", ""},
    {"cp-pods-ready", true, Weight::fatal, "the control-plane Pods of every control-plane node are Ready",
     "kubectl describe pod -n kube-system POD", ""},
    {"etcd-members", true, Weight::fatal, "etcd has a started voting member for each control plane",
     "etcdctl member remove ID of members that are gone, etcdctl member promote ID of learners", k_control_planes},
    {"etcd-quorum", true, Weight::fatal, "etcd keeps its quorum with one member away",
     "repair the member that is away; of two, add a third", k_control_planes},
    {"etcd-alarms", true, Weight::fatal, "etcd has no alarm",
     "NOSPACE: compact, defragment, then etcdctl alarm disarm; CORRUPT: remove that member and add it again",
     k_control_planes},
    {"etcd-advertise", false, Weight::fatal, "etcd listens on more than the loopback address",
     "set listen-client-urls in the manifest", k_control_planes},
    {"etcd-size", false, Weight::ignorable, "the database of etcd is well below its quota",
     "compact and defragment; if what is in use is near the quota, raise quota-backend-bytes",
     k_control_planes},
    {"etcd-36-floor", false, Weight::ignorable, "etcd is at 3.5.26 at least before 3.6",
     "set etcd.local.imageTag to 3.5.26-0 or later and apply the running version again", ""},
    {"etcd-external", false, Weight::warning, "kubeadm manages etcd",
     "upgrade, back up and restore the external etcd by hand", ""},
    {"manifests-present", true, Weight::fatal, "the manifests of the static Pods are there and whole",
     "kmm-worker kubernetes repair on the node", k_node},
    {"stray-manifests", false, Weight::ignorable, "no second file declares the same static Pod",
     "move the copy out of the directory", k_node},
    {"manifest-drift", false, Weight::ignorable, "manifests are as kubeadm writes them",
     "put the change into kubeadm-config (extraArgs, extraVolumes); or keep it in --patches, and start with "
     "--ignore-checks manifest-drift", ""},
    {"config-drift", false, Weight::ignorable, "the kubelet's configuration is that of kubelet-config",
     "put the change into kubelet-config, or take that over: kubeadm upgrade node phase kubelet-config, then restart "
     "the kubelet; what --patches makes is a difference, too: --ignore-checks config-drift", k_node},
    {"kubelet-static-path", false, Weight::ignorable, "the kubelet reads /etc/kubernetes/manifests",
     "set staticPodPath: /etc/kubernetes/manifests in kubelet-config and in /var/lib/kubelet/config.yaml, restart "
     "the kubelet", k_node},
    {"kubeadm-running", false, Weight::fatal, "no other kubeadm is running", "wait for it", k_node},
    {"kubeadm-config-parses", true, Weight::fatal, "kubeadm can read its configuration in the cluster and on nodes",
     "kubeadm config migrate, then kubeadm init phase upload-config kubeadm", ""},
    {"kubelet-config-cm", true, Weight::fatal, "the ConfigMap kubelet-config holds a KubeletConfiguration",
     "kubeadm init phase upload-config kubelet", ""},
    {"kubernetes-version-cm", true, Weight::ignorable, "kubeadm-config names the version that the control plane runs",
     "kubeadm upgrade apply with the running version", ""},
    {"image-repository-equal", false, Weight::warning, "all control planes pull their images from one repository",
     "set imageRepository in kubeadm-config and apply the running version again; addons are not upgraded while it "
     "differs", ""},
    {"node-name-matches", false, Weight::fatal, "the name of each Node is the one that its kubelet uses",
     "correct the name in the ssh configuration or in /etc/hosts: another node was reached", k_node},
    {"kubelet-identity", false, Weight::fatal, "each kubelet has a certificate of its own",
     "on a control plane: kubeadm kubeconfig user --org system:nodes --client-name system:node:NODE; that is "
     "/etc/kubernetes/kubelet.conf of the node, then restart the kubelet", k_node},
    {"cert-expiry", true, Weight::ignorable, "no certificate expires within 7 days", "kubeadm certs renew all", k_node},
    {"ca-available", false, Weight::ignorable, "the key of the authority is there to renew certificates",
     "renew them where the key is, then start with --ignore-checks ca-available", k_node},
    {"admin-rights", false, Weight::fatal, "this user may do what an upgrade does in the cluster",
     "kubectl apply -k manifests/rbac-kubernetes, or use a kubeconfig of a cluster administrator", ""},
    {"kubelet-healthz", true, Weight::fatal, "each kubelet says that it is healthy", "journalctl -u kubelet", k_node},
    {"runtime-up", true, Weight::fatal, "each container runtime answers", "journalctl -u containerd", k_node},
    {"runtime-version", false, Weight::ignorable, "container runtimes can tell the kubelet their cgroup driver",
     "upgrade containerd to 2.0 or later", ""},
    {"cgroup-version", false, Weight::fatal, "nodes have the cgroup version that the target needs",
     "boot with cgroup v2, or set failCgroupV1: false in kubelet-config and on each node: kubeadm upgrade node phase "
     "kubelet-config", ""},
    {"removed-flags", false, Weight::fatal, "control planes use no flag, plugin or gate that the target lacks",
     "remove it from kubeadm-config (extraArgs) and apply the running version again", ""},
    {"removed-kubelet-flags", false, Weight::fatal, "kubelets use no flag or gate that the target lacks",
     "remove it from kubelet-config, and on each node from the kubelet's configuration files and its arguments", ""},
    {"removed-api-requested", false, Weight::ignorable, "no client asks for an API that the target lacks",
     "upgrade the client, which the audit log names; then restart the API server, whose metric keeps what was asked "
     "for", k_control_planes},
    {"removed-api-stored", false, Weight::ignorable, "no object was written with an API that the target lacks",
     "change the manifest to the API that the check names and apply it again", ""},
    {"removed-api-helm", false, Weight::warning, "no Helm release has an API that the target lacks",
     "upgrade the chart first, or map the release with helm mapkubeapis", ""},
    {"crd-conversion", true, Weight::ignorable, "stored versions are defined and conversion webhooks answer",
     "repair the webhook, or define the version again, with served: false", ""},
    {"apiservice-available", true, Weight::ignorable, "every APIService is Available",
     "repair or delete the APIService", ""},
    {"webhook-deadlock", true, Weight::ignorable, "no webhook that must answer depends on one node",
     "run it on two nodes, or leave Nodes and Leases out of its rules, and kube-system and its own namespace by "
     "namespaceSelector",
     ""},
    {"pdb-blocks-drain", false, Weight::ignorable, "every PodDisruptionBudget allows an eviction",
     "relax the budget for the time of the upgrade", ""},
    {"drain-local-data", false, Weight::ignorable, "no Pod that is to be evicted keeps data in an emptyDir",
     "save the data, then start with --delete-emptydir-data", ""},
    {"drain-unmanaged", false, Weight::ignorable, "every Pod that is to be evicted has a controller",
     "delete it, or start with --force", ""},
    {"drain-terminating", false, Weight::ignorable, "no Pod is Terminating for longer than its grace",
     "see who keeps it: its finalizer, or the kubelet of its node; kubectl delete pod --force is the last means", ""},
    {"capacity-for-drain", false, Weight::warning,
     "the other nodes have room for the Pods of each node, and DNS stays up",
     "add a node, or scale down what can wait; run CoreDNS twice", ""},
    {"images-present", false, Weight::warning, "the images of the target are on the control planes",
     "start kubernetes pulls them before it changes anything; kmm-worker kubernetes images does so earlier",
     k_control_planes},
    {"sandbox-image", false, Weight::warning, "the runtime uses the pause image of the target",
     "set it in the configuration of the runtime, restart that, and crictl pull it", k_node},
    {"disk-space", true, Weight::fatal, "there is space for backups and images", "free space, see df", k_node},
    {"clock-skew", true, Weight::ignorable, "clocks differ by at most 5 s", "repair time synchronisation", k_node},
    {"package-repo", false, Weight::fatal, "the package repository has the target",
     "set the repository to its minor on the node, then apt-get update or dnf makecache", k_node},
    {"package-held", false, Weight::fatal, "packages of Kubernetes are held", "apt-mark hold kubelet kubeadm kubectl",
     k_node},
    {"package-simulate", false, Weight::fatal, "installing them changes no other package",
     "apt-get -s install on the node shows all of it", k_node},
    {"binaries-digest", false, Weight::fatal, "binaries have the digest that is beside them", "copy them again",
     k_node},
    {"kubeadm-preflight", false, Weight::ignorable, "the preflight of the target's kubeadm finds nothing",
     "see kubeadm upgrade apply phase preflight --dry-run on the node, or pass names of its checks to "
     "--ignore-preflight-errors",
     k_control_planes},
    {"auto-updaters", false, Weight::ignorable, "nothing updates packages of Kubernetes by itself",
     "apt-mark hold kubelet kubeadm kubectl; where there is no dpkg, turn the updater off",
     k_node},
    {"reboot-daemons", false, Weight::ignorable, "nothing reboots nodes during the upgrade",
     "delete the DaemonSet for the time of the upgrade; or hold its lock, kubectl annotate daemonset -n NAMESPACE "
     "kured weave.works/kured-node-lock='{\"nodeID\":\"manual\"}'", ""},
    {"other-orchestrators", false, Weight::ignorable, "nothing else upgrades these nodes",
     "upgrade with that tool; or pause it, and start with --ignore-checks other-orchestrators", ""},
    {"kube-proxy-absent", false, Weight::ignorable, "kubeadm does not install a kube-proxy that the cluster has not",
     "start with --skip-phases addon/kube-proxy; or set proxy.disabled: true in ConfigMap kubeadm-config, which "
     "kubeadm of v1.33 and later heeds",
     ""},
    {"coredns-customised", false, Weight::warning, "the Deployment of CoreDNS is as kubeadm writes it",
     "keep what is yours as a patch of target corednsdeployment (--patches), or apply it again", ""},
    {"coredns-migratable", false, Weight::ignorable, "kubeadm can migrate the Corefile, and write Service kube-dns",
     "use a released image and plugins that kubeadm knows; or start with --ignore-checks coredns-migratable and "
     "--ignore-preflight-errors CoreDNSMigration,CoreDNSUnsupportedPlugins",
     ""},
    {"cni-supports", false, Weight::ignorable, "the network add-on supports the versions on the way",
     "upgrade the network add-on first, see --networking-first, or correct its entry in the metadata", ""},
    {"apps-support", false, Weight::ignorable, "every application supports the versions on the way",
     "upgrade the application first, or upgrade to the version that the check names", ""},
    {"app-check-programs", false, Weight::ignorable, "every program of --app-check answers",
     "run the program by hand: PROGRAM FROM TO prints JSON and exits with 0", ""},
    {"applied-patches", false, Weight::ignorable, "patches that the target needs are applied",
     "sw-patch apply ID, then sw-patch host-install", ""},
    {"available-patches", false, Weight::ignorable, "patches that kubelets of the target need are uploaded",
     "sw-patch upload FILE", ""},
    {"gitops-controllers", false, Weight::warning, "no controller brings objects back to a repository's state",
     "suspend it for the time of the upgrade", ""},
    {"backup-valid", false, Weight::fatal, "the backup of a node is whole before a step relies on it",
     "kmm-upgrade abort, then start again: it makes another backup",
     "needs the backup that the start makes, and is made before each step that relies on it"},
    {"freeze-possible", false, Weight::warning, "a ValidatingAdmissionPolicy can block changes of applications",
     "ask users to leave applications alone during the upgrade", ""},
};

}  // namespace

std::span<const CheckInfo> check_list() noexcept { return k_checks; }

const CheckInfo* find_check(std::string_view id) noexcept {
    const auto* found =
        std::find_if(std::begin(k_checks), std::end(k_checks), [&](const auto& each) { return each.id == id; });
    return found == std::end(k_checks) ? nullptr : found;
}

}  // namespace kmm::kubernetes
