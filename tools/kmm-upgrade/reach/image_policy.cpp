// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/reach/image_policy.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "sys/trust.hpp"
#include "trust/policy.hpp"
#include "trust/public_key.hpp"
#include "upgrade/module_nodes/worker.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::tool_upgrade {
namespace {

using value::Node;

constexpr std::size_t k_policy_file_bytes = 4U << 20U;
constexpr std::size_t k_key_file_bytes = 1U << 20U;
constexpr std::size_t k_carried_bytes = 128U << 10U;  // annotations of a Pod hold 256 KiB

/// A public key that can be used; its text.
std::string read_public_key(const std::string& file) {
    auto text = sys::read_trusted_file(file, "public key", k_key_file_bytes);
    static_cast<void>(trust::PublicKey(text, file));
    return text;
}

/// Puts the keys of a requirement in place of the names of their files.
void take_keys_in(Node& requirement) {
    if (requirement.get_string({"type"}) != "sigstoreSigned") return;
    std::vector<std::string> files;
    if (const auto* path = requirement.find("keyPath")) files.push_back(path->text());
    if (const auto* paths = requirement.find("keyPaths"))
        for (const auto& path : paths->items()) files.push_back(path.text());
    if (files.empty()) return;
    auto keys = Node::sequence();
    for (const auto& file : files) keys.push_back(base::to_base64(read_public_key(file)));
    requirement.erase("keyPath");
    requirement.erase("keyPaths");
    requirement.set("keyDatas", std::move(keys));
}

Node self_contained_policy(const std::string& file) {
    const auto text = sys::read_trusted_file(file, "policy", k_policy_file_bytes);
    static_cast<void>(trust::read_policy(text, file));  // refuses what is no policy, with places
    Diagnostics faults;
    auto policy = value::read_json(text, file, faults).front().root;
    if (auto* fallback = policy.find("default"))
        for (auto& requirement : fallback->items()) take_keys_in(requirement);
    if (auto* transports = policy.find("transports"))
        for (auto& transport : transports->members())
            for (auto& scope : transport.value.members())
                for (auto& requirement : scope.value.items()) take_keys_in(requirement);
    return policy;
}

/// Adds a document to what a worker reads, and says so on its command line.
cluster::WorkerCall carrying(cluster::WorkerCall call, const std::string& policy) {
    call.stdin_text += "---\n" + policy + "\n";
    const auto size = std::find(call.args.begin(), call.args.end(), "--input-size");
    if (size != call.args.end() && size + 1 != call.args.end()) *(size + 1) = fmt::format("{}", call.stdin_text.size());
    call.args.emplace_back("--policy-in-input");
    return call;
}

class PolicyRunner final : public cluster::NodeRunner {
public:
    PolicyRunner(std::unique_ptr<cluster::NodeRunner> inner, std::string policy, sys::Clock& clock)
        : inner_(std::move(inner)), policy_(std::move(policy)), clock_(clock) {}

    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        const auto verb = call.args.empty() ? std::string() : call.args.front();
        if (verb != "check" && verb != "load") return inner_->run(call);
        const auto begin = clock_.monotonic();
        auto reply = inner_->run(carrying(call, policy_));
        if (verb != "check" || reply.end != cluster::CallEnd::completed || reply.exit_code != 0) return reply;
        auto again = pinned(call, reply.document.get_string({"image", "digest"}));
        if (!again) return reply;
        if (call.timeout.count() > 0)
            again->timeout = std::max(call.timeout - (clock_.monotonic() - begin), std::chrono::milliseconds(1000));
        auto second = inner_->run(carrying(std::move(*again), policy_));
        return second.end == cluster::CallEnd::completed && second.exit_code == 0 ? reply : second;
    }
    [[nodiscard]] std::string describe() const override { return inner_->describe(); }

private:
    /// The same question of the image by its digest; nullopt if it was so.
    [[nodiscard]] static std::optional<cluster::WorkerCall> pinned(const cluster::WorkerCall& call,
                                                                   const std::string& digest) {
        Diagnostics faults;
        const auto documents = value::read_any(call.stdin_text, "the worker's input", faults);
        if (documents.empty() || has_errors(faults))
            throw bug("a worker was given an input that is not a ModuleConfig");
        auto config = documents.front().root;
        const auto image = config.get_string({"containerImage"});
        auto name = drive::pinned_image(image, digest);
        if (name == image) return std::nullopt;
        config.set("containerImage", std::move(name));
        auto again = call;
        again.stdin_text = value::to_yaml(config);
        for (std::size_t i = 1; i < documents.size(); ++i)
            again.stdin_text += "---\n" + value::to_yaml(documents[i].root);
        return again;
    }

    std::unique_ptr<cluster::NodeRunner> inner_;
    std::string policy_;
    sys::Clock& clock_;
};

}  // namespace

std::vector<cli::Option> image_policy_options() {
    auto policy = cli::with_environment(
        cli::option("policy", "FILE", "images that nodes may load, as containers-policy.json(5)"), "KMM_POLICY");
    auto key = cli::with_environment(
        cli::repeatable(
            cli::option("signature-key", "FILE", "public key (PEM) that must have signed the images; one of several")),
        "KMM_SIGNATURE_KEY");
    return {policy, key};
}

std::string image_policy_of(const cli::Args& args) {
    const auto file = args.get("policy").value_or("");
    const auto keys = args.all("signature-key");
    if (file.empty() && keys.empty()) return {};
    auto document = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "ImagePolicy"}});
    if (!file.empty()) document.set("policy", self_contained_policy(file));
    if (!keys.empty()) {
        auto texts = Node::sequence();
        for (const auto& key : keys) texts.push_back(read_public_key(key));
        document.set("signatureKeys", std::move(texts));
    }
    auto text = value::to_json(document);
    if (text.size() <= k_carried_bytes) return text;
    throw Error(
        Exit::config, "policy-too-large",
        fmt::format("the policy and its keys have {} bytes, nodes can be sent {}", text.size(), k_carried_bytes))
        .hint("leave scopes out that no Module uses");
}

std::unique_ptr<cluster::NodeRunner> with_image_policy(std::unique_ptr<cluster::NodeRunner> inner, std::string policy,
                                                       sys::Clock& clock) {
    return std::make_unique<PolicyRunner>(std::move(inner), std::move(policy), clock);
}

}  // namespace kmm::tool_upgrade
