// SPDX-License-Identifier: Apache-2.0
// Results as metrics, in the text format of OpenMetrics, for node_exporter's textfile collector.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kmm::report {

/// Gauges of one name.
struct MetricFamily {
    std::string name;  ///< "kmm_preflight_ok"
    std::string help;
    std::vector<std::string> labels;                              ///< names of labels
    std::map<std::vector<std::string>, std::uint64_t> samples{};  ///< values of the labels, in their order -> value
};

inline constexpr std::size_t k_series_max = 1000;

/// The text, sorted, ended by "# EOF". Of a family, the first k_series_max series are written: a label that grows
/// without bound costs a monitoring system more than it is worth. kmm_dropped_series has how many are not, of families
/// with such series alone: node_exporter refuses a series that two files have, and files of several runs have the same
/// families. With `cluster`, that is a label of every series: files of two clusters on one host do not collide.
[[nodiscard]] std::string openmetrics_text(const std::vector<MetricFamily>& families, const std::string& cluster = "");

/// Help of the option --metrics-cluster NAME, which gives `cluster`.
inline constexpr const char* k_metrics_cluster_help = "put the label cluster with this name on all metrics";

/// Families with their names, helps and labels.
[[nodiscard]] MetricFamily plan_objects();          ///< kmm_plan_objects{resource,kind}
[[nodiscard]] MetricFamily preflight_ok();          ///< kmm_preflight_ok{resource,kernel}
[[nodiscard]] MetricFamily incompatible_symbols();  ///< kmm_kabi_incompatible_symbols{resource,kernel}
[[nodiscard]] MetricFamily upgradeable();           ///< kmm_upgradeable
[[nodiscard]] MetricFamily state_completed();       ///< kmm_state_completed{resource,state}
[[nodiscard]] MetricFamily downgrade_in_progress(); ///< kmm_downgrade_in_progress{node}
[[nodiscard]] MetricFamily obsolete_daemon_sets();  ///< kmm_obsolete_daemonsets{resource}
[[nodiscard]] MetricFamily pool_paused_seconds();   ///< kmm_pool_paused_seconds{pool}
[[nodiscard]] MetricFamily module_loaded();         ///< kmm_module_loaded{module}
[[nodiscard]] MetricFamily upgrade_nodes();         ///< kmm_upgrade_nodes{resource,state}
[[nodiscard]] MetricFamily upgrade_paused();        ///< kmm_upgrade_paused{resource}

}  // namespace kmm::report
