// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/craft.hpp"

#include <algorithm>
#include <any>

#include <fmt/format.h>

#include "base/error.hpp"

namespace kmm::tool_upgrade {

std::string to_string(const Difference& difference) {
    return fmt::format("{} of {}: {} runs, the record says {}", difference.part, difference.node,
                       difference.runs.empty() ? "an unknown version" : difference.runs, difference.recorded);
}

Crafts all_crafts() { return {&module_craft(), &kubernetes_craft(), &kernel_craft(), &recipe_craft()}; }

bool Craft::revise(const cli::Args& args, upgrade::Run& run) const {
    static_cast<void>(run);
    // A configuration file is for all runs.
    for (const auto* name : {"canary-image", "ignore-preflight-errors"})
        if (args.source(name) == "option")
            throw Error(Exit::usage, "bad-value",
                        std::string("--") + name + " is for the upgrade of a Kubernetes cluster")
                .hint("leave it out");
    return false;
}

void Craft::restore_data(Access& access) const {
    static_cast<void>(access);
    throw Error(Exit::usage, "bad-value", "--restore-etcd is for the upgrade of a Kubernetes cluster")
        .hint("leave it out");
}

std::string Craft::frame(const upgrade::Run& run, Frame which) const {
    static_cast<void>(run);
    static_cast<void>(which);
    throw Error(Exit::usage, "bad-value", "--stx is for the upgrade of a Kubernetes cluster").hint("leave it out");
}

const Crafts& crafts_of(const cli::Context& context) {
    const auto* crafts = std::any_cast<Crafts>(&context.program.own);
    if (crafts == nullptr) throw bug("a program without procedures");
    return *crafts;
}

upgrade::Procedures procedures_of(const cli::Context& context) {
    upgrade::Procedures all;
    for (const auto* craft : crafts_of(context))
        all.insert(all.end(), craft->procedures().begin(), craft->procedures().end());
    return all;
}

const Craft& craft_of(const cli::Context& context, const upgrade::Header& run) {
    for (const auto* craft : crafts_of(context)) {
        const auto& own = craft->procedures();
        if (std::find(own.begin(), own.end(), run.rules) != own.end()) return *craft;
    }
    throw bug("a run of a procedure that nobody serves");
}

}  // namespace kmm::tool_upgrade
