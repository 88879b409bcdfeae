// SPDX-License-Identifier: Apache-2.0
// Looking at a node until it answers: how everything that a crash, a lost connection or a reboot left open is settled.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "drive/worker.hpp"
#include "sys/clock.hpp"

namespace kmm::drive {

/// How a look ended without an answer. `interrupted`: a person asked to stop.
enum class NoLook { unreachable, moving, refused, interrupted };

struct LookResult {
    std::optional<Look> look;
    NoLook why = NoLook::unreachable;
    std::optional<Error> error;  ///< set unless interrupted
    std::optional<Error> lost;   ///< the last call before the answer that was lost or could not reach the node
};

/// Time left for one step on one node.
class Deadline {
public:
    Deadline(const sys::Clock& clock, std::chrono::milliseconds duration)
        : clock_(clock), end_(clock.monotonic() + duration) {}
    [[nodiscard]] bool passed() const { return clock_.monotonic() >= end_; }
    /// At least one second, so that a call made at the end still has a chance.
    [[nodiscard]] std::chrono::milliseconds left() const {
        return std::max(end_ - clock_.monotonic(), std::chrono::milliseconds(1000));
    }

private:
    const sys::Clock& clock_;
    std::chrono::milliseconds end_;
};

/// Asks for the status, again and again with growing pauses (1 s to 10 s) while the node cannot be asked or the module is
/// on its way in or out of the kernel, until `deadline`. A refusal by the worker ends it at once.
[[nodiscard]] LookResult look_at(Worker& worker, sys::Clock& clock, const std::string& node, const std::string& kernel_module,
                                 const Deadline& deadline, const std::function<bool()>& interrupted);

}  // namespace kmm::drive
