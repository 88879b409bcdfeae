// SPDX-License-Identifier: Apache-2.0
#include "value/reader.hpp"

#include <algorithm>

#include "value/text_index.hpp"

namespace kmm::value {

std::vector<Document>
read_any(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits) {
    const auto body = without_bom(text);
    const auto first = body.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos || (body[first] != '{' && body[first] != '[')) {
        return read_yaml(text, file, diagnostics, limits);
    }
    Diagnostics json_faults;
    auto documents = read_json(text, file, json_faults, limits);
    const bool syntax = !json_faults.empty() && json_faults.back().code == "json-syntax";
    if (syntax) {
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

}  // namespace kmm::value
