// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/modprobe_args.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/ko/module_file.hpp"

namespace kmm::kmod {

namespace {

enum class Meaning {
    all,
    remove,
    remove_holders,
    wait,
    first_time,
    ignore_install,
    use_blacklist,
    force,
    force_vermagic,
    force_modversion,
    directory,
    harmless,
    set_version
};

struct ModprobeOption {
    char letter;
    std::string_view name;
    Meaning meaning;
    bool takes_value;
};

constexpr ModprobeOption k_modprobe_options[] = {
    {'a', "all", Meaning::all, false},
    {'r', "remove", Meaning::remove, false},
    {0, "remove-holders", Meaning::remove_holders, false},
    {'w', "wait", Meaning::wait, true},
    {0, "first-time", Meaning::first_time, false},
    {'i', "ignore-install", Meaning::ignore_install, false},
    {'i', "ignore-remove", Meaning::ignore_install, false},
    {'b', "use-blacklist", Meaning::use_blacklist, false},
    {'f', "force", Meaning::force, false},
    {0, "force-vermagic", Meaning::force_vermagic, false},
    {0, "force-modversion", Meaning::force_modversion, false},
    {'d', "dirname", Meaning::directory, true},
    {'S', "set-version", Meaning::set_version, true},
    {'v', "verbose", Meaning::harmless, false},
    {'q', "quiet", Meaning::harmless, false},
    {'s', "syslog", Meaning::harmless, false},
};

class ModprobeReader {
public:
    ModprobeReader(const std::vector<std::string>& arguments, const std::string& field, ArgsKind kind)
        : arguments_(arguments), field_(field), kind_(kind) {}

    ModprobeCommand read() {
        bool only_words = false;
        for (at_ = 0; at_ < arguments_.size(); ++at_) {
            const std::string& word = arguments_[at_];
            if (only_words || word.size() < 2 || word[0] != '-') {
                words_.push_back(word);
            } else if (word == "--") {
                only_words = true;
            } else if (word[1] == '-') {
                take_long(word);
            } else {
                take_letters(word);
            }
        }
        place_words();
        return std::move(command_);
    }

private:
    [[noreturn]] void unknown(const std::string& word) const {
        throw Error(Exit::data, "unsupported",
                    fmt::format("{} holds '{}', which kmm-worker does not know", field_, base::escape(word)))
            .hint("say it with parameters, modulesLoadingOrder or inTreeModulesToRemove");
    }

    [[noreturn]] void bad(const std::string& what) const {
        throw Error(Exit::data, "bad-value", fmt::format("{}: {}", field_, what));
    }

    std::string next_value(const std::string& word) {
        if (at_ + 1 >= arguments_.size()) bad(fmt::format("expected a value after {}, found none", word));
        return arguments_[++at_];
    }

    void take_long(const std::string& word) {
        const auto equals = word.find('=');
        const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
        const auto row = std::find_if(std::begin(k_modprobe_options), std::end(k_modprobe_options),
                                      [&](const ModprobeOption& o) { return o.name == name; });
        if (row == std::end(k_modprobe_options)) unknown(word);
        if (!row->takes_value && equals != std::string::npos) bad(fmt::format("--{} takes no value", name));
        std::string value;
        if (row->takes_value) value = equals == std::string::npos ? next_value(word) : word.substr(equals + 1);
        apply(*row, word, value);
    }

    void take_letters(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const auto row = std::find_if(std::begin(k_modprobe_options), std::end(k_modprobe_options),
                                          [&](const ModprobeOption& o) { return o.letter == word[i]; });
            if (row == std::end(k_modprobe_options)) unknown(word);
            const std::string shown{'-', word[i]};
            if (!row->takes_value) {
                apply(*row, shown, {});
                continue;
            }
            apply(*row, shown, i + 1 < word.size() ? word.substr(i + 1) : next_value(shown));
            return;
        }
    }

    void apply(const ModprobeOption& option, const std::string& shown, const std::string& value) {
        switch (option.meaning) {
            case Meaning::all: all_ = true; break;
            case Meaning::remove: command_.remove = true; break;
            case Meaning::remove_holders: command_.remove_holders = true; break;
            case Meaning::first_time: command_.first_time = true; break;
            case Meaning::ignore_install: command_.ignore_install = true; break;
            case Meaning::use_blacklist: command_.use_blacklist = true; break;
            case Meaning::force:
                command_.force = Force{true, true, true};
                command_.forcing.push_back(shown);
                break;
            case Meaning::force_vermagic:
                command_.force.vermagic = true;
                command_.forcing.push_back(shown);
                break;
            case Meaning::force_modversion:
                command_.force.modversions = true;
                command_.forcing.push_back(shown);
                break;
            case Meaning::directory: command_.directory = value; break;
            case Meaning::wait: {
                const auto wait = base::parse_number<unsigned>(value);
                if (!wait) bad(fmt::format("{}: expected milliseconds, found '{}'", shown, base::escape(value)));
                command_.wait = std::chrono::milliseconds(*wait);
                break;
            }
            case Meaning::set_version:
                throw Error(Exit::data, "unsupported",
                            fmt::format("{} holds {}: modules are only loaded for the running kernel", field_, shown))
                    .hint("leave it out");
            case Meaning::harmless: break;
        }
    }

    void place_words() {
        if (kind_ == ArgsKind::options_only) {
            if (words_.empty()) return;
            throw Error(Exit::data, "unsupported",
                        fmt::format("{} holds '{}', expected options only", field_, base::escape(words_.front())))
                .hint("modules and parameters belong into moduleName, modulesLoadingOrder and parameters");
        }
        if (words_.empty())
            throw Error(Exit::data, "missing-field", fmt::format("{}: expected a module name, found none", field_))
                .hint("modprobe without a module does nothing");
        const bool many = all_ || command_.remove;
        for (std::size_t i = 0; i < words_.size(); ++i) {
            if (!many && i > 0) {
                command_.parameters.push_back(words_[i]);
            } else if (const auto problem = base::module_name_problem(words_[i]); problem.empty()) {
                command_.modules.push_back(words_[i]);
            } else {
                bad(fmt::format("'{}' {}", base::escape(words_[i]), problem));
            }
        }
    }

    const std::vector<std::string>& arguments_;
    const std::string& field_;
    ArgsKind kind_;
    std::size_t at_ = 0;
    bool all_ = false;
    std::vector<std::string> words_;
    ModprobeCommand command_;
};

}  // namespace

ModprobeCommand read_modprobe_arguments(const std::vector<std::string>& arguments, const std::string& field,
                                        ArgsKind kind) {
    return ModprobeReader(arguments, field, kind).read();
}

std::optional<Error> wrong_direction(const ModprobeCommand& command, const std::string& field, Direction expected) {
    const bool removes = expected == Direction::unloads;
    if (command.remove == removes) return std::nullopt;
    return Error(Exit::data, "bad-value",
                 fmt::format("{}: expected a command that {}, found one {} -r", field, removes ? "unloads" : "loads",
                             removes ? "without" : "with"))
        .hint(removes ? "add -r" : "remove -r");
}

Error force_refusal(const ModprobeCommand& command, const std::string& field) {
    return Error(Exit::data, "force-refused",
                 fmt::format("{} holds {}, which forces modules", field, base::join(command.forcing, ", ")));
}

std::string image_directory(const std::string& directory) {
    if (directory == "/tmp") return "/";
    return directory.starts_with("/tmp/") ? directory.substr(4) : directory;
}

}  // namespace kmm::kmod
