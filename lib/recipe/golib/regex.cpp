// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/regex.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <re2/re2.h>

#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/budget.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

namespace {

/// A name in \p{...} as Go compares it: without blanks, '_' and '-', the first letter alone in upper case.
std::string canonical_class(std::string_view name) {
    std::string made;
    for (const char c : name) {
        if (c == '_' || c == '-' || c == ' ') { continue; }
        const bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
        made += static_cast<char>(!is_letter ? c : made.empty() ? std::toupper(c) : std::tolower(c));
    }
    return made;
}

/// The characters that are not in a set of classes, as ranges: RE2 has no negated set in brackets.
const std::string& ranges_without(std::string_view set) {
    static thread_local std::map<std::string, std::string, std::less<>> known;
    if (const auto found = known.find(set); found != known.end()) { return found->second; }
    constexpr char32_t k_end = 0x110000;
    const re2::RE2 expression(fmt::format("[{}]", set));
    std::string ranges;
    char32_t begin = k_end;
    for (char32_t rune = 0; rune <= k_end; ++rune) {
        bool is_out = false;
        if (rune < k_end) {
            std::string text;
            append_rune(text, rune);
            is_out = !re2::RE2::FullMatch(text, expression);
        }
        if (is_out && begin == k_end) { begin = rune; }
        if (!is_out && begin != k_end) {
            ranges += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<std::uint32_t>(begin),
                                  static_cast<std::uint32_t>(rune - 1));
            begin = k_end;
        }
    }
    return known.emplace(set, std::move(ranges)).first->second;
}

/// A set of classes of RE2, or what is not in it.
std::string class_of_set(std::string_view set, bool is_negated, bool is_inside) {
    if (is_inside) { return is_negated ? ranges_without(set) : std::string(set); }
    return fmt::format("[{}{}]", is_negated ? "^" : "", set);
}

/// What RE2 calls a class of characters that Go knows by several names. Throws Fault for a name that Go does not know.
std::string class_of(std::string_view written, bool is_negated, bool is_inside) {
    static const std::map<std::string, std::string_view, std::less<>> k_aliases{
        {"Control", "Cc"}, {"Cntrl", "Cc"}, {"Format", "Cf"}, {"Privateuse", "Co"},
        {"Surrogate", "Cs"}, {"Letter", "L"}, {"Lowercaseletter", "Ll"}, {"Modifierletter", "Lm"},
        {"Otherletter", "Lo"}, {"Titlecaseletter", "Lt"}, {"Uppercaseletter", "Lu"}, {"Mark", "M"},
        {"Combiningmark", "M"}, {"Spacingmark", "Mc"}, {"Enclosingmark", "Me"}, {"Nonspacingmark", "Mn"},
        {"Number", "N"}, {"Decimalnumber", "Nd"}, {"Digit", "Nd"}, {"Letternumber", "Nl"}, {"Othernumber", "No"},
        {"Punctuation", "P"}, {"Punct", "P"}, {"Connectorpunctuation", "Pc"}, {"Dashpunctuation", "Pd"},
        {"Closepunctuation", "Pe"}, {"Finalpunctuation", "Pf"}, {"Initialpunctuation", "Pi"},
        {"Otherpunctuation", "Po"}, {"Openpunctuation", "Ps"}, {"Symbol", "S"}, {"Currencysymbol", "Sc"},
        {"Modifiersymbol", "Sk"}, {"Mathsymbol", "Sm"}, {"Othersymbol", "So"}, {"Separator", "Z"},
        {"Lineseparator", "Zl"}, {"Paragraphseparator", "Zp"}, {"Spaceseparator", "Zs"}};
    std::string_view name = written;
    if (name.starts_with('^')) {
        is_negated = !is_negated;
        name.remove_prefix(1);
    }
    const std::string canonical = canonical_class(name);
    if (canonical == "Ascii") {
        const std::string_view range = is_negated ? R"(\x{80}-\x{10FFFF})" : R"(\x00-\x7F)";
        return is_inside ? std::string(range) : fmt::format("[{}]", range);
    }
    if (canonical == "Lc" || canonical == "Casedletter") {
        return class_of_set(R"(\p{Lu}\p{Ll}\p{Lt})", is_negated, is_inside);
    }
    if (canonical == "Assigned" || canonical == "Cn" || canonical == "Unassigned") {
        constexpr std::string_view k_assigned = R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{C})";
        return class_of_set(k_assigned, is_negated != (canonical != "Assigned"), is_inside);
    }
    if (canonical == "C" || canonical == "Other") {  // RE2's is without Cn
        return class_of_set(R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z})", !is_negated, is_inside);
    }
    const auto alias = k_aliases.find(canonical);
    const std::string_view chosen = alias != k_aliases.end() ? alias->second : std::string_view(canonical);
    // A script with '_' or a second capital in Go's table is found by no name: Go takes these out of what it looks for.
    if (chosen != name && !re2::RE2(fmt::format("\\p{{{}}}", chosen), re2::RE2::Quiet).ok()) {
        throw Fault{fmt::format("error parsing regexp: invalid character class range: `\\p{{{}}}`", written)};
    }
    return fmt::format("\\{}{{{}}}", is_negated ? 'P' : 'p', chosen);
}

/// Go takes letters and digits of ASCII alone, RE2 those of all languages.
void require_group_name(std::string_view name) {
    const bool is_good = std::all_of(name.begin(), name.end(), [](char c) {
        return c == '_' || (static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) != 0);
    });
    if (!is_good) {
        throw Fault{fmt::format("error parsing regexp: invalid named capture: `(?P<{}>`", name)};
    }
}

/// {N} and {N,M} with more digits than RE2 reads are a text to it, and an error to Go. With a zero in front they are a
/// text to both.
void require_repeat_count(std::string_view rest) {
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos) { return; }
    const auto is_count = [](std::string_view text) {
        return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos &&
               (text.size() == 1 || text[0] != '0');
    };
    const std::string_view inner = rest.substr(1, close - 1);
    const std::string_view least = inner.substr(0, inner.find(','));
    const std::string_view most = inner.substr(std::min(least.size() + 1, inner.size()));
    if (!is_count(least) || !(most.empty() || is_count(most))) { return; }
    if (std::max(least.size(), most.size()) > 8) {
        throw Fault{fmt::format("error parsing regexp: invalid repeat count: `{}`", rest.substr(0, close + 1))};
    }
}

/// Go's syntax as this RE2 has it: (?<name>...) is (?P<name>...), classes have one name. Throws Fault for \C, which Go
/// does not know.
std::string as_re2(const std::string& pattern) {
    std::string made;
    bool is_class = false;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        const std::string_view rest = std::string_view(pattern).substr(at);
        std::size_t taken = 1;
        if (rest.starts_with("\\Q") && !is_class) {
            taken = std::min(rest.find("\\E"), rest.size());
        } else if (rest[0] == '\\') {
            if (rest.starts_with("\\C")) {
                throw Fault{"error parsing regexp: invalid escape sequence: `\\C`"};
            }
            taken = std::min<std::size_t>(2, rest.size());
            if (rest.size() > 2 && (rest[1] == 'p' || rest[1] == 'P')) {
                const bool is_long = rest[2] == '{';
                const bool is_letter = std::isalpha(static_cast<unsigned char>(rest[2])) != 0;
                const std::size_t end = is_long ? rest.find('}') : is_letter ? 2 : std::string_view::npos;
                if (end != std::string_view::npos) {
                    made += class_of(is_long ? rest.substr(3, end - 3) : rest.substr(2, 1), rest[1] == 'P', is_class);
                    at += end;
                    continue;
                }
            }
        } else if (is_class) {
            const std::size_t end = rest.starts_with("[:") ? rest.find(":]") : std::string_view::npos;
            if (end != std::string_view::npos) { taken = end + 2; }
            is_class = taken > 1 || rest[0] != ']';
        } else if (rest[0] == '[') {
            is_class = true;
            taken += rest.substr(taken).starts_with('^') ? 1U : 0U;
            taken += rest.substr(taken).starts_with(']') ? 1U : 0U;
        } else if (rest.starts_with("(?<") || rest.starts_with("(?P<")) {
            const std::size_t begin = rest.find('<') + 1;
            require_group_name(rest.substr(begin, rest.find('>') - begin));
            made += "(?P<";
            at += begin - 1;
            continue;
        } else if (rest[0] == '{') {
            require_repeat_count(rest);
        }
        made += rest.substr(0, taken);
        at += taken - 1;
    }
    return made;
}

/// Compiled; throws Fault. Templates use the same few again and again.
const re2::RE2& compiled(const std::string& pattern) {
    static thread_local std::map<std::string, std::unique_ptr<re2::RE2>, std::less<>> known;
    auto found = known.find(pattern);
    if (found == known.end()) {
        re2::RE2::Options options;
        options.set_log_errors(false);
        options.set_encoding(re2::RE2::Options::EncodingUTF8);
        auto made = std::make_unique<re2::RE2>(as_re2(pattern), options);
        if (made->error_code() == re2::RE2::ErrorPatternTooLarge) {
            throw Fault{"expected a regexp of at most 8 MiB when compiled, found more", "recipe-too-large"};
        }
        if (!made->ok()) { throw Fault{fmt::format("error parsing regexp: {}", made->error())}; }
        if (known.size() > 200) { known.clear(); }
        found = known.emplace(pattern, std::move(made)).first;
    }
    return *found->second;
}

struct Match {
    std::size_t start = 0, end = 0;
    std::vector<re2::StringPiece> groups;
};

/// Gives `take` all matches as Go finds them: an empty one right behind another does not count. `take` returns false to
/// stop.
template <typename Take>
void each_match(const re2::RE2& expression, const std::string& text, std::int64_t most, Take&& take) {
    const int groups = expression.NumberOfCapturingGroups() + 1;
    std::size_t at = 0;
    std::size_t last_end = std::string::npos;
    const re2::StringPiece whole(text);
    Match match;
    match.groups.resize(static_cast<std::size_t>(groups));
    for (std::int64_t found = 0; at <= text.size() && (most < 0 || found < most);) {
        if (!expression.Match(whole, at, text.size(), re2::RE2::UNANCHORED, match.groups.data(), groups)) { return; }
        match.start = static_cast<std::size_t>(match.groups[0].data() - text.data());
        match.end = match.start + match.groups[0].size();
        const bool is_empty = match.start == match.end;
        const bool accept = !(is_empty && match.start == last_end);
        at = is_empty ? match.end + (match.end < text.size() ? decode(text, match.end).width : 1) : match.end;
        last_end = match.end;
        if (accept && !take(match)) { return; }
        found += accept ? 1 : 0;
    }
}

/// Go's Expand: $1, ${1}, $name, $$.
std::string expanded(const re2::RE2& expression, const Match& match, std::string_view form) {
    std::string out;
    for (std::size_t at = 0; at < form.size();) {
        if (form[at] != '$' || at + 1 >= form.size()) {
            out += form[at++];
            continue;
        }
        if (form[at + 1] == '$') {
            out += '$';
            at += 2;
            continue;
        }
        const bool brace = form[at + 1] == '{';
        std::size_t start = at + (brace ? 2 : 1), end = start;
        while (end < form.size()) {
            const Decoded d = decode(form, end);
            if (!is_letter(d.rune) && !is_digit(d.rune) && d.rune != '_') { break; }
            end += d.width;
        }
        if (end == start || (brace && (end >= form.size() || form[end] != '}'))) {
            out += form[at++];
            continue;
        }
        const std::string name(form.substr(start, end - start));
        at = end + (brace ? 1 : 0);
        std::size_t number = match.groups.size();
        if (name.find_first_not_of("0123456789") == std::string::npos && name.size() < 8) {
            number = std::stoul(name);
        } else if (const auto named = expression.NamedCapturingGroups().find(name);
                   named != expression.NamedCapturingGroups().end()) {
            number = static_cast<std::size_t>(named->second);
        }
        if (number < match.groups.size()) { out += std::string(match.groups[number]); }
        check_size(out.size());
    }
    return out;
}

}  // namespace

bool regex_matches(const std::string& pattern, const std::string& text) {
    return re2::RE2::PartialMatch(text, compiled(pattern));
}

std::vector<std::string> regex_find(const std::string& pattern, const std::string& text, std::int64_t most,
                                    Budget& budget) {
    std::vector<std::string> found;
    each_match(compiled(pattern), text, most, [&](const Match& match) {
        budget.take(sizeof(std::string) + text_bytes(match.end - match.start));
        found.push_back(text.substr(match.start, match.end - match.start));
        return true;
    });
    return found;
}

std::string regex_replace(const std::string& pattern, const std::string& text, const std::string& by,
                          bool is_literal) {
    const re2::RE2& expression = compiled(pattern);
    std::string out;
    std::size_t at = 0;
    each_match(expression, text, -1, [&](const Match& match) {
        out += text.substr(at, match.start - at);
        out += is_literal ? by : expanded(expression, match, by);
        at = match.end;
        check_size(out.size());
        return true;
    });
    return out + text.substr(at);
}

std::optional<std::vector<std::string>> regex_split(const std::string& pattern, const std::string& text,
                                                    std::int64_t most, Budget& budget) {
    const re2::RE2& expression = compiled(pattern);
    if (most == 0) { return std::nullopt; }
    if (!pattern.empty() && text.empty()) { return std::vector<std::string>{""}; }
    std::vector<std::string> pieces;
    std::size_t start = 0, end = 0;
    const auto put = [&](std::size_t size) {
        budget.take(sizeof(std::string) + text_bytes(std::min(size, text.size() - start)));
        pieces.push_back(text.substr(start, size));
    };
    each_match(expression, text, most, [&](const Match& match) {
        if (most > 0 && static_cast<std::int64_t>(pieces.size()) == most - 1) { return false; }
        end = match.start;
        if (match.end != 0) { put(end - start); }
        start = match.end;
        return true;
    });
    if (end != text.size()) { put(std::string::npos); }
    return pieces;
}

std::string regex_quote(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("\\.+*?()|[]{}^$").find(c) != std::string_view::npos) { out += '\\'; }
        out += c;
    }
    return out;
}

}  // namespace kmm::recipe::tmpl
