// SPDX-License-Identifier: Apache-2.0
// Source: fluxcd/pkg kustomize/kustomize_varsub.go; goyaml.v2 emitterc.go (yaml_emitter_analyze_scalar).
#include "cluster/folder/flux_variables.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/clean_path.hpp"
#include "base/text.hpp"
#include "cluster/folder/envsubst.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::cluster {

namespace {

constexpr std::string_view k_switch = "kustomize.toolkit.fluxcd.io/substitute";
constexpr std::size_t k_object_max = std::size_t{64} << 20U;  // bytes of texts with variables in it, replaced
constexpr std::size_t k_source_max = std::size_t{1} << 20U;   // an object of an API server is not longer

constexpr std::size_t k_shown_max = 80;

/// How Flux writes a text that has a variable in it, which no plain scalar of another type has.
enum class FluxScalar { plain, single_quoted, double_quoted, literal };

FluxScalar scalar_form(std::string_view text) {
    const auto is_blank_at = [&](std::size_t i) {
        return i >= text.size() || text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r';
    };
    const bool is_multiline = text.find('\n') != std::string_view::npos;
    const auto is_special = [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && c != '\n') || byte == 0x7f;
    };
    const bool has_special = std::any_of(text.begin(), text.end(), is_special);
    if (is_multiline) {
        const bool is_literal = !has_special && text.find(" \n") == std::string_view::npos && !text.ends_with(' ');
        return is_literal ? FluxScalar::literal : FluxScalar::double_quoted;
    }
    if (has_special) { return FluxScalar::double_quoted; }
    bool is_plain = !is_blank_at(0) && !is_blank_at(text.size() - 1) && !text.starts_with("---") &&
                    !text.starts_with("...") && std::string_view("#,[]{}&*!|>'\"%@`").find(text[0]) ==
                                                    std::string_view::npos &&
                    !(std::string_view("-?:").find(text[0]) != std::string_view::npos && is_blank_at(1));
    for (std::size_t i = 1; i < text.size() && is_plain; ++i) {
        is_plain = !(text[i] == ':' && is_blank_at(i + 1)) && !(text[i] == '#' && is_blank_at(i - 1));
    }
    return is_plain ? FluxScalar::plain : FluxScalar::single_quoted;
}

std::string written_as(FluxScalar form, const std::string& text) {
    switch (form) {
        case FluxScalar::single_quoted: {
            std::string result;
            for (const char c : text) { result.append(c == '\'' ? 2 : 1, c); }
            return "'" + result + "'";
        }
        case FluxScalar::double_quoted: return value::to_json(value::Node(text));
        case FluxScalar::plain:
        case FluxScalar::literal: break;
    }
    return text;
}

void mark_all(value::Node& node, value::Mark mark) {
    node.set_mark(mark);
    for (auto& item : node.items()) { mark_all(item, mark); }
    for (auto& member : node.members()) {
        member.key_mark = mark;
        mark_all(member.value, mark);
    }
}

class Replacing {
public:
    explicit Replacing(const FluxVariables& variables) : variables_(variables) {}

    void replace_in(value::Node& object) {
        constexpr std::array<std::string_view, 3> k_data = {"data", "stringData", "binaryData"};
        for (auto& member : object.members()) {
            is_in_data_ = std::find(k_data.begin(), k_data.end(), member.key) != k_data.end();
            replace_member(member);
        }
        is_in_data_ = false;
        if (!object.is_mapping()) { replace_below(object, false); }
    }

    [[nodiscard]] ReplacedVariables result() && { return std::move(result_); }

private:
    void replace_member(value::Member& member) {
        if (has_variable(member.key)) { member.key = replaced(member.key, member.key_mark); }
        replace_below(member.value, false);
    }

    void replace_below(value::Node& node, bool is_item) {
        for (auto& member : node.members()) { replace_member(member); }
        for (auto& item : node.items()) { replace_below(item, true); }
        if (node.is_string() && has_variable(node.text())) { replace_text(node, is_item); }
    }

    static bool has_variable(std::string_view text) {
        return text.find("${") != std::string_view::npos || text.find("$$") != std::string_view::npos;
    }

    void replace_text(value::Node& node, bool is_item) {
        const auto mark = node.mark();
        const auto form = scalar_form(node.text());
        auto text = replaced(written_as(form, node.text()), mark);
        if (form == FluxScalar::literal) {
            node = value::Node(std::move(text));
            return node.set_mark(mark);
        }
        Diagnostics faults;
        auto documents = value::read_yaml(fmt::format("{}{}\n", is_item ? "- " : "x: ", text), "", faults);
        auto* root = documents.size() == 1 ? &documents.front().root : nullptr;
        const bool is_read =
            root != nullptr && faults.empty() && (is_item ? root->items().size() : root->members().size()) == 1;
        if (!is_read) {
            // With the value that the cluster may have it is.
            if (variables_.has_others && is_incomplete_) { return; }
            return fail(fmt::format("'{}' is not a YAML value", base::escape(text.substr(0, k_shown_max))), true, mark);
        }
        node = is_item ? std::move(root->items().front()) : std::move(root->members().front().value);
        mark_all(node, mark);
        if (!node.is_string()) { result_.no_texts.push_back(mark); }
    }

    std::string replaced(std::string_view from, value::Mark mark) {
        auto made = substitute(from, [&](std::string_view name) -> std::optional<std::string_view> {
            const auto found = variables_.values.find(std::string(name));
            return found == variables_.values.end() ? std::nullopt : std::optional<std::string_view>(found->second);
        });
        for (const auto& name : made.unknown) {
            const auto at = result_.unknown.try_emplace(name, ReplacedVariables::Unknown{mark, is_in_data_}).first;
            at->second.is_in_data = at->second.is_in_data && is_in_data_;
        }
        is_incomplete_ = !made.unknown.empty();
        size_ += made.text.size();
        if (!made.fault.empty()) { fail(std::move(made.fault), made.is_refused, mark); }
        if (size_ > k_object_max) {
            fail("the result is too long", false, mark);
            return {};
        }
        return std::move(made.text);
    }

    void fail(std::string fault, bool is_refused, value::Mark mark) {
        if (!result_.fault.empty()) { return; }
        result_.fault = std::move(fault);
        result_.is_refused = is_refused;
        result_.fault_mark = mark;
    }

    const FluxVariables& variables_;
    bool is_in_data_ = false;
    bool is_incomplete_ = false;  ///< the text that was replaced last has a variable without a value
    std::size_t size_ = 0;
    ReplacedVariables result_;
};

bool is_switched_off(const value::Node& object) {
    const auto has = [&](std::string_view where) {
        const auto* node = object.find_path({"metadata", where, k_switch});
        return node != nullptr && node->text() == "disabled";
    };
    return has("labels") || has("annotations");
}

std::string without_breaks(std::string text) {
    std::erase(text, '\n');
    return text;
}

/// What holds for both: values on which they agree.
void keep_agreed(FluxSources::Values& values, const FluxSources::Values& others) {
    for (auto& [name, text] : values) {
        const auto other = others.find(name);
        if (other == others.end() || other->second != text) { text.reset(); }
    }
    for (const auto& [name, text] : others) { values.try_emplace(name, std::nullopt); }
}

}  // namespace

FluxSources FluxSources::among(const std::vector<std::string>& files, const std::vector<Reference>& wanted) {
    FluxSources result;
    if (wanted.empty()) { return result; }
    for (const auto& file : files) {
        if (file.ends_with(".gz")) { continue; }
        try {
            TextSource source(file);
            const auto front = source.front();
            const bool may_hold = front.find("ConfigMap") != std::string_view::npos ||
                                  front.find("Secret") != std::string_view::npos;
            if (!may_hold || source.size().value_or(k_source_max) >= k_source_max) { continue; }
            const auto text = source.whole();
            Diagnostics faults;
            if (!text) { continue; }
            for (const auto& document : value::read_any(*text, file, faults)) {
                result.add(document.root, file, wanted);
            }
        } catch (const Error&) {
            // Files that are read as documents tell why they cannot be read.
        }
    }
    return result;
}

void FluxSources::add(const value::Node& object, const std::string& file, const std::vector<Reference>& wanted) {
    if (const auto* items = object.find("items"); items != nullptr && object.get_string({"kind"}) == "List") {
        for (const auto& item : items->items()) { add(item, file, wanted); }
    }
    const Reference own{object.get_string({"kind"}), object.get_string({"metadata", "name"})};
    if (object.get_string({"apiVersion"}) != "v1" || std::find(wanted.begin(), wanted.end(), own) == wanted.end()) {
        return;
    }
    const bool is_secret = own.kind == "Secret";
    const bool is_encrypted = object.find("sops") != nullptr;
    Found found{base::directory_of(file), object.get_string({"metadata", "namespace"}), {}};
    const auto put = [&](std::string_view member, bool is_coded) {
        const auto* data = object.find(member);
        if (data == nullptr) { return; }
        for (const auto& [key, mark, given] : data->members()) {
            auto text = given.is_string() ? std::optional(given.text()) : std::nullopt;
            if (text && is_coded) { text = base::from_base64(*text); }
            const bool is_certain =
                text && !is_encrypted && text->find("${") == std::string::npos && base::is_utf8(*text);
            found.values[key] = is_certain ? std::optional(without_breaks(*text)) : std::nullopt;
        }
    };
    put("data", is_secret);
    if (is_secret) { put("stringData", false); }
    found_[own].push_back(std::move(found));
}

std::optional<FluxSources::Values> FluxSources::find(const Reference& reference, const std::string& ns,
                                                     const std::string& user) {
    const auto named = found_.find(reference);
    if (named == found_.end()) { return std::nullopt; }
    std::vector<const Found*> fitting, beside;
    const auto own = base::directory_of(user);
    for (const auto& each : named->second) {
        if (!ns.empty() && !each.ns.empty() && each.ns != ns) { continue; }
        fitting.push_back(&each);
        if (each.directory == own) { beside.push_back(&each); }
    }
    if (fitting.empty()) { return std::nullopt; }
    if (beside.size() == 1) { return beside.front()->values; }
    const auto [agreed, is_new] = agreed_.try_emplace({reference, ns});
    if (is_new) {
        agreed->second = fitting.front()->values;
        for (const auto* each : fitting) { keep_agreed(agreed->second, each->values); }
    }
    return agreed->second;
}

FluxVariables FluxVariables::of(const value::Node& kustomization) {
    FluxVariables result;
    if (const auto* given = kustomization.find_path({"spec", "postBuild", "substitute"})) {
        for (const auto& member : given->members()) {
            result.values.emplace(member.key, without_breaks(member.value.text()));
        }
    }
    if (const auto* from = kustomization.find_path({"spec", "postBuild", "substituteFrom"})) {
        for (const auto& item : from->items()) {
            result.references.push_back({item.get_string({"kind"}), item.get_string({"name"})});
        }
    }
    result.has_others = !result.references.empty();
    result.ns = kustomization.get_string({"metadata", "namespace"});
    return result;
}

void FluxVariables::look_up(FluxSources& sources, const std::string& file) {
    FluxSources::Values found;
    has_others = false;
    for (const auto& reference : references) {
        const auto given = sources.find(reference, ns, file);
        if (!given) {
            // It may have other values of the same names.
            has_others = true;
            found.clear();
            continue;
        }
        for (const auto& [name, text] : *given) { found[name] = text; }
    }
    for (const auto& [name, text] : found) {
        if (text) {
            values.emplace(name, *text);
        } else if (!values.contains(name)) {
            has_others = true;
        }
    }
}

ReplacedVariables replace_variables(value::Node& object, const FluxVariables& variables) {
    if (is_switched_off(object)) { return {}; }
    Replacing replacing(variables);
    replacing.replace_in(object);
    return std::move(replacing).result();
}

}  // namespace kmm::cluster
