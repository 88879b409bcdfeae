// SPDX-License-Identifier: Apache-2.0
// Follows pkg/resource, pkg/kernel and internal/resourcehelper of the Special Resource Operator.
#include "recipe/plan/objects.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/chart/metadata.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "recipe/plan/object_names.hpp"
#include "recipe/resource/annotations.hpp"
#include "recipe/resource/value_path.hpp"
#include "recipe/resource/values.hpp"

namespace kmm::recipe::plan {

using tmpl::Map;
using tmpl::Value;

namespace {

constexpr std::string_view k_prefix = "specialresource.openshift.io/";
constexpr std::string_view k_kernel_label = "feature.node.kubernetes.io/kernel-version.full";

/// Kinds that the operator gives no namespace; the misspelt one is its own.
constexpr std::array<std::string_view, 5> k_no_namespace{"Namespace", "ClusterRole", "ClusterRoleBinding",
                                                         "SecurityContextConstraint", "SpecialResource"};
constexpr std::array<std::string_view, 22> k_cluster_kinds{"APIService",
                                                           "CSIDriver",
                                                           "CSINode",
                                                           "CertificateSigningRequest",
                                                           "ClusterRole",
                                                           "ClusterRoleBinding",
                                                           "ConsolePlugin",
                                                           "CustomResourceDefinition",
                                                           "IngressClass",
                                                           "MachineConfig",
                                                           "MachineConfigPool",
                                                           "MutatingWebhookConfiguration",
                                                           "Namespace",
                                                           "Node",
                                                           "PersistentVolume",
                                                           "PodSecurityPolicy",
                                                           "PriorityClass",
                                                           "RuntimeClass",
                                                           "SecurityContextConstraints",
                                                           "SpecialResource",
                                                           "StorageClass",
                                                           "ValidatingWebhookConfiguration"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& kinds, std::string_view kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

bool is_workload(std::string_view kind) { return kind == "DaemonSet" || kind == "Deployment" || kind == "StatefulSet"; }

/// What the API server, or a controller of it, refuses later.
void note_texts(const Value& object, const Position& place, const std::function<void(Diagnostic)>& notice) {
    each_wrong_text(object, [&](const std::string& text) {
        notice({Severity::warning, "not-a-text", text, place, "quote the value", Exit::data});
    });
    if (auto problem = pods_label_problem(object); !problem.empty()) {
        notice({Severity::warning, "long-name", std::move(problem), place, "shorten the name in the template",
                Exit::data});
    }
}

/// As Node Feature Discovery writes it: '_' for what no label may have, a letter or digit first and last.
std::string label_of_kernel(std::string label) {
    for (char& c : label) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && c != '-' && c != '_' && c != '.') { c = '_'; }
    }
    constexpr std::string_view k_inside = "-_.";
    const std::size_t end = label.find_last_not_of(k_inside);
    label.resize(end == std::string::npos ? 0 : end + 1);
    return label.substr(std::min(label.find_first_not_of(k_inside), label.size()));
}

/// An object that is being changed.
class Adapter {
public:
    Adapter(Value object, const ObjectContext& context, const Position& place,
            const std::function<void(Diagnostic)>& notice)
        : object_(std::move(object)), context_(context), place_(place), notice_(notice), kind_(text({"kind"})) {}

    std::optional<Value> run() {
        if (kind_.empty()) {
            throw bad(
                fmt::format("Object 'Kind' is missing in '{}'", object_.is_nil() ? "null" : tmpl::describe(object_)),
                "add kind, or remove the document");
        }
        if (!context_.operator_only && text({"apiVersion"}).empty()) {
            throw bad("apiVersion is missing", "add apiVersion");
        }
        if (!context_.operator_only) { check_name(); }
        set_namespace();
        own_label();
        if (is_unwanted_build()) { return std::nullopt; }
        const bool has_kernel = !context_.kernel.empty() || (context_.operator_only && context_.is_hook);
        const bool affine = has_kernel && is_kernel_affine(object_, context_.operator_only);
        if (affine) { bind_to_kernel(); }
        select_nodes();
        if (annotation("proxy") == "true") { inject_proxy(); }
        if (kind_ != "SpecialResource" && kind_ != "Namespace") { own(); }
        // The hash that the operator writes last loses annotations, too.
        if (context_.operator_only && find({"metadata", "annotations"}) != nullptr) { (void)texts("annotations"); }
        if (kind_ == "Pod" && is_never_made() && !context_.is_hook) { return std::nullopt; }
        if (!context_.operator_only) {
            require_valid_names(object_, affine ? suffix() : "", place_);
            if (notice_) { note_texts(object_, place_, notice_); }
            if (notice_) { note_idle_annotations(); }
        }
        return std::move(object_);
    }

private:
    Value object_;
    const ObjectContext& context_;
    const Position& place_;
    const std::function<void(Diagnostic)>& notice_;
    std::string kind_;

    std::string shown() const { return fmt::format("{} {}", kind_, text({"metadata", "name"})); }

    Error bad(std::string message, std::string hint) const {
        return Error(Exit::data, "bad-manifest", std::move(message)).at(place_).hint(std::move(hint));
    }

    void differs(std::string message) const {
        if (notice_ && !context_.operator_only) {
            notice_({Severity::note, "sro-differs", fmt::format("{}: {}", shown(), message), place_,
                     k_operator_hint, Exit::data});
        }
    }

    void note_idle_annotations() const {
        each_idle_annotation(object_, [&](std::string text, std::string hint) {
            notice_({Severity::warning, "annotation-idle", std::move(text), place_, std::move(hint), Exit::data});
        });
    }

    /// The API server takes no object without a name, and none whose name is a number.
    void check_name() const {
        const Value* name = find({"metadata", "name"});
        if (name == nullptr || name->is_nil() || (name->is_text() && name->text().empty())) {
            throw bad(fmt::format("{}: metadata.name is missing", kind_), "give the object a name");
        }
        if (!name->is_text()) {
            throw bad(fmt::format("{}: metadata.name: expected a text, found {}", kind_, tmpl::describe(*name)),
                      "write the name in quotes");
        }
    }

    const Value* find(Path path) const { return find_at(object_, path); }
    std::string text(Path path) const { return text_at(object_, path); }

    /// The mapping at `path`, made where it is missing. Null counts as missing, but not for the operator.
    Map& mapping(Path path) {
        Value* at = &object_;
        std::string walked;
        for (const auto key : path) {
            walked += (walked.empty() ? "" : ".") + std::string(key);
            Value& next = (*at->shared_map())[std::string(key)];
            const bool made = next.type() == tmpl::Type::invalid;
            if (made || (next.is_nil() && !context_.operator_only) || (next.is_map() && next.is_none())) {
                next = Value::map({});
            }
            if (!next.is_map()) {
                throw bad(fmt::format("{}: {}: expected a mapping, found {}", shown(), walked, tmpl::describe(next)),
                          "correct the template or the value");
            }
            at = &next;
        }
        return *at->shared_map();
    }

    /// metadata.labels or metadata.annotations as maps of texts. The operator loses all of them where one is no text.
    Map& texts(std::string_view which) {
        const Value* found = find({"metadata", which});
        if (found == nullptr || found->is_nil()) {
            (*mapping({"metadata"}).try_emplace(std::string(which)).first).second = Value::map({});
            return mapping({"metadata", which});
        }
        Map& members = mapping({"metadata", which});
        for (auto& [key, value] : members) {
            if (value.is_text()) { continue; }
            if (context_.operator_only) {
                members.clear();
                break;
            }
            const auto written = recipe::chart::scalar_text(value);
            if (!written) {
                throw bad(fmt::format("{}: metadata.{}[{}]: expected a text, found {}", shown(), which, key,
                                      tmpl::describe(value)),
                          "quote the value");
            }
            if (notice_) {
                notice_({Severity::warning, "not-a-text",
                         fmt::format("{}: metadata.{}[{}] is {}, expected a text; the operator loses all {} then",
                                     shown(), which, key, tmpl::describe(value), which),
                         place_, fmt::format("write \"{}\" in quotes", *written), Exit::data});
            }
            value = Value::string(*written);
        }
        return members;
    }

    std::optional<std::string> annotation(std::string_view name) const {
        const Value* all = find({"metadata", "annotations"});
        if (all == nullptr) { return std::nullopt; }
        const auto is_other = [](const auto& member) { return !member.second.is_text(); };
        if (context_.operator_only && std::any_of(all->members().begin(), all->members().end(), is_other)) {
            return std::nullopt;
        }
        const auto found = all->members().find(std::string(k_prefix) + std::string(name));
        return found == all->members().end() ? std::nullopt : recipe::chart::scalar_text(found->second);
    }

    void set_namespace() {
        if (is_one_of(k_no_namespace, kind_) || !text({"metadata", "namespace"}).empty() ||
            context_.expanded->name_space.empty()) {
            return;
        }
        if (!context_.operator_only && is_one_of(k_cluster_kinds, kind_)) { return; }
        mapping({"metadata"})["namespace"] = Value::string(context_.expanded->name_space);
    }

    void own_label() {
        const std::string label = fmt::format("{}.openshift.io/owned", base::to_lower(context_.owner_kind));
        texts("labels")[label] = Value::string("true");
        if (find({"metadata", "annotations"}) != nullptr && !context_.operator_only) { (void)texts("annotations"); }
        if (!is_workload(kind_)) { return; }
        const Value* labels = find({"spec", "template", "metadata", "labels"});
        if (labels == nullptr) {
            throw bad(fmt::format("{}: spec.template.metadata.labels: labels not found", shown()),
                      "give the Pods a label, and the selector the same");
        }
        mapping({"spec", "template", "metadata", "labels"})[label] = Value::string("true");
    }

    std::string suffix() const { return '-' + kernel_suffix(context_.os, context_.kernel); }

    void bind_to_kernel() {
        if (context_.os.empty() && !(context_.is_hook && context_.operator_only)) {
            const auto& all = context_.facts->kernels;
            const auto node = std::find_if(all.begin(), all.end(), [&](const KernelFacts& one) {
                return one.kernel == context_.kernel && !one.os_image.empty();
            });
            throw Error(Exit::data, "unknown-fact",
                        fmt::format("{}: operatingSystemDecimal of kernel {} is not known, and part of the name",
                                    shown(), context_.kernel))
                .at(place_)
                .hint(system_hint(node == all.end() ? "" : node->os_image));
        }
        const std::string name =
            fmt::format("{}{}", text({"metadata", "name"}), suffix());
        mapping({"metadata"})["name"] = Value::string(name);
        if (kind_ == "BuildRun") { mapping({"spec", "buildRef"})["name"] = Value::string(name); }
        if (is_workload(kind_)) {
            mapping({"metadata", "labels"})["app"] = Value::string(name);
            mapping({"spec", "selector", "matchLabels"})["app"] = Value::string(name);
            if (!context_.operator_only) { drop_expressions_of_app(); }
            mapping({"spec", "template", "metadata", "labels"})["app"] = Value::string(name);
        }
        Map* selector = node_selector();
        if (selector == nullptr) { return; }
        std::string label = context_.operator_only ? context_.kernel : label_of_kernel(context_.kernel);
        if (label != context_.kernel) {
            differs(fmt::format("the kernel is {} in the node selector, as in the label of the nodes", label));
        }
        (*selector)[std::string(k_kernel_label)] = Value::string(label);
    }

    /// The label of the copy is another one than an expression asks for: no API server takes both.
    void drop_expressions_of_app() {
        Map& selector = mapping({"spec", "selector"});
        const auto found = selector.find("matchExpressions");
        if (found == selector.end() || !found->second.is_list()) { return; }
        tmpl::List others;
        for (const auto& one : found->second.items()) {
            if (text_at(one, {"key"}) != "app") { others.push_back(one); }
        }
        if (others.size() == found->second.items().size()) { return; }
        differs("matchExpressions of the label app are left out: the copy has a label of its own");
        if (others.empty()) {
            selector.erase("matchExpressions");
        } else {
            found->second = Value::list(std::move(others));
        }
    }

    /// nullptr for kinds that get none. The operator misspells StatefulSet.
    Map* node_selector() {
        if (kind_ == "DaemonSet" || kind_ == "Deployment" || (kind_ == "StatefulSet" && !context_.operator_only)) {
            return &mapping({"spec", "template", "spec", "nodeSelector"});
        }
        if (kind_ == "Pod" || kind_ == "BuildConfig") { return &mapping({"spec", "nodeSelector"}); }
        return nullptr;
    }

    void select_nodes() {
        Map* selector = node_selector();
        if (selector == nullptr || context_.is_hook) { return; }
        if (kind_ == "StatefulSet" && !context_.expanded->node_selector.empty()) {
            differs("gets spec.nodeSelector of the resource, as other workloads do");
        }
        for (const auto& [key, text] : context_.expanded->node_selector) { (*selector)[key] = Value::string(text); }
    }

    /// A build is made only if the image of its vendor cannot be pulled.
    bool is_unwanted_build() const {
        if (kind_ != "BuildConfig" && (kind_ != "Job" || context_.operator_only)) { return false; }
        const auto vendor = annotation("driver-container-vendor");
        return vendor && !context_.all_builds && *vendor != context_.facts->update_vendor.value_or("");
    }

    /// nullptr where there are no Pods.
    Map* pod_spec() {
        if (kind_ == "Pod") { return &mapping({"spec"}); }
        if (is_workload(kind_) || kind_ == "ReplicaSet" || kind_ == "Job") {
            return &mapping({"spec", "template", "spec"});
        }
        return kind_ == "CronJob" ? &mapping({"spec", "jobTemplate", "spec", "template", "spec"}) : nullptr;
    }

    void inject_proxy() {
        Map* spec = context_.operator_only ? nullptr : pod_spec();
        if (spec == nullptr) { return; }
        if (!context_.facts->proxy) {
            throw Error(Exit::data, "unknown-fact",
                        fmt::format("{}: proxy is not known, and the annotation proxy asks for it", shown()))
                .at(place_)
                .hint("give Proxy cluster in -f, proxy in --facts FILE, or --fact proxy.httpProxy=URL");
        }
        const Proxy& proxy = *context_.facts->proxy;
        if (proxy.http.empty() && proxy.https.empty()) { return; }
        for (const auto key : {"initContainers", "containers"}) {
            const auto containers = spec->find(key);
            if (containers == spec->end() || !containers->second.is_list()) { continue; }
            for (auto& container : containers->second.shared_items()) {
                if (container.is_map()) { set_proxy((*container.shared_map())["env"], proxy); }
            }
        }
        differs("the proxy is set in its containers; the operator loses it");
    }

    static void set_proxy(Value& env, const Proxy& proxy) {
        if (!env.is_list() || env.is_none()) { env = Value::list({}); }
        for (const auto& [name, value] : {std::pair<const char*, const std::string*>{"HTTP_PROXY", &proxy.http},
                                          {"HTTPS_PROXY", &proxy.https},
                                          {"NO_PROXY", &proxy.no}}) {
            const bool present =
                std::any_of(env.items().begin(), env.items().end(), [&, wanted = name](const Value& one) {
                    const auto own = one.members().find("name");
                    return own != one.members().end() && own->second.text() == wanted;
                });
            if (!present && !value->empty()) {
                env = env.appended(Value::map({{"name", Value::string(name)}, {"value", Value::string(*value)}}));
            }
        }
    }

    void own() {
        if (!context_.owner_uid.empty()) {
            mapping({"metadata"})["ownerReferences"] =
                Value::list({Value::map({{"apiVersion", Value::string(context_.owner->api_version)},
                                         {"kind", Value::string(context_.owner_kind)},
                                         {"name", Value::string(context_.owner->name)},
                                         {"uid", Value::string(context_.owner_uid)},
                                         {"controller", Value::boolean(true)},
                                         {"blockOwnerDeletion", Value::boolean(true)}})});
        }
        Map& annotations = texts("annotations");
        annotations["meta.helm.sh/release-name"] = Value::string(context_.owner->name);
        annotations["meta.helm.sh/release-namespace"] = Value::string(context_.expanded->name_space);
        texts("labels")["app.kubernetes.io/managed-by"] = Value::string("Helm");
    }

    bool is_never_made() const {
        const Value* policy = find({"spec", "restartPolicy"});
        if (context_.operator_only && (policy == nullptr || !policy->is_text())) {
            throw bad(fmt::format("{}: error or restartPolicy not found", shown()),
                      "the operator wants spec.restartPolicy; leave out --compat sro");
        }
        if (policy == nullptr || policy->text() != "Never") { return false; }
        if (!context_.is_hook) { differs("is made; the operator never makes Pods with restartPolicy Never"); }
        return context_.operator_only;
    }
};

}  // namespace

bool is_kernel_affine(const Value& object, bool operator_only) {
    const auto step = [](const Value* at, std::string_view key) -> const Value* {
        if (at == nullptr) { return nullptr; }
        const auto found = at->members().find(key);
        return found == at->members().end() ? nullptr : &found->second;
    };
    const Value* annotations = step(step(&object, "metadata"), "annotations");
    const Value* affine = step(annotations, std::string(k_prefix) + "kernel-affine");
    if (affine == nullptr) { return false; }
    if (!operator_only) { return recipe::chart::scalar_text(*affine) == "true"; }
    const bool all_texts = std::all_of(annotations->members().begin(), annotations->members().end(),
                                       [](const auto& member) { return member.second.is_text(); });
    return all_texts && affine->text() == "true";
}

bool operator_installs_before(std::string_view kind, std::string_view other, bool operator_only) {
    static const auto make = [](bool as_operator) {
        std::vector<std::string_view> order;
        for (const auto one : recipe::chart::install_order()) {
            if (as_operator && (one == "PriorityClass" || one == "IngressClass")) { continue; }
            if (one == "Service") {
                for (const auto own :
                     {"Certificates", "Issuer", "SecurityContextConstraints", "ImageStream", "BuildConfig"}) {
                    order.emplace_back(own);
                }
            }
            order.push_back(one);
        }
        return order;
    };
    static const std::vector<std::string_view> k_all = make(false), k_operator = make(true);
    const auto& order = operator_only ? k_operator : k_all;
    const auto a = std::find(order.begin(), order.end(), kind), b = std::find(order.begin(), order.end(), other);
    if (a == order.end() && b == order.end()) { return kind < other; }
    return a < b;
}

void check_texts(const chart::Manifest& manifest, const std::function<void(Diagnostic)>& notice) {
    tmpl::YamlFault fault;
    const Value object = tmpl::read_yaml_text(manifest.content, fault, tmpl::WholeNumbers::exact);
    note_texts(object, manifest.origin ? manifest.origin(1) : Position{manifest.source, 0, 0}, notice);
}

std::optional<Value> adapt_object(Value object, const ObjectContext& context, const Position& place,
                                  const std::function<void(Diagnostic)>& notice) {
    return Adapter(std::move(object), context, place, notice).run();
}

}  // namespace kmm::recipe::plan
