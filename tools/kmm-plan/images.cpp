// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/images.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/table.hpp"
#include "kernel/judge.hpp"
#include "registry/mirror_files.hpp"
#include "registry/policy_files.hpp"
#include "registry/probe.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/signals.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::tool_plan {

namespace {

constexpr std::size_t k_at_once = 8;
constexpr const char* k_scratch = "kmm-plan-";

cli::Option registry_option(const char* name, const char* value, const char* help) {
    cli::Option option;
    option.name = name;
    option.value_name = value;
    option.help = help;
    return option;
}

std::vector<registry::Credential> module_credentials(const api::Module& module, const api::Objects& objects) {
    for (const auto& secret : objects.secrets) {
        if (!module.image_repo_secret.empty() && secret.meta.name == module.image_repo_secret && secret.meta.namespace_ == module.meta.namespace_)
            return registry::secret_credentials(secret.data, fmt::format("Secret {}/{}", secret.meta.namespace_, secret.meta.name));
    }
    return {};
}

Diagnostic refusal(const Error& error) {
    Diagnostic finding;
    finding.code = error.code();
    finding.message = error.message();
    for (auto it = error.context().rbegin(); it != error.context().rend(); ++it) finding.message = *it + ": " + finding.message;
    finding.hint = error.hint();
    finding.exit = Exit::checks_failed;
    return finding;
}

/// Exits that say "could not ask" rather than "no".
bool is_unknown(Exit exit) { return exit == Exit::unavailable || exit == Exit::timeout || exit == Exit::no_permission || exit == Exit::io; }

class Asker {
public:
    /// `warnings` hears of credentials that cannot be used.
    Asker(const api::Objects& objects, const cli::Args& args, std::vector<std::string>& warnings)
        : objects_(objects), args_(args), policy_(args.get("policy").value_or(""), args.all("signature-key")) {
        auto patience = sys::k_patient;
        if (const auto timeout = args.get("timeout"))
            if (const auto duration = base::parse_duration(*timeout)) {
                patience = *duration;
                end_ = clock_.monotonic() + *duration;
            }
        defaults_ = registry::default_credentials(args.get("authfile").value_or(""), warnings, patience);
        mirrors_ = registry::read_mirror_files(args.all("mirror-config"));
    }

    ImageAnswer ask(const ImageQuestion& question) {
        ImageAnswer answer;
        try {
            answer.findings = question.depth == Depth::manifest ? look(question, answer) : pull(question, answer);
            answer.reached = true;
        } catch (const Error& error) {
            if (error.exit() == Exit::interrupted || error.exit() == Exit::terminated) throw;
            answer.reached = !is_unknown(error.exit());
            answer.findings.push_back(refusal(error));
        }
        return answer;
    }

private:
    registry::PullRequest request(const ImageQuestion& question) {
        const auto& config = question.resolved->config;
        registry::PullRequest made;
        made.reference = config.container_image;
        made.dir_name = config.modprobe.dir_name.empty() ? "/opt" : config.modprobe.dir_name;
        made.kernels = {question.resolved->kernel};
        made.firmware_path = config.modprobe.firmware_path;
        made.file_digests = false;  // what is in the files is judged
        if (!question.architecture.empty()) made.architecture = question.architecture;
        made.tls.insecure = config.insecure_pull || args_.flag("insecure");
        made.tls.ca_file = args_.get("ca-file").value_or("");
        made.mirrors = mirrors_;
        made.requirements = policy_.of(made.reference);
        made.credentials = module_credentials(*question.module, objects_);
        made.credentials.insert(made.credentials.end(), defaults_.begin(), defaults_.end());
        if (end_) made.deadline = std::max(std::chrono::milliseconds(1), *end_ - clock_.monotonic());
        made.cancelled = [] { return sys::interrupt_requested(); };
        made.progress = [](std::uint64_t, std::uint64_t) {
            if (sys::interrupt_requested()) throw Error(Exit::interrupted, "interrupted", "interrupted while asking registries");
        };
        return made;
    }

    Diagnostics look(const ImageQuestion& question, ImageAnswer& answer) {
        net::CurlHttpClient http;
        answer.digest = registry::probe(request(question), http, clock_).digest;
        return {};
    }

    Diagnostics pull(const ImageQuestion& question, ImageAnswer& answer) {
        const sys::TempDir scratch(k_scratch);
        net::CurlHttpClient http;
        const auto wanted = request(question);
        const auto pulled = registry::pull(wanted, scratch.path(), http, clock_);
        answer.digest = pulled.index_digest.empty() ? pulled.digest : pulled.index_digest;
        const auto& config = question.resolved->config;
        const std::filesystem::path root(scratch.path());
        const auto directory = (root.native() + "/" + wanted.dir_name + "/lib/modules/" + question.resolved->kernel);
        const auto index = kmod::ModuleIndex::build(std::filesystem::path(directory).lexically_normal().native(), root.native());
        kernel::Wish wish;
        wish.module = config.modprobe.module_name;
        wish.parameters = config.modprobe.parameters;
        wish.loading_order = config.modprobe.modules_loading_order;
        wish.release = question.resolved->kernel;
        wish.has_firmware = !wanted.firmware_path.empty();
        const auto below = std::filesystem::path("/" + wanted.firmware_path + "/").lexically_normal().native();
        pulled.files.each([&](const registry::ExtractedFile& file) {
            if (wish.has_firmware && file.path.starts_with(below)) wish.firmware.push_back(file.path.substr(below.size()));
        });
        std::sort(wish.firmware.begin(), wish.firmware.end());
        wish.signatures = kernel::check_signatures(index, question.trusted->certificates);
        wish.certificates_given = !question.trusted->certificates.empty();
        wish.signatures_enforced = question.trusted->enforced;
        for (const auto& [name, module] : index.modules()) answer.files.push_back({name, module.image_path, module.file.signature(), wish.signatures.at(name)});
        return kernel::judge(index, wish, question.interface);
    }

    const api::Objects& objects_;
    const cli::Args& args_;
    sys::LinuxClock clock_;
    std::vector<registry::Credential> defaults_;
    std::vector<image::MirrorRule> mirrors_;
    registry::ImagePolicy policy_;
    std::optional<std::chrono::milliseconds> end_;
};

}  // namespace

std::vector<cli::Option> registry_options() {
    cli::Option mirrors = registry_option("mirror-config", "FILE", "mirrors: registries.conf, IDMS, ITMS or ICSP");
    mirrors.environment = "KMM_MIRROR_CONFIG";
    mirrors.repeatable = true;
    cli::Option policy = registry_option("policy", "FILE", "which images may be used, as containers-policy.json(5)");
    policy.environment = "KMM_POLICY";
    cli::Option key = registry_option("signature-key", "FILE", "public key, PEM, that must have signed the images; one of several");
    key.environment = "KMM_SIGNATURE_KEY";
    key.repeatable = true;
    return {
        registry_option("check-images", "", "ask the registries whether the images are there"),
        registry_option("authfile", "FILE", "credentials for registries, as Docker's config.json"),
        registry_option("ca-file", "FILE", "certificates to trust registries by, in PEM form"),
        registry_option("insecure", "", "allow plain HTTP and unverified TLS"),
        mirrors,
        policy,
        key,
    };
}

std::vector<cli::Option> signature_options() {
    cli::Option certificate = registry_option("cert", "FILE", "X.509 certificate, DER or PEM, whose signatures the kernel trusts");
    certificate.repeatable = true;
    return {certificate, registry_option("sig-enforce", "", "the nodes refuse modules without a trusted signature: module.sig_enforce=1, Secure Boot")};
}

Trusted read_trusted(const cli::Args& args) {
    Trusted result;
    for (const auto& path : args.all("cert")) {
        auto read = kernel::read_certificates(path);
        std::move(read.begin(), read.end(), std::back_inserter(result.certificates));
    }
    result.enforced = args.flag("sig-enforce");
    return result;
}

std::string ImageQuestion::key() const {
    const auto& config = resolved->config;
    std::string key = fmt::format("{}|{}|{}|{}|{}|{}", config.container_image, architecture, config.insecure_pull, module->meta.namespace_, module->image_repo_secret,
                                  depth == Depth::modules);
    if (depth == Depth::modules) key += fmt::format("|{}|{}", module->full_name(), resolved->kernel);
    return key;
}

std::map<std::string, ImageAnswer> ask_registries(const std::vector<ImageQuestion>& questions, const api::Objects& objects, const cli::Args& args, cli::Context& context) {
    (void)sys::remove_stale_temp_dirs(k_scratch);
    std::vector<const ImageQuestion*> distinct;
    std::map<std::string, ImageAnswer> answers;
    for (const auto& question : questions)
        if (answers.emplace(question.key(), ImageAnswer{}).second) distinct.push_back(&question);
    std::vector<std::string> warnings;
    Asker asker(objects, args, warnings);
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
                answer = asker.ask(*distinct[index]);
            } catch (...) {
                caught = std::current_exception();
            }
            const std::lock_guard guard(mutex);
            if (caught && !crash) crash = caught;
            if (crash) return;
            answers[distinct[index]->key()] = std::move(answer);
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

}  // namespace kmm::tool_plan
