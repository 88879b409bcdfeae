// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/node.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "sys/directory.hpp"
#include "sys/program.hpp"
#include "sys/trust.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::size_t k_file_max = 16U << 20U;
constexpr std::size_t k_output_shown = 256U << 10U;
constexpr std::size_t k_output_read = 64U << 20U;  ///< of a program that tells something, as all containers of a node
constexpr std::chrono::milliseconds k_answer_time{30'000};
constexpr const char* k_program_directories[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin",
                                                 "/sbin",           "/bin",           "/opt/bin"};

/// As "W1127 00:08:05.780859    1278 logging.go:55] ...": of these, kubeadm's libraries write hundreds while an API is
/// away.
bool is_warning_of_libraries(std::string_view line) {
    constexpr std::string_view digits = "0123456789";
    return line.size() > 6 && (line.front() == 'W' || line.front() == 'I') &&
           line.substr(1, 4).find_first_not_of(digits) == std::string_view::npos && line[5] == ' ' &&
           line.find(".go:") != std::string_view::npos;
}

/// What kubeadm writes around its errors, whatever they are: three lines after those that its preflight has found.
bool is_around_errors(std::string_view line) {
    static constexpr std::string_view k_beginnings[] = {
        "[preflight] Some fatal errors occurred", "[preflight] If you know what you are doing",
        "error execution phase preflight: preflight checks failed", "To see the stack trace of this error"};
    return std::any_of(std::begin(k_beginnings), std::end(k_beginnings),
                       [&](auto beginning) { return line.starts_with(beginning); });
}

}  // namespace

sys::Fd Place::open(const std::string& path, int flags) const {
    if (!path.starts_with('/')) throw bug(fmt::format("'{}' is no absolute path of the node", path));
    const sys::Fd top(::open(root_.empty() ? "/" : root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const int top_errno = errno;
    if (!top) throw from_errno(top_errno, "cannot open " + (root_.empty() ? std::string("/") : root_));
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_IN_ROOT;
    sys::Fd fd(static_cast<int>(::syscall(SYS_openat2, top.get(), path.c_str() + 1, &how, sizeof how)));
    const int saved = errno;
    if (!fd) throw from_errno(saved, "cannot open " + path);
    return fd;
}

std::string Place::read(const std::string& path) const {
    const sys::Fd fd = open(path, O_RDONLY | O_NONBLOCK);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
        throw Error(Exit::io, "io", fmt::format("cannot read {}: expected a regular file", path));
    return sys::read_fd(fd.get(), path, k_file_max);
}

std::optional<std::string> Place::read_if_there(const std::string& path) const {
    try {
        return read(path);
    } catch (const Error& error) {
        if (error.errno_cause() == ENOENT || error.errno_cause() == ENOTDIR) return std::nullopt;
        throw;
    }
}

bool Place::exists(const std::string& path) const {
    try {
        return open(path, O_PATH).get() >= 0;
    } catch (const Error& error) {
        if (error.errno_cause() == ENOENT || error.errno_cause() == ENOTDIR) return false;
        throw;
    }
}

std::vector<std::string> Place::list(const std::string& directory) const {
    std::vector<std::string> names;
    try {
        const sys::Fd fd = open(directory, O_RDONLY | O_DIRECTORY);
        sys::each_entry(fd.get(), [&](const sys::DirectoryEntry& entry) { names.push_back(entry.name); });
    } catch (const Error& error) {
        if (error.errno_cause() != ENOENT && error.errno_cause() != ENOTDIR) throw;
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<std::string> Place::command(std::vector<std::string> words) const {
    require_trusted_program(words.front());
    if (!root_.empty()) {
        sys::require_trusted_program("chroot");
        words.insert(words.begin(), {"chroot", root_});
    }
    return words;
}

void Place::require_trusted_program(const std::string& name) const {
    if (::geteuid() != 0) return;
    const char* variable = std::getenv("PATH");
    const std::string path = variable == nullptr ? "" : variable;
    std::vector<std::string> candidates{name};
    if (name.find('/') == std::string::npos) {
        candidates.clear();
        for (const auto directory : base::split(path, ':')) candidates.push_back(fmt::format("{}/{}", directory, name));
    }
    for (const auto& candidate : candidates) {
        if (!candidate.starts_with('/') || !exists(candidate)) continue;
        sys::require_trusted(here(candidate), "program");
        // A link that leads to a path of the node's leads elsewhere from here.
        const auto fd = open(candidate, O_PATH);
        std::error_code failed;
        const auto real = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd.get()), failed);
        if (!failed) sys::require_trusted(real.native(), "program");
        return;
    }
}

std::string Place::find_program(const std::string& name) const {
    for (const char* directory : k_program_directories) {
        const std::string path = std::string(directory) + "/" + name;
        if (exists(path)) return path;
    }
    return {};
}

std::string Node::boot_id() const {
    const auto text = place.read_if_there("/proc/sys/kernel/random/boot_id");
    return text ? std::string(base::trim(*text)) : std::string();
}

nodejob::JobSlot Node::slot_named(const std::string& name) const {
    return nodejob::JobSlot(
        {place.here(std::string(k_state_directory) + "/jobs/" + name), boot_id(), place.here("/sys/fs/cgroup"),
         is_in_pod},
        ops, clock, random);
}

sys::ProcessResult ask(const Place& place, const std::vector<std::string>& words,
                       std::vector<std::pair<std::string, std::string>> environment) {
    sys::ProcessSpec spec;
    spec.argv = place.command(words);
    spec.extra_env = std::move(environment);
    spec.timeout = k_answer_time;
    spec.output_max = k_output_read;
    sys::ProcessResult result = sys::run_process(spec);
    if (result.timed_out) {
        throw Error(Exit::timeout, "command-hung",
                    fmt::format("{} did not answer within {}", words.front(), base::format_duration(k_answer_time)));
    }
    return result;
}

kubernetes::Version version_of_program(const Place& place, const std::vector<std::string>& words) {
    const sys::ProcessResult result = ask(place, words);
    const std::string command = base::join(words, " ");
    if (result.signal != 0 || result.exit_code != 0) {
        const std::string told(base::last_line(result.err));
        throw Error(result.exit_code == 127 ? Exit::not_found : Exit::io,
                    result.exit_code == 127 ? "command-not-found" : "command-failed",
                    fmt::format("{} failed{}{}", command, told.empty() ? "" : ": ", base::escape(told)));
    }
    std::string_view text = base::trim(result.out);
    constexpr std::string_view prefix = "Kubernetes ";
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    if (const auto version = kubernetes::Version::parse(text)) return *version;
    throw Error(
        Exit::io, "command-failed",
        fmt::format("{}: expected a version as v1.34.4, found '{}'", command, base::escape(text.substr(0, 80))));
}

kubernetes::Version kubeadm_version(const Place& place) {
    return version_of_program(place, {"kubeadm", "version", "-o", "short"});
}

kubernetes::Version kubelet_version(const Place& place) {
    return version_of_program(place, {"kubelet", "--version"});
}

std::string how_it_ended(const nodejob::JobView& job) {
    return job.signal != 0 ? fmt::format("signal {}", job.signal) : fmt::format("exit {}", job.exit_code);
}

void tell_output(Error& error, const std::string& output) {
    std::vector<std::string> told;
    for (const std::string_view line : base::split(output, '\n')) {
        const auto text = base::trim(line);
        if (!is_warning_of_libraries(text) && !is_around_errors(text)) told.emplace_back(line);
    }
    const std::string printed = base::join(told, "\n");
    std::vector<std::string> lines;
    for (const std::string_view line : base::last_lines(printed, 3)) lines.push_back(base::escape(line));
    if (const std::string text = base::join(lines, "; "); !text.empty()) error.detail("output", text);
}

void prove_job(const Node& node, nodejob::JobSlot& slot, const StepResult& result, const std::function<void()>& proof) {
    try {
        proof();
    } catch (const Error& error) {
        if (error.exit() == Exit::unhealthy && result.job && !node.reader_is_gone()) slot.mark_received(result.job->id);
        throw;
    }
}

nodejob::JobView finish_job(const Node& node, nodejob::JobSlot& slot, const std::string& id, StepResult& result,
                            const std::function<Error(const nodejob::JobView&, const std::string& output)>& fail) {
    nodejob::JobView job = slot.wait(node.deadline);
    if (job.id != id) {
        throw Error(Exit::paused, "job-lost", "another call has taken the job's result and started the next job")
            .hint("run the same command again: it looks at the node first");
    }
    result.job = job;
    if (job.state != nodejob::JobState::finished) {
        throw Error(Exit::paused, "job-lost",
                    fmt::format("the job '{}' ended without a result: {}", base::escape(job.key),
                                job.lost_reason == "rebooted" ? "the node was rebooted" : "it was killed"))
            .hint("run the same command again: it looks at the node first");
    }
    if (job.succeeded()) return job;
    Error error = fail(job, slot.output_end(k_output_shown));
    if (!node.reader_is_gone()) slot.mark_received(job.id);
    if (result.adopted) error.detail("adopted", "the job of an earlier call, " + job.finished);
    throw error;
}

bool settle_job(const Node& node, nodejob::JobSlot& slot, const std::optional<nodejob::JobView>& adopted,
                StepResult& result, const std::function<bool()>& is_in_effect,
                const std::function<Error(const nodejob::JobView&, const std::string& output)>& fail,
                const std::function<void()>& proof) {
    if (!adopted) return false;
    if (adopted->succeeded() && !is_in_effect()) {
        slot.mark_received(adopted->id);
        return false;
    }
    result.adopted = true;
    finish_job(node, slot, adopted->id, result, fail);
    prove_job(node, slot, result, proof);
    return true;
}

nodejob::JobView run_job(const Node& node, nodejob::JobSlot& slot, const nodejob::JobSpec& spec, StepResult& result,
                         const std::function<Error(const nodejob::JobView&, const std::string& output)>& fail) {
    const auto begun = slot.begin(spec);
    result.adopted = begun.adopted;
    if (begun.replaced) {
        result.warnings.push_back(
            fmt::format("job-lost: the job '{}' of {} ended without a result ({}); it was started again",
                        base::escape(begun.replaced->key), begun.replaced->started, begun.replaced->lost_reason));
    }
    return finish_job(node, slot, begun.job.id, result, fail);
}

}  // namespace kmm::kubeadm
