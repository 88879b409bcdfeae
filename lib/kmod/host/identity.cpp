// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/ko/files.hpp"
#include "sys/file_ops.hpp"

namespace kmm::kmod {

namespace {

constexpr std::string_view k_bytes_key = "sha256";

std::string bytes_directory(const HostPaths& host) { return host.run + "/bytes"; }
std::string bytes_path(const HostPaths& host, const std::string& module) {
    return bytes_directory(host) + "/" + normalise_name(module);
}

/// Address of a live module's code as /proc/modules has it, "" where the kernel hides it (zeros).
std::string address_of(const HostPaths& host, const std::string& name) {
    const std::string text = read_text(host.proc + "/modules").value_or("");
    for (const auto line : base::split(text, '\n')) {
        const auto words = base::split(line, ' ');
        if (words.size() < 6 || words[0] != name) continue;
        const bool is_hidden = words[5].find_first_not_of("0x") == std::string_view::npos;
        return is_hidden ? std::string() : std::string(words[5]);
    }
    return {};
}

/// What tells one load from all others, as key and value; empty if it cannot be told. The address may be missing.
std::map<std::string, std::string> load_marks(const HostPaths& host, const std::string& module) {
    const std::string name = normalise_name(module);
    const std::string directory = host.sys + "/module/" + name;
    struct stat status {};
    const std::string boot_id = read_text(host.proc + "/sys/kernel/random/boot_id").value_or("");
    const std::string size = read_text(directory + "/coresize").value_or("");
    if (boot_id.empty() || size.empty() || ::stat(directory.c_str(), &status) != 0) return {};
    std::map<std::string, std::string> marks{
        {"boot-id", boot_id}, {"size", size}, {"directory", fmt::format("{}", status.st_ino)}};
    if (std::string srcversion = read_text(directory + "/srcversion").value_or(""); !srcversion.empty())
        marks.emplace("srcversion", std::move(srcversion));
    if (std::string address = address_of(host, name); !address.empty()) marks.emplace("address", std::move(address));
    return marks;
}

IdentityVerdict verdict_of(std::string what, const std::string& loaded, const std::string& wanted) {
    return IdentityVerdict{loaded == wanted ? Identity::same : Identity::different, std::move(what), loaded, wanted};
}

}  // namespace

IdentityVerdict compare_identity(const ModuleFile& file, const LiveModule& live) {
    const std::string srcversion = file.srcversion();
    const bool sources = !srcversion.empty() && !live.srcversion.empty();
    if (sources && live.srcversion != srcversion) return verdict_of("srcversion", live.srcversion, srcversion);
    if (!file.build_id.empty() && !live.build_id.empty()) return verdict_of("build id", live.build_id, file.build_id);
    if (sources) return verdict_of("srcversion", live.srcversion, srcversion);
    if (srcversion.empty() != live.srcversion.empty()) {
        return verdict_of("srcversion", live.srcversion.empty() ? "none" : live.srcversion,
                          srcversion.empty() ? "none" : srcversion);
    }
    const auto origin = [](bool in_tree) {
        return std::string(in_tree ? "in-tree" : "out-of-tree");
    };  // the kernel marks the latter with O
    const bool live_in_tree = !is_out_of_tree(live);
    const bool file_in_tree = file.in_tree();
    if (live_in_tree != file_in_tree) return verdict_of("origin", origin(live_in_tree), origin(file_in_tree));
    return IdentityVerdict{};
}

IdentityVerdict judge_identity(const HostPaths& host, const IndexedModule& module, const LiveModule& live) {
    const auto loaded = live.state == "live" ? loaded_sha256(host, live.name) : std::nullopt;
    if (!loaded) return compare_identity(module.file, live);
    return verdict_of("sha256", *loaded, code_sha256(module.file, plain_bytes(module)));
}

std::string same_by(const IdentityVerdict& verdict) {
    if (verdict.identity != Identity::same) return {};
    return verdict.what == "build id" ? "buildID" : verdict.what;
}

std::string same_by_text(std::string_view same_by) {
    if (same_by == "buildID") return "build id";
    return std::string(same_by == "srcversion" ? "srcversion only, no proof" : same_by);
}

std::string code_sha256(const ModuleFile& file, std::string_view plain) {
    const std::size_t tail = file.appended_signature.size();
    return digest::sha256_hex(plain.substr(0, plain.size() - std::min(tail, plain.size())));
}

void note_loaded_bytes(const HostPaths& host, const std::string& module, const std::string& sha256) {
    if (!is_module_name(module)) return;
    const auto marks = load_marks(host, module);
    if (marks.empty()) return forget_loaded_bytes(host, module);
    std::error_code error;
    std::filesystem::create_directories(bytes_directory(host), error);
    if (error) throw from_errno(error.value(), fmt::format("cannot create {}", bytes_directory(host)));
    (void)sys::remove_temp_files(bytes_directory(host));
    std::string text = fmt::format("{} {}\n", k_bytes_key, sha256);
    for (const auto& [key, value] : marks) text += fmt::format("{} {}\n", key, value);
    sys::LinuxFileOps ops;
    sys::write_file_atomically(ops, bytes_path(host, module), text);
}

void forget_loaded_bytes(const HostPaths& host, const std::string& module) {
    if (is_module_name(module)) (void)::unlink(bytes_path(host, module).c_str());
}

std::optional<std::string> loaded_sha256(const HostPaths& host, const std::string& module) {
    if (!is_module_name(module)) return std::nullopt;
    const auto text = read_raw(bytes_path(host, module), 4096);
    if (!text || !text->ends_with('\n')) return std::nullopt;
    std::map<std::string, std::string> noted;
    for (const auto line : base::split(*text, '\n')) {
        const auto blank = line.find(' ');
        if (blank != std::string_view::npos) noted.emplace(line.substr(0, blank), line.substr(blank + 1));
    }
    const auto marks = load_marks(host, module);
    const auto digest = noted.find(std::string(k_bytes_key));
    if (digest == noted.end() || digest->second.size() != 64 || marks.empty()) return std::nullopt;
    for (const auto& [key, value] : marks) {
        const auto it = noted.find(key);
        if (it == noted.end() ? key != "address" : it->second != value)
            return std::nullopt;  // either side may not be shown the address
    }
    return digest->second;
}

}  // namespace kmm::kmod
