// SPDX-License-Identifier: Apache-2.0
// What kmm-upgrade needs of a procedure besides its rules: verbs that start runs of it, and how a recorded run is taken
// up again. The verbs that go on with a run, and those that show it, know no procedure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/recorder.hpp"
#include "upgrade/engine/procedure.hpp"

namespace kmm::tool_upgrade {

struct Access;
class RecordAccess;

/// A node that runs another version than the record says.
struct Difference {
    std::string node, part;      ///< part as "kubelet"
    std::string runs, recorded;  ///< `runs` "": not known
};
/// "kubelet of w1: v1.35.4 runs, the record says v1.34.4".
[[nodiscard]] std::string to_string(const Difference& difference);

/// What a verb touches of a recorded run: the record alone; nodes, which on an API server needs rights and the Lease;
/// `onward` brings nodes further, and needs the rights to drain them, too.
enum class Extent { record, nodes, onward };

/// How the nodes of one run are worked on in this process. What it needs is open as long as it lives.
class Hands {
public:
    virtual ~Hands() = default;
    /// The actor of the run of `recorder`, which outlives it. Called once, when the run is on record. Errors: those of
    /// the cluster.
    [[nodiscard]] virtual std::unique_ptr<drive::Actor> actor(drive::Recorder& recorder) = 0;
    /// Before a walk goes on: documents that cannot be read hide nothing that the run is about. Errors:
    /// from_diagnostics; those of the cluster.
    virtual void require_readable() = 0;
    /// After a run that has ended, complete or aborted: says what else is to be known, and takes away what was there
    /// for the run only.
    virtual void tell_after(const upgrade::Run& run) = 0;
};

/// The verbs of a craft, in the order in which --help has them.
struct OwnVerbs {
    std::vector<cli::Verb> starters;  ///< begin runs: the first of all
    std::vector<cli::Verb> others;    ///< behind those that go on with runs
};

/// One object for procedures that belong together. No state.
class Craft {
public:
    virtual ~Craft() = default;
    [[nodiscard]] virtual const upgrade::Procedures& procedures() const = 0;
    [[nodiscard]] virtual OwnVerbs verbs() const = 0;
    /// Takes up `run`, which is on record under the lock; the cluster is open. Options of the command line are put over
    /// those of the run. Errors: those of ClusterAccess and Reach; config "other-cluster".
    [[nodiscard]] virtual std::unique_ptr<Hands> take_up(Access& access, upgrade::Run& run, Extent extent) const = 0;
    /// Goes on with what follows `run`, for which is_followed holds. The exit code of the verb.
    [[nodiscard]] virtual Exit follow(Access& access, const upgrade::Run& run) const = 0;
    /// Changes what a run keeps of its subject as the command line of a verb that goes on with it says; true if that
    /// changed anything. Errors: usage "bad-value" for an option that is not for such a run.
    [[nodiscard]] virtual bool revise(const cli::Args& args, upgrade::Run& run) const;
    /// abort --restore-etcd of `run`, and going on with it. Errors: usage "bad-value" where a procedure has no such
    /// data.
    virtual void restore_data(Access& access) const;
    /// Tables of StarlingX's `system` command, for --stx of show and nodes. Errors: usage "bad-value" where a procedure
    /// has none.
    enum class Frame { upgrade, hosts };
    [[nodiscard]] virtual std::string frame(const upgrade::Run& run, Frame which) const;
    /// Asks the cluster of `run` what its nodes run; none where a procedure cannot tell. Errors: those of the cluster.
    [[nodiscard]] virtual std::vector<Difference> differences(RecordAccess& record, const upgrade::Run& run) const {
        static_cast<void>(record);
        static_cast<void>(run);
        return {};
    }
    /// A restore of data has begun that must be gone on with before anything else.
    [[nodiscard]] virtual bool is_restoring(const upgrade::Run& run) const {
        static_cast<void>(run);
        return false;
    }
    /// Takes away what a process of `run`, which has ended, left in the cluster when it was killed at the very end.
    /// Faults are none.
    virtual void clean_up(Access& access, const upgrade::Run& run) const {
        static_cast<void>(access);
        static_cast<void>(run);
    }
};

/// Those that a program has: Program::own. They outlive it.
using Crafts = std::vector<const Craft*>;
[[nodiscard]] const Crafts& crafts_of(const cli::Context& context);
/// The procedures of all of them, in their order.
[[nodiscard]] upgrade::Procedures procedures_of(const cli::Context& context);
/// The one that `run` is of. It is a bug if there is none.
[[nodiscard]] const Craft& craft_of(const cli::Context& context, const upgrade::Header& run);

/// Modules: start module, apply, doctor, adopt, migrate.
[[nodiscard]] const Craft& module_craft();
/// Kubernetes itself: start kubernetes.
[[nodiscard]] const Craft& kubernetes_craft();
/// Recipes: start recipe, remove recipe.
[[nodiscard]] const Craft& recipe_craft();
/// The kernel of nodes: start kernel.
[[nodiscard]] const Craft& kernel_craft();
/// Those of the product, in the order of their verbs.
[[nodiscard]] Crafts all_crafts();

}  // namespace kmm::tool_upgrade
