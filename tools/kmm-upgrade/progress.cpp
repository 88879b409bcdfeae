// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/progress.hpp"

#include <condition_variable>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/view.hpp"
#include "sys/process.hpp"
#include "upgrade/pace.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {

using upgrade::EventKind;

std::string event_text(const upgrade::Event& event) {
    const auto with = [](std::string text, const std::string& more) {
        return more.empty() ? text : text + "  " + more;
    };
    if (event.kind == EventKind::paused) return fmt::format("paused ({}){}", event.reason, event.message.empty() ? "" : ": " + event.message);
    if (event.kind == EventKind::resumed) return "resumed";
    const auto who = event.node.empty() ? std::string() : event.node + " ";
    auto message = event.message;
    const bool has_failed = event.kind == EventKind::failed || (event.from != event.to && upgrade::is_failed_node_state(event.to));
    if (has_failed && !event.node.empty() && !event.reason.empty())
        message = event.reason + (message.empty() ? "" : ": " + message);
    if (event.kind == EventKind::observed && event.from == event.to && message.empty()) return "";
    if (event.from == event.to) return with(who + event.to, message);
    return with(fmt::format("{}{} -> {}", who, event.from, event.to), message);
}

std::string event_line(const upgrade::Event& event, const std::string& time) {
    const auto text = event_text(event);
    return text.empty() ? text : clock_text(time) + " " + text;
}

Progress::Progress(cli::Context& context, const upgrade::Run& run)
    : context_(context), ledger_(run), area_(context.console), begin_(std::chrono::steady_clock::now()) {
    const auto counts = upgrade::count(run);
    finals_begin_ = counts.done + counts.skipped + counts.rolled_back;
    live_ = context.console.err_is_terminal() && context.verbosity >= 0 && context.output != "jsonl";
    if (!live_) return;
    ticker_ = std::jthread([this](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        while (!stop.stop_requested()) {
            {
                const std::lock_guard guard(mutex_);
                try {
                    if (live_) draw();
                } catch (...) {
                    live_ = false;  // the walk goes on without its table
                }
            }
            std::unique_lock lock(mutex);
            wake.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
        }
    });
}

Progress::~Progress() { stop(); }

void Progress::stop() {
    if (ticker_.joinable()) {
        ticker_.request_stop();
        ticker_.join();
    }
    const std::lock_guard guard(mutex_);
    if (live_) area_.clear();
    live_ = false;
}

void Progress::note(const std::string& text) {
    const std::lock_guard guard(mutex_);
    if (context_.verbosity < 0) return;
    if (live_) area_.clear();
    context_.console.err(base::escape(text) + "\n");
    if (live_) draw();
}

drive::Observer Progress::observer() {
    return [this](const upgrade::Event& event, const std::string& time) { seen(event, time); };
}

void Progress::seen(const upgrade::Event& event, const std::string& time) {
    const std::lock_guard guard(mutex_);
    if (live_) ledger_.commit(ledger_.judge(event, time));
    if (context_.output == "jsonl") {
        auto tree = upgrade::encode(event);
        tree.set("time", time);
        context_.console.out(value::to_json(tree) + "\n");
        return;
    }
    if (context_.verbosity < 0) return;
    if (live_) {
        draw();
        return;
    }
    const auto line = event_line(event, time);
    if (!line.empty()) context_.console.err(base::escape(line) + "\n");
}

drive::Observer told_to_command(Progress& progress, const std::string& command) {
    const auto words = upgrade::command_words(command);
    if (!words) return progress.observer();
    return [&progress, words = *words, inner = progress.observer(), told = std::make_shared<std::string>()](
               const upgrade::Event& event, const std::string& time) {
        inner(event, time);
        auto tree = upgrade::encode(event);
        tree.set("time", time);
        tree.set("module", progress.module());
        sys::ProcessSpec spec;
        spec.argv = words;
        spec.stdin_text = value::to_json(tree) + "\n";
        spec.timeout = std::chrono::seconds(30);
        std::string trouble;
        try {
            const auto result = sys::run_process(spec);
            if (result.timed_out) trouble = "took longer than 30s";
            else if (result.signal != 0) trouble = fmt::format("was ended by signal {}", result.signal);
            else if (result.exit_code != 0) trouble = fmt::format("exited with {}", result.exit_code);
        } catch (const Error& error) {
            trouble = "could not be started: " + error.message();
        }
        if (!trouble.empty() && trouble != *told) progress.note(fmt::format("warning: --on-event: {} {}", words.front(), trouble));
        if (!trouble.empty()) *told = trouble;
    };
}

drive::Pace pace_of(Progress& progress) {
    drive::Pace pace;
    pace.notice = [&progress](const std::string& text) { progress.note(text); };
    return pace;
}

void Progress::draw() {
    const auto width = context_.console.width();
    std::vector<std::string> lines;
    const auto table = node_table(ledger_.run(), width);
    for (const auto line : base::split(table, '\n'))
        if (!line.empty()) lines.emplace_back(line);
    const auto counts = upgrade::count(ledger_.run());
    const auto finals = counts.done + counts.skipped + counts.rolled_back;
    constexpr std::size_t k_bar = 24;
    const auto filled = counts.total == 0 ? 0 : k_bar * finals / counts.total;
    const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
    std::string expected;
    if (finals > finals_begin_ && finals < counts.total) {
        const auto left = elapsed * static_cast<std::int64_t>(counts.total - finals) / static_cast<std::int64_t>(finals - finals_begin_);
        expected = fmt::format(", about {} to go", base::format_duration(left));
    }
    lines.push_back(fmt::format("[{}{}] {} of {} nodes  {}{}", std::string(filled, '#'), std::string(k_bar - filled, '.'), finals,
                                counts.total, base::format_duration(elapsed), expected));
    area_.draw(lines);
}

}  // namespace kmm::tool_upgrade
