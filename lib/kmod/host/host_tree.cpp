// SPDX-License-Identifier: Apache-2.0
// Adapter of libkmod. Its configuration is kept empty and no probe function is called, so that no install or remove
// command can run.
#include "kmod/host/host_tree.hpp"

#include <libkmod.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/host/host_index.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

struct ContextFree {
    void operator()(kmod_ctx* context) const noexcept { kmod_unref(context); }
};
struct ModuleFree {
    void operator()(kmod_module* module) const noexcept { kmod_module_unref(module); }
};
using ContextPtr = std::unique_ptr<kmod_ctx, ContextFree>;
using ModulePtr = std::unique_ptr<kmod_module, ModuleFree>;

/// Keeps libkmod from writing to standard error until it can be told where else to: while a context is made, it
/// complains of each bad line of modules.softdep.
class Hush {
public:
    Hush() {
        if (const char* set = std::getenv(k_name)) before_ = set;
        (void)::setenv(k_name, "0", 1);
    }
    ~Hush() { (void)(before_ ? ::setenv(k_name, before_->c_str(), 1) : ::unsetenv(k_name)); }
    Hush(const Hush&) = delete;
    Hush& operator=(const Hush&) = delete;

private:
    static constexpr const char* k_name = "KMOD_LOG";
    std::optional<std::string> before_;
};

ContextPtr new_context(const std::string& directory) {
    const char* no_configuration = nullptr;
    ContextPtr context([&] {
        const Hush hush;
        return kmod_new(directory.c_str(), &no_configuration);
    }());
    if (!context) throw Error(Exit::io, "io", "libkmod could not be set up");
    kmod_set_log_fn(context.get(), [](void*, int, const char*, int, const char*, const char*, va_list) {}, nullptr);
    return context;
}

/// What a file of the host says, nullopt if it cannot be read: whoever needs the module finds out what is wrong with
/// it. libkmod would end the process at a damaged one (assertions of libkmod-elf.c): it reads the index only, files are
/// read by our own parser.
std::optional<ModuleFile> read_host_module(const std::string& path) {
    try {
        return parse_module(plain_module(read_module_bytes(path), path), path);
    } catch (const Error&) {
        return std::nullopt;
    }
}

/// Whether `vermagic` is of `release`, whose directory has no "+" for some kernels.
bool is_of_release(std::string_view vermagic, const std::string& release) {
    const std::string_view of = vermagic.substr(0, vermagic.find(' '));
    return of == release || of == release + "+";
}

void add_facts(HostModule& facts, const std::string& path) {
    const auto module = read_host_module(path);
    if (!module) return;
    facts.depends = module->depends();
    facts.softdeps = module->info_all("softdep");
    facts.vermagic = std::string(base::trim(module->vermagic()));
    facts.structure_bytes = module->structure_bytes;
    facts.retpoline = !module->info_all("retpoline").empty();
    if (module->is_signed) facts.signature = module->signature();
    facts.exported = module->exported;
    for (const auto row : module->export_crcs) {
        if (row.crc != 0) facts.exported_crcs.emplace(std::string(row.symbol), row.crc);
    }
    for (const auto row : module->crcs) facts.crcs.emplace(std::string(row.symbol), row.crc);
}

/// Where NixOS has the modules of its kernel, which depmod and modprobe are built for there.
constexpr const char* k_nix_modules = "/run/booted-system/kernel-modules/lib/modules";

/// What the host calls the places where its modules may be.
constexpr const char* k_module_places[] = {"/lib/modules", "/usr/lib/modules", k_nix_modules};

/// `directory`, a path here that the host has below its root; where links lead on the host if they lead elsewhere
/// there. nullopt if there is no such directory.
std::optional<std::string> directory_on_host(const HostPaths& host, std::string directory) {
    std::error_code error;
    if (!host.root.empty() && directory.starts_with(host.root + "/")) {
        std::string there = here_of(host, on_host(host, directory));
        if (!fs::is_symlink(there, error) && fs::is_directory(there, error) && !fs::equivalent(there, directory, error))
            return there;
    }
    return fs::is_directory(directory, error) ? std::optional(std::move(directory)) : std::nullopt;
}

/// The root of the host whose modules are in `directory`, "" for this one's.
HostPaths host_of(const std::string& directory) {
    const std::string name = "/" + fs::path(directory).filename().native();
    HostPaths host;
    for (const char* place : k_module_places)
        if (directory == place + name) return host;
    for (auto slash = directory.find('/', 1); slash != std::string::npos; slash = directory.find('/', slash + 1)) {
        host.root = directory.substr(0, slash);  // the first one where a link of the host leads there
        for (const char* place : k_module_places)
            if (here_of(host, place + name) == directory) return host;
    }
    host.root.clear();
    const auto at = directory.rfind("/lib/modules/");
    if (at != std::string::npos) host.root = directory.substr(0, at);
    constexpr std::string_view usr = "/usr";
    if (host.root.ends_with(usr)) host.root.resize(host.root.size() - usr.size());
    return host;
}

/// Of a module whose file is at `path`; a link leads to where it leads on that host.
HostModule facts_of(const std::string& directory, const kmod_module* module, std::string path) {
    HostModule facts;
    facts.name = kmod_module_get_name(module);
    facts.path = std::move(path);
    add_facts(facts, host_module_file(directory, facts.path));
    return facts;
}

/// Of a module that the index has. Files elsewhere (`external` of depmod.d) stand there with their paths on that host.
HostModule indexed_facts(const std::string& directory, const kmod_module* module) {
    std::string path = kmod_module_get_path(module);
    if (!path.starts_with(directory + "/")) path = here_of(host_of(directory), path);
    return facts_of(directory, module, std::move(path));
}

HostModule facts_of_path(kmod_ctx* context, const std::string& directory, const std::string& path) {
    kmod_module* raw = nullptr;
    if (kmod_module_new_from_path(context, host_module_file(directory, path).c_str(), &raw) < 0)
        return HostModule{{}, path, {}, {}, {}, {}};
    const ModulePtr module(raw);
    HostModule facts = facts_of(directory, raw, kmod_module_get_path(raw));
    facts.path = path;
    return facts;
}

HostNeed need_of(const std::string& directory, const kmod_module* module) {
    HostNeed need;
    if (kmod_module_get_path(module) == nullptr) {
        need.builtin = true;
        return need;
    }
    kmod_list* entry = nullptr;
    kmod_list* dependencies = kmod_module_get_dependencies(module);
    kmod_list_foreach(entry, dependencies) {
        const ModulePtr dependency(kmod_module_get_module(entry));
        if (kmod_module_get_path(dependency.get()) != nullptr)
            need.modules.push_back(indexed_facts(directory, dependency.get()));
    }
    kmod_module_unref_list(dependencies);
    need.modules.push_back(indexed_facts(directory, module));
    return need;
}

/// What the index has for `name`, a module or an alias; nothing of one that is damaged there.
std::vector<ModulePtr> looked_up(const std::string& directory, kmod_ctx* context, const std::string& name) {
    std::vector<ModulePtr> modules;
    if (has_damaged_index(directory, name)) return modules;
    kmod_list* list = nullptr;
    if (kmod_module_new_from_lookup(context, name.c_str(), &list) < 0) return modules;
    kmod_list* entry = nullptr;
    kmod_list_foreach(entry, list) modules.emplace_back(kmod_module_get_module(entry));
    kmod_module_unref_list(list);
    std::erase_if(modules, [&](const ModulePtr& module) {  // its file is searched for by its own name
        const std::string own = kmod_module_get_name(module.get());
        return own != name && is_damaged_for(directory + "/modules.dep.bin", own);
    });
    return modules;
}

std::optional<HostNeed> from_index(const std::string& directory, kmod_ctx* context, const std::string& name) {
    const auto modules = looked_up(directory, context, name);
    if (modules.empty() || normalise_name(kmod_module_get_name(modules.front().get())) != name)
        return std::nullopt;  // an alias of something else
    return need_of(directory, modules.front().get());
}

/// Calls `body` with each module file below `directory` until it returns false. Unreadable directories are skipped.
template <typename Body>
void each_module_file(const std::string& directory, Body&& body) {
    std::error_code error;
    fs::recursive_directory_iterator it(directory, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().native();
        const auto dot = name.find(".ko");
        if (dot == std::string::npos || dot == 0) continue;
        if (const std::string ending = name.substr(dot);
            ending != ".ko" && ending != ".ko.xz" && ending != ".ko.zst" && ending != ".ko.gz")
            continue;
        if (!body(normalise_name(name.substr(0, dot)), it->path().native())) return;
    }
}

/// Without an index: whether depmod would take `one` rather than `other` of one name. Its own order is updates and then
/// what it meets; distributions that name more say "updates extra built-in weak-updates".
bool comes_first(const std::string& one, const std::string& other) {
    const auto place = [](const std::string& path) {
        const auto has = [&](std::string_view part) { return path.find(part) != std::string::npos; };
        const int order = has("/updates/") ? 0 : has("/extra/") ? 1 : has("/weak-updates/") ? 3 : 2;
        return std::make_pair(order, std::string_view(path));
    };
    return place(one) < place(other);
}

/// The file of each module below `directory`; with `wanted`, of those only.
std::map<std::string, std::string> files_by_name(const std::string& directory,
                                                 const std::set<std::string>* wanted = nullptr) {
    std::map<std::string, std::string> files;
    each_module_file(directory, [&](const std::string& module, const std::string& path) {
        if (wanted != nullptr && !wanted->contains(module)) return true;
        const auto [it, fresh] = files.emplace(module, path);
        const std::size_t below = directory.size();
        if (!fresh && comes_first(path.substr(below), it->second.substr(below))) it->second = path;
        return true;
    });
    return files;
}

/// Without an index: file names, and each file's own depends=.
void collect_by_name(const std::string& directory, const std::map<std::string, std::string>& files, kmod_ctx* context,
                     const std::string& name, std::set<std::string>& seen, HostNeed& need) {
    const auto it = files.find(name);
    if (it == files.end() || !seen.insert(name).second) return;
    kmod_module* raw = nullptr;
    if (kmod_module_new_from_path(context, host_module_file(directory, it->second).c_str(), &raw) < 0) return;
    const ModulePtr module(raw);
    HostModule facts = facts_of(directory, raw, kmod_module_get_path(raw));
    for (const auto& dependency : facts.depends) collect_by_name(directory, files, context, dependency, seen, need);
    facts.name = name;
    facts.path = it->second;
    need.modules.push_back(std::move(facts));
}

/// What the modules say that they need, and neither the index nor the tree led to. libkmod leaves out a dependency
/// whose file is gone.
void find_missing(const std::string& directory, HostNeed& need) {
    std::optional<std::set<std::string>> builtin;
    for (const auto& module : need.modules) {
        for (const auto& wanted : module.depends) {
            const auto is_wanted = [&](const HostModule& other) { return normalise_name(other.name) == wanted; };
            if (std::any_of(need.modules.begin(), need.modules.end(), is_wanted)) continue;
            if (!builtin) builtin = builtin_names(directory);
            if (!builtin->contains(wanted)) need.missing.emplace_back(wanted, normalise_name(module.name));
        }
    }
}

}  // namespace

std::string host_module_directory(const HostPaths& host, const std::string& release) {
    std::vector<std::string> places{host.lib_modules};
    if (host.lib_modules == host.root + k_module_places[0]) {
        for (const char* place : k_module_places) places.push_back(host.root + place);
    }
    for (const auto& place : places) {
        const std::string directory = place + "/" + release;
        if (auto found = directory_on_host(host, directory)) return std::move(*found);
        if (!release.ends_with('+')) continue;
        if (auto found = directory_on_host(host, directory.substr(0, directory.size() - 1))) return std::move(*found);
    }
    return {};
}

std::string host_module_file(const std::string& directory, const std::string& path) {
    std::error_code error;
    if (!fs::is_symlink(path, error) && fs::exists(path, error)) return path;
    const HostPaths host = host_of(directory);
    if (!host.root.empty() && path.starts_with(host.root + "/")) {
        // One that leads to itself on that host is a copy made of links (cp -s): it leads where it leads here.
        if (std::string there = here_of(host, path.substr(host.root.size())); !fs::is_symlink(there, error))
            return there;
    }
    const fs::path file = fs::canonical(path, error);
    return error ? path : file.native();
}

std::set<std::string> builtin_names(const std::string& directory) {
    std::set<std::string> names;
    const auto text = directory.empty() ? std::nullopt : read_text(directory + "/modules.builtin");
    if (!text) return names;
    for (const auto line : base::split(*text, '\n')) {
        const std::string_view file = line.substr(line.rfind('/') + 1);
        names.insert(normalise_name(file.substr(0, file.find(".ko"))));
    }
    return names;
}

std::optional<HostNeed> find_host_module(const std::string& directory, const std::string& name) {
    if (directory.empty()) return std::nullopt;
    const std::string wanted = normalise_name(name);
    const ContextPtr context = new_context(directory);
    if (auto need = from_index(directory, context.get(), wanted)) {
        find_missing(directory, *need);
        return need;
    }
    const auto files = files_by_name(directory);
    HostNeed need;
    std::set<std::string> seen;
    collect_by_name(directory, files, context.get(), wanted, seen, need);
    need.builtin = need.modules.empty() && builtin_names(directory).contains(wanted);
    if (need.modules.empty() && !need.builtin) return std::nullopt;
    find_missing(directory, need);
    return need;
}

void each_host_module(const std::string& directory, const std::vector<std::string>& names,
                      const std::function<bool(const HostModule&)>& body) {
    if (directory.empty()) return;
    const ContextPtr context = new_context(directory);
    std::set<std::string> wanted;
    for (const auto& name : names) wanted.insert(normalise_name(name));
    for (const auto& name : std::set<std::string>(wanted)) {
        for (const auto& module : looked_up(directory, context.get(), name)) {
            if (normalise_name(kmod_module_get_name(module.get())) != name ||
                kmod_module_get_path(module.get()) == nullptr)
                continue;
            wanted.erase(name);
            if (!body(indexed_facts(directory, module.get()))) return;
        }
    }
    if (wanted.empty()) return;
    for (const auto& [module, path] : files_by_name(directory, &wanted)) {
        if (!body(facts_of_path(context.get(), directory, path))) return;
    }
}

std::vector<std::string> host_modules_with_alias(const std::string& directory, const std::string& alias) {
    std::vector<std::string> names;
    if (directory.empty()) return names;
    const ContextPtr context = new_context(directory);
    for (const auto& module : looked_up(directory, context.get(), alias))
        names.push_back(normalise_name(kmod_module_get_name(module.get())));
    return names;
}

std::optional<HostModule> reference_module(const std::string& directory) {
    if (directory.empty()) return std::nullopt;
    const ContextPtr context = new_context(directory);
    std::optional<HostModule> found;
    const std::string release = fs::path(directory).filename().native();
    int looked_at = 0;
    const auto look = [&](const std::string&, const std::string& path) {
        constexpr int enough = 16;  // of another release: then this is what the kernel's own are
        HostModule facts = facts_of_path(context.get(), directory, path);
        if (facts.vermagic.empty()) return true;
        const bool fits = is_of_release(facts.vermagic, release);
        if (fits || !found) found = std::move(facts);
        return !fits && ++looked_at < enough;
    };
    each_module_file(directory + "/kernel", look);
    return found;
}

const ModuleSignature* own_signature(const HostModule* reference, const std::string& directory) {
    if (reference == nullptr || reference->signature.signer.empty()) return nullptr;
    return is_of_release(reference->vermagic, fs::path(directory).filename().native()) ? &reference->signature
                                                                                      : nullptr;
}

std::string header_directory(const std::string& directory) {
    const std::string link = directory + "/build";
    const HostPaths host = host_of(directory);
    std::error_code error;
    if (host.root.empty() || fs::exists(link, error)) return link;
    return here_of(host, link.substr(host.root.size()));
}

namespace {

/// The list of what the kernel exports: Module.symvers of its headers, else the copy that kernel packages of Red Hat
/// and its kin put beside the modules.
std::optional<std::string> exports_text(const std::string& directory) {
    if (directory.empty()) return std::nullopt;
    if (auto text = read_text(header_directory(directory) + "/Module.symvers")) return text;
    for (const char* name : {"/symvers.gz", "/symvers.xz"}) {
        const std::string path = directory + name;
        auto packed = read_raw(path);
        if (!packed) continue;
        try {
            return plain_module(std::move(*packed), path);
        } catch (const Error&) {
            continue;  // a list that is damaged tells nothing
        }
    }
    return std::nullopt;
}

/// Calls `body` with the fields of each line of that list.
template <typename Body>
void each_header_line(const std::string& directory, Body&& body) {
    const auto text = exports_text(directory);
    if (!text) return;
    for (const auto line : base::split(*text, '\n')) {
        const auto fields = base::split(line, '\t');
        if (fields.size() >= 2 && fields[0].starts_with("0x")) body(fields);
    }
}

}  // namespace

std::string host_exporter(const std::string& directory, const std::string& symbol) {
    const auto text = directory.empty() ? std::nullopt : read_text(directory + "/modules.symbols");
    if (!text) return {};
    const std::string wanted = "alias symbol:" + symbol + " ";
    for (const auto line : base::split(*text, '\n')) {
        if (line.starts_with(wanted)) return normalise_name(base::trim(line.substr(wanted.size())));
    }
    return {};
}

std::map<std::string, std::uint32_t> header_crcs(const std::string& directory) {
    std::map<std::string, std::uint32_t> crcs;
    each_header_line(directory, [&](const auto& fields) {
        std::uint32_t crc = 0;
        const std::string_view digits = fields[0].substr(2);
        if (std::from_chars(digits.data(), digits.data() + digits.size(), crc, 16).ec == std::errc{} && crc != 0)
            crcs.emplace(fields[1], crc);
    });
    return crcs;
}

std::map<std::string, Export> header_exports(const std::string& directory) {
    std::map<std::string, Export> exports;
    each_header_line(directory, [&](const auto& fields) {
        if (fields.size() < 4 || !fields[3].starts_with("EXPORT_"))
            return;  // the short-lived order of 5.4 has the type last
        Export made{fields[3].find("_GPL") != std::string_view::npos,
                    fields.size() > 4 ? std::string(fields[4]) : std::string()};
        if (made.gpl_only || !made.symbol_namespace.empty()) exports.emplace(fields[1], std::move(made));
    });
    return exports;
}

}  // namespace kmm::kmod
