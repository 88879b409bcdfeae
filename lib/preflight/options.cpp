// SPDX-License-Identifier: Apache-2.0
// The options that say what registries are asked, and whose signatures count.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "preflight/images.hpp"

namespace kmm::preflight {

std::vector<cli::Option> registry_options() {
    auto mirrors = cli::repeatable(cli::with_environment(
        cli::option("mirror-config", "FILE", "mirrors: registries.conf, IDMS, ITMS or ICSP"), "KMM_MIRROR_CONFIG"));
    auto policy = cli::with_environment(cli::option("policy", "FILE", "signature policy, as containers-policy.json(5)"),
                                        "KMM_POLICY");
    auto key = cli::repeatable(cli::with_environment(
        cli::option("signature-key", "FILE",
                    "public key (PEM) that must have signed the images; one of several must match"),
        "KMM_SIGNATURE_KEY"));
    return {
        cli::option("check-images", "", "ask the registries whether the images exist"),
        cli::option("authfile", "FILE", "credentials for registries, as Docker's config.json"),
        cli::option("ca-file", "FILE", "certificates to trust registries by, in PEM form"),
        cli::option("insecure", "", "allow plain HTTP and unverified TLS"),
        mirrors,
        policy,
        key,
    };
}

void require_question(const cli::Args& args, const std::vector<std::string>& others, PolicyUse policy) {
    const auto is_given = [&](const std::string& name) { return args.flag(name) || args.get(name); };
    if (args.flag("check-images") || std::any_of(others.begin(), others.end(), is_given)) { return; }
    std::string wanted = "--check-images";
    for (std::size_t i = 0; i < others.size(); ++i)
        wanted += fmt::format("{} --{}", i + 1 == others.size() ? " or" : ",", others[i]);
    const auto require = [&](const char* name, const char* hint) {
        if (args.source(name) == "option")
            throw Error(Exit::usage, "missing-option", fmt::format("--{} requires {}", name, wanted)).hint(hint);
    };
    if (policy == PolicyUse::images)
        for (const char* name : {"policy", "signature-key"}) require(name, "without it no signature is checked");
    for (const char* name : {"authfile", "ca-file", "insecure", "mirror-config"})
        require(name, "without it no registry is asked");
}

std::vector<cli::Option> signature_options() {
    auto certificate = cli::repeatable(
        cli::option("cert", "FILE", "X.509 certificate, DER or PEM, whose signatures the kernel trusts"));
    return {certificate,
            cli::option("sig-enforce", "",
                        "the nodes refuse modules without a trusted signature: module.sig_enforce=1, Secure Boot")};
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

}  // namespace kmm::preflight
