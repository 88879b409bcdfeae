// SPDX-License-Identifier: Apache-2.0
// Would the Modules survive a kernel that no node runs yet: one verdict for each pool of nodes, kernel and Module.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/fleet/survey.hpp"
#include "plan/kmm/resolve.hpp"
#include "preflight/images.hpp"

namespace kmm::preflight {

/// How far a check went.
enum class Checked { mapping, image, modules };

/// One line of the answer: a pool of nodes (or none) for one kernel and Module.
struct Verdict {
    const plan::Surveyed* surveyed = nullptr;
    const plan::Pool* pool = nullptr;
    const plan::Resolved* resolved = nullptr;
    std::optional<ImageQuestion> question;
    Checked checked = Checked::mapping;
    std::string digest;
    std::vector<SignedFile> files;
    std::size_t symbols = 0;  ///< that do not fit
    Diagnostics findings;

    bool unknown = false;  ///< the registry could not be asked, or which modules are loaded is not known
    bool known = false;    ///< it is not a pass, and all that is wrong is in the baseline

    [[nodiscard]] bool failed() const { return !unknown && has_errors(findings); }
    [[nodiscard]] std::string_view text() const { return unknown ? "unknown" : failed() ? "fail" : "pass"; }
    /// A code: of the worst finding, else of the mapping; "-" if there is none.
    [[nodiscard]] std::string reason() const;
};

/// --kernel-devel.
[[nodiscard]] cli::Option devel_option();
/// What it names. Errors: those of kernel::read_devel.
[[nodiscard]] std::vector<kernel::Interface> read_interfaces(const cli::Args& args);
/// The interface of each kernel that has one. A Module.symvers that does not say whose it is belongs to the only
/// kernel. Errors: usage "kernel-devel-ambiguous", "kernel-devel-other".
[[nodiscard]] std::map<std::string, const kernel::Interface*> by_kernel(
    const std::vector<kernel::Interface>& interfaces, const std::vector<std::string>& kernels);
/// What the Modules say by themselves; questions to registries are noted in the verdicts. The arguments outlive them.
[[nodiscard]] std::vector<Verdict> first_verdicts(const std::vector<plan::Surveyed>& rows,
                                                  const std::map<std::string, const kernel::Interface*>& interfaces,
                                                  bool ask_images, const Trusted& trusted);
/// Asks the questions of the verdicts, and adds what came of them; where no registry was asked, what KMM has written
/// down about the image (ModuleImagesConfig, ModuleBuildSignConfig of `objects`) counts.
/// Errors: those of ask_registries.
void answer_questions(std::vector<Verdict>& verdicts, const api::Objects& objects, const cli::Args& args,
                      cli::Context& context);
/// Fails for nodes that a version label holds back at another version than the Module's: their configuration, which is
/// for the kernel that they run, stays until the label moves, and after a reboot its worker loads nothing.
/// Facts: KMM 4.2, row 6.
void heed_held_versions(std::vector<Verdict>& verdicts, const api::Objects& objects);
/// Where in the documents a finding about this row is to be mended: the mapping, else all mappings, else the Module.
[[nodiscard]] Position place_of(const Verdict& verdict);

}  // namespace kmm::preflight
