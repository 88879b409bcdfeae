// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/parse.hpp"
#include "value/reader.hpp"

namespace kmm::cli {
namespace {

constexpr std::array<std::string_view, 3> k_commands = {"kmm-plan", "kmm-upgrade", "kmm-worker"};

Error bad(const std::string& message, Position position) {
    return Error(Exit::config, "bad-configuration", message).at(std::move(position));
}

/// The options a file may set for this program, by name.
std::map<std::string, Option, std::less<>> settable_options(const Program& program) {
    std::map<std::string, Option, std::less<>> options;
    const auto add = [&](const std::vector<Option>& list) {
        for (const auto& option : list) {
            if (option.in_files && option.name != "help" && option.name != "version")
                options.emplace(option.name, option);
        }
    };
    for (const auto& verb : program.verbs) add(verb.options);
    add(common_options());
    add(cluster_options());
    return options;
}

/// `place` is that of a fault: an empty value has none of its own.
std::string scalar_text(const value::Node& node, value::Mark place, const std::string& key,
                        const value::Document& document) {
    if (node.is_mapping() || node.is_sequence() || node.is_null()) {
        throw bad(
            fmt::format("expected a value for '{}', found {}", key, value::kind_name(node.kind())),
            document.position(place)
        );
    }
    return node.text();
}

Setting read_setting(const Option& option, const std::string& key, const value::Member& member,
                     const value::Document& document) {
    Setting setting;
    setting.position = document.position(member.key_mark);
    if (option.value_name.empty()) {
        const auto flag = member.value.as_bool();
        if (!flag) {
            throw bad(fmt::format("expected true or false for '{}', found {}", key,
                                  value::kind_name(member.value.kind())),
                      document.position(member.value.is_null() ? member.key_mark : member.value.mark()));
        }
        if (*flag) setting.values.emplace_back("true");
        return setting;
    }
    if (member.value.is_sequence() && option.repeatable) {
        for (const auto& item : member.value.items())
            setting.values.push_back(scalar_text(item, item.mark(), key, document));
    } else {
        const auto place = member.value.is_null() ? member.key_mark : member.value.mark();
        setting.values.push_back(scalar_text(member.value, place, key, document));
    }
    for (const auto& text : setting.values) {
        try {
            check_value(option, text, fmt::format("'{}'", key));
        } catch (const Error& error) {
            throw bad(error.message(), document.position(member.value.mark())).hint(error.hint());
        }
    }
    return setting;
}

/// The key as it stands in the file: YAML 1.1 reads yes, no, on, off, y and n as booleans.
std::string written_key(const value::Member& member, const value::Document& document) {
    value::Node key(member.key);
    key.set_mark(member.key_mark);
    return std::string(document.text_of(key));
}

void read_mapping(const std::map<std::string, Option, std::less<>>& options, const value::Node& mapping,
                  const value::Document& document, bool top, Settings& settings) {
    for (const auto& member : mapping.members()) {
        const auto key = written_key(member, document);
        if (top && std::find(k_commands.begin(), k_commands.end(), key) != k_commands.end()) continue;
        const auto found = options.find(key);
        if (found != options.end()) {
            settings.insert_or_assign(key, read_setting(found->second, key, member, document));
            continue;
        }
        const auto others = all_option_names();
        if (top && std::find(others.begin(), others.end(), key) != others.end()) continue;
        auto error = bad(fmt::format("unknown key '{}'", key), document.position(member.key_mark));
        std::vector<std::string> names;
        for (const auto& option : options) {
            if (key == std::string(1, option.second.short_name))
                throw std::move(error.hint(fmt::format("the long name is '{}'", option.first)));
            names.push_back(option.first);
        }
        if (top) names.insert(names.end(), others.begin(), others.end());
        if (const auto near = base::nearest(key, names)) error.hint(fmt::format("did you mean '{}'?", *near));
        else error.hint("the keys are the long options without dashes");
        throw std::move(error);
    }
}

Settings read_one(const Program& program, const std::string& path, const std::string& text) {
    Diagnostics diagnostics;
    const auto documents = value::read_yaml(text, path, diagnostics);
    if (has_errors(diagnostics)) {
        const auto first = std::find_if(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& d) {
            return d.severity == Severity::error;
        });
        auto error = Error(Exit::config, "bad-configuration", first->message);
        if (first->position) error.at(*first->position);
        throw std::move(error).hint(first->hint);
    }
    Settings settings;
    const auto options = settable_options(program);
    for (const auto& document : documents) {
        if (!document.root.is_mapping()) {
            throw bad(
                fmt::format("expected a mapping of option names, found {}", value::kind_name(document.root.kind())),
                document.position(document.root.mark())
            );
        }
        read_mapping(options, document.root, document, true, settings);
        const auto* section = document.root.find(program.name);
        if (section == nullptr || section->is_null()) continue;
        if (!section->is_mapping()) {
            throw bad(
                fmt::format("expected a mapping under '{}', found {}", program.name, value::kind_name(section->kind())),
                document.position(section->mark())
            );
        }
        read_mapping(options, *section, document, false, settings);
    }
    return settings;
}

}  // namespace

std::string user_configuration_file(const Surroundings& surroundings) {
    const auto variable = [&](const std::string& name) { return surroundings.environment(name).value_or(""); };
    if (const auto directory = variable("XDG_CONFIG_HOME"); directory.starts_with('/'))
        return directory + "/kmm-tools/config.yaml";
    const auto home = variable("HOME");
    return home.empty() ? "" : home + "/.config/kmm-tools/config.yaml";
}

std::vector<Settings> read_configuration(const Program& program, const Surroundings& surroundings) {
    std::vector<std::string> paths = {"/etc/kmm-tools/config.yaml"};
    if (auto own = user_configuration_file(surroundings); !own.empty()) paths.push_back(std::move(own));
    std::vector<Settings> all;
    const auto read = [&](const std::string& path) {
        try {
            return surroundings.read_file(path);
        } catch (const Error& error) {
            if (error.exit() != Exit::no_permission || error.code() == "untrusted-file") throw;
            // What stands there may say which cluster is meant: to go on without it would be a guess.
            Error told = error;
            throw std::move(told).hint(
                path == paths.front()
                    ? "make it readable for this user"
                    : "make it readable for this user, or name another directory with XDG_CONFIG_HOME");
        }
    };
    for (const auto& path : paths) {
        const auto text = with_context([] { return "reading the configuration"; }, [&] { return read(path); });
        if (text) all.push_back(read_one(program, path, *text));
    }
    return all;
}

}  // namespace kmm::cli
