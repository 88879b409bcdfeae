// SPDX-License-Identifier: Apache-2.0
// Running the checks on what was observed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kubernetes/catalogue.hpp"
#include "kubernetes/check_list.hpp"
#include "kubernetes/inventory.hpp"
#include "kubernetes/observe.hpp"
#include "kubernetes/patches.hpp"
#include "kubernetes/path.hpp"
#include "value/node.hpp"

namespace kmm::kubernetes {

/// `skip`: it could not be observed. Never said of what is right.
enum class Outcome { ok, warn, fail, skip };

/// "OK", "WARN", "FAIL" or "SKIP".
[[nodiscard]] std::string_view to_string(Outcome outcome) noexcept;

struct CheckResult {
    std::string id;
    Outcome outcome = Outcome::skip;
    std::string detail;   ///< what was found, all offenders by name
    std::string fix;      ///< what to do, "" unless it fails or warns
    bool ignored = false; ///< it failed and --ignore-checks names it: `outcome` is warn
};

/// What a node has answered to kmm-worker kubernetes facts.
struct NodeAnswer {
    value::Node facts;    ///< its document, null if it did not answer
    std::string problem;  ///< why not, with its name; "" with facts
    std::int64_t asked = 0, answered = 0;  ///< when, by the clock of this machine, seconds since 1970
};
using NodeAnswers = std::map<std::string, NodeAnswer, std::less<>>;

/// What the upgrade is asked to do, and to leave.
struct Intent {
    bool drains = true;  ///< false: kubelets are switched on nodes that keep their Pods
    bool evicts_unmanaged = false;
    bool evicts_local_data = false;
    bool freezes = true;
    std::string skipped_phases{};  ///< of kubeadm, separated by commas
    bool has_patches = false;      ///< kubeadm changes what it writes by files on the nodes
};

/// What the checks are about. The references must outlive it.
struct CheckInput {
    const Inventory& inventory;
    const Observation& seen;
    const Catalogue& catalogue;
    std::optional<Version> target;  ///< nullopt: health
    const NodeAnswers* nodes = nullptr;  ///< nullptr: no node was asked
    std::int64_t now = 0;                ///< seconds since 1970; matters with `nodes`
    AppPrograms* programs = nullptr;     ///< nullptr: no --app-check
    const PatchList* patches = nullptr;  ///< nullptr: no --patch-query
    Intent intent{};
    std::string way = "";  ///< how programs get onto nodes: "packages", "binaries", "command", "" if not said
};

/// Every check of check_list(), or with no target those of health, in its order. Each id of `ignored` must be of a
/// check that is ignorable. With `only` those of its ids.
[[nodiscard]] std::vector<CheckResult> run_checks(const CheckInput& input, const std::vector<std::string>& ignored,
                                                  std::span<const std::string_view> only = {});
/// Ids of those about applications, which are made again before each step of a way.
[[nodiscard]] std::span<const std::string_view> application_checks() noexcept;

/// Checks in --ignore-checks: ids with commas between. Errors: usage "bad-value" for ids that are unknown or never
/// ignored.
[[nodiscard]] std::vector<std::string> parse_ignored(const std::vector<std::string>& options);

/// The version that the ConfigMap kubeadm-config names; nullopt if it does not say one that can be read.
[[nodiscard]] std::optional<Version> configured_version(const Inventory& inventory);
/// The tag of etcd's image that it names, "" if it leaves that to kubeadm, or cannot be read.
[[nodiscard]] std::string configured_etcd(const Inventory& inventory);
/// The version in that tag, as kubeadm reads it; nullopt if it names none.
[[nodiscard]] std::optional<Version> fixed_etcd(const Inventory& inventory);
/// Which of `phases`, with commas between, has kubeadm leave `addon` alone ("kube-proxy", "coredns"); "" for none. That
/// is not addon/all, which kubeadm takes and which holds no other phase; nor one with blanks, which kubeadm refuses.
[[nodiscard]] std::string skipped_phase(std::string_view phases, std::string_view addon);
/// Where kubeadm takes images from, "" if kubeadm-config cannot be read. Of etcd and CoreDNS REPOSITORY:TAG, or what
/// kubeadm-config has of the two, "" where it leaves that to kubeadm.
struct ImageSources {
    std::string repository, etcd, dns;
};
[[nodiscard]] ImageSources configured_images(const Inventory& inventory);

// The parts of run_checks.

/// What a check found, without its id.
struct Finding {
    Outcome outcome = Outcome::skip;
    std::string detail;
    std::string fix = {};  ///< in place of that of the check, where the cause is another than it looks for
};

using CheckFunction = Finding (*)(const CheckInput&);
struct CheckRow {
    std::string_view id;
    CheckFunction run;
};

/// Each part's checks.
[[nodiscard]] std::span<const CheckRow> version_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> config_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> flag_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> object_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> drain_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> prerequisite_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> api_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> addon_checks() noexcept;
/// They need CheckInput::nodes.
[[nodiscard]] std::span<const CheckRow> node_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> etcd_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> service_checks() noexcept;
[[nodiscard]] std::span<const CheckRow> placing_checks() noexcept;

/// The node whose etcd says that it leads, "" if none does.
[[nodiscard]] std::string etcd_leader(const NodeAnswers& answers);
/// Why a node could not read that field of its facts, "" if it does not say.
[[nodiscard]] std::string unread_reason(const value::Node& facts, std::string_view field);

/// A document in a ConfigMap of kube-system.
struct Configuration {
    std::optional<value::Node> root;
    Finding problem;  ///< without a root
};
/// The ClusterConfiguration of ConfigMap kubeadm-config.
[[nodiscard]] Configuration cluster_configuration(const CheckInput& input);
/// The KubeProxyConfiguration of ConfigMap kube-proxy.
[[nodiscard]] Configuration proxy_config_map(const CheckInput& input);
/// The KubeletConfiguration of ConfigMap kubelet-config.
[[nodiscard]] Configuration kubelet_config_map(const CheckInput& input);

/// "a, b, c and 4 more": at most ten are named.
[[nodiscard]] std::string name_some(const std::vector<std::string>& names);

/// FAIL with `problems`, or OK with `fine` if there are none.
[[nodiscard]] Finding fail_if_any(const std::vector<std::string>& problems, std::string fine);

/// FAIL that refers to versions-uniform, which names what could not be observed; nullopt if the versions that run are
/// known.
[[nodiscard]] std::optional<Finding> versions_unknown(const CheckInput& input);

}  // namespace kmm::kubernetes
