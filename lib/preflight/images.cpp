// SPDX-License-Identifier: Apache-2.0
#include "preflight/images.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/table.hpp"
#include "kernel/judge.hpp"
#include "kmod/host/image_config.hpp"
#include "kmod/ko/module_service.hpp"
#include "plan/kmm/login_secret.hpp"
#include "preflight/module_request.hpp"
#include "registry/client/certs.hpp"
#include "registry/client/document_service.hpp"
#include "registry/local/mirror_files.hpp"
#include "registry/local/policy_files.hpp"
#include "registry/pull/probe.hpp"
#include "registry/pull/puller.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sandbox/confined.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/signals.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::preflight {

namespace {

constexpr std::size_t k_at_once = 8;
constexpr const char* k_scratch = "kmm-preflight-";

std::vector<registry::Credential> module_credentials(const api::Module& module, const api::Objects& objects) {
    for (const auto& secret : objects.secrets) {
        if (!module.image_repo_secret.empty() && secret.meta.name == module.image_repo_secret &&
            secret.meta.namespace_ == module.meta.namespace_)
            return registry::secret_credentials(secret.data,
                                                fmt::format("Secret {}/{}", secret.meta.namespace_, secret.meta.name));
    }
    return {};
}

Diagnostic refusal(const Error& error) {
    Diagnostic finding;
    finding.code = error.code();
    finding.message = error.message();
    for (auto it = error.context().rbegin(); it != error.context().rend(); ++it)
        finding.message = *it + ": " + finding.message;
    finding.hint = error.hint();
    finding.exit = Exit::checks_failed;
    return finding;
}

/// Exits that say "could not ask" rather than "no".
bool is_unknown(Exit exit) {
    return exit == Exit::unavailable || exit == Exit::timeout || exit == Exit::no_permission || exit == Exit::io;
}

/// What is pulled or looked at.
struct ImageTarget {
    std::string reference, dir_name = "/opt", firmware_path, modprobed_dir, architecture;
    std::vector<std::string> kernels;
    bool insecure = false;
    std::vector<registry::Credential> credentials;
};

void end_at_interrupt() {
    if (sys::interrupt_requested())
        throw Error(Exit::interrupted, "interrupted", "interrupted while asking registries");
}

class Asker {
public:
    /// `warnings` hears of credentials that cannot be used.
    Asker(const cli::Args& args, std::vector<image::MirrorRule> mirrors, std::vector<std::string>& warnings)
        : args_(args),
          mirrors_(std::move(mirrors)),
          policy_(args.get("policy").value_or(""), args.all("signature-key")) {
        auto patience = sys::k_patient;
        if (const auto timeout = args.get("timeout"))
            if (const auto duration = base::parse_duration(*timeout)) {
                patience = *duration;
                end_ = clock_.monotonic() + *duration;
            }
        defaults_ = registry::default_credentials(args.get("authfile").value_or(""), warnings, patience);
        for (auto& rule : registry::read_mirror_files(args.all("mirror-config")))
            static_cast<void>(image::join_rule(mirrors_, std::move(rule)));
    }

    /// Calls `ask`, which gives findings; a refusal becomes one.
    ImageAnswer answer(const std::function<Diagnostics(ImageAnswer&)>& ask) {
        ImageAnswer answer;
        try {
            answer.findings = ask(answer);
            answer.reached = true;
        } catch (const Error& error) {
            if (is_interruption(error.exit())) throw;
            answer.reached = error.code() == "registry-blocked" || !is_unknown(error.exit());
            answer.findings.push_back(refusal(error));
        }
        return answer;
    }

    Diagnostics look(const ImageTarget& target, ImageAnswer& answer) {
        const auto parser = parsers_ ? parsers_->twin() : nullptr;  // one for each image
        net::CurlHttpClient http;
        registry::PullRequest asked = request(target);
        asked.parser = parser.get();
        answer.digest = registry::probe(asked, http, clock_).digest;
        return {};
    }

    /// Pulls, and gives the tree to `judge` before it is removed, with the process that parses its modules.
    Diagnostics pull(const ImageTarget& target, ImageAnswer& answer,
                     const std::function<Diagnostics(const std::string& root, const registry::PullResult& pulled,
                                                     sandbox::Confined* parser)>& judge) {
        const auto parser = parsers_ ? parsers_->twin() : nullptr;  // one for each image
        const sys::TempDir scratch(k_scratch);
        net::CurlHttpClient http;
        registry::PullRequest asked = request(target);
        asked.parser = parser.get();
        if (parser) parser->begin(registry::layer_service().number);  // prepared for layers it reads manifests, too
        const auto pulled = registry::pull(asked, scratch.path(), http, clock_);
        answer.digest = pulled.index_digest.empty() ? pulled.digest : pulled.index_digest;
        if (parser) parser->set_stop([this] { end_in_time(); });
        return judge(scratch.path(), pulled, parser.get());
    }

    [[nodiscard]] const std::vector<image::MirrorRule>& mirrors() const noexcept { return mirrors_; }

private:
    void end_in_time() const {
        end_at_interrupt();
        if (!end_ || clock_.monotonic() < *end_) return;
        throw Error(Exit::timeout, "timeout", "the modules of the image were not read within --timeout")
            .hint("raise --timeout; if that does not help, the image may be an attack on the parser");
    }

    registry::PullRequest request(const ImageTarget& target) {
        registry::PullRequest made;
        made.reference = target.reference;
        made.dir_name = target.dir_name;
        made.kernels = target.kernels;
        made.firmware_path = target.firmware_path;
        made.modprobed_dir = target.modprobed_dir;
        made.file_digests = false;  // what is in the files is judged
        if (!target.architecture.empty()) made.architecture = target.architecture;
        made.tls.insecure = target.insecure || args_.flag("insecure");
        made.tls.ca_file = args_.get("ca-file").value_or("");
        made.certs_dirs = registry::certificate_directories("/etc");
        made.mirrors = mirrors_;
        made.requirements = policy_.of(made.reference);
        made.credentials = target.credentials;
        made.credentials.insert(made.credentials.end(), defaults_.credentials.begin(), defaults_.credentials.end());
        made.skipped_secrets = defaults_.skipped;
        if (end_) made.deadline = std::max(std::chrono::milliseconds(1), *end_ - clock_.monotonic());
        made.cancelled = [] { return sys::interrupt_requested(); };
        made.progress = [](std::uint64_t, std::uint64_t) { end_at_interrupt(); };
        return made;
    }

    const cli::Args& args_;
    /// Begun before credentials are read; none where there are threads already.
    std::unique_ptr<sandbox::Confined> parsers_ =
        sandbox::Confined::if_alone({registry::layer_service(), registry::document_service(), kmod::module_service()},
                                end_at_interrupt);
    sys::LinuxClock clock_;
    registry::FoundCredentials defaults_;
    std::vector<image::MirrorRule> mirrors_;
    registry::ImagePolicy policy_;
    std::optional<std::chrono::milliseconds> end_;
};

ImageTarget target_of(const ImageQuestion& question, const api::Objects& objects) {
    const auto& config = question.resolved->config;
    ImageTarget target;
    target.reference = config.container_image;
    target.dir_name = request_of(config, question.resolved->kernel).dir_name;
    target.kernels = {question.resolved->kernel};
    target.firmware_path = config.modprobe.firmware_path;
    target.modprobed_dir = config.modprobe.modprobed_dir;
    target.architecture = question.architecture;
    target.insecure = config.insecure_pull;
    target.credentials = module_credentials(*question.module, objects);
    return target;
}

kmod::ModuleIndex index_of(const std::string& root, const ImageTarget& target, sandbox::Confined* parser) {
    const auto directory = root + "/" + target.dir_name + "/lib/modules/" + target.kernels.front();
    return kmod::ModuleIndex::build(std::filesystem::path(directory).lexically_normal().native(), root, {}, parser,
                                    kmod::Signatures::with_file);
}

/// How many symbols of a module the kernel lacks or has in another version.
std::size_t misfitting_symbols(const kmod::ModuleFile& file, const kmod::ModuleIndex& index,
                               const kernel::Interface& interface) {
    const auto versions =
        kmod::compare_versions(file, index, [&](std::string_view symbol) -> std::optional<std::uint32_t> {
            const auto found = interface.exports.find(std::string(symbol));
            return found == interface.exports.end() || found->second.crc == 0 ? std::nullopt
                                                                              : std::optional(found->second.crc);
        });
    std::size_t count = versions.of_kernel.size();
    for (const auto& [exporter, symbols] : versions.of_modules) count += symbols.size();
    for (const auto& symbol : file.undefined) {
        const bool is_there =
            symbol.weak || !index.exporter_of(symbol.name).empty() || interface.exports.count(symbol.name) != 0;
        count += is_there ? 0 : 1;
    }
    return count;
}

/// What the files of modprobedDir say, with a finding where a worker refuses them.
kmod::ModprobeConfig configuration_of(const ImageQuestion& question, const std::string& root,
                                      sandbox::Confined* parser, Diagnostics& findings) {
    const auto& modprobe = question.resolved->config.modprobe;
    if (modprobe.modprobed_dir.empty()) return {};
    try {
        std::vector<std::string> ignored;  // of names that modprobe does not read
        auto files = kmod::read_image_config(
            kmod::image_config_place(root, modprobe.modprobed_dir, !modprobe.modules_loading_order.empty()), parser,
            ignored);
        std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        return kmod::image_modprobe_config(files);
    } catch (const Error& error) {
        if (is_interruption(error.exit()) || is_unknown(error.exit())) throw;
        findings.push_back(refusal(error));
        return {};
    }
}

/// Do the modules of a Module's image fit the kernel that it is for?
Diagnostics judge_module(const ImageQuestion& question, const ImageTarget& target, const std::string& root,
                         const registry::PullResult& pulled, ImageAnswer& answer, sandbox::Confined* parser) {
    const auto& config = question.resolved->config;
    const auto index = index_of(root, target, parser);
    answer.is_judged = true;
    ModuleRequest wanted = request_of(config, question.resolved->kernel);
    kernel::Request& request = wanted.request;
    const auto below = std::filesystem::path("/" + target.firmware_path + "/").lexically_normal().native();
    pulled.files.each([&](const registry::ExtractedFile& file) {
        if (request.has_firmware && file.path.starts_with(below))
            request.firmware.push_back(file.path.substr(below.size()));
    });
    std::sort(request.firmware.begin(), request.firmware.end());
    request.signatures = kernel::check_signatures(index, question.trusted->certificates);
    request.certificates_given = !question.trusted->certificates.empty();
    request.signatures_enforced = question.trusted->enforced;
    for (const auto& [name, module] : index.modules())
        answer.files.push_back({name, module.image_path, module.file.signature(), request.signatures.at(name)});
    for (const auto& [name, module] : index.modules()) {
        if (question.interface != nullptr)
            answer.symbols += misfitting_symbols(module.file, index, *question.interface);
    }
    Diagnostics findings = std::move(wanted.findings);
    request.configuration = configuration_of(question, root, parser, findings);
    auto judged = kernel::judge(index, request, question.interface);
    std::move(judged.begin(), judged.end(), std::back_inserter(findings));
    return findings;
}

using Asks = std::map<std::string, std::function<ImageAnswer(Asker&)>>;

/// Eight at a time.
std::map<std::string, ImageAnswer> ask_all(const Asks& asks, std::vector<image::MirrorRule> mirrors,
                                           const cli::Args& args, cli::Context& context) {
    (void)sys::remove_stale_temp_dirs(k_scratch);
    std::vector<const Asks::value_type*> distinct;
    std::map<std::string, ImageAnswer> answers;
    for (const auto& ask : asks) distinct.push_back(&ask);
    std::vector<std::string> warnings;
    Asker asker(args, std::move(mirrors), warnings);
    if (context.verbosity >= 0)
        for (const auto& warning : warnings) context.console.err("warning: " + warning + "\n");
    cli::LiveArea area(context.console);
    std::mutex mutex;
    std::exception_ptr crash;
    std::atomic<std::size_t> turn{0};
    std::size_t done = 0;
    const auto work = [&] {
        for (std::size_t index = turn++; index < distinct.size(); index = turn++) {
            ImageAnswer answer;
            std::exception_ptr caught;
            try {
                answer = distinct[index]->second(asker);
            } catch (...) {
                caught = std::current_exception();
            }
            const std::lock_guard guard(mutex);
            if (caught && !crash) crash = caught;
            if (crash) return;
            answers[distinct[index]->first] = std::move(answer);
            if (context.verbosity >= 0) area.draw({fmt::format("asked for {} of {} images", ++done, distinct.size())});
        }
    };
    {
        std::vector<std::jthread> threads;
        for (std::size_t count = 1; count < std::min(k_at_once, distinct.size()); ++count) threads.emplace_back(work);
        work();
    }
    area.clear();
    if (crash) std::rethrow_exception(crash);
    return answers;
}

}  // namespace

std::string ImageQuestion::key() const {
    const auto& config = resolved->config;
    std::string key = fmt::format("{}|{}|{}|{}|{}|{}", config.container_image, architecture, config.insecure_pull,
                                  module->meta.namespace_, module->image_repo_secret, depth == Depth::modules);
    if (depth == Depth::modules) key += fmt::format("|{}|{}", module->full_name(), resolved->kernel);
    return key;
}

std::map<std::string, ImageAnswer> ask_registries(const std::vector<ImageQuestion>& questions,
                                                  const api::Objects& objects, const cli::Args& args,
                                                  cli::Context& context) {
    Asks asks;
    for (const auto& question : questions) {
        const ImageTarget target = target_of(question, objects);
        asks.emplace(question.key(), [&question, target](Asker& asker) {
            return asker.answer([&](ImageAnswer& answer) {
                if (question.depth == Depth::manifest) return asker.look(target, answer);
                auto wanted = request_of(question.resolved->config, question.resolved->kernel);
                if (wanted.of_host || wanted.is_unread) {
                    auto findings = asker.look(target, answer);
                    answer.is_open = wanted.is_unread &&
                                     std::all_of(wanted.findings.begin(), wanted.findings.end(),
                                                 [](const auto& each) { return each.code == "unsupported"; });
                    auto judged = wanted.is_unread ? std::move(wanted.findings)
                                                   : judge_of_host(std::move(wanted), target.modprobed_dir,
                                                                   question.interface);
                    std::move(judged.begin(), judged.end(), std::back_inserter(findings));
                    return findings;
                }
                return asker.pull(
                    target, answer,
                    [&](const std::string& root, const registry::PullResult& pulled, sandbox::Confined* parser) {
                        return judge_module(question, target, root, pulled, answer, parser);
                    });
            });
        });
    }
    return ask_all(asks, {}, args, context);
}

namespace {

/// The logins that kubelets take: of each type of Secret its own key. Another Secret is told in `told`.
std::vector<registry::Credential> secret_credentials_of(const RecipeImage& image,
                                                        const std::vector<value::Document>& documents,
                                                        Diagnostics& told) {
    std::vector<registry::Credential> made;
    for (const auto& document : documents) {
        const value::Node& root = document.root;
        const std::string name = root.get_string({"metadata", "name"});
        if (root.get_string({"kind"}) != "Secret" || root.get_string({"metadata", "namespace"}) != image.name_space)
            continue;
        if (std::find(image.pull_secrets.begin(), image.pull_secrets.end(), name) == image.pull_secrets.end()) continue;
        std::map<std::string, std::string> data;
        if (const value::Node* members = root.find("data"))
            for (const auto& member : members->members())
                if (const auto bytes = base::from_base64(member.value.text())) data[member.key] = *bytes;
        if (const value::Node* members = root.find("stringData"))
            for (const auto& member : members->members()) data[member.key] = member.value.text();
        const auto shown = fmt::format("Secret {}/{}", base::escape(image.name_space), base::escape(name));
        const auto type = root.get_string({"type"});
        const std::string key = type == "kubernetes.io/dockerconfigjson" ? ".dockerconfigjson"
                                : type == "kubernetes.io/dockercfg"      ? ".dockercfg"
                                                                         : "";
        if (!data.contains(key)) {
            const auto has = key.empty() ? fmt::format("has type {}, and kubelets use logins of type "
                                                       "kubernetes.io/dockerconfigjson",
                                                       type.empty() ? "Opaque" : base::escape(type))
                                         : fmt::format("has type {} and no key {}", type, key);
            told.push_back({Severity::warning, "secret-key", fmt::format("{} {}: it is left out", shown, has),
                            std::nullopt,
                            plan::login_made_again(name, image.name_space),
                            Exit::checks_failed});
            continue;
        }
        std::erase_if(data, [&](const auto& member) { return member.first != key; });
        auto found = registry::secret_credentials(data, shown);
        std::move(found.begin(), found.end(), std::back_inserter(made));
    }
    return made;
}

/// Every module of the image: a driver container loads what it has. The findings are of the modules that do not fit.
Diagnostics judge_recipe(const RecipeImage& image, const ImageTarget& target, const std::string& root,
                         ImageAnswer& answer, sandbox::Confined* parser) {
    const auto index = index_of(root, target, parser);
    Diagnostics findings = index.faults();
    if (index.modules().empty()) {
        findings.push_back({Severity::error, "module-not-in-image",
                            fmt::format("expected .ko files for kernel {}, found none", image.kernel), std::nullopt, "",
                            Exit::checks_failed});
    }
    for (const auto& [name, module] : index.modules()) {
        kernel::Request request;
        request.module = name;
        request.release = image.interface->release;
        auto found = kernel::judge(index, request, image.interface);
        std::move(found.begin(), found.end(), std::back_inserter(findings));
        answer.symbols += misfitting_symbols(module.file, index, *image.interface);
    }
    sort_and_merge(findings);
    return findings;
}

Diagnostics unmirrored(const std::string& reference, const std::vector<image::MirrorRule>& mirrors) {
    const auto parsed = image::parse_reference(reference);
    const bool any = std::any_of(mirrors.begin(), mirrors.end(),
                                 [](const image::MirrorRule& rule) { return !rule.mirrors.empty(); });
    const auto endpoints = image::endpoints_of(parsed, mirrors);
    const bool served = std::any_of(endpoints.begin(), endpoints.end(),
                                    [](const image::Endpoint& endpoint) { return endpoint.mirror; });
    if (!any || served || parsed.digest) return {};
    return {{Severity::warning, "tag-not-mirrored",
             fmt::format("no mirror serves {}: it is named by a tag", base::escape(reference)), std::nullopt,
             "name it by digest, or add an ImageTagMirrorSet for its repository", Exit::checks_failed}};
}

}  // namespace

std::string RecipeImage::key() const {
    return fmt::format("{}|{}|{}|{}|{}|{}", reference, architecture, name_space, base::join(pull_secrets, ","), kernel,
                       interface == nullptr ? "" : interface->source);
}

std::map<std::string, ImageAnswer> ask_recipe_images(const std::vector<RecipeImage>& questions,
                                                     const std::vector<value::Document>& documents,
                                                     const cli::Args& args, cli::Context& context) {
    Diagnostics faults;
    auto mirrors = image::read_mirror_sets(documents, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    // These kinds cannot say that a mirror has no TLS.
    for (auto& rule : mirrors)
        for (auto& mirror : rule.mirrors) mirror.insecure = args.flag("insecure");
    Asks asks;
    for (const auto& question : questions) {
        ImageTarget target;
        target.reference = question.reference;
        target.architecture = question.architecture;
        Diagnostics left_out;
        target.credentials = secret_credentials_of(question, documents, left_out);
        if (!question.kernel.empty()) target.kernels = {question.kernel};
        asks.emplace(question.key(), [&question, target, left_out](Asker& asker) {
            auto told = left_out;
            auto answer = asker.answer([&](ImageAnswer& made) {
                for (auto& one : unmirrored(question.reference, asker.mirrors())) told.push_back(std::move(one));
                if (question.kernel.empty()) return asker.look(target, made);
                ImageTarget place = target;
                const auto judge = [&](const auto& root, const registry::PullResult&, sandbox::Confined* parser) {
                    return judge_recipe(question, place, root, made, parser);
                };
                try {
                    place.dir_name = "/";  // where the operator's recipes put modules
                    return asker.pull(place, made, judge);
                } catch (const Error& error) {
                    if (error.code() != "kernel-not-in-image") throw;
                }
                place.dir_name = target.dir_name;
                return asker.pull(place, made, judge);
            });
            std::move(told.begin(), told.end(), std::back_inserter(answer.findings));
            return answer;
        });
    }
    return ask_all(asks, std::move(mirrors), args, context);
}

}  // namespace kmm::preflight
