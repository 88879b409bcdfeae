// SPDX-License-Identifier: Apache-2.0
// sigs.k8s.io/yaml's Unmarshal over libyaml, from which go-yaml's parser was translated.
#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/goyaml/yaml_raw.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr int k_read_depth_max = 500;
constexpr int k_retries_max = 100;
constexpr std::uint64_t k_nodes_max = 4'000'000;
constexpr std::uint64_t k_node_bytes = 128;  // a longer key, which aliases copy, counts as so many nodes more
constexpr std::string_view k_long_tag = "tag:yaml.org,2002:";

/// What stops the reading; becomes a YamlFault.
struct Stop {
    std::string message;
    std::size_t line = 0;
    std::size_t column = 0;
    std::string problem = "";
    yaml_mark_t open{};  ///< where what is not closed begins
    bool is_open = false;
    std::optional<std::size_t> refused = std::nullopt;  ///< the character that go-yaml may read
};

std::string_view view(const yaml_char_t* text) {
    return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

/// The number whose fewest digits are those of `number` as a float32: sigs.k8s.io/yaml writes keys so.
double as_single(double number) {
    constexpr double k_overflow = 0x1.ffffffp127;  // half a step above the largest one
    if (!std::isfinite(number)) { return number; }
    if (std::abs(number) >= k_overflow) { return std::copysign(HUGE_VAL, number); }
    return parse_real(fmt::format("{}", static_cast<float>(number))).value_or(number);
}

class Event {
public:
    Event() = default;
    ~Event() { yaml_event_delete(&raw); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    yaml_event_t raw{};
};

void give(yaml_parser_t& parser, const RawYaml& raw) {
    if (!raw.is_wide()) { yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING); }
    const std::string_view text = raw.text();
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

class Composer {
public:
    Composer(RawYaml& raw, WholeNumbers whole) : raw_(raw), exact_(whole == WholeNumbers::exact) {
        yaml_parser_initialize(&parser_);
        give(parser_, raw_);
    }
    ~Composer() { yaml_parser_delete(&parser_); }
    Composer(const Composer&) = delete;
    Composer& operator=(const Composer&) = delete;

    /// The column of what was read last, if it began in `line`.
    [[nodiscard]] std::size_t column_in(std::size_t line) const {
        return last_.line + 1 == line ? last_.column + 1 : 0;
    }

    Value first_document() {
        for (;;) {
            Event event;
            next(event);
            if (event.raw.type == YAML_STREAM_END_EVENT) { return Value::nil(); }
            if (event.raw.type != YAML_DOCUMENT_START_EVENT) { continue; }
            const auto* version = event.raw.data.document_start.version_directive;
            if (version == nullptr || (version->major == 1 && version->minor == 1)) { break; }
            const std::size_t line = event.raw.start_mark.line;
            throw Stop{fmt::format("yaml: {}found incompatible YAML document",
                                   line != 0 ? fmt::format("line {}: ", line) : ""),
                       line + 1};
        }
        Event event;
        next(event);
        Value value = node(event, 0);
        // go-yaml reads up to the end of the document and notices faults there.
        Event end;
        next(end);
        return value;
    }

private:
    RawYaml& raw_;
    yaml_parser_t parser_{};
    std::string flow_;  ///< what closes each flow collection around what is read
    yaml_mark_t last_{};
    bool after_quoted_ = false;  ///< at last_ is a quoted scalar of several lines
    std::map<std::string, std::pair<Value, std::uint64_t>, std::less<>> anchors_;
    std::uint64_t nodes_ = 0;
    bool exact_;

    void next(Event& event) {
        if (yaml_parser_parse(&parser_, &event.raw) == 1) {
            last_ = event.raw.start_mark;
            const auto style = event.raw.data.scalar.style;
            after_quoted_ = event.raw.type == YAML_SCALAR_EVENT && last_.line != event.raw.end_mark.line &&
                            (style == YAML_DOUBLE_QUOTED_SCALAR_STYLE || style == YAML_SINGLE_QUOTED_SCALAR_STYLE);
            if (event.raw.type == YAML_SCALAR_EVENT) { refuse_newer_syntax(event); }
            return;
        }
        std::size_t line = parser_.problem_mark.line != 0 ? parser_.problem_mark.line : parser_.context_mark.line;
        if (parser_.problem_mark.line != 0 && parser_.error == YAML_SCANNER_ERROR) { ++line; }
        const std::string problem =
            parser_.problem == nullptr ? "unknown problem parsing YAML content" : parser_.problem;
        const std::string message = line != 0 ? fmt::format("yaml: line {}: {}", line, problem) : "yaml: " + problem;
        const std::string context = parser_.context == nullptr ? "" : fmt::format(" {}", parser_.context);
        if (parser_.error != YAML_READER_ERROR) {
            // What was taken for a key began before the place where its colon was missed.
            const bool is_key = context.ends_with("simple key");
            const yaml_mark_t& mark = is_key ? parser_.context_mark : parser_.problem_mark;
            const bool is_open = context.ends_with("quoted scalar") || context.find(" a flow ") != std::string::npos;
            Stop stop{message,
                      mark.line + 1,
                      mark.column + 1,
                      problem + context,
                      is_open ? parser_.context_mark : last_,
                      is_open || (after_quoted_ && parser_.error == YAML_PARSER_ERROR)};
            if (problem == "found unexpected ':'" || problem == "found unknown escape character") {
                stop.refused = parser_.problem_mark.index;
            }
            throw stop;
        }
        const std::string_view before = raw_.text().substr(0, parser_.problem_offset);
        throw Stop{message, static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
                   before.size() - (before.rfind('\n') + 1) + 1, problem};
    }

    /// What libyaml reads since go-yaml was translated from it.
    void refuse_newer_syntax(const Event& event) {
        const auto& scalar = event.raw.data.scalar;
        const std::string_view value(reinterpret_cast<const char*>(scalar.value), scalar.length);
        const RawPlace begin{last_.line, last_.column, last_.index};
        const auto numbered = [](std::size_t line) { return line != 0 ? fmt::format("line {}: ", line) : ""; };
        if (scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE && value.find('/') != std::string_view::npos) {
            if (const auto at = raw_.escaped_slash(begin, event.raw.end_mark.index)) {
                const std::string problem = "found unknown escape character";
                throw Stop{fmt::format("yaml: {}{}", numbered(at->line == 0 ? 0 : at->line + 1), problem), at->line + 1,
                           at->column + 1, problem + " while parsing a quoted scalar"};
            }
        }
        if (flow_.empty() || scalar.style != YAML_PLAIN_SCALAR_STYLE || value.find('?') == std::string_view::npos) {
            return;
        }
        if (const auto at = raw_.question_mark(begin, event.raw.end_mark.index)) {
            const std::string problem = fmt::format("did not find expected ',' or '{}'", flow_.back());
            throw Stop{fmt::format("yaml: {}{}", numbered(at->line), problem), at->line + 1, at->column + 1,
                       problem + ": a question mark ends an unquoted text here"};
        }
    }

    void count(std::uint64_t more, const Event& event) {
        nodes_ += more;
        if (nodes_ > k_nodes_max) {
            throw Stop{"yaml: document contains excessive aliasing", event.raw.start_mark.line + 1};
        }
    }

    Value node(Event& event, int depth) {
        if (depth > k_read_depth_max) {
            throw Stop{fmt::format("yaml: values are nested more than {} deep", k_read_depth_max),
                       event.raw.start_mark.line + 1};
        }
        count(1, event);
        const std::uint64_t before = nodes_;
        std::string anchor;
        Value value;
        switch (event.raw.type) {
            case YAML_ALIAS_EVENT: {
                const std::string name(view(event.raw.data.alias.anchor));
                const auto found = anchors_.find(name);
                if (found == anchors_.end()) {
                    throw Stop{fmt::format("yaml: unknown anchor '{}' referenced", name),
                               event.raw.start_mark.line + 1};
                }
                if (found->second.second == 0) {
                    throw Stop{fmt::format("yaml: anchor '{}' value contains itself", name),
                               event.raw.start_mark.line + 1};
                }
                count(found->second.second, event);
                return deep_copy(found->second.first);
            }
            case YAML_SCALAR_EVENT:
                anchor = view(event.raw.data.scalar.anchor);
                value = scalar(event);
                break;
            case YAML_SEQUENCE_START_EVENT:
                anchor = view(event.raw.data.sequence_start.anchor);
                begin(anchor);
                value = in_flow(event.raw.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE, ']',
                                [&] { return sequence(depth); });
                break;
            case YAML_MAPPING_START_EVENT:
                anchor = view(event.raw.data.mapping_start.anchor);
                begin(anchor);
                value = in_flow(event.raw.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE, '}',
                                [&] { return mapping(depth); });
                break;
            default: throw Stop{"yaml: unexpected event", event.raw.start_mark.line + 1};
        }
        if (!anchor.empty()) { anchors_[anchor] = {value, nodes_ - before + 1}; }
        return value;
    }

    void begin(const std::string& anchor) {
        if (!anchor.empty()) { anchors_[anchor] = {Value::nil(), 0}; }
    }

    template <typename Read>
    Value in_flow(bool is_flow, char close, const Read& read) {
        if (is_flow) { flow_ += close; }
        Value value = read();
        if (is_flow) { flow_.pop_back(); }
        return value;
    }

    Value sequence(int depth) {
        List items;
        for (;;) {
            Event event;
            next(event);
            if (event.raw.type == YAML_SEQUENCE_END_EVENT) { return Value::list(std::move(items)); }
            items.push_back(node(event, depth + 1));
        }
    }

    Value mapping(int depth) {
        Map members;
        for (;;) {
            Event event;
            next(event);
            if (event.raw.type == YAML_MAPPING_END_EVENT) { return Value::map(std::move(members)); }
            const bool merge = event.raw.type == YAML_SCALAR_EVENT && view(event.raw.data.scalar.value) == "<<" &&
                               (event.raw.data.scalar.plain_implicit != 0 ||
                                view(event.raw.data.scalar.tag) == "tag:yaml.org,2002:merge");
            const std::size_t line = event.raw.start_mark.line + 1;
            const std::string key = merge ? "" : key_text(event, depth);
            count(key.size() / k_node_bytes, event);
            Event member;
            next(member);
            Value value = node(member, depth + 1);
            if (merge) {
                merge_into(members, value, line);
            } else {
                members[key] = std::move(value);
            }
        }
    }

    static void merge_into(Map& members, const Value& value, std::size_t line) {
        if (value.is_map()) {
            for (const auto& [key, member] : value.members()) { members[key] = member; }
            return;
        }
        if (!value.is_list()) { throw Stop{"yaml: map merge requires map or sequence of maps as the value", line}; }
        for (auto item = value.items().rbegin(); item != value.items().rend(); ++item) {
            if (!item->is_map()) { throw Stop{"yaml: map merge requires map or sequence of maps as the value", line}; }
            merge_into(members, *item, line);
        }
    }

    /// Keys become texts, as JSON has no others.
    std::string key_text(Event& event, int depth) {
        const std::size_t line = event.raw.start_mark.line + 1;
        if (event.raw.type == YAML_SCALAR_EVENT && plain(event)) {
            const std::string_view text = view(event.raw.data.scalar.value);
            const Scalar resolved = resolve_scalar(text);
            count(1, event);
            std::string key = raw_.restored(text);
            switch (resolved.kind) {
                case Resolved::null: throw Stop{"Unsupported map key of type: invalid, key: <nil>", line};
                case Resolved::boolean: key = resolved.truth ? "true" : "false"; break;
                case Resolved::integer: key = std::to_string(resolved.integer); break;
                case Resolved::uint: throw Stop{"Unsupported map key of type: uint64", line};
                case Resolved::real: {
                    key = format_real(as_single(resolved.real), 'g', -1);
                    if (key == "+Inf") { key = ".inf"; }
                    if (key == "-Inf") { key = "-.inf"; }
                    if (key == "NaN") { key = ".nan"; }
                    break;
                }
                default: break;
            }
            if (const auto name = view(event.raw.data.scalar.anchor); !name.empty()) {
                anchors_[std::string(name)] = {Value::string(key), 1};
            }
            return key;
        }
        const Value value = node(event, depth + 1);
        if (!value.is_text()) { throw Stop{fmt::format("invalid map key: {}", type_name(value)), line}; }
        return value.text();
    }

    static bool plain(const Event& event) {
        const std::string_view tag = view(event.raw.data.scalar.tag);
        return tag.empty() && event.raw.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    }

    static Value number(double value, std::size_t line) {
        if (!std::isfinite(value)) {
            throw Stop{fmt::format("json: unsupported value: {}", format_real(value, 'g', -1)), line};
        }
        return Value::real(value);
    }

    Value scalar(const Event& event) const {
        const std::size_t line = event.raw.start_mark.line + 1;
        const std::string text = raw_.restored(
            {reinterpret_cast<const char*>(event.raw.data.scalar.value), event.raw.data.scalar.length});
        std::string_view tag = view(event.raw.data.scalar.tag);
        if (tag.starts_with(k_long_tag)) { tag.remove_prefix(k_long_tag.size()); }
        if (tag == "binary") {
            const auto bytes = base::from_base64(text);
            if (!bytes) { throw Stop{"yaml: !!binary value contains invalid base64 data", line}; }
            return Value::string(utf8_text(*bytes));
        }
        if (tag == "str" || (tag.empty() && event.raw.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)) {
            return Value::string(text);
        }
        const bool known =
            tag.empty() || tag == "int" || tag == "float" || tag == "bool" || tag == "null" || tag == "timestamp";
        if (!known) { return Value::string(text); }
        const Scalar resolved = resolve_scalar(text);
        if (!tag.empty() && !fits(tag, resolved.kind)) {
            throw Stop{
                fmt::format("yaml: cannot decode !!{} `{}` as a !!{}", tag_of(resolved.kind), base::escape(text), tag),
                line};
        }
        switch (resolved.kind) {
            case Resolved::null: return Value::nil();
            case Resolved::boolean: return Value::boolean(resolved.truth);
            case Resolved::integer:
                return exact_ ? Value::integer(resolved.integer, Type::int64)
                              : Value::real(static_cast<double>(resolved.integer));
            case Resolved::uint: {
                const auto number = static_cast<std::uint64_t>(resolved.integer);
                return exact_ ? Value::uint(number) : Value::real(static_cast<double>(number));
            }
            case Resolved::real: return number(resolved.real, line);
            default: return Value::string(text);
        }
    }

    static std::string_view tag_of(Resolved kind) {
        switch (kind) {
            case Resolved::null: return "null";
            case Resolved::boolean: return "bool";
            case Resolved::integer:
            case Resolved::uint: return "int";
            case Resolved::real: return "float";
            case Resolved::timestamp: return "timestamp";
            default: return "str";
        }
    }

    static bool fits(std::string_view tag, Resolved kind) {
        const bool whole = kind == Resolved::integer || kind == Resolved::uint;
        return tag_of(kind) == tag || (whole && tag == "float");
    }

    static std::string utf8_text(const std::string& bytes) {
        std::string fault;
        return read_json_text(json_quoted(bytes, false), fault).text();
    }
};

constexpr std::size_t k_yaml_shown_max = 120;

/// The nodes of the first document, with their marks.
class Nodes {
public:
    explicit Nodes(std::string_view given) : raw_(given) {
        yaml_parser_initialize(&parser_);
        give(parser_, raw_);
        loaded_ = yaml_parser_load(&parser_, &document_) == 1;
    }
    ~Nodes() {
        if (loaded_) { yaml_document_delete(&document_); }
        yaml_parser_delete(&parser_);
    }
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    const yaml_node_t* root() { return loaded_ ? yaml_document_get_root_node(&document_) : nullptr; }

    /// The member or item `step` of `node`; null if there is none. Of equal keys the last.
    const yaml_node_t* below(const yaml_node_t& node, const std::string& step) {
        if (node.type == YAML_SEQUENCE_NODE) {
            std::size_t index = 0;
            for (const auto* item = node.data.sequence.items.start; item < node.data.sequence.items.top; ++item) {
                if (std::to_string(index++) == step) { return yaml_document_get_node(&document_, *item); }
            }
            return nullptr;
        }
        if (node.type != YAML_MAPPING_NODE) { return nullptr; }
        const yaml_node_t* found = nullptr;
        for (const auto* pair = node.data.mapping.pairs.start; pair < node.data.mapping.pairs.top; ++pair) {
            const yaml_node_t* key = yaml_document_get_node(&document_, pair->key);
            if (key == nullptr || key->type != YAML_SCALAR_NODE) { continue; }
            const std::string name = raw_.restored(
                {reinterpret_cast<const char*>(key->data.scalar.value), key->data.scalar.length});
            if (base::to_lower(name) == base::to_lower(step)) {
                found = yaml_document_get_node(&document_, pair->value);
            }
        }
        return found;
    }

private:
    RawYaml raw_;
    yaml_parser_t parser_{};
    yaml_document_t document_{};
    bool loaded_ = false;
};

}  // namespace

Value read_yaml_text(std::string_view text, YamlFault& fault, WholeNumbers whole) {
    RawYaml raw(text);
    for (int retries = 0;; ++retries) {
        Composer composer(raw, whole);
        try {
            return composer.first_document();
        } catch (const Stop& stop) {
            if (stop.refused && retries < k_retries_max && raw.hide_refused(*stop.refused)) { continue; }
            fault.message = stop.message;
            fault.problem = stop.problem.empty() ? stop.message : stop.problem;
            if (fault.problem.starts_with("yaml: ")) { fault.problem.erase(0, 6); }
            fault.line = stop.line;
            fault.column = stop.column != 0 ? stop.column : composer.column_in(stop.line);
            if (stop.is_open) {
                fault.open_line = stop.open.line + 1;
                fault.open_column = stop.open.column + 1;
            }
            return Value::nil();
        }
    }
}

Position find_yaml_place(std::string_view text, const std::vector<std::string>& path) {
    Nodes nodes(text);
    const yaml_node_t* node = nodes.root();
    if (node == nullptr) { return {"", 0, 0}; }
    for (const auto& step : path) {
        const yaml_node_t* next = nodes.below(*node, step);
        if (next == nullptr) { break; }
        node = next;
    }
    return {"", node->start_mark.line + 1, node->start_mark.column + 1};
}

std::string open_text(const YamlFault& fault, const Position& begin) {
    if (fault.open_line == 0 || fault.open_line == fault.line) { return ""; }
    return "; what is not closed may begin at " + begin.to_string();
}

Error yaml_error(std::string code, const YamlFault& fault, const std::string& file, std::string_view text) {
    const Position begin{file, fault.open_line, fault.open_column};
    Error error(Exit::data, std::move(code), base::escape(fault.problem) + open_text(fault, begin));
    error.at(Position{file, fault.line, fault.column}).hint("correct the YAML");
    const auto lines = base::split(text, '\n');
    if (fault.line > 0 && fault.line <= lines.size()) {
        error.detail("found", base::escape(lines[fault.line - 1].substr(0, k_yaml_shown_max)));
    }
    return error;
}

}  // namespace kmm::recipe::tmpl
