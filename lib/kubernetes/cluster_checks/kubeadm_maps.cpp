// SPDX-License-Identifier: Apache-2.0
// The ConfigMaps of components that kubeadm reads beside its own.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/field_types.hpp"
#include "kubernetes/cluster_checks/kubeadm_problems.hpp"
#include "kubernetes/finding/configuration.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::string_view k_proxy_group = "kubeproxy.config.k8s.io/", k_proxy_version = "v1alpha1";

/// Why kubeadm ends at the document, "" if it does not.
std::string document_problem(const Node& root) {
    if (root.is_null()) { return "expected apiVersion GROUP/VERSION and kind, found an empty document"; }
    const auto version = root.get_string({"apiVersion"});
    if (version.find('/') == std::string::npos || root.get_string({"kind"}).empty()) {
        return "expected apiVersion GROUP/VERSION and kind";
    }
    if (version.starts_with(k_proxy_group) && version.substr(k_proxy_group.size()) != k_proxy_version) {
        return fmt::format("expected apiVersion {}{}, found '{}'", k_proxy_group, k_proxy_version,
                           base::escape(version));
    }
    return {};
}

/// The documents of `text` as kubeadm splits it: comments and blanks before a "---" are a document of their own, and a
/// "---" with nothing before it belongs to what follows.
std::vector<std::string> split_documents(std::string_view text) {
    std::vector<std::string> documents;
    std::string document;
    while (!text.empty()) {
        const auto line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
        text.remove_prefix(line.size());
        const auto after = line.starts_with("---") ? base::trim(line.substr(3)) : line;
        const bool is_separator = line.starts_with("---") && (after.empty() || after.front() == '#');
        if (!is_separator || document.empty()) {
            document += line;
        } else {
            documents.push_back(std::move(document));
            document.clear();
        }
    }
    if (!document.empty()) { documents.push_back(std::move(document)); }
    return documents;
}

/// Why kubeadm ends at the documents of `text`, which is YAML; "" if it does not.
std::string documents_problem(std::string_view text) {
    std::set<std::string> kinds;
    for (const auto& part : split_documents(text)) {
        Diagnostics faults;
        std::vector<std::string> repeated;
        const auto documents = read_as_kubeadm(part, "document", faults, repeated);
        const auto root = documents.empty() ? Node() : documents.front().root;
        if (auto problem = document_problem(root); !problem.empty()) { return problem; }
        const auto kind = root.get_string({"kind"});
        if (!kinds.insert(kind).second) { return fmt::format("kind {} is given twice", base::escape(kind)); }
    }
    return {};
}

/// nullptr if kube-system has none of that name.
const ConfigMapObject* system_map(const Inventory& inventory, std::string_view name) {
    const auto& maps = inventory.config_maps;
    const auto map = std::find_if(maps.begin(), maps.end(), [&](const auto& each) {
        return each.meta.ns == "kube-system" && each.meta.name == name;
    });
    return map == maps.end() ? nullptr : &*map;
}

/// A cluster may do without it; one that is there is read, whatever runs.
void look_at_proxy_map(const CheckInput& input, Problems& problems) {
    const auto* map = system_map(input.inventory, "kube-proxy");
    if (map == nullptr) { return; }
    const auto fail = [&](std::string_view what) {
        problems.add(fmt::format("ConfigMap kube-system/kube-proxy: {}", what),
                     input.seen.proxies.empty()
                         ? "kubectl delete configmap -n kube-system kube-proxy: nothing uses it"
                         : "correct config.conf: kubeadm init phase addon kube-proxy --print-manifest shows its form");
    };
    const auto text = map->data.find("config.conf");
    if (text == map->data.end()) { return fail("it has no key config.conf"); }
    Diagnostics faults;
    std::vector<std::string> repeated;
    (void)read_as_kubeadm(text->second, "kube-proxy/config.conf", faults, repeated);
    if (!faults.empty()) {
        return fail(faults.front().position
                        ? fmt::format("{}: {}", faults.front().position->to_string(), faults.front().message)
                        : faults.front().message);
    }
    const auto problem = documents_problem(text->second);
    if (!problem.empty()) { return fail("config.conf: " + problem); }
    const auto configuration = proxy_config_map(input.inventory);
    if (!configuration.root) { return; }
    for (const auto& wrong : wrong_proxy_fields(*configuration.root)) { fail("config.conf: " + wrong); }
}

/// That it is YAML, and of which kind, is asked by kubelet-config-cm.
void look_at_kubelet_map(const CheckInput& input, Problems& problems) {
    if (!kubelet_config_map(input.inventory).root) { return; }
    const auto problem = documents_problem(system_map(input.inventory, "kubelet-config")->data.at("kubelet"));
    if (problem.empty()) { return; }
    problems.add(fmt::format("ConfigMap kube-system/kubelet-config: kubelet: {}", problem),
                 "kubectl edit configmap -n kube-system kubelet-config: kubelet is one document, with nothing before "
                 "its \"---\" nor after another");
}

}  // namespace

void look_at_component_maps(const CheckInput& input, Problems& problems) {
    look_at_proxy_map(input, problems);
    look_at_kubelet_map(input, problems);
}

}  // namespace kmm::kubernetes
