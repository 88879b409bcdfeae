// SPDX-License-Identifier: Apache-2.0
// What readers of YAML say of a text that is none, and where kubectl splits it. Used by yaml_reader.cpp alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::value {

/// Lines that begin with "---".
struct YamlSeparators {
    std::vector<std::size_t> comments;   ///< offsets of comments that follow "---" without a blank, which kubectl takes
    std::optional<std::size_t> odd;      ///< offset of the first text that kubectl refuses
    std::size_t end = std::string::npos;  ///< of the text before the line of `odd`
    std::size_t last_document = 0;        ///< offset of the document that is before it
};
/// As kubectl and kubeadm do, which split a file into documents before YAML is read, in the middle of a quoted text,
/// too: behind "---" only a comment may follow, and a blank before it where no line stands before the separator. A
/// document must not begin with a directive (%YAML) or a line "...".
[[nodiscard]] YamlSeparators read_separators(std::string_view body);
/// That of `read_separators(body).odd`.
[[nodiscard]] Diagnostic odd_separator(std::string_view body, std::size_t at, std::string_view file);

/// The first fault that libyaml, and with it Go's reader, finds in a text that yaml-cpp takes, such as a comment that
/// is indented by a tab; nullopt for none. In yaml_stream.cpp.
struct LibyamlFault {
    std::string problem;
    Mark mark;  ///< as all marks, in lines that end with LF and bytes, which libyaml does not count
};
[[nodiscard]] std::optional<LibyamlFault> find_libyaml_fault(std::string_view text);

/// What nobody sees in the line at `mark` or the one before: a tab among its indentation, or a character that looks
/// like a blank where one has a meaning, as copies from web pages have it. A hint, "" for nothing.
[[nodiscard]] std::string unseen_hint(std::string_view body, Mark mark);
/// What usually causes yaml-cpp's more common messages; "" for others.
[[nodiscard]] std::string syntax_hint(std::string_view message);

}  // namespace kmm::value
