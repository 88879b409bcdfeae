// SPDX-License-Identifier: Apache-2.0
// What verbs about versions of Kubernetes read: a cluster, or dumps of one, and the metadata of versions.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"
#include "cluster/seam/runner.hpp"
#include "kmm-upgrade/session/call.hpp"
#include "kubernetes/check/checks.hpp"
#include "kubernetes/versions/catalogue.hpp"
#include "upgrade/drive_cluster/cluster_view.hpp"
#include "upgrade/drive_kubernetes/plan_runs.hpp"
#include "upgrade/drive_kubernetes/programs.hpp"

namespace kmm::tool_upgrade {

/// --filename, --versions.
[[nodiscard]] std::vector<cli::Option> kubernetes_options();

/// The objects of -f or --cluster, else of the API server that --kubeconfig and --context name or kubectl would find.
/// With drive::ReadExtent::everything, kinds that this user may not list are noted in Inventory::unlisted. Errors:
/// usage "several-sources", "no-cluster"; from_diagnostics for documents; those of kube::load_connection and
/// kube::Client.
[[nodiscard]] kubernetes::Inventory read_inventory(Call& call, drive::ReadExtent extent);

/// A path on the nodes, "" without that option. Errors: usage "bad-value" unless it is absolute.
[[nodiscard]] std::string absolute_option(const cli::Args& args, const char* name);

/// --switch, which `help` explains, and its longer name.
[[nodiscard]] std::vector<cli::Option> switch_options(const char* help);
/// The value of either, "" if none is given. Errors: usage "bad-value" if they differ.
[[nodiscard]] std::string switch_way(const cli::Args& args);

/// --leave-out, and the names that it gives, sorted. Errors: usage "bad-value" for an empty name.
[[nodiscard]] cli::Option leave_out_option();
[[nodiscard]] std::vector<std::string> left_out_option(const cli::Args& args);
/// kubernetes::leave_out. Errors: not_found "not-found" for names that no Node has; those of kubernetes::leave_out.
void leave_out_known(kubernetes::Inventory& inventory, const std::vector<std::string>& names);

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

/// What nodes are asked beside the usual facts.
struct NodeQuestions {
    bool for_upgrade = false;      ///< images, sandbox image, drift of manifests
    std::string way, directory;    ///< of --switch and --from; `way` "" if it is not said
    std::vector<drive::Hop> hops;  ///< the programs of which are to be installed
    bool scans = false;            ///< what lies in `directory` and in package sources; nothing else
    std::string ignored_preflight;  ///< checks of kubeadm whose failure is a warning
};
/// The questions before an upgrade to `target`. Without a way there no programs are asked for.
[[nodiscard]] NodeQuestions questions_before(const kubernetes::Catalogue& catalogue,
                                             const kubernetes::Observation& seen, const kubernetes::Version& target,
                                             std::string way, std::string directory, std::string ignored_preflight);

/// What every node says of itself, a few asked at once. Nothing is changed there. Errors: "interrupted"; a node that
/// does not answer is in the result.
[[nodiscard]] kubernetes::NodeAnswers ask_nodes(Call& call, cluster::NodeRunner& runner,
                                                const kubernetes::Inventory& inventory, const NodeQuestions& questions);

struct CheckCount {
    std::size_t made = 0, skipped = 0;
};
/// Prints warnings. `only`: as of run_checks; `consequence`: of a failure, for people. Errors: checks_failed
/// "checks-failed" with every check that fails.
CheckCount require_checks(Call& call, const kubernetes::CheckInput& input, const std::vector<std::string>& ignored,
                          std::span<const std::string_view> only, const std::string& consequence);

/// --versions FILE, else kubernetes-versions.yaml of the state directory, else that of /etc/kmm-tools, else what is
/// built in. Minors that a file leaves out are those that are built in. Errors: those of sys::read_file;
/// from_diagnostics with every fault.
[[nodiscard]] kubernetes::Catalogue read_versions(Call& call);
/// The same with `given` in place of --versions, "" for none.
[[nodiscard]] kubernetes::Catalogue read_versions(Call& call, const std::string& given);

/// A version on the command line. Errors: usage "bad-version".
[[nodiscard]] kubernetes::Version version_argument(const std::string& text);

}  // namespace kmm::tool_upgrade
