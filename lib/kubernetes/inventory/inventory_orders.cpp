// SPDX-License-Identifier: Apache-2.0
// Objects by which other programs change a cluster or its nodes. Sources: kustomize-controller and helm-controller
// (spec.suspend, spec.kubeConfig), Argo CD (spec.syncPolicy, spec.destination), kured (its lock).
#include <algorithm>
#include <array>

#include "base/number.hpp"
#include "kubernetes/inventory/object_reader.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

struct OrderKind {
    const char* kind;
    std::string_view group;
    const char* name;
};
constexpr std::array<OrderKind, 4> k_orders{
    OrderKind{"HelmRelease", "helm.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io"},
    OrderKind{"Kustomization", "kustomize.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io"},
    OrderKind{"Application", "argoproj.io", "applications.argoproj.io"},
    OrderKind{"Plan", "upgrade.cattle.io", "plans.upgrade.cattle.io"}};

bool is_true(const Node* node) { return node != nullptr && node->as_bool().value_or(false); }

/// Of Argo CD: what it applies by itself, and to the cluster that it runs in.
bool is_active_application(const Node& object) {
    const auto server = object.get_string({"spec", "destination", "server"});
    const auto name = object.get_string({"spec", "destination", "name"});
    const bool is_elsewhere = (!server.empty() && server != "https://kubernetes.default.svc") ||
                              (server.empty() && !name.empty() && name != "in-cluster");
    const Node* automated = object.find_path({"spec", "syncPolicy", "automated"});
    if (is_elsewhere || automated == nullptr || automated->is_null()) { return false; }
    const Node* enabled = automated->find("enabled");
    return enabled == nullptr || enabled->as_bool().value_or(true);
}

/// Without a time to live. With `--concurrency` kured writes a list of owners, and takes one owner for none.
std::string owner_of(const std::string& lock) {
    Diagnostics faults;
    const auto documents = value::read_any(lock, "", faults);
    if (!faults.empty() || documents.size() != 1) { return ""; }
    const Node& root = documents.front().root;
    const Node* lasts = root.find("TTL");
    const bool ends = lasts != nullptr && lasts->as_int().value_or(1) != 0;
    return ends ? "" : root.get_string({"nodeID"});
}

/// Whether the setting stands in an argument or in the environment of a container.
bool is_concurrent(const Node& container) {
    const auto names_it = [](std::string_view text) { return text.starts_with("--concurrency"); };
    for (const char* key : {"command", "args"}) {
        const Node* list = container.find(key);
        if (list == nullptr || !list->is_sequence()) { continue; }
        if (std::any_of(list->items().begin(), list->items().end(), [&](const Node& each) {
                return each.is_string() && names_it(each.text()) && each.text() != "--concurrency=1";
            })) {
            return true;
        }
    }
    const Node* env = container.find("env");
    return env != nullptr && env->is_sequence() &&
           std::any_of(env->items().begin(), env->items().end(),
                       [](const Node& each) { return each.get_string({"name"}) == "KURED_CONCURRENCY"; });
}

}  // namespace

const char* order_kind(std::string_view kind, std::string_view group) noexcept {
    const auto found = std::find_if(k_orders.begin(), k_orders.end(), [&](const OrderKind& each) {
        return each.kind == kind && (group.empty() || each.group == group);
    });
    return found == k_orders.end() ? nullptr : found->name;
}

const char* order_of_definition(std::string_view name) noexcept {
    const auto found =
        std::find_if(k_orders.begin(), k_orders.end(), [&](const OrderKind& each) { return each.name == name; });
    return found == k_orders.end() ? nullptr : found->kind;
}

bool is_kured(std::string_view image) noexcept {
    image = image.substr(0, image.find('@'));
    const auto slash = image.rfind('/');
    auto name = slash == std::string_view::npos ? image : image.substr(slash + 1);
    return name.substr(0, name.find(':')) == "kured";
}

OrderObject order_of(const Node& object, ObjectMeta meta, std::string kind) {
    OrderObject order{std::move(meta), std::move(kind), true};
    if (order.kind == "Application") {
        order.is_active = is_active_application(object);
    } else if (order.kind != "Plan") {
        order.is_active =
            !is_true(object.find_path({"spec", "suspend"})) && object.find_path({"spec", "kubeConfig"}) == nullptr;
    }
    return order;
}

std::optional<KuredObject> kured_of(const Node& object, const ObjectMeta& meta) {
    const Node* containers = object.find_path({"spec", "template", "spec", "containers"});
    if (containers == nullptr || !containers->is_sequence()) { return std::nullopt; }
    const auto& list = containers->items();
    const auto found =
        std::find_if(list.begin(), list.end(), [](const Node& each) { return is_kured(each.get_string({"image"})); });
    if (found == list.end()) { return std::nullopt; }
    const auto* lock = find_label(meta.annotations, "weave.works/kured-node-lock");
    return KuredObject{meta, lock == nullptr || is_concurrent(*found) ? std::string() : owner_of(*lock)};
}

void take_kured(const Node& daemon_set, Inventory& inventory) {
    ObjectMeta meta;
    meta.ns = daemon_set.get_string({"metadata", "namespace"});
    meta.name = daemon_set.get_string({"metadata", "name"});
    if (const Node* annotations = daemon_set.find_path({"metadata", "annotations"});
        annotations != nullptr && annotations->is_mapping()) {
        for (const auto& each : annotations->members()) { meta.annotations.emplace_back(each.key, each.value.text()); }
    }
    if (auto kured = kured_of(daemon_set, meta)) { inventory.kured_sets.push_back(std::move(*kured)); }
}

}  // namespace kmm::kubernetes
