// SPDX-License-Identifier: Apache-2.0
// NodeModulesConfig and the worker's ModuleConfig. Fields: kmm.schema, and for the worker's own file
// facts: KMM 7.1.
#include "api/codec.hpp"

#include <algorithm>
#include <iterator>

#include "api/decode.hpp"
#include "api/repeated_parts.hpp"
#include "api/schema_check.hpp"

namespace kmm::api {

namespace {

void throw_if_faulty(Diagnostics diagnostics) {
    if (has_errors(diagnostics)) { throw Error::from_diagnostics(std::move(diagnostics)); }
}

}  // namespace

ModuleConfig decode_config(Fields fields) {
    ModuleConfig config;
    config.container_image = fields.string("containerImage");
    config.image_pull_policy = fields.string("imagePullPolicy");
    config.insecure_pull = fields.boolean("insecurePull");
    config.kernel_version = fields.string("kernelVersion");
    const auto list = fields.strings("inTreeModulesToRemove");
    config.in_tree_modules_to_remove = list.value_or(std::vector<std::string>{});
    const std::string single = fields.string("inTreeModuleToRemove");
    if (!list) {
        config.in_tree_module_to_remove = single;
    }  // KMM's worker asks whether there is a list, not whether it is empty
    if (auto modprobe = fields.child("modprobe")) { config.modprobe = decode_modprobe(*modprobe); }
    fields.done();
    return config;
}

namespace {

/// Where fields belong that stand in the wrong mapping, as the check of objects says it.
void hint_at_unknown_fields(const value::Document& document, Diagnostics& faults) {
    const auto needs_hint = [](const Diagnostic& fault) { return fault.code == "unknown-field" && fault.hint.empty(); };
    if (std::none_of(faults.begin(), faults.end(), needs_hint)) { return; }
    Diagnostics checked;
    Scope scope{document, checked};
    check_part(scope, document.root, "NodeModuleConfig");
    for (auto& fault : faults) {
        if (!needs_hint(fault)) { continue; }
        const auto same = std::find_if(checked.begin(), checked.end(), [&](const Diagnostic& each) {
            return each.code == fault.code && each.position == fault.position;
        });
        if (same != checked.end()) { fault.hint = same->hint; }
    }
}

/// What `decode` makes of the member `key`, or made of the same text before.
template <typename T, typename Decode>
Shared<T> shared_part(const Fields& fields, std::string_view key, Decode&& decode) {
    RepeatedParts* repeats = fields.scope().repeats;
    const value::Node* found = repeats == nullptr ? nullptr : fields.node().find(key);
    const std::uint32_t number = found == nullptr ? 0 : repeats->number(*found);
    if (number == 0) { return Shared<T>(decode()); }
    if (const auto* known = repeats->find<Shared<T>>(number)) { return *known; }
    Shared<T> part(decode());
    repeats->note(number, part);
    return part;
}

}  // namespace

NodeModule decode_node_module_fields(Fields fields) {
    RepeatedParts* repeats = fields.scope().repeats;
    const std::uint32_t number = repeats == nullptr ? 0 : repeats->number(fields.node());
    if (const auto* known = number == 0 ? nullptr : repeats->find<NodeModule>(number)) {
        NodeModule entry = *known;
        if (const auto* boot_id = fields.node().find("bootId")) { entry.boot_id = boot_id->text(); }
        return entry;
    }
    NodeModule entry;
    entry.name = fields.string("name");
    entry.namespace_ = fields.string("namespace");
    entry.service_account_name = fields.string("serviceAccountName");
    entry.image_repo_secret = fields.name_of("imageRepoSecret");
    entry.tolerations =
        shared_part<Tolerations>(fields, "tolerations", [&] { return decode_tolerations(fields, "tolerations"); });
    entry.version = fields.string("version");
    entry.boot_id = fields.string("bootId");
    entry.config = shared_part<ModuleConfig>(fields, "config", [&] {
        auto config = fields.child("config");
        return config ? decode_config(*config) : ModuleConfig{};
    });
    if (number != 0) { repeats->note(number, entry); }
    return entry;
}

NodeModulesConfig decode_node_modules_config(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    NodeModulesConfig object;
    object.meta = decode_meta(fields, Residence::cluster);
    check_object(scope, root);
    for (const auto& [key, list] : {std::pair{"spec", &object.spec}, std::pair{"status", &object.status}}) {
        auto part = fields.child(key);
        if (!part) { continue; }
        auto items = part->items("modules");
        list->reserve(items.size());
        for (auto& item : items) {
            list->push_back(decode_node_module_fields(Fields(scope, *item.node, std::move(item.path))));
        }
    }
    return object;
}

ModuleConfig decode_module_config(const value::Document& document, Diagnostics& diagnostics) {
    Diagnostics found;
    Scope scope{document, found};
    scope.key_case = KeyCase::any;
    ModuleConfig config = decode_config(Fields(scope, document.root, ""));
    hint_at_unknown_fields(document, found);
    std::move(found.begin(), found.end(), std::back_inserter(diagnostics));
    return config;
}

NodeModule decode_node_module(const value::Node& node) {
    const value::Document document{"module entry", node, 0};
    Diagnostics diagnostics;
    Scope scope{document, diagnostics};
    check_part(scope, document.root, document.root.find("bootId") != nullptr ? "NodeModuleState" : "NodeModule");
    NodeModule entry = decode_node_module_fields(Fields(scope, document.root, ""));
    throw_if_faulty(std::move(diagnostics));
    return entry;
}

ModuleConfig decode_module_config(const value::Node& node) {
    const value::Document document{"module config", node, 0};
    Diagnostics diagnostics;
    ModuleConfig config = decode_module_config(document, diagnostics);
    throw_if_faulty(std::move(diagnostics));
    return config;
}

}  // namespace kmm::api
