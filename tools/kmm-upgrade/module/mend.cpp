// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/module/mend.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kmm::tool_upgrade {

const char* to_string(Mended mended) noexcept {
    switch (mended) {
        case Mended::done: return "done";
        case Mended::declined: return "declined";
        case Mended::failed: return "failed";
        case Mended::stopped: return "stopped";
        case Mended::none: return "none";
        case Mended::unnamed: return "unnamed";
        case Mended::busy: return "busy";
        case Mended::elsewhere: return "elsewhere";
    }
    return "";
}

std::optional<MendChoice> mend_choice_of(const cli::Args& args, const cli::Context& context) {
    MendChoice choice;
    choice.yes = args.flag("yes");
    for (auto& node : args.all("uncordon")) {
        if (node.empty())
            throw Error(Exit::usage, "bad-value", "--uncordon is \"\", expected the name of a node")
                .hint("leave it out to lift no cordon");
        choice.uncordon.insert(std::move(node));
    }
    if (!args.flag("fix")) {
        for (const auto* name : {"yes", "uncordon"})
            if (args.flag(name) || args.get(name))
                throw Error(Exit::usage, "missing-option", fmt::format("--{} requires --fix", name)).hint("add --fix");
        return std::nullopt;
    }
    if (!choice.yes && (args.flag("no-input") || !context.console.in_is_terminal()))
        throw Error(Exit::usage, "missing-option",
                    "--fix asks before each change, and nobody can be asked; --yes is missing")
            .hint("kmm-upgrade doctor says what is found; --fix --yes fixes all of it");
    return choice;
}

void require_cordons(const MendChoice& choice, const std::vector<Repair>& repairs) {
    for (const auto& node : choice.uncordon) {
        if (std::any_of(repairs.begin(), repairs.end(), [&](const Repair& repair) { return repair.named == node; }))
            continue;
        throw Error(Exit::not_found, "node-not-cordoned",
                    fmt::format("node {} has no cordon that is left behind; nothing was changed", node))
            .hint("kmm-upgrade doctor lists them; a cordon of the recorded upgrade is lifted by resume, skip or abort");
    }
}

Mended mend(Call& call, const Repair& repair, const MendChoice& choice, std::string& why) {
    if (!repair.act) return Mended::none;
    if (!choice.ns.empty() && repair.ns != choice.ns) return Mended::elsewhere;
    if (!repair.named.empty() && !choice.uncordon.contains(repair.named)) return Mended::unnamed;
    if (!repair.module.empty() && repair.module == choice.open_module) return Mended::busy;
    if (call.stopped()) return Mended::stopped;
    if (!choice.yes) {
        const auto answer = call.ask(repair.what + "? [y/N] ");
        if (call.stopped()) return Mended::stopped;
        if (!answer || (*answer != "y" && *answer != "Y" && *answer != "yes")) return Mended::declined;
    }
    try {
        repair.act();
        return Mended::done;
    } catch (const Error& error) {
        if (error.code() == "bug") throw;
        why = error.message();
        return Mended::failed;
    }
}

}  // namespace kmm::tool_upgrade
