// SPDX-License-Identifier: Apache-2.0
// What the verbs of kmm-worker kubernetes share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "kubeadm/node/node.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/random.hpp"

namespace kmm::tool_worker {

/// Everything that a step works with, for the time of one call.
struct Here {
    /// A Pod of the node goes to where a command over ssh would be. Errors: usage "bad-value"; from_errno.
    Here(const cli::Args& args, cli::Context& context);

    bool is_in_pod;  ///< only the cgroup is still that of the Pod
    sys::LinuxFileOps ops;
    sys::LinuxClock clock;
    sys::LinuxRandom random;
    kubeadm::Node node;
};

/// Whoever gives an option expects something of it. Errors: usage (64) if one of `names` is on the command line: it has
/// no effect `with` that action or option.
void refuse_without_effect(const cli::Args& args, std::initializer_list<const char*> names, std::string_view with);

/// --name NAME, required.
[[nodiscard]] cli::Option name_option();
/// Errors: usage "missing-option".
[[nodiscard]] std::string name_of_backup(const cli::Args& args);
/// The verb "kubernetes NAME" with the options that all of them have.
[[nodiscard]] cli::Verb step_verb(std::string name, std::string summary, std::string description,
                                  std::vector<cli::Example> examples, std::vector<cli::Option> options);
/// Prints the result; a job's result counts as received once it has been printed.
[[nodiscard]] Exit report_step(const kubeadm::StepResult& result, nodejob::JobSlot slot, cli::Context& context);
/// kubernetes restore-etcd.
[[nodiscard]] cli::Verb verb_restore_etcd();

}  // namespace kmm::tool_worker
