// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade versions and require: which versions of Kubernetes there are, what runs, and conditions on it.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "kmm-upgrade/kubernetes/craft.hpp"
#include "kmm-upgrade/kubernetes/differences.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/kubernetes/stx.hpp"
#include "kmm-upgrade/reach/cluster_access.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "kubernetes/check/require.hpp"
#include "kubernetes/versions/observe.hpp"
#include "kubernetes/versions/path.hpp"
#include "kubernetes/versions/states.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

using value::Node;
using kubernetes::Catalogue;
using kubernetes::Version;
using kubernetes::VersionRow;

std::vector<std::string> texts_of(const std::vector<Version>& versions) {
    std::vector<std::string> texts;
    for (const auto& version : versions) texts.push_back(version.text());
    return texts;
}

/// The versions that a row may be upgraded from: those of its entry, else the known ones that the minor rule allows.
std::vector<std::string> upgrade_from(const Catalogue& catalogue, const VersionRow& row) {
    if (row.entry == nullptr) return {};
    if (row.entry->upgrade_from) return texts_of(*row.entry->upgrade_from);
    std::vector<std::string> texts;
    for (const auto& entry : catalogue.versions)
        if (row.entry->follows(entry.version)) texts.push_back(entry.version.text());
    return texts;
}

const char* true_or_false(bool flag) { return flag ? "True" : "False"; }

/// The seed's fields.
Node row_node(const Catalogue& catalogue, const VersionRow& row) {
    const bool known = row.entry != nullptr;
    return Node::mapping(
        {{"version", row.version.text()},
         {"upgrade_from", Node::strings(upgrade_from(catalogue, row))},
         {"downgrade_to", Node::strings(known ? texts_of(row.entry->downgrade_to) : std::vector<std::string>())},
         {"applied_patches", Node::strings(known ? row.entry->applied_patches : std::vector<std::string>())},
         {"available_patches", Node::strings(known ? row.entry->available_patches : std::vector<std::string>())},
         {"target", row.is_target},
         {"state", kubernetes::to_string(row.state)}});
}

Exit list_versions(cli::Context& context, const Catalogue& catalogue, const std::vector<VersionRow>& rows, bool stx) {
    auto items = Node::sequence();
    for (const auto& row : rows) {
        auto item = row_node(catalogue, row);
        item.set("in_metadata", row.entry != nullptr);
        item.set("control_planes", static_cast<std::uint64_t>(row.control_planes));
        item.set("kubelets", static_cast<std::uint64_t>(row.kubelets));
        items.push_back(std::move(item));
    }
    const auto document = Node::mapping({{"apiVersion", "kmmtools/v1"},
                                         {"kind", "KubernetesVersions"},
                                         {"metadata_source", catalogue.source},
                                         {"kube_versions", std::move(items)}});
    if (print_list(context, document, "kube_versions")) return Exit::ok;
    if (context.output == "name") {
        for (const auto& row : rows) context.console.out(row.version.text() + "\n");
        return Exit::ok;
    }
    std::vector<std::vector<std::string>> cells;
    for (const auto& row : rows) {
        cells.push_back(
            {row.version.text(), true_or_false(row.is_target), std::string(kubernetes::to_string(row.state))});
        if (context.output == "wide" && !stx) {
            cells.back().insert(cells.back().end(), {std::to_string(row.control_planes), std::to_string(row.kubelets),
                                                     row.entry == nullptr ? "no" : "yes"});
        }
    }
    if (stx) {
        context.console.out(framed({"version", "target", "state"}, cells));
        return Exit::ok;
    }
    std::vector<std::string> headers{"VERSION", "TARGET", "STATE"};
    if (context.output == "wide") headers.insert(headers.end(), {"CONTROL-PLANES", "KUBELETS", "IN-METADATA"});
    context.console.out(cli::format_table(headers, cells, context.console.width()));
    return Exit::ok;
}

std::string list_text(const std::vector<std::string>& texts) { return texts.empty() ? "-" : base::join(texts, ", "); }

std::string or_unknown(const std::string& text) { return text.empty() ? "unknown" : base::escape(text); }

/// What leads from what runs to the version.
kubernetes::Path path_to(const Catalogue& catalogue, const kubernetes::Observation& seen, const VersionRow& row) {
    return kubernetes::find_path(catalogue, seen, row.version);
}

std::string path_text(const kubernetes::Path& path) {
    if (!path.problem.empty()) return "none: " + path.problem;
    std::vector<std::string> steps;
    for (const auto& step : path.steps) steps.push_back(to_string(step));
    return steps.empty() ? "nothing to do" : base::join(steps, ", then ");
}

Node removed_node(const kubernetes::Removals& removed) {
    return Node::mapping({{"complete", removed.complete},
                          {"apiserver_flags", Node::strings(removed.apiserver_flags)},
                          {"controller_manager_flags", Node::strings(removed.controller_manager_flags)},
                          {"scheduler_flags", Node::strings(removed.scheduler_flags)},
                          {"kubelet_flags", Node::strings(removed.kubelet_flags)},
                          {"admission_plugins", Node::strings(removed.admission_plugins)},
                          {"feature_gates", Node::strings(removed.feature_gates)},
                          {"locked_gates", Node::strings(removed.locked_gates)}});
}

Node path_node(const kubernetes::Path& path) {
    auto steps = Node::sequence();
    for (const auto& step : path.steps)
        steps.push_back(
            Node::mapping({{"part", step.part == kubernetes::Step::Part::kubelets ? "kubelets" : "control_planes"},
                           {"version", step.version.text()}}));
    auto node = Node::mapping({{"steps", std::move(steps)}});
    if (!path.problem.empty()) node.set("problem", path.problem);
    return node;
}

Exit show_version(cli::Context& context, const Catalogue& catalogue, const kubernetes::Observation& seen,
                  const VersionRow& row, bool stx) {
    const auto path = path_to(catalogue, seen, row);
    const auto* facts = catalogue.facts_of(row.version.line());
    const auto* entry = row.entry;
    auto document = row_node(catalogue, row);
    document.members().insert(document.members().begin(),
                              {{"apiVersion", {}, "kmmtools/v1"}, {"kind", {}, "KubernetesVersion"}});
    document.set("in_metadata", entry != nullptr);
    document.set("path", path_node(path));
    if (entry != nullptr) {
        for (const auto& [name, text] : {std::pair("etcd", &entry->etcd), std::pair("coredns", &entry->coredns),
                                         std::pair("pause", &entry->pause)})
            if (!text->empty()) document.set(name, *text);
    }
    std::vector<std::string> issues;
    for (const auto* known : catalogue.issues_of(row.version)) issues.push_back(known->issue);
    if (facts != nullptr) {
        document.set("known_issues", Node::strings(issues));
        document.set("cgroup", facts->needs_cgroup_v2 ? "v2" : "any");
        document.set("removed", removed_node(facts->removed));
    }
    if (print_document(context, document)) return Exit::ok;
    if (context.output == "name") {
        context.console.out(row.version.text() + "\n");
        return Exit::ok;
    }
    std::vector<std::pair<std::string, std::string>> rows{
        {"version", row.version.text()},
        {"upgrade_from", list_text(upgrade_from(catalogue, row))},
        {"downgrade_to", list_text(entry == nullptr ? std::vector<std::string>() : texts_of(entry->downgrade_to))},
        {"applied_patches", list_text(entry == nullptr ? std::vector<std::string>() : entry->applied_patches)},
        {"available_patches", list_text(entry == nullptr ? std::vector<std::string>() : entry->available_patches)},
        {"state", std::string(kubernetes::to_string(row.state))},
        {"target", true_or_false(row.is_target)},
    };
    if (stx) {
        std::sort(rows.begin(), rows.end());
        std::vector<std::vector<std::string>> cells;
        for (const auto& [key, text] : rows) cells.push_back({key, base::escape(text)});
        context.console.out(framed({"Property", "Value"}, cells));
        return Exit::ok;
    }
    rows.emplace_back("path", path_text(path));
    rows.emplace_back("etcd", or_unknown(entry == nullptr ? "" : entry->etcd));
    rows.emplace_back("coredns", or_unknown(entry == nullptr ? "" : entry->coredns));
    rows.emplace_back("pause", or_unknown(entry == nullptr ? "" : entry->pause));
    for (const auto& issue : issues) rows.emplace_back("known issue", issue);
    rows.emplace_back("cgroup", facts == nullptr         ? "unknown"
                                : facts->needs_cgroup_v2 ? "v2 (kubelet fails on v1 unless failCgroupV1 is false)"
                                                         : "v1 or v2");
    if (facts == nullptr) {
        rows.emplace_back("removed", "unknown");
    } else {
        const auto& removed = facts->removed;
        for (const auto& [name, list] : {std::pair("apiserver flags", &removed.apiserver_flags),
                                         std::pair("controller flags", &removed.controller_manager_flags),
                                         std::pair("scheduler flags", &removed.scheduler_flags),
                                         std::pair("kubelet flags", &removed.kubelet_flags),
                                         std::pair("admission plugins", &removed.admission_plugins),
                                         std::pair("feature gates", &removed.feature_gates)})
            if (!list->empty() || removed.complete)
                rows.emplace_back(fmt::format("removed {}", name), list->empty() ? "none" : base::join(*list, ", "));
        if (!removed.complete) rows.emplace_back("removed", "the lists may lack something");
        if (!removed.locked_gates.empty()) rows.emplace_back("locked gates", base::join(removed.locked_gates, ", "));
    }
    context.console.out(cli::format_properties(rows));
    return Exit::ok;
}

void require_known(const kubernetes::Observation& seen) {
    if (!seen.faults.empty()) throw Error::from_diagnostics(seen.faults);
}

/// The run on record of this cluster, if it is of Kubernetes. Dumps do not tell which cluster they are of.
std::optional<upgrade::Run> own_run(Call& call) {
    if (!call.args().all("filename").empty()) return std::nullopt;
    try {
        RecordAccess record(call);
        auto run = record.load();
        if (!run || !is_kubernetes_run(*run)) return std::nullopt;
        ClusterAccess access(record);
        if (access.open(access.place()).store->identity(false) != run->cluster_identity) return std::nullopt;
        return run;
    } catch (const Error& error) {
        call.note(fmt::format("the record is left out of account: {}", error.message()));
        return std::nullopt;
    }
}

/// The target of an upgrade that is under way, and not on its way back.
std::optional<Version> upgraded_to(const upgrade::Run& run) {
    if ((upgrade::is_final_run_state(run.state) && !is_followed(run)) || run.rollback) return std::nullopt;
    return Version::parse(upgrade::kubernetes::subject_of(run).target);
}

}  // namespace

Exit run_versions(const cli::Args& args, cli::Context& context) {
    if (args.flag("scan")) return run_scan(args, context);
    for (const auto* option : {"from", "via"})
        if (args.source(option) == "option")
            throw Error(Exit::usage, "missing-option", fmt::format("--{} requires --scan", option))
                .hint("add --scan");
    Call call(args, context);
    const auto named = args.positional("VERSION");
    const auto wanted = named.empty() ? std::nullopt : std::optional(version_argument(named));
    const auto catalogue = read_versions(call);
    const auto inventory = read_inventory(call, drive::ReadExtent::control_plane);
    const auto seen = kubernetes::observe(inventory);
    require_known(seen);
    const auto run = own_run(call);
    const auto rows = kubernetes::version_rows(catalogue, seen, run ? upgraded_to(*run) : std::nullopt);
    if (run)
        for (const auto& difference : differences(*run, seen)) call.note(to_string(difference));
    if (!wanted) return list_versions(context, catalogue, rows, args.flag("stx"));
    const auto* row = kubernetes::find_row(rows, *wanted);
    if (row == nullptr) {
        std::vector<std::string> known;
        for (const auto& each : rows) {
            if (each.version.line() == wanted->line()) known.push_back(each.version.text());
        }
        const auto near = base::nearest(wanted->text(), known);
        throw Error(Exit::not_found, "version-not-found",
                    fmt::format("version {} is not in the metadata ({}) and does not run", wanted->text(),
                                base::escape(catalogue.source)))
            .hint(near ? fmt::format("did you mean {}?", *near)
                       : "kmm-upgrade versions lists them; --versions FILE names others");
    }
    return show_version(context, catalogue, seen, *row, args.flag("stx"));
}

Exit run_require(const cli::Args& args, cli::Context& context) {
    Call call(args, context);
    std::vector<kubernetes::Requirement> requirements;
    for (const auto& text : args.positionals("REQUIREMENT"))
        for (auto& each : kubernetes::parse_requirements(text)) requirements.push_back(std::move(each));
    const auto inventory = read_inventory(call, drive::ReadExtent::system);
    const auto seen = kubernetes::observe(inventory);
    const auto verdict = kubernetes::evaluate(requirements, inventory, seen);
    auto offenders = Node::sequence();
    for (const auto& each : verdict.offenders) {
        auto node = Node::mapping({{"requirement", each.requirement}, {"component", each.component}});
        if (!each.node.empty()) node.set("node", each.node);
        node.set("found", each.found);
        offenders.push_back(std::move(node));
    }
    const auto exit = verdict.offenders.empty() ? Exit::ok : Exit::checks_failed;
    const auto document = Node::mapping({{"apiVersion", "kmmtools/v1"},
                                         {"kind", "Requirement"},
                                         {"satisfied", verdict.offenders.empty()},
                                         {"compared", static_cast<std::uint64_t>(verdict.observed)},
                                         {"offenders", std::move(offenders)}});
    if (print_document(context, document)) return exit;
    for (const auto& each : verdict.offenders) {
        context.console.out(fmt::format("{}: {}{}: {}\n", each.requirement, each.component,
                                        each.node.empty() ? "" : " on " + base::escape(each.node), each.found));
    }
    if (verdict.offenders.empty() && context.verbosity >= 0)
        context.console.out(fmt::format("satisfied by all {} that were compared\n", verdict.observed));
    return exit;
}

}  // namespace kmm::tool_upgrade
