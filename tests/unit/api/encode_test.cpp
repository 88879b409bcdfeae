// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "api/codec.hpp"

using namespace kmm;

namespace {

api::NodeModule full_entry() {
    api::NodeModule entry;
    entry.name = "kmm-hello";
    entry.namespace_ = "drivers";
    entry.service_account_name = "default";
    entry.image_repo_secret = "pull";
    entry.version = "v1";
    entry.boot_id = "b-1";
    entry.config.edit().container_image = "registry.example/kmm-hello:v1-6.1.0";
    entry.config.edit().image_pull_policy = "IfNotPresent";
    entry.config.edit().insecure_pull = true;
    entry.config.edit().kernel_version = "6.1.0";
    entry.config.edit().in_tree_modules_to_remove = {"old_a", "old_b"};
    entry.config.edit().modprobe.module_name = "kmm_hello";
    entry.config.edit().modprobe.dir_name = "/opt";
    entry.config.edit().modprobe.parameters = {"greeting=hi"};
    entry.config.edit().modprobe.firmware_path = "/firmware";
    entry.config.edit().modprobe.modules_loading_order = {"kmm_hello", "kmm_base"};
    entry.config.edit().modprobe.args = api::ModprobeArgs{{"-v"}, {"-r"}};
    entry.config.edit().modprobe.raw_args = api::ModprobeArgs{{"a"}, {"b"}};
    api::Toleration toleration;
    toleration.key = "k";
    toleration.operator_ = "Exists";
    toleration.effect = "NoExecute";
    toleration.toleration_seconds = 30;
    entry.tolerations = {toleration};
    return entry;
}

std::vector<std::string> keys_of(const value::Node& node) {
    std::vector<std::string> keys;
    for (const auto& member : node.members()) { keys.push_back(member.key); }
    return keys;
}

}  // namespace

TEST_SUITE("api::unit") {
    TEST_CASE("a module entry survives encode and decode") {
        const api::NodeModule entry = full_entry();
        CHECK(api::decode_node_module(api::encode(entry)) == entry);
        api::NodeModule bare;
        bare.name = "m";
        bare.namespace_ = "n";
        bare.service_account_name = "default";
        CHECK(api::decode_node_module(api::encode(bare)) == bare);
    }

    TEST_CASE("a module config writes exactly KMM's keys, in alphabetical order") {
        CHECK(keys_of(api::encode(api::ModuleConfig{})) == std::vector<std::string>{"containerImage", "imagePullPolicy",
                                                                                    "insecurePull", "kernelVersion",
                                                                                    "modprobe"});
        CHECK(keys_of(api::encode(full_entry().config)) ==
              std::vector<std::string>{"containerImage", "imagePullPolicy", "inTreeModulesToRemove", "insecurePull",
                                       "kernelVersion", "modprobe"});
    }

    TEST_CASE("decoding a written tree with faults throws all of them") {
        value::Node node = api::encode(full_entry());
        node.erase("name");
        node.set("nonsense", 1);
        try {
            static_cast<void>(api::decode_node_module(node));
            FAIL("no error");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::data);
            CHECK(error.diagnostics().size() == 2);
        }
    }
}
