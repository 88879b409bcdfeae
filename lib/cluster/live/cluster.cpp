// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/cluster.hpp"

#include <utility>

#include <fmt/format.h>

#include "kube/kubeconfig.hpp"
#include "kube/own_pod.hpp"
#include "sys/host.hpp"

namespace kmm::cluster {
namespace {

constexpr std::string_view k_context_mark = "context ";
constexpr std::string_view k_file_mark = " of ";
constexpr std::string_view k_in_cluster = "in-cluster";

kube::ConfigRequest connection_request(const Place& place) {
    auto request = kube::request_from_environment();
    if (place.kubeconfig) request.file = place.kubeconfig;
    if (request.file || place.context != k_in_cluster) request.context = place.context;
    return request;
}

}  // namespace

std::string Place::text() const {
    if (!is_live()) return directory;
    return fmt::format("{}{}{}", k_context_mark, context,
                       kubeconfig ? fmt::format("{}{}", k_file_mark, *kubeconfig) : "");
}

Place Place::read(std::string_view text, const std::string& context) {
    Place place;
    if (!text.starts_with(k_context_mark)) {
        place.directory = text;
        return place;
    }
    text.remove_prefix(k_context_mark.size());
    const auto at = context.empty()             ? text.rfind(" of /")
                    : text.starts_with(context) ? context.size()
                                                : std::string_view::npos;
    if (at < text.size() && text.substr(at).starts_with(k_file_mark)) {
        place.kubeconfig = text.substr(at + k_file_mark.size());
        text = text.substr(0, at);
    }
    place.context = text;
    return place;
}

Cluster open_cluster(Place place, Opening opening) {
    Cluster cluster;
    if (place.is_live()) {
        auto connection = kube::load_connection(connection_request(place));
        auto server = std::make_unique<KubeStore>(
            kube::make_client(std::move(connection), opening.clock, opening.random, std::move(opening.client)));
        cluster.workloads = workloads_of(*server, kube::own_pod(kube::request_from_environment(), sys::host_name()));
        cluster.server = server.get();
        cluster.store = std::move(server);
    } else {
        auto directory = std::make_unique<DirectoryStore>(place.directory, opening.files);
        cluster.workloads = workloads_of(*directory);
        cluster.directory = directory.get();
        cluster.store = std::move(directory);
    }
    cluster.place = std::move(place);
    return cluster;
}

}  // namespace kmm::cluster
