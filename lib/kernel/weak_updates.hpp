// SPDX-License-Identifier: Apache-2.0
// Modules that were built for another kernel release and fit this one by the version of every symbol: what weak-modules
// links. Pure but for the modules, which were read before.
#pragma once

#include <string>
#include <vector>

#include "kernel/interface.hpp"
#include "kmod/module_index.hpp"

namespace kmm::kernel {

/// A module below /lib/modules/HOME/{extra,updates}.
struct WeakCandidate {
    std::string home;             ///< release whose directory it is in
    std::string subpath;          ///< below extra or updates, as "kmm/hello.ko.xz"
    kmod::IndexedModule module;   ///< `path` is what a link leads to
};

struct WeakJudgement {
    const WeakCandidate* candidate = nullptr;
    bool fits = false;
    std::string code, reason;     ///< why it does not, or what is to be known of one that does
};

/// Judges each candidate on kernel `interface`, whose release and vermagic are known, as weak-modules --add-kernel:
/// release by release, the latest first, a module that no other one of its release needs together with all that it
/// needs. A group is taken whole or not at all; a module that was taken from a later release stands for its group's
/// own. A module that `own` has, which were built for this kernel, is not taken; what they export counts. Reason codes:
/// "own-module", "later-build", "same-path", "group-unfit", "kernel-without-versions", and those of judge.
/// In the order of `candidates`. Cost: groups x (symbols of their modules).
[[nodiscard]] std::vector<WeakJudgement> judge_weak(const std::vector<WeakCandidate>& candidates,
                                                    const std::vector<kmod::IndexedModule>& own,
                                                    const Interface& interface);

/// Compares releases as rpm does: runs of digits by their numbers, which come after words, "427.el9" before
/// "427.13.1.el9_4".
[[nodiscard]] bool is_earlier_release(const std::string& left, const std::string& right);

}  // namespace kmm::kernel
