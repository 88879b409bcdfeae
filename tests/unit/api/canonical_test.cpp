// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/canonical.hpp"
#include "api/codec.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

std::string canonical_text(const std::string& text) {
    Diagnostics faults;
    api::Objects objects;
    for (const auto& document : value::read_any(text, "f.yaml", faults)) { api::decode(document, objects, faults); }
    api::finish(objects, faults);
    REQUIRE(faults.empty());
    std::string result;
    api::canonical(objects, [&](std::string_view kind, const api::ObjectMeta& meta, const std::string& json) {
        result += std::string(kind) + " " + meta.namespace_ + "/" + meta.name + " " + json + "\n";
    });
    return result;
}

const std::string k_objects = R"(apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata: {name: m, namespace: d, annotations: {kmmtools.dev/needs: d/other, note: a}}
spec:
  selector: {a: "1", b: "2"}
  tolerations: [{key: k, operator: Exists}]
  imageRepoSecret: {name: pull}
  devicePlugin:
    container: {image: "r/p:1", imagePullPolicy: Always}
  moduleLoader:
    serviceAccountName: loader
    container:
      version: v1
      containerImage: "r/m:v1"
      modprobe: {moduleName: m, dirName: /opt, parameters: [x=1]}
      kernelMappings: [{literal: 6.1.0-1-amd64, containerImage: "r/k:1", registryTLS: {insecure: true}}, {regexp: "^6", containerImage: ""}]
---
apiVersion: v1
kind: Node
metadata: {name: node, labels: {a: "1"}, annotations: {note: a}, resourceVersion: "1"}
spec: {taints: [{key: k, effect: NoSchedule}]}
status: {nodeInfo: {kernelVersion: 6.1.0-1-amd64, bootID: b1, architecture: amd64}}
---
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: d}
type: Opaque
stringData: {a: hidden-one}
)";

}  // namespace

TEST_SUITE("api::unit") {

TEST_CASE("one canonical form of what decisions read") {
    CHECK(
        canonical_text(k_objects) ==
        R"(Module d/m {"annotations":{"kmmtools.dev/needs":"d/other"},"devicePlugin":{"container":{"image":"r/p:1","imagePullPolicy":"Always"}},"imageRepoSecret":"pull","moduleLoader":{"containerImage":"r/m:v1","kernelMappings":[{"containerImage":"r/k:1","literal":"6.1.0-1-amd64","registryTLS":{"insecure":true}},{"regexp":"^6"}],"modprobe":{"dirName":"/opt","moduleName":"m","parameters":["x=1"]},"serviceAccountName":"loader","version":"v1"},"selector":{"a":"1","b":"2"},"tolerations":[{"key":"k","operator":"Exists"}]}
Node /node {"architecture":"amd64","bootID":"b1","kernelVersion":"6.1.0-1-amd64","labels":{"a":"1"},"taints":[{"effect":"NoSchedule","key":"k"}]}
Secret d/pull {"type":"Opaque"}
)");
}

TEST_CASE("what decisions do not read does not count, all else does") {
    const std::string before = canonical_text(k_objects);
    const auto changed = [&](const std::string& from, const std::string& to) {
        std::string text = k_objects;
        const auto at = text.find(from);
        REQUIRE(at != std::string::npos);
        return canonical_text(text.replace(at, from.size(), to));
    };
    CHECK(changed("note: a", "note: b") == before);
    CHECK(changed("resourceVersion: \"1\"", "resourceVersion: \"2\"") == before);
    CHECK(changed("hidden-one", "hidden-two") == before);
    CHECK(changed("{a: \"1\", b: \"2\"}", "{b: '2', \"a\": \"1\"}") == before);
    CHECK(changed("{image: \"r/p:1\", imagePullPolicy: Always}", "{imagePullPolicy: Always, image: r/p:1}") == before);
    std::set<std::string> seen{before};
    const std::vector<std::pair<std::string, std::string>> rows = {{"d/other", "d/another"},
                                                                   {"b: \"2\"", "b: \"3\""},
                                                                   {"operator: Exists", "operator: Equal"},
                                                                   {"name: pull", "name: push"},
                                                                   {"r/p:1", "r/p:2"},
                                                                   {"version: v1", "version: v2"},
                                                                   {"r/m:v1", "r/m:v2"},
                                                                   {"x=1", "x=2"},
                                                                   {"dirName: /opt", "dirName: /o"},
                                                                   {"insecure: true", "insecure: false"},
                                                                   {"\"^6\"", "\"^7\""},
                                                                   {"labels: {a: \"1\"}", "labels: {}"},
                                                                   {"NoSchedule", "NoExecute"},
                                                                   {"bootID: b1", "bootID: b2"},
                                                                   {"architecture: amd64", "architecture: arm64"},
                                                                   {"type: Opaque", "type: Other"}};
    for (const auto& [from, to] : rows) {
        CAPTURE(from);
        CHECK(seen.insert(changed(from, to)).second);
    }
}

}
