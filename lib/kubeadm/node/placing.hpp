// SPDX-License-Identifier: Apache-2.0
// Putting programs of another version in place on a node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubeadm/node/node.hpp"

namespace kmm::kubeadm {

/// How programs of another version come onto the node.
struct Switch {
    enum class Way { none, packages, binaries, command };
    Way way = Way::none;
    std::string directory = "/usr/local/kubernetes";  ///< of binaries: DIRECTORY/VERSION/stage1|stage2/usr/bin/PROGRAM,
                                                      ///< or DIRECTORY/VERSION/PROGRAM
    std::string command;  ///< gets VERSION, NODE and COMPONENT in its environment
};

/// For dnf 4 and 5: packages of the repository kubernetes count although its configuration excludes them from updates.
inline constexpr const char* k_with_excluded = "--setopt=disable_excludes=kubernetes";

/// Commands that put `programs` of version `target` in place. Binaries are proven first: their digest if a file
/// PROGRAM.sha256 is beside them, and their --version. Errors: checks_failed "package-not-found", "package-refused",
/// "package-unexpected"; not_found "binary-not-found"; integrity "digest-mismatch".
[[nodiscard]] std::vector<nodejob::Command> placing_commands(const Node& node, const Switch& how,
                                                             const kubernetes::Version& target,
                                                             const std::vector<std::string>& programs);

/// What putting a program of a version in place would meet, found without changing anything.
struct PlacingTrial {
    std::string program;
    kubernetes::Version version;
    std::optional<bool> is_available;  ///< with packages: a package source of this node has it
    std::optional<bool> has_digest;  ///< with binaries: PROGRAM.sha256 is beside it; nullopt if the binary is not there
    bool was_tried = false;          ///< how it would end is known: `code` "" means that nothing is in the way
    std::string code, problem;       ///< of the Error of placing_commands
};
/// apt-get simulates it; what dnf would do is not known, but for locks of dnf 5. Errors: those of placing_commands that
/// say nothing of this program; io "command-failed" if the package sources cannot be asked.
[[nodiscard]] PlacingTrial try_placing(const Node& node, const Switch& how, const kubernetes::Version& target,
                                       const std::string& program);

/// The file of kubeadm of that version on this node, installed or lying where it would be installed from; "" if there
/// is none. Errors: those of version_of_program.
[[nodiscard]] std::string find_kubeadm(const Place& place, const Switch& how, const kubernetes::Version& target);

/// Whether the program, kubeadm or kubelet, is on this node in that version. Errors: those of version_of_program.
[[nodiscard]] bool is_installed(const Place& place, const kubernetes::Version& target, const std::string& program);

/// The key of the job that puts kubeadm of this version in place.
[[nodiscard]] std::string placing_key(const kubernetes::Version& target);
/// Puts kubeadm of this version in place unless it is there. Errors: checks_failed "kubeadm-version" if it is not and
/// `how` is none; switch-failed (1); those of placing_commands and run_job.
void require_kubeadm(const Node& node, const Switch& how, const kubernetes::Version& target, StepResult& result);

}  // namespace kmm::kubeadm
