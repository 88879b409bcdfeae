// SPDX-License-Identifier: Apache-2.0
// Source: OpenMetrics 1.0, "Text format"; node_exporter reads the same lines as Prometheus' own format.
#include "report/metrics.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::report {

namespace {

std::string escaped_label(const std::string& text) {
    std::string made;
    for (const char c : text) {
        if (c == '\n') {
            made += "\\n";
        } else {
            if (c == '\\' || c == '"') { made += '\\'; }
            made += c;
        }
    }
    return made;
}

std::string label_text(std::string_view name, const std::string& value) {
    return fmt::format("{}=\"{}\"", name, escaped_label(value));
}

std::string labels_text(const MetricFamily& family, const std::vector<std::string>& values,
                        const std::string& cluster) {
    std::vector<std::string> made;
    if (!cluster.empty()) { made.push_back(label_text("cluster", cluster)); }
    for (std::size_t i = 0; i < family.labels.size(); ++i) {
        made.push_back(label_text(family.labels[i], values.at(i)));
    }
    return made.empty() ? "" : '{' + base::join(made, ",") + '}';
}

std::string head_text(const std::string& name, const std::string& help) {
    return fmt::format("# TYPE {0} gauge\n# HELP {0} {1}\n", name, help);
}

}  // namespace

std::string openmetrics_text(const std::vector<MetricFamily>& families, const std::string& cluster) {
    const MetricFamily left_out{"kmm_dropped_series",
                                "series of a metric that were left out because there are too many",
                                {"metric"}};
    std::vector<const MetricFamily*> sorted;
    for (const auto& family : families) { sorted.push_back(&family); }
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    std::string text, dropped;
    for (const auto* family : sorted) {
        text += head_text(family->name, family->help);
        std::size_t count = 0;
        for (const auto& [values, number] : family->samples) {
            if (++count > k_series_max) { continue; }
            text += fmt::format("{}{} {}\n", family->name, labels_text(*family, values, cluster), number);
        }
        if (count <= k_series_max) { continue; }
        dropped += fmt::format("{}{} {}\n", left_out.name, labels_text(left_out, {family->name}, cluster),
                               count - k_series_max);
    }
    if (!dropped.empty()) { dropped = head_text(left_out.name, left_out.help) + dropped; }
    return dropped + text + "# EOF\n";
}

MetricFamily plan_objects() {
    return {"kmm_plan_objects", "objects that a plan has for a driver, by kind", {"resource", "kind"}};
}

MetricFamily preflight_ok() {
    return {"kmm_preflight_ok", "1 if a driver is ready for a kernel", {"resource", "kernel"}};
}

MetricFamily incompatible_symbols() {
    return {"kmm_kabi_incompatible_symbols",
            "symbols of the modules of an image that a kernel lacks or has in another version",
            {"resource", "kernel"}};
}

MetricFamily upgradeable() {
    return {"kmm_upgradeable", "1 if every driver is ready for the kernels that were checked", {}};
}

MetricFamily state_completed() {
    return {"kmm_state_completed", "1 if a state of a recipe is rolled out and ready", {"resource", "state"}};
}

MetricFamily downgrade_in_progress() {
    return {"kmm_downgrade_in_progress", "1 while a node is tainted for drivers that go to a lower version", {"node"}};
}

MetricFamily obsolete_daemon_sets() {
    return {"kmm_obsolete_daemonsets",
            "DaemonSets of earlier rollouts of a recipe that nothing needs and the next rollout removes",
            {"resource"}};
}

MetricFamily pool_paused_seconds() {
    return {
        "kmm_pool_paused_seconds", "for how long a MachineConfigPool is paused, as its managedFields tell", {"pool"}};
}

MetricFamily module_loaded() {
    return {"kmm_module_loaded", "1 if a module is live in the kernel, and the build that was expected", {"module"}};
}

MetricFamily upgrade_nodes() {
    return {"kmm_upgrade_nodes",
            "nodes of the recorded upgrade: pending, running, done, failed, skipped, rolled-back",
            {"resource", "state"}};
}

MetricFamily upgrade_paused() {
    return {"kmm_upgrade_paused", "1 if the recorded upgrade waits for a person", {"resource"}};
}

}  // namespace kmm::report
