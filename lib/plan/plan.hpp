// SPDX-License-Identifier: Apache-2.0
// Decides which node needs which module and why. Pure: data in, data out, sorted, byte-stable.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/labels.hpp"
#include "api/types.hpp"
#include "base/error.hpp"
#include "plan/image_states.hpp"

namespace kmm::plan {

/// A Module resolved for one kernel: mapping chosen, merged with the container's fields, templates expanded.
struct Resolved {
    std::size_t mapping_index = 0;  ///< 0-based, list order
    bool literal = false;           ///< matched by literal, else by regexp
    std::string matcher;            ///< the literal or regexp text
    std::string kernel;             ///< with one trailing "+" trimmed: what was matched, tagged and put into the config
    std::string kernel_real;        ///< as the node reports it
    api::ModuleConfig config;       ///< what KMM's NodeModulesConfig entry would carry
    api::TlsOptions registry_tls;   ///< the mapping's if it has one, else the container's; never mixed
    std::optional<api::Build> build;  ///< container's and mapping's merged; templates are not expanded, as in KMM
    std::optional<api::Sign> sign;    ///< merged; unsignedImage and filesToSign expanded
};
struct NoMapping {};
/// Bad regexp, template error: an Error-like fault, distinct from "no match".
struct MappingFault {
    Diagnostic diagnostic;
};
using Resolution = std::variant<Resolved, NoMapping, MappingFault>;

/// Chooses and merges. Source: KMM kernelmapper.go, getKernelMapping and moduleLoaderData; facts: KMM 3.
/// Cost: compiles each regexp at most once per call; use Resolver for many kernels.
[[nodiscard]] Resolution resolve(const api::Module& module, std::string_view kernel_version);

/// One kernel mapping as it was tried for a kernel.
struct Attempt {
    std::size_t index = 0;
    bool literal = false;
    std::string matcher;
    bool matched = false;
    std::string fault;  ///< why the regexp could not be tried, "" if it could
};

/// `resolve` for many kernels: compiles each regexp of the Module once. Keeps a reference to `module`.
class Resolver {
public:
    explicit Resolver(const api::Module& module);
    explicit Resolver(api::Module&&) = delete;
    ~Resolver();
    Resolver(Resolver&&) noexcept;
    /// As the free function. O(mappings * length of the kernel version), a copy of what was said if it was asked
    /// lately.
    [[nodiscard]] Resolution resolve(std::string_view kernel_version) const;
    /// The mappings in the order they were tried, up to the one that matched or is faulty; the last one tells which.
    [[nodiscard]] std::vector<Attempt> attempts(std::string_view kernel_version) const;
    [[nodiscard]] const api::Module& module() const noexcept { return module_; }
    /// loader_tolerations of the Module.
    [[nodiscard]] const api::Shared<std::vector<api::Toleration>>& tolerations() const noexcept {
        return tolerations_;
    }

private:
    struct Compiled;
    [[nodiscard]] Resolution resolve_afresh(std::string_view kernel_version) const;
    const api::Module& module_;
    api::Shared<std::vector<api::Toleration>> tolerations_;
    std::unique_ptr<Compiled> compiled_;
};

enum class Action { load, keep, reload, unload, blocked, none };
[[nodiscard]] std::string_view to_string(Action action) noexcept;

/// One line of the plan. `version`, `image` and `config` are those of what is loaded in the end (load, keep, reload) or
/// is unloaded (unload); otherwise `version` is the Module's and the others are absent.
struct Entry {
    std::string node, kernel, boot_id, namespace_, module, version;
    std::optional<std::size_t> mapping_index;
    bool mapping_literal = false;
    std::string mapping_text;
    std::string image;
    Action action = Action::none;
    std::string reason;   ///< closed list of kebab-case codes
    std::string message;  ///< for people
    std::optional<api::ModuleConfig> config;
    /// Rank among the Modules (see load_order), and what the Module needs; nullopt if no Module of the plan needs
    /// another.
    std::optional<std::size_t> order;
    std::vector<std::string> needs;
};

struct Plan {
    std::vector<Entry> entries;  ///< sorted by node, then namespace, then module
    Diagnostics diagnostics;
};

struct Options {
    bool next = false;  ///< only what the very next pass does, instead of the settled state
    /// Images that are not in their registry, as globs ("*" and "?" match any characters). Others are taken to exist.
    std::vector<std::string> missing_images;
    /// The label key of the cluster's KMM; nullopt: detected from the objects (see detect_schedule_key).
    std::optional<api::ScheduleKey> schedule_key;
    /// What KMM says about images; nullptr: taken from the objects (see complete).
    std::shared_ptr<const ImageStates> image_states = nullptr;
};

/// `options` with everything that is to be detected filled in. O(nodes).
[[nodiscard]] Options complete(Options options, const api::Objects& objects);

/// The plan over everything in `objects`. Tables: facts KMM 4.1, 4.2.
[[nodiscard]] Plan make_plan(const api::Objects& objects, const Options& options);

/// True if every taint with effect NoSchedule or NoExecute is tolerated (facts: KMM 4.1). On false `blocking`, if
/// given, receives the first taint that is not.
[[nodiscard]] bool tolerates(const std::vector<api::Toleration>& tolerations, const std::vector<api::Taint>& taints,
                             api::Taint* blocking = nullptr);
/// The Module's tolerations followed by KMM's three internal ones.
[[nodiscard]] std::vector<api::Toleration> loader_tolerations(const api::Module& module);
/// Equality on every pair of the selector.
[[nodiscard]] bool selects(const api::Labels& selector, const api::Labels& labels);

}  // namespace kmm::plan
