// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "api/codec.hpp"
#include "plan/validate.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

/// Decodes `text` without faults and validates it.
Diagnostics findings(const std::string& text) {
    Diagnostics faults;
    api::Objects objects;
    for (const auto& document : value::read_yaml(text, "m.yaml", faults)) { api::decode(document, objects, faults); }
    api::finish(objects, faults);
    for (const auto& fault : faults) { INFO(fault.message); }
    REQUIRE(faults.empty());
    return plan::validate(objects);
}

std::string loader(const std::string& modprobe, const std::string& container, const std::string& mappings) {
    return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\n"
           "metadata: {name: m, namespace: ns}\n"
           "spec:\n  selector: {}\n  moduleLoader:\n    container:\n"
           "      modprobe: " + modprobe + "\n" + container + "      kernelMappings:\n" + mappings;
}

struct Row {
    const char* code;
    std::string text;
    std::size_t line, column;
    Severity severity = Severity::error;
};

const std::string k_named = "{moduleName: m}";
const std::string k_mapping = "      - {regexp: x, containerImage: 'r/i:t'}\n";

void check(const Row& row) {
    CAPTURE(row.code);
    CAPTURE(row.text);
    const Diagnostics found = findings(row.text);
    REQUIRE(found.size() == 1);
    CHECK(found[0].code == row.code);
    CHECK(found[0].severity == row.severity);
    REQUIRE(found[0].position.has_value());
    CHECK(found[0].position->to_string() == Position{"m.yaml", row.line, row.column}.to_string());
}

std::string with_spec(const std::string& spec, const std::string& name = "m") {
    return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: " + name +
           ", namespace: ns}\nspec:\n  selector: {}\n" + spec;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("a valid Module has no findings") {
        CHECK(findings(loader(k_named, "", k_mapping)).empty());
        CHECK(findings(with_spec("")).empty());
        CHECK(findings(with_spec("  tolerations:\n  - {operator: Exists}\n  - {key: a/b, value: c, effect: NoExecute, "
                                 "tolerationSeconds: 3}\n")).empty());
    }

    TEST_CASE("rules about names, tolerations and plugins, each with its place") {
        const std::string volume = "    container: {image: 'i:t'}\n    volumes:\n    - name: v\n      hostPath: {path: ";
        for (const Row& row : {
                 Row{"name-too-long", with_spec("", std::string(40, 'a')), 3, 18},
                 Row{"name-too-long", with_spec("", std::string(39, 'a')), 3, 18, Severity::warning},
                 Row{"toleration-key", with_spec("  tolerations:\n  - {key: 'a b', operator: Exists}\n"), 7, 11},
                 Row{"toleration-operator", with_spec("  tolerations:\n  - {value: x}\n"), 7, 5},
                 Row{"toleration-seconds", with_spec("  tolerations:\n  - {key: a, tolerationSeconds: 1}\n"), 7, 33},
                 Row{"toleration-value", with_spec("  tolerations:\n  - {key: a, operator: Exists, value: b}\n"), 7, 39},
                 Row{"toleration-value", with_spec("  tolerations:\n  - {key: a, value: 'b c'}\n"), 7, 21},
                 Row{"toleration-operator", with_spec("  tolerations:\n  - {key: a, operator: Lt}\n"), 7, 24},
                 Row{"toleration-effect", with_spec("  tolerations:\n  - {key: a, effect: Never}\n"), 7, 22},
                 Row{"host-path", with_spec("  devicePlugin:\n" + volume + "/etc}\n"), 10, 24},
                 Row{"host-path", with_spec("  devicePlugin:\n" + volume + "/dev/../etc}\n"), 10, 24},
                 Row{"host-path", with_spec("  devicePlugin:\n" + volume + "/variable}\n"), 10, 24},
                 Row{"dra-driver-name", with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: A_b\n"), 8, 17},
                 Row{"dra-device-class",
                     with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: d\n    deviceClasses:\n"
                               "    - name: c\n    - name: c\n"), 11, 13},
             }) {
            check(row);
        }
        CHECK(findings(with_spec("  devicePlugin:\n" + volume + "/var/lib/x}\n")).empty());
        CHECK(findings(with_spec("  devicePlugin:\n" + volume + "/dev}\n")).empty());
    }

    TEST_CASE("rules about the loader, each with its place") {
        const std::string sign = "certSecret: {name: c}, keySecret: {name: k}";
        for (const Row& row : {
                 Row{"in-tree-both", loader(k_named, "      inTreeModulesToRemove: [a]\n      inTreeModuleToRemove: b\n",
                                            k_mapping), 9, 30},
                 Row{"image-untagged", loader(k_named, "      containerImage: r/i\n", k_mapping), 9, 23},
                 Row{"mapping-ambiguous",
                     loader(k_named, "", "      - {literal: a, regexp: x, containerImage: 'r/i:t'}\n"), 10, 9},
                 Row{"mapping-empty", loader(k_named, "", "      - {containerImage: 'r/i:t'}\n"), 10, 9},
                 Row{"bad-regexp", loader(k_named, "", "      - {regexp: '(', containerImage: 'r/i:t'}\n"), 10, 18},
                 Row{"missing-image", loader(k_named, "", "      - {regexp: x, containerImage: ''}\n"), 10, 37},
                 Row{"image-untagged", loader(k_named, "", "      - {regexp: x, containerImage: r/i}\n"), 10, 37},
                 Row{"in-tree-both", loader(k_named, "",
                                            "      - {regexp: x, containerImage: 'r/i:t', inTreeModuleToRemove: a, "
                                            "inTreeModulesToRemove: []}\n"), 10, 94},
                 Row{"in-tree-both", loader(k_named, "      inTreeModuleToRemove: b\n",
                                            "      - {regexp: x, containerImage: 'r/i:t', inTreeModulesToRemove: [a]}\n"),
                     11, 69},
                 Row{"raw-args-with-name", loader("{moduleName: m, rawArgs: {load: [a]}}", "", k_mapping), 8, 42},
                 Row{"raw-args-missing", loader("{rawArgs: {load: [a]}}", "", k_mapping), 8, 17},
                 Row{"loading-order", loader("{moduleName: m, modulesLoadingOrder: [m]}", "", k_mapping), 8, 54},
                 Row{"loading-order", loader("{moduleName: m, modulesLoadingOrder: [x, m]}", "", k_mapping), 8, 55},
                 Row{"loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, a, a]}", "", k_mapping), 8, 61},
                 Row{"sign-files", loader(k_named, "      sign: {" + sign + "}\n", k_mapping), 9, 13},
                 Row{"sign-files", loader(k_named, "      sign: {" + sign + ", filesToSign: [/lib/a.ko]}\n", k_mapping),
                     9, 73},
                 Row{"sign-files", loader(k_named, "", "      - {regexp: x, containerImage: 'r/i:t', sign: {" + sign + "}}\n"),
                     10, 52},
                 Row{"bad-version", loader(k_named, "      version: v1+x\n", k_mapping), 9, 16},
                 Row{"bad-template", loader(k_named, "", "      - {regexp: x, containerImage: 'r/i:${A'}\n"), 10, 37},
                 Row{"unknown-template-variable",
                     loader(k_named, "", "      - {regexp: x, containerImage: 'r/i:${KERNEL_V}'}\n"), 10, 37},
                 Row{"literal-plus", loader(k_named, "", "      - {literal: 6.1.0+, containerImage: 'r/i:t'}\n"), 10, 19,
                     Severity::warning},
                 Row{"mapping-unreachable",
                     loader(k_named, "", k_mapping + "      - {literal: ax, containerImage: 'r/i:t'}\n"), 11, 19,
                     Severity::warning},
                 Row{"firmware-path", loader("{moduleName: m, firmwarePath: fw}", "", k_mapping), 8, 47,
                     Severity::warning},
             }) {
            check(row);
        }
    }

    TEST_CASE("all findings of a Module come at once") {
        const Diagnostics found = findings(loader("{}", "      containerImage: r/i\n      version: 'v 1'\n",
                                                  "      - {regexp: '[', containerImage: ''}\n      - {containerImage: ''}\n"));
        std::vector<std::string> codes;
        for (const auto& finding : found) { codes.push_back(finding.code); }
        std::sort(codes.begin(), codes.end());
        CHECK(codes == std::vector<std::string>{"bad-regexp", "bad-version", "image-untagged", "mapping-empty",
                                                "raw-args-missing"});
    }
}
