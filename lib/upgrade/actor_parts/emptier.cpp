// SPDX-License-Identifier: Apache-2.0
#include "upgrade/actor_parts/emptier.hpp"

#include "upgrade/drive/step_runner.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::drive {

bool is_emptying(std::string_view step) {
    return step == upgrade::k_step_cordon || step == upgrade::k_step_drain || step == upgrade::k_step_uncordon;
}

Done Emptier::drain(const std::string& node, const Deadline& deadline) {
    Done done;
    done.message = drainer_.drain(node, drain_rules_of(recorder_.header().options), deadline);
    return done;
}

void Emptier::empty_again(const std::string& node, const std::function<bool()>& is_schedulable,
                          const Deadline& deadline) {
    if (!recorder_.header().options.drain || recorder_.node(node).cordon.empty() || !is_schedulable()) return;
    auto word = node_event(recorder_, upgrade::EventKind::observed, node, "");
    word.message = "uncordoned by someone else since it was drained: cordoned and drained again";
    word.facts = Cordons::intent();
    recorder_.record(word);
    const auto cordoned = cordons_.cordon(node);
    if (cordoned.facts.get_string({"cordon"}) != upgrade::k_cordon_ours) {
        word.message = cordoned.message;
        word.facts = cordoned.facts;
        recorder_.record(word);
    }
    static_cast<void>(drain(node, deadline));
}

}  // namespace kmm::drive
