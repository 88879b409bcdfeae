// SPDX-License-Identifier: Apache-2.0
// Whether the kernel finds and can read the firmware that modules name.
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/host/firmware.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"

namespace kmm::kmod {

namespace fs = std::filesystem;

namespace {

/// A path here below the host's root, by links as the host has them; any other one as it is.
std::string through_links(const HostPaths& host, const std::string& path) {
    return !host.root.empty() && path.starts_with(host.root + "/") ? here_of(host, on_host(host, path)) : path;
}

}  // namespace

std::vector<std::string> firmware_directories(const HostPaths& host, const std::string& release) {
    const std::string root = host.etc.ends_with("/etc") ? host.etc.substr(0, host.etc.size() - 4) : std::string();
    std::vector<std::string> directories;
    if (const std::string custom = firmware_search_path(host); !custom.empty())
        directories.push_back(here_of(host, custom));
    const std::string base = root + "/lib/firmware";
    for (const std::string& below : {"/updates/" + release, std::string("/updates"), "/" + release, std::string()})
        directories.push_back(through_links(host, base + below));
    return directories;
}

std::vector<std::string> firmware_before(const HostPaths& host, const std::string& to,
                                         const std::vector<FirmwareFile>& installed) {
    std::vector<std::string> found;
    std::set<std::string> seen;
    for (const auto& directory : firmware_directories(host, node_facts(host).kernel)) {
        std::error_code error;
        if (directory == to || fs::equivalent(directory, to, error)) break;
        for (const auto& file : installed) {
            const std::string path = directory + "/" + file.name;
            const std::string there = fs::canonical(through_links(host, path), error).native();
            if (error || !fs::is_regular_file(there, error) || !seen.insert(file.name).second) continue;
            if (digest::sha256_hex(read_module_bytes(there)) == file.sha256) continue;
            found.push_back(on_host(host, path));
        }
    }
    return found;
}

std::vector<std::string> firmware_instead(const HostPaths& host, const std::vector<FirmwareFile>& installed) {
    std::vector<std::string> found;
    std::set<std::string> names;
    for (const auto& file : installed) names.insert(file.name);
    const auto directories = firmware_directories(host, node_facts(host).kernel);
    const auto place_of = [&](const std::string& name) {
        const auto first = std::find_if(directories.begin(), directories.end(), [&](const std::string& directory) {
            std::error_code error;
            return fs::is_regular_file(through_links(host, directory + "/" + name), error);
        });
        return first == directories.end() ? std::string() : on_host(host, *first + "/" + name);
    };
    std::optional<bool> zstd;  // read from a large file, and only where it matters
    for (const auto& file : installed) {
        const bool xz = file.name.ends_with(".xz");
        if (!xz && !file.name.ends_with(".zst")) continue;
        const std::string plain = file.name.substr(0, file.name.rfind('.'));
        if (names.contains(plain) || (xz && names.contains(plain + ".zst"))) continue;  // the image has both
        std::string place = place_of(plain);
        if (place.empty() && xz && !place_of(plain + ".zst").empty()) {
            if (!zstd) {
                const auto named = kernel_functions(host, {"fw_decompress_zstd"});
                zstd = named && !named->empty();
            }
            if (*zstd) place = place_of(plain + ".zst");
        }
        if (!place.empty()) found.push_back(std::move(place));
    }
    return found;
}

namespace {

/// True for a name with wildcards, which tools that build an initrd expand; the kernel never asks for it.
bool is_pattern(const std::string& file) { return file.find_first_of("*?[") != std::string::npos; }

/// Whether `directory` has a file that the pattern `file` means. Wildcards before the last / are not looked for, and
/// taken as met.
bool has_match(const HostPaths& host, const std::string& directory, const std::string& file) {
    const std::size_t slash = file.rfind('/');
    const std::string place = slash == std::string::npos ? std::string() : "/" + file.substr(0, slash);
    const std::string pattern = slash == std::string::npos ? file : file.substr(slash + 1);
    if (is_pattern(place)) return true;
    std::error_code error;
    fs::directory_iterator it(through_links(host, directory + place), error);
    for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
        if (::fnmatch(pattern.c_str(), it->path().filename().c_str(), 0) == 0) return true;
    }
    return false;
}

}  // namespace

std::vector<std::string> firmware_forms(const HostPaths& host, const std::vector<std::string>& directories,
                                        const std::string& file) {
    std::vector<std::string> forms;
    for (const char* ending : {"", ".xz", ".zst", ".gz"}) {
        const bool there = std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
            std::error_code error;
            if (is_pattern(file)) return has_match(host, directory, file + ending);
            return fs::exists(through_links(host, directory + "/" + file + ending), error);
        });
        if (there) forms.emplace_back(ending);
    }
    return forms;
}

namespace {

bool before_release(const std::string& release, int major_number, int minor_number) {
    const auto pieces = base::split(release, '.');
    const auto number = [&](std::size_t at) {
        const std::string_view piece = pieces.size() > at ? pieces[at] : std::string_view();
        return base::parse_number<int>(piece.substr(0, piece.find_first_not_of("0123456789"))).value_or(0);
    };
    return std::pair(number(0), number(1)) < std::pair(major_number, minor_number);
}

/// Whether the kernel decompresses firmware files with this ending; nullopt if that is not known. Source: Linux
/// drivers/base/firmware_loader.
std::optional<bool> reads_firmware(const CheckInput& input, const std::string& ending) {
    if (ending.empty()) return true;
    if (ending == ".gz") return false;
    if (const auto any = kernel_option(input, "CONFIG_FW_LOADER_COMPRESS")) {
        if (!*any) return false;
        if (kernel_option(input, "CONFIG_FW_LOADER_COMPRESS_ZSTD") == true && ending == ".zst") return true;
        if (kernel_option(input, "CONFIG_FW_LOADER_COMPRESS_XZ") == true && ending == ".xz") return true;
        return ending == ".xz" && before_release(input.facts.kernel, 5, 19);  // which has no choice
    }
    if (ending == ".zst" && before_release(input.facts.kernel, 5, 19)) return false;
    const std::string function = ending == ".zst" ? "fw_decompress_zstd" : "fw_decompress_xz";
    const auto named = kernel_functions(input.host, {"fw_decompress_zstd", "fw_decompress_xz"});
    if (named && !named->empty()) return named->contains(function);  // with neither, they may have other names here
    return std::nullopt;
}

/// Why the kernel refuses the file at `place`, or what decompresses files with this ending does; "" if neither does, as
/// far as its beginning shows. Sources: Linux kernel_read_file; lib/xz, which is built without CRC64 and SHA-256.
std::string firmware_fault(const std::string& place, std::string_view ending) {
    std::error_code error;
    if (fs::is_directory(place, error)) return "it is a directory";
    if (!fs::is_regular_file(place, error)) return "it is not a regular file";
    constexpr std::size_t k_head = 8;  // of xz: six bytes that are always the same, one that is 0, the check
    std::ifstream file(place, std::ios::binary);
    std::string head(k_head, '\0');
    file.read(head.data(), k_head);
    if (file.bad() || !file.is_open()) return {};  // to be told by whoever needs it
    head.resize(static_cast<std::size_t>(file.gcount()));
    if (head.empty()) return "it is empty";
    if (ending.empty()) return {};
    const std::string form = compression_name(head);
    if (ending == ".zst" && form != "zstd") return "it is not a zstd file";
    if (ending != ".xz") return {};
    constexpr char k_crc32 = 1;
    if (form != "xz" || head.size() < k_head) return "it is not an xz file";
    return head[k_head - 1] > k_crc32 ? "its check is none that the kernel knows, as xz --check=crc32 makes it"
                                      : std::string();
}

/// Firmware as the kernel would find it in a form that it decompresses, or may.
struct FirmwareSearch {
    bool is_taken = false;
    std::string fault;  ///< of the first file that is not taken: its place, and why
};

FirmwareSearch search_firmware(const CheckInput& input, const std::vector<std::string>& directories,
                               const std::string& file, const std::vector<std::string>& forms) {
    FirmwareSearch search;
    for (const auto& form : forms) {
        if (reads_firmware(input, form) == false) continue;
        for (const auto& directory : directories) {
            const std::string place = through_links(input.host, directory + "/" + file + form);
            std::error_code error;
            if (!is_pattern(file) && !fs::exists(place, error)) continue;
            const std::string fault = is_pattern(file) ? std::string() : firmware_fault(place, form);
            search.is_taken = search.is_taken || fault.empty();
            if (search.fault.empty() && !fault.empty()) {
                const bool is_of_image = directory == input.request.firmware;
                search.fault = fmt::format("{}: {}", base::escape(is_of_image ? file + form + " of the image"
                                                                              : on_host(input.host, place)),
                                           fault);
            }
        }
    }
    return search;
}

}  // namespace

void check_firmware_files(const CheckInput& input, Diagnostics& findings) {
    std::vector<std::string> directories = firmware_directories(input.host, input.facts.kernel);
    if (!input.request.firmware.empty()) directories.insert(directories.begin(), input.request.firmware);
    for (const auto& name : input.found.order.names) {
        std::vector<std::string> missing;
        for (const auto& file : input.index.find(name)->file.info_all("firmware")) {
            const auto forms = firmware_forms(input.host, directories, file);
            if (forms.empty() && std::find(missing.begin(), missing.end(), file) == missing.end())
                missing.push_back(file);
            if (forms.empty()) continue;
            const auto search = search_firmware(input, directories, file, forms);
            if (search.is_taken) continue;
            if (!search.fault.empty()) {
                add_finding(findings, Severity::warning, "firmware-unreadable",
                            fmt::format("module {} may ask for firmware {}, and the kernel does not take {}", name,
                                        base::escape(file), search.fault),
                            "put the file there that the device needs, as its vendor has it");
                continue;
            }
            add_finding(
                findings, Severity::warning, "firmware-compressed",
                fmt::format(
                    "module {} may ask for firmware {}, and only {}{} is there, which kernel {} does not decompress",
                    name, base::escape(file), base::escape(file), forms.front(), input.facts.kernel),
                "put the file into the image as it is, not compressed");
        }
        if (missing.empty()) continue;
        add_finding(findings, Severity::warning, "firmware-missing",
                    fmt::format("module {} may ask for firmware that is neither in the image nor on this host: {}",
                                name, first_of(missing)),
                    "put it into the image and set firmwarePath, if this node's device needs it");
    }
}

}  // namespace kmm::kmod
