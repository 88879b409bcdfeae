// SPDX-License-Identifier: Apache-2.0
// Hints that name the next command: which one is possible depends on the state of the run.
#pragma once

#include <string>
#include <string_view>

namespace kmm::upgrade {

/// The hint of a failed step of `node` ("" for one of the run itself) as it applies in the run. "the same command" of a
/// worker becomes the command of the run that repeats the step; during a rollback that is `resume`, and `retry` and
/// `skip` are not possible.
[[nodiscard]] std::string hint_in_run(std::string hint, const std::string& node, bool is_rollback);

/// What remains of a hint once the run has ended: without clauses whose command needs a run that is under way. "" if
/// nothing remains.
[[nodiscard]] std::string hint_after_end(std::string_view hint);

}  // namespace kmm::upgrade
