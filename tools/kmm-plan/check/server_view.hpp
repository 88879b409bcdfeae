// SPDX-License-Identifier: Apache-2.0
// What an API server would make of a change, asked without changing anything.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "kmm-plan/source/live.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// Asks with dryRun=All, so that admission, defaults and validation of the server have their say.
class ServerView {
public:
    explicit ServerView(LiveCluster& live) : live_(live) {}

    /// The Node or NodeModulesConfig `name` after the change from `observed` to `wanted` (trees with metadata.labels
    /// and spec; `observed` null: it is created). nullopt if the server cannot be asked for this one. What it refuses
    /// is a finding "rejected"; a right to patch that is missing is a warning "dry-run-forbidden", and the server is
    /// not asked again.
    [[nodiscard]] std::optional<value::Node> after(const std::string& kind, const std::string& name,
                                                   const value::Node& observed, const value::Node& wanted);

    [[nodiscard]] const Diagnostics& findings() const noexcept { return findings_; }

private:
    [[nodiscard]] std::optional<value::Node> ask(const std::string& kind, const std::string& name,
                                                 const value::Node& observed, const value::Node& wanted);

    LiveCluster& live_;
    Diagnostics findings_;
    bool is_allowed_ = true;
};

/// The merge patch (RFC 7386) that makes `to` of `from`; an empty mapping if they are the same.
[[nodiscard]] value::Node merge_patch_between(const value::Node& from, const value::Node& to);

}  // namespace kmm::tool_plan
