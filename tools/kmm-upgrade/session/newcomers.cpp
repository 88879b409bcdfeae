// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/newcomers.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/join_some.hpp"
#include "kmm-upgrade/session/causes.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {

void note_newcomers(Call& call, const upgrade::Run& run, const NewcomerWords& words,
                    const std::function<std::vector<std::string>()>& find) {
    constexpr std::size_t k_named = 8;
    if (call.context().verbosity < 0) return;
    std::vector<std::string> names;
    try {
        names = find();
    } catch (const Error& error) {
        const auto place = error.position() ? error.position()->to_string() + ": " : "";
        call.note("whether nodes came after the start could not be seen: " + place + error.message());
        return;
    }
    if (names.empty()) return;
    const auto description = upgrade::describe(run);
    const auto& command =
        description.again_for_left_out.empty() ? description.again : description.again_for_left_out;
    const bool is_one = names.size() == 1;
    call.note(fmt::format("{} came after the start and {}: {}",
                          is_one ? "node " + names.front() : "nodes " + base::join_some(names, k_named),
                          is_one ? words.one : words.several, command));
}

}  // namespace kmm::tool_upgrade
