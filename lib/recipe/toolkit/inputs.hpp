// SPDX-License-Identifier: Apache-2.0
// What saved files say of releases, driver toolkits and kernels.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::recipe::toolkit {

/// A toolkit image as a release lists it.
struct ListedToolkit {
    std::string tag;    ///< "driver-toolkit", "driver-toolkit-10"
    std::string image;  ///< as written
    Position place;
};

/// image-references, with release-metadata beside it, or `oc adm release info -o json`.
struct Payload {
    std::string version;
    std::string image;          ///< of the release itself; "" not known
    std::string os_version;     ///< "417.94.202410211619-0"; "" not known
    std::string os_version_10;  ///< of its second system, "10.1.20260101-0"; "" not known
    std::vector<ListedToolkit> toolkits;
    bool has_references = false;  ///< false: release-metadata alone
    Position place;
};

/// Kernels of one image: driver-toolkit-release.json, labels of a toolkit image, or labels of the image of the
/// operating system.
struct ImageKernels {
    std::string kernel, rt_kernel;  ///< rt "" if there is none
    std::string os_version;         ///< "9.4", "" not known
    std::string architecture;       ///< as kernels write it, "" not known
    std::vector<std::string> images;  ///< pullspecs by digest, also of its list; empty: the file does not say which
    bool is_system = false;         ///< labels of the operating system, not of a toolkit
    Position place;
};

/// A tag of ImageStream openshift/driver-toolkit.
struct StreamTag {
    std::string tag, image;
    Position place;
};

struct SeenNode {
    std::string name, kernel, os_image;
    Position place;
};

struct Inputs {
    std::vector<Payload> payloads;
    std::vector<ImageKernels> images;
    std::vector<StreamTag> tags;
    std::vector<SeenNode> nodes;
};

/// Adds what a document says. Known: image-references and release-metadata of a release, `oc adm release info -o json`,
/// driver-toolkit-release.json, configurations of images (as stored, and of oc image info, skopeo inspect, podman and
/// docker inspect, Image, ImageStreamTag; lists of them), ImageStream driver-toolkit, Node. Other Kubernetes objects
/// are passed over. Faults with positions:
/// "not-toolkit-data", "missing-field", "wrong-type", "bad-kernel", "bad-reference".
void read_input(const value::Document& document, Inputs& inputs, Diagnostics& faults);

}  // namespace kmm::recipe::toolkit
