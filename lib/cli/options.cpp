// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "cli/app.hpp"

namespace kmm::cli {

Option option(std::string name, std::string value_name, std::string help) {
    return option(std::move(name), 0, std::move(value_name), std::move(help));
}

Option option(std::string name, char short_name, std::string value_name, std::string help) {
    Option made;
    made.name = std::move(name);
    made.short_name = short_name;
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

Option repeatable(Option made) {
    made.repeatable = true;
    return made;
}

Option required(Option made) {
    made.required = true;
    return made;
}

Option hidden(Option made) {
    made.hidden = true;
    return made;
}

Option with_choices(Option made, std::vector<std::string> choices) {
    made.choices = std::move(choices);
    return made;
}

Option with_default(Option made, std::string text) {
    made.default_text = std::move(text);
    return made;
}

Option with_environment(Option made, std::string variable) {
    made.environment = std::move(variable);
    return made;
}

std::vector<Option> common_options() {
    auto output = option("output", 'o', "FORMAT", "format of the result");
    output.choices = {"table", "wide", "json", "yaml", "name", "jsonl"};
    output.default_text = "table";
    auto timeout = option("timeout", "DURATION", "how long to wait for servers, nodes and input in all, as 90s or 5m");
    auto color = option("color", "WHEN", "colour; auto: on a terminal, unless NO_COLOR is set");
    color.choices = {"auto", "always", "never"};
    color.default_text = "auto";
    auto verbose = repeatable(option("verbose", 'v', "", "say more on standard error; may be given twice"));
    return {
        output,
        timeout,
        color,
        verbose,
        option("quiet", 'q', "", "say only errors on standard error"),
        option("no-input", "", "never ask; fail instead"),
        option("help", 'h', "", "show this help"),
        option("version", "", "show the version"),
    };
}

std::vector<Option> cluster_options() {
    auto cluster = option("cluster", "DIR", "directory cluster: one Kubernetes object per YAML file");
    cluster.environment = "KMM_CLUSTER";
    auto kubeconfig = option("kubeconfig", "FILE", "live cluster: its kubeconfig");
    kubeconfig.environment = "KUBECONFIG";
    return {
        cluster,
        kubeconfig,
        option("context", "NAME", "context of the kubeconfig; the current one if absent"),
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

std::string Args::wanted(std::string_view option, std::string_view value_name, std::string hint) const {
    auto value = get(option);
    if (!value)
        throw Error(Exit::usage, "missing-option", fmt::format("--{} {} is missing", option, value_name))
            .hint(std::move(hint));
    if (base::trim(*value).empty())
        throw Error(Exit::usage, "bad-value", fmt::format("option --{}: expected {}, found '{}'", option, value_name,
                                                          base::escape(*value)))
            .hint(std::move(hint));
    return std::move(*value);
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
