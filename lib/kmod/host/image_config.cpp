// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/image_config.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/module_service.hpp"
#include "sys/directory.hpp"

namespace kmm::kmod {

namespace {

constexpr std::size_t k_config_files_max = 256;
constexpr std::uint64_t k_config_bytes_max = 128U << 10U;  ///< of all files: what is made of them grows faster
constexpr std::string_view k_softdep_file = "softdep.conf";

class ImageConfigReader {
public:
    ImageConfigReader(const ImageConfigPlace& place, sandbox::Confined* parser, std::vector<std::string>& warnings)
        : place_(place), parser_(parser), warnings_(warnings) {}

    std::vector<ImageConfigFile> run() {
        const auto entries = list();
        if (place_.has_loading_order) refuse_softdep(entries);
        std::size_t count = 0;
        for (const auto& entry : entries) {
            const std::optional<std::string> path = file_of(entry);
            if (!path) continue;
            if (++count > k_config_files_max) {
                throw Error(Exit::unsafe, "image-limit",
                            fmt::format("modprobe.modprobedDir: expected at most {} files in {}, found more",
                                        k_config_files_max, base::escape(place_.shown)));
            }
            take(entry.name, *path);
        }
        if (count == 0) throw refused("has no regular file in it", "add the modprobe.d files to the image there");
        return std::move(files_);
    }

private:
    [[nodiscard]] Error refused(const std::string& what, const std::string& hint) const {
        return Error(Exit::data, "bad-modprobed-dir",
                     fmt::format("modprobe.modprobedDir: {} of the image {}", base::escape(place_.shown), what))
            .hint(hint);
    }

    [[nodiscard]] std::vector<sys::DirectoryEntry> list() const {
        std::error_code error;
        const auto status = std::filesystem::status(place_.directory, error);
        if (!std::filesystem::exists(status)) {
            throw Error(Exit::not_found, "modprobed-dir-not-in-image",
                        fmt::format("modprobe.modprobedDir: the image has no directory {}", base::escape(place_.shown)))
                .hint("correct modprobe.modprobedDir, or add the directory to the image");
        }
        if (!std::filesystem::is_directory(status))
            throw refused("is not a directory", "name the directory that the modprobe.d files are in");
        auto entries = sys::list_directory(place_.directory);
        for (const auto& entry : entries) {
            if (entry.type == sys::EntryType::directory ||
                (entry.type == sys::EntryType::link &&
                 std::filesystem::is_directory(place_.directory + "/" + entry.name, error)))
                throw refused(fmt::format("has a sub-directory, {}", base::escape(entry.name)),
                              "put the modprobe.d files alone there");
        }
        return entries;
    }

    void refuse_softdep(const std::vector<sys::DirectoryEntry>& entries) const {
        for (const auto& entry : entries) {
            if (entry.name != k_softdep_file) continue;
            throw refused(fmt::format("has a file {}, and so has modprobe.modulesLoadingOrder", k_softdep_file),
                          "give that file of the image another name, or take modulesLoadingOrder away");
        }
    }

    /// Where the content of `entry` is; nullopt for what is no regular file.
    [[nodiscard]] std::optional<std::string> file_of(const sys::DirectoryEntry& entry) const {
        const std::string path = place_.directory + "/" + entry.name;
        if (entry.type == sys::EntryType::file) return path;
        std::error_code error;
        if (entry.type != sys::EntryType::link || !std::filesystem::is_regular_file(path, error)) return std::nullopt;
        const auto root = std::filesystem::canonical(place_.root, error);
        const auto end = std::filesystem::canonical(path, error);
        if (error || !end.native().starts_with(root.native() + "/")) {
            throw Error(Exit::unsafe, "image-unsafe",
                        fmt::format("modprobe.modprobedDir: the link {}/{} leads out of the image",
                                    base::escape(place_.shown), base::escape(entry.name)));
        }
        return end.native();
    }

    void take(const std::string& name, const std::string& path) {
        const std::string shown = place_.shown + "/" + name;
        if (!is_config_name(name)) {
            warnings_.push_back(fmt::format("modprobed-dir: {} of the image is not read: modprobe reads names that end "
                                            "in .conf",
                                            base::escape(shown)));
            return;
        }
        const std::string text = content(path, shown);
        files_.push_back({name, "image:" + shown, read_config_lines(parser_, text, shown)});
    }

    [[nodiscard]] std::string content(const std::string& path, const std::string& shown) {
        const sys::Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        struct stat facts {};
        if (!file || ::fstat(file.get(), &facts) != 0)
            throw LastErrno().error("reading modprobe.d file " + base::escape(shown));
        const auto size = static_cast<std::uint64_t>(facts.st_size);
        bytes_ += size;
        if (!S_ISREG(facts.st_mode) || size > k_config_file_max || bytes_ > k_config_bytes_max) {
            throw Error(Exit::unsafe, "image-limit",
                        fmt::format("modprobe.modprobedDir: expected regular files of at most {} bytes, and {} in all, "
                                    "found more in {} of the image",
                                    k_config_file_max, k_config_bytes_max, base::escape(shown)));
        }
        std::string text = read_module_bytes(file, shown);
        if (text.find('\0') != std::string::npos) {
            throw Error(Exit::data, "bad-modprobed-dir",
                        fmt::format("modprobe.modprobedDir: expected text in {} of the image, found a NUL byte",
                                    base::escape(shown)));
        }
        return text;
    }

    const ImageConfigPlace& place_;
    sandbox::Confined* parser_;
    std::vector<std::string>& warnings_;
    std::uint64_t bytes_ = 0;
    std::vector<ImageConfigFile> files_;
};

}  // namespace

ImageConfigPlace image_config_place(const std::string& root, const std::string& modprobed_dir,
                                    bool has_loading_order) {
    return {(std::filesystem::path(root + "/" + modprobed_dir) / "").lexically_normal().parent_path().native(), root,
            modprobed_dir, has_loading_order};
}

std::vector<ImageConfigFile> read_image_config(const ImageConfigPlace& place, sandbox::Confined* parser,
                                               std::vector<std::string>& warnings) {
    return ImageConfigReader(place, parser, warnings).run();
}

}  // namespace kmm::kmod
