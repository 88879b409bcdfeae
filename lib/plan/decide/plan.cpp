// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/plan.hpp"

namespace kmm::plan {

std::string_view to_string(Action action) noexcept {
    switch (action) {
        case Action::load: return "load";
        case Action::keep: return "keep";
        case Action::reload: return "reload";
        case Action::unload: return "unload";
        case Action::blocked: return "blocked";
        case Action::none: return "none";
    }
    return "none";
}

}  // namespace kmm::plan
