// SPDX-License-Identifier: Apache-2.0
// kmm-worker on a node, as typed calls over the runner.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "base/module_name.hpp"
#include "cluster/seam/worker_answer.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::drive {

struct NodeFacts {
    std::string kernel, boot_id, architecture;
};

/// What the kernel says about one module, or the operator. `moving`: it is being loaded or unloaded right now.
enum class Presence { live, moving, absent };
struct LiveModule {
    Presence presence = Presence::absent;
    upgrade::module::Identity identity;
    std::optional<std::string> said_version;  ///< what the operator says is loaded, where no worker is asked
};

/// What one question to a node answers.
struct Look {
    NodeFacts facts;
    LiveModule module;
};

/// Result of check, load and unload, of the main module.
struct WorkerResult {
    std::string outcome;  ///< "passed", "loaded", "already-loaded", "unloaded", "not-loaded"
    upgrade::module::Identity identity;
    std::string image, digest;
    std::string boot_id;  ///< of the node that answered, "" if it did not say
    std::vector<std::string> warnings;
};

template <typename Value>
using Reply = cluster::Reply<Value>;

/// Stateless; thread safe if the runner is.
class Worker {
public:
    explicit Worker(cluster::NodeRunner& runner) : runner_(runner) {}
    /// Kernel and boot of the node and what is live of `kernel_module`, by one call of the worker's status.
    [[nodiscard]] Reply<Look> status(const std::string& node, const std::string& kernel_module,
                                     std::chrono::milliseconds timeout);
    /// `verb` is check, load or unload; `input` as worker_input makes it.
    [[nodiscard]] Reply<WorkerResult> run(const std::string& verb, const std::string& node, const std::string& input,
                                          std::chrono::milliseconds timeout);

private:
    cluster::NodeRunner& runner_;
};

/// The worker's standard input: the config, then the Secret as a second document if there is one. Of its logins only
/// those for the image's registry: what is for others is none of the node's business.
[[nodiscard]] std::string worker_input(const api::ModuleConfig& config, const api::Secret* secret);

/// `image` by its digest, REPOSITORY@DIGEST: a tag may be moved between a check and the load. As it is if it is no name
/// in a registry, has a digest, or `digest` is none of sha256 or sha512.
[[nodiscard]] std::string pinned_image(const std::string& image, const std::string& digest);

/// That a node has loaded what was checked; "" for a digest that nobody knows. Errors: refused "image-changed".
void require_digest(const std::string& node, const std::string& image, const std::string& checked,
                    const std::string& loaded);

using base::kernel_module_name;

}  // namespace kmm::drive
