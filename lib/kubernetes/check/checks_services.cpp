// SPDX-License-Identifier: Apache-2.0
// Checks of what the services of each node say of themselves, and of what else may change a node.
#include <algorithm>
#include <chrono>
#include <map>

#include "base/quantity.hpp"
#include "base/counted.hpp"
#include "base/text.hpp"
#include "kubernetes/check/node_checks.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::int64_t k_skew_seconds = 5;
constexpr std::int64_t k_day = 24 * 3600;

Finding apiserver_each_ready(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_node(input, "each API server is ready", [&](const std::string& name, const Node& facts) {
        if (!is_control_plane_node(input, name)) { return std::string(); }
        const auto is_ready = flag_of(facts, {"apiServer", "ready"});
        if (!is_ready) { unknown.push_back(fmt::format("{} ({})", base::escape(name), unread(facts, "apiServer"))); }
        return is_ready == false ? base::escape(text_of(facts, {"apiServer", "problem"})) : std::string();
    });
    return known_or_skipped(std::move(found), unknown);
}

/// Kept by each API server since it was started: none of a short time is little evidence.
Finding removed_api_requested(const CheckInput& input) {
    std::map<std::string, std::vector<std::string>> used;
    std::vector<std::string> unknown, young;
    for (const auto& [name, answer] : *input.nodes) {
        if (!is_control_plane_node(input, name)) { continue; }
        const auto* requested = answer.facts.is_null() ? nullptr : answer.facts.find_path({"apiServer", "requested"});
        if (requested == nullptr || !requested->is_sequence()) {
            unknown.push_back(base::escape(name));
            continue;
        }
        for (const auto& api : requested->items()) {
            const auto gone = MinorVersion::parse(api.get_string({"removedIn"}));
            if (!gone || *gone > input.target->line()) { continue; }
            const auto group = api.get_string({"group"});
            used[base::escape(fmt::format("{}{}{} {} (gone in {})", group, group.empty() ? "" : "/",
                                          api.get_string({"version"}), api.get_string({"resource"}), gone->text()))]
                .push_back(base::escape(name));
        }
        const auto text = answer.facts.get_string({"apiServer", "started"});
        const auto started = base::parse_quantity(text);
        const auto now = static_cast<double>(time_on(answer.facts, input.now));
        if (!started || now - *started < k_day) { young.push_back(base::escape(name)); }
    }
    std::vector<std::string> problems;
    for (const auto& [api, nodes] : used) {
        problems.push_back(fmt::format("{}, by clients of {}", api, base::join(nodes, ", ")));
    }
    if (!problems.empty()) { return {Outcome::fail, name_some(problems)}; }
    if (!unknown.empty()) {
        return {Outcome::skip, fmt::format("the metrics of these API servers were not read: {}", name_some(unknown))};
    }
    if (!young.empty()) {
        return {Outcome::skip,
                fmt::format("nothing was asked for, but these API servers have run for less than a day: {}",
                            name_some(young))};
    }
    return {Outcome::ok, fmt::format("no client has asked for an API that is gone in {}", input.target->line().text())};
}

Finding kubelet_healthz(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found =
        each_node(input, "every kubelet says that it is healthy", [&](const std::string& name, const Node& facts) {
            const auto is_healthy = flag_of(facts, {"kubelet", "healthy"});
            if (!is_healthy) {
                unknown.push_back(fmt::format("{} ({})", base::escape(name), unread(facts, "kubelet.healthy")));
            }
            return is_healthy == false ? base::escape(text_of(facts, {"kubelet", "problem"})) : std::string();
        });
    return known_or_skipped(std::move(found), unknown);
}

Finding kubelet_static_path(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_node(
        input, "every kubelet of a control plane reads /etc/kubernetes/manifests",
        [&](const std::string& name, const Node& facts) {
            if (!is_control_plane_node(input, name)) { return std::string(); }
            const auto config = kubelet_configuration_of(facts);
            const auto* arguments = facts.find_path({"kubelet", "arguments"});
            const bool has_arguments = arguments != nullptr && arguments->is_sequence();
            // A flag wins over every file.
            auto path = has_arguments ? kubelet_flag(texts_of(facts, {"kubelet", "arguments"}), "--pod-manifest-path")
                                      : std::string();
            const bool is_flag = !path.empty();
            if (!is_flag) {
                if (config.is_null()) { return "its configuration is unknown: " + unread(facts, "kubelet.config"); }
                path = base::escape(config.get_string({"staticPodPath"}));
                if (!has_arguments) {
                    unknown.push_back(
                        fmt::format("flags of {} ({})", base::escape(name), unread(facts, "kubelet.arguments")));
                }
            }
            while (path.size() > 1 && path.ends_with('/')) { path.pop_back(); }
            if (path == "/etc/kubernetes/manifests") { return std::string(); }
            return fmt::format("{} is '{}'", is_flag ? "--pod-manifest-path" : "staticPodPath", path);
        });
    return known_or_skipped(std::move(found), unknown);
}

/// Whether it says nothing: what is empty, or no time, is written for members that nobody has set. `is_zero_nothing`:
/// zero and false, too.
bool is_nothing(const Node& value, bool is_zero_nothing) {
    if (value.is_mapping()) {
        return std::all_of(value.members().begin(), value.members().end(),
                           [&](const auto& each) { return is_nothing(each.value, is_zero_nothing); });
    }
    if (value.is_null() || value.is_sequence()) { return value.is_null() || value.items().empty(); }
    return value.text().empty() || base::parse_duration(value.text()) == std::chrono::milliseconds(0) ||
           (is_zero_nothing && (value.text() == "0" || value.as_bool() == false));
}

/// Whether zero or false of this member is the same as none: kubeadm does not write it, or writes it without being
/// asked. Of others, as eventRecordQPS, zero is a value.
bool is_zero_nothing(const std::string& key) {
    static constexpr std::string_view k_members[] = {
        "logging",       "port",           "readOnlyPort", "maxPods",      "podsPerCore",
        "kubeAPIBurst",  "registryBurst",  "eventBurst",   "maxOpenFiles", "nodeLeaseDurationSeconds",
        "evictionMaxPodGracePeriod", "serverTLSBootstrap", "protectKernelDefaults"};
    return std::find(std::begin(k_members), std::end(k_members), key) != std::end(k_members);
}

/// Whether both set the same, null for none: each kubeadm writes the empty members that it knows, and 60s as 1m0s.
bool is_same_setting(const Node* one, const Node* other, bool is_zero_nothing) {
    const bool is_one = one != nullptr && !is_nothing(*one, is_zero_nothing);
    const bool is_other = other != nullptr && !is_nothing(*other, is_zero_nothing);
    if (!is_one || !is_other) { return is_one == is_other; }
    if (one->is_mapping() && other->is_mapping()) {
        const auto all_in = [&](const Node& from, const Node& in) {
            return std::all_of(from.members().begin(), from.members().end(), [&](const auto& each) {
                return is_same_setting(&each.value, in.find(each.key), is_zero_nothing);
            });
        };
        return all_in(*one, *other) && all_in(*other, *one);
    }
    if (one->same_value(*other)) { return true; }
    const bool is_scalar = !one->is_mapping() && !one->is_sequence() && !other->is_mapping() && !other->is_sequence();
    const auto time = is_scalar ? base::parse_duration(one->text()) : std::nullopt;
    return time && time == base::parse_duration(other->text());
}

/// Whether kubeadm gives a kubelet this member although kubelet-config lacks it: as a default, or as what is of the
/// node itself.
bool is_from_kubeadm(const std::string& key, const Node& value) {
    static constexpr std::string_view k_defaults[] = {
        "apiVersion",         "kind",        "authentication",   "authorization", "clusterDNS",        "clusterDomain",
        "healthzBindAddress", "healthzPort", "containerRuntimeEndpoint", "resolvConf", "rotateCertificates"};
    return std::find(std::begin(k_defaults), std::end(k_defaults), key) != std::end(k_defaults) ||
           (key == "cgroupDriver" && value.text() == "systemd") ||
           (key == "staticPodPath" && value.text().starts_with("/etc/kubernetes/manifests"));
}

/// How the file of a kubelet differs from kubelet-config, from which kubeadm writes it again: members of kubelet-config
/// that have another value there, and others.
struct Drift {
    std::vector<std::string> differing, added;
};

Drift drift_of(const Node& config, const Node& wanted) {
    Drift drift;
    for (const auto& member : wanted.members()) {
        const auto* own = config.find(member.key);
        // kubeadm gives each node its own runtime endpoint.
        if (member.key != "containerRuntimeEndpoint" &&
            !is_same_setting(own, &member.value, is_zero_nothing(member.key))) {
            drift.differing.push_back(base::escape(member.key));
        }
    }
    for (const auto& member : config.members()) {
        const bool is_wanted = wanted.find(member.key) != nullptr;
        if (!is_wanted && !is_nothing(member.value, is_zero_nothing(member.key)) &&
            !is_from_kubeadm(member.key, member.value)) {
            drift.added.push_back(base::escape(member.key));
        }
    }
    return drift;
}

Finding config_drift(const CheckInput& input) {
    const auto wanted = kubelet_config_map(input.inventory);
    if (skips_phase(input, "kubelet-config")) {
        return {Outcome::ok, "kubeadm's phase kubelet-config is left out: kubelets keep their configuration"};
    }
    if (!wanted.root) { return {Outcome::skip, wanted.problem.detail}; }
    std::vector<std::string> others, patched;
    auto found = each_node(
        input, "the configuration of every kubelet is that of kubelet-config",
        [&](const std::string& name, const Node& facts) {
            if (const auto file = kubelet_file_of(facts); file != k_kubeadm_kubelet_file) {
                others.push_back(fmt::format("{} ({})", base::escape(name), base::escape(file)));
                return std::string();
            }
            const auto* config = facts.find_path({"kubelet", "config"});
            if (config == nullptr || !config->is_mapping()) {
                return "its configuration is unknown: " + unread(facts, "kubelet.config");
            }
            const auto [differing, added] = drift_of(*config, *wanted.root);
            std::vector<std::string> parts;
            if (!differing.empty()) { parts.push_back(fmt::format("differs in {}", base::join(differing, ", "))); }
            if (!added.empty() && input.intent.has_patches) {
                patched.push_back(fmt::format("{} ({})", base::escape(name), base::join(added, ", ")));
            } else if (!added.empty()) {
                parts.push_back(fmt::format("has {}, which kubelet-config has not and kubeadm takes away",
                                            base::join(added, ", ")));
            }
            return base::join(parts, "; ");
        });
    if (found.outcome == Outcome::ok && !patched.empty()) {
        return {Outcome::warn, fmt::format("kubelets have what kubelet-config has not: {}", name_some(patched)),
                "see that the files of --patches (kubeletconfiguration) on the nodes bring it: kubeadm takes it away"};
    }
    if (found.outcome != Outcome::ok || others.empty()) { return found; }
    return {Outcome::warn, fmt::format("kubelets read another file than kubeadm writes: {}", name_some(others)),
            "what kubelet-config says has no effect there: keep that file up to date by hand"};
}

Finding ca_available(const CheckInput& input) {
    return each_node(input, "every control plane has the key of the authority",
                     [&](const std::string& name, const Node& facts) {
                         return is_control_plane_node(input, name) && flag_of(facts, {"caKey"}) != true
                                    ? std::string("ca.key is not among its certificates")
                                    : std::string();
                     });
}

/// Packages that an update may change. Another kubectl changes nothing of the cluster.
std::vector<std::string> loose_packages(const Node& packages) {
    auto loose = texts_of(packages, {"installed"});
    const auto held = texts_of(packages, {"held"});
    std::erase_if(loose, [&](const auto& package) {
        return package == "kubectl" || std::find(held.begin(), held.end(), package) != held.end();
    });
    return loose;
}

Finding package_held(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_node(
        input, "packages of Kubernetes are held, or there are none", [&](const std::string& name, const Node& facts) {
            const auto* packages = facts.find("packages");
            if (packages == nullptr || !packages->is_mapping()) {
                const auto reason = unread_reason(facts, "packages");
                unknown.push_back(
                    fmt::format("{} ({})", base::escape(name), reason.empty() ? "it has no dpkg" : reason));
                return std::string();
            }
            const auto loose = loose_packages(*packages);
            return loose.empty() ? std::string() : fmt::format("not held: {}", base::join(loose, ", "));
        });
    return known_or_skipped(std::move(found), unknown);
}

/// A held package is left alone by them.
Finding auto_updaters(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto result = each_node(
        input, "nothing updates packages of Kubernetes by itself", [&](const std::string& name, const Node& facts) {
            const auto found = texts_of(facts, {"updaters"});
            if (const auto reason = unread_reason(facts, "updaters"); !reason.empty()) {
                unknown.push_back(fmt::format("{} ({})", base::escape(name), reason));
            }
            const auto* packages = facts.find("packages");
            const bool are_held =
                packages != nullptr && packages->is_mapping() && loose_packages(*packages).empty();
            if (found.empty() || are_held) { return std::string(); }
            return fmt::format("{}, and packages are not held", base::join(found, ", "));
        });
    return known_or_skipped(std::move(result), unknown);
}

/// The clock of a node was between two readings of ours when it answered: nodes differ by at least the gap between
/// their offsets.
Finding clock_skew(const CheckInput& input) {
    struct Offset {
        std::string node;
        std::int64_t least, most;
    };
    std::optional<Offset> slowest, fastest;
    std::vector<std::string> unknown;
    for (const auto& [name, answer] : *input.nodes) {
        const auto time = answer.facts.is_null() ? std::nullopt : base::parse_rfc3339(text_of(answer.facts, {"time"}));
        if (!time) {
            unknown.push_back(base::escape(name));
            continue;
        }
        const Offset offset{base::escape(name), *time - answer.answered, *time - answer.asked};
        if (!slowest || offset.most < slowest->most) { slowest = offset; }
        if (!fastest || offset.least > fastest->least) { fastest = offset; }
    }
    // Seconds are whole: one of them is not known on each side.
    if (slowest && fastest->least - slowest->most > k_skew_seconds + 1) {
        return {Outcome::fail, fmt::format("{} is at least {} s ahead of {}", fastest->node,
                                           fastest->least - slowest->most - 1, slowest->node)};
    }
    // Nothing in the cluster depends on the clock here.
    const auto ahead = slowest ? std::max(slowest->least, -fastest->most) : 0;
    if (ahead > k_skew_seconds) {
        return {Outcome::warn,
                fmt::format("the clock of this machine is at least {} {} that of every node",
                            base::format_duration(std::chrono::seconds(ahead)),
                            slowest->least > 0 ? "behind" : "ahead of"),
                "set it: the times of the record come from it"};
    }
    if (!unknown.empty()) { return {Outcome::skip, fmt::format("no answer from {}", name_some(unknown))}; }
    return {Outcome::ok, fmt::format("clocks of {} differ by at most {} s, as far as calls can tell",
                                     base::counted(input.nodes->size(), "node"), k_skew_seconds)};
}

constexpr CheckRow k_service_rows[] = {
    {"apiserver-each-ready", apiserver_each_ready},
    {"removed-api-requested", removed_api_requested},
    {"kubelet-healthz", kubelet_healthz},
    {"kubelet-static-path", kubelet_static_path},
    {"config-drift", config_drift},
    {"ca-available", ca_available},
    {"package-held", package_held},
    {"auto-updaters", auto_updaters},
    {"clock-skew", clock_skew},
};

}  // namespace

std::span<const CheckRow> service_checks() noexcept { return k_service_rows; }

}  // namespace kmm::kubernetes
