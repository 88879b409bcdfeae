// SPDX-License-Identifier: Apache-2.0
// Checks of what each node says of itself: kmm-worker kubernetes facts.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "kubernetes/check/node_checks.hpp"
#include "kubernetes/finding/node_findings.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::int64_t k_expiry_seconds = 7 * 24 * 3600;
constexpr std::int64_t k_mebi = 1024 * 1024;

/// Space that the upgrade needs in the directory of a purpose: backups of manifests and of etcd's data, images.
struct Space {
    std::string_view purpose;
    std::int64_t bytes;
};
constexpr Space k_spaces[] = {
    {"kubernetes", 100 * k_mebi}, {"etcd", 512 * k_mebi}, {"kubelet", 100 * k_mebi}, {"images", 1024 * k_mebi}};
/// kubeadm copies the data of etcd into /etc/kubernetes/tmp each time that it changes etcd.
constexpr std::int64_t k_copies = 2;

Finding node_reach(const CheckInput& input) {
    std::vector<std::string> problems, foreign;
    for (const auto& [name, answer] : *input.nodes) {
        if (answer.problem.empty()) { continue; }
        // Without an upgrade nobody has to leave out what cannot run kmm-worker.
        const auto& nodes = input.inventory.nodes;
        const auto node =
            std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each.meta.name == name; });
        const auto system = input.target || node == nodes.end() ? std::string() : foreign_system(*node);
        if (system.empty()) {
            // What a worker says does not name its node.
            const bool is_named = answer.problem.find("node " + name) != std::string::npos;
            problems.push_back(is_named ? answer.problem : fmt::format("{}: {}", base::escape(name), answer.problem));
        } else { foreign.push_back(fmt::format("{} ({})", base::escape(name), system)); }
    }
    if (problems.empty() && !foreign.empty()) {
        return {Outcome::skip, fmt::format("kmm-worker runs on Linux only: {}", name_some(foreign))};
    }
    return fail_if_any(problems, base::counted(input.nodes->size(), "node") + " answered");
}

Finding node_name_matches(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_node(
        input, "every kubelet uses the name of its Node", [&](const std::string& name, const Node& facts) {
            const auto own = text_of(facts, {"node"});
            if (own.empty()) { unknown.push_back(fmt::format("{} ({})", base::escape(name), unread(facts, "node"))); }
            return own.empty() || own == name ? std::string()
                                              : fmt::format("its kubelet has the certificate of {}", base::escape(own));
        });
    return known_or_skipped(std::move(found), unknown);
}

Finding kubelet_identity(const CheckInput& input) {
    return each_node(input, "every kubelet has a certificate of its own", [](const std::string&, const Node& facts) {
        return text_of(facts, {"node"}).empty() ? "the name in its certificate is unknown: " + unread(facts, "node")
                                                : std::string();
    });
}

Finding manifests_present(const CheckInput& input) {
    return each_node(input, "the manifests of every control plane are whole",
                     [](const std::string&, const Node& facts) {
                         if (flag_of(facts, {"controlPlane"}) == false) {
                             return std::string();
                         }
                         const auto is_whole = flag_of(facts, {"manifestsWhole"});
                         if (is_whole == true) {
                             return std::string();
                         }
                         std::vector<std::string> lacking;
                         if (const auto* list = facts.find("manifests")) {
                             for (const auto& item : list->items()) {
                                 if (flag_of(item, {"expected"}) == true && flag_of(item, {"whole"}) != true) {
                                     lacking.push_back(item.get_string({"component"}));
                                 }
                             }
                         }
                         return lacking.empty() ? "manifests: " + unread(facts, "manifests")
                                                : fmt::format("not whole: {}", base::join(lacking, ", "));
                     });
}

Finding stray_manifests(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_node(input, "each static Pod is declared once", [&](const std::string& name, const Node& facts) {
        std::vector<std::string> files;
        if (const auto reason = unread_reason(facts, "manifests"); !reason.empty()) {
            unknown.push_back(fmt::format("{} ({})", base::escape(name), reason));
        }
        if (const auto* list = facts.find("strayManifests")) {
            for (const auto& item : list->items()) {
                files.push_back(fmt::format("{} declares {} too", base::escape(item.get_string({"file"})),
                                            base::escape(item.get_string({"pod"}))));
            }
        }
        return base::join(files, ", ");
    });
    return known_or_skipped(std::move(found), unknown);
}

Finding kubeadm_running(const CheckInput& input) {
    return each_node(input, "no kubeadm is running", [](const std::string&, const Node& facts) {
        if (text_of(facts, {"job", "state"}) == "running") {
            return fmt::format("the job {} is under way", base::escape(text_of(facts, {"job", "key"})));
        }
        const auto is_running = flag_of(facts, {"kubeadm", "running"});
        if (is_running == false) {
            return std::string();
        }
        return is_running ? std::string("kubeadm is running")
                          : "whether kubeadm is running is unknown: " + unread(facts, "kubeadm.running");
    });
}

/// What to do about a certificate that ends: kubeadm renews neither authorities nor what kubelets have.
std::string renewal_of(std::string_view file) {
    if (file.ends_with("/ca.crt") || file.ends_with("-ca.crt")) {
        return "kubeadm renews no authority: replace it by hand, and all certificates that it has signed";
    }
    if (file.find("/kubelet/") != std::string_view::npos || file.ends_with("kubelet.conf")) {
        return "a kubelet renews its own, see journalctl -u kubelet; for one that has expired, on a control plane: "
               "kubeadm kubeconfig user --org system:nodes --client-name system:node:NODE; that is "
               "/etc/kubernetes/kubelet.conf of the node, then restart the kubelet";
    }
    return "kubeadm certs renew all";
}

Finding cert_expiry(const CheckInput& input) {
    std::vector<std::string> unknown;
    std::set<std::string> fixes;
    auto found = each_node(input, "no certificate expires within 7 days", [&](const std::string& name,
                                                                              const Node& facts) {
        std::vector<std::string> problems;
        const auto now = time_on(facts, input.now);
        const auto* list = facts.find("certificates");
        if (list == nullptr || list->items().empty()) {
            unknown.push_back(fmt::format("{} (no certificate was found)", base::escape(name)));
        } else {
            for (const auto& item : list->items()) {
                const auto file = base::escape(item.get_string({"file"}));
                // A copy, for kubectl: nothing of the node uses it, and kubeadm does not renew it.
                const bool is_copy = !is_control_plane_node(input, name) && file.ends_with("admin.conf");
                if (is_copy) { continue; }
                if (const auto problem = item.get_string({"problem"}); !problem.empty()) {
                    problems.push_back(fmt::format("{}: {}", file, base::escape(problem)));
                    continue;
                }
                const auto until = item.get_string({"notAfter"});
                const auto end = base::parse_rfc3339(until);
                if (!end || *end - now < k_expiry_seconds) {
                    problems.push_back(fmt::format("{} {} {}", file,
                                                   end && *end <= now ? "has expired on" : "expires on",
                                                   base::escape(until)));
                    fixes.insert(renewal_of(item.get_string({"file"})));
                }
            }
        }
        return base::join(problems, ", ");
    });
    if (found.outcome == Outcome::fail) {
        found.fix = base::join(std::vector<std::string>(fixes.begin(), fixes.end()), "; ");
    }
    return known_or_skipped(std::move(found), unknown);
}

Finding runtime_up(const CheckInput& input) {
    return each_node(
        input, "the socket of every container runtime is there", [](const std::string&, const Node& facts) {
            const auto is_present = flag_of(facts, {"runtimeSocket", "present"});
            if (is_present == true) {
                return std::string();
            }
            const auto path = text_of(facts, {"runtimeSocket", "path"});
            return path.empty() ? "the socket of the container runtime is unknown: " +
                                      unread(facts, path.empty() ? "runtimeSocket.path" : "runtimeSocket.present")
                                : fmt::format("there is no socket {}", base::escape(path));
        });
}

Finding disk_space(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found = each_node(input, "there is space for backups and images", [&](const std::string& name,
                                                                               const Node& facts) {
        std::vector<std::string> problems;
        const auto* list = facts.find("disks");
        const auto* etcd = facts.find("etcd");
        const bool has_etcd = etcd != nullptr && etcd->is_mapping();
        const auto* database = has_etcd ? etcd->find("sizeBytes") : nullptr;
        const auto copies = k_copies * (database == nullptr ? 0 : database->as_int().value_or(0));
        if (const auto reason = unread_reason(facts, "etcd"); !reason.empty() || (has_etcd && copies == 0)) {
            unknown.push_back(fmt::format("{} (size of the data of etcd{}{})", base::escape(name),
                                          reason.empty() ? "" : ": ", reason));
        }
        std::set<std::string> reasons;  // one may be that of all disks
        for (const auto& space : k_spaces) {
            const auto reason = unread_reason(facts, fmt::format("disk {}", space.purpose));
            if (!reason.empty() && reasons.insert(reason).second)
                unknown.push_back(fmt::format("{} ({})", base::escape(name), reason));
            if (list == nullptr) continue;
            for (const auto& item : list->items()) {
                if (item.get_string({"purpose"}) != space.purpose) continue;
                const auto* free = item.find("freeBytes");
                const auto bytes = free == nullptr ? std::nullopt : free->as_int();
                const auto path = base::escape(item.get_string({"path"}));
                if (!bytes) { unknown.push_back(fmt::format("{} (free space of {})", base::escape(name), path)); }
                const bool has_copies = space.purpose == "kubernetes" && copies != 0;
                const auto needed = space.bytes + (has_copies ? copies : 0);
                if (!bytes || *bytes >= needed) continue;
                problems.push_back(fmt::format(
                    "{} has {} free, expected {}{}", path, base::format_bytes(static_cast<std::uint64_t>(*bytes)),
                    base::format_bytes(static_cast<std::uint64_t>(needed)),
                    has_copies ? fmt::format(", with {} copies of the data of etcd", k_copies) : std::string()));
            }
        }
        if (reasons.empty() && (list == nullptr || list->items().empty()))
            unknown.push_back(fmt::format("{} (no disk was reported)", base::escape(name)));
        return base::join(problems, ", ");
    });
    return known_or_skipped(std::move(found), unknown);
}

constexpr CheckRow k_node_rows[] = {
    {"node-reach", node_reach},
    {"node-name-matches", node_name_matches},
    {"kubelet-identity", kubelet_identity},
    {"manifests-present", manifests_present},
    {"stray-manifests", stray_manifests},
    {"kubeadm-running", kubeadm_running},
    {"cert-expiry", cert_expiry},
    {"runtime-up", runtime_up},
    {"disk-space", disk_space},
};

}  // namespace

std::span<const CheckRow> node_checks() noexcept { return k_node_rows; }

}  // namespace kmm::kubernetes
