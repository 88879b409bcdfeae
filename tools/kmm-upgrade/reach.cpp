// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/reach.hpp"

#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/parse.hpp"
#include "cluster/local_runner.hpp"
#include "cluster/operator_signs.hpp"
#include "cluster/pod_runner.hpp"
#include "cluster/ssh_runner.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

using upgrade::Via;

cli::Option make_option(std::string name, std::string value_name, std::string help) {
    cli::Option option;
    option.name = std::move(name);
    option.value_name = std::move(value_name);
    option.help = std::move(help);
    return option;
}

/// Beside an operator nobody asks a node.
class NoRunner final : public cluster::NodeRunner {
public:
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        throw bug(fmt::format("a worker is called on {} beside an operator", call.node));
    }
    [[nodiscard]] std::string describe() const override { return std::string(to_string(upgrade::Via::operator_)); }
};

/// Nodes that are not reached through the API server: the Lease is asked for before they are.
class LeasedRunner final : public cluster::NodeRunner {
public:
    LeasedRunner(std::unique_ptr<cluster::NodeRunner> inner, std::function<void()> require)
        : inner_(std::move(inner)), require_(std::move(require)) {}
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        require_();
        return inner_->run(call);
    }
    [[nodiscard]] std::string describe() const override { return inner_->describe(); }

private:
    std::unique_ptr<cluster::NodeRunner> inner_;
    std::function<void()> require_;
};

}  // namespace

void Reach::choose(upgrade::Options& options, const cluster::Place& place, Age age) const {
    const auto& args = call_.args();
    const bool is_live = place.is_live();
    const auto via = args.get("via");
    const auto runner = args.get("runner");
    if (via && runner && *via != *runner && args.source("via") == args.source("runner"))
        throw Error(Exit::usage, "bad-value", fmt::format("--via {} and --runner {} contradict each other", *via, *runner))
            .hint("--runner is the earlier name of --via: give one of them");
    const bool asks_for_ssh = args.source("ssh-config") == "option" || args.source("worker") == "option";
    if (const auto& named = via ? via : runner) options.via = upgrade::parse_via(*named).value_or(options.via);
    else if (age != Age::recorded) options.via = is_live && !asks_for_ssh ? Via::self : Via::ssh;
    if (const auto file = args.get("ssh-config")) options.ssh_config = absolute_path(*file);
    options.worker = args.get("worker").value_or(options.worker);
    options.worker_image = args.get("worker-image").value_or(options.worker_image);
    options.lease_namespace = args.get("lease-namespace").value_or(options.lease_namespace);
    if (const auto said = args.get("operator")) options.operator_said = *said == "auto" ? "" : *said;
    options.repair = options.repair || args.flag("repair");
    const bool is_operated = options.via == Via::operator_;
    if (args.flag("repair") && !is_operated)
        throw Error(Exit::usage, "bad-value", "--repair requires --via operator")
            .hint("kmm-upgrade writes all version labels itself here; doctor names those that are left");
    if (options.via != Via::self) options.worker_image.clear();
    if (options.via != Via::self && !is_operated) return;
    if (!is_live)
        throw Error(Exit::usage, "bad-value", fmt::format("--via {} needs an API server, found a directory cluster", to_string(options.via)))
            .hint("--via ssh, or name the server with --context");
    if (is_operated) return;
    if (!options.worker_image.empty() || age == Age::adopted) return;
    const auto file = cli::user_configuration_file(cli::process_surroundings());
    throw Error(Exit::usage, "missing-option", "--worker-image REF is missing: nodes are reached by worker Pods")
        .detail("image", "manifests/worker-image builds it and pushes it to a registry of yours")
        .detail("or", "--via ssh reaches nodes without Pods")
        .hint(fmt::format("name it once, with this line in {}: worker-image: REGISTRY/kmm-worker:TAG",
                          file.empty() ? "/etc/kmm-tools/config.yaml" : base::escape(file)));
}

void Reach::require_images(const upgrade::Run& run) {
    constexpr std::chrono::seconds k_patience{15};
    auto* server = cluster_.opened().server;
    if (server == nullptr || run.options.via != Via::operator_) return;
    const auto subject = upgrade::module::subject_of(run);
    std::set<std::string> images;
    for (const auto& node : run.nodes)
        if (node.current_version != run.to_version) images.insert(upgrade::module::read(node).target_image);
    if (images.empty()) return;
    const auto words = cluster::look_for_images(server->client(), {subject.ns, subject.name}, {images.begin(), images.end()}, k_patience);
    if (words.lacking.empty()) return;
    Error error(Exit::checks_failed, "image-not-found-by-kmm",
                fmt::format("KMM has not found {}: it would unload the old version and load nothing",
                            words.lacking.size() == 1 ? "the image" : fmt::format("{} images", words.lacking.size())));
    for (const auto& [image, word] : words.lacking) error.detail(image, word.empty() ? "not looked at yet" : word);
    throw error.hint(fmt::format("push it, then start again once it is found: kubectl get moduleimagesconfigs -n {} {} -o yaml",
                                 subject.ns, subject.name));
}

kube::Force Reach::force() const { return call_.args().flag("force-conflicts") ? kube::Force::yes : kube::Force::no; }

std::unique_ptr<cluster::PluginStore> Reach::plugins(const upgrade::Run& run) {
    auto* server = cluster_.opened().server;
    if (server == nullptr || run.options.via != Via::self) return nullptr;
    const auto subject = upgrade::module::subject_of(run);
    auto plugins = std::make_unique<cluster::PluginStore>(*server, subject.ns, subject.name,
                                                          std::chrono::milliseconds(run.options.node_timeout_ms));
    static_cast<void>(plugins->apply(force()));
    return plugins;
}

std::unique_ptr<cluster::NodeRunner> Reach::runner(const upgrade::Options& options, const Target& target) {
    const auto leased = [this](std::unique_ptr<cluster::NodeRunner> runner) -> std::unique_ptr<cluster::NodeRunner> {
        return std::make_unique<LeasedRunner>(std::move(runner), [this] { cluster_.require_lease(); });
    };
    switch (options.via) {
        case Via::local: return leased(std::make_unique<cluster::LocalRunner>(options.worker.empty() ? "kmm-worker" : options.worker));
        case Via::operator_: return std::make_unique<NoRunner>();
        case Via::self: {
            auto* server = cluster_.opened().server;
            if (server == nullptr) throw bug("worker Pods without an API server");
            return std::make_unique<cluster::PodRunner>(
                server->client(),
                cluster::PodRunnerOptions{target.ns, target.module, options.worker_image, target.service_account, target.lineage,
                                          [this](const std::string& line) { call_.context().console.err(fmt::format("warning: {}\n", line)); }});
        }
        case Via::ssh: break;
    }
    cluster::SshOptions ssh;
    ssh.config_file = options.ssh_config;
    if (!options.worker.empty()) ssh.worker_command = options.worker;
    return leased(std::make_unique<cluster::SshRunner>(ssh));
}

std::vector<cli::Option> runner_options() {
    auto via = make_option("via", "HOW", "how nodes are reached: self creates worker Pods (default on a live cluster), operator leaves the "
                                         "work to KMM's and sets one label");
    via.choices = {"self", "ssh", "local", "operator"};
    auto said = make_option("operator", "WHETHER", "state whether KMM's operator is running (default: detect)");
    said.choices = {"auto", "present", "absent"};
    auto repair = make_option("repair", "", "with --via operator: repair version labels that KMM never changes");
    auto image = make_option("worker-image", "REF", "image of kmm-worker for worker Pods");
    image.environment = "RELATED_IMAGE_WORKER";
    auto runner = make_option("runner", "NAME", "the earlier name of --via");
    runner.choices = {"ssh", "local"};
    runner.hidden = true;
    auto patience = make_option("api-timeout", "DURATION", "maximum time to wait for an unreachable API server");
    patience.default_text = "5m";
    auto break_lock = make_option("break-lock", "HOLDER", "take over the Lease from HOLDER, which you know is dead");
    return {via, image, said, repair, make_option("lease-namespace", "NAMESPACE", "namespace of the Lease (default: that of the Module)"),
            break_lock, make_option("force-conflicts", "", "take over fields of the Module's DaemonSets from other managers"), patience, runner, make_option("ssh-config", "FILE", "configuration file of the ssh client, as ssh -F"),
            make_option("worker", "COMMAND", "command of kmm-worker on the nodes")};
}

}  // namespace kmm::tool_upgrade
