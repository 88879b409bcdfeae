// SPDX-License-Identifier: Apache-2.0
// Recipes before a change of the kernel, for kmm-plan and kmm-upgrade: is each driver stack ready for a kernel that its
// nodes do not run yet?
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/types.hpp"
#include "cli/app.hpp"
#include "kernel/interface.hpp"
#include "kube/client.hpp"
#include "recipe/files/documents.hpp"

namespace kmm::recipe::ready {

/// One driver container on one kernel, or a resource without any.
struct RecipeVerdict {
    std::string resource, kernel;
    std::string container;     ///< "DaemonSet hello-e383247e62b56585", "" if there is none
    std::string image, digest;
    std::string checked;       ///< "recipe", "image" or "modules": how far the check went
    std::string reason;        ///< a code
    std::string message;       ///< "" if the reason says it all
    std::string inputs;        ///< "sha256:…" over all that the verdict follows from
    std::size_t symbols = 0;   ///< of an image of another kernel: how many do not fit
    bool unknown = false;      ///< what decides it could not be found out, or was not asked for
    bool known = false;        ///< it is not a pass, and all that is wrong is in the baseline
    Diagnostics findings;      ///< an error if the kernel is not ready for it

    [[nodiscard]] std::string_view text() const { return unknown ? "unknown" : has_errors(findings) ? "fail" : "pass"; }
};

/// What -f has of recipes. Charts below directories are no objects of the cluster.
class RecipePreflight {
public:
    /// Reads the documents of -f, but for those of --ignore, if there is a resource of sro.openshift.io among them.
    /// Standard input can be read
    /// again afterwards. Errors: those of read_recipe_documents.
    explicit RecipePreflight(const cli::Args& args);

    /// Whether there are SpecialResources.
    [[nodiscard]] bool any() const noexcept { return !documents_.resources.empty(); }
    /// Whether a file at this path below a directory of -f is part of a chart.
    [[nodiscard]] bool is_chart_file(std::string_view path) const;
    /// Kernels of the releases that PreflightValidations of the operator name: of the architectures that `nodes`, or
    /// those of the facts, have; all kernels of a release that has none of these. Errors: data "unknown-fact" for a
    /// release that the facts do not list.
    [[nodiscard]] std::vector<std::string> asked_kernels(const std::vector<api::Node>& nodes) const;

    /// After it, what is known is complete: SpecialResources of a live cluster that -f does not have, and its facts,
    /// under those of --facts and --fact. nullptr: there is none. Errors: usage "missing-option" for options of recipes
    /// where there are none; those of ChartPlaces and of the client.
    void complete(kube::Client* client);
    /// All verdicts: by kernel, then as resources are applied. Registries are asked with --check-images, and for
    /// kernels with an interface. Without nodes in the facts, `nodes` count; `others` are the nodes of the cluster that
    /// keep their kernel: a resource that selects one of them has no node with a taint.
    [[nodiscard]] std::vector<RecipeVerdict> judge(const std::vector<std::string>& kernels,
                                                   const std::map<std::string, const kernel::Interface*>& interfaces,
                                                   const std::vector<api::Node>& nodes, cli::Context& context,
                                                   const std::vector<api::Node>& others = {});

private:
    const cli::Args& args_;
    files::RecipeDocuments documents_;
    plan::Facts facts_;
    std::set<std::string> charts_;  ///< directories of charts, below the directories of -f
};

/// The architecture of a kernel's machines as images name it, by its release; "" if the release does not say it.
[[nodiscard]] std::string image_architecture(const std::string& kernel);

/// Whether machines of `architecture`, as images name it, never run `kernel`, whose release names another one. False
/// where either is not known.
[[nodiscard]] bool never_runs(const std::string& architecture, const std::string& kernel);

}  // namespace kmm::recipe::ready
