// SPDX-License-Identifier: Apache-2.0
// The plan as JSON lines, written while it is made.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "plan/lines.hpp"

namespace kmm::tool_plan {

/// Writes one JSON object a line, as value::to_json(entry_node(...)) does, in large blocks. What nodes share is made
/// into text once.
class LineWriter {
public:
    /// `console` must outlive the writer. With a `cluster` every line begins with it.
    explicit LineWriter(cli::Console& console, const std::string& cluster = "");
    void write(const plan::Line& line);
    /// Call it after the last line.
    void flush();

private:
    /// A line without the node's name and boot id: what stands before, between and behind the two.
    using Pieces = std::array<std::string, 3>;
    /// nullopt if the text of the entry has no such places.
    [[nodiscard]] static std::optional<Pieces> cut(const plan::Line& line);

    /// Appends a line, or its first piece.
    void begin_line(const std::string& text);

    cli::Console& console_;
    std::string head_;  ///< what stands before the first member
    std::string block_;
    const api::Node* node_ = nullptr;  ///< of the last line, and its name and boot id as JSON
    std::string name_, boot_id_;
    std::vector<std::optional<Pieces>> pieces_;  ///< by the number of the shared entry
    std::vector<bool> is_cut_;
};

}  // namespace kmm::tool_plan
