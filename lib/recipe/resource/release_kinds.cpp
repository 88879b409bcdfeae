// SPDX-License-Identifier: Apache-2.0
// Follows api/v1beta1 and controllers/specialresourcemodule_controller.go of the Special Resource Operator.
#include "recipe/resource/release_kinds.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "api/fields.hpp"
#include "api/names.hpp"
#include "base/text.hpp"
#include "recipe/resource/decode.hpp"
#include "recipe/resource/values.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;
using value::Node;

namespace {

constexpr const char* k_path_hint =
    "known are $, .MEMBER, [N], [*] and [?(@.KEY == 'TEXT')], for example $.status.history[0].version";

/// One step of a JSONPath.
struct PathStep {
    std::string member;             ///< "" for the others
    std::optional<int> index;
    bool all = false;
    std::string key, text;          ///< of a filter
};

Error bad_path(const std::string& path, std::string_view why) {
    return Error(Exit::data, "bad-value", fmt::format("path \"{}\": {}", base::escape(path), why)).hint(k_path_hint);
}

PathStep bracket_step(const std::string& path, std::string_view inner) {
    PathStep step;
    if (inner == "*") {
        step.all = true;
        return step;
    }
    int number = 0;
    const auto read = std::from_chars(inner.data(), inner.data() + inner.size(), number);
    if (read.ec == std::errc() && read.ptr == inner.data() + inner.size()) {
        step.index = number;
        return step;
    }
    constexpr std::string_view k_filter = "?(@.";
    const std::size_t equals = inner.find("==");
    if (!inner.starts_with(k_filter) || !inner.ends_with(')') || equals == std::string_view::npos) {
        throw bad_path(path, fmt::format("[{}] is not known", base::escape(inner)));
    }
    step.key = base::trim(inner.substr(k_filter.size(), equals - k_filter.size()));
    auto text = base::trim(inner.substr(equals + 2, inner.size() - equals - 3));
    if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"') ||
        step.key.empty()) {
        throw bad_path(path, "a filter compares with a text in quotes");
    }
    step.text = text.substr(1, text.size() - 2);
    return step;
}

std::vector<PathStep> parse_path(const std::string& path) {
    if (!path.starts_with('$')) { throw bad_path(path, "expected '$' at its beginning"); }
    std::vector<PathStep> steps;
    for (std::size_t at = 1; at < path.size();) {
        if (path[at] == '[') {
            const std::size_t end = path.find(']', at);
            if (end == std::string::npos) { throw bad_path(path, "a ']' is missing"); }
            steps.push_back(bracket_step(path, std::string_view(path).substr(at + 1, end - at - 1)));
            at = end + 1;
        } else if (path[at] == '.') {
            const std::size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
            PathStep step;
            step.member = path.substr(at + 1, end - at - 1);
            if (step.member.empty()) { throw bad_path(path, "a member without a name"); }
            steps.push_back(std::move(step));
            at = end;
        } else {
            throw bad_path(path, fmt::format("'{}' is not expected", base::escape(path.substr(at, 1))));
        }
    }
    if (steps.empty()) { throw bad_path(path, "expected a member"); }
    return steps;
}

void take_step(const PathStep& step, const Node& from, std::vector<const Node*>& to) {
    if (!step.member.empty()) {
        if (const Node* found = from.find(step.member)) { to.push_back(found); }
        for (const auto& item : from.items()) {
            if (const Node* found = item.find(step.member)) { to.push_back(found); }
        }
        return;
    }
    const auto& items = from.items();
    if (step.index) {
        const auto count = static_cast<int>(items.size());
        const int index = *step.index < 0 ? count + *step.index : *step.index;
        if (index >= 0 && index < count) { to.push_back(&items[static_cast<std::size_t>(index)]); }
        return;
    }
    for (const auto& item : items) {
        if (step.all || item.get_string({step.key}) == step.text) { to.push_back(&item); }
    }
}

void check_path(api::Fields& fields, const std::string& path) {
    if (path.empty()) { return; }
    try {
        static_cast<void>(parse_path(path));
    } catch (const Error& error) {
        fields.scope().fault(error.code(), fields.path_of("path") + ": " + error.message(),
                             fields.node().find("path")->mark(), error.hint());
    }
}

Watch decode_watch(api::Fields fields) {
    Watch watch;
    watch.origin = fields.scope().document.position(fields.node().mark());
    watch.api_version = fields.string("apiVersion", api::Need::required);
    watch.kind = fields.string("kind", api::Need::required);
    watch.name = fields.string("name");
    watch.name_space = fields.string("namespace");
    watch.path = fields.string("path", api::Need::required);
    check_path(fields, watch.path);
    for (const auto& item : fields.items("selector")) {
        api::Fields one(fields.scope(), *item.node, item.path);
        WatchSelector selector{one.string("path", api::Need::required), one.string("value", api::Need::required),
                               one.boolean("exclude"), fields.scope().document.position(item.node->mark())};
        check_path(one, selector.path);
        one.done();
        watch.selectors.push_back(std::move(selector));
    }
    fields.done();
    return watch;
}

/// As the operator writes it: `exclude` of a selector always, what may be absent only if it is not empty.
Value written_watch(const Watch& watch) {
    tmpl::Map written{{"apiVersion", Value::string(watch.api_version)},
                      {"kind", Value::string(watch.kind)},
                      {"path", Value::string(watch.path)}};
    if (!watch.name.empty()) { written["name"] = Value::string(watch.name); }
    if (!watch.name_space.empty()) { written["namespace"] = Value::string(watch.name_space); }
    tmpl::List selectors;
    for (const auto& one : watch.selectors) {
        selectors.push_back(Value::map({{"path", Value::string(one.path)},
                                        {"value", Value::string(one.value)},
                                        {"exclude", Value::boolean(one.exclude)}}));
    }
    if (!selectors.empty()) { written["selector"] = Value::list(std::move(selectors)); }
    return Value::map(std::move(written));
}

/// The operator runs on a node of the cluster; it knows two architectures.
std::string operator_architecture(const Facts& facts) {
    const bool is_arm = std::any_of(facts.kernels.begin(), facts.kernels.end(), [](const KernelFacts& one) {
        return one.kernel.find("aarch64") != std::string::npos;
    });
    return is_arm ? "aarch64" : "x86_64";
}

bool names_architecture(const std::string& kernel) {
    constexpr std::array<std::string_view, 4> k_known{"x86_64", "aarch64", "ppc64le", "s390x"};
    return std::any_of(k_known.begin(), k_known.end(),
                       [&](std::string_view one) { return kernel.find(one) != std::string::npos; });
}

/// Of a release for several architectures the operator takes what its own node would run.
void put_first(std::vector<Release>& releases, const std::string& architecture) {
    std::stable_partition(releases.begin(), releases.end(), [&](const Release& one) {
        return !names_architecture(one.kernel) || one.kernel.find(architecture) != std::string::npos;
    });
}

void add_architecture(Release& release, const std::string& architecture) {
    if (names_architecture(release.kernel)) { return; }
    release.kernel += '.' + architecture;
    release.rt_kernel += '.' + architecture;
}

void check_version(api::Fields& root, const std::string& found) {
    if (found == k_group_version) { return; }
    root.scope().fault("bad-value",
                       fmt::format("apiVersion: expected {}, found \"{}\"", k_group_version, base::escape(found)),
                       root.node().find("apiVersion")->mark(), "this kind has one version alone");
}

std::string digest_part(const std::string& image) {
    return image.find('@') == std::string::npos ? image : image.substr(image.find('@'));
}

/// A release has one of each architecture and system that it supports.
std::vector<Release> releases_named(const Facts& facts, const std::string& text) {
    std::vector<Release> found;
    std::copy_if(facts.releases.begin(), facts.releases.end(), std::back_inserter(found), [&](const Release& one) {
        return one.version == text || (!one.image.empty() && digest_part(one.image) == digest_part(text));
    });
    return found;
}

Error unknown_release(const std::string& text, const Position& place) {
    return Error(Exit::data, "unknown-fact",
                 fmt::format("release {} is not among the releases of the facts", base::escape(text)))
        .at(place)
        .hint("kmm-plan dtk-map RELEASE --print-facts writes what --facts takes");
}

/// A kind without namespaces is found whatever namespace is asked for.
bool is_named(const Node& object, const std::string& name_space, const std::string& name) {
    const std::string own = object.get_string({"metadata", "namespace"});
    return object.get_string({"metadata", "name"}) == name && (own.empty() || own == name_space);
}

bool is_selected(const Watch& watch, const Node& object) {
    if (watch.selectors.empty()) { return true; }
    return std::any_of(watch.selectors.begin(), watch.selectors.end(), [&](const WatchSelector& selector) {
        const auto texts = json_path_texts(object, selector.path);
        return (std::find(texts.begin(), texts.end(), selector.value) != texts.end()) != selector.exclude;
    });
}

}  // namespace

std::vector<std::string> json_path_texts(const Node& root, const std::string& path) {
    std::vector<const Node*> nodes{&root};
    for (const auto& step : parse_path(path)) {
        std::vector<const Node*> next;
        for (const Node* node : nodes) { take_step(step, *node, next); }
        nodes = std::move(next);
    }
    std::vector<std::string> texts;
    const auto take = [&](const Node& node) {
        if (node.is_string()) { texts.push_back(node.text()); }
    };
    for (const Node* node : nodes) {
        take(*node);
        for (const auto& item : node->items()) { take(item); }
    }
    return texts;
}

bool is_special_resource_module(const value::Document& document) {
    return is_of_operator(document, "SpecialResourceModule");
}

bool is_release_validation(const value::Document& document) { return is_of_operator(document, "PreflightValidation"); }

SpecialResourceModule decode_special_resource_module(const value::Document& document, Diagnostics& faults) {
    SpecialResourceModule module;
    SpecialResource& resource = module.resource;
    resource.origin = document.position(document.root.mark());
    note_places(document.root, "", document, resource.places);
    api::Scope scope{document, faults};
    api::Fields root(scope, document.root, "");
    resource.api_version = root.string("apiVersion");
    root.string("kind");
    check_version(root, resource.api_version);
    decode_metadata(root, resource);
    tmpl::Map metadata, spec_members;
    if (const Node* given = document.root.find("metadata"); given != nullptr && given->is_mapping()) {
        metadata = to_value(*given).members();
    }
    metadata.emplace("creationTimestamp", Value::nil());
    if (auto spec = root.child("spec", api::Need::required)) {
        if (auto chart = spec->child("chart", api::Need::required)) {
            Value written;
            resource.chart = decode_chart(*chart, written);
            spec_members["chart"] = std::move(written);
        }
        resource.name_space = spec->string("namespace", api::Need::required);
        if (!resource.name_space.empty() && !api::is_dns1123_label(resource.name_space)) {
            scope.fault("bad-value",
                        fmt::format("spec.namespace \"{}\" is not valid", base::escape(resource.name_space)),
                        spec->node().find("namespace")->mark(),
                        "a namespace has lower-case letters, digits and '-', at most 63 of them");
        }
        spec_members["namespace"] = Value::string(resource.name_space);
        const Value set = decode_set(*spec, "set");
        spec_members["set"] = set.is_nil() ? Value::map({}) : set;
        for (const auto& item : spec->items("watch", api::Need::required)) {
            module.watches.push_back(decode_watch(api::Fields(scope, *item.node, item.path)));
        }
        tmpl::List watches;
        for (const auto& watch : module.watches) { watches.push_back(written_watch(watch)); }
        spec_members["watch"] = Value::list(std::move(watches));
        spec->done();
    }
    root.allow({"status"});
    root.done();
    resource.object = Value::map({{"apiVersion", Value::string(resource.api_version)},
                                  {"kind", Value::string("SpecialResourceModule")},
                                  {"metadata", Value::map(std::move(metadata))},
                                  {"spec", Value::map(std::move(spec_members))},
                                  {"status", Value::map({})}});
    return module;
}

ReleaseValidation decode_release_validation(const value::Document& document, Diagnostics& faults) {
    ReleaseValidation made;
    made.origin = document.position(document.root.mark());
    api::Scope scope{document, faults};
    api::Fields root(scope, document.root, "");
    check_version(root, root.string("apiVersion"));
    root.string("kind");
    SpecialResource named;
    decode_metadata(root, named);
    made.name = named.name;
    if (auto spec = root.child("spec", api::Need::required)) {
        made.update_image = spec->string("updateImage", api::Need::required);
        made.origin = spec->position_of("updateImage");
        static_cast<void>(spec->boolean("debug"));
        spec->done();
    }
    root.allow({"status"});
    root.done();
    return made;
}

std::vector<Release> watched_releases(const SpecialResourceModule& module, std::span<const value::Document> objects,
                                      const Facts& facts, bool operator_only) {
    std::vector<Release> made;
    bool any_object = false;
    const std::string architecture = operator_architecture(facts);
    for (const auto& watch : module.watches) {
        for (const auto& document : objects) {
            const Node& object = document.root;
            const bool is_kind =
                object.get_string({"kind"}) == watch.kind && object.get_string({"apiVersion"}) == watch.api_version;
            if (!is_kind ||
                (!watch.name.empty() && !is_named(object, watch.name_space, watch.name))) {
                continue;
            }
            any_object = true;
            if (!is_selected(watch, object)) { continue; }
            for (const auto& text : json_path_texts(object, watch.path)) {
                auto found = releases_named(facts, text);
                if (found.empty()) { throw unknown_release(text, watch.origin); }
                if (operator_only) {
                    put_first(found, architecture);
                    found.resize(1);
                }
                made.insert(made.end(), found.begin(), found.end());
            }
        }
    }
    if (!any_object) { made = facts.releases; }
    if (operator_only) {
        put_first(made, architecture);
        for (auto& release : made) { add_architecture(release, architecture); }
    }
    // The toolkit of a release for several architectures is one image; the operator knows it by that alone.
    const auto key_of = [&](const Release& one) {
        return std::pair(one.toolkit_image, operator_only ? std::string() : one.kernel);
    };
    std::stable_sort(made.begin(), made.end(),
                     [&](const Release& a, const Release& b) { return key_of(a) < key_of(b); });
    made.erase(std::unique(made.begin(), made.end(),
                           [&](const Release& a, const Release& b) { return key_of(a) == key_of(b); }),
               made.end());
    if (made.empty()) {
        throw Error(Exit::data, "no-releases", fmt::format("{}: no release is known", module.resource.name))
            .at(module.resource.place("spec.watch"))
            .hint(any_object ? "the watched objects name none: compare spec.watch with them"
                             : "kmm-plan dtk-map RELEASE --print-facts writes what --facts takes");
    }
    return made;
}

std::vector<Release> validated_releases(const ReleaseValidation& validation, const Facts& facts) {
    auto releases = releases_named(facts, validation.update_image);
    if (releases.empty()) { throw unknown_release(validation.update_image, validation.origin); }
    return releases;
}

Value release_values(const SpecialResourceModule& module, const Release& release,
                     const ModuleView& view) {
    const Value seen = view.operator_only ? as_operator_sees(module.resource, Root::charts)
                                          : tmpl::deep_copy(module.resource.object);
    tmpl::Map object = seen.members();
    if (!view.uid.empty()) { object["metadata"].shared_map()->try_emplace("uid", Value::string(view.uid)); }
    if (!view.complete.empty()) {
        tmpl::Map versions;
        for (const auto& image : view.complete) { versions[image] = Value::map({{"complete", Value::boolean(true)}}); }
        object["status"] = Value::map({{"versions", Value::map(std::move(versions))}});
    }
    return Value::map(
        {{"operatingSystem", Value::string(release.os)},
         {"kernelFullVersion", Value::string(release.kernel)},
         {"rtKernelFullVersion", Value::string(release.rt_kernel)},
         {"driverToolkitImage", Value::string(release.toolkit_image)},
         {"openShiftVersion", Value::string(release.version)},
         {"osImageURL", release.image.empty() ? tmpl::unknown_value("image of release " + release.version,
                                                                    "give image of this release in --facts FILE")
                                              : Value::string(release.image)},
         {"groupName", group_names()},
         {"specialResourceModule", Value::map(std::move(object))}});
}

}  // namespace kmm::recipe::plan
