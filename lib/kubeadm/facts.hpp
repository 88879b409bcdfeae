// SPDX-License-Identifier: Apache-2.0
// What a node of a kubeadm cluster is made of, as it is now. Nothing is guessed: what could not be read is absent, and named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kubeadm/certificates.hpp"
#include "kubeadm/manifests.hpp"
#include "kubeadm/node.hpp"
#include "value/node.hpp"

namespace kmm::kubeadm {

struct Unread {
    std::string field, reason;
};

struct DiskSpace {
    std::string path;
    std::uint64_t free = 0, total = 0;  ///< bytes; free: for root
};

struct Facts {
    std::optional<std::string> node;       ///< of the kubelet's certificate: CN system:node:NAME
    std::optional<std::string> host_name, boot_id;
    std::optional<kubernetes::Version> kubelet, kubelet_running, kubeadm;  ///< of the file in PATH; of the process
    std::optional<std::int64_t> kubelet_pid;
    std::optional<bool> kubeadm_running;
    std::optional<ManifestSet> manifests;
    std::vector<Certificate> certificates;
    std::vector<DiskSpace> disks;
    std::optional<std::string> cgroup;     ///< "v1" or "v2"
    std::optional<std::vector<std::string>> swap;  ///< devices in use
    std::optional<std::string> runtime_socket;     ///< the path
    std::optional<bool> runtime_socket_present;
    std::optional<std::vector<std::string>> leftovers;  ///< names of kubeadm's backups and temporary files in /etc/kubernetes/tmp
    std::optional<nodejob::JobView> job;
    std::vector<Unread> unread;
};

/// Errors: not_found "not-kubernetes-node" if neither /etc/kubernetes nor a kubelet is there.
[[nodiscard]] Facts read_facts(const Node& node);

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
/// Path of the container runtime's socket, from the kubelet's files. Errors: io "io" if none of them names it.
[[nodiscard]] std::string runtime_socket(const Place& place);
[[nodiscard]] DiskSpace disk_space(const Place& place, const std::string& path);

}  // namespace kmm::kubeadm
