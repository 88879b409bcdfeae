// SPDX-License-Identifier: Apache-2.0
// Every key of a rich Module misspelt, mistyped, removed and duplicated in turn: an error with a place, or a plan that
// follows what is written. Never a crash, never silence.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "plan/decide/plan.hpp"
#include "plan/fleet/make_plan.hpp"
#include "plan/lint/validate.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;

namespace {

constexpr const char* k_rich_modules = R"(
apiVersion: v1
kind: List
items:
- apiVersion: kmm.sigs.x-k8s.io/v1beta1
  kind: Module
  metadata:
    name: hello
    namespace: drivers
    labels: {team: kernel}
    annotations: {note: text}
  spec:
    selector: {kmm: "yes"}
    tolerations:
    - {key: dedicated, operator: Equal, value: gpu, effect: NoExecute, tolerationSeconds: 30}
    imageRepoSecret: {name: pull}
    imageRebuildTriggerGeneration: 1
    moduleLoader:
      serviceAccountName: loader
      container:
        version: v1
        containerImage: "registry.example/hello:${KERNEL_FULL_VERSION}"
        imagePullPolicy: Always
        registryTLS: {insecure: false, insecureSkipTLSVerify: true}
        inTreeModulesToRemove: [old, older]
        build:
          dockerfileConfigMap: {name: docker}
          buildArgs: [{name: A, value: b}]
          baseImageRegistryTLS: {insecure: true, insecureSkipTLSVerify: false}
          secrets: [{name: s}]
          kanikoParams: {tag: t}
          selector: {arch: amd64}
        sign:
          certSecret: {name: cert}
          keySecret: {name: key}
          filesToSign: [/opt/lib/hello.ko]
          unsignedImage: "registry.example/hello:unsigned"
          unsignedImageRegistryTLS: {insecure: false, insecureSkipTLSVerify: false}
        modprobe:
          moduleName: hello
          parameters: [greeting=hi]
          dirName: /opt
          args: {load: [-v], unload: [-v]}
          firmwarePath: /firmware
          modulesLoadingOrder: [hello, base]
        kernelMappings:
        - literal: 6.1.0-1-amd64
          containerImage: "registry.example/hello:one"
          registryTLS: {insecure: true, insecureSkipTLSVerify: true}
          inTreeModulesToRemove: [old]
          build: {dockerfileConfigMap: {name: other}}
          sign: {certSecret: {name: c}, keySecret: {name: k}, filesToSign: [/opt/a.ko]}
        - regexp: ^6\.
          containerImage: ""
    devicePlugin:
      container:
        image: "registry.example/plugin:1"
        args: [-a]
        command: [/plugin]
        imagePullPolicy: Always
        env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}]
        resources: {limits: {cpu: 1}, requests: {cpu: 100m}}
        volumeMounts: [{name: dev, mountPath: /dev, readOnly: true, subPath: a}]
      initContainer: {image: "registry.example/init:1"}
      serviceAccountName: plugin
      automountServiceAccountToken: true
      volumes: [{name: dev, hostPath: {path: /dev, type: Directory}}, {name: c, configMap: {name: m, optional: true}}]
- apiVersion: kmm.sigs.x-k8s.io/v1beta1
  kind: Module
  metadata: {name: dra, namespace: drivers}
  spec:
    selector: {}
    dra:
      container: {image: "registry.example/dra:1"}
      driverName: dra.example.org
      deviceClasses:
      - name: gpu.example.org
        selectors: [{cel: {expression: "true"}}]
        config: [{opaque: {driver: dra.example.org, parameters: {any: thing}}}]
- apiVersion: kmm.sigs.x-k8s.io/v1beta1
  kind: Module
  metadata: {name: raw, namespace: drivers}
  spec:
    selector: {}
    moduleLoader:
      container:
        inTreeModuleToRemove: old
        modprobe: {rawArgs: {load: [hello], unload: [-r, hello]}}
        kernelMappings: [{regexp: .+, containerImage: "registry.example/raw:1", inTreeModuleToRemove: older}]
)";

constexpr const char* k_mutation_node =
    "apiVersion: v1\nkind: Node\nmetadata: {name: node-a, labels: {kmm: \"yes\", "
    "kmm.node.kubernetes.io/version-module.drivers.hello: v1}}\n"
    "status: {nodeInfo: {kernelVersion: 6.1.0-1-amd64, bootID: b}}\n";

/// Mappings whose keys and values are the user's: another key there is another wish, no fault.
const std::vector<std::string> k_free{".metadata.labels", ".metadata.annotations", ".spec.selector", ".build.selector",
                                      ".resources.limits", ".resources.requests", ".opaque.parameters"};

bool is_free(const std::string& path) {
    return std::any_of(k_free.begin(), k_free.end(), [&](const std::string& part) {
        const std::size_t at = path.rfind(part + ".");
        return at != std::string::npos && path.find_first_of(".[", at + part.size() + 1) == std::string::npos;
    });
}

enum class Mutation { misspell, mistype, remove, duplicate };

/// The tree as JSON with one member mutated, counted in document order; `path` receives the member's path.
class MutatingWriter {
public:
    MutatingWriter(std::size_t target, Mutation mutation) : target_(target), mutation_(mutation) {}
    std::string path;

    std::string text(const value::Node& node, const std::string& at = "") {
        if (node.is_sequence()) {
            std::string result;
            for (std::size_t i = 0; i < node.items().size(); ++i) {
                result += (i == 0 ? "" : ",\n") + text(node.items()[i], fmt::format("{}[{}]", at, i));
            }
            return "[" + result + "]";
        }
        if (!node.is_mapping()) { return value::to_json(node); }
        std::string result;
        for (const auto& member : node.members()) {
            for (const auto& piece : pieces(member, at)) { result += (result.empty() ? "" : ",\n") + piece; }
        }
        return "{" + result + "}";
    }

private:
    std::vector<std::string> pieces(const value::Member& member, const std::string& at) {
        const std::string here = at + "." + member.key;
        const bool hit = count_++ == target_;
        const std::string value = text(member.value, here);
        const auto line = [](const std::string& key, const std::string& json) {
            return value::to_json(value::Node(key)) + ": " + json;
        };
        if (!hit) { return {line(member.key, value)}; }
        path = here;
        switch (mutation_) {
            case Mutation::misspell: return {line(member.key + "x", value)};
            case Mutation::mistype: return {line(member.key, mistyped(member.value))};
            case Mutation::remove: return {};
            case Mutation::duplicate: return {line(member.key, value), line(member.key, value)};
        }
        return {};
    }

    static std::string mistyped(const value::Node& node) {
        switch (node.kind()) {
            case value::Kind::string: return "{\"a\": 1}";
            case value::Kind::mapping: return "[true]";
            case value::Kind::sequence: return "{\"a\": \"b\"}";
            default: return "[\"text\"]";
        }
    }

    std::size_t target_;
    std::size_t count_ = 0;
    Mutation mutation_;
};

struct Outcome {
    Diagnostics findings;
    plan::Plan plan;
};

Outcome judge_text(const std::string& text) {
    Outcome outcome;
    api::Objects objects;
    for (const auto& [file, content] : {std::pair{"m.json", text}, std::pair{"n.yaml", std::string(k_mutation_node)}}) {
        for (const auto& document : value::read_any(content, file, outcome.findings)) {
            api::decode(document, objects, outcome.findings);
        }
    }
    api::finish(objects, outcome.findings);
    for (auto& finding : plan::validate(objects)) { outcome.findings.push_back(std::move(finding)); }
    outcome.plan = plan::make_plan(objects, {});
    return outcome;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("no key of a Module can be wrong in silence") {
        Diagnostics faults;
        const auto documents = value::read_yaml(k_rich_modules, "rich.yaml", faults);
        REQUIRE(faults.empty());
        REQUIRE(documents.size() == 1);
        const value::Node& rich = documents.front().root;
        const Outcome whole = judge_text(MutatingWriter(std::size_t(-1), Mutation::remove).text(rich));
        for (const auto& finding : whole.findings) {
            INFO(finding.message);
            CHECK(finding.severity != Severity::error);
        }
        REQUIRE(whole.plan.entries.size() >= 2);

        std::size_t mutations = 0;
        std::size_t errors = 0;
        std::set<std::string> required;
        bool more = true;
        for (std::size_t target = 0; more; ++target) {
            for (const Mutation mutation :
                 {Mutation::misspell, Mutation::mistype, Mutation::remove, Mutation::duplicate}) {
                MutatingWriter writer(target, mutation);
                const std::string text = writer.text(rich);
                more = !writer.path.empty();
                if (!more) { break; }
                ++mutations;
                CAPTURE(writer.path);
                CAPTURE(static_cast<int>(mutation));
                const Outcome outcome = judge_text(text);
                const bool refused = has_errors(outcome.findings);
                errors += refused ? 1U : 0U;
                const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
                for (const auto& finding : outcome.findings) {
                    INFO(finding.message);
                    REQUIRE(finding.position);
                    CHECK(finding.position->line >= 1);
                    CHECK(finding.position->line <= lines);
                    CHECK(finding.position->column >= 1);
                }
                if (mutation == Mutation::duplicate) { CHECK(refused); }
                if (mutation == Mutation::misspell || mutation == Mutation::mistype) {
                    CHECK((refused || is_free(writer.path)));
                }
                if (mutation == Mutation::remove && refused) { required.insert(writer.path); }
                if (!refused) { CHECK(outcome.plan.entries.size() <= whole.plan.entries.size()); }
            }
        }
        MESSAGE(mutations << " mutations, " << errors << " refused with a place, " << required.size()
                          << " keys required");
        CHECK(mutations > 400);
        // What the CRD and the webhook require, and nothing else.
        const std::string spec = ".items[0].spec";
        const std::string loader = spec + ".moduleLoader.container";
        for (const auto& path :
             {spec + ".selector", spec + ".moduleLoader.container", loader + ".modprobe", loader + ".kernelMappings",
              loader + ".kernelMappings[1].containerImage", loader + ".kernelMappings[1].regexp",
              loader + ".sign.filesToSign", loader + ".build.dockerfileConfigMap", spec + ".tolerations[0].key",
              std::string(".items[0].metadata.namespace")}) {
            CAPTURE(path);
            CHECK(required.count(path) == 1);
        }
        for (const auto& path : {spec, spec + ".tolerations", spec + ".moduleLoader", spec + ".devicePlugin",
                                 loader + ".version", loader + ".build", loader + ".sign",
                                 loader + ".modprobe.parameters", std::string(".items[0].metadata.labels")}) {
            CAPTURE(path);
            CHECK(required.count(path) == 0);
        }
    }
}
