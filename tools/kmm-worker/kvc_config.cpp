// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/kvc_config.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/module_name.hpp"
#include "base/text.hpp"
#include "kmm-worker/job.hpp"
#include "kmod/files.hpp"
#include "sys/file_ops.hpp"

namespace kmm::tool_worker {

namespace {

constexpr std::size_t k_kvc_bytes = 1U << 20U;

struct KvcKey {
    std::string_view key;
    std::string KvcConfig::*field;
};

constexpr KvcKey k_kvc_keys[] = {
    {"KVC_CONTAINER_RUNTIME", &KvcConfig::runtime},       {"KMOD_CONTAINER_BUILD_CONTEXT", &KvcConfig::build_context},
    {"KMOD_CONTAINER_BUILD_FILE", &KvcConfig::build_file}, {"KMOD_SOFTWARE_VERSION", &KvcConfig::version},
    {"KMOD_CONTAINER_IMAGE", &KvcConfig::image},
};

bool is_kvc_name(const std::string& name) {
    return !name.empty() && name.size() <= 128 && name.front() != '.' && name.front() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    });
}

[[noreturn]] void bad_line(const std::string& file, std::size_t line, std::size_t column, const std::string& expected, const std::string& found) {
    const std::string shown = found == "\\" ? found : base::escape(found);  // escaped, one would look like two
    throw Error(Exit::data, "bad-config", fmt::format("expected {}, found '{}'", expected, shown))
        .at(Position{file, line, column})
        .hint("the file is read as KEY=VALUE lines; nothing of it is run or expanded");
}

/// The value of an assignment: plain, in single or in double quotes; a comment may follow.
std::string assigned_value(std::string_view text, const std::string& file, std::size_t line, std::size_t column) {
    std::string value;
    char quote = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quote != 0) {
            if (c == quote) {
                quote = 0;
            } else if (quote == '"' && (c == '$' || c == '`' || c == '\\')) {
                bad_line(file, line, column + i, "a value without expansions", std::string(1, c));
            } else {
                value += c;
            }
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == ' ' || c == '\t') {
            const auto rest = base::trim(text.substr(i));
            if (!rest.empty() && rest.front() != '#') bad_line(file, line, column + i, "the end of the line (values with blanks need quotes)", std::string(rest));
            break;
        } else if (std::string_view("$`\\;&|<>()").find(c) != std::string_view::npos) {
            bad_line(file, line, column + i, "a value without expansions and commands", std::string(1, c));
        } else {
            value += c;
        }
    }
    if (quote != 0) bad_line(file, line, column, fmt::format("a closing {}", quote), std::string(text));
    return value;
}

/// A value becomes an argument of the container runtime, which must take it neither for an option nor for its standard input.
void check_value(const std::string& key, const std::string& value, const Position& place) {
    const auto refuse = [&](const std::string& expected) {
        throw Error(Exit::data, "bad-value", fmt::format("{}: expected {}, found '{}'", key, expected, base::escape(value))).at(place);
    };
    if (std::any_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) refuse("a value without control characters");
    if (value.starts_with('-')) refuse("a value that does not begin with '-'");
    if (key != "KMOD_SOFTWARE_VERSION") return;
    const bool part_of_name = value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~-") == std::string::npos;
    if (!part_of_name) refuse("letters, digits, '.', '_', '+', '~' or '-', as it is a part of the image's name");
}

void read_kvc_file(const std::string& path, KvcConfig& config) {
    const std::string text = sys::read_file(path, k_kvc_bytes);
    std::vector<std::string> keys{"KMOD_NAMES"};
    for (const auto& row : k_kvc_keys) keys.emplace_back(row.key);
    std::size_t number = 0;
    for (const auto raw : base::split(text, '\n')) {
        ++number;
        std::string_view line = base::trim(raw);
        if (line.empty() || line.front() == '#') continue;
        if (line.starts_with("export ")) line = base::trim(line.substr(7));
        const auto column = static_cast<std::size_t>(line.data() - raw.data()) + 1;
        const auto equals = line.find('=');
        const std::string key(line.substr(0, equals));
        const bool named = equals != std::string_view::npos && !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
            return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        });
        if (!named) bad_line(path, number, column, "KEY=VALUE", std::string(line));
        const std::string value = assigned_value(line.substr(equals + 1), path, number, column + equals + 1);
        const auto row = std::find_if(std::begin(k_kvc_keys), std::end(k_kvc_keys), [&](const KvcKey& known) { return known.key == key; });
        if (row != std::end(k_kvc_keys)) {
            check_value(key, value, Position{path, number, column});
            config.*row->field = value;
        } else if (key == "KMOD_NAMES") {
            config.modules.clear();
            std::string names = value;
            std::replace(names.begin(), names.end(), '\t', ' ');
            for (const auto name : base::split(names, ' ')) {
                if (name.empty()) continue;
                if (!kmod::is_module_name(name)) throw Error(Exit::data, "bad-value", fmt::format("KMOD_NAMES: '{}' is no module name", base::escape(name))).at(Position{path, number, column}).hint(base::k_module_name_hint);
                config.modules.emplace_back(name);
            }
        } else if (const auto near = base::nearest(key, keys)) {
            config.doubts.push_back(fmt::format("misspelt-key: {}:{}:{}: {} is not used; {} would be", base::escape(path), number, column, key, *near));
        }
    }
}

}  // namespace

KvcConfig read_kvc_config(const kmod::HostPaths& host, const std::string& name) {
    if (!is_kvc_name(name)) {
        throw Error(Exit::usage, "bad-value", fmt::format("'{}' is no name of a kmods-via-containers instance", base::escape(name)))
            .hint("NAME is that of a file /etc/kvc/NAME.conf: at most 128 letters, digits, '_', '-' or '.', neither '.' nor '-' first");
    }
    KvcConfig config;
    config.name = name;
    const std::string directory = host.etc + "/kvc/";
    const std::string own = directory + name + ".conf";
    const std::string common = directory + "kmods-via-containers.conf";
    if (::access(own.c_str(), F_OK) != 0 && errno == ENOENT) {
        throw Error(Exit::not_found, "config-not-found", fmt::format("cannot read {}", base::escape(own))).hint("write it with KMOD_NAMES, KMOD_SOFTWARE_VERSION and KMOD_CONTAINER_BUILD_CONTEXT");
    }
    if (::access(common.c_str(), F_OK) == 0 || errno != ENOENT) read_kvc_file(common, config);
    read_kvc_file(own, config);
    if (config.modules.empty()) throw Error(Exit::data, "missing-field", fmt::format("{}: expected KMOD_NAMES, found none", base::escape(own))).hint("KMOD_NAMES=\"first second\"");
    if (config.runtime.empty()) throw Error(Exit::data, "missing-field", "KVC_CONTAINER_RUNTIME is empty, expected a program").hint("KVC_CONTAINER_RUNTIME=podman");
    return config;
}

std::string kvc_image(const KvcConfig& config, const std::string& kernel) {
    std::string tag = kernel;
    std::replace(tag.begin(), tag.end(), '+', '_');
    return config.version.empty() ? fmt::format("{}:{}", config.name, tag) : fmt::format("{}-{}:{}", config.name, config.version, tag);
}

}  // namespace kmm::tool_worker
