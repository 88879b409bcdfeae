// SPDX-License-Identifier: Apache-2.0
// Row M68 of docs/hostile-images.md: the worker's configuration is read strictly and within limits.
#include <doctest/doctest.h>

#include "api/codec.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

/// The codes of all faults of a ModuleConfig, each with its line, as "2 unknown-field".
std::string config_faults(const std::string& text) {
    Diagnostics faults;
    const auto documents = value::read_any(text, "config.yaml", faults);
    if (!documents.empty()) {
        static_cast<void>(api::decode_module_config(documents.front(), faults));
    }
    std::string result;
    for (const Diagnostic& fault : faults) {
        CHECK(fault.exit == Exit::data);
        result += (result.empty() ? "" : ", ") + (fault.position ? std::to_string(fault.position->line) : "?") + " " +
                  fault.code;
    }
    return result;
}

}  // namespace

TEST_SUITE("api::unit") {

TEST_CASE("M68 unknown fields, wrong types and repeated keys of a worker configuration") {
    CHECK(config_faults("containerImage: a\nkernelVersion: k\nmodprobe: {moduleName: m}\n").empty());
    CHECK(config_faults("containerImage: a\nunknown: x\n") == "2 unknown-field");
    CHECK(config_faults("modprobe:\n  moduleName: m\n  Unknown: x\n") == "3 unknown-field");
    CHECK(config_faults("containerImage: [a]\n") == "1 wrong-type");
    CHECK(config_faults("insecurePull: \"true\"\n") == "1 wrong-type");
    CHECK(config_faults("modprobe:\n  parameters: a=1\n") == "2 wrong-type");
    CHECK(config_faults("containerImage: a\ncontainerImage: b\n") == "2 duplicate-key");
    CHECK(config_faults("{\"containerImage\":\"a\",\n\"containerImage\":\"b\"}") == "2 duplicate-key");
    CHECK(config_faults("- a\n") == "1 wrong-type");
}

TEST_CASE("keys of a worker configuration count in any case, as for the decoder of KMM's worker") {
    const std::string text =
        "containerimage: a\nINSECUREPULL: true\nkernelVersion: k\nModprobe:\n  modulename: m\n  args:\n    Load: "
        "[-v]\n";
    Diagnostics faults;
    const auto documents = value::read_any(text, "config.yaml", faults);
    const api::ModuleConfig config = api::decode_module_config(documents.at(0), faults);
    CHECK(faults.empty());
    CHECK(config.container_image == "a");
    CHECK(config.insecure_pull);
    CHECK(config.modprobe.module_name == "m");
    CHECK(config.modprobe.args.value().load == std::vector<std::string>{"-v"});
    CHECK(config_faults("containerImage: a\ncontainerimage: b\n") == "2 duplicate-key");
    CHECK(config_faults("CONTAINERIMAGE: a\nkernelVersion: k\ncontainerImage: b\n") == "3 duplicate-key");
    CHECK(config_faults("modprobe:\n  Args:\n    LOAD: [1]\n") == "3 wrong-type");
    CHECK(config_faults("container-image: a\n") == "1 unknown-field");
}

TEST_CASE("a field of a worker configuration in the wrong mapping is told its place") {
    const auto hint_of = [](const std::string& text) {
        Diagnostics faults;
        const auto documents = value::read_any(text, "config.yaml", faults);
        static_cast<void>(api::decode_module_config(documents.at(0), faults));
        REQUIRE(faults.size() == 1);
        CHECK(faults.front().code == "unknown-field");
        return faults.front().hint;
    };
    CHECK(hint_of("containerImage: a\nmodprobe:\nmoduleName: m\n") == "it belongs into modprobe: indent it more");
    CHECK(hint_of("modprobe:\n  moduleName: m\n  containerImage: a\n") == "it belongs at the top: indent it less");
    CHECK(hint_of("modprobe:\n  modulName: m\n") == "did you mean moduleName?");
    CHECK(hint_of("modprobe: {moduleName: m}\nfutureField: 1\n").empty());
}

TEST_CASE("empty lists of a worker configuration are as if absent, which only the CRDs refuse") {
    CHECK(config_faults("modprobe:\n  args: {load: [], unload: []}\n  rawArgs: {load: []}\n  parameters: []\n  "
                        "modulesLoadingOrder: []\n")
              .empty());
}

TEST_CASE("M68 a worker configuration that is a bomb") {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i) {
        const std::string before = "*a" + std::to_string(i - 1);
        std::string list = before;
        for (int j = 0; j < 9; ++j) {
            list += ", " + before;
        }
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + list + "]\n";
    }
    CHECK(config_faults(bomb + "containerImage: a\n").find("document-limit") != std::string::npos);
    CHECK(config_faults("a: &a [*a]\n").find("bad-alias") != std::string::npos);
    const std::string deep(100'000, '[');
    CHECK_FALSE(config_faults(deep).empty());
    CHECK(config_faults(std::string("containerImage: a\0b\n", 20)).size() > 2);
    CHECK(config_faults("containerImage: \xff\xfe\n").find("not-utf8") != std::string::npos);
}

}
