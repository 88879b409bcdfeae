// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/load_record.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/ko/files.hpp"
#include "sys/file_ops.hpp"

namespace kmm::kmod {

namespace {

std::string directory_of(const HostPaths& host) { return host.run + "/loaded"; }
std::string path_of(const HostPaths& host, const std::string& module) {
    return directory_of(host) + "/" + normalise_name(module);
}

std::string text_of(const LoadRecord& record) {
    std::string text = fmt::format("module {}\n", record.module);
    if (record.unloaded) text += "state unloaded\n";
    if (record.gone) text += "state gone\n";
    for (const auto& name : record.dependencies) text += fmt::format("dependency {}\n", name);
    for (const auto& name : record.removed_in_tree) text += fmt::format("removed-in-tree {}\n", name);
    if (record.old_firmware_path) text += fmt::format("old-firmware-path {}\n", *record.old_firmware_path);
    if (record.new_firmware_path) text += fmt::format("new-firmware-path {}\n", *record.new_firmware_path);
    if (!record.former_firmware_path.empty())
        text += fmt::format("former-firmware-path {}\n", record.former_firmware_path);
    for (const auto& directory : record.former_firmware_directories)
        text += fmt::format("former-firmware-directory {}\n", directory);
    if (!record.firmware_directory.empty()) text += fmt::format("firmware-directory {}\n", record.firmware_directory);
    for (const auto& [module, devices] : record.devices) {
        for (const auto& device : devices) text += fmt::format("device {} {}\n", module, device);
    }
    return text;
}

bool holds(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

/// Whether `text` is one of text_of(), as far as one can tell.
bool is_record(std::string_view text, const std::string& module) {
    if (!text.starts_with("module " + normalise_name(module) + "\n") || !text.ends_with('\n')) return false;
    static constexpr std::string_view keys[] = {"module",
                                                "state",
                                                "dependency",
                                                "removed-in-tree",
                                                "old-firmware-path",
                                                "new-firmware-path",
                                                "former-firmware-path",
                                                "former-firmware-directory",
                                                "firmware-directory",
                                                "device"};
    const auto lines = base::split(text, '\n');
    return std::all_of(lines.begin(), lines.end(), [](std::string_view line) {
        return line.empty() ||
               std::find(std::begin(keys), std::end(keys), line.substr(0, line.find(' '))) != std::end(keys);
    });
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
        if (key == "former-firmware-path") record.former_firmware_path = value;
        if (key == "former-firmware-directory") record.former_firmware_directories.push_back(value);
        if (key == "state") (value == "gone" ? record.gone : record.unloaded) = value == "gone" || value == "unloaded";
        if (key == "firmware-directory") record.firmware_directory = value;
        if (const auto space = value.find(' '); key == "device" && space != std::string::npos)
            record.devices[value.substr(0, space)].push_back(value.substr(space + 1));
    }
    return record;
}

void write_record(const HostPaths& host, const LoadRecord& record) {
    std::error_code error;
    std::filesystem::create_directories(directory_of(host), error);
    if (error) throw from_errno(error.value(), fmt::format("cannot create {}", directory_of(host)));
    (void)sys::remove_temp_files(directory_of(host));  // of a process that was killed; the node lock keeps others away
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, path_of(host, record.module), text_of(record));
}

void erase_record(const HostPaths& host, const std::string& module) {
    if (!is_module_name(module)) return;
    (void)::unlink(path_of(host, module).c_str());
    try {
        (void)sys::remove_temp_files(directory_of(host));  // as write_record()
    } catch (const Error&) {
        // There is no directory, or none that can be read: then nothing of ours is in it.
    }
}

void note_unloaded(const HostPaths& host, const std::string& module, std::vector<std::string> removed_in_tree,
                   std::vector<std::string> left_behind) {
    if (removed_in_tree.empty() && left_behind.empty()) return erase_record(host, module);
    LoadRecord record;
    record.module = normalise_name(module);
    record.removed_in_tree = std::move(removed_in_tree);
    record.dependencies = std::move(left_behind);
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

bool is_set_by(const LoadRecord& record, const std::string& path) {
    return record.new_firmware_path == path || (!path.empty() && record.former_firmware_path == path);
}

void give_up_search_path(const HostPaths& host, const LoadRecord& record) {
    if (!record.new_firmware_path || !record.old_firmware_path) return;
    const std::string path = firmware_search_path(host);
    const bool in_force = is_set_by(record, path);
    for (const auto& name : recorded_modules(host)) {
        auto other = read_record(host, name);
        if (name == record.module || !other || !live_module(host, name)) continue;
        const bool came_later = other->old_firmware_path && is_set_by(record, *other->old_firmware_path);
        const bool shares_it = in_force && !other->new_firmware_path && other->firmware_directory == path;
        if (!came_later && !shares_it) continue;
        other->old_firmware_path = record.old_firmware_path;
        if (shares_it) other->new_firmware_path = path;
        write_record(host, *other);
        return;
    }
    if (in_force) (void)set_firmware_search_path(host, *record.old_firmware_path);
}

std::vector<std::string> recorded_modules(const HostPaths& host) {
    std::vector<std::string> names;
    for (const auto& record : all_records(host)) {
        if (!record.unloaded) names.push_back(record.module);
    }
    return names;
}

std::vector<LoadRecord> all_records(const HostPaths& host) {
    std::vector<LoadRecord> records;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory_of(host), error), end; !error && it != end;
         it.increment(error)) {
        if (auto record = read_record(host, it->path().filename().native())) records.push_back(std::move(*record));
    }
    std::sort(records.begin(), records.end(),
              [](const LoadRecord& a, const LoadRecord& b) { return a.module < b.module; });
    return records;
}

bool came_as_dependency(const HostPaths& host, const std::string& name, const std::string& except) {
    const auto records = all_records(host);
    return std::any_of(records.begin(), records.end(), [&](const LoadRecord& record) {
        return record.module != except && record.module != name && holds(record.dependencies, name);
    });
}

std::string owner_on_record(const HostPaths& host, const LiveModule& module, const std::string& except) {
    std::string owner;
    for (const auto& record : all_records(host)) {
        if (record.unloaded || record.module == except || !live_module(host, record.module)) continue;
        const bool itself = record.module == module.name && !record.gone;
        if (itself && (is_out_of_tree(module) || loaded_sha256(host, module.name))) return record.module;
        if (is_out_of_tree(module) && holds(record.dependencies, module.name)) owner = record.module;
    }
    return owner;
}

std::set<std::string> wanted_on_record(const HostPaths& host, const std::vector<std::string>& leaving) {
    std::set<std::string> wanted;
    for (const auto& record : all_records(host)) {
        if (record.unloaded || holds(leaving, record.module) || !live_module(host, record.module)) continue;
        if (!record.gone) wanted.insert(record.module);
        wanted.insert(record.dependencies.begin(), record.dependencies.end());
    }
    return wanted;
}

std::vector<std::string> leftovers(const HostPaths& host) {
    const auto wanted = wanted_on_record(host, {});
    std::vector<std::string> names;
    for (const auto& record : all_records(host)) {
        if (!record.unloaded && live_module(host, record.module)) continue;
        for (auto name = record.dependencies.rbegin(); name != record.dependencies.rend(); ++name) {
            const auto live = wanted.contains(*name) || holds(names, *name) ? std::nullopt : live_module(host, *name);
            if (live && is_out_of_tree(*live)) names.push_back(*name);
        }
    }
    return names;
}

void forget_gone_leftovers(const HostPaths& host) {
    for (auto& record : all_records(host)) {
        const auto is_gone = [&](const std::string& name) { return !live_module(host, name); };
        if (record.unloaded && std::erase_if(record.dependencies, is_gone) > 0)
            note_unloaded(host, record.module, record.removed_in_tree, record.dependencies);
    }
}

}  // namespace kmm::kmod
