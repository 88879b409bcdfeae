// SPDX-License-Identifier: Apache-2.0
// The entries of kubeconfig files before one is chosen. Internal to lib/kube.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::kube {

/// One of clusters, users or contexts.
struct ConfigEntry {
    value::Node body;       ///< the member "cluster", "user" or "context"; a mapping
    std::string file;       ///< that holds it
    value::Mark name_mark;
};
using ConfigEntries = std::map<std::string, ConfigEntry, std::less<>>;

/// All files as one.
struct MergedConfig {
    ConfigEntries clusters, users, contexts;
    std::string current_context;
    Position current_origin;         ///< of current-context, unset if no file has one
    std::vector<std::string> files;  ///< that were read
};

/// Reads `files` in order; the first that has a name wins. Files that are absent are left out, unless `must_exist`.
enum class Presence { optional, required };
[[nodiscard]] MergedConfig merge_configs(const std::vector<std::string>& files, Presence presence);

/// Typed access to the members of an entry. Errors: config "bad-kubeconfig" with the place.
class EntryReader {
public:
    explicit EntryReader(const ConfigEntry& entry) : body_(entry.body), file_(entry.file) {}
    EntryReader(const value::Node& body, std::string file) : body_(body), file_(std::move(file)) {}

    [[nodiscard]] std::string text(std::string_view key) const;  ///< "" if absent or null
    [[nodiscard]] bool flag(std::string_view key) const;
    [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
    /// A mapping, nullptr if absent or null.
    [[nodiscard]] const value::Node* mapping(std::string_view key) const;
    /// A list, nullptr if absent or null.
    [[nodiscard]] const value::Node* list(std::string_view key) const;
    /// The decoded base64 of "KEY-data", else the content of the file that KEY names, else "".
    [[nodiscard]] std::string content(std::string_view key) const;
    /// `path` against the directory of the file.
    [[nodiscard]] std::string resolve(const std::string& path) const;
    [[nodiscard]] bool has(std::string_view key) const { return !is_absent(key); }
    [[nodiscard]] Position place(std::string_view key) const;
    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    [[nodiscard]] Error fault(std::string_view key, const std::string& message) const;

private:
    [[nodiscard]] bool is_absent(std::string_view key) const;

    const value::Node& body_;
    std::string file_;
};

}  // namespace kmm::kube
