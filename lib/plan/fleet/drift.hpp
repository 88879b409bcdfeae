// SPDX-License-Identifier: Apache-2.0
// A plan file held against the plan of now.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/types.hpp"
#include "plan/decide/plan.hpp"
#include "value/node.hpp"

namespace kmm::plan {

/// What a plan file says about one Module on one node.
struct SavedEntry {
    std::string kernel, version, image, action, reason;
    value::Node config;  ///< null when the entry has none
};

/// A plan file, reduced to one Module.
struct SavedPlan {
    bool next = false;                        ///< made with --next
    std::map<std::string, SavedEntry> nodes;  ///< by Node name
    std::string loader_digest;                ///< of the Module's loader_text; "" if the file has none
};

/// The member of a plan file's digests for the moduleLoader of NS/MODULE. Entries of nodes that a version label holds
/// do not show it, and an upgrade loads it.
[[nodiscard]] std::string loader_digest_key(const std::string& ns, const std::string& module);

/// What that digest is made of: the moduleLoader in one form, however it was written.
[[nodiscard]] std::string loader_text(const api::Module& module);

/// Takes the entries of NS/MODULE out of a plan file. Errors: data "bad-plan" with the place, what was expected and
/// found: another kind, several clusters, facts that are only imagined (`whatIf`), an entry that is none.
[[nodiscard]] SavedPlan read_saved_plan(const value::Document& document, const std::string& ns,
                                        const std::string& module);

/// Every difference between `saved` and the entries of the same Module in `now`: node, and what was and is, in words;
/// sorted by node. Boot ids do not count: a node that was restarted with the same kernel is decided anew anyway.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> drift(const SavedPlan& saved, const Plan& now,
                                                                     const std::string& ns, const std::string& module);

}  // namespace kmm::plan
