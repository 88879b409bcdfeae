// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/manifests.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::kubeadm {
namespace {

/// Files that a worker does not have. kubeadm takes a node without the API server's manifest for a worker; this does
/// not. admin.conf is copied to workers, for kubectl.
constexpr const char* k_control_plane_files[] = {"/etc/kubernetes/controller-manager.conf",
                                                 "/etc/kubernetes/scheduler.conf", "/etc/kubernetes/pki/apiserver.crt"};

std::optional<value::Node> only_document(const std::string& text) {
    Diagnostics faults;
    auto documents = value::read_yaml(text, "", faults);
    if (!faults.empty() || documents.size() != 1 || !documents.front().root.is_mapping()) return std::nullopt;
    return std::move(documents.front().root);
}

/// metadata.name of the Pod that the kubelet would run from `text`: it reads the first document, accepts equal keys,
/// and ignores what follows.
std::string declared_name(const std::string& text) {
    Diagnostics ignored;
    const auto documents = value::read_yaml(text, "", ignored);
    return documents.empty() ? std::string() : documents.front().root.get_string({"metadata", "name"});
}

const value::Node* container_of(const value::Node& pod, std::string_view name) {
    const value::Node* containers = pod.find_path({"spec", "containers"});
    if (containers == nullptr) return nullptr;
    for (const value::Node& container : containers->items()) {
        if (container.get_string({"name"}) == name) return &container;
    }
    return nullptr;
}

/// Whether the API server of this manifest asks an etcd on this node. The list of servers may name every member: then
/// this node has one if kubeadm has given it a member's certificate.
bool uses_local_etcd(const Place& place, const std::string& text) {
    const auto servers = base::to_lower(manifest_option(text, "--etcd-servers"));
    const auto names = [&](const std::string& host) {
        return servers.find(fmt::format("//{}:", host)) != std::string::npos;
    };
    if (servers.empty() || names("127.0.0.1") || names("localhost") || names("[::1]")) return true;
    const auto own = base::to_lower(manifest_option(text, "--advertise-address"));
    return !own.empty() && (names(own) || names(fmt::format("[{}]", own))) &&
           place.exists(pki_directory(place) + "/etcd/server.crt");
}

bool etcd_is_expected(const Place& place, const ManifestSet& set) {
    if (set.find("etcd")->present) return true;
    const Manifest& apiserver = *set.find("kube-apiserver");
    if (apiserver.whole) return uses_local_etcd(place, place.read(apiserver.path));
    return place.exists(pki_directory(place) + "/etcd/server.crt");
}

bool looks_like_control_plane(const Place& place, const ManifestSet& set) {
    if (std::any_of(set.pods.begin(), set.pods.end(), [](const Manifest& pod) { return pod.present; })) return true;
    return std::any_of(std::begin(k_control_plane_files), std::end(k_control_plane_files),
                       [&](const char* file) { return place.exists(file); });
}

void find_strays(const Place& place, ManifestSet& set) {
    for (const std::string& name : place.list(k_manifest_directory)) {
        const std::string path = std::string(k_manifest_directory) + "/" + name;
        const bool is_ours =
            std::any_of(set.pods.begin(), set.pods.end(), [&](const Manifest& pod) { return pod.path == path; });
        if (is_ours || name.starts_with('.')) continue;  // the kubelet passes over hidden files, too
        std::string declared;
        try {
            declared = declared_name(place.read(path));
        } catch (const Error&) {
            continue;  // a directory, or gone
        }
        if (std::find(std::begin(k_static_pods), std::end(k_static_pods), declared) != std::end(k_static_pods))
            set.strays.push_back({path, declared});
    }
}

/// That of the component, else the first; nullptr without any.
const value::Node* own_container(const value::Node& pod) {
    const auto* containers = pod.find_path({"spec", "containers"});
    if (containers == nullptr || containers->items().empty()) return nullptr;
    const auto* container = container_of(pod, pod.get_string({"metadata", "name"}));
    return container == nullptr ? &containers->items().front() : container;
}

}  // namespace

Manifest judge_manifest(std::string_view component, const std::string& path, const std::string& text) {
    Manifest manifest;
    manifest.component = component;
    manifest.path = path;
    manifest.present = true;
    const auto pod = only_document(text);
    if (!pod) {
        manifest.problem = base::trim(text).empty() ? "empty" : "not one YAML document";
        return manifest;
    }
    if (pod->get_string({"kind"}) != "Pod" || pod->get_string({"metadata", "name"}) != component) {
        manifest.problem =
            fmt::format("expected Pod {}, found {} '{}'", component,
                        pod->get_string({"kind"}).empty() ? "no kind" : base::escape(pod->get_string({"kind"})),
                        base::escape(pod->get_string({"metadata", "name"})));
        return manifest;
    }
    const value::Node* container = container_of(*pod, component);
    if (container == nullptr) {
        manifest.problem = fmt::format("has no container {}", component);
        return manifest;
    }
    manifest.image = container->get_string({"image"});
    manifest.version = kubernetes::Version::of_image(manifest.image);
    manifest.whole = manifest.version.has_value();
    if (manifest.whole) {
        const std::string name = manifest.image.substr(0, manifest.image.find('@'));
        manifest.tag = name.substr(name.rfind(':') + 1);
    }
    if (!manifest.whole)
        manifest.problem = manifest.image.empty()
                               ? "its container has no image"
                               : fmt::format("image '{}' has no version", base::escape(manifest.image));
    return manifest;
}

const Manifest* ManifestSet::find(std::string_view component) const noexcept {
    const auto found =
        std::find_if(pods.begin(), pods.end(), [&](const Manifest& pod) { return pod.component == component; });
    return found == pods.end() ? nullptr : &*found;
}

std::string ManifestSet::problems() const {
    std::vector<std::string> told;
    for (const Manifest& pod : pods) {
        if (pod.expected && !pod.whole)
            told.push_back(pod.present ? pod.component + ": " + pod.problem : pod.component + " missing");
    }
    return base::join(told, "; ");
}

ManifestSet read_manifests(const Place& place) {
    ManifestSet set;
    for (const std::string_view component : k_static_pods) {
        const std::string path = fmt::format("{}/{}.yaml", k_manifest_directory, component);
        Manifest manifest;
        try {
            if (const auto text = place.read_if_there(path)) {
                manifest = judge_manifest(component, path, *text);
            } else {
                manifest.problem = "missing";
            }
        } catch (const Error& error) {
            manifest.present = true;
            manifest.problem = error.what();
        }
        manifest.component = component;
        manifest.path = path;
        set.pods.push_back(std::move(manifest));
    }
    set.control_plane = looks_like_control_plane(place, set);
    for (Manifest& pod : set.pods) pod.expected = set.control_plane;
    if (set.control_plane) {
        const bool with_etcd = etcd_is_expected(place, set);
        set.pods.front().expected = with_etcd;
        if (!with_etcd) set.pods.front().problem.clear();
    }
    find_strays(place, set);
    return set;
}

void require_control_plane(const ManifestSet& manifests) {
    if (manifests.control_plane) return;
    throw Error(Exit::checks_failed, "not-control-plane",
                fmt::format("this node is not a control plane: it has no manifest in {} and no controller-manager.conf",
                            k_manifest_directory))
        .hint("kmm-worker kubernetes kubelet upgrades a worker");
}

void require_whole(const ManifestSet& manifests) {
    if (const std::string problems = manifests.problems(); !problems.empty()) {
        throw Error(Exit::checks_failed, "manifests-damaged",
                    fmt::format("the manifests of the control plane are not whole: {}", problems))
            .hint("kmm-worker kubernetes repair");
    }
    if (!manifests.strays.empty()) {
        const auto& stray = manifests.strays.front();
        throw Error(
            Exit::checks_failed, "stray-manifest",
            fmt::format("{} declares the Pod {}, too: the kubelet may run either", base::escape(stray.path), stray.pod))
            .hint("move it out of " + std::string(k_manifest_directory));
    }
}

std::string pki_directory(const Place& place) {
    struct Use {
        std::string_view component;
        const char* option;
        std::string_view file;  ///< below certificatesDir, as kubeadm calls it: another one is the administrator's
    };
    constexpr Use k_uses[] = {
        {"kube-apiserver", "--kubelet-client-certificate", "/apiserver-kubelet-client.crt"},
        {"kube-controller-manager", "--cluster-signing-key-file", "/ca.key"},
        {"etcd", "--trusted-ca-file", "/etcd/ca.crt"},
    };
    for (const auto& use : k_uses) {
        try {
            const auto manifest =
                place.read_if_there(fmt::format("{}/{}.yaml", k_manifest_directory, use.component));
            const auto path = manifest ? manifest_option(*manifest, use.option) : std::string();
            if (path.starts_with('/') && path.size() > use.file.size() && path.ends_with(use.file))
                return path.substr(0, path.size() - use.file.size());
        } catch (const Error&) {
            continue;  // read_manifests says so
        }
    }
    return "/etc/kubernetes/pki";
}

std::string manifest_option(const std::string& manifest, const std::string& name) {
    const auto pod = only_document(manifest);
    const auto* container = pod ? own_container(*pod) : nullptr;
    if (container == nullptr) return {};
    std::string option;
    bool is_next = false;  // --name VALUE
    for (const char* member : {"command", "args"}) {
        const value::Node* words = container->find(member);
        if (words == nullptr) continue;
        for (const value::Node& word : words->items()) {
            if (is_next) option = word.text();
            is_next = word.text() == name;
            if (word.text().starts_with(name + "=")) option = word.text().substr(name.size() + 1);
        }
    }
    return option;
}

std::string manifest_variable(const std::string& manifest, std::string_view name) {
    const auto pod = only_document(manifest);
    const auto* container = pod ? own_container(*pod) : nullptr;
    const auto* variables = container == nullptr ? nullptr : container->find("env");
    std::string found;
    if (variables == nullptr) return found;
    for (const value::Node& each : variables->items())
        if (each.get_string({"name"}) == name) found = each.get_string({"value"});
    return found;
}

}  // namespace kmm::kubeadm
