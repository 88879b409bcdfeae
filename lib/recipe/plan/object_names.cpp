// SPDX-License-Identifier: Apache-2.0
// Follows ValidateObjectMeta and ValidateLabels of Kubernetes' API server.
#include "recipe/plan/object_names.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "recipe/plan/value_path.hpp"

namespace kmm::recipe::plan {

using tmpl::Value;

namespace {

constexpr std::size_t k_label_max = api::k_label_length_max, k_name_max = api::k_subdomain_length_max;
/// Whose names are DNS labels, or are values of labels.
constexpr std::array<std::string_view, 3> k_label_names{"Namespace", "Service", "Job"};
/// Whose names are DNS subdomains; others, such as roles, may have other characters.
constexpr std::array<std::string_view, 12> k_dns_names{
    "ConfigMap",   "DaemonSet", "Deployment", "Ingress",   "NetworkPolicy", "PersistentVolumeClaim",
    "Pod",         "ReplicaSet", "Secret",    "ServiceAccount", "StatefulSet", "PersistentVolume"};
constexpr std::array<std::string_view, 5> k_with_pods{"DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"};

template <std::size_t N>
bool has(const std::array<std::string_view, N>& kinds, std::string_view kind) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

class NameCheck {
public:
    NameCheck(const Value& object, const std::string& suffix, const Position& place)
        : object_(object), suffix_(suffix), place_(place), kind_(text_at(object, {"kind"})),
          name_(text_at(object, {"metadata", "name"})) {}

    void run() const {
        const bool is_core = text_at(object_, {"apiVersion"}).find(".k8s.io") == std::string::npos;
        name(is_core && has(k_label_names, kind_) ? k_label_max : k_name_max);
        labels({"metadata", "labels"});
        if (kind_ == "Pod") { labels({"spec", "nodeSelector"}); }
        if (!has(k_with_pods, kind_)) { return; }  // a template of another kind may be no Pod
        labels({"spec", "template", "metadata", "labels"});
        labels({"spec", "template", "spec", "nodeSelector"});
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

    std::string shorten(std::size_t max) const {
        if (suffix_.empty() || suffix_.size() >= max) { return "shorten it"; }
        return fmt::format("shorten the name in the template to {} characters: '{}' is added for the kernel",
                           max - suffix_.size(), suffix_);
    }

    void name(std::size_t max) const {
        if (name_.size() > max) {
            refuse("metadata.name", fmt::format("expected at most {} characters, found {}", max, name_.size()),
                   shorten(max));
        }
        const bool is_label = max == k_label_max;
        if (is_label ? !api::is_dns1123_label(name_) : has(k_dns_names, kind_) && !api::is_dns1123_subdomain(name_)) {
            refuse("metadata.name",
                   fmt::format("expected lower-case letters, digits{} and '-', with a letter or digit first and last",
                               is_label ? "" : ", '.'"),
                   "correct the template or the value");
        }
    }

    void labels(Path path) const {
        const Value* found = find_at(object_, path);
        if (found == nullptr) { return; }
        std::string where;
        for (const auto part : path) { where += (where.empty() ? "" : ".") + std::string(part); }
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
};

}  // namespace

void require_valid_names(const Value& object, const std::string& suffix, const Position& place) {
    NameCheck(object, suffix, place).run();
}

}  // namespace kmm::recipe::plan
