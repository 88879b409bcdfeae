// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/metadata.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/template/format.hpp"
#include "recipe/template/unicode.hpp"
#include "recipe/template/url.hpp"
#include "recipe/template/version.hpp"
#include "recipe/template/yaml.hpp"

namespace kmm::recipe::chart {

using tmpl::Type;
using tmpl::Value;

namespace {

Error bad_chart(const std::string& file, std::string message) {
    return Error(Exit::data, "bad-chart", std::move(message)).at(Position{file, 0, 0});
}

/// Reads the members of one mapping; names of fields are matched as encoding/json does.
class Fields {
public:
    Fields(const Value& mapping, std::string path, const std::string& file)
        : mapping_(mapping), path_(std::move(path)), file_(file) {}

    const Value* find(std::string_view key) const {
        if (const auto found = mapping_.members().find(key); found != mapping_.members().end()) {
            return &found->second;
        }
        for (const auto& [name, member] : mapping_.members()) {
            if (base::to_lower(name) == base::to_lower(key)) { return &member; }
        }
        return nullptr;
    }

    void text(std::string_view key, std::string& out) const {
        if (const Value* value = find(key); value != nullptr && !value->is_nil()) { out = text_of(*value, key); }
    }

    void texts(std::string_view key, std::vector<std::string>& out) const {
        const Value* value = find(key);
        if (value == nullptr || value->is_nil()) { return; }
        if (!value->is_list()) { throw wrong(key, "a list of strings", *value); }
        out.clear();
        for (const auto& item : value->items()) { out.push_back(item.is_nil() ? "" : text_of(item, key)); }
    }

    void flag(std::string_view key, bool& out) const {
        const Value* value = find(key);
        if (value == nullptr || value->is_nil()) { return; }
        if (value->type() != Type::boolean) { throw wrong(key, "a boolean", *value); }
        out = value->as_bool();
    }

    /// The items of a list of mappings.
    template <typename Each>
    void mappings(std::string_view key, Each&& each) const {
        const Value* value = find(key);
        if (value == nullptr || value->is_nil()) { return; }
        if (!value->is_list()) { throw wrong(key, "a list", *value); }
        std::size_t index = 0;
        for (const auto& item : value->items()) {
            if (item.is_nil()) { throw bad_chart(file_, fmt::format("{} must not contain empty or null nodes", key)); }
            if (!item.is_map()) { throw wrong(key, "a list of mappings", item); }
            each(Fields(item, fmt::format("{}{}[{}].", path_, key, index++), file_));
        }
    }

    Error wrong(std::string_view key, std::string_view expected, const Value& found) const {
        return bad_chart(file_, fmt::format("{}{}: expected {}, found {}", path_, key, expected, tmpl::describe(found)))
            .hint(found.type() == Type::float64 || found.type() == Type::boolean ? "put the value in quotes" : "");
    }

private:
    std::string text_of(const Value& value, std::string_view key) const {
        const auto text = scalar_text(value);
        if (!text) { throw wrong(key, "a string", value); }
        return *text;
    }

    const Value& mapping_;
    std::string path_;
    const std::string& file_;
};

void clean(std::string& text) {
    std::string out;
    for (const char32_t rune : tmpl::runes(text)) {
        if (tmpl::is_space(rune)) {
            out += ' ';
        } else if (tmpl::is_print(rune)) {
            tmpl::append_rune(out, rune);
        }
    }
    text = std::move(out);
}

}  // namespace

std::optional<std::string> scalar_text(const Value& value) {
    if (value.is_nil()) { return ""; }
    if (value.is_text()) { return value.text(); }
    if (value.type() == Type::boolean) { return value.as_bool() ? "true" : "false"; }
    if (value.type() != Type::float64 && !value.is_int() && !value.is_uint()) { return std::nullopt; }
    const double number = value.is_int()    ? static_cast<double>(value.as_int())
                          : value.is_uint() ? static_cast<double>(value.as_uint())
                                            : value.as_real();
    const bool whole = std::trunc(number) == number && std::fabs(number) < 1e18;
    return tmpl::format_real(number, whole ? 'f' : 'g', -1);
}

Value read_chart_yaml(const std::string& text, const std::string& file) {
    tmpl::YamlFault fault;
    Value value = tmpl::read_yaml_text(text, fault);
    if (!fault.message.empty()) {
        throw Error(Exit::data, "bad-chart", base::escape(fault.message))
            .at(Position{file, fault.line, 0})
            .hint("correct the YAML");
    }
    if (!value.is_nil() && !value.is_map()) {
        throw bad_chart(file, fmt::format("expected a mapping, found {}", tmpl::describe(value)));
    }
    return value;
}

void decode_metadata(Metadata& metadata, const Value& document, const std::string& file) {
    const Fields fields(document, "", file);
    fields.text("name", metadata.name);
    fields.text("home", metadata.home);
    fields.text("version", metadata.version);
    fields.text("description", metadata.description);
    fields.text("icon", metadata.icon);
    fields.text("apiVersion", metadata.api_version);
    fields.text("condition", metadata.condition);
    fields.text("tags", metadata.tags);
    fields.text("appVersion", metadata.app_version);
    fields.text("kubeVersion", metadata.kube_version);
    fields.text("type", metadata.type);
    fields.texts("sources", metadata.sources);
    fields.texts("keywords", metadata.keywords);
    fields.flag("deprecated", metadata.deprecated);
    if (const Value* annotations = fields.find("annotations"); annotations != nullptr && !annotations->is_nil()) {
        if (!annotations->is_map()) { throw fields.wrong("annotations", "a mapping", *annotations); }
        tmpl::Map texts;
        for (const auto& [key, value] : annotations->members()) {
            const auto text = scalar_text(value);
            if (!text) { throw fields.wrong("annotations." + key, "a string", value); }
            texts[key] = Value::string(*text);
        }
        metadata.annotations = Value::map(std::move(texts), Type::string_map);
    }
    if (fields.find("maintainers") != nullptr) { metadata.maintainers.clear(); }
    fields.mappings("maintainers", [&](const Fields& one) {
        Maintainer maintainer;
        one.text("name", maintainer.name);
        one.text("email", maintainer.email);
        one.text("url", maintainer.url);
        metadata.maintainers.push_back(std::move(maintainer));
    });
    if (const Value* listed = fields.find("dependencies"); listed != nullptr) {
        metadata.dependencies.clear();
        metadata.lists_dependencies = listed->is_list();
    }
    fields.mappings("dependencies", [&](const Fields& one) {
        Dependency dependency;
        one.text("name", dependency.name);
        one.text("version", dependency.version);
        one.text("repository", dependency.repository);
        one.text("condition", dependency.condition);
        one.text("alias", dependency.alias);
        one.texts("tags", dependency.tags);
        one.flag("enabled", dependency.enabled);
        if (const Value* imports = one.find("import-values"); imports != nullptr && !imports->is_nil()) {
            if (!imports->is_list()) { throw one.wrong("import-values", "a list", *imports); }
            dependency.import_values.assign(imports->items().begin(), imports->items().end());
        }
        metadata.dependencies.push_back(std::move(dependency));
    });
}

void validate_metadata(Metadata& m, const std::string& file) {
    for (std::string* text :
         {&m.name, &m.description, &m.home, &m.icon, &m.condition, &m.tags, &m.app_version, &m.kube_version}) {
        clean(*text);
    }
    for (auto* texts : {&m.sources, &m.keywords}) {
        for (auto& text : *texts) { clean(text); }
    }
    if (m.name.empty()) { throw bad_chart(file, "name is missing"); }
    if (m.name == "." || m.name == ".." || m.name != tmpl::base_path(m.name)) {
        throw bad_chart(file, fmt::format("name: expected the name of a chart, found \"{}\"", base::escape(m.name)));
    }
    if (m.version.empty()) { throw bad_chart(file, "version is missing"); }
    if (!tmpl::parse_version(m.version)) {
        throw bad_chart(file,
                        fmt::format("version: expected a semantic version, found \"{}\"", base::escape(m.version)));
    }
    if (!m.type.empty() && m.type != "application" && m.type != "library") {
        throw bad_chart(file, fmt::format("type: expected application or library, found \"{}\"", base::escape(m.type)));
    }
    std::set<std::string> names;
    for (auto& dependency : m.dependencies) {
        for (std::string* text :
             {&dependency.name, &dependency.version, &dependency.repository, &dependency.condition}) {
            clean(*text);
        }
        const auto right = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        };
        if (!std::all_of(dependency.alias.begin(), dependency.alias.end(), right)) {
            throw bad_chart(
                file,
                fmt::format("dependency {}: the alias \"{}\" has other characters than letters, digits, '_' and '-'",
                            base::escape(dependency.name), base::escape(dependency.alias)));
        }
        const std::string& key = dependency.alias.empty() ? dependency.name : dependency.alias;
        if (!names.insert(key).second) {
            throw bad_chart(file, fmt::format("more than one dependency with name or alias \"{}\"", base::escape(key)));
        }
    }
}

Value metadata_value(const Metadata& m, bool is_root) {
    auto record = std::make_shared<tmpl::Record>();
    record->type = "struct { chart.Metadata; IsRoot bool }";
    const auto field = [&](std::string name, std::string json, Value value) {
        record->fields.push_back({std::move(name), std::move(json), true, std::move(value)});
    };
    const auto text = [&](std::string name, std::string json, const std::string& value) {
        field(std::move(name), std::move(json), Value::string(value));
    };
    const auto texts = [](const std::vector<std::string>& list) {
        return list.empty() ? Value::none(Type::strings) : Value::strings(list);
    };
    text("Name", "name", m.name);
    text("Home", "home", m.home);
    field("Sources", "sources", texts(m.sources));
    text("Version", "version", m.version);
    text("Description", "description", m.description);
    field("Keywords", "keywords", texts(m.keywords));
    tmpl::List maintainers;
    for (const auto& maintainer : m.maintainers) {
        auto one = std::make_shared<tmpl::Record>();
        one->type = "*chart.Maintainer";
        one->pointer = true;
        one->fields = {{"Name", "name", true, Value::string(maintainer.name)},
                       {"Email", "email", true, Value::string(maintainer.email)},
                       {"URL", "url", true, Value::string(maintainer.url)}};
        maintainers.push_back(Value::record(std::move(one)));
    }
    field("Maintainers", "maintainers", Value::list(std::move(maintainers)));
    text("Icon", "icon", m.icon);
    text("APIVersion", "apiVersion", m.api_version);
    text("Condition", "condition", m.condition);
    text("Tags", "tags", m.tags);
    text("AppVersion", "appVersion", m.app_version);
    field("Deprecated", "deprecated", Value::boolean(m.deprecated));
    field("Annotations", "annotations", m.annotations);
    text("KubeVersion", "kubeVersion", m.kube_version);
    tmpl::List dependencies;
    for (const auto& dependency : m.dependencies) {
        auto one = std::make_shared<tmpl::Record>();
        one->type = "*chart.Dependency";
        one->pointer = true;
        one->fields = {{"Name", "name", false, Value::string(dependency.name)},
                       {"Version", "version", true, Value::string(dependency.version)},
                       {"Repository", "repository", false, Value::string(dependency.repository)},
                       {"Condition", "condition", true, Value::string(dependency.condition)},
                       {"Tags", "tags", true, texts(dependency.tags)},
                       {"Enabled", "enabled", true, Value::boolean(dependency.enabled)},
                       {"ImportValues", "import-values", true, Value::list(dependency.import_values)},
                       {"Alias", "alias", true, Value::string(dependency.alias)}};
        dependencies.push_back(Value::record(std::move(one)));
    }
    field("Dependencies", "dependencies", Value::list(std::move(dependencies)));
    text("Type", "type", m.type);
    record->embedded = record->fields.size();
    record->fields.push_back({"IsRoot", "IsRoot", false, Value::boolean(is_root)});
    return Value::record(std::move(record));
}

}  // namespace kmm::recipe::chart
