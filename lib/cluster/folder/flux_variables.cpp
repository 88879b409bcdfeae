// SPDX-License-Identifier: Apache-2.0
// Source: fluxcd/pkg kustomize/kustomize_varsub.go and envsubst/parse.
#include "cluster/folder/flux_variables.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "value/scalar.hpp"
#include "value/text_index.hpp"

namespace kmm::cluster {

namespace {

constexpr std::string_view k_name_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
constexpr std::string_view k_switch = "kustomize.toolkit.fluxcd.io/substitute";

class Replacing {
public:
    Replacing(std::string_view text, const FluxVariables& variables)
        : index_(text), text_(text), variables_(variables) {}

    void replace_in(value::Node& node) {
        for (auto& member : node.members()) {
            if (auto key = replaced(member.key, member.key_mark)) { member.key = std::move(*key); }
            replace_in(member.value);
        }
        for (auto& item : node.items()) { replace_in(item); }
        if (!node.is_string()) { return; }
        const auto mark = node.mark();
        auto result = replaced(node.text(), mark);
        if (!result) { return; }
        const auto at = index_.offset(mark);
        constexpr std::string_view k_not_plain = "\"'|>&!";
        const bool is_plain = at < text_.size() && k_not_plain.find(text_[at]) == std::string_view::npos;
        node = is_plain ? value::resolve_plain(*result).node : value::Node(std::move(*result));
        node.set_mark(mark);
    }

    [[nodiscard]] std::map<std::string, value::Mark> unknown() && { return std::move(unknown_); }

private:
    /// nullopt if there is nothing to replace.
    std::optional<std::string> replaced(std::string_view from, value::Mark mark) {
        if (from.find("${") == std::string_view::npos && from.find("$$") == std::string_view::npos) {
            return std::nullopt;
        }
        std::string into;
        const auto last_end = from.rfind('}');  // behind it no variable ends, and none is looked for
        const auto* const end_of_last = last_end == std::string_view::npos ? from.data() : from.data() + last_end;
        while (!from.empty()) {
            const auto dollar = std::min(from.find('$'), from.size());
            into.append(from.substr(0, dollar));
            from.remove_prefix(dollar);
            if (from.starts_with("$$")) {
                into.push_back('$');
                from.remove_prefix(2);
            } else if (from.starts_with("${") && from.data() < end_of_last) {
                const auto end = from.find('}');
                into.append(value_of(from.substr(2, end - 2), mark));
                from.remove_prefix(end + 1);
            } else {
                into.append(from.substr(0, 1));
                from.remove_prefix(std::min<std::size_t>(1, from.size()));
            }
        }
        return into;
    }

    /// Of what stands in the braces.
    std::string value_of(std::string_view inner, value::Mark mark) {
        const auto name = inner.substr(0, std::min(inner.find_first_not_of(k_name_characters), inner.size()));
        auto rest = inner.substr(name.size());
        const auto found = variables_.values.find(std::string(name));
        const bool has_default = rest.starts_with(":=") || rest.starts_with(":-") || rest.starts_with('=');
        if (found != variables_.values.end() && (rest.empty() || has_default) &&
            !(has_default && found->second.empty())) {
            return found->second;
        }
        const auto fallback = has_default ? rest.substr(rest.starts_with('=') ? 1 : 2) : std::string_view();
        if (has_default && fallback.find('$') == std::string_view::npos) { return std::string(fallback); }
        if (found == variables_.values.end() || !rest.empty()) { unknown_.emplace(name.empty() ? inner : name, mark); }
        return {};
    }

    value::TextIndex index_;
    std::string_view text_;
    const FluxVariables& variables_;
    std::map<std::string, value::Mark> unknown_;
};

bool is_switched_off(const value::Node& object) {
    const auto has = [&](std::string_view where) {
        const auto* node = object.find_path({"metadata", where, k_switch});
        return node != nullptr && node->text() == "disabled";
    };
    return has("labels") || has("annotations");
}

}  // namespace

FluxVariables FluxVariables::of(const value::Node& kustomization) {
    FluxVariables result;
    if (const auto* given = kustomization.find_path({"spec", "postBuild", "substitute"})) {
        for (const auto& member : given->members()) {
            auto text = member.value.text();
            std::erase(text, '\n');
            result.values.emplace(member.key, std::move(text));
        }
    }
    const auto* from = kustomization.find_path({"spec", "postBuild", "substituteFrom"});
    result.has_others = from != nullptr && !from->items().empty();
    return result;
}

std::map<std::string, value::Mark> replace_variables(value::Node& object, std::string_view text,
                                                     const FluxVariables& variables) {
    if (is_switched_off(object)) { return {}; }
    Replacing replacing(value::without_bom(text), variables);
    replacing.replace_in(object);
    return std::move(replacing).unknown();
}

}  // namespace kmm::cluster
