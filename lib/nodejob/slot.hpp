// SPDX-License-Identifier: Apache-2.0
// Commands on this machine that outlive whoever started them: a detached job runs in a session of its own and leaves
// its result in a directory, where the next caller finds it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sys/clock.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/random.hpp"

namespace kmm::nodejob {

/// One command of a job.
struct Command {
    std::vector<std::string> argv;  ///< argv[0] is looked up in PATH; no shell
    std::vector<std::pair<std::string, std::string>> environment;  ///< added to the caller's
    bool always = false;            ///< run it even after a command before it has failed
};

struct JobSpec {
    std::string key;                ///< what the job does: a call with the same key adopts it
    std::vector<Command> commands;  ///< run one after the other up to the first failure
};

/// `lost`: the job has ended without a result, because the machine was rebooted or the job was killed. What it did must
/// be observed.
enum class JobState { none, running, finished, lost };

/// "none", "running", "finished" or "lost".
[[nodiscard]] std::string_view to_string(JobState state) noexcept;

/// The job of a slot.
struct JobView {
    JobState state = JobState::none;
    std::string id, key;
    std::string boot_id;                    ///< of the boot in which it was started
    std::string started, finished;          ///< RFC 3339, UTC; "" if not known
    std::int64_t pid = 0;                   ///< of its supervisor; 0 before it is known
    std::vector<std::string> commands;      ///< as text, words separated by blanks
    int exit_code = -1;  ///< valid if finished and `signal` is 0; 127 if the command could not be run
    int signal = 0;                         ///< that ended the failed command, else 0
    std::size_t failed_command = 0;         ///< index of the first one that failed
    std::size_t output_at = 0;              ///< where its output begins
    bool received = false;                  ///< a caller has reported its result
    std::string lost_reason;                ///< "rebooted" or "killed" if lost

    /// Finished, and every command succeeded.
    [[nodiscard]] bool succeeded() const noexcept {
        return state == JobState::finished && signal == 0 && exit_code == 0;
    }
};

/// What a slot needs.
struct SlotPlace {
    std::string directory;    ///< of this slot; created with mode 0700 when a job starts. Jobs of one slot never run at
                              ///< the same time
    std::string boot_id;      ///< of the running kernel, not ""
    std::string cgroup_root;  ///< where cgroup v2 is mounted: jobs leave the caller's cgroup for kmm-node below it,
                              ///< where that is possible; "" never
    bool must_leave_cgroup = false;  ///< the caller's cgroup ends with it: a job that cannot leave it does nothing
};

/// A slot, held: no job of it runs and none starts while this lives.
class SlotHold {
public:
    explicit SlotHold(sys::Fd lock) noexcept : lock_(std::move(lock)) {}

private:
    sys::Fd lock_;
};

/// A directory in which at most one job runs at a time. It holds job.json, pid, out, result.json and received; every
/// file is written by rename, and the result belongs to the job whose id it names. The job holds a lock on the file
/// `alive`, which its commands inherit, so that it counts as running until the last of them has ended. Callers may be
/// several processes at once.
class JobSlot {
public:
    JobSlot(SlotPlace place, sys::FileOps& ops, sys::Clock& clock, sys::Random& random);

    /// The job as it is. Never blocks. Errors: io for files that cannot be read. A damaged job.json is a lost job.
    [[nodiscard]] JobView look() const;

    struct Begun {
        JobView job;
        bool adopted = false;             ///< it was there before
        std::optional<JobView> replaced;  ///< an earlier job that was lost
    };
    /// Adopts the running job of this key, or its finished result that no caller has received; else starts it and
    /// returns at once. Errors: locked "job-running" if a job of another key runs, or the slot is held; io.
    [[nodiscard]] Begun begin(const JobSpec& spec);
    /// Only the adopting part of begin(): nullopt where it would start the job. Errors: locked "job-running".
    [[nodiscard]] std::optional<JobView> adopt(const std::string& key) const;

    /// Waits until the job does not run, and returns it. Errors: timeout "timeout" at `deadline` (of
    /// clock.monotonic()), interrupted; the job goes on.
    [[nodiscard]] JobView wait(std::optional<std::chrono::milliseconds> deadline) const;

    /// Keeps other jobs from starting while the caller changes something itself: `what` is told to those who are
    /// refused. Errors: locked "job-running"; io.
    [[nodiscard]] SlotHold hold(const std::string& what);

    /// At most `bytes_max` bytes of the end of what the job has printed, of one that has failed what the command that
    /// failed has; "" if there is nothing.
    [[nodiscard]] std::string output_end(std::size_t bytes_max) const;

    /// The result of job `id` has reached the caller: it is not adopted again. Errors: io.
    void mark_received(const std::string& id);

private:
    [[nodiscard]] sys::Fd lock_start(const std::string& what);
    [[noreturn]] void refuse_held() const;
    [[nodiscard]] JobView look_once() const;
    [[nodiscard]] bool is_alive() const;
    void refuse_other(const JobView& job, const std::string& key) const;
    void start(const JobSpec& spec, const std::string& id);

    SlotPlace place_;
    sys::FileOps& ops_;
    sys::Clock& clock_;
    sys::Random& random_;
};

}  // namespace kmm::nodejob
