// SPDX-License-Identifier: Apache-2.0
// A process that only computes: foreign bytes go in, values come out, and whoever takes it over has nothing but that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/sandbox.hpp"
#include "sys/fd.hpp"

namespace kmm::sandbox {

/// Something that the process can be asked to do.
struct Service {
    std::uint64_t number = 0;  ///< the first value of a request
    /// Loads what this program uses as well, in this program, before the copy is made.
    std::function<void()> prepare_both;
    /// Loads libraries and tables: there are no files later. Sees no foreign byte. Called once for all processes.
    std::function<void()> prepare;
    /// Answers one request, of which `message` is the whole. `answers` brings what ask() of the parent sends. Throws an
    /// Error only for what comes of the request; everything that was asked for has been read then.
    std::function<void(const std::string& message, Channel& channel, Channel& answers)> serve;
};

/// The process. A copy of this program as it was when the object was made, the starter, starts it at begin() or at the
/// first request; it gives up everything (confine()) and serves. It ends with this object, and with this program.
class Confined {
public:
    /// To be called while there is one thread, before anything of value is in memory that need not be. `stop` is asked
    /// several times a second while the process is waited for, and throws to end the wait. `services` that need more to
    /// be prepared come first: a process is prepared for the service of its first request and those behind it, and a
    /// request for one before it is served by a new process. Errors: from_errno.
    explicit Confined(std::vector<Service> services, std::function<void()> stop = {});
    /// The same, or nullptr if this program has several threads, of which a copy would have one.
    [[nodiscard]] static std::unique_ptr<Confined> if_alone(std::vector<Service> services,
                                                            std::function<void()> stop = {});
    /// One more of the same, for a second thread; its process is another. Must end before this. From any thread that
    /// does not hold the lock. Errors: from_errno; io (74) "parser-killed".
    [[nodiscard]] std::unique_ptr<Confined> twin();
    ~Confined();
    Confined(const Confined&) = delete;
    Confined& operator=(const Confined&) = delete;

    /// Another one from now on, or none.
    void set_stop(std::function<void()> stop) { stop_ = std::move(stop); }
    /// One request at a time: whoever holds the lock talks to the process, and reads its answer to the end or calls
    /// renew().
    [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
    /// Starts the process, prepared for the service `number`, unless there is one, and does not wait for it. Errors: as
    /// lost().
    void begin(std::uint64_t number);
    /// Sends a request, the first value of which is the number of the service. Errors: as lost(); from_errno.
    void send(std::string_view message, std::span<const int> descriptors = {});
    /// Sends one message of two parts within a request; false instead of an error. For a second thread, beside the one
    /// that receives.
    [[nodiscard]] bool try_send(std::string_view head, std::string_view body) { return channel_.send(head, body); }
    /// A short message beside the others, which does not wait behind them. Errors: as lost().
    void answer(std::string_view message);
    /// The next message, of at most `most` bytes, into `message`. `on_wait` as `stop`. Errors: as lost(), those of
    /// `stop` and `on_wait`; timeout (124) where nothing comes for ten minutes.
    void receive(std::string& message, std::size_t most, const std::function<void()>& on_wait = {});
    [[nodiscard]] std::string receive(std::size_t most) {
        std::string message;
        receive(message, most);
        return message;
    }
    /// Ends the process, whatever it does, if it was asked for anything: the next request is served by a new one, which
    /// knows nothing of the bytes that this one has seen. A thread in try_send() ends with false, and must have ended
    /// before that request.
    void renew();

    /// What the process has given up; empty before the first answer.
    [[nodiscard]] const SandboxReport& report() const noexcept { return report_; }
    /// Why it does not answer any more: unsafe (16) "parser-crashed" with the signal, io (74) "parser-killed" for
    /// SIGKILL, which is how the kernel ends processes when memory runs out. The same each time until renew().
    [[nodiscard]] Error lost();

private:
    Confined(sys::Fd socket, std::vector<std::uint64_t> numbers, std::function<void()> stop);
    [[nodiscard]] std::size_t place_of(std::uint64_t number) const;
    [[nodiscard]] sys::Fd take_socket();
    void start(std::size_t first);
    void connect();
    void end();
    void take_report();

    std::mutex mutex_;
    std::vector<std::uint64_t> numbers_;  ///< of the services
    Channel starter_;                     ///< to the copy, which starts and ends the processes
    Channel channel_, answers_;
    pid_t starter_process_ = -1;  ///< the child that is it; none of a twin
    bool running_ = false;
    bool connected_ = false;    ///< the sockets of the running process have arrived
    bool used_ = false;         ///< the running process was asked for something
    std::size_t prepared_ = 0;  ///< the running process serves the services from here on
    std::function<void()> stop_;
    SandboxReport report_;
    bool reported_ = false;
    std::optional<Error> lost_;
};

}  // namespace kmm::sandbox
