// SPDX-License-Identifier: Apache-2.0
#include "recipe/resource/annotations.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/golib/regex.hpp"
#include "recipe/resource/value_path.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

constexpr std::string_view k_annotation_prefix = "specialresource.openshift.io/";
constexpr std::array<std::string_view, 3> k_switches{"wait", "kernel-affine", "proxy"};
constexpr std::array<std::string_view, 3> k_with_text{"wait-for-logs", "driver-container-vendor", "state"};
/// Of the operator itself, or of its first versions.
constexpr std::array<std::string_view, 5> k_others{"callback", "hash", "hardware", "inject-runtime-info", "nfd"};
constexpr std::array<std::string_view, 8> k_states{"csi-driver",         "device-dashboard", "device-feature-discovery",
                                                   "device-monitoring",  "device-plugin",    "driver-build",
                                                   "runtime-enablement", "driver-container"};

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_effect(std::string_view name) { return is_among(k_switches, name) || is_among(k_with_text, name); }

class IdleAnnotations {
public:
    IdleAnnotations(const Value& object, const std::function<void(std::string text, std::string hint)>& found)
        : object_(object), found_(found) {}

    void run() const {
        each({"metadata", "annotations"}, [&](const std::string& name, const Value& value) { judge(name, value); });
        each({"spec", "template", "metadata", "annotations"}, [&](const std::string& name, const Value&) {
            if (!has_effect(name)) { return; }
            say(fmt::format("spec.template.metadata.annotations[{}{}] is on its Pods, where it has no effect",
                            k_annotation_prefix, name),
                "move it to metadata.annotations of the object");
        });
        each({"metadata", "labels"}, [&](const std::string& name, const Value&) {
            if (!has_effect(name) || name == "state") { return; }
            say(fmt::format("metadata.labels[{}{}] is a label, expected an annotation", k_annotation_prefix, name),
                "move it to metadata.annotations");
        });
    }

private:
    const Value& object_;
    const std::function<void(std::string text, std::string hint)>& found_;

    template <typename Visit>
    void each(Path path, const Visit& visit) const {
        const Value* all = find_at(object_, path);
        if (all == nullptr) { return; }
        for (const auto& [key, value] : all->members()) {
            if (key.starts_with(k_annotation_prefix)) { visit(key.substr(k_annotation_prefix.size()), value); }
        }
    }

    void say(const std::string& text, std::string hint) const {
        found_(fmt::format("{} {}: {}", text_at(object_, {"kind"}), text_at(object_, {"metadata", "name"}), text),
               std::move(hint));
    }

    void judge(const std::string& name, const Value& value) const {
        const std::string text = value.is_text() ? value.text() : "";
        if (is_among(k_switches, name)) {
            if (text == "true" || text == "false" || text.empty()) { return; }
            say(fmt::format("annotation {}{} is \"{}\", expected \"true\"; it has no effect", k_annotation_prefix,
                            name, base::escape(text)),
                "write \"true\" in lower case, or leave it out");
        } else if (name == "wait-for-logs") {
            const auto fault = log_pattern_fault(text_at(object_, {"kind"}), text);
            if (fault.empty()) { return; }
            say(fmt::format("annotation {}wait-for-logs: {}", k_annotation_prefix, fault),
                "correct it: no rollout of the recipe can wait for it");
        } else if (name == "state") {
            const std::vector<std::string> driver{std::string(k_states.back())};
            if (is_among(k_states, text) || !base::nearest(base::to_lower(text), driver)) { return; }
            say(fmt::format("annotation {}state is \"{}\": it does not count as a driver container",
                            k_annotation_prefix, base::escape(text)),
                "write driver-container");
        } else if (!has_effect(name) && !is_among(k_others, name)) {
            std::vector<std::string> known;
            for (const auto* names : {&k_switches, &k_with_text}) {
                known.insert(known.end(), names->begin(), names->end());
            }
            const auto near = base::nearest(base::to_lower(name), known);
            if (!near) { return; }
            say(fmt::format("annotation {}{} has no effect", k_annotation_prefix, base::escape(name)),
                fmt::format("did you mean {}{}?", k_annotation_prefix, *near));
        }
    }
};

}  // namespace

std::string log_pattern_fault(std::string_view kind, const std::string& pattern) {
    constexpr std::array<std::string_view, 4> k_with_logs{"Pod", "DaemonSet", "Deployment", "StatefulSet"};
    if (pattern.empty()) { return ""; }
    if (!is_among(k_with_logs, kind)) { return "expected it on a Pod, DaemonSet, Deployment or StatefulSet"; }
    try {
        static_cast<void>(tmpl::regex_matches(pattern, ""));
        return "";
    } catch (const tmpl::Fault& fault) {
        return base::escape(fault.message);
    }
}

void each_idle_annotation(const Value& object,
                          const std::function<void(std::string text, std::string hint)>& found) {
    IdleAnnotations(object, found).run();
}

}  // namespace kmm::recipe::plan
