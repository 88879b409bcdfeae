// SPDX-License-Identifier: Apache-2.0
// The freeze of applications around a run of a Kubernetes upgrade: its options, and when it begins and ends.
#pragma once

#include <memory>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "upgrade/drive_cluster/freeze.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::tool_upgrade {

/// --no-freeze, --freeze-for, --freeze-except.
[[nodiscard]] std::vector<cli::Option> freeze_options();
/// Errors: usage "bad-value".
void take_freeze_options(const cli::Args& args, upgrade::kubernetes::Subject& subject);

/// Users and namespaces that the freeze leaves out.
[[nodiscard]] std::pair<std::vector<std::string>, std::vector<std::string>> freeze_exceptions(
    const upgrade::kubernetes::Subject& subject);

/// Whether a notice is of `run`, whose record may have been moved since.
[[nodiscard]] bool is_notice_of(Access& access, const drive::FreezeNotice& notice, const upgrade::Header& run);
/// Errors: locked "upgrade-under-way", always: `notice` is of an upgrade that is.
[[noreturn]] void refuse_noticed(const drive::FreezeNotice& notice);
/// Before a run starts: what the record's last run has left of its freeze is taken away. Errors: locked
/// "upgrade-under-way" for an upgrade of another record; those of drive::Freeze.
void require_no_notice(Access& access, const std::string& holder);

/// Before a run of another kind that empties and restarts nodes goes on. Without the right to read the notice nothing
/// is known of such an upgrade, which is noted. Errors: locked "upgrade-under-way" for any upgrade of Kubernetes that
/// has begun and not ended; those of drive::Freeze::look.
void require_no_kubernetes_upgrade(Access& access);

/// Nothing on a directory cluster. Thread safe once it is set.
class Freezing {
public:
    explicit Freezing(Access& access) : access_(access) {}
    /// Freezes as `run` asks for, and notes what is not frozen. Errors: locked "upgrade-under-way" for the freeze of
    /// another upgrade; those of drive::Freeze::set.
    void set(const upgrade::Header& run);
    /// Notes releases of Helm that were changed in spite of an advisory freeze; asks once a minute at most.
    void tell_changes();
    /// Ends it, if it is that of `run`. Faults are warnings.
    void lift(const upgrade::Header& run);

private:
    [[nodiscard]] kube::Client* client() const;

    Access& access_;
    std::mutex mutex_;
    std::unique_ptr<drive::Freeze> freeze_;
    drive::FreezeMode mode_ = drive::FreezeMode::off;
    std::optional<std::chrono::milliseconds> asked_;  ///< on the monotonic clock
};

}  // namespace kmm::tool_upgrade
