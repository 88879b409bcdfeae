// SPDX-License-Identifier: Apache-2.0
// Follows ValidateObjectMeta, ValidateLabels and the validation of Pods, Services and ConfigMaps of Kubernetes' API
// server.
#include "recipe/plan/object_names.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "recipe/resource/value_path.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

constexpr std::size_t k_label_max = api::k_label_length_max, k_name_max = api::k_subdomain_length_max;
constexpr std::size_t k_cron_job_max = 52, k_stateful_set_max = 52, k_port_max = 15;
constexpr std::size_t k_annotations_max = std::size_t{256} << 10;
/// Whose names are DNS subdomains; others, such as roles, may have other characters.
constexpr std::array<std::string_view, 22> k_dns_names{
    "ConfigMap", "CronJob", "CSIDriver", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job",
    "Lease", "LimitRange", "NetworkPolicy", "PersistentVolume", "PersistentVolumeClaim", "Pod",
    "PodDisruptionBudget", "PriorityClass", "ReplicaSet", "ResourceQuota", "Secret", "ServiceAccount", "StatefulSet",
    "StorageClass"};

template <std::size_t N>
bool has(const std::array<std::string_view, N>& kinds, std::string_view kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

bool is_of(const Value& object, std::string_view group) {
    const std::string version = text_at(object, {"apiVersion"});
    return group.empty() ? version == "v1" : version.starts_with(std::string(group) + "/");
}

/// The template of Pods in an object, or a Pod itself; nullptr in objects of other kinds. `where` gets its path.
const Value* pod_of(const Value& object, std::string& where) {
    const std::string kind = text_at(object, {"kind"});
    if (kind == "Pod" && is_of(object, "")) { return &object; }
    const bool is_app = (is_of(object, "apps") || is_of(object, "extensions")) &&
                        (kind == "DaemonSet" || kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet");
    if (is_app || (kind == "Job" && is_of(object, "batch"))) {
        where = "spec.template.";
        return find_at(object, {"spec", "template"});
    }
    if (kind != "CronJob" || !is_of(object, "batch")) { return nullptr; }
    where = "spec.jobTemplate.spec.template.";
    return find_at(object, {"spec", "jobTemplate", "spec", "template"});
}

bool is_stateful_set(const Value& object) {
    return text_at(object, {"kind"}) == "StatefulSet" && is_of(object, "apps");
}

bool is_port_name(std::string_view text) {
    const auto is = [](std::string_view set) {
        return [set](char c) { return set.find(c) != std::string_view::npos; };
    };
    constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyz";
    constexpr std::string_view k_all = "abcdefghijklmnopqrstuvwxyz0123456789-";
    return !text.empty() && text.size() <= k_port_max && std::all_of(text.begin(), text.end(), is(k_all)) &&
           std::any_of(text.begin(), text.end(), is(k_letters)) && text.find("--") == std::string_view::npos &&
           text.front() != '-' && text.back() != '-';
}

bool is_data_key(std::string_view text) {
    return !text.empty() && text.size() <= k_name_max && !text.starts_with("..") && text != "." &&
           std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                      c == '_' || c == '.';
           });
}

bool is_variable(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '='; });
}

bool is_service_name(std::string_view text) {
    return api::is_dns1123_label(text) && text.front() >= 'a' && text.front() <= 'z';
}

std::span<const Value> items_at(const Value& object, Path path) {
    const Value* found = find_at(object, path);
    return found != nullptr && found->is_list() ? found->items() : std::span<const Value>();
}

class NameCheck {
public:
    NameCheck(const Value& object, const std::string& suffix, const Position& place)
        : object_(object), suffix_(suffix), place_(place), kind_(text_at(object, {"kind"})),
          name_(text_at(object, {"metadata", "name"})) {}

    void run() const {
        name();
        labels(object_, "", {"metadata", "labels"});
        annotations(object_, "");
        if (is_of(object_, "") && (kind_ == "ConfigMap" || kind_ == "Secret")) {
            for (const auto which : {"data", "binaryData", "stringData"}) { data_keys(which); }
        }
        if (is_of(object_, "") && kind_ == "Service") { service_ports(); }
        std::string where;
        const Value* pod = pod_of(object_, where);
        if (pod == nullptr) { return; }
        if (pod != &object_) {
            labels(*pod, where, {"metadata", "labels"});
            annotations(*pod, where);
            if (kind_ != "Job" && kind_ != "CronJob") { selector(*pod); }
        }
        labels(*pod, where, {"spec", "nodeSelector"});
        if (const Value* spec = find_at(*pod, {"spec"}); spec != nullptr) { pod_parts(*spec, where + "spec."); }
    }

private:
    const Value& object_;
    const std::string& suffix_;
    const Position& place_;
    std::string kind_, name_;

    [[noreturn]] void refuse(const std::string& where, const std::string& what, const std::string& hint) const {
        throw Error(Exit::data, "bad-manifest",
                    fmt::format("{} {}: {}: {}", base::escape(kind_), base::escape(name_), where, what))
            .at(place_)
            .hint(hint);
    }
    [[noreturn]] void refuse_name(const std::string& where, const std::string& expected,
                                  const std::string& found) const {
        refuse(where, fmt::format("expected {}, found '{}'", expected, base::escape(found)),
               "correct the template or the value");
    }

    std::string shorten(std::size_t max) const {
        if (suffix_.empty() || suffix_.size() >= max) { return "shorten it"; }
        return fmt::format("shorten the name in the template to {} characters: '{}' is added for the kernel",
                           max - suffix_.size(), suffix_);
    }

    /// The names of Jobs are labels of their Pods, but may have dots.
    void name() const {
        const bool is_namespace = kind_ == "Namespace" && is_of(object_, "");
        const bool is_service = kind_ == "Service" && is_of(object_, "");
        const bool is_batch = is_of(object_, "batch");
        // Its name is the beginning of host names.
        const bool is_set = is_stateful_set(object_);
        const std::size_t max = is_namespace || is_service || is_set || (is_batch && kind_ == "Job") ? k_label_max
                                : is_batch && kind_ == "CronJob"                           ? k_cron_job_max
                                                                                           : k_name_max;
        if (name_.size() > max) {
            refuse("metadata.name", fmt::format("expected at most {} characters, found {}", max, name_.size()),
                   shorten(max));
        }
        if (is_service && !is_service_name(name_)) {
            refuse("metadata.name",
                   "expected lower-case letters, digits and '-', with a letter first and a letter or digit last",
                   "correct the template or the value");
        }
        const bool is_label = is_namespace || is_set;
        if (is_label ? !api::is_dns1123_label(name_)
                     : has(k_dns_names, kind_) && !api::is_dns1123_subdomain(name_)) {
            refuse("metadata.name",
                   fmt::format("expected lower-case letters, digits{} and '-', with a letter or digit first and last",
                               is_label ? "" : ", '.'"),
                   "correct the template or the value");
        }
        if (name_ == "." || name_ == ".." || name_.find_first_of("/%") != std::string::npos) {
            refuse("metadata.name", "expected a name without '/' and '%' that is neither '.' nor '..'",
                   "correct the template or the value");
        }
    }

    void labels(const Value& holder, const std::string& before, Path path) const {
        const Value* found = find_at(holder, path);
        if (found == nullptr) { return; }
        std::string where = before;
        for (const auto part : path) { where += (where == before ? "" : ".") + std::string(part); }
        for (const auto& [key, value] : found->members()) {
            if (!api::is_qualified_name(key)) {
                refuse(where, fmt::format("expected the key of a label, found '{}'", base::escape(key)),
                       "at most 63 letters, digits, '-', '_' and '.', behind a DNS name and '/' if there is one");
            }
            if (!value.is_text()) { continue; }
            const auto& shown = value.text();
            const auto at = fmt::format("{}[{}]", where, base::escape(key));
            if (shown.size() > k_label_max) {
                refuse(at,
                       fmt::format("expected at most {} characters, found {}: '{}'", k_label_max, shown.size(),
                                   base::escape(shown)),
                       shown == name_ ? shorten(k_label_max) : "shorten it");
            }
            if (!api::is_label_value(shown)) {
                refuse(at,
                       fmt::format("expected letters, digits, '-', '_' and '.', with a letter or digit first and last, "
                                   "found '{}'",
                                   base::escape(shown)),
                       shown.find('+') == std::string::npos
                           ? "correct the template or the value"
                           : "write | replace \"+\" \"_\" behind the kernel in the template");
            }
        }
    }

    void annotations(const Value& holder, const std::string& before) const {
        const Value* found = find_at(holder, {"metadata", "annotations"});
        if (found == nullptr) { return; }
        std::size_t size = 0;
        for (const auto& [key, value] : found->members()) {
            if (!api::is_qualified_name(base::to_lower(key))) {
                refuse(before + "metadata.annotations",
                       fmt::format("expected the key of an annotation, found '{}'", base::escape(key)),
                       "at most 63 letters, digits, '-', '_' and '.', behind a DNS name and '/' if there is one");
            }
            size += key.size() + (value.is_text() ? value.text().size() : 0);
        }
        if (size > k_annotations_max) {
            refuse(before + "metadata.annotations",
                   fmt::format("expected at most {} bytes, found {}", k_annotations_max, size),
                   "move what is long to a ConfigMap");
        }
    }

    void data_keys(const std::string& which) const {
        const Value* found = find_at(object_, {which});
        if (found == nullptr) { return; }
        for (const auto& [key, value] : found->members()) {
            if (!is_data_key(key)) {
                refuse_name(which, "a key with letters, digits, '-', '_' and '.', at most 253 of them", key);
            }
        }
    }

    /// A name that no other item of a list has, which `seen` keeps.
    void require_new(const std::string& where, const std::string& name, std::set<std::string>& seen) const {
        if (!seen.insert(name).second) { refuse_name(where, "a name of its own", name); }
    }

    void service_ports() const {
        const auto ports = items_at(object_, {"spec", "ports"});
        std::set<std::string> seen;
        for (std::size_t i = 0; i < ports.size(); ++i) {
            const auto where = fmt::format("spec.ports[{}].name", i);
            const std::string name = text_at(ports[i], {"name"});
            if (name.empty()) {
                if (ports.size() > 1) { refuse(where, "a service with several ports needs their names", "add a name"); }
                continue;
            }
            if (!api::is_dns1123_label(name)) {
                refuse_name(where, "at most 63 lower-case letters, digits and '-'", name);
            }
            require_new(where, name, seen);
        }
    }

    void selector(const Value& pod) const {
        const Value* wanted = find_at(object_, {"spec", "selector", "matchLabels"});
        if (wanted == nullptr) { return; }
        const Value* has_labels = find_at(pod, {"metadata", "labels"});
        for (const auto& [key, value] : wanted->members()) {
            if (!value.is_text()) { continue; }
            const Value* found = has_labels == nullptr ? nullptr : find_at(*has_labels, {key});
            if (found != nullptr && found->is_text() && found->text() == value.text()) { continue; }
            refuse(fmt::format("spec.selector.matchLabels[{}]", base::escape(key)),
                   fmt::format("expected a label of spec.template, found '{}'; the template has {}",
                               base::escape(value.text()),
                               found == nullptr    ? std::string("no such label")
                               : !found->is_text() ? tmpl::describe(*found)
                                                   : fmt::format("'{}'", base::escape(found->text()))),
                   "give selector and template the same label");
        }
    }

    void pod_parts(const Value& spec, const std::string& where) const {
        std::set<std::string> names, volumes;
        const auto list = items_at(spec, {"volumes"});
        for (std::size_t i = 0; i < list.size(); ++i) {
            part_name(list[i], fmt::format("{}volumes[{}]", where, i), volumes);
        }
        for (const auto which : {"initContainers", "containers"}) {
            const auto containers = items_at(spec, {which});
            for (std::size_t i = 0; i < containers.size(); ++i) {
                const auto place = fmt::format("{}{}[{}]", where, which, i);
                part_name(containers[i], place, names);
                container(containers[i], place);
            }
        }
    }

    void part_name(const Value& part, const std::string& where, std::set<std::string>& seen) const {
        const std::string name = text_at(part, {"name"});
        if (!api::is_dns1123_label(name)) {
            refuse_name(where + ".name",
                        "at most 63 lower-case letters, digits and '-', with a letter or digit first and last", name);
        }
        require_new(where + ".name", name, seen);
    }

    void container(const Value& one, const std::string& where) const {
        std::set<std::string> seen;
        const auto ports = items_at(one, {"ports"});
        for (std::size_t i = 0; i < ports.size(); ++i) {
            const std::string name = text_at(ports[i], {"name"});
            if (name.empty()) { continue; }
            const auto place = fmt::format("{}.ports[{}].name", where, i);
            if (!is_port_name(name)) {
                refuse_name(place, "at most 15 lower-case letters, digits and single '-', with a letter among them",
                            name);
            }
            require_new(place, name, seen);
        }
        const auto variables = items_at(one, {"env"});
        for (std::size_t i = 0; i < variables.size(); ++i) {
            const std::string name = text_at(variables[i], {"name"});
            if (!is_variable(name)) {
                refuse_name(fmt::format("{}.env[{}].name", where, i), "ASCII characters without '='", name);
            }
        }
    }
};

class TextCheck {
public:
    TextCheck(const Value& object, const std::function<void(const std::string&, const Value&)>& found)
        : object_(object), found_(found) {}

    void run() const {
        const std::string kind = text_at(object_, {"kind"});
        metadata(object_, "");
        if (is_of(object_, "") && (kind == "ConfigMap" || kind == "Secret")) {
            for (const auto which : {"data", "binaryData", "stringData"}) { members(object_, which, which); }
        }
        std::string where;
        const Value* pod = pod_of(object_, where);
        if (pod == nullptr) { return; }
        if (pod != &object_) {
            metadata(*pod, where);
            if (const Value* selector = find_at(object_, {"spec", "selector"}); selector != nullptr) {
                members(*selector, "matchLabels", "spec.selector.matchLabels");
            }
        }
        const Value* spec = find_at(*pod, {"spec"});
        if (spec == nullptr) { return; }
        members(*spec, "nodeSelector", where + "spec.nodeSelector");
        for (const auto which : {"initContainers", "containers"}) {
            const auto containers = items_at(*spec, {which});
            for (std::size_t i = 0; i < containers.size(); ++i) {
                container(containers[i], fmt::format("{}spec.{}[{}]", where, which, i));
            }
        }
    }

private:
    const Value& object_;
    const std::function<void(const std::string&, const Value&)>& found_;

    void text(const Value& value, const std::string& where) const {
        if (!value.is_text() && !value.is_nil()) { found_(where, value); }
    }
    void members(const Value& holder, std::string_view which, const std::string& where) const {
        const Value* found = find_at(holder, {which});
        if (found == nullptr) { return; }
        for (const auto& [key, value] : found->members()) { text(value, fmt::format("{}[{}]", where, key)); }
    }
    void metadata(const Value& holder, const std::string& before) const {
        const Value* found = find_at(holder, {"metadata"});
        if (found == nullptr) { return; }
        for (const auto which : {"labels", "annotations"}) {
            members(*found, which, fmt::format("{}metadata.{}", before, which));
        }
    }
    void container(const Value& one, const std::string& where) const {
        for (const auto which : {"image", "workingDir", "imagePullPolicy"}) {
            if (const Value* found = find_at(one, {which})) { text(*found, fmt::format("{}.{}", where, which)); }
        }
        for (const auto which : {"command", "args"}) {
            const auto words = items_at(one, {which});
            for (std::size_t i = 0; i < words.size(); ++i) {
                text(words[i], fmt::format("{}.{}[{}]", where, which, i));
            }
        }
        const auto variables = items_at(one, {"env"});
        for (std::size_t i = 0; i < variables.size(); ++i) {
            if (const Value* found = find_at(variables[i], {"value"})) {
                text(*found, fmt::format("{}.env[{}].value", where, i));
            }
        }
    }
};

}  // namespace

void require_valid_names(const Value& object, const std::string& suffix, const Position& place) {
    NameCheck(object, suffix, place).run();
}

std::string pods_label_problem(const Value& object) {
    const std::string name = text_at(object, {"metadata", "name"});
    if (!is_stateful_set(object) || name.size() <= k_stateful_set_max) { return ""; }
    return fmt::format(
        "StatefulSet {}: the name has {} characters, expected at most {}: its Pods get the label "
        "controller-revision-hash with the name and 11 more, and a label has at most {}",
        name, name.size(), k_stateful_set_max, k_label_max);
}

void each_wrong_text(const Value& object, const std::function<void(const std::string& text)>& found) {
    const std::string kind = text_at(object, {"kind"}), name = text_at(object, {"metadata", "name"});
    const bool is_secret = kind == "Secret";
    const std::function<void(const std::string&, const Value&)> say = [&](const std::string& where,
                                                                          const Value& value) {
        found(fmt::format("{} {}: {} is {}, expected a text; the API server refuses it", kind, name, where,
                          is_secret ? "a value of another type" : tmpl::describe(value)));
    };
    TextCheck(object, say).run();
}

}  // namespace kmm::recipe::plan
