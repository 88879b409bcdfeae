// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/call.hpp"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "kmm-upgrade/session/place_options.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_upgrade {

Call::Call(const cli::Args& args, cli::Context& context) : args_(args), context_(context) {
    if (const auto timeout = args.get("timeout"))
        if (const auto duration = base::parse_duration(*timeout)) deadline_ = clock_.monotonic() + *duration;
    if (const auto patience = args.get("api-timeout")) {
        const auto duration = base::parse_duration(*patience);
        if (!duration || duration->count() < 1)
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--api-timeout is \"{}\", expected a duration as 5m", *patience))
                .hint("leave the option out for the usual one");
        api_timeout_ = *duration;
    }
    if (const auto file = args.get("metrics")) cli::require_report(*file);
}

bool Call::stopped() const { return sys::interrupt_requested() || (deadline_ && clock_.monotonic() >= *deadline_); }

Exit Call::stop_exit() const {
    if (!sys::interrupt_requested()) return Exit::timeout;
    return sys::interrupt_exit();
}

void Call::require_going_on() const {
    if (stopped())
        throw Error(stop_exit(), "interrupted", "interrupted before anything was changed").hint("start again");
}

std::optional<std::string> Call::ask(const std::string& question) const {
    if (stopped()) return std::nullopt;
    std::optional<std::chrono::milliseconds> patience;
    if (deadline_) patience = *deadline_ - clock_.monotonic();
    auto answer = context_.console.ask(question, patience);
    return stopped() ? std::nullopt : answer;
}

std::string absolute_path(const std::string& path) {
    std::error_code failed;
    const auto full = std::filesystem::weakly_canonical(path, failed);
    return failed ? path : full.string();
}

Exit Call::print_beside(const std::function<void()>& write, const std::function<Exit()>& print) const {
    std::optional<Error> unwritten;
    try {
        write();
    } catch (const Error& error) {
        unwritten = error;
    }
    const auto exit = print();
    if (!unwritten) return exit;
    context_.console.err(cli::error_text(*unwritten, context_.color_err));
    return exit == Exit::ok ? unwritten->exit() : exit;
}

void Call::note(const std::string& text) const {
    if (context_.verbosity < 0) return;
    const auto whole = PlaceOptions(args_, context_.program).put_into(text);
    context_.console.err("note: " + base::escape(whole) + "\n");
}

}  // namespace kmm::tool_upgrade
