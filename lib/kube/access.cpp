// SPDX-License-Identifier: Apache-2.0
#include "kube/access.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/client.hpp"
#include "value/writer.hpp"

namespace kmm::kube {

namespace {

using value::Node;

Node rule_nodes(const std::vector<Rule>& rules) {
    // Resources with the same verbs share a rule.
    std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>> verbs;
    for (const auto& rule : rules) {
        const std::string resource = rule.subresource.empty() ? rule.resource : rule.resource + "/" + rule.subresource;
        verbs[{rule.group, resource, rule.name}].insert(rule.verb);
    }
    std::map<std::tuple<std::string, std::string, std::set<std::string>>, std::vector<std::string>> resources;
    for (const auto& [key, set] : verbs) {
        resources[{std::get<0>(key), std::get<2>(key), set}].push_back(std::get<1>(key));
    }
    Node list = Node::sequence();
    for (const auto& [key, names] : resources) {
        const auto& [group, name, set] = key;
        Node rule = Node::mapping();
        rule.set("apiGroups", Node::strings({group}));
        rule.set("resources", Node::strings(names));
        if (!name.empty()) { rule.set("resourceNames", Node::strings({name})); }
        rule.set("verbs", Node::strings({set.begin(), set.end()}));
        list.push_back(std::move(rule));
    }
    return list;
}

Node metadata_of(const std::string& name, const std::string& ns) {
    Node metadata = Node::mapping({{"name", name}});
    if (!ns.empty()) { metadata.set("namespace", ns); }
    return metadata;
}

std::string role_and_binding(const std::vector<Rule>& rules, const std::string& name, const std::string& ns,
                             const Subject& subject) {
    const std::string kind = ns.empty() ? "ClusterRole" : "Role";
    constexpr const char* k_version = "rbac.authorization.k8s.io/v1";
    const Node role = Node::mapping({{"apiVersion", k_version},
                                     {"kind", kind},
                                     {"metadata", metadata_of(name, ns)},
                                     {"rules", rule_nodes(rules)}});
    Node who = Node::mapping({{"kind", subject.kind}, {"name", subject.name}});
    if (subject.kind == "ServiceAccount") {
        who.set("namespace", subject.namespace_);
    } else {
        who.set("apiGroup", "rbac.authorization.k8s.io");
    }
    const Node binding = Node::mapping(
        {{"apiVersion", k_version},
         {"kind", kind + "Binding"},
         {"metadata", metadata_of(name, ns)},
         {"roleRef", Node::mapping({{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", kind}, {"name", name}})},
         {"subjects", Node::sequence({who})}});
    return value::to_yaml(role) + "---\n" + value::to_yaml(binding);
}

Subject subject_of(const std::string& user) {
    constexpr std::string_view k_account = "system:serviceaccount:";
    if (user.starts_with(k_account)) {
        const auto parts = base::split(std::string_view(user).substr(k_account.size()), ':');
        if (parts.size() == 2) { return {"ServiceAccount", std::string(parts[1]), std::string(parts[0])}; }
    }
    return {"User", user.empty() ? "USER" : user, ""};
}

/// A name of its own for each set of rights and each subject (32 bits of FNV-1a): applying a role replaces the rules of
/// one that has the same name.
std::string role_name_for(const std::string& prefix, const std::vector<Rule>& rules, const Subject& subject) {
    std::uint32_t hash = 0x811c9dc5U;
    for (const char c : rbac_yaml(rules, prefix, subject)) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
    }
    return fmt::format("{}-{:08x}", prefix, hash);
}

/// Those of `rules` that the server says no to now.
std::vector<Rule> refused_rules(Client& client, const std::vector<Rule>& rules) {
    std::vector<Rule> missing;
    for (const auto& rule : rules) {
        Node attributes = Node::mapping({{"verb", rule.verb}, {"group", rule.group}, {"resource", rule.resource}});
        if (!rule.subresource.empty()) { attributes.set("subresource", rule.subresource); }
        if (!rule.namespace_.empty()) { attributes.set("namespace", rule.namespace_); }
        if (!rule.name.empty()) { attributes.set("name", rule.name); }
        const Node review = Node::mapping({{"apiVersion", "authorization.k8s.io/v1"},
                                           {"kind", "SelfSubjectAccessReview"},
                                           {"spec", Node::mapping({{"resourceAttributes", std::move(attributes)}})}});
        const Node answer = client.ask(resources::k_access_reviews, review);
        const Node* allowed = answer.find_path({"status", "allowed"});
        if (allowed == nullptr || !allowed->as_bool().value_or(false)) { missing.push_back(rule); }
    }
    return missing;
}

}  // namespace

std::vector<Rule> missing_rules(Client& client, const std::vector<Rule>& rules) {
    const auto begun = client.clock().monotonic();
    std::vector<Rule> missing = rules;
    for (;;) {
        const bool knew_roles = client.knows_roles();
        missing = refused_rules(client, missing);
        const auto verdict =
            missing.empty()
                ? Client::Verdict::stands
                : client.judge(knew_roles, begun,
                               fmt::format("no right to {} {}", missing.front().verb, missing.front().resource));
        if (verdict == Client::Verdict::again) { continue; }
        const auto& on_return = client.options().observer.on_return;
        if (verdict == Client::Verdict::stands && client.clock().monotonic() > begun && on_return) {
            on_return(client.clock().monotonic() - begun);
        }
        return missing;
    }
}

std::string rule_yaml(const std::vector<Rule>& rules) { return value::to_yaml(rule_nodes(rules)); }

std::string rbac_yaml(const std::vector<Rule>& rules, const std::string& role_name, const Subject& subject) {
    std::map<std::string, std::vector<Rule>> by_namespace;
    for (const auto& rule : rules) { by_namespace[rule.namespace_].push_back(rule); }
    std::string text;
    for (const auto& [ns, group] : by_namespace) {
        text += (text.empty() ? "" : "---\n") + role_and_binding(group, role_name, ns, subject);
    }
    return text;
}

Subject whoami(Client& client) {
    const Resource review{"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", Scope::cluster};
    try {
        const Node answer =
            client.ask(review, Node::mapping({{"apiVersion", review.api_version()}, {"kind", review.kind}}));
        return subject_of(answer.get_string({"status", "userInfo", "username"}));
    } catch (const Error& error) {
        if (error.http_cause() != 404 && error.http_cause() != 403) { throw; }
        return subject_of("");
    }
}

std::string anonymous_hint(const Connection& connection) {
    const std::string place =
        fmt::format("context {} of {}", base::escape(connection.context), base::escape(connection.origin));
    if (connection.is_withheld) {
        return fmt::format(
            "no credentials are sent over http: cluster.server of the cluster of {} must be an https URL, found {}",
            place, base::escape(connection.server));
    }
    if (!connection.has_credentials()) {
        return fmt::format("nothing to log in with: the user of {} has no token, certificate or login program", place);
    }
    return "the credentials were sent, but the API server does not see them: look at what stands before it "
           "(cluster.server, proxy-url)";
}

Error missing_error(Client& client, const std::vector<Rule>& missing, const std::string& role_name) {
    Error error(
        Exit::no_permission, "forbidden",
        fmt::format("{} of the rights that are needed {} missing", missing.size(), missing.size() == 1 ? "is" : "are"));
    for (const auto& rule : missing) {
        error.detail("right",
                     fmt::format("{} {}{}{}{}", rule.verb, rule.resource, rule.group.empty() ? "" : "." + rule.group,
                                 rule.subresource.empty() ? "" : "/" + rule.subresource,
                                 rule.namespace_.empty() ? "" : " in " + rule.namespace_));
    }
    const Subject subject = whoami(client);
    if (subject.name == k_anonymous) { return std::move(error).hint(anonymous_hint(client.connection())); }
    const std::string manifests = rbac_yaml(missing, role_name_for(role_name, missing, subject), subject);
    return std::move(error).hint("ask an admin of the cluster to apply this:\n" + std::string(base::trim(manifests)));
}

}  // namespace kmm::kube
