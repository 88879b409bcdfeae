// SPDX-License-Identifier: Apache-2.0
#include "upgrade/engine/procedure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade {

std::int64_t Members::limit(const Run& run) const {
    return at_once == 0 ? run.options.max_unavailable : std::min(at_once, run.options.max_unavailable);
}

void require_recorded(std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
    for (const auto& [name, text] : members)
        if (text.empty()) throw Error(Exit::io, "state-damaged", fmt::format("the record has no {}", name));
}

std::pair<std::string, std::string> Procedure::aspect(const Header& /*run*/, const NodeRecord& node) const {
    return {"KERNEL", node.kernel};
}

std::string Procedure::restart_state(const Run& /*run*/, const NodeRecord& /*node*/) const {
    return std::string(k_node_pending);
}

}  // namespace kmm::upgrade
