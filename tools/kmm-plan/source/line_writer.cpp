// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/line_writer.hpp"

#include <string_view>

#include "kmm-plan/source/documents.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

constexpr std::size_t k_block = std::size_t{1} << 18U;

std::string text_of_line(const plan::Entry& entry) { return value::to_json(entry_node(entry)) + "\n"; }

}  // namespace

LineWriter::LineWriter(cli::Console& console, const std::string& cluster) : console_(console) {
    block_.reserve(2 * k_block);
    if (!cluster.empty()) { head_ = "{\"cluster\":" + value::to_json(value::Node(cluster)) + ","; }
}

void LineWriter::begin_line(const std::string& text) {
    block_ += head_;
    block_.append(text, head_.empty() ? 0 : 1);
}

std::optional<LineWriter::Pieces> LineWriter::cut(const plan::Line& line) {
    constexpr std::string_view k_node = "the node of the line";
    constexpr std::string_view k_boot = "the boot id of the node";
    plan::Entry entry = line.entry;
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
    const std::optional<Pieces>* pieces = nullptr;
    if (line.shared != plan::k_own_entry) {
        if (line.shared >= pieces_.size()) {
            pieces_.resize(line.shared + 1);
            is_cut_.resize(line.shared + 1);
        }
        if (!is_cut_[line.shared]) { pieces_[line.shared] = cut(line); }
        is_cut_[line.shared] = true;
        pieces = &pieces_[line.shared];
    }
    if (pieces == nullptr || !*pieces) {
        begin_line(text_of_line(line.own()));
    } else {
        if (node_ != &line.node) {
            node_ = &line.node;
            name_ = value::to_json(value::Node(line.node.meta.name));
            boot_id_ = line.node.boot_id.empty() ? "" : value::to_json(value::Node(line.node.boot_id));
        }
        begin_line((**pieces)[0]);
        block_ += name_;
        block_ += (**pieces)[1];
        block_ += boot_id_;
        block_ += (**pieces)[2];
    }
    if (block_.size() >= k_block) { flush(); }
}

void LineWriter::flush() {
    console_.out(block_);
    block_.clear();
}

}  // namespace kmm::tool_plan
