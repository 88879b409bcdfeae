// SPDX-License-Identifier: Apache-2.0
#include "kernel/judge.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"
#include "kmod/check/parameters.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kernel {

namespace {

constexpr std::size_t k_named_max = 5;

class Judge {
public:
    Judge(const kmod::ModuleIndex& index, const Request& request, const Interface* interface)
        : index_(index), request_(request), interface_(interface) {}

    Diagnostics run() {
        kmod::LoadOrder order;
        try {
            order = index_.order(request_.module, request_.loading_order,
                                 {request_.also, request_.configuration.softdeps, request_.configuration.aliases});
        } catch (const Error& error) {
            find(Severity::error, error.code(), error.message(), error.hint());
            return std::move(out_);
        }
        for (const auto& name : order.names) {
            const auto& module = *index_.find(name);
            const std::size_t before = out_.size();
            const bool vermagic_told = vermagic_told_;
            if (interface_ != nullptr) {
                const auto versions = versions_of(module.file);
                file(module, versions);
                symbols(module, versions);
                duplicates(module, order);
            }
            signature(module);
            firmware(module);
            configuration(module, order);
            if (order.optional.contains(name) && leave_out(module, before)) vermagic_told_ = vermagic_told;
        }
        if (interface_ != nullptr) dependencies(order);
        kmod::check_parameters(index_.find(request_.module)->file, request_.parameters, out_);
        sort_and_merge(out_);
        return std::move(out_);
    }

private:
    void find(Severity severity, std::string code, std::string message, std::string hint = {}) {
        out_.push_back(Diagnostic{severity, std::move(code), std::move(message), std::nullopt, std::move(hint),
                                  Exit::checks_failed});
    }

    /// Puts one warning in the place of the findings from `before` on if one of them is an error, or what the module
    /// needs is left out: nothing but a softdep asks for it, so workers and modprobe go on without.
    bool leave_out(const kmod::IndexedModule& module, std::size_t before) {
        const auto begin = out_.begin() + static_cast<std::ptrdiff_t>(before);
        const auto fault = std::find_if(begin, out_.end(),
                                        [](const Diagnostic& one) { return one.severity == Severity::error; });
        const auto needs = index_.hard_needs(module);
        const auto need =
            std::find_if(needs.begin(), needs.end(), [&](const auto& one) { return left_out_.contains(one); });
        if (fault == out_.end() && need == needs.end()) return false;
        const std::string& name = module.file.name;
        const std::string why =
            fault != out_.end() ? fault->message : fmt::format("it needs module {}, which is left out", *need);
        out_.erase(begin, out_.end());
        find(Severity::warning, "soft-dependency-failed",
             fmt::format("module {} is wanted by a softdep and left out: {}", name, why));
        left_out_.insert(name);
        return true;
    }

    [[nodiscard]] kmod::VersionResult versions_of(const kmod::ModuleFile& info) const {
        return kmod::compare_versions(info, index_, [&](std::string_view symbol) -> std::optional<std::uint32_t> {
            const auto it = interface_->exports.find(std::string(symbol));
            return it == interface_->exports.end() || it->second.crc == 0 ? std::nullopt
                                                                          : std::optional(it->second.crc);
        });
    }

    void file(const kmod::IndexedModule& module, const kmod::VersionResult& versions) {
        const auto& info = module.file;
        if (!interface_->architecture.empty() && info.machine != interface_->architecture) {
            find(Severity::error, "module-format",
                 fmt::format("{} is for {}, kernel {} is for {}", module.image_path, info.machine, request_.release,
                             interface_->architecture),
                 "build the image for this architecture");
        }
        vermagic(info, versions);
    }

    /// What a kernel does about signatures: Linux kernel/module/signing.c, module_sig_check().
    void signature(const kmod::IndexedModule& module) {
        const auto& info = module.file;
        const bool configured = interface_ != nullptr && interface_->signatures_checked.has_value();
        const bool enforced = request_.signatures_enforced || (interface_ != nullptr && interface_->signatures_forced);
        if (!enforced && configured && !*interface_->signatures_checked) return;
        const auto found = request_.signatures.find(info.name);
        const SignatureCheck check = found != request_.signatures.end() ? found->second
                                     : info.is_signed               ? SignatureCheck{Trust::unchecked, "", ""}
                                                                    : SignatureCheck{};
        const std::string takes = enforced ? fmt::format("kernel {} takes trusted modules only", request_.release)
                                  : configured
                                      ? fmt::format("kernel {} loads it and is tainted", request_.release)
                                      : fmt::format("it is not known whether kernel {} takes it", request_.release);
        const std::string sign = enforced || configured
                                     ? "sign the module with a key that the kernel trusts"
                                     : "name the kernel's headers with --kernel-devel, or give --sig-enforce";
        const auto severity = enforced ? Severity::error : Severity::warning;
        // Kernels take it, whoever wants trusted modules only should not: the configuration of the headers alone is no
        // such request.
        if (const std::string weak = kmod::weak_digest_of(info.signature()); !weak.empty())
            find(request_.signatures_enforced ? Severity::error : Severity::warning, "weak-digest",
                 fmt::format("the signature of module {} is of its {} digest, and another module with the same digest "
                             "can be made",
                             info.name, weak),
                 "sign the module again with sha256 or sha512");
        switch (check.trust) {
            case Trust::trusted: return;
            case Trust::none:
                if (enforced || request_.certificates_given)
                    find(severity, "unsigned-module", fmt::format("module {} is not signed, and {}", info.name, takes),
                         sign);
                return;
            case Trust::unknown_key:
                find(severity, "key-not-trusted",
                     fmt::format("module {} is signed with a key of none of the certificates ({}), and {}", info.name,
                                 kmod::signature_text(info.signature()), takes),
                     enforced || configured
                         ? "give its certificate with --cert if the kernel trusts it, or sign with a trusted key"
                         : sign);
                return;
            case Trust::bad:
                find(enforced || configured ? Severity::error : Severity::warning, "bad-signature",
                     fmt::format("the signature of module {} is bad: {}", info.name, check.fault),
                     "sign the module again, and do not strip it afterwards");
                return;
            case Trust::unchecked: break;
        }
        if (enforced || !check.fault.empty())
            find(Severity::warning, "key-not-checked",
                 fmt::format("whether kernel {} trusts the key of module {} ({}) was not checked{}", request_.release,
                             info.name, kmod::signature_text(info.signature()),
                             check.fault.empty() ? "" : ": " + check.fault),
                 check.fault.empty() ? "give the certificates that it trusts with --cert FILE"
                                     : "load the module on one node with that kernel before the others");
    }

    /// The release does not matter to a kernel where a module has rows in __versions: Linux kernel/module/version.c,
    /// same_magic().
    void vermagic(const kmod::ModuleFile& info, const kmod::VersionResult& versions) {
        const std::string found = info.vermagic();
        std::string expected = interface_->vermagic;
        std::vector<std::string> differing;
        if (expected.empty()) {
            expected = request_.release;
            if (found.substr(0, found.find(' ')) != expected) differing.push_back(expected);
            if (!vermagic_told_)
                find(Severity::warning, "vermagic-not-checked",
                     fmt::format(
                         "{} does not tell how kernel {} was configured: only the release of vermagic was compared",
                         base::escape(interface_->source), request_.release));
            vermagic_told_ = true;
        } else {
            differing = kmod::vermagic_differences(found, expected);
        }
        if (differing.empty()) return;
        const std::string release = found.substr(0, found.find(' '));
        if (!interface_->vermagic.empty() && differing == std::vector{expected.substr(0, expected.find(' '))} &&
            info.has_versions && versions.fits()) {
            find(Severity::warning, "vermagic-differs",
                 fmt::format("module {} was built for kernel {}, but has the version of every symbol as kernel {}, "
                             "which takes it",
                             info.name, base::escape(release), request_.release));
            return;
        }
        find(Severity::error, "vermagic-differs",
             fmt::format("module {} was built for another kernel: vermagic '{}', expected '{}', differing: {}",
                         info.name, base::escape(found), expected, base::join(differing, ", ")),
             "rebuild the module against the headers of kernel " + request_.release);
    }

    void symbols(const kmod::IndexedModule& module, const kmod::VersionResult& versions) {
        const auto& info = module.file;
        const bool free_license = info.gpl_compatible();
        std::vector<std::string> unknown, unimported, reserved;
        for (const auto& symbol : info.undefined) {
            const std::string shown = base::escape(symbol.name);
            const auto use = [&](const std::string& symbol_namespace, bool gpl_only) {
                if (!symbol_namespace.empty() && !info.imports(symbol_namespace))
                    unimported.push_back(fmt::format("{} ({})", shown, base::escape(symbol_namespace)));
                if (gpl_only && !free_license && !symbol.weak) reserved.push_back(shown);
            };
            if (const auto& owner = index_.exporter_of(symbol.name); !owner.empty()) {
                const auto& exports = index_.find(owner)->file.exports;
                if (const auto it = exports.find(symbol.name); it != exports.end())
                    use(it->second.symbol_namespace, it->second.gpl_only);
                continue;
            }
            const auto it = interface_->exports.find(symbol.name);
            if (it != interface_->exports.end())
                use(it->second.ns, it->second.gpl_only);
            else if (!symbol.weak)
                unknown.push_back(shown);
        }
        const std::string rebuild = "rebuild the module against the headers of kernel " + request_.release;
        if (!unknown.empty())
            find(Severity::error, "unknown-symbol",
                 fmt::format("module {} needs {}, which neither kernel {} nor a module of the image exports", info.name,
                             base::join_some(unknown, k_named_max), request_.release),
                 "add the module that exports it to the image, or " + rebuild);
        kmod::report_versions(info, versions, interface_->missing_versions, rebuild, out_);
        if (!unimported.empty())
            find(interface_->lenient_namespaces ? Severity::warning : Severity::error, "namespace-missing",
                 fmt::format("module {} does not import the namespace of {}", info.name,
                             base::join_some(unimported, k_named_max)),
                 "add MODULE_IMPORT_NS to its source");
        if (!reserved.empty())
            find(Severity::error, "gpl-only",
                 fmt::format("module {} with licence '{}' may not use {}", info.name,
                             base::escape(info.info("license")), base::join_some(reserved, k_named_max)),
                 "these symbols are for modules with a GPL-compatible licence");
    }

    [[nodiscard]] bool gives_way(const std::string& owner) const {
        return std::any_of(request_.in_tree_modules_to_remove.begin(), request_.in_tree_modules_to_remove.end(),
                           [&](const std::string& listed) { return kmod::normalise_name(listed) == owner; });
    }

    /// Linux kernel/module/main.c, verify_exported_symbols(): of one that a live module has only while that is live.
    void duplicates(const kmod::IndexedModule& module, const kmod::LoadOrder& order) {
        std::vector<std::string> of_kernel;
        std::map<std::string, std::vector<std::string>> of_modules;
        for (const auto& symbol : module.file.exported) {
            const auto it = interface_->exports.find(symbol);
            if (it == interface_->exports.end()) continue;
            const std::string& path = it->second.owner;
            const std::string owner = kmod::normalise_name(path.substr(path.rfind('/') + 1));
            if (owner == "vmlinux")
                of_kernel.push_back(base::escape(symbol));
            else if (index_.find(owner) == nullptr && !gives_way(owner))
                of_modules[owner].push_back(base::escape(symbol));
        }
        const std::string named = fmt::format("module {} exports ", module.file.name);
        if (!of_kernel.empty())
            find(Severity::error, "duplicate-symbol",
                 fmt::format("{}{}, which kernel {} exports itself and takes from no module", named,
                             base::join_some(of_kernel, k_named_max), request_.release),
                 "build the module without it: that kernel has it built in");
        for (const auto& [owner, exported] : of_modules) {
            const bool is_needed = std::any_of(order.external.begin(), order.external.end(),
                                               [&, &name = owner](const auto& need) { return need == name; });
            find(is_needed ? Severity::error : Severity::warning, "duplicate-symbol",
                 fmt::format(
                     "{}{}, as module {} of kernel {} does{}", named, base::join_some(exported, k_named_max), owner,
                     request_.release,
                     is_needed ? ", which is loaded first as it is needed" : ": only one of them can be live"),
                 is_needed ? "build the modules so that one of them exports it"
                           : fmt::format("list {} in inTreeModulesToRemove if it may be live", owner));
        }
    }

    void dependencies(const kmod::LoadOrder& order) {
        for (const auto& name : order.external) {
            if (interface_->modules.contains(kmod::normalise_name(name))) continue;
            find(Severity::warning, "dependency-not-known",
                 fmt::format("module {} is needed, is not in the image, and exports nothing in kernel {}",
                             base::escape(name), request_.release),
                 "see that the kernel's module package has it");
        }
    }

    /// What the lines of modprobedDir do to a module.
    void configuration(const kmod::IndexedModule& module, const kmod::LoadOrder& order) {
        kmod::ModprobeConfig config = request_.configuration;
        for (const auto& [alias, meant] : order.by_alias) kmod::add_alias_options(config, alias, meant);
        const std::string& name = module.file.name;
        const bool named = kmod::is_named(name, index_.find(request_.module)->file.name, request_.also);
        const auto blacklisted = config.blacklist.find(name);
        if (named && request_.uses_blacklist && blacklisted != config.blacklist.end())
            find(Severity::error, "blacklisted-module",
                 fmt::format("module {} is blacklisted in {}, and modprobe is called with -b: it is not loaded", name,
                             base::escape(blacklisted->second.where)),
                 fmt::format("remove that line {}, or -b from the Module", kmod::place_of(blacklisted->second.source)));
        kmod::check_alias_lines(config, name, "kmm-worker loads the module of that name",
                                named ? Severity::error : Severity::warning, out_);
        const kmod::HostCommand* command = kmod::command_for(config.install, name);
        auto loaded = order.names;
        loaded.insert(loaded.end(), order.external.begin(), order.external.end());
        const bool is_dropped =
            kmod::is_install_dropped(config.softdeps, name, module.file.info_all("softdep"), loaded);
        if (command != nullptr && !is_dropped && !(named && request_.ignores_install))
            find(Severity::warning, "install-command",
                 fmt::format("{} names '{}' to be run instead of loading module {}: modprobe runs it, kmm-worker "
                             "refuses the load",
                             base::escape(command->where), base::escape(command->text), name),
                 fmt::format("remove that line {}{}", kmod::place_of(command->source),
                             named ? ", or add --ignore-install to args.load or rawArgs.load" : ""));
        const auto options = config.options.find(name);
        if (options != config.options.end())
            kmod::check_options(module.file, options->second,
                                name == index_.find(request_.module)->file.name ? request_.parameters
                                                                             : std::vector<std::string>(),
                                out_);
    }

    void firmware(const kmod::IndexedModule& module) {
        if (!request_.has_firmware) return;
        for (const auto& name : module.file.info_all("firmware")) {
            if (std::binary_search(request_.firmware.begin(), request_.firmware.end(), name)) continue;
            find(Severity::warning, "firmware-not-in-image",
                 fmt::format("module {} may ask for firmware {}, which is not in the image", module.file.name,
                             base::escape(name)));
        }
    }

    const kmod::ModuleIndex& index_;
    const Request& request_;
    const Interface* interface_;
    bool vermagic_told_ = false;
    std::set<std::string> left_out_;
    Diagnostics out_;
};

}  // namespace

Diagnostics judge(const kmod::ModuleIndex& index, const Request& request, const Interface* interface) {
    return Judge(index, request, interface).run();
}

}  // namespace kmm::kernel
