// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/live.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/render/hub.hpp"
#include "kube/kubeconfig.hpp"
#include "kube/teller.hpp"
#include "sys/clock.hpp"
#include "sys/random.hpp"

namespace kmm::tool_plan {

namespace {

bool is_given(const cli::Args& args, std::string_view option) {
    return args.get(option) && args.source(option) != "environment";
}

kube::ConfigRequest config_request(const cli::Args& args, const std::string& context_name) {
    kube::ConfigRequest request = kube::request_from_environment();
    if (is_given(args, "kubeconfig")) { request.file = args.get("kubeconfig"); }
    request.context = context_name;
    return request;
}

}  // namespace

bool finds_api_server(const cli::Args& args) { return kube::connection_configured(config_request(args, "")); }

std::vector<std::string> chosen_contexts(const cli::Args& args) {
    std::vector<std::string> result;
    for (auto& name : args.all("context")) {
        if (std::find(result.begin(), result.end(), name) == result.end()) { result.push_back(name); }
    }
    if (result.empty()) { result.emplace_back(); }
    return result;
}

struct LiveCluster::Parts {
    sys::LinuxClock clock;
    sys::LinuxRandom random;
    std::unique_ptr<kube::Client> client;
    std::optional<std::chrono::milliseconds> timeout;  ///< of the whole command
};

LiveCluster::LiveCluster(const cli::Args& args, const std::string& context_name, cli::Context& context)
    : parts_(std::make_unique<Parts>()) {
    kube::Connection connection = kube::load_connection(config_request(args, context_name));
    kube::ClientOptions options;
    if (context.verbosity >= 0) {
        kube::tell_all(options, [&console = context.console](const std::string& line) { console.err(line + "\n"); });
    }
    if (const auto timeout = args.get("api-timeout")) {
        options.api_timeout = base::parse_duration(*timeout).value_or(options.api_timeout);
    }
    if (const auto timeout = args.get("timeout")) { parts_->timeout = base::parse_duration(*timeout); }
    if (parts_->timeout) {
        const auto end = parts_->clock.monotonic() + *parts_->timeout;
        options.cancelled = [&clock = parts_->clock, end] { return clock.monotonic() >= end; };
        options.api_timeout = std::min(options.api_timeout, *parts_->timeout);
        options.request_timeout = std::min(options.request_timeout, *parts_->timeout);
    }
    parts_->client = kube::make_client(std::move(connection), parts_->clock, parts_->random, std::move(options));
}

LiveCluster::~LiveCluster() = default;

kube::Client& LiveCluster::client() noexcept { return *parts_->client; }

void LiveCluster::in_time(const std::function<void()>& body) const {
    try {
        body();
    } catch (const Error& error) {
        if (!parts_->timeout || (error.code() != "interrupted" && error.code() != "api-unreachable")) { throw; }
        throw Error(
            Exit::timeout, "network-timeout",
            fmt::format("no complete answer within {}, as --timeout says", base::format_duration(*parts_->timeout)))
            .detail("last", error.message());
    }
}

const std::string& LiveCluster::name() const noexcept { return parts_->client->connection().context; }

kube::FleetQuery fleet_query(std::string_view verb, const cli::Args& args) {
    kube::FleetQuery query;
    if (verb == "images" || verb == "preflight") { query.referenced = kube::FleetQuery::Referenced::secrets; }
    if (verb == "render" || verb == "validate") { query.referenced = kube::FleetQuery::Referenced::all; }
    if (verb == "why") { query.image_pods = kube::FleetQuery::ImagePods::yes; }
    if (verb == "preflight") { query.preflights = kube::FleetQuery::Preflights::yes; }
    if (verb == "validate") { query.surroundings = kube::FleetQuery::Surroundings::yes; }
    if (verb == "diff") { query.plugins = kube::FleetQuery::Plugins::yes; }
    if (verb == "validate") { query.hub = kube::FleetQuery::Hub::modules; }
    if (verb == "render" && asks_for_hub(args)) {
        query.hub = kube::FleetQuery::Hub::all;
        query.referenced = kube::FleetQuery::Referenced::none;
    }
    return query;
}

}  // namespace kmm::tool_plan
