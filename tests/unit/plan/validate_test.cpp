// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "plan/lint/validate.hpp"
#include "unit/plan/validate_case.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace validate_case;

TEST_SUITE("plan::unit") {
    TEST_CASE("a valid Module has no findings") {
        CHECK(findings(loader(k_named, "", k_mapping)).empty());
        CHECK(findings(with_spec("")).empty());
        const auto bare = findings(
            "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: m, namespace: ns}\nspec: null\n");
        REQUIRE(bare.size() == 1);  // admitted, and of no use
        CHECK(bare[0].code == "missing-field");
        CHECK(bare[0].severity == Severity::warning);
        CHECK(findings(with_spec("  tolerations:\n  - {operator: Exists}\n  - {key: a/b, value: c, effect: NoExecute, "
                                 "tolerationSeconds: 3}\n")).empty());
    }

    TEST_CASE("rules about names, tolerations and plugins, each with its place") {
        const std::string volume =
            "    container: {image: 'i:t'}\n    volumes:\n    - name: v\n      hostPath: {path: ";
        for (const Row& row : {
                 Row{2, "name-too-long", with_spec("", std::string(40, 'a')), 3, 18},
                 Row{0, "name-too-long", with_spec("", std::string(39, 'a')), 3, 18, Severity::warning},
                 Row{3, "toleration-key", with_spec("  tolerations:\n  - {key: 'a b', operator: Exists}\n"), 7, 11},
                 Row{4, "toleration-operator", with_spec("  tolerations:\n  - {value: x}\n"), 7, 5},
                 Row{5, "toleration-seconds", with_spec("  tolerations:\n  - {key: a, tolerationSeconds: 1}\n"), 7, 33},
                 Row{6, "toleration-value", with_spec("  tolerations:\n  - {key: a, operator: Exists, value: b}\n"), 7,
                     39},
                 Row{6, "toleration-value", with_spec("  tolerations:\n  - {key: a, value: 'b c'}\n"), 7, 21},
                 Row{6, "toleration-operator", with_spec("  tolerations:\n  - {key: a, operator: Lt}\n"), 7, 24},
                 Row{7, "toleration-effect", with_spec("  tolerations:\n  - {key: a, effect: Never}\n"), 7, 22},
                 Row{11, "host-path", with_spec("  devicePlugin:\n" + volume + "/etc}\n"), 10, 24},
                 Row{11, "host-path", with_spec("  devicePlugin:\n" + volume + "/dev/../etc}\n"), 10, 24},
                 Row{11, "host-path", with_spec("  devicePlugin:\n" + volume + "/variable}\n"), 10, 24},
                 Row{0, "pull-policy",
                     with_spec("  devicePlugin:\n    container: {image: 'i:t', imagePullPolicy: Sometimes}\n"), 7, 48},
                 Row{8, "dra-kubernetes-version",
                     with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: d\n"), 7, 5},
                 Row{9, "dra-driver-name", with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: ''\n"), 8,
                     17},
                 Row{10, "dra-device-class",
                     with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: d\n    deviceClasses:\n"
                               "    - name: C_1\n"),
                     10, 13},
                 Row{11, "host-path", with_spec("  dra:\n    driverName: d\n" + volume + "/home}\n"), 11, 24},
                 Row{0, "plugins-exclusive",
                     with_spec("  devicePlugin: {container: {image: 'i:t'}}\n  dra: {container: {image: 'i:t'}, "
                               "driverName: d}\n"),
                     7, 8},
                 Row{9, "dra-driver-name", with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: A_b\n"), 8,
                     17},
                 Row{10, "dra-device-class",
                     with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: d\n    deviceClasses:\n"
                               "    - name: c\n    - name: c\n"),
                     11, 13},
             }) {
            check(row);
        }
        CHECK(findings(with_spec("  devicePlugin:\n" + volume + "/var/lib/x}\n")).empty());
        CHECK(findings(with_spec("  devicePlugin:\n" + volume + "/dev}\n")).empty());
    }

    TEST_CASE("what of a plugin breaks a rule of Kubernetes for Pods, each with its place") {
        const auto container = [](const std::string& more) {
            return with_spec("  devicePlugin:\n    container:\n      image: i:t\n" + more);
        };
        const auto volumes = [](const std::string& more) {
            return with_spec("  devicePlugin:\n    container: {image: 'i:t'}\n    volumes:\n" + more);
        };
        const std::string mounts = "      volumeMounts:\n", limits = "      resources:\n        limits: {cpu: 100m}\n";
        const auto refused = [](const std::string& text, std::size_t line, std::size_t column) {
            return Row{0, "plugin-refused", text, line, column, Severity::warning};
        };
        for (const Row& row : {
                 refused(volumes("    - {name: v, emptyDir: {}}\n    - {name: v, emptyDir: {}}\n"), 10, 14),
                 refused(volumes("    - {name: kubelet-device-plugins, emptyDir: {}}\n"), 9, 14),
                 refused(volumes("    - {name: V_1, emptyDir: {}}\n"), 9, 14),
                 refused(volumes("    - {name: v, emptyDir: {}, hostPath: {path: /dev}}\n"), 9, 7),
                 refused(volumes("    - {name: v, hostPath: {path: /dev, type: directory}}\n"), 9, 46),
                 refused(container(mounts + "      - {name: v, mountPath: /a}\n"), 10, 16),
                 refused(
                     container(mounts +
                               "      - {name: kubelet-device-plugins, mountPath: /var/lib/kubelet/device-plugins}\n"),
                     10, 51),
                 refused(container(mounts + "      - {name: kubelet-device-plugins, mountPath: ''}\n"), 10, 51),
                 refused(container(mounts + "      - {name: kubelet-device-plugins, mountPath: /a, subPath: ../x}\n"),
                         10, 64),
                 refused(container("      env:\n      - {name: 'A=B', value: x}\n"), 10, 16),
                 refused(container("      env:\n      - {name: '', value: x}\n"), 10, 16),
                 refused(container("      env:\n      - {name: A, value: x, valueFrom: {fieldRef: {fieldPath: a}}}\n"),
                         10, 40),
                 refused(container("      env:\n      - {name: A, valueFrom: {}}\n"), 10, 30),
                 refused(container(limits + "        requests: {cpu: 1}\n"), 11, 25),
                 refused(container(limits + "        requests: {memry: 1Gi}\n"), 11, 27),
                 refused(container("      resources: {limits: {memory: -1}}\n"), 9, 36),
                 refused(container("    serviceAccountName: a_b\n"), 9, 25),
                 refused(volumes("    - {name: v, hostPath: {path: /var/lib/../../dev}}\n"), 9, 34),
                 refused(container("      resources: {requests: {vendor.example/gpu: 1}}\n"), 9, 50),
                 refused(container(
                             "      resources: {limits: {vendor.example/gpu: 2}, requests: {vendor.example/gpu: 1}}\n"),
                         9, 83),
                 refused(container("      resources: {limits: {vendor.example/gpu: 500m}}\n"), 9, 48),
                 refused(container("      resources: {requests: {hugepages-2Mi: 4Mi, cpu: 1}}\n"), 9, 45),
                 refused(container("      resources: {limits: {hugepages-2Mi: 4Mi}}\n"), 9, 18),
                 Row{0, "bad-reference", with_spec("  devicePlugin:\n    container: {image: 'I/a:t'}\n"), 7, 24,
                     Severity::warning},
             }) {
            check(row);
        }
        CHECK(findings(volumes("    - {name: v}\n")).empty());  // an empty directory
        CHECK(findings(container(mounts +
                                 "      - {name: kubelet-device-plugins, mountPath: /a}\n      env:\n      - {name: "
                                 "a.b-c, value: ''}\n" +
                                 limits + "        requests: {cpu: '0.1', memory: 1Gi}\n"))
                  .empty());
        CHECK(findings(container("      resources:\n        limits: {hugepages-2Mi: 4Mi, vendor.example/gpu: 1, "
                                 "vendor.example/vf: 2}\n"
                                 "        requests: {cpu: 1, hugepages-2Mi: 4096Ki, vendor.example/gpu: 1}\n"))
                  .empty());
    }

    TEST_CASE("rules about the loader, each with its place") {
        const std::string sign = "certSecret: {name: c}, keySecret: {name: k}";
        for (const Row& row : {
                 Row{12, "in-tree-both",
                     loader(k_named, "      inTreeModulesToRemove: [a]\n      inTreeModuleToRemove: b\n", k_mapping), 9,
                     30},
                 Row{13, "image-untagged", loader(k_named, "      containerImage: r/i\n", k_mapping), 9, 23},
                 Row{14, "mapping-ambiguous",
                     loader(k_named, "", "      - {literal: 6.1.0-a, regexp: x, containerImage: 'r/i:t'}\n"), 10, 9},
                 Row{15, "mapping-empty", loader(k_named, "", "      - {containerImage: 'r/i:t'}\n"), 10, 9},
                 Row{16, "bad-regexp", loader(k_named, "", "      - {regexp: '(', containerImage: 'r/i:t'}\n"), 10, 18},
                 Row{17, "missing-image", loader(k_named, "", "      - {regexp: x, containerImage: ''}\n"), 10, 37},
                 Row{18, "image-untagged", loader(k_named, "", "      - {regexp: x, containerImage: r/i}\n"), 10, 37},
                 Row{19, "in-tree-both",
                     loader(k_named, "",
                            "      - {regexp: x, containerImage: 'r/i:t', inTreeModuleToRemove: a, "
                            "inTreeModulesToRemove: []}\n"),
                     10, 94},
                 Row{20, "in-tree-both",
                     loader(k_named, "      inTreeModuleToRemove: b\n",
                            "      - {regexp: x, containerImage: 'r/i:t', inTreeModulesToRemove: [a]}\n"),
                     11, 69},
                 Row{20, "in-tree-both",
                     loader(k_named, "      inTreeModulesToRemove: [b]\n",
                            "      - {regexp: x, containerImage: 'r/i:t', inTreeModuleToRemove: a}\n"),
                     11, 68},
                 Row{21, "raw-args-with-name", loader("{moduleName: m, rawArgs: {load: [a]}}", "", k_mapping), 8, 42},
                 Row{22, "raw-args-missing", loader("{rawArgs: {load: [a]}}", "", k_mapping), 8, 17},
                 Row{23, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m]}", "", k_mapping), 8, 54},
                 Row{23, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [x, m]}", "", k_mapping), 8, 55},
                 Row{23, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, a, a]}", "", k_mapping), 8,
                     61},
                 Row{0, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, '']}", "", k_mapping), 8, 58},
                 Row{0, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, a b]}", "", k_mapping), 8,
                     58},
                 Row{0, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, /lib/a]}", "", k_mapping), 8,
                     58},
                 Row{0, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, a.ko]}", "", k_mapping), 8,
                     58},
                 Row{0, "loading-order", loader("{moduleName: m, modulesLoadingOrder: [m, -a]}", "", k_mapping), 8, 58},
                 Row{0, "module-name", loader("{moduleName: m.ko.xz}", "", k_mapping), 8, 30, Severity::warning},
                 Row{0, "module-name", loader("{moduleName: -r}", "", k_mapping), 8, 30, Severity::warning},
                 Row{23, "loading-order",
                     loader("{rawArgs: {load: [-d], unload: [-d]}, modulesLoadingOrder: [m, a]}", "", k_mapping), 8,
                     76},
                 Row{24, "sign-files", loader(k_named, "      sign: {" + sign + "}\n", k_mapping), 9, 13},
                 Row{24, "sign-files",
                     loader(k_named, "      sign: {" + sign + ", filesToSign: [/lib/a.ko]}\n", k_mapping), 9, 73},
                 Row{24, "sign-files",
                     loader(k_named, "", "      - {regexp: x, containerImage: 'r/i:t', sign: {" + sign + "}}\n"), 10,
                     52},
                 Row{0, "bad-version", loader(k_named, "      version: v1+x\n", k_mapping), 9, 16},
                 Row{0, "bad-template", loader(k_named, "", "      - {regexp: x, containerImage: 'r/i:${A'}\n"), 10,
                     37},
                 Row{0, "unknown-template-variable",
                     loader(k_named, "", "      - {regexp: x, containerImage: 'r/i:${KERNEL_V}'}\n"), 10, 37},
                 Row{0, "unknown-template-variable",
                     loader(k_named, "      sign: {" + sign + ", filesToSign: ['/opt/${MOD_NAME}.ko']}\n", k_mapping),
                     9, 73},
                 Row{0, "unknown-template-variable",
                     loader(k_named,
                            "      sign: {" + sign + ", filesToSign: [/opt/a.ko], unsignedImage: 'r/u:$KERNEL'}\n",
                            k_mapping),
                     9, 100},
                 Row{0, "bad-template",
                     loader(k_named, "",
                            "      - {regexp: x, containerImage: 'r/i:t', sign: {" + sign +
                                ", filesToSign: ['/opt/${KERNEL_X']}}\n"),
                     10, 112},
                 Row{0, "bad-reference",
                     loader(k_named, "      sign: {" + sign + ", filesToSign: [/opt/a.ko], unsignedImage: 'r/U:t'}\n",
                            k_mapping),
                     9, 100, Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named, "      build: {dockerfileConfigMap: {name: d}, secrets: [{name: s}, {name: s}]}\n",
                            k_mapping),
                     9, 75, Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named, "      build: {dockerfileConfigMap: {name: d}, secrets: [{name: s}]}\n",
                            "      - {regexp: x, containerImage: 'r/i:t', build: {dockerfileConfigMap: {name: d}, "
                            "secrets: [{name: s}]}}\n"),
                     11, 103, Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named, "      build: {dockerfileConfigMap: {name: d}, secrets: [{name: a.b}]}\n",
                            k_mapping),
                     9, 64, Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named,
                            "      sign: {certSecret: {name: c}, keySecret: {name: c}, filesToSign: [/opt/a.ko]}\n",
                            k_mapping),
                     9, 33, Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named, "      build: {dockerfileConfigMap: {name: d}, secrets: [{name: pull}]}\n",
                            k_mapping) +
                         "  imageRepoSecret: {name: pull}\n",
                     9, 64, Severity::warning},
                 Row{0, "volume-name", loader(k_named, "      build: {dockerfileConfigMap: {}}\n", k_mapping), 9, 36,
                     Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named, "",
                            "      - {regexp: x, containerImage: 'r/i:t', build: {dockerfileConfigMap: {}}}\n"),
                     10, 75, Severity::warning},
                 Row{0, "volume-name",
                     loader(k_named, "",
                            "      - {regexp: x, containerImage: 'r/i:t', sign: {certSecret: {name: c}, keySecret: {}, "
                            "filesToSign: [/opt/a.ko]}}\n"),
                     10, 87, Severity::warning},
                 Row{0, "literal-plus", loader(k_named, "", "      - {literal: 6.1.0+, containerImage: 'r/i:t'}\n"), 10,
                     19, Severity::warning},
                 Row{0, "literal-impossible",
                     loader(k_named, "", "      - {literal: '6.1.0-56-*', containerImage: 'r/i:t'}\n"), 10, 19,
                     Severity::warning},
                 Row{0, "literal-impossible",
                     loader(k_named, "", "      - {literal: '6.1.0-56-amd64 ', containerImage: 'r/i:t'}\n"), 10, 19,
                     Severity::warning},
                 Row{0, "literal-impossible",
                     loader(k_named, "", "      - {literal: '6.1', containerImage: 'r/i:t'}\n"), 10, 19,
                     Severity::warning},
                 Row{0, "literal-impossible",
                     loader(k_named, "", "      - {literal: /boot/6.1.0, containerImage: 'r/i:t'}\n"), 10, 19,
                     Severity::warning},
                 Row{0, "mapping-unreachable",
                     loader(k_named, "", k_mapping + "      - {literal: 6.1.0-x, containerImage: 'r/i:t'}\n"), 11, 19,
                     Severity::warning},
                 Row{0, "pull-policy", loader(k_named, "      imagePullPolicy: always\n", k_mapping), 9, 24},
                 Row{0, "bad-value", loader(k_named, "", k_mapping) + "    serviceAccountName: a_b\n", 11, 25},
                 Row{0, "dir-name", loader("{moduleName: m, dirName: opt}", "", k_mapping), 8, 42, Severity::warning},
                 Row{0, "dir-name", loader("{moduleName: m, dirName: /../x}", "", k_mapping), 8, 42, Severity::warning},
                 Row{0, "firmware-path", loader("{moduleName: m, firmwarePath: fw}", "", k_mapping), 8, 47,
                     Severity::warning},
                 Row{0, "modprobed-dir", loader("{moduleName: m, modprobedDir: etc}", "", k_mapping), 8, 47},
                 Row{0, "modprobed-dir", loader("{moduleName: m, modprobedDir: /a/../b}", "", k_mapping), 8, 47,
                     Severity::warning},
                 Row{0, "modprobed-dir", loader("{moduleName: m, modprobedDir: /tmp/x}", "", k_mapping), 8, 47,
                     Severity::warning},
                 Row{0, "modprobed-dir", loader("{moduleName: m, modprobedDir: /}", "", k_mapping), 8, 47,
                     Severity::warning},
             }) {
            check(row);
        }
    }

    TEST_CASE("a regexp that goes on where an earlier one ends is never used") {
        const auto codes = [](const char* first, const char* second) {
            std::string text;
            for (const auto& finding :
                 findings(loader(k_named, "",
                                 fmt::format("      - {{regexp: '{}', containerImage: 'r/i:t'}}\n"
                                             "      - {{regexp: '{}', containerImage: 'r/i:t'}}\n",
                                             first, second)))) {
                text += finding.code + " ";
            }
            return text;
        };
        struct Row {
            const char *first, *second;
            bool unreachable;
        };
        for (const Row& row : {
                 Row{"^6\\.1", "^6\\.1\\.0", true},
                 Row{"^6[.]", "^6[.]1[.]", true},
                 Row{"6[.]1", "^6[.]1[.]0", true},
                 Row{"^6", "^6$", true},
                 Row{"(?i)^6", "(?i)^6.*RT", true},
                 Row{"^(5|6)[.]", "^(5|6)[.]1", true},
                 Row{"^6[]|]", "^6[]|]x", true},
                 Row{"^6[[]x", "^6[[]x|^5", false},
                 Row{"^6[.]1", "^6[.]10?-", true},
                 Row{"^6[.]1[.]", "^6[.]1", false},
                 Row{"^6$", "^6$1", false},
                 Row{"^6[.]1", "^6[.]1?-", false},
                 Row{"^6[.]1", "^6[.]1|^5", false},
                 Row{"^6|^5", "^6|^5[.]", false},
                 Row{"^6[.]1", "6[.]1[.]0", false},
                 Row{"^\\Q6", "^\\Q6\\E*", false},
             }) {
            CAPTURE(row.first);
            CAPTURE(row.second);
            CHECK(codes(row.first, row.second) == (row.unreachable ? "mapping-unreachable " : ""));
        }
    }

    TEST_CASE("literals that kernels are called") {
        for (const auto* literal : {"6.1.0-56-amd64", "6.0.15-300.fc37.x86_64", "6.1.0+rt-1",
                                    "5.14.0-70.58.1.el9_0.x86_64+debug", "6.8.0~rc1-1", "6.1-rc1"}) {
            CAPTURE(literal);
            CHECK(findings(
                      loader(k_named, "", fmt::format("      - {{literal: '{}', containerImage: 'r/i:t'}}\n", literal)))
                      .empty());
        }
    }

    TEST_CASE("all findings of a Module come at once") {
        const Diagnostics found =
            findings(loader("{}", "      containerImage: r/i\n      version: 'v 1'\n",
                            "      - {regexp: '[', containerImage: ''}\n      - {containerImage: ''}\n"));
        std::vector<std::string> codes;
        for (const auto& finding : found) { codes.push_back(finding.code); }
        std::sort(codes.begin(), codes.end());
        CHECK(codes == std::vector<std::string>{"bad-regexp", "bad-version", "image-untagged", "mapping-empty",
                                                "raw-args-missing"});
    }

    TEST_CASE("a value of a wrong type is one fault, not taken for an absent one besides") {
        const std::string name =
            "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: m, namespace: ns}\n";
        const std::string hub =
            "apiVersion: hub.kmm.sigs.x-k8s.io/v1beta1\nkind: ManagedClusterModule\nmetadata: {name: m}\n"
            "spec:\n  selector: {}\n  spokeNamespace: ns\n  moduleSpec:\n"
            "    selector: {}\n    moduleLoader: {container: {modprobe: {moduleName: m}, "
            "kernelMappings: [{literal: 6.1, containerImage: 'r/i:t'}]}}\n";
        for (const std::string& text : {
                 loader(k_named, "", "      - {literal: 6.1, containerImage: 'r/i:t'}\n"),
                 loader(k_named, "", "      - {regexp: [a], containerImage: 'r/i:t'}\n"),
                 loader(k_named, "", "      - {regexp: x, containerImage: 5}\n"),
                 loader(k_named, "      containerImage: 5\n", "      - {regexp: x, containerImage: ''}\n"),
                 loader("{moduleName: 8021}", "", k_mapping),
                 loader("{moduleName: 8021, modulesLoadingOrder: [a, b]}", "", k_mapping),
                 loader("{rawArgs: true}", "", k_mapping),
                 loader("{rawArgs: {load: a, unload: [b]}}", "", k_mapping),
                 loader("{moduleName: m, modulesLoadingOrder: m}", "", k_mapping),
                 loader("{moduleName: m, modulesLoadingOrder: [m, 8021]}", "", k_mapping),
                 loader("modprobe", "", k_mapping),
                 loader(k_named, "      sign: {certSecret: {name: c}, keySecret: {name: k}, filesToSign: /opt/a.ko}\n",
                        k_mapping),
                 loader("{moduleName: m, dirName: 5}",
                        "      sign: {certSecret: {name: c}, keySecret: {name: k}, filesToSign: [/lib/a.ko]}\n",
                        k_mapping),
                 name + "spec: {selector: {}, moduleLoader: {container: {modprobe: {moduleName: m}, kernelMappings: "
                        "{}}}}\n",
                 hub,
             }) {
            CAPTURE(text);
            Diagnostics faults;
            api::Objects objects;
            for (const auto& document : value::read_yaml(text, "m.yaml", faults)) {
                api::decode(document, objects, faults);
            }
            api::finish(objects, faults);
            REQUIRE(faults.size() == 1);
            CHECK(faults[0].code == "wrong-type");
            for (const auto& finding : plan::validate(objects)) { FAIL_CHECK(finding.code << ": " << finding.message); }
        }
        // What the value has nothing to do with is still said.
        Diagnostics faults;
        api::Objects objects;
        const std::string text = loader("{moduleName: 8021, dirName: opt}", "", "      - {containerImage: 'r/i:t'}\n");
        for (const auto& document : value::read_yaml(text, "m.yaml", faults)) {
            api::decode(document, objects, faults);
        }
        const Diagnostics found = plan::validate(objects);
        REQUIRE(found.size() == 2);
        CHECK(found[0].code == "dir-name");
        CHECK(found[1].code == "mapping-empty");
    }

    TEST_CASE("rule 1: a version is neither added nor removed") {
        const auto module = [](const std::string& version) {
            Diagnostics rules;
            return read(loader(k_named, version, k_mapping), rules).modules.front();
        };
        const auto codes = [&](const std::string& before, const std::string& after) {
            Diagnostics found;
            plan::validate_update(module(before), module(after), found);
            return found;
        };
        const std::string v1 = "      version: v1\n";
        CHECK(codes("", "").empty());
        CHECK(codes(v1, "      version: v2\n").empty());
        const auto added = codes("", v1);
        REQUIRE(added.size() == 1);
        CHECK(added[0].code == "version-toggled");
        CHECK(added[0].position->to_string() == "m.yaml:9:16");
        CHECK(codes(v1, "").size() == 1);
        Diagnostics none;
        plan::validate_update(read(with_spec(""), none).modules.front(), module(v1), none);
        CHECK(none.empty());
    }

    TEST_CASE("rule 8 compares the major version first and is skipped when the version is not known") {
        const std::string text = with_spec("  dra:\n    container: {image: 'i:t'}\n    driverName: d\n");
        for (const auto* version : {"1.34", "v1.34.2", "1.34+", "2.0", "1.100", ""}) {
            CAPTURE(version);
            CHECK(findings(text, plan::ValidateOptions{version}).empty());
        }
        for (const auto* version : {"1.33", "v1.9.0", "0.99"}) {
            CAPTURE(version);
            CHECK(findings(text, plan::ValidateOptions{version}).size() == 1);
        }
        for (const auto* version : {"1", "latest", "1.x", "1.34foo", ""}) {
            CAPTURE(version);
            CHECK_THROWS_AS(plan::require_kubernetes_version(version), Error);
        }
    }

    TEST_CASE("a ManagedClusterModule has the rules of the Module that clusters get, at its own places") {
        const auto head = [](std::size_t length) {
            return "apiVersion: hub.kmm.sigs.x-k8s.io/v1beta1\nkind: ManagedClusterModule\nmetadata: {name: " +
                   std::string(length, 'm') +
                   "}\nspec:\n  spokeNamespace: ns\n  selector: {}\n  moduleSpec:\n    selector: {}\n";
        };
        CHECK(findings(head(38)).empty());
        auto found = findings(head(38) + "    tolerations:\n    - {key: a, operator: Lt}\n");
        REQUIRE(found.size() == 1);
        CHECK(found[0].code == "toleration-operator");
        CHECK(found[0].position->to_string() == "m.yaml:10:26");
        CHECK(found[0].message.starts_with("ManagedClusterModule mmm"));
        found = findings(head(40));
        REQUIRE(found.size() == 1);
        CHECK(found[0].code == "name-too-long");
        CHECK(found[0].severity == Severity::error);
        CHECK(found[0].position->to_string() == "m.yaml:3:18");
    }

    TEST_CASE("rules about Namespaces and PreflightValidations") {
        const auto preflight = [](const std::string& version, const std::string& kernel) {
            return "apiVersion: kmm.sigs.x-k8s.io/" + version +
                   "\nkind: PreflightValidation\nmetadata: {name: p}\nspec:\n"
                   "  kernelVersion: '" +
                   kernel + "'\n";
        };
        for (const auto* version : {"v1beta1", "v1beta2"}) {
            CHECK(findings(preflight(version, "6.1.0-1-amd64")).empty());
            for (const auto* kernel : {"", "6.1", "6,1-0", "6.1.0-1;id", "-6.1.0-1"}) {
                const auto found = findings(preflight(version, kernel));
                REQUIRE(found.size() == 1);
                CHECK(found[0].code == "preflight-kernel");
                CHECK(found[0].position->to_string() == "m.yaml:5:18");
            }
        }
        const std::string ns = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n";
        const std::string label = "  labels: {kmm.node.k8s.io/contains-modules: ''}\n";
        const std::string deleted = "  deletionTimestamp: '2026-01-01T00:00:00Z'\n";
        CHECK(findings(ns + label).empty());
        CHECK(findings(ns + deleted).empty());
        const auto found = findings(ns + label + deleted);
        REQUIRE(found.size() == 1);
        CHECK(found[0].code == "namespace-has-modules");
    }
}
