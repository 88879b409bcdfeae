// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/render.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/ci_text.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/ignore.hpp"
#include "recipe/chart/metadata.hpp"
#include "recipe/chart/schema.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/functions/functions.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

using tmpl::Map;
using tmpl::Type;
using tmpl::Value;

namespace {

/// A template and what it sees.
struct Renderable {
    const std::string* text = nullptr;
    Value scope;
    std::string base_path;
    std::string file;  ///< as messages name it, "" for that of the template
};

Value capabilities(const Release& release) {
    auto version = std::make_shared<tmpl::Record>();
    version->type = "chartutil.KubeVersion";
    version->fields = {{"Version", "Version", false, Value::string(release.kube_version.version)},
                       {"Major", "Major", false, Value::string(release.kube_version.major)},
                       {"Minor", "Minor", false, Value::string(release.kube_version.minor)}};
    version->text = release.kube_version.version;
    version->text_by_address = true;
    for (const auto name : {"String", "GitVersion"}) {
        version->methods.push_back(
            {name, "", [text = version->text](const tmpl::List&) { return Value::string(text); }});
    }
    auto helm = std::make_shared<tmpl::Record>();
    helm->type = "version.BuildInfo";
    helm->fields = {{"Version", "version", true, Value::string("v3.22")},
                    {"GitCommit", "git_commit", true, Value::string("")},
                    {"GitTreeState", "git_tree_state", true, Value::string("")},
                    {"GoVersion", "go_version", true, Value::string("go1.26.8")}};
    tmpl::List versions;
    for (const auto* list : {&default_api_versions(), &release.api_versions}) {
        for (const auto& one : *list) { versions.push_back(Value::string(one)); }
    }
    auto record = std::make_shared<tmpl::Record>();
    record->type = "*chartutil.Capabilities";
    record->pointer = true;
    record->fields = {{"KubeVersion", "KubeVersion", false, Value::record(std::move(version))},
                      {"APIVersions", "APIVersions", false, Value::list(std::move(versions), Type::versions)},
                      {"HelmVersion", "HelmVersion", false, Value::record(std::move(helm))}};
    return Value::record(std::move(record));
}

Value release_value(const Release& release) {
    return Value::map({{"Name", Value::string(release.name)},
                       {"Namespace", Value::string(release.name_space)},
                       {"IsUpgrade", Value::boolean(release.is_upgrade)},
                       {"IsInstall", Value::boolean(!release.is_upgrade)},
                       {"Revision", Value::integer(1)},
                       {"Service", Value::string("Helm")}});
}

Value files_value(const std::vector<File>& files, bool is_helm_3_7) {
    Map members;
    for (const auto& file : files) { members[file.name] = Value::string(file.data, Type::bytes); }
    return Value::files(std::move(members), is_helm_3_7);
}

/// Collects the templates of a chart and those below it; gives what its templates see.
Value collect(const Chart& chart, bool is_root, const Value& outer, bool is_helm_3_7,
              std::map<std::string, Renderable>& templates) {
    const Value children = Value::map({});
    Map scope;
    scope["Chart"] = metadata_value(chart.metadata, is_root);
    scope["Files"] = files_value(chart.files, is_helm_3_7);
    scope["Release"] = outer.members().at("Release");
    scope["Capabilities"] = outer.members().at("Capabilities");
    scope["Subcharts"] = children;
    const Value& values = outer.members().at("Values");
    if (is_root) {
        scope["Values"] = values;
    } else {
        const Value* own = find_table(values, chart.name());
        scope["Values"] = own != nullptr ? own->as(Type::values) : Value::map({}, Type::values);
    }
    const Value made = Value::map(std::move(scope), Type::values);
    for (const auto& child : chart.children) {
        (*children.shared_map())[child.name()] =
            collect(child, false, made, is_helm_3_7, templates).as(Type::map);
    }
    for (const auto& file : chart.templates) {
        if (chart.metadata.is_library() && !tmpl::base_path(file.name).starts_with('_')) { continue; }
        templates[tmpl::clean_path(chart.path + '/' + file.name)] = {
            &file.data, made, chart.path + "/templates",
            chart.place.empty() ? "" : tmpl::clean_path(chart.place + '/' + file.name)};
    }
    return made;
}

/// Deep templates come first.
std::vector<std::string> in_order(const std::map<std::string, Renderable>& templates) {
    std::vector<std::string> names;
    for (const auto& [name, one] : templates) { names.push_back(name); }
    const auto depth = [](const std::string& name) { return std::count(name.begin(), name.end(), '/'); };
    std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        const auto da = depth(a), db = depth(b);
        return da != db ? da > db : a > b;
    });
    return names;
}

/// The member of `values` that a path such as "image.tags[1]" leads to; null if there is none.
const Value* member_at(const Value& values, const std::vector<std::string>& path) {
    const Value* at = &values;
    for (const auto& step : path) {
        at = child_at(*at, step);
        if (at == nullptr) { return nullptr; }
    }
    return at;
}

using Path = std::vector<std::string>;

/// Where `value`, or something in it if that `is_part`, stands in the last of the user's files that says so; line 0 if
/// none does.
Position place_in_given(const std::vector<GivenValues>& given, const Path& path, const Value& value, bool is_part) {
    for (auto file = given.rbegin(); file != given.rend(); ++file) {
        const Value* theirs = member_at(file->values, path);
        if (theirs == nullptr || !(is_part || tmpl::deep_equal(*theirs, value))) { continue; }
        Position place = tmpl::find_yaml_place(file->text, path);
        place.file = file->place;
        return place;
    }
    return {};
}

/// Where the value of a fault stands in the user's files or in values.yaml, if it comes from there; else the schema.
/// `above` leads from the values of the whole chart to `values`, those of `chart`.
Position schema_fault_place(const Chart& chart, const Value& values, const std::string& message,
                            const std::vector<GivenValues>& files, Path above) {
    Path path;
    const std::string name = message.substr(0, message.find(": "));
    if (name != "(root)") {
        const std::string dotted = tmpl::replace_all(tmpl::replace_all(name, "[", "."), "]", "");
        for (const auto piece : base::split(dotted, '.')) { path.emplace_back(piece); }
    }
    constexpr std::string_view k_property = ": the property ";
    const std::size_t property = message.find(k_property);
    const bool is_missing = message.ends_with(" is missing");
    if (property != std::string::npos && !is_missing) {
        const std::size_t begin = property + k_property.size();
        path.push_back(message.substr(begin, message.rfind(" is not allowed") - begin));
    }
    const Value* given = member_at(values, path);
    const Value* own = member_at(chart.values, path);
    Position place = tmpl::find_yaml_place(chart.values_text, path);
    place.file = chart.place + "/values.yaml";
    const bool is_own = given != nullptr && own != nullptr && (is_missing || tmpl::deep_equal(*given, *own));
    if (is_own && place.line != 0) { return place; }
    above.insert(above.end(), path.begin(), path.end());
    if (given != nullptr) { place = place_in_given(files, above, *given, is_missing); }
    return given != nullptr && place.line != 0 ? place : Position{chart.place + "/values.schema.json", 0, 0};
}

void check_schemas(const Chart& chart, const Value& values, const std::vector<GivenValues>& files, const Path& above,
                   Diagnostics& faults) {
    if (chart.schema) {
        for (auto& message : schema_faults(*chart.schema, chart.place + "/values.schema.json", values)) {
            const Position place = schema_fault_place(chart, values, message, files, above);
            const std::string hint =
                place.line == 0 ? "" : fmt::format("{}/values.schema.json asks for it", chart.place);
            faults.push_back({Severity::error, "values-schema", std::move(message), place, hint, Exit::data});
        }
    }
    for (const auto& child : chart.children) {
        const auto found = values.members().find(child.name());
        if (found == values.members().end() || found->second.is_nil()) { continue; }
        Path below = above;
        below.push_back(child.name());
        check_schemas(child, found->second, files, below, faults);
    }
}

void collect_crds(const Chart& chart, std::vector<Manifest>& crds) {
    for (const auto& file : chart.files) {
        const std::string lower = base::to_lower(file.name);
        if (!file.name.starts_with("crds/") ||
            !(lower.ends_with(".yaml") || lower.ends_with(".yml") || lower.ends_with(".json"))) {
            continue;
        }
        Manifest crd;
        crd.source = tmpl::clean_path(chart.path + '/' + file.name);
        crd.content = file.data;
        crd.is_definitions = true;
        crds.push_back(std::move(crd));
    }
    for (const auto& child : chart.children) { collect_crds(child, crds); }
}

void check_installable(const Chart& chart, const Release& release) {
    if (chart.metadata.is_library()) {
        throw metadata_fault(chart.metadata, "library charts cannot be rendered alone", {"type"})
            .hint("render the chart that depends on it");
    }
    if (const auto missing = missing_dependencies(chart); !missing.empty() && !release.is_helm_3_7) {
        const auto& listed = chart.metadata.dependencies;
        const auto first = std::find_if(listed.begin(), listed.end(),
                                        [&](const Dependency& one) { return one.name == missing.front(); });
        const std::vector<std::string> entry{"dependencies", std::to_string(first - listed.begin())};
        if (first->name.empty()) { throw metadata_fault(chart.metadata, "a dependency has no name", entry); }
        throw metadata_fault(chart.metadata,
                             fmt::format("found in Chart.yaml, but missing in charts/ directory: {}",
                                         base::escape(base::join(missing, ", "))),
                             {entry[0], entry[1], "name"})
            .hint("helm dependency build");
    }
}

std::vector<RenderedFile> render_files(Chart& chart, const Value& values, const Release& release) {
    check_installable(chart, release);
    for (const auto& one : chart.notices) {
        if (release.notice) { release.notice(one); }
    }
    process_dependencies(chart, values, release.is_helm_3_7);
    const Value all =
        coalesce_values(chart, values, release.is_helm_3_7 ? Nulls::helm_3_7 : Nulls::removed).as(Type::values);
    Diagnostics faults;
    if (!release.skip_schemas) { check_schemas(chart, all, release.given, {}, faults); }
    if (!faults.empty()) { throw Error::from_diagnostics(std::move(faults)); }
    if (!chart.metadata.kube_version.empty() &&
        !tmpl::is_compatible(chart.metadata.kube_version, release.kube_version.version)) {
        throw metadata_fault(chart.metadata,
                             fmt::format("chart requires kubeVersion {}, which does not fit Kubernetes {}",
                                         base::escape(chart.metadata.kube_version), release.kube_version.version),
                             {"kubeVersion"})
            .hint(release.version_hint);
    }
    const Value top =
        Value::map({{"Release", release_value(release)}, {"Capabilities", capabilities(release)}, {"Values", all}});
    std::map<std::string, Renderable> templates;
    collect(chart, true, top, release.is_helm_3_7, templates);
    const auto names = in_order(templates);
    const auto parsed = release.parsed ? release.parsed : std::make_shared<tmpl::ParsedFiles>(tmpl::chart_library());
    tmpl::Engine engine(*parsed, release.limits, release.notice);
    if (release.placeholders) { engine.use_placeholders(); }
    std::vector<RenderedFile> files;
    for (const auto& name : names) { engine.add(name, *templates[name].text, templates[name].file); }
    for (const auto& name : names) {
        if (tmpl::base_path(name).starts_with('_')) { continue; }
        Renderable& one = templates[name];
        (*one.scope.shared_map())["Template"] =
            Value::map({{"Name", Value::string(name)}, {"BasePath", Value::string(one.base_path)}}, Type::values);
        tmpl::Output output = engine.render(name, one.scope);
        if (name.ends_with("NOTES.txt")) { continue; }
        RenderedFile file{name, std::move(output.text), nullptr};
        file.origin = [marks = std::move(output.origin)](std::size_t line) { return marks.position(line); };
        files.push_back(std::move(file));
    }
    return files;
}

}  // namespace

std::optional<KubeVersion> parse_kube_version(std::string_view text) {
    // As apimachinery's ParseGeneric: two or more numbers, what follows them is dropped.
    std::string_view rest = tmpl::trim_space(text);
    if (rest.starts_with('v')) { rest.remove_prefix(1); }
    std::vector<std::string> numbers;
    std::size_t at = 0;
    for (;;) {
        const std::size_t end = std::min(rest.find_first_not_of("0123456789", at), rest.size());
        std::string_view digits = rest.substr(at, end - at);
        if (digits.empty() || digits.size() > 9) { return std::nullopt; }
        if (digits.size() > 1 && digits[0] == '0') {
            if (numbers.empty()) { return std::nullopt; }
            digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
        }
        numbers.emplace_back(digits);
        at = end;
        if (at >= rest.size() || rest[at] != '.' || at + 1 >= rest.size() || rest[at + 1] < '0' || rest[at + 1] > '9') {
            break;
        }
        ++at;
    }
    if (numbers.size() < 2) { return std::nullopt; }
    return KubeVersion{"v" + base::join(numbers, "."), numbers[0], numbers[1]};
}

namespace {

Diagnostic unknown_hook(const Manifest& hook) {
    const std::string event = unknown_event(hook.hooks).value_or("");
    const auto events = hook_events();
    const auto meant = base::nearest(event, events);
    return {Severity::warning, "unknown-event",
            fmt::format("{} {} is left out: \"{}\" is not an event of a hook", base::escape(hook.kind),
                        base::escape(hook.name), base::escape(event)),
            hook.origin(1),
            meant ? fmt::format("did you mean {}?", *meant) : "events are " + base::join(events, ", ")};
}

/// Says which values are missing in the file of an error, on its line if any is: they print nothing, and what is left
/// may be no YAML.
void name_missing(Error& error, const Diagnostics& missing) {
    if (error.code() != "bad-manifest" || !error.position()) { return; }
    constexpr std::size_t k_named_max = 3;
    const Position place = *error.position();
    const auto is_near = [&](const Diagnostic& one, bool same_line) {
        return one.position && one.position->file == place.file && (!same_line || one.position->line == place.line);
    };
    const bool same_line =
        std::any_of(missing.begin(), missing.end(), [&](const Diagnostic& one) { return is_near(one, true); });
    std::vector<std::string> named;
    for (const auto& one : missing) {
        if (!is_near(one, same_line) || named.size() == k_named_max) { continue; }
        const std::string text = fmt::format("{}:{}: {}", one.position->line, one.position->column, one.message);
        if (std::find(named.begin(), named.end(), text) != named.end()) { continue; }
        error.detail("missing value", text);
        named.push_back(text);
    }
    if (!named.empty() && error.hint().empty()) {
        error.hint("give the value, or say `default` or `required` in the template");
    }
}

}  // namespace

Rendered render_chart(Chart chart, const Value& values, const Release& release) {
    Diagnostics missing;
    Release heard = release;
    heard.notice = [&](Diagnostic finding) {
        if (finding.code == "missing-value") { missing.push_back(finding); }
        if (release.notice) { release.notice(std::move(finding)); }
    };
    auto files = render_files(chart, values, heard);
    std::sort(files.begin(), files.end(), [](const RenderedFile& a, const RenderedFile& b) { return a.name < b.name; });
    Manifests sorted;
    try {
        sorted = sort_manifests(files);
    } catch (Error& error) {
        name_missing(error, missing);
        throw;
    }
    Rendered rendered;
    rendered.objects = std::move(sorted.objects);
    rendered.hooks = std::move(sorted.hooks);
    for (const auto& one : sorted.left_out) {
        if (release.notice) { release.notice(unknown_hook(one)); }
    }
    collect_crds(chart, rendered.crds);
    return rendered;
}

std::string render_bare(Chart chart, const Value& values, const Release& release, const std::string& name) {
    const std::string wanted = chart.name() + '/' + name;
    for (auto& file : render_files(chart, values, release)) {
        if (file.name == wanted) { return std::move(file.text); }
    }
    throw Error(Exit::not_found, "no-template", fmt::format("the chart has no {}", name));
}

void keep_files(Rendered& rendered, const std::vector<std::string>& patterns) {
    Rendered kept;
    for (const auto& pattern : patterns) {
        std::size_t found = 0;
        const auto take = [&, &to = kept.objects](const std::vector<Manifest>& from) {
            for (const auto& manifest : from) {
                const std::string_view source = manifest.source;
                bool bad = false;
                if (!match_name(pattern, source.substr(source.find('/') + 1), bad)) { continue; }
                Manifest& one = to.emplace_back(manifest);
                if (one.is_definitions) { one.content.erase(one.content.find_last_not_of(" \t\n\v\f\r") + 1); }
                ++found;
            }
        };
        take(rendered.crds);
        take(rendered.objects);
        take(rendered.hooks);
        if (found == 0) {
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--show-only: expected a file of the chart that renders an object, found '{}'",
                                    base::escape(pattern)))
                .hint("a name below the chart, such as templates/deployment.yaml or charts/sub/templates/*.yaml");
        }
    }
    rendered = std::move(kept);
}

std::string release_text(const Rendered& rendered, bool include_crds, Inert inert) {
    std::string text;
    const auto is_obeyed = [&](const Manifest& manifest) {
        return inert == Inert::yes && base::has_ci_command(manifest.content);
    };
    const auto put_one = [&](const Manifest& manifest) {
        if (is_obeyed(manifest) && !manifest.object.is_map()) { return; }  // comments alone
        text += fmt::format("---\n# Source: {}\n{}\n",
                            inert == Inert::yes ? base::escape(manifest.source) : manifest.source,
                            is_obeyed(manifest) ? tmpl::write_inert_json(manifest.object) : manifest.content);
    };
    const auto put = [&](const Manifest& manifest) {
        if (!manifest.is_definitions || !is_obeyed(manifest)) { return put_one(manifest); }
        for (const auto& one : definitions_of(manifest)) { put_one(one); }
    };
    for (const auto& crd : include_crds ? rendered.crds : std::vector<Manifest>()) { put(crd); }
    for (const auto& object : rendered.objects) { put(object); }
    text = std::string(tmpl::trim_space(text)) + '\n';
    for (const auto& hook : rendered.hooks) { put(hook); }
    return text;
}

std::string release_objects(const Rendered& rendered, bool include_crds, ObjectForm form) {
    tmpl::List items;
    std::string text;
    const auto put_one = [&](const Manifest& manifest) {
        if (!manifest.object.is_map()) { return; }  // comments alone
        if (form == ObjectForm::list) {
            items.push_back(manifest.object);
        } else if (form == ObjectForm::lines) {
            text += tmpl::write_inert_json(manifest.object, {false, false}) + '\n';
        } else {
            text += fmt::format("{}/{}\n", base::escape(base::to_lower(manifest.kind)), base::escape(manifest.name));
        }
    };
    const auto put = [&](const Manifest& manifest) {
        if (!manifest.is_definitions) { return put_one(manifest); }
        for (const auto& one : definitions_of(manifest)) { put_one(one); }
    };
    for (const auto& file : include_crds ? rendered.crds : std::vector<Manifest>()) { put(file); }
    for (const auto* list : {&rendered.objects, &rendered.hooks}) {
        for (const auto& one : *list) { put(one); }
    }
    if (form != ObjectForm::list) { return text; }
    return tmpl::write_inert_json(tmpl::Value::map({{"apiVersion", tmpl::Value::string("v1")},
                                                    {"items", tmpl::Value::list(std::move(items))},
                                                    {"kind", tmpl::Value::string("List")}}),
                                  {false, true}) +
           '\n';
}

bool is_release_name(std::string_view name) {
    if (name.empty() || name.size() > 53) { return false; }
    for (const auto& label : tmpl::split_text(name, ".")) {
        const bool right = !label.empty() && label.front() != '-' && label.back() != '-' &&
                           std::all_of(label.begin(), label.end(), [](char c) {
                               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
                           });
        if (!right) { return false; }
    }
    return true;
}

}  // namespace kmm::recipe::chart
