// SPDX-License-Identifier: Apache-2.0
// Lines of modprobe.d files as words. Source: man 5 modprobe.d; freadline_wrapped() of libkmod-config.c of kmod 30.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmm::kmod {

/// One line that is neither empty nor a comment.
struct ConfigLine {
    std::size_t number = 1;  ///< of the first of the lines that it is written on
    std::vector<std::string> words;

    friend bool operator==(const ConfigLine&, const ConfigLine&) = default;
};

/// The words of one line: what is between blanks outside quotes, which stay.
[[nodiscard]] std::vector<std::string> config_words(std::string_view line);

/// The lines of a whole file.
[[nodiscard]] std::vector<ConfigLine> config_lines(std::string_view text);

}  // namespace kmm::kmod
