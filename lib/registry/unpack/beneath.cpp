// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/text.hpp"

namespace kmm::registry {

sys::Fd open_beneath(int root, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    sys::Fd fd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
    // Kernels before 5.6 and some seccomp filters have no openat2.
    if (fd || (errno != ENOSYS && errno != EPERM)) {
        return fd;
    }
    sys::Fd at(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto pieces = base::split(path, '/');
    for (std::size_t i = 0; at && i < pieces.size(); ++i) {
        const bool last = i + 1 == pieces.size();
        if (pieces[i].empty() || pieces[i] == "..") {
            errno = EXDEV;
            return {};
        }
        at.reset(::openat(at.get(), std::string(pieces[i]).c_str(),
                          (last ? flags : O_RDONLY | O_DIRECTORY) | O_CLOEXEC | O_NOFOLLOW));
    }
    return at;
}

}  // namespace kmm::registry
