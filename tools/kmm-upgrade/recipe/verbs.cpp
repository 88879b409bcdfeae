// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/recipe/verbs.hpp"

#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/pools.hpp"
#include "kmm-upgrade/session/releases.hpp"
#include "kmm-upgrade/verb_parts.hpp"
#include "preflight/images.hpp"
#include "recipe/files/options.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Nodes are not reached, and nobody chooses them.
cli::Verb about_recipe(cli::Verb made) {
    made = reworded(std::move(made), "force-conflicts", "take over fields of objects from other managers");
    made = reworded(std::move(made), "lease-namespace", "namespace of the Lease (default: --release-namespace)");
    cli::Positional name;
    name.name = "NAME";
    name.help = "SpecialResource";
    made.positionals = {name};
    for (auto& each : made.options) each.hidden = each.hidden || each.name == "cluster";
    made = reworded(std::move(made), "namespace", "namespace of documents without one");
    made = without_use(std::move(made), runner_options(),
                       {"lease-namespace", "api-timeout", "break-lock", "force-conflicts"});
    return without_selector(std::move(made), "a recipe chooses its nodes itself");
}

cli::Option time_limit() {
    return cli::with_default(option("node-timeout", "DURATION", "time limit for one step of one state"), "10m");
}

std::vector<cli::Option> image_options() {
    auto all = preflight::registry_options();
    std::erase_if(all, [](const cli::Option& each) { return each.name == "policy" || each.name == "signature-key"; });
    return all;
}

}  // namespace

cli::Verb start_recipe_verb() {
    auto keep =
        cli::repeatable(cli::option("keep-kernel", "RELEASE", "keep copies for this kernel although no node runs it"));
    auto next = cli::repeatable(cli::option("next-kernel", "RELEASE",
                                            "also make copies for this kernel, which nodes are to run next; what a "
                                            "node of it would say comes from its release in --facts or the cluster"));
    return about_recipe(verb(
        "start recipe", "roll out a SpecialResource state by state",
        "Renders the SpecialResource and what it depends on as kmm-plan render recipe does, for the kernels of the "
        "cluster's nodes, and applies the objects by server-side apply, one state after the other; resources that do "
        "not need each other are rolled out at the same time, in the waves that kmm-plan graph prints. A state is "
        "done when every object with the annotation specialresource.openshift.io/wait is ready, and the logs that "
        "wait-for-logs names match on all Pods; then the nodes get the label of the state. In the end objects and "
        "copies for kernels that are no longer needed are removed, of those that earlier rollouts created.\n\n"
        "Before anything is changed, the API server is asked about every object. Fields that another manager owns "
        "are an error that names the manager.\n\n"
        "With --check-images, registries are asked first, through the mirrors that the cluster and the documents "
        "name: a driver whose image does not exist and that nothing builds, or whose registry does not answer, is an "
        "error, and an image that does not exist is built at once.\n\n"
        "A version lower than the one that runs is a downgrade: one node at a time gets the taint "
        "specialresource.openshift.io/downgrade=true:NoExecute. When the Pods that it evicts are gone, the drivers "
        "are restarted there, and the taint is removed, also after a failure.\n\n"
        "The release is kept in a Secret of the cluster. abort --rollback all brings the release before it back. A "
        "killed rollout goes on with resume.\n\n"
        "With --dry-run on a live cluster, --metrics writes how many DaemonSets of earlier rollouts are obsolete, "
        "and for how long MachineConfigPools are paused; a timer that runs it keeps them fresh.",
        {{"kmm-upgrade start recipe simple-kmod -f recipes/ --chart ./simple-kmod-0.0.2", "roll out the chart"},
         {"kmm-upgrade start recipe simple-kmod -f recipes/ --to 0.0.2 --dry-run",
          "print what would be applied, in order"},
         {"kmm-upgrade start recipe simple-kmod -f recipes/ --keep-kernel 5.14.0-427.40.1.el9_4.x86_64",
          "keep the copies for a kernel"},
         {"kmm-upgrade start recipe simple-kmod -f recipes/ --next-kernel 5.14.0-570.12.1.el9_6.x86_64",
          "drivers for a kernel before nodes run it"}},
        std::vector<cli::Option>{option("to", "VERSION", "version of the chart; one in a repository is chosen by it"),
                                 option("downgrade", "", "restart drivers node by node, as for a lower version"),
                                 pause_pools_option(), keep, next, release_namespace_option(), time_limit(),
                                 option("on-event", "COMMAND", "run COMMAND for each event (a JSON line on stdin)"),
                                 metrics_option(), metrics_cluster_option(),
                                 option("manual", "", "record the rollout and stop; continue with step"),
                                 option("or-resume", "", "resume this rollout if it is already recorded"),
                                 option("strict", "", "warnings of the rendering are errors"),
                                 option("dry-run", "", "print every object and change, change nothing")} +
            recipe::files::recipe_sources() + image_options(),
        run_start_recipe));
}

cli::Verb remove_recipe_verb() {
    return about_recipe(verb(
        "remove recipe", "remove what rollouts of a SpecialResource created",
        "Deletes the objects of the recipe, the last state first, waits until each is gone, removes the labels of "
        "its states from the nodes, and proves by a list that nothing is left. Objects that were there before the "
        "recipe, or that another recipe has, too, stay and are named. A Namespace or a definition with objects of "
        "others stops the removal.\n\n"
        "What to remove is known from the Secrets of the releases: no chart is needed. abort --rollback all applies "
        "the states again.",
        {{"kmm-upgrade remove recipe simple-kmod", "remove it"},
         {"kmm-upgrade remove recipe simple-kmod --dry-run", "print the objects in order, change nothing"}},
        std::vector<cli::Option>{release_namespace_option(), time_limit(),
                                 option("on-event", "COMMAND", "run COMMAND for each event (a JSON line on stdin)"),
                                 metrics_option(), metrics_cluster_option(),
                                 option("manual", "", "record the removal and stop; continue with step"),
                                 option("or-resume", "", "resume this removal if it is already recorded"),
                                 option("dry-run", "", "print every object, change nothing")},
        run_remove_recipe));
}

}  // namespace kmm::tool_upgrade
