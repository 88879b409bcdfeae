// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image/copied_image.hpp"
#include "kmm-worker/image/image_step.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/module/load_step.hpp"
#include "kmm-worker/module/node_lock.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/load/loader.hpp"
#include "sys/clock.hpp"

namespace kmm::tool_worker {

namespace {

using std::chrono::milliseconds;

void take(WorkerResult& result, const PulledImage& image) {
    result.image = image.pulled.reference;
    result.digest = image.pulled.digest;
    result.warnings.insert(result.warnings.end(), image.pulled.warnings.begin(), image.pulled.warnings.end());
}

/// What a refusal must say about where the module came from, and which links in its place lead nowhere.
void name_image(Error& error, const PulledImage& image) {
    constexpr std::string_view dangling = "dangling-link: ";
    for (const auto& warning : image.pulled.warnings) {
        if (error.code() == "module-not-in-image" && warning.starts_with(dangling) &&
            warning.find(".ko ") != std::string::npos)
            error.detail("dangling-link", warning.substr(dangling.size()));
    }
    error.detail("image", image.pulled.reference).detail("digest", image.pulled.digest);
}

/// What the modules come from: the image, or the host's own tree for rawArgs without -d.
struct Modules {
    std::optional<PulledImage> image;
    kmod::ModuleIndex of_host;
    std::string firmware;  ///< directory on this host, "" for none
    std::vector<kmod::ImageConfigFile> config;  ///< of the image's modprobedDir
    [[nodiscard]] const kmod::ModuleIndex& index() const { return image ? image->index : of_host; }
};

Modules get_modules(const Job& job, const cli::Args& args, cli::Context& context, sys::Clock& clock,
                    WorkerResult& result) {
    Modules modules;
    const bool as_kmm = context.verb.name.starts_with("kmod ");
    const bool must_be_signed = args.get("policy") || !args.all("signature-key").empty() ||
                                !job.policies.empty();  // a copy has lost its signature
    if (as_kmm && !must_be_signed && job.modules == Job::Modules::of_image &&
        take_copied_files(job, modules.of_host, modules.firmware, result)) {
        modules.config = copied_config(job, job.parser.get(), result.warnings);
        return modules;
    }
    if (job.modules == Job::Modules::of_host_first) {
        if (auto index = kmod::index_of_host(job.host, job.load.modules)) {
            modules.of_host = std::move(*index);
            result.warnings.push_back(
                "raw-args: without -d the modules of the host are loaded, not those of the image");
            return modules;
        }
        if (job.config.container_image.empty()) {
            throw Error(Exit::not_found, "module-not-in-image",
                        fmt::format("the host's own tree has no module {}", base::join(job.load.modules, ", ")))
                .hint("add -d /opt to rawArgs.load and set containerImage to load it from an image");
        }
        result.warnings.push_back(
            "raw-args: the host has no such module, that of the image is taken; say so with -d DIR");
    }
    modules.image.emplace(pull_image(job, args, context, clock));
    modules.firmware = modules.image->firmware;
    modules.config = std::move(modules.image->config);
    take(result, *modules.image);
    return modules;
}

kmod::LoadRequest full_request(const Job& job, const Modules& modules) {
    kmod::LoadRequest request = request_of(job);
    request.image_config = modules.config;
    request.firmware = modules.firmware;
    return request;
}

/// --verify-after. The parser has checked it.
milliseconds second_look(const cli::Args& args) {
    return base::parse_duration(args.get("verify-after").value_or("2s")).value_or(milliseconds(2000));
}

}  // namespace

namespace {

void load(const Job& job, const cli::Args& args, cli::Context& context, WorkerResult& result) {
    sys::LinuxClock clock;
    const milliseconds start = clock.monotonic();
    result = start_result("load", job);
    require_kernel(job);
    kmod::check_firmware_path(job.host_firmware_path);
    require_capability(job.host, "load");
    const NodeLock lock = lock_node(job.host, left(job, clock, start, k_lock_wait), clock, result.warnings);
    const Modules modules = get_modules(job, args, context, clock, result);
    result.durations_ms["pull"] = since(clock, start);
    try {
        const milliseconds check_start = clock.monotonic();
        kmod::LoadRequest request = full_request(job, modules);
        request.live_counts = true;
        const kmod::Preflight checked = kmod::preflight(modules.index(), request, job.host);
        kmod::require_passed(checked, request.module);
        result.durations_ms["check"] = since(clock, check_start);

        const milliseconds load_start = clock.monotonic();
        kmod::LinuxModuleLoader loader;
        kmod::Patience patience;
        patience.loader = left(job, clock, start, patience.loader);
        patience.busy = std::min(job.load.wait.value_or(patience.busy), patience.loader);
        patience.second_look = std::min(second_look(args), patience.loader);
        const kmod::FirmwareRequest firmware{request.firmware, job.host_firmware_path,
                                          modules.image ? proven_files(*modules.image) : kmod::FileDigests{}};
        kmod::Report report =
            kmod::load_modules(modules.index(), checked, request, firmware, {job.host, loader, clock, patience});
        result.durations_ms["load"] = since(clock, load_start);
        result.outcome = outcome_of(report);
        result.forced = request.force.any();
        take(result, std::move(report));
        if (patience.second_look < second_look(args) && result.outcome == "loaded") {
            result.warnings.push_back(fmt::format(
                "second-look-early: --timeout {} ends before --verify-after {}, and module {} was looked at again at "
                "that end",
                base::format_duration(job.deadline), base::format_duration(second_look(args)), request.module));
        }
        require_first_time(job.load.first_time, result.outcome, request.module);
    } catch (Error& error) {
        if (modules.image) name_image(error, *modules.image);
        throw;
    }
}

}  // namespace

WorkerResult load_job(const Job& job, const cli::Args& args, cli::Context& context) {
    return with_warnings([&](WorkerResult& result) { load(job, args, context, result); });
}

namespace {

void check(const cli::Args& args, cli::Context& context, WorkerResult& result) {
    sys::LinuxClock clock;
    const milliseconds start = clock.monotonic();
    Job job = read_image_job(args);
    job.sandbox = Job::Sandbox::whole;
    result = start_result("check", job);
    require_kernel(job);
    kmod::check_firmware_path(job.host_firmware_path);
    const Modules modules = get_modules(job, args, context, clock, result);
    result.durations_ms["pull"] = since(clock, start);
    try {
        const milliseconds check_start = clock.monotonic();
        const kmod::LoadRequest request = full_request(job, modules);
        const kmod::Preflight checked = kmod::preflight(modules.index(), request, job.host);
        kmod::require_passed(checked, request.module);
        result.durations_ms["check"] = since(clock, check_start);
        result.outcome = "passed";
        result.forced = request.force.any();
        take(result, kmod::describe(modules.index(), checked, request, job.host));
    } catch (Error& error) {
        if (modules.image) name_image(error, *modules.image);
        throw;
    }
}

Exit run_load(const cli::Args& args, cli::Context& context) {
    return run_and_report(context, [&] {
        Job job = read_image_job(args, unknown_fields(context));
        job.sandbox = Job::Sandbox::calls;
        return load_job(job, args, context);
    });
}

}  // namespace

cli::Verb verb_load() {
    cli::Verb verb;
    verb.name = "load";
    verb.summary = "pull, verify, check and load a module, and prove it";
    verb.description =
        "Pulls the image and verifies every digest, indexes its modules (files of an image such as modules.softdep "
        "are never read), runs all checks of `kmm-worker check`, unloads in-tree modules to be replaced, installs "
        "firmware, and loads dependencies and module in order, by descriptor: the kernel gets the verified bytes.\n\n"
        "Afterwards the identity of the live module (srcversion, else build id) must match the file. A live module "
        "of this name is success only if it is the same build; another build is the error module-differs and is not "
        "touched.\n\n"
        "The live module is checked again after 2 s (--verify-after), as udev may have replaced it with another "
        "build.\n\n"
        "If a step fails, modules loaded by this command are unloaded and in-tree modules are loaded again. Modules "
        "are never forced, unless CONFIG requests it and --i-understand-this-taints confirms it.";
    verb.examples = {{"kmm-worker load config.yaml", "as KMM's worker does"},
                     {"kmm-worker load - -o json < config.yaml", "for scripts"},
                     {"kmm-worker load --image reg/drivers:v2 --module kmm_hello", "without a config"}};
    verb.positionals = {config_positional()};
    verb.options = module_options() +
                   std::vector<cli::Option>{input_size_option(), policy_in_input_option(), firmware_option(),
                                            verify_option(), force_option()} +
                   pull_options() + host_options() + cli::common_options();
    verb.run = run_load;
    return verb;
}

cli::Verb verb_check() {
    cli::Verb verb;
    verb.name = "check";
    verb.summary = "check whether a module would load here";
    verb.description =
        "Pulls the image and checks it against the running kernel: architecture, vermagic, undefined symbols with "
        "their versions, namespaces and licenses where the host's modules or headers have them, parameters against "
        "the module's own declaration, dependencies, firmware, signer and keyrings, the host's modprobe.d and "
        "blacklists, built-in and rival modules, and the switches of kernel and process. All findings are reported "
        "at once with exit code 10. Nothing is loaded, nothing is left on disk. Needs no root.";
    verb.examples = {{"kmm-worker check config.yaml", "would it load here"},
                     {"kmm-worker check --image reg/drivers:v2 --module kmm_hello", "without a config"}};
    verb.positionals = {config_positional()};
    verb.options =
        module_options() +
        std::vector<cli::Option>{input_size_option(), policy_in_input_option(), firmware_option(), force_option()} +
        pull_options() + host_options() + cli::common_options();
    verb.run = [](const cli::Args& args, cli::Context& context) {
        return run_and_report(context, [&] {
            return with_warnings([&](WorkerResult& result) { check(args, context, result); });
        });
    };
    return verb;
}

cli::Verb verb_kmod_load() {
    cli::Verb verb = verb_load();
    verb.name = "kmod load";
    verb.summary = "as load, called the way KMM calls its worker image";
    verb.description +=
        "\n\nWhere KMM's init container has copied the image to /tmp, the modules and firmware there are used and "
        "nothing is pulled.";
    verb.examples = {{"kmm-worker kmod load /etc/kmm-worker/config.yaml", "as in a worker Pod"}};
    return verb;
}

}  // namespace kmm::tool_worker
