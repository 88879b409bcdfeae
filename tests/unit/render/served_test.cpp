// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "render/served.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

using namespace kmm;

namespace {

std::string plain(const std::string& yaml) {
    Diagnostics faults;
    const auto documents = value::read_any(yaml, "spec.yaml", faults);
    REQUIRE(faults.empty());
    return value::to_json(render::without_defaults(documents.at(0).root));
}

}  // namespace

TEST_SUITE("render::unit") {

TEST_CASE("what an API server adds says nothing") {
    const char* rows[][2] = {
        {"{restartPolicy: Always, dnsPolicy: ClusterFirst, schedulerName: default-scheduler, securityContext: {}}",
         "{}"},
        {"{restartPolicy: Never, dnsPolicy: ClusterFirstWithHostNet}",
         R"({"restartPolicy":"Never","dnsPolicy":"ClusterFirstWithHostNet"})"},
        {"{terminationGracePeriodSeconds: 30, revisionHistoryLimit: 10, minReadySeconds: 0}", "{}"},
        {"{terminationGracePeriodSeconds: 5}", R"({"terminationGracePeriodSeconds":5})"},
        {"{updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}}", "{}"},
        {"{updateStrategy: {type: OnDelete}}", R"({"updateStrategy":{"type":"OnDelete"}})"},
        {"{serviceAccount: a, serviceAccountName: a}", R"({"serviceAccountName":"a"})"},
        {"{serviceAccount: b, serviceAccountName: a}", R"({"serviceAccount":"b","serviceAccountName":"a"})"},
        {"{image: 'r/a', imagePullPolicy: Always}", R"({"image":"r/a"})"},
        {"{image: 'r:5000/a', imagePullPolicy: Always}", R"({"image":"r:5000/a"})"},
        {"{image: 'r/a:latest', imagePullPolicy: IfNotPresent}",
         R"({"image":"r/a:latest","imagePullPolicy":"IfNotPresent"})"},
        {"{image: 'r/a:1', imagePullPolicy: IfNotPresent}", R"({"image":"r/a:1"})"},
        {"{image: 'r/a:1', imagePullPolicy: Always}", R"({"image":"r/a:1","imagePullPolicy":"Always"})"},
        {"{image: 'r/a@sha256:00', imagePullPolicy: IfNotPresent}", R"({"image":"r/a@sha256:00"})"},
        {"[{name: A, value: ''}, {name: B, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: spec.nodeName}}}]",
         R"([{"name":"A"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}])"},
        {"{volumes: [{name: a, emptyDir: {}}, {name: b, hostPath: {path: /b, type: ''}}, {name: c, secret: "
         "{secretName: c, defaultMode: 420}}]}",
         R"({"volumes":[{"name":"a","emptyDir":{}},{"name":"b","hostPath":{"path":"/b"}},{"name":"c","secret":{"secretName":"c"}}]})"},
        {"{nodeSelector: {type: '', value: ''}, matchLabels: {service: ''}}",
         R"({"nodeSelector":{"type":"","value":""},"matchLabels":{"service":""}})"},
        {"{resources: {limits: {cpu: 1000m, memory: 1Gi}, requests: {cpu: 1, memory: 1073741824, 'x.y/z': 'odd'}}}",
         R"({"resources":{"limits":{"cpu":"1","memory":"1073741824"},"requests":{"cpu":"1","memory":"1073741824","x.y/z":"odd"}}})"},
        {"{resourceFieldRef: {resource: limits.cpu, divisor: '0'}}", R"({"resourceFieldRef":{"resource":"limits.cpu"}})"},
        {"{resourceFieldRef: {resource: limits.memory, divisor: 1024Ki}}",
         R"({"resourceFieldRef":{"resource":"limits.memory","divisor":"1048576"}})"},
        {"{volumes: [{name: a, emptyDir: {sizeLimit: 1024Mi}}, {name: b, image: {reference: 'r/a:1', pullPolicy: "
         "IfNotPresent}}, {name: c, ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem}}}}]}",
         R"({"volumes":[{"name":"a","emptyDir":{"sizeLimit":"1073741824"}},{"name":"b","image":{"reference":"r/a:1"}},{"name":"c"}]})"},
        {"{volumeMounts: [{name: a, mountPath: /a, readOnly: false}, {name: b, mountPath: /b, readOnly: true}]}",
         R"({"volumeMounts":[{"name":"a","mountPath":"/a"},{"name":"b","mountPath":"/b","readOnly":true}]})"},
        {"{automountServiceAccountToken: false, metadata: {creationTimestamp: null}}",
         R"({"automountServiceAccountToken":false})"},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row[0]));
        CHECK(plain(row[0]) == row[1]);
    }
}

}
