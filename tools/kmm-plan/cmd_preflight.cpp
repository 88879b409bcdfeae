// SPDX-License-Identifier: Apache-2.0
// kmm-plan preflight: would the fleet survive a kernel that it does not run yet?
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "kernel/devel.hpp"
#include "kmm-plan/documents.hpp"
#include "kmm-plan/images.hpp"
#include "kmm-plan/plan_options.hpp"
#include "kmm-plan/recipe_preflight.hpp"
#include "kmm-plan/recipe_run.hpp"
#include "kmm-plan/reporting.hpp"
#include "kmm-plan/verbs.hpp"
#include "kmod/signature.hpp"
#include "plan/image_name.hpp"
#include "plan/survey.hpp"
#include "recipe/decide/upgradeable.hpp"
#include "recipe/template/digest.hpp"
#include "sys/clock.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

enum class Checked { mapping, image, modules };

std::string_view checked_text(Checked checked) {
    switch (checked) {
        case Checked::image: return "image";
        case Checked::modules: return "modules";
        case Checked::mapping: break;
    }
    return "mapping";
}

/// One line of the answer: a pool of nodes (or none) for one kernel and Module.
struct Verdict {
    const plan::Surveyed* surveyed = nullptr;
    const plan::Pool* pool = nullptr;
    const plan::Resolved* resolved = nullptr;
    std::optional<ImageQuestion> question;
    Checked checked = Checked::mapping;
    std::string digest;
    std::vector<SignedFile> files;
    Diagnostics findings;

    bool unknown = false;  ///< the registry could not be asked

    [[nodiscard]] bool failed() const { return !unknown && has_errors(findings); }
    [[nodiscard]] std::string_view text() const { return unknown ? "unknown" : failed() ? "fail" : "pass"; }
    [[nodiscard]] std::string reason() const {
        for (const auto severity : {Severity::error, Severity::warning})
            for (const auto& finding : findings)
                if (finding.severity == severity) return finding.code;
        return resolved == nullptr ? "-" : resolved->literal ? "literal-match" : "regexp-match";
    }
};

std::vector<kernel::Interface> read_interfaces(const cli::Args& args) {
    std::vector<kernel::Interface> result;
    for (const auto& path : args.all("kernel-devel")) result.push_back(kernel::read_devel(path));
    return result;
}

/// The interface of each kernel that has one. A Module.symvers that does not say whose it is belongs to the only kernel.
std::map<std::string, const kernel::Interface*> by_kernel(const std::vector<kernel::Interface>& interfaces, const std::vector<std::string>& kernels) {
    std::map<std::string, const kernel::Interface*> result;
    for (const auto& interface : interfaces) {
        std::string release = interface.release;
        if (release.empty()) {
            if (kernels.size() != 1)
                throw Error(Exit::usage, "kernel-devel-ambiguous", fmt::format("{} does not say which kernel it is of", base::escape(interface.source)))
                    .hint("name one --kernel at a time, or the directory or package with the kernel's headers");
            release = kernels.front();
        }
        const auto match = std::find_if(kernels.begin(), kernels.end(), [&](const std::string& kernel) { return api::trim_kernel(kernel) == api::trim_kernel(release); });
        if (match == kernels.end())
            throw Error(Exit::usage, "kernel-devel-other", fmt::format("{} is of kernel {}, expected {}", base::escape(interface.source), base::escape(release), base::join(kernels, " or ")))
                .hint("add --kernel " + release);
        result[*match] = &interface;
    }
    return result;
}

/// KMM's own preflight fails for such a Module, whether any node is selected or not: a node may be labelled at any time.
Diagnostic no_mapping(const plan::Surveyed& surveyed) {
    Diagnostic finding;
    finding.code = "no-kernel-mapping";
    finding.message = fmt::format("no kernel mapping of Module {} matches kernel {}", surveyed.module->full_name(), surveyed.kernel);
    finding.hint = "add a kernel mapping for it, and the image";
    finding.exit = Exit::checks_failed;
    return finding;
}

/// No worker Pod starts with such an image, on any node.
Diagnostic bad_name(const plan::Surveyed& surveyed, const Diagnostic& fault) {
    Diagnostic finding = fault;
    finding.severity = Severity::error;
    finding.code = "preflight-bad-reference";
    finding.message = fmt::format("Module {} on kernel {}: {}", surveyed.module->full_name(), surveyed.kernel, fault.message);
    finding.exit = Exit::checks_failed;
    return finding;
}

/// What the Modules say by themselves; questions to registries are noted in the verdicts.
std::vector<Verdict> first_verdicts(const std::vector<plan::Surveyed>& rows, const std::map<std::string, const kernel::Interface*>& interfaces,
                                    bool ask_images, const Trusted& trusted) {
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
                    verdict.question = ImageQuestion{row.module, resolved, pool == nullptr ? "" : pool->architecture, interface,
                                                     modules ? Depth::modules : Depth::manifest, &trusted};
                }
            } else {
                verdict.findings.push_back(no_mapping(row));
            }
            result.push_back(std::move(verdict));
        }
    }
    return result;
}

void answer_questions(std::vector<Verdict>& verdicts, const Source& source, const cli::Args& args, cli::Context& context) {
    std::vector<ImageQuestion> questions;
    for (const auto& verdict : verdicts)
        if (verdict.question) questions.push_back(*verdict.question);
    if (questions.empty()) return;
    const auto answers = ask_registries(questions, source.objects, args, context);
    for (auto& verdict : verdicts) {
        if (!verdict.question) continue;
        const auto& answer = answers.at(verdict.question->key());
        verdict.digest = answer.digest;
        verdict.files = answer.files;
        verdict.unknown = !answer.reached;
        if (answer.reached) verdict.checked = verdict.question->depth == Depth::modules ? Checked::modules : Checked::image;
        verdict.findings.insert(verdict.findings.end(), answer.findings.begin(), answer.findings.end());
    }
}

value::Node names_node(const std::vector<std::string>& names) {
    auto list = value::Node::sequence();
    for (const auto& name : names) list.push_back(name);
    return list;
}

value::Node signed_file_node(const SignedFile& file) {
    auto node = value::Node::mapping({{"module", file.module}, {"file", file.path}, {"signature", std::string(kernel::to_string(file.check.trust))}});
    const auto set = [&](const char* key, const std::string& text) {
        if (!text.empty()) node.set(key, text);
    };
    set("signer", file.signature.signer);
    set("keyID", file.signature.key_id);
    set("digest", file.signature.digest);
    set("certificate", file.check.certificate);
    set("fault", file.check.fault);
    return node;
}

std::string pool_text(const plan::Pool& pool) {
    const std::string kernel = pool.kernel.empty() ? "-" : pool.kernel;
    return pool.architecture.empty() ? kernel : kernel + "/" + pool.architecture;
}

/// A sum of all that a verdict follows from: another one means that it has to be asked again.
std::string inputs_of(const Verdict& verdict) {
    std::string text = fmt::format("{}\n{}\n{}\n{}\n", verdict.surveyed->kernel, verdict.surveyed->module->full_name(), checked_text(verdict.checked), verdict.digest);
    if (verdict.resolved != nullptr) text += verdict.resolved->config.container_image + '\n';
    if (verdict.pool != nullptr) text += pool_text(*verdict.pool) + '\n';
    if (verdict.question && verdict.question->interface != nullptr) {
        for (const auto& [symbol, entry] : verdict.question->interface->exports) text += fmt::format("{} {:08x}\n", symbol, entry.crc);
    }
    for (const auto& file : verdict.files) text += fmt::format("{} {}\n", file.path, file.signature.key_id);
    return "sha256:" + recipe::tmpl::hex_digest(text, "SHA256");
}

value::Node verdict_node(const Verdict& verdict) {
    auto node = value::Node::mapping();
    node.set("kernel", verdict.surveyed->kernel);
    node.set("namespace", verdict.surveyed->module->meta.namespace_);
    node.set("module", verdict.surveyed->module->meta.name);
    if (verdict.pool != nullptr) {
        auto pool = value::Node::mapping();
        pool.set("kernel", verdict.pool->kernel);
        if (!verdict.pool->architecture.empty()) pool.set("architecture", verdict.pool->architecture);
        pool.set("nodes", names_node(verdict.pool->nodes));
        if (verdict.failed()) pool.set("losing", names_node(verdict.pool->loaded));
        node.set("pool", std::move(pool));
    }
    if (verdict.resolved != nullptr) {
        auto mapping = value::Node::mapping();
        mapping.set("index", static_cast<std::uint64_t>(verdict.resolved->mapping_index));
        mapping.set(verdict.resolved->literal ? "literal" : "regexp", verdict.resolved->matcher);
        node.set("mapping", std::move(mapping));
        node.set("image", verdict.resolved->config.container_image);
    }
    if (!verdict.digest.empty()) node.set("digest", verdict.digest);
    node.set("checked", std::string(checked_text(verdict.checked)));
    if (!verdict.files.empty()) {
        auto files = value::Node::sequence();
        for (const auto& file : verdict.files) files.push_back(signed_file_node(file));
        node.set("signatures", std::move(files));
    }
    node.set("verdict", std::string(verdict.text()));
    node.set("reason", verdict.reason());
    node.set("inputs", inputs_of(verdict));
    node.set("findings", diagnostics_node(verdict.findings));
    return node;
}

/// One answer for the cluster.
recipe::decide::Upgradeable judge_all(const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes) {
    std::vector<recipe::decide::KernelVerdict> all;
    for (const auto& verdict : verdicts) {
        std::string message;
        for (const auto& finding : verdict.findings)
            if (finding.severity == Severity::error && message.empty()) message = finding.message;
        // A mapping alone does not say that the image is there.
        const bool is_unasked = verdict.text() == "pass" && verdict.checked == Checked::mapping;
        all.push_back({"Module " + verdict.surveyed->module->full_name(), verdict.surveyed->kernel, verdict.text() == "pass" && !is_unasked,
                       is_unasked ? "image-not-checked" : verdict.reason(), is_unasked ? "its image was not checked" : message});
    }
    for (const auto& one : recipes) all.push_back({"SpecialResource " + one.resource, one.kernel, one.text() == "pass", one.reason, one.message});
    return recipe::decide::judge_upgrade(all);
}

value::Node preflight_node(const Source& source, const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes) {
    auto node = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Preflight"}, {"source", source.description}});
    auto entries = value::Node::sequence();
    std::map<std::string, std::uint64_t> counts{{"pass", 0}, {"fail", 0}, {"unknown", 0}};
    for (const auto& verdict : verdicts) {
        entries.push_back(verdict_node(verdict));
        ++counts[std::string(verdict.text())];
    }
    node.set("entries", std::move(entries));
    if (!recipes.empty()) {
        auto list = value::Node::sequence();
        for (const auto& one : recipes) {
            list.push_back(recipe_verdict_node(one));
            ++counts[std::string(one.text())];
        }
        node.set("recipes", std::move(list));
    }
    const auto upgradeable = judge_all(verdicts, recipes);
    node.set("upgradeable", value::Node::mapping({{"status", upgradeable.status}, {"reason", upgradeable.reason}, {"message", upgradeable.message}}));
    std::string sums;
    for (const auto& verdict : verdicts) sums += inputs_of(verdict) + '\n';
    for (const auto& one : recipes) sums += one.inputs + '\n';
    node.set("inputs", "sha256:" + recipe::tmpl::hex_digest(sums, "SHA256"));
    auto& summary = node.set("summary", value::Node::mapping());
    for (const char* text : {"pass", "fail", "unknown"}) summary.set(text, counts[text]);
    return node;
}

/// What would not survive, or could not be found out: kernel and Module, each once.
std::string losing_names(const std::vector<Verdict>& verdicts) {
    std::set<std::string> told;
    std::string text;
    for (const auto& verdict : verdicts) {
        const std::string line = fmt::format("{} {}\n", verdict.surveyed->kernel, verdict.surveyed->module->full_name());
        if (verdict.text() != "pass" && told.insert(line).second) text += line;
    }
    return text;
}

/// For narrow terminals: what was checked and the reason, the last two columns, stand below each line. Nothing is cut.
std::string folded(std::vector<std::string> headers, std::vector<std::vector<std::string>> rows) {
    std::vector<std::string> details{""};  // of the header
    for (auto& row : rows) {
        details.push_back(fmt::format("  {}: {}\n", row[row.size() - 2], row.back()));
        row.resize(row.size() - 2);
    }
    headers.resize(headers.size() - 2);
    return cli::interleaved(cli::format_table(headers, rows, 0), details);
}

std::string table(const std::vector<Verdict>& verdicts, const cli::Context& context) {
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"KERNEL", "MODULE", "POOL", "NODES", "VERDICT", "CHECKED", "REASON"};
    if (wide) headers.insert(headers.end(), {"IMAGE", "DIGEST"});
    std::vector<std::vector<std::string>> rows;
    for (const auto& verdict : verdicts) {
        const auto* pool = verdict.pool;
        std::vector<std::string> row{verdict.surveyed->kernel,
                                     verdict.surveyed->module->full_name(),
                                     pool == nullptr ? "-" : pool_text(*pool),
                                     fmt::format("{}", pool == nullptr ? 0 : pool->nodes.size()),
                                     std::string(verdict.text()),
                                     std::string(checked_text(verdict.checked)),
                                     verdict.reason()};
        if (wide) row.insert(row.end(), {verdict.resolved == nullptr ? "-" : verdict.resolved->config.container_image, verdict.digest.empty() ? "-" : verdict.digest});
        rows.push_back(std::move(row));
    }
    const std::string text = cli::format_table(headers, rows, 0);
    return wide || !context.console.out_is_terminal() || cli::fits(text, context.console.width()) ? text : folded(std::move(headers), std::move(rows));
}

/// Who signed which file: each file of each image once.
std::string signature_lines(const std::vector<Verdict>& verdicts) {
    std::set<std::string> told;
    std::string text;
    for (const auto& verdict : verdicts)
        for (const auto& file : verdict.files) {
            if (!told.insert(verdict.digest + file.path).second) continue;
            text += fmt::format("{}: {}\n", base::escape(file.path), kernel::to_string(file.check.trust));
            if (file.check.trust != kernel::Trust::none) text += fmt::format("  {}\n", kmod::signature_text(file.signature));
        }
    return text.empty() ? text : "\n" + text;
}

/// Findings once each, although several pools share them; then who would lose what.
std::string explanation(const std::vector<Verdict>& verdicts, const Diagnostics& findings, bool color) {
    std::string text;
    for (const auto& finding : findings) text += cli::diagnostic_text(finding, color);
    for (const auto& verdict : verdicts) {
        if (!verdict.failed() || verdict.pool == nullptr || verdict.pool->loaded.empty()) continue;
        text += fmt::format("with kernel {}, {} would no longer load on {}\n", verdict.surveyed->kernel, verdict.surveyed->module->full_name(), base::join(verdict.pool->loaded, ", "));
    }
    return text;
}

/// Where in the documents a finding about this row is to be mended: the mapping, else all mappings, else the Module.
Position place_of(const Verdict& verdict) {
    const auto& module = *verdict.surveyed->module;
    const std::string mappings = "spec.moduleLoader.container.kernelMappings";
    if (verdict.resolved != nullptr)
        if (const auto place = module.places.find(fmt::format("{}[{}]", mappings, verdict.resolved->mapping_index)); place != module.places.end()) return place->second;
    if (const auto place = module.places.find(mappings); place != module.places.end()) return place->second;
    return module.meta.origin;
}

/// Gives every finding its place and takes away what the baseline knows; returns all of them, each once.
Diagnostics settle_findings(std::vector<Verdict>& verdicts, Reporting& reporting) {
    Diagnostics all;
    for (auto& verdict : verdicts) {
        for (auto& finding : verdict.findings)
            if (!finding.position) finding.position = place_of(verdict);
        reporting.forget_known(verdict.findings);
        if (verdict.findings.empty()) verdict.unknown = false;
        all.insert(all.end(), verdict.findings.begin(), verdict.findings.end());
    }
    sort_and_merge(all);
    return all;
}

/// Those of --kernel, else those that PreflightValidations ask about, each once.
std::vector<std::string> chosen_kernels(const cli::Args& args, const Source& source, const RecipePreflight& recipes) {
    auto kernels = args.all("kernel");
    if (!kernels.empty()) return kernels;
    kernels = recipes.asked_kernels();
    for (const auto& object : source.objects.preflight_validations)
        if (!object.kernel_version.empty() && std::find(kernels.begin(), kernels.end(), object.kernel_version) == kernels.end())
            kernels.push_back(object.kernel_version);
    if (kernels.empty())
        throw Error(Exit::usage, "missing-option", "--kernel KERNEL is missing, and no PreflightValidation was read").hint("kmm-plan preflight --kernel 6.1.0-60-amd64");
    for (const auto& kernel : kernels) check_kernel_name(kernel);
    return kernels;
}

Exit run_preflight(const cli::Args& args, cli::Context& context) {
    Reporting reporting(args);
    for (const auto& kernel : args.all("kernel")) check_kernel_name(kernel);
    const auto interfaces = read_interfaces(args);
    const Trusted trusted = read_trusted(args);
    const auto target = status_target(args);
    RecipePreflight recipes(args);
    Source source = read_valid_source(args, context, [&](std::string_view path) { return recipes.is_chart_file(path); });
    const auto kernels = chosen_kernels(args, source, recipes);
    const auto interface_of = by_kernel(interfaces, kernels);
    check_namespace({&source, 1}, args);
    keep_nodes(source, args, {});
    auto rows = plan::survey(source.objects, kernels);
    if (const auto ns = args.get("namespace"))
        std::erase_if(rows, [&](const plan::Surveyed& row) { return row.module->meta.namespace_ != *ns; });
    if (const auto names = args.positionals("MODULE"); !names.empty()) {
        std::vector<const api::Module*> chosen;
        for (const auto& name : names) chosen.push_back(&find_module(source, args, name));
        std::erase_if(rows, [&](const plan::Surveyed& row) { return std::find(chosen.begin(), chosen.end(), row.module) == chosen.end(); });
    }
    // -l asks about those nodes: a Module that has to do with others only is not judged by it.
    if (args.get("selector")) std::erase_if(rows, [](const plan::Surveyed& row) { return row.pools.empty(); });
    const bool has_recipes = recipes.any() && args.positionals("MODULE").empty() && !args.get("namespace") && !args.get("selector");
    if (rows.empty() && args.get("selector"))
        throw Error(Exit::not_found, "no-modules", fmt::format("no Module to check selects a node that matches -l {}", base::escape(*args.get("selector"))))
            .hint("kmm-plan show -l tells which Modules there are");
    if (rows.empty() && !has_recipes) throw Error(Exit::not_found, "no-modules", "there is no Module with a moduleLoader to check that is not being deleted").hint("kmm-plan show tells what was read");
    auto verdicts = first_verdicts(rows, interface_of, args.flag("check-images"), trusted);
    answer_questions(verdicts, source, args, context);
    auto recipe_verdicts = has_recipes ? recipes.judge(kernels, interface_of, source, context) : std::vector<RecipeVerdict>();
    auto findings = settle_findings(verdicts, reporting);
    for (auto& one : recipe_verdicts) {
        reporting.forget_known(one.findings);
        findings.insert(findings.end(), one.findings.begin(), one.findings.end());
    }
    sort_and_merge(findings);
    reporting.publish("preflight", read_files(source), findings, context);
    if (target) {
        const auto patch = recipe::decide::status_patch(*target, judge_all(verdicts, recipe_verdicts), base::format_rfc3339(sys::LinuxClock().now_unix()));
        context.console.out(context.output == "json" ? value::to_json(patch) + "\n" : value::to_yaml(patch));
        if (context.verbosity >= 0) context.console.err(explanation(verdicts, findings, context.color_err));
    } else if (context.output == "json" || context.output == "yaml") {
        print_document(context, preflight_node(source, verdicts, recipe_verdicts));
    } else if (context.output == "jsonl") {
        for (const auto& verdict : verdicts) print_document(context, verdict_node(verdict));
        for (const auto& one : recipe_verdicts) print_document(context, recipe_verdict_node(one));
    } else if (context.output == "name") {
        context.console.out(losing_names(verdicts));
        for (const auto& one : recipe_verdicts)
            if (one.text() != "pass") context.console.out(fmt::format("{} {}\n", one.kernel, one.resource));
    } else {
        if (!verdicts.empty() || recipe_verdicts.empty()) context.console.out(table(verdicts, context));
        if (!verdicts.empty() && !recipe_verdicts.empty()) context.console.out("\n");
        context.console.out(recipe_verdict_table(recipe_verdicts, context.output == "wide"));
        if (!recipe_verdicts.empty()) context.console.out(upgradeable_line(judge_all(verdicts, recipe_verdicts)));
        if (context.output == "wide" || !trusted.certificates.empty()) context.console.out(signature_lines(verdicts));
        if (context.verbosity >= 0) context.console.err(explanation(verdicts, findings, context.color_err));
    }
    return reporting.failed(findings) ? Exit::checks_failed : Exit::ok;
}

}  // namespace

cli::Verb preflight_verb() {
    cli::Verb verb;
    verb.name = "preflight";
    verb.summary = "would the fleet survive a kernel that it does not run yet";
    verb.description =
        "For each kernel and Module: is there a kernel mapping; with --check-images, is the image there for the nodes' architecture; with --kernel-devel, would that "
        "kernel take the image's modules: vermagic, every symbol and its version, namespaces, licence, dependencies, parameters, firmware. Nodes of one kernel and "
        "architecture are a pool and share a line; CHECKED says how far the check went.\n\n"
        "With --cert, every module's signature is verified as that kernel would. A kernel built with CONFIG_MODULE_SIG_FORCE, which --kernel-devel tells, or nodes that "
        "--sig-enforce speaks of, refuse modules that are not signed or signed by another key; other kernels load them and are tainted, which is a warning. A signature "
        "that does not fit its module is refused by all. -o wide and json name signer, key and digest of each file.\n\n"
        "SpecialResources among the documents of -f are checked, too, with the charts, facts and releases that render recipe takes. A driver container is ready for a kernel if "
        "its image for that kernel is there; else if the modules of the image that is there now fit it by every symbol version (--kernel-devel); else if a build is paired "
        "with it whose source is known. Otherwise the kernel has to wait. A PreflightValidation of the operator names a release, whose kernel is taken from the facts.\n\n"
        "All verdicts make one: upgradeable, true if every driver is ready. --status clusteroperator[/NAME] or operatorcondition[/NAMESPACE]/NAME prints it as a condition to "
        "apply. Each verdict in json has a sum of its inputs: a result of other inputs says nothing about these.\n\n"
        "-o name prints kernel and Module of what would fail. Exit code 10 if anything would fail, or could not be found out.";
    verb.examples = {
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64", "is every Module mapped for it"},
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64 --check-images", "and are the images there"},
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64 --kernel-devel linux-headers-6.1.0-60-amd64.deb", "and do their modules fit it"},
        {"kmm-plan preflight -f recipes/ --facts facts.yaml --kernel 5.14.0-427.43.1.el9_4.x86_64 --check-images --status clusteroperator", "recipes, as a condition"},
        {"kmm-plan preflight --cluster ./fleet --kernel 6.1.0-60-amd64 --cert MOK.der --sig-enforce", "and are they signed for Secure Boot"},
    };
    verb.positionals = {{"MODULE", "names of Modules; all if absent", false, true}};
    cli::Option kernel;
    kernel.name = "kernel";
    kernel.value_name = "KERNEL";
    kernel.help = "a kernel version as uname -r prints it; those of the PreflightValidations that were read if absent";
    kernel.repeatable = true;
    cli::Option devel;
    devel.name = "kernel-devel";
    devel.value_name = "PATH";
    devel.help = "its headers: directory, Module.symvers, .deb or .rpm";
    devel.repeatable = true;
    auto recipes = recipe_sources();
    std::erase_if(recipes, [](const cli::Option& option) { return option.name == "filename"; });
    verb.options = std::vector<cli::Option>{kernel, devel, recipe_option("status", "TARGET", "print the condition Upgradeable of clusteroperator or operatorcondition")} + recipes + signature_options() + registry_options() + report_options() + source_options() + cli::common_options();
    verb.run = run_preflight;
    return verb;
}

}  // namespace kmm::tool_plan
