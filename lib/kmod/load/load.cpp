// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/check/host_checks.hpp"
#include "kmod/check/parameters.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/host/soft_needs.hpp"
#include "kmod/load/steps.hpp"
#include "kmod/load/users.hpp"

namespace kmm::kmod {

namespace {

constexpr std::size_t k_devices_max = 256;  // one load makes no more that are worth looking at

bool contains(const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
}

class Loader {
public:
    Loader(const ModuleIndex& index, const Preflight& checked, const LoadRequest& request,
           const FirmwareRequest& firmware, const Machine& machine)
        : index_(index),
          checked_(checked),
          request_(request),
          firmware_(firmware),
          machine_(machine),
          main_(normalise_name(request.module)) {}

    Report run() {
        try {
            return load();
        } catch (Error& error) {  // the cause is often one of these
            add_warnings(error, warnings_as_findings(report_.warnings));
            add_warnings(error, checked_.findings);
            throw;
        }
    }

private:
    Report load() {
        const std::uint64_t taint_before = taint_bits(machine_.host);
        if (request_.force.any())
            report_.warnings.push_back(fmt::format(
                "forced: module {} is loaded although checks of the kernel are switched off, as confirmed", main_));
        look_at_live();
        const auto removal = removal_order(machine_, request_, same_, report_.warnings);
        note_intent(removal);
        try {
            remove_in_tree(removal);
            install_firmware();
            load_host_modules();
            load_image_modules();
        } catch (Error& error) {
            undo(error);
            throw;
        }
        leave_former_directories();
        load_soft_post();
        if (!loaded_.empty()) take_second_look(machine_, index_, {main_, loaded_, taint_before}, report_.warnings);
        if (!loaded_.empty() || !removed_now_.empty()) warn_of_unwatched(machine_.host, taint_before, report_.warnings);
        warn_of_parameters(machine_, index_.find(main_)->file,
                           given_parameters(checked_.config, index_.find(main_)->file, request_.parameters),
                           same_.contains(main_), report_.warnings);
        finish_report();
        report_.new_taint = taint_letters(taint_bits(machine_.host) & ~taint_before);
        return std::move(report_);
    }

    /// Which modules of the image are live already, and as what.
    void look_at_live() {
        for (const auto& name : checked_.order.names) {
            const auto live = settled_module(machine_, name);
            if (!live) continue;
            const IdentityVerdict verdict = judge_identity(machine_.host, *index_.find(name), *live);
            if (verdict.identity == Identity::different) {
                const bool in_tree = !is_out_of_tree(*live);
                if (in_tree && listed_for_removal(request_, name)) continue;
                if (auto left = unload_leftover(machine_, name)) {
                    report_.modules.push_back(std::move(*left));
                    continue;
                }
                if (!goes_without(name, differs_error(name, verdict))) throw differs_error(name, verdict);
                others_.insert(name);
                continue;
            }
            if (verdict.identity == Identity::unknown) {
                report_.warnings.push_back(fmt::format(
                    "identity-unknown: module {} has neither srcversion nor build id; only its name could be compared",
                    name));
            }
            same_.emplace(name, same_by(verdict));
        }
        for (const auto& name : checked_.order.names) {
            if (!same_.contains(name)) require_live(checked_, name, main_);
        }
    }

    void remove_in_tree(const std::vector<std::string>& order) {
        for (const auto& name : order) {
            const auto live = live_module(machine_.host, name);
            const auto start = machine_.clock.monotonic();
            if (!unload_one(machine_, name)) continue;
            removed_now_.push_back(name);
            ModuleReport entry;
            entry.took = machine_.clock.monotonic() - start;
            entry.name = name;
            entry.action = Action::removed_in_tree;
            if (live) {
                entry.srcversion = live->srcversion;
                entry.build_id = live->build_id;
                entry.taint = live->taint;
            }
            report_.modules.push_back(std::move(entry));
        }
    }

    /// Decides where firmware goes and whether the kernel's search path changes; what an earlier run had changed,
    /// finished or killed, is still to be put back.
    void plan_firmware(const std::optional<LoadRecord>& earlier) {
        if (earlier) {
            record_.firmware_directory = earlier->firmware_directory;
            record_.former_firmware_directories = earlier->former_firmware_directories;
            record_.old_firmware_path = earlier->old_firmware_path;
            record_.new_firmware_path = earlier->new_firmware_path;
            record_.former_firmware_path = earlier->former_firmware_path;
        }
        if (firmware_.search_path.empty() && firmware_.from.empty()) return;
        path_before_ = firmware_search_path(machine_.host);
        firmware_target_ = firmware_directory(machine_.host, firmware_.search_path);
        check_firmware_path(firmware_target_);
        if (!firmware_.from.empty()) {
            auto& former = record_.former_firmware_directories;
            if (!record_.firmware_directory.empty()) former.push_back(record_.firmware_directory);
            std::erase_if(former, [&](const std::string& each) {
                return is_same_firmware_directory(machine_.host, each, firmware_target_);
            });
            record_.firmware_directory = firmware_target_;
        }
        if (firmware_.search_path.empty()) return;
        const bool ours = record_.old_firmware_path && is_set_by(record_, path_before_);
        if (ours && record_.new_firmware_path == firmware_target_) return;
        if (earlier && !ours) give_up_search_path(machine_.host, *earlier);  // to whoever set another one since
        record_.former_firmware_path.clear();
        if (!ours && path_before_ == firmware_target_) {
            record_.old_firmware_path.reset();
            record_.new_firmware_path.reset();
            return;
        }
        if (!ours) record_.old_firmware_path = path_before_;
        if (ours) record_.former_firmware_path = path_before_;
        record_.new_firmware_path = firmware_target_;
    }

    /// The files first: where they cannot be written, a live module keeps the path to those that it has.
    void install_firmware() {
        std::vector<FirmwareFile> installed;
        if (!firmware_.from.empty()) {
            installed = installed_firmware();
            for (const auto& file : installed) {
                if (file.others.empty()) continue;
                report_.warnings.push_back(
                    fmt::format("firmware-replaced: {} was brought with other bytes by {}, which may ask for it again",
                                base::escape(file.path), base::join(file.others, ", ")));
            }
        }
        if (!firmware_.search_path.empty() && record_.new_firmware_path)
            (void)set_firmware_search_path(machine_.host, firmware_target_);
        for (const auto& path : firmware_before(machine_.host, here_of(machine_.host, firmware_target_), installed))
            report_.warnings.push_back(fmt::format(
                "firmware-shadowed: the kernel reads {}, which has other bytes, instead of the image's file in {}",
                base::escape(path), base::escape(firmware_target_)));
        for (const auto& path : firmware_instead(machine_.host, installed))
            report_.warnings.push_back(
                fmt::format("firmware-shadowed: the kernel reads {}, a form that it looks for first, instead of the "
                            "image's file in {}",
                            base::escape(path), base::escape(firmware_target_)));
    }

    std::vector<FirmwareFile> installed_firmware() {
        try {
            return kmod::install_firmware(firmware_.from, firmware_of_host(machine_.host, firmware_target_), main_,
                                          firmware_.digests);
        } catch (Error& error) {
            if (error.errno_cause() == EROFS)
                error.hint(fmt::format(
                    "{} is read-only on this node: name another directory with --firmware-path, as /var/lib/firmware",
                    base::escape(firmware_target_)));
            throw;
        }
    }

    /// The module has its firmware where it is wanted now; what is left where an earlier load put it goes.
    void leave_former_directories() {
        if (record_.former_firmware_directories.empty() && record_.former_firmware_path.empty()) return;
        try {
            for (const auto& directory : record_.former_firmware_directories) {
                for (const auto& path : remove_firmware(firmware_of_host(machine_.host, directory), main_))
                    report_.warnings.push_back(
                        fmt::format("firmware-kept: {} was changed since it was installed", base::escape(path)));
            }
            record_.former_firmware_directories.clear();
            record_.former_firmware_path.clear();
            write_record(machine_.host, record_);
        } catch (const Error& error) {
            report_.warnings.push_back("firmware-kept: " + message_in_context(error));  // the unload tries again
        }
    }

    /// After a failed load of a module that is live: its firmware and the path to it are again as the run before left
    /// them.
    void go_back_to_earlier() {
        if (firmware_target_.empty()) return;
        if (!firmware_.search_path.empty() && firmware_search_path(machine_.host) == firmware_target_)
            (void)set_firmware_search_path(machine_.host, path_before_);
        if (!is_same_firmware_directory(machine_.host, record_.firmware_directory, earlier_->firmware_directory))
            (void)remove_firmware(firmware_of_host(machine_.host, record_.firmware_directory), main_);
        LoadRecord as_before = *earlier_;
        as_before.removed_in_tree = record_.removed_in_tree;
        write_record(machine_.host, as_before);
    }

    /// Everything that will be changed is recorded before the first change, so that a kill leaves nothing unknown.
    void note_intent(const std::vector<std::string>& removal) {
        if (const std::string damaged = damaged_record(machine_.host, main_); !damaged.empty()) {
            report_.warnings.push_back(fmt::format(
                "damaged-record: {} is damaged, and replaced: what an earlier load changed for module {} is not known",
                base::escape(damaged), main_));
        }
        earlier_ = read_record(machine_.host, main_);
        const bool live_already = same_.contains(main_);
        record_.module = main_;
        if (earlier_) record_.removed_in_tree = earlier_->removed_in_tree;
        if (earlier_ && earlier_->unloaded) {
            gone_before_ = std::move(earlier_->removed_in_tree);
            left_before_ = std::move(earlier_->dependencies);
            earlier_.reset();
        }
        for (const auto& name : removal) {
            if (!contains(record_.removed_in_tree, name)) record_.removed_in_tree.push_back(name);
        }
        plan_firmware(earlier_);
        const auto known = [&](const std::string& name) {
            return contains(left_before_, name) || (earlier_ && contains(earlier_->dependencies, name)) ||
                   came_as_dependency(machine_.host, name, main_);
        };
        note_shared(known);
        for (const auto& module : checked_.host_modules) {
            if (known(module.name) || !live_module(machine_.host, module.name)) depend_on(module.name);
        }
        for (const auto& name : checked_.order.names) {
            // what somebody else loaded with the main module came with it, as far as one can tell
            const bool ours =
                (!same_.contains(name) && !others_.contains(name)) || known(name) || (live_already && !earlier_);
            if (name != main_ && ours) depend_on(name);
        }
        for (const auto& module : checked_.host_after) depend_on(module.name);
        if (earlier_ || !left_before_.empty()) {  // what came with it before and is live still has come with it
            std::vector<std::string> before = earlier_ ? earlier_->dependencies : left_before_;
            std::erase_if(before, [&](const std::string& name) {
                return contains(record_.dependencies, name) || !live_module(machine_.host, name);
            });
            record_.dependencies.insert(record_.dependencies.begin(), before.begin(), before.end());
        }
        const bool all_live =
            std::all_of(checked_.order.names.begin(), checked_.order.names.end(),
                        [&](const auto& name) { return same_.contains(name) || others_.contains(name); });
        const bool firmware = record_.new_firmware_path || !record_.firmware_directory.empty();
        if (live_already && all_live && !earlier_ && removal.empty() && !firmware &&
            !came_as_dependency(machine_.host, main_, main_))
            return;  // nothing of this will be ours
        try {
            write_record(machine_.host, record_);
            note_gone(machine_.host, record_.dependencies);
        } catch (const Error& error) {
            report_.warnings.push_back(
                fmt::format("no-record: {}; unload will look at the kernel instead", message_in_context(error)));
        }
    }

    void depend_on(const std::string& name) {
        if (!contains(record_.dependencies, name)) record_.dependencies.push_back(name);
    }

    /// Modules of the host that are needed and live already, if this tool loaded them for another module.
    template <typename Known>
    void note_shared(const Known& known) {
        for (const auto* names : {&checked_.order.external, &checked_.order.soft, &checked_.order.soft_post}) {
            for (const auto& name : *names) {
                if (known(name) && live_module(machine_.host, name)) depend_on(name);
            }
        }
    }

    /// True if modprobe goes on without `name` although it fails with `error`; then that is told, as the reason why it
    /// is not there.
    bool goes_without(const std::string& name, const Error& error) {
        const auto warning = checked_.order.optional.contains(name) ? soft_failure(name, error) : std::nullopt;
        if (warning) report_.warnings.push_back(*warning);
        return warning.has_value();
    }

    void load_host_modules() {
        for (const auto& module : checked_.host_modules) {
            if (settled_module(machine_, module.name)) continue;
            require_live(checked_, module.name, main_);
            try {
                with_context([&] { return fmt::format("dependency {} of the host", module.name); },
                             [&] {
                                 HostLoad done = load_host_file(machine_, checked_.config, module.path,
                                                                Action::dependency, report_.warnings);
                                 if (done.outcome == Action::loaded) loaded_.push_back(module.name);
                                 report_.modules.push_back(std::move(done.report));
                             });
            } catch (const Error& error) {
                if (!goes_without(module.name, error)) throw;
            }
        }
    }

    void load_image_modules() {
        for (const auto& name : checked_.order.names) {
            if (others_.contains(name)) continue;
            try {
                load_image_module(name);
            } catch (const Error& error) {
                if (!goes_without(name, error)) throw;
            }
        }
    }

    void load_image_module(const std::string& name) {
        const IndexedModule& module = *index_.find(name);
        if (same_.contains(name)) {
            report_.modules.push_back(report_of(module, Action::already_loaded));
            report_.modules.back().same_by = same_.at(name);
            return;
        }
        const auto start = machine_.clock.monotonic();
        const std::string bytes = plain_bytes(module);
        const auto own = name == main_ ? request_.parameters : std::vector<std::string>{};
        const std::set<std::string> devices_before = device_numbers(machine_.host);
        const Action action =
            load_one(machine_, {module.file, bytes, effective_parameters(checked_.config, name, own), request_.force},
                     report_.warnings);
        if (action == Action::loaded) {
            loaded_.push_back(name);
            note_devices(name, devices_before);
        }
        report_.modules.push_back(report_of(module, action));
        if (action == Action::loaded) add_parameters(report_.modules.back(), checked_.config, module.file, own);
        if (const auto live = action == Action::already_loaded ? live_module(machine_.host, name) : std::nullopt)
            report_.modules.back().same_by = same_by(judge_identity(machine_.host, module, *live));
        report_.modules.back().took = machine_.clock.monotonic() - start;
    }

    /// What appeared while it was loaded is most likely its own: with that its users can be named, also of devices that
    /// no driver serves.
    void note_devices(const std::string& name, const std::set<std::string>& before) {
        const std::set<std::string> now = device_numbers(machine_.host);
        std::vector<std::string> fresh;
        std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(fresh));
        if (fresh.empty() || fresh.size() > k_devices_max) return;
        record_.devices[name] = std::move(fresh);
        try {
            write_record(machine_.host, record_);
        } catch (const Error&) {
            // note_intent() has warned of that
        }
    }

    /// Best effort: the error that led here is what the user must see.
    void undo(Error& error) {
        const bool leave = error.exit() == Exit::hung || error.exit() == Exit::unhealthy;
        if (leave) {  // the kernel is not to be touched again
            if (!loaded_.empty()) error.detail("stay-loaded", base::join(loaded_, ", "));
            if (!removed_now_.empty()) error.detail("in-tree-removed", base::join(removed_now_, ", "));
            return;
        }
        std::string kept;
        for (auto it = loaded_.rbegin(); it != loaded_.rend(); ++it) {
            try {
                (void)unload_one(machine_, *it);
            } catch (const Error&) {
                kept += (kept.empty() ? "" : ", ") + *it;
            }
        }
        if (!kept.empty()) error.detail("stay-loaded", kept);
        const bool was_live = same_.contains(main_);  // then what an earlier run had changed for it stays as it is
        auto removed = was_live ? removed_now_ : record_.removed_in_tree;
        std::erase_if(removed, [&](const std::string& name) {
            return (contains(gone_before_, name) && !contains(removed_now_, name)) ||
                   live_module(machine_.host, name).has_value();
        });
        std::vector<std::string> missing;
        try {
            for (auto it = removed.rbegin(); it != removed.rend(); ++it) {
                const auto fault = load_from_host(machine_, *it, Action::restored, report_);
                if (!fault) continue;
                missing.push_back(*it);
                report_.warnings.push_back("not-restored: " + *fault);
            }
        } catch (const Error& second) {
            error.detail("undo", second.message());
            return;
        }
        if (!missing.empty()) error.detail("in-tree-removed", base::join(missing, ", "));
        try {
            if (was_live && earlier_) return go_back_to_earlier();
            for (const auto& directory : record_.former_firmware_directories)
                (void)remove_firmware(firmware_of_host(machine_.host, directory), main_);
            give_up_search_path(machine_.host, record_);
            if (!record_.firmware_directory.empty())
                (void)remove_firmware(firmware_of_host(machine_.host, record_.firmware_directory), main_);
        } catch (const Error& second) {
            if (error.message() != second.message()) error.detail("firmware-path", second.message());
        }
        if (!kept.empty()) return;
        for (const auto& name : gone_before_) {
            if (!contains(missing, name) && !live_module(machine_.host, name)) missing.push_back(name);
        }
        try {
            note_unloaded(machine_.host, main_, std::move(missing), left_before_);
        } catch (const Error& second) {
            error.detail("undo", second.message());
        }
    }

    /// What a softdep asks for after the main module and only the host has.
    void load_soft_post() {
        for (const auto& name : checked_.order.soft_post) {
            if (live_module(machine_.host, name)) continue;
            Report requested;  // a request is no reason to warn of what else is told of it
            const auto fault = load_from_host(machine_, name, Action::dependency, requested, checked_.config);
            if (fault) report_.warnings.push_back("soft-dependency-missing: " + *fault);
            std::copy_if(requested.warnings.begin(), requested.warnings.end(), std::back_inserter(report_.warnings),
                         [](const std::string& text) { return text.starts_with("soft-dependency-failed: "); });
            std::move(requested.modules.begin(), requested.modules.end(), std::back_inserter(report_.modules));
        }
    }

    void finish_report() {
        for (auto& entry : report_.modules) {
            if (entry.action == Action::removed_in_tree) continue;
            if (const auto live = live_module(machine_.host, entry.name)) entry.taint = live->taint;
            if (entry.name == main_) {
                entry.role = Role::main;
                if (entry.action == Action::already_loaded) entry.parameters = parameter_map(request_.parameters);
            }
        }
        for (const auto& finding : checked_.findings) {
            // A load with the first two or the last does not come this far; the third is among the taint of the live
            // module.
            const bool passed = finding.code == "in-tree-in-use" || finding.code == "module-on-its-way" ||
                                finding.code == "license-taint" || finding.code == "other-build-live";
            if (finding.severity == Severity::warning && !passed)
                report_.warnings.push_back(fmt::format("{}: {}", finding.code, finding.message));
        }
    }

    const ModuleIndex& index_;
    const Preflight& checked_;
    const LoadRequest& request_;
    const FirmwareRequest& firmware_;
    const Machine& machine_;
    std::string main_;
    std::map<std::string, std::string> same_;  // live with the identity of the image's file, and what says so
    std::set<std::string> others_;      // live as another build, and only wanted by softdeps: they stay
    std::vector<std::string> loaded_;   // by this call, in order
    std::vector<std::string> removed_now_;  // in-tree modules, by this call
    std::vector<std::string>
        left_before_;  // what came with an earlier load and stayed when it was unloaded, as others used it
    std::vector<std::string>
        gone_before_;  // in-tree modules that an earlier load removed, and an unload did not bring back
    std::optional<LoadRecord> earlier_;     // of a run before this one
    LoadRecord record_;
    std::string firmware_target_;       // where firmware goes, "" for none
    std::string path_before_;           // the kernel's search path when this call began
    Report report_;
};

}  // namespace

Report load_modules(const ModuleIndex& index, const Preflight& checked, const LoadRequest& request,
                    const FirmwareRequest& firmware, const Machine& machine) {
    return Loader(index, checked, request, firmware, machine).run();
}

}  // namespace kmm::kmod
