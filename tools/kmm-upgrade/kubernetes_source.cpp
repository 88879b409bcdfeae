// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes_source.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/documents.hpp"
#include "kmm-upgrade/cluster_access.hpp"
#include "kmm-upgrade/record_access.hpp"
#include "kube/access.hpp"
#include "sys/file_ops.hpp"

namespace kmm::tool_upgrade {
namespace {

using kubernetes::Inventory;

class InventoryTarget final : public cluster::DocumentTarget {
public:
    explicit InventoryTarget(Inventory& inventory) : inventory_(inventory) {}

    value::ObjectSink& begin() override { return sink_.emplace(); }
    void commit(Diagnostics& diagnostics) override { std::move(*sink_).commit(inventory_, diagnostics); }
    void take(const value::Document& document, Diagnostics& diagnostics) override {
        begin().take_document(document);
        commit(diagnostics);
    }

private:
    Inventory& inventory_;
    std::optional<kubernetes::InventorySink> sink_;
};

Inventory read_dumps(const std::vector<std::string>& names) {
    Inventory inventory;
    Diagnostics faults;
    InventoryTarget target(inventory);
    cluster::read_documents(names, target, faults);
    kubernetes::finish(inventory, faults);
    sort_and_merge(faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return inventory;
}

const kube::Resource k_api_services{"apiregistration.k8s.io", "v1", "apiservices", "APIService", kube::Scope::cluster};
const kube::Resource k_endpoint_slices{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", kube::Scope::namespaced};
const kube::Resource k_validating{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", kube::Scope::cluster};
const kube::Resource k_mutating{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", kube::Scope::cluster};
const kube::Resource k_policies{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", kube::Scope::cluster};

void list(kube::Client& client, const kube::Resource& resource, const kube::ListQuery& query, Inventory& inventory, Diagnostics& faults) {
    std::optional<kubernetes::InventorySink> sink;
    client.list(resource, query, [&]() -> value::ObjectSink& { return sink.emplace(); });
    std::move(*sink).commit(inventory, faults);
}

/// A kind that only some checks look at: without the right to list it they are skipped.
void list_if_allowed(kube::Client& client, const kube::Resource& resource, const kube::ListQuery& query, Inventory& inventory, Diagnostics& faults) {
    try {
        list(client, resource, query, inventory, faults);
    } catch (const Error& error) {
        if (error.exit() != Exit::no_permission && error.exit() != Exit::not_found) throw;
        inventory.unlisted[resource.plural] = error.exit() == Exit::no_permission ? fmt::format("this user may not list {}", resource.full_name())
                                                                                   : fmt::format("the API server does not serve {}", resource.full_name());
    }
}

/// Objects of an API server have names and no lines.
void set_places(Inventory& inventory) {
    for (auto& node : inventory.nodes) node.meta.position = Position{"nodes/" + node.meta.name, 0, 0};
    for (auto& pod : inventory.pods) {
        pod.meta.position = Position{"pods/" + pod.meta.full_name(), 0, 0};
        for (auto& container : pod.containers) container.position = pod.meta.position;
    }
}

Inventory read_server(kube::Client& client, ReadExtent extent) {
    using namespace kube::resources;
    Inventory inventory;
    inventory.is_live = true;
    Diagnostics faults;
    list(client, k_nodes, {}, inventory, faults);
    kube::ListQuery pods;
    if (extent != ReadExtent::everything) pods.namespace_ = "kube-system";
    if (extent == ReadExtent::control_plane) pods.label_selector = "tier=control-plane";
    list(client, k_pods, pods, inventory, faults);
    if (extent == ReadExtent::everything) {
        kube::ListQuery system;
        system.namespace_ = "kube-system";
        list_if_allowed(client, k_config_maps, system, inventory, faults);
        for (const auto* resource : {&k_pod_disruption_budgets, &k_validating, &k_mutating, &k_endpoint_slices, &k_api_services, &k_custom_resource_definitions})
            list_if_allowed(client, *resource, {}, inventory, faults);
        inventory.is_admin = kube::missing_rules(client, {{"*", "*", "*", "", "", ""}}).empty();
        inventory.has_policies = client.serves(k_policies);
    }
    set_places(inventory);
    kubernetes::finish(inventory, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return inventory;
}

bool is_given(const cli::Args& args, std::string_view option) { return args.source(option) == "option"; }

}  // namespace

std::vector<cli::Option> kubernetes_options() {
    cli::Option file;
    file.name = "filename";
    file.short_name = 'f';
    file.value_name = "FILE";
    file.help = "read dumps instead: a file, a directory, or -";
    file.repeatable = true;
    cli::Option versions;
    versions.name = "versions";
    versions.value_name = "FILE";
    versions.help = "metadata of versions in place of the built-in ones";
    return {file, versions};
}

kubernetes::Inventory read_inventory(Call& call, ReadExtent extent) {
    const auto& args = call.args();
    auto names = args.all("filename");
    if (!names.empty()) {
        for (const auto* other : {"cluster", "kubeconfig", "context"})
            if (is_given(args, other))
                throw Error(Exit::usage, "several-sources", fmt::format("expected one cluster, found --filename and --{}", other)).hint("give one of them");
        return read_dumps(names);
    }
    RecordAccess record(call);
    ClusterAccess access(record);
    const auto place = [&] {
        try {
            return access.place();
        } catch (Error& error) {
            if (error.code() == "no-cluster") error.detail("dumps", "-f FILE: kubectl get nodes,pods,configmaps -A -o json > FILE");
            throw;
        }
    }();
    if (!place.is_live()) return read_dumps({place.directory});
    return read_server(access.open(place).server->client(), extent);
}

kubernetes::Catalogue read_versions(Call& call) {
    const auto& args = call.args();
    const auto& built_in = kubernetes::builtin_catalogue();
    const auto read = [&](const std::string& file, const std::string& text) {
        Diagnostics faults;
        auto catalogue = kubernetes::read_catalogue(text, file, faults);
        if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
        kubernetes::add_minors(catalogue, built_in);
        return catalogue;
    };
    if (const auto given = args.get("versions")) return read(*given, sys::read_file(*given == "-" ? "/dev/stdin" : *given));
    RecordAccess record(call);
    for (const auto& file : {record.directory().path() + "/kubernetes-versions.yaml", std::string("/etc/kmm-tools/kubernetes-versions.yaml")}) {
        std::string text;
        try {
            text = sys::read_file(file);
        } catch (const Error& error) {
            if (error.exit() == Exit::not_found) continue;
            throw;
        }
        return read(file, text);
    }
    return built_in;
}

kubernetes::Version version_argument(const std::string& text) {
    const auto version = kubernetes::Version::parse(text);
    if (!version)
        throw Error(Exit::usage, "bad-version", fmt::format("VERSION: expected {}, found '{}'", kubernetes::k_version_form, base::escape(text)))
            .hint("kmm-upgrade versions lists them");
    return *version;
}

}  // namespace kmm::tool_upgrade
