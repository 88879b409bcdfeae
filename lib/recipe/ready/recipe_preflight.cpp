// SPDX-License-Identifier: Apache-2.0
#include "recipe/ready/recipe_preflight.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "api/recipe_kind.hpp"
#include "base/text.hpp"
#include "cluster/folder/chart_files.hpp"
#include "cluster/folder/ignored.hpp"
#include "cluster/folder/object_files.hpp"
#include "digest/digest.hpp"
#include "plan/fleet/survey.hpp"
#include "preflight/images.hpp"
#include "recipe/decide/decision.hpp"
#include "recipe/files/observe.hpp"
#include "recipe/files/options.hpp"
#include "recipe/resource/graph.hpp"
#include "recipe/resource/release_kinds.hpp"
#include "recipe/resource/values.hpp"
#include "recipe/toolkit/versions.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"

namespace kmm::recipe::ready {

namespace fs = std::filesystem;
namespace rp = plan;
using files::read_facts;
using files::read_recipe_documents;
using files::RecipeDocuments;
using files::render_named;

namespace {

/// Puts what standard input has into memory, so that it can be read twice.
void keep_standard_input() {
    const std::string text = sys::read_fd(0, "-");
    const sys::Fd memory(::memfd_create("stdin", MFD_CLOEXEC));
    if (!memory || ::dup2(memory.get(), 0) < 0) { throw Error(Exit::io, "io", "cannot keep standard input in memory"); }
    sys::LinuxFileOps ops;
    ops.write(0, text);
    ::lseek(0, 0, SEEK_SET);
}

std::string hash_of(const std::string& text) { return "sha256:" + digest::sha256_hex(text); }

/// One resource on one kernel.
struct Rendering {
    std::string resource, kernel;
    std::vector<decide::DriverContainer> containers;  ///< on that kernel
    std::vector<decide::DriverContainer> current;     ///< the same on kernels that run now
    std::string objects;                              ///< as text, for the hash
    bool runs_already = false;                        ///< every node has that kernel: nothing changes
    bool selects_none = false;
    Diagnostics warnings;                             ///< of the rendering
    std::optional<Error> fault;
};

bool is_counterpart(const decide::DriverContainer& left, const decide::DriverContainer& right) {
    return left.cr == right.cr && left.origin == right.origin && left.ordinal == right.ordinal;
}

preflight::RecipeImage question_of(const decide::DriverContainer& container, const std::string& kernel) {
    preflight::RecipeImage question;
    question.reference = container.image;
    question.architecture = image_architecture(kernel);
    question.pull_secrets = container.pull_secrets;
    question.name_space = container.name_space;
    return question;
}

void fail(RecipeVerdict& verdict, std::string reason, std::string message, const Position& place, std::string hint) {
    verdict.reason = reason;
    verdict.message = message;
    verdict.findings.push_back({Severity::error, std::move(reason),
                                fmt::format("{} on kernel {}: {}", verdict.resource, verdict.kernel, message), place,
                                std::move(hint), Exit::checks_failed});
}

class Judge {
public:
    Judge(const cli::Args& args, cli::Context& context, const RecipeDocuments& documents,
          const std::map<std::string, const kernel::Interface*>& interfaces)
        : args_(args), context_(context), documents_(documents), interfaces_(interfaces) {
        for (const auto& [kernel, interface] : interfaces) { hashes_[kernel] = hash_of(kernel::text_of(*interface)); }
    }

    std::vector<RecipeVerdict> run(const std::vector<Rendering>& renderings) {
        std::vector<preflight::RecipeImage> questions;
        for (const auto& one : renderings) {
            for (const auto& container : one.containers) {
                if (asks(one.kernel)) { questions.push_back(question_of(container, one.kernel)); }
            }
        }
        ask(questions);
        questions.clear();
        // Modules of an image that is there are only looked at where the image of the new kernel is not.
        for (const auto& one : renderings) {
            for (const auto& container : one.containers) { add_weak(one, container, questions); }
        }
        ask(questions);
        std::vector<RecipeVerdict> verdicts;
        for (const auto& one : renderings) { add_verdicts(one, verdicts); }
        return verdicts;
    }

private:
    const cli::Args& args_;
    cli::Context& context_;
    const RecipeDocuments& documents_;
    const std::map<std::string, const kernel::Interface*>& interfaces_;
    std::map<std::string, std::string> hashes_;
    std::map<std::string, preflight::ImageAnswer> answers_;

    bool asks(const std::string& kernel) const { return args_.flag("check-images") || interfaces_.count(kernel) != 0; }

    void ask(const std::vector<preflight::RecipeImage>& questions) {
        if (questions.empty()) { return; }
        answers_.merge(preflight::ask_recipe_images(questions, documents_.all, args_, context_));
    }

    const preflight::ImageAnswer* answer(const preflight::RecipeImage& question) const {
        const auto found = answers_.find(question.key());
        return found == answers_.end() ? nullptr : &found->second;
    }

    /// Of containers on kernels that run now, those whose image may be there.
    std::vector<preflight::RecipeImage> weak_questions(const Rendering& one,
                                                       const decide::DriverContainer& container) const {
        const auto interface = interfaces_.find(one.kernel);
        std::vector<preflight::RecipeImage> made;
        if (interface == interfaces_.end()) { return made; }
        for (const auto& now : one.current) {
            if (!is_counterpart(now, container) || now.kernel == one.kernel || now.kernel.empty()) { continue; }
            preflight::RecipeImage question = question_of(now, now.kernel);
            question.kernel = now.kernel;
            question.interface = interface->second;
            made.push_back(std::move(question));
        }
        return made;
    }

    void add_weak(const Rendering& one, const decide::DriverContainer& container,
                  std::vector<preflight::RecipeImage>& questions) const {
        const preflight::ImageAnswer* there = answer(question_of(container, one.kernel));
        if (there == nullptr || !there->reached || !has_errors(there->findings)) { return; }
        for (auto& question : weak_questions(one, container)) { questions.push_back(std::move(question)); }
    }

    void add_verdicts(const Rendering& one, std::vector<RecipeVerdict>& verdicts) const {
        RecipeVerdict empty;
        empty.resource = one.resource;
        empty.kernel = one.kernel;
        empty.checked = "recipe";
        if (one.fault || one.containers.empty()) {
            empty.reason = one.runs_already   ? "kernel-runs"
                           : one.selects_none ? "no-nodes-selected"
                                              : "no-driver-container";
            if (one.fault) {
                fail(empty, one.fault->code(), one.fault->message(), one.fault->position().value_or(Position{}),
                     one.fault->hint());
                if (!one.fault->position()) { empty.findings.back().position.reset(); }
            }
            empty.inputs = hash_of(one.kernel + '\n' + one.objects + empty.message);
            empty.findings.insert(empty.findings.end(), one.warnings.begin(), one.warnings.end());
            verdicts.push_back(std::move(empty));
            return;
        }
        for (const auto& container : one.containers) { verdicts.push_back(verdict_of(one, container, empty)); }
        auto& findings = verdicts[verdicts.size() - one.containers.size()].findings;
        findings.insert(findings.end(), one.warnings.begin(), one.warnings.end());
    }

    RecipeVerdict verdict_of(const Rendering& one, const decide::DriverContainer& container, RecipeVerdict made) const {
        made.container = container.name;
        made.image = container.image;
        std::string seen = fmt::format("{}\n{}{}\n", one.kernel, one.objects, container.name);
        const preflight::ImageAnswer* there = answer(question_of(container, one.kernel));
        if (there != nullptr) {
            made.checked = "image";
            made.digest = there->digest;
            seen += fmt::format("{} {} {}\n", there->digest, there->reached, has_errors(there->findings));
            for (auto finding : there->findings) {
                finding.position = container.origin;
                if (finding.severity == Severity::error) { finding.severity = Severity::warning; }
                made.findings.push_back(std::move(finding));
            }
        }
        const bool can_build = !container.builder.empty() && container.build_fault.empty();
        if (there != nullptr && there->reached && !has_errors(there->findings)) {
            made.reason = "image-present";
        } else if (there != nullptr && !there->reached) {
            made.unknown = true;
            fail(made, "registry-unreachable",
                 fmt::format("whether {} is there could not be found out", container.image), container.origin,
                 "try again when the registry answers");
        } else if (there != nullptr && fits(one, container, made, seen)) {
            made.reason = "compatible-weak";
        } else if (can_build) {
            made.reason = "buildable";
            made.message = fmt::format("{} builds {}", container.builder, container.image);
        } else if (const auto unread = unread_image(one, container); !unread.empty()) {
            made.unknown = true;
            fail(made, "registry-unreachable",
                 fmt::format("{} is not there, and whether the modules of {} fit could not be found out",
                             container.image, unread),
                 container.origin, "try again when the registry answers");
        } else if (there == nullptr) {
            made.unknown = true;
            fail(made, "image-not-checked", fmt::format("whether {} is there was not checked", container.image),
                 container.origin, "give --check-images");
        } else {
            fail(made, "no-image-no-source",
                 container.builder.empty() ? fmt::format("{} is not there, and nothing builds it", container.image)
                                           : fmt::format("{} is not there, and {} cannot build it: {}", container.image,
                                                         container.builder, container.build_fault),
                 container.origin,
                 "push the image, or add a build with the annotation driver-container-vendor of the container");
        }
        made.inputs = hash_of(seen);
        return made;
    }

    /// An image of a kernel that runs now whose registry did not answer: its modules may fit the new one. "" if there
    /// is none.
    std::string unread_image(const Rendering& one, const decide::DriverContainer& container) const {
        for (const auto& question : weak_questions(one, container)) {
            const preflight::ImageAnswer* judged = answer(question);
            if (judged != nullptr && !judged->reached) { return question.reference; }
        }
        return "";
    }

    /// Whether the modules of an image that is there fit the new kernel.
    bool fits(const Rendering& one, const decide::DriverContainer& container, RecipeVerdict& made,
              std::string& seen) const {
        for (const auto& question : weak_questions(one, container)) {
            const preflight::ImageAnswer* judged = answer(question);
            if (judged == nullptr) { continue; }
            seen += fmt::format("{} {} {}\n", judged->digest, hashes_.at(one.kernel), has_errors(judged->findings));
            made.checked = "modules";
            if (judged->reached && !has_errors(judged->findings)) {
                made.symbols = 0;
                made.message = fmt::format("modules of {} fit", question.reference);
                return true;
            }
            made.symbols = std::max(made.symbols, judged->symbols);
            for (auto finding : judged->findings) {
                finding.position = container.origin;
                if (finding.severity == Severity::error) { finding.severity = Severity::warning; }
                made.findings.push_back(std::move(finding));
            }
        }
        return false;
    }
};

void add_nodes(rp::Facts& facts, const std::vector<api::Node>& nodes) {
    for (const auto& node : nodes) {
        if (node.kernel_version.empty()) { continue; }
        const auto taints = kmm::plan::lasting_taints(node.taints);
        const bool kept_away = std::any_of(taints.begin(), taints.end(), [](const api::Taint& taint) {
            return taint.effect == "NoSchedule" || taint.effect == "NoExecute";
        });
        rp::KernelFacts one{node.kernel_version, node.os_image, {}, std::nullopt};
        for (const auto& [key, text] : node.meta.labels) { one.labels[key] = text; }
        (kept_away ? facts.left_out : facts.kernels).push_back(std::move(one));
    }
}

/// Without nodes of another architecture than the one in the kernel's name.
rp::Facts without_other_architectures(rp::Facts facts, const std::string& kernel) {
    for (auto* nodes : {&facts.kernels, &facts.left_out}) {
        std::erase_if(*nodes, [&](const rp::KernelFacts& one) {
            return never_runs(image_architecture(one.kernel), kernel);
        });
    }
    return facts;
}

rp::Facts without_left_out(rp::Facts facts) {
    facts.left_out.clear();
    return facts;
}

/// Other faults than that it selects none are those of its rendering.
bool selects_nodes(const rp::Facts& facts, const rp::SpecialResource& resource) {
    try {
        static_cast<void>(rp::select_kernels(facts, resource, false));
    } catch (const Error& error) { return error.code() != "no-kernels"; }
    return true;
}

/// The kernels that nodes get with a release: the usual one, and those with pages of 64 KiB and in real time where
/// nodes run such kernels. Error: data "unknown-fact" at `place`.
std::vector<std::string> kernels_of(const rp::Release& release, const std::set<std::string>& running,
                                    const Position& place) {
    std::vector<std::string> kernels{release.kernel};
    const auto runs = [&](const std::string& kernel) {
        return std::find_if(running.begin(), running.end(), [&](const std::string& one) {
            return toolkit::is_of_one_kind(one, kernel);
        });
    };
    const std::string large_pages = release.kernel + "+64k";
    if (runs(large_pages) != running.end()) { kernels.push_back(large_pages); }
    const auto real_time = runs(release.rt_kernel.empty() ? release.kernel + "+rt" : release.rt_kernel);
    if (real_time == running.end()) { return kernels; }
    if (release.rt_kernel.empty()) {
        throw Error(Exit::data, "unknown-fact",
                    fmt::format("release {} names no real-time kernel, and nodes run {}", base::escape(release.version),
                                base::escape(*real_time)))
            .at(place)
            .hint("give rtKernelFullVersion of this release in --facts FILE, or ask with --kernel KERNEL");
    }
    kernels.push_back(release.rt_kernel);
    return kernels;
}

}  // namespace

std::string image_architecture(const std::string& kernel) {
    const std::string machine = toolkit::kernel_architecture(kernel);
    if (machine == "x86_64" || kernel.ends_with("-amd64")) { return "amd64"; }
    if (machine == "aarch64" || kernel.ends_with("-arm64")) { return "arm64"; }
    return machine;
}

bool never_runs(const std::string& architecture, const std::string& kernel) {
    const std::string wanted = image_architecture(kernel);
    return !wanted.empty() && !architecture.empty() && architecture != wanted;
}

RecipePreflight::RecipePreflight(const cli::Args& args) : args_(args) {
    bool found = false;
    const auto group = api::group_of(rp::k_group_version);
    cluster::Ignored ignored(args.all("ignore"), "");
    for (const auto& name : args.all("filename")) {
        if (name == "-") { keep_standard_input(); }
        Diagnostics faults;  // said by those who read it as objects
        const bool is_directory = name != "-" && fs::is_directory(name);
        auto files = is_directory ? cluster::object_files(name, faults) : std::vector<std::string>{name};
        if (is_directory) {
            const auto below = [&](const std::string& file) {
                return file.substr(std::min(name.size() + (name.ends_with('/') ? 0 : 1), file.size()));
            };
            std::erase_if(files, [&](const std::string& file) { return ignored.takes(below(file)); });
            std::vector<std::string> paths;
            for (const auto& file : files) { paths.push_back(below(file)); }
            charts_.merge(cluster::charts_among(paths));
        }
        for (const auto& file : files) {
            try {
                found = found ||
                        (file == "-" ? sys::read_fd(0, "-") : sys::read_file(file)).find(group) != std::string::npos;
            } catch (const Error&) {}  // as above
        }
        if (name == "-") { ::lseek(0, 0, SEEK_SET); }
    }
    if (!found) { return; }
    documents_ = read_recipe_documents(args, ignored);
    facts_ = read_facts(args, documents_, false);
    const auto& names = args.all("filename");
    if (std::find(names.begin(), names.end(), "-") != names.end()) { ::lseek(0, 0, SEEK_SET); }
}

void RecipePreflight::complete(kube::Client* client) {
    if (client != nullptr) {
        files::add_cluster_resources(*client, documents_.all);
        Diagnostics faults;
        documents_ = files::decode_documents(std::move(documents_.all), faults);
        if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    }
    if (!any() && documents_.validations.empty()) {
        for (const char* name : {"chart", "facts", "fact"}) {
            if (args_.source(name) != "option") { continue; }
            throw Error(Exit::usage, "missing-option",
                        fmt::format("--{} requires SpecialResources among the documents of -f", name))
                .hint("add their documents with -f, or leave the option out");
        }
    }
    if (!any()) { return; }
    files::ChartPlaces(args_, documents_, {});  // for its errors
    if (client == nullptr) { return; }
    for (auto& document : files::read_cluster_objects(*client)) { documents_.all.push_back(std::move(document)); }
    facts_ = read_facts(args_, documents_, false);
    files::add_server_facts(*client, facts_);
}

bool RecipePreflight::is_chart_file(std::string_view path) const {
    return any() && cluster::is_in_chart(charts_, path);
}

std::vector<std::string> RecipePreflight::asked_kernels(const std::vector<api::Node>& nodes) const {
    std::set<std::string> architectures, running;
    for (const auto& node : nodes) {
        architectures.insert(node.architecture.empty() ? image_architecture(node.kernel_version) : node.architecture);
        running.insert(node.kernel_version);
    }
    for (const auto* known : {&facts_.kernels, &facts_.left_out}) {
        for (const auto& one : *known) {
            architectures.insert(image_architecture(one.kernel));
            running.insert(one.kernel);
        }
    }
    const auto runs_nowhere = [&](const std::string& kernel) {
        return std::all_of(architectures.begin(), architectures.end(),
                           [&](const std::string& one) { return never_runs(one, kernel); });
    };
    std::vector<std::string> kernels;
    for (const auto& one : documents_.validations) {
        std::vector<std::string> asked;
        for (const auto& release : rp::validated_releases(one, facts_)) {
            const auto added = kernels_of(release, running, one.origin);
            asked.insert(asked.end(), added.begin(), added.end());
        }
        if (!std::all_of(asked.begin(), asked.end(), runs_nowhere)) { std::erase_if(asked, runs_nowhere); }
        kernels.insert(kernels.end(), asked.begin(), asked.end());
    }
    return kernels;
}

std::vector<RecipeVerdict> RecipePreflight::judge(const std::vector<std::string>& kernels,
                                                  const std::map<std::string, const kernel::Interface*>& interfaces,
                                                  const std::vector<api::Node>& nodes, cli::Context& context,
                                                  const std::vector<api::Node>& others) {
    rp::Facts unchanged;
    if (facts_.kernels.empty() && facts_.left_out.empty()) {
        add_nodes(facts_, nodes);
        rp::add_release_toolkits(facts_);
        unchanged = facts_;
        unchanged.kernels.clear();
        add_nodes(unchanged, others);
        unchanged.left_out.clear();
    }
    const rp::Facts without_taint = without_left_out(facts_);
    const bool has_nodes = !facts_.kernels.empty() || !facts_.left_out.empty();
    std::map<std::string, std::vector<decide::DriverContainer>> current;
    const auto render = [&](const std::string& name, const rp::Facts& facts) {
        return render_named(args_, documents_, facts, {name}, true);
    };
    std::vector<Rendering> renderings;
    const auto order = rp::apply_order(documents_.resources, {});
    for (const auto& kernel : kernels) {
        const rp::Facts here = without_other_architectures(facts_, kernel), next = rp::facts_on(here, kernel);
        const rp::Facts here_without_taint = without_left_out(here);
        for (const auto& name : order) {
            const auto* resource = rp::find_resource(documents_.resources, name);
            if (resource == nullptr || resource->management != rp::Management::managed) { continue; }
            Rendering one{name, kernel, {}, {}, "", false, false, {}, std::nullopt};
            // Nodes with a taint count for a resource that selects no others in the whole cluster.
            const bool has_others = selects_nodes(unchanged, *resource) || selects_nodes(without_taint, *resource);
            one.selects_none = has_others ? !selects_nodes(here_without_taint, *resource)
                                          : has_nodes && !selects_nodes(here, *resource);
            if (one.selects_none) {
                renderings.push_back(std::move(one));
                continue;
            }
            try {
                const auto now = rp::select_kernels(here, *resource, false).all;
                one.runs_already = now.size() == 1 && now.front().kernel == kernel;
                if (one.runs_already) {
                    renderings.push_back(std::move(one));
                    continue;
                }
                auto rendered = render(name, next);
                std::erase_if(rendered.objects, [&](const rp::RecipeObject& object) {
                    return object.cr != name && rp::find_resource(documents_.resources, object.cr) != nullptr;
                });
                one.containers = decide::driver_containers(rendered, kernel);
                one.objects = rp::recipe_json(rendered);
                std::copy_if(rendered.findings.begin(), rendered.findings.end(), std::back_inserter(one.warnings),
                             [](const Diagnostic& finding) { return finding.severity == Severity::warning; });
            } catch (const Error& error) {
                if (is_interruption(error.exit())) { throw; }
                one.fault = error;
            }
            std::erase_if(one.containers, [&](const decide::DriverContainer& container) {
                return !container.kernel.empty() && container.kernel != kernel;
            });
            if (!one.containers.empty() && interfaces.count(kernel) != 0 && current.count(name) == 0) {
                try {
                    current[name] = decide::driver_containers(render(name, facts_));
                } catch (const Error&) { current[name] = {}; }  // nothing runs that could be compared
            }
            one.current = current[name];
            renderings.push_back(std::move(one));
        }
    }
    return Judge(args_, context, documents_, interfaces).run(renderings);
}

}  // namespace kmm::recipe::ready
