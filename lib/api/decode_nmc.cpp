// SPDX-License-Identifier: Apache-2.0
// NodeModulesConfig and the worker's ModuleConfig. Field lists: KMM's v1beta1 CRDs (facts: KMM 2.2, 7.1).
#include "api/codec.hpp"
#include "api/decode.hpp"

namespace kmm::api {

namespace {

void throw_if_faulty(Diagnostics diagnostics) {
    if (has_errors(diagnostics)) { throw Error::from_diagnostics(std::move(diagnostics)); }
}

}  // namespace

ModuleConfig decode_config(Fields fields, Need need) {
    ModuleConfig config;
    config.container_image = fields.string("containerImage", need);
    config.image_pull_policy = fields.string("imagePullPolicy");
    config.insecure_pull = fields.boolean("insecurePull", need);
    config.kernel_version = fields.string("kernelVersion", need);
    const auto list = fields.strings("inTreeModulesToRemove");
    config.in_tree_modules_to_remove = list.value_or(std::vector<std::string>{});
    const std::string single = fields.string("inTreeModuleToRemove");
    if (!list) { config.in_tree_module_to_remove = single; }  // KMM's worker asks whether there is a list, not whether it is empty
    if (auto modprobe = fields.child("modprobe", need)) { config.modprobe = decode_modprobe(*modprobe); }
    fields.done();
    return config;
}

NodeModule decode_node_module_fields(Fields fields) {
    NodeModule entry;
    entry.name = fields.string("name", Need::required);
    entry.namespace_ = fields.string("namespace", Need::required);
    entry.service_account_name = fields.string("serviceAccountName", Need::required);
    entry.image_repo_secret = fields.name_of("imageRepoSecret");
    entry.tolerations = decode_tolerations(fields, "tolerations");
    entry.version = fields.string("version");
    entry.boot_id = fields.string("bootId");
    fields.allow({"lastTransitionTime"});  // of KMM before boot ids; nothing is decided by it
    if (auto config = fields.child("config", Need::required)) {
        entry.config = decode_config(*config, Need::required);
    }
    fields.done();
    return entry;
}

NodeModulesConfig decode_node_modules_config(Scope& scope, const value::Node& root) {
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind"});
    NodeModulesConfig object;
    object.meta = decode_meta(fields, Residence::cluster);
    for (const auto& [key, list] : {std::pair{"spec", &object.spec}, std::pair{"status", &object.status}}) {
        auto part = fields.child(key);
        if (!part) { continue; }
        for (const auto& item : part->items("modules")) {
            list->push_back(decode_node_module_fields(Fields(scope, *item.node, item.path)));
        }
        part->done();
    }
    fields.done();
    return object;
}

ModuleConfig decode_module_config(const value::Document& document, Diagnostics& diagnostics) {
    Scope scope{document, diagnostics};
    scope.key_case = KeyCase::any;
    return decode_config(Fields(scope, document.root, ""), Need::optional);
}

NodeModule decode_node_module(const value::Node& node) {
    const value::Document document{"module entry", node, 0};
    Diagnostics diagnostics;
    Scope scope{document, diagnostics};
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
