// SPDX-License-Identifier: Apache-2.0
// Names and types of members that an API server refuses.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/plan/kernel_names.hpp"
#include "recipe/plan/object_names.hpp"

namespace {

using kmm::recipe::tmpl::Value;

Value read(const std::string& text) {
    kmm::recipe::tmpl::YamlFault fault;
    return kmm::recipe::tmpl::read_yaml_text(text, fault, kmm::recipe::tmpl::WholeNumbers::exact);
}

/// What is wrong with an object; "" for nothing.
std::string fault_of(const std::string& text) {
    try {
        kmm::recipe::plan::require_valid_names(read(text), "", {"t.yaml", 1, 1});
    } catch (const kmm::Error& error) { return error.message(); }
    return "";
}

/// What is said about members that are no texts.
std::string wrong_texts(const std::string& text) {
    std::string all;
    kmm::recipe::plan::each_wrong_text(read(text), [&](const std::string& one) { all += one + "\n"; });
    return all;
}

std::string object(const std::string& version, const std::string& kind, const std::string& name,
                   const std::string& rest = "") {
    return fmt::format("apiVersion: {}\nkind: {}\nmetadata: {{name: {}}}\n{}", version, kind, name, rest);
}

std::string pod(const std::string& container, const std::string& more = "") {
    return object("apps/v1", "DaemonSet", "d",
                  fmt::format("spec: {{selector: {{matchLabels: {{app: d}}}}, template: {{metadata: {{labels: {{app: "
                              "d}}}}, spec: {{containers: [{{name: c, image: i{}}}]{}}}}}}}\n",
                              container, more));
}

}  // namespace

TEST_CASE("names of objects follow the rules of their kind") {
    const std::string s52(52, 'a'), s53(53, 'a'), s63(63, 'a'), s64(64, 'a');
    CHECK(fault_of(object("batch/v1", "CronJob", s52)).empty());
    CHECK(fault_of(object("batch/v1", "CronJob", s53)) ==
          "CronJob " + s53 + ": metadata.name: expected at most 52 characters, found 53");
    CHECK(fault_of(object("batch/v1", "Job", "driver-5.14.0")).empty());  // a name with dots is a label, too
    CHECK(fault_of(object("batch/v1", "Job", s63)).empty());
    CHECK_FALSE(fault_of(object("batch/v1", "Job", s64)).empty());
    CHECK(fault_of(object("v1", "Service", "s1")).empty());
    CHECK_FALSE(fault_of(object("v1", "Service", "1s")).empty());
    CHECK_FALSE(fault_of(object("v1", "Service", "a.b")).empty());
    CHECK(fault_of(object("serving.knative.dev/v1", "Service", s64)).empty());
    CHECK_FALSE(fault_of(object("v1", "Namespace", "a.b")).empty());
    CHECK(fault_of(object("rbac.authorization.k8s.io/v1", "ClusterRole", "system:Node_1")).empty());
    CHECK_FALSE(fault_of(object("rbac.authorization.k8s.io/v1", "ClusterRole", "a/b")).empty());
    CHECK_FALSE(fault_of(object("rbac.authorization.k8s.io/v1", "ClusterRole", "..")).empty());
}

TEST_CASE("keys of data and annotations are checked") {
    CHECK(fault_of(object("v1", "ConfigMap", "c", "data: {a.b_C-1: x}\n")).empty());
    CHECK(fault_of(object("v1", "ConfigMap", "c", "data: {a/b: x}\n")) ==
          "ConfigMap c: data: expected a key with letters, digits, '-', '_' and '.', at most 253 of them, found 'a/b'");
    CHECK_FALSE(fault_of(object("v1", "Secret", "c", "stringData: {..a: x}\n")).empty());
    CHECK_FALSE(fault_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {'a b': x}}\n").empty());
    CHECK(fault_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {Example.TEST/A: x}}\n").empty());
    const std::string much(300000, 'x');
    CHECK_FALSE(fault_of("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {a: " + much + "}}\n")
                    .empty());
}

TEST_CASE("names of what Pods have are checked") {
    CHECK(fault_of(pod(", ports: [{name: http-1, containerPort: 80}], env: [{name: A.b-1, value: x}]")).empty());
    CHECK(fault_of(pod(", ports: [{name: metrics-and-more, containerPort: 80}]")) ==
          "DaemonSet d: spec.template.spec.containers[0].ports[0].name: expected at most 15 lower-case letters, digits "
          "and single '-', with a letter among them, found 'metrics-and-more'");
    CHECK_FALSE(fault_of(pod(", ports: [{name: '80', containerPort: 80}]")).empty());
    CHECK_FALSE(fault_of(pod(", ports: [{name: a--b, containerPort: 80}]")).empty());
    CHECK_FALSE(fault_of(pod(", ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]")).empty());
    CHECK_FALSE(fault_of(pod(", env: [{name: A=B, value: x}]")).empty());
    CHECK_FALSE(fault_of(pod(", env: [{name: '', value: x}]")).empty());
    CHECK_FALSE(fault_of(pod("", ", initContainers: [{name: c, image: i}]")).empty());
    CHECK_FALSE(fault_of(pod("", ", initContainers: [{name: Upper, image: i}]")).empty());
    CHECK_FALSE(fault_of(pod("", ", volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]")).empty());
    CHECK_FALSE(fault_of(object("v1", "Service", "s", "spec: {ports: [{port: 1}, {port: 2, name: b}]}\n")).empty());
    CHECK(fault_of(object("v1", "Service", "s", "spec: {ports: [{port: 1}]}\n")).empty());
    CHECK_FALSE(fault_of(object("batch/v1", "CronJob", "c",
                                "spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: A_b}]}}}}}\n"))
                    .empty());
    // Another kind of that name has other members.
    CHECK(fault_of(object("batch.example.test/v1", "Job", "j",
                          "spec: {template: {spec: {containers: [{name: A_b}]}}}\n"))
              .empty());
}

TEST_CASE("a selector selects the template") {
    CHECK(fault_of(object("apps/v1", "Deployment", "d",
                          "spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: b}}}}\n")) ==
          "Deployment d: spec.selector.matchLabels[app]: expected a label of spec.template, found 'a'; the template "
          "has 'b'");
    CHECK_FALSE(fault_of(object("apps/v1", "Deployment", "d",
                                "spec: {selector: {matchLabels: {app: a}}, template: {}}\n"))
                    .empty());
}

TEST_CASE("members that must be texts are no numbers or booleans") {
    CHECK(wrong_texts(pod(", env: [{name: DEBUG, value: true}], args: [--level, 5]")) ==
          "DaemonSet d: spec.template.spec.containers[0].args[1] is int64 5, expected a text; the API server "
          "refuses it\n"
          "DaemonSet d: spec.template.spec.containers[0].env[0].value is bool true, expected a text; the API server "
          "refuses it\n");
    CHECK_FALSE(wrong_texts(pod("", ", nodeSelector: {a: true}")).empty());
    CHECK(wrong_texts(pod(", env: [{name: A, value: null}]")).empty());
    CHECK_FALSE(wrong_texts(object("v1", "ConfigMap", "c", "data: {a: 1}\n")).empty());
    CHECK(wrong_texts(object("v1", "Secret", "c", "stringData: {password: 12345}\n")) ==
          "Secret c: stringData[password] is a value of another type, expected a text; the API server refuses it\n");
}

TEST_CASE("an image names a kernel whole, not a part of another one") {
    using kmm::recipe::plan::names_kernel;
    const std::string kernel = "5.14.0-427.40.1.el9_4.x86_64";
    CHECK(names_kernel("r.test/drv:" + kernel, kernel));
    CHECK(names_kernel("r.test/drv:v1.2-" + kernel + "-1", kernel));
    CHECK(names_kernel("r.test/drv-" + kernel + "@sha256:00", kernel));
    CHECK(names_kernel("r.test/drv:v" + kernel + "_v2", kernel));
    CHECK(names_kernel("r.test/drv:" + kernel + "_rt", kernel + "+rt"));
    CHECK_FALSE(names_kernel("r.test/drv:" + kernel + "_rt", kernel));
    CHECK_FALSE(names_kernel("r.test/drv:" + kernel + "_64k-3", kernel));
    CHECK_FALSE(names_kernel("r.test/drv:" + kernel, kernel + "+rt"));
    CHECK_FALSE(names_kernel("r.test/drv:16.1.0-1-amd64", "6.1.0-1-amd64"));
    CHECK_FALSE(names_kernel("r.test/drv:6.1.0-10", "6.1.0-1"));
    CHECK_FALSE(names_kernel("r.test/drv:2.6.1.0-1-amd64", "6.1.0-1-amd64"));
    CHECK_FALSE(names_kernel("r.test/drv:latest", ""));
}

TEST_CASE("an image for one flavour of a kernel does not name the kernel of another one") {
    using kmm::recipe::plan::names_kernel;
    const std::pair<std::string, std::string> pairs[] = {
        {"6.8.0-45-generic", "6.8.0-45-generic-64k"},
        {"6.8.0-1013-nvidia", "6.8.0-1013-nvidia-64k"},
        {"6.12.48+deb13-arm64", "6.12.48+deb13-arm64-16k"},
        {"5.14.0-570.el9.x86_64+rt", "5.14.0-570.el9.x86_64+rt-debug"},
        {"5.14.0-570.el9.aarch64+64k", "5.14.0-570.el9.aarch64+64k-debug"},
        {"5.14.0-570.el9.aarch64+rt", "5.14.0-570.el9.aarch64+rt-64k"},
        {"5.14.0-570.el9.x86_64", "5.14.0-570.el9.x86_64+debug"},
    };
    for (const auto& [plain, flavoured] : pairs) {
        CAPTURE(flavoured);
        for (const std::string end : {"", "-1", "-v2", "_2", "@sha256:00"}) {
            const auto image = [&](std::string kernel) {
                std::replace(kernel.begin(), kernel.end(), '+', '_');
                return "r.test/drv:v1-" + kernel + end;
            };
            CHECK(names_kernel(image(plain), plain));
            CHECK(names_kernel(image(flavoured), flavoured));
            CHECK_FALSE(names_kernel(image(flavoured), plain));
            CHECK_FALSE(names_kernel(image(plain), flavoured));
        }
        CHECK_FALSE(names_kernel("r.test/" + flavoured + "/drv:1", plain));
    }
}
