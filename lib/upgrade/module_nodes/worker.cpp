// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/worker.hpp"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::drive {
namespace {

upgrade::module::Identity identity_of(const value::Node& module) {
    return upgrade::module::Identity{module.get_string({"srcversion"}), module.get_string({"buildID"}),
                                     module.get_string({"sha256"}), module.get_string({"version"})};
}

}  // namespace

Reply<Look> Worker::status(const std::string& node, const std::string& kernel_module,
                           std::chrono::milliseconds timeout) {
    // A worker whose connection was lost may still be at work: its end is waited for, so that the answer is not
    // outdated.
    const auto settle = std::max(timeout / 2, std::chrono::milliseconds(500));
    const cluster::WorkerCall call{
        node, {"status", kernel_module, "--settle", fmt::format("{}ms", settle.count())}, "", timeout};
    const auto reply = runner_.run(call);
    if (auto failed = cluster::failure<Look>(reply, call, "ModuleStatus")) return *failed;
    Reply<Look> answer;
    const auto text = [&](std::string_view key) { return reply.document.get_string({"node", key}); };
    answer.value = Look{NodeFacts{text("kernel"), text("bootID"), text("architecture")}, LiveModule{}};
    if (answer.value->facts.kernel.empty() || answer.value->facts.boot_id.empty()) {
        answer.value.reset();
        answer.error =
            Error(Exit::other, "worker-failed", fmt::format("node {}: status without kernel or boot id", node));
        return answer;
    }
    auto& live = answer.value->module;
    // Another worker is at work on the node: what it says of the module may be over in a moment.
    const auto* busy = reply.document.find("busy");
    if (busy != nullptr && busy->as_bool() == true) {
        live.presence = Presence::moving;
        return answer;
    }
    bool named = false;
    const auto* modules = reply.document.find("modules");
    for (const auto& module : modules != nullptr ? modules->items() : std::vector<value::Node>()) {
        if (kernel_module_name(module.get_string({"name"})) != kernel_module) continue;
        named = true;
        const auto state = module.get_string({"state"});
        live.presence = state == "absent" ? Presence::absent : state == "live" ? Presence::live : Presence::moving;
        live.identity = identity_of(module);
    }
    if (!named) {
        answer.value.reset();
        answer.error =
            Error(Exit::other, "worker-failed", fmt::format("node {}: status says nothing of {}", node, kernel_module));
    }
    return answer;
}

Reply<WorkerResult> Worker::run(const std::string& verb, const std::string& node, const std::string& input,
                                std::chrono::milliseconds timeout) {
    const cluster::WorkerCall call{node, {verb, "-", "--input-size", fmt::format("{}", input.size())}, input, timeout};
    const auto reply = runner_.run(call);
    if (auto failed = cluster::failure<WorkerResult>(reply, call, "WorkerResult")) return *failed;
    Reply<WorkerResult> answer;
    if (const auto said = reply.document.get_string({"verb"}); !said.empty() && said != verb) {
        answer.error = Error(
            Exit::other, "worker-failed",
            fmt::format("node {}: the result is that of kmm-worker {}, expected {}", node, base::escape(said), verb));
        return answer;
    }
    WorkerResult result;
    result.outcome = reply.document.get_string({"outcome"});
    result.image = reply.document.get_string({"image", "reference"});
    result.digest = reply.document.get_string({"image", "digest"});
    result.boot_id = reply.document.get_string({"node", "bootID"});
    if (const auto* warnings = reply.document.find("warnings"))
        for (const auto& warning : warnings->items()) result.warnings.push_back(warning.text());
    const value::Node* main_module = nullptr;
    if (const auto* modules = reply.document.find("modules")) {
        for (const auto& module : modules->items()) {
            const auto* marked = module.find("main");
            if (marked != nullptr && marked->as_bool() == true) main_module = &module;
        }
        if (main_module == nullptr && !modules->items().empty()) main_module = &modules->items().back();
    }
    if (main_module != nullptr) result.identity = identity_of(*main_module);
    // Without it nothing that is live later could be compared with what was checked.
    if (verb == "check" && result.identity.empty()) {
        answer.error = Error(Exit::other, "worker-failed",
                             fmt::format("node {}: the result of kmm-worker check names no build of a module", node));
        return answer;
    }
    answer.value = std::move(result);
    return answer;
}

namespace {

/// The host of a registry without scheme, path and port, as Docker's files and image names have it.
std::string registry_host(std::string_view text) {
    if (const auto scheme = text.find("://"); scheme != std::string_view::npos) text.remove_prefix(scheme + 3);
    text = text.substr(0, text.find('/'));
    if (!text.starts_with('[')) text = text.substr(0, text.rfind(':'));
    auto host = base::to_lower(text);
    return host == "docker.io" || host == "registry-1.docker.io" ? "index.docker.io" : host;
}

std::string registry_of(const std::string& image) {
    const auto first = image.substr(0, image.find('/'));
    const bool is_host =
        first.size() < image.size() && (first.find_first_of(".:") != std::string::npos || first == "localhost");
    return is_host ? registry_host(first) : "index.docker.io";
}

/// Keeps the entries of registries whose host may be `host`; a key may be a pattern, as the kubelet reads it.
value::Node entries_for(const value::Node& entries, const std::string& host) {
    auto kept = value::Node::mapping();
    for (const auto& member : entries.members())
        if (::fnmatch(registry_host(member.key).c_str(), host.c_str(), FNM_NOESCAPE) == 0)
            kept.set(member.key, member.value);
    return kept;
}

/// What of a file with logins is for the registry at `host`. A file that is none stays none, and tells nothing.
std::string logins_for(const std::string& file, const std::string& text, const std::string& host) {
    Diagnostics faults;
    const auto documents = value::read_json(text, file, faults);
    if (has_errors(faults) || documents.size() != 1 || !documents.front().root.is_mapping()) return "";
    const auto& root = documents.front().root;
    if (const auto* auths = root.find("auths"); auths != nullptr && auths->is_mapping())
        return value::to_json(value::Node::mapping({{"auths", entries_for(*auths, host)}}));
    return value::to_json(file == ".dockercfg" ? entries_for(root, host)
                                               : value::Node::mapping({{"auths", value::Node::mapping()}}));
}

}  // namespace

std::string worker_input(const api::ModuleConfig& config, const api::Secret* secret) {
    auto text = value::to_yaml(api::encode(config));
    if (secret == nullptr) return text;
    auto data = value::Node::mapping();
    const auto host = registry_of(config.container_image);
    for (const auto& [key, bytes] : secret->data)
        if (key == ".dockerconfigjson" || key == ".dockercfg")
            data.set(key, base::to_base64(logins_for(key, bytes, host)));
    const auto document = value::Node::mapping(
        {{"apiVersion", "v1"},
         {"kind", "Secret"},
         {"metadata", value::Node::mapping({{"name", secret->meta.name}, {"namespace", secret->meta.namespace_}})},
         {"type", secret->type},
         {"data", data}});
    return text + "---\n" + value::to_yaml(document);
}

std::string pinned_image(const std::string& image, const std::string& digest) {
    const auto is_of = [&](std::string_view algorithm, std::size_t digits) {
        return digest.size() == algorithm.size() + digits && digest.starts_with(algorithm) &&
               digest.find_first_not_of("0123456789abcdef", algorithm.size()) == std::string::npos;
    };
    constexpr std::size_t k_sha256_digits = 64;
    constexpr std::size_t k_sha512_digits = 128;
    if (!is_of("sha256:", k_sha256_digits) && !is_of("sha512:", k_sha512_digits)) return image;
    for (const char* local : {"oci:", "oci-archive:", "docker-archive:", "dir:"}) {
        if (image.starts_with(local)) return image;
    }
    if (image.find('@') != std::string::npos) return image;
    const auto slash = image.rfind('/');
    const auto tag = image.find(':', slash == std::string::npos ? 0 : slash);
    return image.substr(0, tag) + "@" + digest;
}

void require_digest(const std::string& node, const std::string& image, const std::string& checked,
                    const std::string& loaded) {
    if (checked.empty() || loaded.empty() || loaded == checked) return;
    throw Error(Exit::refused, "image-changed",
                fmt::format("node {}: {} was loaded as {}, checked as {}", node, image, base::escape(loaded), checked))
        .hint("the image was replaced after the check: find out who pushes to its repository, then kmm-upgrade abort");
}

}  // namespace kmm::drive
