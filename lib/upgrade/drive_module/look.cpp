// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_module/look.hpp"

#include <fmt/format.h>

namespace kmm::drive {

LookResult look_at(Worker& worker, sys::Clock& clock, const std::string& node, const std::string& kernel_module,
                   const Deadline& deadline, const std::function<bool()>& interrupted) {
    LookResult result;
    const auto leave = [&] {
        result.why = NoLook::interrupted;
        result.error.reset();
        return result;
    };
    for (std::chrono::milliseconds pause{1000};; pause = std::min(pause * 2, std::chrono::milliseconds(10'000))) {
        Reply<Look> status;
        try {
            status = worker.status(node, kernel_module, std::min(deadline.left(), std::chrono::milliseconds(60'000)));
        } catch (const Error& error) {
            if (error.code() != "interrupted" || !interrupted()) throw;
            return leave();
        }
        result.error = status.error;
        result.why = status.settled() ? NoLook::refused : NoLook::unreachable;
        if (!status.settled()) result.lost = status.error;
        if (status.value && status.value->module.presence != Presence::moving) {
            result.look = *status.value;
            result.error.reset();
            return result;
        }
        if (status.value) {
            result.why = NoLook::moving;
            result.error =
                Error(Exit::hung, "loader-hung",
                      fmt::format("node {}: {} is still being loaded or unloaded", node, kernel_module));
        }
        // Another worker, whose connection was lost, may still be at work there: its end is waited for.
        const bool busy = result.error && result.error->code() == "node-busy";
        if ((result.why == NoLook::refused && !busy) || deadline.passed()) return result;
        if (interrupted() || !clock.sleep_for(pause) || interrupted()) return leave();
    }
}

}  // namespace kmm::drive
