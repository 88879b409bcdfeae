// SPDX-License-Identifier: Apache-2.0
// Pull first, build second, else wait.
#pragma once

#include <string>
#include <vector>

#include "recipe/decide/containers.hpp"
#include "value/node.hpp"

namespace kmm::recipe::decide {

/// What a registry said of an image.
enum class Presence { not_asked, present, absent, unreachable };

enum class Action {
    apply,  ///< nothing has to be there first
    pull,
    build,
    skip,   ///< a build that is not needed
    wait,
};
/// "apply" and so on.
[[nodiscard]] std::string_view to_string(Action action) noexcept;

struct Decision {
    DriverContainer container;
    Presence presence = Presence::not_asked;
    Action action = Action::pull;
    std::string reason;   ///< a code: image-present, image-not-checked, image-not-found, build-needed,
                          ///< no-image-no-source, registry-unreachable, dependency-waits
    std::string message;  ///< "" if the reason says it all
    std::string digest;   ///< of the image, "" not known
};

/// `update_vendor` is the vendor whose image is known to be missing.
[[nodiscard]] Decision decide(DriverContainer container, Presence presence, const std::string& update_vendor);

/// Containers of resources that need one that waits, at any depth, wait too.
void wait_for_dependencies(std::vector<Decision>& decisions, std::span<const plan::SpecialResource> all);

/// Removes the builds whose image need not be built.
void drop_needless_builds(plan::RenderedRecipes& rendered, const std::vector<Decision>& decisions);

/// One state of a resource for one kernel.
struct StateLine {
    std::string cr, state, kernel;     ///< kernel "" for what is made once
    std::vector<std::string> objects;  ///< "DaemonSet hello-e383247e62b56585", in the order in which they are applied
    std::vector<std::string>
        gates;  ///< what the next state waits for: "DaemonSet hello-… is ready", "… logs match 'loaded'"
    Action action = Action::apply;
    std::string reason, message, image, digest;
};

/// In the order in which states are applied; of a state, first what is made once, then the kernels in byte order.
[[nodiscard]] std::vector<StateLine> state_lines(const plan::RenderedRecipes& rendered,
                                                 const std::vector<Decision>& decisions);

/// {"resource", "state", "kernel", "objects", "gates", "decision", "reason", "message", "image", "digest"}; absent
/// parts are left out.
[[nodiscard]] value::Node line_node(const StateLine& line);

}  // namespace kmm::recipe::decide
