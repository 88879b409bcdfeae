// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/module/kvc_config.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/module_name.hpp"
#include "base/text.hpp"
#include "kmm-worker/job.hpp"
#include "kmod/ko/files.hpp"
#include "sys/trust.hpp"
#include "sys/trusted_tree.hpp"

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
    return !name.empty() && name.size() <= 128 && name.front() != '.' && name.front() != '-' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                      c == '-' || c == '.';
           });
}

[[noreturn]] void bad_line(const std::string& file, std::size_t line, std::size_t column, const std::string& expected,
                           const std::string& found,
                           const char* hint = "the file is read as KEY=VALUE lines; nothing of it is run or expanded") {
    const std::string shown = found == "\\" ? found : base::escape(found);  // escaped, one would look like two
    throw Error(Exit::data, "bad-config", fmt::format("expected {}, found '{}'", expected, shown))
        .at(Position{file, line, column})
        .hint(hint);
}

/// A value becomes an argument of the container runtime, which must take it neither for an option nor for its standard
/// input.
void check_value(const std::string& key, const std::string& value, const Position& place) {
    const auto refuse = [&](const std::string& expected) {
        throw Error(Exit::data, "bad-value",
                    fmt::format("{}: expected {}, found '{}'", key, expected, base::escape(value)))
            .at(place);
    };
    if (std::any_of(value.begin(), value.end(),
                    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
        refuse("a value without control characters");
    if (value.starts_with('-')) refuse("a value that does not begin with '-'");
    if (key != "KMOD_SOFTWARE_VERSION") return;
    const bool part_of_name =
        value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~-") ==
        std::string::npos;
    if (!part_of_name) refuse("letters, digits, '.', '_', '+', '~' or '-', as it is a part of the image's name");
}

/// One assignment of a file, and where its key stands.
struct Assignment {
    std::string key, value;
    Position place;
};

bool is_word(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

bool is_kvc_key(std::string_view key) {
    return !key.empty() && (key.front() < '0' || key.front() > '9') && std::all_of(key.begin(), key.end(), is_word);
}

/// Reads assignments as a shell does: quotes, escapes, lines that go on after a backslash or inside of quotes,
/// comments, `export`. What a shell would expand or run is an error, and so is a backslash that a shell would drop
/// before a letter or digit.
class KvcScanner {
public:
    KvcScanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    std::vector<Assignment> read() {
        std::vector<Assignment> found;
        while (skip_to_statement()) {
            if (rest_of_line().starts_with("export") && is_blank(at_ + 6)) {
                at_ += 6;
                skip_blanks();
                if (skip_exported_names()) continue;
            }
            do found.push_back(assignment());
            while (another_follows());
        }
        return found;
    }

private:
    [[nodiscard]] char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\n'; }
    /// A carriage return ends a line along with the line feed behind it.
    [[nodiscard]] bool is_blank(std::size_t at) const {
        return peek(at) == ' ' || peek(at) == '\t' || (peek(at) == '\r' && peek(at + 1) == '\n');
    }
    /// The length of a backslash with the end of line that it takes away, 0 for any other.
    [[nodiscard]] std::size_t continuation(std::size_t at) const {
        if (peek(at) != '\\' || at + 1 >= text_.size()) return 0;
        return text_[at + 1] == '\n' ? 2 : peek(at + 1) == '\r' && peek(at + 2) == '\n' ? 3 : 0;
    }

    [[nodiscard]] std::string_view rest_of_line() const { return text_.substr(at_, text_.substr(at_).find('\n')); }

    [[noreturn]] void refuse(std::size_t at, const std::string& expected, const std::string& found) const {
        const Position place = place_of(at);
        bad_line(file_, place.line, place.column, expected, found);
    }

    [[nodiscard]] Position place_of(std::size_t at) const {
        const std::string_view before = text_.substr(0, at);
        const auto line_start = before.rfind('\n') + 1;  // npos + 1 is 0
        return {file_, static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
                at - line_start + 1};
    }

    void skip_blanks() {
        for (;;) {
            if (const std::size_t length = continuation(at_)) {
                at_ += length;
            } else if (at_ < text_.size() && is_blank(at_)) {
                ++at_;
            } else {
                return;
            }
        }
    }

    bool skip_to_statement() {
        for (;;) {
            skip_blanks();
            if (at_ >= text_.size()) return false;
            if (text_[at_] == '#') {
                at_ += rest_of_line().size();
            } else if (text_[at_] == '\n') {
                ++at_;
            } else {
                return true;
            }
        }
    }

    /// Behind `export`: passes over names alone, which keep their values; true if the statement has nothing else.
    bool skip_exported_names() {
        for (;;) {
            std::size_t end = at_;
            while (is_word(peek(end))) ++end;
            const bool is_alone = is_blank(end) || peek(end) == '\n' || peek(end) == ';';
            if (!is_alone || !is_kvc_key(text_.substr(at_, end - at_))) return false;
            at_ = end;
            skip_blanks();
            if (peek(at_) == ';') return ++at_, true;
            if (peek(at_) == '\n' || peek(at_) == '#') return true;
        }
    }

    /// Behind a value: true before another assignment in the same line.
    bool another_follows() {
        skip_blanks();
        const char c = peek(at_);
        if (c == '\n' || c == '#') return false;
        if (c == ';') {
            ++at_;
            return false;
        }
        const std::string_view rest = rest_of_line();
        const auto equals = rest.find('=');
        if (equals != std::string_view::npos && is_kvc_key(rest.substr(0, equals))) return true;
        refuse(at_, "the end of the line (values with blanks need quotes)", std::string(base::trim(rest)));
    }

    Assignment assignment() {
        const std::string_view rest = rest_of_line();
        const auto equals = rest.find('=');
        if (equals == std::string_view::npos || !is_kvc_key(rest.substr(0, equals)))
            refuse(at_, "KEY=VALUE", std::string(base::trim(rest)));
        Assignment made{std::string(rest.substr(0, equals)), {}, place_of(at_)};
        at_ += equals + 1;
        made.value = value();
        return made;
    }

    std::string value() {
        std::string made;
        const std::size_t start = at_;
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != ';' && !is_blank(at_)) {
            const char c = text_[at_];
            if (c == '"' || c == '\'') {
                quoted(start, made);
            } else if (const std::size_t length = continuation(at_)) {
                at_ += length;
            } else if (c == '\\' && at_ + 1 < text_.size() && !is_word(text_[at_ + 1])) {
                made += text_[at_ + 1];
                at_ += 2;
            } else if (std::string_view("$`\\&|<>()").find(c) != std::string_view::npos) {
                refuse(at_, "a value without expansions and commands", std::string(1, c));
            } else if (c == '~' && (at_ == start || text_[at_ - 1] == ':')) {
                bad_tilde();
            } else {
                made += c;
                ++at_;
            }
        }
        return made;
    }

    [[noreturn]] void bad_tilde() const {
        const Position place = place_of(at_);
        bad_line(file_, place.line, place.column, "a value without expansions and commands", "~",
                 "a shell puts a home directory there: write the whole path, or the value in quotes");
    }

    void quoted(std::size_t start, std::string& made) {
        const char quote = text_[at_];
        for (++at_; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (c == quote) {
                ++at_;
                return;
            }
            if (quote == '"' && (c == '$' || c == '`')) refuse(at_, "a value without expansions", std::string(1, c));
            if (quote == '"' && c == '\\') {
                if (const std::size_t length = continuation(at_)) {
                    at_ += length - 1;
                    continue;
                }
                if (std::string_view("$`\"\\").find(peek(at_ + 1)) != std::string_view::npos) ++at_;
            }
            made += text_[at_];
        }
        const std::string_view first_line = text_.substr(start, text_.substr(start).find('\n'));
        refuse(start, fmt::format("a closing {}", quote), std::string(base::trim(first_line)));
    }

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
};

void read_kvc_file(const std::string& path, KvcConfig& config) {
    const std::string text = sys::read_trusted_file(path, "kvc configuration", k_kvc_bytes);
    std::vector<std::string> keys{"KMOD_NAMES"};
    for (const auto& row : k_kvc_keys) keys.emplace_back(row.key);
    for (const auto& [key, value, place] : KvcScanner(text, path).read()) {
        const auto row = std::find_if(std::begin(k_kvc_keys), std::end(k_kvc_keys),
                                      [&key = key](const KvcKey& known) { return known.key == key; });
        if (row != std::end(k_kvc_keys)) {
            check_value(key, value, place);
            config.*row->field = value;
        } else if (key == "KMOD_NAMES") {
            config.modules.clear();
            std::string names = value;
            std::replace_if(names.begin(), names.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
            for (const auto name : base::split(names, ' ')) {
                if (name.empty()) continue;
                const auto problem = base::module_name_problem(name);
                if (!problem.empty())
                    throw Error(Exit::data, "bad-value",
                                fmt::format("KMOD_NAMES: '{}' {}", base::escape(name), problem))
                        .at(place)
                        .hint(base::k_module_name_hint);
                config.modules.emplace_back(name);
            }
        } else if (const auto near = base::nearest(key, keys)) {
            config.doubts.push_back(fmt::format("misspelt-key: {}:{}:{}: {} is not used; {} would be",
                                                base::escape(path), place.line, place.column, key, *near));
        }
    }
}

/// Whether podman and docker fetch `what`, or read it from standard input ("-").
bool is_elsewhere(const std::string& what) {
    if (::access(what.c_str(), F_OK) == 0) return false;
    static constexpr std::string_view beginnings[] = {"http://", "https://", "git://", "git@", "github.com/", "ssh://"};
    return what == "-" || std::any_of(std::begin(beginnings), std::end(beginnings),
                                      [&](auto beginning) { return what.starts_with(beginning); });
}

}  // namespace

KvcConfig read_kvc_config(const kmod::HostPaths& host, const std::string& name) {
    if (!is_kvc_name(name)) {
        throw Error(Exit::usage, "bad-value",
                    fmt::format("'{}' is not the name of a kmods-via-containers instance", base::escape(name)))
            .hint(
                "NAME is that of a file /etc/kvc/NAME.conf: at most 128 letters, digits, '_', '-' or '.', neither "
                "'.' nor '-' first");
    }
    KvcConfig config;
    config.name = name;
    const std::string directory = host.etc + "/kvc/";
    const std::string own = directory + name + ".conf";
    const std::string common = directory + "kmods-via-containers.conf";
    if (::access(own.c_str(), F_OK) != 0 && errno == ENOENT) {
        throw Error(Exit::not_found, "config-not-found", fmt::format("cannot read {}", base::escape(own)))
            .hint("write it with KMOD_NAMES, KMOD_SOFTWARE_VERSION and KMOD_CONTAINER_BUILD_CONTEXT");
    }
    if (::access(common.c_str(), F_OK) == 0 || errno != ENOENT) read_kvc_file(common, config);
    read_kvc_file(own, config);
    if (config.modules.empty())
        throw Error(Exit::data, "missing-field", fmt::format("{}: expected KMOD_NAMES, found none", base::escape(own)))
            .hint("KMOD_NAMES=\"first second\"");
    if (config.runtime.empty())
        throw Error(Exit::data, "missing-field", "KVC_CONTAINER_RUNTIME is empty, expected a program")
            .hint("KVC_CONTAINER_RUNTIME=podman");
    return config;
}

void require_trusted_build(const KvcConfig& config) {
    const auto& context = config.build_context;
    const auto& file = config.build_file;
    if (!is_elsewhere(context)) sys::require_trusted_tree(context, "build context");
    if (file.empty() || is_elsewhere(file)) return;
    // One that is not in the current directory is the context's.
    const bool is_of_context = !file.starts_with('/') && ::access(file.c_str(), F_OK) != 0;
    if (!is_of_context) sys::require_trusted_tree(file, "build file");
}

std::string kvc_image(const KvcConfig& config, const std::string& kernel) {
    std::string tag = kernel;
    std::replace(tag.begin(), tag.end(), '+', '_');
    return config.version.empty() ? fmt::format("{}:{}", config.name, tag)
                                  : fmt::format("{}-{}:{}", config.name, config.version, tag);
}

}  // namespace kmm::tool_worker
