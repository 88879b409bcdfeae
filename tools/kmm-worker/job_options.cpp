// SPDX-License-Identifier: Apache-2.0
// The options that jobs share, and what those of pulling mean.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kmm-worker/job.hpp"
#include "registry/client/request.hpp"
#include "registry/layer/limits.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_worker {

namespace {

struct LimitName {
    std::string_view name;
    std::uint64_t registry::Limits::*field;
};

constexpr LimitName k_limits[] = {
    {"manifest_bytes", &registry::Limits::manifest_bytes},
    {"config_bytes", &registry::Limits::config_bytes},
    {"index_entries", &registry::Limits::index_entries},
    {"index_depth", &registry::Limits::index_depth},
    {"layers", &registry::Limits::layers},
    {"blob_bytes", &registry::Limits::blob_bytes},
    {"image_bytes", &registry::Limits::image_bytes},
    {"inflated_layer_bytes", &registry::Limits::inflated_layer_bytes},
    {"inflated_bytes", &registry::Limits::inflated_bytes},
    {"ratio", &registry::Limits::ratio},
    {"entries", &registry::Limits::entries},
    {"path_bytes", &registry::Limits::path_bytes},
    {"component_bytes", &registry::Limits::component_bytes},
    {"depth", &registry::Limits::depth},
    {"file_bytes", &registry::Limits::file_bytes},
};

void apply_limit(const std::string& text, registry::Limits& limits) {
    const auto equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::replace(name.begin(), name.end(), '-', '_');
    const auto row =
        std::find_if(std::begin(k_limits), std::end(k_limits), [&](const LimitName& r) { return r.name == name; });
    std::vector<std::string> names;
    for (const auto& known : k_limits) names.emplace_back(known.name);
    if (row == std::end(k_limits) || equals == std::string::npos) {
        Error error(
            Exit::usage, "bad-value",
            fmt::format("--limit {}: expected NAME=VALUE with one of {}", base::escape(text), base::join(names, ", ")));
        const auto near = base::nearest(name, names);
        error.hint(near ? fmt::format("did you mean {}?", *near)
                        : fmt::format("for example --limit {}=100000", names.front()));
        throw error;
    }
    const auto value = base::parse_number<std::uint64_t>(std::string_view(text).substr(equals + 1));
    if (!value || *value == 0) {
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--limit {}: expected a positive number", base::escape(text)))
            .hint(fmt::format("write digits alone, for example --limit {}=100000", row->name));
    }
    limits.*row->field = *value;
}

}  // namespace

std::vector<cli::Option> module_options() {
    return {
        cli::option("image", "REF", "image to pull, instead of CONFIG"),
        cli::option("module", "NAME", "module to load or unload, instead of CONFIG"),
        cli::option("kernel", "K", "kernel of the module (default: the running one)"),
        cli::repeatable(cli::option("parameter", "KEY=VALUE", "parameter of the module")),
        cli::option("dir-name", "DIR", "directory of lib/modules in the image (default /opt, else /)"),
        cli::option("image-firmware", "DIR", "directory of firmware in the image"),
        cli::repeatable(cli::option("loading-order", "NAME", "modulesLoadingOrder: main module first")),
        cli::repeatable(cli::option("in-tree-remove", "NAME", "in-tree module to unload first")),
    };
}

cli::Option force_option() {
    return cli::option("i-understand-this-taints", "", "honour the forcing flags of modprobe.args and rawArgs");
}

cli::Option input_size_option() {
    return cli::hidden(cli::option("input-size", "BYTES", "refuse an input of another length"));
}

cli::Option policy_in_input_option() {
    return cli::hidden(cli::option("policy-in-input", "", "require an ImagePolicy behind CONFIG"));
}

std::vector<cli::Option> pull_options() {
    return {
        cli::option("authfile", "FILE", "registry credentials, as docker's config.json"),
        cli::with_environment(
            cli::option("pull-secrets", "DIR", "mounted pull Secrets (default /var/run/kmm/pull-secrets)"),
            "KMM_PULL_SECRETS"),
        cli::option("ca-file", "FILE", "more certificates to trust"),
        cli::option("insecure", "", "allow plain HTTP and unverified TLS"),
        cli::with_environment(
            cli::repeatable(cli::option("pinned-key", "PIN",
                                        "sha256//BASE64 of the registry's public key; one of several must match")),
            "KMM_PINNED_KEY"),
        cli::with_environment(
            cli::repeatable(cli::option("mirror-config", "FILE", "mirrors: registries.conf, IDMS, ITMS or ICSP")),
            "KMM_MIRROR_CONFIG"),
        cli::with_environment(cli::option("policy", "FILE", "signature policy, as containers-policy.json(5)"),
                              "KMM_POLICY"),
        cli::with_environment(
            cli::repeatable(cli::option("signature-key", "FILE",
                                        "public key (PEM) that must have signed the image; one of several must match")),
            "KMM_SIGNATURE_KEY"),
        cli::with_environment(
            cli::option("cache-dir", "DIR", "cache of verified content (default: /var/lib/kmm-worker if it exists)"),
            "KMM_CACHE_DIR"),
        cli::option("cache-size", "SIZE", "size of the cache, such as 500MiB (default 4GiB); 0 disables it"),
        cli::with_choices(
            cli::option("image-pull-policy", "POLICY", "when to ask the registry (default: the config's, else Always)"),
            {"Always", "IfNotPresent", "Never"}),
        cli::option("platform", "OS/ARCH", "platform to take from a manifest list"),
        cli::option("allow-platform-mismatch", "", "accept an image whose configuration names another platform"),
        cli::repeatable(cli::option("limit", "NAME=VALUE", "raise or lower a limit against hostile images")),
    };
}

std::vector<cli::Option> host_options() {
    auto root = cli::with_environment(
        cli::option("host-root", "DIR", "where the host's /proc, /sys and /lib are mounted"), "KMM_HOST_ROOT");
    return {root};
}

registry::PullRequest pull_request(const cli::Args& args, const std::string& reference,
                                   std::chrono::milliseconds deadline) {
    registry::PullRequest request;
    request.reference = reference;
    request.tls.insecure = args.flag("insecure");
    request.tls.ca_file = args.get("ca-file").value_or("");
    if (args.flag("allow-platform-mismatch")) request.other_platform = registry::OtherPlatform::warn;
    for (const auto& pin : args.all("pinned-key")) {
        constexpr std::string_view form = "sha256//";
        constexpr std::size_t digest_bytes = 32;
        const auto digest =
            pin.starts_with(form) ? base::from_base64(std::string_view(pin).substr(form.size())) : std::nullopt;
        if (!digest || digest->size() != digest_bytes) {
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--pinned-key {}: expected sha256// and the base64 form of a SHA-256 digest",
                                    base::escape(pin)))
                .hint(
                    "openssl x509 -in CERT -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 "
                    "-binary | base64");
        }
        request.tls.pinned_key += (request.tls.pinned_key.empty() ? "" : ";") + pin;
    }
    for (const auto& limit : args.all("limit")) apply_limit(limit, request.limits);
    if (deadline.count() > 0) request.deadline = deadline;
    request.cancelled = [] { return sys::interrupt_requested(); };
    if (const auto platform = args.get("platform")) {
        const auto parts = base::split(*platform, '/');
        if (parts.size() < 2 || parts.size() > 3 || parts[0].empty() || parts[1].empty()) {
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--platform {}: expected OS/ARCH or OS/ARCH/VARIANT", base::escape(*platform)))
                .hint("for example --platform linux/amd64");
        }
        request.os = parts[0];
        request.architecture = parts[1];
        if (parts.size() == 3) request.variant = parts[2];
    }
    return request;
}

}  // namespace kmm::tool_worker
