// SPDX-License-Identifier: Apache-2.0
// Module, and the parts it shares with NodeModulesConfig. Which fields there are, and of which types, kmm.schema says.
#include <fmt/format.h>

#include "api/decode.hpp"
#include "api/schema_check.hpp"

namespace kmm::api {

namespace {

std::optional<ModprobeArgs> decode_args(Fields& modprobe, std::string_view key) {
    auto fields = modprobe.child(key);
    if (!fields) { return std::nullopt; }
    ModprobeArgs args;
    args.load = fields->strings("load").value_or(std::vector<std::string>{});
    args.unload = fields->strings("unload").value_or(std::vector<std::string>{});
    fields->done();
    return args;
}

Build decode_build(Fields fields) {
    Build build;
    build.dockerfile_config_map = fields.name_of("dockerfileConfigMap");
    for (const auto& item : fields.items("buildArgs")) {
        Fields argument(fields.scope(), *item.node, item.path);
        build.build_args.push_back(BuildArg{argument.string("name"), argument.string("value")});
    }
    if (auto tls = fields.child("baseImageRegistryTLS")) { build.base_image_registry_tls = decode_tls(*tls); }
    for (const auto& item : fields.items("secrets")) {
        Fields reference(fields.scope(), *item.node, item.path);
        build.secrets.push_back(reference.string("name"));
    }
    if (auto kaniko = fields.child("kanikoParams")) { build.kaniko_tag = kaniko->string("tag"); }
    build.selector = fields.string_map("selector");
    return build;
}

Sign decode_sign(Fields fields) {
    Sign sign;
    sign.cert_secret = fields.name_of("certSecret");
    sign.key_secret = fields.name_of("keySecret");
    sign.unsigned_image = fields.string("unsignedImage");
    if (auto tls = fields.child("unsignedImageRegistryTLS")) { sign.unsigned_image_registry_tls = decode_tls(*tls); }
    sign.files_to_sign = fields.strings("filesToSign").value_or(std::vector<std::string>{});
    return sign;
}

std::optional<Build> build_of(Fields& parent) {
    auto fields = parent.child("build");
    return fields ? std::optional(decode_build(*fields)) : std::nullopt;
}

std::optional<Sign> sign_of(Fields& parent) {
    auto fields = parent.child("sign");
    return fields ? std::optional(decode_sign(*fields)) : std::nullopt;
}

KernelMapping decode_mapping(Fields fields) {
    KernelMapping mapping;
    mapping.origin = fields.scope().document.position(fields.node().mark());
    mapping.literal = fields.string("literal");
    mapping.regexp = fields.string("regexp");
    mapping.matcher_origin = fields.position_of(mapping.regexp.empty() ? "literal" : "regexp");
    mapping.container_image = fields.string("containerImage");
    if (auto tls = fields.child("registryTLS")) { mapping.registry_tls = decode_tls(*tls); }
    mapping.in_tree_modules_to_remove = fields.strings("inTreeModulesToRemove");
    mapping.in_tree_module_to_remove = fields.string("inTreeModuleToRemove");
    mapping.build = build_of(fields);
    mapping.sign = sign_of(fields);
    return mapping;
}

ModuleLoaderContainer decode_container(Fields fields) {
    ModuleLoaderContainer container;
    container.version = fields.string("version");
    if (!container.version.empty()) { container.version_origin = fields.position_of("version"); }
    container.container_image = fields.string("containerImage");
    container.image_pull_policy = fields.string("imagePullPolicy");
    if (auto tls = fields.child("registryTLS")) { container.registry_tls = decode_tls(*tls); }
    container.in_tree_modules_to_remove = fields.strings("inTreeModulesToRemove");
    container.in_tree_module_to_remove = fields.string("inTreeModuleToRemove");
    container.build = build_of(fields);
    container.sign = sign_of(fields);
    if (auto modprobe = fields.child("modprobe")) { container.modprobe = decode_modprobe(*modprobe); }
    for (const auto& item : fields.items("kernelMappings")) {
        container.kernel_mappings.push_back(decode_mapping(Fields(fields.scope(), *item.node, item.path)));
    }
    return container;
}

}  // namespace

std::vector<Toleration> decode_tolerations(Fields& parent, std::string_view key) {
    std::vector<Toleration> result;
    for (const auto& item : parent.items(key)) {
        Fields fields(parent.scope(), *item.node, item.path);
        Toleration toleration;
        toleration.key = fields.string("key");
        toleration.operator_ = fields.string("operator");
        toleration.value = fields.string("value");
        toleration.effect = fields.string("effect");
        toleration.toleration_seconds = fields.integer("tolerationSeconds");
        result.push_back(std::move(toleration));
    }
    return result;
}

TlsOptions decode_tls(Fields fields) {
    TlsOptions tls;
    tls.insecure = fields.boolean("insecure");
    tls.insecure_skip_tls_verify = fields.boolean("insecureSkipTLSVerify");
    return tls;
}

ModprobeSpec decode_modprobe(Fields fields) {
    ModprobeSpec modprobe;
    modprobe.module_name = fields.string("moduleName");
    modprobe.parameters = fields.strings("parameters").value_or(std::vector<std::string>{});
    modprobe.dir_name = fields.string("dirName");
    modprobe.args = decode_args(fields, "args");
    modprobe.raw_args = decode_args(fields, "rawArgs");
    modprobe.firmware_path = fields.string("firmwarePath");
    modprobe.modules_loading_order = fields.strings("modulesLoadingOrder").value_or(std::vector<std::string>{});
    modprobe.modprobed_dir = fields.string("modprobedDir");
    fields.done();
    return modprobe;
}

/// The places of keys are "spec.selector[KEY].key": those without ".key" are of the values.
void place_selector_keys(const Fields& spec) {
    const Scope& scope = spec.scope();
    const value::Node* selector = spec.node().find("selector");
    if (scope.places == nullptr || selector == nullptr || !selector->is_mapping()) { return; }
    for (const auto& member : selector->members()) {
        scope.places->emplace(fmt::format("{}[{}].key", spec.path_of("selector"), member.key),
                              scope.document.position(member.key_mark));
    }
}

void decode_module_spec(Fields& spec, Module& module) {
    module.selector = spec.string_map("selector");
    place_selector_keys(spec);
    module.tolerations = decode_tolerations(spec, "tolerations");
    module.image_repo_secret = spec.name_of("imageRepoSecret");
    if (auto loader = spec.child("moduleLoader")) {
        module.module_loader.emplace();
        module.module_loader->service_account_name = loader->string("serviceAccountName");
        if (auto container = loader->child("container")) {
            module.module_loader->container = decode_container(*container);
        }
    }
    if (auto plugin = spec.child("devicePlugin")) { module.device_plugin = plugin->node(); }
    if (auto dra = spec.child("dra")) { module.dra = dra->node(); }
}

Module decode_module(Scope& scope, const value::Node& root) {
    Module module;
    scope.places = &module.places;
    scope.misread = &module.misread;
    Fields fields(scope, root, "");
    module.meta = decode_meta(fields, Residence::namespaced);
    check_object(scope, root);
    if (auto spec = fields.child("spec")) { decode_module_spec(*spec, module); }
    scope.places = nullptr;
    scope.misread = nullptr;
    return module;
}

}  // namespace kmm::api
