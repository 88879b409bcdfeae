// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/image/key_holder.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "sandbox/sandbox.hpp"

namespace kmm::tool_worker {

namespace {

constexpr std::uint64_t k_message_bytes = 600U << 20U;  // a module file has 512 MiB at most
using Fields = std::vector<std::string>;

/// Both return false when the other side is gone.
bool write_all(int fd, const char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t done = ::send(fd, data, size, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        size -= static_cast<std::size_t>(done);
    }
    return true;
}

bool read_all(int fd, char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t done = ::recv(fd, data, size, 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        size -= static_cast<std::size_t>(done);
    }
    return true;
}

/// A message: the number of fields, then each with its length before it.
bool send_fields(int fd, const std::vector<std::string_view>& fields) {
    const auto number = [&](std::uint64_t value) {
        return write_all(fd, reinterpret_cast<const char*>(&value), sizeof value);
    };
    if (!number(fields.size())) return false;
    return std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
        return number(field.size()) && write_all(fd, field.data(), field.size());
    });
}

bool receive_fields(int fd, Fields& fields) {
    constexpr std::uint64_t k_fields_max = 64;
    const auto number = [&](std::uint64_t& value, std::uint64_t most) {
        return read_all(fd, reinterpret_cast<char*>(&value), sizeof value) && value <= most;
    };
    std::uint64_t count = 0;
    if (!number(count, k_fields_max)) return false;
    fields.assign(count, {});
    for (std::string& field : fields) {
        std::uint64_t size = 0;
        if (!number(size, k_message_bytes)) return false;
        field.resize(size);
        if (!read_all(fd, field.data(), field.size())) return false;
    }
    return true;
}

bool send_error(int fd, const Error& error) {
    const std::string exit = fmt::format("{}", static_cast<int>(error.exit()));
    std::vector<std::string_view> fields{"error", exit, error.code(), error.message(), error.hint()};
    for (const auto& [key, text] : error.details()) {
        fields.emplace_back(key);
        fields.emplace_back(text);
    }
    return send_fields(fd, fields);
}

/// What a message says: an error, or the fields behind "ok".
Fields take_answer(int fd) {
    Fields fields;
    if (!receive_fields(fd, fields) || fields.empty())
        throw Error(Exit::io, "io", "the process that holds the private key is gone")
            .hint("run the same command again");
    if (fields.front() == "error" && fields.size() >= 5) {
        const auto& rows = exit_code_table();
        const auto number = base::parse_number<int>(fields[1]);
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& known) {
            return number && static_cast<int>(known.code) == *number;
        });
        Error error(row == rows.end() ? Exit::other : row->code, fields[2], fields[3]);
        error.hint(fields[4]);
        for (std::size_t i = 5; i + 1 < fields.size(); i += 2) error.detail(fields[i], fields[i + 1]);
        throw error;
    }
    fields.erase(fields.begin());
    return fields;
}

/// What the process does; it ends when the other side has nothing more to ask.
void hold(int fd, const std::function<kmod::ModuleSigner()>& make) {
    try {
        keep_memory_private();
        const kmod::ModuleSigner signer = make();
        sandbox::SandboxReport report;  // is that of the whole program, which tells its own
        sandbox::forbid_programs(report);
        sandbox::leave_network(report);
        sandbox::forbid_writes({}, report);
        sandbox::drop_capabilities(report);
        sandbox::forbid_sockets(report, sandbox::Modes::fixed);
        const auto& identity = signer.identity();
        std::vector<std::string_view> fields{"ok", identity.signer, identity.key_id, identity.digest, identity.fault};
        fields.insert(fields.end(), signer.warnings().begin(), signer.warnings().end());
        if (!send_fields(fd, fields)) return;
        for (Fields asked; receive_fields(fd, asked) && asked.size() == 1;) {
            try {
                if (!send_fields(fd, {"ok", signer.sign(asked.front())})) return;
            } catch (const Error& error) {
                if (!send_error(fd, error)) return;
            }
        }
    } catch (const Error& error) {
        (void)send_error(fd, error);
    } catch (const std::exception& error) {
        (void)send_error(fd, Error(Exit::other, "io", error.what()));
    }
}

}  // namespace

void keep_memory_private() {
    const rlimit none{0, 0};
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::setrlimit(RLIMIT_CORE, &none) != 0) {
        const int saved = errno;
        throw from_errno(saved, "keeping the private key out of core files");
    }
}

KeyHolder::KeyHolder(const std::function<kmod::ModuleSigner()>& make) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        const int saved = errno;
        throw from_errno(saved, "making a socket");
    }
    socket_ = sys::Fd(ends[0]);
    const sys::Fd theirs(ends[1]);
    process_ = ::fork();
    if (process_ < 0) {
        const int saved = errno;
        throw from_errno(saved, "starting a process");
    }
    if (process_ == 0) {
        // Signals from the terminal concern the parent; this process ends when the socket closes.
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) (void)::signal(number, SIG_IGN);
        socket_ = sys::Fd();
        hold(theirs.get(), make);
        ::_exit(0);
    }
    try {
        const Fields said = take_answer(socket_.get());
        if (said.size() < 4)
            throw Error(Exit::io, "io", "the process that holds the private key answers something else");
        identity_ = {said[0], said[1], said[2], said[3]};
        warnings_.assign(said.begin() + 4, said.end());
    } catch (...) {
        socket_ = sys::Fd();
        (void)::waitpid(process_, nullptr, 0);
        throw;
    }
}

KeyHolder::~KeyHolder() {
    socket_ = sys::Fd();
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
}

std::string KeyHolder::sign(std::string_view module) const {
    if (!send_fields(socket_.get(), {module}))
        throw Error(Exit::io, "io", "the process that holds the private key is gone")
            .hint("run the same command again");
    Fields said = take_answer(socket_.get());
    if (said.size() != 1) throw Error(Exit::io, "io", "the process that holds the private key answers something else");
    return std::move(said.front());
}

}  // namespace kmm::tool_worker
