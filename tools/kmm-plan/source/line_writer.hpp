// SPDX-License-Identifier: Apache-2.0
// The plan as JSON lines, written while it is made.
#pragma once

#include <array>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/bounded_queue.hpp"
#include "cli/console.hpp"
#include "plan/fleet/lines.hpp"

namespace kmm::tool_plan {

/// Writes one JSON object a line, as value::to_json(entry_node(...)) does, in large blocks. What nodes share is made
/// into text once. Of a plan with many lines a second thread puts the lines together and writes them, if there is a
/// processor for it.
class LineWriter {
public:
    /// `console` must outlive the writer. With a `cluster` every line begins with it.
    explicit LineWriter(cli::Console& console, const std::string& cluster = "");
    /// Lines that were not flushed are not written.
    ~LineWriter();
    LineWriter(const LineWriter&) = delete;
    LineWriter& operator=(const LineWriter&) = delete;

    /// The node of the line must outlive the writer.
    void write(const plan::Line& line);
    /// Writes all that is left. Call it after the last line.
    void flush();

private:
    /// A line without the node's name and boot id: what stands before, between and behind the two.
    using Pieces = std::array<std::string, 3>;
    /// Lines in their order, not yet put together.
    struct Batch {
        struct Line {
            const api::Node* node;
            std::size_t shared;  ///< as in plan::Line; of lines of their own `entries` has the next one
        };
        std::vector<Line> lines;
        /// Those of lines of their own, and each shared one where it comes first.
        std::deque<std::shared_ptr<const plan::Entry>> entries;
    };
    /// The text of a shared entry.
    struct Shared {
        std::optional<Pieces> pieces;
        std::shared_ptr<const plan::Entry> entry;  ///< if it could not be cut into pieces
    };

    /// nullopt if the text of the entry has no such places.
    [[nodiscard]] static std::optional<Pieces> cut(plan::Entry entry);

    // Of the thread that makes the lines.
    void pass_on();
    void start();

    std::vector<bool> is_passed_on_;  ///< by the number of the shared entry
    Batch batch_;
    bool may_start_ = true;  ///< nothing was passed on so far

    // Of the thread that writes.
    void put_together(Batch& batch);
    void append_line(const api::Node& node, const Shared& shared);
    void begin_line(const std::string& text);
    void write_block();
    void write_batches() noexcept;

    cli::Console& console_;
    std::vector<std::optional<Shared>> shared_;  ///< by its number
    std::string head_;  ///< what stands before the first member
    std::string block_;
    const api::Node* node_ = nullptr;  ///< of the last line, and its name and boot id as JSON
    std::string name_, boot_id_;

    base::BoundedQueue<Batch> batches_;
    std::exception_ptr failure_;  ///< of the thread; read when it has ended
    std::thread thread_;
};

}  // namespace kmm::tool_plan
