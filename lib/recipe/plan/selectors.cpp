// SPDX-License-Identifier: Apache-2.0
#include "recipe/plan/selectors.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/resource/value_path.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

/// The labels by which an object selects Pods; nullptr for none.
const Value* selected_labels(const Value& object) {
    const std::string kind = text_at(object, {"kind"}), version = text_at(object, {"apiVersion"});
    if (kind == "Service" && version == "v1") { return find_at(object, {"spec", "selector"}); }
    if (kind == "NetworkPolicy") { return find_at(object, {"spec", "podSelector", "matchLabels"}); }
    const bool selects = kind == "PodDisruptionBudget" || kind == "PodMonitor";
    return selects ? find_at(object, {"spec", "selector", "matchLabels"}) : nullptr;
}

bool has_pods_of_app(const Value& object, const std::string& app) {
    return text_at(object, {"spec", "template", "metadata", "labels", "app"}) == app ||
           (text_at(object, {"kind"}) == "Pod" && text_at(object, {"metadata", "labels", "app"}) == app);
}

}  // namespace

void note_lost_selectors(const std::vector<RecipeObject>& objects, const std::map<std::string, std::string>& renamed,
                         const std::function<void(Diagnostic)>& notice) {
    if (renamed.empty()) { return; }
    for (const auto& one : objects) {
        const Value* labels = selected_labels(one.object);
        const auto found = renamed.find(labels == nullptr ? "" : text_at(*labels, {"app"}));
        if (found == renamed.end()) { continue; }
        const auto& [app, workload] = *found;
        const bool has_others =
            std::any_of(objects.begin(), objects.end(), [&, wanted = app](const RecipeObject& other) {
                return has_pods_of_app(other.object, wanted);
            });
        if (has_others) { continue; }
        notice({Severity::warning, "selector-lost",
                fmt::format("{} {} selects Pods with the label app {}, which the copies of {} for kernels do not have",
                            text_at(one.object, {"kind"}), base::escape(text_at(one.object, {"metadata", "name"})),
                            base::escape(app), base::escape(workload)),
                one.origin, "select another label of its Pods: a copy has its own name as app", Exit::data});
    }
}

}  // namespace kmm::recipe::plan
