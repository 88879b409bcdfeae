// SPDX-License-Identifier: Apache-2.0
// SpecialResource: what a driver stack is made of.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipe/govalue/value.hpp"
#include "value/node.hpp"

namespace kmm::recipe::plan {

inline constexpr std::string_view k_group_version = "sro.openshift.io/v1beta1";

struct ChartReference {
    std::string name, version, repository, url;
    Position origin;
};

/// Another SpecialResource that has to be there first.
struct RecipeDependency {
    std::string name;       ///< of the SpecialResource and of its chart
    ChartReference chart;
    tmpl::Value set;  ///< in place of the values that the other has itself; nil for v1alpha1, whose other keeps its own
    bool image_reference = false;  ///< this one may pull images of the namespace of the dependency
    Position origin;
};

enum class Management { managed, unmanaged, removed };

struct SpecialResource {
    std::string name, uid;
    std::string api_version;      ///< that of v1alpha1 for a v1beta1 as it was before charts, which has its fields
    ChartReference chart;         ///< name empty: the built-in recipe driver-container
    std::string name_space;       ///< may be a template
    std::map<std::string, std::string> node_selector;  ///< values may be templates
    struct {
        std::string key;                  ///< "": any node
        std::vector<std::string> values;  ///< one of which the label has
    } node_choice;                        ///< of v1alpha1
    std::vector<RecipeDependency> dependencies;
    Management management = Management::managed;
    /// The object as its Go type writes it: what templates see as .Values.specialresource. Whole numbers are int64.
    tmpl::Value object = tmpl::Value::map({});
    /// Where values of the document stand, by path: "spec.set.kmodNames[0]".
    std::map<std::string, Position, std::less<>> places;
    Position origin;
    std::shared_ptr<const SpecialResource> set_giver =
        nullptr;  ///< whose dependency it is: templates in `set` see that one

    [[nodiscard]] bool is_built_in() const { return chart.name.empty(); }
    /// The values of `spec.set`; never nil.
    [[nodiscard]] tmpl::Value set() const;
    /// The nearest place that is known of a path, else that of the document.
    [[nodiscard]] Position place(std::string_view path) const;
};

/// Whether a document is of a kind of the group of SpecialResources, in any version.
[[nodiscard]] bool is_of_operator(const value::Document& document, std::string_view kind);
/// Whether a document is a SpecialResource of any version.
[[nodiscard]] bool is_special_resource(const value::Document& document);

/// Decodes v1beta1 and v1alpha1. All faults of the document are appended: unknown-field, wrong-type, missing-field,
/// bad-value. What comes back is usable only if none of them is an error.
[[nodiscard]] SpecialResource decode_special_resource(const value::Document& document, Diagnostics& faults);

/// A tree of a document as templates see it.
[[nodiscard]] tmpl::Value to_value(const value::Node& node);

}  // namespace kmm::recipe::plan
