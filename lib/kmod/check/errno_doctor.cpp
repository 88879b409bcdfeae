// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/errno_doctor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::kmod {

namespace {

constexpr std::array<ErrnoAdvice, 25> k_load{{
    {EPERM, "the kernel forbids loading modules here",
     "look at kmm-worker facts: capability, modules_disabled, lockdown, and module_blacklist= in /proc/cmdline"},
    {ENOENT, "a symbol that the module needs is not exported",
     "kmm-worker check names the symbols; add the missing module to the image or load it first"},
    {ESRCH, "a symbol has another version", "rebuild the module against the headers of the running kernel"},
    {EINTR, "the wait for another loader of the same module was interrupted", "run the same command again"},
    {EIO, "the module's init function reported an I/O error",
     "read the kernel's lines; the device or its firmware did not answer"},
    {ENOEXEC, "the module was built for another kernel, or exports a symbol that is exported already",
     "rebuild it against the headers of the running kernel; kmm-worker check shows both vermagic strings"},
    {EAGAIN, "the module's init function asked to try again",
     "run the same command again; read the kernel's lines if it persists"},
    {ENOMEM, "the kernel has no memory for the module",
     "free memory on the node, or unload modules that are not needed"},
    {EACCES, "a security module refused the file",
     "allow module loading for this context: SELinux module_load, IMA appraisal or LoadPin"},
    {EFAULT, "the module's init function used a bad address",
     "read the kernel's lines and report them to the module's authors"},
    {EBUSY, "another load or unload of the same module is under way",
     "wait and run the same command again; a module that stays in state coming needs a reboot"},
    {EEXIST, "a module of this name is live already", "kmm-worker status shows which build; unload it first"},
    {ENODEV, "the module loaded correctly but its init function found no device",
     "check that the hardware is there and enabled, or leave this node out"},
    {EINVAL, "a parameter value, a symbol version or the module's own init function",
     "check the parameters against modinfo, and read the kernel's lines"},
    {ENOSPC, "an area for modules or per-CPU data is full", "unload modules that are not needed"},
    {ENOSYS, "this kernel was built without loadable modules", "boot a kernel with CONFIG_MODULES=y"},
    {ENODATA, "the module is not signed and this kernel wants a signature",
     "sign the module with a key that this kernel trusts"},
    {ENOPKG, "the signature uses a digest that this kernel does not have",
     "sign the module with the digest of the kernel's configuration, e.g. sha256"},
    {EBADMSG, "the signature block of the module is damaged", "sign the module again, and do not strip it afterwards"},
    {ELIBBAD, "the module file is damaged", "build and sign the module again"},
    {ETIMEDOUT, "the module's init function timed out", "read the kernel's lines; the device did not answer in time"},
    {ENOKEY, "no key of this kernel verifies the module's signature",
     "enrol the signing key in the platform or machine owner keyring, or sign with a trusted key"},
    {EKEYEXPIRED, "the signing key has expired", "sign the module with a valid key"},
    {EKEYREVOKED, "the signing key was revoked", "sign the module with a key that this kernel trusts"},
    {EKEYREJECTED, "the kernel rejected the module's signature",
     "sign the module with a key that this kernel trusts: the signature is missing, damaged or by an unknown key"},
}};

constexpr std::array<ErrnoAdvice, 8> k_unload{{
    {EPERM, "the kernel forbids unloading modules here",
     "run as root with CAP_SYS_MODULE; modules_disabled=1 lasts until the next boot"},
    {ENOENT, "no such module is live", "nothing to do"},
    {EINTR, "the wait was interrupted", "run the same command again"},
    {EAGAIN, "the module is in use", "stop its users, then run the same command again"},
    {EACCES, "a security module refused", "allow module unloading for this context"},
    {EFAULT, "the kernel could not read the name", "report this as a fault of this tool"},
    {EBUSY, "the module is being loaded or unloaded, or has no exit function",
     "a module without an exit function stays until the node is rebooted"},
    {ENOSYS, "this kernel was built without unloading of modules", "boot a kernel with CONFIG_MODULE_UNLOAD=y"},
}};

template <std::size_t N>
const ErrnoAdvice* row_of(const std::array<ErrnoAdvice, N>& table, int number) noexcept {
    const auto it =
        std::find_if(table.begin(), table.end(), [&](const ErrnoAdvice& row) { return row.number == number; });
    return it == table.end() ? nullptr : &*it;
}

}  // namespace

std::span<const ErrnoAdvice> load_errnos() noexcept { return k_load; }
std::span<const ErrnoAdvice> unload_errnos() noexcept { return k_unload; }

ErrnoAdvice load_advice(int number) noexcept {
    if (const auto* row = row_of(k_load, number)) return *row;
    return {number, "the module's init function returned this error",
            "read the kernel's lines, and the documentation of the module"};
}

ErrnoAdvice unload_advice(int number) noexcept {
    if (const auto* row = row_of(k_unload, number)) return *row;
    return {number, "the kernel refused to unload the module", "read the kernel's lines"};
}

std::string_view to_string(Applies applies) noexcept {
    switch (applies) {
        case Applies::yes: return "yes";
        case Applies::no: return "no";
        case Applies::unknown: return "unknown";
    }
    return "unknown";
}

bool all_excluded(const std::vector<Cause>& causes) {
    const bool tested =
        std::any_of(causes.begin(), causes.end(), [](const Cause& cause) { return cause.applies == Applies::no; });
    return tested && std::all_of(causes.begin(), causes.end(), [](const Cause& cause) {
               return cause.applies == Applies::no || (cause.applies == Applies::unknown && cause.evidence.empty());
           });
}

bool is_signature_errno(int number) noexcept {
    return number == ENOKEY || number == ENODATA || number == EKEYREJECTED || number == EKEYEXPIRED ||
           number == EKEYREVOKED;
}

std::string likeliest_cause(const std::vector<Cause>& causes, int number) {
    const auto it =
        std::find_if(causes.begin(), causes.end(), [](const Cause& cause) { return cause.applies == Applies::yes; });
    if (it == causes.end()) return std::string(load_advice(number).cause);
    return it->text + (it->evidence.empty() ? "" : ": " + it->evidence);
}

int errno_number(std::string_view text) {
    if (text.starts_with('-')) text.remove_prefix(1);  // as the kernel logs it
    if (const auto number = base::parse_number<int>(text)) return *number > 0 && *number < 4096 ? *number : 0;
    const std::string wanted = base::to_lower(text);
    if (!wanted.starts_with("e")) return 0;
    for (int candidate = 1; candidate < 600; ++candidate) {
        if (base::to_lower(errno_name(candidate)) == wanted) return candidate;
    }
    return wanted == "ewouldblock" ? EAGAIN : 0;
}

}  // namespace kmm::kmod
