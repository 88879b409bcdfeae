// SPDX-License-Identifier: Apache-2.0
#include "recipe/plan/render.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/ci_text.hpp"
#include "base/text.hpp"
#include "recipe/golib/json.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/plan/resource_run.hpp"
#include "recipe/resource/graph.hpp"
#include "recipe/resource/value_path.hpp"
#include "value/reader.hpp"

namespace kmm::recipe::plan {

using tmpl::Map;
using tmpl::Value;

namespace {

bool is_version(const std::string& wanted, const std::string& found) {
    return wanted.empty() || wanted == found || tmpl::is_compatible(wanted, found);
}

/// A chart that is given by hand, or lies where the resource says, may be another one than it asks for.
void note_other_chart(const SpecialResource& resource, const chart::Chart& chart, Diagnostics& findings) {
    const ChartReference& wanted = resource.chart;
    const auto& found = chart.metadata;
    if (wanted.name.empty() || (wanted.name == found.name && is_version(wanted.version, found.version))) { return; }
    findings.push_back(
        {Severity::warning, "chart-differs",
         fmt::format("{}: the resource asks for chart {} {}, this is {} {}", resource.name, base::escape(wanted.name),
                     base::escape(wanted.version), base::escape(found.name), base::escape(found.version)),
         Position{chart.place, 0, 0}, "give the chart that it asks for, or correct spec.chart", Exit::data});
}

/// What the operator makes of a dependency that is not there: the file NAME.yaml of its chart, else a resource without
/// values.
Value dependency_object(const std::string& name, const ChartReference& reference, const chart::Chart& chart,
                        Position& origin, bool& from_file) {
    for (const auto& file : chart.files) {
        if (file.name != name + ".yaml") { continue; }
        from_file = true;
        tmpl::YamlFault fault;
        Value object = tmpl::read_yaml_text(file.data, fault, tmpl::WholeNumbers::exact);
        origin = Position{chart.place + '/' + file.name, fault.line, 0};
        if (!fault.message.empty()) { throw Error(Exit::data, "bad-manifest", base::escape(fault.message)).at(origin); }
        return object;
    }
    const Value set =
        Value::map({{"kind", Value::string("Values")}, {"apiVersion", Value::string(std::string(k_group_version))}});
    return Value::map(
        {{"apiVersion", Value::string(std::string(k_group_version))},
         {"kind", Value::string("SpecialResource")},
         {"metadata", Value::map({{"name", Value::string(name)}})},
         {"spec",
          Value::map({{"chart", Value::map({{"name", Value::string(name)},
                                            {"version", Value::string(chart.metadata.version)},
                                            {"repository", Value::map({{"name", Value::string(reference.repository)},
                                                                       {"url", Value::string(reference.url)}})},
                                            {"tags", Value::list({})}})},
                      {"namespace", Value::string(name)},
                      {"set", set}})}});
}

/// A dependency that is no document, as the operator makes it.
struct MadeResource {
    Value object;
    Position origin;
    chart::Chart chart;
    bool from_file = false;  ///< NAME.yaml of the chart
};

/// What `work` makes of each number below `count`, in their order: no resource sees what another has made.
template <typename Work>
std::vector<RenderedRecipes> render_each(std::size_t count, const base::RunTogether& run, const Work& work) {
    std::vector<RenderedRecipes> made(count);
    base::share_work(count, run, [&](std::size_t i) { work(i, made[i]); });
    return made;
}

void append(std::vector<RenderedRecipes> parts, RenderedRecipes& whole) {
    for (auto& part : parts) {
        std::move(part.objects.begin(), part.objects.end(), std::back_inserter(whole.objects));
        std::move(part.findings.begin(), part.findings.end(), std::back_inserter(whole.findings));
    }
}

class Recipes {
public:
    Recipes(std::span<const SpecialResource> all, const ChartOf& chart_of, const Facts& facts,
            const RenderOptions& options)
        : all_(all.begin(), all.end()), chart_of_(chart_of), facts_(facts), options_(options) {}

    RenderedRecipes run(const std::vector<std::string>& names) {
        const auto ends = names.empty() ? roots() : names;
        rendered_.main = ends.size() == 1 ? ends.front() : "";
        for (const auto& name : apply_order(all_, names)) { require_dependencies(name); }
        if (options_.operator_only) { find_unreached(names); }
        const auto order = apply_order(all_, names);
        append(render_each(order.size(), options_.run,
                           [&](std::size_t i, RenderedRecipes& out) { render(order[i], out); }),
               rendered_);
        sort_and_merge(rendered_.findings);
        return std::move(rendered_);
    }

private:
    std::vector<SpecialResource> all_;
    const ChartOf& chart_of_;
    const Facts& facts_;
    const RenderOptions& options_;
    RenderedRecipes rendered_;
    std::map<std::string, MadeResource> made_;
    std::set<std::string> unreached_;  ///< what the operator does not come to in this pass

    /// Those that no other needs.
    std::vector<std::string> roots() const {
        std::vector<std::string> made;
        for (const auto& resource : all_) {
            const bool needed = std::any_of(all_.begin(), all_.end(), [&](const SpecialResource& other) {
                return std::any_of(other.dependencies.begin(), other.dependencies.end(),
                                   [&](const auto& dependency) { return dependency.name == resource.name; });
            });
            if (!needed) { made.push_back(resource.name); }
        }
        return made;
    }

    static void warn(RenderedRecipes& out, std::string code, std::string message, Position place, std::string hint) {
        out.findings.push_back(
            {Severity::warning, std::move(code), std::move(message), std::move(place), std::move(hint), Exit::data});
    }

    /// Makes the resources of dependencies that are no documents, at any depth.
    void require_dependencies(const std::string& name) {
        const SpecialResource* resource = find_resource(all_, name);
        if (resource == nullptr) { return; }
        const auto dependencies = resource->dependencies;  // all_ grows
        for (const auto& dependency : dependencies) {
            if (find_resource(all_, dependency.name) != nullptr) { continue; }
            if (dependency.chart.name.empty()) {
                throw Error(Exit::not_found, "recipe-not-found",
                            fmt::format("{} depends on SpecialResource {}, which is not among the documents", name,
                                        base::escape(dependency.name)))
                    .at(dependency.origin)
                    .hint("give its document in -f, or correct the name");
            }
            MadeResource made;
            made.chart = chart_of_(dependency.name, dependency.chart);
            made.origin = dependency.origin;
            made.object = dependency_object(dependency.name, dependency.chart, made.chart, made.origin, made.from_file);
            Diagnostics faults;
            const auto documents = value::read_yaml(tmpl::write_yaml(made.object), made.origin.file, faults);
            if (documents.size() != 1 || !is_special_resource(documents[0])) {
                throw Error(Exit::data, "bad-manifest",
                            fmt::format("expected a SpecialResource {}", base::escape(dependency.name)))
                    .at(made.origin);
            }
            SpecialResource own = decode_special_resource(documents[0], faults);
            if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
            own.origin = made.origin;
            own.places.clear();  // of a text that nobody has seen
            // The operator writes its Go type where it has no file, and no label.
            if (options_.operator_only && !made.from_file) { made.object = own.object; }
            all_.push_back(std::move(own));
            made_.emplace(dependency.name, std::move(made));
            require_dependencies(dependency.name);
        }
    }

    /// Dependencies behind one that is missing, which ends the operator's pass.
    void find_unreached(const std::vector<std::string>& names) {
        for (const auto& resource : all_) {
            bool ended = false;
            for (const auto& dependency : resource.dependencies) {
                if (ended) { unreached_.insert(dependency.name); }
                ended = ended || made_.contains(dependency.name);
            }
        }
        for (const auto& name : names) { unreached_.erase(name); }
    }

    void put_made(const std::string& name, const MadeResource& made, RenderedRecipes& out) const {
        Value object = tmpl::deep_copy(made.object);
        if (options_.operator_only && !made.from_file) {
            out.objects.push_back({name, "(dependency)", "", std::move(object), made.origin});
            return;
        }
        Map& metadata = *(*object.shared_map())["metadata"].shared_map();
        Value& labels = metadata["labels"];
        if (!labels.is_map()) { labels = Value::map({}); }
        (*labels.shared_map())["specialresource.openshift.io/owned"] = Value::string("true");
        out.objects.push_back({name, "(dependency)", "", std::move(object), made.origin});
    }

    /// The values that those who need it give it; the operator takes them in place of its own.
    void take_dependency_set(SpecialResource& resource, RenderedRecipes& out) const {
        const RecipeDependency* given = nullptr;
        const SpecialResource* giver = nullptr;
        std::string by;
        for (const auto& other : all_) {
            for (const auto& dependency : other.dependencies) {
                if (dependency.name != resource.name || dependency.set.is_nil()) { continue; }
                if (given == nullptr) {
                    given = &dependency;
                    by = other.name;
                    giver = &other;
                } else if (!tmpl::deep_equal(given->set, dependency.set)) {
                    warn(out, "dependency-values",
                         fmt::format("{} and {} give {} different values; those of {} count", by, other.name,
                                     resource.name, by),
                         dependency.origin, "give both the same set");
                }
            }
        }
        if (given == nullptr) { return; }
        const Value own = resource.set();
        const bool has_own = std::any_of(own.members().begin(), own.members().end(), [](const auto& one) {
            return one.first != "kind" && one.first != "apiVersion";
        });
        if (has_own && !tmpl::deep_equal(own, given->set)) {
            warn(out, "dependency-values",
                 fmt::format("spec.set of {} does not count: {} gives it values", resource.name, by),
                 resource.place("spec.set"), fmt::format("move the values into spec.dependencies of {}", by));
        }
        resource.object = tmpl::deep_copy(resource.object);
        (*(*resource.object.shared_map())["spec"].shared_map())["set"] = tmpl::deep_copy(given->set);
        resource.set_giver = std::make_shared<const SpecialResource>(*giver);
    }

    /// The operator applies a dependency with the chart that the dependency names, whatever its resource says.
    ChartReference chart_reference(const SpecialResource& resource) const {
        if (!options_.operator_only || resource.name == rendered_.main) { return resource.chart; }
        for (const auto& other : all_) {
            for (const auto& dependency : other.dependencies) {
                if (dependency.name == resource.name && !dependency.chart.name.empty()) { return dependency.chart; }
            }
        }
        return resource.chart;
    }

    /// Dependencies that ask for another version than the one that their resource has. What they call a chart is the
    /// name of the resource.
    void note_other_dependencies(const SpecialResource& resource, const chart::Metadata& found,
                                 RenderedRecipes& out) const {
        const std::string& name = resource.name;
        const ChartReference& own = resource.chart;
        for (const auto& other : all_) {
            for (const auto& dependency : other.dependencies) {
                const std::string& wanted = dependency.chart.version;
                const bool is_said = !own.name.empty() && wanted == own.version;
                if (dependency.name != name || is_said || is_version(wanted, found.version)) { continue; }
                warn(out, "chart-differs",
                     fmt::format("{} depends on {} {}, which is rendered from chart {} {}", other.name, name,
                                 base::escape(wanted), base::escape(found.name), base::escape(found.version)),
                     dependency.origin,
                     fmt::format("give the dependency and SpecialResource {} the same version", name));
            }
        }
    }

    /// Called by several threads at the same time.
    void render(const std::string& name, RenderedRecipes& out) const {
        SpecialResource resource = *find_resource(all_, name);
        if (resource.management != Management::managed) {
            out.findings.push_back(
                {Severity::note, "not-managed",
                 fmt::format("{}: spec.managementState is {}: nothing is applied", name,
                             resource.management == Management::removed ? "Removed" : "Unmanaged"),
                 resource.place("spec.managementState"), "", Exit::data});
            return;
        }
        if (unreached_.contains(name)) { return; }
        if (options_.operator_only && (made_.contains(name) || makes_one(resource, out))) { return; }
        const auto made = made_.find(name);
        if (made != made_.end()) { put_made(name, made->second, out); }
        if (name != rendered_.main) { take_dependency_set(resource, out); }
        put_image_references(resource, out);
        const chart::Chart chart =
            made != made_.end() ? made->second.chart : chart_of_(name, chart_reference(resource));
        note_other_chart(resource, chart, out.findings);
        note_other_dependencies(resource, chart.metadata, out);
        render_resource(resource, chart, facts_, options_, out);
    }

    /// Lets the builds and Pods of a resource pull images of what it depends on.
    void put_image_references(const SpecialResource& resource, RenderedRecipes& out) const {
        for (const auto& dependency : resource.dependencies) {
            if (!dependency.image_reference) { continue; }
            const std::string& space = find_resource(all_, dependency.name)->name_space;
            const auto reference = [](const char* kind, const std::string& name) {
                return Value::map({{"apiGroup", Value::string("rbac.authorization.k8s.io")},
                                   {"kind", Value::string(kind)},
                                   {"name", Value::string(name)}});
            };
            const Value object = Value::map(
                {{"apiVersion", Value::string("rbac.authorization.k8s.io/v1")},
                 {"kind", Value::string("RoleBinding")},
                 {"metadata", Value::map({{"name", Value::string("system:image-puller-" + resource.name)},
                                          {"namespace", Value::string(space)},
                                          {"labels", Value::map({{"specialresource.openshift.io/owned",
                                                                  Value::string("true")}})}})},
                 {"roleRef", reference("ClusterRole", "system:image-puller")},
                 {"subjects", Value::list({reference("Group", "system:serviceaccounts:" + resource.name_space)})}});
            out.objects.push_back({resource.name, "(dependency)", "", object, dependency.origin});
        }
    }

    /// The operator makes the resource of the first dependency that is missing, and waits for it.
    bool makes_one(const SpecialResource& resource, RenderedRecipes& out) const {
        for (const auto& dependency : resource.dependencies) {
            const auto made = made_.find(dependency.name);
            if (made == made_.end()) { continue; }
            put_made(dependency.name, made->second, out);
            warn(out, "sro-ignores",
                 fmt::format("{}: the operator makes SpecialResource {} and nothing else in this pass", resource.name,
                             dependency.name),
                 dependency.origin, "give the document of the dependency in -f");
            return true;
        }
        return false;
    }
};

}  // namespace

RenderedRecipes render_recipes(std::span<const SpecialResource> all, const std::vector<std::string>& names,
                               const ChartOf& chart_of, const Facts& facts, const RenderOptions& options) {
    return Recipes(all, chart_of, facts, options).run(names);
}

RenderedRecipes render_modules(std::span<const SpecialResourceModule> all, const std::vector<std::string>& names,
                               std::span<const value::Document> objects, const ChartOf& chart_of, const Facts& facts,
                               const RenderOptions& options) {
    RenderedRecipes rendered;
    std::vector<const SpecialResourceModule*> chosen;
    std::vector<std::string> known;
    for (const auto& one : all) { known.push_back(one.resource.name); }
    for (const auto& name : names) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](const SpecialResourceModule& one) { return one.resource.name == name; });
        if (found == all.end()) {
            const auto near = base::nearest(name, known);
            throw Error(Exit::not_found, "recipe-not-found",
                        fmt::format("there is no SpecialResourceModule {}", base::escape(name)))
                .hint(near ? fmt::format("did you mean {}?", *near) : "");
        }
        chosen.push_back(&*found);
    }
    if (names.empty()) {
        for (const auto& one : all) { chosen.push_back(&one); }
    }
    append(render_each(chosen.size(), options.run,
                       [&](std::size_t i, RenderedRecipes& out) {
                           const SpecialResourceModule& module = *chosen[i];
                           const chart::Chart chart = chart_of(module.resource.name, module.resource.chart);
                           note_other_chart(module.resource, chart, out.findings);
                           render_module(module, watched_releases(module, objects, facts, options.operator_only), chart,
                                         facts, options, out);
                       }),
           rendered);
    rendered.main = chosen.size() == 1 ? chosen.front()->resource.name : "";
    sort_and_merge(rendered.findings);
    return rendered;
}

namespace {

Value entry_of(const RecipeObject& one) {
    Map entry{{"cr", Value::string(one.cr)}, {"state", Value::string(one.state)}, {"object", one.object}};
    if (!one.kernel.empty()) { entry["kernel"] = Value::string(one.kernel); }
    return Value::map(std::move(entry));
}

}  // namespace

std::string recipe_lines(const RenderedRecipes& rendered) {
    std::string text;
    for (const auto& one : rendered.objects) { text += tmpl::write_inert_json(entry_of(one), {false, false}) + '\n'; }
    return text;
}

std::string recipe_names(const RenderedRecipes& rendered) {
    std::string text;
    for (const auto& one : rendered.objects) {
        text += fmt::format("{}/{}\n", base::escape(base::to_lower(text_at(one.object, {"kind"}))),
                            base::escape(text_at(one.object, {"metadata", "name"})));
    }
    return text;
}

std::string recipe_json(const RenderedRecipes& rendered) {
    tmpl::List objects;
    for (const auto& one : rendered.objects) { objects.push_back(entry_of(one)); }
    const Value document = Value::map({{"apiVersion", Value::string("kmmtools/v1")},
                                       {"kind", Value::string("Recipe")},
                                       {"objects", Value::list(std::move(objects))}});
    return tmpl::write_inert_json(document, {false, true}) + '\n';
}

std::string recipe_text(const RenderedRecipes& rendered, const base::RunTogether& run) {
    constexpr std::size_t k_objects = 64;  // of a part
    const std::span all(rendered.objects);
    std::vector<std::string> parts((all.size() + k_objects - 1) / k_objects);
    base::share_work(parts.size(), run, [&](std::size_t i) {
        std::string& text = parts[i];
        for (const auto& one : all.subspan(i * k_objects, std::min(k_objects, all.size() - i * k_objects))) {
            text += fmt::format("---\n# state: {}\n", base::escape(one.state));
            if (!one.kernel.empty()) { text += fmt::format("# kernel: {}\n", base::escape(one.kernel)); }
            if (one.cr != rendered.main) { text += fmt::format("# cr: {}\n", base::escape(one.cr)); }
            const std::string object = tmpl::write_yaml(one.object);
            text += base::has_ci_command(object) ? tmpl::write_inert_json(one.object) + '\n' : object;
        }
    });
    return base::join(parts, "");
}

}  // namespace kmm::recipe::plan
