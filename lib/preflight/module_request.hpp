// SPDX-License-Identifier: Apache-2.0
// What a worker would load for a Module: its fields, or the command line of modprobe that it has in their place.
#pragma once

#include <string>

#include "api/types.hpp"
#include "base/error.hpp"
#include "kernel/judge.hpp"

namespace kmm::preflight {

struct ModuleRequest {
    kernel::Request request;
    std::string dir_name = "/opt";  ///< of the image: dirName, or -d of the arguments
    bool of_host = false;  ///< rawArgs.load without a directory: the modules are those of the node's own tree
    /// rawArgs.load cannot be read: which modules modprobe loads by it is not known.
    bool is_unread = false;
    /// "unsupported" (arguments that kmm-worker does not know; an error of rawArgs.load, a warning of args.load),
    /// warning "force-refused"; errors "bad-value" and "missing-field" (command lines that load nothing).
    Diagnostics findings;
};

/// The modules, parameters and order that `config` asks for on `kernel`; what the image has is left to the caller.
[[nodiscard]] ModuleRequest request_of(const api::ModuleConfig& config, const std::string& kernel);

/// What is found of modules that rawArgs.load takes from the node's own tree: of them only the kernel's exports are
/// known. `modprobed_dir`: of the Module, which kmm-worker refuses beside them.
[[nodiscard]] Diagnostics judge_of_host(ModuleRequest wanted, const std::string& modprobed_dir,
                                        const kernel::Interface* interface);

}  // namespace kmm::preflight
