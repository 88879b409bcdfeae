// SPDX-License-Identifier: Apache-2.0
// Labels as a map, and what objects of a stream have in common.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "api/codec.hpp"
#include "api/object_decoder.hpp"
#include "base/text.hpp"
#include "value/object_stream.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

struct Collected {
    api::Objects objects;
    Diagnostics diagnostics;
};

std::string config_text(const std::string& image, const std::string& more = "") {
    return "{containerImage: \"" + image +
           "\", imagePullPolicy: IfNotPresent, insecurePull: false, kernelVersion: 6.1.0-56-amd64,\n"
           "       modprobe: {dirName: /opt, moduleName: hello, parameters: [\"a=1\", \"b=2\"], firmwarePath: "
           "/firmware/that/is/long}" +
           more + "}";
}

std::string item_text(const std::string& name, const std::string& config, const std::string& boot) {
    const std::string entry =
        "name: hello, namespace: drivers, serviceAccountName: default, version: v1,\n"
        "     tolerations: [{key: node.kubernetes.io/disk-pressure, operator: Exists, effect: NoSchedule},\n"
        "                   {key: node.kubernetes.io/memory-pressure, operator: Exists, effect: NoSchedule}],\n     "
        "config: " +
        config + "}";
    return "- apiVersion: kmm.sigs.x-k8s.io/v1beta1\n  kind: NodeModulesConfig\n  metadata: {name: " + name +
           ", uid: u}\n  spec:\n    modules:\n"
           "    - {" +
           entry + "\n  status:\n    modules:\n    - {bootId: " + boot + ", " + entry + "\n";
}

Collected collected(const std::string& text, bool is_json = false) {
    Collected read;
    api::ObjectDecoder decoder;
    std::string_view rest = text;
    const auto doubt = (is_json ? value::stream_json : value::stream_yaml)(
        [&](char* into, std::size_t size) {
            const std::size_t count = std::min(rest.size(), size);
            std::memcpy(into, rest.data(), count);
            rest.remove_prefix(count);
            return count;
        },
        "f", decoder, value::ReadLimits{});
    REQUIRE_FALSE(doubt);
    std::move(decoder).commit(read.objects, read.diagnostics);
    return read;
}

/// The same by two threads, in pieces of a list.
Collected collected_in_pieces(const std::string& text, std::size_t bytes) {
    Collected read;
    api::ObjectDecoder decoder;
    std::size_t at = 0;
    const value::ReadMore more = [&](char* into, std::size_t size) {
        const std::size_t count = text.copy(into, size, at);
        at += count;
        return count;
    };
    const auto run = [](const std::function<void()>& work) {
        std::thread other(work);
        work();
        other.join();
    };
    REQUIRE(value::stream_json_in_pieces(more, "f", decoder, {run, bytes}));
    std::move(decoder).commit(read.objects, read.diagnostics);
    return read;
}

Collected read_whole(const std::string& text, bool is_json = false) {
    Collected read;
    for (const auto& document : (is_json ? value::read_json : value::read_yaml)(text, "f", read.diagnostics, {})) {
        api::decode(document, read.objects, read.diagnostics);
    }
    return read;
}

std::string findings_of(const Diagnostics& diagnostics) {
    std::string text;
    for (const auto& one : diagnostics) {
        text += one.code + " " + one.message + " " + (one.position ? one.position->to_string() : "") + " " + one.hint +
                "\n";
    }
    return text;
}

std::string marks_of(const api::Objects& objects) {
    std::string text;
    for (const auto& mark : objects.release_marks) {
        text += mark.subject + " " + mark.path + " " + mark.position.to_string() + "\n";
    }
    return text;
}

}  // namespace

TEST_SUITE("api::repeated") {
    TEST_CASE("entries of many nodes share what they have in common, and are what they are alone") {
        std::string text = "apiVersion: v1\nkind: List\nitems:\n";
        for (int i = 0; i < 12; ++i) {
            text += item_text("node-" + std::to_string(i), config_text(i % 3 == 2 ? "r/other:1" : "r/hello:1"),
                              "boot-" + std::to_string(i));
        }
        text += text;
        text.replace(text.rfind("apiVersion: v1"), 0, "---\n");
        const Collected streamed = collected(text), read = read_whole(text);
        CHECK(findings_of(streamed.diagnostics) == "");
        CHECK(marks_of(streamed.objects).starts_with(marks_of(read.objects)));  // each list of a stream has its own
        const auto& configs = streamed.objects.node_modules_configs;
        REQUIRE(configs.size() == 24);
        for (std::size_t i = 0; i < configs.size(); ++i) {
            CHECK(configs[i].spec == read.objects.node_modules_configs[i].spec);
            CHECK(configs[i].status == read.objects.node_modules_configs[i].status);
            CHECK(configs[i].meta.name == read.objects.node_modules_configs[i].meta.name);
        }
        // The first object of a list says which releases have its fields, so the second one is remembered.
        CHECK(&*configs[3].spec[0].config == &*configs[4].status[0].config);
        CHECK(&*configs[3].spec[0].tolerations == &*configs[4].status[0].tolerations);
        CHECK(&*configs[3].spec[0].config != &*configs[5].spec[0].config);
    }

    TEST_CASE("a faulty entry is told at each place it stands") {
        for (const std::string more : {", nonsense: 1", ", insecurePul: true", ", inTreeModulesToRemove: x"}) {
            CAPTURE(more);
            std::string text = "apiVersion: v1\nkind: List\nitems:\n";
            for (int i = 0; i < 6; ++i) {
                text += item_text("node-" + std::to_string(i), config_text("r/hello:1", i % 2 == 0 ? more : ""), "b");
            }
            const Collected streamed = collected(text), read = read_whole(text);
            CHECK(streamed.diagnostics.size() == 6);
            CHECK(findings_of(streamed.diagnostics) == findings_of(read.diagnostics));
            CHECK(marks_of(streamed.objects) == marks_of(read.objects));
        }
    }

    TEST_CASE("an item that must wait for its list's kind is whole") {
        std::string text = "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nitems:\n";
        for (int i = 0; i < 4; ++i) { text += item_text("node-" + std::to_string(i), config_text("r/hello:1"), "b"); }
        std::string bare = item_text("node-x", config_text("r/hello:1"), "b");
        bare.replace(0, bare.find("kind:"), "- ");
        text += bare + "kind: NodeModulesConfigList\n";
        const Collected streamed = collected(text), read = read_whole(text);
        CHECK(findings_of(streamed.diagnostics) == findings_of(read.diagnostics));
        REQUIRE(streamed.objects.node_modules_configs.size() == 5);
        for (const auto& config : streamed.objects.node_modules_configs) {
            CHECK(config.spec == read.objects.node_modules_configs[0].spec);
            CHECK(config.status == read.objects.node_modules_configs[0].status);
        }
    }

    TEST_CASE("labels and entries of a JSON list are what they are alone, and shared") {
        const auto quoted = [](std::initializer_list<std::pair<std::string, std::string>> members) {
            std::vector<std::string> parts;
            for (const auto& [key, text] : members) parts.push_back('"' + key + "\": " + text);
            return "{" + base::join(parts, ",\n ") + "}";
        };
        const std::string good = "\"example.com/zone\" : \"a\", \"zz\":\"\"";
        for (const std::string more :
             {"", ", \"zzz\": 1", ", \"zzz\": null", ", \"zzz\": \"bad value\"", ", \"z\\u007a\\u007a\": \"x\"",
              ", \"a\": \"b\"", ", \"zz/\": \"\"", ", \"zzz\": \"a\\u002db\""}) {
            CAPTURE(more);
            std::vector<std::string> items;
            for (int i = 0; i < 9; ++i) {
                const std::string name = "\"node-" + std::to_string(i) + "\"";
                const std::string labels =
                    "{\"a.example.com/host\": " + name + ", " + good + (i % 4 == 3 ? more : "") + "}";
                const std::string metadata = quoted({{"labels", labels}, {"name", name}, {"uid", "\"u\""}});
                const std::string entry =
                    R"("config": {"containerImage": "r/hello:1", "imagePullPolicy": "IfNotPresent", "insecurePull": false,
                       "kernelVersion": "6.1.0", "modprobe": {"moduleName": "hello", "dirName": "/opt"}},
                       "name": "hello", "namespace": "drivers", "serviceAccountName": "default", "version": "v1")";
                const std::string boot = i == 7 ? "\"bo\\u006ft\"" : "\"boot-" + std::to_string(i / 2) + "\"";
                items.push_back(quoted({{"apiVersion", "\"v1\""}, {"kind", "\"Node\""}, {"metadata", metadata}}));
                items.push_back(
                    quoted({{"apiVersion", "\"kmm.sigs.x-k8s.io/v1beta1\""},
                            {"kind", "\"NodeModulesConfig\""},
                            {"metadata", metadata},
                            {"spec", "{\"modules\": [{" + entry + "}]}"},
                            {"status", i == 5 ? "{\"modules\": [{" + entry + ", \"bootId\": " + boot + "}]}"
                                              : "{\"modules\": [{\"bootId\": " + boot + ", " + entry + "}]}"}}));
            }
            const std::string text =
                "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [" + base::join(items, ",\n") + "]}";
            const Collected streamed = collected(text, true), read = read_whole(text, true);
            CHECK(findings_of(streamed.diagnostics) == findings_of(read.diagnostics));
            const auto& nodes = streamed.objects.nodes;
            const auto& configs = streamed.objects.node_modules_configs;
            REQUIRE(nodes.size() == read.objects.nodes.size());
            REQUIRE(configs.size() == read.objects.node_modules_configs.size());
            REQUIRE(nodes.size() == 9);
            REQUIRE(configs.size() == 9);
            for (std::size_t i = 0; i < 9; ++i) {
                CHECK(nodes[i].meta.labels == read.objects.nodes[i].meta.labels);
                CHECK(configs[i].meta.labels == read.objects.node_modules_configs[i].meta.labels);
                CHECK(configs[i].spec == read.objects.node_modules_configs[i].spec);
                CHECK(configs[i].status == read.objects.node_modules_configs[i].status);
            }
            for (const std::size_t bytes : {std::size_t{1}, std::size_t{2000}}) {
                const Collected pieces = collected_in_pieces(text, bytes);
                CHECK(findings_of(pieces.diagnostics) == findings_of(streamed.diagnostics));
                CHECK(marks_of(pieces.objects) == marks_of(streamed.objects));
                REQUIRE(pieces.objects.nodes.size() == 9);
                REQUIRE(pieces.objects.node_modules_configs.size() == 9);
                for (std::size_t i = 0; i < 9; ++i) {
                    const auto& config = pieces.objects.node_modules_configs[i];
                    CHECK(pieces.objects.nodes[i].meta.labels == nodes[i].meta.labels);
                    CHECK(pieces.objects.nodes[i].meta.origin == nodes[i].meta.origin);
                    CHECK(config.meta.origin == configs[i].meta.origin);
                    CHECK(config.spec == configs[i].spec);
                    CHECK(config.status == configs[i].status);
                    CHECK(&*config.spec[0].config == &*pieces.objects.node_modules_configs[0].spec[0].config);
                }
            }
            const auto text_of = [](const api::Labels& labels) { return &labels.at("example.com/zone"); };
            CHECK(text_of(nodes[4].meta.labels) == text_of(nodes[5].meta.labels));
            CHECK(text_of(nodes[4].meta.labels) == text_of(configs[6].meta.labels));
            CHECK(&*configs[4].status[0].config == &*configs[6].status[0].config);
        }
    }

    TEST_CASE("a label that is there twice is a doubt, whether it was read before or not") {
        const std::string object =
            R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"a": "1", "b": "2")";
        for (const std::string more : {R"(, "b": "2")", R"(, "a": "1")", R"(, "c": "3", "b": "2")"}) {
            const std::string text = "{\"kind\": \"List\", \"items\": [" + object + "}}}, " + object + "}}}, " +
                                     object + "}}}, " + object + more + "}}}]}";
            api::ObjectDecoder decoder;
            std::size_t at = 0;
            CHECK(value::stream_json(
                [&](char* into, std::size_t size) {
                    const auto count = text.copy(into, size, at);
                    at += count;
                    return count;
                },
                "f", decoder));
        }
    }

    TEST_CASE("labels are a sorted map") {
        api::Labels labels{{"b", "2"}, {"a", "1"}, {"b", "3"}};
        CHECK(labels.size() == 2);
        CHECK(labels.at("b") == "2");
        CHECK_THROWS_AS((void)labels.at("c"), std::out_of_range);
        labels["c"] = "4";
        labels["a"] = "0";
        std::string text;
        for (const auto& [key, value] : labels) { text += key + "=" + value + " "; }
        CHECK(text == "a=0 b=2 c=4 ");
        const api::Labels copy = labels;
        CHECK(labels.erase("b") == 1);
        CHECK(labels.erase("b") == 0);
        CHECK_FALSE(labels.contains("b"));
        CHECK(copy.contains("b"));
        CHECK(labels != copy);
        CHECK(labels.lower_bound("b")->first == "c");
        CHECK(labels.find("x") == labels.end());
        CHECK_FALSE(labels.emplace("a", "9"));
        CHECK(labels.emplace("0", ""));
        CHECK(labels.begin()->first == "0");
        labels.insert(copy.begin(), copy.end());
        CHECK(labels.size() == 4);
        CHECK(std::string(labels["new"]).empty());
        labels["a"] = "1";
        CHECK(copy.at("a") == "0");
    }

    TEST_CASE("a shared value is its own once it is changed") {
        api::Shared<api::ModuleConfig> one;
        CHECK(one->container_image.empty());
        one.edit().container_image = "a";
        api::Shared<api::ModuleConfig> two = one;
        CHECK(&*one == &*two);
        two.edit().container_image = "b";
        CHECK(one->container_image == "a");
        CHECK(one != two);
        two = api::ModuleConfig(*one);
        CHECK(one == two);
        CHECK(api::Shared<api::ModuleConfig>() == api::ModuleConfig{});
    }
}
