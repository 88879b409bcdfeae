// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/check_list.hpp"

#include <algorithm>
#include <iterator>

namespace kmm::kubernetes {
namespace {

constexpr std::string_view k_node = "needs a command on each node";
constexpr std::string_view k_etcd = "needs a command on each control-plane node";
constexpr std::string_view k_each_server = "needs the address of each API server";

constexpr CheckInfo k_checks[] = {
    {"version-known", false, Weight::fatal, "the target is in the metadata", "name a listed version, or add it with --versions FILE", ""},
    {"version-path", false, Weight::fatal, "there is a way to the target, one minor at a time", "add the versions between to the metadata with --versions FILE", ""},
    {"versions-uniform", true, Weight::ignorable, "all control planes and kubelets run one version", "finish the upgrade that is under way", ""},
    {"skew-after-step", true, Weight::fatal, "versions stay within the supported skew, now and after each step", "upgrade the older kubelets first", ""},
    {"kubelet-not-newer", true, Weight::fatal, "no kubelet is newer than an API server", "bring the kubelet back to the version of the control plane", ""},
    {"node-reach", false, Weight::fatal, "every node answers", "ssh NODE kmm-worker kubernetes facts must print what the node is", k_node},
    {"apiserver-each-ready", true, Weight::fatal, "each API server says that it is ready", "look at the line that fails in /readyz?verbose", k_each_server},
    {"nodes-ready", true, Weight::fatal, "every node is Ready", "repair the node, or remove it from the cluster", ""},
    {"node-pressure", true, Weight::ignorable, "no node lacks memory, disk space or process ids", "free what the condition names", ""},
    {"cp-pods-ready", true, Weight::fatal, "the control-plane Pods of every control-plane node are Ready", "kubectl describe pod -n kube-system POD", ""},
    {"etcd-members", true, Weight::fatal, "etcd has a started voting member for each control plane", "remove members that are gone", k_etcd},
    {"etcd-quorum", true, Weight::fatal, "etcd keeps its quorum with one member away", "repair the member that is away", k_etcd},
    {"etcd-alarms", true, Weight::fatal, "etcd has no alarm", "compact, defragment, then disarm the alarm", k_etcd},
    {"etcd-advertise", false, Weight::fatal, "etcd listens on more than the loopback address", "set listen-client-urls in the manifest", k_etcd},
    {"etcd-size", false, Weight::ignorable, "the database of etcd is well below its quota", "compact and defragment", k_etcd},
    {"etcd-36-floor", false, Weight::ignorable, "etcd is at 3.5.26 at least before 3.6", "set etcd.local.imageTag to 3.5.26-0 or later and apply the running version again", ""},
    {"etcd-external", false, Weight::warning, "kubeadm manages etcd", "upgrade, back up and restore the external etcd by hand", ""},
    {"manifests-present", true, Weight::fatal, "the manifests of the static Pods are there and whole", "restore the manifest from the backup of kubeadm", k_node},
    {"stray-manifests", false, Weight::ignorable, "no second file declares the same static Pod", "move the copy out of the directory", k_node},
    {"manifest-drift", false, Weight::ignorable, "manifests are as kubeadm writes them", "put the change into kubeadm-config or into patches", k_node},
    {"config-drift", false, Weight::ignorable, "the kubelet's configuration is that of kubelet-config", "put the change into kubelet-config or into patches", k_node},
    {"kubelet-static-path", false, Weight::ignorable, "the kubelet reads /etc/kubernetes/manifests", "set staticPodPath", k_node},
    {"kubeadm-running", false, Weight::fatal, "no other kubeadm is at work", "wait for it", k_node},
    {"kubeadm-config-parses", true, Weight::fatal, "the ConfigMap kubeadm-config can be read by kubeadm", "kubeadm config migrate, then kubeadm init phase upload-config kubeadm", ""},
    {"kubelet-config-cm", true, Weight::fatal, "the ConfigMap kubelet-config holds a KubeletConfiguration", "kubeadm init phase upload-config kubelet", ""},
    {"kubernetes-version-cm", true, Weight::ignorable, "kubeadm-config names the version that the control plane runs", "kubeadm upgrade apply with the running version", ""},
    {"image-repository-equal", false, Weight::warning, "all control planes pull their images from one repository", "set imageRepository in kubeadm-config; addons are not upgraded while it differs", ""},
    {"node-name-matches", false, Weight::fatal, "the name of each Node is the one that its kubelet uses", "set nodeRegistration.name", k_node},
    {"kubelet-identity", false, Weight::fatal, "each kubelet has a certificate of its own", "kubeadm init phase kubeconfig kubelet", k_node},
    {"cert-expiry", true, Weight::ignorable, "no certificate expires within 7 days", "kubeadm certs renew all", k_node},
    {"ca-available", false, Weight::ignorable, "the key of the authority is there to renew certificates", "renew them where the key is", k_node},
    {"admin-rights", false, Weight::fatal, "this user may do everything in the cluster", "use a kubeconfig of a cluster administrator", ""},
    {"kubelet-healthz", true, Weight::fatal, "each kubelet says that it is healthy", "journalctl -u kubelet", k_node},
    {"runtime-up", true, Weight::fatal, "each container runtime answers", "journalctl -u containerd", k_node},
    {"runtime-version", false, Weight::ignorable, "container runtimes can tell the kubelet their cgroup driver", "upgrade containerd to 2.0 or later", ""},
    {"cgroup-version", false, Weight::fatal, "nodes have the cgroup version that the target needs", "boot with cgroup v2, or set failCgroupV1: false in kubelet-config", ""},
    {"removed-flags", false, Weight::fatal, "control planes use no flag, plugin or gate that the target lacks", "remove it from kubeadm-config (extraArgs) and apply the running version again", ""},
    {"removed-kubelet-flags", false, Weight::fatal, "kubelets use no flag or gate that the target lacks", "remove it from kubelet-config and kubeadm-flags.env", ""},
    {"removed-api-requested", false, Weight::ignorable, "no client asks for an API that the target lacks", "upgrade the client; the audit log names it", "needs /metrics of each API server"},
    {"removed-api-stored", false, Weight::ignorable, "no object was written with an API that the target lacks", "change the manifest to the API that the check names and apply it again", ""},
    {"removed-api-helm", false, Weight::warning, "no Helm release has an API that the target lacks", "upgrade the chart first, or map the release with helm mapkubeapis", ""},
    {"crd-conversion", true, Weight::ignorable, "stored versions are served and conversion webhooks answer", "repair the webhook, or migrate the stored objects", ""},
    {"apiservice-available", true, Weight::ignorable, "every APIService is Available", "repair or delete the APIService", ""},
    {"webhook-deadlock", true, Weight::ignorable, "no webhook that must answer depends on one node", "run it on two nodes, or exclude kube-system and its own namespace by namespaceSelector", ""},
    {"pdb-blocks-drain", false, Weight::ignorable, "every PodDisruptionBudget allows an eviction", "add replicas, or relax the budget for the time of the upgrade", ""},
    {"drain-local-data", false, Weight::ignorable, "no Pod that is to be evicted keeps data in an emptyDir", "save the data, then drain with --delete-emptydir-data", ""},
    {"drain-unmanaged", false, Weight::ignorable, "every Pod that is to be evicted has a controller", "delete it, or drain with --force", ""},
    {"capacity-for-drain", false, Weight::warning, "the other nodes have room for the Pods of each node, and DNS stays up", "add a node, or scale down what can wait; run CoreDNS twice", ""},
    {"images-present", false, Weight::fatal, "the images of the target are on the nodes", "kubeadm config images pull", k_node},
    {"sandbox-image", false, Weight::warning, "the runtime uses the pause image of the target", "set it in the configuration of the runtime", k_node},
    {"disk-space", true, Weight::fatal, "there is space for backups and images", "free space, see df", k_node},
    {"clock-skew", true, Weight::ignorable, "clocks differ by at most 5 s", "repair time synchronisation", k_node},
    {"package-repo", false, Weight::fatal, "the package repository has the target", "name the repository of its minor", k_node},
    {"package-held", false, Weight::fatal, "packages of Kubernetes are held", "apt-mark hold kubelet kubeadm kubectl", k_node},
    {"package-simulate", false, Weight::fatal, "installing them changes no other package", "see what the package manager would do", k_node},
    {"binaries-digest", false, Weight::fatal, "binaries have the digests of their release", "download them again", k_node},
    {"auto-updaters", false, Weight::ignorable, "nothing updates packages of Kubernetes by itself", "hold the packages", k_node},
    {"reboot-daemons", false, Weight::ignorable, "nothing reboots nodes meanwhile", "kubectl annotate daemonset kured weave.works/kured-node-lock, or scale it down", ""},
    {"other-orchestrators", false, Weight::ignorable, "nothing else upgrades these nodes", "upgrade with that tool, or pause it", ""},
    {"kube-proxy-absent", false, Weight::warning, "kube-proxy is in use", "skip kubeadm's phase addon/kube-proxy, which would install it", ""},
    {"coredns-customised", false, Weight::warning, "the Deployment of CoreDNS is as kubeadm writes it", "keep what is yours as a patch of target corednsdeployment (--patches), or apply it again", ""},
    {"coredns-migratable", false, Weight::ignorable, "kubeadm can migrate the Corefile", "use a released image and plugins that kubeadm knows, or ignore CoreDNSMigration and CoreDNSUnsupportedPlugins of kubeadm with --ignore-preflight-errors", ""},
    {"apps-support", false, Weight::ignorable, "every application supports the versions on the way", "upgrade the application first, or upgrade to the version that the check names", ""},
    {"app-check-programs", false, Weight::ignorable, "every program of --app-check answers", "run the program by hand: PROGRAM FROM TO prints JSON and exits with 0", ""},
    {"applied-patches", false, Weight::ignorable, "patches that the target needs are applied", "sw-patch apply ID, then sw-patch host-install", ""},
    {"available-patches", false, Weight::ignorable, "patches that kubelets of the target need are uploaded", "sw-patch upload FILE", ""},
    {"gitops-controllers", false, Weight::warning, "no controller brings objects back to a repository's state", "suspend it for the time of the upgrade", ""},
    {"freeze-possible", false, Weight::warning, "a ValidatingAdmissionPolicy can block changes of applications", "ask users to leave applications alone during the upgrade", ""},
};

}  // namespace

std::span<const CheckInfo> check_list() noexcept { return k_checks; }

const CheckInfo* find_check(std::string_view id) noexcept {
    const auto* found = std::find_if(std::begin(k_checks), std::end(k_checks), [&](const auto& each) { return each.id == id; });
    return found == std::end(k_checks) ? nullptr : found;
}

}  // namespace kmm::kubernetes
