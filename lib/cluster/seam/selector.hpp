// SPDX-License-Identifier: Apache-2.0
// Label selectors as kubectl's -l takes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"

namespace kmm::cluster {

/// A parsed selector: all requirements must hold. Source: apimachinery pkg/labels (Parse, Requirement.Matches).
class Selector {
public:
    /// Matches everything.
    Selector() = default;

    /// "k=v", "k==v", "k!=v", "k in (a,b)", "k notin (a,b)", "k", "!k", "k>1", "k<1", joined by commas. Blanks are
    /// free. "" matches everything. Errors: usage "bad-selector"; the message names the character, the position is in
    /// "-l".
    [[nodiscard]] static Selector parse(std::string_view text);

    /// `!=` and `notin` also match objects without the label.
    [[nodiscard]] bool matches(const api::Labels& labels) const;
    [[nodiscard]] bool empty() const noexcept { return requirements_.empty(); }

private:
    enum class Test { in, not_in, exists, absent, greater, less };
    struct Requirement {
        std::string key;
        Test test = Test::exists;
        std::vector<std::string> values;
    };
    friend class SelectorParser;

    std::vector<Requirement> requirements_;
};

}  // namespace kmm::cluster
