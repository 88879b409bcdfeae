// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/modprobe_config.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/ko/config_lines.hpp"
#include "kmod/ko/files.hpp"

namespace kmm::kmod {

namespace {

std::string rest_of(const std::vector<std::string>& words, std::size_t from) {
    std::string text;
    for (std::size_t i = from; i < words.size(); ++i) text += (text.empty() ? "" : " ") + words[i];
    return text;
}

/// From words[first] on; words before the first section have no meaning.
SoftNames softdep_of(const std::vector<std::string>& words, std::size_t first) {
    SoftNames names;
    std::vector<std::string>* list = nullptr;
    for (std::size_t i = first; i < words.size(); ++i) {
        if (words[i] == "pre:" || words[i] == "post:") {
            list = words[i] == "pre:" ? &names.pre : &names.post;
        } else if (list != nullptr) {
            list->push_back(normalise_name(words[i]));
        }
    }
    return names;
}

/// `where` is "/etc/modprobe.d/NAME:LINE". modprobe sorts the modules.softdep of a tree among the files of modprobe.d.
bool is_read_before_modules(std::string_view where) {
    const std::string_view file = where.substr(0, where.rfind(':'));
    return file.substr(file.rfind('/') + 1) < std::string_view("modules.softdep");
}

void take_option(const std::string& module, std::string text, const std::string& where, ConfigSource source,
                 ModprobeConfig& config) {
    config.options[module].push_back({std::move(text), where, source, config.options_read++});
}

void take_line(const std::vector<std::string>& words, const std::string& where, ConfigSource source,
               ModprobeConfig& config) {
    if (words.size() < 2) return;
    const std::string name = normalise_name(words[1]);
    if (words[0] == "blacklist") {
        config.blacklist.emplace(name, HostOption{name, where, source});
    } else if (words[0] == "alias") {
        if (words.size() > 2) config.aliases.push_back({words[1], normalise_name(words[2]), where, source});
    } else if (words[0] == "options") {
        for (std::size_t i = 2; i < words.size(); ++i) take_option(name, words[i], where, source, config);
    } else if (words[0] == "install" || words[0] == "remove") {
        auto& commands = words[0] == "install" ? config.install : config.remove;
        if (words.size() > 2)
            commands.push_back({words[1], rest_of(words, 2), where, source});  // no line for modprobe without a command
    } else if (words[0] == "softdep") {
        if (words.size() > 2)
            config.softdeps.push_back({words[1], softdep_of(words, 2), is_read_before_modules(where)});
    }
}

void take_lines(const std::vector<ConfigLine>& lines, const std::string& shown, ConfigSource source,
                ModprobeConfig& config) {
    for (const ConfigLine& line : lines)
        take_line(line.words, fmt::format("{}:{}", shown, line.number), source, config);
}

void take_names(std::string_view list, const auto& add) {
    for (const auto name : base::split(list, ',')) {
        if (!name.empty()) add(name);
    }
}

/// One word as the kernel takes it (next_arg() of lib/cmdline.c): without quotes around it or its value.
std::string as_kernel(std::string word) {
    if (word.front() == '"') word.erase(0, 1);
    if (const auto equals = word.find('=');
        equals != std::string::npos && equals + 1 < word.size() && word[equals + 1] == '"')
        word.erase(equals + 1, 1);
    if (!word.empty() && word.back() == '"') word.pop_back();
    return word;
}

/// The parameter of a module in one word, as libkmod takes it; GRUB puts quotes around the whole of a word with blanks.
void take_parameter(std::string word, ModprobeConfig& config) {
    const bool whole = word.front() == '"';
    if (whole) word.erase(0, 1);
    const auto dot = word.find('.');
    const auto equals = word.find('=');
    const auto quote = word.find('"');
    if (dot == std::string::npos || dot == 0 || (equals != std::string::npos && equals < dot)) return;
    if (quote != std::string::npos && (equals == std::string::npos || quote < equals)) return;
    if (whole && (equals == std::string::npos || quote == std::string::npos)) return;
    if (whole) word.insert(equals + 1, 1, '"');
    const std::string name = word.substr(0, dot);
    if (is_module_name(name))
        take_option(normalise_name(name), word.substr(dot + 1), "/proc/cmdline", ConfigSource::host, config);
}

void take_command_line(const HostPaths& host, ModprobeConfig& config) {
    const std::string text = read_text(host.proc + "/cmdline", 1U << 16U).value_or("");
    bool for_init = false;  // what follows --; modprobe reads it all the same
    for (const auto& word : config_words(text)) {
        constexpr std::string_view of_modprobe = "modprobe.blacklist=";
        constexpr std::string_view of_kernel = "module_blacklist=";
        const std::string_view view(word);
        for_init = for_init || word == "--";
        if (view.starts_with(of_modprobe)) {
            take_names(view.substr(of_modprobe.size()), [&](std::string_view raw) {
                const std::string name = normalise_name(raw);
                config.blacklist.emplace(name, HostOption{name, "/proc/cmdline"});
            });
        } else if (const std::string plain = as_kernel(word); plain.starts_with(of_kernel)) {
            if (for_init) continue;
            config.kernel_blacklist.clear();  // given twice, the kernel keeps the last one
            take_names(std::string_view(plain).substr(of_kernel.size()),
                       [&](std::string_view name) { config.kernel_blacklist.emplace(name); });
        } else {
            take_parameter(word, config);
        }
    }
}

}  // namespace

bool alias_fits(const std::string& alias, const std::string& name) {
    std::string pattern = alias;
    bool in_set = false;  // there - is a range, as libkmod's underscores() has it
    for (char& c : pattern) {
        if (c == '[' || c == ']') in_set = c == '[';
        if (c == '-' && !in_set) c = '_';
    }
    return ::fnmatch(pattern.c_str(), normalise_name(name).c_str(), 0) == 0;
}

std::optional<std::vector<std::string>> aliased(const std::vector<HostAlias>& aliases, const std::string& name) {
    std::optional<std::vector<std::string>> modules;
    for (const auto& alias : aliases) {
        if (!alias_fits(alias.pattern, name)) continue;
        if (!modules) modules.emplace();
        if (alias.module != "off") modules->push_back(alias.module);
    }
    return modules;
}

void add_alias_options(ModprobeConfig& config, const std::string& alias, const std::string& module) {
    const auto it = config.options.find(normalise_name(alias));
    if (it == config.options.end() || it->first == normalise_name(module)) return;
    auto& options = config.options[normalise_name(module)];  // the iterators of a map stay
    for (const HostOption& option : it->second) {
        const bool known = std::any_of(options.begin(), options.end(),
                                       [&](const HostOption& other) { return other.order == option.order; });
        if (!known) options.push_back(option);
    }
    std::sort(options.begin(), options.end(),
              [](const HostOption& a, const HostOption& b) { return a.order < b.order; });
}

const HostCommand* command_for(const std::vector<HostCommand>& commands, const std::string& name) {
    const auto it = std::find_if(commands.begin(), commands.end(),
                                 [&](const HostCommand& command) { return alias_fits(command.pattern, name); });
    return it == commands.end() ? nullptr : &*it;
}

SoftNames soft_names(const std::vector<SoftLine>& config, const std::string& name,
                     const std::vector<std::string>& own) {
    const auto of_config = [&](bool before_modules) {
        return std::find_if(config.begin(), config.end(), [&](const SoftLine& line) {
            return line.before_modules == before_modules && alias_fits(line.pattern, name);
        });
    };
    if (const auto line = of_config(true); line != config.end()) return line->names;
    for (std::string text : own) {
        std::replace(text.begin(), text.end(), '\n', ' ');
        if (const auto words = config_words(text); !words.empty()) return softdep_of(words, 0);
    }
    const auto line = of_config(false);
    return line == config.end() ? SoftNames() : line->names;
}

bool is_install_dropped(const std::vector<SoftLine>& config, const std::string& name,
                        const std::vector<std::string>& own, const std::vector<std::string>& known) {
    const SoftNames soft = soft_names(config, name, own);
    const auto is_known = [&](const std::string& each) {
        const auto normal = normalise_name(each);
        return normal != name && std::find(known.begin(), known.end(), normal) != known.end();
    };
    return std::any_of(soft.pre.begin(), soft.pre.end(), is_known) ||
           std::any_of(soft.post.begin(), soft.post.end(), is_known);
}

bool is_config_name(const std::string& name) {
    return name.size() > 5 && (name.ends_with(".conf") || name.ends_with(".alias")) && name.front() != '.';
}

ModprobeConfig image_modprobe_config(const std::vector<ImageConfigFile>& files) {
    ModprobeConfig config;
    for (const ImageConfigFile& file : files) take_lines(file.lines, file.shown, ConfigSource::image, config);
    return config;
}

ModprobeConfig read_modprobe_config(const HostPaths& host, const std::vector<ImageConfigFile>& image) {
    struct Place {
        std::string path, shown;
        const ImageConfigFile* image = nullptr;
    };
    const std::string root = host.etc.ends_with("/etc") ? host.etc.substr(0, host.etc.size() - 4) : std::string();
    std::map<std::pair<std::string, ConfigSource>, Place> files;
    for (const ImageConfigFile& file : image)
        files.emplace(std::pair(file.name, ConfigSource::image), Place{{}, file.shown, &file});
    for (const std::string below : {"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"}) {
        const std::string own = (below == "/etc" ? host.etc : root + below) + "/modprobe.d";
        const std::string directory = host.root.empty() ? own : here_of(host, below + "/modprobe.d");
        std::error_code error;
        for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
            const std::string name = it->path().filename().native();
            if (!is_config_name(name)) continue;
            const std::string& path = it->path().native();
            files.emplace(std::pair(name, ConfigSource::host),
                          Place{host.root.empty() ? path : here_of(host, path.substr(host.root.size())),
                                      below + "/modprobe.d/" + name});
        }
    }
    ModprobeConfig config;
    for (const auto& [key, place] : files) {
        if (place.image != nullptr) {
            take_lines(place.image->lines, place.shown, ConfigSource::image, config);
        } else if (const auto text = read_text(place.path, 1U << 20U)) {
            take_lines(config_lines(*text), place.shown, ConfigSource::host, config);
        }
    }
    take_command_line(host, config);
    return config;
}

}  // namespace kmm::kmod
