// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/program.hpp"

#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/explain.hpp"
#include "kmm-upgrade/codes.hpp"
#include "kmm-upgrade/kubernetes/verbs.hpp"
#include "kmm-upgrade/reach/reach.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/verb_parts.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/codes/codes.hpp"

namespace kmm::tool_upgrade {
namespace {

/// Of verbs that go on with a run.
std::vector<cli::Option> onward_options() {
    return {option("until", "STATE", "stop in this state, exit 11; replaces that of the start"),
            option("canary-image", "IMAGE", "of a Kubernetes upgrade: replaces that of the start"),
            option("ignore-preflight-errors", "NAMES", "of a Kubernetes upgrade: replaces those of the start"),
            metrics_option(), metrics_cluster_option()};
}

cli::Option stx_option() {
    return option("stx", "", "of a Kubernetes upgrade: draw the table of StarlingX's system command");
}

cli::Verb resume_verb() {
    return about_run(verb(
        "resume", "continue an interrupted or paused upgrade",
        "Continues after a failure, a pause, a kill or a reboot. Failed nodes are tried again. After an interrupted "
        "step the node is examined first. Resuming an upgrade that has ended changes nothing. The exit code is 0, or "
        "12 if nodes were skipped or left out.",
        {{"kmm-upgrade resume", "continue the recorded upgrade"}}, onward_options(), run_resume));
}

cli::Verb show_verb() {
    return about_record(
        verb("show", "show progress and the next command",
             "Reads the record: takes no lock, changes nothing, needs no cluster. Times are UTC. Of a Kubernetes "
             "upgrade the cluster is asked, too, but for --watch: nodes that run what the record does not say of "
             "them are noted.\n\n"
             "The exit code is 0 in every state of the upgrade. Scripts read state and summary of -o json.",
             {{"kmm-upgrade show", "the state of the upgrade"},
              {"kmm-upgrade show --watch", "refresh until the upgrade ends"},
              {"kmm-upgrade show -o name --metrics /var/lib/node_exporter/kmm-upgrade.prom", "for node_exporter"}},
             {option("watch", "", "refresh until the upgrade ends"), stx_option(), metrics_option(),
              metrics_cluster_option()},
             run_show));
}

cli::Verb nodes_verb() {
    return about_record(verb("nodes", "list the nodes of the upgrade",
                             "CURRENT is the version that was last seen on the node: \"-\" for none, \"?\" during a "
                             "step or if the node did not answer. Of a Kubernetes upgrade the cluster is asked, too: "
                             "nodes that run what the record does not say of them are noted.",
                             {{"kmm-upgrade nodes -o wide", "with full messages"}}, {stx_option()}, run_nodes));
}

cli::Verb step_verb() {
    auto step =
        verb("step", "do one step or one stage",
             "Does the next step of one node and stops. NODE, as --node, chooses it: that is refused if more than "
             "--max-unavailable nodes would then be in progress. With STAGE (canary or nodes of a module upgrade, "
             "first-master and the others of a Kubernetes upgrade, or a state of one), does what is left of that "
             "stage, which must be the next one. The exit code is 0 if the step or stage was done, 11 if it failed.",
             {{"kmm-upgrade step", "do the next step"},
              {"kmm-upgrade step node-b", "do the next step of node-b"},
              {"kmm-upgrade step canary", "upgrade the first nodes, then stop"}},
             {option("node", "NODE", "the node to step"), metrics_option(), metrics_cluster_option()}, run_step);
    cli::Positional stage;
    stage.name = "NODE|STAGE";
    stage.help = "node, stage, or state of a stage";
    stage.required = false;
    step.positionals = {stage};
    return about_run(std::move(step));
}

cli::Verb abort_verb() {
    auto rollback =
        cli::with_default(cli::with_choices(option("rollback", "WHICH", "nodes to roll back to their previous version"),
                                            {"none", "current", "all"}),
                          "none");
    return about_run(verb(
        "abort", "abort the upgrade, optionally rolling nodes back",
        "--rollback current returns nodes that failed or are unfinished to their recorded version. --rollback all "
        "also returns nodes that are done, the last one first. An interrupted abort can be resumed. Aborting twice "
        "is not an error. Of a Kubernetes upgrade, --restore-etcd also restores the data of etcd where its version "
        "has changed: everything that was written since the snapshot is lost.",
        {{"kmm-upgrade abort", "abort, leave every node as it is"},
         {"kmm-upgrade abort --rollback current", "abort, roll failed nodes back"}},
        {rollback,
         option("restore-etcd", "", "with --rollback all: first restore the snapshot of etcd on every control plane"),
         option("confirm", "WORDS", "the words for --restore-etcd; the error without them says which"),
         metrics_option(), metrics_cluster_option()},
        run_abort));
}

cli::Verb skip_verb() {
    auto skip = verb("skip", "leave a failed node out of the upgrade",
                     "The node stays as it is. resume continues with the others. The exit code of the run is then 12.",
                     {{"kmm-upgrade skip node-c --reason \"broken card\"", "leave node-c out"}},
                     {cli::required(option("reason", "TEXT", "reason; it is kept in the history")), metrics_option(),
                      metrics_cluster_option()},
                     run_skip);
    skip.positionals = {node_argument("a node that failed")};
    return about_run(std::move(skip));
}

cli::Verb retry_verb() {
    auto retry = verb("retry", "try a failed node or step again, then continue",
                      "Checks the node again, with the current image and Module, and does its remaining steps. "
                      "Without NODE, begins the failed step of the run again: a step that concerns no single node.",
                      {{"kmm-upgrade retry node-c", "try node-c again"},
                       {"kmm-upgrade retry", "try the failed step of the run again"}},
                      onward_options(), run_retry);
    retry.positionals = {node_argument("a node that failed")};
    retry.positionals.front().required = false;
    return about_run(std::move(retry));
}

cli::Verb delete_verb() {
    return about_record(
        verb("delete", "remove an ended record",
             "Removes the record of a complete or aborted upgrade, so that another one can start. It stays in the "
             "history.",
             {{"kmm-upgrade delete", "make room for the next upgrade"}}, {}, run_delete));
}

/// A run that is kept: the recorded one, or one of the history.
cli::Positional run_argument() {
    cli::Positional run;
    run.name = "RUN";
    run.help = "name of a run in the list";
    run.required = false;
    return run;
}

cli::Verb history_verb() {
    auto history = verb("history", "list past runs and their events",
                        "Lists the runs in the record, newest first; with RUN, every event of that run.",
                        {{"kmm-upgrade history", "list all runs"},
                         {"kmm-upgrade history current", "list the events of the current run"}},
                        {}, run_history);
    history.positionals = {run_argument()};
    return about_record(std::move(history));
}

cli::Verb report_verb() {
    auto report = verb("report", "write a run as an HTML page",
                       "Writes one HTML page with the request, the result, each node with its versions and the time "
                       "of each step, and every event. The page loads nothing and has no script. Takes no lock, "
                       "needs no cluster.",
                       {{"kmm-upgrade report --html upgrade.html", "the recorded run, or the last one of the history"},
                        {"kmm-upgrade report 00001-kmm-hello-v1 --html -", "a run of the history, to standard output"}},
                       {cli::required(option("html", "FILE", "the page to write; - for standard output"))}, run_report);
    report.positionals = {run_argument()};
    return about_record(std::move(report));
}

cli::Verb explain_verb() {
    auto explain = verb(
        "explain", "describe an error or finding code",
        "Without CODE: list all codes of this command. Codes of Modules, nodes and clusters that kmm-plan prints too "
        "are described, but not listed.",
        {{"kmm-upgrade explain identity-mismatch", "describe one code"}, {"kmm-upgrade explain", "list all codes"}}, {},
        {});
    explain =
        cli::explain_verb(without_use(std::move(explain), state_options() + runner_options() + cli::cluster_options() +
                                                              std::vector<cli::Option>{trust_option()}),
                          codes(), plan::codes(), "kmm-plan explain and kmm-worker explain know their own");
    return without_selector(std::move(explain), "nothing in a cluster is looked at");
}

constexpr std::string_view k_to_end =
    "Ctrl-C interrupts a command, and resume goes on; abort ends the upgrade: see kmm-upgrade help abort";
constexpr std::string_view k_to_return = "abort returns nodes to their version before: see kmm-upgrade help abort";
constexpr std::string_view k_to_read = "kmm-upgrade show, or history for upgrades that ended";

/// Words of kubectl, helm and systemctl. None of the hints is a command that changes a node.
constexpr std::pair<std::string_view, std::string_view> k_other_words[] = {
    {"cancel", k_to_end},     {"continue", "see kmm-upgrade help resume"},
    {"describe", k_to_read},  {"downgrade", k_to_return},
    {"get", k_to_read},       {"halt", k_to_end},
    {"list", k_to_read},      {"ls", k_to_read},
    {"pause", k_to_end},      {"revert", k_to_return},
    {"rollback", k_to_return}, {"status", k_to_read},
    {"stop", k_to_end},       {"suspend", k_to_end},
    {"undo", k_to_return}};

}  // namespace

cli::Program program(const Crafts& crafts) {
    cli::Program program;
    program.name = "kmm-upgrade";
    program.summary = "upgrades kernel modules, or Kubernetes, on the nodes of a cluster";
    program.description =
        "Upgrades a kernel module, or Kubernetes itself, node by node and records each step before and after it is "
        "done. It can be killed at any moment: resume examines the cluster and continues.";
    program.examples = {{"kmm-upgrade start module drivers/kmm-hello --to v2", "start an upgrade"},
                        {"kmm-upgrade show", "show progress and the next command"},
                        {"kmm-upgrade resume", "continue after a pause, a failure or a crash"},
                        {"kmm-upgrade abort --rollback current", "abort, and roll the failed node back"}};
    program.own = crafts;
    std::vector<cli::Verb> later;
    for (const auto* craft : crafts) {
        auto own = craft->verbs();
        program.verbs.insert(program.verbs.end(), std::make_move_iterator(own.starters.begin()),
                             std::make_move_iterator(own.starters.end()));
        later.insert(later.end(), std::make_move_iterator(own.others.begin()),
                     std::make_move_iterator(own.others.end()));
    }
    for (auto* made : {resume_verb, show_verb, nodes_verb, step_verb, abort_verb, skip_verb, retry_verb, delete_verb})
        program.verbs.push_back(made());
    program.verbs.insert(program.verbs.end(), std::make_move_iterator(later.begin()),
                         std::make_move_iterator(later.end()));
    for (auto* made : {history_verb, report_verb}) program.verbs.push_back(made());
    for (auto& each : kubernetes_reading_verbs()) program.verbs.push_back(std::move(each));
    program.verbs.push_back(explain_verb());
    program.topics = {cli::codes_topic("ERRORS AND FINDINGS", codes())};
    program.planned = {
        {"state", "kmm-upgrade show verifies the record; its last five snapshots are in backup/ of --state-dir"}};
    for (const auto& [word, hint] : k_other_words) program.other_words.emplace(word, hint);
    program.environment = {
        {"SSL_CERT_FILE",
         "authorities for TLS in addition to the system's, where none is named for the server alone"},
        {"XDG_STATE_HOME",
         "of other users than root: the record is kept in kmm-upgrade below it; default: ~/.local/state"},
        {"TZ", "time zone of --between without --tz; times that are shown are UTC"},
        {"https_proxy, all_proxy, no_proxy", "proxy to an API server that is not on this host"}};
    program.files = {{"/var/lib/kmm-upgrade, ~/.local/state/kmm-upgrade",
                      "the record of root, and of other users: journal.ndjson, and history/ with those that ended"},
                     {"/etc/kmm-tools/kubernetes-versions.yaml",
                      "metadata of Kubernetes versions; one of this name in the state directory comes first"}};
    return program;
}

}  // namespace kmm::tool_upgrade
