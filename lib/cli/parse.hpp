// SPDX-License-Identifier: Apache-2.0
// From tokens to a verb and its arguments. What run_main does before it runs anything; also used by the checks of
// documentation and examples.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

namespace kmm::cli {

/// The surroundings a command line is read in.
struct Surroundings {
    /// Value of an environment variable; nullopt or "" count as not set.
    std::function<std::optional<std::string>(const std::string&)> environment;
    /// Text of a configuration file, nullopt if there is none. Errors as sys::read_file.
    std::function<std::optional<std::string>(const std::string&)> read_file;
};

/// The process's own environment and files.
[[nodiscard]] Surroundings process_surroundings();

enum class Request { run, help, version };

struct Command {
    Request request = Request::run;
    const Verb* verb = nullptr;  ///< nullptr: the program itself (help and version)
    std::string group;           ///< with `help` and no verb: the first word of two-word verbs, e.g. "start"
    Args args;                   ///< only for `run`
};

/// Understands `tokens` (without the program name). Options may stand before, between and after the words of the verb.
/// Precedence: option, environment, user's configuration file, system's, default.
/// Errors: 64 "unknown-verb", "unknown-option", "missing-argument", "bad-value", "usage", each with the nearest
/// candidate; 78 "bad-configuration" with the position.
[[nodiscard]] Command
parse_command(const Program& program, const std::vector<std::string>& tokens, const Surroundings& surroundings);

/// The name of an object without the kind that kubectl get -o name prints before it. `placeholder`: NODE or MODULE,
/// else the text is given back. Arguments and options of these placeholders have it done already.
[[nodiscard]] std::string bare_name(std::string_view placeholder, std::string text);

/// The options `verb` accepts: its own, then those of common_options() it does not declare itself.
[[nodiscard]] std::vector<Option> accepted_options(const Verb& verb);

/// "kmm-upgrade start module MODULE [OPTION...]"
[[nodiscard]] std::string usage_line(const Program& program, const Verb& verb);

/// The options of a verb as --help and the man page group them; hidden ones included.
struct OptionGroups {
    std::vector<Option> own, cluster, common;
};
[[nodiscard]] OptionGroups option_groups(const Verb& verb);

/// --help of the first word of two-word verbs, e.g. "start".
[[nodiscard]] std::string group_help_text(const Program& program, const std::string& group);

/// Settings of one configuration file: long option name -> values and where each stands.
struct Setting {
    std::vector<std::string> values;
    Position position;
};
using Settings = std::map<std::string, Setting, std::less<>>;

/// The files in ascending precedence: /etc/kmm-tools/config.yaml, then $XDG_CONFIG_HOME/kmm-tools/config.yaml (or
/// ~/.config). Both are shared by the three commands: the top level is a mapping of long option names, of which each
/// command takes those it has; a key that no command has is a fault. A member named after a command ("kmm-upgrade") is
/// a mapping for that command alone and wins over the top level.
[[nodiscard]] std::vector<Settings> read_configuration(const Program& program, const Surroundings& surroundings);

/// The user's own file of the two, whether it is there or not; "" without XDG_CONFIG_HOME and HOME.
[[nodiscard]] std::string user_configuration_file(const Surroundings& surroundings);

/// Long names of the options of all three commands, sorted: the keys a configuration file may have.
[[nodiscard]] std::span<const std::string_view> all_option_names() noexcept;

/// Checks one value against the option's choices and kind; `origin` is "option --x", "environment variable X", ...
/// Throws usage 64 "bad-value".
void check_value(const Option& option, const std::string& value, const std::string& origin);

}  // namespace kmm::cli
