// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/kustomize.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "api/names.hpp"
#include "base/error.hpp"
#include "cluster/folder/folder_notes.hpp"
#include "cluster/folder/foreign_text.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

constexpr std::array<std::string_view, 3> k_names{"kustomization.yaml", "kustomization.yml", "Kustomization"};
/// Lists of other files whose objects are taken.
constexpr std::array<std::string_view, 3> k_resources{"resources", "bases", "components"};
/// Lists of files, or of mappings with the path of one, that hold no objects of their own.
constexpr std::array<std::string_view, 9> k_parts{"patches",      "patchesStrategicMerge", "patchesJson6902",
                                                  "replacements", "transformers",          "generators",
                                                  "validators",   "configurations",        "crds"};
/// Members that change objects of KMM. Labels do not: kustomize knows no selector of theirs.
constexpr std::array<std::string_view, 9> k_changes{
    "patches", "patchesStrategicMerge", "patchesJson6902", "replacements",  "transformers",
    "vars",    "namePrefix",            "nameSuffix",      "configurations"};

/// Members that may change names of Secrets and ConfigMaps inside Modules, which kustomize does not by itself.
constexpr std::array<std::string_view, 5> k_referrers{"configurations", "crds", "transformers", "replacements", "vars"};

constexpr std::string_view k_list = "List";

std::string joined(const std::string& directory, const std::string& path) {
    auto text = (std::filesystem::path(directory) / path).lexically_normal().native();
    while (text.size() > 1 && text.ends_with('/')) { text.pop_back(); }
    return text;
}

/// What directory a file is in, written as `joined` writes it.
std::string directory_of(const std::string& file) {
    const auto slash = file.rfind('/');
    return joined(slash == std::string::npos ? "." : file.substr(0, slash), "");
}

/// Whether `place` is in the directory `top`, both as `joined` writes them.
bool is_in(const std::string& top, const std::string& place) {
    if (top == ".") { return !place.starts_with("/") && place != ".." && !place.starts_with("../"); }
    return place.starts_with(top) && (place.size() == top.size() || top == "/" || place[top.size()] == '/');
}

bool is_filled(const value::Node& root, std::string_view key) {
    const auto* found = root.find(key);
    return found != nullptr && !(found->items().empty() && found->members().empty() && found->text().empty());
}

/// The object of one generator; null if an overlay changes that of another, or if keys of a ConfigMap stand in other
/// files. A Secret without keys is one whose keys are not known.
value::Node generated_by(const value::Node& generator, const std::string& kind) {
    const std::string name = generator.get_string({"name"});
    const std::string behavior = generator.get_string({"behavior"});
    const bool has_keys = !is_filled(generator, "env") && !is_filled(generator, "envs");
    const bool is_secret = kind == "Secret";
    if (name.empty() || (!has_keys && !is_secret) || (!behavior.empty() && behavior != "create")) { return {}; }
    auto data = value::Node::mapping();
    for (const char* list : {"files", "literals"}) {
        const auto* items = generator.find(list);
        if (!has_keys || items == nullptr || !items->is_sequence()) { continue; }
        for (const auto& item : items->items()) {
            const std::string& text = item.text();
            const auto equals = text.find('=');
            const auto key = equals != std::string::npos ? text.substr(0, equals) : text.substr(text.rfind('/') + 1);
            data.set(key, "");
        }
    }
    auto root = value::Node::mapping({{"apiVersion", "v1"}, {"kind", kind}});
    root.set("metadata", value::Node::mapping({{"name", name}, {"namespace", generator.get_string({"namespace"})}}));
    if (is_secret) { root.set("type", generator.get_string({"type"})); }
    root.set("data", std::move(data));
    root.set_mark(generator.mark());
    return root;
}

/// Whether `options` of a generator, or those of all generators of a kustomization, leave names without a hash.
bool leaves_names(const value::Node& holder, std::string_view options) {
    const auto* flag = holder.find_path({options, "disableNameSuffixHash"});
    return flag != nullptr && flag->as_bool().value_or(false);
}

using Kind = MovedObjects::Kind;

/// What an object is. Items of a typed list may leave it out: then `listed` says it.
Kind kind_of(const value::Node& object, const Kind& listed) {
    Kind own{object.get_string({"apiVersion"}), object.get_string({"kind"})};
    if (own.version.empty()) { own.version = listed.version; }
    if (own.name.empty()) { own.name = listed.name; }
    return own;
}

/// What items of a list are: nothing is known of those of a List.
Kind item_kind(const Kind& list) {
    if (list.name == k_list) { return {}; }
    return {list.version, list.name.substr(0, list.name.size() - k_list.size())};
}

/// The namespaces that an object, or the items of a list, say.
void add_namespaces(const value::Node& object, std::set<std::string>& names) {
    if (const auto* items = object.find("items");
        items != nullptr && object.get_string({"kind"}).ends_with(k_list)) {
        for (const auto& item : items->items()) { add_namespaces(item, names); }
    }
    if (auto name = object.get_string({"metadata", "namespace"}); !name.empty()) { names.insert(std::move(name)); }
}

/// The namespaces that objects of a file say. Errors: as TextSource.
std::set<std::string> namespaces_in(const std::string& file) {
    std::set<std::string> names;
    const auto text = TextSource(file).whole();
    if (!text) { return names; }
    Diagnostics faults;
    for (const auto& document : value::read_objects(*text, file, faults)) { add_namespaces(document.root, names); }
    return names;
}

}  // namespace

bool is_kustomization(const std::string& file) {
    return std::find(k_names.begin(), k_names.end(), file.substr(file.rfind('/') + 1)) != k_names.end();
}

void MovedObjects::apply(value::Node& object, std::vector<value::Mark>& namespaces) const {
    apply(object, {}, namespaces);
}

void MovedObjects::apply(value::Node& object, const Kind& listed, std::vector<value::Mark>& namespaces) const {
    const auto kind = kind_of(object, listed);
    if (auto* items = object.find("items"); items != nullptr && kind.name.ends_with(k_list)) {
        for (auto& item : items->items()) { apply(item, item_kind(kind), namespaces); }
        return;
    }
    auto* metadata = object.find("metadata");
    if (metadata == nullptr) { return; }
    const bool is_namespace = kind.name == "Namespace" && kind.version == "v1";
    if (is_namespace ? !renames : !moves) { return; }
    auto* said = metadata->find(is_namespace ? "name" : "namespace");
    if (said == nullptr || said->text().empty()) { return; }
    // Other overlays rename it otherwise: only a text that is no name has to give way.
    if (is_namespace && !moves && api::is_dns1123_label(said->text())) { return; }
    if (is_namespace) { namespaces.push_back(object.mark()); }
    const auto mark = said->mark();
    *said = value::Node(to);
    said->set_mark(mark);
}

Kustomizations Kustomizations::among(const std::string& top, const std::vector<std::string>& files,
                                     const std::function<bool(std::string_view file)>& is_ignored) {
    Kustomizations result;
    result.top_ = joined(top, "");
    std::set<std::string> directories;
    const auto read = [&](const std::string& file) {
        try {
            if (const auto text = TextSource(file).whole()) { result.add(file, *text); }
        } catch (const Error&) {
            // Files that are read as documents tell why they cannot be read.
        }
    };
    for (const auto& file : files) {
        directories.emplace(directory_part(file));
        if (is_kustomization(file)) { read(file); }
    }
    // The name without an ending is none of a document.
    for (const auto& directory : directories) {
        std::error_code error;
        const auto file = directory + "/Kustomization";
        if (std::filesystem::exists(file, error) && !is_ignored(file)) { read(file); }
    }
    for (std::size_t i = 0; i < result.all_.size(); ++i) {
        for (const auto* list : {&result.all_[i].resources, &result.all_[i].components}) {
            for (const auto& resource : *list) { result.by_resource_[resource].push_back(i); }
        }
    }
    result.follow_components();
    return result;
}

void Kustomizations::follow_components() {
    std::map<std::string, const Kustomization*> known;
    for (const auto& one : all_) { known.emplace(one.directory, &one); }
    const auto changes = [&](const Kustomization& user, const std::string& component) {
        const auto found = known.find(component);
        return found == known.end() || found->second->changes ||
               (user.given_namespace.empty() && !found->second->given_namespace.empty());
    };
    // A component may have components.
    for (bool is_open = true; is_open;) {
        is_open = false;
        for (auto& user : all_) {
            if (user.changes) { continue; }
            user.changes = std::any_of(user.components.begin(), user.components.end(),
                                       [&](const std::string& component) { return changes(user, component); });
            is_open = is_open || user.changes;
        }
    }
}

void Kustomizations::add(const std::string& file, std::string_view text) {
    Diagnostics faults;
    const auto documents = value::read_any(text, file, faults);
    if (documents.empty() || !documents.front().root.is_mapping()) { return; }
    const value::Node& root = documents.front().root;
    Kustomization made;
    made.file = file;
    made.directory = directory_of(file);
    made.given_namespace = root.get_string({"namespace"});
    made.affixes = NameAffixes::of(root);
    made.changes = std::any_of(k_changes.begin(), k_changes.end(), [&](auto key) { return is_filled(root, key); });
    for (const auto key : k_resources) {
        const value::Node* list = root.find(key);
        if (list == nullptr) { continue; }
        auto& into = key == "components" ? made.components : made.resources;
        for (const auto& item : list->items()) {
            const auto& path = item.text();
            auto place = joined(made.directory, path);
            const bool is_far = path.find("://") != std::string::npos || path.find("?ref=") != std::string::npos ||
                                path.starts_with("git@") || path.starts_with("github.com/");
            made.is_of_far = made.is_of_far || is_far;
            made.leads_out = made.leads_out || (!is_far && !path.empty() && !is_in(top_, place));
            into.insert(std::move(place));
        }
    }
    for (const auto key : k_parts) {
        const value::Node* list = root.find(key);
        if (list == nullptr) { continue; }
        for (const auto& item : list->items()) {
            const std::string path = item.is_mapping() ? item.get_string({"path"}) : item.text();
            // A patch may stand in the list itself.
            if (!path.empty() && path.find('\n') == std::string::npos) {
                made.parts.insert(joined(made.directory, path));
            }
        }
    }
    knows_references_ = knows_references_ || std::any_of(k_referrers.begin(), k_referrers.end(),
                                                         [&](auto key) { return is_filled(root, key); });
    for (const auto& [key, kind] : {std::pair{"configMapGenerator", "ConfigMap"}, {"secretGenerator", "Secret"}}) {
        const auto* generators = root.find(key);
        if (generators == nullptr || !generators->is_sequence()) { continue; }
        for (const auto& generator : generators->items()) {
            auto object = generated_by(generator, kind);
            if (!object.is_mapping()) { continue; }
            const bool stays = leaves_names(root, "generatorOptions") || leaves_names(generator, "options");
            made.generated.push_back({std::move(object), !stays});
        }
    }
    if (const auto path = root.get_string({"openapi", "path"}); !path.empty()) {
        made.parts.insert(joined(made.directory, path));
    }
    parts_.insert(made.parts.begin(), made.parts.end());
    made.names_kmm = text.find("kmm.sigs.x-k8s.io") != std::string_view::npos;
    all_.push_back(std::move(made));
}

bool Kustomizations::is_part(const std::string& file) const {
    if (parts_.empty()) { return false; }
    const auto name = joined(file, "");
    return parts_.contains(name) && !by_resource_.contains(name);
}

std::vector<const Kustomizations::Kustomization*> Kustomizations::users_of(const std::string& file) const {
    std::vector<const Kustomization*> users;
    std::vector<std::string> open{joined(file, "")};
    for (std::size_t i = 0; i < open.size(); ++i) {
        const auto found = by_resource_.find(open[i]);
        if (found == by_resource_.end()) { continue; }
        for (const auto index : found->second) {
            const auto* user = &all_[index];
            if (std::find(users.begin(), users.end(), user) != users.end()) { continue; }
            users.push_back(user);
            open.push_back(user->directory);
        }
    }
    return users;
}

Kustomizations::Move Kustomizations::move_of(const std::string& file) const {
    Move move;
    std::set<std::size_t> seen;
    auto at = joined(file, "");
    for (auto found = by_resource_.find(at); found != by_resource_.end(); found = by_resource_.find(at)) {
        const auto& users = found->second;
        if (std::any_of(users.begin(), users.end(), [&](auto user) { return user != users.front(); })) { return {}; }
        if (!seen.insert(users.front()).second) { return {}; }
        const auto& user = all_[users.front()];
        if (!user.given_namespace.empty()) { move.to = user.given_namespace; }
        at = user.directory;
        move.built = at;
    }
    return move;
}

std::vector<NameAffixes> Kustomizations::affixes_of(const std::string& place) const {
    std::vector<NameAffixes> found;
    if (!knows_references_) { add_affixes(joined(place, ""), {}, 0, found); }
    if (found.empty()) { found.emplace_back(); }
    return found;
}

void Kustomizations::add_affixes(const std::string& place, const NameAffixes& inner, std::size_t depth,
                                 std::vector<NameAffixes>& found) const {
    constexpr std::size_t k_ways_max = 64, k_depth_max = 16;
    if (depth > k_depth_max || found.size() == k_ways_max) { return; }
    const auto users = by_resource_.find(place);
    if (users == by_resource_.end()) {
        if (std::find(found.begin(), found.end(), inner) == found.end()) { found.push_back(inner); }
        return;
    }
    for (const auto index : users->second) {
        auto outer = inner;
        outer.add_outer(all_[index].affixes);
        add_affixes(all_[index].directory, outer, depth + 1, found);
    }
}

std::string Kustomizations::moved_to(const std::string& file) const { return move_of(file).to; }

bool Kustomizations::is_always_moved(const std::string& file) const {
    std::set<std::size_t> seen;
    return is_always_moved(joined(file, ""), seen);
}

bool Kustomizations::is_always_moved(const std::string& place, std::set<std::size_t>& seen) const {
    const auto found = by_resource_.find(place);
    return found != by_resource_.end() &&
           std::all_of(found->second.begin(), found->second.end(), [&](std::size_t user) {
               return !all_[user].given_namespace.empty() ||
                      (seen.insert(user).second && is_always_moved(all_[user].directory, seen));
           });
}

std::string Kustomizations::namespace_of(const std::string& file) const {
    if (all_.empty()) { return ""; }
    if (auto name = moved_to(file); !name.empty()) { return name; }
    const auto given = given_to(file);
    return given.size() == 1 ? given.begin()->first : "";
}

std::map<std::string, std::string> Kustomizations::given_to(const std::string& file) const {
    std::map<std::string, std::string> given;
    std::set<std::size_t> seen;
    add_given(joined(file, ""), seen, given);
    return given;
}

void Kustomizations::add_given(const std::string& place, std::set<std::size_t>& seen,
                               std::map<std::string, std::string>& given) const {
    const auto found = by_resource_.find(place);
    if (found == by_resource_.end()) { return; }
    for (const auto index : found->second) {
        const auto& user = all_[index];
        if (!seen.insert(index).second) { continue; }
        if (!user.given_namespace.empty()) {
            given.emplace(user.given_namespace, user.file);
        } else {
            add_given(user.directory, seen, given);
        }
    }
}

std::vector<std::string> Kustomizations::not_built() const {
    std::vector<std::string> files;
    for (const auto& one : all_) {
        const auto is_of_kmm = [&](const std::string& part) {
            std::error_code error;
            return is_in(top_, part) && std::filesystem::is_regular_file(part, error) &&
                   names_kmm_object(TextSource(part).front());
        };
        const bool is_far_and_of_kmm =
            one.is_of_far && (one.names_kmm || std::any_of(one.parts.begin(), one.parts.end(), is_of_kmm));
        if (one.leads_out || is_far_and_of_kmm) { files.push_back(one.file); }
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<std::string> Kustomizations::directories_of(const std::string& file) const {
    std::vector<std::string> directories{directory_of(file)};
    for (const auto* user : users_of(file)) { directories.push_back(user->directory); }
    return directories;
}

std::vector<std::string> Kustomizations::changing(const std::string& file) const {
    std::vector<std::string> files;
    std::set<std::string> names;
    const auto users = users_of(file);
    const auto gives = [](const Kustomization* user) { return !user->given_namespace.empty(); };
    const bool is_moved = std::any_of(users.begin(), users.end(), gives);
    // What all give to the file stands for it; without one none moves anything.
    if (is_moved && moved_to(file).empty()) {
        names = namespaces_in(file);
        if (auto given = namespace_of(file); !given.empty()) { names.insert(std::move(given)); }
    }
    for (const auto* user : users) {
        const auto& own = user->given_namespace;
        const bool moves =
            !own.empty() && std::any_of(names.begin(), names.end(), [&](auto& name) { return name != own; });
        if (user->changes || moves) { files.push_back(user->file); }
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::vector<GeneratedObject> Kustomizations::generated_objects() const {
    std::vector<GeneratedObject> all;
    for (const auto& one : all_) {
        const auto outer = moved_to(one.directory);
        const auto ways = affixes_of(one.directory);
        const auto given = !outer.empty()                   ? outer
                           : one.given_namespace.empty() ? namespace_of(one.directory)
                                                         : one.given_namespace;
        for (const auto& [root, has_hash] : one.generated) {
            GeneratedObject made;
            made.document.file = one.file;
            made.document.root = root;
            made.has_hash = has_hash && !knows_references_;
            if (!given.empty()) { made.document.root.find("metadata")->set("namespace", given); }
            if (!knows_references_) { one.affixes.apply(made.document.root); }
            for (const auto& way : ways) {
                all.push_back(made);
                way.apply(all.back().document.root);
            }
        }
    }
    return all;
}

}  // namespace kmm::cluster
