// SPDX-License-Identifier: Apache-2.0
// What a node of a kubeadm cluster is made of, as it is now. Nothing is guessed: what could not be read is absent, and
// named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kubeadm/node/certificates.hpp"
#include "kubeadm/node/etcd.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/node.hpp"
#include "kubeadm/node/placing.hpp"
#include "kubeadm/node/scan.hpp"
#include "value/node.hpp"

namespace kmm::kubeadm {

struct Unread {
    std::string field, reason;
};

struct DiskSpace {
    std::string path;
    std::uint64_t free = 0, total = 0;  ///< bytes; free: for root
    std::string purpose;  ///< of the directories that an upgrade fills: "kubernetes", "etcd", "kubelet", "images"
};

/// An API version that some client has asked the API server for since it was started, and that will go.
struct RequestedApi {
    std::string group, version, resource, removed_in;  ///< removed_in: "1.37"
};

/// The API server of this node.
struct ApiServerFacts {
    std::string problem;  ///< why it is not ready, "" if it is
    bool has_requests = false;               ///< `requested` was read
    std::string started;                     ///< seconds since 1970, as it says them
    std::vector<RequestedApi> requested;
};

/// Packages of Kubernetes.
struct PackageFacts {
    std::vector<std::string> installed, held;
};

/// Lines in which the manifest of a static Pod differs from what kubeadm makes of kubeadm-config.
struct ManifestDrift {
    std::string component;
    std::vector<std::string> lines;  ///< as of diff: "-" of the manifest, "+" of kubeadm; the first ones
    std::size_t count = 0;           ///< of all of them
};

/// What kubeadm of a version says before it upgrades this control plane.
struct Preflight {
    kubernetes::Version version;
    std::vector<std::string> errors, warnings;  ///< "NAME: text", of its checks
};

/// What an upgrade of this node would find.
struct UpgradeFacts {
    std::optional<std::vector<std::string>> images;    ///< names of those that the container runtime holds
    std::optional<std::string> sandbox_image;          ///< of the container runtime
    std::optional<std::vector<ManifestDrift>> drift;   ///< only on control planes
    std::optional<std::vector<PlacingTrial>> placing;  ///< one for each program that was asked for
    std::optional<Preflight> preflight;  ///< of the next step; only on control planes that have its kubeadm
};

/// A program that an upgrade puts in place.
struct PlacingQuestion {
    std::string program;
    kubernetes::Version version;
};
/// A file of the directory that a kubelet was given with --config-dir.
struct DropIn {
    std::string file;
    value::Node config;  ///< a mapping
};

/// What kubeadm keeps of a kubelet beside its configuration.
struct KubeadmFiles {
    std::optional<std::string> flags;  ///< the text of kubeadm-flags.env
    bool has_instance_config = false;  ///< instance-config.yaml is there
};

/// What is asked beside the usual facts.
struct FactQuestions {
    bool with_requests = false;  ///< the metrics of its API server, some megabytes
    bool with_upgrade = false;   ///< UpgradeFacts
    bool with_scan = false;      ///< VersionScan, of the directory of `how`
    Switch how;                  ///< of `placing`
    std::vector<PlacingQuestion> placing;
    std::string ignored_preflight;  ///< checks of kubeadm whose failure is a warning, separated by commas
};

struct Facts {
    std::optional<std::string> node;       ///< of the kubelet's certificate: CN system:node:NAME
    std::optional<std::string> host_name, boot_id;
    std::optional<kubernetes::Version> kubelet, kubelet_running, kubeadm;  ///< of the file in PATH; of the process
    std::optional<std::int64_t> kubelet_pid;
    std::optional<bool> kubeadm_running;
    std::optional<ManifestSet> manifests;
    std::optional<EtcdFacts> etcd;         ///< only where there is a manifest of it
    std::optional<ApiServerFacts> api_server;  ///< only where there is a manifest of it
    std::optional<std::vector<std::string>> kubelet_arguments;  ///< of the process
    std::optional<std::vector<std::string>> kubelet_own_flags;  ///< those that an administrator has written down
    std::optional<KubeadmFiles> kubeadm_files;
    std::optional<value::Node> kubelet_config;                  ///< the file that it was given
    std::optional<std::vector<DropIn>> drop_ins;                ///< in the order in which it reads them
    std::optional<std::string> kubelet_problem;                 ///< why it is not healthy, "" if it is
    std::optional<bool> has_ca_key, needs_reboot;               ///< has_ca_key: only on control planes
    std::optional<PackageFacts> packages;  ///< only with dpkg
    std::optional<std::vector<std::string>> updaters;           ///< what updates packages by itself
    std::vector<Certificate> certificates;
    std::vector<DiskSpace> disks;
    std::optional<std::string> cgroup;     ///< "v1" or "v2"
    std::optional<std::vector<std::string>> swap;  ///< devices in use
    std::optional<std::string> runtime_socket;     ///< the path
    std::optional<bool> runtime_socket_present;
    std::optional<std::vector<std::string>>
        leftovers;  ///< names of kubeadm's backups and temporary files in /etc/kubernetes/tmp
    std::optional<nodejob::JobView> job;
    std::optional<UpgradeFacts> upgrade;  ///< only if asked for
    std::optional<VersionScan> scan;      ///< only if asked for
    std::vector<Unread> unread;
};

/// `client` asks the services of the node.
/// Errors: not_found "not-kubernetes-node" if neither /etc/kubernetes nor a kubelet is there.
[[nodiscard]] Facts read_facts(const Node& node, net::HttpClient& client, const FactQuestions& questions = {});

/// The document of `kubernetes facts -o json`; absent values are null.
[[nodiscard]] value::Node facts_document(const Facts& facts, std::int64_t now);

/// A job as a document.
[[nodiscard]] value::Node job_document(const nodejob::JobView& job);

// The parts of read_facts.

/// Text of a file's only line. Errors: as Place::read.
[[nodiscard]] std::string first_line(const Place& place, const std::string& path);
[[nodiscard]] std::string node_name(const Place& place);
[[nodiscard]] std::string cgroup_version(const Place& place);
[[nodiscard]] std::vector<std::string> swap_devices(const Place& place);
/// Flags of the kubelet in /etc/default/kubelet, /etc/sysconfig/kubelet, its units and their drop-ins: those that
/// kubeadm does not write. Errors: as Place::read.
[[nodiscard]] std::vector<std::string> kubelet_own_flags(const Place& place);
/// Path of the container runtime's socket, from the kubelet's files. Errors: io "io" if none of them names it.
[[nodiscard]] std::string runtime_socket(const Place& place);
/// Where the container runtime behind that socket keeps images, as its configuration says: containerd, CRI-O, or Docker
/// behind cri-dockerd. Errors: as Place::read.
[[nodiscard]] std::string image_directory(const Place& place, const std::string& socket);
[[nodiscard]] DiskSpace disk_space(const Place& place, const std::string& path);
[[nodiscard]] std::vector<std::string> process_arguments(const Place& place, std::int64_t pid);
/// A configuration file of a kubelet without what may be secret in it. Errors: as Place::read; io "io".
[[nodiscard]] value::Node kubelet_configuration(const Place& place, const std::string& path);
/// The file that a kubelet with these arguments reads; where they name none, that of kubeadm.
[[nodiscard]] std::string kubelet_configuration_path(const std::vector<std::string>& arguments);
/// The files *.conf in and below the directory of --config-dir, in the order in which the kubelet merges them over its
/// file; none without that flag. Errors: as kubelet_configuration, of any of them; io "io" for a relative path.
[[nodiscard]] std::vector<DropIn> kubelet_drop_ins(const Place& place, const std::vector<std::string>& arguments);
/// Why its healthz is not ok, "" if it is. Errors: io "io" if it is switched off.
[[nodiscard]] std::string kubelet_health(const value::Node& configuration, net::HttpClient& client);
/// `manifest` is the text of kube-apiserver's. Errors: io "io" if it names no address; of the metrics also those of
/// HttpClient.
[[nodiscard]] ApiServerFacts read_api_server(const Place& place, net::HttpClient& client, const std::string& manifest,
                                             bool with_requests);
/// nullopt without dpkg.
[[nodiscard]] std::optional<PackageFacts> read_packages(const Place& place);
[[nodiscard]] std::vector<std::string> automatic_updaters(const Place& place);
/// What crictl prints as JSON for these words. Errors: not_found "command-not-found"; io "command-failed".
[[nodiscard]] value::Node crictl_document(const Place& place, const std::vector<std::string>& words);
/// Names of the images that the container runtime holds, sorted. Errors: io "command-failed"; not_found
/// "command-not-found".
[[nodiscard]] std::vector<std::string> present_images(const Place& place);
/// The image of the Pods' sandboxes, as the container runtime says itself. Errors: as present_images; io "io" if it
/// does not say.
[[nodiscard]] std::string sandbox_image(const Place& place);
/// What `kubeadm upgrade diff` of the version that runs prints, kubeadm's patches left out. It writes nothing. Errors:
/// checks_failed "kubeadm-version" if kubeadm is of another minor than the API server; io "command-failed";
/// manifests-damaged.
[[nodiscard]] std::vector<ManifestDrift> manifest_drift(const Place& place, const ManifestSet& manifests);
/// Takes the output of kubeadm upgrade diff apart.
[[nodiscard]] std::vector<ManifestDrift> read_manifest_diff(std::string_view text);
/// What `kubeadm upgrade apply phase preflight --dry-run` of the file `kubeadm` says. It asks the API server, creates
/// nothing there and writes nothing here. Errors: io "command-failed" if it ends without naming a check.
[[nodiscard]] Preflight run_preflight(const Place& place, const std::string& kubeadm, const kubernetes::Version& target,
                                      const std::string& ignored);
/// Takes its standard error apart.
[[nodiscard]] Preflight read_preflight(std::string_view text);
/// Appends why it could not read what is absent.
[[nodiscard]] UpgradeFacts read_upgrade_facts(const Node& node, const std::optional<ManifestSet>& manifests,
                                              const FactQuestions& questions, std::vector<Unread>& unread);
[[nodiscard]] value::Node upgrade_document(const UpgradeFacts& facts);

}  // namespace kmm::kubeadm
