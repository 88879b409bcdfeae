// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/target.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"

namespace kmm::registry {

void FileTarget::put(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
        if (put < 0) {
            const int saved = errno;
            if (saved == EINTR) {
                continue;
            }
            throw from_errno(saved, "writing a layer");
        }
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

void FileTarget::restart() {
    if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) {
        const int saved = errno;
        throw from_errno(saved, "writing a layer");
    }
}

}  // namespace kmm::registry
