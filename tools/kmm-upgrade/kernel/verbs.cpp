// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kernel/verbs.hpp"

#include <utility>

#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/session/pools.hpp"
#include "kmm-upgrade/session/releases.hpp"
#include "kmm-upgrade/verb_parts.hpp"
#include "preflight/verdict.hpp"
#include "recipe/files/options.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Options of kmm-plan preflight, without those that every verb here has for nodes.
std::vector<cli::Option> preflight_options() {
    auto all = std::vector<cli::Option>{preflight::devel_option()} + preflight::signature_options() +
               preflight::registry_options();
    std::erase_if(all, [](const cli::Option& each) { return each.name == "policy" || each.name == "signature-key"; });
    return all;
}

}  // namespace

cli::Verb start_kernel_verb() {
    auto made = verb(
        "start kernel", "update the kernel of nodes, one after the other",
        "Runs kmm-plan preflight for the release first: a Module without a mapping for it, without its image "
        "(--check-images), or whose modules do not fit it (--kernel-devel) is a reason to refuse. Nothing is changed "
        "then and the exit code is 10. SpecialResources of -f and of the cluster are checked, too: each of their "
        "driver containers needs its image for that kernel, modules that fit it, or a build. Recipes that start "
        "recipe has rolled out must have a copy of each driver for that kernel.\n\n"
        "Then each node in turn is cordoned and drained, COMMAND installs the release on it, and it is rebooted. It "
        "counts as done when it runs a new boot of exactly that kernel, its Node says so, every Module that selects "
        "it is live with the identity of the file in its image, and the Pods of the recipes' drivers that it had are "
        "Ready; then it is uncordoned. kmm-upgrade loads the modules by kmm-worker; where KMM's operator runs, it is "
        "waited for. A node that runs the release already keeps its Pods: only its drivers are proved. Nodes without "
        "Linux have no part in it.\n\n"
        "Control planes go one after the other, whatever --max-unavailable is, and each is rebooted only while a "
        "majority of them serves without it: their Nodes and static Pods are Ready. The host that kmm-upgrade runs "
        "on comes last.\n\n"
        "COMMAND is run by sh, as root, with the release as $1 and KMM_KERNEL_RELEASE. It must be repeatable and "
        "make the release the default of the boot loader. It runs as a detached job: a lost connection or a killed "
        "kmm-upgrade does not end it, and resume goes on with it. The boot id from before is on record before a "
        "reboot is asked for, so that no node is rebooted twice.\n\n"
        "A node that comes back with another kernel, without a driver, or not at all stops the run and stays "
        "cordoned. abort --rollback runs COMMAND with the previous release. Nodes are reached by ssh and need "
        "kmm-worker, as root.",
        {{"kmm-upgrade start kernel --to 6.1.0-60-amd64 --install 'apt-get install -y linux-image-$1'",
          "with the package manager"},
         {"kmm-upgrade start kernel --to 5.14.0-427.43.1.el9_4.x86_64 --install '/usr/local/sbin/set-kernel "
          "\"$1\"' --canary 1",
          "with a script; stop after the first node"},
         {"kmm-upgrade start kernel --to 6.1.0-60-amd64 --install 'apt-get install -y linux-image-$1' --dry-run",
          "preflight and order, change nothing"},
         {"kmm-upgrade start kernel --to 6.1.0-60-amd64 --install 'apt-get install -y linux-image-$1' -f recipes/ "
          "--check-images",
          "recipes must be ready for it, too"}},
        std::vector<cli::Option>{
            cli::required(option("to", "RELEASE", "kernel release, as uname -r prints it")),
            cli::required(option("install", "COMMAND", "installs the release on a node; $1 is the release"))} +
            without_drain(walk_options("30m")) +
            std::vector<cli::Option>{option("no-drain", "", "reboot without emptying nodes"), pause_pools_option(),
                                     option("manual", "", "record the upgrade and stop; continue with step")} +
            preflight_options() + recipe::files::recipe_sources() +
            std::vector<cli::Option>{release_namespace_option()},
        run_start_kernel);
    made = reworded(std::move(made), "via", "how nodes are reached (default: ssh); local: this host alone",
                    {"ssh", "local"});
    made = reworded(std::move(made), "lease-namespace", "namespace of the Lease (default: kube-system)");
    return without_use(std::move(made), runner_options(),
                       {"via", "ssh-config", "worker", "operator", "lease-namespace", "api-timeout", "break-lock",
                        "policy", "signature-key"});
}

}  // namespace kmm::tool_upgrade
