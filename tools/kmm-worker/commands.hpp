// SPDX-License-Identifier: Apache-2.0
// One verb each: its declaration and its action.
#pragma once

#include "cli/app.hpp"

namespace kmm::tool_worker {

[[nodiscard]] cli::Verb verb_load();
[[nodiscard]] cli::Verb verb_unload();
[[nodiscard]] cli::Verb verb_check();
[[nodiscard]] cli::Verb verb_status();
[[nodiscard]] cli::Verb verb_facts();
[[nodiscard]] cli::Verb verb_pull();
[[nodiscard]] cli::Verb verb_sign();
[[nodiscard]] cli::Verb verb_explain();
[[nodiscard]] cli::Verb verb_cache_list();
[[nodiscard]] cli::Verb verb_cache_verify();
[[nodiscard]] cli::Verb verb_cache_prune();
[[nodiscard]] cli::Verb verb_run();
[[nodiscard]] cli::Verb verb_bundle();
/// `kmod load CONFIG` and `kmod unload CONFIG`, as KMM's worker image is called.
[[nodiscard]] cli::Verb verb_kmod_load();
[[nodiscard]] cli::Verb verb_kmod_unload();

/// `kubernetes facts` and the steps of an upgrade on a node.
[[nodiscard]] std::vector<cli::Verb> verbs_kubernetes();
[[nodiscard]] cli::Verb verb_weak_updates();
/// `node facts`, `node install` and `node reboot`.
[[nodiscard]] std::vector<cli::Verb> verbs_system();

}  // namespace kmm::tool_worker
