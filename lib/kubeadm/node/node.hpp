// SPDX-License-Identifier: Apache-2.0
// The machine that the steps of a Kubernetes upgrade work on: its files, its commands, its jobs.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/versions/version.hpp"
#include "nodejob/slot.hpp"
#include "sys/clock.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/process.hpp"
#include "sys/random.hpp"

namespace kmm::kubeadm {

/// Where kubeadm keeps copies of what it changes.
inline constexpr const char* k_kubeadm_copies = "/etc/kubernetes/tmp";

/// Files and commands of the node. With a root other than "" the node's own / is mounted there: paths are beneath it,
/// symbolic links lead where they lead on the node, and commands run in it (chroot). Paths are absolute.
class Place {
public:
    explicit Place(std::string root) : root_(std::move(root)) {}

    [[nodiscard]] const std::string& root() const noexcept { return root_; }
    /// Where the node's `path` is here, without regard to links.
    [[nodiscard]] std::string here(const std::string& path) const { return root_ + path; }
    /// Opens it with `flags` and O_CLOEXEC. Errors: from_errno, with the node's path.
    [[nodiscard]] sys::Fd open(const std::string& path, int flags) const;
    /// The text of a file; pipes and devices are refused. Errors: from_errno (66 if it is absent); io for other kinds
    /// of files.
    [[nodiscard]] std::string read(const std::string& path) const;
    /// The same; nullopt if it is absent.
    [[nodiscard]] std::optional<std::string> read_if_there(const std::string& path) const;
    [[nodiscard]] bool exists(const std::string& path) const;
    /// Names in a directory, sorted; empty if it is absent.
    [[nodiscard]] std::vector<std::string> list(const std::string& directory) const;
    /// The words that run a command on the node. Errors: no_permission "untrusted-file" for a program that root must
    /// not run; not_found "command-not-found" without chroot.
    [[nodiscard]] std::vector<std::string> command(std::vector<std::string> words) const;
    /// Where a program is in the node's directories of programs; "" if it is in none.
    [[nodiscard]] std::string find_program(const std::string& name) const;

private:
    void require_trusted_program(const std::string& name) const;

    std::string root_;
};

/// What the steps work with.
struct Node {
    Place place;
    sys::FileOps& ops;
    sys::Clock& clock;
    sys::Random& random;
    std::optional<std::chrono::milliseconds> deadline;  ///< of clock.monotonic(); nullopt for none
    std::function<bool()> reader_is_gone;               ///< what a step reports would reach nobody
    bool is_in_pod = false;                             ///< the caller's cgroup is that of a Pod

    [[nodiscard]] std::string boot_id() const;
    /// Everything that changes the control plane or the kubelet: kubeadm itself has no lock. Errors: those of JobSlot.
    [[nodiscard]] nodejob::JobSlot slot() const { return slot_named("kubernetes"); }
    [[nodiscard]] nodejob::JobSlot image_slot() const { return slot_named("images"); }

private:
    [[nodiscard]] nodejob::JobSlot slot_named(const std::string& name) const;
};

/// Where this tool keeps jobs, backups and replaced files on a node.
inline constexpr const char* k_state_directory = "/var/lib/kmm-node";

/// Runs a command on the node that only tells something; `environment` is added to that of the caller. Errors:
/// not_found "command-not-found", timeout after 30 s.
[[nodiscard]] sys::ProcessResult ask(const Place& place, const std::vector<std::string>& words,
                                     std::vector<std::pair<std::string, std::string>> environment = {});

/// The version in what `PROGRAM --version` or `kubeadm version -o short` prints. Errors: not_found "command-not-found";
/// io "command-failed" if it fails or prints something else.
[[nodiscard]] kubernetes::Version version_of_program(const Place& place, const std::vector<std::string>& words);
[[nodiscard]] kubernetes::Version kubeadm_version(const Place& place);
[[nodiscard]] kubernetes::Version kubelet_version(const Place& place);

/// Outcome of a step. Failures are Errors.
struct StepResult {
    std::string step;                     ///< the verb
    bool already = false;                 ///< nothing was left to do
    bool adopted = false;                 ///< the job of an earlier call
    std::optional<nodejob::JobView> job;  ///< that did it
    std::string message;                  ///< one line
    std::vector<std::pair<std::string, std::string>> facts;  ///< what was verified: name and value
    std::vector<std::string> warnings;    ///< "code: text"
};

/// Runs a job to its end, or adopts it. A job that fails is marked as received, unless the reader is gone, and is an
/// Error: `fail` makes it. Errors: paused "job-lost" if it ends without a result; those of JobSlot.
nodejob::JobView run_job(const Node& node, nodejob::JobSlot& slot, const nodejob::JobSpec& spec, StepResult& result,
                         const std::function<Error(const nodejob::JobView&, const std::string& output)>& fail);

/// As run_job, for the job `id` that was adopted.
nodejob::JobView finish_job(const Node& node, nodejob::JobSlot& slot, const std::string& id, StepResult& result,
                            const std::function<Error(const nodejob::JobView&, const std::string& output)>& fail);

/// Proves what a job has done. Where the node is not as it should be, the job's result has had its effect: the next
/// call runs it again.
void prove_job(const Node& node, nodejob::JobSlot& slot, const StepResult& result, const std::function<void()>& proof);

/// What is to be done about the job of an earlier call, which `adopted` is if there is one: waits for it and proves it;
/// true then. One that has succeeded and is not `is_in_effect` any more, or never was, is marked as received: the
/// caller runs it again. Errors: as finish_job and prove_job.
[[nodiscard]] bool settle_job(const Node& node, nodejob::JobSlot& slot, const std::optional<nodejob::JobView>& adopted,
                              StepResult& result, const std::function<bool()>& is_in_effect,
                              const std::function<Error(const nodejob::JobView&, const std::string& output)>& fail,
                              const std::function<void()>& proof);

/// The end of what a command printed, as a detail of the error; nothing if it printed nothing.
void tell_output(Error& error, const std::string& output);

/// "exit 1" or "signal 9".
[[nodiscard]] std::string how_it_ended(const nodejob::JobView& job);

}  // namespace kmm::kubeadm
