// SPDX-License-Identifier: Apache-2.0
// kubernetes restore-etcd: one member's part of restoring the data of etcd.
#include <unistd.h>

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kmm-worker/node/kubernetes_step.hpp"
#include "kubeadm/step/etcd_restore.hpp"
#include "net/http.hpp"

namespace kmm::tool_worker {
namespace {

constexpr std::array<const char*, 8> k_restore_steps{"look", "give", "take",  "prepare",
                                                     "stop", "swap", "start", "prove"};
constexpr const char* k_last_restore_step = "servers";
constexpr std::size_t k_piece_text_max = 16U << 20U;

std::string restore_option(const cli::Args& args, const char* name) {
    if (const auto text = args.get(name); text && !text->empty()) return *text;
    throw Error(Exit::usage, "missing-option", fmt::format("expected --{}", name))
        .hint("kmm-upgrade abort --rollback all --restore-etcd gives all of them");
}

std::uint64_t number_option(const cli::Args& args, const char* name) {
    const auto text = restore_option(args, name);
    if (const auto number = base::parse_number<std::uint64_t>(text)) return *number;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--{}: expected a number of bytes, found '{}'", name, base::escape(text)))
        .hint(fmt::format("write digits alone, for example --{} 1048576", name));
}

/// Of the options each step takes its own.
void refuse_options_of_other_steps(const cli::Args& args) {
    const auto step = args.positional("STEP");
    if (step == "take") return refuse_without_effect(args, {"name", "initial-cluster"}, step);
    if (step == "give") return refuse_without_effect(args, {"id", "sha256", "initial-cluster", "size"}, step);
    refuse_without_effect(args, {"offset", "size"}, step);
    if (step == "look") refuse_without_effect(args, {"initial-cluster"}, step);
}

kubeadm::StepResult restore_step(const cli::Args& args, Here& here) {
    const auto step = args.positional("STEP");
    auto& node = here.node;
    kubeadm::EtcdRestore restore;
    const auto takes = [&] {
        restore.id = restore_option(args, "id");
        restore.sha256 = restore_option(args, "sha256");
    };
    net::CurlHttpClient client;
    if (step == "take") {
        takes();
        const auto offset = number_option(args, "offset"), size = number_option(args, "size");
        return kubeadm::take_snapshot(node, restore, offset, size,
                                      sys::read_fd(STDIN_FILENO, "standard input", k_piece_text_max));
    }
    restore.backup = name_of_backup(args);
    if (step == "give") return kubeadm::give_snapshot(node, restore.backup, number_option(args, "offset"));
    if (step == "look") {
        restore.id = restore_option(args, "id");
        restore.sha256 = args.get("sha256").value_or("");
        return kubeadm::look_at_restore(node, client, restore);
    }
    takes();
    restore.initial_cluster = restore_option(args, "initial-cluster");
    if (step == "prepare") return kubeadm::prepare_restore(node, restore);
    if (step == "stop") return kubeadm::stop_for_restore(node, restore);
    if (step == "swap") return kubeadm::swap_restored(node, restore);
    if (step == "start") return kubeadm::start_restored_etcd(node, restore);
    if (step == "prove") return kubeadm::prove_restored_etcd(node, client, restore);
    if (step == k_last_restore_step) return kubeadm::start_restored_servers(node, restore);
    throw Error(Exit::usage, "bad-value",
                fmt::format("expected a step of {} and {}, found '{}'",
                            base::join(std::vector<std::string>(k_restore_steps.begin(), k_restore_steps.end()), ", "),
                            k_last_restore_step, base::escape(step)))
        .hint("kmm-upgrade abort --rollback all --restore-etcd takes all of them in their order");
}

}  // namespace

cli::Verb verb_restore_etcd() {
    auto name = name_option();
    name.required = false;
    auto verb = step_verb(
        "restore-etcd", "restore the data of etcd on this member, step by step",
        "Each STEP is done on all members of etcd before the next one. prepare restores the snapshot of the backup "
        "beside the data that is in use, by a static Pod with the etcd of the backup, and stops nothing. stop takes "
        "the manifests of the control plane away. swap puts the restored data in its place and keeps the old. start "
        "starts etcd, prove waits for its quorum, servers restores the other files. look changes nothing; give and "
        "take bring the snapshot of one member to another. What was written since the snapshot is lost: kmm-upgrade "
        "abort --rollback all --restore-etcd asks for that and does it in order.",
        {{"kmm-worker kubernetes restore-etcd look --name before-v1.35.4 --id r1", "what would be restored"}},
        {name, cli::option("id", "ID", "the restore, the same on all members"),
         cli::option("sha256", "DIGEST", "of the snapshot that all members restore"),
         cli::option("initial-cluster", "MEMBERS", "NAME=URL of each member, separated by commas"),
         cli::option("offset", "BYTES", "with give and take: where the piece begins"),
         cli::option("size", "BYTES", "with take: of the whole snapshot")});
    cli::Positional step;
    step.name = "STEP";
    step.help = "step of the restore";
    step.choices.assign(k_restore_steps.begin(), k_restore_steps.end());
    step.choices.emplace_back(k_last_restore_step);
    verb.positionals = {step};
    verb.run = [](const cli::Args& args, cli::Context& context) {
        refuse_options_of_other_steps(args);
        Here here(args, context);
        return report_step(restore_step(args, here), here.node.slot(), context);
    };
    return verb;
}

}  // namespace kmm::tool_worker
