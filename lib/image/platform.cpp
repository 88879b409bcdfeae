// SPDX-License-Identifier: Apache-2.0
#include "image/platform.hpp"

namespace kmm::image {

namespace {

std::string effective_variant(const Platform& platform) {
    return platform.architecture == "arm64" && platform.variant == "v8" ? std::string() : platform.variant;
}

}  // namespace

std::string Platform::to_string() const {
    std::string text = (os.empty() ? "unknown" : os) + "/" + (architecture.empty() ? "unknown" : architecture);
    if (!variant.empty()) {
        text += "/" + variant;
    }
    return text;
}

bool matches(const Platform& offered, const Platform& wanted) {
    if (offered.os != wanted.os || offered.architecture != wanted.architecture) {
        return false;
    }
    const std::string left = effective_variant(offered);
    const std::string right = effective_variant(wanted);
    return left.empty() || right.empty() || left == right;
}

}  // namespace kmm::image
