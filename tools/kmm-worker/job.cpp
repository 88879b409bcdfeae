// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/job.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "api/module_config.hpp"
#include "api/names.hpp"
#include "base/clean_path.hpp"
#include "base/kernel_name.hpp"
#include "base/module_name.hpp"
#include "base/text.hpp"
#include "kmm-worker/job_config.hpp"
#include "kmod/host/firmware.hpp"
#include "kmod/load/procedure.hpp"
#include "sys/enter.hpp"
#include "sys/trust.hpp"

namespace kmm::tool_worker {

namespace {

/// What stands for the name of CONFIG in messages where options take its place.
constexpr const char* k_from_options = "options";

std::vector<std::string> flag_names(const cli::Args& args) {
    std::vector<std::string> given;
    for (const auto& made : module_options()) {
        if (args.source(made.name) == "option") given.push_back("--" + made.name);
    }
    return given;
}

void config_from_flags(const cli::Args& args, api::ModuleConfig& config) {
    config.container_image = args.get("image").value_or("");
    if (const auto kernel = args.get("kernel")) {
        require_release_name("--kernel", *kernel);
        config.kernel_version = *kernel;
    }
    config.in_tree_modules_to_remove = args.all("in-tree-remove");
    config.modprobe.module_name = args.get("module").value_or("");
    config.modprobe.parameters = args.all("parameter");
    config.modprobe.dir_name = args.get("dir-name").value_or("");
    config.modprobe.firmware_path = args.get("image-firmware").value_or("");
    config.modprobe.modules_loading_order = args.all("loading-order");
}

kmod::ModprobeCommand read_arguments(const std::vector<std::string>& arguments, const std::string& field,
                                     kmod::ArgsKind kind, bool confirmed) {
    kmod::ModprobeCommand command = kmod::read_modprobe_arguments(arguments, field, kind);
    if (command.force.any() && !confirmed) {
        throw kmod::force_refusal(command, field)
            .hint("rebuild the module for the running kernel; --i-understand-this-taints switches the kernel's checks "
                  "off");
    }
    return command;
}

/// rawArgs as KMM's worker takes them: a whole modprobe command line, in place of everything else.
void take_raw_arguments(const api::ModprobeArgs& raw, Needs needs, bool confirmed, Job& job) {
    auto& modprobe = job.config.modprobe;
    const char* field = needs == Needs::image ? "modprobe.rawArgs.load" : "modprobe.rawArgs.unload";
    kmod::ModprobeCommand command =
        read_arguments(needs == Needs::image ? raw.load : raw.unload, field, kmod::ArgsKind::whole_command, confirmed);
    const auto expected = needs == Needs::image ? kmod::Direction::loads : kmod::Direction::unloads;
    if (const auto wrong = kmod::wrong_direction(command, field, expected)) throw *wrong;
    if (!modprobe.parameters.empty() || !modprobe.modules_loading_order.empty()) {
        job.warnings.push_back("raw-args: parameters and modulesLoadingOrder have no effect beside rawArgs");
    }
    modprobe.module_name = command.modules.front();
    modprobe.parameters = command.parameters;
    modprobe.modules_loading_order.clear();
    const std::string directory = kmod::image_directory(command.directory.value_or("/"));
    if (!command.directory || *command.directory == "/") {
        job.modules = Job::Modules::of_host_first;
    } else {
        modprobe.dir_name = directory;
    }
    (needs == Needs::image ? job.load : job.unload) = std::move(command);
}

void take_arguments(Needs needs, bool confirmed, Job& job) {
    const auto& modprobe = job.config.modprobe;
    if (api::has_raw_arguments(modprobe)) {
        take_raw_arguments(*modprobe.raw_args, needs, confirmed, job);
        return;
    }
    if (!modprobe.args) return;
    if (needs == Needs::image)
        job.load = read_arguments(modprobe.args->load, "modprobe.args.load", kmod::ArgsKind::options_only, confirmed);
    job.unload = read_arguments(modprobe.args->unload, "modprobe.args.unload", kmod::ArgsKind::options_only, confirmed);
    if (const auto wrong = kmod::wrong_direction(job.load, "modprobe.args.load", kmod::Direction::loads)) throw *wrong;
    if (job.load.directory) job.config.modprobe.dir_name = kmod::image_directory(*job.load.directory);
}

/// Where a value is from, for messages: the field, or the option that stands for it.
std::string origin_of(const std::string& input, const std::string& field, const char* option) {
    return input == k_from_options ? option : field;
}

/// KMM's own rules, without which the order would count for nothing or for something else.
void check_order(const api::ModprobeSpec& modprobe, const std::string& input) {
    const auto& order = modprobe.modules_loading_order;
    const auto refuse = [&](const std::string& what, const std::string& hint) {
        const auto origin = origin_of(input, "modprobe.modulesLoadingOrder", "--loading-order");
        throw Error(Exit::data, "bad-value", fmt::format("{} {}", origin, what)).hint(hint);
    };
    std::set<std::string> seen;
    for (const auto& name : order) {
        if (!seen.insert(kmod::normalise_name(name)).second)
            refuse(fmt::format("names {} twice", base::escape(name)), "name each module once");
    }
    if (!order.empty() && kmod::normalise_name(order.front()) != kmod::normalise_name(modprobe.module_name)) {
        refuse(fmt::format("begins with {}, expected the module itself, {}", base::escape(order.front()),
                           modprobe.module_name),
               "name the module first, then what it needs");
    }
}

/// KMM's own rule for the path; what is in the directory is seen when the image is there.
void check_modprobed_dir(Job& job, Needs needs) {
    std::string& directory = job.config.modprobe.modprobed_dir;
    const auto below = base::path_below(directory);
    if (!directory.starts_with('/') || !below || below->empty()) {
        throw Error(Exit::data, "bad-path",
                    fmt::format("modprobe.modprobedDir: expected the absolute path of a directory in the image, "
                                "found '{}'",
                                base::escape(directory)))
            .hint("name it from the root of the image on, as /opt/modprobe.d");
    }
    if (needs == Needs::image && job.modules == Job::Modules::of_host_first) {
        throw Error(Exit::data, "unsupported",
                    fmt::format("modprobe.modprobedDir is {}, and rawArgs.load without -d names modules of the host: "
                                "the image is not pulled for them",
                                base::escape(directory)))
            .hint("add -d /opt to rawArgs.load, or write the files into /etc/modprobe.d of the node and take the "
                  "field away");
    }
    directory = "/" + *below;
}

void check_config(Job& job, const std::string& input, Needs needs) {
    auto& modprobe = job.config.modprobe;
    const auto missing = [&](const char* field, const char* flag, const char* value) {
        if (input == k_from_options)
            return Error(Exit::usage, "missing-option", fmt::format("{} {} is missing", flag, value))
                .hint("see --help of the verb");
        return Error(Exit::data, "missing-field", fmt::format("{} is missing", field))
            .hint(fmt::format("set {}", field));
    };
    if (modprobe.module_name.empty()) throw missing("modprobe.moduleName", "--module", "NAME");
    if (const auto problem = base::module_name_problem(modprobe.module_name); !problem.empty()) {
        throw Error(Exit::data, "bad-value",
                    fmt::format("{}: '{}' {}", origin_of(input, "modprobe.moduleName", "--module"),
                                base::escape(modprobe.module_name), problem))
            .hint(base::k_module_name_hint);
    }
    std::vector<std::string> removals = api::in_tree_removals(job.config);
    for (const auto& [field, option, names] :
         {std::tuple("modprobe.modulesLoadingOrder", "--loading-order", &modprobe.modules_loading_order),
          std::tuple(api::in_tree_field(job.config), "--in-tree-remove", &removals)}) {
        for (const auto& name : *names) {
            const auto problem = base::module_name_problem(name);
            if (problem.empty()) continue;
            throw Error(Exit::data, "bad-value",
                        fmt::format("{}: '{}' {}", origin_of(input, field, option), base::escape(name), problem))
                .hint(base::k_module_name_hint);
        }
    }
    if (needs == Needs::image) check_order(modprobe, input);
    if (!modprobe.modprobed_dir.empty()) check_modprobed_dir(job, needs);
    for (const auto& [field, option, path] :
         {std::tuple("modprobe.dirName", "--dir-name", &modprobe.dir_name),
          std::tuple("modprobe.firmwarePath", "--image-firmware", &modprobe.firmware_path)}) {
        const auto below = base::path_below(*path);
        if (!below) {
            throw Error(Exit::data, "bad-path",
                        fmt::format("{}: expected a path that stays in the image, found '{}'",
                                    origin_of(input, field, option), base::escape(*path)))
                .hint("name it from the root of the image on, as /opt");
        }
        if (("/" + *path + "/").find("/../") != std::string::npos) *path = "/" + *below;
    }
    if (needs == Needs::image && job.config.container_image.empty() && job.modules == Job::Modules::of_image)
        throw missing("containerImage", "--image", "REF");
}

/// What to do about CONFIG beside options: where there is no such file, it may be what an option is for.
std::string exclusion_hint(const cli::Args& args, const std::string& file) {
    const bool has_image = args.source("image") == "option", has_module = args.source("module") == "option";
    if (file == "-" || is_document_name(file) || ::access(file.c_str(), F_OK) == 0 || has_image == has_module)
        return "put it into CONFIG, or leave CONFIG out";
    return fmt::format("there is no file {0}; if that names the {1}: --{1} {0}", base::escape(file),
                       has_image ? "module" : "image");
}

void fill_job(const cli::Args& args, Needs needs, UnknownFields unknown, Job& job) {
    require_host(job.host);
    require_release(job.host, job.node);
    job.host_firmware_path = args.get("firmware-path").value_or("");
    const std::string file = args.positional("CONFIG");
    const auto given = flag_names(args);
    if (!file.empty() && !given.empty()) {
        throw Error(Exit::usage, "usage", fmt::format("CONFIG and {} exclude each other", base::join(given, ", ")))
            .hint(exclusion_hint(args, file));
    }
    if (file.empty() && given.empty()) {
        throw Error(Exit::usage, "missing-argument", needs == Needs::image ? "expected CONFIG, or --image and --module"
                                                                           : "expected CONFIG, or --module")
            .hint(needs == Needs::image ? "name a file with a ModuleConfig, or give --image REF --module NAME"
                                        : "name a file with a ModuleConfig, or give --module NAME");
    }
    try {
        kmod::check_firmware_path(job.host_firmware_path);
    } catch (const Error& error) {
        throw as_usage_fault(error);
    }
    if (file.empty()) {
        config_from_flags(args, job.config);
        job.is_of_options = true;
    } else {
        read_config(file, args.get("input-size").value_or(""), needs, unknown, job);
    }
    if (args.flag("policy-in-input") && job.policies.empty()) {
        throw Error(Exit::config, "missing-field", "expected an ImagePolicy behind CONFIG, found none")
            .hint("kmm-upgrade and kmm-worker must have the same version");
    }
    try {
        take_arguments(needs, args.flag("i-understand-this-taints"), job);
        check_config(job, file.empty() ? k_from_options : file, needs);
    } catch (const Error& error) {
        if (!file.empty()) throw as_configuration_fault(error, job);
        throw error.code() == "bad-value" ? with_exit(error, Exit::usage, error.message())
                                          : as_usage_fault(error);
    }
}

}  // namespace

bool is_document_name(std::string_view name) {
    return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

Error as_usage_fault(const Error& error) {
    constexpr std::array<std::string_view, 3> k_of_arguments{"bad-path", "bad-reference", "bad-firmware-path"};
    const bool is_one = std::find(k_of_arguments.begin(), k_of_arguments.end(), error.code()) != k_of_arguments.end();
    if (!is_one || error.exit() != Exit::data) return error;
    auto message = error.message();
    if (message.starts_with("dirName:")) message.replace(0, 7, "--dir-name");
    if (message.starts_with("firmwarePath:")) message.replace(0, 12, "--image-firmware");
    auto fault = with_exit(error, Exit::usage, message);
    if (fault.code() == "bad-reference" && fault.hint().empty())
        fault.hint("write REGISTRY/REPOSITORY:TAG or @sha256:DIGEST");
    return fault;
}

kmod::HostPaths host_paths(const cli::Args& args) {
    kmod::HostPaths host;
    std::string root = args.get("host-root").value_or("");
    while (root.ends_with('/')) root.pop_back();
    if (root.empty()) return host;
    for (std::string* path : {&host.proc, &host.sys, &host.lib_modules, &host.kmsg, &host.run, &host.etc})
        *path = root + *path;
    host.root = root;
    sys::require_trusted(root, "host root");
    struct stat facts {};
    const bool is_absent = ::stat(root.c_str(), &facts) != 0 && (errno == ENOENT || errno == ENOTDIR);
    if (is_absent || (facts.st_mode != 0 && !S_ISDIR(facts.st_mode)))
        throw Error(Exit::io, "host-not-mounted",
                    fmt::format("expected the node's / in {}, found {}", base::escape(root),
                                is_absent ? "nothing there" : "something other than a directory"))
            .hint("correct --host-root, or mount the node's / there");
    return host;
}

void take_trusted_path(const std::string& root, cli::Context& context) {
    for (const auto& left_out : sys::take_trusted_path(root)) {
        if (context.verbosity < 0) continue;
        context.console.err(
            fmt::format("warning: no program is looked for in a directory of PATH, {}\n", base::escape(left_out)));
    }
}

kmod::NodeFacts this_node(const kmod::HostPaths& host) {
    kmod::NodeFacts facts = kmod::node_facts(host);
    if (const char* name = std::getenv("NODE_NAME"); name != nullptr && *name != '\0') facts.name = name;
    return facts;
}

void require_host(const kmod::HostPaths& host) {
    for (const auto& path : {host.proc + "/sys/kernel/osrelease", host.proc + "/modules", host.sys + "/module"}) {
        if (::access(path.c_str(), F_OK) == 0) return;
    }
    throw Error(Exit::io, "host-not-mounted",
                fmt::format("expected the node's kernel in {} and {}, found neither", base::escape(host.proc),
                            base::escape(host.sys)))
        .hint(host.proc == kmod::HostPaths().proc ? "mount /proc and /sys here"
                                                  : "correct --host-root, or mount the node's /proc and /sys below it");
}

std::chrono::milliseconds timeout_of(const cli::Args& args) {
    const auto text = args.get("timeout");
    return text ? base::parse_duration(*text).value_or(std::chrono::milliseconds(0)) : std::chrono::milliseconds(0);
}

void require_release(const kmod::HostPaths& host, const kmod::NodeFacts& node) {
    if (!node.kernel.empty()) return;
    throw Error(Exit::io, "host-not-mounted",
                fmt::format("expected the release of the node's kernel in {}/sys/kernel/osrelease, found none",
                            base::escape(host.proc)))
        .hint(host.proc == kmod::HostPaths().proc ? "mount /proc here" : "mount the node's /proc below --host-root");
}

void require_release_name(const std::string& option, const std::string& release) {
    if (base::is_kernel_name(release)) return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("{}: expected a kernel release as uname -r prints it, found '{}'", option,
                            base::escape(release)))
        .hint("for example 6.1.0-60-amd64");
}

Job empty_job(const cli::Args& args) {
    Job job;
    job.host = host_paths(args);
    job.node = this_node(job.host);
    job.deadline = timeout_of(args);
    return job;
}

Job read_job(const cli::Args& args, Needs needs, UnknownFields unknown) {
    Job job = empty_job(args);
    try {
        fill_job(args, needs, unknown, job);
    } catch (Error& error) {
        kmod::add_warnings(error, kmod::warnings_as_findings(job.warnings));  // they may say what is behind the error
        throw;
    }
    return job;
}

void require_kernel(const Job& job) {
    const std::string wanted = api::trim_kernel(job.config.kernel_version);
    if (wanted.empty() || wanted == api::trim_kernel(job.node.kernel)) return;
    const std::string shown = base::escape(job.config.kernel_version);
    throw Error(Exit::checks_failed, "kernel-differs",
                job.is_of_options
                    ? fmt::format("--kernel {} is not the running kernel {}", shown, job.node.kernel)
                    : fmt::format("the config is for kernel {}, this node runs {}", shown, job.node.kernel))
        .detail("wanted", shown)
        .detail("running", job.node.kernel)
        .hint(job.is_of_options ? "modules are checked and loaded for the running kernel only: leave --kernel out; "
                                  "kmm-plan preflight --kernel judges images for other kernels"
                                : "the node was rebooted into another kernel: plan again");
}

void require_capability(const kmod::HostPaths& host, const std::string& what) {
    if (kmod::kernel_state(host).cap_sys_module) return;
    throw Error(Exit::no_permission, "no-permission",
                fmt::format("{} needs CAP_SYS_MODULE, which this process does not have", what))
        .hint("run as root on the node; in a Pod: securityContext.capabilities.add: [SYS_MODULE]");
}

kmod::LoadRequest request_of(const Job& job) {
    const auto& config = job.config;
    kmod::LoadRequest request;
    request.module = config.modprobe.module_name;
    request.parameters = config.modprobe.parameters;
    request.loading_order = config.modprobe.modules_loading_order;
    request.in_tree_modules_to_remove = api::in_tree_removals(config);
    if (job.load.modules.size() > 1) request.also.assign(job.load.modules.begin() + 1, job.load.modules.end());
    request.force = job.load.force;
    if (job.load.use_blacklist) request.blacklist = kmod::BlacklistRule::honour;
    if (job.load.ignore_install) request.install_commands = kmod::InstallCommands::ignore;
    return request;
}

}  // namespace kmm::tool_worker
