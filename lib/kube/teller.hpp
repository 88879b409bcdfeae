// SPDX-License-Identifier: Apache-2.0
// Saying in words what a client goes through.
#pragma once

#include <functional>
#include <string>

#include "kube/client.hpp"

namespace kmm::kube {

/// Sets the observer of `options`: `say` gets whole lines. An API server that does not answer is told at once and then
/// every ten seconds, its return too; warnings of the server and the standard error of login programs are passed on.
/// Thread safe as far as `say` is.
void tell_all(ClientOptions& options, std::function<void(const std::string&)> say);

}  // namespace kmm::kube
