// SPDX-License-Identifier: Apache-2.0
// What a worker would load for a Module: its fields, or the command line of modprobe that it has in their place.
#pragma once

#include <string>

#include "api/types.hpp"
#include "base/error.hpp"
#include "kernel/judge.hpp"

namespace kmm::preflight {

struct ModuleWish {
    kernel::Wish wish;
    std::string dir_name = "/opt";  ///< of the image: dirName, or -d of the arguments
    bool of_host = false;  ///< rawArgs.load without a directory: the modules are those of the node's own tree
    Diagnostics findings;  ///< warning "unsupported": arguments that kmm-worker does not know; they are left out
};

/// The modules, parameters and order that `config` asks for on `kernel`; what the image has is left to the caller.
[[nodiscard]] ModuleWish wish_of(const api::ModuleConfig& config, const std::string& kernel);

}  // namespace kmm::preflight
