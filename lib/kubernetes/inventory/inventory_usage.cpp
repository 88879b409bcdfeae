// SPDX-License-Identifier: Apache-2.0
// What objects say of APIs that go, and of CoreDNS.
#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/gzip.hpp"
#include "kubernetes/inventory/object_reader.hpp"
#include "kubernetes/inventory/removed_apis.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::string_view k_last_applied = "kubectl.kubernetes.io/last-applied-configuration";
/// Of a release: etcd takes 1.5 MiB of what it packs to. Whoever may write a Secret somewhere may write one that
/// unpacks to much more: text, and values in it beside its manifest.
constexpr std::size_t k_release_max = 32U << 20U, k_release_values_max = 300'000;
/// Of one object of a manifest; a reader of YAML takes more than a hundred times its text.
constexpr std::size_t k_object_max = 2U << 20U, k_object_values_max = 300'000;

void note(std::vector<UsedApi>& used, std::string object, std::string_view group_version, std::string_view kind,
          std::string by, UsedApi::Where where) {
    const auto* removed = find_removed_api(group_version, kind);
    if (removed == nullptr) { return; }
    UsedApi made{std::move(object), std::string(kind), std::move(by), where, removed};
    if (std::find(used.begin(), used.end(), made) == used.end()) { used.push_back(std::move(made)); }
}

/// Whether it is a part of Kubernetes, which is upgraded itself: each writes with an API of its own version, and what
/// it wrote long ago keeps that mark.
bool is_own_manager(std::string_view manager) {
    static constexpr std::string_view k_own[] = {"kube-apiserver",
                                                 "kube-controller-manager",
                                                 "kube-scheduler",
                                                 "kubelet",
                                                 "kubeadm",
                                                 "api-priority-and-fairness-config-consumer-v1",
                                                 "api-priority-and-fairness-config-producer-v1"};
    return std::find(std::begin(k_own), std::end(k_own), manager) != std::end(k_own);
}

bool names_removed_version(std::string_view text) {
    return std::any_of(removed_apis().begin(), removed_apis().end(), [&](const auto& api) {
        return text.find(fmt::format("\"{}\"", api.group_version)) != std::string_view::npos;
    });
}

void read_last_applied(const std::string& text, const std::string& object, std::vector<UsedApi>& used) {
    Diagnostics faults;
    for (const auto& document : value::read_json(text, std::string(k_last_applied), faults)) {
        note(used, object, document.root.get_string({"apiVersion"}), document.root.get_string({"kind"}),
             "was applied as", UsedApi::Where::object);
    }
}

void read_rules(const Node& webhook, const std::string& object, std::vector<UsedApi>& used) {
    const auto* rules = webhook.find("rules");
    if (rules == nullptr) { return; }
    for (const auto& rule : rules->items()) {
        const auto versions = rule.get_texts({"apiVersions"});
        const auto resources = rule.get_texts({"resources"});
        for (const auto& group : rule.get_texts({"apiGroups"})) {
            for (const auto& api : removed_apis()) {
                for (const auto kind : base::split(api.kinds, ' ')) {
                    if (std::find(resources.begin(), resources.end(), plural_of(kind)) == resources.end()) { continue; }
                    // A rule that names a version which stays as well goes on to match.
                    const auto goes = [&](const auto& version) {
                        return find_removed_api(fmt::format("{}/{}", group, version), kind) != nullptr;
                    };
                    if (!std::all_of(versions.begin(), versions.end(), goes)) { continue; }
                    for (const auto& version : versions) {
                        if (api.group_version == fmt::format("{}/{}", group, version)) {
                            note(used, object, api.group_version, kind,
                                 fmt::format("has a rule of {} for", base::escape(webhook.get_string({"name"}))),
                                 UsedApi::Where::object);
                        }
                    }
                }
            }
        }
    }
}

/// The text of a revision, nullopt if it is not one.
std::optional<std::string> release_text(const std::string& encoded, bool is_secret) {
    auto bytes = base::from_base64(encoded);
    if (bytes && is_secret) { bytes = base::from_base64(*bytes); }
    if (!bytes) { return std::nullopt; }
    // Helm 2 and early betas of 3 did not pack it.
    return base::is_gzip(*bytes) ? base::from_gzip(*bytes, k_release_max) : bytes;
}

/// Whether the member is absent, or equal to the JSON text.
bool is_default(const Node* in, std::string_view key, std::initializer_list<std::string_view> texts) {
    const Node* found = in == nullptr ? nullptr : in->find(key);
    if (found == nullptr || found->is_null() || (found->is_mapping() && found->members().empty()) ||
        (found->is_sequence() && found->items().empty())) {
        return true;
    }
    return std::any_of(texts.begin(), texts.end(), [&](auto text) {
        Diagnostics faults;
        const auto documents = value::read_json(text, "default", faults);
        return !documents.empty() && documents.front().root.same_value(*found);
    });
}

/// "NAMESPACE/NAME", with the revision if it is not deployed.
std::string name_of(const ReleaseObject& release) {
    const auto name = fmt::format("{}/{}", base::escape(release.meta.ns), base::escape(release.release));
    return release.status == "deployed"
               ? name
               : fmt::format("{} (revision {}, {})", name, release.revision,
                             release.status.empty() ? "of unknown status" : base::escape(release.status));
}

/// The manifest of a revision; nullopt if it cannot be read.
std::optional<std::string> manifest_of(const std::string& encoded, bool is_secret, const std::string& name) {
    const auto text = release_text(encoded, is_secret);
    if (!text) { return std::nullopt; }
    Diagnostics faults;
    value::ReadLimits limits;
    limits.bytes_max = k_release_max;
    limits.json_nodes_max = k_release_values_max;
    const auto documents = value::read_json(*text, name, faults, limits);
    const auto* manifest = documents.size() == 1 && faults.empty() ? documents.front().root.find("manifest") : nullptr;
    if (manifest == nullptr || !manifest->is_string()) { return std::nullopt; }
    return manifest->text();
}

/// Gives `take` the pieces of a manifest in turn: Helm parts its objects with lines "---".
template <typename Take>
bool each_piece(std::string_view manifest, Take&& take) {
    for (std::size_t begin = 0; begin <= manifest.size();) {
        const std::size_t next = manifest.find("\n---", begin);
        const std::size_t end = next == std::string_view::npos ? manifest.size() : next + 1;
        if (!take(manifest.substr(begin, end - begin))) { return false; }
        begin = next == std::string_view::npos ? manifest.size() + 1 : end;
    }
    return true;
}

/// What the manifest of a revision of Helm names of such APIs; `encoded` is the member `release` of the object that
/// Helm keeps it in, of a Secret or of a ConfigMap. False if it cannot be read.
bool read_release_apis(const std::string& encoded, bool is_secret, const std::string& name,
                       std::vector<UsedApi>& used) {
    const auto manifest = manifest_of(encoded, is_secret, name);
    if (!manifest) { return false; }
    const auto take = [&](const Node& object) {
        note(used, name, object.get_string({"apiVersion"}), object.get_string({"kind"}), "has",
             UsedApi::Where::release);
    };
    value::ReadLimits limits;
    limits.bytes_max = k_object_max;
    limits.nodes_max = limits.json_nodes_max = k_object_values_max;
    return each_piece(*manifest, [&](std::string_view piece) {
        Diagnostics faults;
        const auto objects = value::read_yaml(piece, name, faults, limits);
        if (has_errors(faults)) { return false; }
        for (const auto& object : objects) {
            if (!object.root.is_mapping()) { continue; }
            take(object.root);
            const auto* items = object.root.find("items");
            if (items == nullptr) { continue; }
            for (const auto& item : items->items()) { take(item); }
        }
        return true;
    });
}

}  // namespace

void read_used_apis(const Node& object, const std::string& kind, std::vector<UsedApi>& used) {
    const auto name = [&] {
        const auto ns = object.get_string({"metadata", "namespace"});
        return fmt::format("{} {}{}{}", base::escape(kind), base::escape(ns), ns.empty() ? "" : "/",
                           base::escape(object.get_string({"metadata", "name"})));
    };
    if (const auto* applied = object.find_path({"metadata", "annotations", k_last_applied});
        applied != nullptr && applied->is_string()) {
        if (names_removed_version(applied->text())) { read_last_applied(applied->text(), name(), used); }
    }
    if (!is_removable(kind) && kind != "HorizontalPodAutoscaler") { return; }
    if (const auto* fields = object.find_path({"metadata", "managedFields"}); fields != nullptr) {
        for (const auto& entry : fields->items()) {
            const auto manager = entry.get_string({"manager"});
            if (is_own_manager(manager)) { continue; }
            note(used, name(), entry.get_string({"apiVersion"}), kind,
                 fmt::format("was written by {} as", base::escape(manager)), UsedApi::Where::object);
        }
    }
    if (kind == "HorizontalPodAutoscaler") {
        note(used, name(), object.get_string({"spec", "scaleTargetRef", "apiVersion"}),
             object.get_string({"spec", "scaleTargetRef", "kind"}), "scales a target of", UsedApi::Where::object);
    }
    if (kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration") {
        if (const auto* webhooks = object.find("webhooks")) {
            for (const auto& webhook : webhooks->items()) { read_rules(webhook, name(), used); }
        }
    }
}

void take_release(const Node& object, const ObjectMeta& meta, bool is_secret, Inventory& taken) {
    auto release = release_of(meta);
    if (!release) { return; }
    const Node* text = object.find_path({"data", "release"});
    if (release->is_current() && text != nullptr && text->is_string()) {
        release->is_unread = !read_release_apis(text->text(), is_secret, name_of(*release), release->used);
    }
    taken.releases.push_back(std::move(*release));
}

std::vector<const ReleaseObject*> current_revisions(const std::vector<ReleaseObject>& releases) {
    std::map<std::pair<std::string_view, std::string_view>, const ReleaseObject*> last;
    for (const auto& each : releases) {
        auto& place = last[{each.meta.ns, each.release}];
        if (place == nullptr || place->revision < each.revision) { place = &each; }
    }
    std::vector<const ReleaseObject*> found;
    for (const auto& each : releases) {
        if (each.status == "deployed" || (each.is_current() && last[{each.meta.ns, each.release}] == &each)) {
            found.push_back(&each);
        }
    }
    return found;
}

void keep_release_apis(Inventory& inventory) {
    for (const auto* each : current_revisions(inventory.releases)) {
        if (each->is_unread) { inventory.unread_releases.push_back(name_of(*each)); }
        inventory.used_apis.insert(inventory.used_apis.end(), each->used.begin(), each->used.end());
    }
    for (auto& each : inventory.releases) {
        each.used.clear();
        each.is_unread = false;
    }
}

bool has_label_of_dns(const Labels& labels) noexcept {
    const auto* app = find_label(labels, "k8s-app");
    return app != nullptr && *app == "kube-dns";
}

CoreDnsObject core_dns_of(ObjectReader& reader, const Node& object, ObjectMeta meta) {
    CoreDnsObject made;
    made.meta = std::move(meta);
    made.is_dns = has_label_of_dns(made.meta.labels);
    const Node* spec = reader.mapping(reader.mapping(reader.mapping(&object, "spec"), "template"), "spec");
    const auto differs = [&](bool is_same, const char* what) {
        if (!is_same) { made.differing.emplace_back(what); }
    };
    // What kubeadm of v1.25 to v1.35 writes, with the defaults of the API server.
    differs(
        is_default(
            spec, "affinity",
            {R"({"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"podAffinityTerm":{"labelSelector":
        {"matchExpressions":[{"key":"k8s-app","operator":"In","values":["kube-dns"]}]},"topologyKey":"kubernetes.io/hostname"},"weight":100}]}})"}),
        "affinity");
    differs(is_default(spec, "nodeSelector", {R"({"kubernetes.io/os":"linux"})"}), "nodeSelector");
    differs(
        is_default(
            spec, "tolerations",
            {R"([{"key":"CriticalAddonsOnly","operator":"Exists"},{"effect":"NoSchedule","key":"node-role.kubernetes.io/control-plane"}])",
             R"([{"key":"CriticalAddonsOnly","operator":"Exists"},{"effect":"NoSchedule","key":"node-role.kubernetes.io/master"},
        {"effect":"NoSchedule","key":"node-role.kubernetes.io/control-plane"}])"}),
        "tolerations");
    differs(is_default(spec, "topologySpreadConstraints", {}), "topologySpreadConstraints");
    differs(is_default(spec, "hostNetwork", {"false"}), "hostNetwork");
    differs(is_default(spec, "initContainers", {}), "initContainers");
    differs(is_default(spec, "imagePullSecrets", {}), "imagePullSecrets");
    differs(is_default(spec, "dnsPolicy", {R"("Default")"}), "dnsPolicy");
    differs(is_default(spec, "priorityClassName", {R"("system-cluster-critical")"}), "priorityClassName");
    differs(reader.list(spec, "volumes").size() <= 1, "volumes");
    const auto& containers = reader.list(spec, "containers");
    differs(containers.size() == 1, "containers");
    if (!containers.empty()) { made.image = reader.text(&containers.front(), "image"); }
    for (const auto& container : containers) {
        if (reader.text(&container, "name") != "coredns") { continue; }
        differs(is_default(&container, "resources",
                           {R"({"limits":{"memory":"170Mi"},"requests":{"cpu":"100m","memory":"70Mi"}})"}),
                "resources");
        differs(is_default(&container, "args", {R"(["-conf","/etc/coredns/Corefile"])"}), "args");
        differs(is_default(&container, "env", {}), "env");
    }
    return made;
}

}  // namespace kmm::kubernetes
