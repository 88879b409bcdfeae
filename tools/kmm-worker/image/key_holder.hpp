// SPDX-License-Identifier: Apache-2.0
// A process of its own that holds the private key of sign: the process that takes images apart never sees it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "kmod/ko/module_file.hpp"
#include "kmod/ko/signer.hpp"
#include "sys/fd.hpp"

namespace kmm::tool_worker {

class KeyHolder {
public:
    /// Starts the process, which makes the signer and then has nothing but it and a socket to this process: no
    /// programs, no sockets, no files, no capability, no core file, and nobody of the same user may look into it. To be
    /// called while there is one thread. Errors: those of `make`; io.
    explicit KeyHolder(const std::function<kmod::ModuleSigner()>& make);
    /// Ends the process and waits for it.
    ~KeyHolder();
    KeyHolder(const KeyHolder&) = delete;
    KeyHolder& operator=(const KeyHolder&) = delete;

    /// As kmod::ModuleSigner. Errors also: io if the process is gone.
    [[nodiscard]] std::string sign(std::string_view module) const;
    [[nodiscard]] const kmod::ModuleSignature& identity() const noexcept { return identity_; }
    [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

private:
    sys::Fd socket_;
    pid_t process_ = -1;
    kmod::ModuleSignature identity_;
    std::vector<std::string> warnings_;
};

/// From now on memory of this process lands in no core file, and no process of the same user may look into it. Errors:
/// from_errno.
void keep_memory_private();

}  // namespace kmm::tool_worker
