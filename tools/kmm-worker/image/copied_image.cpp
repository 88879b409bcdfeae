// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/image/copied_image.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "kmm-worker/image/image_step.hpp"

namespace kmm::tool_worker {

namespace {

/// Outside of a Pod /tmp is everybody's.
bool is_in_pod() { return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr; }

/// What is there must belong to root or to this user, who alone may write it; a link, whose mode says nothing, only
/// `is_entry` of a directory. Errors: unsafe (16) "image-unsafe".
void require_own(const std::filesystem::path& path, bool is_entry) {
    struct stat status {};
    const bool found = ::lstat(path.c_str(), &status) == 0;
    const bool is_kept = S_ISLNK(status.st_mode) ? is_entry : (status.st_mode & 022U) == 0;
    const bool is_kind = is_entry || S_ISDIR(status.st_mode);
    if (found && is_kind && is_kept && (status.st_uid == 0 || status.st_uid == ::geteuid())) return;
    throw Error(Exit::unsafe, "image-unsafe",
                fmt::format("{} can be changed by other users, no module is loaded", base::escape(path.native())))
        .hint("kmm-worker load pulls the image itself; remove it if it is not yours, or else chmod go-w");
}

/// Each directory from `root` down to `directory`.
void require_own_way(const std::string& root, const std::string& directory) {
    if (is_in_pod()) return;
    std::filesystem::path path = root;
    for (const auto& part : std::filesystem::path(directory).lexically_relative(root))
        require_own(path /= part, false);
}

/// The way to `directory`, everything below it, and where links from there lead.
void require_own_tree(const std::string& root, const std::string& directory) {
    if (is_in_pod()) return;
    require_own_way(root, directory);
    std::error_code error;
    const std::filesystem::path real_root = std::filesystem::canonical(root, error);
    std::filesystem::recursive_directory_iterator entries(directory, error);
    for (; !error && entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
        require_own(entries->path(), true);
        std::error_code dangling;
        if (!entries->is_symlink(dangling)) continue;
        const auto real = std::filesystem::canonical(entries->path(), dangling);
        if (dangling) continue;
        require_own_way(real_root.native(), real.parent_path().native());
        require_own(real, true);
    }
    if (error) throw from_errno(error.value(), fmt::format("cannot read {}", base::escape(directory)));
}

}  // namespace

std::string copies_root(const Job& job) { return job.host.etc.substr(0, job.host.etc.rfind('/')) + "/tmp"; }

std::string copied_modules(const Job& job) {
    const std::string below =
        std::filesystem::path(copies_root(job) + "/" + job.config.modprobe.dir_name + "/lib/modules/")
            .lexically_normal()
            .native();
    for (const std::string& kernel : {job.node.kernel, api::trim_kernel(job.node.kernel)}) {
        std::error_code error;
        if (std::filesystem::is_directory(below + kernel, error)) return below + kernel;
    }
    return "";
}

std::vector<kmod::ImageConfigFile> copied_config(const Job& job, sandbox::Confined* parser,
                                                 std::vector<std::string>& warnings) {
    if (job.config.modprobe.modprobed_dir.empty()) return {};
    const kmod::ImageConfigPlace place = config_place(job, copies_root(job));
    std::error_code error;
    if (!std::filesystem::exists(place.directory, error)) {
        throw Error(Exit::not_found, "modprobed-dir-not-in-image",
                    fmt::format("modprobe.modprobedDir: expected a copy of {} of the image in {}, found none",
                                base::escape(place.shown), base::escape(place.directory)))
            .hint("the init container of the Pod copies it; kmm-worker load pulls the image itself");
    }
    require_own_tree(place.root, place.directory);
    return kmod::read_image_config(place, parser, warnings);
}

bool take_copied_files(const Job& job, kmod::ModuleIndex& modules, std::string& firmware_directory,
                       WorkerResult& result) {
    const std::string root = copies_root(job);
    const std::string directory = copied_modules(job);
    if (directory.empty()) return false;
    std::error_code error;
    require_own_tree(root, directory);
    modules = kmod::ModuleIndex::build(directory, root, {}, job.parser.get());
    warn_of_left_out(modules, result.warnings);
    if (const std::string& firmware = job.config.modprobe.firmware_path; !firmware.empty()) {
        firmware_directory = std::filesystem::path(root + "/" + firmware).lexically_normal().native();
        if (!std::filesystem::is_directory(firmware_directory, error)) {
            throw Error(Exit::not_found, "firmware-not-in-image",
                        fmt::format("there is no firmware in {}", base::escape(firmware_directory)))
                .hint("correct modprobe.firmwarePath, or add the directory to the image");
        }
        require_own_tree(root, firmware_directory);
    }
    result.image = job.config.container_image;
    return true;
}

}  // namespace kmm::tool_worker
