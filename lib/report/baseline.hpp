// SPDX-License-Identifier: Apache-2.0
// Findings that are already known, so that only new ones fail a pipeline.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::report {

/// The findings of an earlier run. They are compared by code, file and message: a finding that only moved to another
/// line is known, a second one of the same kind is new.
class Baseline {
public:
    /// Reads what a command printed with -o json or yaml (any document with `diagnostics`: Validation, Plan, Diff,
    /// Error), and a Preflight. Errors: data "bad-baseline" with the position for anything else.
    [[nodiscard]] static Baseline from_document(const value::Document& document);

    /// Removes what is known from `findings`; returns how many that were.
    std::size_t remove_known(Diagnostics& findings) const;

private:
    using Key = std::tuple<std::string, std::string, std::string>;  ///< code, file, message
    std::map<Key, std::size_t> known_;
};

}  // namespace kmm::report
