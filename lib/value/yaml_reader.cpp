// SPDX-License-Identifier: Apache-2.0
// Adapter of yaml-cpp's event reader. It resolves scalars, checks keys and expands aliases itself, because yaml-cpp
// does none of that the way Kubernetes' readers do.
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/kind_phrase.hpp"
#include "value/text_scan.hpp"
#include "value/reader.hpp"
#include "value/scalar.hpp"
#include "value/text_index.hpp"
#include "value/yaml_faults.hpp"
#include "value/yaml_keys.hpp"

namespace kmm::value {
namespace {

/// yaml-cpp turns the escapes \N and \_ into single bytes, 0x85 and 0xa0, instead of the characters of these numbers.
std::string whole_characters(std::string text) {
    for (;;) {
        const auto at = find_invalid_utf8(text);
        if (!at || (text[*at] != '\x85' && text[*at] != '\xa0')) return text;
        text.insert(*at, 1, '\xc2');
    }
}

/// Ends the parse of a file; the diagnostic is already recorded.
struct StopReading {};

constexpr std::string_view k_core_tag = "tag:yaml.org,2002:";

bool is_core(std::string_view tag, std::string_view name) noexcept {
    return tag.starts_with(k_core_tag) && tag.substr(k_core_tag.size()) == name;
}

Mark to_mark(const YAML::Mark& mark) noexcept {
    if (mark.is_null()) return {};
    return Mark{static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

/// What an alias of an anchor costs.
struct Weight {
    std::size_t nodes = 0, bytes = 0, depth = 0;
};

Weight weigh(const Node& node) {
    Weight sum{1, node.text().size(), 0};
    const auto add = [&](const Node& child, std::size_t key_bytes) {
        const auto part = weigh(child);
        sum.nodes += part.nodes;
        sum.bytes += part.bytes + key_bytes;
        sum.depth = std::max(sum.depth, part.depth + 1);
    };
    for (const auto& item : node.items()) add(item, 0);
    for (const auto& member : node.members()) add(member.value, member.key.size());
    return sum;
}

class YamlBuilder final : public YAML::EventHandler {
public:
    YamlBuilder(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits)
        : text_(text), file_(file), scan_(text), diagnostics_(diagnostics), limits_(limits) {}

    [[nodiscard]] std::vector<Document> take() { return std::move(documents_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_seen_ > 0) check_separator(to_mark(mark));
        last_start_ = to_mark(mark);
        stack_.clear();
        anchors_.clear();
        written_.clear();
        nodes_ = bytes_ = 0;
        root_.reset();
    }

    void OnDocumentEnd() override {
        const auto index = documents_seen_++;
        if (root_ && !root_->is_null())
            documents_.push_back(Document{std::string(file_), std::move(*root_), index, std::move(written_)});
    }

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        finish(Node(), to_mark(mark), anchor, Plain::yes);
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto place = to_mark(mark);
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) {
            report("bad-alias", "expected an alias of a finished value, found one of a value that contains it", place);
            finish(Node(), place, YAML::NullAnchor, Plain::no);
            return;
        }
        const auto& [node, weight] = found->second;
        spend(weight, place);
        finish(Node(node), place, YAML::NullAnchor, Plain::no, Counted::yes);
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& text) override {
        const auto place = to_mark(mark);
        check_closed(place);
        const bool whole = base::is_utf8(text);
        finish(scalar(tag, whole ? text : whole_characters(text), place), place, anchor,
               tag == "?" ? Plain::yes : Plain::no);
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(Node::sequence(), to_mark(mark), tag, anchor);
    }
    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value style) override {
        open(Node::mapping(), to_mark(mark), tag, anchor);
        stack_.back().is_block = style == YAML::EmitterStyle::Block;
    }
    void OnSequenceEnd() override { close(); }
    void OnMapEnd() override { close(); }

private:
    enum class Plain { no, yes };
    enum class Counted { no, yes };

    struct Frame {
        Node node;
        YAML::anchor_t anchor = YAML::NullAnchor;
        bool is_block = false;
        bool key_pending = false;      ///< a key was read, its value comes next
        bool merge_pending = false;    ///< that key is "<<"
        std::optional<Member> member;  ///< the key, unless it was at fault
        std::unordered_map<std::string, Mark> seen;
        Mark merge_mark;               ///< of that key
        std::vector<std::pair<Node, Mark>> merged;  ///< what "<<" keys stand for, and their places
        bool has_repeats = false;  ///< members with equal keys, of which the last one counts
        bool runs_on = false;  ///< a second object began in it, without a line "---"
    };

    void report(std::string code, std::string message, Mark mark, std::string hint = {}) {
        diagnostics_.push_back(fault(std::move(code), std::move(message), file_, mark, std::move(hint)));
    }

    void spend(const Weight& weight, Mark mark) {
        nodes_ += weight.nodes;
        bytes_ += weight.bytes;
        if (nodes_ > limits_.nodes_max) {
            report("document-limit",
                   fmt::format("expected at most {} values in a document, aliases expanded", limits_.nodes_max), mark);
        } else if (bytes_ > limits_.bytes_max) {
            report("document-limit", fmt::format("expected at most {} in a document, aliases expanded",
                                                 base::format_bytes(limits_.bytes_max)), mark);
        } else if (stack_.size() + weight.depth > limits_.depth_max) {
            report("document-limit", fmt::format("expected at most {} nested levels", limits_.depth_max), mark);
        } else {
            return;
        }
        throw StopReading{};
    }

    /// yaml-cpp starts a new document at any leftover content; YAML wants a marker line before it.
    void check_separator(Mark mark) {
        const auto offset = scan_.index().offset(mark);
        if (mark == last_start_) {  // it makes no progress, and would not for ever
            report("yaml-syntax", "expected a value, found something else", mark);
            throw StopReading{};
        }
        if (text_.substr(offset, 3) == "---" || text_.substr(offset, 1) == "%") return;
        if (offset >= text_.size()) return;
        auto before = text_.substr(0, offset);
        while (!before.empty()) {
            const auto start = scan_.index().line_start(before.size() - 1);
            const auto line = before.substr(start);
            if (line.substr(0, 3) == "---") return;
            if (line.substr(0, 3) == "...") {
                report("yaml-syntax", "expected a '---' line before the next document, found only '...'", mark,
                       "put a line --- before it: kubectl reads nothing that follows a line ... up to the next ---");
                throw StopReading{};
            }
            const auto content = base::trim(line);
            if (!content.empty() && content[0] != '#') break;
            before = before.substr(0, start);
        }
        report("yaml-syntax", "expected the end of the document or a '---' line, found more content", mark,
               "check the indentation of this line");
        throw StopReading{};
    }

    /// yaml-cpp takes the end of the text for a closing quote.
    void check_closed(Mark mark) {
        const auto at = skip_yaml_properties(text_, scan_.index().offset(mark));
        if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'') || find_quoted_end(text_, at)) return;
        report("yaml-syntax", fmt::format("expected a closing {}, found the end of the text", text_[at]), mark);
    }

    /// yaml-cpp takes a lone word at the end of a block mapping for a key without a value.
    void check_colon(const Member& member) {
        const auto offset = scan_.index().offset(member.key_mark);
        if (scan_.colon_end(offset, Within::block)) return;
        const auto before =
            base::trim(text_.substr(scan_.index().line_start(offset), offset - scan_.index().line_start(offset)));
        if (before.ends_with('?')) return;
        report("yaml-syntax", fmt::format("expected ':' after the key '{}', found none", base::escape(member.key)),
               member.key_mark);
    }

    void open(Node node, Mark mark, const std::string& tag, YAML::anchor_t anchor) {
        const bool plain_tag = tag.empty() || tag == "?" || tag == "!" || is_core(tag, "map") || is_core(tag, "seq");
        if (!plain_tag) report_tag(tag, mark);
        node.set_mark(mark);
        stack_.push_back(Frame{std::move(node), anchor, false, false, false, std::nullopt, {}, {}, {}, false, false});
        spend(Weight{1, 0, 0}, mark);
    }

    void close() {
        Frame frame = std::move(stack_.back());
        stack_.pop_back();
        if (frame.has_repeats) keep_last(frame.node.members());
        for (auto& [source, place] : frame.merged) merge(frame, source, place);
        const auto mark = frame.node.mark();
        finish(std::move(frame.node), mark, frame.anchor, Plain::no, Counted::yes);
    }

    /// A complete value goes to its parent: as root, item, key or member value.
    void finish(Node node, Mark mark, YAML::anchor_t anchor, Plain plain, Counted counted = Counted::no) {
        node.set_mark(mark);
        if (counted == Counted::no) spend(Weight{1, node.text().size(), 0}, mark);
        if (anchor != YAML::NullAnchor) {
            const auto weight = weigh(node);
            anchors_.insert_or_assign(anchor, std::pair(node, weight));
        }
        if (stack_.empty()) {
            root_ = std::move(node);
            return;
        }
        Frame& frame = stack_.back();
        if (frame.node.is_sequence()) {
            frame.node.items().push_back(std::move(node));
        } else if (!frame.key_pending) {
            frame.key_pending = true;
            frame.member = make_key(frame, node, mark, plain);
        } else {
            frame.key_pending = false;
            if (std::exchange(frame.merge_pending, false)) {
                frame.merged.emplace_back(std::move(node), frame.merge_mark);
            } else if (frame.member) {
                if (frame.is_block && node.is_null()) check_colon(*frame.member);
                frame.member->value = std::move(node);
                frame.node.members().push_back(std::move(*frame.member));
            }
            frame.member.reset();
        }
    }

    /// Gives a mapping the members of `source`, a mapping or a list of them, that it does not have itself; of a list
    /// the first one counts.
    void merge(Frame& frame, Node& source, Mark place, bool nested = false) {
        if (source.is_sequence() && !nested) {
            for (auto& item : source.items()) merge(frame, item, place, true);
            return;
        }
        if (!source.is_mapping()) {
            report("bad-merge",
                   fmt::format("expected a mapping or a list of mappings after '<<', found {}",
                               a_kind(source.kind())),
                   place, "write an alias of a mapping, such as <<: *defaults");
            return;
        }
        for (auto& member : source.members()) {
            const auto [old, fresh] = frame.seen.emplace(member.key, member.key_mark);
            if (fresh) {
                frame.node.members().push_back(std::move(member));
            } else if (std::pair(old->second.line, old->second.column) < std::pair(place.line, place.column) &&
                       is_own(frame, member.key, old->second)) {
                report("bad-merge",
                       fmt::format("the key '{}' stands before '<<', which has it too, and readers of YAML differ in "
                                   "which one counts",
                                   base::escape(member.key)),
                       place, "put << before the keys of the mapping");
            }
        }
    }

    /// Whether a key was written in the mapping itself, not merged into it.
    static bool is_own(const Frame& frame, const std::string& key, Mark mark) {
        const auto at_start = [](const Mark& a, const Mark& b) {
            return std::pair(a.line, a.column) < std::pair(b.line, b.column);
        };
        if (at_start(mark, frame.node.mark())) return false;
        return std::any_of(frame.node.members().begin(), frame.node.members().end(),
                           [&](const Member& member) { return member.key == key; });
    }

    std::optional<Member> make_key(Frame& frame, const Node& node, Mark mark, Plain plain) {
        if (node.is_mapping() || node.is_sequence() || node.is_null()) {
            // A warning of kubectl before the JSON of an object makes that a key of a mapping.
            const bool is_object = node.is_mapping() && node.find("kind") != nullptr && mark.column == 1;
            report("bad-key", fmt::format("expected a string as key, found {}", a_kind(node.kind())), mark,
                   is_object        ? "remove the text before the JSON, such as a warning of kubectl through 2>&1"
                   : node.is_null() ? "quote the key if it is meant as text"
                                    : "quote the text if it is a template expression such as {{ .name }}");
            return std::nullopt;
        }
        if (plain == Plain::yes && node.is_string() && node.text() == "<<") {
            frame.merge_pending = true;
            frame.merge_mark = mark;
            return std::nullopt;
        }
        if (frame.runs_on) return std::nullopt;  // of the second object its first key says enough
        if (node.kind() == Kind::integer && !node.as_int()) {
            report("bad-key", fmt::format("expected a string as key, found the number {}", node.text()), mark,
                   "quote the key if it is meant as text");
            return std::nullopt;
        }
        const std::string key = node.kind() == Kind::floating ? float_key(node.text()) : node.text();
        const auto [old, fresh] = frame.seen.emplace(key, mark);
        if (!fresh) {
            diagnostics_.push_back(duplicate_key(key, file_, mark, old->second));
            if (limits_.is_last_taken) {
                frame.has_repeats = true;
                return Member{key, mark, {}};
            }
            if (key == "apiVersion" && mark.column == 1) {
                frame.runs_on = true;
                diagnostics_.back().hint = "if the next object begins here, put a line --- before it";
            }
            return std::nullopt;
        }
        return Member{key, mark, {}};
    }

    void report_tag(const std::string& tag, Mark mark) {
        report("bad-tag", fmt::format("expected no tag or a YAML core tag, found '{}'", base::escape(tag)), mark,
               "remove the tag");
    }

    /// The text that base64 stands for, as kubectl reads it: with all padding, and no blanks but ends of lines.
    Node binary(const std::string& tag, const std::string& text, Mark mark) {
        auto encoded = text;
        std::erase_if(encoded, [](char c) { return c == '\r' || c == '\n'; });
        const bool is_strict = encoded.size() % 4 == 0 && encoded.find_first_of(" \t") == std::string::npos;
        auto bytes = is_strict ? base::from_base64(encoded) : std::nullopt;
        if (bytes && base::is_utf8(*bytes)) return Node(std::move(*bytes));
        report("bad-tag", fmt::format("expected a text in {} behind the tag '{}', found '{}'",
                                      bytes ? "base64 that stands for UTF-8" : "base64", tag, base::escape(text)),
               mark);
        return Node(text);
    }

    Node scalar(const std::string& tag, const std::string& text, Mark mark) {
        if (tag == "!" || is_core(tag, "str")) return Node(text);
        if (is_core(tag, "binary")) return binary(tag, text, mark);
        const auto plain = resolve_plain(text);
        if (plain.not_a_number) {
            report("bad-number", fmt::format("expected a value that JSON can hold, found the number {}", text), mark,
                   "quote it if it is meant as text");
            return Node(text);
        }
        if (is_written_otherwise(plain.node, text)) written_.emplace_back(mark, text);
        if (tag.empty() || tag == "?") return plain.node;
        const auto found = plain.node.kind();
        const auto is = [&](std::string_view name) { return is_core(tag, name); };
        if (is("timestamp")) return Node(text);
        if (!is("int") && !is("float") && !is("bool") && !is("null")) {
            report_tag(tag, mark);
            return Node(text);
        }
        const bool fits = (is("int") && found == Kind::integer) || (is("bool") && found == Kind::boolean) ||
                          (is("null") && found == Kind::null) ||
                          (is("float") && (found == Kind::floating || found == Kind::integer));
        if (!fits) {
            report("bad-tag",
                   fmt::format("expected a value that fits the tag '{}', found '{}'", tag, base::escape(text)), mark);
        }
        return plain.node;
    }

    std::string_view text_;
    std::string_view file_;
    TextScan scan_;
    Diagnostics& diagnostics_;
    const ReadLimits& limits_;
    std::vector<Document> documents_;
    std::size_t documents_seen_ = 0;
    Mark last_start_;
    std::vector<Frame> stack_;
    std::map<YAML::anchor_t, std::pair<Node, Weight>> anchors_;
    std::optional<Node> root_;
    std::vector<std::pair<Mark, std::string>> written_;
    std::size_t nodes_ = 0;
    std::size_t bytes_ = 0;
};

/// Puts blanks in place of lines "..." before the first document, which yaml-cpp takes for one.
void clear_ends_in_front(std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        const auto content = base::trim(std::string_view(text).substr(at, end - at));
        if (content == "..." && text[at] == '.') {
            text.replace(at, content.size(), content.size(), ' ');
        } else if (!content.empty() && !content.starts_with('#')) {
            return;
        }
        at = end + 1;
    }
}

}  // namespace

std::vector<Document>
read_yaml(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits) {
    auto body = without_bom(text);
    if (!check_text(body, file, limits, diagnostics)) return {};
    // yaml-cpp would take it for the first letter of a key.
    if (const auto mark = body.find("\n\xEF\xBB\xBF"); mark != std::string_view::npos) {
        diagnostics.push_back(
            fault("yaml-syntax", "expected a byte order mark at the start of the file only, found one inside", file,
                  TextIndex(body).mark(mark + 1), "files were joined; remove the three bytes EF BB BF"));
        return {};
    }
    const auto before = diagnostics.size();
    auto separators = read_separators(body);
    if (separators.odd && !limits.is_split_first) separators = {};
    const auto whole = body;
    std::string text_of_yaml(body.substr(0, separators.end));
    for (const auto at : separators.comments) {
        const auto end = std::min(text_of_yaml.find_first_of("\r\n", at), text_of_yaml.size());
        std::fill(text_of_yaml.begin() + static_cast<std::ptrdiff_t>(at),
                  text_of_yaml.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    }
    if (!limits.is_split_first) clear_ends_in_front(text_of_yaml);
    body = text_of_yaml;
    YamlBuilder builder(body, file, diagnostics, limits);
    std::istringstream stream{text_of_yaml};
    try {
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const YAML::DeepRecursion& error) {
        diagnostics.push_back(fault("document-limit",
                                    fmt::format("expected at most {} nested levels", limits.depth_max), file,
                                    to_mark(error.mark)));
    } catch (const YAML::Exception& error) {
        const auto mark = to_mark(error.mark);
        auto hint = unseen_hint(body, mark);
        if (hint.empty()) hint = syntax_hint(error.msg);
        diagnostics.push_back(fault("yaml-syntax", base::escape(error.msg), file, mark, std::move(hint)));
    } catch (const StopReading&) {
        // the diagnostic says why
    }
    if (diagnostics.size() == before) {
        if (const auto found = find_libyaml_fault(body))
            diagnostics.push_back(
                fault("yaml-syntax", found->problem, file, found->mark, unseen_hint(body, found->mark)));
    }
    if (separators.odd) {  // what stands before it may end within a text
        const auto line = TextIndex(whole).mark(separators.last_document).line;
        diagnostics.erase(std::remove_if(diagnostics.begin() + static_cast<std::ptrdiff_t>(before), diagnostics.end(),
                                         [&](const Diagnostic& one) {
                                             return one.code == "yaml-syntax" && one.position &&
                                                    one.position->line >= line;
                                         }),
                          diagnostics.end());
        diagnostics.push_back(odd_separator(whole, *separators.odd, file));
    }
    explain_conflict(whole, file, "yaml-syntax", before, diagnostics);
    return builder.take();
}

}  // namespace kmm::value
