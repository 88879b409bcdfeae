// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/versions/applications.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

/// "expected X, found Y" of a part of an answer.
std::string answer_fault(std::string_view expected, const value::Document& document, const Node& found) {
    const bool is_nested = found.is_mapping() || found.is_sequence();
    return fmt::format("expected {}, found {}", expected,
                       is_nested         ? fmt::format("a {}", value::kind_name(found.kind()))
                       : found.is_null() ? std::string("null")
                                         : fmt::format("'{}'", base::escape(document.text_of(found))));
}

std::string read_text(const value::Document& document, const Node& object, const char* member, std::string& fault) {
    const Node* found = object.find(member);
    if (found == nullptr || found->is_null()) { return ""; }
    if (found->is_string()) { return found->text(); }
    fault = fmt::format("{}: {}", member, answer_fault("a string", document, *found));
    return "";
}

std::optional<VersionBound> read_bound(const value::Document& document, const Node& object, const char* member,
                                       std::string& fault) {
    const auto text = read_text(document, object, member, fault);
    if (text.empty()) { return std::nullopt; }
    auto bound = VersionBound::parse(text);
    if (!bound) { fault = fmt::format("{}: expected {}, found '{}'", member, k_bound_form, base::escape(text)); }
    return bound;
}

std::string read_reply(const value::Document& document, const Node& object, ProgramReply& reply) {
    if (!object.is_mapping()) { return answer_fault("a JSON object", document, object); }
    static const std::vector<std::string> known{"name", "supported", "reason", "minimum", "maximum"};
    for (const auto& member : object.members()) {
        // A bound under another name is no bound.
        if (std::find(known.begin(), known.end(), member.key) != known.end()) { continue; }
        return fmt::format("field {} is not known, expected one of {}", base::escape(member.key),
                           base::join(known, ", "));
    }
    std::string fault;
    if (auto name = read_text(document, object, "name", fault); !name.empty()) { reply.name = std::move(name); }
    reply.reason = read_text(document, object, "reason", fault);
    reply.supported.minimum = read_bound(document, object, "minimum", fault);
    reply.supported.maximum = read_bound(document, object, "maximum", fault);
    const Node* supported = object.find("supported");
    if (supported == nullptr) {
        if (!reply.supported.minimum && !reply.supported.maximum && fault.empty()) {
            fault = "supported is missing, expected true or false";
        }
    } else if (const auto flag = supported->as_bool()) {
        reply.is_supported = *flag;
    } else {
        fault = "supported: " + answer_fault("true or false", document, *supported);
    }
    return fault;
}

}  // namespace

std::optional<VersionBound> VersionBound::parse(std::string_view text) {
    if (auto version = Version::parse(text)) { return VersionBound{std::move(*version), false}; }
    if (const auto minor = MinorVersion::parse(text)) {
        return VersionBound{{minor->major, minor->minor, 0, ""}, true};
    }
    return std::nullopt;
}

std::string VersionBound::text() const { return is_whole_minor ? version.line().text() : version.text(); }

bool VersionBounds::accept(const Version& version) const {
    if (minimum && version < minimum->version) { return false; }
    if (!maximum) { return true; }
    return maximum->is_whole_minor ? version.line() <= maximum->version.line() : version <= maximum->version;
}

std::string VersionBounds::text() const {
    if (minimum && maximum) { return fmt::format("{} to {}", minimum->text(), maximum->text()); }
    if (minimum) { return minimum->text() + " and later"; }
    return maximum ? maximum->text() + " and earlier" : "every version";
}

bool VersionBounds::has_any() const { return !minimum || accept(minimum->version); }

std::optional<bool> is_installed(const Application& application, const Inventory& inventory, std::string& reason) {
    const auto is_there = [&](const ObjectMeta& meta) { return application.ns.empty() || meta.ns == application.ns; };
    if (!application.release.empty()) {
        // helm uninstall --keep-history leaves revisions, the last of which is uninstalled.
        std::map<std::string, const ReleaseObject*> last;
        for (const auto& each : inventory.releases) {
            if (each.release != application.release || !is_there(each.meta)) { continue; }
            auto& place = last[each.meta.ns];
            if (place == nullptr || place->revision < each.revision) { place = &each; }
        }
        if (std::any_of(last.begin(), last.end(),
                        [](const auto& each) { return each.second->status != "uninstalled"; })) {
            return true;
        }
        reason = inventory.releases_unknown_reason();
    } else {
        const bool found = std::any_of(inventory.pods.begin(), inventory.pods.end(), [&](const auto& each) {
            return is_there(each.meta) && matches(application.selector, each.meta.labels);
        });
        if (found) { return true; }
        reason = inventory.pods_unknown_reason();
    }
    return reason.empty() ? std::optional(false) : std::nullopt;
}

ProgramAnswer read_program_answer(const std::string& program, std::string_view text) {
    ProgramAnswer answer;
    Diagnostics faults;
    const auto documents = value::read_json(text, "", faults);
    if (documents.empty() || has_errors(faults)) {
        answer.fault = base::trim(text).empty()
                           ? "expected JSON, found nothing"
                           : fmt::format("expected JSON, found '{}'", base::escape(base::trim(text).substr(0, 60)));
        return answer;
    }
    const auto& document = documents.front();
    const auto& root = document.root;
    const auto take = [&](const Node& object) {
        ProgramReply reply;
        reply.program = reply.name = program;
        if (auto fault = read_reply(document, object, reply); !fault.empty()) { answer.fault = std::move(fault); }
        else { answer.replies.push_back(std::move(reply)); }
    };
    if (!root.is_sequence()) { take(root); }
    else if (root.items().empty()) { answer.fault = "expected an answer, found an empty list"; }
    else {
        for (const auto& item : root.items()) { take(item); }
    }
    return answer;
}

}  // namespace kmm::kubernetes
