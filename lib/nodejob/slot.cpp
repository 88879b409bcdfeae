// SPDX-License-Identifier: Apache-2.0
#include "nodejob/slot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "nodejob/record.hpp"
#include "nodejob/supervise.hpp"
#include "sys/directory.hpp"
#include "sys/signals.hpp"

namespace kmm::nodejob {
namespace {

constexpr std::chrono::milliseconds k_poll{200};
/// How long another caller may take to start a job.
constexpr std::chrono::milliseconds k_start_patience{5000};
constexpr int k_looks_max = 10;

struct flock whole_file(short type) {
    struct flock range {};
    range.l_type = type;
    range.l_whence = SEEK_SET;
    return range;
}

sys::Fd open_lock(const std::string& path) {
    sys::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    const int saved = errno;
    if (!fd) throw from_errno(saved, "cannot open " + path);
    return fd;
}

/// "1h2m3s" since then; "" if the time is not known.
std::string since(const std::string& started, const sys::Clock& clock) {
    const auto then = base::parse_rfc3339(started);
    return then ? base::format_duration(std::chrono::seconds(std::max<std::int64_t>(0, clock.now_unix() - *then)))
                : std::string();
}

Error job_running(const JobView& job, const sys::Clock& clock) {
    Error error(Exit::locked, "job-running",
                job.key.empty() ? "another job is starting on this node"
                                : fmt::format("the job '{}' is running on this node", base::escape(job.key)));
    if (const std::string time = since(job.started, clock); !time.empty()) error.detail("running for", time);
    if (job.pid > 0) error.detail("pid", std::to_string(job.pid));
    error.hint("wait for it to end, then try again");
    return std::move(error).retryable();
}

}  // namespace

std::string_view to_string(JobState state) noexcept {
    switch (state) {
        case JobState::none: return "none";
        case JobState::running: return "running";
        case JobState::finished: return "finished";
        case JobState::lost: return "lost";
    }
    return "none";
}

JobSlot::JobSlot(SlotPlace place, sys::FileOps& ops, sys::Clock& clock, sys::Random& random)
    : place_(std::move(place)), ops_(ops), clock_(clock), random_(random) {
    if (place_.boot_id.empty()) {
        throw Error(Exit::io, "host-not-mounted",
                    "expected the boot id of this node in /proc/sys/kernel/random/boot_id, found none")
            .hint(
                "mount /proc of the node here: without its boot id a job that a reboot ended cannot be distinguished "
                "from one that runs");
    }
}

bool JobSlot::is_alive() const {
    const std::string path = place_.directory + "/alive";
    const sys::Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    const int open_errno = errno;
    if (!fd) {
        if (open_errno == ENOENT || open_errno == ENOTDIR) return false;
        throw from_errno(open_errno, "cannot open " + path);
    }
    struct flock range = whole_file(F_WRLCK);
    if (::fcntl(fd.get(), F_OFD_GETLK, &range) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot ask for the lock of " + path);
    }
    return range.l_type != F_UNLCK;
}

JobView JobSlot::look() const {
    JobView seen = look_once();
    // A job that was started between two of its readings looks lost.
    for (int again = 0; again < k_looks_max && seen.state == JobState::lost; ++again) {
        JobView next = look_once();
        const bool same = next.state == seen.state && next.id == seen.id;
        seen = std::move(next);
        if (same) break;
    }
    return seen;
}

JobView JobSlot::look_once() const {
    // Before the files are read: a job that ends in between has written its result already.
    const bool alive = is_alive();
    const auto text = read_if_there(place_.directory + "/job.json");
    JobView view;
    if (!text) {
        view.state = alive ? JobState::running : JobState::none;
        return view;
    }
    if (auto read = read_job_text(*text)) {
        view = std::move(*read);
    }
    if (const auto pid = read_if_there(place_.directory + "/pid"); pid && !view.id.empty()) {
        const auto words = base::split(base::trim(*pid), ' ');
        if (words.size() == 3 && words[0] == view.id) view.pid = base::parse_number<std::int64_t>(words[1]).value_or(0);
    }
    if (const auto result_file = read_if_there(place_.directory + "/result.json"); result_file) {
        const auto result = read_result_text(*result_file);
        if (result && !view.id.empty() && result->id == view.id) {
            view.state = JobState::finished;
            view.finished = result->finished;
            view.exit_code = result->exit_code;
            view.signal = result->signal;
            view.failed_command = result->failed_command;
            view.output_at = result->output_at;
            const auto received = read_if_there(place_.directory + "/received");
            view.received = received && base::trim(*received) == view.id;
            return view;
        }
    }
    view.state = alive ? JobState::running : JobState::lost;
    if (!alive) view.received = base::trim(read_if_there(place_.directory + "/received").value_or("")) == view.id;
    if (!alive) view.lost_reason = view.boot_id.empty() || view.boot_id == place_.boot_id ? "killed" : "rebooted";
    return view;
}

void JobSlot::refuse_held() const {
    const JobView job = look();
    if (job.state == JobState::running) throw job_running(job, clock_);
    // The job that is recorded has ended: somebody else holds the slot, and has written who it is into the lock.
    const auto holder = read_if_there(place_.directory + "/lock").value_or("");
    const auto words = base::split(base::trim(holder), '\t');
    if (words.size() != 2) throw job_running({}, clock_);
    throw Error(Exit::locked, "job-running",
                 fmt::format("kmm-worker is running on this node: {}", base::escape(words[1])))
        .detail("pid", base::escape(words[0]))
        .hint("wait for it to end, then try again")
        .retryable();
}

sys::Fd JobSlot::lock_start(const std::string& what) {
    sys::make_directories(place_.directory, 0700);
    sys::Fd fd = open_lock(place_.directory + "/lock");
    const auto end = clock_.monotonic() + k_start_patience;
    for (;;) {
        struct flock range = whole_file(F_WRLCK);
        if (::fcntl(fd.get(), F_OFD_SETLK, &range) == 0) {
            // Only for messages: that it cannot be written, as on a full disk, is no reason to stop.
            const auto holder = what.empty() ? std::string() : fmt::format("{}\t{}\n", ::getpid(), what);
            const bool is_told = ::ftruncate(fd.get(), 0) == 0 &&
                                 ::pwrite(fd.get(), holder.data(), holder.size(), 0) ==
                                     static_cast<ssize_t>(holder.size());
            static_cast<void>(is_told);
            return fd;
        }
        const int saved = errno;
        if (saved != EAGAIN && saved != EACCES && saved != EINTR)
            throw from_errno(saved, "cannot lock " + place_.directory + "/lock");
        if (clock_.monotonic() >= end || !clock_.sleep_for(std::chrono::milliseconds(20))) refuse_held();
    }
}

void JobSlot::refuse_other(const JobView& job, const std::string& key) const {
    if (job.state == JobState::running && job.key != key) throw job_running(job, clock_);
}

std::optional<JobView> JobSlot::adopt(const std::string& key) const {
    JobView job = look();
    refuse_other(job, key);
    const bool is_ours =
        job.key == key && (job.state == JobState::running || (job.state == JobState::finished && !job.received));
    return is_ours ? std::optional(std::move(job)) : std::nullopt;
}

JobSlot::Begun JobSlot::begin(const JobSpec& spec) {
    if (spec.commands.empty()) throw bug("a job without commands");
    const sys::Fd lock = lock_start({});
    if (auto job = adopt(spec.key)) return {std::move(*job), true, std::nullopt};
    JobView before = look();
    const std::string id = sys::uuid_v4(random_);
    start(spec, id);
    Begun begun{look(), false, std::nullopt};
    if (before.state == JobState::lost) begun.replaced = std::move(before);
    return begun;
}

void JobSlot::start(const JobSpec& spec, const std::string& id) {
    // A file of its own: something that an earlier job has left running may hold that of the earlier job.
    const std::string alive_file = place_.directory + "/alive";
    if (::unlink(alive_file.c_str()) != 0 && errno != ENOENT) {
        const int saved = errno;
        throw from_errno(saved, "cannot remove " + alive_file);
    }
    const sys::Fd alive = open_lock(alive_file);
    struct flock range = whole_file(F_WRLCK);
    if (::fcntl(alive.get(), F_OFD_SETLK, &range) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot lock " + alive_file);
    }
    sys::write_file_atomically(ops_, place_.directory + "/job.json",
                               job_text(spec, id, place_.boot_id, base::format_rfc3339(clock_.now_unix())));
    start_supervisor(spec, id, place_, alive.get(), ops_, clock_);
}

JobView JobSlot::wait(std::optional<std::chrono::milliseconds> deadline) const {
    for (;;) {
        JobView job = look();
        if (job.state != JobState::running) return job;
        if (sys::interrupt_requested()) {
            throw Error(sys::interrupt_exit(), "interrupted",
                        fmt::format("interrupted; the job '{}' goes on", base::escape(job.key)))
                .hint("the same command waits for it again");
        }
        auto pause = k_poll;
        if (deadline) {
            const auto left = *deadline - clock_.monotonic();
            if (left <= std::chrono::milliseconds(0)) {
                Error error(Exit::timeout, "timeout",
                            fmt::format("--timeout was reached; the job '{}' goes on", base::escape(job.key)));
                if (job.pid > 0) error.detail("pid", std::to_string(job.pid));
                throw std::move(error).hint("the same command waits for it again").retryable();
            }
            pause = std::min(pause, left);
        }
        static_cast<void>(clock_.sleep_for(pause));
    }
}

SlotHold JobSlot::hold(const std::string& what) {
    sys::Fd lock = lock_start(what);
    if (const JobView job = look(); job.state == JobState::running) throw job_running(job, clock_);
    return SlotHold(std::move(lock));
}

std::string JobSlot::output_end(std::size_t bytes_max) const {
    const std::string path = place_.directory + "/out";
    const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return {};
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return {};
    const auto size = static_cast<std::size_t>(info.st_size);
    const auto from = std::max(look().output_at, size - std::min(size, bytes_max));
    ::lseek(fd.get(), static_cast<off_t>(from), SEEK_SET);
    std::string text;
    std::array<char, 16384> buffer{};
    while (text.size() < bytes_max) {
        const ssize_t got = ::read(fd.get(), buffer.data(), std::min(buffer.size(), bytes_max - text.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

void JobSlot::mark_received(const std::string& id) {
    sys::write_file_atomically(ops_, place_.directory + "/received", id + "\n");
}

}  // namespace kmm::nodejob
