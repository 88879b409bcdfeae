// SPDX-License-Identifier: Apache-2.0
#include "kernel/interface.hpp"


#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::kernel {

namespace {

std::string_view base_name(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

[[noreturn]] void bad_line(const std::string& file, std::size_t line, std::string_view text) {
    throw Error(
        Exit::data, "bad-symvers",
        fmt::format("expected CRC, symbol, module and export type parted by tabs, found '{}'", text.substr(0, 80)))
        .at(Position{file, line, 1})
        .hint("name the Module.symvers of the kernel's build, or the package that holds it");
}

/// "" and "n" count as absent: the set of options that are y or m.
std::set<std::string> switches(std::string_view text) {
    std::set<std::string> on;
    for (const auto line : base::split(text, '\n')) {
        if (line.starts_with("CONFIG_") && line.ends_with("=y")) on.emplace(line.substr(7, line.size() - 9));
    }
    return on;
}

}  // namespace

void read_symvers(std::string_view text, const std::string& file, Interface& to) {
    std::size_t number = 0;
    for (const auto line : base::split(text, '\n')) {
        ++number;
        if (line.empty()) continue;
        const auto fields = base::split(line, '\t');
        if (fields.size() < 4 || !fields[0].starts_with("0x") || fields[1].empty()) bad_line(file, number, line);
        Export entry;
        const auto crc = base::parse_number<decltype(entry.crc)>(fields[0].substr(2), 16);
        if (!crc) bad_line(file, number, line);
        entry.crc = *crc;
        entry.owner = fields[2];
        entry.gpl_only = fields[3].find("_GPL") != std::string_view::npos;
        if (fields.size() > 4) entry.ns = fields[4];
        if (entry.owner != "vmlinux") to.modules.insert(kmod::normalise_name(base_name(entry.owner)));
        to.exports.emplace(std::string(fields[1]), std::move(entry));
    }
    if (to.exports.empty())
        throw Error(Exit::data, "bad-symvers", "expected exported symbols, found none").at(Position{file, 0, 0});
}

void read_configuration(std::string_view text, Interface& to) {
    const auto on = switches(text);
    const auto has = [&](const char* name) { return on.contains(name); };
    to.signatures_forced = has("MODULE_SIG_FORCE");
    if (!on.empty()) to.signatures_checked = to.signatures_forced || has("MODULE_SIG");
    to.lenient_namespaces = has("MODULE_ALLOW_MISSING_NAMESPACE_IMPORTS");
    std::string arch_word;
    if (has("X86_64")) {
        to.architecture = "amd64";
    } else if (has("ARM64")) {
        to.architecture = "arm64";
        arch_word = "aarch64 ";
    } else {
        return;
    }
    const bool randomised = has("GCC_PLUGIN_RANDSTRUCT") || has("RANDSTRUCT_FULL") || has("RANDSTRUCT_PERFORMANCE");
    if (to.release.empty() || randomised || on.empty()) return;
    to.vermagic = to.release + " ";
    if (has("SMP")) to.vermagic += "SMP ";
    // A preemptible kernel is named by PREEMPT_BUILD since 5.16, by PREEMPT before.
    if (has("PREEMPT_RT")) {
        to.vermagic += "preempt_rt ";
    } else if (has("PREEMPT_BUILD") || has("PREEMPT")) {
        to.vermagic += "preempt ";
    }
    if (has("MODULE_UNLOAD")) to.vermagic += "mod_unload ";
    if (has("MODVERSIONS")) to.vermagic += "modversions ";
    to.vermagic = std::string(base::trim(to.vermagic + arch_word));
}

std::string text_of(const Interface& interface) {
    const auto& checked = interface.signatures_checked;
    std::string text = fmt::format("{}\n{}\n{}\n{} {} {} {}\n", interface.release, interface.vermagic,
                                   interface.architecture, interface.signatures_forced, checked ? *checked ? 1 : 0 : -1,
                                   interface.missing_versions == kmod::MissingVersions::refused,
                                   interface.lenient_namespaces);
    for (const auto& [symbol, entry] : interface.exports)
        text += fmt::format("{} {:08x} {} {} {}\n", symbol, entry.crc, entry.owner, entry.gpl_only, entry.ns);
    return text;
}

std::string release_of_header(std::string_view text) {
    constexpr std::string_view k_define = "#define UTS_RELEASE \"";
    const auto begin = text.find(k_define);
    if (begin == std::string_view::npos) return {};
    const auto value = text.substr(begin + k_define.size());
    const auto end = value.find('"');
    return end == std::string_view::npos ? std::string() : std::string(value.substr(0, end));
}

}  // namespace kmm::kernel
