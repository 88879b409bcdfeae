// SPDX-License-Identifier: Apache-2.0
// Source: openshift/kube-compare pkg/compare/referenceV1.go, referenceV2.go.
#include "cluster/folder/compare_reference.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "base/error.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

constexpr std::size_t k_reference_max = std::size_t{1} << 20U;  // a longer file is a dump

std::string normal(const std::string& path) { return std::filesystem::path(path).lexically_normal().native(); }

std::optional<std::string> short_text(const std::string& file) {
    try {
        TextSource source(file);
        return source.size().value_or(k_reference_max) < k_reference_max ? source.whole() : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;  // it is told when the file is read
    }
}

}  // namespace

CompareReferences CompareReferences::among(const std::vector<std::string>& files) {
    constexpr std::string_view k_name = "metadata.yaml";
    CompareReferences result;
    for (const auto& file : files) {
        if (file.substr(file.rfind('/') + 1) != k_name) { continue; }
        const auto text = short_text(file);
        if (!text) { continue; }
        Diagnostics faults;
        const auto documents = value::read_any(*text, file, faults);
        const auto* parts = documents.size() == 1 ? documents.front().root.find("parts") : nullptr;
        const bool is_reference = parts != nullptr && !parts->items().empty() &&
                                  std::all_of(parts->items().begin(), parts->items().end(), [](const auto& part) {
                                      return part.find("components") != nullptr;
                                  });
        if (!is_reference) { continue; }
        const auto name = normal(file);
        const auto directory = name.substr(0, name.size() - k_name.size());
        result.directories_.insert(directory);
        result.files_.insert(name);
        result.add_paths(directory, *parts);
        if (const auto* functions = documents.front().root.find("templateFunctionFiles")) {
            for (const auto& item : functions->items()) { result.files_.insert(normal(directory + item.text())); }
        }
    }
    return result;
}

void CompareReferences::add_paths(const std::string& directory, const value::Node& node) {
    for (const auto& item : node.items()) { add_paths(directory, item); }
    if (!node.is_mapping()) { return; }
    if (const auto path = node.get_string({"path"}); !path.empty()) { files_.insert(normal(directory + path)); }
    for (const auto& member : node.members()) { add_paths(directory, member.value); }
}

bool CompareReferences::has(const std::string& file) const {
    if (directories_.empty()) { return false; }
    const auto name = normal(file);
    if (files_.contains(name)) { return true; }
    const bool is_below = std::any_of(directories_.begin(), directories_.end(),
                                      [&](const std::string& directory) { return name.starts_with(directory); });
    if (!is_below) { return false; }
    const auto text = short_text(file);
    return text && text->find("{{") != std::string::npos;
}

}  // namespace kmm::cluster
