// SPDX-License-Identifier: Apache-2.0
// Whether KMM's operator is running in a cluster, and what it knows of images.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "kube/client.hpp"

namespace kmm::cluster {

/// The label that KMM's own Pods bear, with the value "kmm"; its worker Pods do too, as component "worker" (facts:
/// KMM 1.2).
inline constexpr const char* k_label_part_of = "app.kubernetes.io/part-of";

/// A Pod of KMM's operator, and by what it is known.
struct OperatorPod {
    std::string name;  ///< NAMESPACE/NAME
    std::string sign;  ///< "label app.kubernetes.io/part-of=kmm", "name kmm-operator-controller-0", "image REFERENCE"
};

/// What was found of an operator.
struct OperatorSigns {
    std::vector<OperatorPod> pods;  ///< its Pods that have not ended, sorted by name: it runs
    std::string
        config;  ///< a NodeModulesConfig that somebody else than kmm-tools wrote: it has run at least; "" for none
    [[nodiscard]] bool any() const noexcept { return !pods.empty() || !config.empty(); }
};

/// Pods with the label part-of=kmm; where there are none, those with a label that KMM's controller and many others bear
/// (control-plane, app.kubernetes.io/name), if the name is that of KMM's own manifests and OpenShift's bundle
/// (kmm-operator-controller, before that kmm-operator-controller-manager) or the image is
/// kernel-module-management-operator or kernel-module-management-rhelN-operator. NodeModulesConfigs are looked at only
/// where no Pod was found. Who has written one is in metadata.managedFields; one with a Node as owner is KMM's (facts:
/// KMM 4.2). Errors: those of kube::Client.
[[nodiscard]] OperatorSigns look_for_operator(kube::Client& client);

/// What KMM says of the images of one Module, in its ModuleImagesConfig (facts: KMM 2.3, 11.1).
struct ImageWords {
    std::map<std::string, std::string> lacking;  ///< images it does not call found: its word, "" as long as it has none
};

/// Looks what KMM says of `images`. As long as it may still find those that are lacking, waits, `patience` at most.
/// Nothing is lacking where the server has no such kind or object: older KMM does not look. Errors: those of
/// kube::Client.
[[nodiscard]] ImageWords look_for_images(kube::Client& client, const kube::Key& module,
                                         const std::vector<std::string>& images, std::chrono::milliseconds patience);

}  // namespace kmm::cluster
