// SPDX-License-Identifier: Apache-2.0
#include "plan/codes/reasons.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_reasons{
    Reason{"bad-regexp", "a kernel mapping is not a regular expression", "correct the regexp of the kernel mapping"},
    Reason{"bad-template", "the image template cannot be read", "correct containerImage"},
    Reason{"config-changed", "the module is loaded with another configuration", ""},
    Reason{"entry-for-other-kernel", "the held configuration is for another kernel than the node runs",
           "set the node's version label to the Module's version"},
    Reason{"image-missing", "the image is not in its registry", "push the image, or correct containerImage"},
    Reason{"image-not-verified", "KMM has not found out yet whether the image exists",
           "wait for the pull Pod of the image, or look what it waits for"},
    Reason{"kernel-changed", "the node runs another kernel than the module was loaded for", ""},
    Reason{"kernel-unknown", "the node does not say which kernel it runs",
           "set status.nodeInfo.kernelVersion of the Node"},
    Reason{"kernel-unparsable", "the kernel version is not possible, or has fewer than three parts",
           "correct status.nodeInfo.kernelVersion of the Node"},
    Reason{"missing-image", "neither the mapping nor the container has an image", "set containerImage"},
    Reason{"module-deleting", "the Module is being deleted", ""},
    Reason{"module-unknown", "the node's configuration names a Module that was not read",
           "add the Module to the input, or remove the entry from the NodeModulesConfig"},
    Reason{"no-kernel-mapping", "no kernel mapping matches the node's kernel",
           "add a kernel mapping that matches the node's kernel"},
    Reason{"no-module-loader", "the Module has no moduleLoader", "add spec.moduleLoader to the Module"},
    Reason{"node-rebooted", "the node has rebooted since the module was loaded", ""},
    Reason{"not-loaded", "the module is not loaded yet", ""},
    Reason{"selector-mismatch", "the node does not match the Module's selector",
           "label the node, or change spec.selector of the Module"},
    Reason{"taint-not-tolerated", "the node has a taint that the Module does not tolerate",
           "remove the taint (kubectl uncordon, if it is a cordon), or add a toleration to the Module"},
    Reason{"unknown-template-variable", "the image template uses an unknown variable", "correct containerImage"},
    Reason{"unload-policy", "the Module's annotation kmmtools.dev/unload-policy keeps what is loaded",
           "change the annotation, or reboot the node"},
    Reason{"up-to-date", "the module is loaded as configured", ""},
    Reason{"version-changed", "the node's version label moves the module to another version", ""},
    Reason{"version-held", "the node's version label holds the module at another version",
           "set the node's version label to the Module's version"},
    Reason{"version-label-differs", "the node's label version-worker-pod names another version than the Module has",
           "set the node's label version-module to the Module's version; KMM changes version-worker-pod to it"},
    Reason{"version-label-missing", "the Module has a version and the node has no label version-worker-pod",
           "set the node's label version-module to the Module's version; KMM adds version-worker-pod"},
    Reason{"version-labels-misread", "KMM misreads the version labels of the Module and never moves them",
           "give the Module a name without dots"},
    Reason{"version-labels-stuck", "the node's version labels are in a state that KMM never leaves",
           "remove the schedule label of the module from the node"},
    Reason{"version-relabelled", "the version labels take the module out and put it back", ""},
    Reason{"worker-running", "a worker Pod is running for the module", ""},
    Reason{"worker-stale", "a worker Pod is deleted since it works on what is not wanted", ""},
};

}  // namespace

std::span<const Reason> reasons() noexcept { return k_reasons; }

const Reason& reason(std::string_view code) {
    const auto* found = std::lower_bound(k_reasons.begin(), k_reasons.end(), code,
                                         [](const Reason& a, std::string_view b) { return a.code < b; });
    if (found == k_reasons.end() || found->code != code) { throw bug("reason not in the list: " + std::string(code)); }
    return *found;
}

}  // namespace kmm::plan
