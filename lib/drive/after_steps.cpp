// SPDX-License-Identifier: Apache-2.0
// Looking at a node that has the new module, for longer and through the eyes of the user, before it counts as done.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "drive/node_steps.hpp"
#include "sys/process.hpp"
#include "upgrade/pace.hpp"
#include "value/writer.hpp"

namespace kmm::drive {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t k_output_lines = 3;
constexpr std::size_t k_line_max = 300;
constexpr std::size_t k_output_max = 64U << 10U;  ///< the end of each stream

/// The beginning of `line`, as much as is k_line_max bytes on a screen: a program may print anything.
std::string bounded(std::string_view line) {
    if (line.size() <= k_line_max && base::escape(line).size() <= k_line_max) return std::string(line);
    std::size_t size = std::min(line.size(), k_line_max);
    const auto is_in_character = [&] { return size < line.size() && (static_cast<unsigned char>(line[size]) & 0xc0U) == 0x80U && base::is_utf8(line); };
    while (size > 0 && (base::escape(line.substr(0, size)).size() > k_line_max || is_in_character())) --size;
    return std::string(line.substr(0, size)) + "...";
}

/// The last lines that are not empty, in one.
std::string last_lines(const std::string& text) {
    std::vector<std::string> lines;
    for (const auto line : base::split(text, '\n'))
        if (const auto trimmed = base::trim(line); !trimmed.empty()) lines.push_back(bounded(trimmed));
    if (lines.size() > k_output_lines) lines.erase(lines.begin(), lines.end() - k_output_lines);
    return base::join(lines, " | ");
}

value::Node check_document(const upgrade::Header& run, const upgrade::NodeRecord& node, const Look& seen) {
    auto document = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                          {"kind", "NodeCheck"},
                                          {"node", node.name},
                                          {"kernel", seen.facts.kernel},
                                          {"bootID", seen.facts.boot_id},
                                          {"architecture", seen.facts.architecture},
                                          {"module", run.module()},
                                          {"kernelModule", run.kernel_module},
                                          {"fromVersion", node.from_version},
                                          {"toVersion", run.to_version},
                                          {"image", node.target_image},
                                          {"digest", node.target_digest}});
    document.set("live", upgrade::encode(seen.module.identity));
    return document;
}

}  // namespace

void NodeSteps::ask_check(const std::string& name, const Look& seen, const Deadline& deadline) {
    const auto& run = tools_.recorder.header();
    if (run.options.check.empty()) return;
    const auto words = upgrade::command_words(run.options.check);
    if (!words) throw Error(Exit::config, "bad-value", fmt::format("the record has the check command \"{}\"", run.options.check));
    sys::ProcessSpec spec;
    spec.argv = *words;
    spec.stdin_text = value::to_json(check_document(run, tools_.recorder.node(name), seen)) + "\n";
    spec.timeout = deadline.left();
    spec.output_max = k_output_max;
    spec.keep_end = true;
    spec.cancelled = tools_.interrupted;
    const auto result = sys::run_process(spec);
    if (result.cancelled) throw Leave{StepEnd::left};
    if (!result.timed_out && result.signal == 0 && result.exit_code == 0) return;
    const auto how = result.timed_out      ? "took longer than " + base::format_duration(milliseconds(run.options.node_timeout_ms))
                     : result.signal != 0 ? fmt::format("was ended by signal {}", result.signal)
                                          : fmt::format("exited with {}", result.exit_code);
    Error error(Exit::unhealthy, "check-failed", fmt::format("the check {} {}", words->front(), how));
    const auto output = last_lines(result.out + "\n" + result.err);
    if (!output.empty()) error.detail("output", output);
    throw error.hint("find out what it wants: " + run.options.check);
}

void NodeSteps::require_undisturbed(const std::string& name) {
    const auto node = tools_.recorder.node(name);
    const auto to = tools_.recorder.header().to_version;
    const auto view = tools_.fleet.view(name);
    const auto wanted = to.empty() ? std::nullopt : std::optional<std::string>(to);
    std::vector<std::string> others;
    const auto compare_label = [&](const char* label, const std::optional<std::string>& found) {
        if (found == wanted) return;
        others.push_back(fmt::format("label {} to {}", label, found ? *found : "nothing"));
    };
    compare_label("version-module", view.labels.module);
    compare_label("version-worker-pod", view.labels.worker);
    compare_label("version-schedule-pod", view.labels.schedule);
    const auto compare_entry = [&](const char* part, const std::optional<api::NodeModule>& found) {
        const auto entry = api::decode_node_module(node.target_entry);
        if (found && found->config == entry.config && found->version == entry.version) return;
        others.push_back(fmt::format("{} of its NodeModulesConfig to {}", part, found ? found->config.container_image : "nothing"));
    };
    compare_entry("spec", view.spec);
    compare_entry("status", view.status);
    if (others.empty()) return;
    throw Error(Exit::locked, "label-changed",
                fmt::format("someone else changed {} during the upgrade to {}", base::join(others, ", "), to.empty() ? "the Module" : to))
        .hint("find out who; kmm-upgrade retry " + name + " sets it again");
}

bool NodeSteps::confirm_done() {
    const auto run = tools_.recorder.run();
    const auto wanted = run.to_version.empty() ? std::nullopt : std::optional<std::string>(run.to_version);
    const auto snapshot = tools_.fleet.store().read();
    std::map<std::string_view, const api::Node*> present;
    for (const auto& node : snapshot.objects.nodes) present.emplace(node.meta.name, &node);
    bool all = true;
    for (const auto& node : run.nodes) {
        if (node.state != "done" || node.goal == upgrade::k_goal_absent) continue;
        const auto found = present.find(node.name);
        if (found == present.end()) {
            if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
            continue;  // a node that has left the cluster runs nothing
        }
        const auto labels = version_labels_of(*found->second, run.module_namespace, run.module_name);
        std::vector<std::string> others;
        const auto compare_label = [&](const char* label, const std::optional<std::string>& value) {
            if (value != wanted) others.push_back(fmt::format("label {} to {}", label, value ? base::escape(*value) : "nothing"));
        };
        compare_label("version-module", labels.module);
        if (run.options.via != upgrade::Via::operator_) compare_label("version-worker-pod", labels.worker);
        if (others.empty()) continue;
        all = false;
        auto changed = event(upgrade::EventKind::observed, node.name, "", "validating-failed");
        changed.reason = "label-changed";
        changed.message = fmt::format("someone else changed {} after the upgrade to {}", base::join(others, ", "),
                                      wanted ? *wanted : "the Module");
        changed.facts.set("currentKnown", false);
        changed.facts.set("hint", fmt::format("find out who; kmm-upgrade retry {} sets it again, kmm-upgrade skip {} --reason TEXT leaves it", node.name, node.name));
        tools_.recorder.record(changed);
    }
    return all;
}

void NodeSteps::require_target(const std::string& name, const Look& seen) const {
    const auto node = tools_.recorder.node(name);
    const auto kernel_module = tools_.recorder.header().kernel_module;
    if (seen.module.presence != Presence::live)
        throw Error(Exit::unhealthy, "module-gone", fmt::format("{} is not live any more", kernel_module));
    if (upgrade::compare(seen.module.identity, node.target_identity) == upgrade::Sameness::different)
        throw Error(Exit::unhealthy, "module-differs",
                    fmt::format("the live module is {}, expected {}", seen.module.identity.brief(), node.target_identity.brief()));
}

void NodeSteps::soak(const std::string& name) {
    const auto& run = tools_.recorder.header();
    const auto node = tools_.recorder.node(name);
    if (run.options.soak_ms == 0 || node.next == "validate" || node.goal == upgrade::k_goal_absent) return;  // nothing new runs there
    const milliseconds duration(run.options.soak_ms);
    auto begun = event(upgrade::EventKind::observed, name, "", node.state);
    begun.message = "watched for " + base::format_duration(duration);
    if (node.state == "uncordoning" && !node.cordon.empty()) begun.facts.set("cordon", "");
    tools_.recorder.record(begun);
    const auto end = tools_.clock.monotonic() + duration;
    while (tools_.clock.monotonic() < end) {
        const auto pause = std::min(end - tools_.clock.monotonic(), milliseconds(1000));
        if (tools_.interrupted() || !tools_.clock.sleep_for(pause) || tools_.interrupted()) throw Leave{StepEnd::left};
    }
    const auto seen = must_look(name, Deadline(tools_.clock, milliseconds(run.options.node_timeout_ms)));
    if (!same_boot(name, seen.facts)) throw Leave{StepEnd::again};
    require_target(name, seen);
}

}  // namespace kmm::drive
