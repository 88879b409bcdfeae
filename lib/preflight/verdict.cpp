// SPDX-License-Identifier: Apache-2.0
#include "preflight/verdict.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "kernel/devel.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/image_states.hpp"
#include "plan/kmm/resolve.hpp"
#include "preflight/made_image.hpp"

namespace kmm::preflight {

namespace {

/// KMM's own preflight fails for such a Module, whether any node is selected or not: a node may be labelled at any
/// time.
Diagnostic no_mapping(const plan::Surveyed& surveyed) {
    Diagnostic finding;
    finding.code = "no-kernel-mapping";
    finding.message =
        fmt::format("no kernel mapping of Module {} matches kernel {}", surveyed.module->full_name(), surveyed.kernel);
    finding.hint = "add a kernel mapping for it, and the image";
    finding.exit = Exit::checks_failed;
    return finding;
}

/// No worker Pod starts with such an image, on any node.
Diagnostic bad_name(const plan::Surveyed& surveyed, const Diagnostic& fault) {
    Diagnostic finding = fault;
    finding.severity = Severity::error;
    finding.code = "preflight-bad-reference";
    finding.message =
        fmt::format("Module {} on kernel {}: {}", surveyed.module->full_name(), surveyed.kernel, fault.message);
    finding.exit = Exit::checks_failed;
    return finding;
}

/// What KMM has found out about images that no registry was asked for: one that is not there, and one whose build or
/// signing failed, is loaded nowhere. KMM keeps what its own preflight finds out as NAME-preflight.
void heed_image_states(std::vector<Verdict>& verdicts, const api::Objects& objects) {
    using Kind = plan::ImageState::Kind;
    const plan::ImageStates states(objects);
    if (states.empty()) return;
    for (auto& verdict : verdicts) {
        const bool is_open = verdict.resolved != nullptr && !verdict.unknown && verdict.findings.empty() &&
                             verdict.checked == Checked::mapping;
        if (!is_open) continue;
        const auto& module = *verdict.surveyed->module;
        const auto& image = verdict.resolved->config.container_image;
        for (const auto& owner : {module.meta.name, module.meta.name + "-preflight"}) {
            const auto state = states.find(module.meta.namespace_, owner, image);
            const bool is_missing = state.kind == Kind::missing;
            if (!is_missing && (state.kind != Kind::made || state.failed_action.empty())) continue;
            auto& finding = verdict.findings.emplace_back();
            finding.code = "image-missing";
            std::string said = state.word.empty() ? "" : "KMM says " + base::escape(state.word);
            if (!state.failed_action.empty())
                said += (said.empty() ? "KMM's " : "; ") + base::escape(state.failed_action) + " failed";
            finding.message = fmt::format("Module {} on kernel {}: {} for {}", module.full_name(),
                                          verdict.surveyed->kernel, said, base::escape(image));
            finding.hint = "--check-images asks the registry itself";
            finding.exit = Exit::checks_failed;
            break;
        }
    }
}

/// KMM makes an image once: one that it has made for the kernel that nodes run, and that the other kernel uses, too,
/// is not made again, and has nothing for that one. One that was brought for the nodes is not made at all, and may hold
/// the modules of both. Where modules in it were looked at, they say so themselves.
void heed_made_images(std::vector<Verdict>& verdicts) {
    for (auto& verdict : verdicts) {
        if (verdict.resolved == nullptr || verdict.pool == nullptr || verdict.checked == Checked::modules) continue;
        const auto& kernel = verdict.surveyed->kernel;
        const bool is_other = api::trim_kernel(verdict.pool->kernel) != api::trim_kernel(kernel);
        if (!is_other || verdict.pool->kernel.empty()) continue;
        const auto resolution = plan::resolve(*verdict.surveyed->module, verdict.pool->kernel);
        const auto* now = std::get_if<plan::Resolved>(&resolution);
        const auto& image = verdict.resolved->config.container_image;
        if (now == nullptr || now->config.container_image != image) continue;
        const bool is_brought = !now->build && !now->sign;
        if (is_brought && !verdict.resolved->build) continue;
        auto& finding = verdict.findings.emplace_back();
        finding.severity = now->build ? Severity::error : Severity::warning;
        finding.code = "image-kernels";
        const std::string today = base::escape(verdict.pool->kernel);
        std::string why;
        if (is_brought) {
            why = fmt::format("is not built for it: kernel {} uses it, and KMM builds only what is missing", today);
        } else if (now->build) {
            why = fmt::format("is built once, for kernel {}, and has no lib/modules/{} in it", today, kernel);
        } else {
            why = fmt::format("is signed once, for kernel {}, and not the files of the other", today);
        }
        finding.message = fmt::format("Module {} on kernel {}: image {} {}", verdict.surveyed->module->full_name(),
                                      kernel, base::escape(image), why);
        finding.hint = "put ${KERNEL_FULL_VERSION} into the tag";
        finding.exit = Exit::checks_failed;
    }
}

/// Asks the registries, and adds what came of it.
void ask(std::vector<Verdict>& verdicts, const api::Objects& objects, const cli::Args& args, cli::Context& context) {
    std::vector<ImageQuestion> questions;
    for (const auto& verdict : verdicts)
        if (verdict.question) questions.push_back(*verdict.question);
    if (questions.empty()) return;
    const auto answers = ask_registries(questions, objects, args, context);
    for (auto& verdict : verdicts) {
        if (!verdict.question) continue;
        const auto& answer = answers.at(verdict.question->key());
        verdict.digest = answer.digest;
        verdict.files = answer.files;
        verdict.symbols = answer.symbols;
        verdict.unknown = !answer.reached || answer.is_open;
        if (answer.reached) verdict.checked = answer.is_judged ? Checked::modules : Checked::image;
        Diagnostics findings = answer.findings;
        name_the_source(*verdict.question->resolved, findings);
        verdict.findings.insert(verdict.findings.end(), std::make_move_iterator(findings.begin()),
                                std::make_move_iterator(findings.end()));
    }
}

}  // namespace

std::string Verdict::reason() const {
    for (const auto severity : {Severity::error, Severity::warning})
        for (const auto& finding : findings)
            if (finding.severity == severity) return finding.code;
    return resolved == nullptr ? "-" : resolved->literal ? "literal-match" : "regexp-match";
}

cli::Option devel_option() {
    return cli::repeatable(cli::option("kernel-devel", "PATH", "its headers: directory, Module.symvers, .deb or .rpm"));
}

std::vector<kernel::Interface> read_interfaces(const cli::Args& args) {
    std::vector<kernel::Interface> result;
    for (const auto& path : args.all("kernel-devel")) result.push_back(kernel::read_devel(path));
    return result;
}

std::map<std::string, const kernel::Interface*> by_kernel(const std::vector<kernel::Interface>& interfaces,
                                                          const std::vector<std::string>& kernels) {
    std::map<std::string, const kernel::Interface*> result;
    for (const auto& interface : interfaces) {
        std::string release = interface.release;
        if (release.empty()) {
            if (kernels.size() != 1)
                throw Error(Exit::usage, "kernel-devel-ambiguous",
                            fmt::format("{} does not say which kernel it is of", base::escape(interface.source)))
                    .hint("name one --kernel at a time, or the directory or package with the kernel's headers");
            release = kernels.front();
        }
        const auto match = std::find_if(kernels.begin(), kernels.end(), [&](const std::string& kernel) {
            return api::trim_kernel(kernel) == api::trim_kernel(release);
        });
        if (match == kernels.end())
            throw Error(Exit::usage, "kernel-devel-other",
                        fmt::format("{} is of kernel {}, expected {}", base::escape(interface.source),
                                    base::escape(release), base::join(kernels, " or ")))
                .hint("add --kernel " + release);
        result[*match] = &interface;
    }
    return result;
}

std::vector<Verdict> first_verdicts(const std::vector<plan::Surveyed>& rows,
                                    const std::map<std::string, const kernel::Interface*>& interfaces, bool ask_images,
                                    const Trusted& trusted) {
    const bool look_at_signatures = !trusted.certificates.empty() || trusted.enforced;
    std::vector<Verdict> result;
    for (const auto& row : rows) {
        std::vector<const plan::Pool*> pools;
        for (const auto& pool : row.pools) pools.push_back(&pool);
        if (pools.empty()) pools.push_back(nullptr);
        const auto known = interfaces.find(row.kernel);
        const auto* interface = known == interfaces.end() ? nullptr : known->second;
        for (const auto* pool : pools) {
            Verdict verdict;
            verdict.surveyed = &row;
            verdict.pool = pool;
            if (const auto* fault = std::get_if<plan::MappingFault>(&row.resolution)) {
                verdict.findings.push_back(fault->diagnostic);
            } else if (const auto* resolved = std::get_if<plan::Resolved>(&row.resolution)) {
                verdict.resolved = resolved;
                const bool modules = interface != nullptr || look_at_signatures;
                if (const auto misnamed = plan::image_name_fault(resolved->config.container_image)) {
                    verdict.findings.push_back(bad_name(row, *misnamed));
                } else if (modules || ask_images) {
                    verdict.question = ImageQuestion{row.module,
                                                     resolved,
                                                     pool == nullptr ? "" : pool->architecture,
                                                     interface,
                                                     modules ? Depth::modules : Depth::manifest,
                                                     &trusted};
                }
            } else {
                verdict.findings.push_back(no_mapping(row));
            }
            result.push_back(std::move(verdict));
        }
    }
    return result;
}

void answer_questions(std::vector<Verdict>& verdicts, const api::Objects& objects, const cli::Args& args,
                      cli::Context& context) {
    ask(verdicts, objects, args, context);
    heed_image_states(verdicts, objects);
    heed_made_images(verdicts);
}

void heed_held_versions(std::vector<Verdict>& verdicts, const api::Objects& objects) {
    std::map<std::string_view, const api::Node*> nodes;
    for (const auto& node : objects.nodes) nodes.emplace(node.meta.name, &node);
    for (auto& verdict : verdicts) {
        const auto& module = *verdict.surveyed->module;
        const auto& version = module.module_loader->container.version;
        if (verdict.pool == nullptr || version.empty()) continue;
        if (api::trim_kernel(verdict.pool->kernel) == api::trim_kernel(verdict.surveyed->kernel)) continue;
        const std::string key = api::label_version_module(module.meta.namespace_, module.meta.name);
        std::vector<std::string> held;
        std::string at;
        for (const auto& name : verdict.pool->loaded) {
            const auto node = nodes.find(name);
            if (node == nodes.end()) continue;
            const auto label = node->second->meta.labels.find(key);
            if (label == node->second->meta.labels.end() || label->second.empty() || label->second == version) continue;
            if (held.empty()) at = label->second;
            held.push_back(name);
        }
        if (held.empty()) continue;
        constexpr std::size_t k_named_max = 4;
        auto& finding = verdict.findings.emplace_back();
        finding.code = "entry-for-other-kernel";
        finding.message = fmt::format(
            "Module {} on kernel {}: version label {} holds {} at kernel {}, as the Module has version {}",
            module.full_name(), verdict.surveyed->kernel, base::escape(at), base::join_some(held, k_named_max),
            base::escape(verdict.pool->kernel), base::escape(version));
        finding.hint = fmt::format("bring them to the version first: kmm-upgrade start module {} --to {}",
                                   module.full_name(), base::escape(version));
        finding.exit = Exit::checks_failed;
    }
}

Position place_of(const Verdict& verdict) {
    const auto& module = *verdict.surveyed->module;
    const std::string mappings = "spec.moduleLoader.container.kernelMappings";
    if (verdict.resolved != nullptr)
        if (const auto place = module.places.find(fmt::format("{}[{}]", mappings, verdict.resolved->mapping_index));
            place != module.places.end())
            return place->second;
    if (const auto place = module.places.find(mappings); place != module.places.end()) return place->second;
    return module.meta.origin;
}

}  // namespace kmm::preflight
