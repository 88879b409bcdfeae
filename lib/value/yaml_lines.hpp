// SPDX-License-Identifier: Apache-2.0
// The block style that kubectl and most programs write, read line by line, many times faster than libyaml does.
// Internal to lib/value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "value/object_stream.hpp"
#include "value/yaml_tree.hpp"

namespace kmm::value {

/// What YamlLines has left to libyaml.
struct YamlRest {
    /// What the text may begin with: a document, or after some of them a member of the root or an item of its list.
    enum class At { nothing, document, members, items } at = At::nothing;
    std::string_view text = {};   ///< as far as it was read
    bool is_whole = false;   ///< nothing follows it
    std::size_t line = 0;    ///< of its first byte, from 0
    std::size_t column = 0;  ///< of the dashes of items, from 0
};

/// Gives a tree the events of a text. Takes block mappings and sequences, keys and scalars of printable ASCII on one
/// line, plain and single-quoted scalars of several lines, literals, {} and []. Everything else is left to libyaml,
/// from the last place between two objects or two members of the root on.
class YamlLines {
public:
    YamlLines(const ReadMore& read_more, YamlTree& tree, std::size_t bytes_max)
        : read_more_(read_more), tree_(tree), bytes_max_(bytes_max) {}

    /// Reads what can be read. The rest is valid as long as the object. May throw Doubt.
    [[nodiscard]] YamlRest read();

private:
    enum class Step { ok, more, other };   ///< `other`: not for this reader

    struct Block {
        Kind kind;
        std::size_t column;
    };

    [[nodiscard]] bool fill();
    void take_back();
    void set_place();
    [[nodiscard]] Mark mark(std::size_t at) const noexcept {
        return Mark{static_cast<std::uint32_t>(line_ + 1), static_cast<std::uint32_t>(at - start_ + 1)};
    }
    [[nodiscard]] Step whole_line(std::size_t from, std::size_t& end) const noexcept;

    [[nodiscard]] Step line();
    [[nodiscard]] bool find_key(std::size_t at, YamlScalar& key, std::size_t& behind) const;
    [[nodiscard]] Step open(std::size_t column, bool is_entry);
    [[nodiscard]] Step key_and_value(const YamlScalar& key, std::size_t behind, std::size_t column);
    [[nodiscard]] Step value(std::size_t at, std::size_t column);
    [[nodiscard]] Step plain(std::size_t at, std::size_t column);
    [[nodiscard]] Step single_quoted(std::size_t at, std::size_t column);
    [[nodiscard]] Step double_quoted(std::size_t at);
    [[nodiscard]] Step literal(std::size_t at, std::size_t column);
    /// Behind the spaces of a line that goes on with a scalar of a block at `column`; 0 if it does not.
    [[nodiscard]] Step continued(std::size_t from, std::size_t column, std::size_t& text) const noexcept;
    void close(std::size_t blocks);

    const ReadMore& read_more_;
    YamlTree& tree_;
    std::size_t bytes_max_;
    std::unique_ptr<char[]> text_;
    std::size_t room_ = 0, filled_ = 0;
    bool ended_ = false;

    std::size_t start_ = 0, end_ = 0;   ///< of the current line, without its LF
    std::size_t line_ = 0;              ///< its number, from 0
    std::size_t lines_taken_ = 0;       ///< how many lines it took with those that go on with its scalar
    std::vector<Block> blocks_;
    bool pending_ = false;              ///< the last key has no value so far
    std::string scratch_;

    YamlRest::At place_ = YamlRest::At::document;
    std::size_t place_start_ = 0, place_line_ = 0, place_blocks_ = 0;
    YamlTree::Place tree_place_{};
};

}  // namespace kmm::value
