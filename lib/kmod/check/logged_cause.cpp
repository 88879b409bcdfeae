// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/logged_cause.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/host/host_tree.hpp"

namespace kmm::kmod {

namespace {

/// What stands between the two, "" if they are not there.
std::string text_between(const std::string& line, std::string_view before, std::string_view after) {
    const auto from = line.find(before);
    if (from == std::string::npos) return {};
    const auto at = from + before.size();
    const auto end = line.find(after, at);
    return end == std::string::npos ? std::string() : line.substr(at, end - at);
}

/// A member of a line of audit. The integrity subsystem of Linux 4.18 and older puts quotes around each.
std::string audit_member(const std::string& line, const std::string& key) {
    const std::string quoted = text_between(line, " " + key + "=\"", "\"");
    return quoted.empty() ? text_between(line + " ", " " + key + "=", " ") : quoted;
}

/// Of "Error: Driver 'acme' is already registered, aborting...", "" of other lines.
std::string registered_driver(const std::string& line) {
    return text_between(line, "Error: Driver '", "' is already registered");
}

/// Of "sysfs: cannot create duplicate filename '/bus/pci/drivers/acme'", "kobject: kobject_add_internal failed for acme
/// with -EEXIST, ...", "proc_dir_entry 'driver/acme' already registered"; "" of other lines.
std::string registered_name(const std::string& line) {
    for (const auto& [before, after] : {std::pair("sysfs: cannot create duplicate filename '", "'"),
                                        std::pair("kobject_add_internal failed for ", " with -EEXIST"),
                                        std::pair("proc_dir_entry '", "' already registered")}) {
        if (std::string name = text_between(line, before, after); !name.empty()) return name;
    }
    return {};
}

bool is_of_address_space(const std::string& line) {
    return line.find("vmap allocation for size ") != std::string::npos ||
           line.find("worker: vmalloc error: size ") != std::string::npos;
}

/// A line that says all by itself.
struct PlainForm {
    std::string_view form, cause, hint;
};

constexpr PlainForm k_plain_forms[] = {
    {".gnu.linkonce.this_module section size must match",
     "struct module has another size in this kernel: the headers were of another configuration",
     "rebuild it against the headers of the running kernel, which were made with its configuration"},
    {"likely not compiled with -mcmodel=kernel", "the module was not compiled as code of the kernel",
     "rebuild it with the kernel's own build system (make -C /lib/modules/KERNEL/build M=DIR)"},
    {"is marked as livepatch module, but livepatch support is disabled",
     "the module is a live patch, and this kernel was built without CONFIG_LIVEPATCH",
     "leave it out, or boot a kernel with live patching"},
    {"not supported by SUSE, refusing to load",
     "this kernel refuses modules that SUSE does not support: kernel.unsupported is 0",
     "set the node's sysctl kernel.unsupported to 1, which marks its kernel as unsupported"},
    {"Invalid architecture in ELF header: ", "the module is for another architecture",
     "build the image for this architecture"},
    {"Invalid ELF ", "the kernel finds the structure of the module's file damaged",
     "build and sign the module again; do not strip or pack it with other tools"},
    {" section(s) missing", "the module was linked without the linker script of its kernel",
     "rebuild it with the kernel's own build system (make -C /lib/modules/KERNEL/build M=DIR)"},
    {": doesn't contain .toc or .stubs", "the module was linked without the linker script of its kernel",
     "rebuild it with the kernel's own build system (make -C /lib/modules/KERNEL/build M=DIR)"},
    {" bytes percpu data", "the area for per-CPU data of modules is full",
     "unload modules that are not needed, or reboot the node"},
};

constexpr std::string_view k_relocation_forms[] = {
    "Skipping invalid relocation target", "nknown rela relocation: ", "nsupported RELA relocation: ",
    "nknown relocation: ", "nknown ELF relocation: ", "verflow in relocation type ",
    "nknown ADD relocation: ", ": REL24 "};

}  // namespace

LoggedCause security_refusal(const std::string& line) {
    if (line.find("LoadPin: kernel-module ") != std::string::npos && line.find(" denied") != std::string::npos)
        return {"LoadPin refuses modules that are not on the root file system",
                "load it from there, or boot the node with loadpin.enforce=0"};
    if (line.find("comm=\"kmm-worker\"") == std::string::npos) return {};
    const std::string denied = text_between(line, "denied  { ", " }");
    if (const std::string reason = text_between(line, "lockdown_reason=\"", "\""); !denied.empty() && !reason.empty())
        return {fmt::format("SELinux denies what it takes for lockdown: {}", base::escape(reason)),
                "sign the module, or allow the class lockdown in the node's policy: kernels before 5.16 ask it"};
    if (!denied.empty())
        return {fmt::format("SELinux denied {} to {}", base::escape(denied),
                            base::escape(text_between(line, "scontext=", " "))),
                "in a Pod: securityContext.seLinuxOptions.type: spc_t; else allow it in the node's policy"};
    if (line.find("apparmor=\"DENIED\"") != std::string::npos && line.find("sys_module") != std::string::npos)
        return {fmt::format("AppArmor denies CAP_SYS_MODULE to the profile {}",
                            base::escape(text_between(line, "profile=\"", "\""))),
                "in a Pod: securityContext.appArmorProfile.type: Unconfined; else allow it in that profile"};
    if (audit_member(line, "op") == "appraise_data")
        return {fmt::format("IMA appraisal refused the file: {}", base::escape(audit_member(line, "cause"))),
                "sign the module's file for IMA, or exempt MODULE_CHECK in the node's policy"};
    return {};
}

bool is_of_signatures(const std::string& line) {
    return (line.find("Loading of ") != std::string::npos && line.ends_with(" is rejected")) ||
           line.starts_with("Request for unknown module key ");
}

LoggedCause logged_signature(const std::vector<std::string>& lines) {
    const auto any_has = [&](std::string_view words) {
        return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
            return is_of_signatures(line) && line.find(words) != std::string::npos;
        });
    };
    if (any_has("unsigned module"))
        return {"the module is not signed, and this kernel wants signatures",
                "sign the module with a key that this kernel trusts"};
    if (any_has("unsupported crypto"))
        return {"this kernel does not have the digest or the kind of key of the module's signature",
                "sign the module with the digest of the kernel's configuration, e.g. sha256"};
    if (any_has("unavailable key") || any_has("unknown module key"))
        return {"no key of this kernel fits the module's signature",
                "enrol the signing key (mokutil --import), or sign the module with a trusted one"};
    return {};
}

bool is_of_lockdown(const std::string& line) {
    return line.find("Lockdown: kmm-worker: ") != std::string::npos && line.find(" is restricted") != std::string::npos;
}

bool is_of_any_load(const std::string& line) {
    return line.find("Skipping invalid relocation target") != std::string::npos || !registered_driver(line).empty() ||
           !security_refusal(line).cause.empty() || is_of_address_space(line) || !registered_name(line).empty() ||
           line.starts_with("Invalid ELF ") || line.starts_with("Invalid architecture in ELF header: ");
}

std::string refused_parameter(const std::vector<std::string>& lines) {
    constexpr std::string_view marker = " for parameter `";
    for (const auto& line : lines) {
        const auto at = line.find(marker);
        if (at == std::string::npos) continue;
        const std::string rest = line.substr(at + marker.size());
        return base::escape(rest.substr(0, rest.find('\'')));
    }
    return {};
}

namespace {

/// The cause of lines that are not about a symbol: "demo: version magic 'A' should be 'B'", "Module demo is
/// blacklisted", and of lockdown "Lockdown: kmm-worker: unsigned module loading is restricted; see man
/// kernel_lockdown.7".
LoggedCause told_plainly(const std::string& line) {
    constexpr std::string_view magic = "version magic '";
    constexpr std::string_view wanted = "' should be '";
    const auto at = line.find(magic);
    const auto other = line.find(wanted);
    if (at != std::string::npos && other != std::string::npos && other > at) {
        std::string theirs = line.substr(other + wanted.size());
        theirs = theirs.substr(0, theirs.rfind('\''));
        const std::string ours = line.substr(at + magic.size(), other - at - magic.size());
        return {
            fmt::format("the module was built for another kernel: vermagic '{}', this one wants '{}', differing: {}",
                        base::escape(ours), base::escape(theirs),
                        base::escape(base::join(vermagic_differences(ours, theirs), ", "))),
            "rebuild it against the headers of the running kernel"};
    }
    if (line.starts_with("Module ") && line.ends_with(" is blacklisted")) {
        return {"module_blacklist= on the kernel command line names it", "remove it there and reboot the node"};
    }
    constexpr std::string_view twice = ": exports duplicate symbol ";
    constexpr std::string_view owned = " (owned by ";
    const auto from = line.find(twice);
    const auto by = line.find(owned);
    if (from != std::string::npos && by != std::string::npos && by > from + twice.size()) {
        const std::string symbol = line.substr(from + twice.size(), by - from - twice.size());
        const std::string owner = line.substr(by + owned.size(), line.find(')', by) - by - owned.size());
        const bool of_kernel = owner == "kernel";
        return {fmt::format("symbol {}, which the module exports, is exported by {} already", base::escape(symbol),
                            of_kernel ? "the kernel itself" : "module " + base::escape(owner)),
                of_kernel
                    ? "build the module without it: this kernel has it built in"
                    : fmt::format("unload {} first: list it in inTreeModulesToRemove, or kmm-worker unload --module {}",
                                  base::escape(owner), base::escape(owner))};
    }
    if (line.find("failed to validate module [") != std::string::npos && line.find("] BTF: ") != std::string::npos)
        return {"the module's BTF is of another build of the kernel, which refuses the module for it",
                "rebuild it beside the vmlinux of the running kernel, or remove its section .BTF before it is signed"};
    for (const auto& [form, cause, hint] : k_plain_forms) {
        if (line.find(form) != std::string::npos) return {std::string(cause), std::string(hint)};
    }
    for (const std::string_view form : k_relocation_forms) {
        if (line.find(form) != std::string::npos)
            return {"the module has a relocation that this kernel cannot apply",
                    "rebuild it with the compiler and binutils that the kernel's headers were made for"};
    }
    if (is_of_address_space(line))
        return {"the kernel has no room left in the range of addresses that modules get",
                "unload modules that are not needed, or reboot the node"};
    if (const std::string twin = registered_name(line); !twin.empty())
        return {fmt::format("its init function registers {}, which somebody has registered already",
                            base::escape(twin)),
                "unload the module that has it first: list it in inTreeModulesToRemove"};
    if (LoggedCause refusal = security_refusal(line); !refusal.cause.empty()) return refusal;
    if (const std::string driver = registered_driver(line); !driver.empty())
        return {fmt::format("a driver {} is registered already, by another module or by the kernel itself",
                            base::escape(driver)),
                "unload the module that has it first: list it in inTreeModulesToRemove"};
    if (const std::string owner = text_between(line, "from proprietary module ", "."); !owner.empty())
        return {
            fmt::format("the module uses GPL-only symbols and symbols of the proprietary module {}, and may use one "
                        "of the two only",
                        base::escape(owner)),
            fmt::format("use a build of {} with a GPL-compatible license", base::escape(owner))};
    if (const std::string waiting = text_between(line, "gave up waiting for init of module ", "."); !waiting.empty())
        return {fmt::format("module {}, whose symbols it needs, does not finish its init", base::escape(waiting)),
                fmt::format("kmm-worker status {} shows it; read the kernel's lines of that module",
                            base::escape(waiting))};
    if (!is_of_lockdown(line)) return {};
    const std::string what = text_between(line, "Lockdown: kmm-worker: ", " is restricted");
    if (what == "unsigned module loading")
        return {"lockdown refuses modules without a valid signature",
                "sign the module with a key that this kernel trusts"};
    if (what == "unsafe module parameters")
        return {"lockdown refuses a parameter that the module marks as unsafe",
                "leave it out: of the Module's parameters, and of the options that this host adds"};
    return {fmt::format("lockdown refuses what the module does: {}", base::escape(what)),
            "boot the node without lockdown, or leave it out"};
}

}  // namespace

/// "demo: disagrees about version of symbol S", "demo: module uses symbol (S) from namespace N, but does not import
/// it."; of a symbol that was found and refused for a reason that no line tells, only that.
LoggedCause logged_cause(const std::vector<std::string>& lines, const ModuleFile& file, const HostPaths& host,
                         const std::string& directory) {
    constexpr std::string_view version = "disagrees about version of symbol ";
    constexpr std::string_view use = "module uses symbol ";
    constexpr std::string_view space = " from namespace ";
    const auto word_at = [](const std::string& line, std::size_t at) {
        return line.substr(at, line.find_first_of(" ,", at) - at);
    };
    for (const auto& line : lines) {
        if (const auto at = line.find(version); at != std::string::npos) {
            const std::string symbol = word_at(line, at + version.size());
            const auto crc = file.crcs.find(symbol);
            const auto owners = exporters_of(host, {symbol});
            if (const auto owner = owners ? owners->find(symbol) : std::map<std::string, std::string>::const_iterator{};
                owners && owner != owners->end() && !owner->second.empty())
                return {fmt::format("symbol {} of module {} has another version (CRC) than the module was built for",
                                    base::escape(symbol), base::escape(owner->second)),
                        fmt::format("rebuild it against the build of {0} that is live (its Module.symvers), or load "
                                    "the {0} that it was built for",
                                    base::escape(owner->second))};
            const auto known = header_crcs(directory);
            const auto actual = known.find(symbol);
            return {fmt::format("symbol {} has another version (CRC) in this kernel{}{}", base::escape(symbol),
                                actual == known.end() ? "" : fmt::format(", {:#010x}", actual->second),
                                crc ? fmt::format(", the module wants {:#010x}", *crc) : ""),
                    "rebuild the module, and what it needs, against the headers of the running kernel"};
        }
        if (LoggedCause told = told_plainly(line); !told.cause.empty()) return told;
        const auto at = line.find(use);
        const auto from = line.find(space);
        if (at == std::string::npos || from == std::string::npos) continue;
        std::string symbol = word_at(line, at + use.size());
        std::erase_if(symbol, [](char c) { return c == '(' || c == ')'; });
        constexpr std::string_view only = "module:";
        if (const std::string users = text_between(line, space, " but does"); users.starts_with(only))
            return {fmt::format("symbol {} is exported to the modules {} only", base::escape(symbol),
                                base::escape(users.substr(only.size(), users.size() - only.size() - 1))),
                    "build the module without it: no import makes it fit"};
        const std::string name = base::escape(word_at(line, from + space.size()));
        return {fmt::format("the module uses symbol {} of namespace {}, which it does not import", base::escape(symbol),
                            name),
                fmt::format("add MODULE_IMPORT_NS for {} to the module's sources, and rebuild it", name)};
    }
    for (const auto& line : lines) {
        const auto at = line.find(k_unknown_symbol);
        if (at == std::string::npos || line.find(k_found_and_refused) == std::string::npos) continue;
        return {fmt::format("symbol {} is exported, and refused: its version (CRC) or its namespace does not fit",
                            base::escape(word_at(line, at + k_unknown_symbol.size()))),
                "rebuild the module, and what it needs, against the headers of the running kernel"};
    }
    return {};
}

/// "demo 0000:00:01.0: Direct firmware load for a.bin failed with error -2", with Debian's kernels "firmware: failed to
/// load a.bin (-2)". Drivers try one name after the other: the last one counts.
LoggedCause logged_firmware(const std::vector<std::string>& lines, const HostPaths& host, const std::string& release) {
    constexpr std::pair<std::string_view, std::string_view> forms[] = {
        {"Direct firmware load for ", " failed with error -"}, {"firmware: failed to load ", " (-"}};
    std::string file;
    int number = 0;
    for (const auto& line : lines) {
        for (const auto& [before, after] : forms) {
            const auto at = line.find(before);
            const auto end = line.rfind(after);
            if (at == std::string::npos || end == std::string::npos || end < at + before.size()) continue;
            const std::string_view digits = std::string_view(line).substr(end + after.size());
            const auto parsed = base::parse_number<int>(digits.substr(0, digits.find_first_not_of("0123456789")));
            if (!parsed) continue;
            file = line.substr(at + before.size(), end - at - before.size());
            number = *parsed;
        }
    }
    if (file.empty()) return {};
    if (number != ENOENT)
        return {fmt::format("firmware {} could not be loaded: {} ({})", base::escape(file), errno_text(number),
                            errno_name(number)),
                "look at that file, and at the kernel's lines"};
    for (const auto& ending : firmware_forms(host, firmware_directories(host, release), file)) {
        if (ending.empty()) continue;
        return {fmt::format("firmware {} was not found where the kernel looks for it: {}{} is there, which this kernel "
                            "does not decompress",
                            base::escape(file), base::escape(file), ending),
                "put the file into the image as it is, not compressed"};
    }
    return {
        fmt::format("firmware {} was not found where the kernel looks for it", base::escape(file)),
        "put it into the image and set modprobe.firmwarePath, and name its place on this host with --firmware-path"};
}

}  // namespace kmm::kmod
