// SPDX-License-Identifier: Apache-2.0
#include "sandbox/confined.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/last_errno.hpp"
#include "sandbox/message.hpp"

namespace kmm::sandbox {

namespace {

constexpr std::size_t k_request_max = 1U << 20U;
constexpr std::size_t k_report_max = 64U << 10U;
constexpr std::chrono::milliseconds k_end_patience{1000};
constexpr std::chrono::minutes k_patience{10};
constexpr int k_first = 3;  ///< the number of the first descriptor that a process keeps
constexpr int k_lacks_memory = 2;    ///< the exit code of a process that could not even begin for want of memory

/// What the starter is asked for. `start` is followed by the place of the first service.
enum class Order : std::uint64_t { start, end, status, twin };
// What it says of the process.
constexpr std::uint64_t k_lives = 0, k_ended = 1, k_not_started = 2;

std::string order(Order what, std::size_t first = 0) {
    MessageWriter message;
    message.number(static_cast<std::uint64_t>(what));
    message.number(first);
    return message.bytes();
}

sys::Fd above_the_rest(const sys::Fd& fd) {
    sys::Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 10));
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
    for (int fd = 0; fd < standard; ++fd) {
        if (::dup2(nothing, fd) < 0) static_cast<void>(::close(fd));  // without /dev; they are the parent's
    }
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
    const sys::Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
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

/// What the starter has done once, for all processes, which are copies of it.
struct Prepared {
    const std::vector<Service>& services;
    std::size_t first = services.size();  ///< those from here on are prepared
    std::optional<Error> fault{};         ///< why they are not
    std::optional<SandboxReport> report{};  ///< of what the starter has given up
};

void prepare_from(std::size_t first, Prepared& prepared) {
    try {
        prepared.fault.reset();
        for (; prepared.first > first; --prepared.first) prepared.services[prepared.first - 1].prepare();
    } catch (const Error& error) {
        prepared.fault = error;
    }
    if (prepared.report) return;
    prepared.report.emplace();
    limit_starter(*prepared.report);
}

/// What the process does, until the other side is gone.
void serve_all(const Prepared& prepared, Channel& channel, Channel& answers) {
    std::string message;
    MessageWriter said;
    said.flag(!prepared.fault);
    if (prepared.fault) {
        said.error(*prepared.fault);
        if (!channel.send(said.bytes())) return;
        while (channel.receive(message, k_request_max)) {}
        return;
    }
    SandboxReport report = *prepared.report;
    confine(report);
    write_report(report, said);
    if (!channel.send(said.bytes())) return;
    while (channel.receive(message, k_request_max)) serve_one(prepared.services, message, channel, answers);
}

/// Starts the process that serves. -1 if that fails.
pid_t start_one(const Prepared& prepared, const sys::Fd& socket, const sys::Fd& answers) {
    const pid_t starter = ::getpid();
    const pid_t process = ::fork();
    if (process != 0) return process;
    int code = 0;
    try {
        end_with(starter);
        keep_only({above_the_rest(socket).release(), above_the_rest(answers).release()});
        offer_to_oom_killer();
        Channel channel{sys::Fd(k_first)};
        Channel asked{sys::Fd(k_first + 1)};
        serve_all(prepared, channel, asked);
    } catch (const std::bad_alloc&) {
        code = k_lacks_memory;
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

void work_as_starter(Prepared& prepared, Channel& parent);

/// Another starter, for another socket.
void start_twin(Prepared& prepared, const sys::Fd& socket) {
    const pid_t parent = ::getpid();
    if (::fork() != 0) return;
    try {
        end_with(parent);
        keep_only({above_the_rest(socket).release()});
        Channel asked{sys::Fd(k_first)};
        work_as_starter(prepared, asked);
    } catch (const std::exception&) {
        // Whoever has the other end finds that it is gone.
    }
    ::_exit(0);
}

bool send_socket(Channel& parent, const sys::Fd& socket) {
    const int descriptor = socket.get();
    return parent.send(order(Order::start), {}, {&descriptor, 1});
}

/// In place of the sockets: the errno of why there are none.
bool send_fault(Channel& parent, const Error& fault) {
    return parent.send(order(Order::start, static_cast<std::size_t>(fault.errno_cause().value_or(EIO))));
}

/// Starts a process that serves and sends its sockets. False if the parent is gone.
bool start_for(Channel& parent, Prepared& prepared, pid_t& process) {
    end_one(process);
    try {
        const auto [ours, theirs] = connected_sockets();
        const auto [our_answers, their_answers] = connected_sockets();
        process = start_one(prepared, theirs, their_answers);
        return send_socket(parent, ours) && send_socket(parent, our_answers);
    } catch (const Error& fault) {
        return send_fault(parent, fault);
    }
}

/// The same for another starter.
bool start_twin_for(Channel& parent, Prepared& prepared) {
    try {
        const auto [ours, theirs] = connected_sockets();
        start_twin(prepared, theirs);
        return send_socket(parent, ours);
    } catch (const Error& fault) {
        return send_fault(parent, fault);
    }
}

/// The copy of the program: it sees no foreign byte, and so can always start a process that has seen none.
void work_as_starter(Prepared& prepared, Channel& parent) {
    pid_t process = -1;
    bool open = true;
    for (std::string message; open && parent.receive(message, k_request_max);) {
        MessageReader reader(message);
        switch (static_cast<Order>(reader.number())) {
            case Order::start:
                prepare_from(reader.number(), prepared);
                open = start_for(parent, prepared, process);
                break;
            case Order::twin: open = start_twin_for(parent, prepared); break;
            case Order::end: end_one(process); break;
            case Order::status: open = parent.send(status_of(process)); break;
        }
    }
    end_one(process);
}

Error starter_is_gone() {
    return Error(Exit::io, "parser-killed", "the process that starts parsers was killed")
        .hint("run the same command again");
}

}  // namespace

Confined::Confined(std::vector<Service> services, std::function<void()> stop)
    : starter_(sys::Fd()), channel_(sys::Fd()), answers_(sys::Fd()), stop_(std::move(stop)) {
    for (const Service& service : services) {
        numbers_.push_back(service.number);
        service.prepare_both();
    }
    auto [ours, theirs] = connected_sockets();
    const sys::Fd socket = above_the_rest(theirs);
    const pid_t parent = ::getpid();
    starter_process_ = ::fork();
    if (starter_process_ < 0)
        throw LastErrno().error("starting a process").hint("a limit of processes or memory is too low: ulimit -a");
    if (starter_process_ == 0) {
        // Signals from the terminal concern the parent; this process ends when the socket closes.
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) static_cast<void>(::signal(number, SIG_IGN));
        try {
            end_with(parent);
            keep_only({socket.get()});
            Channel asked{sys::Fd(k_first)};
            Prepared prepared{services};
            work_as_starter(prepared, asked);
        } catch (const std::exception&) {
            // The parent finds that it is gone.
        }
        ::_exit(0);
    }
    starter_ = Channel(std::move(ours));
}

std::unique_ptr<Confined> Confined::if_alone(std::vector<Service> services, std::function<void()> stop) {
    std::error_code failed;
    std::size_t threads = 0;
    for (std::filesystem::directory_iterator each("/proc/self/task", failed), end; !failed && each != end;
         each.increment(failed))
        ++threads;
    if (threads != 1) return nullptr;
    return std::make_unique<Confined>(std::move(services), std::move(stop));
}

Confined::Confined(sys::Fd socket, std::vector<std::uint64_t> numbers, std::function<void()> stop)
    : numbers_(std::move(numbers)),
      starter_(std::move(socket)),
      channel_(sys::Fd()),
      answers_(sys::Fd()),
      stop_(std::move(stop)) {}

std::unique_ptr<Confined> Confined::twin() {
    const std::lock_guard guard(mutex_);
    if (running_) connect();  // its sockets come before that of the twin
    if (!starter_.send(order(Order::twin))) throw starter_is_gone();
    return std::unique_ptr<Confined>(new Confined(take_socket(), numbers_, stop_));
}

Confined::~Confined() {
    channel_.shut();
    answers_.shut();
    starter_.shut();
    while (starter_process_ > 0 && ::waitpid(starter_process_, nullptr, 0) < 0 && errno == EINTR) {}
}

std::size_t Confined::place_of(std::uint64_t number) const {
    const auto found = std::find(numbers_.begin(), numbers_.end(), number);
    if (found == numbers_.end()) throw bug("a confined process is asked for something unknown");
    return static_cast<std::size_t>(found - numbers_.begin());
}

/// What the starter has made: this process may have given up making sockets.
sys::Fd Confined::take_socket() {
    std::string message;
    if (!starter_.receive(message, k_request_max)) throw starter_is_gone();
    sys::Fd socket = starter_.take_descriptor();
    if (socket) return socket;
    MessageReader reader(message);
    static_cast<void>(reader.number());
    const auto fault = static_cast<int>(reader.number());
    throw from_errno(fault == 0 ? EMFILE : fault, "starting the process that parses foreign bytes");
}

void Confined::start(std::size_t first) {
    if (!starter_.send(order(Order::start, first))) throw starter_is_gone();
    running_ = true;
    connected_ = false;
    prepared_ = first;
}

void Confined::connect() {
    if (connected_) return;
    try {
        channel_ = Channel(take_socket());
        answers_ = Channel(take_socket());
    } catch (const Error&) {
        running_ = false;
        starter_.shut();  // what else it sends would be taken for an answer to the next order
        throw;
    }
    connected_ = true;
}

void Confined::begin(std::uint64_t number) {
    if (!running_) start(place_of(number));
}

void Confined::end() {
    connect();
    channel_.shut();
    answers_.shut();
    static_cast<void>(starter_.send(order(Order::end)));
    running_ = used_ = reported_ = false;
    lost_.reset();
}

void Confined::renew() {
    if (used_) end();
}

void Confined::send(std::string_view message, std::span<const int> descriptors) {
    const std::size_t place = place_of(MessageReader(message).number());
    if (running_ && place < prepared_ && !lost_) end();
    if (!running_) start(place);
    connect();
    used_ = true;
    if (!channel_.send(message, {}, descriptors)) throw lost();
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

void Confined::receive(std::string& message, std::size_t most, const std::function<void()>& on_wait) {
    if (!reported_) take_report();
    const auto start = std::chrono::steady_clock::now();
    const auto wait = [&] {
        if (stop_) stop_();
        if (on_wait) on_wait();
        if (std::chrono::steady_clock::now() - start < k_patience) return;
        throw Error(Exit::timeout, "timeout", "the process that parses foreign bytes does not answer")
            .hint("its input may be an attack: do not use the image, and report it");
    };
    if (!channel_.receive(message, most, wait)) throw lost();
}

Error Confined::lost() {
    if (lost_) return *lost_;
    channel_.shut();
    answers_.shut();
    std::string message;
    std::uint64_t how = k_lives;
    int status = 0;
    if (starter_.send(order(Order::status)) && starter_.receive(message, k_request_max)) {
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
    } else if (how == k_ended && WIFEXITED(status) && WEXITSTATUS(status) == k_lacks_memory) {
        lost_ = Error(Exit::io, "parser-killed", "the process that parses foreign bytes got no memory")
                    .hint("see the limits of memory: ulimit -v, the memory limit of the Pod");
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

}  // namespace kmm::sandbox
