// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/preflight.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/check/parameters.hpp"
#include "kmod/host/soft_needs.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"

namespace kmm::kmod {

namespace {

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (const auto word : base::split(text, ' ')) {
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

class Checker {
public:
    Checker(const ModuleIndex& index, const LoadRequest& request, const HostPaths& host)
        : index_(index), request_(request), host_(host), facts_(node_facts(host)), state_(kernel_state(host)),
          directory_(host_module_directory(host, facts_.kernel)) {}

    Preflight run() {
        out_.config = read_modprobe_config(host_, request_.image_config);
        out_.order = index_.order(request_.module, request_.loading_order,
                                  {request_.also, out_.config.softdeps, out_.config.aliases});
        for (const auto& [alias, module] : out_.order.by_alias) add_alias_options(out_.config, alias, module);
        check_kernel();
        resolve_external();
        resolve_after();
        reference_ = reference_module(directory_);
        versions_.emplace(index_, host_, directory_, reference_ ? &*reference_ : nullptr);
        if (reference_) out_.vermagic_source = VermagicSource::module_of_the_kernel;
        leave_out();
        check_modules();
        check_parameters(index_.find(request_.module)->file, request_.parameters, out_.findings);
        const CheckInput input{index_, request_, host_, facts_, state_, directory_, out_};
        check_live(input, out_.findings);
        check_process(input, out_.findings);
        if (request_.live_counts) out_.pardoned = pardon_live(input, out_.findings);
        sort_and_merge(out_.findings);
        return std::move(out_);
    }

private:
    void find(Severity severity, std::string code, std::string message, std::string hint = {}) {
        out_.findings.push_back(Diagnostic{severity, std::move(code), std::move(message), std::nullopt, std::move(hint),
                                           Exit::checks_failed});
    }

    /// All that is checked of each module in the order by itself.
    void check_modules() {
        check_symbols();
        for (const auto& name : out_.order.names) check_file(*index_.find(name));
        const CheckInput input{index_, request_, host_, facts_, state_, directory_, out_};
        Diagnostics found;
        check_exports(input, found);
        check_duplicate_symbols(input, found);
        check_configuration(input, found);
        check_firmware_files(input, found);
        check_signatures(input, reference_ ? &*reference_ : nullptr, found);
        check_conflicts(input, found);
        check_marks(input, reference_ ? &*reference_ : nullptr, found);
        out_.findings.insert(out_.findings.end(), found.begin(), found.end());
        if (request_.force.any()) pardon();
        for (const auto& module : out_.host_modules) check_host_file(module);  // which are never forced
    }

    /// The errors that the order `names` and `host_modules` would have; the result so far stays as it is.
    Diagnostics trial(std::vector<std::string> names, std::vector<HostModule> host_modules) {
        Diagnostics findings;
        std::swap(findings, out_.findings);
        std::swap(names, out_.order.names);
        std::swap(host_modules, out_.host_modules);
        const bool warned = std::exchange(vermagic_warned_, true);
        check_modules();
        vermagic_warned_ = warned;
        std::swap(host_modules, out_.host_modules);
        std::swap(names, out_.order.names);
        std::swap(findings, out_.findings);
        std::erase_if(findings, [](const Diagnostic& finding) { return finding.severity != Severity::error; });
        return findings;
    }

    /// Takes what only softdeps ask for, and cannot be loaded here, out of the order: modprobe goes on without, and so
    /// does this.
    void leave_out() {
        if (out_.order.optional.empty()) return;
        std::set<std::string> left_out;
        const auto note = [&](const std::string& name, const std::string& why) {
            left_out.insert(name);
            find(Severity::warning, "soft-dependency-failed",
                 fmt::format("module {} is wanted by a softdep and left out: {}", name, why));
        };
        const auto missing = [&](const std::string& need) {
            return left_out.contains(need) || missing_.contains(need);
        };
        for (auto& module : std::exchange(out_.host_modules, {})) {
            const Diagnostics errors = out_.order.optional.contains(module.name) ? trial({}, {module}) : Diagnostics{};
            if (!errors.empty()) note(module.name, errors.front().message);
            if (errors.empty()) out_.host_modules.push_back(std::move(module));
        }
        for (const auto& name : std::exchange(out_.order.names, {})) {
            const auto needs = index_.hard_needs(*index_.find(name));
            if (!out_.order.optional.contains(name)) {
                out_.order.names.push_back(name);
            } else if (const auto need = std::find_if(needs.begin(), needs.end(), missing); need != needs.end()) {
                note(name, fmt::format("it needs module {}, which is not there", *need));
            } else if (const Diagnostics errors = trial({name}, out_.host_modules); !errors.empty()) {
                note(name, errors.front().message);
            } else {
                out_.order.names.push_back(name);
            }
        }
    }

    /// What the kernel is told to overlook is not an error any more.
    void pardon() {
        for (auto& finding : out_.findings) {
            const bool pardoned = (finding.code == "vermagic-differs" && request_.force.vermagic) ||
                                  (finding.code.starts_with("symbol-version-") && request_.force.modversions);
            if (pardoned) finding.severity = Severity::warning;
        }
    }

    void check_kernel() {
        if (!state_.modules_supported) {
            find(Severity::error, "no-module-support",
                 fmt::format("kernel {} was built without loadable modules", facts_.kernel),
                 "boot a kernel with CONFIG_MODULES=y");
        }
        if (state_.modules_disabled) {
            find(Severity::error, "modules-disabled",
                 "loading of modules is switched off on this node (modules_disabled is 1)",
                 "it can only be switched on again by a reboot");
        }
        constexpr std::uint64_t k_unsound =
            1ULL << 5U | 1ULL << 7U | 1ULL << 14U;  // bad page, oops or BUG, soft lockup
        if (const std::uint64_t seen = state_.tainted & k_unsound; seen != 0) {
            find(Severity::warning, "kernel-unsound",
                 fmt::format("since it was booted, the kernel of this node has oopsed, locked up or found a bad page "
                             "(taint {}): nothing that it says is certain",
                             taint_letters(seen)),
                 "drain and reboot this node");
        }
    }

    /// Puts the host's modules in the place of their aliases.
    void resolve_aliases(std::vector<std::string>& names) {
        std::vector<std::string> meant;
        for (const auto& name : names) {
            const auto configured = aliased(out_.config.aliases, name);
            auto modules = configured ? *configured : modules_behind(host_, directory_, name);
            if (modules.empty() && !configured) modules.push_back(name);
            for (auto& module : modules) {
                if (std::find(meant.begin(), meant.end(), module) != meant.end()) continue;
                add_alias_options(out_.config, name, module);
                meant.push_back(std::move(module));
            }
        }
        names = std::move(meant);
    }

    void resolve_external() {
        std::set<std::string> seen;
        auto& names = out_.order.external;  // what is required comes first, so that it is not taken for optional
        std::stable_partition(names.begin(), names.end(),
                              [&](const std::string& name) { return !out_.order.optional.contains(name); });
        std::vector<HostModule> live_needs;
        for (const auto& name : names) {
            const auto live = live_module(host_, name);
            const auto need = find_host_module(directory_, name);
            if (live && (live->state == "live" || live->state == "builtin")) {
                add_live(need, live_needs);
                continue;
            }
            if (!need && out_.order.optional.contains(name)) {
                missing_.insert(name);
                continue;
            }
            if (!need) {
                find(Severity::error, "dependency-missing",
                     fmt::format("module {} is needed but is neither in the image nor below {}", name,
                                 directory_.empty() ? host_.lib_modules + "/" + facts_.kernel : directory_),
                     "add it to the image, or install the kernel's module package on the node");
                continue;
            }
            check_missing(name, *need);
            for (const auto& module : need->modules) {
                if (index_.find(module.name) != nullptr || !seen.insert(module.name).second) continue;
                if (module.vermagic.empty() && !live_module(host_, module.name)) {
                    std::error_code failed;
                    const bool gone =
                        !std::filesystem::exists(host_module_file(directory_, module.path), failed) && !failed;
                    find(out_.order.optional.contains(name) ? Severity::warning : Severity::error, "dependency-missing",
                         fmt::format("module {} is needed, and its file on this host {}: {}", module.name,
                                     gone ? "does not exist" : "cannot be read as a module",
                                     base::escape(on_host(host_, module.path))),
                         gone ? "modules.dep of the node is out of date: run depmod there"
                              : "install the kernel's module package on the node again, or run depmod");
                    if (out_.order.optional.contains(name)) missing_.insert(name);
                    continue;
                }
                if (out_.order.optional.contains(name)) out_.order.optional.insert(module.name);
                out_.host_modules.push_back(module);
            }
        }
        resolve_aliases(out_.order.soft);
        std::map<std::string, std::string> named;
        for (const auto& name : out_.order.soft) {
            const auto need = find_host_module(directory_, name);
            if (live_module(host_, name)) {
                add_live(need, live_needs);
                continue;
            }
            if (!need) {
                find(Severity::warning, "soft-dependency-missing",
                     fmt::format(
                         "module {} should be loaded before (softdep), but is neither in the image nor on this host",
                         name));
                continue;
            }
            for (const auto& module : need->modules) {
                if (index_.find(module.name) != nullptr || !seen.insert(module.name).second) continue;
                out_.order.optional.insert(module.name);
                out_.host_modules.push_back(module);
                named.emplace(module.name, name);
            }
        }
        add_soft_needs(
            {host_, directory_, out_.config, in_image_, std::move(named), std::move(live_needs)},
            out_.host_modules, out_.order.optional);
    }

    /// Those of `need` that are live and not of the image.
    void add_live(const std::optional<HostNeed>& need, std::vector<HostModule>& live) const {
        if (!need) return;
        for (const auto& module : need->modules) {
            if (index_.find(module.name) == nullptr && live_module(host_, module.name)) live.push_back(module);
        }
    }

    /// What a module of the host needs, and its tree lacks: then it cannot be loaded.
    void check_missing(const std::string& name, const HostNeed& need) {
        const bool optional = out_.order.optional.contains(name);
        for (const auto& [wanted, by] : need.missing) {
            if (index_.find(wanted) != nullptr || live_module(host_, wanted) || live_module(host_, by)) continue;
            find(optional ? Severity::warning : Severity::error, "dependency-missing",
                 fmt::format("module {} is needed by module {} of this host, and there is no file of it below {}",
                             base::escape(wanted), by, directory_),
                 "install the kernel's module package on the node again, then run depmod");
            if (optional) missing_.insert(name);
        }
    }

    /// What a softdep asks for afterwards, and neither is live nor in the image.
    void resolve_after() {
        resolve_aliases(out_.order.soft_post);
        std::map<std::string, std::string> named;
        std::set<std::string> seen;  // what is needed before the main module is there when these are loaded
        for (const auto& module : out_.host_modules) seen.insert(module.name);
        const std::set<std::string> before = seen;
        std::erase_if(out_.order.soft_post, [&](const std::string& name) {
            if (live_module(host_, name)) return false;
            const auto need = find_host_module(directory_, name);
            if (!need) {
                find(
                    Severity::warning, "soft-dependency-missing",
                    fmt::format(
                        "module {} should be loaded afterwards (softdep), but is neither in the image nor on this host",
                        name));
                return true;
            }
            for (const auto& module : need->modules) {
                if (index_.find(module.name) == nullptr && !live_module(host_, module.name) &&
                    seen.insert(module.name).second) {
                    named.emplace(module.name, name);
                    out_.host_after.push_back(module);
                }
            }
            return false;
        });
        add_soft_needs({host_, directory_, out_.config, in_image_, std::move(named)}, out_.host_after,
                       out_.order.optional);
        std::erase_if(out_.host_after, [&](const HostModule& module) { return before.contains(module.name); });
    }

    void check_file(const IndexedModule& module) {
        const auto& file = module.file;
        if (file.machine != facts_.architecture) {
            find(Severity::error, "module-format",
                 fmt::format("{} is for {}, this node is {}", module.image_path, file.machine, facts_.architecture),
                 "build the image for this architecture");
            return;
        }
        check_vermagic(module);
        versions_->check(file, out_.host_modules, unexported_, out_.findings);
    }

    /// What vermagic should be, as far as that is known here.
    [[nodiscard]] const std::string& expected_vermagic() const {
        return reference_ ? reference_->vermagic : facts_.kernel;
    }

    /// What of `found` differs from it.
    [[nodiscard]] std::vector<std::string> differing_words(const std::string& found) const {
        if (reference_) return vermagic_differences(found, reference_->vermagic);
        const auto words = words_of(found);
        return !words.empty() && words.front() == facts_.kernel ? std::vector<std::string>{}
                                                                : std::vector<std::string>{facts_.kernel};
    }

    /// A module of the host that is to be loaded, too. One of another release, as in weak-updates, is taken by the
    /// kernel for its symbol versions.
    void check_host_file(const HostModule& module) {
        if (module.vermagic.empty() || live_module(host_, module.name)) return;
        const auto differing = differing_words(module.vermagic);
        if (differing.empty() && !refuses_unsupported(host_)) return;
        try {
            const std::string path = host_module_file(directory_, module.path);
            const ModuleFile file = parse_module(plain_module(read_module_bytes(path), path), path);
            check_support(host_, file, out_.findings);
            if (differing.empty()) return;
            if (differing.size() == 1 && differing.front() == facts_.kernel && file.has_versions &&
                !versions_->differ(file))
                return;
        } catch (const Error&) {
            return;  // the load says why it cannot be read
        }
        find(Severity::error, "vermagic-differs",
             fmt::format("module {} of this host, which is needed, was built for another kernel: vermagic '{}', "
                         "expected '{}', differing: {} ({})",
                         module.name, base::escape(module.vermagic), expected_vermagic(), base::join(differing, ", "),
                         base::escape(on_host(host_, module.path))),
             "install that module for the running kernel on the node, and run depmod");
    }

    void check_vermagic(const IndexedModule& module) {
        const std::string found = module.file.vermagic();
        const std::string expected = expected_vermagic();
        const auto differing = differing_words(found);
        if (!reference_ && !vermagic_warned_) {
            vermagic_warned_ = true;
            find(Severity::warning, "vermagic-not-checked",
                 fmt::format("no module of kernel {} is installed here: only the release of vermagic was compared",
                             facts_.kernel));
        }
        if (differing.empty()) return;
        if (reference_ && differing.size() == 1 && differing.front() == facts_.kernel &&
            versions_->fit(module.file, out_.host_modules)) {
            find(Severity::warning, "vermagic-differs",
                 fmt::format("module {} was built for kernel {}, but has the version of every symbol as this one: the "
                             "kernel takes it",
                             module.file.name, base::escape(found.substr(0, found.find(' ')))));
            return;
        }
        find(Severity::error, "vermagic-differs",
             fmt::format("module {} was built for another kernel: vermagic '{}', expected '{}', differing: {}",
                         module.file.name, base::escape(found), expected, base::join(differing, ", ")),
             "rebuild the module against the headers of the running kernel");
    }

    [[nodiscard]] std::string unknown_symbol_hint(const std::string& symbol) const {
        const std::string exporter = host_exporter(directory_, symbol);
        if (exporter.empty()) return "add the module that exports it to the image, or rebuild against this kernel";
        const auto& needed = out_.order.external;
        if (std::find(needed.begin(), needed.end(), exporter) != needed.end())
            return fmt::format("module {}, which is needed and cannot be loaded, exports it", exporter);
        return fmt::format(
            "module {} of this host exports it: name it in depends= or modulesLoadingOrder, or load it before",
            exporter);
    }

    void check_symbols() {
        std::set<std::string>& wanted = unexported_;
        wanted.clear();
        for (const auto& name : out_.order.names) {
            for (const auto& symbol : index_.find(name)->file.undefined) {
                if (!symbol.weak && index_.exporter_of(symbol.name).empty()) wanted.insert(symbol.name);
            }
        }
        for (const auto& module : out_.host_modules) {
            for (const auto& symbol : module.exported) wanted.erase(symbol);
        }
        if (wanted.empty()) return;
        const auto exported = kernel_exports(host_, wanted);
        if (!exported) {
            find(Severity::warning, "symbols-not-checked",
                 fmt::format("{}/kallsyms cannot be read: {} symbols were not checked", host_.proc, wanted.size()));
            wanted.clear();
            return;
        }
        for (const auto& symbol : *exported) wanted.erase(symbol);
        for (const auto& name : out_.order.names) {
            for (const auto& symbol : index_.find(name)->file.undefined) {
                if (symbol.weak || !wanted.contains(symbol.name)) continue;
                find(Severity::error, "unknown-symbol",
                     fmt::format("module {} needs symbol {}, which neither kernel {} nor a module of the image exports",
                                 name, base::escape(symbol.name), facts_.kernel),
                     unknown_symbol_hint(symbol.name));
            }
        }
    }

    const ModuleIndex& index_;
    const LoadRequest& request_;
    const HostPaths& host_;
    NodeFacts facts_;
    KernelState state_;
    std::string directory_;
    std::optional<HostModule> reference_;
    std::optional<KernelVersions> versions_;
    bool vermagic_warned_ = false;
    std::set<std::string> unexported_;  // needed, and exported by nothing
    std::set<std::string> missing_;  // optional, and nowhere
    const std::function<bool(const std::string&)> in_image_ = [this](const std::string& name) {
        return index_.find(name) != nullptr;
    };
    Preflight out_;
};

}  // namespace

std::vector<std::string> vermagic_differences(const std::string& module, const std::string& kernel) {
    const auto found = words_of(module);
    const auto expected = words_of(kernel);
    std::vector<std::string> differing;
    const std::string found_release = found.empty() ? "" : found.front();
    const std::string expected_release = expected.empty() ? "" : expected.front();
    if (found_release != expected_release) differing.push_back(expected_release);
    const auto lacks = [](const std::vector<std::string>& list, const std::string& word) {
        return list.empty() || std::find(list.begin() + 1, list.end(), word) == list.end();
    };
    for (std::size_t i = 1; i < expected.size(); ++i) {
        if (lacks(found, expected[i])) differing.push_back("missing " + expected[i]);
    }
    for (std::size_t i = 1; i < found.size(); ++i) {
        if (lacks(expected, found[i])) differing.push_back("surplus " + base::escape(found[i]));
    }
    return differing;
}

Preflight preflight(const ModuleIndex& index, const LoadRequest& request, const HostPaths& host) {
    return Checker(index, request, host).run();
}

std::optional<ModuleIndex> index_of_host(const HostPaths& host, const std::vector<std::string>& names) {
    const std::string directory = host_module_directory(host, node_facts(host).kernel);
    ModuleIndex index;
    for (const auto& name : names) {
        const auto need = find_host_module(directory, name);
        if (!need || need->builtin) return std::nullopt;
        for (const auto& module : need->modules) {
            const std::string file = host_module_file(directory, module.path);
            std::string bytes = read_module_bytes(file);
            std::string sum = digest::sha256_hex(bytes);
            index.add({parse_module(plain_module(std::move(bytes), module.path), module.path), file, module.path,
                       std::move(sum)});
        }
    }
    return index;
}

void require_passed(const Preflight& result, const std::string& module) {
    if (!has_errors(result.findings)) return;
    const auto errors =
        static_cast<std::size_t>(std::count_if(result.findings.begin(), result.findings.end(),
                                               [](const Diagnostic& d) { return d.severity == Severity::error; }));
    const auto first = std::find_if(result.findings.begin(), result.findings.end(),
                                    [](const Diagnostic& d) { return d.severity == Severity::error; });
    Error error(Exit::checks_failed, "check-failed",
                errors == 1 ? first->message
                            : fmt::format("module {} cannot be loaded here: {} checks failed", module, errors));
    error.detail("reason", first->code).hint(first->hint).attach(result.findings);
    throw error;
}

}  // namespace kmm::kmod
