// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/line_writer.hpp"

#include <string_view>
#include <system_error>
#include <utility>

#include "kmm-plan/source/documents.hpp"
#include "sys/two_threads.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

constexpr std::size_t k_block = std::size_t{1} << 18U;  ///< bytes that are written at a time
constexpr std::size_t k_batch = 4096;                   ///< lines that go from one thread to the other at a time
constexpr std::size_t k_batches = 2;                    ///< how many batches may wait

std::string text_of_line(const plan::Entry& entry) { return value::to_json(entry_node(entry)) + "\n"; }

}  // namespace

LineWriter::LineWriter(cli::Console& console, const std::string& cluster) : console_(console), batches_(k_batches) {
    block_.reserve(2 * k_block);
    if (!cluster.empty()) { head_ = "{\"cluster\":" + value::to_json(value::Node(cluster)) + ","; }
}

void LineWriter::begin_line(const std::string& text) {
    block_ += head_;
    block_.append(text, head_.empty() ? 0 : 1);
}

std::optional<LineWriter::Pieces> LineWriter::cut(plan::Entry entry) {
    constexpr std::string_view k_node = "the node of the line";
    constexpr std::string_view k_boot = "the boot id of the node";
    if (!entry.message.empty() && entry.message.find(entry.node) != std::string::npos) { return std::nullopt; }
    entry.node = k_node;
    if (!entry.boot_id.empty()) { entry.boot_id = k_boot; }
    const std::string text = text_of_line(entry);
    const auto node = text.find('"' + std::string(k_node) + '"');
    const auto boot = text.find('"' + std::string(k_boot) + '"');
    if (node == std::string::npos) { return std::nullopt; }
    const auto behind_node = node + k_node.size() + 2;
    if (entry.boot_id.empty()) { return Pieces{text.substr(0, node), text.substr(behind_node), ""}; }
    if (boot == std::string::npos || boot < behind_node) { return std::nullopt; }
    return Pieces{text.substr(0, node), text.substr(behind_node, boot - behind_node),
                  text.substr(boot + k_boot.size() + 2)};
}

void LineWriter::write(const plan::Line& line) {
    if (line.shared == plan::k_own_entry) {
        batch_.entries.push_back(std::make_shared<const plan::Entry>(line.own()));
    } else {
        if (line.shared >= is_passed_on_.size()) { is_passed_on_.resize(line.shared + 1); }
        if (!is_passed_on_[line.shared]) { batch_.entries.push_back(*line.kept); }
        is_passed_on_[line.shared] = true;
    }
    batch_.lines.push_back({&line.node, line.shared});
    if (batch_.lines.size() == k_batch) { pass_on(); }
}

void LineWriter::pass_on() {
    if (std::exchange(may_start_, false) && sys::usable_processors() > 1) { start(); }
    if (!thread_.joinable()) {
        put_together(batch_);
        batch_.lines.clear();
        return;
    }
    // Refused once the thread has failed, which flush() says.
    (void)batches_.push(std::exchange(batch_, {}));
}

void LineWriter::start() {
    try {
        thread_ = std::thread([this] { write_batches(); });
    } catch (const std::system_error&) {
        // No more threads here: then this one does it all.
    }
}

void LineWriter::write_batches() noexcept {
    try {
        while (auto batch = batches_.pop()) { put_together(*batch); }
    } catch (...) {
        failure_ = std::current_exception();
        batches_.abandon();
    }
}

void LineWriter::put_together(Batch& batch) {
    const auto next_entry = [&] {
        auto entry = std::move(batch.entries.front());
        batch.entries.pop_front();
        return entry;
    };
    for (const auto& line : batch.lines) {
        if (line.shared == plan::k_own_entry) {
            begin_line(text_of_line(*next_entry()));
        } else {
            if (line.shared >= shared_.size()) { shared_.resize(line.shared + 1); }
            auto& shared = shared_[line.shared];
            if (!shared) {
                auto entry = next_entry();
                shared.emplace(Shared{cut(*entry), {}});
                if (!shared->pieces) { shared->entry = std::move(entry); }
            }
            append_line(*line.node, *shared);
        }
        if (block_.size() >= k_block) { write_block(); }
    }
}

void LineWriter::append_line(const api::Node& node, const Shared& shared) {
    if (!shared.pieces) { return begin_line(text_of_line(plan::Line{node, *shared.entry, 0, nullptr}.own())); }
    if (node_ != &node) {
        node_ = &node;
        name_ = value::to_json(value::Node(node.meta.name));
        boot_id_ = node.boot_id.empty() ? "" : value::to_json(value::Node(node.boot_id));
    }
    begin_line((*shared.pieces)[0]);
    block_ += name_;
    block_ += (*shared.pieces)[1];
    block_ += boot_id_;
    block_ += (*shared.pieces)[2];
}

void LineWriter::write_block() {
    console_.out(block_);
    block_.clear();
}

void LineWriter::flush() {
    if (thread_.joinable()) {
        pass_on();
        batches_.finish();
        thread_.join();
        if (failure_) { std::rethrow_exception(failure_); }
    } else {
        put_together(batch_);
        batch_ = {};
    }
    write_block();
}

LineWriter::~LineWriter() {
    if (!thread_.joinable()) { return; }
    batches_.abandon();
    thread_.join();
}

}  // namespace kmm::tool_plan
