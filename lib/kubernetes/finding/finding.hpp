// SPDX-License-Identifier: Apache-2.0
// What a check is given and what it finds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/inventory/inventory.hpp"
#include "kubernetes/versions/catalogue.hpp"
#include "kubernetes/versions/observe.hpp"
#include "kubernetes/versions/patches.hpp"
#include "value/node.hpp"

namespace kmm::kubernetes {

/// `skip`: it could not be observed. Never said of what is right.
enum class Outcome { ok, warn, fail, skip };

/// "OK", "WARN", "FAIL" or "SKIP".
[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;

/// What a check found, without its id.
struct Finding {
    Outcome outcome = Outcome::skip;
    std::string detail;
    std::string fix = {};  ///< in place of that of the check, where the cause is another than it looks for
};

/// What a node has answered to kmm-worker kubernetes facts.
struct NodeAnswer {
    value::Node facts;    ///< its document, null if it did not answer
    std::string problem;  ///< why not, with its name; "" with facts
    std::int64_t asked = 0, answered = 0;  ///< when, by the clock of this machine, seconds since 1970
};
using NodeAnswers = std::map<std::string, NodeAnswer, std::less<>>;

/// What the upgrade is asked to do, and to leave.
struct Intent {
    bool drains = true;  ///< false: kubelets are switched on nodes that keep their Pods
    bool evicts_unmanaged = false;
    bool evicts_local_data = false;
    bool freezes = true;
    std::string skipped_phases{};  ///< of kubeadm, separated by commas
    bool has_patches = false;      ///< kubeadm changes what it writes by files on the nodes
};

/// What the checks are about. The references must outlive it.
struct CheckInput {
    const Inventory& inventory;
    const Observation& seen;
    const Catalogue& catalogue;
    std::optional<Version> target;  ///< nullopt: health
    const NodeAnswers* nodes = nullptr;  ///< nullptr: no node was asked
    std::int64_t now = 0;                ///< seconds since 1970; matters with `nodes`
    AppPrograms* programs = nullptr;     ///< nullptr: no --app-check
    const PatchList* patches = nullptr;  ///< nullptr: no --patch-query
    Intent intent{};
    std::string way = "";  ///< how programs get onto nodes: "packages", "binaries", "command", "" if not said
};

using CheckFunction = Finding (*)(const CheckInput&);
struct CheckRow {
    std::string_view id;
    CheckFunction run;
};

/// "a, b, c and 4 more": at most ten are named.
[[nodiscard]] std::string name_some(const std::vector<std::string>& names);

/// FAIL with `problems`, or OK with `fine` if there are none.
[[nodiscard]] Finding fail_if_any(const std::vector<std::string>& problems, std::string fine);

/// What to do about `faults`, each once: the first three, and how many more there are.
[[nodiscard]] std::string fixes_of(const Diagnostics& faults);

/// FAIL that refers to versions-uniform, which names what could not be observed; nullopt if the versions that run are
/// known.
[[nodiscard]] std::optional<Finding> versions_unknown(const CheckInput& input);
/// SKIP where the target is of a lower minor than the control plane: there is no way to it.
[[nodiscard]] std::optional<Finding> target_lower(const CheckInput& input);

}  // namespace kmm::kubernetes
