// SPDX-License-Identifier: Apache-2.0
#include "registry/client/request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::registry {

Wanted wanted_from(const PullRequest& request) {
    return wanted_below(request.dir_name, request.kernels, request.all_kernels, request.firmware_path,
                        request.modprobed_dir);
}

void check_kernels(const PullRequest& request, const std::vector<std::string>& found,
                   const std::string& reference) {
    for (const std::string& kernel : request.kernels) {
        if (std::binary_search(found.begin(), found.end(), kernel)) {
            continue;
        }
        throw Error(Exit::not_found, "kernel-not-in-image",
                    fmt::format("expected the directory {}/lib/modules/{} in the image, found {}",
                                request.dir_name == "/" ? "" : request.dir_name, kernel,
                                found.empty() ? std::string("no kernel at all") : "other kernels"))
            .detail("image", base::escape(reference))
            .detail("kernels", found.empty() ? "none" : base::escape(base::join(found, ", ")))
            .hint("build the image for this kernel, or correct the kernel mapping or dirName of the Module");
    }
    if (request.all_kernels && found.empty()) {
        throw Error(Exit::not_found, "kernel-not-in-image",
                    fmt::format("expected kernel directories below {}/lib/modules, found none",
                                request.dir_name == "/" ? "" : request.dir_name))
            .detail("image", base::escape(reference))
            .hint("build the image with modules there, or correct the dirName of the Module");
    }
}

}  // namespace kmm::registry
