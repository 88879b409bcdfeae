// SPDX-License-Identifier: Apache-2.0
// A node without Pods of applications, kept so until what is done to it has begun.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "upgrade/actor_parts/cordons.hpp"
#include "upgrade/actor_parts/drainer.hpp"

namespace kmm::drive {

/// Whether a step is one of those that empty a node or end that: it does nothing on the node itself.
[[nodiscard]] bool is_emptying(std::string_view step);

/// Of the runs whose options say by themselves what a drain may evict. Thread safe for different nodes. The references
/// outlive it.
class Emptier {
public:
    Emptier(cluster::Workloads& workloads, Recorder& recorder, sys::Clock& clock, std::function<bool()> interrupted)
        : recorder_(recorder),
          cordons_(workloads, recorder),
          drainer_(workloads, recorder, clock, std::move(interrupted)) {}
    [[nodiscard]] Cordons& cordons() noexcept { return cordons_; }
    /// As Drainer::drain, by the options of the run.
    [[nodiscard]] Done drain(const std::string& node, const Deadline& deadline);
    /// Before what must find the node empty: one that the run has drained, and that `is_schedulable` because somebody
    /// else has uncordoned it since, is cordoned and drained again. Nothing without a drain. Errors: those of
    /// Cordons::cordon, Drainer::drain and `is_schedulable`, which is only asked where it matters.
    void empty_again(const std::string& node, const std::function<bool()>& is_schedulable, const Deadline& deadline);


private:
    Recorder& recorder_;
    Cordons cordons_;
    Drainer drainer_;
};

}  // namespace kmm::drive
