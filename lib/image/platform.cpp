// SPDX-License-Identifier: Apache-2.0
#include "image/platform.hpp"

#include "base/text.hpp"

namespace kmm::image {

namespace {

/// As container runtimes read it (containerd's platforms.Normalize), but that an "arm" without a variant says none.
Platform normal(const Platform& platform) {
    Platform result{base::to_lower(platform.os), base::to_lower(platform.architecture),
                    base::to_lower(platform.variant)};
    std::string& name = result.architecture;
    std::string& variant = result.variant;
    if (name == "x86_64" || name == "x86-64" || name == "amd64") {
        name = "amd64";
        variant = variant == "v1" ? "" : variant;
    } else if (name == "aarch64" || name == "arm64") {
        name = "arm64";
        variant = variant == "8" || variant == "v8" ? "" : variant;
    } else if (name == "i386") {
        name = "386";
        variant.clear();
    } else if (name == "armhf" || name == "armel") {
        variant = name == "armhf" ? "v7" : "v6";
        name = "arm";
    } else if (name == "arm" && variant.size() == 1) {
        variant.insert(0, 1, 'v');
    }
    return result;
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
    const Platform left = normal(offered);
    const Platform right = normal(wanted);
    return left.os == right.os && left.architecture == right.architecture &&
           (left.variant.empty() || right.variant.empty() || left.variant == right.variant);
}

}  // namespace kmm::image
