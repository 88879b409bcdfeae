// SPDX-License-Identifier: Apache-2.0
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/check/errno_doctor.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/host/host_tree.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/host/keyring.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kmod {

namespace {

constexpr const char* k_listed = "module_blacklist= on the kernel command line names it";
constexpr std::string_view k_own_answer = "the module's own init function returned it";

Applies yes_if(bool is) { return is ? Applies::yes : Applies::no; }

/// Finds the causes of one errno.
class Doctor {
public:
    Doctor(int number, const HostPaths& host, const KernelState& state, const Suspect& suspect)
        : number_(number), host_(host), state_(state), file_(suspect.file), parameters_(suspect.parameters) {}

    std::vector<Cause> run() {
        if (is_signature_errno(number_)) keys();
        switch (number_) {
            case EPERM: permission(); break;
            case ENOENT: symbols(); break;
            case EINVAL: invalid(); break;
            case ENOEXEC: format(); break;
            case EEXIST: exists(); break;
            case EBUSY: busy(); break;
            case EACCES: access(); break;
            case ENOMEM: case ENOSPC: memory(); break;
            case ENODEV: device(); break;
            case ESRCH: versions(); break;
            case ENOSYS: missing_call(); break;
            case EBADMSG: case ELIBBAD: case ENOPKG: damaged(); break;
            default: break;
        }
        if (causes_.empty()) add(std::string(load_advice(number_).cause), Applies::unknown, "");
        const bool named = std::any_of(causes_.begin(), causes_.end(), [](const Cause& cause) {
            return cause.text.find("init function") != std::string::npos;
        });
        if (!named) add(std::string(k_own_answer), Applies::unknown, "");  // which may return any number
        return std::move(causes_);
    }

private:
    void add(std::string text, Applies applies, std::string evidence) {
        causes_.push_back({std::move(text), applies, std::move(evidence)});
    }

    /// What was read from `path`: nothing is known without it.
    void add_seen(std::string text, const std::string& path, bool is, std::string evidence) {
        const bool read = read_text(path).has_value();
        if (!read) evidence = path + " cannot be read";
        add(std::move(text), read ? yes_if(is) : Applies::unknown, std::move(evidence));
    }

    void permission() {
        add_seen("this process has no CAP_SYS_MODULE", host_.proc + "/self/status", !state_.cap_sys_module,
                 state_.cap_sys_module ? "it has" : "CapEff of this process");
        add_seen("loading of modules is switched off until the next boot", host_.proc + "/sys/kernel/modules_disabled",
                 state_.modules_disabled, fmt::format("modules_disabled is {}", state_.modules_disabled ? 1 : 0));
        const bool locked = state_.lockdown == "integrity" || state_.lockdown == "confidentiality";
        std::string evidence = fmt::format("lockdown is {}", state_.lockdown);
        if (file_ != nullptr) evidence += file_->is_signed ? ", the module is signed" : ", the module is not signed";
        add("lockdown refuses modules without a valid signature", yes_if(locked), evidence);
        const auto listed = read_modprobe_config(host_).kernel_blacklist;
        const std::vector<std::string> names(listed.begin(), listed.end());
        const bool named = file_ != nullptr && listed.contains(file_->name);
        if (file_ == nullptr && !names.empty()) {
            add(k_listed, Applies::unknown, "it holds " + first_of(names));
        } else {
            add_seen(k_listed, host_.proc + "/cmdline", named,
                     names.empty() ? "there is no module_blacklist=" : "it holds " + first_of(names));
        }
        std::string profile = read_text(host_.proc + "/self/attr/apparmor/current")
                                  .value_or(read_text(host_.proc + "/self/attr/current").value_or(""));
        profile = base::escape(base::trim(profile));
        add("a security module refused", Applies::unknown,
            profile.ends_with(" (enforce)") ? "AppArmor confines this process by the profile " + profile : "");
    }

    void symbols() {
        if (file_ == nullptr) {
            add("a symbol that the module needs is not exported", Applies::unknown,
                "kmm-worker check names the symbols");
            return;
        }
        std::set<std::string> wanted;
        for (const auto& symbol : file_->undefined) {
            if (!symbol.weak) wanted.insert(symbol.name);
        }
        const auto exported = kernel_exports(host_, wanted);
        if (!exported) {
            add("a symbol that the module needs is not exported", Applies::unknown,
                host_.proc + "/kallsyms cannot be read");
            return;
        }
        std::vector<std::string> missing;
        std::set_difference(wanted.begin(), wanted.end(), exported->begin(), exported->end(),
                            std::back_inserter(missing));
        add("a symbol that the module needs is not exported", yes_if(!missing.empty()),
            missing.empty() ? "all are" : first_of(missing));
        add("a symbol is exported to GPL modules only", yes_if(false),
            fmt::format("the license is '{}'", base::escape(file_->info("license"))));
        causes_.back().applies = file_->gpl_compatible() ? Applies::no : Applies::unknown;
    }

    void versions() {
        const auto directory = host_module_directory(host_, node_facts(host_).kernel);
        std::vector<std::string> differing;
        if (file_ != nullptr) {
            auto expected = header_crcs(directory);
            if (const auto reference = reference_module(directory))
                expected.insert(reference->crcs.begin(), reference->crcs.end());
            for (const auto& [symbol, crc] : file_->crcs) {
                const auto it = expected.find(std::string(symbol));
                if (it != expected.end() && it->second != crc)
                    differing.push_back(fmt::format("{} has {:#010x}, this kernel {:#010x}", symbol, crc, it->second));
            }
        }
        add("a symbol has another version (CRC)", file_ == nullptr ? Applies::unknown : yes_if(!differing.empty()),
            differing.empty() ? "" : first_of(differing));
    }

    void invalid() {
        versions();
        add("the module does not import a symbol's namespace", Applies::unknown, file_ == nullptr ? "" : imported());
        std::string declared;
        if (file_ != nullptr && !parameters_.empty()) {
            declared = "given: " + base::escape(parameters_);
            for (const auto& parameter : file_->parameters()) {
                if (!parameter.type.empty()) declared += fmt::format("; {} is {}", parameter.name, parameter.type);
            }
        }
        add("a parameter has a value that does not fit",
            file_ != nullptr && parameters_.empty() ? Applies::no : Applies::unknown,
            file_ != nullptr && parameters_.empty() ? "none was given" : declared);
        add(std::string(k_own_answer), Applies::unknown, "");
    }

    [[nodiscard]] std::string imported() const {
        const auto names = file_->info_all("import_ns");
        return names.empty() ? "it imports none" : "it imports " + first_of(names);
    }

    void format() {
        const auto facts = node_facts(host_);
        const auto reference = reference_module(host_module_directory(host_, facts.kernel));
        if (file_ == nullptr) {
            add("the module was built for another kernel (vermagic)", Applies::unknown,
                reference ? fmt::format("this kernel wants '{}'", reference->vermagic) : "");
            add("the module is for another architecture", Applies::unknown, "this node is " + facts.architecture);
            add("module_layout has another version (CRC)", Applies::unknown, "");
            add("a symbol that the module exports is exported already", Applies::unknown, "");
            return;
        }
        const auto differing =
            reference ? vermagic_differences(file_->vermagic(), reference->vermagic) : std::vector<std::string>{};
        add("the module was built for another kernel (vermagic)",
            reference ? yes_if(!differing.empty()) : Applies::unknown,
            fmt::format("'{}', this kernel wants '{}'{}", base::escape(file_->vermagic()),
                        reference ? reference->vermagic : facts.kernel,
                        differing.empty() ? "" : ", differing: " + base::join(differing, ", ")));
        add("the module is for another architecture", yes_if(file_->machine != facts.architecture),
            fmt::format("{}, this node is {}", file_->machine, facts.architecture));
        const auto ours = file_->crcs.find("module_layout");
        const auto theirs =
            reference ? reference->crcs.find("module_layout") : std::map<std::string, std::uint32_t>::const_iterator{};
        const bool known = ours && reference && theirs != reference->crcs.end();
        add("module_layout has another version (CRC)", known ? yes_if(*ours != theirs->second) : Applies::unknown,
            known ? fmt::format("{:#010x}, this kernel {:#010x}", *ours, theirs->second) : "");
        const auto owners = exporters_of(host_, {file_->exported.begin(), file_->exported.end()});
        std::vector<std::string> twice;
        for (const auto& [symbol, owner] : owners.value_or(std::map<std::string, std::string>{}))
            twice.push_back(
                fmt::format("{} by {}", base::escape(symbol), owner.empty() ? "the kernel" : "module " + owner));
        add("a symbol that the module exports is exported already", owners ? yes_if(!twice.empty()) : Applies::unknown,
            twice.empty() ? "" : first_of(twice));
    }

    void exists() {
        if (file_ == nullptr) {
            add("a module of this name is live already", Applies::unknown, "kmm-worker status MODULE");
            return;
        }
        const auto live = live_module(host_, file_->name);
        const bool builtin = live && live->state == "builtin";
        std::string evidence = "no such module is live";
        if (live && !builtin) {
            const auto verdict = compare_identity(*file_, *live);
            evidence = fmt::format("{} is live{}, {}", live->version.empty() ? "it" : "version " + live->version,
                                   live->taint.find('O') == std::string::npos ? " from the kernel's own tree"
                                                                              : " from outside of the kernel's tree",
                                   verdict.identity == Identity::unknown
                                       ? "its build is unknown"
                                       : fmt::format("{} {}, wanted {}", verdict.what, verdict.loaded, verdict.wanted));
        }
        add("a module of this name is live already", yes_if(live && !builtin), evidence);
        add("the module is built into the kernel", yes_if(builtin), "");
    }

    void busy() {
        std::vector<std::string> moving;
        for (const auto& name : live_modules(host_)) {
            if (file_ != nullptr && name != file_->name) continue;
            const auto live = live_module(host_, name);
            if (live && (live->state == "coming" || live->state == "going"))
                moving.push_back(fmt::format("{} is {}", name, live->state));
        }
        add("another load or unload of the same module is under way", yes_if(!moving.empty()),
            !moving.empty()    ? first_of(moving)
            : file_ != nullptr ? "it is neither coming nor going"
                               : "no module is coming or going");
        add(std::string(k_own_answer), Applies::unknown, "");
    }

    void keys() {
        const std::string enforce = fmt::format("sig_enforce is {}, lockdown {}, Secure Boot {}",
                                                state_.sig_enforce ? "on" : "off", state_.lockdown, secure_boot());
        if (file_ == nullptr) {
            const auto known = kernel_keys(host_);
            add("the module is not signed", Applies::unknown, enforce);
            add("no key of this kernel fits the signature", Applies::unknown,
                known ? fmt::format("{} keys: {}", known->size(), first_of(*known)) : "the keyrings cannot be seen");
            add("the key has expired or was revoked", Applies::unknown, "");
            return;
        }
        add("the module is not signed", yes_if(!file_->is_signed && wants_signatures(state_)), enforce);
        if (!file_->is_signed) return;
        const ModuleSignature signature = file_->signature();
        add("the signature is damaged", yes_if(!signature.fault.empty()), signature.fault);
        const auto directory = host_module_directory(host_, node_facts(host_).kernel);
        const auto reference = reference_module(directory);
        const ModuleSignature* own = own_signature(reference ? &*reference : nullptr, directory);
        const KeyPresence presence = find_key(signature, kernel_keys(host_), own, enrolled_certificates(host_));
        add("no key of this kernel fits the signature",
            !wants_signatures(state_)          ? Applies::no
            : presence == KeyPresence::unknown ? Applies::unknown
                                               : yes_if(presence == KeyPresence::absent),
            signature_text(signature) + "; " + enforce);
        if (number_ == EKEYREJECTED)
            add("the file is not the one that was signed", Applies::unknown, signature_text(signature));
        add("the key has expired or was revoked",
            number_ == EKEYEXPIRED || number_ == EKEYREVOKED ? Applies::yes : Applies::unknown,
            signature_text(signature));
    }

    [[nodiscard]] std::string secure_boot() const {
        const auto value =
            read_raw(host_.sys + "/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 16);
        if (!value || value->size() < 5) return "unknown";
        return value->back() == 1 ? "on" : "off";
    }

    void access() {
        std::string context = read_text(host_.proc + "/self/attr/current").value_or("");
        while (!context.empty() && context.back() == '\0') context.pop_back();
        const bool enforcing = read_text(host_.sys + "/fs/selinux/enforce").value_or("0") == "1";
        add("SELinux refused module_load", enforcing ? Applies::yes : Applies::no,
            enforcing ? fmt::format("this process runs as {}, the module is in memory of the same context",
                                    base::escape(context))
                      : "SELinux is not enforcing");
        const std::string line = read_text(host_.proc + "/cmdline", 1U << 16U).value_or("");
        const bool appraise =
            line.find("ima_appraise=enforce") != std::string::npos || line.find("ima_policy=") != std::string::npos;
        add("IMA appraisal refused a file without a signature", appraise ? Applies::yes : Applies::unknown,
            appraise ? "ima settings on the kernel command line" : "");
        const bool pinned = read_text(host_.proc + "/sys/kernel/loadpin/enforce").value_or("0") == "1";
        add("LoadPin wants modules from the root file system", yes_if(pinned),
            pinned ? "loadpin/enforce is 1" : "LoadPin is not active");
    }

    void memory() {
        std::string sizes;
        const std::string text = read_text(host_.proc + "/meminfo").value_or("");
        for (const auto line : base::split(text, '\n')) {
            if (line.starts_with("MemAvailable:") || line.starts_with("VmallocTotal:") ||
                line.starts_with("VmallocUsed:")) {
                const auto colon = line.find(':');
                sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", line.substr(0, colon),
                                     base::trim(line.substr(colon + 1)));
            }
        }
        if (file_ != nullptr)
            sizes =
                fmt::format("the module has {}{}{}", base::format_bytes(file_->size), sizes.empty() ? "" : "; ", sizes);
        const auto available = available_memory(host_);
        const bool enough = number_ == ENOMEM && file_ != nullptr && available && *available / 2 > file_->size;
        add(std::string(load_advice(number_).cause), enough ? Applies::no : Applies::unknown, sizes);
    }

    void device() {
        if (file_ == nullptr) {
            add(std::string(load_advice(number_).cause), Applies::unknown, "");
            return;
        }
        const auto aliases = file_->info_all("alias");
        std::vector<std::string> fitting;
        std::error_code error;
        for (std::filesystem::directory_iterator bus(host_.sys + "/bus", error), end; !error && bus != end;
             bus.increment(error)) {
            std::error_code inner;
            for (std::filesystem::directory_iterator it(bus->path() / "devices", inner), last; !inner && it != last;
                 it.increment(inner)) {
                const auto alias = read_text(it->path().native() + "/modalias", 4096);
                if (!alias) continue;
                const bool fits = std::any_of(aliases.begin(), aliases.end(), [&](const std::string& a) {
                    return ::fnmatch(a.c_str(), alias->c_str(), 0) == 0;
                });
                if (fits) fitting.push_back(it->path().filename().native());
            }
        }
        add("the module loaded correctly, but found no device on this node",
            aliases.empty() ? Applies::unknown : yes_if(fitting.empty()),
            aliases.empty()   ? "it names no devices"
            : fitting.empty() ? fmt::format("none of its {} aliases fits a device", aliases.size())
                              : "fitting devices: " + first_of(fitting));
    }

    void missing_call() {
        add("this kernel was built without loadable modules", yes_if(!state_.modules_supported),
            fmt::format("{}/modules is {}there", host_.proc, state_.modules_supported ? "" : "not "));
        add("a filter of the container refuses the call", Applies::unknown, "");
    }

    void damaged() {
        if (file_ == nullptr) return;
        const std::string fault = file_->is_signed ? file_->signature().fault : std::string();
        if (number_ == ELIBBAD) {
            add(std::string(load_advice(number_).cause), fault.empty() ? Applies::no : Applies::yes,
                fault.empty() ? "it was read as a module, to its end" : fault);
        } else if (file_->is_signed) {
            add(std::string(load_advice(number_).cause), fault.empty() ? Applies::unknown : Applies::yes,
                signature_text(file_->signature()));
        } else {
            add(std::string(load_advice(number_).cause), Applies::no, "the module is not signed");
        }
    }

    int number_;
    const HostPaths& host_;
    const KernelState& state_;
    const ModuleFile* file_;
    std::string parameters_;
    std::vector<Cause> causes_;
};

}  // namespace

std::vector<Cause> load_causes(int number, const HostPaths& host, const KernelState& state, const Suspect& suspect) {
    return Doctor(number, host, state, suspect).run();
}

}  // namespace kmm::kmod
