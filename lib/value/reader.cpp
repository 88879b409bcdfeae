// SPDX-License-Identifier: Apache-2.0
#include "value/reader.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "value/object_stream.hpp"
#include "value/text_index.hpp"

namespace kmm::value {

namespace {

/// Behind the JSON object or list that opens at `start`; nullopt if it is not closed.
std::optional<std::size_t> find_root_end(std::string_view text, std::size_t start) {
    std::size_t depth = 0;
    for (std::size_t at = start; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '"') {
            const auto end = find_quoted_end(text, at);
            if (!end) { return std::nullopt; }
            at = *end - 1;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return at + 1;
        }
    }
    return std::nullopt;
}

/// Where the objects of "{...}{...}" start and end, as kubectl takes them too; empty if the text is anything else.
std::vector<std::pair<std::size_t, std::size_t>> json_roots(std::string_view text) {
    std::vector<std::pair<std::size_t, std::size_t>> roots;
    for (std::size_t at = text.find_first_not_of(" \t\r\n"); at != std::string_view::npos;
         at = text.find_first_not_of(" \t\r\n", at)) {
        if (text[at] != '{') { return {}; }
        const auto end = find_root_end(text, at);
        if (!end) { return {}; }
        roots.emplace_back(at, *end);
        at = *end;
    }
    return roots;
}

Mark moved(Mark mark, Mark start) {
    if (mark.line == 0) { return mark; }
    if (mark.line == 1) { mark.column += start.column - 1; }
    mark.line += start.line - 1;
    return mark;
}

void move_marks(Node& node, Mark start) {
    node.set_mark(moved(node.mark(), start));
    for (auto& member : node.members()) {
        member.key_mark = moved(member.key_mark, start);
        move_marks(member.value, start);
    }
    for (auto& item : node.items()) { move_marks(item, start); }
}

/// The objects of a text that holds several, one behind the other.
std::vector<Document> read_json_objects(std::string_view body,
                                        const std::vector<std::pair<std::size_t, std::size_t>>& roots,
                                        std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits) {
    const TextIndex index(body);
    std::vector<Document> result;
    for (const auto& [start, end] : roots) {
        const Mark mark = index.mark(start);
        Diagnostics faults;
        for (auto& document : read_json(body.substr(start, end - start), file, faults, limits)) {
            move_marks(document.root, mark);
            document.index = result.size();
            result.push_back(std::move(document));
        }
        for (auto& one : faults) {
            if (one.position) {
                const Mark place = moved(Mark{static_cast<std::uint32_t>(one.position->line),
                                              static_cast<std::uint32_t>(one.position->column)},
                                         mark);
                one.position->line = place.line;
                one.position->column = place.column;
            }
            diagnostics.push_back(std::move(one));
        }
    }
    return result;
}

/// Keeps whole documents.
class DocumentList final : public ObjectSink {
public:
    [[nodiscard]] const Shape* shape(const Node& /*object*/, const Node* /*list*/) override { return nullptr; }
    [[nodiscard]] bool take_item(Document& /*item*/, const Node& /*list*/) override { return false; }
    void take_document(const Document& document) override { documents_.push_back(document); }
    [[nodiscard]] std::vector<Document> take() && { return std::move(documents_); }

private:
    std::vector<Document> documents_;
};

/// The documents of a YAML text about which nothing is in doubt: many times faster than read_yaml, which alone knows
/// what is wrong with any other. No document of such a text has more values than bytes.
std::optional<std::vector<Document>> read_plain_yaml(std::string_view body, std::string_view file,
                                                     const ReadLimits& limits) {
    constexpr std::size_t k_bytes_max = std::size_t{1} << 20U;
    if (body.size() > std::min({k_bytes_max, limits.bytes_max, limits.nodes_max})) { return std::nullopt; }
    DocumentList documents;
    std::size_t at = 0;
    const auto doubt = stream_yaml(
        [&](char* into, std::size_t size) {
            const auto count = body.copy(into, size, at);
            at += count;
            return count;
        },
        file, documents, limits);
    if (doubt) { return std::nullopt; }
    return std::move(documents).take();
}

}  // namespace

std::vector<Document>
read_any(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits) {
    const auto body = without_bom(text);
    // A CR alone ends a line of YAML, and readers here count lines by LF. Beside an LF it may be part of a text.
    if (body.find('\r') != std::string_view::npos && body.find('\n') == std::string_view::npos) {
        std::string lines(body);
        std::replace(lines.begin(), lines.end(), '\r', '\n');
        return read_any(lines, file, diagnostics, limits);
    }
    const auto first = body.find_first_not_of(" \t\r\n");
    const auto begins_with = [&](std::string_view what) { return body.substr(first).starts_with(what); };
    if (first == std::string_view::npos || (body[first] != '{' && body[first] != '[') || begins_with("{{") ||
        begins_with("{%")) {  // JSON begins with neither, templates do
        if (auto documents = read_plain_yaml(body, file, limits)) { return std::move(*documents); }
        return read_yaml(text, file, diagnostics, limits);
    }
    Diagnostics json_faults;
    auto documents = read_json(text, file, json_faults, limits);
    const bool syntax = !json_faults.empty() && json_faults.back().code == "json-syntax";
    if (syntax) {
        if (const auto roots = json_roots(body); roots.size() > 1) {
            return read_json_objects(body, roots, file, diagnostics, limits);
        }
        Diagnostics yaml_faults;
        auto yaml_documents = read_yaml(text, file, yaml_faults, limits);
        const bool is_yaml = std::none_of(yaml_faults.begin(), yaml_faults.end(), [](const Diagnostic& d) {
            return d.code == "yaml-syntax" || d.code == "bad-key";
        });
        if (is_yaml && !yaml_documents.empty()) {
            diagnostics.insert(diagnostics.end(), yaml_faults.begin(), yaml_faults.end());
            return yaml_documents;
        }
    }
    diagnostics.insert(diagnostics.end(), json_faults.begin(), json_faults.end());
    return documents;
}

std::vector<Document> read_objects(std::string_view text, std::string_view file, Diagnostics& diagnostics) {
    ReadLimits limits;
    limits.is_split_first = true;
    return read_any(text, file, diagnostics, limits);
}

}  // namespace kmm::value
