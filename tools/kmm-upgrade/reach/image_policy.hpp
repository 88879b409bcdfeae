// SPDX-License-Identifier: Apache-2.0
// Who must have signed images: from the files of the command line to the workers on the nodes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cluster/seam/runner.hpp"
#include "sys/clock.hpp"

namespace kmm::tool_upgrade {

/// --policy and --signature-key.
[[nodiscard]] std::vector<cli::Option> image_policy_options();

/// What these options name, as JSON of kind ImagePolicy with the keys themselves in place of their files: nodes need no
/// files. "" without the options. Errors: those of trust::read_policy; data "bad-key"; no_permission "untrusted-file";
/// config "policy-too-large" above 128 KiB (it goes into an annotation of worker Pods); not_found, io.
[[nodiscard]] std::string image_policy_of(const cli::Args& args);

/// Calls of check and load carry `policy` (as image_policy_of makes it), and the worker refuses to do without. An image
/// that passed check is checked a second time by its digest, as load will name it: a signature may be for a tag or an
/// index alone.
[[nodiscard]] std::unique_ptr<cluster::NodeRunner> with_image_policy(std::unique_ptr<cluster::NodeRunner> inner,
                                                                     std::string policy, sys::Clock& clock);

}  // namespace kmm::tool_upgrade
