// SPDX-License-Identifier: Apache-2.0
// A live cluster as the source of a plan.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "kube/client.hpp"
#include "kube/fleet.hpp"

namespace kmm::tool_plan {

/// True if the environment, the home directory or a service account has one.
[[nodiscard]] bool finds_api_server(const cli::Args& args);

/// The contexts of --context in order, each once; {""} for the current one.
[[nodiscard]] std::vector<std::string> chosen_contexts(const cli::Args& args);

/// A client that says on standard error when the server does not answer, with the seams it needs.
class LiveCluster {
public:
    /// Errors: those of kube::load_connection.
    LiveCluster(const cli::Args& args, const std::string& context_name, cli::Context& context);
    ~LiveCluster();
    LiveCluster(const LiveCluster&) = delete;
    LiveCluster& operator=(const LiveCluster&) = delete;

    [[nodiscard]] kube::Client& client() noexcept;
    /// Calls `body`, which asks the server. Errors: those of `body`; timeout "network-timeout" once the time of
    /// --timeout is over.
    void in_time(const std::function<void()>& body) const;
    /// Name of the context.
    [[nodiscard]] const std::string& name() const noexcept;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

/// What the verb `verb` needs to know of a cluster; `render hub` looks at what hubs have.
[[nodiscard]] kube::FleetQuery fleet_query(std::string_view verb, const cli::Args& args);

}  // namespace kmm::tool_plan
