// SPDX-License-Identifier: Apache-2.0
// Objects of recipes: what a rollout created has a label that says so, and nothing else is ever removed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kube/client.hpp"
#include "sys/clock.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/deadline.hpp"
#include "upgrade/recipe/release.hpp"

namespace kmm::drive {

/// How an object would be changed, or was.
enum class Change { create, change, none };
[[nodiscard]] std::string_view to_string(Change change) noexcept;

/// What became of objects that were to be removed, for people.
struct Removed {
    std::size_t count = 0;           ///< that are gone
    std::vector<std::string> stays;  ///< "Namespace a: it belongs to recipe b"
};

/// Whose hooks of Helm are run.
struct HookRun {
    std::string rollout;      ///< lineage of the rollout, "" where no hook is run again
    bool is_upgrade = false;  ///< hooks of upgrades are run, else those of installations
};

/// A Job or Pod that is a hook of installations alone is neither applied nor waited for in an upgrade, as with Helm.
[[nodiscard]] bool is_passed_over(const value::Node& object, const HookRun& hooks);

/// The references must outlive it.
class OwnObjects {
public:
    /// `others` are the releases of other recipes. `say` hears what a long removal waits for.
    OwnObjects(kube::Client& client, Objects& objects, sys::Clock& clock, std::function<bool()> interrupted, Say say,
               std::string recipe, std::vector<upgrade::recipe::Release> others);

    /// Applies the object, server-side, with the label where nothing of that name was there before. An object that is
    /// being deleted is "being deleted" for `wait`, which the caller tries again. So is a Job or Pod of this recipe
    /// that is a hook of Helm and has a changed field that the API server keeps: it is deleted first. So is, once for
    /// each rollout and after it has failed, a Job or Pod that is a hook of `hooks`, of this recipe or of none. What is
    /// passed over stays as it is. Errors: those of Objects::apply, "field-conflict" names the other manager; locked
    /// "hook-exists" for a hook to be run whose delete policy keeps it; locked "object-shared" for an object of another
    /// recipe that has it in another form, or whose releases are not among `others`. Forced, an object of the latter
    /// becomes this recipe's.
    [[nodiscard]] Change apply(const kube::Resource& resource, const value::Node& object, kube::Force force,
                               kube::DryRun dry_run, std::string& wait, const HookRun& hooks = {});
    /// Deletes those of `objects` that have the label, in that order, with what they own, and waits until they are
    /// gone. What another recipe has, too, becomes that one's. Errors: locked "namespace-in-use", "definition-in-use"
    /// for one that would take objects of others along; unhealthy "not-verified" for what is still there at `deadline`;
    /// those of the API server. Throws Leave.
    [[nodiscard]] Removed remove(const std::vector<upgrade::recipe::ReleaseObject>& objects, const Deadline& deadline);
    /// Takes those out of `objects` that `stays` has in another namespace or group: a kind without namespaces may be
    /// rendered with one, and two groups may serve the same object.
    void leave_those_of(const upgrade::recipe::Release& stays, std::vector<upgrade::recipe::ReleaseObject>& objects);
    /// Objects of the kinds of `release` that have the label: what a removal has left. One list for each kind.
    [[nodiscard]] std::vector<std::string> labelled(const upgrade::recipe::Release& release);

private:
    /// `object` as the newest release of another recipe has it, with that release; nullptr for none.
    struct Theirs {
        const upgrade::recipe::Release* release = nullptr;
        value::Node object;
    };
    [[nodiscard]] Theirs theirs(const value::Node& object, const kube::Resource& resource) const;
    void require_unused_namespace(const std::string& name);
    void require_unused_definition(const value::Node& live);

    kube::Client& client_;
    Objects& objects_;
    sys::Clock& clock_;
    std::function<bool()> interrupted_;
    Say say_;
    std::string recipe_;
    std::vector<upgrade::recipe::Release> others_;
};

}  // namespace kmm::drive
