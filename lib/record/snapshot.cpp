// SPDX-License-Identifier: Apache-2.0
#include "record/snapshot.hpp"

#include <algorithm>
#include <array>

#include "digest/digest.hpp"
#include "record/journal.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::record {
namespace {

constexpr std::string_view k_checksum_member = ",\n  \"checksum\": \"";
constexpr std::string_view k_text_end = "\"\n}\n";
constexpr std::string_view k_snapshot_begin = "{\n  \"formatVersion\": 1,\n";
static_assert(k_format_version == 1);
constexpr std::size_t k_seal_size = k_checksum_member.size() + 64 + k_text_end.size();
constexpr std::array<std::string_view, 4> k_own_members = {"formatVersion", "serial", "payload", "checksum"};

bool is_own(std::string_view key) {
    for (const std::string_view own : k_own_members) {
        if (key == own) {
            return true;
        }
    }
    return false;
}

std::string seal_of(std::string_view body) {
    return std::string(k_checksum_member) + digest::sha256_hex(body) + std::string(k_text_end);
}

}  // namespace

std::string encode_snapshot(std::uint64_t serial, const value::Node& payload, const value::Node* previous) {
    value::Node document = value::Node::mapping();
    document.set("formatVersion", value::Node(k_format_version));
    document.set("serial", value::Node(serial));
    document.set("payload", payload);
    if (previous != nullptr) {
        for (const value::Member& member : previous->members()) {
            if (!is_own(member.key)) {
                document.set(member.key, member.value);
            }
        }
    }
    std::string text = value::to_json_pretty(document);
    text.resize(text.rfind("\n}"));
    return text + seal_of(text);
}

std::optional<ParsedSnapshot> parse_snapshot(std::string_view text, const std::string& file) {
    const std::string_view body = text.substr(0, text.size() - std::min(text.size(), k_seal_size));
    const bool sealed = !body.empty() && text.substr(body.size()) == seal_of(body);
    if (!sealed && text.substr(0, k_snapshot_begin.size()) == k_snapshot_begin) {
        return std::nullopt;
    }
    Diagnostics faults;
    std::vector<value::Document> documents = value::read_json(text, file, faults);
    if (has_errors(faults) || documents.size() != 1 || !documents.front().root.is_mapping()) {
        return std::nullopt;
    }
    value::Node& document = documents.front().root;
    const value::Node* version = document.find("formatVersion");
    if (version != nullptr && version->as_int().value_or(0) > k_format_version) {
        check_format_version(document, file);  // throws; a newer program may seal its text in another way
    }
    const value::Node* serial = document.find("serial");
    const value::Node* payload = document.find("payload");
    if (!sealed || version == nullptr || version->as_int() != k_format_version || serial == nullptr ||
        !serial->as_uint() || payload == nullptr) {
        return std::nullopt;
    }
    ParsedSnapshot parsed;
    parsed.serial = *serial->as_uint();
    parsed.payload = *payload;
    parsed.document = std::move(document);
    return parsed;
}

}  // namespace kmm::record
