// SPDX-License-Identifier: Apache-2.0
// Who holds the right to write, and whether that process can still be alive.
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "base/text.hpp"
#include "record/owner_text.hpp"
#include "sys/file_ops.hpp"
#include "sys/host.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::record {
namespace {

constexpr std::size_t k_command_max = 300;

std::string own_command_line() {
    try {
        std::string command = sys::read_file("/proc/self/cmdline", 1U << 20U);
        while (!command.empty() && command.back() == '\0') {
            command.pop_back();
        }
        for (char& byte : command) {
            byte = byte == '\0' ? ' ' : byte;
        }
        if (command.size() > k_command_max) {
            command.resize(k_command_max);
            command += " [cut]";
        }
        return base::is_utf8(command) ? command : base::escape(command);
    } catch (const Error&) {
        return {};
    }
}

std::string own_terminal() {
    std::array<char, 256> name{};
    for (int fd = 0; fd <= 2; ++fd) {
        if (::ttyname_r(fd, name.data(), name.size()) == 0) {
            return name.data();
        }
    }
    return {};
}

std::int64_t int_at(const value::Node& document, std::string_view key) {
    const value::Node* number = document.find(key);
    return number == nullptr ? 0 : number->as_int().value_or(0);
}

}  // namespace

Owner current_owner(const std::string& operation, const sys::Clock& clock) {
    Owner owner;
    owner.host = sys::host_name();
    owner.machine_id = sys::machine_id();
    owner.boot_id = sys::boot_id();
    owner.tty = own_terminal();
    owner.command = own_command_line();
    owner.operation = operation;
    owner.since = base::format_rfc3339(clock.now_unix());
    owner.pid = ::getpid();
    owner.uid = ::geteuid();
    owner.user = sys::caller_name();
    owner.pid_namespace = sys::pid_namespace();
    owner.start_time = sys::process_start_time(owner.pid).value_or(0);
    return owner;
}

bool owner_may_live(const Owner& owner) {
    const std::string machine = sys::machine_id();
    const bool same_machine =
        !machine.empty() && !owner.machine_id.empty() ? machine == owner.machine_id : owner.host == sys::host_name();
    if (!same_machine) {
        return true;  // nothing can be proven from here
    }
    const std::string boot = sys::boot_id();
    if (!boot.empty() && !owner.boot_id.empty() && boot != owner.boot_id) {
        return false;
    }
    if (!owner.pid_namespace.empty() && owner.pid_namespace != sys::pid_namespace()) {
        return true;  // its pid is the number of another process here, or of none
    }
    const std::optional<std::uint64_t> start = sys::process_start_time(owner.pid);
    return start.has_value() && (owner.start_time == 0 || *start == owner.start_time);
}

std::string encode_owner(const Owner& owner) {
    value::Node document = value::Node::mapping();
    document.set("operation", value::Node(owner.operation));
    document.set("since", value::Node(owner.since));
    document.set("host", value::Node(owner.host));
    document.set("pid", value::Node(owner.pid));
    document.set("startTime", value::Node(owner.start_time));
    document.set("uid", value::Node(owner.uid));
    document.set("user", value::Node(owner.user));
    document.set("pidNamespace", value::Node(owner.pid_namespace));
    document.set("tty", value::Node(owner.tty));
    document.set("command", value::Node(owner.command));
    document.set("machineID", value::Node(owner.machine_id));
    document.set("bootID", value::Node(owner.boot_id));
    return value::to_json(document);
}

std::optional<Owner> parse_owner(std::string_view text) {
    Diagnostics faults;
    const std::vector<value::Document> documents = value::read_json(text, "lock", faults);
    if (has_errors(faults) || documents.size() != 1 || !documents.front().root.is_mapping()) {
        return std::nullopt;
    }
    const value::Node& document = documents.front().root;
    Owner owner;
    owner.operation = document.get_string({"operation"});
    owner.since = document.get_string({"since"});
    owner.host = document.get_string({"host"});
    owner.tty = document.get_string({"tty"});
    owner.user = document.get_string({"user"});
    owner.pid_namespace = document.get_string({"pidNamespace"});
    owner.command = document.get_string({"command"});
    owner.machine_id = document.get_string({"machineID"});
    owner.boot_id = document.get_string({"bootID"});
    owner.pid = int_at(document, "pid");
    owner.uid = int_at(document, "uid");
    const value::Node* start = document.find("startTime");
    owner.start_time = start == nullptr ? 0 : start->as_uint().value_or(0);
    return owner;
}

Error locked_by(const Owner& owner, const std::string& directory, const std::string& file) {
    const bool known = owner.pid != 0;
    if (owner.is_gone) {
        return Error(Exit::locked, "locked",
                     "a process that kmm-upgrade " + owner.operation +
                         " has started is still running; kmm-upgrade, pid " + std::to_string(owner.pid) +
                         " on " + owner.host + " since " + owner.since + ", was killed")
            .detail("directory", directory)
            .detail("command", owner.command)
            .hint("wait until that process has ended; fuser -v " + file + " names it");
    }
    Error error(Exit::locked, "locked",
                known ? "another kmm-upgrade is running: " + owner.operation + ", pid " + std::to_string(owner.pid) +
                            " on " + owner.host + " since " + owner.since
                      : "another kmm-upgrade is running in this state directory");
    error.detail("directory", directory);
    if (known) {
        const std::string who = owner.user.empty() ? sys::user_name(owner.uid) : owner.user;
        error.detail("who", who + (owner.tty.empty() ? "" : " at " + owner.tty));
        error.detail("where", owner.host + ", pid " + std::to_string(owner.pid));
        error.detail("since", owner.since);
        error.detail("operation", owner.operation);
        error.detail("command", owner.command);
    }
    error.hint(
        "wait for it, kmm-upgrade show --watch follows an upgrade; the lock ends with the processes that hold it: "
        "there is nothing to remove");
    return error;
}

std::string default_state_dir() {
    if (::geteuid() == 0) {
        return "/var/lib/kmm-upgrade";
    }
    const char* state = std::getenv("XDG_STATE_HOME");
    if (state != nullptr && *state == '/') {  // the specification says to ignore a relative one
        return std::string(state) + "/kmm-upgrade";
    }
    const char* home = std::getenv("HOME");
    if (home == nullptr || *home != '/') {
        throw Error(Exit::usage, "no-state-dir", "cannot tell where to keep the record: HOME is not set")
            .hint("say it with --state-dir DIR");
    }
    return std::string(home) + "/.local/state/kmm-upgrade";
}

}  // namespace kmm::record
