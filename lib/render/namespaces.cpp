// SPDX-License-Identifier: Apache-2.0
// Namespaces of Modules, and what may do what. Facts: KMM 1.2, 4.3.
#include <map>
#include <set>

#include "api/labels.hpp"
#include "render/parts.hpp"

namespace kmm::render {

namespace {

using value::Node;

constexpr std::string_view k_rbac_version = "rbac.authorization.k8s.io/v1";
constexpr std::string_view k_rbac_group = "rbac.authorization.k8s.io";
constexpr std::string_view k_core_group;
constexpr std::string_view k_tools_namespace = "kmm-tools";
constexpr std::string_view k_plan_name = "kmm-plan";
constexpr std::string_view k_upgrade_name = "kmm-upgrade";
constexpr std::string_view k_default_account = "default";

Node named_metadata(std::string_view name) { return Node::mapping({{"name", name}}); }

Node namespaced_metadata(std::string_view name, std::string_view ns) {
    return Node::mapping({{"name", name}, {"namespace", ns}});
}

Node rule(std::string_view group, const std::vector<std::string>& resources, const std::vector<std::string>& verbs) {
    return Node::mapping({{"apiGroups", Node::strings({std::string(group)})},
                          {"resources", Node::strings(resources)},
                          {"verbs", Node::strings(verbs)}});
}

Node service_account(std::string_view name, std::string_view ns) {
    return Node::mapping(
        {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", namespaced_metadata(name, ns)}});
}

Node cluster_role(std::string_view name, std::vector<Node> rules) {
    return Node::mapping({{"apiVersion", k_rbac_version},
                          {"kind", "ClusterRole"},
                          {"metadata", named_metadata(name)},
                          {"rules", Node::sequence(std::move(rules))}});
}

Node cluster_role_binding(std::string_view name) {
    const Node subject = Node::mapping({{"kind", "ServiceAccount"}, {"name", name}, {"namespace", k_tools_namespace}});
    return Node::mapping(
        {{"apiVersion", k_rbac_version},
         {"kind", "ClusterRoleBinding"},
         {"metadata", named_metadata(name)},
         {"roleRef", Node::mapping({{"apiGroup", k_rbac_group}, {"kind", "ClusterRole"}, {"name", name}})},
         {"subjects", Node::sequence({subject})}});
}

Node role(std::string_view ns, std::vector<Node> rules) {
    return Node::mapping({{"apiVersion", k_rbac_version},
                          {"kind", "Role"},
                          {"metadata", namespaced_metadata(k_upgrade_name, ns)},
                          {"rules", Node::sequence(std::move(rules))}});
}

Node role_binding(std::string_view ns) {
    const Node subject =
        Node::mapping({{"kind", "ServiceAccount"}, {"name", k_upgrade_name}, {"namespace", k_tools_namespace}});
    return Node::mapping(
        {{"apiVersion", k_rbac_version},
         {"kind", "RoleBinding"},
         {"metadata", namespaced_metadata(k_upgrade_name, ns)},
         {"roleRef", Node::mapping({{"apiGroup", k_rbac_group}, {"kind", "Role"}, {"name", k_upgrade_name}})},
         {"subjects", Node::sequence({subject})}});
}

/// What the Modules of one namespace name.
struct NamespaceUse {
    std::set<std::string> accounts, pull_secrets;
};

std::map<std::string, NamespaceUse> uses_of(const api::Objects& objects) {
    std::map<std::string, NamespaceUse> result;
    for (const auto& module : objects.modules) {
        if (module.meta.deleting) { continue; }
        NamespaceUse& use = result[module.meta.namespace_];
        if (module.module_loader) { use.accounts.insert(module.module_loader->service_account_name); }
        for (const auto* plugin : {&module.device_plugin, &module.dra}) {
            if (*plugin) { use.accounts.insert((*plugin)->get_string({"serviceAccountName"})); }
        }
        if (!module.image_repo_secret.empty()) { use.pull_secrets.insert(module.image_repo_secret); }
        use.accounts.erase("");
        use.accounts.erase(std::string(k_default_account));
    }
    return result;
}

}  // namespace

void add_namespaces(Scene& scene, std::vector<Node>& out) {
    for (const auto& [ns, use] : uses_of(scene.objects)) {
        // worker and plugin Pods are privileged or add a capability: the default of a cluster may refuse them
        const Node labels = Node::mapping({{std::string(api::k_label_contains_modules), ""},
                                           {"kubernetes.io/metadata.name", ns},
                                           {"pod-security.kubernetes.io/enforce", "privileged"}});
        out.push_back(Node::mapping({{"apiVersion", "v1"},
                                     {"kind", "Namespace"},
                                     {"metadata", Node::mapping({{"labels", labels}, {"name", ns}})}}));
    }
}

void add_rbac(Scene& scene, std::vector<Node>& out) {
    const std::vector<std::string> read{"get", "list"};
    out.push_back(
        Node::mapping({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", named_metadata(k_tools_namespace)}}));
    out.push_back(service_account(k_plan_name, k_tools_namespace));
    out.push_back(service_account(k_upgrade_name, k_tools_namespace));
    const auto uses = uses_of(scene.objects);
    for (const auto& [ns, use] : uses) {
        for (const auto& account : use.accounts) { out.push_back(service_account(account, ns)); }
    }
    out.push_back(cluster_role(k_plan_name, {rule(k_core_group, {"nodes"}, read),
                                             rule(api::k_group, {"modules", "nodemodulesconfigs"}, read)}));
    out.push_back(cluster_role(
        k_upgrade_name, {rule(k_core_group, {"nodes"}, {"get", "list", "patch"}), rule(api::k_group, {"modules"}, read),
                         rule(api::k_group, {"nodemodulesconfigs"}, {"create", "get", "list", "patch"}),
                         rule(api::k_group, {"nodemodulesconfigs/status"}, {"patch"})}));
    out.push_back(cluster_role_binding(k_plan_name));
    out.push_back(cluster_role_binding(k_upgrade_name));
    for (const auto& [ns, use] : uses) {
        if (use.pull_secrets.empty()) { continue; }
        Node secrets = rule(k_core_group, {"secrets"}, {"get"});
        secrets.set("resourceNames", Node::strings({use.pull_secrets.begin(), use.pull_secrets.end()}));
        out.push_back(role(ns, {std::move(secrets)}));
        out.push_back(role_binding(ns));
    }
}

}  // namespace kmm::render
