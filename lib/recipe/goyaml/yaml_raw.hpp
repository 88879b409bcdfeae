// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::recipe::tmpl {

/// A place in a text: line, column and character, each counted from 0. A line ends with its '\n'.
struct RawPlace {
    std::size_t line = 0;
    std::size_t column = 0;
    std::size_t character = 0;
};

/// A text of YAML, prepared so that libyaml reads it as go-yaml does, which was translated from an older libyaml.
/// Places are counted in characters, as libyaml does.
class RawYaml {
public:
    /// A byte order mark begins a text or is a character like others. To libyaml it is no character where a line
    /// begins, so one of private use stands for it. A text may begin with the mark of UTF-16. `text` must outlive this.
    explicit RawYaml(std::string_view text);
    RawYaml(const RawYaml&) = delete;
    RawYaml& operator=(const RawYaml&) = delete;

    /// What libyaml is given.
    [[nodiscard]] std::string_view text() const { return text_; }
    [[nodiscard]] bool is_wide() const { return text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"); }
    /// A scalar without characters that stand for others.
    [[nodiscard]] std::string restored(std::string_view scalar) const;

    /// Hides from libyaml what it refuses at `character` and go-yaml reads: a colon that ends an unquoted text of a
    /// flow collection, and "\'" in double quotes. False if neither stands there.
    bool hide_refused(std::size_t character);
    /// The first "\/" of the double-quoted scalar from `begin` to the character `end`; go-yaml has no such escape.
    std::optional<RawPlace> escaped_slash(RawPlace begin, std::size_t end);
    /// The first '?' of the plain scalar from `begin` to the character `end`. In a flow collection it ends the scalar
    /// for go-yaml.
    std::optional<RawPlace> question_mark(RawPlace begin, std::size_t end);

private:
    struct StandIn {
        std::string_view meaning;
        std::string text;  ///< empty: not used
    };

    std::string_view text_;
    std::string copy_;
    std::array<StandIn, 3> stand_ins_;
    std::size_t byte_ = 0;       ///< where character_ begins
    std::size_t character_ = 0;  ///< up to which bytes are counted

    const std::string& stand_in(std::size_t which);
    void step();
    void go_to(std::size_t character);
    std::optional<RawPlace> find(RawPlace begin, std::size_t end, std::string_view wanted);
};

}  // namespace kmm::recipe::tmpl
