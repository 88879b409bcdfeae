// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/component_flags.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kubernetes {

using value::Node;

ComponentFlags flags_of(const std::vector<std::string>& arguments) {
    ComponentFlags flags;
    // Of sh -c 'exec kube-apiserver --a=b': its words are the arguments.
    const auto is_line = [](const auto& each) {
        return !each.starts_with("--") && each.find(" --") != std::string::npos;
    };
    if (std::any_of(arguments.begin(), arguments.end(), is_line)) {
        std::vector<std::string> words;
        for (const auto& each : arguments) {
            if (!is_line(each)) {
                words.push_back(each);
                continue;
            }
            std::string line = each;
            std::erase_if(line, [](char c) { return c == '"' || c == '\''; });
            std::replace_if(line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t' || c == '\\'; }, ' ');
            for (const auto word : base::split(line, ' ')) {
                if (!word.empty()) { words.emplace_back(word); }
            }
        }
        return flags_of(words);
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string_view text = arguments[i];
        if (!text.starts_with("--")) { continue; }
        text.remove_prefix(2);
        const auto equals = text.find('=');
        std::string name(text.substr(0, equals));
        std::replace(name.begin(), name.end(), '_', '-');
        std::string value;
        if (equals != std::string_view::npos) { value = text.substr(equals + 1); }
        else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("-")) { value = arguments[i + 1]; }
        auto& all = flags[name];
        all += (all.empty() ? "" : ",") + value;
    }
    return flags;
}

ComponentFlags extra_flags(const Node& component) {
    std::vector<std::string> arguments;
    const auto* extra = component.find("extraArgs");
    if (extra != nullptr && extra->is_sequence()) {
        for (const auto& each : extra->items()) {
            arguments.push_back(fmt::format("--{}={}", each.get_string({"name"}), each.get_string({"value"})));
        }
    } else if (extra != nullptr && extra->is_mapping()) {
        for (const auto& each : extra->members()) {
            arguments.push_back(
                fmt::format("--{}={}", each.key, each.value.is_string() ? each.value.text() : std::string()));
        }
    }
    return flags_of(arguments);
}

}  // namespace kmm::kubernetes
