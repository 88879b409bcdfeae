// SPDX-License-Identifier: Apache-2.0
// kmm-plan images: every image that the plan pulls, by digest where that is known.
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "image/reference.hpp"
#include "kmm-plan/source/asked.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/source/read_summary.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/fleet/make_plan.hpp"
#include "plan/fleet/survey.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/image_name.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/template.hpp"
#include "preflight/images.hpp"
#include "preflight/made_image.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/missing_file.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

constexpr std::string_view k_bad_reference = "bad-reference";

/// One image, and what asks for it.
struct Wanted {
    std::string image;
    std::set<std::string> modules, kernels, architectures;
    plan::Resolved resolved;             ///< of one of the askers: registry switches and Secret are theirs
    const api::Module* module = nullptr;
    std::set<std::string> signed_images;  ///< if it is pulled only to be signed: what comes of it
    std::string digest;
    Diagnostics findings;
};

using Images = std::map<std::string, Wanted>;

void want(Images& images, const api::Module& module, const api::ModuleConfig& config, const std::string& kernel,
          const std::string& architecture) {
    if (config.container_image.empty()) return;
    auto& wanted = images[config.container_image];
    wanted.image = config.container_image;
    wanted.modules.insert(module.full_name());
    if (!kernel.empty()) wanted.kernels.insert(kernel);
    if (!architecture.empty()) wanted.architectures.insert(architecture);
    if (wanted.module == nullptr) {
        wanted.module = &module;
        wanted.resolved.config = config;
        wanted.resolved.kernel = kernel;
    }
}

/// Module, kernel and architecture of nodes.
using Asked = std::set<std::tuple<const api::Module*, std::string, std::string>>;

bool is_made_by_kmm(const api::Module& module) {
    const auto& container = module.module_loader->container;
    const auto& mappings = container.kernel_mappings;
    return container.build || container.sign ||
           std::any_of(mappings.begin(), mappings.end(),
                       [](const auto& mapping) { return mapping.build || mapping.sign; });
}

/// Notes how KMM makes images, and adds what its sign Pods pull: what they sign, unless KMM builds that. All others
/// must be there by then.
void want_sources(Images& images, const Asked& asked) {
    for (const auto& [module, kernel, architecture] : asked) {
        const auto resolution = plan::resolve(*module, kernel);
        const auto* resolved = std::get_if<plan::Resolved>(&resolution);
        if (resolved == nullptr) continue;
        // Of a version that is held another image is pulled.
        const auto made = images.find(resolved->config.container_image);
        if (made == images.end()) continue;
        if (made->second.module == module && made->second.resolved.kernel == resolved->kernel) {
            made->second.resolved.build = resolved->build;
            made->second.resolved.sign = resolved->sign;
        }
        if (!resolved->sign || resolved->build) continue;
        api::ModuleConfig config;
        config.container_image = resolved->sign->unsigned_image;
        const auto& tls = resolved->sign->unsigned_image_registry_tls;
        config.insecure_pull = tls.insecure || tls.insecure_skip_tls_verify;
        const auto found = images.find(config.container_image);
        const bool is_source = found == images.end() || !found->second.signed_images.empty();
        want(images, *module, config, resolved->kernel, architecture);
        if (is_source && !config.container_image.empty())
            images.at(config.container_image).signed_images.insert(resolved->config.container_image);
    }
}

/// Images of the containers of a device plugin or DRA driver, which run on every node of the Module.
void want_containers(Images& images, const api::Module& module, const std::optional<value::Node>& part,
                     const std::string& architecture) {
    if (!part) return;
    for (const char* name : {"initContainer", "container"}) {
        api::ModuleConfig config;
        config.container_image = part->get_string({name, "image"});
        want(images, module, config, "", architecture);
    }
}

/// A kernel that was asked for and that a Module has no image for: the list would be silently short.
Diagnostic no_image_for(const plan::Surveyed& row) {
    Diagnostic finding;
    finding.severity = Severity::warning;
    finding.code = "no-kernel-mapping";
    finding.message = fmt::format("no kernel mapping of Module {} matches kernel {}: no image is listed for it",
                                  row.module->full_name(), row.kernel);
    finding.hint = "add a kernel mapping for it, and the image";
    finding.exit = Exit::checks_failed;
    return finding;
}

/// `gaps` gets the kernels that Modules have no image for, of the fleet and of those that were asked for.
Images collect(const Source& source, const std::vector<std::string>& kernels, Diagnostics& gaps) {
    Images images;
    Asked made;
    std::map<std::string, const api::Node*> nodes;
    for (const auto& node : source.objects.nodes) nodes.emplace(node.meta.name, &node);
    const auto plan = plan::make_plan(source.objects, plan::complete({}, source.objects));
    for (const auto& finding : plan.diagnostics)
        if (finding.code == "kernel-unmapped" || finding.code == "kernel-unparsable" ||
            finding.code == "kernel-unknown")
            gaps.push_back(finding);
    for (const auto& entry : plan.entries) {
        const bool pulled = entry.action == plan::Action::load || entry.action == plan::Action::keep ||
                            entry.action == plan::Action::reload;
        if (!pulled || !entry.config) continue;
        for (const auto& module : source.objects.modules) {
            if (module.meta.name != entry.module || module.meta.namespace_ != entry.namespace_) continue;
            const auto node = nodes.find(entry.node);
            const std::string architecture = node == nodes.end() ? "" : node->second->architecture;
            want(images, module, *entry.config, entry.config->kernel_version, architecture);
            if (module.module_loader && is_made_by_kmm(module)) made.emplace(&module, entry.kernel, architecture);
            want_containers(images, module, module.device_plugin, architecture);
            want_containers(images, module, module.dra, architecture);
        }
    }
    // Their DaemonSets wait for no kernel module.
    for (const auto& module : source.objects.modules) {
        if (module.module_loader || module.meta.deleting) continue;
        for (const auto& node : source.objects.nodes) {
            if (!plan::selects(module.selector, node.meta.labels)) continue;
            want_containers(images, module, module.device_plugin, node.architecture);
            want_containers(images, module, module.dra, node.architecture);
        }
    }
    for (const auto& row : kernels.empty() ? std::vector<plan::Surveyed>() : plan::survey(source.objects, kernels)) {
        const auto* resolved = std::get_if<plan::Resolved>(&row.resolution);
        if (resolved == nullptr) {
            if (std::holds_alternative<plan::NoMapping>(row.resolution)) gaps.push_back(no_image_for(row));
            continue;
        }
        want(images, *row.module, resolved->config, row.kernel, "");
        for (const auto& pool : row.pools) want(images, *row.module, resolved->config, row.kernel, pool.architecture);
        if (!is_made_by_kmm(*row.module)) continue;
        if (row.pools.empty()) made.emplace(row.module, row.kernel, "");
        for (const auto& pool : row.pools) made.emplace(row.module, row.kernel, pool.architecture);
    }
    want_sources(images, made);
    return images;
}

/// Where the first Module that wants the image names it.
Position place_of_image(const Wanted& wanted) {
    const auto& module = *wanted.module;
    for (const auto* part : {&module.device_plugin, &module.dra}) {
        for (const char* name : {"initContainer", "container"}) {
            const auto* image = *part ? (*part)->find_path({name, "image"}) : nullptr;
            if (image != nullptr && image->text() == wanted.image)
                return {module.meta.origin.file, image->mark().line, image->mark().column};
        }
    }
    const auto resolution = plan::resolve(module, wanted.resolved.kernel);
    const auto* resolved = std::get_if<plan::Resolved>(&resolution);
    const std::string container = "spec.moduleLoader.container";
    const char* field = wanted.signed_images.empty() ? "containerImage" : "sign.unsignedImage";
    for (const auto& path : {resolved == nullptr ? "" : fmt::format("{}.kernelMappings[{}].{}", container,
                                                                    resolved->mapping_index, field),
                             fmt::format("{}.{}", container, field)})
        if (const auto place = module.places.find(path); place != module.places.end()) return place->second;
    return module.meta.origin;
}

/// Digests that the names have, and what is wrong with names that have a fault.
void take_pinned(Images& images) {
    constexpr std::size_t k_named_max = 3;
    for (auto& [name, wanted] : images) {
        if (auto fault = plan::image_name_fault(name)) {
            const std::vector<std::string> modules(wanted.modules.begin(), wanted.modules.end());
            fault->severity = Severity::error;
            fault->exit = Exit::checks_failed;
            fault->message = fmt::format("Module{} {}: {}", modules.size() == 1 ? "" : "s",
                                         base::join_some(modules, k_named_max), fault->message);
            if (auto place = place_of_image(wanted); !place.file.empty()) fault->position = std::move(place);
            wanted.findings.push_back(std::move(*fault));
        } else if (const auto reference = image::parse_reference(name); reference.digest) {
            wanted.digest = reference.digest->to_string();
        }
    }
}

void ask(Images& images, const Source& source, const cli::Args& args, cli::Context& context) {
    std::vector<preflight::ImageQuestion> questions;
    for (auto& [name, wanted] : images) {
        if (has_errors(wanted.findings)) continue;
        std::set<std::string> architectures = wanted.architectures;
        if (architectures.empty()) architectures.insert("");
        for (const auto& architecture : architectures)
            questions.push_back({wanted.module, &wanted.resolved, architecture, nullptr, preflight::Depth::manifest});
    }
    const auto answers = preflight::ask_registries(questions, source.objects, args, context);
    for (const auto& question : questions) {
        auto& wanted = images.at(question.resolved->config.container_image);
        const auto& answer = answers.at(question.key());
        if (!answer.digest.empty()) wanted.digest = answer.digest;
        Diagnostics findings = answer.findings;
        preflight::name_the_source(*question.resolved, findings);
        wanted.findings.insert(wanted.findings.end(), std::make_move_iterator(findings.begin()),
                               std::make_move_iterator(findings.end()));
    }
    // KMM signs no image that is signed already.
    for (auto& [name, wanted] : images) {
        const auto& made = wanted.signed_images;
        const bool is_done = !made.empty() && std::all_of(made.begin(), made.end(), [&](const std::string& image) {
            const auto& of = images.at(image);
            return !of.digest.empty() && !has_errors(of.findings);
        });
        if (is_done) std::erase_if(wanted.findings, [](const auto& found) { return found.code == "image-not-found"; });
    }
}

std::string pinned(const Wanted& wanted) {
    if (wanted.digest.empty()) return wanted.image;
    const auto reference = image::parse_reference(wanted.image);
    return reference.name() + "@" + wanted.digest;
}

value::Node names_node(const std::set<std::string>& names) {
    return value::Node::strings({names.begin(), names.end()});
}

value::Node image_node(const std::string& name, const Wanted& wanted) {
    auto node = value::Node::mapping({{"image", name}});
    if (!wanted.digest.empty()) node.set("digest", wanted.digest);
    node.set("modules", names_node(wanted.modules));
    if (!wanted.kernels.empty()) node.set("kernels", names_node(wanted.kernels));
    if (!wanted.architectures.empty()) node.set("architectures", names_node(wanted.architectures));
    return node;
}

value::Node images_node(const Images& images, const char* kind) {
    auto list = value::Node::sequence();
    for (const auto& [name, wanted] : images) list.push_back(image_node(name, wanted));
    return value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}, {"images", std::move(list)}});
}

/// oc-mirror's input.
value::Node image_set(const Images& images) {
    auto list = value::Node::sequence();
    for (const auto& [name, wanted] : images) list.push_back(value::Node::mapping({{"name", pinned(wanted)}}));
    return value::Node::mapping({{"apiVersion", "mirror.openshift.io/v2alpha1"},
                                 {"kind", "ImageSetConfiguration"},
                                 {"mirror", value::Node::mapping({{"additionalImages", std::move(list)}})}});
}

/// What scripts copy to mirrors: whatever is no reference has an error among the findings.
Images valid_images(Images images) {
    std::erase_if(images, [](const auto& entry) { return plan::image_name_fault(entry.first).has_value(); });
    return images;
}

void print(const Images& images, cli::Context& context) {
    if (context.output == "imageset") {
        context.console.out(value::to_yaml(image_set(valid_images(images))));
    } else if (context.output == "list" || context.output == "name") {
        for (const auto& [name, wanted] : valid_images(images))
            context.console.out(fmt::format("{}\n", cli::plain_name(pinned(wanted))));
    } else if (context.output == "jsonl") {
        for (const auto& [name, wanted] : images) print_document(context, image_node(name, wanted));
    } else if (cli::document_form(context)) {
        print_document(context, images_node(images, "Images"));
    } else if (images.empty()) {
        context.console.err("the plan pulls no images\n");
    } else {
        std::vector<std::vector<std::string>> rows;
        for (const auto& [name, wanted] : images)
            rows.push_back(
                {name, wanted.digest.empty() ? "-" : wanted.digest,
                 base::join(std::vector<std::string>(wanted.modules.begin(), wanted.modules.end()), ","),
                 wanted.kernels.empty()
                     ? "-"
                     : base::join(std::vector<std::string>(wanted.kernels.begin(), wanted.kernels.end()), ",")});
        context.console.out(
            cli::folded_table({"IMAGE", "DIGEST", "MODULES", "KERNELS"}, std::move(rows), 1, context.table_width()));
    }
}

/// Digest by image, as an earlier run wrote it.
std::map<std::string, std::string> read_lock(const std::string& file) {
    constexpr std::size_t k_lock_bytes = 16U << 20U;
    Diagnostics faults;
    const auto documents = value::read_any(sys::read_file(file, k_lock_bytes), file, faults);
    std::map<std::string, std::string> result;
    const auto fault = [&](const value::Node& node, const std::string& message) {
        faults.push_back({Severity::error, "bad-lock", message, documents.front().position(node.mark()),
                          "remove the file to write it again", Exit::data});
    };
    if (!has_errors(faults)) {
        const auto* list = documents.size() == 1 &&
                                   documents.front().root.get_string({"apiVersion"}) == "kmmtools/v1" &&
                                   documents.front().root.get_string({"kind"}) == "ImageLock"
                               ? documents.front().root.find("images")
                               : nullptr;
        if (list == nullptr || list->kind() != value::Kind::sequence) {
            faults.push_back({Severity::error, "bad-lock",
                              "expected one document of kmmtools/v1, kind ImageLock, with a list of images",
                              Position{file, 1, 1},
                              "remove the file to write it again", Exit::data});
        } else {
            for (const auto& item : list->items()) {
                const auto image = item.get_string({"image"});
                const auto digest = item.get_string({"digest"});
                if (image.empty() || digest.empty()) {
                    fault(item, "expected image and digest");
                } else if (!result.emplace(image, digest).second) {
                    fault(item, "expected each image once, found " + base::escape(image) + " again");
                }
            }
        }
    }
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return result;
}

void compare_with_lock(Images& images, const std::map<std::string, std::string>& locked, const std::string& file) {
    for (auto& [name, wanted] : images) {
        const auto it = locked.find(name);
        if (it == locked.end()) {
            wanted.findings.push_back({Severity::error, "not-locked",
                                       fmt::format("image {} is not in {}", base::escape(name), base::escape(file)),
                                       std::nullopt, "remove the file to write it again", Exit::checks_failed});
        } else if (!wanted.digest.empty() && wanted.digest != it->second) {
            wanted.findings.push_back(
                {Severity::error, "digest-drift",
                 fmt::format("image {} is {} now, expected {}", base::escape(name), wanted.digest, it->second),
                 std::nullopt, "somebody pushed another image under that name; remove the lock file to accept it",
                 Exit::checks_failed});
        }
    }
}

Diagnostics findings_of(const Images& images) {
    Diagnostics all;
    for (const auto& [name, wanted] : images) all.insert(all.end(), wanted.findings.begin(), wanted.findings.end());
    sort_and_merge(all);
    return all;
}

/// Adds the warnings about names of images that the plan does not pull. Of the others there is an error.
void add_unlisted(const Diagnostics& warnings, const cli::Args& args, Diagnostics& findings) {
    Diagnostics added;
    for (const auto& warning : warnings) {
        if (warning.code != k_bad_reference || !is_asked(warning, args)) continue;
        const bool is_listed = std::any_of(findings.begin(), findings.end(), [&](const Diagnostic& finding) {
            return finding.code == warning.code && finding.position == warning.position;
        });
        if (!is_listed) added.push_back(warning);
    }
    findings.insert(findings.end(), added.begin(), added.end());
    sort_and_merge(findings);
}

/// No image is an answer only if there was something to list: a dump that was lost is to fail a pipeline. Of a cluster
/// it is one.
void refuse_nothing(const Source& source, const cli::Args& args, bool is_check) {
    const auto& objects = source.objects;
    if (objects.nodes.empty() && args.all("kernel").empty())
        throw Error(Exit::checks_failed, "no-nodes", "no Nodes were read, so no image is known that they pull")
            .detail("read", read_summary({&source, 1}))
            .hint(objects.managed_cluster_modules.empty()
                      ? "look whether the command that wrote the dump has failed; --kernel KERNEL lists the images for "
                        "a kernel without Nodes"
                      : "no node of a hub pulls images of ManagedClusterModules; kmm-plan render hub prints them");
    if ((is_check || !source.live) && objects.modules.empty() && !args.get("cluster"))
        throw Error(Exit::not_found, "no-modules",
                    is_check ? "no Module was read, so no image was checked"
                             : "no Module was read, so no image is known that nodes pull")
            .detail("read", read_summary({&source, 1}))
            .hint(std::string(k_dump_hint));
}

Exit run_images(const cli::Args& args, cli::Context& context) {
    preflight::require_question(args, {"lock"});
    for (const auto& kernel : args.all("kernel")) plan::require_kernel_name(kernel);
    Source source = read_valid_source(args, context, {}, k_bad_reference);
    check_namespace({&source, 1}, args);
    keep_nodes(source, args, {});
    // A list for mirrors is not to lack what a node pulls when it is back.
    for (auto& node : source.objects.nodes) node.taints = plan::lasting_taints(node.taints);
    if (const auto ns = args.get("namespace"))
        std::erase_if(source.objects.modules, [&](const api::Module& module) { return module.meta.namespace_ != *ns; });
    Diagnostics gaps;
    Images images = collect(source, args.all("kernel"), gaps);
    take_pinned(images);
    const auto lock = args.get("lock");
    const bool is_check = args.flag("check-images") || lock;
    if (images.empty() && !source.live) {
        Diagnostics unlisted;
        if (context.verbosity >= 0) add_unlisted(source.diagnostics, args, unlisted);
        for (const auto& finding : unlisted) context.console.err(cli::diagnostic_text(finding, context.color_err));
        refuse_nothing(source, args, is_check);
    }
    const bool locked = lock && ::access(lock->c_str(), F_OK) == 0;
    const auto digests = locked ? read_lock(*lock) : std::map<std::string, std::string>();
    if (is_check) ask(images, source, args, context);
    if (locked) compare_with_lock(images, digests, *lock);
    auto findings = findings_of(images);
    if (context.verbosity >= 0) add_unlisted(source.diagnostics, args, findings);
    print(images, context);
    if (context.verbosity >= 0)
        for (const auto& gap : gaps) context.console.err(cli::diagnostic_text(gap, context.color_err));
    for (const auto& finding : findings) context.console.err(cli::diagnostic_text(finding, context.color_err));
    if (has_errors(findings)) return Exit::checks_failed;
    if (lock && !locked) {
        sys::LinuxFileOps files;
        sys::require_directory_of(*lock);
        cli::require_way_stays(sys::parent_of(*lock));
        sys::write_file_atomically(files, *lock, value::to_yaml(images_node(images, "ImageLock")), 0644);
        if (context.verbosity >= 0)
            context.console.err(
                fmt::format("wrote {}: {}\n", base::escape(*lock), base::counted(images.size(), "image")));
    }
    return Exit::ok;
}

}  // namespace

cli::Verb images_verb() {
    cli::Verb verb;
    verb.name = "images";
    verb.summary = "list the images the plan pulls, by digest where known";
    verb.description =
        "Lists the module images of the settled plan and of the kernels of --kernel, the images that KMM signs for "
        "them, and those of device plugins and DRA drivers. Cordons are ignored. --check-images asks the registries "
        "for digests. --lock FILE writes the digests if FILE does not exist; otherwise it compares: an image that is "
        "not in FILE, or has another digest there, is an error with exit code 10.\n\n"
        "-o imageset is the input of oc-mirror; -o list (or name) suits skopeo and similar tools.";
    verb.examples = {
        {"kmm-plan images --cluster ./fleet -o list", "one reference a line"},
        {"kmm-plan images --cluster ./fleet --kernel 6.1.0-60-amd64 -o imageset",
         "mirror what the next kernel needs, too"},
        {"kmm-plan images --cluster ./fleet --lock images.lock", "pin tags to digests; later runs refuse drift"},
    };
    auto kernel = cli::repeatable(cli::option("kernel", "KERNEL", "include the images for this kernel"));
    auto lock = cli::option("lock", "FILE", "file of digests to write or compare with");
    auto common = cli::common_options();
    for (auto& option : common)
        if (option.name == "output") option.choices.insert(option.choices.end(), {"list", "imageset"});
    verb.options = std::vector<cli::Option>{kernel, lock} + preflight::registry_options() + source_options() + common;
    verb.run = run_images;
    return verb;
}

}  // namespace kmm::tool_plan
