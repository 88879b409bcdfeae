// SPDX-License-Identifier: Apache-2.0
// Entries to a connection: the checks of clientcmd's validation.go, with places.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/kubeconfig.hpp"
#include "kube/kubeconfig_parts.hpp"
#include "net/url.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"

namespace kmm::kube {

namespace {

std::string environment_text(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::vector<std::string> candidate_files(const ConfigRequest& request) {
    if (request.file) { return {*request.file}; }
    std::vector<std::string> files;
    if (!request.variable.empty()) {
        for (const auto piece : base::split(request.variable, ':')) {
            if (!piece.empty() && std::find(files.begin(), files.end(), piece) == files.end()) {
                files.emplace_back(piece);
            }
        }
        return files;
    }
    if (!request.home.empty()) { files.push_back(request.home + "/.kube/config"); }
    return files;
}

bool has_account(const ConfigRequest& request) {
    return !request.service_host.empty() && !request.service_port.empty() &&
           ::access((request.account_directory + "/token").c_str(), F_OK) == 0;
}

std::string nearest_hint(const std::string& word, const ConfigEntries& entries, const char* otherwise) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : entries) { names.push_back(name); }
    const auto near = base::nearest(word, names);
    if (near) { return fmt::format("did you mean {}?", *near); }
    return names.empty() ? otherwise : fmt::format("there are: {}", base::join(names, ", "));
}

/// As client-go's DefaultServerURL: without a scheme it is http, or https if there is anything that TLS needs.
std::string server_url(const EntryReader& cluster, bool has_tls) {
    std::string server = cluster.text("server");
    if (server.empty()) { throw cluster.fault("server", "expected the URL of an API server, found none"); }
    if (server.find("://") == std::string::npos) { server = (has_tls ? "https://" : "http://") + server; }
    while (server.ends_with('/')) { server.pop_back(); }
    const auto url = net::parse_url(server);
    if (url && !url->user_info.empty()) {
        throw cluster.fault("server", "expected a URL without a login, found \"" +
                                          base::escape(net::redact_url(server)) + "\" with one");
    }
    if (!url || !url->query.empty()) {
        throw cluster.fault("server",
                            "expected an http or https URL, found \"" + base::escape(net::redact_url(server)) + "\"");
    }
    return server;
}

void read_cluster(const ConfigEntry& entry, Connection& connection) {
    const EntryReader cluster(entry);
    connection.tls.ca_pem = cluster.content("certificate-authority");
    connection.tls.insecure = cluster.flag("insecure-skip-tls-verify");
    connection.tls.server_name = cluster.text("tls-server-name");
    if (connection.tls.insecure && !connection.tls.ca_pem.empty()) {
        throw cluster.fault("insecure-skip-tls-verify", "expected no certificate-authority beside it, found one");
    }
    if (!connection.tls.ca_pem.empty() && connection.tls.ca_pem.find("-----BEGIN") == std::string::npos) {
        const bool inline_data = cluster.has("certificate-authority-data");
        throw cluster.fault(inline_data ? "certificate-authority-data" : "certificate-authority",
                            "expected certificates in PEM form, found something else");
    }
    connection.server = server_url(cluster, connection.tls.insecure || !connection.tls.ca_pem.empty());
    connection.proxy = cluster.text("proxy-url");
    if (!connection.proxy.empty()) {
        const std::size_t colon = connection.proxy.find("://");
        const std::string scheme = connection.proxy.substr(0, colon == std::string::npos ? 0 : colon);
        if (scheme != "http" && scheme != "https" && scheme != "socks5") {
            throw cluster.fault("proxy-url", "expected an http, https or socks5 URL, found \"" +
                                                 base::escape(net::redact_url(connection.proxy)) + "\"");
        }
    }
}

/// What login programs of client.authentication.k8s.io get of the cluster's extensions; null for nothing.
value::Node plugin_config(const ConfigEntry& entry) {
    const EntryReader cluster(entry);
    const value::Node* extensions = cluster.list("extensions");
    if (extensions == nullptr) { return {}; }
    for (const auto& item : extensions->items()) {
        if (item.get_string({"name"}) != "client.authentication.k8s.io/exec") { continue; }
        const value::Node* extension = item.find("extension");
        return extension == nullptr ? value::Node() : *extension;
    }
    return {};
}

Interactive interactive_mode(const EntryReader& exec, const std::string& api_version) {
    const std::string mode = exec.text("interactiveMode");
    if (mode == "Never") { return Interactive::never; }
    if (mode == "Always") { return Interactive::always; }
    // v1 requires it, v1beta1 takes IfAvailable for none.
    if (mode == "IfAvailable" || (mode.empty() && !api_version.ends_with("/v1"))) { return Interactive::if_available; }
    throw exec.fault("interactiveMode", "expected Never, IfAvailable or Always, found \"" + base::escape(mode) + "\"");
}

ExecPlugin read_exec(const EntryReader& user) {
    const EntryReader exec(*user.mapping("exec"), user.file());
    ExecPlugin plugin;
    plugin.origin = user.place("exec");
    plugin.command = exec.text("command");
    if (plugin.command.empty()) { throw exec.fault("command", "expected the name of a program, found none"); }
    if (plugin.command.find('/') != std::string::npos) { plugin.command = exec.resolve(plugin.command); }
    plugin.args = exec.texts("args");
    plugin.install_hint = exec.text("installHint");
    plugin.provide_cluster_info = exec.flag("provideClusterInfo");
    plugin.api_version = exec.text("apiVersion");
    constexpr std::string_view k_group = "client.authentication.k8s.io/";
    if (plugin.api_version != std::string(k_group) + "v1" && plugin.api_version != std::string(k_group) + "v1beta1") {
        throw exec.fault("apiVersion", fmt::format("expected {0}v1 or {0}v1beta1, found \"{1}\"", k_group,
                                                   base::escape(plugin.api_version)));
    }
    plugin.interactive = interactive_mode(exec, plugin.api_version);
    if (const value::Node* env = exec.list("env"); env != nullptr) {
        for (const auto& item : env->items()) {
            const EntryReader variable(item, user.file());
            if (variable.text("name").empty()) {
                throw variable.fault("name", "expected the name of a variable, found none");
            }
            plugin.env.emplace_back(variable.text("name"), variable.text("value"));
        }
    }
    return plugin;
}

/// The token of users[].user.auth-provider: of the providers that client-go had it has kept oidc, whose token stands
/// in the kubeconfig. kubectl replaces an expired one there.
std::string provider_token(const EntryReader& user) {
    const EntryReader provider(*user.mapping("auth-provider"), user.file());
    if (provider.text("name") != "oidc") {
        throw user.fault("auth-provider",
                         "expected exec in its place, found a way to log in that Kubernetes has given up");
    }
    const value::Node* config = provider.mapping("config");
    std::string token = config == nullptr ? "" : EntryReader(*config, user.file()).text("id-token");
    if (token.empty()) {
        throw user.fault("auth-provider", "expected an id-token in config, found none")
            .hint("kubectl version asks the provider for one and writes it there");
    }
    return token;
}

Impersonation read_impersonation(const EntryReader& user) {
    Impersonation result;
    result.user = user.text("as");
    result.uid = user.text("as-uid");
    result.groups = user.texts("as-groups");
    if (const value::Node* extra = user.mapping("as-user-extra"); extra != nullptr) {
        const EntryReader entries(*extra, user.file());
        for (const auto& member : extra->members()) {
            result.extra.emplace_back(member.key, entries.texts(member.key));
        }
    }
    if (result.user.empty() && (!result.uid.empty() || !result.groups.empty() || !result.extra.empty())) {
        throw user.fault("as", "expected a user beside as-uid, as-groups and as-user-extra, found none");
    }
    return result;
}

/// Who listens on the way would have them.
void withhold(Connection& connection) {
    connection.is_withheld = connection.has_credentials();
    for (auto* secret : {&connection.token, &connection.token_file, &connection.username, &connection.password,
                         &connection.tls.client_certificate_pem, &connection.tls.client_key_pem}) {
        secret->clear();
    }
    connection.exec.reset();
}

void read_user(const ConfigEntry& entry, Connection& connection) {
    const EntryReader user(entry);
    connection.tls.client_certificate_pem = user.content("client-certificate");
    connection.tls.client_key_pem = user.content("client-key");
    if (connection.tls.client_certificate_pem.empty() != connection.tls.client_key_pem.empty()) {
        const bool no_key = connection.tls.client_key_pem.empty();
        throw user.fault(
            no_key ? "client-certificate" : "client-key",
            fmt::format("expected {} beside it, found none", no_key ? "client-key" : "client-certificate"));
    }
    connection.token = user.text("token");
    connection.token_file = user.resolve(user.text("tokenFile"));
    connection.username = user.text("username");
    connection.password = user.text("password");
    const bool has_token = !connection.token.empty() || !connection.token_file.empty();
    if (has_token && !connection.username.empty()) {
        throw user.fault("username", "expected one way to log in, found a token and a user name");
    }
    if (user.mapping("exec") != nullptr) { connection.exec = read_exec(user); }
    // As client-go has it: what is written down is used, and the program is not asked.
    const bool has_certificate = !connection.tls.client_certificate_pem.empty();
    if (has_token || has_certificate || !connection.username.empty()) { connection.exec.reset(); }
    if (user.mapping("auth-provider") != nullptr && !connection.exec && !has_token) {
        connection.token = provider_token(user);
    }
    connection.impersonation = read_impersonation(user);
}

Connection account_connection(const ConfigRequest& request) {
    Connection connection;
    const bool numeric_v6 = request.service_host.find(':') != std::string::npos;
    connection.context = connection.cluster = "in-cluster";
    connection.server = fmt::format(
        "https://{}:{}", numeric_v6 ? "[" + request.service_host + "]" : request.service_host, request.service_port);
    connection.origin = request.account_directory;
    connection.token_file = request.account_directory + "/token";
    connection.namespace_ = "default";
    const std::string ca = request.account_directory + "/ca.crt";
    if (::access(ca.c_str(), F_OK) == 0) { connection.tls.ca_pem = sys::read_trusted_file(ca, "CA file"); }
    const std::string ns = request.account_directory + "/namespace";
    if (::access(ns.c_str(), F_OK) == 0) { connection.namespace_ = std::string(base::trim(sys::read_file(ns))); }
    return connection;
}

MergedConfig merged_of(const ConfigRequest& request) {
    return merge_configs(candidate_files(request), request.file ? Presence::required : Presence::optional);
}

const ConfigEntry& chosen_context(const ConfigRequest& request, const MergedConfig& merged, std::string& name) {
    name = request.context.empty() ? merged.current_context : request.context;
    if (name.empty()) {
        throw Error(Exit::config, "bad-kubeconfig", "expected a current-context, found none")
            .at(Position{merged.files.front(), 0, 0})
            .hint(merged.contexts.empty() ? "--kubeconfig FILE names another file"
                                          : "--context NAME; " + nearest_hint("", merged.contexts, ""));
    }
    const auto found = merged.contexts.find(name);
    if (found != merged.contexts.end()) { return found->second; }
    Error error(Exit::not_found, "context-not-found", "there is no context " + base::escape(name));
    if (request.context.empty()) { error.at(merged.current_origin); }
    throw std::move(error).hint(nearest_hint(name, merged.contexts, "the kubeconfig has no contexts"));
}

}  // namespace

ConfigRequest request_from_environment() {
    ConfigRequest request;
    request.variable = environment_text("KUBECONFIG");
    request.home = environment_text("HOME");
    request.service_host = environment_text("KUBERNETES_SERVICE_HOST");
    request.service_port = environment_text("KUBERNETES_SERVICE_PORT");
    return request;
}

bool connection_configured(const ConfigRequest& request) {
    if (request.file) { return true; }
    const auto files = candidate_files(request);
    const auto exists = [](const std::string& file) { return ::access(file.c_str(), F_OK) == 0; };
    return std::any_of(files.begin(), files.end(), exists) || has_account(request);
}

std::string absent_kubeconfig(const ConfigRequest& request) {
    if (request.variable.empty() || connection_configured(request)) { return ""; }
    return fmt::format("names {}, which is not there", base::escape(request.variable));
}

Connection load_connection(const ConfigRequest& request) {
    const MergedConfig merged = merged_of(request);
    const bool is_empty = merged.contexts.empty() && merged.clusters.empty() && merged.current_context.empty();
    if (!request.file && is_empty && request.context.empty() && has_account(request)) {
        return account_connection(request);
    }
    if (merged.files.empty()) {
        throw Error(Exit::not_found, "kubeconfig-not-found", "there is no kubeconfig and no service account")
            .hint("--kubeconfig FILE, or KUBECONFIG");
    }
    Connection connection;
    const ConfigEntry& entry = chosen_context(request, merged, connection.context);
    const EntryReader context(entry);
    connection.origin = entry.file;
    connection.namespace_ = context.text("namespace").empty() ? "default" : context.text("namespace");
    connection.cluster = context.text("cluster");
    const auto cluster = merged.clusters.find(connection.cluster);
    if (cluster == merged.clusters.end()) {
        throw context
            .fault("cluster",
                   fmt::format("expected a name of clusters, found \"{}\"", base::escape(connection.cluster)))
            .hint(nearest_hint(connection.cluster, merged.clusters, "the kubeconfig has no clusters"));
    }
    const auto what = [&] { return fmt::format("context {}", base::escape(connection.context)); };
    with_context(what, [&] { read_cluster(cluster->second, connection); });
    const std::string user_name = context.text("user");
    if (user_name.empty()) { return connection; }
    const auto user = merged.users.find(user_name);
    if (user == merged.users.end()) {
        throw context.fault("user", fmt::format("expected a name of users, found \"{}\"", base::escape(user_name)))
            .hint(nearest_hint(user_name, merged.users, "the kubeconfig has no users"));
    }
    with_context(what, [&] { read_user(user->second, connection); });
    if (connection.exec && connection.exec->provide_cluster_info) {
        connection.exec->cluster_config = plugin_config(cluster->second);
    }
    if (connection.server.starts_with("http://")) { withhold(connection); }
    return connection;
}

std::vector<std::string> context_names(const ConfigRequest& request) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : merged_of(request).contexts) { names.push_back(name); }
    return names;
}

}  // namespace kmm::kube
