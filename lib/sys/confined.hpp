// SPDX-License-Identifier: Apache-2.0
// A process that only computes: foreign bytes go in, values come out, and whoever takes it over has nothing but that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.hpp"
#include "sys/fd.hpp"
#include "sys/sandbox.hpp"

namespace kmm::sys {

/// One end of what the two processes exchange: messages in order, and descriptors beside them.
class Channel {
public:
    explicit Channel(Fd socket) : socket_(std::move(socket)) {}

    /// False if the other side is gone. `descriptor` goes with the message, -1 for none. One thread at a time.
    [[nodiscard]] bool send(std::string_view message, int descriptor = -1);
    /// The next message of at most `most` bytes; false if the other side is gone, or says more. `on_wait`, which may be
    /// empty, is called several times a second while there is none, and may throw. One thread at a time, also beside
    /// one that sends.
    [[nodiscard]] bool receive(std::string& message, std::size_t most, const std::function<void()>& on_wait = {});
    /// The descriptor that came with the messages so far and was not taken yet; empty if there is none.
    [[nodiscard]] Fd take_descriptor();
    /// From now on both sides find the other gone. From any thread.
    void shut() noexcept;

private:
    [[nodiscard]] bool fill(const std::function<void()>& on_wait);

    Fd socket_;
    std::string buffer_;
    std::size_t begin_ = 0, end_ = 0;  ///< of what of `buffer_` was received and not given
    std::vector<Fd> descriptors_;
};

/// Something that the process can be asked to do.
struct Service {
    std::uint64_t number = 0;  ///< the first value of a request
    /// Loads libraries and tables: there are no files later. Of no foreign byte.
    std::function<void()> prepare;
    /// Answers one request, of which `message` is the whole. `answers` brings what ask() of the parent sends. Throws an
    /// Error only for what comes of the request; everything that was asked for has been read then.
    std::function<void(const std::string& message, Channel& channel, Channel& answers)> serve;
};

/// The process. A copy of this program as it was when the object was made starts it at the first request; it prepares,
/// gives up everything (confine()) and serves. It ends with this object, and with this program.
class Confined {
public:
    /// To be called while there is one thread, before anything of value is in memory that need not be. `stop` is asked
    /// several times a second while the process is waited for, and throws to end the wait. Errors: from_errno.
    explicit Confined(std::vector<Service> services, std::function<void()> stop = {});
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
    /// Sends a request, or what belongs to one. Errors: as lost(); from_errno.
    void send(std::string_view message, int descriptor = -1);
    /// As send within a request, false instead of an error: for a second thread, beside the one that receives.
    [[nodiscard]] bool try_send(std::string_view message) { return channel_.send(message); }
    /// A short message beside the others, which does not wait behind them. Errors: as lost().
    void answer(std::string_view message);
    /// The next message, of at most `most` bytes. `on_wait` as `stop`. Errors: as lost(), those of `stop` and
    /// `on_wait`; timeout (124) where nothing comes for ten minutes.
    [[nodiscard]] std::string receive(std::size_t most, const std::function<void()>& on_wait = {});
    /// Ends the process, whatever it does: the next request is served by a new one, which knows nothing of the bytes
    /// that this one has seen. A thread in try_send() ends with false, and must have ended before that request.
    void renew();

    /// What the process has given up; empty before the first answer.
    [[nodiscard]] const SandboxReport& report() const noexcept { return report_; }
    /// Why it does not answer any more: unsafe (16) "parser-crashed" with the signal, io (74) "parser-killed" for
    /// SIGKILL, which is how the kernel ends processes when memory runs out. The same each time until renew().
    [[nodiscard]] Error lost();

private:
    Confined(Fd nursery, std::function<void()> stop);
    [[nodiscard]] Fd take_socket();
    void start();
    void take_report();

    std::mutex mutex_;
    Channel nursery_;  ///< to the copy, which starts and ends the processes
    Channel channel_, answers_;
    pid_t nurse_ = -1;  ///< the child that is it; none of a twin
    bool running_ = false;
    std::function<void()> stop_;
    SandboxReport report_;
    bool reported_ = false;
    std::optional<Error> lost_;
};

}  // namespace kmm::sys
