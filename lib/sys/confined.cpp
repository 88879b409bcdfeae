// SPDX-License-Identifier: Apache-2.0
#include "sys/confined.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/last_errno.hpp"
#include "sys/message.hpp"

namespace kmm::sys {

namespace {

constexpr std::size_t k_channel_buffer = 256U << 10U;
constexpr std::size_t k_request_max = 1U << 20U;
constexpr std::size_t k_report_max = 64U << 10U;
constexpr int k_wait_ms = 200;
constexpr std::chrono::milliseconds k_end_patience{1000};
constexpr std::chrono::minutes k_patience{10};
constexpr int k_first = 3;  ///< the number of the first descriptor that a process keeps

// What the nurse is asked for.
constexpr std::string_view k_start = "start", k_end = "end", k_status = "status", k_twin = "twin";
// What it says of the process.
constexpr std::uint64_t k_lives = 0, k_ended = 1, k_not_started = 2;

/// Makes two connected sockets.
std::pair<Fd, Fd> connected_sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw LastErrno().error("making a socket");
    return {Fd(ends[0]), Fd(ends[1])};
}

Fd above_the_rest(const Fd& fd) {
    Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
    if (!copy) throw LastErrno().error("making a socket");
    return copy;
}

/// Only `kept`, whose numbers are above 9, stay open, and become k_first and so on: locks and files of the parent are
/// its own.
void keep_only(std::initializer_list<int> kept) {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr int standard = 2;  // what the instruments find is written to standard error
#else
    constexpr int standard = 3;
#endif
    for (int fd = 0; fd < standard; ++fd) static_cast<void>(::dup2(nothing, fd));
    int next = k_first;
    for (const int fd : kept) static_cast<void>(::dup2(fd, next++));
    if (::syscall(SYS_close_range, static_cast<unsigned>(next), ~0U, 0U) == 0) return;
    const auto end = static_cast<int>(std::min<long>(::sysconf(_SC_OPEN_MAX), 65536));  // before Linux 5.9
    for (int fd = next; fd < end; ++fd) static_cast<void>(::close(fd));
}

/// The process ends with the one that started it.
void end_with(pid_t parent) {
    static_cast<void>(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
    if (::getppid() != parent) ::_exit(0);
}

/// When memory runs out, this process goes first.
void offer_to_oom_killer() {
    const Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    if (file) static_cast<void>(!::write(file.get(), "1000", 4));
}

void write_report(const SandboxReport& report, MessageWriter& message) {
    for (const auto* lines : {&report.in_force, &report.missing}) {
        message.number(lines->size());
        for (const std::string& line : *lines) message.text(line);
    }
}

void serve_one(const std::vector<Service>& services, const std::string& message, Channel& channel, Channel& answers) {
    const std::uint64_t number = MessageReader(message).number();
    const auto service =
        std::find_if(services.begin(), services.end(), [&](const Service& each) { return each.number == number; });
    if (service == services.end()) throw bug("a confined process was asked for something unknown");
    service->serve(message, channel, answers);
}

/// What the process does, until the other side is gone.
void serve_all(const std::vector<Service>& services, Channel& channel, Channel& answers) {
    std::string message;
    if (!channel.receive(message, k_request_max)) return;
    MessageWriter said;
    try {
        for (const Service& service : services) service.prepare();
    } catch (const Error& error) {
        said.flag(false);
        said.error(error);
        static_cast<void>(channel.send(said.bytes()));
        return;
    }
    SandboxReport report;
    confine(report);
    said.flag(true);
    write_report(report, said);
    if (!channel.send(said.bytes())) return;
    do {
        serve_one(services, message, channel, answers);
    } while (channel.receive(message, k_request_max));
}

/// Starts the process that serves. -1 if that fails.
pid_t start_one(const std::vector<Service>& services, const Fd& socket, const Fd& answers) {
    const pid_t nurse = ::getpid();
    const pid_t process = ::fork();
    if (process != 0) return process;
    int code = 0;
    try {
        end_with(nurse);
        keep_only({above_the_rest(socket).release(), above_the_rest(answers).release()});
        offer_to_oom_killer();
        Channel channel{Fd(k_first)};
        Channel asked{Fd(k_first + 1)};
        serve_all(services, channel, asked);
    } catch (const std::exception&) {
        code = 1;  // what may go wrong with foreign bytes, services answer themselves
    }
    ::_exit(code);
}

void end_one(pid_t& process) {
    if (process <= 0) return;
    static_cast<void>(::kill(process, SIGKILL));
    while (::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {}
    process = -1;
}

/// How `process` ended. It is given a moment: its socket closes before it does.
std::string status_of(pid_t& process) {
    MessageWriter said;
    int status = 0;
    pid_t found = 0;
    const auto end = std::chrono::steady_clock::now() + k_end_patience;
    while (process > 0 && (found = ::waitpid(process, &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    said.number(process <= 0 ? k_not_started : found == 0 ? k_lives : k_ended);
    said.number(static_cast<std::uint64_t>(status));
    if (found != 0) process = -1;
    return said.bytes();
}

void nurse(const std::vector<Service>& services, Channel& parent);

/// Another nurse, for another socket.
void start_twin(const std::vector<Service>& services, const Fd& socket) {
    const pid_t parent = ::getpid();
    if (::fork() != 0) return;
    try {
        end_with(parent);
        keep_only({above_the_rest(socket).release()});
        Channel asked{Fd(k_first)};
        nurse(services, asked);
    } catch (const std::exception&) {
        // Whoever has the other end finds that it is gone.
    }
    ::_exit(0);
}

/// The copy of the program: it sees no foreign byte, and so can always start a process that has seen none.
void nurse(const std::vector<Service>& services, Channel& parent) {
    pid_t process = -1;
    for (std::string message; parent.receive(message, k_request_max);) {
        if (message == k_start) {
            end_one(process);
            const auto [ours, theirs] = connected_sockets();
            const auto [our_answers, their_answers] = connected_sockets();
            process = start_one(services, theirs, their_answers);
            if (!parent.send(k_start, ours.get()) || !parent.send(k_start, our_answers.get())) break;
        } else if (message == k_twin) {
            const auto [ours, theirs] = connected_sockets();
            start_twin(services, theirs);
            if (!parent.send(k_twin, ours.get())) break;
        } else if (message == k_end) {
            end_one(process);
        } else if (message == k_status && !parent.send(status_of(process))) {
            break;
        }
    }
    end_one(process);
}

Error nurse_is_gone() {
    return Error(Exit::io, "parser-killed", "the process that starts parsers was killed")
        .hint("run the same command again");
}

}  // namespace

bool Channel::send(std::string_view message, int descriptor) {
    std::uint64_t size = message.size();
    std::array<iovec, 2> parts{{{&size, sizeof size}, {const_cast<char*>(message.data()), message.size()}}};
    msghdr header{};
    header.msg_iov = parts.data();
    header.msg_iovlen = parts.size();
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (descriptor >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    std::size_t left = sizeof size + message.size();
    while (left > 0) {
        const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        left -= static_cast<std::size_t>(sent);
        header.msg_control = nullptr;
        header.msg_controllen = 0;
        auto done = static_cast<std::size_t>(sent);
        for (iovec& part : parts) {
            const std::size_t of_this = std::min(done, part.iov_len);
            part.iov_base = static_cast<char*>(part.iov_base) + of_this;
            part.iov_len -= of_this;
            done -= of_this;
        }
    }
    return true;
}

/// Receives what is there, behind what is in the buffer.
bool Channel::fill(const std::function<void()>& on_wait) {
    while (on_wait) {
        pollfd socket{socket_.get(), POLLIN, 0};
        const int ready = ::poll(&socket, 1, k_wait_ms);
        if (ready > 0) break;
        on_wait();
    }
    iovec part{buffer_.data() + end_, buffer_.size() - end_};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t got = -1;
    do {
        got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) return false;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(each), sizeof descriptor);
        descriptors_.emplace_back(descriptor);
    }
    end_ += static_cast<std::size_t>(got);
    return true;
}

bool Channel::receive(std::string& message, std::size_t most, const std::function<void()>& on_wait) {
    std::uint64_t size = 0;
    if (buffer_.empty()) buffer_.resize(k_channel_buffer);
    if (begin_ == end_) begin_ = end_ = 0;
    const auto make_room = [&] {
        if (end_ < buffer_.size()) return;
        buffer_.erase(0, begin_);
        end_ -= begin_;
        begin_ = 0;
        buffer_.resize(k_channel_buffer);
    };
    while (end_ - begin_ < sizeof size) {
        make_room();
        if (!fill(on_wait)) return false;
    }
    std::memcpy(&size, buffer_.data() + begin_, sizeof size);
    begin_ += sizeof size;
    if (size > most) return false;
    message.clear();
    while (true) {
        const auto have = std::min<std::uint64_t>(end_ - begin_, size - message.size());
        message.append(buffer_, begin_, have);
        begin_ += have;
        if (message.size() == size) return true;
        begin_ = end_ = 0;
        if (!fill(on_wait)) return false;
    }
}

Fd Channel::take_descriptor() {
    if (descriptors_.empty()) return {};
    Fd first = std::move(descriptors_.front());
    descriptors_.erase(descriptors_.begin());
    return first;
}

void Channel::shut() noexcept { static_cast<void>(::shutdown(socket_.get(), SHUT_RDWR)); }

Confined::Confined(std::vector<Service> services, std::function<void()> stop)
    : nursery_(Fd()), channel_(Fd()), answers_(Fd()), stop_(std::move(stop)) {
    auto [ours, theirs] = connected_sockets();
    const Fd socket = above_the_rest(theirs);
    const pid_t parent = ::getpid();
    nurse_ = ::fork();
    if (nurse_ < 0) throw LastErrno().error("starting a process");
    if (nurse_ == 0) {
        // Signals from the terminal concern the parent; this process ends when the socket closes.
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) static_cast<void>(::signal(number, SIG_IGN));
        try {
            end_with(parent);
            keep_only({socket.get()});
            Channel asked{Fd(k_first)};
            nurse(services, asked);
        } catch (const std::exception&) {
            // The parent finds that it is gone.
        }
        ::_exit(0);
    }
    nursery_ = Channel(std::move(ours));
}

Confined::Confined(Fd nursery, std::function<void()> stop)
    : nursery_(std::move(nursery)), channel_(Fd()), answers_(Fd()), stop_(std::move(stop)) {}

std::unique_ptr<Confined> Confined::twin() {
    const std::lock_guard guard(mutex_);
    if (!nursery_.send(k_twin)) throw nurse_is_gone();
    return std::unique_ptr<Confined>(new Confined(take_socket(), stop_));
}

Confined::~Confined() {
    channel_.shut();
    answers_.shut();
    nursery_.shut();
    while (nurse_ > 0 && ::waitpid(nurse_, nullptr, 0) < 0 && errno == EINTR) {}
}

/// What the nurse has made: this process may have given up making sockets.
Fd Confined::take_socket() {
    std::string message;
    Fd socket;
    if (nursery_.receive(message, k_request_max)) socket = nursery_.take_descriptor();
    if (!socket) throw nurse_is_gone();
    return socket;
}

void Confined::start() {
    if (!nursery_.send(k_start)) throw nurse_is_gone();
    channel_ = Channel(take_socket());
    answers_ = Channel(take_socket());
    running_ = true;
}

void Confined::renew() {
    channel_.shut();
    answers_.shut();
    if (running_) static_cast<void>(nursery_.send(k_end));
    running_ = false;
    reported_ = false;
    lost_.reset();
}

void Confined::send(std::string_view message, int descriptor) {
    if (!running_) start();
    if (!channel_.send(message, descriptor)) throw lost();
}

void Confined::answer(std::string_view message) {
    if (!answers_.send(message)) throw lost();
}

void Confined::take_report() {
    const auto wait = [this] {
        if (stop_) stop_();
    };
    std::string message;
    if (!channel_.receive(message, k_report_max, wait)) throw lost();
    MessageReader reader(message);
    report_ = {};
    if (!reader.flag()) throw reader.error();  // a library that is not there
    for (auto* lines : {&report_.in_force, &report_.missing}) {
        lines->resize(reader.count(sizeof(std::uint64_t)));
        for (std::string& line : *lines) line = reader.text();
    }
    reported_ = true;
}

std::string Confined::receive(std::size_t most, const std::function<void()>& on_wait) {
    if (!reported_) take_report();
    const auto start = std::chrono::steady_clock::now();
    const auto wait = [&] {
        if (stop_) stop_();
        if (on_wait) on_wait();
        if (std::chrono::steady_clock::now() - start < k_patience) return;
        throw Error(Exit::timeout, "timeout", "the process that parses foreign bytes does not answer")
            .hint("its input may be an attack: do not use the image, and report it");
    };
    std::string message;
    if (!channel_.receive(message, most, wait)) throw lost();
    return message;
}

Error Confined::lost() {
    if (lost_) return *lost_;
    channel_.shut();
    answers_.shut();
    std::string message;
    std::uint64_t how = k_lives;
    int status = 0;
    if (nursery_.send(k_status) && nursery_.receive(message, k_request_max)) {
        MessageReader reader(message);
        how = reader.number(k_not_started);
        status = static_cast<int>(reader.number());
    }
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (how == k_not_started) {
        lost_ = Error(Exit::io, "io", "the process that parses foreign bytes cannot be started")
                    .hint("see the limits of processes and memory");
    } else if (how == k_ended && signal == SIGKILL) {
        lost_ = Error(Exit::io, "parser-killed", "the process that parses foreign bytes was killed")
                    .hint("the kernel does that when memory runs out: see its log, and try again with more memory");
    } else if (how == k_ended && signal != 0) {
        const char* name = ::sigabbrev_np(signal);
        lost_ =
            Error(Exit::unsafe, "parser-crashed",
                  fmt::format("the process that parses foreign bytes was ended by SIG{}", name == nullptr ? "?" : name))
                .hint("its input may be an attack: do not use the image, and report it");
    } else {
        lost_ = bad_message();  // it has left, or said more than it may
    }
    return *lost_;
}

}  // namespace kmm::sys
