// SPDX-License-Identifier: Apache-2.0
#include "api/wrapped.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.hpp"

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
                       [&](const value::Member& member) { return has_text(member.value, part); });
}

class Finder {
public:
    Finder(const value::Document& document, const value::Node& holder, std::vector<WrappedObject>& wrapped)
        : document_(document), holder_(holder), wrapped_(wrapped) {}

    void look_into(const value::Node& node, const std::string& compliance) {
        for (const auto& item : node.items()) { look_at(item, compliance); }
        const std::string own = base::to_lower(node.get_string({"complianceType"}));
        for (const auto& member : node.members()) { look_at(member.value, own.empty() ? compliance : own); }
    }

private:
    void look_at(const value::Node& node, const std::string& compliance) {
        if (!is_wrapped(node)) {
            look_into(node, compliance);
            return;
        }
        if (compliance == "mustnothave") { return; }
        const std::string kind = holder_.get_string({"kind"});
        const std::string ns = holder_.get_string({"metadata", "namespace"});
        WrappedObject found;
        found.document = value::Document{document_.file, node, document_.index, document_.written};
        found.holder = fmt::format("{} {}{}{}", base::escape(kind), base::escape(ns), ns.empty() ? "" : "/",
                                   base::escape(holder_.get_string({"metadata", "name"})));
        found.is_partial = compliance == "musthave";
        found.is_template = has_text(node, "{{") || (kind == "Template" && holder_.find("parameters") != nullptr);
        wrapped_.push_back(std::move(found));
    }

    const value::Document& document_;
    const value::Node& holder_;
    std::vector<WrappedObject>& wrapped_;
};

}  // namespace

void find_wrapped(const value::Document& document, const value::Node& holder, std::vector<WrappedObject>& wrapped) {
    Finder(document, holder, wrapped).look_into(holder, "");
}

}  // namespace kmm::api
