// SPDX-License-Identifier: Apache-2.0
// How a Secret that kubelets take for no login becomes one.
#pragma once

#include <string>

namespace kmm::plan {

/// The commands that make the Secret `name` of namespace `ns` again as a login for registries, as a hint: an API server
/// changes the type of no Secret.
[[nodiscard]] std::string login_made_again(const std::string& name, const std::string& ns);

}  // namespace kmm::plan
