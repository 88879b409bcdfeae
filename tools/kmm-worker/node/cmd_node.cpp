// SPDX-License-Identifier: Apache-2.0
// status and facts: what this node and its kernel say.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/module_name.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "digest/digest.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image/image_step.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/module/node_lock.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/module_service.hpp"
#include "registry/client/document_service.hpp"
#include "report/metrics.hpp"

namespace kmm::tool_worker {

namespace {

/// --settle as a duration. Errors: usage (64).
std::chrono::milliseconds settle_time(const cli::Args& args) {
    const auto text = args.get("settle");
    if (!text) return std::chrono::milliseconds(0);
    if (const auto duration = base::parse_duration(*text)) return *duration;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--settle: expected a duration like 30s, found '{}'", base::escape(*text)))
        .hint("for example --settle 30s");
}

/// What --expect names: modules by name, and where they are from.
struct Expected {
    std::shared_ptr<sandbox::Confined> parser;  ///< of the index
    kmod::ModuleIndex index;
    std::string image, digest;
    std::optional<PulledImage> files;  ///< of an image: they are read again for the verdict, and go with this
};

cli::Option directory_option() {
    return cli::option("dir-name", "DIR", "directory of lib/modules in the image (default /opt)");
}

/// Where no image is pulled, no signature is checked and no other option of one has an effect. `found` is in its place.
void refuse_image_options(const cli::Args& args, const std::string& found) {
    for (const auto& option : std::vector{directory_option()} + pull_options()) {
        if (args.source(option.name) != "option") continue;
        throw Error(Exit::usage, "usage", fmt::format("--{} applies to images, found {}", option.name, found))
            .hint(fmt::format("name the image in --expect, or leave out --{}", option.name));
    }
}

Expected read_expected(const std::string& source, const cli::Args& args, cli::Context& context, sys::Clock& clock) {
    Expected expected;
    expected.parser = start_parser();
    expected.parser->begin(registry::document_service().number);
    expected.parser->set_stop(stop_of_parser(timeout_of(args), std::chrono::steady_clock::now()));
    std::error_code error;
    const bool is_directory = std::filesystem::is_directory(source, error);
    const bool is_file = std::filesystem::is_regular_file(source, error);
    if (is_directory || is_file)
        refuse_image_options(args,
                             fmt::format("--expect {}, which is a file or directory", base::escape(source)));
    if (is_file && is_document_name(source))
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--expect: expected an image, a .ko file or a directory, found the document {}",
                                base::escape(source)))
            .hint("give its containerImage");
    if (is_directory) {
        expected.index = kmod::ModuleIndex::build(source, "", {}, expected.parser.get());
    } else if (is_file) {
        const std::string path = std::filesystem::canonical(source).native();
        const std::string bytes = kmod::read_module_bytes(path);
        std::string sum = digest::sha256_hex(bytes);
        auto read = kmod::read_module(*expected.parser, kmod::sealed_file(bytes, "module"), source);
        expected.index.add({std::move(read.file), path, source, std::move(sum), expected.parser.get()});
    } else if (source.ends_with(".ko") || source.starts_with("/") || source.starts_with("./") ||
               source.starts_with("../")) {
        const bool is_there = std::filesystem::exists(source, error);
        throw Error(Exit::not_found, "not-found",
                    is_there ? fmt::format("--expect: expected a regular file or directory, found another kind: {}",
                                           base::escape(source))
                             : fmt::format("--expect: there is no file or directory {}", base::escape(source)));
    } else {
        Job job = empty_job(args);
        job.parser = expected.parser;
        job.config.container_image = source;
        job.is_of_options = true;
        job.config.modprobe.dir_name = args.get("dir-name").value_or("");
        job.sandbox = Job::Sandbox::whole;
        if (const auto metrics = args.get("metrics"); metrics && *metrics != "-") job.report = *metrics;
        PulledImage image = pull_image(job, args, context, clock);
        expected.index = std::move(image.index);
        expected.image = image.pulled.reference;
        expected.digest = image.pulled.digest;
        expected.files.emplace(std::move(image));
    }
    expected.index.require_sound();
    if (expected.index.modules().empty())
        throw Error(Exit::not_found, "module-not-in-image",
                    fmt::format("--expect: {} holds no modules", base::escape(source)));
    return expected;
}

/// "same", "different", "unknown", "absent" or "not-expected".
std::string verdict_on(const Expected& expected, const kmod::HostPaths& host, const std::string& name,
                       const std::optional<kmod::LiveModule>& live, value::Node& node) {
    const kmod::IndexedModule* module = expected.index.find(name);
    if (module == nullptr) return "not-expected";
    value::Node wanted = value::Node::mapping({{"sha256", module->sha256}});
    if (!module->file.srcversion().empty()) wanted.set("srcversion", module->file.srcversion());
    if (!module->file.build_id.empty()) wanted.set("buildID", module->file.build_id);
    if (!module->file.version().empty()) wanted.set("version", module->file.version());
    wanted.set("path", module->image_path);
    node.set("expected", std::move(wanted));
    if (!live) return "absent";
    if (live->state != "live") return live->state;
    const auto identity = kmod::judge_identity(host, *module, *live);
    switch (identity.identity) {
        case kmod::Identity::same: node.set("sameBy", kmod::same_by(identity)); return "same";
        case kmod::Identity::different: return "different";
        case kmod::Identity::unknown: return "unknown";
    }
    return "unknown";
}

/// A name that is that of a file, and of no module.
void refuse_file_name(const std::string& name) {
    const bool is_document = is_document_name(name);
    std::error_code error;
    const bool is_path = name.find('/') != std::string::npos && std::filesystem::exists(name, error);
    const bool is_file = name.find('.') != std::string::npos && std::filesystem::is_regular_file(name, error);
    if (!is_document && !is_path && !is_file) return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("expected the name of a module, found the file {}", base::escape(name)))
        .hint(is_document ? "give modprobe.moduleName of the file, and --expect IMAGE for its containerImage"
                          : fmt::format("kmm-worker status --expect {}", base::escape(name)));
}

/// The names to report on, normalised.
std::vector<std::string> status_names(const cli::Args& args, const kmod::HostPaths& host,
                                      const std::optional<Expected>& expected) {
    std::vector<std::string> names = args.positionals("MODULE");
    for (auto& name : names) {
        refuse_file_name(name);
        const auto problem = base::module_name_problem(name);
        if (!problem.empty())
            throw Error(Exit::usage, "bad-value", fmt::format("'{}' {}", base::escape(name), problem))
                .hint(base::k_module_name_hint);
        name = kmod::normalise_name(name);
    }
    if (!names.empty()) return names;
    if (!expected) {
        require_release(host, this_node(host));  // without /proc no module would seem to be live
        return kmod::live_modules(host);
    }
    for (const auto& [name, module] : expected->index.modules()) names.push_back(name);
    return names;
}

/// One row of the table, without the verdict.
std::vector<std::string> status_row(const std::string& name, const std::optional<kmod::LiveModule>& live, bool wide) {
    if (!live) return {name, "absent", "-", "-", "-", "-", "-"};
    std::vector<std::string> row{name,
                                 live->state,
                                 dash(live->version),
                                 dash(live->srcversion),
                                 live->refcount ? fmt::format("{}", *live->refcount) : "-",
                                 dash(live->taint),
                                 dash(base::join(live->holders, ","))};
    if (!wide) return row;
    std::string parameters;
    for (const auto& [key, text] : live->parameters)
        parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", key, text);
    row.push_back(dash(live->build_id));
    row.push_back(dash(parameters));
    return row;
}

Exit report_status(const cli::Args& args, cli::Context& context) {
    const kmod::HostPaths host = host_paths(args);
    require_host(host);
    if (!args.get("expect")) refuse_image_options(args, "no --expect");
    sys::LinuxClock clock;
    const auto settled = NodeLock::take(host, LockKind::shared, settle_time(args), clock);
    std::optional<Expected> expected;
    if (const auto source = args.get("expect")) expected.emplace(read_expected(*source, args, context, clock));
    const std::vector<std::string> names = status_names(args, host, expected);
    value::Node document = value::Node::mapping(
        {{"apiVersion", "kmmtools/v1"}, {"kind", "ModuleStatus"}, {"node", node_node(this_node(host))}});
    if (!settled) {
        document.set("busy", true);
        context.console.err("note: another kmm-worker is changing modules of this node right now\n");
    }
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"MODULE", "STATE", "VERSION", "SRCVERSION", "REFCOUNT", "TAINT", "HOLDERS"};
    if (wide) headers.insert(headers.end(), {"BUILD-ID", "PARAMETERS"});
    if (expected) headers.insert(headers.begin() + 2, "EXPECTED");
    value::Node modules = value::Node::sequence();
    std::vector<std::vector<std::string>> rows;
    bool all_same = true;
    auto loaded = report::module_loaded();
    for (const auto& name : names) {
        const auto live = kmod::live_module(host, name);
        bool is_loaded = live && (live->state == "live" || live->state == "builtin");
        value::Node node = module_node(name, live);
        std::vector<std::string> row = status_row(name, live, wide);
        if (expected) {
            const std::string verdict = verdict_on(*expected, host, name, live, node);
            node.set("verdict", verdict);
            const std::string by = node.get_string({"sameBy"});
            row.insert(row.begin() + 2, by.empty() ? verdict : fmt::format("{} ({})", verdict, kmod::same_by_text(by)));
            all_same = all_same && verdict == "same";
            is_loaded = is_loaded && verdict == "same";
        }
        loaded.samples[{name}] = is_loaded ? 1 : 0;
        row.resize(headers.size(), "-");
        modules.push_back(std::move(node));
        rows.push_back(std::move(row));
    }
    if (expected) {
        document.set("matches", all_same);
        if (!expected->image.empty())
            document.set("image", value::Node::mapping({{"reference", expected->image}, {"digest", expected->digest}}));
    }
    document.set("modules", std::move(modules));
    const Exit exit = all_same ? Exit::ok : Exit::checks_failed;
    const auto cluster = args.get("metrics-cluster").value_or("");
    if (const auto file = args.get("metrics"))
        cli::write_report(context, *file, report::openmetrics_text({loaded}, cluster));
    leave_termination_message(document);
    if (print_document(context, document)) return exit;
    if (context.output == "name") {
        for (const auto& name : names) context.console.out(base::printable(name) + "\n");
        return exit;
    }
    context.console.out(cli::format_table(headers, rows, context.table_width()));
    return exit;
}

value::Node facts_document(const kmod::NodeFacts& node, const kmod::KernelState& state) {
    value::Node info = value::Node::mapping({{"kernelVersion", node.kernel},
                                             {"bootID", node.boot_id},
                                             {"machineID", node.machine_id},
                                             {"architecture", node.architecture},
                                             {"operatingSystem", "linux"},
                                             {"osImage", node.os_image}});
    value::Node taints = value::Node::sequence();
    for (auto& taint : kmod::taint_names(state.tainted)) taints.push_back(std::move(taint));
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
    require_release(host, node);
    if (print_document(context, facts_document(node, state))) return Exit::ok;
    if (context.output == "name") {
        context.console.out(fmt::format("{}\n", cli::plain_name(node.name)));
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
        {"loadable modules", state.modules_supported ? (state.modules_disabled ? "switched off until reboot" : "yes")
                                                     : "not in this kernel"},
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
    verb.summary = "show live modules: build, taint, users";
    verb.description =
        "Without MODULE all modules of the kernel are shown. -o wide adds the build id and the parameters. A module "
        "that is not live has the state absent, which is not an error. Needs no root.\n\n"
        "With --expect each module must be live with the identity that the image, .ko file or directory has; without "
        "MODULE all its modules are compared: by the SHA-256 of the bytes that kmm-worker loaded since the last "
        "boot, else by build id, else by srcversion; \"same\" says by which. Any other result is exit code 10.\n\n"
        "--metrics writes 1 for each module that is live, with --expect only if it is the same, else 0, for "
        "node_exporter's textfile collector.";
    verb.examples = {{"kmm-worker status kmm_hello", "one module"}, {"kmm-worker status -o json", "all, for scripts"},
                     {"kmm-worker status kmm_hello --expect reg/drivers:v2", "is it this build"}};
    verb.positionals = {{"MODULE", "name, in either spelling", false, true}};
    auto settle = cli::option("settle", "DURATION", "wait at most this time for a running load or unload");
    auto expect =
        cli::option("expect", "IMAGE|FILE",
                    "compare with the modules of an image, a .ko file or a directory; exit 10 if they differ");
    auto cluster = cli::option("metrics-cluster", "NAME", report::k_metrics_cluster_help);
    auto metrics = cli::option("metrics", "FILE", "write kmm_module_loaded of each module as OpenMetrics text");
    verb.options = std::vector<cli::Option>{settle, expect, directory_option(), metrics, cluster} + pull_options() +
                   host_options() + cli::common_options();
    verb.run = report_status;
    return verb;
}

cli::Verb verb_facts() {
    cli::Verb verb;
    verb.name = "facts";
    verb.summary = "show this node's kernel, boot id and module switches";
    verb.description =
        "-o yaml and json print a Kubernetes Node with status.nodeInfo, as a directory cluster holds it, and the "
        "switches under facts. Needs no root.";
    verb.examples = {{"kmm-worker facts", "for people"},
                     {"kmm-worker facts -o yaml", "a Node object for a directory cluster"}};
    verb.options = host_options() + cli::common_options();
    verb.run = run_facts;
    return verb;
}

}  // namespace kmm::tool_worker
