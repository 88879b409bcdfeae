// SPDX-License-Identifier: Apache-2.0
#include "cluster/seam/selector.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::cluster {
namespace {

/// As Go's ParseInt(text, 10, 64) takes it.
std::optional<std::int64_t> integer_of(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    return base::parse_number<std::int64_t>(text);
}

}  // namespace

/// Recursive descent over the text; `at_` is the next byte.
class SelectorParser {
public:
    explicit SelectorParser(std::string_view text) : text_(text) {}

    Selector parse() {
        Selector selector;
        skip_blanks();
        if (at_ == text_.size()) return selector;
        while (true) {
            selector.requirements_.push_back(requirement());
            skip_blanks();
            if (at_ == text_.size()) return selector;
            expect(',', "',' or the end");
        }
    }

private:
    [[noreturn]] void fail(std::size_t at, const std::string& expected) const {
        const auto found =
            at < text_.size() ? fmt::format("'{}'", base::escape(text_.substr(at, 20))) : std::string("the end");
        throw Error(Exit::usage, "bad-selector",
                    fmt::format("selector '{}': expected {} at character {}, found {}", base::escape(text_), expected,
                                at + 1, found))
            .at(Position{"-l", 1, at + 1})
            .hint("for example: zone=a,disk in (ssd,nvme),!spare");
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    }

    [[nodiscard]] bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

    void expect(char c, const std::string& words) {
        skip_blanks();
        if (!next_is(c)) fail(at_, words);
        ++at_;
    }

    std::string word() {
        skip_blanks();
        const auto start = at_;
        while (at_ < text_.size() && std::string_view(" \t,()=!<>").find(text_[at_]) == std::string_view::npos) ++at_;
        return std::string(text_.substr(start, at_ - start));
    }

    std::string key() {
        skip_blanks();
        const auto start = at_;
        auto name = word();
        if (!api::is_qualified_name(name)) fail(start, "a label key");
        return name;
    }

    std::string value() {
        skip_blanks();
        const auto start = at_;
        auto name = word();
        if (!api::is_label_value(name)) fail(start, "a label value");
        return name;
    }

    std::vector<std::string> values() {
        expect('(', "'('");
        std::vector<std::string> list = {value()};
        skip_blanks();
        while (next_is(',')) {
            ++at_;
            list.push_back(value());
            skip_blanks();
        }
        expect(')', "',' or ')'");
        return list;
    }

    Selector::Requirement requirement() {
        using Test = Selector::Test;
        Selector::Requirement requirement;
        skip_blanks();
        if (next_is('!')) {
            ++at_;
            requirement.key = key();
            requirement.test = Test::absent;
            return requirement;
        }
        requirement.key = key();
        skip_blanks();
        if (at_ == text_.size() || next_is(',')) return requirement;
        const auto start = at_;
        if (text_.substr(at_, 2) == "!=" || text_.substr(at_, 2) == "==" || next_is('=')) {
            requirement.test = next_is('!') ? Test::not_in : Test::in;
            at_ += text_.substr(at_, 2) == "!=" || text_.substr(at_, 2) == "==" ? 2U : 1U;
            requirement.values.push_back(value());
            return requirement;
        }
        if (next_is('>') || next_is('<')) {
            requirement.test = next_is('>') ? Test::greater : Test::less;
            ++at_;
            skip_blanks();
            const auto number = at_;
            requirement.values.push_back(word());
            if (!integer_of(requirement.values.front())) fail(number, "an integer");
            return requirement;
        }
        const auto name = word();
        if (name != "in" && name != "notin") fail(start, "one of = == != in notin < > ,");
        requirement.test = name == "in" ? Test::in : Test::not_in;
        requirement.values = values();
        return requirement;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

Selector Selector::parse(std::string_view text) { return SelectorParser(text).parse(); }

bool Selector::matches(const api::Labels& labels) const {
    return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& requirement) {
        const auto label = labels.find(requirement.key);
        const bool present = label != labels.end();
        const auto is_listed = [&] {
            return present && std::find(requirement.values.begin(), requirement.values.end(), label->second) !=
                                  requirement.values.end();
        };
        const auto compares = [&](bool (*holds)(std::int64_t, std::int64_t)) {
            const auto found = integer_of(label->second), limit = integer_of(requirement.values.front());
            return found && limit && holds(*found, *limit);
        };
        switch (requirement.test) {
            case Test::in: return is_listed();
            case Test::not_in: return !is_listed();
            case Test::exists: return present;
            case Test::absent: return !present;
            case Test::greater:
                return present && compares([](std::int64_t found, std::int64_t limit) { return found > limit; });
            case Test::less:
                return present && compares([](std::int64_t found, std::int64_t limit) { return found < limit; });
        }
        return false;
    });
}

}  // namespace kmm::cluster
