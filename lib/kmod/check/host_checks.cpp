// SPDX-License-Identifier: Apache-2.0
#include "kmod/check/host_checks.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/check/parameters.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/host/keyring.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> meminfo(const HostPaths& host, std::string_view key) {
    const std::string text = read_text(host.proc + "/meminfo").value_or("");
    for (const auto line : base::split(text, '\n')) {
        if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
        const auto words = base::trim(line.substr(key.size() + 1));
        std::uint64_t kilobytes = 0;
        if (std::from_chars(words.data(), words.data() + words.size(), kilobytes).ec == std::errc{})
            return kilobytes * 1024;
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> available_memory(const HostPaths& host) { return meminfo(host, "MemAvailable"); }

void add_finding(Diagnostics& findings, Severity severity, std::string code, std::string message, std::string hint) {
    findings.push_back(
        Diagnostic{severity, std::move(code), std::move(message), std::nullopt, std::move(hint), Exit::checks_failed});
}

bool is_of_host(const CheckInput& input, const IndexedModule& module) {
    return !input.directory.empty() &&
           module.path.starts_with(fs::path(input.directory).parent_path().native() + "/");
}

bool wants_signatures(const KernelState& state) {
    return state.sig_enforce || state.lockdown == "integrity" || state.lockdown == "confidentiality";
}

std::string first_of(const std::vector<std::string>& names) {
    auto shown = names;
    for (auto& name : shown) name = base::escape(name);
    return base::join_some(shown, 5);
}

bool is_named(std::string_view name, const std::string& module, const std::vector<std::string>& also) {
    return name == normalise_name(module) ||
           std::any_of(also.begin(), also.end(), [&](const std::string& each) { return normalise_name(each) == name; });
}

void check_alias_lines(const ModprobeConfig& config, const std::string& name, std::string_view instead,
                       Severity if_off, Diagnostics& findings) {
    for (const auto& alias : config.aliases) {
        if (alias.module == name || !alias_fits(alias.pattern, name)) continue;
        add_finding(
            findings, alias.module == "off" ? if_off : Severity::warning, "host-alias",
            fmt::format("{} makes {} an alias of {}; {}", base::escape(alias.where), name,
                        alias.module == "off"
                            ? "off, so that modprobe loads nothing"
                            : fmt::format("module {}, which modprobe would load", base::escape(alias.module)),
                        instead),
            fmt::format("remove that line {} if it is not meant", place_of(alias.source)));
    }
}

namespace {

/// The softdep= values of a module that is loaded.
std::vector<std::string> softdeps_of(const CheckInput& input, const std::string& name) {
    if (const IndexedModule* module = input.index.find(name)) return module->file.info_all("softdep");
    for (const auto& module : input.found.host_modules)
        if (module.name == name) return module.softdeps;
    return {};
}

}  // namespace

void check_configuration(const CheckInput& input, Diagnostics& findings) {
    const ModprobeConfig& config = input.found.config;
    std::vector<std::string> names = input.found.order.names;
    for (const auto& module : input.found.host_modules) names.push_back(module.name);
    for (const auto& name : names) {
        const bool named = is_named(name, input.request.module, input.request.also);
        if (config.kernel_blacklist.contains(name)) {
            add_finding(
                findings, Severity::error, "blacklisted-module",
                fmt::format("module {} is in module_blacklist= of the kernel command line: the kernel refuses it",
                            name),
                "remove it there and reboot the node");
        } else if (const auto it = config.blacklist.find(name); it != config.blacklist.end()) {
            const bool counts = named && input.request.blacklist == BlacklistRule::honour;
            add_finding(findings, counts ? Severity::error : Severity::warning, "blacklisted-module",
                        fmt::format("module {} is blacklisted in {}{}", name, base::escape(it->second.where),
                                    counts ? "" : "; udev does not load it, this command does"));
        }
        check_alias_lines(config, name, "here it is the module of that name", Severity::warning, findings);
        if (const HostCommand* command = command_for(config.install, name)) {
            const bool ignored = named && input.request.install_commands == InstallCommands::ignore;
            const bool dropped = is_install_dropped(config.softdeps, name, softdeps_of(input, name), names);
            add_finding(findings, ignored || dropped ? Severity::warning : Severity::error, "install-command",
                        fmt::format("{} wants '{}' to be run instead of loading module {}; {}",
                                    base::escape(command->where), base::escape(command->text), name,
                                    dropped ? "as it has a softdep, modprobe loads it, and so does this command"
                                            : "commands are never run"),
                        ignored || dropped ? std::string()
                                : fmt::format("remove that line {}{}", place_of(command->source),
                                              named ? ", or add --ignore-install to args.load or rawArgs.load" : ""));
        }
        if (const auto it = config.options.find(name); it != config.options.end()) {
            std::string text;
            bool of_host = false, of_image = false;
            for (const auto& option : it->second) {
                (option.source == ConfigSource::image ? of_image : of_host) = true;
                text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", base::escape(option.text),
                                    base::escape(option.where));
            }
            const char* whose = !of_image ? "this host" : of_host ? "this host and the image" : "the image";
            add_finding(findings, Severity::warning, "host-options",
                        fmt::format("module {} gets options of {}: {}", name, whose, text));
            if (const IndexedModule* module = input.index.find(name))
                check_options(module->file, it->second,
                              name == normalise_name(input.request.module) ? input.request.parameters
                                                                        : std::vector<std::string>(),
                              findings);
        }
    }
}

/// What a key of the signer's name is, if that is not the signer's: "" or a clause.
std::string other_key_of_name(const ModuleSignature& signature, const std::optional<std::vector<std::string>>& keys,
                              const ModuleSignature* own, const std::vector<EnrolledCertificate>& enrolled) {
    if (find_key(signature, keys) != KeyPresence::present) return {};
    if (find_key(signature, keys, nullptr, enrolled) == KeyPresence::present && own != nullptr)
        return fmt::format("; the modules of this kernel are signed with another key of the name {}, {}",
                           base::escape(own->signer), own->key_id);
    return "; the enrolled certificate of that name has another serial number, and the kernel does not trust what it "
           "has issued";
}

void check_signatures(const CheckInput& input, const HostModule* reference, Diagnostics& findings) {
    const bool wanted = wants_signatures(input.state);
    const bool known =
        read_text(input.host.sys + "/module/module/parameters/sig_enforce").has_value();  // CONFIG_MODULE_SIG
    const std::string switches =
        fmt::format("sig_enforce {}, lockdown {}", input.state.sig_enforce ? "on" : "off", input.state.lockdown);
    const auto keys = kernel_keys(input.host);
    const ModuleSignature* own = own_signature(reference, input.directory);
    const auto enrolled = enrolled_certificates(input.host);
    const auto revoked = revoked_certificates(input.host);
    const auto heeds_revocations = kernel_option(input, "CONFIG_SYSTEM_REVOCATION_LIST");
    for (const auto& name : input.found.order.names) {
        const ModuleFile& file = input.index.find(name)->file;
        const ModuleSignature signature = file.signature();
        // The kernel takes it; who wants trusted modules only should not.
        if (const std::string weak = weak_digest_of(signature); !weak.empty() && (wanted || known)) {
            add_finding(findings, wanted ? Severity::error : Severity::warning, "weak-digest",
                        fmt::format("the signature of module {} is of its {} digest, and another module with the same "
                                    "digest can be made ({})",
                                    name, weak, switches),
                        "sign the module again with sha256 or sha512");
        }
        if (!file.is_signed) {
            if (!wanted) continue;
            add_finding(findings, Severity::error, "unsigned-module",
                        fmt::format("module {} is not signed, and this kernel wants signatures ({})", name, switches),
                        "sign the module with a key that the kernel trusts");
        } else if (!signature.fault.empty()) {
            if (!known && !wanted) continue;
            add_finding(findings, Severity::error, "bad-signature",
                        fmt::format("the signature of module {} is damaged: {}", name, signature.fault),
                        "sign the module again, and do not strip it afterwards");
        } else if (heeds_revocations.value_or(known) && is_revoked(signature, revoked)) {
            add_finding(findings, wanted && heeds_revocations ? Severity::error : Severity::warning, "key-revoked",
                        fmt::format("the key of module {} was revoked (MokListX or dbx), and kernels with a revocation "
                                    "list refuse what it has signed ({}; {})",
                                    name, signature_text(signature), switches),
                        "sign the module with another key, and enrol that (mokutil --import)");
        } else if (const auto presence = find_key(signature, keys, own, enrolled);
                   presence == KeyPresence::absent && (wanted || known)) {
            const auto is_own = [&](const ModuleSignature& each) {
                return own != nullptr && each.signer == own->signer && each.key_id == own->key_id;
            };
            if (is_own(signature) || std::any_of(signature.others.begin(), signature.others.end(), is_own)) continue;
            add_finding(findings, wanted ? Severity::error : Severity::warning, "key-not-trusted",
                        fmt::format("no key of this kernel's keyrings fits the signature of module {} ({}; {}){}", name,
                                    signature_text(signature), switches,
                                    other_key_of_name(signature, keys, own, enrolled)),
                        wanted ? "enrol the key (mokutil --import), or sign with a trusted one"
                               : "the module loads, and taints the kernel with E");
        } else if (presence == KeyPresence::unknown && wanted) {
            add_finding(
                findings, Severity::warning, "key-not-checked",
                fmt::format(
                    "the keys in {}/keys cannot be seen: whether this kernel trusts module {} ({}) was not checked",
                    input.host.proc, name, signature_text(signature)));
        }
    }
}

void check_conflicts(const CheckInput& input, Diagnostics& findings) {
    const auto builtins = builtin_names(input.directory);
    for (const auto& name : input.found.order.names) {
        const auto live = live_module(input.host, name);
        if (builtins.contains(name) || (live && live->state == "builtin")) {
            add_finding(findings, Severity::error, "builtin-module",
                        fmt::format("module {} is built into kernel {}, the kernel would refuse a second one", name,
                                    input.facts.kernel));
            continue;
        }
        const bool replaced = gives_way(input, name);
        if (live && (!replaced || is_out_of_tree(*live))) {
            const IdentityVerdict verdict = judge_identity(input.host, *input.index.find(name), *live);
            if (verdict.identity == Identity::different) {
                add_finding(
                    findings, Severity::warning, "other-build-live",
                    fmt::format("another build of module {} is live ({} {}, wanted {}): it has to be unloaded before",
                                name, verdict.what, verdict.loaded, verdict.wanted));
            }
        }
        if (replaced || input.found.config.blacklist.contains(name) || input.directory.empty()) continue;
        if (const auto twin = find_host_module(input.directory, name);
            twin && !twin->builtin &&
            host_module_file(input.directory, twin->modules.back().path) != input.index.find(name)->path) {
            add_finding(findings, Severity::warning, "name-conflict",
                        fmt::format("this host has a module {} of its own, {}; udev or modprobe may load that one",
                                    name, base::escape(on_host(input.host, twin->modules.back().path))),
                        "list it in inTreeModulesToRemove, and blacklist it on the node");
        }
    }
    check_aliases(input, findings);
}

bool refuses_unsupported(const HostPaths& host) {
    return read_text(host.proc + "/sys/kernel/unsupported").value_or("") == "0";
}

void check_support(const HostPaths& host, const ModuleFile& file, Diagnostics& findings) {
    if (!refuses_unsupported(host)) return;
    if (const std::string mark = file.info("supported"); mark == "yes" || mark == "external") return;
    add_finding(findings, Severity::error, "module-unsupported",
                fmt::format("this kernel refuses modules that SUSE does not support (kernel.unsupported is 0), and "
                            "module {} is not marked as supported",
                            file.name),
                "set the node's sysctl kernel.unsupported to 1, which marks its kernel as unsupported");
}

void check_marks(const CheckInput& input, const HostModule* reference, Diagnostics& findings) {
    for (const auto& name : input.found.order.names) {
        const IndexedModule& module = *input.index.find(name);
        check_support(input.host, module.file, findings);
        if (!module.file.gpl_compatible()) {
            const std::string license = module.file.info("license");
            add_finding(
                findings, Severity::warning, "license-taint",
                fmt::format("module {} has {}: it taints the kernel with P (proprietary)", name,
                            license.empty() ? "no license" : fmt::format("the license '{}'", base::escape(license))));
        }
        if (reference != nullptr && reference->structure_bytes != 0 &&
            reference->structure_bytes != module.file.structure_bytes) {
            add_finding(
                findings, Severity::error, "structure-differs",
                fmt::format("struct module has {} bytes in module {} and {} in this kernel's own: the headers were of "
                            "another configuration",
                            module.file.structure_bytes, name, reference->structure_bytes),
                "rebuild it against the headers of the running kernel: kernels from 6.4 on refuse it, earlier ones "
                "write where they should not");
        }
        if (reference != nullptr && reference->retpoline && module.file.info("retpoline").empty()) {
            add_finding(findings, Severity::warning, "no-retpoline",
                        fmt::format("module {} was built without retpolines, with which this kernel was: it opens the "
                                    "node to Spectre v2",
                                    name),
                        "rebuild it with the compiler and configuration of the kernel");
        }
        if (module.file.in_tree() && !is_of_host(input, module)) {
            add_finding(findings, Severity::warning, "intree-flag",
                        fmt::format("module {} says of itself that it is of the kernel's own tree (intree=Y): the "
                                    "kernel does not mark it with O",
                                    name),
                        "build it outside of the kernel's tree");
        }
    }
}

namespace {

/// Listed modules that a load would unload first.
std::vector<std::string> leaving_modules(const CheckInput& input) {
    std::vector<std::string> leaving;
    for (const auto& listed : input.request.in_tree_modules_to_remove) {
        const std::string name = normalise_name(listed);
        const IndexedModule* own = input.index.find(name);
        const auto live = live_module(input.host, name);
        const bool stays = !live || live->state == "builtin" ||
                           (own != nullptr && judge_identity(input.host, *own, *live).identity != Identity::different);
        if (!stays && std::find(leaving.begin(), leaving.end(), name) == leaving.end()) leaving.push_back(name);
    }
    return leaving;
}

constexpr std::string_view k_switches[] = {"modules-disabled",   "no-module-support", "blacklisted-module",
                                           "install-command",    "no-memory",         "module-unsupported"};
constexpr std::string_view k_signature_switches[] = {"weak-digest", "unsigned-module", "key-revoked",
                                                     "key-not-trusted"};

bool is_one_of(std::span<const std::string_view> codes, const std::string& code) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
}

}  // namespace

void check_live(const CheckInput& input, Diagnostics& findings) {
    const std::vector<std::string> leaving = leaving_modules(input);
    std::vector<std::string> wanted = input.found.order.names;
    for (const auto& module : input.found.host_modules) wanted.push_back(module.name);
    wanted.insert(wanted.end(), leaving.begin(), leaving.end());
    for (const auto& name : wanted) {
        const auto live = live_module(input.host, name);
        if (!live || live->state == "live" || live->state == "builtin") continue;
        add_finding(findings, Severity::warning, "module-on-its-way",
                    fmt::format("module {} is {}: a load waits for that for a moment, and ends without another attempt "
                                "if it does not change",
                                name, live->state),
                    "look at kmm-worker status and at the kernel's log");
    }
    for (const auto& name : leaving) {
        const auto live = live_module(input.host, name);
        if (!live) continue;
        std::vector<std::string> holders;
        std::copy_if(live->holders.begin(), live->holders.end(), std::back_inserter(holders),
                     [&](const std::string& holder) {
                         return std::find(leaving.begin(), leaving.end(), holder) == leaving.end();
                     });
        if (const std::string owner = owner_on_record(input.host, *live, normalise_name(input.request.module));
            !owner.empty()) {
            add_finding(findings, Severity::warning, "not-in-tree",
                        fmt::format("module {} is to give way and is not the kernel's own: kmm-worker loaded it{}, and "
                                    "a load fails as long as that is so",
                                    name, owner == name ? "" : fmt::format(" for module {}", owner)),
                        fmt::format("kmm-worker unload --module {} first, or take {} off inTreeModulesToRemove", owner,
                                    name));
            continue;
        }
        if (is_out_of_tree(*live) && input.index.find(name) == nullptr) {
            add_finding(findings, Severity::warning, "not-in-tree",
                        fmt::format("module {} is to give way and is not the kernel's own (taint {}): somebody else "
                                    "loaded it",
                                    name, live->taint),
                        fmt::format("take {} off inTreeModulesToRemove if it is to stay", name));
        }
        const bool used = live->refcount.value_or(0) > static_cast<long>(live->holders.size());
        if (is_permanent(input.host, name)) {
            add_finding(findings, Severity::warning, "in-tree-in-use",
                        fmt::format("module {} is to give way and has no exit function: it stays until the node is "
                                    "rebooted, and a load fails",
                                    name),
                        "blacklist it on the node, and reboot it");
            continue;
        }
        if (holders.empty() && !used) continue;
        add_finding(
            findings, Severity::warning, "in-tree-in-use",
            holders.empty()
                ? fmt::format("module {} is to give way and is in use (refcount {}): a load waits for its users, and "
                              "fails if they stay",
                              name, *live->refcount)
                : fmt::format(
                      "module {} is to give way, and {} of this host needs it: a load fails as long as that is so",
                      name, first_of(holders)),
            holders.empty() ? "stop what uses it" : "list the modules that need it in inTreeModulesToRemove, too");
    }
}

Diagnostics pardon_live(const CheckInput& input, Diagnostics& findings) {
    const LoadOrder& order = input.found.order;
    bool proven = true;
    for (const auto& name : order.names) {
        if (order.optional.contains(name)) continue;
        const auto live = live_module(input.host, name);
        if (!live || live->state != "live") return {};
        const IdentityVerdict verdict = judge_identity(input.host, *input.index.find(name), *live);
        if (verdict.identity != Identity::same) return {};
        proven = proven && verdict.what != "srcversion";
    }
    for (const auto& module : input.found.host_modules) {
        if (!order.optional.contains(module.name) && !live_module(input.host, module.name)) return {};
    }
    if (!leaving_modules(input).empty()) return {};
    Diagnostics pardoned;
    for (Diagnostic& finding : findings) {
        if (finding.severity != Severity::error ||
            !(is_one_of(k_switches, finding.code) || (proven && is_one_of(k_signature_switches, finding.code))))
            continue;
        pardoned.push_back(finding);
        finding.severity = Severity::warning;
        finding.message += "; it is live already, and nothing is loaded";
    }
    sort_and_merge(pardoned);
    return pardoned;
}

void require_live(const Preflight& checked, const std::string& name, const std::string& module) {
    if (checked.pardoned.empty() || checked.order.optional.contains(name)) return;
    Preflight refused;
    refused.findings = checked.pardoned;
    require_passed(refused, module);
}

void check_process(const CheckInput& input, Diagnostics& findings) {
    if (!input.state.cap_sys_module) {
        add_finding(findings, Severity::warning, "no-capability",
                    "this process has no CAP_SYS_MODULE, which a load needs",
                    "run load as root; in a Pod: securityContext.capabilities.add: [SYS_MODULE]");
    }
    if (read_text(input.host.sys + "/fs/selinux/enforce").value_or("0") == "1") {
        std::string context = read_text(input.host.proc + "/self/attr/current").value_or("");
        if (const auto nul = context.find('\0'); nul != std::string::npos) context.resize(nul);
        const auto fields = base::split(context, ':');
        static constexpr std::string_view may[] = {"spc_t",    "unconfined_t", "unconfined_service_t", "init_t",
                                                   "kernel_t", "sysadm_t",     "super_t",              "control_t"};
        if (fields.size() < 3 || std::find(std::begin(may), std::end(may), fields[2]) == std::end(may)) {
            add_finding(findings, Severity::warning, "selinux",
                        fmt::format("SELinux is enforcing and this process runs as '{}', which may not load modules",
                                    base::escape(context)),
                        "in a Pod: securityContext.seLinuxOptions.type: spc_t");
        }
    }
    std::uint64_t needed = 0;
    for (const auto& name : input.found.order.names) needed += input.index.find(name)->file.size;
    if (const auto available = available_memory(input.host); available && needed > *available) {
        add_finding(findings, Severity::error, "no-memory",
                    fmt::format("the modules take {}, available are {}", base::format_bytes(needed),
                                base::format_bytes(*available)),
                    "free memory on the node");
    }
}

}  // namespace kmm::kmod
