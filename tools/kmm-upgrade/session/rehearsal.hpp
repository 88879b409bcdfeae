// SPDX-License-Identifier: Apache-2.0
// What --dry-run says.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "upgrade/module_nodes/dry_run.hpp"

namespace kmm::tool_upgrade {

/// What would be done: for people line by line, as it is found out; for machines one document of kind UpgradeRehearsal
/// in the end. Thread safe.
class Rehearsal {
public:
    explicit Rehearsal(cli::Context& context);
    Rehearsal(const Rehearsal&) = delete;
    Rehearsal& operator=(const Rehearsal&) = delete;

    /// What follows is about this Module. `is_told`: one of several, so that people need its name.
    void module(const std::string& name, const std::string& from, const std::string& to, bool is_told);
    /// Nodes that the walk of this Module would leave out.
    void left_out(const std::vector<upgrade::LeftOut>& nodes);
    /// `node` would come into `state`.
    void step(const std::string& node, const std::string& state);
    /// One action on `node`; "cluster" for one that is about no node.
    void action(const std::string& node, const std::string& text);
    /// `action`, for those who do not know this class. `this` must outlive it.
    [[nodiscard]] drive::ActionSink sink();
    /// True if nothing was told.
    [[nodiscard]] bool is_empty() const;
    /// The end: the document, or that nothing was done. `complete`: the walk would get to its end.
    void finish(bool complete);

private:
    struct Step {
        std::string node, state;
        std::vector<std::string> actions;
    };
    struct Part {
        std::string module, from, to;
        std::vector<Step> steps;
        std::vector<upgrade::LeftOut> left_out;
    };
    void line(const std::string& text);

    mutable std::mutex mutex_;
    cli::Context& context_;
    std::vector<std::string> cluster_;
    std::vector<Part> parts_;
};

}  // namespace kmm::tool_upgrade
