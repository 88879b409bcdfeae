// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image/copied_image.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/module/load_step.hpp"
#include "kmm-worker/module/node_lock.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/load/loader.hpp"
#include "sys/clock.hpp"

namespace kmm::tool_worker {

using std::chrono::milliseconds;

namespace {

/// "not-loaded" of an alias would be a lie while the module that has it is live. What is known of aliases without an
/// image: the host's own configuration, and in a Pod of KMM the copied modules. Errors: data (65) "module-alias".
void refuse_alias(const Job& job) {
    const std::string& name = job.config.modprobe.module_name;
    if (kmod::live_module(job.host, name)) return;
    std::vector<std::string> having;
    for (auto& alias : kmod::read_modprobe_config(job.host).aliases) {
        if (kmod::alias_fits(alias.pattern, name)) having.push_back(std::move(alias.module));
    }
    try {
        const std::string copied =
            std::getenv("KUBERNETES_SERVICE_HOST") == nullptr ? std::string() : copied_modules(job);
        const auto parser = copied.empty() ? nullptr : start_parser();
        if (parser) {
            for (auto& module : kmod::ModuleIndex::build(copied, copies_root(job), {}, parser.get()).with_alias(name))
                having.push_back(std::move(module));
        }
    } catch (const Error&) {
        // Modules that cannot be read are no hindrance to an unload by name.
    }
    for (const auto& module : having) {
        if (!kmod::live_module(job.host, module)) continue;
        throw Error(Exit::data, "module-alias",
                    fmt::format("no module {} is live, but {} is, which has that alias", base::escape(name),
                                base::escape(module)))
            .hint(fmt::format("name the module itself, {}: modules are unloaded by their own name",
                              base::escape(module)));
    }
}

/// An unload needs no image, but in a Pod of KMM the files of modprobedDir are there. Commands are not run in any case:
/// the load has settled all else.
std::vector<kmod::ImageConfigFile> config_at_hand(const Job& job, std::vector<std::string>& warnings) {
    const std::string& directory = job.config.modprobe.modprobed_dir;
    if (directory.empty()) return {};
    const std::string unread = fmt::format(
        "modprobed-dir: modprobe.modprobedDir is {}, which is not read for an unload: its remove commands are not run",
        base::escape(directory));
    if (std::getenv("KUBERNETES_SERVICE_HOST") == nullptr) {
        warnings.push_back(unread);
        return {};
    }
    try {
        std::vector<std::string> found;
        const auto parser = start_parser();
        auto config = copied_config(job, parser.get(), found);
        warnings.insert(warnings.end(), found.begin(), found.end());
        return config;
    } catch (const Error&) {
        warnings.push_back(unread);  // no hindrance to an unload by name
        return {};
    }
}

kmod::UnloadRequest unload_request(const Job& job, const cli::Args& args) {
    kmod::UnloadRequest request;
    const std::string main = kmod::normalise_name(job.config.modprobe.module_name);
    request.names = job.unload.modules.empty() ? job.config.modprobe.modules_loading_order : job.unload.modules;
    std::erase_if(request.names, [&](const std::string& name) { return kmod::normalise_name(name) == main; });
    request.names.insert(request.names.begin(), main);
    const std::string policy = args.get("unload-policy").value_or("always");
    request.policy = policy == "never"     ? kmod::UnloadPolicy::never
                  : policy == "if-idle" ? kmod::UnloadPolicy::if_idle
                                        : kmod::UnloadPolicy::always;
    if (args.flag("restore-in-tree")) request.in_tree = kmod::InTree::restore;
    request.firmware_directory = kmod::firmware_directory(job.host, job.host_firmware_path);
    request.force = job.unload.force;
    request.holders_too = job.unload.remove_holders;
    return request;
}

/// Whoever asks for in-tree modules must not take the unload alone for success.
void require_restored(const std::vector<kmod::NotRestored>& missing, const std::string& module,
                      WorkerResult& result) {
    if (missing.empty()) return;
    std::erase_if(result.warnings, [](const std::string& warning) { return warning.starts_with("not-restored: "); });
    std::vector<std::string> names;
    for (const auto& each : missing) names.push_back(each.name);
    Error error(
        Exit::partial, "not-restored",
        fmt::format("module {} is {}, but {} did not come back", module, result.outcome, base::join(names, ", ")));
    for (const auto& each : missing) error.detail("reason", each.reason);
    throw std::move(error).hint("the same command again tries once more, as does modprobe");
}

}  // namespace

namespace {

void unload(const Job& job, const cli::Args& args, WorkerResult& result) {
    sys::LinuxClock clock;
    const milliseconds start = clock.monotonic();
    result = start_result("unload", job);
    require_capability(job.host, "unload");
    const NodeLock lock = lock_node(job.host, left(job, clock, start, k_lock_wait), clock, result.warnings);
    refuse_alias(job);
    kmod::UnloadRequest request = unload_request(job, args);
    request.image_config = config_at_hand(job, result.warnings);
    kmod::LinuxModuleLoader loader;
    kmod::Patience patience;
    patience.loader = left(job, clock, start, patience.loader);
    if (job.deadline.count() > 0) patience.busy = patience.loader;
    if (job.unload.wait) patience.busy = *job.unload.wait;
    if (const auto wait = args.get("wait")) patience.busy = base::parse_duration(*wait).value_or(patience.busy);
    if (job.deadline.count() > 0) patience.busy = std::min(patience.busy, patience.loader);
    kmod::Report report = kmod::unload_modules(request, {job.host, loader, clock, patience});
    result.durations_ms["unload"] = since(clock, start);
    result.outcome = outcome_of(report);
    result.forced = request.force.any();
    const std::vector<kmod::NotRestored> missing = std::move(report.not_restored);
    take(result, std::move(report));
    require_restored(missing, request.names.front(), result);
    require_first_time(job.unload.first_time, result.outcome, request.names.front());
}

}  // namespace

WorkerResult unload_job(const Job& job, const cli::Args& args) {
    return with_warnings([&](WorkerResult& result) { unload(job, args, result); });
}

namespace {

Exit run_unload(const cli::Args& given, cli::Context& context) {
    cli::Args args = given;
    if (const auto policy = args.get("policy")) args.values["unload-policy"] = {*policy};  // the option's other name
    return run_and_report(
        context, [&] { return unload_job(read_job(args, Needs::module_name, unknown_fields(context)), args); });
}

}  // namespace

std::vector<cli::Option> unload_options() {
    auto wait = cli::option("wait", "DURATION", "wait for users of the module at most this time (default 10s)");
    // --policy of verbs that take images is theirs
    auto policy = cli::with_default(
        cli::with_choices(cli::option("unload-policy", "POLICY", "unload always, only if idle, or never"),
                          {"always", "if-idle", "never"}),
        "always");
    auto restore = cli::option("restore-in-tree", "", "load the replaced in-tree modules again");
    return {wait, policy, restore};
}

cli::Verb verb_unload() {
    cli::Verb verb;
    verb.name = "unload";
    verb.summary = "unload a module by name, without its image";
    verb.description =
        "Unloads the module, or the modules of modulesLoadingOrder in that order, then unused dependencies that were "
        "loaded with it, and removes its firmware. A module that is not live is not an error.\n\n"
        "For a module in use the command waits (10 s, --wait or --timeout), then reports its holders, its reference "
        "count, and the processes, mounts and network interfaces that use it; a module that a live module needs is "
        "reported at once, as waiting does not help. With --unload-policy if-idle or never it is left alone: outcome "
        "kept, exit code 0. For if-idle a network interface that is up, also a virtual one, counts as use although "
        "it holds no reference, and so does a module without an exit function, which stays until the node "
        "reboots.\n\n"
        "Replaced in-tree modules are remembered until they are loaded again or the node reboots, also across an "
        "upgrade. With --restore-in-tree the exit code is 12 if one of them cannot be loaded.";
    verb.examples = {{"kmm-worker unload config.yaml", "as KMM's worker does"},
                     {"kmm-worker unload --module kmm_hello --wait 30s", "wait longer for its users"},
                     {"kmm-worker unload config.yaml --restore-in-tree", "put in-tree modules back"}};
    verb.positionals = {config_positional()};
    for (auto& option : module_options()) {
        if (option.name == "module" || option.name == "loading-order") verb.options.push_back(option);
    }
    verb.options = verb.options + unload_options() +
                   std::vector<cli::Option>{input_size_option(), firmware_option(), force_option()} + host_options() +
                   cli::common_options();
    for (cli::Option short_name : unload_options()) {
        if (short_name.name != "unload-policy") continue;
        short_name.name = "policy";
        short_name.default_text = "";
        short_name.hidden = true;
        short_name.in_files = false;
        verb.options.push_back(short_name);
    }
    for (auto& option : verb.options) {
        if (option.name == "firmware-path")
            option.help =
                "host directory of its firmware, for modules loaded before the last boot";  // else that is on record
    }
    verb.run = run_unload;
    return verb;
}

cli::Verb verb_kmod_unload() {
    cli::Verb verb = verb_unload();
    verb.name = "kmod unload";
    verb.summary = "as unload, called the way KMM calls its worker image";
    verb.examples = {{"kmm-worker kmod unload /etc/kmm-worker/config.yaml", "as in a worker Pod"}};
    return verb;
}

}  // namespace kmm::tool_worker
