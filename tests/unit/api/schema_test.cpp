// SPDX-License-Identifier: Apache-2.0
// The schema check on the table that a real API server judges as well (tests/apiserver, Schema).
#include "schema/schema.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

value::Node one_of(const char* text) {
    Diagnostics faults;
    auto documents = value::read_yaml(text, "base", faults);
    REQUIRE(faults.empty());
    return documents.at(0).root;
}

void set_all(value::Node& node, const value::Node* members) {
    if (members == nullptr) { return; }
    for (const auto& member : members->members()) { node.set(member.key, member.value); }
}

/// The object that a case is about; see kmm_schema.py.
value::Node object_of(const value::Node& entry) {
    std::string kind = entry.get_string({"kind"});
    if (kind.empty()) { kind = "Module"; }
    std::string version =
        kind == "ManagedClusterModule" ? "hub.kmm.sigs.x-k8s.io/v1beta1" : "kmm.sigs.x-k8s.io/v1beta1";
    if (kind.starts_with("Preflight")) { version = "kmm.sigs.x-k8s.io/v1beta2"; }
    const bool is_namespaced = kind == "Module" || kind == "ModuleImagesConfig" || kind == "ModuleBuildSignConfig" ||
                               kind == "BootModuleConfig";
    value::Node object = value::Node::mapping(
        {{"apiVersion", version}, {"kind", kind}, {"metadata", value::Node::mapping({{"name", "m"}})}});
    if (is_namespaced) { object.find("metadata")->set("namespace", "n"); }
    if (kind == "Module") {
        value::Node spec = one_of(
            "{selector: {}, moduleLoader: {container: {modprobe: {moduleName: m}, kernelMappings: [{regexp: ., "
            "containerImage: 'i:1'}]}}}");
        set_all(*spec.find("moduleLoader")->find("container"), entry.find("loader"));
        const value::Node* resources = entry.find("resources");
        if (resources != nullptr || entry.find("plugin") != nullptr) {
            value::Node plugin = one_of("{container: {image: i}}");
            if (resources != nullptr) { plugin.find("container")->set("resources", *resources); }
            set_all(plugin, entry.find("plugin"));
            spec.set("devicePlugin", std::move(plugin));
        }
        if (entry.find("dra") != nullptr) {
            value::Node dra = one_of("{driverName: d, container: {image: i}}");
            set_all(dra, entry.find("dra"));
            spec.set("dra", std::move(dra));
        }
        set_all(spec, entry.find("spec"));
        object.set("spec", std::move(spec));
    }
    set_all(object, entry.find("root"));
    return object;
}

api::Objects read(const std::string& text, Diagnostics& faults) {
    api::Objects objects;
    for (const auto& document : value::read_yaml(text, "m.yaml", faults)) { api::decode(document, objects, faults); }
    return objects;
}

}  // namespace

TEST_SUITE("api::unit") {
    TEST_CASE("objects are refused as the definitions refuse them, each for one reason") {
        std::ifstream file(std::string(KMM_SOURCE_DIR) + "/tests/support/schema_cases.json");
        std::stringstream text;
        text << file.rdbuf();
        Diagnostics faults;
        const auto table = value::read_any(text.str(), "schema_cases.json", faults);
        REQUIRE(faults.empty());
        CHECK(table.at(0).root.items().size() > 90);
        for (const auto& entry : table.at(0).root.items()) {
            const std::string about = entry.get_string({"about"});
            CAPTURE(about);
            Diagnostics found;
            api::Objects objects;
            api::decode(value::Document{"case", object_of(entry), 0}, objects, found);
            std::string codes;
            for (const auto& one : found) {
                if (one.severity == Severity::error) { codes += codes.empty() ? one.code : " " + one.code; }
            }
            CHECK(codes == entry.get_string({"code"}));
        }
    }

    TEST_CASE("what only some releases have is marked, with its place") {
        Diagnostics faults;
        const auto objects = read(
            "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: m, namespace: ns}\nspec:\n  "
            "selector: {}\n"
            "  tolerations: [{key: a}]\n  devicePlugin: {container: {image: i, volumeMounts: [{name: a, mountPath: /a, "
            "recursiveReadOnly: Enabled}]}}\n",
            faults);
        CHECK(faults.empty());
        std::string text;
        for (const auto& mark : objects.release_marks) {
            text += fmt::format("{} {} {}:{} {}\n", mark.subject, mark.path, mark.position.line, mark.position.column,
                                mark.since);
        }
        CHECK(text == "Module ns/m spec.tolerations 6:16 3\n"
                      "Module ns/m spec.devicePlugin.container.volumeMounts[0].recursiveReadOnly 7:99 1\n"
                      "Module ns/m spec.moduleLoader 5:3 0\n");
    }

    TEST_CASE("of what the operator writes one mark of a kind is kept") {
        const std::string entry =
            "{name: m, namespace: ns, serviceAccountName: s, version: v1, "
            "config: {containerImage: i, kernelVersion: 6.1.0, insecurePull: false, modprobe: {}}}";
        std::string text;
        for (const char* node : {"a", "b"}) {
            text += fmt::format(
                "---\napiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: NodeModulesConfig\nmetadata: {{name: {}}}\nspec: "
                "{{modules: [{}, {}]}}\n",
                node, entry, entry);
        }
        Diagnostics faults;
        const auto objects = read(text, faults);
        CHECK(faults.empty());
        CHECK(objects.node_modules_configs.size() == 2);
        std::string marks;
        for (const auto& mark : objects.release_marks) { marks += mark.path + " "; }
        CHECK(marks == "spec.modules[0].version spec.modules[0].config.modprobe.moduleName ");
    }

    TEST_CASE("a field in the wrong mapping: the hint says which one it belongs to") {
        const auto hints = [](const std::string& spec) {
            Diagnostics faults;
            api::Objects objects;
            const auto documents = value::read_yaml("apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\n"
                                                    "metadata: {name: m, namespace: n}\n" + spec,
                                                    "m.yaml", faults);
            api::decode(documents.at(0), objects, faults);
            std::string text;
            for (const auto& fault : faults) {
                if (fault.code == "unknown-field") { text += fault.message + "; " + fault.hint + "\n"; }
            }
            return text;
        };
        CHECK(hints("spec:\nmoduleLoader: {}\nselector: {}\n") ==
              "unknown field moduleLoader; it belongs into spec: indent it more\n"
              "unknown field selector; it belongs into spec: indent it more\n");
        CHECK(hints("spec: {moduleLoader: {kernelMappings: []}}\n") ==
              "unknown field spec.moduleLoader.kernelMappings; it belongs into spec.moduleLoader.container: indent it "
              "more\n");
        CHECK(hints("spec: {moduleLoader: {container: {selector: {}, tolerations: []}}}\n") ==
              "unknown field spec.moduleLoader.container.selector; it belongs into spec: indent it less; or into "
              "spec.moduleLoader.container.build: indent it more\n"
              "unknown field spec.moduleLoader.container.tolerations; it belongs into spec: indent it less\n");
        CHECK(hints("spec: {nothing: 1, status: {}}\n") ==
              "unknown field spec.nothing; \nunknown field spec.status; it belongs beside spec: indent it less\n");
    }

    TEST_CASE("a text that is no schema is a bug") {
        CHECK_NOTHROW(schema::Schema("kind K g/v1 Cluster\n  S: spec\nS\n  string: a b!>=2.1\n  [string]1+: c<2.4\n"));
        for (const char* text : {"  string: a\n", "kind K\n", "T\n  Unknown: a\n", "T\n  string: a>=2.x\n",
                                 "T\n  one-of c: a b\n", "T\n  [string]x: a\n"}) {
            CAPTURE(text);
            CHECK_THROWS(schema::Schema(text));
        }
    }
}
