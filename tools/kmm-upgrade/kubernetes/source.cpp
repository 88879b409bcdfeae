// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/source.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/reach/cluster_access.hpp"
#include "kmm-upgrade/record/access.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "kubernetes/finding/check_list.hpp"
#include "sys/file_ops.hpp"
#include "sys/program.hpp"
#include "sys/trust.hpp"
#include "upgrade/drive/pool.hpp"
#include "upgrade/drive_kubernetes/agent.hpp"
#include "upgrade/engine/pace.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::chrono::milliseconds k_question{60'000};  ///< to one node

/// Programs that the upgrade installs on a node, each once: a control plane needs kubeadm of every step, others only
/// that of their kubelet. A package source has one minor: of packages only the next step is asked for.
std::vector<std::string> placings_of(const NodeQuestions& questions, bool is_control_plane) {
    std::vector<std::string> placings;
    const auto add = [&](const char* program, const std::string& version) {
        auto text = fmt::format("{}={}", program, version);
        if (!version.empty() && std::find(placings.begin(), placings.end(), text) == placings.end())
            placings.push_back(std::move(text));
    };
    for (const auto& hop : questions.hops) {
        add("kubeadm", is_control_plane ? hop.control_plane : hop.kubelet);
        add("kubelet", hop.kubelet);
        if (questions.way == "packages") break;
    }
    return placings;
}

std::vector<std::string> words_of(const NodeQuestions& questions, bool is_control_plane) {
    std::vector<std::string> words;
    if (questions.scans) {
        words.emplace_back("--scan");
        if (!questions.directory.empty()) words.insert(words.end(), {"--from", questions.directory});
        return words;
    }
    if (is_control_plane) words.emplace_back("--requested-apis");
    if (!questions.for_upgrade) return words;
    words.emplace_back("--for-upgrade");
    if (questions.way != "packages" && questions.way != "binaries") return words;
    words.insert(words.end(), {"--switch", questions.way});
    if (!questions.directory.empty()) words.insert(words.end(), {"--from", questions.directory});
    for (auto& placing : placings_of(questions, is_control_plane))
        words.insert(words.end(), {"--placing", std::move(placing)});
    if (is_control_plane && !questions.ignored_preflight.empty())
        words.insert(words.end(), {"--ignore-preflight-errors", questions.ignored_preflight});
    return words;
}

bool is_given(const cli::Args& args, std::string_view option) { return args.source(option) == "option"; }

}  // namespace

std::vector<cli::Option> kubernetes_options() {
    auto file = cli::repeatable(cli::option("filename", 'f', "FILE", "read dumps instead: a file, a directory, or -"));
    auto versions = cli::option("versions", "FILE", "metadata of versions in place of the built-in ones");
    return {file, versions};
}

kubernetes::Inventory read_inventory(Call& call, drive::ReadExtent extent) {
    const auto& args = call.args();
    auto names = args.all("filename");
    if (!names.empty()) {
        for (const auto* other : {"cluster", "kubeconfig", "context"})
            if (is_given(args, other))
                throw Error(Exit::usage, "several-sources",
                            fmt::format("expected one cluster, found --filename and --{}", other))
                    .hint("give one of them");
        return drive::read_inventory(names);
    }
    RecordAccess record(call);
    ClusterAccess access(record);
    const auto place = [&] {
        try {
            return access.place();
        } catch (Error& error) {
            if (error.code() == "no-cluster")
                error.detail("dumps", "-f FILE: kubectl get nodes,pods,configmaps -A -o json > FILE");
            throw;
        }
    }();
    if (!place.is_live()) return drive::read_inventory(std::vector<std::string>{place.directory});
    return drive::read_inventory(access.open(place).server->client(), extent);
}

std::string absolute_option(const cli::Args& args, const char* name) {
    const auto text = args.get(name).value_or("");
    if (text.empty() ? args.get(name).has_value() : !text.starts_with('/'))
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--{}: expected an absolute path on the nodes, found '{}'", name, base::escape(text)))
            .hint(fmt::format("as --{} /PATH; leave it out if there is none", name));
    return text;
}

std::vector<cli::Option> switch_options(const char* help) {
    auto way = cli::with_choices(cli::option("switch", "WAY", help), {"packages", "binaries", "command"});
    auto longer = way;
    longer.name = "kubelet-switch";
    longer.help = "the same as --switch";
    return {way, longer};
}

std::string switch_way(const cli::Args& args) {
    const auto way = args.get("switch"), longer = args.get("kubelet-switch");
    if (way && longer && *way != *longer)
        throw Error(Exit::usage, "bad-value", fmt::format("--switch {} contradicts --kubelet-switch {}", *way, *longer))
            .hint("give one of the two");
    return (longer ? longer : way).value_or("");
}

cli::Option leave_out_option() {
    return cli::repeatable(cli::option("leave-out", "NODE,...", "workers that stay as they are, and are not asked"));
}

std::vector<std::string> left_out_option(const cli::Args& args) {
    std::vector<std::string> names;
    for (const auto& option : args.all("leave-out"))
        for (const auto piece : base::split(option, ',')) {
            names.emplace_back(base::trim(piece));
            if (names.back().empty())
                throw Error(Exit::usage, "bad-value",
                            fmt::format("--leave-out: expected names of Nodes, found '{}'", base::escape(option)))
                    .hint("names with commas between, as --leave-out w1,w2");
        }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

void leave_out_known(kubernetes::Inventory& inventory, const std::vector<std::string>& names) {
    std::vector<std::string> known;
    for (const auto& node : inventory.nodes) known.push_back(node.meta.name);
    const auto unknown = kubernetes::leave_out(inventory, names);
    if (unknown.empty()) return;
    const auto near = base::nearest(unknown.front(), known);
    throw Error(Exit::not_found, "node-not-found", fmt::format("node {} is not in the cluster", unknown.front()))
        .hint(near ? fmt::format("did you mean {}?", *near) : std::string());
}

std::vector<cli::Option> prerequisite_options() {
    auto apps = cli::option("app-check", "DIR", "ask each program in DIR whether its application supports FROM TO");
    auto patches = cli::option("patch-query", "COMMAND", "command that lists patches, as 'sw-patch query'");
    return {apps, patches};
}

void Prerequisites::put_into(kubernetes::CheckInput& input) const {
    input.programs = programs.get();
    input.patches = patches ? &*patches : nullptr;
}

Prerequisites read_prerequisites(Call& call) {
    Prerequisites made;
    const auto stopped = [&call] { return call.stopped(); };
    if (const auto directory = call.args().get("app-check"))
        made.programs = std::make_unique<drive::DirectoryPrograms>(absolute_path(*directory), stopped);
    if (const auto command = command_option(call.args(), "patch-query"); !command.empty()) {
        require_command(command);
        made.patches = drive::query_patches(command, "", stopped);
    }
    return made;
}

drive::ReadExtent extent_of(const kubernetes::Catalogue& catalogue) {
    const bool has_releases = std::any_of(catalogue.applications.begin(), catalogue.applications.end(),
                                          [](const auto& each) { return !each.release.empty(); });
    return has_releases ? drive::ReadExtent::releases : drive::ReadExtent::upgrade;
}

NodeQuestions questions_before(const kubernetes::Catalogue& catalogue, const kubernetes::Observation& seen,
                               const kubernetes::Version& target, std::string way, std::string directory,
                               std::string ignored_preflight) {
    NodeQuestions questions{true, std::move(way), std::move(directory), {}, false, std::move(ignored_preflight)};
    const bool is_known = seen.faults.empty() && seen.lowest_control_plane() && seen.lowest_kubelet() &&
                          catalogue.find(target) != nullptr;
    if (is_known) questions.hops = drive::hops_of(kubernetes::find_path(catalogue, seen, target));
    return questions;
}

kubernetes::NodeAnswers ask_nodes(Call& call, cluster::NodeRunner& runner, const kubernetes::Inventory& inventory,
                                  const NodeQuestions& questions) {
    std::vector<kubernetes::NodeAnswer> answers(inventory.nodes.size());
    drive::NodeAgent agent(
        runner, call.clock(), [&] { return call.stopped(); }, [](const std::string&, const std::string&) {});
    drive::for_each_at_once(answers.size(), [&](std::size_t index) {
        if (call.stopped()) return;
        const auto& node = inventory.nodes[index];
        const auto begun = call.clock().now_unix();
        auto reply = agent.facts_once(node.meta.name, k_question, words_of(questions, node.is_control_plane()));
        if (reply.value) {
            answers[index].asked = begun;
            answers[index].answered = call.clock().now_unix();
            answers[index].facts = std::move(*reply.value);
            return;
        }
        answers[index].problem = reply.error->message();
        for (const auto& [key, text] : reply.error->details())
            if (key == "transport" || key == "found")
                answers[index].problem += ": " + text.substr(text.rfind('\n') + 1);
        if (!reply.error->hint().empty()) answers[index].problem += fmt::format(" ({})", reply.error->hint());
    });
    call.require_going_on();
    kubernetes::NodeAnswers named;
    for (std::size_t index = 0; index < answers.size(); ++index)
        named.emplace(inventory.nodes[index].meta.name, std::move(answers[index]));
    return named;
}

CheckCount require_checks(Call& call, const kubernetes::CheckInput& input, const std::vector<std::string>& ignored,
                          std::span<const std::string_view> only, const std::string& consequence) {
    using kubernetes::Outcome;
    auto& context = call.context();
    const auto results = kubernetes::run_checks(input, ignored, only);
    std::size_t failed = 0, skipped = 0;
    for (const auto& result : results) {
        if (result.outcome == Outcome::fail) ++failed;
        // There is no backup yet: the start makes it, and its steps look at it.
        if (result.outcome == Outcome::skip && result.id != "backup-valid") ++skipped;
        // The first stage pulls images, before anything changes.
        if (result.outcome == Outcome::warn && context.verbosity >= 0 && result.id != "images-present")
            context.console.err(fmt::format("warning: {}: {}\n", result.id, base::escape(result.detail)));
    }
    if (failed == 0) return {results.size(), skipped};
    Error error(
        Exit::checks_failed, "checks-failed",
        fmt::format("{} of {} checks {}; {}", failed, results.size(), failed == 1 ? "fails" : "fail", consequence));
    bool may_be_ignored = false;
    for (const auto& result : results) {
        if (result.outcome != Outcome::fail) continue;
        error.detail(result.id, result.detail);
        error.detail("fix", result.fix);
        may_be_ignored = may_be_ignored || kubernetes::find_check(result.id)->weight == kubernetes::Weight::ignorable;
    }
    throw std::move(error).hint(
        may_be_ignored ? "repair it, then the same command again; checks that may be ignored: --ignore-checks ID,..."
                       : "repair it, then the same command again");
}

kubernetes::Catalogue read_versions(Call& call) {
    return read_versions(call, call.args().get("versions").value_or(""));
}

kubernetes::Catalogue read_versions(Call& call, const std::string& given) {
    const auto& built_in = kubernetes::builtin_catalogue();
    const auto read = [&](const std::string& file, const std::string& text) {
        Diagnostics faults;
        auto catalogue = kubernetes::read_catalogue(text, file, faults);
        if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
        kubernetes::add_known(catalogue, built_in);
        return catalogue;
    };
    const auto text_of = [](const std::string& file) { return sys::read_trusted_file(file, "metadata of versions"); };
    if (!given.empty()) return read(given, given == "-" ? sys::read_fd(0, "-") : text_of(given));
    RecordAccess record(call);
    for (const auto& file : {record.directory().path() + "/kubernetes-versions.yaml",
                             std::string("/etc/kmm-tools/kubernetes-versions.yaml")}) {
        std::string text;
        try {
            text = text_of(file);
        } catch (const Error& error) {
            if (error.exit() == Exit::not_found) continue;
            throw;
        }
        return read(file, text);
    }
    return built_in;
}

kubernetes::Version version_argument(const std::string& text) {
    const auto version = kubernetes::Version::parse(text);
    if (!version)
        throw Error(Exit::usage, "bad-version",
                    fmt::format("VERSION: expected {}, found '{}'", kubernetes::k_version_form, base::escape(text)))
            .hint("kmm-upgrade versions lists them");
    return *version;
}

}  // namespace kmm::tool_upgrade
