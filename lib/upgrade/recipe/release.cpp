// SPDX-License-Identifier: Apache-2.0
#include "upgrade/recipe/release.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace kmm::upgrade::recipe {
namespace {

using value::Node;

constexpr std::int64_t k_release_format = 1;

Node encode_objects(const std::vector<ReleaseObject>& objects) {
    auto list = Node::sequence();
    for (const auto& one : objects) {
        auto entry = Node::mapping();
        if (!one.kernel.empty()) entry.set("kernel", one.kernel);
        if (one.on_demand) entry.set("onDemand", true);
        entry.set("object", one.object);
        list.push_back(std::move(entry));
    }
    return list;
}

std::vector<ReleaseObject> decode_objects(const Node* list, const std::string& place) {
    std::vector<ReleaseObject> objects;
    if (list == nullptr) return objects;
    for (const auto& entry : list->items()) {
        const auto* object = entry.find("object");
        if (object == nullptr || !object->is_mapping())
            throw Error(Exit::io, "state-damaged", fmt::format("{}: expected an object, found none", place));
        const auto* on_demand = entry.find("onDemand");
        objects.push_back(
            {entry.get_string({"kernel"}), *object, on_demand != nullptr && on_demand->as_bool() == true});
    }
    return objects;
}

std::int64_t integer_of(const Node& tree, std::string_view name) {
    const auto* found = tree.find(name);
    return found == nullptr ? 0 : found->as_int().value_or(0);
}

Node encode_state(const State& state) {
    auto entry = Node::mapping({{"name", state.name}, {"resource", state.resource}});
    if (!state.label.empty()) entry.set("label", state.label);
    auto nodes = Node::mapping();
    if (!state.nodes.labels.empty()) {
        auto labels = Node::mapping();
        for (const auto& [key, text] : state.nodes.labels) labels.set(key, text);
        nodes.set("labels", std::move(labels));
    }
    if (!state.nodes.key.empty()) {
        nodes.set("key", state.nodes.key);
        nodes.set("values", Node::strings(state.nodes.values));
    }
    if (!nodes.members().empty()) entry.set("nodes", std::move(nodes));
    entry.set("objects", encode_objects(state.objects));
    return entry;
}

State decode_state(const Node& entry, const std::string& place) {
    State state;
    state.name = entry.get_string({"name"});
    state.resource = entry.get_string({"resource"});
    state.label = entry.get_string({"label"});
    if (const auto* labels = entry.find_path({"nodes", "labels"}))
        for (const auto& label : labels->members()) state.nodes.labels[label.key] = label.value.text();
    state.nodes.key = entry.get_string({"nodes", "key"});
    state.nodes.values = entry.get_texts({"nodes", "values"});
    state.objects = decode_objects(entry.find("objects"), place);
    if (state.name.empty()) throw Error(Exit::io, "state-damaged", fmt::format("{}: a state has no name", place));
    return state;
}

}  // namespace

ObjectId id_of(const Node& object) {
    const auto version = object.get_string({"apiVersion"});
    const auto slash = version.find('/');
    return {slash == std::string::npos ? "" : version.substr(0, slash), object.get_string({"kind"}),
            object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})};
}

bool NodeChoice::selects(const Node& node) const {
    const auto* found = node.find_path({"metadata", "labels"});
    const auto value_of = [&](const std::string& name) -> const Node* {
        return found == nullptr ? nullptr : found->find(name);
    };
    const bool has_all = std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
        const auto* text = value_of(wanted.first);
        return text != nullptr && text->text() == wanted.second;
    });
    if (!has_all || key.empty()) return has_all;
    const auto* text = value_of(key);
    return text != nullptr && std::find(values.begin(), values.end(), text->text()) != values.end();
}

std::string_view to_string(Status status) noexcept {
    switch (status) {
        case Status::deployed: return "deployed";
        case Status::superseded: return "superseded";
        case Status::pending: break;
    }
    return "pending";
}

const State* Release::find(std::string_view state) const noexcept {
    const auto found = std::find_if(states.begin(), states.end(), [&](const State& one) { return one.name == state; });
    return found == states.end() ? nullptr : &*found;
}

const ReleaseObject* Release::find(const ObjectId& id) const {
    for (const auto& state : states)
        for (const auto& one : state.objects)
            if (id_of(one.object) == id) return &one;
    for (const auto& one : kept)
        if (id_of(one.object) == id) return &one;
    return nullptr;
}

std::set<ObjectId> Release::ids() const {
    std::set<ObjectId> ids;
    for (const auto& state : states)
        for (const auto& one : state.objects) ids.insert(id_of(one.object));
    for (const auto& one : kept) ids.insert(id_of(one.object));
    return ids;
}

Node encode(const Release& release) {
    auto states = Node::sequence();
    for (const auto& state : release.states) states.push_back(encode_state(state));
    auto tree = Node::mapping({{"formatVersion", k_release_format},
                               {"recipe", release.recipe},
                               {"version", release.version},
                               {"revision", release.revision},
                               {"status", std::string(to_string(release.status))},
                               {"lineage", release.lineage},
                               {"created", release.created},
                               {"states", std::move(states)}});
    if (!release.kernels.empty()) tree.set("kernels", Node::strings(release.kernels));
    if (!release.kept.empty()) tree.set("kept", encode_objects(release.kept));
    return tree;
}

Release decode_release(const Node& tree, const std::string& place) {
    if (integer_of(tree, "formatVersion") > k_release_format)
        throw Error(Exit::config, "state-newer", fmt::format("{} was written by a later version of kmm-upgrade", place))
            .hint("use that version, or a later one");
    Release release;
    release.recipe = tree.get_string({"recipe"});
    release.version = tree.get_string({"version"});
    release.revision = integer_of(tree, "revision");
    release.lineage = tree.get_string({"lineage"});
    release.created = tree.get_string({"created"});
    const auto status = tree.get_string({"status"});
    for (const auto each : {Status::pending, Status::deployed, Status::superseded})
        if (status == to_string(each)) release.status = each;
    const auto* states = tree.find("states");
    if (release.recipe.empty() || release.revision < 1 || states == nullptr || status != to_string(release.status))
        throw Error(Exit::io, "state-damaged", fmt::format("{} holds no release of a recipe", place));
    for (const auto& entry : states->items()) release.states.push_back(decode_state(entry, place));
    release.kernels = tree.get_texts({"kernels"});
    release.kept = decode_objects(tree.find("kept"), place);
    return release;
}

Leftovers leftovers(const std::vector<Release>& all, const Release& now, const std::set<std::string>& needed) {
    std::vector<const Release*> older;
    for (const auto& release : all)
        if (release.revision != now.revision) older.push_back(&release);
    std::sort(older.begin(), older.end(),
              [](const Release* left, const Release* right) { return left->revision > right->revision; });
    std::set<ObjectId> known;
    for (const auto& state : now.states)
        for (const auto& one : state.objects) known.insert(id_of(one.object));
    Leftovers found;
    std::vector<std::vector<ReleaseObject>> obsolete;
    for (const auto* release : older) {
        obsolete.emplace_back();
        const auto take = [&](const ReleaseObject& one) {
            if (!known.insert(id_of(one.object)).second) return;
            const bool was_rendered =
                std::find(now.kernels.begin(), now.kernels.end(), one.kernel) != now.kernels.end();
            const bool is_needed = !one.kernel.empty() && needed.contains(one.kernel) && !was_rendered;
            (is_needed ? found.kept : obsolete.back()).push_back(one);
        };
        for (const auto& state : release->states) std::for_each(state.objects.begin(), state.objects.end(), take);
        std::for_each(release->kept.begin(), release->kept.end(), take);
    }
    for (auto& objects : obsolete) std::move(objects.rbegin(), objects.rend(), std::back_inserter(found.obsolete));
    return found;
}

Release merged(std::vector<Release> releases) {
    std::sort(releases.begin(), releases.end(),
              [](const Release& left, const Release& right) { return left.revision > right.revision; });
    Release all = releases.front();
    std::set<ObjectId> known = all.ids();
    const auto add = [&](const State& from, const ReleaseObject& one) {
        if (!known.insert(id_of(one.object)).second) return;
        auto place = std::find_if(all.states.begin(), all.states.end(),
                                  [&](const State& state) { return state.name == from.name; });
        if (place == all.states.end()) {
            all.states.push_back(State{from.name, from.resource, from.label, from.nodes, {}});
            place = std::prev(all.states.end());
        }
        place->objects.push_back(one);
    };
    State others;
    others.name = all.recipe + "/kept";
    others.resource = all.recipe;
    // What was kept of earlier releases is applied by no state.
    if (!all.kept.empty()) {
        others.objects = std::exchange(all.kept, {});
        all.states.push_back(others);
        others.objects.clear();
    }
    for (std::size_t i = 1; i < releases.size(); ++i) {
        for (const auto& state : releases[i].states) {
            if (all.find(state.name) == nullptr && !state.label.empty())
                all.states.push_back(State{state.name, state.resource, state.label, state.nodes, {}});
            for (const auto& one : state.objects) add(state, one);
        }
        for (const auto& one : releases[i].kept) add(others, one);
    }
    return all;
}

std::string state_label(std::string_view resource, std::string_view state) {
    constexpr std::size_t k_digits = 4;
    const auto number = state.substr(0, k_digits);
    const bool is_number =
        number.size() == k_digits && number.find_first_not_of("0123456789") == std::string_view::npos;
    return is_number ? fmt::format("specialresource.openshift.io/state-{}-{}", resource, number) : "";
}

}  // namespace kmm::upgrade::recipe
