// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/metadata.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/chart/schema_format.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/govalue/unicode.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

using tmpl::Type;
using tmpl::Value;

namespace {

using Path = std::vector<std::string>;

/// A fault of the member at `path`.
Error bad_chart(const ChartText& file, std::string message, const Path& path = {}) {
    Position position = tmpl::find_yaml_place(file.text, path);
    position.file = file.name;
    return Error(Exit::data, "bad-chart", std::move(message)).at(std::move(position));
}

/// As messages write it: "dependencies[0].condition".
std::string path_text(const Path& path) {
    std::string text;
    for (const auto& step : path) {
        if (step.find_first_not_of("0123456789") == std::string::npos) {
            text += '[' + step + ']';
        } else {
            text += (text.empty() ? "" : ".") + step;
        }
    }
    return text;
}

/// Whole numbers as a template sees them, for which JSON has one kind of number.
Value with_reals(const Value& value) {
    if (value.is_int()) { return Value::real(static_cast<double>(value.as_int())); }
    if (value.is_uint()) { return Value::real(static_cast<double>(value.as_uint())); }
    if (value.is_list()) {
        tmpl::List items;
        for (const auto& item : value.items()) { items.push_back(with_reals(item)); }
        return Value::list(std::move(items));
    }
    if (!value.is_map()) { return value; }
    tmpl::Map members;
    for (const auto& [key, member] : value.members()) { members[key] = with_reals(member); }
    return Value::map(std::move(members));
}

/// Reads the members of one mapping; names of fields are matched as encoding/json does.
class Fields {
public:
    Fields(const Value& mapping, Path path, const ChartText& file)
        : mapping_(mapping), path_(std::move(path)), file_(file) {}

    /// The last member of that name that is not null, or one that is; nullptr if there is none.
    const Value* find(std::string_view key) const {
        const auto* found = entry(key);
        return found == nullptr ? nullptr : &found->second;
    }

    void text(std::string_view key, std::string& out) const {
        if (const Value* value = find(key); value != nullptr && !value->is_nil()) { out = text_of(*value, key); }
    }

    void texts(std::string_view key, std::vector<std::string>& out) const {
        const Value* value = find(key);
        if (value == nullptr) { return; }
        if (value->is_nil()) { return out.clear(); }
        if (!value->is_list()) { throw wrong(key, "a list of strings", *value); }
        out.resize(value->items().size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            const Value& item = value->items()[i];
            if (!item.is_nil()) { out[i] = text_of(item, key, {std::to_string(i)}); }
        }
    }

    void flag(std::string_view key, bool& out) const {
        const Value* value = find(key);
        if (value == nullptr || value->is_nil()) { return; }
        if (value->type() != Type::boolean) { throw wrong(key, "a boolean", *value); }
        out = value->as_bool();
    }

    /// Decodes each item of a list of mappings into the element of its number: what an item leaves out stays.
    template <typename Item, typename Decode>
    void decode(std::string_view key, std::vector<Item>& out, Decode&& decode_item) const {
        std::size_t count = 0;
        mappings(key, [&](const Fields& one) {
            if (count == out.size()) { out.emplace_back(); }
            decode_item(one, out[count++]);
        });
        if (find(key) != nullptr) { out.resize(count); }
    }

    /// The items of a list of mappings.
    template <typename Each>
    void mappings(std::string_view key, Each&& each, bool may_be_null = false) const {
        const Value* value = find(key);
        if (value == nullptr || value->is_nil()) { return; }
        if (!value->is_list()) { throw wrong(key, "a list", *value); }
        for (std::size_t i = 0; i < value->items().size(); ++i) {
            const Value& item = value->items()[i];
            const Path path = below(key, {std::to_string(i)});
            if (item.is_nil()) {
                if (may_be_null) { continue; }
                throw bad_chart(file_, fmt::format("{} must not contain empty or null nodes", key), path);
            }
            if (!item.is_map()) { throw wrong(key, "a mapping", item, {path.back()}); }
            each(Fields(item, path, file_));
        }
    }

    /// A fault of the member `key`, or of what is at `more` below it.
    Error wrong(std::string_view key, std::string_view expected, const Value& found, const Path& more = {}) const {
        const Path path = below(key, more);
        return bad_chart(file_,
                         fmt::format("{}: expected {}, found {}", base::escape(path_text(path)), expected,
                                     tmpl::describe(with_reals(found))),
                         path);
    }

private:
    [[nodiscard]] const tmpl::Map::value_type* entry(std::string_view key) const {
        const tmpl::Map::value_type* found = nullptr;
        for (const auto& one : mapping_.members()) {
            if (base::to_lower(one.first) == base::to_lower(key) && (found == nullptr || !one.second.is_nil())) {
                found = &one;
            }
        }
        return found;
    }

    [[nodiscard]] Path below(std::string_view key, const Path& more) const {
        Path path = path_;
        const auto* found = entry(key);
        path.push_back(found == nullptr ? std::string(key) : found->first);
        path.insert(path.end(), more.begin(), more.end());
        return path;
    }

    std::string text_of(const Value& value, std::string_view key, const Path& more = {}) const {
        const auto text = scalar_text(value);
        if (!text) { throw wrong(key, "a string", value, more); }
        return *text;
    }

    const Value& mapping_;
    Path path_;
    const ChartText& file_;
};

/// strconv.FormatFloat(number, 'g', -1, 32): no more digits than a float32 needs.
std::string short_real(double number) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(number)).ptr;
    const auto near = tmpl::parse_real({digits.data(), static_cast<std::size_t>(end - digits.data())});
    return tmpl::format_real(near.value_or(number), 'g', -1);
}

void decode_dependency(const Fields& one, Dependency& dependency) {
    one.text("name", dependency.name);
    one.text("version", dependency.version);
    one.text("repository", dependency.repository);
    one.text("condition", dependency.condition);
    one.text("alias", dependency.alias);
    one.texts("tags", dependency.tags);
    one.flag("enabled", dependency.enabled);
    if (const Value* imports = one.find("import-values"); imports != nullptr) {
        if (!imports->is_list() && !imports->is_nil()) { throw one.wrong("import-values", "a list", *imports); }
        dependency.import_values.clear();
        for (const auto& import : imports->is_nil() ? tmpl::List() : imports->items()) {
            dependency.import_values.push_back(with_reals(import));
        }
    }
}

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
    if (value.is_int()) { return std::to_string(value.as_int()); }
    if (value.is_uint()) { return std::to_string(value.as_uint()); }
    if (value.type() != Type::float64) { return std::nullopt; }
    return short_real(value.as_real());
}

Value read_chart_yaml(const ChartText& file, tmpl::WholeNumbers whole) {
    tmpl::YamlFault fault;
    Value value = tmpl::read_yaml_text(file.text, fault, whole);
    if (!fault.message.empty()) { throw tmpl::yaml_error("bad-chart", fault, file.name, file.text); }
    if (!value.is_nil() && !value.is_map()) {
        throw bad_chart(file, fmt::format("expected a mapping, found {}", tmpl::describe(value)));
    }
    return value;
}

void decode_metadata(Metadata& metadata, const ChartText& file) {
    const Value document = read_chart_yaml(file, tmpl::WholeNumbers::exact);
    const Fields fields(document, {}, file);
    metadata.texts.push_back({file, {}});
    for (const auto& [key, value] : document.members()) {
        if (!value.is_nil()) { metadata.texts.back().keys.push_back(base::to_lower(key)); }
    }
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
    if (const Value* annotations = fields.find("annotations"); annotations != nullptr) {
        const bool is_map = annotations->is_map();
        if (!is_map && !annotations->is_nil()) { throw fields.wrong("annotations", "a mapping", *annotations); }
        tmpl::Map texts = is_map ? metadata.annotations.members() : tmpl::Map();
        for (const auto& [key, value] : is_map ? annotations->members() : tmpl::Map()) {
            const auto text = scalar_text(value);
            if (!text) { throw fields.wrong("annotations", "a string", value, {key}); }
            texts[key] = Value::string(*text);
        }
        metadata.annotations =
            is_map ? Value::map(std::move(texts), Type::string_map) : Value::none(Type::string_map);
    }
    const auto decode_maintainer = [](const Fields& one, Maintainer& maintainer) {
        one.text("name", maintainer.name);
        one.text("email", maintainer.email);
        one.text("url", maintainer.url);
    };
    fields.decode("maintainers", metadata.maintainers, decode_maintainer);
    fields.decode("dependencies", metadata.dependencies, decode_dependency);
    const auto note_list = [&](std::string_view key, bool& is_listed) {
        if (const Value* listed = fields.find(key); listed != nullptr) { is_listed = listed->is_list(); }
    };
    note_list("maintainers", metadata.lists_maintainers);
    note_list("dependencies", metadata.lists_dependencies);
}

void check_lock(const ChartText& file) {
    const Value document = read_chart_yaml(file, tmpl::WholeNumbers::exact);
    const Fields fields(document, {}, file);
    std::string digest;
    fields.text("digest", digest);
    const auto decode_entry = [](const Fields& one) {
        Dependency entry;
        decode_dependency(one, entry);
    };
    fields.mappings("dependencies", decode_entry, true);
    const Value* generated = fields.find("generated");
    if (generated == nullptr || generated->is_nil()) { return; }
    // As Go has RFC 3339: with capitals, and without leap seconds.
    const std::string time = generated->is_text() ? generated->text() : "";
    if (!has_format("date-time", time) || time.find_first_of("tz") != std::string::npos || time.substr(17, 2) == "60") {
        throw fields.wrong("generated", "a time as 2006-01-02T15:04:05Z", *generated);
    }
}

Error metadata_fault(const Metadata& metadata, std::string message, const Path& path) {
    const auto sets = [&](const MetadataText& one) {
        return std::find(one.keys.begin(), one.keys.end(), base::to_lower(path.empty() ? "" : path[0])) !=
               one.keys.end();
    };
    const auto last = std::find_if(metadata.texts.rbegin(), metadata.texts.rend(), sets);
    return bad_chart(last == metadata.texts.rend() ? metadata.texts.front().file : last->file, std::move(message),
                     path);
}

void validate_metadata(Metadata& m) {
    for (std::string* text :
         {&m.name, &m.description, &m.home, &m.icon, &m.condition, &m.tags, &m.app_version, &m.kube_version}) {
        clean(*text);
    }
    for (auto* texts : {&m.sources, &m.keywords}) {
        for (auto& text : *texts) { clean(text); }
    }
    if (m.name.empty()) { throw metadata_fault(m, "name is missing", {}); }
    if (m.name == "." || m.name == ".." || m.name != tmpl::base_path(m.name)) {
        throw metadata_fault(m, fmt::format("name: expected the name of a chart, found \"{}\"", base::escape(m.name)),
                             {"name"});
    }
    if (m.version.empty()) { throw metadata_fault(m, "version is missing", {}); }
    if (!tmpl::parse_version(m.version)) {
        throw metadata_fault(
            m, fmt::format("version: expected a semantic version, found \"{}\"", base::escape(m.version)), {"version"});
    }
    if (!m.type.empty() && m.type != "application" && m.type != "library") {
        throw metadata_fault(
            m, fmt::format("type: expected application or library, found \"{}\"", base::escape(m.type)), {"type"});
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < m.dependencies.size(); ++i) {
        auto& dependency = m.dependencies[i];
        const Path path{"dependencies", std::to_string(i), dependency.alias.empty() ? "name" : "alias"};
        for (std::string* text :
             {&dependency.name, &dependency.version, &dependency.repository, &dependency.condition}) {
            clean(*text);
        }
        const auto right = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        };
        if (!std::all_of(dependency.alias.begin(), dependency.alias.end(), right)) {
            throw metadata_fault(
                m,
                fmt::format("dependency {}: the alias \"{}\" has other characters than letters, digits, '_' and '-'",
                            base::escape(dependency.name), base::escape(dependency.alias)),
                path);
        }
        const std::string& key = dependency.alias.empty() ? dependency.name : dependency.alias;
        if (!names.insert(key).second) {
            throw metadata_fault(
                m, fmt::format("more than one dependency with name or alias \"{}\"", base::escape(key)), path);
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
    const bool has_none = maintainers.empty() && !m.lists_maintainers;
    field("Maintainers", "maintainers", has_none ? Value::none(Type::list) : Value::list(std::move(maintainers)));
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
    // Helm leaves no list without an entry.
    field("Dependencies", "dependencies",
          dependencies.empty() ? Value::none(Type::list) : Value::list(std::move(dependencies)));
    text("Type", "type", m.type);
    auto metadata = std::make_shared<tmpl::Record>(*record);
    metadata->type = "chart.Metadata";
    record->methods.push_back(
        {"Metadata", "", [whole = Value::record(std::move(metadata))](const tmpl::List&) { return whole; }});
    record->embedded = record->fields.size();
    record->fields.push_back({"IsRoot", "IsRoot", false, Value::boolean(is_root)});
    return Value::record(std::move(record));
}

}  // namespace kmm::recipe::chart
