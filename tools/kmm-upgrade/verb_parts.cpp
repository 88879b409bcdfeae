// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/verb_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kmm-upgrade/session/reach.hpp"
#include "kmm-upgrade/record/trust.hpp"

namespace kmm::tool_upgrade {

cli::Option option(std::string name, std::string value_name, std::string help) {
    cli::Option made;
    made.name = std::move(name);
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

cli::Option required(cli::Option made) {
    made.required = true;
    return made;
}

std::vector<cli::Option> shared() {
    return state_options() + runner_options() + std::vector<cli::Option>{trust_option()} + cli::cluster_options() + cli::common_options();
}

cli::Positional node_argument(std::string help) {
    cli::Positional positional;
    positional.name = "NODE";
    positional.help = std::move(help);
    return positional;
}

cli::Verb verb(std::string name, std::string summary, std::string description, std::vector<cli::Example> examples,
               std::vector<cli::Option> own, decltype(cli::Verb::run) run) {
    cli::Verb made;
    made.name = std::move(name);
    made.summary = std::move(summary);
    made.description = std::move(description);
    made.examples = std::move(examples);
    made.options = std::move(own) + shared();
    made.run = std::move(run);
    return made;
}

cli::Verb without_use(cli::Verb made, const std::vector<cli::Option>& useless, std::initializer_list<std::string_view> used) {
    for (auto& each : made.options) {
        const auto is_same = [&](const cli::Option& other) { return other.name == each.name; };
        if (std::find(used.begin(), used.end(), each.name) == used.end() && std::any_of(useless.begin(), useless.end(), is_same)) each.hidden = true;
    }
    return made;
}

cli::Verb without_selector(cli::Verb made, const std::string& why) {
    for (auto& each : made.options) each.hidden = each.hidden || each.name == "selector";
    made.run = [why, name = made.name, run = std::move(made.run)](const cli::Args& args, cli::Context& context) {
        if (args.source("selector") == "option")
            throw Error(Exit::usage, "bad-value", fmt::format("{} does not accept --selector: {}", name, why)).hint("leave --selector out");
        return run(args, context);
    };
    return made;
}

cli::Verb about_run(cli::Verb made) { return without_selector(std::move(made), "the nodes were fixed at start"); }

cli::Verb about_record(cli::Verb made) {
    auto useless = cli::cluster_options();
    std::erase_if(useless, [](const cli::Option& each) { return each.name == "namespace"; });
    return about_run(without_use(std::move(made), useless + runner_options() + std::vector<cli::Option>{trust_option()}));
}

}  // namespace kmm::tool_upgrade
