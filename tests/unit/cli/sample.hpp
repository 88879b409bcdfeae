// SPDX-License-Identifier: Apache-2.0
// A small program that the tests of the room parse, print and run.
#pragma once

#include <map>
#include <string>

#include "cli/app.hpp"
#include "cli/parse.hpp"

namespace kmm::cli::sample {

inline Option option(std::string name, char short_name, std::string value_name, std::string help) {
    Option made;
    made.name = std::move(name);
    made.short_name = short_name;
    made.value_name = std::move(value_name);
    made.help = std::move(help);
    return made;
}

inline Program program(std::function<Exit(const Args&, Context&)> run = {}) {
    Program made;
    made.name = "kmm-plan";
    made.summary = "decides";
    made.other_words = {{"modules", "see kmm-plan help why"}, {"stop", "see kmm-plan help start"}};
    made.examples = {{"kmm-plan show --cluster fleet", "what happens on each node"}};
    Verb show;
    show.name = "show";
    show.summary = "one line per node and module";
    show.description = "First paragraph.\n\nSecond paragraph.";
    show.examples = {{"kmm-plan show -o json", "the plan file"}};
    show.positionals = {{"NODE", "only these nodes", false, true}};
    auto file = option("file", 'f', "FILE", "read-only documents");
    file.repeatable = true;
    auto state = option("state-dir", 0, "DIR", "where the record is");
    state.environment = "KMM_STATE_DIR";
    state.default_text = "/var/lib/kmm-upgrade";
    auto mode = option("mode", 0, "MODE", "how");
    mode.choices = {"self", "operator"};
    auto dry = option("dry-run", 0, "", "do nothing");
    dry.environment = "KMM_DRY_RUN";
    auto hidden = option("secret-knob", 0, "N", "hidden");
    hidden.hidden = true;
    show.options = std::vector<Option>{file, state, mode, dry, option("canary", 0, "N", "stop after N nodes"), hidden} +
                   cluster_options() + common_options();
    show.run = run;
    Verb why = show;
    why.name = "why";
    why.positionals = {{"NODE", "the node", true, false}, {"MODULE", "the module", true, false}};
    why.options = cluster_options();
    Verb start = why;
    start.name = "start module";
    start.positionals = {{"MODULE", "the module", true, false}};
    start.options = {option("to", 0, "VERSION", "the new version")};
    Verb kubernetes = start;
    kubernetes.name = "start kubernetes";
    kubernetes.positionals = {{"VERSION", "the new version", true, false}};
    kubernetes.options.clear();
    made.verbs = {show, why, start, kubernetes};
    return made;
}

/// Surroundings made of maps.
inline Surroundings surroundings(
    std::map<std::string, std::string> environment = {}, std::map<std::string, std::string> files = {}
) {
    Surroundings made;
    made.environment = [environment](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        if (found == environment.end()) return std::nullopt;
        return found->second;
    };
    made.read_file = [files](const std::string& path) -> std::optional<std::string> {
        const auto found = files.find(path);
        if (found == files.end()) return std::nullopt;
        return found->second;
    };
    return made;
}

}  // namespace kmm::cli::sample
