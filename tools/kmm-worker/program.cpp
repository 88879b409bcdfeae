// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/program.hpp"

#include "cli/explain.hpp"
#include "kmm-worker/codes.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/result.hpp"

namespace kmm::tool_worker {

namespace {

/// Those of the tables of this command in the form of the manual page.
std::vector<Code> codes_for_manual() {
    std::vector<Code> made;
    for (const auto& row : codes())
        made.push_back({std::string(row.code),
                        row.exit ? "error" : "warning",
                        std::string(row.meaning),
                        {},
                        std::string(row.hint)});
    return made;
}

// Hints for words of other tools. None of them is a command that changes the kernel.
constexpr std::string_view k_to_unload = "see kmm-worker help unload";
constexpr std::string_view k_to_load_again = "unload, then load: see kmm-worker help unload";
constexpr std::string_view k_to_return = "load with the CONFIG of the version before: see kmm-worker help load";

}  // namespace

cli::Program program() {
    cli::Program made;
    made.name = "kmm-worker";
    made.summary = "pull, check, load and unload kernel modules on this node";
    made.description =
        "Takes KMM's ModuleConfig and does what KMM's worker Pod does, with proof: every digest is verified, nothing "
        "of an image is executed, nothing but modprobedDir is read as configuration, and the live module is compared "
        "with the requested one.";
    made.verbs = {verb_load(),    verb_unload(), verb_check(),      verb_status(),       verb_facts(),
                  verb_pull(),    verb_sign(),   verb_cache_list(), verb_cache_verify(), verb_cache_prune(),
                  verb_explain(), verb_run(),    verb_bundle(),     verb_kmod_load(),    verb_kmod_unload()};
    made.verbs.push_back(verb_weak_updates());
    for (auto verbs : {verbs_kubernetes(), verbs_system()})
        for (auto& verb : verbs) made.verbs.push_back(std::move(verb));
    made.examples = {{"kmm-worker check config.yaml", "would this module load here"},
                     {"kmm-worker load config.yaml", "load it"},
                     {"kmm-worker status kmm_hello", "what is live"},
                     {"kmm-worker unload config.yaml", "unload it"}};
    made.environment = {
        {"SSL_CERT_FILE",
         "authorities for TLS in addition to the system's, where none is named for the server alone"},
        {"REGISTRY_AUTH_FILE, DOCKER_CONFIG, XDG_RUNTIME_DIR",
         "where credentials for registries are looked for without --authfile"},
        {"http_proxy, https_proxy, all_proxy, no_proxy", "proxies, as curl reads them"},
        {"KMM_TERMINATION_LOG", "file that gets the result as JSON; default: /dev/termination-log in a Pod, else none"},
        {"NODE_NAME", "name of this node in results; default: its host name"},
        {"TMPDIR", "where an image is taken apart; default: /run/kmm-worker for root, else /tmp"}};
    made.files = {{"/etc/kvc/kmods-via-containers.conf, /etc/kvc/NAME.conf", "what run reads"},
                  {"/run/kmm-worker", "what was loaded, and which in-tree modules gave way, since the node started"},
                  {"/var/lib/kmm-worker", "the cache, if the directory is there"},
                  {"/var/lib/kmm-node", "jobs of upgrades; backups and replaced files of a Kubernetes upgrade"},
                  {"/var/run/kmm/pull-secrets", "mounted pull Secrets"},
                  {"/etc/containers/certs.d, /etc/docker/certs.d, /etc/containerd/certs.d",
                   "certificates of single registries"}};
    made.other_words = {
        {"install", "see kmm-worker help load, or help node install for a kernel"},
        {"list", "kmm-worker status, or cache list for images"},
        {"lint", "kmm-worker check CONFIG"},
        {"ls", "kmm-worker status, or cache list for images"},
        {"lsmod", "kmm-worker status"},
        {"modinfo", "kmm-worker check CONFIG"},
        {"modprobe", "see kmm-worker help load, or help unload"},
        {"reload", std::string(k_to_load_again)},
        {"remove", std::string(k_to_unload)},
        {"restart", std::string(k_to_load_again)},
        {"rmmod", std::string(k_to_unload)},
        {"rollback", std::string(k_to_return)},
        {"show", "kmm-worker status"},
        {"start", "see kmm-worker help load"},
        {"stop", "unload takes a module out of the kernel: see kmm-worker help unload"},
        {"undo", std::string(k_to_return)},
        {"uninstall", std::string(k_to_unload)},
        {"validate", "kmm-worker check CONFIG"}};
    made.topics = {cli::codes_topic("ERRORS AND WARNINGS", codes_for_manual())};
    made.on_error = [](const Error& error) { leave_termination_message(cli::error_node(error)); };
    return made;
}

}  // namespace kmm::tool_worker
