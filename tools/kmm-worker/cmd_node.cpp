// SPDX-License-Identifier: Apache-2.0
// status and facts: what this node and its kernel say.
#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/table.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/node_lock.hpp"
#include "kmm-worker/result.hpp"

namespace kmm::tool_worker {

namespace {

std::string dash(const std::string& text) { return text.empty() ? "-" : text; }

/// --settle as a duration. Errors: usage (64).
std::chrono::milliseconds settle_time(const cli::Args& args) {
    const auto text = args.get("settle");
    if (!text) return std::chrono::milliseconds(0);
    if (const auto duration = base::parse_duration(*text)) return *duration;
    throw Error(Exit::usage, "usage", fmt::format("--settle: expected a duration like 30s, found '{}'", base::escape(*text)));
}

Exit run_status(const cli::Args& args, cli::Context& context) {
    const kmod::HostPaths host = host_paths(args);
    sys::LinuxClock clock;
    const auto settled = NodeLock::take(host, LockKind::shared, settle_time(args), clock);
    std::vector<std::string> names = args.positionals("MODULE");
    if (names.empty()) {
        names = kmod::live_modules(host);
    } else {
        for (auto& name : names) {
            if (!kmod::is_module_name(name)) throw Error(Exit::usage, "usage", fmt::format("'{}' is no module name", base::escape(name)));
            name = kmod::normalise_name(name);
        }
    }
    value::Node document = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "ModuleStatus"}, {"node", node_node(this_node(host))}});
    if (!settled) {
        document.set("busy", true);
        context.console.err("note: another kmm-worker is changing modules of this node right now\n");
    }
    value::Node modules = value::Node::sequence();
    std::vector<std::vector<std::string>> rows;
    for (const auto& name : names) {
        const auto live = kmod::live_module(host, name);
        modules.push_back(module_node(name, live));
        if (!live) {
            rows.push_back({name, "absent", "-", "-", "-", "-", "-"});
            continue;
        }
        rows.push_back({name, live->state, dash(live->version), dash(live->srcversion), live->refcount ? fmt::format("{}", *live->refcount) : "-", dash(live->taint),
                        dash(base::join(live->holders, ","))});
        if (context.output == "wide") {
            std::string parameters;
            for (const auto& [key, text] : live->parameters) parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", key, text);
            rows.back().push_back(dash(live->build_id));
            rows.back().push_back(dash(parameters));
        }
    }
    document.set("modules", std::move(modules));
    if (print_document(document, context)) return Exit::ok;
    if (context.output == "name") {
        for (const auto& name : names) context.console.out(name + "\n");
        return Exit::ok;
    }
    std::vector<std::string> headers{"MODULE", "STATE", "VERSION", "SRCVERSION", "REFCOUNT", "TAINT", "HOLDERS"};
    if (context.output == "wide") headers.insert(headers.end(), {"BUILD-ID", "PARAMETERS"});
    for (auto& row : rows) row.resize(headers.size(), "-");
    const bool cut = context.console.out_is_terminal() && context.output != "wide";
    context.console.out(cli::format_table(headers, rows, cut ? context.console.width() : 0));
    return Exit::ok;
}

value::Node facts_document(const kmod::NodeFacts& node, const kmod::KernelState& state) {
    value::Node info = value::Node::mapping({{"kernelVersion", node.kernel},
                                             {"bootID", node.boot_id},
                                             {"machineID", node.machine_id},
                                             {"architecture", node.architecture},
                                             {"operatingSystem", "linux"},
                                             {"osImage", node.os_image}});
    value::Node taints = value::Node::sequence();
    for (const char letter : kmod::taint_letters(state.tainted)) taints.push_back(std::string(1, letter));
    value::Node facts = value::Node::mapping({{"lockdown", state.lockdown},
                                              {"sigEnforce", state.sig_enforce},
                                              {"modulesSupported", state.modules_supported},
                                              {"modulesDisabled", state.modules_disabled},
                                              {"tainted", state.tainted},
                                              {"taints", std::move(taints)},
                                              {"moduleDecompression", state.decompression},
                                              {"capSysModule", state.cap_sys_module}});
    value::Node document = value::Node::mapping({{"apiVersion", "v1"}, {"kind", "Node"}});
    document.set("metadata", value::Node::mapping({{"name", node.name}}));
    document.set("status", value::Node::mapping({{"nodeInfo", std::move(info)}}));
    document.set("facts", std::move(facts));
    return document;
}

Exit run_facts(const cli::Args& args, cli::Context& context) {
    const kmod::HostPaths host = host_paths(args);
    const kmod::NodeFacts node = this_node(host);
    const kmod::KernelState state = kmod::kernel_state(host);
    if (print_document(facts_document(node, state), context)) return Exit::ok;
    if (context.output == "name") {
        context.console.out(node.name + "\n");
        return Exit::ok;
    }
    const auto yes = [](bool flag) { return std::string(flag ? "yes" : "no"); };
    const std::string letters = kmod::taint_letters(state.tainted);
    context.console.out(cli::format_properties({
        {"node", node.name},
        {"kernel", node.kernel},
        {"boot id", dash(node.boot_id)},
        {"machine id", dash(node.machine_id)},
        {"architecture", node.architecture},
        {"system", dash(node.os_image)},
        {"loadable modules", state.modules_supported ? (state.modules_disabled ? "switched off until reboot" : "yes") : "not in this kernel"},
        {"signatures enforced", yes(state.sig_enforce)},
        {"lockdown", state.lockdown},
        {"tainted", letters.empty() ? "no" : fmt::format("{} ({})", letters, state.tainted)},
        {"module decompression", state.decompression},
        {"this process may load", yes(state.cap_sys_module)},
    }));
    return Exit::ok;
}

}  // namespace

cli::Verb verb_status() {
    cli::Verb verb;
    verb.name = "status";
    verb.summary = "what is live: build, taint, users";
    verb.description =
        "Without MODULE all modules of the kernel. The srcversion is the identity of a build; -o wide adds the build id and the parameters. "
        "A module that is not live has the state absent, which is no error. Needs no root.";
    verb.examples = {{"kmm-worker status kmm_hello", "one module"}, {"kmm-worker status -o json", "all, for scripts"}};
    verb.positionals = {{"MODULE", "name, in either spelling", false, true}};
    cli::Option settle;
    settle.name = "settle";
    settle.value_name = "DURATION";
    settle.help = "wait so long for a load or unload that is under way";
    verb.options = std::vector<cli::Option>{settle} + host_options() + cli::common_options();
    verb.run = run_status;
    return verb;
}

cli::Verb verb_facts() {
    cli::Verb verb;
    verb.name = "facts";
    verb.summary = "this node's kernel, boot id and module switches";
    verb.description = "With -o yaml or json a Kubernetes Node with status.nodeInfo, as a directory cluster holds it, and the switches under facts. Needs no root.";
    verb.examples = {{"kmm-worker facts", "for people"}, {"kmm-worker facts -o yaml", "a Node object for a directory cluster"}};
    verb.options = host_options() + cli::common_options();
    verb.run = run_facts;
    return verb;
}

}  // namespace kmm::tool_worker
