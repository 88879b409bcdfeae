// SPDX-License-Identifier: Apache-2.0
// When a node may begin, and commands a run calls: pure parts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::upgrade {

inline constexpr int k_minutes_of_day = 24 * 60;

/// A time of day that comes back every day; it may go over midnight.
struct Window {
    int from = 0, to = 0;  ///< minutes since midnight, different; `to` is the first minute outside
    /// `minute` is that of the day, 0 to 1439.
    [[nodiscard]] bool contains(int minute) const noexcept;
    /// Minutes until it begins, 0 inside.
    [[nodiscard]] int minutes_until(int minute) const noexcept;
};

/// "22:00-04:00". nullopt for anything else, also when both times are the same.
[[nodiscard]] std::optional<Window> parse_window(std::string_view text);
/// "22:00".
[[nodiscard]] std::string clock_time(int minute);

/// The words of a command line as a shell reads them, with '...', "..." and \ only: nothing is expanded. nullopt for a
/// quote that does not end and for text without any word.
[[nodiscard]] std::optional<std::vector<std::string>> command_words(std::string_view text);

}  // namespace kmm::upgrade
