// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/asked.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/names.hpp"

namespace kmm::tool_plan {

namespace {

/// NAMESPACE/NAME of the Modules that the message begins with: "Module a/b: ...", "Modules a/b and c/d ...".
std::vector<std::string_view> subjects(std::string_view message) {
    std::vector<std::string_view> names;
    const auto word = [&] {
        const std::size_t end = message.find_first_of(" :,");
        const auto taken = message.substr(0, end);
        message.remove_prefix(std::min(message.size(), taken.size() + 1));
        return taken;
    };
    const auto kind = word();
    if (kind != "Module" && kind != "Modules") { return names; }
    names.push_back(word());
    if (kind == "Modules" && word() == "and") { names.push_back(word()); }
    return names;
}

}  // namespace

bool is_asked(const Diagnostic& finding, const cli::Args& args) {
    const auto modules = args.positionals("MODULE");
    const auto ns = args.get("namespace").value_or("");
    if (modules.empty() && ns.empty()) { return true; }
    const auto names = subjects(finding.message);
    return names.empty() || std::any_of(names.begin(), names.end(), [&](std::string_view full) {
        const auto slash = full.find('/');
        if (slash == std::string_view::npos || (!ns.empty() && full.substr(0, slash) != ns)) { return false; }
        return modules.empty() || std::any_of(modules.begin(), modules.end(), [&](const std::string& asked) {
            const auto [space, name] = api::parse_module_name(asked);
            return name == full.substr(slash + 1) && (space.empty() || space == full.substr(0, slash));
        });
    });
}

void drop_absent(Diagnostics& findings) {
    constexpr std::array<std::string_view, 5> k_absent{"node-missing", "secret-unknown", "config-map-unknown",
                                                       "selects-no-node", "configs-missing"};
    std::erase_if(findings, [&](const Diagnostic& one) {
        return std::find(k_absent.begin(), k_absent.end(), one.code) != k_absent.end();
    });
}

}  // namespace kmm::tool_plan
