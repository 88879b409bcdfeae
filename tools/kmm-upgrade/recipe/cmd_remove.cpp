// SPDX-License-Identifier: Apache-2.0
// remove recipe: what its releases have, in reverse order.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-upgrade/recipe/verbs.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "upgrade/drive_recipe/release_store.hpp"

namespace kmm::tool_upgrade {
namespace {

using upgrade::recipe::Release;
using value::Node;

bool asks_for_removal(const upgrade::Run& run, const std::string& name) {
    return run.rules == &upgrade::recipe::procedure_removal() && upgrade::recipe::subject_of(run).name == name;
}

void print_removal(cli::Context& context, const Release& everything) {
    auto states = Node::sequence();
    std::string text;
    for (auto state = everything.states.rbegin(); state != everything.states.rend(); ++state) {
        auto objects = Node::sequence();
        text += base::escape(state->name) + "\n";
        for (auto one = state->objects.rbegin(); one != state->objects.rend(); ++one) {
            const auto id = upgrade::recipe::id_of(one->object);
            objects.push_back(Node::mapping({{"kind", id.kind}, {"namespace", id.space}, {"name", id.name}}));
            text += fmt::format("  delete     {}\n", base::escape(drive::object_text(one->object)));
        }
        states.push_back(Node::mapping({{"name", state->name}, {"objects", std::move(objects)}}));
    }
    if (cli::print_document(context, Node::mapping({{"apiVersion", "kmmtools/v1"},
                                                    {"kind", "RecipeRemovalPlan"},
                                                    {"recipe", everything.recipe},
                                                    {"states", std::move(states)}})))
        return;
    context.console.out(text + "nothing was done; next: the same command without --dry-run\n");
}

}  // namespace

Exit run_remove_recipe(const cli::Args& args, cli::Context& context) {
    const auto name = args.positional("NAME");
    if (is_to_be_resumed(args, context, [&](const upgrade::Run& run) { return asks_for_removal(run, name); }))
        return run_resume(args, context);
    Access access(args, context);
    const bool dry = args.flag("dry-run");
    const auto request = recipe_request(access.call, name);
    const auto place = access.cluster.place();
    if (!dry) access.record.open_locked("remove recipe " + name);
    require_free(access.record.load());
    access.cluster.open(place);
    auto& client = recipe_server(access).client();
    secure_recipe(access, request.options, request.subject, request.lineage,
                  dry ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
    drive::ReleaseStore store(client, request.subject.space);
    const auto all = store.of(name);
    if (all.empty()) {
        std::vector<std::string> names;
        for (const auto& other : store.of_others(name)) names.push_back(other.recipe);
        const auto near = base::nearest(name, names);
        throw Error(Exit::not_found, "release-not-found",
                    fmt::format("namespace {} has no release of recipe {}", base::escape(request.subject.space),
                                base::escape(name)))
            .hint(near
                      ? fmt::format("did you mean {}?", *near)
                      : "releases are Secrets kmm-upgrade.recipe.NAME.vN; --release-namespace names another namespace");
    }
    const auto everything = upgrade::recipe::merged(all);
    if (dry) {
        print_removal(context, everything);
        return Exit::ok;
    }
    access.call.require_going_on();
    return launch_recipe(access, drive::removal_run(request, everything));
}

}  // namespace kmm::tool_upgrade
