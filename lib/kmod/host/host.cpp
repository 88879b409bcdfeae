// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/host.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_taint_letters = "PFSRMBUDAWCIOELKXTNJ";
constexpr unsigned k_cap_sys_module = 16;

std::string text_or(const std::string& path, std::string fallback = {}) {
    return read_text(path).value_or(std::move(fallback));
}

std::string go_architecture() {
    utsname name{};
    return ::uname(&name) == 0 ? architecture_of(name.machine) : "unknown";
}

std::string os_image(const HostPaths& host) {
    const std::string text =
        text_or(host.root.empty() ? host.etc + "/os-release" : here_of(host, "/etc/os-release"));
    for (const auto line : base::split(text, '\n')) {
        if (!line.starts_with("PRETTY_NAME=")) continue;
        std::string_view value = base::trim(line.substr(12));
        if (value.size() >= 2 && (value.front() == '"' || value.front() == '\''))
            value = value.substr(1, value.size() - 2);
        return std::string(value);
    }
    return "";
}

/// The word in brackets of "none [integrity] confidentiality".
std::string bracketed(const std::string& text) {
    const auto open = text.find('[');
    const auto close = text.find(']', open == std::string::npos ? 0 : open);
    if (open == std::string::npos || close == std::string::npos) return "unavailable";
    return text.substr(open + 1, close - open - 1);
}

/// Whether a load by this user on this host may ask the kernel. A check gives its capabilities up before it looks at an
/// image, but a program that root starts has all that the bounding set allows.
bool has_capability(const HostPaths& host) {
    const std::string status = text_or(host.proc + "/self/status");
    std::string_view uids, effective, bounding;
    for (const auto line : base::split(status, '\n')) {
        if (line.starts_with("Uid:")) { uids = base::trim(line.substr(4)); }
        if (line.starts_with("CapEff:")) { effective = base::trim(line.substr(7)); }
        if (line.starts_with("CapBnd:")) { bounding = base::trim(line.substr(7)); }
    }
    const auto fields = base::split(uids, '\t');  // real, effective, saved, of the file system
    const bool is_root = fields.size() > 1 && fields[1] == "0";
    const auto bits = base::parse_number<std::uint64_t>(is_root && !bounding.empty() ? bounding : effective, 16);
    return bits && ((*bits >> k_cap_sys_module) & 1U) != 0;
}

std::vector<std::string> entries_of(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
        names.push_back(it->path().filename().native());
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// Hex of the build id in a raw ELF note, "" when it is none.
std::string build_id_of_note(const std::string& note) {
    if (note.size() < 16) return {};
    const auto word = [&](std::size_t at) {
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < 4; ++i)
            value |= static_cast<std::uint32_t>(static_cast<unsigned char>(note[at + i])) << (8 * i);
        return value;
    };
    const std::size_t name_bytes = word(0);
    const std::size_t id_bytes = word(4);
    if (word(8) != 3 || name_bytes > 64 || id_bytes > 64) return {};
    const std::size_t at = 12 + ((name_bytes + 3) & ~std::size_t{3});
    if (note.size() < at + id_bytes) return {};
    const std::vector<std::uint8_t> raw(note.begin() + static_cast<std::ptrdiff_t>(at),
                                        note.begin() + static_cast<std::ptrdiff_t>(at + id_bytes));
    return base::to_hex(raw);
}

/// Users and state of a module in /proc/modules; both "" if it is not there.
struct ProcLine {
    std::string users, state;
};

ProcLine line_in_proc(const HostPaths& host, const std::string& name) {
    const std::string text = text_or(host.proc + "/modules");
    for (const auto line : base::split(text, '\n')) {
        const auto words = base::split(line, ' ');
        if (words.size() >= 5 && words[0] == name)
            return {std::string(words[3]), words[4] == "Live" ? "live" : words[4] == "Loading" ? "coming" : "going"};
    }
    return {};
}

}  // namespace

std::string architecture_of(const std::string& machine) {
    if (machine == "x86_64") return "amd64";
    if (machine == "aarch64") return "arm64";
    if (machine.starts_with("armv")) return "arm";  // armv5tel, armv6l, armv7l, armv8l
    if (machine.size() == 4 && machine[0] == 'i' && machine.ends_with("86")) return "386";
    return machine;
}

std::string here_of(const HostPaths& host, const std::string& path) {
    if (host.root.empty()) return path;
    constexpr int k_followed_max = 40;
    fs::path at = "/";
    std::vector<fs::path> open{path};
    int followed = 0;
    while (!open.empty()) {
        const fs::path next = std::move(open.back());
        open.pop_back();
        std::vector<fs::path> pieces(next.begin(), next.end());
        if (pieces.size() > 1) {
            open.insert(open.end(), pieces.rbegin(), pieces.rend());
            continue;
        }
        if (next.empty() || next == ".") continue;
        if (next == "/") {
            at = "/";
        } else if (next == "..") {
            at = at.parent_path();
        } else {
            at /= next;
            std::error_code none;
            const fs::path target = fs::read_symlink(host.root + at.native(), none);
            if (none || ++followed > k_followed_max) continue;
            at = at.parent_path();
            open.push_back(target);
        }
    }
    return host.root + at.native();
}

std::string on_host(const HostPaths& host, const std::string& path) {
    return path.starts_with(host.root + "/") ? path.substr(host.root.size()) : path;
}

NodeFacts node_facts(const HostPaths& host) {
    NodeFacts facts;
    facts.name = text_or(host.proc + "/sys/kernel/hostname");
    facts.kernel = text_or(host.proc + "/sys/kernel/osrelease");
    utsname running{};
    if (host.proc == HostPaths().proc && ::uname(&running) == 0) {  // says the same where /proc is not mounted
        if (facts.name.empty()) facts.name = static_cast<const char*>(running.nodename);
        if (facts.kernel.empty()) facts.kernel = static_cast<const char*>(running.release);
    }
    facts.boot_id = text_or(host.proc + "/sys/kernel/random/boot_id");
    facts.machine_id = text_or(host.etc + "/machine-id");
    facts.architecture = go_architecture();
    facts.os_image = os_image(host);
    return facts;
}

std::optional<std::uint64_t> known_taint(const HostPaths& host) {
    return base::parse_number<std::uint64_t>(text_or(host.proc + "/sys/kernel/tainted"));
}

std::uint64_t taint_bits(const HostPaths& host) { return known_taint(host).value_or(0); }

std::vector<std::string> taint_names(std::uint64_t bits) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < 64; ++i) {
        if (((bits >> i) & 1U) == 0) continue;
        names.push_back(i < k_taint_letters.size() ? std::string(1, k_taint_letters[i]) : fmt::format("bit {}", i));
    }
    return names;
}

std::string taint_letters(std::uint64_t bits) {
    std::string text;
    for (const auto& name : taint_names(bits)) text += (name.size() > 1 && !text.empty() ? ", " : "") + name;
    return text;
}

KernelState kernel_state(const HostPaths& host) {
    KernelState state;
    state.modules_supported = read_text(host.proc + "/modules").has_value();
    if (const auto lockdown = read_text(host.sys + "/kernel/security/lockdown")) state.lockdown = bracketed(*lockdown);
    state.sig_enforce = text_or(host.sys + "/module/module/parameters/sig_enforce") == "Y";
    state.modules_disabled = text_or(host.proc + "/sys/kernel/modules_disabled", "0") != "0";
    state.tainted = taint_bits(host);
    if (const auto packing = read_text(host.sys + "/module/compression"); packing && !packing->empty())
        state.decompression = *packing;
    state.cap_sys_module = has_capability(host);
    return state;
}

std::optional<LiveModule> live_module(const HostPaths& host, const std::string& name) {
    LiveModule module;
    module.name = normalise_name(name);
    if (!is_module_name(module.name)) return std::nullopt;
    const std::string directory = host.sys + "/module/" + module.name;
    std::error_code error;
    const bool present = fs::is_directory(directory, error);
    if (const auto state = read_text(directory + "/initstate")) {
        module.state = *state;
    } else {
        module.state = line_in_proc(host, module.name).state;
        if (module.state.empty()) {
            if (!present) return std::nullopt;
            module.state = "builtin";
        }
    }
    module.srcversion = text_or(directory + "/srcversion");
    module.version = text_or(directory + "/version");
    module.taint = text_or(directory + "/taint");
    if (const auto refcount = read_text(directory + "/refcnt")) module.refcount = base::parse_number<long>(*refcount);
    module.holders = entries_of(directory + "/holders");
    for (const auto& parameter : entries_of(directory + "/parameters")) {
        if (auto value = read_text(directory + "/parameters/" + parameter))
            module.parameters.emplace(parameter, std::move(*value));
    }
    if (const auto note = read_raw(directory + "/notes/.note.gnu.build-id")) module.build_id = build_id_of_note(*note);
    return module;
}

bool is_permanent(const HostPaths& host, const std::string& name) {
    return line_in_proc(host, normalise_name(name)).users.find("[permanent]") != std::string::npos;
}

std::vector<std::string> live_modules(const HostPaths& host) {
    std::vector<std::string> names;
    const std::string text = text_or(host.proc + "/modules");
    for (const auto line : base::split(text, '\n')) {
        const auto word = line.substr(0, line.find(' '));
        if (!word.empty()) names.emplace_back(word);
    }
    std::sort(names.begin(), names.end());
    return names;
}

namespace {

/// What kallsyms has of some names: those with an entry in an export table, and those that are plain symbols; with the
/// module of each, "" for the kernel itself.
struct NamedSymbols {
    std::map<std::string, std::string> exported, plain;
    bool has_table = false;  ///< kernels without CONFIG_KALLSYMS_ALL show none
};

enum class Seek { exports, functions };

/// nullopt when kallsyms cannot be read or is empty. Stops as soon as all are found: the rest is long, and the kernel
/// writes each line anew.
std::optional<NamedSymbols> find_symbols(const HostPaths& host, const std::set<std::string>& wanted, Seek seek) {
    constexpr std::string_view prefix = "__ksymtab_";
    const std::set<std::string_view> names(wanted.begin(), wanted.end());
    NamedSymbols found;
    bool any = false;
    const auto read = for_each_line(host.proc + "/kallsyms", [&](std::string_view line) {
        any = true;
        const auto first = line.find(' ');
        if (first == std::string_view::npos || line.size() < first + 4) return Lines::more;
        const std::string_view rest = line.substr(first + 3);
        std::string_view name = rest.substr(0, rest.find_first_of("\t "));
        const bool entry = name.starts_with(prefix);
        found.has_table = found.has_table || entry;
        if (entry) name.remove_prefix(prefix.size());
        if (!names.contains(name)) return Lines::more;
        const auto bracket = rest.find('[');
        const std::string owner = bracket == std::string_view::npos
                                      ? ""
                                      : normalise_name(rest.substr(bracket + 1, rest.find(']') - bracket - 1));
        (entry ? found.exported : found.plain).emplace(name, owner);
        return (seek == Seek::exports ? found.exported : found.plain).size() == names.size() ? Lines::enough
                                                                                             : Lines::more;
    });
    if (read == Reading::failed || !any) return std::nullopt;
    return found;
}

std::set<std::string> keys_of(const std::map<std::string, std::string>& owners) {
    std::set<std::string> keys;
    for (const auto& [symbol, owner] : owners) keys.insert(symbol);
    return keys;
}

}  // namespace

std::optional<std::set<std::string>> kernel_exports(const HostPaths& host, const std::set<std::string>& wanted) {
    const auto found = find_symbols(host, wanted, Seek::exports);
    if (!found) return std::nullopt;
    return keys_of(found->has_table ? found->exported : found->plain);
}

std::optional<std::map<std::string, std::string>> exporters_of(const HostPaths& host,
                                                               const std::set<std::string>& wanted) {
    auto found = find_symbols(host, wanted, Seek::exports);
    if (!found || !found->has_table) return std::nullopt;
    return std::move(found->exported);
}

std::optional<std::set<std::string>> kernel_functions(const HostPaths& host, const std::set<std::string>& wanted) {
    const auto found = find_symbols(host, wanted, Seek::functions);
    if (!found) return std::nullopt;
    return keys_of(found->plain);
}

}  // namespace kmm::kmod
