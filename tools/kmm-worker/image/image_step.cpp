// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/image/image_step.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>
#include <iterator>
#include <string_view>
#include <utility>
#include <filesystem>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"
#include "kmod/ko/module_service.hpp"
#include "registry/client/certs.hpp"
#include "registry/client/document_service.hpp"
#include "registry/local/mirror_files.hpp"
#include "registry/local/policy_files.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sandbox/sandbox.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_worker {

namespace {

constexpr const char* k_prefix = "kmm-pull-";

}  // namespace

std::string scratch_base(const kmod::HostPaths& host) {
    if (const char* chosen = std::getenv("TMPDIR"); chosen != nullptr && *chosen != '\0') return chosen;
    if (::geteuid() != 0) return "";
    (void)::mkdir(host.run.c_str(), 0700);
    struct stat status {};
    const bool ours = ::lstat(host.run.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0 &&
                      (status.st_mode & 022U) == 0 && ::access(host.run.c_str(), W_OK | X_OK) == 0;
    return ours ? host.run : "";
}

namespace {

constexpr const char* k_pull_secrets = "/var/run/kmm/pull-secrets";

void add_credentials(const cli::Args& args, const std::vector<registry::Credential>& input,
                     registry::PullRequest& request, std::vector<std::string>& warnings) {
    const auto add = [&](const registry::FoundCredentials& more) {
        request.credentials.insert(request.credentials.end(), more.credentials.begin(), more.credentials.end());
        request.skipped_secrets.insert(request.skipped_secrets.end(), more.skipped.begin(), more.skipped.end());
    };
    const std::string authfile = args.get("authfile").value_or("");
    if (!authfile.empty()) add(registry::default_credentials(authfile, warnings, request.deadline));
    add({input, {}});
    const auto secrets = args.get("pull-secrets");
    if (secrets || ::access(k_pull_secrets, R_OK | X_OK) == 0)
        add(registry::mounted_credentials(secrets.value_or(k_pull_secrets), warnings));
    if (authfile.empty()) add(registry::default_credentials("", warnings));
}

}  // namespace

registry::PullRequest prepare_request(const cli::Args& args, const std::string& reference,
                                      std::chrono::milliseconds deadline, const kmod::HostPaths& host,
                                      const std::vector<registry::Credential>& input,
                                      std::vector<std::string>& warnings) {
    registry::PullRequest request = pull_request(args, reference, deadline);
    add_credentials(args, input, request, warnings);
    request.mirrors = registry::read_mirror_files(args.all("mirror-config"));
    request.requirements =
        registry::ImagePolicy(args.get("policy").value_or(""), args.all("signature-key")).of(reference);
    request.cache_bytes = cache_size(args);
    const std::string place = cache_place(args);
    if (request.cache_bytes != 0 && (args.get("cache-dir") || ::access(place.c_str(), W_OK | X_OK) == 0))
        request.cache_dir = place;
    request.policy = pull_policy(args.get("image-pull-policy").value_or(""));
    request.certs_dirs = registry::certificate_directories(host.etc);
    return request;
}

void want_kernels(registry::PullRequest& request, const cli::Args& args, const std::string& otherwise) {
    auto names = args.all("kernel");
    if (names.empty()) {
        names = {otherwise};
    } else {
        for (const auto& name : names) require_release_name("--kernel", name);
    }
    request.all_kernels = std::find(names.begin(), names.end(), "all") != names.end();
    if (request.all_kernels && names.size() > 1) {
        throw Error(Exit::usage, "usage", "expected --kernel all by itself, found other kernels beside it")
            .hint("leave out either all or the others");
    }
    if (request.all_kernels) names.clear();
    request.kernels = std::move(names);
}

std::string cache_place(const cli::Args& args) {
    if (const auto given = args.get("cache-dir")) return *given;
    return host_paths(args).root + "/var/lib/kmm-worker";
}

std::uint64_t cache_size(const cli::Args& args) {
    static constexpr std::pair<std::string_view, unsigned> units[] = {{"", 0},    {"K", 10},  {"Ki", 10},  {"KiB", 10},
                                                                      {"M", 20},  {"Mi", 20}, {"MiB", 20}, {"G", 30},
                                                                      {"Gi", 30}, {"GiB", 30}};
    const auto text = args.get("cache-size");
    if (!text) return registry::PullRequest().cache_bytes;
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text->data() + text->size() - end));
    const auto row = std::find_if(std::begin(units), std::end(units), [&](const auto& u) { return u.first == unit; });
    if (fault != std::errc{} || row == std::end(units) || value > (~std::uint64_t{0} >> row->second)) {
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--cache-size {}: expected a size as 500MiB or 4GiB", base::escape(*text)))
            .hint("for example --cache-size 4GiB");
    }
    return value << row->second;
}

registry::PullPolicy pull_policy(const std::string& text, const std::optional<Position>& position) {
    if (text.empty() || text == "Always") return registry::PullPolicy::always;
    if (text == "IfNotPresent") return registry::PullPolicy::if_not_present;
    if (text == "Never") return registry::PullPolicy::never;
    Error error(Exit::config, "bad-value",
                fmt::format("imagePullPolicy: expected Always, IfNotPresent or Never, found '{}'", base::escape(text)));
    if (position) error.at(*position);
    const auto near = base::nearest(text, std::vector<std::string>{"Always", "IfNotPresent", "Never"});
    throw std::move(error).hint(near ? fmt::format("did you mean {}?", *near)
                                     : "correct it in the configuration, or leave it out for Always");
}

namespace {

Error interrupted_error() {
    return Error(sys::interrupt_exit(), "interrupted",
                 "interrupted while pulling; nothing was changed");
}

void stop_at_interrupt() {
    if (sys::interrupt_requested()) throw interrupted_error();
}

}  // namespace

void show_progress(registry::PullRequest& request, cli::LiveArea& area, cli::Context& context) {
    const bool show = context.console.err_is_terminal() && context.verbosity >= 0;
    request.progress = [&area, show, reference = request.reference](std::uint64_t have, std::uint64_t total) {
        stop_at_interrupt();
        if (show)
            area.draw(
                {fmt::format("pulling {}: {} of {}", reference, base::format_bytes(have), base::format_bytes(total))});
    };
    if (show) {
        request.waiting = [&area, reference = request.reference](const std::string& why,
                                                                 std::chrono::milliseconds wait) {
            area.draw({fmt::format("pulling {}: trying again in {}", reference, base::format_duration(wait)),
                       "  " + base::escape(why)});
        };
    }
}

void tell_sandbox(const sandbox::SandboxReport& report, cli::Context& context, const std::string& of) {
    if (context.verbosity < 1) return;
    for (const auto& line : report.in_force) context.console.err(fmt::format("sandbox: {}{}\n", of, line));
    for (const auto& line : report.missing) context.console.err(fmt::format("sandbox: {}not here: {}\n", of, line));
}

void tell_parser(const sandbox::Confined& parser, cli::Context& context) {
    tell_sandbox(parser.report(), context, "parser: ");
}

std::function<void()> stop_of_parser(std::chrono::milliseconds timeout, std::chrono::steady_clock::time_point start) {
    return [timeout, start] {
        stop_at_interrupt();
        if (timeout.count() == 0 || std::chrono::steady_clock::now() - start < timeout) return;
        throw Error(Exit::timeout, "timeout",
                    fmt::format("the modules were not read within --timeout {}", base::format_duration(timeout)))
            .hint("raise --timeout; if that does not help, the image may be an attack on the parser");
    };
}

std::shared_ptr<sandbox::Confined> start_parser() {
    return std::make_shared<sandbox::Confined>(
        std::vector<sandbox::Service>{registry::layer_service(), registry::document_service(), kmod::module_service()},
        stop_at_interrupt);
}

Job read_image_job(const cli::Args& args, UnknownFields unknown) {
    auto parser = start_parser();
    parser->begin(registry::document_service().number);  // while the job is read
    Job job = read_job(args, Needs::image, unknown);
    job.parser = std::move(parser);
    return job;
}

registry::PullResult run_pull(registry::PullRequest request, const std::string& directory, cli::Context& context,
                              sys::Clock& clock) {
    cli::LiveArea area(context.console);
    show_progress(request, area, context);
    net::CurlHttpClient http;
    auto result = registry::pull(request, directory, http, clock);
    area.clear();
    return result;
}

namespace {

/// Before the first byte comes: programs and the like are never needed again, the network still is.
void begin_sandbox(const Job& job, sandbox::SandboxReport& report) {
    if (job.sandbox == Job::Sandbox::none) return;
    const bool is_whole = job.sandbox == Job::Sandbox::whole;
    sandbox::forbid_programs(report, is_whole ? sandbox::Keeps::namespaces : sandbox::Keeps::modules);
}

/// What must stay writable for a report: the directory of a file, which is replaced there; else the pipe or device.
std::string place_of_report(const std::string& file) {
    using Type = std::filesystem::file_type;
    std::error_code error;
    const auto target = std::filesystem::weakly_canonical(file, error);
    if (error) return sys::parent_of(file);
    const auto type = std::filesystem::status(target, error).type();
    const bool is_replaced = type == Type::regular || type == Type::not_found || type == Type::directory;
    return is_replaced ? target.parent_path().native() : target.native();
}

void close_sandbox(const Job& job, const std::string& scratch, sandbox::SandboxReport& report, cli::Context& context) {
    if (job.sandbox == Job::Sandbox::none) return;
    const bool is_whole = job.sandbox == Job::Sandbox::whole;
    const auto modes = is_whole && job.report.empty() ? sandbox::Modes::fixed : sandbox::Modes::changeable;
    if (is_whole) {
        sandbox::leave_network(report);
        std::vector<std::string> writable{scratch.empty() ? sys::temp_base() : scratch};
        for (const char* place :
             std::initializer_list<const char*>{std::getenv("KMM_TERMINATION_LOG"), "/dev/termination-log"}) {
            if (place != nullptr && ::access(place, W_OK) == 0) writable.emplace_back(place);
        }
        if (!job.report.empty()) writable.push_back(place_of_report(job.report));
        sandbox::forbid_writes(writable, report);
        sandbox::drop_capabilities(report, modes);
    }
    sandbox::forbid_sockets(report, modes);
    tell_sandbox(report, context);
}

/// The kernel's modules under its name as it is, or without the "+" at its end. `request` and `kernel` become what was
/// found.
registry::PullResult pull_somewhere(registry::PullRequest& request, std::string& kernel, bool any_directory,
                                    const std::function<registry::PullResult()>& pull) {
    registry::PullResult result;
    in_default_directories(request.dir_name, any_directory, [&] {
        request.kernels = {kernel};
        const std::string trimmed = api::trim_kernel(kernel);
        try {
            result = pull();
        } catch (const Error& error) {
            if (error.code() != "kernel-not-in-image" || trimmed == kernel) throw;
            request.kernels = {trimmed};
            try {
                result = pull();
            } catch (const Error& second) {
                if (second.code() == "kernel-not-in-image") throw error;
                throw;
            }
            kernel = trimmed;
        }
    });
    return result;
}

}  // namespace

void in_default_directories(std::string& directory, bool any_directory, const std::function<void()>& run) {
    try {
        return run();
    } catch (const Error& error) {
        if (error.code() != "kernel-not-in-image" || !any_directory) throw;
        const std::string first = std::exchange(directory, "/");
        try {
            return run();
        } catch (const Error& second) {
            if (second.code() != "kernel-not-in-image") throw;
        }
        directory = first;
        throw;
    }
}

void warn_of_left_out(const kmod::ModuleIndex& index, std::vector<std::string>& warnings) {
    constexpr std::size_t shown = 5;
    const auto& faults = index.faults();
    for (std::size_t i = 0; i < std::min(shown, faults.size()); ++i)
        warnings.push_back(fmt::format("{}: {}; the file is left out", faults[i].code, faults[i].message));
    if (faults.size() > shown)
        warnings.push_back(fmt::format("{}: {} more files are left out", faults[shown].code, faults.size() - shown));
}

kmod::FileDigests proven_files(const PulledImage& image) {
    kmod::FileDigests digests;
    if (image.firmware.empty()) return digests;
    std::error_code failed;
    const std::string root = std::filesystem::canonical(image.directory.path(), failed).native();
    if (failed) throw from_errno(failed.value(), "finding the extracted image");
    image.pulled.files.each(
        [&](const registry::ExtractedFile& file) { digests.emplace(root + file.path, file.digest()); });
    return digests;
}

kmod::ImageConfigPlace config_place(const Job& job, const std::string& root) {
    const auto& modprobe = job.config.modprobe;
    return kmod::image_config_place(root, modprobe.modprobed_dir, !modprobe.modules_loading_order.empty());
}

PulledImage pull_image(const Job& job, const cli::Args& args, cli::Context& context, sys::Clock& clock) {
    const auto start = std::chrono::steady_clock::now();
    const std::string base = scratch_base(job.host);
    (void)sys::remove_stale_temp_dirs(k_prefix, base);
    PulledImage image{job.parser, sys::TempDir(k_prefix, base), {}, {}, {}, {}};
    sandbox::SandboxReport sandbox;
    begin_sandbox(job, sandbox);
    if (job.parser) {
        job.parser->renew();
        job.parser->set_stop(stop_at_interrupt);
    }

    std::vector<std::string> warnings;
    registry::PullRequest request =
        prepare_request(args, job.config.container_image, job.deadline, job.host, job.credentials, warnings);
    for (const auto& policy : job.policies) {
        auto more = policy.of(request.reference);
        request.requirements.insert(request.requirements.end(), std::make_move_iterator(more.begin()),
                                    std::make_move_iterator(more.end()));
    }
    if (!args.get("image-pull-policy")) {
        const auto place = job.places.find("imagepullpolicy");
        request.policy = pull_policy(job.config.image_pull_policy, place == job.places.end()
                                                                       ? std::nullopt
                                                                       : std::optional(place->second));
    }
    request.dir_name = job.config.modprobe.dir_name.empty() ? "/opt" : job.config.modprobe.dir_name;
    request.firmware_path = job.config.modprobe.firmware_path;
    request.modprobed_dir = job.config.modprobe.modprobed_dir;
    request.parser = job.parser.get();
    if (job.config.insecure_pull) request.tls.insecure = true;
    if (!args.get("platform")) request.architecture = job.node.architecture;
    std::string kernel = job.node.kernel;
    try {
        image.pulled = pull_somewhere(request, kernel, job.config.modprobe.dir_name.empty(),
                                      [&] { return run_pull(request, image.directory.path(), context, clock); });
    } catch (const Error& error) {
        if (job.is_of_options) throw as_usage_fault(error);
        throw;
    }
    image.pulled.warnings.insert(image.pulled.warnings.begin(), warnings.begin(), warnings.end());
    close_sandbox(job, base, sandbox, context);
    const std::string& root = image.directory.path();
    const std::string directory =
        (std::filesystem::path(root + "/" + request.dir_name).lexically_normal() / "lib/modules" / kernel).native();
    std::map<std::string, std::string> sums;
    image.pulled.files.each(
        [&](const registry::ExtractedFile& file) { sums.emplace_hint(sums.end(), file.path, file.digest()); });
    if (job.parser) job.parser->set_stop(stop_of_parser(job.deadline, start));
    image.index = with_context([&] { return "image " + image.pulled.reference; },
                               [&] { return kmod::ModuleIndex::build(directory, root, sums, job.parser.get()); });
    if (!request.modprobed_dir.empty()) {
        image.config = with_context(
            [&] { return "image " + image.pulled.reference; },
            [&] { return kmod::read_image_config(config_place(job, root), job.parser.get(), image.pulled.warnings); });
    }
    if (job.parser) {
        job.parser->set_stop({});  // a load must not be left half done for a signal
        tell_parser(*job.parser, context);
    }
    warn_of_left_out(image.index, image.pulled.warnings);
    if (!request.firmware_path.empty()) {
        image.firmware = std::filesystem::path(root + "/" + request.firmware_path).lexically_normal().native();
        std::error_code ignored;
        if (!std::filesystem::is_directory(image.firmware, ignored)) {
            throw Error(Exit::not_found, "firmware-not-in-image",
                        fmt::format("image {} has no firmware in {}", image.pulled.reference,
                                    base::escape(request.firmware_path)))
                .hint("correct modprobe.firmwarePath, or add the directory to the image");
        }
    }
    return image;
}

}  // namespace kmm::tool_worker
