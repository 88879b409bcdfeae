// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/reach/cluster_access.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/live/definitions.hpp"
#include "cluster/live/operator_signs.hpp"
#include "kube/kubeconfig.hpp"
#include "kmm-upgrade/record/trust.hpp"
#include "kube/teller.hpp"

namespace kmm::tool_upgrade {
namespace {

bool is_chosen(const cli::Args& args, std::string_view option) {
    return args.get(option) && args.source(option) != "environment";
}

/// Documents of the record would be documents of the cluster, which the next step could not read.
void require_apart(const std::string& state, const std::string& cluster) {
    std::error_code failed;
    const auto inner = std::filesystem::weakly_canonical(state, failed)
                           .lexically_relative(std::filesystem::weakly_canonical(cluster, failed));
    if (failed || inner.empty()) return;
    for (const auto& part : inner) {
        // What begins with a dot is not read; ".." leads out, "." is the directory itself.
        if (part.native().starts_with('.') && part != ".") return;
    }
    throw Error(
        Exit::usage, "state-in-cluster",
        fmt::format(
            "the record would be kept in {}, which is in the cluster directory {}: its files would be read as objects",
            base::escape(state), base::escape(cluster)))
        .hint("name a directory beside it with --state-dir, or in it one whose name begins with a dot: " +
              base::escape(cluster) + "/.state");
}

cluster::Place live_place(const cli::Args& args) {
    auto request = kube::request_from_environment();
    if (is_chosen(args, "kubeconfig")) request.file = absolute_path(*args.get("kubeconfig"));
    request.context = args.get("context").value_or("");
    // The name is kept, so that another current-context later changes nothing.
    return {"", kube::load_connection(request).context, request.file};
}

}  // namespace

ClusterAccess::ClusterAccess(RecordAccess& record) : call_(record.call()), record_(record) {}

cluster::Place ClusterAccess::place(const upgrade::Run* recorded) const {
    const auto& args = call_.args();
    const bool directory = is_chosen(args, "cluster");
    const bool server = is_chosen(args, "kubeconfig") || is_chosen(args, "context");
    if (directory && server)
        throw Error(Exit::usage, "several-sources",
                    "expected one cluster, found --cluster and --kubeconfig or --context")
            .hint("give one of them");
    if (server) return live_place(args);
    if (const auto given = args.get("cluster")) {
        const auto path = absolute_path(*given);
        require_apart(record_.directory().path(), path);
        return {path, "", std::nullopt};
    }
    if (recorded != nullptr && !recorded->cluster_place.empty()) {
        require_trust(record_, *recorded);
        return cluster::Place::read(recorded->cluster_place, recorded->cluster_context);
    }
    if (kube::connection_configured(kube::request_from_environment())) return live_place(args);
    Error error(Exit::usage, "no-cluster", "no cluster specified");
    if (auto absent = kube::absent_kubeconfig(kube::request_from_environment()); !absent.empty())
        error.detail("KUBECONFIG", std::move(absent));
    const auto& options = call_.context().verb.options;
    const bool takes_directory = std::any_of(options.begin(), options.end(), [](const cli::Option& each) {
        return each.name == "cluster" && !each.hidden;
    });
    if (takes_directory)
        error.detail("directory", "--cluster DIR, or KMM_CLUSTER: one Kubernetes object per YAML file");
    throw std::move(error)
        .detail("api server", "--kubeconfig FILE, --context NAME, KUBECONFIG or ~/.kube/config")
        .hint(takes_directory ? "add --cluster DIR or --context NAME to the command"
                              : "add --context NAME or --kubeconfig FILE to the command");
}

cluster::Cluster& ClusterAccess::open(const cluster::Place& place, std::optional<std::chrono::milliseconds> patience) {
    kube::ClientOptions options;
    options.api_timeout = patience.value_or(call_.api_timeout());
    if (patience) {
        options.request_timeout = *patience;
        options.cancelled = [this] { return call_.stopped(); };
    }
    if (call_.context().verbosity >= 0 && !patience)
        kube::tell_all(options,
                       [&console = call_.context().console](const std::string& line) { console.err(line + "\n"); });
    options.stop_waiting = [this] { return call_.stopped(); };
    options.before_change = [this] { require_lease(); };
    cluster_.emplace(cluster::open_cluster(place, {call_.files(), call_.clock(), call_.random(), std::move(options)}));
    return *cluster_;
}

cluster::Cluster& ClusterAccess::opened() {
    if (!cluster_) throw bug("no cluster is open");
    return *cluster_;
}

void ClusterAccess::lock_directory() {
    const auto* directory = opened().directory;
    std::error_code failed;
    if (directory == nullptr || directory_lock_ || !std::filesystem::is_directory(directory->path(), failed))
        return;  // reading reports that
    directory_lock_.emplace(
        record::lock_cluster_directory(directory->path(), record::current_owner(record_.operation(), call_.clock())));
}

std::optional<int> ClusterAccess::lock_descriptor() const {
    return directory_lock_ ? std::optional(directory_lock_->descriptor()) : std::nullopt;
}

std::string ClusterAccess::kinds_to_create(const upgrade::Options& options, Definitions wanted) {
    auto* server = opened().server;
    if (server == nullptr) return "";
    auto& client = server->client();
    const auto kinds = cluster::lacking_kinds(client);
    if (kinds.empty()) return "";
    const auto place = server->describe();
    if (options.via != upgrade::Via::self) throw cluster::lacking_error(place, kinds.front());
    if (wanted == Definitions::of_nodes && kinds.front().kind == kube::resources::k_modules.kind)
        throw cluster::lacking_error(place, kinds.front())
            .hint("kubectl apply -k manifests/crd, or kmm-upgrade apply, which creates it; then the Module");
    cluster::require_creatable(client, place, kinds, server->rights());
    const auto signs = options.operator_said.empty() ? cluster::look_for_operator(client) : cluster::OperatorSigns{};
    if (!signs.pods.empty())
        throw Error(Exit::checks_failed, "operator-present",
                    fmt::format("KMM's operator is running in {} (Pod {}), which brings the kind {}; it is not there",
                                place, signs.pods.front().name, kinds.front().kind))
            .detail("known by", signs.pods.front().sign)
            .hint("look why its installation is not complete; --operator absent if that is not an operator of KMM");
    std::vector<std::string> names;
    for (const auto& kind : kinds) names.push_back(kind.full_name());
    return base::join(names, ",");
}

void ClusterAccess::create_kinds(const std::string& names) {
    auto* server = opened().server;
    if (server == nullptr || names.empty()) return;
    const auto wanted = base::split(names, ',');
    for (const auto& kind : cluster::lacking_kinds(server->client())) {
        const auto name = kind.full_name();
        if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
        call_.note(fmt::format("creating CustomResourceDefinition {}", name));
        if (!cluster::create_definition(server->client(), kind))
            call_.note(fmt::format("{} was created by somebody else at the same time", name));
    }
}

}  // namespace kmm::tool_upgrade
