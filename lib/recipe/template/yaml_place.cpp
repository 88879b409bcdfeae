// SPDX-License-Identifier: Apache-2.0
// Where the parts of a YAML text stand.
#include <yaml.h>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/yaml.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::size_t k_shown_max = 120;

class Document {
public:
    explicit Document(std::string_view text) {
        yaml_parser_initialize(&parser_);
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
        loaded_ = yaml_parser_load(&parser_, &document_) == 1;
    }
    ~Document() {
        if (loaded_) { yaml_document_delete(&document_); }
        yaml_parser_delete(&parser_);
    }
    Document(const Document&) = delete;
    Document& operator=(const Document&) = delete;

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
            const std::string_view name(reinterpret_cast<const char*>(key->data.scalar.value),
                                        key->data.scalar.length);
            if (base::to_lower(name) == base::to_lower(step)) { found = yaml_document_get_node(&document_, pair->value); }
        }
        return found;
    }

private:
    yaml_parser_t parser_{};
    yaml_document_t document_{};
    bool loaded_ = false;
};

}  // namespace

Position find_yaml_place(std::string_view text, const std::vector<std::string>& path) {
    Document document(text);
    const yaml_node_t* node = document.root();
    if (node == nullptr) { return {"", 0, 0}; }
    for (const auto& step : path) {
        const yaml_node_t* next = document.below(*node, step);
        if (next == nullptr) { break; }
        node = next;
    }
    return {"", node->start_mark.line + 1, node->start_mark.column + 1};
}

Error yaml_error(std::string code, const YamlFault& fault, const std::string& file, std::string_view text) {
    Error error(Exit::data, std::move(code), base::escape(fault.problem));
    error.at(Position{file, fault.line, fault.column}).hint("correct the YAML");
    const auto lines = base::split(text, '\n');
    if (fault.line > 0 && fault.line <= lines.size()) {
        error.detail("found", base::escape(lines[fault.line - 1].substr(0, k_shown_max)));
    }
    return error;
}

}  // namespace kmm::recipe::tmpl
