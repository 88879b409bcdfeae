// SPDX-License-Identifier: Apache-2.0
#include "record/space.hpp"

#include <fmt/format.h>

#include "sys/file_ops.hpp"

namespace kmm::record {

Error explain_space(Error error, const std::string& directory, std::string_view then) {
    const std::string_view remedy = sys::space_remedy(error.errno_cause().value_or(0));
    if (remedy.empty() || !error.hint().empty()) {
        return error;
    }
    error.detail("directory", directory);
    error.hint(fmt::format("{} (old runs in {}/history may be moved away), then: {}", remedy, directory, then));
    return error;
}

}  // namespace kmm::record
