// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/progress.hpp"

#include <condition_variable>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "upgrade/engine/pace.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {

using upgrade::EventKind;

EventText event_text(const upgrade::Event& event, SaidCauses& said) {
    if (event.kind == EventKind::paused)
        return {fmt::format("paused ({}){}", event.reason, event.message.empty() ? "" : ": " + event.message), ""};
    if (event.kind == EventKind::resumed) return {"resumed", ""};
    const auto who = event.node.empty() ? std::string() : event.node + " ";
    auto message = event.message;
    const bool has_failed =
        event.kind == EventKind::failed || (event.from != event.to && upgrade::is_failed_node_state(event.to));
    if (has_failed && !event.node.empty() && !event.reason.empty()) {
        message = said.text(event.node, event.reason, message);
        message = event.reason + (message.empty() ? "" : ": " + message);
    }
    if (event.kind == EventKind::observed && event.from == event.to && message.empty()) return {};
    if (event.from == event.to) return {who + event.to, message};
    return {fmt::format("{}{} -> {}", who, event.from, event.to), message};
}

std::string event_line(const upgrade::Event& event, const std::string& time, SaidCauses& said) {
    const auto text = event_text(event, said);
    if (text.change.empty()) return "";
    return clock_text(time) + " " + text.change + (text.message.empty() ? "" : "  " + text.message);
}

Progress::Progress(cli::Context& context, const upgrade::Run& run)
    : context_(context), ledger_(run), board_(run), area_(context.console), begin_(std::chrono::steady_clock::now()) {
    finals_begin_ = board_.finals();
    live_ = context.console.err_is_terminal() && context.verbosity >= 0 && context.output != "jsonl";
    if (!live_) return;
    ticker_ = std::jthread([this](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any wake;
        while (!stop.stop_requested()) {
            {
                const std::lock_guard guard(mutex_);
                try {
                    draw();
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

bool Progress::stop() {
    const bool is_whole = !command_ || command_->finish();
    if (ticker_.joinable()) {
        ticker_.request_stop();
        ticker_.join();
    }
    const std::lock_guard guard(mutex_);
    live_ = false;
    area_.clear();
    return is_whole;
}

drive::Ended Progress::stop(drive::Ended ended) { return stop() ? ended : drive::Ended::interrupted; }

void Progress::note(const std::string& text) {
    if (context_.verbosity >= 0) context_.console.err(base::escape(text) + "\n");
}

void Progress::pass_on(const std::string& command, std::function<bool()> is_stopped) {
    if (auto words = upgrade::command_words(command); words && !words->empty())
        command_ = std::make_unique<EventCommand>(
            std::move(*words), [this](const std::string& text) { note(text); }, std::move(is_stopped),
            ledger_.run().options.command_directory);
}

drive::Observer Progress::observer() {
    return [this](const upgrade::Event& event, const std::string& time) { seen(event, time); };
}

void Progress::seen(const upgrade::Event& event, const std::string& time) {
    constexpr std::chrono::milliseconds k_between{100};  // more drawings a second nobody sees
    const std::lock_guard guard(mutex_);
    auto tree = value::Node();
    if (command_ || context_.output == "jsonl") {
        tree = upgrade::encode(event);
        tree.set("time", time);
    }
    if (command_) {
        auto told = tree;
        told.set("module", subject());
        command_->push(value::to_json(told) + "\n");
    }
    if (context_.output == "jsonl") {
        context_.console.out(value::to_json(tree) + "\n");
    } else if (live_) {
        auto change = ledger_.judge(event, time);
        if (change.node) board_.update(*change.node);
        ledger_.commit(std::move(change));
        if (std::chrono::steady_clock::now() >= drawn_ + k_between) draw();
    } else if (const auto line = event_line(event, time, said_); !line.empty() && context_.verbosity >= 0) {
        context_.console.err(base::escape(line) + "\n");
    }
}

drive::Observer told_to_command(Progress& progress, const std::string& command, std::function<bool()> is_stopped) {
    progress.pass_on(command, std::move(is_stopped));
    return progress.observer();
}

drive::Pace pace_of(Progress& progress) {
    drive::Pace pace;
    pace.notice = [&progress](const std::string& text) { progress.note(text); };
    return pace;
}

void Progress::draw() {
    if (!live_) return;
    drawn_ = std::chrono::steady_clock::now();
    const auto width = context_.console.width() - 1;
    const auto rows = context_.console.height() - 1;
    auto lines = board_.lines(width, rows - 1);
    const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(drawn_ - begin_);
    auto tail = seconds_text(elapsed);
    if (const auto finals = board_.finals(); finals > finals_begin_ && finals < board_.total()) {
        const auto left = elapsed * static_cast<std::int64_t>(board_.total() - finals) /
                          static_cast<std::int64_t>(finals - finals_begin_);
        tail += fmt::format(", about {} to go", seconds_text(left));
    }
    lines.push_back(board_.bar(width, tail));
    area_.draw(std::move(lines));
}

}  // namespace kmm::tool_upgrade
