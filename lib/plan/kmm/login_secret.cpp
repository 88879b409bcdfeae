// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/login_secret.hpp"

#include <fmt/format.h>

#include "base/shell_word.hpp"

namespace kmm::plan {

std::string login_made_again(const std::string& name, const std::string& ns) {
    return fmt::format("a type cannot be changed: kubectl delete secret {0} -n {1} && kubectl create secret "
                       "docker-registry {0} -n {1} --from-file=.dockerconfigjson=FILE",
                       base::command_word(name), base::command_word(ns));
}

}  // namespace kmm::plan
