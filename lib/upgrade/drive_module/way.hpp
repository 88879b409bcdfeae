// SPDX-License-Identifier: Apache-2.0
// How a module gets onto nodes: by our worker, or by KMM's operator. What both have in common is in ModuleActor.
#pragma once

#include <optional>
#include <string>

#include "upgrade/drive_module/step_tools.hpp"

namespace kmm::drive {

/// Why a node that was done does not have its target any more.
struct Loss {
    std::string code;        ///< "" where the node gives no answer; then there are no words
    std::string message;     ///< for people, without the name of the node
    std::string hint;
    bool may_pass = false;   ///< the node starts, or its module is being loaded: asked a moment later it may have it
};

/// Thread safe for different nodes. Errors of the steps are recorded as their failures.
class Way {
public:
    virtual ~Way() = default;
    /// Looks until there is an answer, as look_at.
    [[nodiscard]] virtual LookResult look(const std::string& name, const Deadline& deadline) = 0;
    /// Looks once; nullopt if there is no answer.
    [[nodiscard]] virtual std::optional<LiveModule> glance(const std::string& name) = 0;
    [[nodiscard]] virtual Facts check(const std::string& name, const Look& seen, const Deadline& deadline) = 0;
    [[nodiscard]] virtual Facts unload(const std::string& name, const Look& seen, const Deadline& deadline) = 0;
    [[nodiscard]] virtual Facts load(const std::string& name, const Look& seen, const Deadline& deadline) = 0;
    /// Proves what is there, before the user's check and the time that the node is watched.
    [[nodiscard]] virtual Facts validate(const std::string& name, const Look& seen) = 0;
    /// Brings back what was there before. The cordon is the caller's.
    [[nodiscard]] virtual Facts rollback(const std::string& name, const Look& seen, const Deadline& deadline) = 0;
    /// Errors: unhealthy "module-gone", "module-differs".
    virtual void require_target(const std::string& name, const Look& seen) const = 0;
    /// What a node of `objects` that was done has lost since; nullopt for nothing. Asks once. Errors: those that end
    /// the run.
    [[nodiscard]] virtual std::optional<Loss> loss(const api::Objects& objects, const std::string& name) = 0;
    /// True if the version label of KMM's worker Pods is the run's to set.
    [[nodiscard]] virtual bool sets_worker_label() const noexcept = 0;
};

}  // namespace kmm::drive
