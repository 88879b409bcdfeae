// SPDX-License-Identifier: Apache-2.0
// What the verbs of kmm-upgrade are made of.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

namespace kmm::tool_upgrade {

using cli::option;

[[nodiscard]] cli::Positional node_argument(std::string help);
/// Options of every verb. Those of the cluster and the runner are taken by verbs that have no use for them as well, so
/// that one set of options (an alias) fits all; such verbs hide them (without_use).
[[nodiscard]] std::vector<cli::Option> shared();
/// A verb with these and the shared options. The hints of its errors get PlaceOptions.
[[nodiscard]] cli::Verb verb(std::string name, std::string summary, std::string description,
                             std::vector<cli::Example> examples, std::vector<cli::Option> own,
                             decltype(cli::Verb::run) run);
/// Leaves options out of --help, manual page and completion that the verb takes and has no use for.
[[nodiscard]] cli::Verb without_use(cli::Verb made, const std::vector<cli::Option>& useless,
                                    std::initializer_list<std::string_view> used = {});
/// With other words for `option`, and with `choices` where there are any.
[[nodiscard]] cli::Verb reworded(cli::Verb made, std::string_view option, std::string help,
                                 std::vector<std::string> choices = {});
/// A verb whose nodes nobody chooses: --selector is refused, since to go on with all nodes is not what was asked for.
/// In a configuration file it is for other verbs.
[[nodiscard]] cli::Verb without_selector(cli::Verb made, const std::string& why);
/// A verb that goes on with the recorded run.
[[nodiscard]] cli::Verb about_run(cli::Verb made);
/// A verb that reads the record, and asks neither cluster nor node.
[[nodiscard]] cli::Verb about_record(cli::Verb made);

/// What a procedure with nodes in order, canaries and pauses walks by: its options for take_walk_options.
[[nodiscard]] std::vector<cli::Option> walk_options(const std::string& node_timeout);
/// Those for take_draining_walk_options, beside --no-drain.
[[nodiscard]] std::vector<cli::Option> without_drain(std::vector<cli::Option> options);

}  // namespace kmm::tool_upgrade
