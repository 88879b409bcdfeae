// SPDX-License-Identifier: Apache-2.0
// Kinds of sro.openshift.io about releases of the cluster: SpecialResourceModule and PreflightValidation.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/resource/resource.hpp"

namespace kmm::recipe::plan {

/// A member of watched objects that must, or must not, have a value.
struct WatchSelector {
    std::string path, value;
    bool exclude = false;
    Position origin;
};

/// Where versions or release images stand in objects of a cluster.
struct Watch {
    std::string api_version, kind, name, name_space;  ///< name "": all of the kind
    std::string path;                                 ///< JSONPath: $.status.desired.image
    std::vector<WatchSelector> selectors;
    Position origin;
};

/// A chart that is rendered once for each release, not for kernels of nodes: builds on a hub.
struct SpecialResourceModule {
    SpecialResource resource;  ///< name, chart, namespace and set
    std::vector<Watch> watches;
};

/// "Is every resource ready for that release?"
struct ReleaseValidation {
    std::string name, update_image;
    Position origin;
};

[[nodiscard]] bool is_special_resource_module(const value::Document& document);
[[nodiscard]] bool is_release_validation(const value::Document& document);

/// Decodes and validates. All faults with positions: "missing-field", "wrong-type", "unknown-field", "bad-value".
[[nodiscard]] SpecialResourceModule decode_special_resource_module(const value::Document& document,
                                                                   Diagnostics& faults);
[[nodiscard]] ReleaseValidation decode_release_validation(const value::Document& document, Diagnostics& faults);

/// The texts at a JSONPath: $, members, [N] from either end, [*], [?(@.KEY == 'TEXT')]; a member of a list is that of
/// each item. Empty if one is absent. Error: data "bad-value" for any other path.
[[nodiscard]] std::vector<std::string> json_path_texts(const value::Node& root, const std::string& path);

/// The releases of `facts` that the watched objects name, by version or by image, in the order of their toolkit images;
/// all of them if no watched object is among `objects`. `operator_only`: of several architectures that of the operator,
/// which kernels without any get. Errors: data "unknown-fact" for a release that the facts do not have, "no-releases"
/// if there is none.
[[nodiscard]] std::vector<Release> watched_releases(const SpecialResourceModule& module,
                                                    std::span<const value::Document> objects, const Facts& facts,
                                                    bool operator_only);

/// The releases that a validation names, one of each architecture and system. Error: data "unknown-fact".
[[nodiscard]] std::vector<Release> validated_releases(const ReleaseValidation& validation, const Facts& facts);

/// What charts see of a module besides its document.
struct ModuleView {
    bool operator_only = false;         ///< as the Special Resource Operator shows it
    std::string uid;                    ///< where the document has none; "" unknown
    std::vector<std::string> complete;  ///< toolkit images of the releases that its status names as complete
};
/// .Values of its charts.
[[nodiscard]] tmpl::Value release_values(const SpecialResourceModule& module, const Release& release,
                                         const ModuleView& view);

}  // namespace kmm::recipe::plan
