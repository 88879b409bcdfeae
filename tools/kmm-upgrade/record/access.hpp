// SPDX-License-Identifier: Apache-2.0
// The state directory that a call works on: its lock, and the run that is recorded in it.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kmm-upgrade/session/call.hpp"
#include "record/state_dir.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::tool_upgrade {

class RecordAccess {
public:
    /// Touches no disk. Errors: usage "bad-value" for --state-dir.
    explicit RecordAccess(Call& call);

    /// Reads the record; warnings go to standard error, each once. Errors: as StateDir::open and load; nullopt when
    /// idle.
    [[nodiscard]] std::optional<upgrade::Run> load();
    /// That -n, if it is given, is the namespace of the run's Module. Errors: not_found "no-run".
    void require_named(const upgrade::Run& run) const;
    /// As load and require_named. Errors: also not_found "no-run".
    [[nodiscard]] upgrade::Run must_load();
    /// Takes the lock for `operation`, if this object does not have it; released with this object. Errors: locked.
    void lock(const std::string& operation);
    /// Makes the directory if there is none, and takes the lock.
    void open_locked(const std::string& operation);
    /// Of the lock that is held, for a child that is to hold it too (record::Lock::descriptor); nullopt without one.
    [[nodiscard]] std::optional<int> lock_descriptor() const;
    /// That of the last lock(); "" before.
    [[nodiscard]] const std::string& operation() const noexcept { return operation_; }
    [[nodiscard]] record::StateDir& directory() noexcept { return directory_; }
    [[nodiscard]] Call& call() noexcept { return call_; }

private:
    Call& call_;
    record::StateDir directory_;
    std::optional<record::Lock> lock_;
    std::string operation_;
    std::set<std::string> warned_;
};

/// Refuses while another upgrade is recorded that has not ended. Errors: paused "run-exists".
void require_free(const std::optional<upgrade::Run>& run);

/// With --or-resume: whether the upgrade that is recorded is the one that is asked for, so that it is resumed instead
/// of a new one being started. False where none is recorded, it is complete, or `asks_for` says that it is another one.
/// Errors: paused "run-ended" if it was aborted; those of RecordAccess::load.
[[nodiscard]] bool is_to_be_resumed(const cli::Args& args, cli::Context& context,
                                    const std::function<bool(const upgrade::Run&)>& asks_for);

/// --state-dir, which every verb has.
[[nodiscard]] std::vector<cli::Option> state_options();

}  // namespace kmm::tool_upgrade
