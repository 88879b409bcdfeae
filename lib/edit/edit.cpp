// SPDX-License-Identifier: Apache-2.0
#include "edit/edit.hpp"

#include <algorithm>
#include <utility>
#include <fmt/format.h>

#include "base/text.hpp"
#include "edit/tree.hpp"
#include "value/kind_phrase.hpp"
#include "value/text_scan.hpp"
#include "value/writer.hpp"

namespace kmm::edit {
namespace {

std::string path_text(const std::vector<std::string>& path) {
    std::string text;
    for (const auto& key : path) {
        const bool plain = key.find_first_of("./ ") == std::string::npos;
        if (!text.empty() && plain) text += '.';
        text += plain ? key : fmt::format("[{}]", key);
    }
    return text;
}

/// `text` with `width` blanks before every non-empty line.
std::string indent_lines(std::string_view text, std::size_t width) {
    std::string out;
    bool start = true;
    for (const char c : text) {
        if (start && c != '\n') out.append(width, ' ');
        out += c;
        start = c == '\n';
    }
    return out;
}

/// True if the block form of `node` ends with a text that needs its line break.
bool ends_in_literal(const value::Node& node) {
    if (!node.members().empty()) return ends_in_literal(node.members().back().value);
    if (!node.items().empty()) return ends_in_literal(node.items().back());
    return node.is_string() && to_yaml(node).substr(0, 2) == "|\n";
}

/// One edit of one text: reads it, finds the place, changes as little as possible.
class Editor {
public:
    Editor(std::string& text, std::string_view file, const Edit& edit, const value::Node& root)
        : text_(text), file_(file), edit_(edit), root_(root), scan_(text) {
        const auto line = text_.find('\n');
        newline_ = line != std::string::npos && line > 0 && text_[line - 1] == '\r' ? "\r\n" : "\n";
    }

    /// Follow-up edits instead of a change, when a mapping replaces a mapping.
    std::vector<Edit> run() {
        if (!root_.is_mapping()) refuse("expected a mapping at the top of the document", root_.mark());
        Place place;
        place.mapping = &root_;
        place.bound = document_end();
        std::size_t depth = 0;
        const value::Member* owner = nullptr;
        while (true) {
            place.flow = place.flow || is_flow(*place.mapping);
            const auto index = index_of(*place.mapping, edit_.path[depth]);
            if (!index) break;
            place.member = *index;
            if (++depth == edit_.path.size()) return change_member(place, owner);
            const value::Member& member = place.mapping->members()[*index];
            if (!member.value.is_mapping() && !member.value.is_null()) {
                if (!edit_.value) return {};
                refuse(fmt::format("expected a mapping as value of '{}', found {}", base::escape(member.key),
                                   value::a_kind(member.value.kind())),
                       member.value.mark());
            }
            if (member.value.members().empty()) {
                if (edit_.value) replace(place, nested(depth));
                return {};
            }
            check_no_alias(member, place.flow ? value::Within::flow : value::Within::block);
            place.bound = member_bound(place);
            owner = &member;
            place.mapping = &member.value;
        }
        if (edit_.value) add(place, edit_.path[depth], nested(depth + 1));
        return {};
    }

private:
    /// A mapping in the text, and one of its members.
    struct Place {
        const value::Node* mapping = nullptr;
        std::size_t member = 0;
        std::size_t bound = 0;  ///< where the content behind the mapping starts (block style)
        bool flow = false;
    };

    [[noreturn]] void refuse(std::string reason, value::Mark mark) const {
        throw Error(Exit::data, "cannot-edit", fmt::format("cannot change {}: {}", path_text(edit_.path), reason))
            .at(Position{std::string(file_), mark.line, mark.column})
            .hint("write this part of the file in plain block style, or make the change by hand");
    }

    static std::optional<std::size_t> index_of(const value::Node& mapping, std::string_view key) {
        const auto& members = mapping.members();
        const auto at = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.key == key; });
        if (at == members.end()) return std::nullopt;
        return static_cast<std::size_t>(at - members.begin());
    }

    /// The edit's value wrapped into mappings for the keys from `depth` on.
    [[nodiscard]] value::Node nested(std::size_t depth) const {
        value::Node node = *edit_.value;
        for (auto i = edit_.path.size(); i > depth; --i) {
            value::Node outer = value::Node::mapping();
            outer.set(edit_.path[i - 1], std::move(node));
            node = std::move(outer);
        }
        return node;
    }

    [[nodiscard]] std::size_t document_end() const {
        const auto& index = scan_.index();
        for (auto at = scan_.start(root_); at < text_.size();) {
            const auto next = index.next_line(at);
            if (next == at || next >= text_.size()) break;
            const auto mark = std::string_view(text_).substr(next, 3);
            const auto rest = scan_.skip_blanks(next + 3);
            if ((mark == "---" || mark == "...") && (rest > next + 3 || rest >= scan_.line_end(next))) return next;
            at = next;
        }
        return text_.size();
    }

    [[nodiscard]] bool is_flow(const value::Node& mapping) const {
        const auto at = scan_.skip_properties(scan_.start(mapping));
        return at < text_.size() && text_[at] == '{';
    }

    [[nodiscard]] std::size_t key_at(const Place& place, std::size_t member) const {
        return scan_.index().offset(place.mapping->members()[member].key_mark);
    }
    [[nodiscard]] std::size_t member_bound(const Place& place) const {
        return place.member + 1 < place.mapping->members().size() ? key_at(place, place.member + 1) : place.bound;
    }
    [[nodiscard]] std::size_t column(const Place& place) const {
        return place.mapping->members()[0].key_mark.column - 1;
    }

    [[nodiscard]] std::size_t colon_of(const value::Member& member, value::Within within) const {
        const auto colon = scan_.colon_end(scan_.index().offset(member.key_mark), within);
        if (!colon)
            refuse(fmt::format("the key '{}' is not written as 'key: value'", base::escape(member.key)),
                   member.key_mark);
        return *colon;
    }

    void check_no_alias(const value::Member& member, value::Within within) const {
        if (scan_.style(member.value, colon_of(member, within)) == value::Style::alias) {
            refuse(fmt::format("the value of '{}' is an alias", base::escape(member.key)), member.key_mark);
        }
    }

    void check_own_line(const Place& place, std::size_t member) const {
        const auto key = key_at(place, member);
        if (!scan_.is_first_in_line(key) || text_.find('\t', scan_.index().line_start(key)) < key) {
            refuse("the key does not stand at the start of a line", place.mapping->members()[member].key_mark);
        }
    }

    [[nodiscard]] std::size_t end_of(const Place& place, std::size_t member) const {
        const auto& entry = place.mapping->members()[member];
        if (!place.flow) {
            Place one = place;
            one.member = member;
            const auto colon = colon_of(entry, value::Within::block);
            return scan_.block_end(entry.value, colon, column(place), member_bound(one));
        }
        const auto key = key_at(place, member);
        const auto colon = scan_.colon_end(key, value::Within::flow);
        if (!colon) return scan_.key_end(key, value::Within::flow);
        const auto shape = scan_.style(entry.value, *colon);
        if (shape == value::Style::empty) return *colon;
        if (shape == value::Style::alias) return scan_.flow_end(first_behind(*colon));
        return scan_.flow_end(scan_.start(entry.value));
    }

    [[nodiscard]] std::size_t first_behind(std::size_t offset) const {
        return std::min(text_.find_first_not_of(" \t\r\n", offset), text_.size());
    }

    void splice(std::size_t from, std::size_t to, std::string_view with) {
        std::string piece;
        for (const char c : with) {
            if (c == '\n') {
                piece += newline_;
            } else {
                piece += c;
            }
        }
        text_.replace(from, to - from, piece);
    }

    std::vector<Edit> change_member(const Place& place, const value::Member* owner) {
        const value::Member& member = place.mapping->members()[place.member];
        if (!edit_.value) {
            if (place.flow) {
                remove_flow(place);
            } else {
                remove_block(place, owner);
            }
            return {};
        }
        if (member.value.same_value(*edit_.value)) return {};
        if (!member.value.members().empty() && !edit_.value->members().empty()) return member_edits(member.value);
        replace(place, *edit_.value);
        return {};
    }

    [[nodiscard]] std::vector<Edit> member_edits(const value::Node& old) const {
        std::vector<Edit> edits;
        const auto add_edit = [&](const std::string& key, std::optional<value::Node> value) {
            Edit edit{edit_.path, std::move(value)};
            edit.path.push_back(key);
            edits.push_back(std::move(edit));
        };
        for (const auto& member : edit_.value->members()) add_edit(member.key, member.value);
        for (const auto& member : old.members()) {
            if (edit_.value->find(member.key) == nullptr) add_edit(member.key, std::nullopt);
        }
        return edits;
    }

    /// Block text of a member. A literal text at its end would swallow comment lines that follow at `behind`, and needs
    /// a line break: then the value is written as JSON.
    [[nodiscard]] std::string member_text(const std::string& key, const value::Node& value, std::size_t behind) const {
        if (ends_in_literal(value)) {
            const auto next = first_behind(behind);
            const bool no_break = behind >= text_.size() && (text_.empty() || text_.back() != '\n');
            if (no_break || (next < text_.size() && text_[next] == '#')) {
                auto yaml = to_yaml(value::Node::mapping({{key, 1}}));
                return yaml.substr(0, yaml.size() - 2) + to_json(value) + "\n";
            }
        }
        return to_yaml(value::Node::mapping({{key, value}}));
    }

    void replace(const Place& place, const value::Node& value) {
        const value::Member& member = place.mapping->members()[place.member];
        if (place.flow) {
            replace_flow(place, value);
            return;
        }
        check_own_line(place, place.member);
        const auto colon = colon_of(member, value::Within::block);
        const auto shape = scan_.style(member.value, colon);
        const auto end = end_of(place, place.member);
        const auto header_end = scan_.line_end(colon);
        const auto begin =
            shape == value::Style::empty || shape == value::Style::alias ? scan_.skip_blanks(colon)
                                                                         : scan_.start(member.value);
        std::string gap = begin > colon && begin < header_end ? text_.substr(colon, begin - colon) : " ";
        if (shape == value::Style::empty) gap = " ";
        std::string comment;
        const auto rest = end <= header_end ? end : colon;
        if (end <= header_end) {
            comment = text_.substr(rest, header_end - rest);
        } else if (shape == value::Style::block || shape == value::Style::block_text) {
            const auto header = std::string_view(text_).substr(colon, header_end - colon);
            const auto hash = header.find('#');
            if (hash != std::string_view::npos) comment = fmt::format(" {}", header.substr(hash));
        }
        if (base::trim(comment).empty()) comment.clear();
        const auto to = std::max(header_end, scan_.line_end(std::max(end, colon)));

        const auto yaml = member_text("k", value, scan_.index().next_line(to));
        const auto head_end = yaml.find('\n');
        const auto head = yaml.substr(2, head_end - 2);
        auto tail = indent_lines(yaml.substr(head_end), column(place));
        tail.pop_back();
        splice(colon, to, (head.empty() ? "" : gap + head.substr(1)) + comment + tail);
    }

    void replace_flow(const Place& place, const value::Node& value) {
        const value::Member& member = place.mapping->members()[place.member];
        const auto key = key_at(place, place.member);
        const auto colon = scan_.colon_end(key, value::Within::flow);
        if (!colon) {
            const auto end = scan_.key_end(key, value::Within::flow);
            splice(end, end, ": " + to_json(value));
            return;
        }
        const auto shape = scan_.style(member.value, *colon);
        if (shape == value::Style::empty) {
            const auto at = *colon < text_.size() && text_[*colon] == ' ' ? *colon + 1 : *colon;
            splice(at, at, (at == *colon ? " " : "") + to_json(value));
            return;
        }
        const auto begin = shape == value::Style::alias ? first_behind(*colon) : scan_.start(member.value);
        splice(begin, end_of(place, place.member), flow_text(place, value));
    }

    /// JSON text in the mapping's own style: many lines if its members stand on lines of their own.
    [[nodiscard]] std::string flow_text(const Place& place, const value::Node& value) const {
        if (place.mapping->members().empty() || !scan_.is_first_in_line(key_at(place, 0))) return to_json(value);
        auto text = indent_lines(to_json_pretty(value), column(place));
        text.pop_back();
        return text.substr(std::min(text.find_first_not_of(' '), text.size()));
    }

    void add(const Place& place, const std::string& key, const value::Node& value) {
        if (place.flow) {
            add_flow(place, key, value);
            return;
        }
        const auto last = place.mapping->members().size() - 1;
        check_own_line(place, 0);
        const auto end = end_of(place, last);
        const auto at = scan_.index().next_line(end);
        auto lines = indent_lines(member_text(key, value, at), column(place));
        if (at == text_.size() && (text_.empty() || text_.back() != '\n')) {
            lines.pop_back();
            lines.insert(lines.begin(), '\n');
        }
        splice(at, at, lines);
    }

    void add_flow(const Place& place, const std::string& key, const value::Node& value) {
        const auto& members = place.mapping->members();
        const auto open = scan_.skip_properties(scan_.start(*place.mapping));
        const auto name = to_json(value::Node(key));
        if (members.empty()) {
            splice(open + 1, open + 1, fmt::format("{}: {}", name, to_json(value)));
            return;
        }
        const auto close = scan_.flow_end(open) - 1;
        const auto end = end_of(place, members.size() - 1);
        const auto behind = first_behind(end);
        const bool has_comma = behind < close && text_[behind] == ',';
        const auto after = has_comma ? behind + 1 : end;
        const auto colon = scan_.colon_end(key_at(place, 0), value::Within::flow);
        const bool wide = !colon || (*colon < text_.size() && text_[*colon] == ' ');
        const auto member = fmt::format("{}:{}{}", name, wide ? " " : "", flow_text(place, value));
        if (!scan_.is_first_in_line(key_at(place, 0))) {
            splice(after, after, fmt::format("{}{}{}", has_comma ? "" : ",", wide ? " " : "", member));
            return;
        }
        const auto line = fmt::format("\n{}{}", std::string(column(place), ' '), member);
        if (scan_.line_end(after) > close) {
            splice(after, after, (has_comma ? "" : ",") + line);
            return;
        }
        splice(scan_.line_end(after), scan_.line_end(after), line);
        if (!has_comma) splice(after, after, ",");
    }

    void remove_block(const Place& place, const value::Member* owner) {
        check_own_line(place, place.member);
        const auto from = scan_.index().line_start(key_at(place, place.member));
        const auto end = end_of(place, place.member);
        auto to = scan_.index().next_line(end);
        if (place.mapping->members().size() == 1 && owner == nullptr) {
            splice(from, scan_.line_end(end), "{}");
            return;
        }
        std::size_t brace = 0;
        const bool emptied = place.mapping->members().size() == 1;
        if (emptied) {
            brace = colon_of(*owner, value::Within::block);
            const auto mark = scan_.start(*place.mapping);
            if (text_[mark] == '&' || text_[mark] == '!') {
                brace = scan_.skip_properties(mark);
                while (text_[brace - 1] == ' ' || text_[brace - 1] == '\n' || text_[brace - 1] == '\r') --brace;
            }
        }
        auto begin = from;
        if (to == text_.size() && text_.back() != '\n' && begin > 0) {
            begin -= begin > 1 && text_[begin - 2] == '\r' ? 2U : 1U;
        }
        splice(begin, to, "");
        if (emptied) splice(brace, brace, " {}");
    }

    void remove_flow(const Place& place) {
        const auto& members = place.mapping->members();
        const auto key = key_at(place, place.member);
        const auto end = end_of(place, place.member);
        const auto behind = first_behind(end);
        const auto after = behind < text_.size() && text_[behind] == ',' ? behind + 1 : end;
        const bool own_line = scan_.is_first_in_line(key) && scan_.is_rest_empty(after);
        const auto from = own_line ? scan_.index().line_start(key) : key;
        auto to = own_line ? scan_.index().next_line(after) : scan_.skip_blanks(after);
        if (place.member + 1 < members.size()) {
            splice(from, to, "");
            return;
        }
        if (members.size() == 1) {
            const auto open = scan_.skip_properties(scan_.start(*place.mapping));
            const auto close = scan_.flow_end(open) - 1;
            const auto inner = std::string_view(text_).substr(open, close - open);
            if (inner.find('#') == std::string_view::npos) {
                splice(open + 1, close, "");
            } else {
                splice(key, after, "");
            }
            return;
        }
        const auto before = end_of(place, place.member - 1);
        if (own_line) {
            splice(from, to, "");
            if (after == end) splice(first_behind(before), first_behind(before) + 1, "");
        } else {
            splice(before, after == end ? end : behind, "");
        }
    }

    std::string& text_;
    std::string_view file_;
    const Edit& edit_;
    const value::Node& root_;
    value::TextScan scan_;
    std::string newline_;
};

void edit_one(std::string& text, std::string_view file, const Edit& edit, const value::Node* root);

void edit_afresh(std::string& text, std::string_view file, const Edit& edit) {
    const auto document = read_one(text, file);
    edit_one(text, file, edit, document ? &document->root : nullptr);
}

/// `root`: what `text` reads as, nullptr if there is nothing in it.
void edit_one(std::string& text, std::string_view file, const Edit& edit, const value::Node* root) {
    if (root == nullptr) {
        if (!edit.value) return;
        value::Node wanted;
        edit_tree(wanted, edit);
        if (!text.empty() && text.back() != '\n') text += '\n';
        text += to_yaml(wanted);
        return;
    }
    std::string changed = text;
    const auto follow_up = Editor(changed, file, edit, *root).run();
    text = std::move(changed);
    for (const auto& next : follow_up) edit_afresh(text, file, next);
}

Edited edit_all(std::string_view text, std::string_view file, const std::vector<Edit>& edits, const value::Node* root) {
    const auto body = value::without_bom(text);
    auto wanted = root == nullptr ? value::Node() : *root;
    std::string changed(body);
    for (const auto& edit : edits) {
        if (edit.path.empty()) throw bug("an edit without a path");
        if (&edit == &edits.front()) edit_one(changed, file, edit, root);
        else edit_afresh(changed, file, edit);
        edit_tree(wanted, edit);
    }
    const auto fail = [&](std::string_view why) {
        return Error(Exit::data, "cannot-edit",
                     fmt::format("cannot change {}: {}", edits.empty() ? "" : path_text(edits[0].path), why))
            .at(Position{std::string(file), 1, 1})
            .hint("write the file in plain block style, or make the change by hand");
    };
    std::optional<value::Document> read;
    try {
        read = read_one(changed, file);
    } catch (const Error&) {
        throw fail("the changed text would not be readable");
    }
    if (!(read ? read->root : value::Node()).same_value(wanted)) throw fail("the text would then mean something else");
    return {std::string(text.substr(0, text.size() - body.size())) + changed, std::move(read)};
}

}  // namespace

std::string edit_text(std::string_view text, std::string_view file, const std::vector<Edit>& edits) {
    const auto document = read_one(value::without_bom(text), file);
    return edit_all(text, file, edits, document ? &document->root : nullptr).text;
}

Edited edit_text(std::string_view text, std::string_view file, const std::vector<Edit>& edits,
                 const value::Node& root) {
    return edit_all(text, file, edits, &root);
}

}  // namespace kmm::edit
