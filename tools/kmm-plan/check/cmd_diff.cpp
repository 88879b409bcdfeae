// SPDX-License-Identifier: Apache-2.0
// kmm-plan diff: what is rendered against what was read.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "kmm-plan/check/diff_plugins.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/source/read_summary.hpp"
#include "kmm-plan/check/reporting.hpp"
#include "kmm-plan/check/server_view.hpp"
#include "kmm-plan/verbs.hpp"
#include "render/manifests.hpp"
#include "report/tree_diff.hpp"

namespace kmm::tool_plan {

namespace {

using value::Node;

/// An object that differs.
struct Difference {
    Pair pair;  ///< without the trees, which are as large as the cluster: {} where there was one
    std::vector<report::Change> changes;
};

bool is_kmm_label(std::string_view key) {
    return key.starts_with("kmm.node.kubernetes.io/") || key.starts_with("beta.kmm.node.kubernetes.io/");
}

/// Labels that follow Pods of device plugins and DRA drivers, and the one of released KMM that the current one leaves
/// alone.
bool is_left_alone(std::string_view key) {
    constexpr std::array<std::string_view, 3> endings{".device-plugin-ready", ".dra-ready", ".device-plugin-target"};
    return key.starts_with("beta.kmm.node.kubernetes.io/version-device-plugin.") ||
           std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return key.ends_with(ending); });
}

}  // namespace

Node comparable_labels(const api::Labels& labels, const Node& rendered) {
    const Node* wanted = rendered.find_path({"metadata", "labels"});
    Node result = Node::mapping();
    for (const auto& [key, text] : labels) {
        const bool decided = wanted != nullptr && wanted->find(key) != nullptr;
        if (decided || (is_kmm_label(key) && !is_left_alone(key))) { result.set(key, text); }
    }
    return result;
}

Node compared(Node labels, const Node* spec) {
    Node node = Node::mapping({{"metadata", Node::mapping({{"labels", std::move(labels)}})}});
    if (spec != nullptr) { node.set("spec", *spec); }
    return node;
}

namespace {

Node rendered_side(const Node& rendered) {
    const Node* labels = rendered.find_path({"metadata", "labels"});
    return compared(labels == nullptr ? Node::mapping() : *labels, rendered.find("spec"));
}

/// NS.NAME of each Module that the input tells of: Modules, and entries of NodeModulesConfigs.
std::set<std::string> modules_read(const api::Objects& objects) {
    std::set<std::string> read;
    for (const auto& module : objects.modules) { read.insert(module.meta.namespace_ + "." + module.meta.name); }
    for (const auto& config : objects.node_modules_configs) {
        for (const auto* list : {&config.spec, &config.status}) {
            for (const auto& entry : *list) { read.insert(entry.namespace_ + "." + entry.name); }
        }
    }
    return read;
}

/// Drops the labels of Modules that were not read: whether they are to stay is not known here.
Node without_unread(Node labels, const std::set<std::string>& read) {
    std::erase_if(labels.members(), [&](const value::Member& label) {
        std::string_view key = label.key;
        if (!is_kmm_label(key)) { return false; }
        key.remove_prefix(key.find('/') + 1);
        if (key.starts_with("version-")) { key.remove_prefix(std::min(key.size(), key.find('.') + 1)); }
        return std::none_of(read.begin(), read.end(),
                            [&](const std::string& name) { return key == name || key.starts_with(name + "."); });
    });
    return labels;
}

/// True for labels of Modules in `ns`: "kmm.node.kubernetes.io/NS.NAME.ready", "…/version-module.NS.NAME".
bool is_label_of(std::string_view key, const std::string& ns) {
    key.remove_prefix(std::min(key.size(), key.find('/') + 1));
    if (key.starts_with("version-")) { key.remove_prefix(std::min(key.size(), key.find('.') + 1)); }
    return key.starts_with(ns + ".");
}

/// Drops what belongs to Modules of other namespaces; nothing is left of an object that has nothing else.
void keep_namespace(Node& object, const std::string& ns) {
    if (object.is_null()) { return; }
    Node* labels = object.find("metadata")->find("labels");
    std::erase_if(labels->members(), [&](const value::Member& label) { return !is_label_of(label.key, ns); });
    Node* spec = object.find("spec");
    Node* modules = spec == nullptr ? nullptr : spec->find("modules");
    if (modules == nullptr) { return; }
    std::erase_if(modules->items(), [&](const Node& entry) { return entry.get_string({"namespace"}) != ns; });
    if (modules->items().empty() && labels->members().empty()) { object = Node(); }
}

std::vector<Pair> pairs_of(const api::Objects& objects, std::vector<Node> settled, const std::set<std::string>& nodes) {
    std::map<std::pair<std::string, std::string>, Node> rendered;
    for (auto& node : settled) {
        std::pair key{node.get_string({"metadata", "name"}), node.get_string({"kind"})};
        rendered[std::move(key)] = std::move(node);
    }
    std::map<std::string, const api::NodeModulesConfig*> configs;
    for (const auto& config : objects.node_modules_configs) { configs[config.meta.name] = &config; }
    const std::set<std::string> read = modules_read(objects);
    std::vector<Pair> pairs;
    for (const auto& node : objects.nodes) {
        const std::string& name = node.meta.name;
        if (nodes.count(name) == 0) { continue; }
        Node labels = std::move(rendered[{name, "Node"}]);
        pairs.push_back({"Node", "", name,
                         compared(without_unread(comparable_labels(node.meta.labels, labels), read), nullptr),
                         rendered_side(labels), node.meta.origin});
        const auto config = configs.find(name);
        Node wanted = std::move(rendered[{name, "NodeModulesConfig"}]);
        if (config == configs.end() && wanted.is_null()) { continue; }
        Pair pair{"NodeModulesConfig", "", name, Node(), wanted.is_null() ? Node() : rendered_side(wanted),
                  node.meta.origin};
        if (config != configs.end()) {
            const Node observed = api::encode(*config->second);
            pair.observed = compared(comparable_labels(config->second->meta.labels, wanted), observed.find("spec"));
            pair.place = config->second->meta.origin;
        }
        pairs.push_back(std::move(pair));
    }
    return pairs;
}

/// Puts in the place of what was rendered what the API server would make of it.
Diagnostics ask_server(LiveCluster& live, std::vector<Pair>& pairs, const std::set<std::string>& read) {
    ServerView server(live);
    for (auto& pair : pairs) {
        if (pair.wanted.is_null() || (!pair.observed.is_null() && pair.observed.same_value(pair.wanted))) { continue; }
        const auto after = server.after(pair.kind, pair.name, pair.observed, pair.wanted);
        if (!after) { continue; }
        api::Labels labels;
        if (const Node* found = after->find_path({"metadata", "labels"}); found != nullptr) {
            for (const auto& label : found->members()) { labels[label.key] = label.value.text(); }
        }
        Node after_labels = comparable_labels(labels, pair.wanted);
        if (pair.kind == "Node") { after_labels = without_unread(std::move(after_labels), read); }
        pair.wanted = compared(std::move(after_labels), pair.kind == "Node" ? nullptr : after->find("spec"));
    }
    return server.findings();
}

/// The Modules that changes may have to do with, by what labels have of their names.
class ModulesOfChanges {
public:
    explicit ModulesOfChanges(const std::vector<api::Module>& modules) {
        for (const auto& module : modules) {
            by_label_.emplace(fmt::format("{}.{}", module.meta.namespace_, module.meta.name), module.full_name());
        }
    }

    /// NAMESPACE/NAME of the one that `change` names, "" if it names none: an entry of a NodeModulesConfig is its own,
    /// labels have it in their key. O(length of the path squared).
    [[nodiscard]] std::string find(const report::Change& change) const {
        const std::string path = change.path();
        constexpr std::string_view entries = "spec.modules[";
        if (path.starts_with(entries)) { return path.substr(entries.size(), path.find(']') - entries.size()); }
        std::string found;  // the longest: a.b is in a.bc, too
        const auto ends_at = [&](std::size_t at) {
            return at == path.size() || path[at] == '.' || path[at] == ']';
        };
        for (std::size_t begin = 1; begin < path.size(); ++begin) {
            if (path[begin - 1] != '.' && path[begin - 1] != '/' && path[begin - 1] != '[') { continue; }
            for (std::size_t end = begin + 1; end <= path.size(); ++end) {
                if (!ends_at(end)) { continue; }
                const auto module = by_label_.find(path.substr(begin, end - begin));
                if (module != by_label_.end() && module->second.size() > found.size()) { found = module->second; }
            }
        }
        return found;
    }

private:
    std::unordered_map<std::string, std::string> by_label_;
};

/// NAMESPACE/NAME of the first entry of a NodeModulesConfig, "" without one.
std::string first_entry(const Pair& pair) {
    for (const auto* side : {&pair.wanted, &pair.observed}) {
        const Node* entries = side->find_path({"spec", "modules"});
        if (entries == nullptr || !entries->is_sequence() || entries->items().empty()) { continue; }
        const Node& first = entries->items().front();
        return fmt::format("{}/{}", first.get_string({"namespace"}), first.get_string({"name"}));
    }
    return "";
}

Diagnostic finding_of(const Pair& pair, const report::Change& change, const ModulesOfChanges& modules,
                      const std::string& place) {
    Diagnostic finding;
    finding.code = "differs";
    const std::string path = change.path();
    finding.message =
        fmt::format("{} {}: {}: expected {}, found {}", pair.kind, pair.full_name(), path.empty() ? "the object" : path,
                    report::shown(change.wanted), report::shown(change.observed));
    if (!pair.place.file.empty()) { finding.position = pair.place; }
    const bool of_node = pair.kind == "Node" || pair.kind == "NodeModulesConfig";
    std::string module = of_node ? modules.find(change) : "";
    if (of_node && path.empty()) { module = first_entry(pair); }
    finding.hint = (!of_node         ? std::string("kmm-plan render device-plugin dra")
                    : module.empty() ? fmt::format("kmm-plan show {}", base::command_word(pair.name))
                                     : fmt::format("kmm-plan why {} {}", base::command_word(pair.name),
                                                   base::command_word(module))) +
                   place;
    return finding;
}

/// Takes the pairs apart. What the baseline does not know goes to `findings`.
std::vector<Difference> differences_of(std::vector<Pair> pairs, const std::vector<api::Module>& modules,
                                       const std::string& place, Reporting& reporting, Diagnostics& findings) {
    std::vector<Difference> result;
    const ModulesOfChanges named(modules);
    for (auto& pair : pairs) {
        std::vector<report::Change> changes;
        for (auto& change : report::tree_changes(pair.observed, pair.wanted)) {
            Diagnostics finding{finding_of(pair, change, named, place)};
            reporting.forget_known(finding);
            if (finding.empty()) { continue; }
            findings.push_back(std::move(finding.front()));
            changes.push_back(std::move(change));
        }
        for (Node* side : {&pair.observed, &pair.wanted}) {
            if (!side->is_null()) { *side = Node::mapping(); }
        }
        if (!changes.empty()) { result.push_back({std::move(pair), std::move(changes)}); }
    }
    return result;
}

std::string unified_text(const std::vector<Difference>& differences) {
    std::string text;
    for (const auto& [pair, changes] : differences) {
        const std::string name = fmt::format("{}/{}", pair.kind, pair.full_name());
        text += report::unified(pair.observed.is_null() ? "/dev/null" : "observed/" + name,
                                pair.wanted.is_null() ? "/dev/null" : "settled/" + name, changes);
    }
    return text;
}

Node diff_node(const Source& source, const std::vector<Difference>& differences, const Diagnostics& findings) {
    Node node = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Diff"}, {"source", source.description}});
    Node objects = Node::sequence();
    for (const auto& [pair, changes] : differences) {
        Node list = Node::sequence();
        for (const auto& change : changes) {
            Node item = Node::mapping({{"path", change.path()}});
            if (change.observed) { item.set("observed", *change.observed); }
            if (change.wanted) { item.set("wanted", *change.wanted); }
            list.push_back(std::move(item));
        }
        const char* state = pair.observed.is_null() ? "missing" : pair.wanted.is_null() ? "extra" : "changed";
        Node object = Node::mapping({{"kind", pair.kind}});
        if (!pair.ns.empty()) { object.set("namespace", pair.ns); }
        object.set("name", pair.name);
        object.set("state", state);
        object.set("changes", std::move(list));
        objects.push_back(std::move(object));
    }
    node.set("objects", std::move(objects));
    node.set("diagnostics", diagnostics_node(findings));
    return node;
}

/// --missing and --kmm-version: diff is about the settled state.
std::vector<cli::Option> settled_options() {
    auto options = plan_option_list();
    std::erase_if(options, [](const cli::Option& option) { return option.name == "next"; });
    return options;
}

Exit run_diff(const cli::Args& args, cli::Context& context) {
    Reporting reporting(args);
    const Source source = read_valid_source(args, context);
    check_namespace({&source, 1}, args);
    std::set<std::string> nodes;
    for (const auto* node : require_nodes(source, args, args.positionals("NODE"))) { nodes.insert(node->meta.name); }
    render::Options options;
    options.plan = plan_options(args, source);
    options.finalizers = args.flag("no-finalizers") ? render::Finalizers::none : render::Finalizers::as_operator;
    auto settled = render::node_modules_configs(source.objects, options.plan);
    // DaemonSets belong to no node that was named. What a server adds to them is known without asking it.
    std::vector<Pair> plugins;
    if (args.positionals("NODE").empty() && !args.get("selector")) {
        plugins = plugin_pairs(source.objects, options, settled, args.get("namespace").value_or(""));
    }
    auto pairs = pairs_of(source.objects, std::move(settled), nodes);
    if (const auto ns = args.get("namespace")) {
        for (auto& pair : pairs) {
            keep_namespace(pair.observed, *ns);
            keep_namespace(pair.wanted, *ns);
        }
    }
    Diagnostics findings;
    if (source.live) { findings = ask_server(*source.live, pairs, modules_read(source.objects)); }
    reporting.forget_known(findings);
    pairs.insert(pairs.end(), std::make_move_iterator(plugins.begin()), std::make_move_iterator(plugins.end()));
    if (source.objects.nodes.empty() && pairs.empty()) {
        throw Error(Exit::checks_failed, "no-nodes", "no Nodes were read, so nothing was compared")
            .detail("read", read_summary({&source, 1}))
            .hint(std::string(k_dump_hint));
    }
    // Of a cluster it is an answer that there are none.
    const bool has_modules = !source.objects.modules.empty() || !source.objects.node_modules_configs.empty();
    if (!source.live && !args.get("cluster") && !has_modules) {
        throw Error(Exit::not_found, "no-modules",
                    "neither Modules nor NodeModulesConfigs were read, so nothing was compared")
            .detail("read", read_summary({&source, 1}))
            .hint(std::string(k_dump_hint));
    }
    if (source.objects.nodes.empty() && context.verbosity >= 0) {
        context.console.err("note: no Nodes were read, so nothing of nodes is compared\n");
    }
    if (context.verbosity >= 0 || has_errors(findings)) {
        for (const auto& finding : findings) { context.console.err(cli::diagnostic_text(finding, context.color_err)); }
    }
    const auto differences =
        differences_of(std::move(pairs), source.objects.modules, place_options(args, context), reporting, findings);
    sort_and_merge(findings);
    reporting.publish("diff", read_files(source), findings, context);
    if (cli::document_form(context)) {
        print_document(context, diff_node(source, differences, findings));
    } else if (context.output == "name") {
        for (const auto& [pair, changes] : differences) {
            context.console.out(fmt::format("{}/{}\n", base::to_lower(pair.kind), cli::plain_name(pair.full_name())));
        }
    } else {
        context.console.out(unified_text(differences));
    }
    if (differences.empty() && reporting.failed(findings)) { throw reporting.failure(std::move(findings)); }
    return differences.empty() ? Exit::ok : Exit::changes;
}

}  // namespace

cli::Verb diff_verb() {
    cli::Verb verb;
    verb.name = "diff";
    verb.summary = "compare the plan with the observed objects";
    verb.description =
        "Compares the settled state with the observed state, field by field: NodeModulesConfigs (spec and KMM's "
        "labels), the KMM labels of Nodes, and the DaemonSets and DeviceClasses of device plugins and DRA drivers. "
        "'-' is observed, '+' is settled. It is an error if there are no Nodes. Exits 0 without and 2 with "
        "differences, whatever --fail-on says: --fail-on applies to other findings, such as missing rights. drift is "
        "the same as error, as differences always fail.\n\n"
        "DaemonSets and DeviceClasses are compared if KMM's labels mark them as a Module's. Defaults that the API "
        "server adds are not differences. Objects without these labels, or of Modules that were not read, are "
        "ignored. With NODE or -l only the objects of those nodes are compared.\n\n"
        "On a live cluster the server is asked (dryRun=All) what it would make of NodeModulesConfigs and labels of "
        "Nodes; nothing is changed.";
    verb.examples = {
        {"kmm-plan diff --cluster ./fleet", "the whole fleet"},
        {"kmm-plan diff --cluster ./fleet -f new-module.yaml node-a", "what a change would do on a node"},
        {"kmm-plan diff --cluster ./fleet --report md=drift.md", "a report for a merge request"},
    };
    verb.positionals = {{"NODE", "names of nodes; all if absent", false, true}};
    auto finalizers =
        cli::option("no-finalizers", "", "expect DaemonSets without finalizers, as render --no-finalizers makes them");
    verb.options = std::vector<cli::Option>{finalizers} + report_options(Drift::found) + settled_options() +
                   source_options() + cli::common_options();
    verb.run = run_diff;
    return verb;
}

}  // namespace kmm::tool_plan
