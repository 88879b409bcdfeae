// SPDX-License-Identifier: Apache-2.0
// Which decoder reads a document, and lists of objects.
#include "api/codec.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/common_parts.hpp"
#include "api/decode.hpp"
#include "api/labels.hpp"
#include "api/made_objects.hpp"
#include "api/object_decoder.hpp"
#include "api/other_documents.hpp"
#include "api/recipe_kind.hpp"
#include "api/repeated_parts.hpp"
#include "schema/schema.hpp"
#include "api/unnamed.hpp"
#include "api/wrapped.hpp"
#include "base/text.hpp"

namespace kmm::api {

namespace {

using Reader = void (*)(Scope&, const value::Node&, Objects&);

/// What becomes of an object of the kind whose apiVersion is not known.
enum class OtherVersions { refused, not_read };

struct KnownKind {
    std::string_view kind;
    std::string_view api_version;
    Reader read;
    std::string_view also = {};  ///< another version that KMM serves, "" if there is none
    OtherVersions others = OtherVersions::refused;
};

template <auto Decode, auto Member>
void read_into(Scope& scope, const value::Node& root, Objects& objects) {
    auto object = Decode(scope, root);
    if (!scope.homeless) { (objects.*Member).push_back(std::move(object)); }
}

/// DaemonSets of others are many, and none of ours.
void read_daemon_set(Scope& scope, const value::Node& root, Objects& objects) {
    if (!root.get_string({"metadata", "labels", k_label_module_name}).empty()) {
        objects.daemon_sets.push_back(decode_daemon_set(scope, root));
    }
}

/// Of definitions only those of KMM tell something.
void read_definition(Scope& scope, const value::Node& root, Objects& objects) {
    if (root.get_string({"metadata", "name"}).ends_with(k_group)) {
        objects.custom_resource_definitions.push_back(decode_custom_resource_definition(scope, root));
    }
}

constexpr std::array k_kinds{
    KnownKind{"BootModuleConfig", k_group_version, read_into<decode_boot_module_config, &Objects::boot_module_configs>},
    KnownKind{"ConfigMap", "v1", read_into<decode_config_map, &Objects::config_maps>},
    KnownKind{"ManagedClusterModule", "hub.kmm.sigs.x-k8s.io/v1beta1",
              read_into<decode_managed_cluster_module, &Objects::managed_cluster_modules>},
    KnownKind{"ManagedCluster", "cluster.open-cluster-management.io/v1",
              read_into<decode_managed_cluster, &Objects::managed_clusters>},
    KnownKind{"CustomResourceDefinition", "apiextensions.k8s.io/v1", read_definition, {}, OtherVersions::not_read},
    KnownKind{"DaemonSet", "apps/v1", read_daemon_set, {}, OtherVersions::not_read},
    KnownKind{"DeviceClass",
              "resource.k8s.io/v1",
              read_into<decode_device_class, &Objects::device_classes>,
              {},
              OtherVersions::not_read},
    KnownKind{"Module", k_group_version, read_into<decode_module, &Objects::modules>},
    KnownKind{"ModuleBuildSignConfig", k_group_version,
              read_into<decode_module_build_sign_config, &Objects::module_build_sign_configs>},
    KnownKind{"ModuleImagesConfig", k_group_version,
              read_into<decode_module_images_config, &Objects::module_images_configs>},
    KnownKind{"Namespace", "v1", read_into<decode_namespace, &Objects::namespaces>},
    KnownKind{"Node", "v1", read_into<decode_node, &Objects::nodes>},
    KnownKind{"NodeModulesConfig", k_group_version,
              read_into<decode_node_modules_config, &Objects::node_modules_configs>},
    KnownKind{"PreflightValidation", "kmm.sigs.x-k8s.io/v1beta2",
              read_into<decode_preflight_validation, &Objects::preflight_validations>, k_group_version},
    KnownKind{"PreflightValidationOCP", "kmm.sigs.x-k8s.io/v1beta2",
              read_into<decode_preflight_validation, &Objects::preflight_validations>, k_group_version},
    KnownKind{"Pod", "v1", read_into<decode_pod, &Objects::pods>},
    KnownKind{"Secret", "v1", read_into<decode_secret, &Objects::secrets>},
};

/// What a list says about its items, which may leave kind and apiVersion out as API responses do.
struct Inherited {
    std::string api_version, kind;
};

Inherited inherited_from(const std::string& api_version, const std::string& kind) {
    if (kind == "List") { return {}; }
    return {api_version, kind.substr(0, kind.size() - std::string_view("List").size())};
}

/// A server drops fields that it does not know: what it gave out has them since it is of a later Kubernetes or KMM.
/// What looks like a slip of an edited dump stays a fault.
void soften_served(const value::Node& root, std::string_view kind, Diagnostics& diagnostics, std::size_t begin) {
    constexpr std::array<std::string_view, 4> served{"Node", "NodeModulesConfig", "ModuleImagesConfig",
                                                     "ModuleBuildSignConfig"};
    if (std::find(served.begin(), served.end(), kind) == served.end() || root.get_string({"metadata", "uid"}).empty()) {
        return;
    }
    for (std::size_t i = begin; i < diagnostics.size(); ++i) {
        if (diagnostics[i].code == "unknown-field" && diagnostics[i].hint.empty()) {
            diagnostics[i].severity = Severity::note;
        }
    }
}

/// Whether a group is KMM's, or may be meant to be: "kmm.sigs.k8s.io" serves nothing, and the Module in it would be
/// planned for nothing.
bool is_like_kmm(std::string_view group) {
    const std::vector<std::string> groups{std::string(k_group), "hub." + std::string(k_group)};
    if (group == "kmmtools") return false;  // what these commands print
    return group.find("kmm") != std::string_view::npos || base::nearest(group, groups).has_value();
}

/// A kind that is read, and nearly the one that is written.
struct NearKind {
    std::string kind;
    bool misspelt = false;  ///< nothing serves what is written
};

std::optional<NearKind> near_kind(std::string_view group, std::string_view kind) {
    const bool is_of_kmm = is_like_kmm(group);
    std::vector<std::string> names;
    const auto add = [&](std::string_view name) {
        names.emplace_back(name);
        names.push_back(std::string(name) + "List");
    };
    const bool is_ours = group.empty() || is_of_kmm;
    for (const auto& known : k_kinds) {
        if (is_ours || group_of(known.api_version) == group) { add(known.kind); }
    }
    if (is_ours) { names.emplace_back("List"); }
    const auto near = base::nearest(kind, names);
    if (!near || *near == kind) { return std::nullopt; }
    // Groups of others have kinds that differ by a word, such as ManagedClusterSet.
    const bool is_slip = base::edit_distance(base::to_lower(kind), base::to_lower(*near)) <= 1;
    return NearKind{*near, is_slip || is_ours};
}

/// `is_used`: something in the object was read.
void note_foreign_kind(const Scope& scope, const value::Node& root, const std::string& api_version,
                       const std::string& kind, bool is_used) {
    // What no server serves is no document to leave aside: the Module in it would be planned for nothing.
    const auto near = near_kind(group_of(api_version), kind);
    const bool is_of_kmm = is_like_kmm(group_of(api_version));
    const bool misspelt = near && near->misspelt;
    const value::Node* place = root.find("kind");
    Diagnostic diagnostic;
    diagnostic.severity = misspelt ? Severity::error : is_of_kmm ? Severity::warning : Severity::note;
    if (is_used && diagnostic.severity == Severity::note) { return; }
    diagnostic.code = "unknown-kind";
    diagnostic.message = base::escape(kind);
    if (diagnostic.severity != Severity::note) {
        diagnostic.message = fmt::format("kind {} ({}) {}", base::escape(kind),
                                         api_version.empty() ? "no apiVersion" : base::escape(api_version),
                                         misspelt ? "does not exist" : "is not known");
        if (near) { diagnostic.hint = fmt::format("did you mean {}?", near->kind); }
    }
    diagnostic.position = scope.document.position(place != nullptr ? place->mark() : root.mark());
    const auto group = group_of(api_version);  // that of Flux has the kind, too
    if (kind == "Kustomization" && (group.empty() || group == "kustomize.config.k8s.io")) {
        diagnostic.hint = k_kustomize_hint;
    }
    scope.diagnostics.push_back(std::move(diagnostic));
}

/// Whether a document is what a server gives in place of objects: a refusal, or rows of a table. What was asked for is
/// missing then, and the rest would be planned as if it did not exist.
bool refuse_answer(const Scope& scope, const value::Node& root, const std::string& api_version,
                   const std::string& kind) {
    const bool is_refusal =
        kind == "Status" && api_version == "v1" && root.get_string({"status"}) == "Failure";
    const bool is_part = group_of(api_version) == "meta.k8s.io";
    if (!is_refusal && !is_part) { return false; }
    const std::string why = root.get_string({"message"});
    scope.fault("unknown-kind",
                is_refusal ? fmt::format("an API server refused what was to be here: {}",
                                         base::escape(why.empty() ? root.get_string({"reason"}) : why))
                           : fmt::format("a {} has no whole objects", base::escape(kind)),
                root.find("kind")->mark(), "kubectl get -o json writes the objects, or says why it cannot");
    return true;
}

/// kubectl would take the namespace from elsewhere, or a server make up the name. The message is the kind alone, see
/// fold_notes.
void note_homeless(const Scope& scope, const value::Node& root, const std::string& kind) {
    Diagnostic diagnostic;
    diagnostic.severity = Severity::note;
    diagnostic.code = "missing-field";
    diagnostic.message = kind;
    diagnostic.position = scope.document.position(root.find_path({"metadata"})->mark());
    diagnostic.hint =
        fmt::format("write metadata.namespace{}, if a Module needs it",
                    scope.given_namespace ? ", or give -n NAMESPACE" : "");
    scope.diagnostics.push_back(std::move(diagnostic));
}

void decode_any(Scope& scope, const value::Node& root, const Inherited& inherited, Objects& objects);

void decode_list(Scope& scope, const value::Node& root, const std::string& api_version, const std::string& kind,
                 Objects& objects) {
    Fields fields(scope, root, "");
    fields.allow({"apiVersion", "kind", "metadata"});
    const Inherited inherited = inherited_from(api_version, kind);
    // Go writes an empty list as null.
    const value::Node* items = root.find("items");
    if (items != nullptr && items->is_null()) {
        fields.allow({"items"});
        return fields.done();
    }
    for (const auto& item : fields.items("items", Need::required)) {
        decode_any(scope, *item.node, inherited, objects);
    }
    fields.done();
}

bool is_list_kind(const std::string& kind) {
    constexpr std::string_view suffix = "List";
    if (kind == suffix) { return true; }
    if (kind.size() <= suffix.size() || !std::string_view(kind).ends_with(suffix)) { return false; }
    const std::string_view item = std::string_view(kind).substr(0, kind.size() - suffix.size());
    return std::any_of(k_kinds.begin(), k_kinds.end(), [&](const KnownKind& known) { return known.kind == item; });
}

/// Marks the faults from `begin` on that have `code`: there is no object in the document.
void mark_no_object(Diagnostics& diagnostics, std::size_t begin, std::string_view code) {
    for (std::size_t i = begin; i < diagnostics.size(); ++i) {
        if (diagnostics[i].code == code) { diagnostics[i].is_of_no_object = true; }
    }
}

/// Whether sops has encrypted the values of a Secret: it adds a member of its own, and takes it away when it decrypts.
bool is_encrypted_secret(const value::Node& root, const std::string& kind) {
    const value::Node* sops = kind == "Secret" ? root.find("sops") : nullptr;
    return sops != nullptr && sops->is_mapping();
}

void decode_any(Scope& scope, const value::Node& root, const Inherited& inherited, Objects& objects) {
    const std::size_t begin = scope.diagnostics.size();
    Fields fields(scope, root, "");
    if (!root.is_mapping()) {
        if (root.is_null()) { fields.wrong_type(root, "", "mapping"); }
        if (!scope.diagnostics.empty()) { scope.diagnostics.back().hint = hint_of_no_mapping(root); }
        return mark_no_object(scope.diagnostics, begin, "wrong-type");
    }
    if (inherited.kind.empty() && hint_of_no_object(scope.document.file, root).empty() && is_operator_config(root)) {
        objects.operator_configs.push_back({scope.document.file, root, scope.document.index, scope.document.written});
        return;
    }
    const Need need = inherited.kind.empty() ? Need::required : Need::optional;
    std::string kind = fields.string("kind", need);
    std::string api_version = fields.string("apiVersion", need);
    mark_no_object(scope.diagnostics, begin, "missing-field");
    if (kind.empty()) { kind = inherited.kind; }
    if (kind.empty()) {
        const std::string hint = hint_of_no_object(scope.document.file, root);
        if (!hint.empty() && !scope.diagnostics.empty()) { scope.diagnostics.back().hint = hint; }
    }
    if (api_version.empty()) { api_version = inherited.api_version; }
    if (kind.empty()) { return; }
    if (is_list_kind(kind)) {
        decode_list(scope, root, api_version, kind, objects);
        return;
    }
    if (is_recipe_kind(api_version, kind)) {
        objects.recipes.push_back({scope.document.file, root, scope.document.index, scope.document.written});
        return;
    }
    const auto* known =
        std::find_if(k_kinds.begin(), k_kinds.end(), [&](const KnownKind& row) { return row.kind == kind; });
    const bool other_version =
        known != k_kinds.end() && known->others == OtherVersions::not_read && known->api_version != api_version;
    const bool other_group = known != k_kinds.end() && group_of(api_version) != group_of(known->api_version);
    // Without a group there is nothing of others, either: Kubernetes serves none of these kinds so.
    const bool foreign = other_group && !group_of(api_version).empty() && !is_like_kmm(group_of(api_version));
    if (known == k_kinds.end() && refuse_answer(scope, root, api_version, kind)) { return; }
    if (known == k_kinds.end()) {
        if (auto fault = misspelt_recipe(scope.document, root, api_version, kind)) {
            scope.diagnostics.push_back(std::move(*fault));
            return;
        }
    }
    if (known == k_kinds.end() || foreign || other_version) {
        const std::size_t held = objects.wrapped.size();
        find_wrapped(scope.document, root, objects.wrapped);
        find_made_secrets(scope.document, root, scope.given_namespace, objects.wrapped);
        note_foreign_kind(scope, root, api_version, kind, objects.wrapped.size() != held);
        return;
    }
    if (api_version.empty()) { return; }  // already reported as missing
    if (is_encrypted_secret(root, kind)) {
        return find_made_secrets(scope.document, root, scope.given_namespace, objects.wrapped);
    }
    if (api_version != known->api_version && (known->also.empty() || api_version != known->also)) {
        const std::size_t slash = api_version.find('/');
        const bool own_group = slash != std::string::npos && group_of(api_version) == group_of(known->api_version);
        fields.scope().fault("unknown-api-version",
                             fmt::format("apiVersion {} of kind {} is not supported, expected {}",
                                         base::escape(api_version), kind, known->api_version),
                             root.find("apiVersion") != nullptr ? root.find("apiVersion")->mark() : root.mark(),
                             own_group
                                 ? fmt::format("no release of KMM serves {} as {}: write apiVersion: {}", kind,
                                               base::escape(api_version.substr(slash + 1)), known->api_version)
                                 : fmt::format("the object was not read; write apiVersion: {}", known->api_version));
        return;
    }
    const std::size_t before = scope.diagnostics.size();
    scope.kind = schema::of_kmm().find_kind(kind, api_version);
    scope.release_marks = &objects.release_marks;
    scope.checked = false;
    scope.homeless = false;
    known->read(scope, root, objects);
    if (scope.homeless) { note_homeless(scope, root, kind); }
    scope.checked = false;
    soften_served(root, kind, scope.diagnostics, before);
    mark_if_by_name(root, kind, scope.diagnostics, before);
}

/// Calls `take` with the member of each kind.
template <typename Take>
void each_list(Take&& take) {
    static_assert(sizeof(Objects) == 21 * sizeof(std::vector<Node>), "every kind must be here");
    const auto each = [&](auto... lists) { (take(lists), ...); };
    each(&Objects::nodes, &Objects::modules, &Objects::node_modules_configs, &Objects::secrets, &Objects::config_maps,
         &Objects::managed_cluster_modules, &Objects::managed_clusters, &Objects::preflight_validations,
         &Objects::namespaces, &Objects::pods, &Objects::custom_resource_definitions, &Objects::daemon_sets,
         &Objects::device_classes, &Objects::module_images_configs, &Objects::module_build_sign_configs,
         &Objects::boot_module_configs, &Objects::operator_configs, &Objects::recipes, &Objects::release_marks,
         &Objects::doubles, &Objects::wrapped);
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
    if (to.empty() && to.capacity() < from.size()) {
        to.swap(from);
    } else {
        to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    }
    from = std::vector<T>();
}

void append(Objects& to, Objects& from) {
    each_list([&](auto list) { append(to.*list, from.*list); });
}

}  // namespace

ObjectDecoder::ObjectDecoder() : ObjectDecoder(std::nullopt) {}
ObjectDecoder::ObjectDecoder(std::optional<std::string> given_namespace)
    : repeats_(std::make_unique<RepeatedParts>()), given_namespace_(std::move(given_namespace)) {}
ObjectDecoder::~ObjectDecoder() = default;

std::uint32_t ObjectDecoder::number_repeat() { return repeats_->next_number(); }
bool ObjectDecoder::knows(std::uint32_t number) const { return repeats_->knows(number); }
void ObjectDecoder::take_repeats(const std::vector<value::Repeat>& repeats) { repeats_->begin_object(repeats); }

const value::Shape* ObjectDecoder::shape(const value::Node& object, const value::Node* list) {
    const value::Node* kind = object.find("kind");
    if (kind != nullptr) { return kind->is_string() ? shape_of(kind->text()) : nullptr; }
    const std::string list_kind = list == nullptr ? std::string() : list->get_string({"kind"});
    return is_list_kind(list_kind) ? shape_of(inherited_from("", list_kind).kind) : nullptr;
}

bool ObjectDecoder::take_item(value::Document& item, const value::Node& list) {
    const std::string list_kind = list.get_string({"kind"});
    const std::string list_version = list.get_string({"apiVersion"});
    const bool named = !item.root.get_string({"kind"}).empty() && !item.root.get_string({"apiVersion"}).empty();
    const bool list_known = is_list_kind(list_kind) && !list_version.empty();
    // Without both names the item may take them from a list that says them at its end.
    if (!item.root.is_mapping() || !(named || list_known) || (!list_kind.empty() && !is_list_kind(list_kind))) {
        repeats_->put_off();
        return false;
    }
    has_items_ = true;
    Scope scope{item, item_faults_};
    scope.given_namespace = given_namespace_;
    scope.repeats = repeats_.get();
    scope.texts = &texts_;
    const std::size_t findings = item_faults_.size() + items_.release_marks.size();
    decode_any(scope, item.root, list_known ? inherited_from(list_version, list_kind) : Inherited{}, items_);
    repeats_->end_object(findings == item_faults_.size() + items_.release_marks.size());
    return true;
}

void ObjectDecoder::take_document(const value::Document& document) {
    Scope scope{document, faults_};
    scope.given_namespace = given_namespace_;
    repeats_->begin_waiting();
    scope.repeats = repeats_.get();
    scope.texts = &texts_;
    decode_any(scope, document.root, Inherited{}, objects_);
    repeats_->forget();  // each list has its own marks of releases
    if (has_items_ && is_list_kind(document.root.get_string({"kind"}))) {
        append(objects_, items_);
        append(faults_, item_faults_);
    }
    items_ = Objects{};
    item_faults_.clear();
    has_items_ = false;
}

std::unique_ptr<value::ObjectSink> ObjectDecoder::part() { return std::make_unique<ObjectDecoder>(given_namespace_); }

void ObjectDecoder::begin_piece(std::size_t number) {
    end_piece();
    piece_ = number;
}

void ObjectDecoder::end_piece() {
    pieces_.push_back({piece_, std::exchange(items_, {}), std::exchange(item_faults_, {})});
}

void ObjectDecoder::join(const std::vector<std::unique_ptr<value::ObjectSink>>& parts) {
    std::vector<Piece> pieces;
    for (const auto& sink : parts) {
        auto& decoder = static_cast<ObjectDecoder&>(*sink);  // which part() made
        decoder.end_piece();
        append(pieces, decoder.pieces_);
        has_items_ = has_items_ || decoder.has_items_;
    }
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.number < b.number; });
    each_list([&](auto list) {
        std::size_t count = (items_.*list).size();
        for (const auto& piece : pieces) { count += (piece.objects.*list).size(); }
        (items_.*list).reserve(count);
    });
    for (auto& piece : pieces) {
        // As if one list had been checked.
        for (auto& mark : std::exchange(piece.objects.release_marks, {})) {
            auto& marks = items_.release_marks;
            if (mark.by_operator && has_operator_mark(marks, mark.what, mark.since, mark.until)) { continue; }
            marks.push_back(std::move(mark));
        }
        append(items_, piece.objects);
        append(item_faults_, piece.faults);
    }
    CommonParts().share(items_.node_modules_configs);
}

void ObjectDecoder::commit(Objects& objects, Diagnostics& diagnostics) && {
    append(objects, objects_);
    append(diagnostics, faults_);
}

void decode(const value::Document& document, Objects& objects, Diagnostics& diagnostics,
            std::optional<std::string_view> given_namespace) {
    Scope scope{document, diagnostics};
    scope.given_namespace = given_namespace;
    decode_any(scope, document.root, Inherited{}, objects);
}

bool has_operator_mark(const std::vector<ReleaseMark>& marks, ReleaseMark::What what, unsigned since, unsigned until) {
    return std::any_of(marks.begin(), marks.end(), [&](const ReleaseMark& one) {
        return one.by_operator && one.what == what && one.since == since && one.until == until;
    });
}

void append(Objects& to, const Objects& from) {
    const auto add = [&](auto... lists) {
        (((to.*lists).insert((to.*lists).end(), (from.*lists).begin(), (from.*lists).end())), ...);
    };
    add(&Objects::nodes, &Objects::modules, &Objects::node_modules_configs, &Objects::secrets, &Objects::config_maps,
        &Objects::managed_cluster_modules, &Objects::managed_clusters, &Objects::preflight_validations,
        &Objects::namespaces, &Objects::pods, &Objects::custom_resource_definitions, &Objects::daemon_sets,
        &Objects::device_classes, &Objects::module_images_configs, &Objects::module_build_sign_configs,
        &Objects::boot_module_configs, &Objects::operator_configs, &Objects::recipes, &Objects::doubles,
        &Objects::wrapped);
}

}  // namespace kmm::api
