// SPDX-License-Identifier: Apache-2.0
// .helmignore.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kmm::recipe::chart {

/// Shell patterns of files that are no part of a chart.
class Ignore {
public:
    /// Those of Helm: templates/.?*
    Ignore();
    /// Adds the rules of a file. Error: data "bad-ignore" with the line.
    void add(std::string_view text, const std::string& file);
    /// Whether `name`, relative to the chart, is left out. A directory that is left out is not looked into.
    [[nodiscard]] bool ignores(std::string_view name, bool is_directory) const;

private:
    struct Rule {
        std::string pattern;
        bool negated = false, directory = false, whole = false;
    };
    std::vector<Rule> rules_;
    static Rule parse(std::string_view line);
};

/// filepath.Match: *, ? and [a-z] within a name, \x. False for a pattern that is wrong; `bad` says so.
[[nodiscard]] bool match_name(std::string_view pattern, std::string_view name, bool& bad);

}  // namespace kmm::recipe::chart
