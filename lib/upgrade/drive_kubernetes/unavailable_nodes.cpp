// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/unavailable_nodes.hpp"

#include "upgrade/drive_kubernetes/node_proof.hpp"

namespace kmm::drive {
namespace {

constexpr const char *k_not_ready = "not ready", *k_cordoned = "cordoned";

}  // namespace

void UnavailableNodes::forget_cordon(const std::string& node) { forget(node, k_cordoned); }

void UnavailableNodes::forget_unready(const std::string& node) { forget(node, k_not_ready); }

void UnavailableNodes::forget(const std::string& node, const char* reason) {
    const std::lock_guard lock(mutex_);
    if (!found_) return;
    const auto found = found_->find(node);
    if (found != found_->end() && found->second == reason) found_->erase(found);
}

void UnavailableNodes::forget() {
    const std::lock_guard lock(mutex_);
    found_.reset();
}

std::map<std::string, std::string> UnavailableNodes::names() {
    constexpr std::chrono::seconds k_fresh{5};  // shorter than what a walk waits until it asks again
    const std::lock_guard lock(mutex_);
    const auto now = tools_.clock.monotonic();
    if (found_ && now - since_ < k_fresh) return *found_;
    std::map<std::string, std::string> names;
    auto seen = tools_.view.read(ReadExtent::nodes);
    leave_out(seen, left_out_names(tools_.recorder.header()));
    for (const auto& node : seen.nodes) {
        if (!node_problem(seen, node.meta.name).empty()) names[node.meta.name] = k_not_ready;
        else if (node.unschedulable) names[node.meta.name] = k_cordoned;
    }
    since_ = now;
    found_ = names;
    return names;
}

}  // namespace kmm::drive
