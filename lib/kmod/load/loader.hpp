// SPDX-License-Identifier: Apache-2.0
// The seam to the kernel's module system calls.
#pragma once

#include <chrono>
#include <string>

#include "kmod/host/modprobe_args.hpp"

namespace kmm::kmod {

/// What came back from the kernel.
struct LoaderAnswer {
    int error = 0;       ///< errno, 0 for success; meaningless when `hung`
    bool hung = false;   ///< no answer within the time; the helper process got SIGKILL
    bool gone = false;   ///< with `hung`: the helper process did die of it, so nothing waits in the kernel any more
    long pid = 0;        ///< of the helper process
    std::string wchan;   ///< with `hung`: where the kernel had it waiting, "" if unknown
    bool lost = false;  ///< the helper process was killed before it could answer; `error` is EINTR then, and the kernel
                        ///< may have done it
};

class ModuleLoader {
public:
    virtual ~ModuleLoader() = default;
    /// Asks the kernel to load the module that `fd` (read-only, at any offset) holds, with its parameter text. Blocks
    /// until the module's init function has returned, at most `timeout`. `force` is empty unless the user has confirmed
    /// it.
    [[nodiscard]] virtual LoaderAnswer load(int fd, const std::string& parameters, const Force& force,
                                            std::chrono::milliseconds timeout) = 0;
    /// Asks the kernel to unload `name` (normalised) without waiting for users.
    [[nodiscard]] virtual LoaderAnswer unload(const std::string& name, const Force& force,
                                              std::chrono::milliseconds timeout) = 0;
};

/// System calls made by a short-lived helper process, so that a module whose init never returns cannot take this
/// process with it. finit_module(2), init_module(2) where the kernel lacks it, delete_module(2) with O_NONBLOCK.
class LinuxModuleLoader final : public ModuleLoader {
public:
    [[nodiscard]] LoaderAnswer load(int fd, const std::string& parameters, const Force& force,
                                    std::chrono::milliseconds timeout) override;
    [[nodiscard]] LoaderAnswer unload(const std::string& name, const Force& force,
                                      std::chrono::milliseconds timeout) override;
};

}  // namespace kmm::kmod
