// SPDX-License-Identifier: Apache-2.0
// What a plan is: which node needs which module and why, line by line.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/labels.hpp"
#include "api/types.hpp"
#include "base/error.hpp"
#include "plan/kmm/image_states.hpp"

namespace kmm::plan {

enum class Action { load, keep, reload, unload, blocked, none };
[[nodiscard]] std::string_view to_string(Action action) noexcept;
/// Whether the module is loaded after it.
[[nodiscard]] constexpr bool ends_loaded(Action action) noexcept {
    return action == Action::load || action == Action::keep || action == Action::reload;
}

/// One line of the plan. `version`, `image` and `config` are those of what is loaded in the end (load, keep, reload) or
/// is unloaded (unload); otherwise `version` is the Module's and the others are absent.
struct Entry {
    std::string node, kernel, boot_id, namespace_, module, version;
    std::optional<std::size_t> mapping_index;
    bool mapping_literal = false;
    std::string mapping_text;
    std::string image;
    Action action = Action::none;
    std::string reason;   ///< closed list of kebab-case codes
    std::string message;  ///< for people
    std::optional<api::ModuleConfig> config;
    /// Rank among the Modules (see load_order), and what the Module needs; nullopt if no Module of the plan needs
    /// another.
    std::optional<std::size_t> order;
    std::vector<std::string> needs;
};

struct Plan {
    std::vector<Entry> entries;  ///< sorted by node, then namespace, then module
    Diagnostics diagnostics;
};

struct Options {
    bool next = false;  ///< only what the very next pass does, instead of the settled state
    /// Images that are not in their registry, as globs ("*" and "?" match any characters). Others are taken to exist.
    std::vector<std::string> missing_images;
    /// The label key of the cluster's KMM; nullopt: detected from the objects (see detect_schedule_key).
    std::optional<api::ScheduleKey> schedule_key;
    /// What KMM says about images; nullptr: taken from the objects (see complete).
    std::shared_ptr<const ImageStates> image_states = nullptr;
};

/// `options` with everything that is to be detected filled in. O(nodes).
[[nodiscard]] Options complete(Options options, const api::Objects& objects);

}  // namespace kmm::plan
