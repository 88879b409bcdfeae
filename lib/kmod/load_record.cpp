// SPDX-License-Identifier: Apache-2.0
#include "kmod/load_record.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/files.hpp"

namespace kmm::kmod {

namespace {

std::string directory_of(const HostPaths& host) { return host.run + "/loaded"; }
std::string path_of(const HostPaths& host, const std::string& module) { return directory_of(host) + "/" + normalise_name(module); }

std::string unfinished_of(const HostPaths& host, const std::string& module) { return directory_of(host) + "/." + normalise_name(module) + ".new"; }

std::string text_of(const LoadRecord& record) {
    std::string text = fmt::format("module {}\n", record.module);
    if (record.unloaded) text += "state unloaded\n";
    if (record.gone) text += "state gone\n";
    for (const auto& name : record.dependencies) text += fmt::format("dependency {}\n", name);
    for (const auto& name : record.removed_in_tree) text += fmt::format("removed-in-tree {}\n", name);
    if (record.old_firmware_path) text += fmt::format("old-firmware-path {}\n", *record.old_firmware_path);
    if (record.new_firmware_path) text += fmt::format("new-firmware-path {}\n", *record.new_firmware_path);
    for (const auto& directory : record.former_firmware_directories) text += fmt::format("former-firmware-directory {}\n", directory);
    if (!record.firmware_directory.empty()) text += fmt::format("firmware-directory {}\n", record.firmware_directory);
    return text;
}

/// Whether `text` is one of text_of(), as far as one can tell.
bool is_record(std::string_view text, const std::string& module) {
    if (!text.starts_with("module " + normalise_name(module) + "\n") || !text.ends_with('\n')) return false;
    static constexpr std::string_view keys[] = {"module", "state", "dependency", "removed-in-tree", "old-firmware-path", "new-firmware-path", "former-firmware-directory", "firmware-directory"};
    const auto lines = base::split(text, '\n');
    return std::all_of(lines.begin(), lines.end(), [](std::string_view line) { return line.empty() || std::find(std::begin(keys), std::end(keys), line.substr(0, line.find(' '))) != std::end(keys); });
}

}  // namespace

std::string damaged_record(const HostPaths& host, const std::string& module) {
    if (!is_module_name(module)) return {};
    const std::string path = path_of(host, module);
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(path, error))) return {};
    const auto text = read_raw(path, 4U << 20U);
    return text && is_record(*text, module) ? std::string() : path;
}

std::optional<LoadRecord> read_record(const HostPaths& host, const std::string& module) {
    if (!is_module_name(module)) return std::nullopt;
    const auto text = read_raw(path_of(host, module), 4U << 20U);
    if (!text || !is_record(*text, module)) return std::nullopt;
    LoadRecord record;
    record.module = normalise_name(module);
    for (const auto line : base::split(*text, '\n')) {
        const auto blank = line.find(' ');
        if (blank == std::string_view::npos) continue;
        const std::string_view key = line.substr(0, blank);
        const std::string value(line.substr(blank + 1));
        if (key == "dependency" && is_module_name(value)) record.dependencies.push_back(value);
        if (key == "removed-in-tree" && is_module_name(value)) record.removed_in_tree.push_back(value);
        if (key == "old-firmware-path") record.old_firmware_path = value;
        if (key == "new-firmware-path") record.new_firmware_path = value;
        if (key == "former-firmware-directory") record.former_firmware_directories.push_back(value);
        if (key == "state") (value == "gone" ? record.gone : record.unloaded) = value == "gone" || value == "unloaded";
        if (key == "firmware-directory") record.firmware_directory = value;
    }
    return record;
}

void write_record(const HostPaths& host, const LoadRecord& record) {
    std::error_code error;
    std::filesystem::create_directories(directory_of(host), error);
    if (error) throw from_errno(error.value(), fmt::format("cannot create {}", directory_of(host)));
    const std::string path = path_of(host, record.module);
    const std::string temporary = unfinished_of(host, record.module);
    (void)::unlink(temporary.c_str());
    const sys::Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) throw from_errno(errno, fmt::format("cannot create {}", temporary));
    const std::string text = text_of(record);
    std::string_view rest = text;
    while (!rest.empty()) {
        const ssize_t wrote = ::write(fd.get(), rest.data(), rest.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) throw from_errno(errno, fmt::format("cannot write {}", temporary));
        rest.remove_prefix(static_cast<std::size_t>(wrote));
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw from_errno(errno, fmt::format("cannot write {}", path));
}

void erase_record(const HostPaths& host, const std::string& module) {
    if (!is_module_name(module)) return;
    (void)::unlink(path_of(host, module).c_str());
    (void)::unlink(unfinished_of(host, module).c_str());
}

void note_unloaded(const HostPaths& host, const std::string& module, std::vector<std::string> removed_in_tree) {
    if (removed_in_tree.empty()) return erase_record(host, module);
    LoadRecord record;
    record.module = normalise_name(module);
    record.removed_in_tree = std::move(removed_in_tree);
    record.unloaded = true;
    write_record(host, record);
}

void note_gone(const HostPaths& host, const std::vector<std::string>& names) {
    for (const auto& name : names) {
        auto record = read_record(host, name);
        if (!record || record->unloaded || record->gone || live_module(host, name)) continue;
        record->gone = true;
        write_record(host, *record);
    }
}

void give_up_search_path(const HostPaths& host, const LoadRecord& record) {
    if (!record.new_firmware_path || !record.old_firmware_path) return;
    const bool in_force = firmware_search_path(host) == *record.new_firmware_path;
    for (const auto& name : recorded_modules(host)) {
        auto other = read_record(host, name);
        if (name == record.module || !other || !live_module(host, name)) continue;
        const bool came_later = other->old_firmware_path == record.new_firmware_path;
        const bool shares_it = in_force && !other->new_firmware_path && other->firmware_directory == *record.new_firmware_path;
        if (!came_later && !shares_it) continue;
        other->old_firmware_path = record.old_firmware_path;
        if (shares_it) other->new_firmware_path = record.new_firmware_path;
        write_record(host, *other);
        return;
    }
    if (in_force) (void)set_firmware_search_path(host, *record.old_firmware_path);
}

std::vector<std::string> recorded_modules(const HostPaths& host) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory_of(host), error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().native();
        if (const auto record = read_record(host, name); record && !record->unloaded) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace kmm::kmod
