// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/shell_word.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image/image_step.hpp"
#include "kmm-worker/image/key_holder.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/ko/module_file.hpp"
#include "kmod/ko/module_service.hpp"
#include "kmod/ko/signature.hpp"
#include "kmod/ko/signer.hpp"
#include "registry/pull/rewrite.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sandbox/sandbox.hpp"
#include "sys/file_ops.hpp"
#include "sys/signals.hpp"
#include "sys/trust.hpp"

namespace kmm::tool_worker {

namespace {

constexpr const char* k_sign_prefix = "kmm-sign-";
constexpr std::size_t k_key_bytes = 1U << 20U;

std::string wanted_option(const cli::Args& args, const char* name, const char* value_name) {
    return args.wanted(name, value_name, "kmm-worker sign IMAGE --to IMAGE --key FILE --cert FILE");
}

/// What `name` names: a file, or "-" for standard input.
std::string read_input(std::string& name) {
    if (name.starts_with("pkcs11:"))
        throw Error(Exit::data, "unsupported",
                    fmt::format("expected a file, found {}: keys in a token are not used", base::escape(name)))
            .hint("the kernel's scripts/sign-file signs with a token: pull the image, sign its files, build it again");
    if (name != "-") return sys::read_trusted_file(name, "signing input", k_key_bytes);
    name = "standard input";
    return sys::read_fd(STDIN_FILENO, name, k_key_bytes);
}

/// True for a file that begins with a certificate in PEM form; a key may follow in it.
bool begins_with_certificate(const std::string& file) {
    constexpr std::string_view start = "-----BEGIN CERTIFICATE-----";
    std::array<char, start.size()> head{};
    const sys::Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    return opened && ::pread(opened.get(), head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) &&
           std::string_view(head.data(), head.size()) == start;
}

/// Whoever reads a private key signs what loads wherever its certificate is trusted. As ssh does, the user's own file
/// is refused while others may use it. In a Pod, where nobody else is and Secrets are mounted with mode 0644, that is a
/// warning, as for a file of somebody else. Errors: no_permission "key-readable".
void check_key_mode(const std::string& file, std::vector<std::string>& warnings) {
    struct stat facts {};
    constexpr mode_t others = S_IRWXG | S_IRWXO;
    if (file == "-" || ::stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) || (facts.st_mode & others) == 0)
        return;
    const std::string text = fmt::format("{}: the mode {:#o} lets other users use the private key", base::escape(file),
                                         facts.st_mode & 07777U);
    if (facts.st_uid == ::geteuid() && std::getenv("KUBERNETES_SERVICE_HOST") == nullptr) {
        const auto closing = fmt::format("chmod 600 {}", base::command_word(file));
        throw Error(Exit::no_permission, "key-readable", text)
            .hint(begins_with_certificate(file)
                      ? "it begins with a certificate: name the private key with --key; if that is in it, " + closing
                      : closing);
    }
    warnings.push_back(fmt::format("key-readable: {}; chmod 600", text));
}

/// Runs in the process that keeps the key.
kmod::ModuleSigner read_signer(const cli::Args& args) {
    kmod::ModuleSigner::Material material;
    material.key_name = wanted_option(args, "key", "FILE");
    material.certificate_name = wanted_option(args, "cert", "FILE");
    auto file = args.get("passphrase-file");
    const std::string inputs[] = {material.key_name, material.certificate_name, file.value_or("")};
    if (std::count(std::begin(inputs), std::end(inputs), "-") > 1) {
        throw Error(Exit::usage, "bad-value",
                    "expected one of --key, --cert and --passphrase-file from standard input, found several")
            .hint("name files for the others");
    }
    material.key = read_input(material.key_name);
    material.certificate = read_input(material.certificate_name);
    if (file) {
        std::string text = read_input(*file);
        if (text.ends_with('\n')) text.pop_back();
        if (text.ends_with('\r')) text.pop_back();
        material.passphrase = std::move(text);
    }
    material.digest = args.get("hash").value_or("sha256");
    kmod::ModuleSigner signer(material);
    ::explicit_bzero(material.key.data(), material.key.size());
    if (material.passphrase) ::explicit_bzero(material.passphrase->data(), material.passphrase->size());
    return signer;
}

void stop_signing_at_interrupt() {
    if (!sys::interrupt_requested()) return;
    throw Error(Exit::interrupted, "interrupted", "interrupted while signing; nothing was written")
        .hint("run the same command again");
}

/// For the time in which modules are signed, which ends as the pull does at `timeout`.
std::function<void()> stop_of_signing(std::chrono::milliseconds timeout) {
    return [of_parser = stop_of_parser(timeout, std::chrono::steady_clock::now())] {
        stop_signing_at_interrupt();
        of_parser();
    };
}

/// Signs files one after the other and notes what happened to each.
class SigningStep {
public:
    SigningStep(const KeyHolder& signer, sandbox::Confined& parser, std::function<void()> stop, std::string policy)
        : signer_(signer), parser_(parser), stop_(std::move(stop)), policy_(std::move(policy)) {}

    std::optional<std::string> operator()(const std::string& path, std::string bytes) {
        stop_();
        parser_.set_stop(stop_);  // the layers have been read
        const std::string how = kmod::compression_name(bytes);
        const std::string plain = kmod::plain_module(&parser_, std::move(bytes), path);
        const std::string_view body = kmod::unsigned_module(plain, path);
        const kmod::ModuleSignature before =
            kmod::read_module(parser_, kmod::sealed_file(plain, "module"), path).file.signature();
        const bool was_signed = body.size() != plain.size();
        if (was_signed && policy_ == "refuse") {
            throw Error(Exit::checks_failed, "already-signed",
                        fmt::format("the module is signed already: {}", kmod::signature_text(before)))
                .hint("--signed replace puts the new signature in its place, --signed keep leaves such modules alone");
        }
        if (was_signed && policy_ == "keep") {
            actions.emplace_back("kept");
            kept.emplace_back(before);
            if (!before.fault.empty())
                warnings.push_back(fmt::format(
                    "bad-signature: {} keeps a damaged signature, which kernels refuse: {}; --signed replace makes a "
                    "new one",
                    base::escape(path), before.fault));
            if (const std::string weak = kmod::weak_digest_of(before); !weak.empty())
                warnings.push_back(
                    fmt::format("weak-digest: {} keeps a signature of its {} digest; --signed replace makes a new one",
                                base::escape(path), weak));
            return std::nullopt;
        }
        kept.emplace_back();
        std::string result = signer_.sign(body);
        if (result == plain) {
            actions.emplace_back("unchanged");
            return std::nullopt;
        }
        actions.emplace_back(was_signed ? "replaced" : "signed");
        return kmod::packed_module(std::move(result), how);
    }

    std::vector<std::string> actions;
    std::vector<std::optional<kmod::ModuleSignature>> kept;  ///< beside `actions`: the signatures of files left alone
    std::vector<std::string> warnings;

private:
    const KeyHolder& signer_;
    sandbox::Confined& parser_;
    std::function<void()> stop_;
    std::string policy_;
};

void sign(const cli::Args& args, cli::Context& context, WorkerResult& result) {
    sys::LinuxClock clock;
    const auto start = clock.monotonic();
    keep_memory_private();
    const auto parser = start_parser();
    parser->set_stop(stop_signing_at_interrupt);
    const kmod::HostPaths host = host_paths(args);
    registry::RewriteRequest request;
    request.to = wanted_option(args, "to", "IMAGE");
    check_key_mode(wanted_option(args, "key", "FILE"), result.warnings);
    const KeyHolder signer([&] { return read_signer(args); });
    result.verb = "sign";
    result.node = this_node(host);
    request.source = prepare_request(args, args.positional("IMAGE"), timeout_of(args), host, {}, result.warnings);
    request.source.dir_name = args.get("dir-name").value_or("/opt");
    want_kernels(request.source, args, "all");
    request.source.cache_dir.clear();
    request.files = args.all("files");
    if (args.get("platform"))
        request.platform = image::Platform{request.source.os, request.source.architecture, request.source.variant};
    request.created_by = fmt::format("kmm-worker sign: {} modules", args.get("hash").value_or("sha256"));
    request.source.parser = parser.get();
    parser->begin(registry::layer_service().number);
    SigningStep step(signer, *parser, stop_of_signing(timeout_of(args)), args.get("signed").value_or("replace"));
    request.change = [&](const std::string& path, std::string bytes) { return step(path, std::move(bytes)); };

    sandbox::SandboxReport sandbox;
    sandbox::forbid_programs(sandbox);
    tell_sandbox(sandbox, context);
    const std::string base = scratch_base(host);
    (void)sys::remove_stale_temp_dirs(k_sign_prefix, base);
    cli::LiveArea area(context.console);
    show_progress(request.source, area, context);
    net::CurlHttpClient http;
    registry::RewriteResult done;
    in_default_directories(request.source.dir_name, !args.get("dir-name"), [&] {
        const sys::TempDir directory(k_sign_prefix, base);
        done = registry::rewrite_image(request, directory.path(), http, clock);
    });
    area.clear();
    tell_parser(*parser, context);

    result.warnings.insert(result.warnings.end(), signer.warnings().begin(), signer.warnings().end());
    result.warnings.insert(result.warnings.end(), step.warnings.begin(), step.warnings.end());
    result.warnings.insert(result.warnings.end(), done.warnings.begin(), done.warnings.end());
    result.image = std::move(done.reference);
    result.digest = std::move(done.digest);
    result.source = std::move(done.source);
    result.source_digest = std::move(done.source_digest);
    const bool all_kept = std::all_of(step.kept.begin(), step.kept.end(), [](const auto& each) { return !!each; });
    if (!all_kept || step.kept.empty()) result.signature = signer.identity();
    for (std::size_t i = 0; i < done.files.size(); ++i)
        result.signed_files.push_back({std::move(done.files[i]), step.actions.at(i), step.kept.at(i)});
    const bool changed = std::any_of(step.actions.begin(), step.actions.end(), [](const std::string& action) {
        return action == "signed" || action == "replaced";
    });
    result.outcome = changed ? "signed" : "unchanged";
    result.durations_ms["sign"] = static_cast<std::uint64_t>((clock.monotonic() - start).count());
}

}  // namespace

cli::Verb verb_sign() {
    cli::Verb verb;
    verb.name = "sign";
    verb.summary = "sign the modules of an image and push the result";
    verb.description =
        "Signs every .ko file below DIR/lib/modules (also .ko.gz, .ko.xz and .ko.zst), or those of --files, as the "
        "kernel's sign-file does, byte for byte for RSA keys. The signed files become one new layer; the layers "
        "below, media types and the other images of an index are kept. The same image and RSA key give the same "
        "digest. Nothing is written before every module is signed; the name is written last. An older signature is "
        "replaced, whereas sign-file appends a second one. --insecure and --ca-file apply to both images. Needs "
        "neither root nor a container engine.";
    verb.examples = {{"kmm-worker sign reg/drivers:v2-unsigned --to reg/drivers:v2 --key key.pem --cert cert.der",
                      "all modules of all kernels"},
                     {"kmm-worker sign oci:drivers:v2 --to oci:signed:v2 --key key.pem --cert cert.pem --files "
                      "'/opt/lib/modules/*/kmm_hello.ko'",
                      "some of them, without a registry"}};
    verb.positionals = {{"IMAGE",
                         "image reference; or oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME:TAG]",
                         true, false}};
    auto files = cli::repeatable(cli::option(
        "files", "PATH", "file to sign, absolute inside the image; may be a shell pattern (KMM's filesToSign)"));
    auto kernel = cli::repeatable(cli::option("kernel", "K", "sign only this kernel's modules (default: all)"));
    auto hash = cli::with_choices(cli::option("hash", "NAME", "digest of the signature (default sha256)"),
                                  {"sha224", "sha256", "sha384", "sha512"});
    auto already = cli::with_choices(cli::option("signed", "WHAT", "what to do with signed modules (default replace)"),
                                     {"replace", "keep", "refuse"});
    verb.options = {
        cli::option(
            "to", "IMAGE",
            "destination of the signed image: REGISTRY/REPOSITORY:TAG, oci:DIR[:TAG] or oci-archive:FILE[:TAG]"),
        cli::option("key", "FILE", "private key, RSA or EC, PEM; - is standard input, as for the next two"),
        cli::option("cert", "FILE", "its X.509 certificate, PEM or DER"),
        cli::option("passphrase-file", "FILE", "passphrase of an encrypted key"),
        files,
        kernel,
        hash,
        already};
    for (auto& option : verb.options)
        option.required = option.name == "to" || option.name == "key" || option.name == "cert";
    for (auto& option : module_options()) {
        if (option.name == "dir-name") verb.options.push_back(option);
    }
    for (auto& option : pull_options()) {
        const bool other = option.name == "cache-dir" || option.name == "cache-size" ||
                           option.name == "image-pull-policy" || option.name == "allow-platform-mismatch";
        if (!other) verb.options.push_back(option);
    }
    verb.options = verb.options + host_options() + cli::common_options();
    verb.run = [](const cli::Args& args, cli::Context& context) {
        try {
            return run_and_report(context, [&] {
                return with_warnings([&](WorkerResult& result) { sign(args, context, result); });
            });
        } catch (const Error& error) {
            throw as_usage_fault(error);  // image and paths are from the command line
        }
    };
    return verb;
}

}  // namespace kmm::tool_worker
