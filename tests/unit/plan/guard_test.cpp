// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>

#include "plan/fleet/guard.hpp"

using namespace kmm;

namespace {

api::Module named(const char* name) {
    api::Module module;
    module.meta.namespace_ = "d";
    module.meta.name = name;
    return module;
}

void load(api::Objects& objects, const char* node, const char* name, const char* boot) {
    api::NodeModulesConfig config;
    config.meta.name = node;
    api::NodeModule entry;
    entry.namespace_ = "d";
    entry.name = name;
    entry.boot_id = boot;
    config.status = {entry};
    objects.node_modules_configs.push_back(config);
}

std::string code_or_dash(const std::optional<plan::Guard>& guard) { return guard ? guard->code : "-"; }

}  // namespace

TEST_SUITE("plan::unit") {

TEST_CASE("what annotations have against unloading and loading") {
    struct Row {
        const char* what;
        std::function<void(api::Objects&)> change;  ///< modules[0] is d/m, modules[1] is d/other
        const char *unload, *load;
    };
    const char* const policy = "kmmtools.dev/unload-policy";
    const char* const needs = "kmmtools.dev/needs";
    const std::vector<Row> rows = {
        {"nothing", [](api::Objects&) {}, "-", "-"},
        {"always", [&](api::Objects& o) { o.modules[0].meta.annotations[policy] = "always"; }, "-", "-"},
        {"on-delete: another version replaces it",
         [&](api::Objects& o) { o.modules[0].meta.annotations[policy] = "on-delete"; }, "-", "-"},
        {"never", [&](api::Objects& o) { o.modules[0].meta.annotations[policy] = "never"; }, "unload-policy", "-"},
        {"never, of another Module", [&](api::Objects& o) { o.modules[1].meta.annotations[policy] = "never"; }, "-",
         "-"},
        {"needed, not loaded", [&](api::Objects& o) { o.modules[1].meta.annotations[needs] = "d/m"; }, "-", "-"},
        {"needed and loaded",
         [&](api::Objects& o) {
             o.modules[1].meta.annotations[needs] = "d/x, d/m";
             load(o, "n1", "other", "b1");
         },
         "module-needed", "-"},
        {"needed, loaded in an earlier boot",
         [&](api::Objects& o) {
             o.modules[1].meta.annotations[needs] = "d/m";
             load(o, "n1", "other", "b0");
         },
         "-", "-"},
        {"needed, loaded on another node",
         [&](api::Objects& o) {
             o.modules[1].meta.annotations[needs] = "d/m";
             load(o, "n2", "other", "b1");
         },
         "-", "-"},
        {"needs what is not loaded", [&](api::Objects& o) { o.modules[0].meta.annotations[needs] = "d/other"; }, "-",
         "needs-not-loaded"},
        {"needs what nobody has read", [&](api::Objects& o) { o.modules[0].meta.annotations[needs] = "d/ghost"; }, "-",
         "needs-not-loaded"},
        {"needs what is loaded",
         [&](api::Objects& o) {
             o.modules[0].meta.annotations[needs] = "d/other";
             load(o, "n1", "other", "b1");
         },
         "-", "-"},
        {"needs itself",
         [&](api::Objects& o) {
             o.modules[0].meta.annotations[needs] = "d/m";
             load(o, "n1", "m", "b1");
         },
         "-", "-"},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.what));
        api::Objects objects;
        objects.modules = {named("m"), named("other")};
        row.change(objects);
        CHECK(code_or_dash(plan::unload_guard(objects, objects.modules[0], "n1", "b1")) == row.unload);
        CHECK(code_or_dash(plan::load_guard(objects, objects.modules[0], "n1", "b1")) == row.load);
    }
}

}
