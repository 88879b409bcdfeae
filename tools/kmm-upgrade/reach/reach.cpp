// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/reach/reach.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/parse.hpp"
#include "cluster/live/operator_signs.hpp"
#include "cluster/worker/local_runner.hpp"
#include "cluster/worker/pod_runner.hpp"
#include "cluster/worker/ssh_runner.hpp"
#include "image/reference_option.hpp"
#include "kmm-upgrade/codes.hpp"
#include "kmm-upgrade/reach/image_policy.hpp"
#include "upgrade/module/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

using upgrade::Via;

constexpr int k_apparmor_minor = 30;

/// Beside an operator nobody asks a node.
class NoRunner final : public cluster::NodeRunner {
public:
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        throw bug(fmt::format("a worker is called on {} beside an operator", call.node));
    }
    [[nodiscard]] std::string describe() const override { return std::string(to_string(upgrade::Via::operator_)); }
};

/// A node that uses a code of this program is not believed: what it says of itself cannot be what this program says of
/// the run.
class OwnCodesRunner final : public cluster::NodeRunner {
public:
    explicit OwnCodesRunner(std::unique_ptr<cluster::NodeRunner> inner) : inner_(std::move(inner)) {}
    [[nodiscard]] cluster::WorkerReply run(const cluster::WorkerCall& call) override {
        auto reply = inner_->run(call);
        const auto code = reply.document.get_string({"code"});
        if (!reply.of_worker || reply.document.get_string({"kind"}) != "Error" || !is_own(code)) return reply;
        reply.document.set("code", "worker-failed");
        auto details = value::Node::mapping({{"worker-code", code}});
        if (const auto* said = reply.document.find("details"))
            for (const auto& member : said->members()) details.set(member.key, member.value);
        reply.document.set("details", std::move(details));
        return reply;
    }
    [[nodiscard]] std::string describe() const override { return inner_->describe(); }

private:
    /// Codes that this program explains, without those that kmm-worker has, too.
    [[nodiscard]] static bool is_own(const std::string& code) {
        constexpr std::array<std::string_view, 9> k_shared{"address-refused", "bad-manifest",      "bad-url",
                                                           "check-failed",    "command-not-found", "loader-hung",
                                                           "module-differs",  "timeout",           "tls"};
        const auto& all = codes();
        const bool known = std::any_of(all.begin(), all.end(),
                                       [&](const Code& own) { return own.code == code && own.kind == "error"; });
        return known && std::find(k_shared.begin(), k_shared.end(), code) == k_shared.end();
    }

    std::unique_ptr<cluster::NodeRunner> inner_;
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

/// `command` with its program named from the root, as a later resume may run elsewhere. One in PATH, or below a
/// directory with a blank, where the command would be parted, stays.
std::string from_anywhere(const std::string& command) {
    const auto program = command.substr(0, command.find(' '));
    if (program.find('/') == std::string::npos || program.starts_with('/')) return command;
    const auto path = absolute_path(program);
    return path.find(' ') == std::string::npos ? path + command.substr(program.size()) : command;
}

/// Options of the command line that would be ignored silently. Errors: usage "bad-value".
void require_use(const cli::Args& args, Via via, bool is_live) {
    const auto refuse = [&](std::string_view name, std::string_view needed, std::string_view found) {
        if (args.source(name) != "option") return;
        throw Error(Exit::usage, "bad-value", fmt::format("--{} requires {}, found {}", name, needed, found))
            .hint(fmt::format("leave --{} out", name));
    };
    const auto found = fmt::format("--via {}", to_string(via));
    if (via != Via::self)
        for (const auto* name : {"worker-image", "worker-namespace"}) refuse(name, "--via self", found);
    if (via != Via::ssh) refuse("ssh-config", "--via ssh", found);
    if (via != Via::ssh && via != Via::local) refuse("worker", "--via ssh or local", found);
    if (is_live && via != Via::self) refuse("force-conflicts", "--via self", found);
    if (is_live) return;
    for (const auto* name : {"break-lock", "force-conflicts", "lease-namespace"})
        refuse(name, "an API server", "a directory cluster");
}

/// Servers before 1.30 refuse the field.
bool has_apparmor_field(kube::Client& client) {
    const auto version = client.server_version();
    const auto parts = base::split(version, '.');
    return parts.size() < 2 || parts[0] != "v1" ||
           base::parse_number<int>(parts[1]).value_or(k_apparmor_minor) >= k_apparmor_minor;
}

}  // namespace

std::string namespace_option(const cli::Args& args, const char* name, const std::string& fallback) {
    const auto given = args.get(name);
    if (!given) return fallback;
    if (!api::is_dns1123_label(*given))
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--{}: expected the name of a Namespace, found '{}'", name, base::escape(*given)))
            .hint("lower case letters, digits and '-', as kube-system; leave the option out for the usual one");
    return *given;
}

void Reach::choose(upgrade::Options& options, const cluster::Place& place, Age age) const {
    const auto& args = call_.args();
    const bool is_live = place.is_live();
    const auto via = args.get("via");
    const auto runner = args.get("runner");
    if (via && runner && *via != *runner && args.source("via") == args.source("runner"))
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--via {} and --runner {} contradict each other", *via, *runner))
            .hint("--runner is the earlier name of --via: give one of them");
    const bool asks_for_ssh = args.source("ssh-config") == "option" || args.source("worker") == "option";
    if (const auto& named = via ? via : runner) options.via = upgrade::parse_via(*named).value_or(options.via);
    else if (age != Age::recorded) options.via = is_live && !asks_for_ssh ? Via::self : Via::ssh;
    if (const auto file = args.get("ssh-config")) options.ssh_config = absolute_path(*file);
    if (const auto command = args.get("worker"); command && base::trim(*command).empty())
        throw Error(Exit::usage, "bad-value", "--worker is empty, expected a command")
            .hint("leave the option out for kmm-worker; bundle brings it along");
    if (const auto command = args.get("worker"))
        options.worker = options.via == Via::local ? from_anywhere(*command) : *command;
    if (options.via == Via::local && bundle_prefix(options.worker))
        throw Error(Exit::usage, "bad-value", "--worker bundle is for nodes that are reached by ssh, found --via local")
            .hint("leave --worker out: kmm-worker of this host is used");
    if (const auto image = args.get("worker-image"))
        options.worker_image = image::require_reference("worker-image", *image);
    options.worker_namespace = namespace_option(args, "worker-namespace", options.worker_namespace);
    options.lease_namespace = namespace_option(args, "lease-namespace", options.lease_namespace);
    if (const auto said = args.get("operator")) options.operator_said = *said == "auto" ? "" : *said;
    options.repair = options.repair || args.flag("repair");
    // A run keeps the policy that it was started with, whatever files and environment of a later day name.
    const bool names_policy = args.source("policy") == "option" || args.source("signature-key") == "option";
    if (age != Age::recorded || names_policy || options.image_policy.empty())
        options.image_policy = image_policy_of(args);
    if (options.via == Via::operator_ && !options.image_policy.empty())
        throw Error(Exit::usage, "bad-value",
                    "--policy and --signature-key cannot be passed on with --via operator: KMM checks no signatures")
            .hint(
                "use --via self or ssh, or start without them, also in the configuration file and in KMM_POLICY and "
                "KMM_SIGNATURE_KEY");
    const bool is_operated = options.via == Via::operator_;
    if (args.flag("repair") && !is_operated)
        throw Error(Exit::usage, "bad-value", "--repair requires --via operator")
            .hint("kmm-upgrade writes all version labels itself here; doctor names those that are left");
    require_use(args, options.via, is_live);
    if (options.via != Via::self) {
        options.worker_image.clear();
        options.worker_namespace.clear();
    }
    if (options.via != Via::self && !is_operated) return;
    if (!is_live)
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--via {} needs an API server, found a directory cluster", to_string(options.via)))
            .hint("--via ssh, or name the server with --context");
    if (is_operated) return;
    if (age == Age::fresh && !options.worker_image.empty() &&
        options.worker_image.find("@sha256:") == std::string::npos)
        call_.note(
            fmt::format("worker image {} is named by a tag: nodes run whatever that means when they pull it; name it "
                        "as REPOSITORY@sha256:DIGEST",
                        options.worker_image));
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
    const auto words = cluster::look_for_images(server->client(), {subject.ns, subject.name},
                                                {images.begin(), images.end()}, k_patience);
    if (words.lacking.empty()) return;
    Error error(Exit::checks_failed, "image-not-found-by-kmm",
                fmt::format("KMM has not found {}: it would unload the old version and load nothing",
                            words.lacking.size() == 1 ? "the image" : fmt::format("{} images", words.lacking.size())));
    for (const auto& [image, word] : words.lacking) error.detail(image, word.empty() ? "not looked at yet" : word);
    throw error.hint(
        fmt::format("push it, then start again once it is found: kubectl get moduleimagesconfigs -n {} {} -o yaml",
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
    std::unique_ptr<cluster::NodeRunner> plain = std::make_unique<OwnCodesRunner>(plain_runner(options, target));
    return options.image_policy.empty() ? std::move(plain)
                                        : with_image_policy(std::move(plain), options.image_policy, call_.clock());
}

std::unique_ptr<cluster::NodeRunner> Reach::runner_beside_server(const upgrade::Options& options) {
    if (options.via != Via::ssh && options.via != Via::local)
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--via {}: worker Pods need an API server, and none runs during the restore",
                                to_string(options.via)))
            .hint("--via ssh, with kmm-worker on the control planes");
    auto plain = runner_without_pods(options);
    return std::make_unique<OwnCodesRunner>(std::move(plain));
}

std::unique_ptr<cluster::NodeRunner> Reach::runner_without_pods(const upgrade::Options& options) {
    using Worker = cluster::SshOptions::Worker;
    if (options.via == Via::local)
        return std::make_unique<cluster::LocalRunner>(options.worker.empty() ? "kmm-worker" : options.worker);
    cluster::SshOptions ssh;
    ssh.config_file = options.ssh_config;
    ssh.version = KMM_VERSION;
    ssh.bundle = [bundle = bundle_]() -> const cluster::WorkerBundle& { return bundle->get(); };
    ssh.tell = [this](const std::string& text) { call_.note(text); };
    const auto prefix = bundle_prefix(options.worker);
    ssh.worker = prefix ? Worker::bundle : options.worker.empty() ? Worker::either : Worker::installed;
    if (prefix) ssh.prefix = *prefix;
    else if (!options.worker.empty()) ssh.worker_command = options.worker;
    return std::make_unique<cluster::SshRunner>(std::move(ssh));
}

std::unique_ptr<cluster::NodeRunner> Reach::plain_runner(const upgrade::Options& options, const Target& target) {
    const auto leased = [this](std::unique_ptr<cluster::NodeRunner> runner) -> std::unique_ptr<cluster::NodeRunner> {
        return std::make_unique<LeasedRunner>(std::move(runner), [this] { cluster_.require_lease(); });
    };
    switch (options.via) {
        case Via::ssh:
        case Via::local: break;
        case Via::operator_: return std::make_unique<NoRunner>();
        case Via::self: {
            auto* server = cluster_.opened().server;
            if (server == nullptr) throw bug("worker Pods without an API server");
            const bool apart = !options.worker_namespace.empty() && options.worker_namespace != target.ns;
            return std::make_unique<cluster::PodRunner>(
                server->client(),
                // A service account of the Module's namespace is not there.
                cluster::PodRunnerOptions{apart ? options.worker_namespace : target.ns, target.module,
                                          options.worker_image, apart ? "" : target.service_account, target.lineage,
                                          [this](const std::string& line) {
                                              call_.context().console.err(fmt::format("warning: {}\n", line));
                                          },
                                          apart ? target.ns : "", has_apparmor_field(server->client())});
        }
    }
    return leased(runner_without_pods(options));
}

std::vector<cli::Option> runner_options() {
    auto via = cli::with_choices(
        cli::option("via", "HOW",
                    "how nodes are reached: self creates worker Pods (default on a live cluster), operator leaves "
                    "the work to KMM's and sets one label"),
        {"self", "ssh", "local", "operator"});
    auto said = cli::with_choices(
        cli::option("operator", "WHETHER", "state whether KMM's operator is running (default: detect)"),
        {"auto", "present", "absent"});
    auto repair = cli::option("repair", "", "with --via operator: repair version labels that KMM never changes");
    auto image = cli::with_environment(cli::option("worker-image", "REF", "image of kmm-worker for worker Pods"),
                                       "RELATED_IMAGE_WORKER");
    auto space = cli::option("worker-namespace", "NAMESPACE", "namespace of worker Pods (default: that of the Module)");
    auto runner =
        cli::hidden(cli::with_choices(cli::option("runner", "NAME", "the earlier name of --via"), {"ssh", "local"}));
    auto patience = cli::with_default(
        cli::option("api-timeout", "DURATION", "maximum time to wait for an unreachable API server"), "5m");
    auto break_lock = cli::option("break-lock", "HOLDER", "take over the Lease from HOLDER, which you know is dead");
    return std::vector<cli::Option>{
               via,
               image,
               space,
               said,
               repair,
               cli::option("lease-namespace", "NAMESPACE", "namespace of the Lease (default: that of the Module)"),
               break_lock,
               cli::option("force-conflicts", "", "take over fields of the Module's DaemonSets from other managers"),
               patience,
               runner,
               cli::option("ssh-config", "FILE", "configuration file of the ssh client, as ssh -F"),
               cli::option("worker", "COMMAND",
                           "command of kmm-worker on the nodes; bundle: bring it along (default where none of this "
                           "version is installed)")} +
           image_policy_options();
}

}  // namespace kmm::tool_upgrade
