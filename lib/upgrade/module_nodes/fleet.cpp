// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/fleet.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/linux_nodes.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/find_named.hpp"
#include "upgrade/module_nodes/wanted.hpp"
#include "upgrade/module_nodes/worker.hpp"

namespace kmm::drive {
namespace {

constexpr int k_attempts = 5;

std::optional<std::string> label_of(const api::Node& node, const std::string& key) {
    const auto found = node.meta.labels.find(key);
    if (found == node.meta.labels.end()) return std::nullopt;
    return found->second;
}

template <typename Entries>
std::optional<api::NodeModule> entry_of(const Entries& entries, const std::string& ns, const std::string& name) {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const api::NodeModule& entry) {
        return entry.namespace_ == ns && entry.name == name;
    });
    if (found == entries.end()) return std::nullopt;
    return *found;
}

/// What was not found may be in a document that cannot be read: then the faults are the error.
[[noreturn]] void refuse_missing(const cluster::Snapshot& snapshot, const Error& missing) {
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    throw missing;
}

/// nullopt if it was deleted. Errors: the faults, where it may be in a document that cannot be read.
std::optional<api::Module> module_in(const cluster::Snapshot& snapshot, const std::string& ns,
                                     const std::string& name) {
    for (const auto& module : snapshot.objects.modules)
        if (module.meta.namespace_ == ns && module.meta.name == name) return module;
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    return std::nullopt;
}

}  // namespace

value::Node encode(const ModuleLabels& labels) {
    auto node = value::Node::mapping();
    if (labels.module) node.set("module", *labels.module);
    if (labels.worker) node.set("worker", *labels.worker);
    if (labels.schedule) node.set("schedule", *labels.schedule);
    if (labels.device) node.set("device", *labels.device);
    return node;
}

ModuleLabels decode_module_labels(const value::Node& node) {
    const auto text = [&](std::string_view key) -> std::optional<std::string> {
        const auto* found = node.find(key);
        if (found == nullptr) return std::nullopt;
        return found->text();
    };
    return ModuleLabels{text("module"), text("worker"), text("schedule"), text("device")};
}

ModuleLabels module_labels_of(const api::Node& node, const std::string& ns, const std::string& name) {
    return ModuleLabels{label_of(node, api::label_version_module(ns, name)),
                         label_of(node, api::label_version_worker_pod(ns, name)),
                         label_of(node, api::label_version_schedule_pod(ns, name)),
                         label_of(node, api::label_version_device_plugin(ns, name))};
}

NodeView view_of(const api::Objects& objects, const std::string& node, const std::string& ns, const std::string& name) {
    const auto* found = plan::find_named(objects.nodes, node);
    if (found == nullptr)
        throw Error(Exit::not_found, "node-not-found", fmt::format("node {} is not in the cluster", node));
    NodeView view;
    view.node = *found;
    view.labels = module_labels_of(*found, ns, name);
    view.ready = label_of(*found, api::label_ready(ns, name));
    view.version_ready = label_of(*found, api::label_version_ready(ns, name));
    if (const auto* config = plan::find_named(objects.node_modules_configs, node); config != nullptr) {
        view.spec = entry_of(config->spec, ns, name);
        view.status = entry_of(config->status, ns, name);
    }
    return view;
}

NodeView Fleet::view(const std::string& node) {
    const auto snapshot = store_.read_about({node, "", ""});
    try {
        return view_of(snapshot.objects, node, namespace_, name_);
    } catch (const Error& missing) {
        refuse_missing(snapshot, missing);
    }
}

void Fleet::require_readable(const std::string& node) {
    const auto snapshot = store_.read_about({node, namespace_, name_});
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
}

std::optional<api::Module> Fleet::find_module() {
    return module_in(store_.read_about({"", namespace_, name_}), namespace_, name_);
}

api::Module Fleet::module_or_name() {
    if (auto found = find_module()) return std::move(*found);
    api::Module gone;
    gone.meta.namespace_ = namespace_;
    gone.meta.name = name_;
    return gone;
}

api::Module Fleet::module() {
    if (auto found = find_module()) return std::move(*found);
    throw Error(Exit::not_found, "module-not-found",
                fmt::format("Module {}/{} is not in {}", namespace_, name_, store_.describe()));
}

std::map<std::string, std::string> Fleet::unavailable() {
    const auto snapshot = store_.read();
    const auto& objects = snapshot.objects;
    const auto wanted = module_in(snapshot, namespace_, name_);
    std::map<std::string, std::string> names;
    for (const auto& node : objects.nodes) {
        if (!api::runs_linux(node) || (wanted && !plan::selects(wanted->selector, node.meta.labels))) continue;
        if (!wanted) {
            const auto there = view_of(objects, node.meta.name, namespace_, name_);
            if (!there.spec && !there.status) continue;
        }
        if (node.unschedulable) names[node.meta.name] = "cordoned";
        else if (node.ready && *node.ready != "True") names[node.meta.name] = "not ready";
    }
    return names;
}

std::optional<api::Secret> Fleet::secret(const std::string& name) {
    if (name.empty()) return std::nullopt;
    const auto snapshot = store_.read();
    for (const auto& secret : snapshot.objects.secrets)
        if (secret.meta.namespace_ == namespace_ && secret.meta.name == name) return secret;
    refuse_missing(snapshot, Error(Exit::not_found, "secret-not-found",
                                   fmt::format("pull Secret {}/{} is not in {}", namespace_, name, store_.describe()))
                                 .hint("create it, or remove spec.imageRepoSecret from the Module"));
}

void Fleet::set_label(const std::string& node, const std::string& key, const std::optional<std::string>& value) {
    for (int attempt = 1;; ++attempt) {
        const auto current = label_of(view(node).node, key);
        if (current == value) return;
        try {
            store_.patch_node_labels(node, {{key, value}}, {{key, current}});
            return;
        } catch (const Error& error) {
            if (error.code() != "conflict" || attempt == k_attempts) throw;
        }
    }
}

void Fleet::set_module(const std::string& node, const std::optional<std::string>& version) {
    set_label(node, api::label_version_module(namespace_, name_), version);
}

void Fleet::add_schedule(const std::string& node, const std::optional<std::string>& worker,
                         const std::optional<std::string>& schedule, const std::optional<std::string>& device) {
    set_label(node, api::label_version_worker_pod(namespace_, name_), worker);
    set_label(node, api::label_version_schedule_pod(namespace_, name_), schedule);
    set_label(node, api::label_version_device_plugin(namespace_, name_), device);
}

void Fleet::remove_schedule(const std::string& node) {
    set_label(node, api::label_version_schedule_pod(namespace_, name_), std::nullopt);
    set_label(node, api::label_version_device_plugin(namespace_, name_), std::nullopt);
    set_label(node, api::label_version_worker_pod(namespace_, name_), std::nullopt);
}

void Fleet::set_ready(const std::string& node, const std::string& version) {
    set_label(node, api::label_ready(namespace_, name_), "");
    set_label(node, api::label_version_ready(namespace_, name_),
              version.empty() ? std::nullopt : std::optional<std::string>(version));
}

void Fleet::remove_ready(const std::string& node) {
    set_label(node, api::label_version_ready(namespace_, name_), std::nullopt);
    set_label(node, api::label_ready(namespace_, name_), std::nullopt);
}

void Fleet::remove_plugin_labels(const std::string& node) {
    set_label(node, api::label_device_plugin_target(namespace_, name_), std::nullopt);
    set_label(node, api::label_device_plugin_ready(namespace_, name_), std::nullopt);
    set_label(node, api::label_dra_ready(namespace_, name_), std::nullopt);
}

void Fleet::put_spec(const std::string& node, const std::optional<api::NodeModule>& entry) {
    if (view(node).spec == entry) return;
    store_.put_node_module(node, namespace_, name_, std::optional<std::optional<api::NodeModule>>(entry), std::nullopt);
}

void Fleet::put_status(const std::string& node, const std::optional<api::NodeModule>& entry) {
    if (view(node).status == entry) return;
    store_.put_node_module(node, namespace_, name_, std::nullopt, std::optional<std::optional<api::NodeModule>>(entry));
}

void Fleet::put_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                     const std::string& architecture) {
    const auto current = view(node).node;
    if (current.kernel_version == kernel && current.boot_id == boot_id && current.architecture == architecture) return;
    store_.put_node_info(node, kernel, boot_id, architecture);
}

bool is_in_place(const NodeView& view, const api::NodeModule& entry, const std::string& to,
                 const std::string& boot_id) {
    auto status = entry;
    status.boot_id = boot_id;
    const auto version = to.empty() ? std::nullopt : std::optional<std::string>(to);
    return view.spec == entry && view.status == status && view.labels.module == version &&
           view.labels.worker == version && view.labels.schedule == version && view.ready == std::string() &&
           view.version_ready == version && !view.labels.device;
}

bool begins_with_unload(const NodeView& view, const api::NodeModule& entry, const std::string& to, bool is_live,
                        bool is_target) {
    const bool other_labels = (view.labels.worker && view.labels.worker != to) ||
                              (view.labels.schedule && view.labels.schedule != to) || view.labels.device.has_value();
    const bool other_entry =
        (view.spec && *view.spec != entry) ||
        (view.status && (view.status->config != entry.config || view.status->version != entry.version));
    return other_labels || other_entry || (is_live && !is_target);
}

void require_unguarded(const std::optional<plan::Guard>& guard) {
    if (guard) throw Error(Exit::checks_failed, guard->code, guard->message).hint(guard->hint);
}

void Fleet::require_unloadable(const std::string& node, const std::string& boot_id) {
    auto objects = store_.read_about({node, "", ""}).objects;
    // Of the other Modules those matter that are loaded there: with them alone the cost is that of the node, not of the
    // fleet.
    std::vector<api::Module> others;
    for (const auto& loaded : plan::loaded_modules(objects, node, boot_id)) {
        if (auto other =
                module_in(store_.read_about({"", loaded.namespace_, loaded.name}), loaded.namespace_, loaded.name))
            others.push_back(std::move(*other));
    }
    objects.modules = std::move(others);
    require_unguarded(plan::unload_guard(objects, module_or_name(), node, boot_id));
}

void Fleet::require_loadable(const std::string& node, const std::string& boot_id) {
    require_unguarded(plan::load_guard(store_.read_about({node, namespace_, name_}).objects, module(), node, boot_id));
}

api::NodeModule make_entry(const api::Module& module, const plan::Resolved& resolved) {
    api::NodeModule entry;
    entry.name = module.meta.name;
    entry.namespace_ = module.meta.namespace_;
    entry.config = resolved.config;
    if (module.module_loader) {
        entry.service_account_name = module.module_loader->service_account_name;
        entry.version = module.module_loader->container.version;
    }
    if (entry.service_account_name.empty()) entry.service_account_name = "default";
    entry.image_repo_secret = module.image_repo_secret;
    entry.tolerations = plan::loader_tolerations(module);
    return entry;
}

api::NodeModule resolve_entry(const api::Module& module, const std::string& kernel) {
    const auto resolution = plan::resolve(module, kernel);
    if (const auto* resolved = std::get_if<plan::Resolved>(&resolution)) return make_entry(module, *resolved);
    if (const auto* fault = std::get_if<plan::MappingFault>(&resolution)) {
        Error error(Exit::checks_failed, fault->diagnostic.code, fault->diagnostic.message);
        if (fault->diagnostic.position) error.at(*fault->diagnostic.position);
        if (!fault->diagnostic.hint.empty()) error.hint(fault->diagnostic.hint);
        throw error;
    }
    throw Error(Exit::checks_failed, "no-mapping",
                fmt::format("no kernel mapping of Module {} matches kernel {}", module.full_name(), kernel))
        .at(module.meta.origin)
        .hint("add a mapping for it to spec.moduleLoader.container.kernelMappings");
}

void require_still_wanted(const api::Module& module, const std::string& node) {
    if (!module.meta.deleting) return;
    constexpr std::string_view k_again = "wait until it is gone and create it again";
    constexpr std::string_view k_apply = "kmm-upgrade apply unloads it everywhere";
    throw Error(Exit::checks_failed, "module-deleting", fmt::format("Module {} is being deleted", module.full_name()))
        .at(module.meta.origin)
        .hint(node.empty()
                  ? fmt::format("{}; {}", k_again, k_apply)
                  : fmt::format("{}, then kmm-upgrade retry {}; kmm-upgrade abort, then {}", k_again, node, k_apply));
}

void require_wanted(const api::Module& module) { require_still_wanted(module, ""); }

void require_version(const api::Module& module, const std::string& version) {
    if (!module.module_loader)
        throw Error(Exit::checks_failed, "no-module-loader",
                    fmt::format("Module {} loads no kernel module", module.full_name()))
            .at(module.meta.origin);
    const auto& container = module.module_loader->container;
    if (container.version == version) return;
    const auto place = container.version_origin.file.empty() ? module.meta.origin : container.version_origin;
    throw Error(
        Exit::checks_failed, "version-mismatch",
        container.version.empty()
            ? fmt::format("Module {} has no version, expected {}", module.full_name(), version)
            : fmt::format("Module {} is at version {}, expected {}", module.full_name(), container.version, version))
        .at(place)
        .hint("set spec.moduleLoader.container.version and the image of the new version in the Module first");
}

const api::NodeModule* entry_there(const NodeView& view) {
    return view.status ? &*view.status : view.spec ? &*view.spec : nullptr;
}

void require_name(const NodeView& view, const std::string& module, const std::string& kernel_module) {
    require_unguarded(plan::rename_guard(module, kernel_module, entry_there(view)));
}

void require_name(const api::Module& module, const std::string& kernel_module) {
    const auto now = kernel_module_name(module.module_loader->container.modprobe.module_name);
    if (now == kernel_module) return;
    throw Error(Exit::checks_failed, "module-renamed",
                fmt::format("Module {} names {} now, and this run covers {}", module.full_name(), now, kernel_module))
        .at(module.meta.origin)
        .hint("give the Module its moduleName back and retry, or: kmm-upgrade abort");
}

}  // namespace kmm::drive
