// SPDX-License-Identifier: Apache-2.0
#include "api/made_objects.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::api {

namespace {

using MemberPath = std::array<std::string_view, 3>;  ///< "" ends it

/// How a kind says which Secret is made of its objects.
struct SecretMaker {
    std::string_view group, kind;
    MemberPath list;       ///< of several Secrets in one object; empty: it makes one
    MemberPath name;       ///< below an item of the list, else below the object; empty or absent: metadata.name
    MemberPath namespace_ = {};  ///< likewise; empty or absent: metadata.namespace
};

/// Sources: bitnami-labs/sealed-secrets, external-secrets/external-secrets, hashicorp/vault-secrets-operator,
/// cert-manager/cert-manager, 1Password/onepassword-operator, Infisical/infisical, SparebankenVest/azure-key-vault-to-
/// kubernetes, isindir/sops-secrets-operator, kubernetes-sigs/secrets-store-csi-driver: their definitions.
constexpr std::array k_makers{
    SecretMaker{"bitnami.com", "SealedSecret", {}, {}},
    SecretMaker{"external-secrets.io", "ExternalSecret", {}, {"spec", "target", "name"}},
    SecretMaker{"secrets.hashicorp.com", "VaultStaticSecret", {}, {"spec", "destination", "name"}},
    SecretMaker{"secrets.hashicorp.com", "VaultDynamicSecret", {}, {"spec", "destination", "name"}},
    SecretMaker{"secrets.hashicorp.com", "VaultPKISecret", {}, {"spec", "destination", "name"}},
    SecretMaker{"secrets.hashicorp.com", "HCPVaultSecretsApp", {}, {"spec", "destination", "name"}},
    SecretMaker{"cert-manager.io", "Certificate", {}, {"spec", "secretName"}},
    SecretMaker{"onepassword.com", "OnePasswordItem", {}, {}},
    SecretMaker{"secrets.infisical.com",
                "InfisicalSecret",
                {},
                {"spec", "managedSecretReference", "secretName"},
                {"spec", "managedSecretReference", "secretNamespace"}},
    SecretMaker{"spv.no", "AzureKeyVaultSecret", {}, {"spec", "output", "secret"}},
    SecretMaker{"isindir.github.com", "SopsSecret", {"spec", "secretTemplates"}, {"name"}},
    SecretMaker{"secrets-store.csi.x-k8s.io", "SecretProviderClass", {"spec", "secretObjects"}, {"secretName"}},
    SecretMaker{"v1", "Secret", {}, {}},  // encrypted by sops, which leaves the keys as they are
};

/// nullptr for a path that is empty or leads nowhere.
const value::Node* find_at(const value::Node& node, const MemberPath& path) {
    const value::Node* found = path.front().empty() ? nullptr : &node;
    for (const auto key : path) {
        if (key.empty() || found == nullptr) { break; }
        found = found->is_mapping() ? found->find(key) : nullptr;
    }
    return found;
}

std::string text_at(const value::Node& node, const MemberPath& path) {
    const auto* found = find_at(node, path);
    if (found == nullptr) { return ""; }
    return found->is_mapping() ? found->get_string({"name"}) : found->is_string() ? found->text() : "";
}

void add_keys(value::Node& data, const value::Node* mapping) {
    if (mapping == nullptr || !mapping->is_mapping()) { return; }
    for (const auto& member : mapping->members()) { data.set(member.key, ""); }
}

/// The keys and the type of the Secret of a SealedSecret: the template may add some of each.
void describe_sealed(const value::Node& object, value::Node& secret, value::Node& data) {
    secret.set("type", object.get_string({"spec", "template", "type"}));
    const auto* sealed = object.find_path({"spec", "encryptedData"});
    add_keys(data, sealed);
    if (sealed != nullptr) { add_keys(data, object.find_path({"spec", "template", "data"})); }
}

/// Those of an ExternalSecret. What it takes from whole entries of the store, or templates elsewhere, is not known.
void describe_external(const value::Node& object, value::Node& secret, value::Node& data) {
    secret.set("type", object.get_string({"spec", "target", "template", "type"}));
    const auto* filled = object.find_path({"spec", "target", "template"});
    const auto is_used = [](const value::Node* node) {
        return node != nullptr && !(node->items().empty() && node->members().empty());
    };
    if (is_used(object.find_path({"spec", "dataFrom"})) ||
        is_used(object.find_path({"spec", "target", "template", "templateFrom"}))) {
        return;
    }
    const auto* templates = filled == nullptr ? nullptr : filled->find("data");
    const bool replaces = is_used(templates) && filled->get_string({"mergePolicy"}) != "Merge";
    if (is_used(templates)) { add_keys(data, templates); }
    const auto* entries = object.find_path({"spec", "data"});
    if (replaces || entries == nullptr) { return; }
    for (const auto& entry : entries->items()) {
        if (const auto key = entry.get_string({"secretKey"}); !key.empty()) { data.set(key, ""); }
    }
}

/// Those of a Secret whose values sops has encrypted.
void describe_encrypted(const value::Node& object, value::Node& secret, value::Node& data) {
    secret.set("type", object.get_string({"type"}));
    for (const char* list : {"data", "stringData"}) { add_keys(data, object.find(list)); }
}

}  // namespace

void find_made_secrets(const value::Document& document, const value::Node& holder,
                       std::optional<std::string_view> given_namespace, std::vector<WrappedObject>& made) {
    const std::string kind = holder.get_string({"kind"});
    const std::string api_version = holder.get_string({"apiVersion"});
    const std::string_view group = std::string_view(api_version).substr(0, api_version.find('/'));
    const auto* maker = std::find_if(k_makers.begin(), k_makers.end(),
                                     [&](const SecretMaker& row) { return row.kind == kind && row.group == group; });
    if (maker == k_makers.end()) { return; }
    const std::string own_name = holder.get_string({"metadata", "name"});
    std::string own_namespace = holder.get_string({"metadata", "namespace"});
    if (own_namespace.empty()) { own_namespace = given_namespace.value_or(""); }
    const auto add = [&](const value::Node& part) {
        std::string name = text_at(part, maker->name);
        std::string ns = text_at(part, maker->namespace_);
        if (name.empty()) { name = own_name; }
        if (ns.empty()) { ns = own_namespace; }
        if (name.empty() || ns.empty()) { return; }
        auto secret = value::Node::mapping({{"apiVersion", "v1"}, {"kind", "Secret"}});
        secret.set("metadata", value::Node::mapping({{"name", name}, {"namespace", ns}}));
        auto data = value::Node::mapping();
        if (kind == "SealedSecret") { describe_sealed(holder, secret, data); }
        if (kind == "ExternalSecret") { describe_external(holder, secret, data); }
        if (kind == "Secret") { describe_encrypted(holder, secret, data); }
        secret.set("data", std::move(data));
        secret.set_mark(part.mark());
        WrappedObject found;
        found.document = value::Document{document.file, std::move(secret), document.index};
        found.holder = fmt::format("{} {}{}{}", kind, base::escape(own_namespace), own_namespace.empty() ? "" : "/",
                                   base::escape(own_name));
        if (kind == "Secret") { found.holder = document.file; }
        made.push_back(std::move(found));
    };
    if (maker->list.front().empty()) { return add(holder); }
    if (const auto* list = find_at(holder, maker->list); list != nullptr) {
        for (const auto& part : list->items()) { add(part); }
    }
}

bool is_made(const WrappedObject& object) { return object.document.root.get_string({"apiVersion"}) == "v1"; }

}  // namespace kmm::api
