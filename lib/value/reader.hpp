// SPDX-License-Identifier: Apache-2.0
// Readers of YAML and JSON text into document trees. All faults are appended to diagnostics; nothing throws for bad
// input.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::value {

/// Limits against hostile input. Exceeding one is a diagnostic "document-limit".
struct ReadLimits {
    std::size_t bytes_max = 256U << 20U;
    std::size_t depth_max = 100;
    std::size_t nodes_max = 1'000'000;  ///< per YAML document, after alias expansion
    std::size_t json_nodes_max =
        8'000'000;  ///< per JSON document: a list of 5,000 Nodes is 130 MB and 4 million values
    /// YAML is refused where kubectl, which splits a file at its --- lines before YAML is read, refuses it: a directive
    /// (%YAML), a document that begins with "...", a text behind "---". Other readers take all three.
    bool is_split_first = false;
    /// Of the keys of a YAML mapping that are equal the last one is taken, in the place of the first, as readers of Go
    /// do that are not strict. Each but the first is a "duplicate-key" all the same.
    bool is_last_taken = false;
};

/// Reads YAML (one or more documents) as Go's sigs.k8s.io/yaml does: plain y/yes/on/true are booleans, 0x1 and 010 are
/// integers, dates stay strings, duplicate keys are faults that name both lines, `<<` merges are refused, aliases are
/// expanded under the node budget, cyclic aliases refused. Empty documents are dropped. On a syntax error the documents
/// before it are returned. Codes: yaml-syntax, duplicate-key, not-utf8, document-limit, bad-key, bad-merge, bad-alias.
[[nodiscard]] std::vector<Document>
read_yaml(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits = {});

/// Reads strict JSON (RFC 8259), one document; duplicate keys are faults. Codes: json-syntax, duplicate-key, not-utf8,
/// document-limit. Positions are real lines and columns of the text.
[[nodiscard]] std::vector<Document>
read_json(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits = {});

/// JSON if the first non-space byte is '{' or '[', also several objects one behind the other, YAML otherwise (a YAML
/// flow mapping that is not JSON is read as YAML when the JSON reader refuses it and the YAML reader does not).
[[nodiscard]] std::vector<Document>
read_any(std::string_view text, std::string_view file, Diagnostics& diagnostics, const ReadLimits& limits = {});

/// As read_any, for files of objects, which kubectl splits first (ReadLimits::is_split_first). Settings, such as a
/// kubeconfig or a kustomization.yaml, are read whole by all programs: for them there is read_any.
[[nodiscard]] std::vector<Document>
read_objects(std::string_view text, std::string_view file, Diagnostics& diagnostics);

}  // namespace kmm::value
