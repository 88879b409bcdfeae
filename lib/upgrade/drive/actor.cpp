// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive/actor.hpp"

#include <fmt/format.h>

namespace kmm::drive {

Done leave_gone(const std::string& name) {
    return {value::Node::mapping({{"cordon", ""}}),
            fmt::format("there is no Node {} and no answer from it: it stays as it is", name), ""};
}

}  // namespace kmm::drive
