// SPDX-License-Identifier: Apache-2.0
// What verbs about versions of Kubernetes read: a cluster, or dumps of one, and the metadata of versions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "kmm-upgrade/session/call.hpp"
#include "cluster/runner.hpp"
#include "kubernetes/catalogue.hpp"
#include "kubernetes/checks.hpp"
#include "upgrade/drive_kubernetes/cluster_view.hpp"
#include "upgrade/drive_kubernetes/programs.hpp"

namespace kmm::tool_upgrade {

/// --filename, --versions.
[[nodiscard]] std::vector<cli::Option> kubernetes_options();

/// The objects of -f or --cluster, else of the API server that --kubeconfig and --context name or kubectl would find. With
/// drive::ReadExtent::everything, kinds that this user may not list are noted in Inventory::unlisted.
/// Errors: usage "several-sources", "no-cluster"; from_diagnostics for documents; those of kube::load_connection and kube::Client.
[[nodiscard]] kubernetes::Inventory read_inventory(Call& call, drive::ReadExtent extent);

/// --app-check and --patch-query, as options and as what they answer.
[[nodiscard]] std::vector<cli::Option> prerequisite_options();
struct Prerequisites {
    std::unique_ptr<drive::DirectoryPrograms> programs;  ///< nullptr without --app-check
    std::optional<kubernetes::PatchList> patches;        ///< nullopt without --patch-query
    void put_into(kubernetes::CheckInput& input) const;
};
/// Asks for patches; programs are asked by the checks. Errors: usage "bad-value", "not-a-program"; "interrupted".
[[nodiscard]] Prerequisites read_prerequisites(Call& call);
/// How much of a cluster checks with that metadata look at.
[[nodiscard]] drive::ReadExtent extent_of(const kubernetes::Catalogue& catalogue);

/// What every node says of itself, a few asked at once. Nothing is changed there. Errors: "interrupted"; a node that does not answer is in the result.
[[nodiscard]] kubernetes::NodeAnswers ask_nodes(Call& call, cluster::NodeRunner& runner, const kubernetes::Inventory& inventory);

/// --versions FILE, else kubernetes-versions.yaml of the state directory, else that of /etc/kmm-tools, else what is built in. Minors that
/// a file leaves out are those that are built in. Errors: those of sys::read_file; from_diagnostics with every fault.
[[nodiscard]] kubernetes::Catalogue read_versions(Call& call);
/// The same with `given` in place of --versions, "" for none.
[[nodiscard]] kubernetes::Catalogue read_versions(Call& call, const std::string& given);

/// A version on the command line. Errors: usage "bad-version".
[[nodiscard]] kubernetes::Version version_argument(const std::string& text);

}  // namespace kmm::tool_upgrade
