// SPDX-License-Identifier: Apache-2.0
#include "api/wrapped.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::api {

namespace {

constexpr std::array<std::string_view, 2> k_groups{"kmm.sigs.x-k8s.io/", "hub.kmm.sigs.x-k8s.io/"};

bool is_wrapped(const value::Node& node) {
    const value::Node* version = node.find("apiVersion");
    const value::Node* metadata = node.find("metadata");
    return version != nullptr && metadata != nullptr && metadata->is_mapping() && node.find("kind") != nullptr &&
           std::any_of(k_groups.begin(), k_groups.end(),
                       [&](auto group) { return version->text().starts_with(group); });
}

bool has_text(const value::Node& node, std::string_view part) {
    return node.text().find(part) != std::string::npos ||
           std::any_of(node.items().begin(), node.items().end(),
                       [&](const value::Node& item) { return has_text(item, part); }) ||
           std::any_of(node.members().begin(), node.members().end(),
                       [&](const value::Member& member) {
                           return member.key.find(part) != std::string::npos || has_text(member.value, part);
                       });
}

/// Lets all of `node` stand at one place.
void set_marks(value::Node& node, value::Mark mark) {
    node.set_mark(mark);
    for (auto& item : node.items()) { set_marks(item, mark); }
    for (auto& member : node.members()) {
        member.key_mark = mark;
        set_marks(member.value, mark);
    }
}

/// Parameters of a Template of OpenShift. ${NAME} of others stays: KMM has variables that look the same.
class Parameters {
public:
    explicit Parameters(const value::Node& holder) {
        const value::Node* list = holder.find("parameters");
        if (holder.get_string({"kind"}) != "Template" || list == nullptr) { return; }
        for (const auto& item : list->items()) {
            const value::Node* text = item.find("value");
            const value::Node* required = item.find("required");
            const bool is_given = text != nullptr && !text->text().empty();
            const bool is_open = !item.get_string({"generate"}).empty() ||
                                 (required != nullptr && required->as_bool().value_or(false));
            texts_.emplace(item.get_string({"name"}), is_given   ? std::optional(text->text())
                                                      : is_open ? std::nullopt
                                                                : std::optional<std::string>(""));
        }
    }

    /// Puts their values into every text of `node` and the names of members. False if one has no value until somebody
    /// gives it.
    bool fill(value::Node& node) const {
        bool is_whole = true;
        for (auto& item : node.items()) { is_whole = fill(item) && is_whole; }
        for (auto& member : node.members()) {
            is_whole = fill(member.value) && is_whole;
            auto key = filled(member.key);
            if (key == member.key) { continue; }
            // Which of two members of one name counts cannot be known.
            if (!key || node.find(*key) != nullptr) {
                is_whole = false;
            } else {
                member.key = std::move(*key);
            }
        }
        if (!node.is_string()) { return is_whole; }
        const std::string& text = node.text();
        constexpr std::string_view k_begin = "${{", k_end = "}}";
        if (text.size() > k_begin.size() + k_end.size() && text.starts_with(k_begin) && text.ends_with(k_end)) {
            const auto known = texts_.find(text.substr(k_begin.size(), text.size() - k_begin.size() - k_end.size()));
            if (known != texts_.end()) {
                if (known->second) { replace(node, json(*known->second)); }
                return known->second.has_value();
            }
        }
        const auto whole = filled(text);
        if (whole && *whole != text) { replace(node, value::Node(*whole)); }
        return whole.has_value();
    }

private:
    static void replace(value::Node& node, value::Node other) {
        set_marks(other, node.mark());
        node = std::move(other);
    }

    /// `text` with their values in it, or nullopt if one has none. ${NAME} in a value stays.
    [[nodiscard]] std::optional<std::string> filled(const std::string& text) const {
        std::string result;
        std::size_t from = 0;
        for (auto at = text.find("${"); at != std::string::npos; at = text.find("${", at)) {
            const auto end = text.find('}', at);
            if (end == std::string::npos) { break; }
            const auto known = texts_.find(text.substr(at + 2, end - at - 2));
            if (known == texts_.end()) {
                at += 2;
                continue;
            }
            if (!known->second) { return std::nullopt; }
            result.append(text, from, at - from).append(*known->second);
            at = from = end + 1;
        }
        return result.append(text, from);
    }

    /// What ${{NAME}} alone becomes: JSON of any kind, else the text.
    static value::Node json(const std::string& text) {
        Diagnostics faults;
        auto documents = value::read_json(text, "", faults);
        if (documents.size() != 1 || !faults.empty()) { return {text}; }
        return std::move(documents.front().root);
    }

    std::map<std::string, std::optional<std::string>> texts_;
};

class Finder {
public:
    Finder(const value::Document& document, const value::Node& holder, std::vector<WrappedObject>& wrapped)
        : document_(document), holder_(holder), parameters_(holder), wrapped_(wrapped) {}

    void look_into(const value::Node& node, const std::string& compliance) {
        for (const auto& item : node.items()) { look_at(item, compliance); }
        const std::string own = base::to_lower(node.get_string({"complianceType"}));
        for (const auto& member : node.members()) {
            if (member.key == "object-templates-raw") { look_into_text(member.value); }
            look_at(member.value, own.empty() ? compliance : own);
        }
    }

private:
    /// A policy's list of templates as one text. What it is before its own templates are filled cannot be known.
    void look_into_text(const value::Node& node) {
        const std::string& text = node.text();
        if (std::none_of(k_groups.begin(), k_groups.end(), [&](auto group) { return text.find(group) != text.npos; })) {
            return;
        }
        Diagnostics faults;
        std::vector<value::Document> documents;
        if (text.find("{{") == std::string::npos) { documents = value::read_any(text, document_.file, faults); }
        if (documents.empty() || !faults.empty()) {
            add(value::Node::mapping({{"kind", "object-templates-raw"}}), node.mark(), "");
            return;
        }
        for (auto& document : documents) {
            const std::size_t begin = wrapped_.size();
            look_into(document.root, "");
            // Lines of the text are none of the file.
            for (auto at = begin; at < wrapped_.size(); ++at) { set_marks(wrapped_[at].document.root, node.mark()); }
        }
    }

    void look_at(const value::Node& node, const std::string& compliance) {
        if (!is_wrapped(node)) {
            look_into(node, compliance);
            return;
        }
        if (compliance == "mustnothave") { return; }
        add(node, node.mark(), compliance);
    }

    void add(const value::Node& node, value::Mark mark, const std::string& compliance) {
        const std::string kind = holder_.get_string({"kind"});
        const std::string ns = holder_.get_string({"metadata", "namespace"});
        WrappedObject found;
        found.document = value::Document{document_.file, node, document_.index, document_.written};
        found.document.root.set_mark(mark);
        found.holder = fmt::format("{} {}{}{}", base::escape(kind), base::escape(ns), ns.empty() ? "" : "/",
                                   base::escape(holder_.get_string({"metadata", "name"})));
        found.is_partial = compliance == "musthave";
        found.is_template = !is_wrapped(node) || !parameters_.fill(found.document.root) ||
                            has_text(found.document.root, "{{");
        wrapped_.push_back(std::move(found));
    }

    const value::Document& document_;
    const value::Node& holder_;
    Parameters parameters_;
    std::vector<WrappedObject>& wrapped_;
};

}  // namespace

void find_wrapped(const value::Document& document, const value::Node& holder, std::vector<WrappedObject>& wrapped) {
    Finder(document, holder, wrapped).look_into(holder, "");
}

}  // namespace kmm::api
