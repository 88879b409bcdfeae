// SPDX-License-Identifier: Apache-2.0
// The four static Pods that kubeadm writes on a control-plane node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubeadm/node/node.hpp"
#include "kubernetes/versions/version.hpp"

namespace kmm::kubeadm {

/// In the order in which kubeadm upgrades them.
inline constexpr std::string_view k_static_pods[] = {"etcd", "kube-apiserver", "kube-controller-manager",
                                                     "kube-scheduler"};
inline constexpr const char* k_manifest_directory = "/etc/kubernetes/manifests";

struct Manifest {
    std::string component;
    std::string path;
    bool expected = true;   ///< this node should have it
    bool present = false;
    bool whole = false;     ///< it declares that Pod, whose container has an image with a version
    std::string image;
    std::optional<kubernetes::Version> version;  ///< of the image
    std::string tag;        ///< the same as the image has it: etcd's have no v
    std::string problem;    ///< why it is not whole, "" if it is
};

/// What `text` declares.
[[nodiscard]] Manifest judge_manifest(std::string_view component, const std::string& path, const std::string& text);

struct ManifestSet {
    bool control_plane = false;       ///< the node is one: by its manifests, or by files that only a control plane has
    std::vector<Manifest> pods;       ///< of k_static_pods; etcd is expected unless the API server's etcd is elsewhere
    struct Stray {
        std::string path, pod;
    };
    std::vector<Stray>
        strays;  ///< other files in the directory that declare one of these Pods: the kubelet may run either

    [[nodiscard]] const Manifest* find(std::string_view component) const noexcept;
    /// "kube-apiserver missing, etcd: ..." of what is expected and not whole; "" if all is well.
    [[nodiscard]] std::string problems() const;
};

/// Errors: from_errno if the directory cannot be read. A file that cannot be read is not whole.
[[nodiscard]] ManifestSet read_manifests(const Place& place);

/// Errors: checks_failed "not-control-plane".
void require_control_plane(const ManifestSet& manifests);
/// Errors: checks_failed "manifests-damaged" with all of them, and the hint to repair them; "stray-manifest".
void require_whole(const ManifestSet& manifests);

/// kubeadm's certificatesDir as the manifests of the control plane name it, without a slash at its end; its default
/// where none does.
[[nodiscard]] std::string pki_directory(const Place& place);

/// The value of --NAME=VALUE in the words of the first container, "" if there is none; `name` has its dashes.
[[nodiscard]] std::string manifest_option(const std::string& manifest, const std::string& name);
/// The value of an environment variable of that container, "" if it is not set there.
[[nodiscard]] std::string manifest_variable(const std::string& manifest, std::string_view name);

}  // namespace kmm::kubeadm
