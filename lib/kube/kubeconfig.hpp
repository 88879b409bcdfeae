// SPDX-License-Identifier: Apache-2.0
// Where the API server is and who we are there: kubeconfig files and the service account of a Pod.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "net/http.hpp"
#include "value/node.hpp"

namespace kmm::kube {

/// What an exec plugin may do with the terminal (client.authentication.k8s.io, interactiveMode).
enum class Interactive { never, if_available, always };

/// users[].user.exec: a program that prints an ExecCredential.
struct ExecPlugin {
    std::string command;  ///< relative paths with a slash are made absolute against the file's directory
    std::vector<std::string> args;
    std::vector<std::pair<std::string, std::string>> env;
    std::string api_version;  ///< client.authentication.k8s.io/v1 or v1beta1
    std::string install_hint;
    Interactive interactive = Interactive::if_available;
    bool provide_cluster_info = false;
    value::Node cluster_config;  ///< what the cluster's entry has for the program, null for nothing
    Position origin;
};

/// Who the requests are made as, when that is not who we are.
struct Impersonation {
    std::string user, uid;
    std::vector<std::string> groups;
    std::vector<std::pair<std::string, std::vector<std::string>>> extra;
};

/// Everything needed to talk to one API server. Holds secrets: never print it.
struct Connection {
    std::string context;     ///< name in the kubeconfig, "in-cluster" for a service account
    std::string cluster;     ///< name of the cluster entry
    std::string server;      ///< "https://host:port" with an optional path, no slash at the end
    std::string namespace_;  ///< of the context, "default" when it says none
    std::string origin;      ///< for messages: the file of the context, or the service account's directory
    net::TlsSettings tls;
    std::string proxy;
    std::string token, token_file;  ///< the file wins as long as it can be read
    std::string username, password;
    std::optional<ExecPlugin> exec;
    bool is_withheld =
        false;  ///< the user has credentials that are not here: they are not sent over http, as client-go has it
    Impersonation impersonation;

    [[nodiscard]] bool has_credentials() const {
        return exec || !token.empty() || !token_file.empty() || !username.empty() ||
               !tls.client_certificate_pem.empty();
    }
};

/// What the choice of a connection depends on.
struct ConfigRequest {
    std::optional<std::string> file;  ///< --kubeconfig: this file alone, it must be there
    std::string context;              ///< --context; "" is the files' current-context
    std::string variable;             ///< KUBECONFIG: files separated by ':', the first one to say something wins
    std::string home;                 ///< its .kube/config is read when neither of the above is given
    std::string service_host, service_port;  ///< KUBERNETES_SERVICE_HOST and _PORT
    std::string account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// The request as the environment of this process has it: KUBECONFIG, HOME and KUBERNETES_SERVICE_*.
[[nodiscard]] ConfigRequest request_from_environment();

/// True if load_connection has anything to read: a named file, an existing one of the others, or a service account.
[[nodiscard]] bool connection_configured(const ConfigRequest& request);

/// "names FILE, which is not there" where connection_configured() is false although KUBECONFIG says something; else "".
[[nodiscard]] std::string absent_kubeconfig(const ConfigRequest& request);

/// Finds the connection, as kubectl does: --kubeconfig, else KUBECONFIG (absent files are left out; of clusters, users,
/// contexts and current-context the first file that has the name counts, whole entries), else HOME/.kube/config, else
/// the service account of the Pod. Certificates named by path are read, relative to the file that names them. Nothing
/// is sent. Errors: not_found "kubeconfig-not-found", "context-not-found"; config "bad-kubeconfig" with the place in
/// the file; from_errno for files that cannot be read. Source: client-go tools/clientcmd (loader.go, client_config.go,
/// validation.go).
[[nodiscard]] Connection load_connection(const ConfigRequest& request);

/// The names of all contexts, sorted. Errors: as load_connection.
[[nodiscard]] std::vector<std::string> context_names(const ConfigRequest& request);

}  // namespace kmm::kube
