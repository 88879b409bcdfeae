// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade migrate: version labels of KMM up to v2.6.0 get the name that KMM gives them since. Nothing is unloaded
// for it.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/begin.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "upgrade/prepare_module/prepare.hpp"

namespace kmm::tool_upgrade {
namespace {

using value::Node;

/// One label of one node.
struct LabelMove {
    const api::Module* module = nullptr;
    std::string node, version;            ///< what the old label says
    std::optional<std::string> present;   ///< what the new one says, if it is there
    [[nodiscard]] bool contradicts() const { return present && *present != version; }
};

std::vector<LabelMove> moves_of(const api::Objects& objects, const drive::StartRequest& request) {
    std::vector<const api::Module*> modules;
    if (!request.name.empty()) modules.push_back(&drive::find_module(objects, request.ns, request.name));
    else
        for (const auto& module : objects.modules)
            if (request.ns.empty() || module.meta.namespace_ == request.ns) modules.push_back(&module);
    drive::require_known_nodes(objects, request.nodes);
    require_matches(objects, request.name.empty() ? request.ns : "", request.selector);
    std::vector<LabelMove> moves;
    for (const auto* module : modules) {
        const auto old_key = api::label_version_device_plugin(module->meta.namespace_, module->meta.name);
        const auto new_key = api::label_version_schedule_pod(module->meta.namespace_, module->meta.name);
        for (const auto& node : objects.nodes) {
            const auto& labels = node.meta.labels;
            const auto found = labels.find(old_key);
            if (found == labels.end() || !request.selector.matches(labels)) continue;
            if (!request.nodes.empty() &&
                std::find(request.nodes.begin(), request.nodes.end(), node.meta.name) == request.nodes.end())
                continue;
            const auto present = labels.find(new_key);
            moves.push_back({module, node.meta.name, found->second,
                             present == labels.end() ? std::nullopt : std::optional<std::string>(present->second)});
        }
    }
    std::stable_sort(moves.begin(), moves.end(), [](const LabelMove& left, const LabelMove& right) {
        return std::make_pair(left.module->full_name(), left.node) <
               std::make_pair(right.module->full_name(), right.node);
    });
    return moves;
}

/// Both labels in one write, if both still are what they were.
void carry_out(const LabelMove& move, cluster::ClusterStore& store) {
    const auto old_key = api::label_version_device_plugin(move.module->meta.namespace_, move.module->meta.name);
    const auto new_key = api::label_version_schedule_pod(move.module->meta.namespace_, move.module->meta.name);
    store.patch_node_labels(move.node, {{new_key, std::optional<std::string>(move.version)}, {old_key, std::nullopt}},
                            {{new_key, move.present}, {old_key, std::optional<std::string>(move.version)}});
}

std::string text_of(const LabelMove& move) {
    if (move.contradicts())
        return fmt::format("left: version-device-plugin says {}, version-schedule-pod {}", move.version, *move.present);
    if (move.present)
        return fmt::format("version-device-plugin {} goes, version-schedule-pod says it already", move.version);
    return fmt::format("version-device-plugin {} becomes version-schedule-pod", move.version);
}

}  // namespace

Exit run_migrate(const cli::Args& args, cli::Context& context) {
    if (args.get("from-daemonset")) return run_takeover(args, context);
    if (args.flag("remove-daemonset"))
        throw Error(Exit::usage, "missing-option",
                    "--remove-daemonset needs --from-daemonset NAMESPACE/NAME, the one to remove")
            .hint("kmm-upgrade migrate NAMESPACE/NAME --from-daemonset NAMESPACE/NAME --remove-daemonset");
    Access access(args, context);
    drive::StartRequest request;
    take_module(args, request);
    take_walk_options(args, request);
    const auto place = access.cluster.place();
    const bool dry = args.flag("dry-run");
    if (!dry) access.record.open_locked("migrate");
    require_free(access.record.load());
    auto& store = *access.cluster.open(place).store;
    const auto snapshot = store.read();
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    auto options = request.options;
    options.via = upgrade::Via::ssh;  // nodes are not reached: no rights for worker Pods are needed
    options.lease_namespace = namespace_option(args, "lease-namespace");
    auto list = Node::sequence();
    std::string text;
    std::size_t moved = 0, left = 0;
    const api::Module* held = nullptr;
    const auto moves = moves_of(snapshot.objects, request);
    for (const auto& move : moves) {
        if (access.call.stopped()) return access.call.stop_exit();
        if (move.module != held && !dry)
            access.cluster.secure(options,
                                  {move.module->meta.namespace_, move.module->meta.name, "", request.lineage, {}},
                                  ClusterAccess::Purpose::change);
        held = move.module;
        auto said = text_of(move);
        bool done = !move.contradicts();
        if (done && !dry) {
            try {
                carry_out(move, store);
            } catch (const Error& error) {
                if (error.code() != "conflict" && error.code() != "node-not-found") throw;
                said = "left: " + error.message();
                done = false;
            }
        }
        if (done) ++moved;
        else ++left;
        list.push_back(Node::mapping({{"node", move.node},
                                      {"module", move.module->full_name()},
                                      {"version", move.version},
                                      {"moved", done},
                                      {"message", said}}));
        text += context.output == "name"
                    ? fmt::format("{} {}\n", base::printable(move.node), base::printable(move.module->full_name()))
                    : fmt::format("{}  {}  {}\n", move.node, move.module->full_name(), base::escape(said));
    }
    const auto exit = left == 0 ? Exit::ok : Exit::partial;
    if (print_document(
            context,
            Node::mapping(
                {{"apiVersion", "kmmtools/v1"}, {"kind", "Migration"}, {"dryRun", dry}, {"labels", std::move(list)}})))
        return exit;
    context.console.out(text);
    if (context.output == "name") return exit;
    if (moves.empty()) context.console.out(fmt::format("no label of KMM up to v2.6.0 is in {}\n", store.describe()));
    else if (dry) context.console.out(fmt::format("\n{} to rename, {} to decide; nothing was changed\n", moved, left));
    else context.console.out(fmt::format("\n{} renamed, {} left; next: kmm-upgrade doctor\n", moved, left));
    return exit;
}

}  // namespace kmm::tool_upgrade
