// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "cli/app.hpp"

namespace kmm::cli {
namespace {

Option option(std::string name, char short_name, std::string value_name, std::string help) {
    Option made = cli::option(std::move(name), std::move(value_name), std::move(help));
    made.short_name = short_name;
    return made;
}

}  // namespace

Option option(std::string name, std::string value_name, std::string help) {
    Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

std::vector<Option> common_options() {
    auto output = option("output", 'o', "FORMAT", "format of the result");
    output.choices = {"table", "wide", "json", "yaml", "name", "jsonl"};
    output.default_text = "table";
    auto timeout = option("timeout", 0, "DURATION", "deadline of the whole command, as 90s or 5m");
    auto color = option("color", 0, "WHEN", "colour; auto: on a terminal, unless NO_COLOR is set");
    color.choices = {"auto", "always", "never"};
    color.default_text = "auto";
    auto verbose = option("verbose", 'v', "", "say more on standard error; may be given twice");
    verbose.repeatable = true;
    return {
        output,
        timeout,
        color,
        verbose,
        option("quiet", 'q', "", "say only errors on standard error"),
        option("no-input", 0, "", "never ask; fail instead"),
        option("help", 'h', "", "show this help"),
        option("version", 0, "", "show the version"),
    };
}

std::vector<Option> cluster_options() {
    auto cluster = option("cluster", 0, "DIR", "directory cluster: one Kubernetes object per YAML file");
    cluster.environment = "KMM_CLUSTER";
    auto kubeconfig = option("kubeconfig", 0, "FILE", "live cluster: its kubeconfig");
    kubeconfig.environment = "KUBECONFIG";
    return {
        cluster,
        kubeconfig,
        option("context", 0, "NAME", "context of the kubeconfig; the current one if absent"),
        option("namespace", 'n', "NAMESPACE", "namespace of modules given by name alone"),
        option("selector", 'l', "SELECTOR", "only nodes whose labels match, as a=b,c!=d,e in (f,g)"),
    };
}

std::vector<Option> operator+(std::vector<Option> left, const std::vector<Option>& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

bool Args::flag(std::string_view option) const {
    const auto found = values.find(option);
    return found != values.end() && !found->second.empty() && found->second.back() == "true";
}

std::optional<std::string> Args::get(std::string_view option) const {
    const auto found = values.find(option);
    if (found == values.end() || found->second.empty()) return std::nullopt;
    return found->second.back();
}

std::vector<std::string> Args::all(std::string_view option) const {
    const auto found = values.find(option);
    return found == values.end() ? std::vector<std::string>() : found->second;
}

std::string Args::positional(std::string_view name) const {
    const auto found = positional_values.find(name);
    return found == positional_values.end() || found->second.empty() ? std::string() : found->second.front();
}

std::vector<std::string> Args::positionals(std::string_view name) const {
    const auto found = positional_values.find(name);
    return found == positional_values.end() ? std::vector<std::string>() : found->second;
}

std::string Args::source(std::string_view option) const {
    const auto found = sources.find(option);
    return found == sources.end() ? std::string() : found->second;
}

}  // namespace kmm::cli
