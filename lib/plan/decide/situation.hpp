// SPDX-License-Identifier: Apache-2.0
// What a decision sees of a node and a Module. Pairs with the same situation are decided alike, but for names and boot
// ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plan/decide/verdict.hpp"

namespace kmm::plan {

/// Numbers the situations of nodes, which are looked at one by one. What NodeModulesConfigs say counts by identity:
/// entries that share their parts are the same, others are told apart.
class Situations {
public:
    /// `modules` and the views that come must outlive the object. `schedule_key` is that of the decisions.
    Situations(std::vector<const api::Module*> modules, api::ScheduleKey schedule_key);

    /// Looks at a node. False if its decisions are its own: its kernel is not known, or it has worker Pods. O(labels +
    /// entries).
    bool look(const NodeView& view);
    /// Of the node that was looked at: the number of its situation with a Module that `selected` it or not, counted
    /// from 0.
    [[nodiscard]] std::size_t number(std::size_t module, bool selected);
    /// Whether the NodeModulesConfig of that node has entries of other Modules.
    [[nodiscard]] bool has_unknown() const noexcept { return has_unknown_; }

private:
    /// What is on the node of one Module.
    struct Traces {
        const std::string* module = nullptr;  ///< values of the version labels
        const std::string* worker = nullptr;
        const std::string* schedule = nullptr;
        const api::NodeModule* spec = nullptr;
        const api::NodeModule* status = nullptr;
        bool is_ready = false;      ///< label ready
        bool is_leftover = false;   ///< label version-device-plugin of an earlier KMM
        bool exists = false;        ///< any of them is there
    };
    enum class Mark { module, worker, schedule, ready, leftover };
    /// A set of taints, and the first one that each Module does not tolerate: 0 for none, else the number of its text.
    struct Taints {
        std::uint32_t number;
        std::vector<std::uint32_t> blocking;
    };

    /// What a label says of which Modules.
    using Marks = std::vector<std::pair<std::size_t, Mark>>;

    Traces& touch(std::size_t module);
    [[nodiscard]] const Marks& marks_of(const std::string& key);
    [[nodiscard]] std::size_t place_of(const api::NodeModule& entry);
    void look_at_labels(const api::Labels& labels);
    void look_at_entries(const std::vector<api::NodeModule>& entries, const api::NodeModule* Traces::*part);
    const Taints& taints_of(const api::Node& node);
    [[nodiscard]] bool are_tolerated(const api::NodeModule& entry);
    void append(const api::NodeModule* entry);
    [[nodiscard]] std::size_t numbered();

    std::vector<const api::Module*> modules_;
    std::unordered_map<std::string, Marks> marks_;         ///< by label key
    std::unordered_map<std::string, std::size_t> places_;  ///< of Modules, by NAMESPACE/NAME
    /// What was found last, by where the text of a key is and by where the config of an entry is: objects share them.
    static constexpr std::size_t k_last = 2048;
    std::vector<std::pair<const std::string*, const Marks*>> last_marks_ =
        std::vector<std::pair<const std::string*, const Marks*>>(k_last);
    std::vector<std::size_t> last_places_ = std::vector<std::size_t>(k_last);
    const api::Node* node_ = nullptr;
    const Taints* taints_ = nullptr;
    std::vector<Traces> traces_;         ///< by Module
    std::vector<std::size_t> touched_;   ///< Modules of which something exists
    bool has_unknown_ = false;

    using Row = std::vector<std::size_t>;  ///< for each Module, selected or not: the number plus one, 0 for none yet
    std::unordered_map<std::string, std::pair<std::uint32_t, Row>> rows_;  ///< by kernel and state of the node
    std::pair<std::uint32_t, Row>* row_ = nullptr;
    std::unordered_map<std::string, Taints> taint_sets_;
    std::unordered_map<std::string, std::uint32_t> taint_numbers_;
    std::map<std::pair<const void*, std::uint32_t>, bool> tolerated_;  ///< by tolerations and number of the taint set
    std::unordered_map<std::string, std::size_t> numbers_;
    std::string key_;                    ///< scratch
    std::size_t count_ = 0;
};

}  // namespace kmm::plan
