// SPDX-License-Identifier: Apache-2.0
// Two object trees compared field by field, as diff(1) -u would show it if it knew about fields.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "value/node.hpp"

namespace kmm::report {

/// One field that differs. Absent on one side: nullopt.
struct Change {
    std::string parent;  ///< path of the mapping or list that holds the field, "" at the root
    std::string field;   ///< key, or "[...]" for an item of a list
    std::optional<value::Node> observed, wanted;

    /// "spec.modules[drivers/hello].config.containerImage".
    [[nodiscard]] std::string path() const;
};

/// What has to change in `observed` to become `wanted`, in the order of paths. Items of lists that have a namespace and
/// a name, a name or a key are compared with the item of the same identity, other lists as a whole. Marks and the order
/// of mapping members do not count. A null root is an object that is not there. O(n log n).
[[nodiscard]] std::vector<Change> tree_changes(const value::Node& observed, const value::Node& wanted);

/// The changes under two header lines, a hunk "@@ PARENT @@" for each parent, fields as YAML with '-' (observed) and
/// '+' (wanted) in front. "" if there are none. Ends with a newline.
[[nodiscard]] std::string unified(const std::string& observed_name, const std::string& wanted_name,
                                  const std::vector<Change>& changes);

/// A scalar as it stands in messages, "nothing" if absent, "a list" or "a mapping" for containers. Long text is cut.
[[nodiscard]] std::string shown(const std::optional<value::Node>& value);

}  // namespace kmm::report
