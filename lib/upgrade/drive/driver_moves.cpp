// SPDX-License-Identifier: Apache-2.0
// Moves of the run itself, and the look at nodes that are done before it says so of all of them.
#include <algorithm>

#include "upgrade/drive/driver.hpp"
#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/table.hpp"

namespace kmm::drive {

using upgrade::Event;
using upgrade::EventKind;

namespace {

/// Whether `name` is the last of the stages that walk nodes: after it nodes are done.
bool is_last_walk(const std::vector<upgrade::Stage>& stages, std::string_view name) {
    const auto last =
        std::find_if(stages.rbegin(), stages.rend(), [](const upgrade::Stage& stage) { return stage.is_walk(); });
    return last != stages.rend() && last->name == name;
}

}  // namespace

bool Driver::is_to_be_confirmed(const Event& move) const {
    const auto& table = upgrade::procedure_of(recorder_.header()).table();
    if (move.kind != EventKind::done) return false;
    if (move.step != upgrade::k_step_complete) return is_last_walk(table.stages(), move.step);
    // The walk may have ended long ago, in another process.
    const auto* stage = table.stage_of(move.from);
    return !is_confirmed_ && stage != nullptr && is_last_walk(table.stages(), stage->name);
}

void Driver::make_move(const Event& move) {
    if (is_to_be_confirmed(move)) {
        try {
            if (!steps_.confirm()) return;  // what comes next is asked again
            is_confirmed_ = true;
        } catch (const Leave&) {
            return;
        } catch (const Error& error) {
            if (error.code() == "interrupted" && interrupted_()) return;
            throw;
        }
    }
    try {
        actor_.before_move(move);
    } catch (const Leave&) {
        return;  // whoever wants the walk to end is asked next
    } catch (const Error& error) {
        if (error.code() == "interrupted" && interrupted_()) return;
        if (steps_.ends_walk(error)) throw;
        std::string text = error.message();
        for (const auto& [key, more] : error.details())
            if (key == "output") text += ": " + more;
        return pause(error.code(), text);
    }
    recorder_.record(move);
}

}  // namespace kmm::drive
