// SPDX-License-Identifier: Apache-2.0
// Source: KMM internal/config; facts: KMM 13.
#include "render/operator_config.hpp"

#include <fmt/format.h>

#include "api/fields.hpp"
#include "base/text.hpp"

namespace kmm::render {

namespace {

constexpr std::int64_t k_port_max = 65535;

void check_port(api::Fields& fields, std::string_view key) {
    const auto port = fields.integer(key);
    if (port && (*port < 0 || *port > k_port_max)) {
        fields.scope().fault("bad-value", fmt::format("{} must be a port number, found {}", fields.path_of(key), *port),
                             fields.node().find(key)->mark());
    }
}

void check_gc_delay(api::Fields& job) {
    const std::string delay = job.string("gcDelay");
    if (delay.empty() || base::parse_duration(delay)) { return; }
    job.scope().fault("bad-value",
                      fmt::format("{} must be a duration, found \"{}\"", job.path_of("gcDelay"), base::escape(delay)),
                      job.node().find("gcDelay")->mark(), "like 90s, 5m or 1h30m");
}

void read_worker(api::Fields& worker, OperatorConfig& config) {
    if (const auto user = worker.integer("runAsUser")) {
        if (*user < 0) {
            worker.scope().fault("bad-value",
                                 fmt::format("{} must not be negative, found {}", worker.path_of("runAsUser"), *user),
                                 worker.node().find("runAsUser")->mark());
        }
        config.worker_run_as_user = *user;
    }
    if (worker.get("seLinuxType") != nullptr) { config.worker_se_linux_type = worker.string("seLinuxType"); }
    if (worker.get("firmwareHostPath") != nullptr) {
        config.worker_firmware_host_path = worker.string("firmwareHostPath");
        if (const std::string fault = firmware_path_fault(config.worker_firmware_host_path); !fault.empty()) {
            worker.scope().fault("bad-value", fmt::format("{} {}", worker.path_of("firmwareHostPath"), fault),
                                 worker.node().find("firmwareHostPath")->mark());
        }
    }
    if (const value::Node* old = worker.node().find("setFirmwareClassPath"); old != nullptr) {
        worker.allow({"setFirmwareClassPath"});
        worker.scope().fault("unknown-field",
                             fmt::format("unknown field {}: the operator then ignores the whole file",
                                         worker.path_of("setFirmwareClassPath")),
                             old->mark(), "its name is firmwareHostPath now");
    }
    worker.done();
}

}  // namespace

std::string firmware_path_fault(std::string_view path) {
    if (path.empty()) { return ""; }
    const std::string shown = base::escape(path);
    if (path.front() != '/') { return fmt::format("must be absolute, found \"{}\"", shown); }
    if (path.find(':') != std::string_view::npos) {
        return fmt::format("must not have a ':', which no mount path of a Pod may have, found \"{}\"", shown);
    }
    for (const auto piece : base::split(path, '/')) {
        if (piece == "..") { return fmt::format("must not have \"..\", found \"{}\"", shown); }
    }
    return shown == path ? "" : fmt::format("must not have control characters, found \"{}\"", shown);
}

OperatorConfig decode_operator_config(const value::Document& document, Diagnostics& diagnostics) {
    OperatorConfig config;
    api::Scope scope{document, diagnostics, nullptr, false};
    api::Fields fields(scope, document.root, "");
    static_cast<void>(fields.string("healthProbeBindAddress"));
    check_port(fields, "webhookPort");
    bool openshift = false;
    if (auto webhook = fields.child("webhook")) {
        openshift = true;
        check_port(*webhook, "port");
        static_cast<void>(webhook->boolean("disableHTTP2"));
        webhook->done();
    }
    if (auto election = fields.child("leaderElection")) {
        static_cast<void>(election->boolean("enabled"));
        static_cast<void>(election->string("resourceID"));
        election->done();
    }
    if (auto metrics = fields.child("metrics")) {
        static_cast<void>(metrics->string("bindAddress"));
        static_cast<void>(metrics->boolean("enableAuthnAuthz"));
        static_cast<void>(metrics->boolean("secureServing"));
        openshift = openshift || metrics->node().find("disableHTTP2") != nullptr;
        static_cast<void>(metrics->boolean("disableHTTP2"));
        metrics->done();
    }
    if (auto job = fields.child("job")) {
        check_gc_delay(*job);
        job->done();
    }
    if (auto worker = fields.child("worker")) { read_worker(*worker, config); }
    fields.done();
    const value::Node* upstream = document.root.find("webhookPort");
    if (openshift && upstream != nullptr) {
        scope.fault("bad-value",
                    "webhookPort is a field of KMM, webhook and metrics.disableHTTP2 are those of KMM on OpenShift: "
                    "either operator ignores the whole file",
                    upstream->mark(), "on OpenShift write webhook.port; elsewhere remove the others");
    }
    return config;
}

}  // namespace kmm::render
