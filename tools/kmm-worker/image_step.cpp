// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/image_step.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cli/table.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_worker {

namespace {

constexpr const char* k_prefix = "kmm-pull-";

/// $TMPDIR; for root a directory of our own below /run; else the system's default.
std::string scratch_base(const kmod::HostPaths& host) {
    if (const char* chosen = std::getenv("TMPDIR"); chosen != nullptr && *chosen != '\0') return chosen;
    if (::geteuid() != 0) return "";
    (void)::mkdir(host.run.c_str(), 0700);
    struct stat status {};
    const bool ours = ::lstat(host.run.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0 && (status.st_mode & 022U) == 0;
    return ours ? host.run : "";
}

}  // namespace

registry::PullResult run_pull(registry::PullRequest request, const std::string& directory, cli::Context& context, sys::Clock& clock) {
    cli::LiveArea area(context.console);
    const bool show = context.console.err_is_terminal() && context.verbosity >= 0;
    request.progress = [&](std::uint64_t have, std::uint64_t total) {
        if (sys::interrupt_requested()) {
            throw Error(sys::interrupt_signal() == SIGINT ? Exit::interrupted : Exit::terminated, "interrupted", "interrupted while pulling; nothing was changed");
        }
        if (show) area.draw({fmt::format("pulling {}: {} of {}", request.reference, base::format_bytes(have), base::format_bytes(total))});
    };
    net::CurlHttpClient http;
    auto result = registry::pull(request, directory, http, clock);
    area.clear();
    return result;
}

PulledImage pull_image(const Job& job, const cli::Args& args, cli::Context& context, sys::Clock& clock) {
    const std::string base = scratch_base(job.host);
    (void)sys::remove_stale_temp_dirs(k_prefix, base);
    PulledImage image{sys::TempDir(k_prefix, base), {}, {}, {}};

    registry::PullRequest request = pull_request(args, job.config.container_image, job.deadline);
    request.dir_name = job.config.modprobe.dir_name.empty() ? "/opt" : job.config.modprobe.dir_name;
    request.firmware_path = job.config.modprobe.firmware_path;
    request.credentials = job.credentials;
    if (job.config.insecure_pull) request.tls.insecure = true;
    if (!args.get("platform")) request.architecture = job.node.architecture;
    std::string kernel = job.node.kernel;
    request.kernels = {kernel};
    try {
        image.pulled = run_pull(request, image.directory.path(), context, clock);
    } catch (const Error& error) {
        const std::string trimmed = api::trim_kernel(kernel);
        if (error.code() != "kernel-not-in-image" || trimmed == kernel) throw;
        kernel = trimmed;
        request.kernels = {kernel};
        image.pulled = run_pull(request, image.directory.path(), context, clock);
    }
    const std::string& root = image.directory.path();
    const std::string directory = (std::filesystem::path(root + "/" + request.dir_name).lexically_normal() / "lib/modules" / kernel).native();
    image.index = with_context([&] { return "image " + image.pulled.reference; }, [&] { return kmod::ModuleIndex::build(directory, root); });
    if (!request.firmware_path.empty()) {
        image.firmware = std::filesystem::path(root + "/" + request.firmware_path).lexically_normal().native();
        std::error_code ignored;
        if (!std::filesystem::is_directory(image.firmware, ignored)) {
            throw Error(Exit::not_found, "firmware-not-in-image", fmt::format("image {} has no firmware in {}", image.pulled.reference, base::escape(request.firmware_path)))
                .hint("correct modprobe.firmwarePath, or add the directory to the image");
        }
    }
    return image;
}

}  // namespace kmm::tool_worker
