// SPDX-License-Identifier: Apache-2.0
// run: the actions of kmods-via-containers. Arguments go to programs as they are, one by one; no shell is involved.
#include <algorithm>
#include <csignal>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/module/kvc_config.hpp"
#include "kmm-worker/module/load_step.hpp"
#include "kmm-worker/module/node_lock.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/load/kernel_log.hpp"
#include "kmod/load/loader.hpp"
#include "kmod/load/steps.hpp"
#include "registry/client/signatures.hpp"
#include "registry/local/policy_files.hpp"
#include "sys/clock.hpp"
#include "sys/directory.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_worker {

namespace {

using Words = std::vector<std::string>;

/// The image is the one that was built here: a name without registry means another in each that the runtime would ask,
/// and is run as root.
constexpr const char* k_local_only = "--pull=never";
constexpr int k_exit_runtime = 125;  ///< of docker run and podman run: they failed themselves, as without the image

constexpr std::size_t k_srcversion_max = 64;  ///< modpost writes 24

constexpr const char* k_run_actions[] = {"build", "load", "unload", "reload", "wrapper"};

/// One action on one instance.
class Instance {
public:
    Instance(const cli::Args& args, cli::Context& context)
        : args_(args),
          context_(context),
          host_(host_paths(args)),
          node_(this_node(host_)),
          config_(read_kvc_config(host_, args.positional("NAME"))),
          kernel_(args.get("kernel").value_or(node_.kernel)),
          image_(kvc_image(config_, kernel_)) {
        require_release_name("--kernel", kernel_);
    }

    WorkerResult build() {
        WorkerResult result = start("run build");
        if (!config_.image.empty()) {
            result.outcome = "present";
            result.image = config_.image;
            return result;
        }
        if (runtime({"image", "inspect", image_}).exit_code == 0) {
            result.outcome = "present";
            return result;
        }
        if (config_.build_context.empty()) {
            throw Error(
                Exit::data, "missing-field",
                fmt::format("/etc/kvc/{}.conf: expected KMOD_CONTAINER_BUILD_CONTEXT, found none", config_.name))
                .hint("or set KMOD_CONTAINER_IMAGE to an image in a registry");
        }
        Words words{"build",
                    "-t",
                    image_,
                    "--label",
                    "name=" + config_.name,
                    "--build-arg",
                    "KVER=" + kernel_,
                    "--build-arg",
                    "KMODVER=" + config_.version};
        if (!config_.build_file.empty()) words.insert(words.end(), {"-f", config_.build_file});
        words.push_back(config_.build_context);
        require_trusted_build(config_);
        require_success(runtime(words), "build of " + image_);
        result.outcome = "built";
        return result;
    }

    WorkerResult load() {
        WorkerResult result = start("run load");
        require_running_kernel();
        require_allowed();
        require_capability(host_, "load");
        const std::uint64_t taint_before = kmod::taint_bits(host_);
        for (const auto& module : config_.modules) {
            try {
                load_one_of_names(module, result);
            } catch (Error& error) {
                std::vector<std::string> loaded;
                for (const auto& report : result.modules) {
                    if (report.action == kmod::Action::loaded) loaded.push_back(report.name);
                }
                if (!loaded.empty()) error.detail("stay-loaded", base::join(loaded, ", "));
                kmod::add_warnings(error, kmod::warnings_as_findings(result.warnings));
                throw;
            }
        }
        const bool all_live = std::all_of(result.modules.begin(), result.modules.end(),
                                          [](const auto& m) { return m.action == kmod::Action::already_loaded; });
        result.outcome = all_live ? "already-loaded" : "loaded";
        result.new_taint = kmod::taint_letters(kmod::taint_bits(host_) & ~taint_before);
        return result;
    }

    /// In reverse order: KVC's own unloads in load order, which fails for modules that need each other.
    WorkerResult unload() {
        WorkerResult result = start("run unload");
        require_capability(host_, "unload");
        for (auto it = config_.modules.rbegin(); it != config_.modules.rend(); ++it) {
            try {
                add(unload_job(job_for(*it), args_), result);
            } catch (Error& error) {
                tell_unloaded(result, error);
                throw;
            }
        }
        const bool none = std::none_of(result.modules.begin(), result.modules.end(),
                                       [](const auto& m) { return m.action == kmod::Action::unloaded; });
        result.outcome = none ? "not-loaded" : "unloaded";
        return result;
    }

    /// Before anything is done: what follows from them may be the next thing that is told.
    void tell_doubts() const {
        if (context_.verbosity < 0) return;
        for (const auto& doubt : config_.doubts) context_.console.err(fmt::format("warning: {}\n", doubt));
    }

    WorkerResult reload() {
        require_running_kernel();  // before anything is unloaded that could not be loaded again
        require_allowed();
        (void)build();  // a build that fails leaves the old modules as they are
        const WorkerResult gone = unload();
        WorkerResult result;
        try {
            result = load();
        } catch (Error& error) {
            tell_unloaded(gone, error);
            throw;
        }
        result.modules.insert(result.modules.begin(), gone.modules.begin(), gone.modules.end());
        result.warnings.insert(result.warnings.begin(), gone.warnings.begin(), gone.warnings.end());
        result.verb = "run reload";
        return result;
    }

    /// Replaces this process by the tool in its container; returns only when that fails.
    [[noreturn]] void wrapper() {
        if (!config_.image.empty()) {
            throw Error(Exit::data, "unsupported",
                        "wrapper needs a container runtime, and KMOD_CONTAINER_IMAGE goes without one")
                .hint("set KMOD_CONTAINER_BUILD_CONTEXT instead");
        }
        require_allowed();
        Words words{config_.runtime, "run", "-i", "--rm", k_local_only, "--privileged", image_};
        const auto arguments = args_.positionals("ARG");
        if (arguments.empty())
            throw Error(Exit::usage, "missing-argument", "wrapper: expected the tool and its arguments, found none")
                .hint("kmm-worker run NAME wrapper -- TOOL ARG...");
        words.insert(words.end(), arguments.begin(), arguments.end());
        for (const int signal : {SIGPIPE, SIGXFSZ})
            (void)std::signal(signal, SIG_DFL);  // ignored here, which the tool would inherit
        require_trusted_runtime();
        throw sys::replace_process(words);
    }

private:
    void load_one_of_names(const std::string& module, WorkerResult& result) {
        if (config_.image.empty()) {
            load_with_runtime(kmod::normalise_name(module), result);
            return;
        }
        Job job = job_for(module);
        job.config.container_image = config_.image;
        if (!parser_) parser_ = start_parser();  // before the first image there are no threads
        job.parser = parser_;
        add(load_job(job, args_, context_), result);
    }

    WorkerResult start(const std::string& verb) {
        WorkerResult result;
        result.verb = verb;
        result.node = node_;
        result.image = config_.image.empty() ? image_ : config_.image;
        return result;
    }

    /// Whoever requires signatures must not get a container run as root that was asked for none. Errors: as
    /// registry::require_trust.
    void require_allowed() const {
        if (!config_.image.empty()) return;  // the pull asks
        const bool is_docker = sys::name_of(config_.runtime) == "docker";
        const std::string store = is_docker ? "docker-daemon" : "containers-storage";
        const bool keys = !args_.all("signature-key").empty();
        registry::PullRequest request;
        request.requirements =
            registry::ImagePolicy(args_.get("policy").value_or(""), args_.all("signature-key")).of_store(store);
        std::vector<std::string> none;
        try {
            registry::require_trust(nullptr, request, none);
        } catch (Error& error) {
            const std::string allow = keys ? "" : fmt::format(", or let the policy accept the transport {}", store);
            throw error.detail("image", image_ + ", built here, which nothing has signed")
                .hint("name a signed image in KMOD_CONTAINER_IMAGE" + allow);
        }
    }

    void require_running_kernel() const {
        if (kernel_ == node_.kernel) return;
        throw Error(Exit::checks_failed, "kernel-differs",
                    fmt::format("--kernel {} is not the running kernel {}", base::escape(kernel_), node_.kernel))
            .hint("modules can only be loaded for the running kernel; build takes any");
    }

    /// Also of what the runtime itself finds in PATH.
    void require_trusted_runtime() const {
        sys::require_trusted_program(config_.runtime);
        take_trusted_path("", context_);
    }

    sys::ProcessResult runtime(Words words) {
        words.insert(words.begin(), config_.runtime);
        sys::ProcessSpec spec;
        spec.argv = std::move(words);
        if (const auto timeout = timeout_of(args_); timeout.count() > 0) spec.timeout = timeout;
        spec.cancelled = [] { return sys::interrupt_requested(); };
        require_trusted_runtime();
        sys::ProcessResult done = sys::run_process(spec);
        const std::string what = fmt::format("{} {}", config_.runtime, spec.argv[1]);
        if (done.cancelled)
            throw Error(Exit::interrupted, "interrupted", fmt::format("interrupted while {} ran; it was ended", what))
                .hint("run the same command again");
        if (done.timed_out) {
            throw Error(Exit::timeout, "timeout",
                        fmt::format("{} took longer than --timeout {} and was ended", what,
                                    base::format_duration(timeout_of(args_))))
                .hint("run the same command again with a longer --timeout");
        }
        return done;
    }

    /// A line of a program, no longer than somebody reads.
    static std::string said_line(std::string_view line) {
        constexpr std::size_t longest = 400;
        return line.size() <= longest ? base::escape(line) : base::escape(line.substr(0, longest)) + "...";
    }

    /// The last line of what a program said, but for Docker's word about its help.
    static std::string_view last_word(std::string_view text) {
        const auto last_line = [&] {
            text = base::trim(text);
            return text.substr(text.rfind('\n') + 1);
        };
        if (const auto line = last_line(); line.find(" --help'") != std::string_view::npos && line.size() < text.size())
            text.remove_suffix(line.size());
        return last_line();
    }

    void require_success(const sys::ProcessResult& done, const std::string& what) const {
        if (done.signal == 0 && done.exit_code == 0) return;
        const std::string_view text = last_word(done.err);
        Error error(Exit::other, "command-failed",
                    done.signal != 0
                        ? fmt::format("the {} with {} ended by signal {}", what, config_.runtime, done.signal)
                        : fmt::format("the {} with {} failed (exit {})", what, config_.runtime, done.exit_code));
        if (!text.empty()) error.detail("said", said_line(text));
        if (done.exit_code == k_exit_runtime)
            error.hint(fmt::format("kmm-worker run {} build makes the image if it is not there: it is never pulled",
                                   config_.name));
        throw error;
    }

    /// Names in `error` what was unloaded before it came and is not live again.
    void tell_unloaded(const WorkerResult& before, Error& error) const {
        std::vector<std::string> names;
        for (const auto& report : before.modules) {
            if (report.action == kmod::Action::unloaded && !kmod::live_module(host_, report.name))
                names.push_back(report.name);
        }
        if (!names.empty()) error.detail("unloaded", base::join(names, ", "));
    }

    Job job_for(const std::string& module) const {
        Job job = empty_job(args_);
        job.config.modprobe.module_name = module;
        return job;
    }

    /// A module that an earlier part has brought or taken away along with another is told once, by that.
    static void add_module(kmod::ModuleReport report, std::vector<kmod::ModuleReport>& modules) {
        const bool found_so =
            report.action == kmod::Action::already_loaded || report.action == kmod::Action::not_loaded;
        const auto told = std::find_if(modules.begin(), modules.end(),
                                       [&](const kmod::ModuleReport& other) { return other.name == report.name; });
        if (!found_so || told == modules.end()) return modules.push_back(std::move(report));
        if (report.role == kmod::Role::main) told->role = kmod::Role::main;
    }

    static void add(WorkerResult part, WorkerResult& whole) {
        for (auto& report : part.modules) add_module(std::move(report), whole.modules);
        for (auto& warning : part.warnings) {
            if (std::find(whole.warnings.begin(), whole.warnings.end(), warning) == whole.warnings.end())
                whole.warnings.push_back(std::move(warning));
        }
        if (!part.digest.empty()) whole.digest = part.digest;
        for (const auto& [step, time] : part.durations_ms) whole.durations_ms[step] += time;
    }

    /// A module that is still on its way in or out is neither: to call it loaded, or to load it again, would be a
    /// guess.
    [[nodiscard]] std::optional<kmod::LiveModule> settled(const std::string& module) const {
        auto live = kmod::live_module(host_, module);
        if (!live || live->state == "live" || live->state == "builtin") return live;
        throw Error(Exit::hung, "loader-hung",
                    fmt::format("module {} is {}: an earlier load or unload has not come back", module, live->state))
            .detail("state", live->state)
            .hint("look at the kernel's log; if it never ends, only a reboot of the node helps");
    }

    /// "" where it cannot be asked, or the answer is not one.
    std::string srcversion_in_image(const std::string& module) {
        try {
            const auto said = runtime({"run", "--rm", k_local_only, image_, "modinfo", "-F", "srcversion", module});
            const std::string_view text = base::trim(said.out);
            const bool is_one = text.size() <= k_srcversion_max && std::all_of(text.begin(), text.end(), [](char c) {
                                    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                                });
            return said.signal == 0 && said.exit_code == 0 && is_one ? std::string(text) : std::string();
        } catch (const Error& error) {
            if (error.exit() != Exit::not_found) throw;
            return {};  // no runtime: nothing had to be loaded
        }
    }

    /// What says that the live module is that of the image: "srcversion"; "" where the image could not be asked for it,
    /// which is a warning. The kernel's own may have been loaded by an alias, or that of an image before this one.
    std::string require_same(const kmod::LiveModule& live, std::vector<std::string>& warnings) {
        const std::string wanted = srcversion_in_image(live.name);
        if (wanted.empty() || live.srcversion.empty()) {
            warnings.push_back(fmt::format("identity-unknown: module {} was live already, and modinfo in {} says no "
                                           "srcversion to compare it with",
                                           live.name, image_));
            return {};
        }
        if (wanted == live.srcversion) return "srcversion";
        throw kmod::differs_error(live.name, {kmod::Identity::different, "srcversion", live.srcversion, wanted})
            .hint(fmt::format("kmm-worker run {} reload", config_.name));
    }

    /// Then looks at the kernel, as `load` does after each module: an oops is worse than what modprobe says of it.
    void modprobe_with_runtime(const std::string& module, sys::Clock& clock, std::vector<std::string>& warnings) {
        kmod::LinuxModuleLoader loader;
        const kmod::Machine machine{host_, loader, clock, {}};
        const std::uint64_t taint_before = kmod::taint_bits(host_);
        kmod::KernelLog log(host_.kmsg);
        const auto loaded =
            runtime({"run", "--rm", k_local_only, "--privileged", image_, "modprobe", module});
        kmod::require_healthy(machine, taint_before, {fmt::format("module {} was loaded", module), module}, log);
        require_success(loaded, "load of module " + module);
        kmod::warn_of_unwatched(host_, taint_before, warnings);
    }

    void load_with_runtime(const std::string& module, WorkerResult& result) {
        sys::LinuxClock clock;
        const auto timeout = timeout_of(args_);
        const NodeLock lock = lock_node(host_, timeout.count() > 0 ? timeout : k_lock_wait, clock, result.warnings);
        kmod::ModuleReport report;
        report.name = module;
        report.role = kmod::Role::main;
        report.action = kmod::Action::already_loaded;
        if (const auto before = settled(module)) {
            report.same_by = require_same(*before, result.warnings);
        } else {
            report.action = kmod::Action::loaded;
            try {
                modprobe_with_runtime(module, clock, result.warnings);
            } catch (const Error&) {
                if (kmod::live_module(host_, module))
                    result.modules.push_back(std::move(report));  // it went so far, whatever came then
                throw;
            }
        }
        const auto live = settled(module);
        if (!live)
            throw Error(Exit::refused, "module-refused",
                        fmt::format("{} says that module {} was loaded, but it is not live", config_.runtime, module))
                .hint("read the kernel's log");
        report.srcversion = live->srcversion;
        report.build_id = live->build_id;
        report.version = live->version;
        report.taint = live->taint;
        result.modules.push_back(std::move(report));
    }

    const cli::Args& args_;
    cli::Context& context_;
    std::shared_ptr<sandbox::Confined> parser_;
    kmod::HostPaths host_;
    kmod::NodeFacts node_;
    KvcConfig config_;
    std::string kernel_, image_;
};

/// --policy is that of signatures here; of the verb unload it is also another name of --unload-policy.
void refuse_unload_policy(const cli::Args& args) {
    const std::string given = args.get("policy").value_or("");
    if (given != "always" && given != "if-idle" && given != "never") return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--policy: expected the file of a signature policy, found '{}'", given))
        .hint("--unload-policy " + given);
}

/// Whoever gives an option expects something of it.
void refuse_idle_options(const cli::Args& args, const std::string& action) {
    const bool loads = action == "load" || action == "reload";
    const bool unloads = action == "unload" || action == "reload";
    const auto refuse = [&](const std::vector<cli::Option>& options, const char* actions) {
        for (const auto& option : options) {
            if (args.source(option.name) != "option") continue;
            throw Error(Exit::usage, "usage", fmt::format("--{} has no effect with {}", option.name, action))
                .hint(fmt::format("leave it out, or give it with {}", actions));
        }
    };
    if (!loads) refuse({verify_option()}, "load or reload");
    if (!unloads) refuse(unload_options(), "unload or reload");
    if (!loads && action != "wrapper") refuse(pull_options(), "load, reload or wrapper");
}

Exit run_run(const cli::Args& args, cli::Context& context) {
    const std::string action = args.positional("ACTION");
    const Words actions(std::begin(k_run_actions), std::end(k_run_actions));
    if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
        Error error(
            Exit::usage, "bad-value",
            fmt::format("expected an action of {}, found '{}'", base::join(actions, ", "), base::escape(action)));
        const auto near = base::nearest(action, actions);
        throw error.hint(near ? fmt::format("did you mean {}?", *near) : "kmm-worker run NAME ACTION, the name first");
    }
    if (action != "wrapper" && !args.positionals("ARG").empty())
        throw Error(Exit::usage, "usage", fmt::format("{} takes no arguments", action))
            .hint("only wrapper does: kmm-worker run NAME wrapper -- TOOL ARG...");
    refuse_unload_policy(args);
    refuse_idle_options(args, action);
    Instance instance(args, context);
    instance.tell_doubts();
    if (action == "wrapper") instance.wrapper();
    return run_and_report(context, [&] {
        if (action == "build") return instance.build();
        if (action == "load") return instance.load();
        if (action == "unload") return instance.unload();
        return instance.reload();
    });
}

}  // namespace

cli::Verb verb_run() {
    cli::Verb verb;
    verb.name = "run";
    verb.summary = "run an action of kmods-via-containers";
    verb.description =
        "ACTION is build, load, unload, reload or wrapper. Reads /etc/kvc/kmods-via-containers.conf and "
        "/etc/kvc/NAME.conf as data: KVC_CONTAINER_RUNTIME, KMOD_CONTAINER_BUILD_CONTEXT, KMOD_CONTAINER_BUILD_FILE, "
        "KMOD_SOFTWARE_VERSION and KMOD_NAMES. They are never executed, and arguments are passed to programs one by "
        "one, without a shell. The library files of KVC are not used.\n\n"
        "build creates the image NAME-VERSION:KERNEL with the container runtime unless it exists. load loads "
        "KMOD_NAMES in order, each by modprobe in that image, or, with KMOD_CONTAINER_IMAGE=REF, as `kmm-worker "
        "load` does, without a runtime. unload unloads them by name in reverse order. wrapper runs a tool of the "
        "image.";
    verb.examples = {{"kmm-worker run simple-kmod load", "what the systemd template does at boot"},
                     {"kmm-worker run simple-kmod wrapper -- spkut 44", "a tool of the image"}};
    verb.positionals = {{"NAME", "instance, as in /etc/kvc/NAME.conf", true, false},
                        {"ACTION", "build, load, unload, reload or wrapper", true, false,
                         Words(std::begin(k_run_actions), std::end(k_run_actions))},
                        {"ARG", "tool and arguments of wrapper, after --", false, true}};
    auto kernel = cli::option("kernel", "K", "kernel to build for (default: the running one)");
    verb.options = std::vector<cli::Option>{kernel, verify_option()} + unload_options() + pull_options() +
                   host_options() + cli::common_options();
    verb.run = run_run;
    return verb;
}

}  // namespace kmm::tool_worker
