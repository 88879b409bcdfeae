// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image_step.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/load_step.hpp"
#include "kmm-worker/node_lock.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/loader.hpp"
#include "sys/clock.hpp"

namespace kmm::tool_worker {

namespace {

using std::chrono::milliseconds;

std::uint64_t since(const sys::Clock& clock, milliseconds start) { return static_cast<std::uint64_t>((clock.monotonic() - start).count()); }

/// What is left of --timeout; the default without one. A system call that has begun cannot be taken back, so none is begun
/// with less than two seconds to go, or half of a short --timeout. Errors: timeout (124).
milliseconds left(const Job& job, const sys::Clock& clock, milliseconds start, milliseconds otherwise) {
    if (job.deadline.count() == 0) return otherwise;
    const milliseconds rest = job.deadline - (clock.monotonic() - start);
    if (rest >= std::min(milliseconds(2000), job.deadline / 2)) return std::max(rest, milliseconds(100));
    throw Error(Exit::timeout, "timeout", fmt::format("not enough of --timeout {} left to start a kernel call; nothing was changed", base::format_duration(job.deadline)))
        .hint("run the same command again with a longer --timeout");
}

cli::Option firmware_option() {
    cli::Option option;
    option.name = "firmware-path";
    option.value_name = "DIR";
    option.help = "host directory for firmware, set as the kernel's search path";
    return option;
}

cli::Positional config_positional() { return {"CONFIG", "KMM's ModuleConfig as YAML or JSON, - for standard input; pull Secrets may follow as further documents", false, false}; }

std::string outcome_of(const kmod::Report& report) {
    const auto main = std::find_if(report.modules.begin(), report.modules.end(), [](const auto& m) { return m.role == kmod::Role::main; });
    return main == report.modules.end() ? "loaded" : std::string(kmod::to_string(main->action));
}

WorkerResult start_result(const std::string& verb, const Job& job) {
    WorkerResult result;
    result.verb = verb;
    result.node = job.node;
    return result;
}

void take(WorkerResult& result, const PulledImage& image) {
    result.image = image.pulled.reference;
    result.digest = image.pulled.digest;
    result.warnings.insert(result.warnings.end(), image.pulled.warnings.begin(), image.pulled.warnings.end());
}

void take(WorkerResult& result, kmod::Report report) {
    result.modules = std::move(report.modules);
    result.warnings.insert(result.warnings.end(), report.warnings.begin(), report.warnings.end());
    result.new_taint = report.new_taint;
}

/// What a refusal must say about where the module came from, and which links in its place lead nowhere.
void name_image(Error& error, const PulledImage& image) {
    constexpr std::string_view dangling = "dangling-link: ";
    for (const auto& warning : image.pulled.warnings) {
        if (error.code() == "module-not-in-image" && warning.starts_with(dangling) && warning.find(".ko ") != std::string::npos) error.detail("dangling-link", warning.substr(dangling.size()));
    }
    error.detail("image", image.pulled.reference).detail("digest", image.pulled.digest);
}

/// What the modules come from: the image, or the host's own tree for rawArgs without -d.
struct Modules {
    std::optional<PulledImage> image;
    kmod::ModuleIndex of_host;
    std::string firmware;  ///< directory on this host, "" for none
    [[nodiscard]] const kmod::ModuleIndex& index() const { return image ? image->index : of_host; }
};

/// Outside of a Pod /tmp is everybody's: each directory from `root` down must belong to root or to this user, who alone may
/// write there. Errors: unsafe (16) "image-unsafe".
void require_own_directories(const std::string& root, const std::string& directory) {
    if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return;
    std::filesystem::path path = root;
    for (const auto& part : std::filesystem::path(directory).lexically_relative(root)) {
        path /= part;
        struct stat status {};
        const bool found = ::lstat(path.c_str(), &status) == 0;
        if (found && S_ISDIR(status.st_mode) && (status.st_uid == 0 || status.st_uid == ::geteuid()) && (status.st_mode & 022U) == 0) continue;
        throw Error(Exit::unsafe, "image-unsafe", fmt::format("{} can be changed by other users, its modules are not loaded", base::escape(path.native())))
            .hint("kmm-worker load pulls the image itself; remove that directory if it is none of yours");
    }
}

/// Where the init container of a worker Pod of KMM copies images to.
std::string copies_root(const Job& job) { return job.host.etc.substr(0, job.host.etc.rfind('/')) + "/tmp"; }

/// The directory below it that has the modules for this kernel, "" without one.
std::string copied_modules(const Job& job) {
    const std::string below = std::filesystem::path(copies_root(job) + "/" + job.config.modprobe.dir_name + "/lib/modules/").lexically_normal().native();
    for (const std::string& kernel : {job.node.kernel, api::trim_kernel(job.node.kernel)}) {
        std::error_code error;
        if (std::filesystem::is_directory(below + kernel, error)) return below + kernel;
    }
    return "";
}

/// In a worker Pod of KMM an init container has copied the image's modules to /tmp; then nothing is pulled. False if not.
bool take_copied_files(const Job& job, Modules& modules, WorkerResult& result) {
    const std::string root = copies_root(job);
    const std::string directory = copied_modules(job);
    if (directory.empty()) return false;
    std::error_code error;
    require_own_directories(root, directory);
    modules.of_host = kmod::ModuleIndex::build(directory, root, {}, job.parser.get());
    warn_of_left_out(modules.of_host, result.warnings);
    const std::filesystem::path real_root = std::filesystem::canonical(root, error);
    for (const auto& [name, module] : modules.of_host.modules()) {  // where a link leads
        const auto real = std::filesystem::canonical(module.path, error);
        if (error) throw from_errno(error.value(), fmt::format("cannot open module file {}", base::escape(module.path)));
        require_own_directories(real_root.native(), real.parent_path().native());
    }
    if (const std::string& firmware = job.config.modprobe.firmware_path; !firmware.empty()) {
        modules.firmware = std::filesystem::path(root + "/" + firmware).lexically_normal().native();
        if (!std::filesystem::is_directory(modules.firmware, error)) {
            throw Error(Exit::not_found, "firmware-not-in-image", fmt::format("there is no firmware in {}", base::escape(modules.firmware)))
                .hint("correct modprobe.firmwarePath, or add the directory to the image");
        }
        require_own_directories(root, modules.firmware);
    }
    result.image = job.config.container_image;
    return true;
}

Modules get_modules(const Job& job, const cli::Args& args, cli::Context& context, sys::Clock& clock, WorkerResult& result) {
    Modules modules;
    const bool as_kmm = context.verb.name.starts_with("kmod ");
    const bool must_be_signed = args.get("policy") || !args.all("signature-key").empty() || !job.policies.empty();  // a copy has lost its signature
    if (as_kmm && !must_be_signed && job.modules == Job::Modules::of_image && take_copied_files(job, modules, result)) return modules;
    if (job.modules == Job::Modules::of_host_first) {
        if (auto index = kmod::index_of_host(job.host, job.load.modules)) {
            modules.of_host = std::move(*index);
            result.warnings.push_back("raw-args: without -d the modules of the host are loaded, not those of the image");
            return modules;
        }
        if (job.config.container_image.empty()) {
            throw Error(Exit::not_found, "module-not-in-image", fmt::format("the host's own tree has no module {}", base::join(job.load.modules, ", ")))
                .hint("add -d /opt to rawArgs.load and set containerImage to load it from an image");
        }
        result.warnings.push_back("raw-args: the host has no such module, that of the image is taken; say so with -d DIR");
    }
    modules.image.emplace(pull_image(job, args, context, clock));
    modules.firmware = modules.image->firmware;
    take(result, *modules.image);
    return modules;
}

void add_config_warnings(const Job& job, WorkerResult& result) { result.warnings.insert(result.warnings.end(), job.warnings.begin(), job.warnings.end()); }

kmod::LoadWish full_wish(const Job& job, const Modules& modules) {
    kmod::LoadWish wish = wish_of(job);
    wish.firmware = modules.firmware;
    return wish;
}

/// --verify-after. The parser has checked it.
milliseconds second_look(const cli::Args& args) { return base::parse_duration(args.get("verify-after").value_or("2s")).value_or(milliseconds(2000)); }

/// An error must not hide what was warned of before; what it says itself is not said twice.
void keep_warnings(Error& error, const std::vector<std::string>& warnings) {
    Diagnostics findings = kmod::warnings_as_findings(warnings);
    std::erase_if(findings, [&](const Diagnostic& finding) {
        const auto& known = error.diagnostics();
        return std::any_of(known.begin(), known.end(), [&](const Diagnostic& each) { return each.code == finding.code && finding.message.starts_with(each.message); });
    });
    kmod::add_warnings(error, std::move(findings));
}

/// modprobe --first-time: success without a change is an error.
void require_first_time(bool wanted, const std::string& outcome, const std::string& module) {
    if (!wanted || (outcome != "already-loaded" && outcome != "not-loaded")) return;
    const bool loading = outcome == "already-loaded";
    throw Error(Exit::refused, "module-refused", fmt::format("module {} is {}, and modprobe.args holds --first-time", module, loading ? "live already" : "not live"))
        .detail("errno", loading ? "EEXIST" : "ENOENT")
        .hint("leave --first-time out if that is fine");
}

}  // namespace

WorkerResult load_job(const Job& job, const cli::Args& args, cli::Context& context) {
    sys::LinuxClock clock;
    const milliseconds start = clock.monotonic();
    require_kernel(job);
    kmod::check_firmware_path(job.host_firmware_path);
    require_capability(job.host, "load");
    std::vector<std::string> warnings;
    const NodeLock lock = lock_node(job.host, left(job, clock, start, k_lock_wait), clock, warnings);
    WorkerResult result = start_result("load", job);
    result.warnings = std::move(warnings);
    const Modules modules = get_modules(job, args, context, clock, result);
    add_config_warnings(job, result);
    result.durations_ms["pull"] = since(clock, start);
    try {
        const milliseconds check_start = clock.monotonic();
        const kmod::LoadWish wish = full_wish(job, modules);
        const kmod::Preflight checked = kmod::preflight(modules.index(), wish, job.host);
        kmod::require_passed(checked, wish.module);
        result.durations_ms["check"] = since(clock, check_start);

        const milliseconds load_start = clock.monotonic();
        kmod::LinuxModuleLoader loader;
        kmod::Patience patience;
        patience.loader = left(job, clock, start, patience.loader);
        patience.busy = std::min(job.load.wait.value_or(patience.busy), patience.loader);
        patience.second_look = std::min(second_look(args), patience.loader);
        const kmod::FirmwareWish firmware{wish.firmware, job.host_firmware_path, modules.image ? proven_files(*modules.image) : kmod::FileDigests{}};
        kmod::Report report = kmod::load_modules(modules.index(), checked, wish, firmware, {job.host, loader, clock, patience});
        result.durations_ms["load"] = since(clock, load_start);
        result.outcome = outcome_of(report);
        result.forced = wish.force.any();
        take(result, std::move(report));
        if (patience.second_look < second_look(args) && result.outcome == "loaded") {
            result.warnings.push_back(fmt::format("second-look-early: --timeout {} ends before --verify-after {}, and module {} was looked at again at that end", base::format_duration(job.deadline),
                                                  base::format_duration(second_look(args)), wish.module));
        }
        require_first_time(job.load.first_time, result.outcome, wish.module);
    } catch (Error& error) {
        if (modules.image) name_image(error, *modules.image);
        keep_warnings(error, result.warnings);
        throw;
    }
    return result;
}

namespace {

WorkerResult check(const cli::Args& args, cli::Context& context) {
    sys::LinuxClock clock;
    const milliseconds start = clock.monotonic();
    Job job = read_image_job(args);
    job.sandbox = Job::Sandbox::whole;
    require_kernel(job);
    kmod::check_firmware_path(job.host_firmware_path);
    WorkerResult result = start_result("check", job);
    const Modules modules = get_modules(job, args, context, clock, result);
    add_config_warnings(job, result);
    result.durations_ms["pull"] = since(clock, start);
    try {
        const milliseconds check_start = clock.monotonic();
        const kmod::LoadWish wish = full_wish(job, modules);
        const kmod::Preflight checked = kmod::preflight(modules.index(), wish, job.host);
        kmod::require_passed(checked, wish.module);
        result.durations_ms["check"] = since(clock, check_start);
        result.outcome = "passed";
        result.forced = wish.force.any();
        take(result, kmod::describe(modules.index(), checked, wish, job.host));
    } catch (Error& error) {
        if (modules.image) name_image(error, *modules.image);
        keep_warnings(error, result.warnings);
        throw;
    }
    return result;
}

/// "not-loaded" of an alias would be a lie while the module that has it is live. What is known of aliases without an image: the
/// host's own configuration, and in a Pod of KMM the copied modules. Errors: data (65) "module-alias".
void refuse_alias(const Job& job) {
    const std::string& name = job.config.modprobe.module_name;
    if (kmod::live_module(job.host, name)) return;
    std::vector<std::string> having;
    for (auto& alias : kmod::read_modprobe_config(job.host).aliases) {
        if (kmod::alias_fits(alias.pattern, name)) having.push_back(std::move(alias.module));
    }
    try {
        const std::string copied = std::getenv("KUBERNETES_SERVICE_HOST") == nullptr ? std::string() : copied_modules(job);
        if (!copied.empty()) for (auto& module : kmod::ModuleIndex::build(copied, copies_root(job)).with_alias(name)) having.push_back(std::move(module));
    } catch (const Error&) {
        // Modules that cannot be read are no hindrance to an unload by name.
    }
    for (const auto& module : having) {
        if (!kmod::live_module(job.host, module)) continue;
        throw Error(Exit::data, "module-alias", fmt::format("no module {} is live, but {} is, which has that alias", base::escape(name), base::escape(module)))
            .hint(fmt::format("name the module itself, {}: modules are unloaded by their own name", base::escape(module)));
    }
}

kmod::UnloadWish unload_wish(const Job& job, const cli::Args& args) {
    kmod::UnloadWish wish;
    const std::string main = kmod::normalise_name(job.config.modprobe.module_name);
    wish.names = job.unload.modules.empty() ? job.config.modprobe.modules_loading_order : job.unload.modules;
    std::erase_if(wish.names, [&](const std::string& name) { return kmod::normalise_name(name) == main; });
    wish.names.insert(wish.names.begin(), main);
    const std::string policy = args.get("unload-policy").value_or("always");
    wish.policy = policy == "never" ? kmod::UnloadPolicy::never : policy == "if-idle" ? kmod::UnloadPolicy::if_idle : kmod::UnloadPolicy::always;
    if (args.flag("restore-in-tree")) wish.in_tree = kmod::InTree::restore;
    wish.firmware_directory = kmod::firmware_directory(job.host, job.host_firmware_path);
    wish.force = job.unload.force;
    wish.holders_too = job.unload.remove_holders;
    return wish;
}

/// Whoever asks for in-tree modules must not take the unload alone for success.
void require_restored(const std::vector<kmod::NotRestored>& missing, const std::string& module, const WorkerResult& result) {
    if (missing.empty()) return;
    std::vector<std::string> names;
    for (const auto& each : missing) names.push_back(each.name);
    Error error(Exit::partial, "not-restored", fmt::format("module {} is {}, but {} did not come back", module, result.outcome, base::join(names, ", ")));
    for (const auto& each : missing) error.detail("reason", each.reason);
    throw std::move(error).hint("the same command again tries once more, as does modprobe");
}

}  // namespace

WorkerResult unload_job(const Job& job, const cli::Args& args) {
    sys::LinuxClock clock;
    const milliseconds start = clock.monotonic();
    require_capability(job.host, "unload");
    std::vector<std::string> warnings;
    const NodeLock lock = lock_node(job.host, left(job, clock, start, k_lock_wait), clock, warnings);
    WorkerResult result = start_result("unload", job);
    result.warnings = std::move(warnings);
    add_config_warnings(job, result);
    refuse_alias(job);
    const kmod::UnloadWish wish = unload_wish(job, args);
    kmod::LinuxModuleLoader loader;
    kmod::Patience patience;
    patience.loader = left(job, clock, start, patience.loader);
    if (job.deadline.count() > 0) patience.busy = patience.loader;
    if (job.unload.wait) patience.busy = *job.unload.wait;
    if (const auto wait = args.get("wait")) patience.busy = base::parse_duration(*wait).value_or(patience.busy);
    if (job.deadline.count() > 0) patience.busy = std::min(patience.busy, patience.loader);
    kmod::Report report = kmod::unload_modules(wish, {job.host, loader, clock, patience});
    result.durations_ms["unload"] = since(clock, start);
    result.outcome = outcome_of(report);
    result.forced = wish.force.any();
    const std::vector<kmod::NotRestored> missing = std::move(report.not_restored);
    take(result, std::move(report));
    require_restored(missing, wish.names.front(), result);
    require_first_time(job.unload.first_time, result.outcome, wish.names.front());
    return result;
}

namespace {

/// Under the names by which KMM calls its worker, CONFIG is the operator's.
UnknownFields unknown_fields(const cli::Context& context) { return context.verb.name.starts_with("kmod ") ? UnknownFields::warn : UnknownFields::refuse; }

Exit run_load(const cli::Args& args, cli::Context& context) {
    return run_and_report(context, [&] {
        Job job = read_image_job(args, unknown_fields(context));
        job.sandbox = Job::Sandbox::calls;
        return load_job(job, args, context);
    });
}

Exit run_unload(const cli::Args& given, cli::Context& context) {
    cli::Args args = given;
    if (const auto policy = args.get("policy")) args.values["unload-policy"] = {*policy};  // the option's other name
    return run_and_report(context, [&] { return unload_job(read_job(args, Needs::module_name, unknown_fields(context)), args); });
}

}  // namespace

cli::Option verify_option() {
    cli::Option option;
    option.name = "verify-after";
    option.value_name = "DURATION";
    option.help = "check the live module again after this time; 0s disables";
    option.environment = "KMM_VERIFY_AFTER";
    option.default_text = "2s";
    return option;
}

std::vector<cli::Option> unload_options() {
    cli::Option wait;
    wait.name = "wait";
    wait.value_name = "DURATION";
    wait.help = "wait for users of the module at most this time (default 10s)";
    cli::Option policy;
    policy.name = "unload-policy";  // --policy of verbs that take images is theirs
    policy.value_name = "POLICY";
    policy.help = "unload always, only if idle, or never";
    policy.choices = {"always", "if-idle", "never"};
    policy.default_text = "always";
    cli::Option restore;
    restore.name = "restore-in-tree";
    restore.help = "load the replaced in-tree modules again";
    return {wait, policy, restore};
}

cli::Verb verb_load() {
    cli::Verb verb;
    verb.name = "load";
    verb.summary = "pull, verify, check and load a module, and prove it";
    verb.description =
        "Pulls the image and verifies every digest, indexes its modules (files of an image such as "
        "modules.softdep are never read), runs all checks of `kmm-worker check`, unloads in-tree modules to be "
        "replaced, installs firmware, and loads dependencies and module in order, by descriptor: the kernel gets "
        "the verified bytes.\n\n"
        "Afterwards the identity of the live module (srcversion, else build id) must match the file. A live "
        "module of this name is success only if it is the same build; another build is the error module-differs "
        "and is not touched.\n\n"
        "The live module is checked again after 2 s (--verify-after), as udev may have replaced it with another "
        "build.\n\n"
        "If a step fails, modules loaded by this command are unloaded and in-tree modules are loaded again. "
        "Modules are never forced, unless CONFIG requests it and --i-understand-this-taints confirms it.";
    verb.examples = {{"kmm-worker load config.yaml", "as KMM's worker does"},
                     {"kmm-worker load - -o json < config.yaml", "for scripts"},
                     {"kmm-worker load --image reg/drivers:v2 --module kmm_hello", "without a config"}};
    verb.positionals = {config_positional()};
    verb.options = module_options() + std::vector<cli::Option>{input_size_option(), policy_in_input_option(), firmware_option(), verify_option(), force_option()} + pull_options() + host_options() + cli::common_options();
    verb.run = run_load;
    return verb;
}

cli::Verb verb_unload() {
    cli::Verb verb;
    verb.name = "unload";
    verb.summary = "unload a module by name, without its image";
    verb.description =
        "Unloads the module, or the modules of modulesLoadingOrder in that order, then unused dependencies that "
        "were loaded with it, and removes its firmware. A module that is not live is not an error.\n\n"
        "For a module in use the command waits (10 s, --wait or --timeout), then reports its holders, its "
        "reference count, and the processes, mounts and network interfaces that use it; a module that a live "
        "module needs is reported at once, as waiting does not help. With --unload-policy if-idle or never it is "
        "left alone: outcome kept, exit code 0. For if-idle a network interface that is up, also a virtual one, "
        "counts as use although it holds no reference, and so does a module without an exit function, which stays "
        "until the node reboots.\n\n"
        "Replaced in-tree modules are remembered until they are loaded again or the node reboots, also across an "
        "upgrade. With --restore-in-tree the exit code is 12 if one of them cannot be loaded.";
    verb.examples = {{"kmm-worker unload config.yaml", "as KMM's worker does"}, {"kmm-worker unload --module kmm_hello --wait 30s", "wait longer for its users"},
                     {"kmm-worker unload config.yaml --restore-in-tree", "put in-tree modules back"}};
    verb.positionals = {config_positional()};
    for (auto& option : module_options()) {
        if (option.name == "module" || option.name == "loading-order") verb.options.push_back(option);
    }
    verb.options = verb.options + unload_options() + std::vector<cli::Option>{input_size_option(), firmware_option(), force_option()} + host_options() + cli::common_options();
    for (cli::Option short_name : unload_options()) {
        if (short_name.name != "unload-policy") continue;
        short_name.name = "policy";
        short_name.default_text = "";
        short_name.hidden = true;
        short_name.in_files = false;
        verb.options.push_back(short_name);
    }
    for (auto& option : verb.options) {
        if (option.name == "firmware-path") option.help = "host directory of its firmware, for modules loaded before the last boot";  // else that is on record
    }
    verb.run = run_unload;
    return verb;
}

cli::Verb verb_check() {
    cli::Verb verb;
    verb.name = "check";
    verb.summary = "check whether a module would load here";
    verb.description =
        "Pulls the image and checks it against the running kernel: architecture, vermagic, undefined symbols with "
        "their versions, namespaces and licenses where the host's modules or headers have them, parameters "
        "against the module's own declaration, dependencies, firmware, signer and keyrings, the host's modprobe.d "
        "and blacklists, built-in and rival modules, and the switches of kernel and process. All findings are "
        "reported at once with exit code 10. Nothing is loaded, nothing is left on disk. Needs no root.";
    verb.examples = {{"kmm-worker check config.yaml", "would it load here"}, {"kmm-worker check --image reg/drivers:v2 --module kmm_hello", "without a config"}};
    verb.positionals = {config_positional()};
    verb.options = module_options() + std::vector<cli::Option>{input_size_option(), policy_in_input_option(), firmware_option(), force_option()} + pull_options() + host_options() + cli::common_options();
    verb.run = [](const cli::Args& args, cli::Context& context) { return run_and_report(context, [&] { return check(args, context); }); };
    return verb;
}

cli::Verb verb_kmod_load() {
    cli::Verb verb = verb_load();
    verb.name = "kmod load";
    verb.summary = "as load, called the way KMM calls its worker image";
    verb.description += "\n\nWhere KMM's init container has copied the image to /tmp, the modules and firmware there are used and nothing is pulled.";
    verb.examples = {{"kmm-worker kmod load /etc/kmm-worker/config.yaml", "as in a worker Pod"}};
    verb.hidden = true;
    return verb;
}

cli::Verb verb_kmod_unload() {
    cli::Verb verb = verb_unload();
    verb.name = "kmod unload";
    verb.summary = "as unload, called the way KMM calls its worker image";
    verb.examples = {{"kmm-worker kmod unload /etc/kmm-worker/config.yaml", "as in a worker Pod"}};
    verb.hidden = true;
    return verb;
}

}  // namespace kmm::tool_worker
