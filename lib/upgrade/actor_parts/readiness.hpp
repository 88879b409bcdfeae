// SPDX-License-Identifier: Apache-2.0
// Nodes that are done and not Ready, before a run says that all of them are through.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sys/clock.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/engine/event.hpp"

namespace kmm::drive {

/// The event that a node, which is done, is not Ready; `problem` says what is not. `state`: that of the node from now
/// on.
[[nodiscard]] upgrade::Event unready_event(const Recorder& recorder, const std::string& node, std::string state,
                                           const std::string& problem);
/// The same of one that does not answer, whether it has a kubelet or not: what it runs is not known any more.
[[nodiscard]] upgrade::Event silent_event(const Recorder& recorder, const std::string& node, std::string state);
/// Whether an event is one of these two.
[[nodiscard]] bool is_unready(const upgrade::Event& event);
/// What `find` finds. While that is only events that may pass, it is asked again, for 2 minutes or the time limit of a
/// node. Errors: those of `find`. Throws Leave.
[[nodiscard]] std::vector<upgrade::Event> find_when_ready(
    sys::Clock& clock, Recorder& recorder, const std::function<bool()>& interrupted,
    const std::function<std::vector<upgrade::Event>()>& find,
    const std::function<bool(const upgrade::Event&)>& may_pass = is_unready);

}  // namespace kmm::drive
