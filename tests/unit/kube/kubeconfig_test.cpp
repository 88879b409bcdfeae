// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/text.hpp"
#include "fixture.hpp"
#include "kube/own_pod.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

/// A directory with files, and a request that sees nothing else.
struct Home {
    sys::TempDir dir{"kubeconfig"};
    std::string put(const std::string& name, const std::string& text) {
        std::ofstream(dir.path() + "/" + name) << text;
        return dir.path() + "/" + name;
    }
    [[nodiscard]] ConfigRequest request() const {
        ConfigRequest result;
        result.home = dir.path() + "/nowhere";
        result.account_directory = dir.path() + "/account";
        return result;
    }
    [[nodiscard]] ConfigRequest of(const std::string& file) const {
        ConfigRequest result = request();
        result.file = file;
        return result;
    }
};

std::string config(const std::string& cluster, const std::string& user = "token: t", const std::string& context = "") {
    return "apiVersion: v1\nkind: Config\ncurrent-context: main\n"
           "clusters:\n- name: c\n  cluster: {" + cluster + "}\n"
           "users:\n- name: u\n  user: {" + user + "}\n"
           "contexts:\n- name: main\n  context: {cluster: c, user: u" + context + "}\n";
}

const std::string k_server = "server: 'https://api:6443'";

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("kubeconfig: everything of one file") {
    Home home;
    const std::string pem = "-----BEGIN CERTIFICATE-----\n";
    home.put("ca.pem", pem + "ca");
    home.put("key.pem", "key");
    const std::string file = home.put("config", config("server: 'https://api:6443/prefix/', certificate-authority: "
                                                       "ca.pem, tls-server-name: kube, proxy-url: 'socks5://p:1'",
                                                       "client-certificate-data: " + base::to_base64("cert") +
                                                           ", client-key: key.pem, tokenFile: tok, as: jane, as-uid: "
                                                           "'7', as-groups: [a, b], as-user-extra: {scopes: [x, 7]}",
                                                       ", namespace: ops"));
    const Connection found = load_connection(home.of(file));
    CHECK(found.context == "main");
    CHECK(found.cluster == "c");
    CHECK(found.server == "https://api:6443/prefix");
    CHECK(found.namespace_ == "ops");
    CHECK(found.tls.ca_pem == pem + "ca");
    CHECK(found.tls.client_certificate_pem == "cert");
    CHECK(found.tls.client_key_pem == "key");
    CHECK(found.tls.server_name == "kube");
    CHECK(found.proxy == "socks5://p:1");
    CHECK(found.token_file == home.dir.path() + "/tok");
    CHECK(found.impersonation.user == "jane");
    CHECK(found.impersonation.uid == "7");
    CHECK(found.impersonation.groups == Texts{"a", "b"});
    CHECK(found.impersonation.extra == std::vector<std::pair<std::string, Texts>>{{"scopes", {"x", "7"}}});
    CHECK(found.origin == file);
}

TEST_CASE("kubeconfig: JSON, unknown fields and data over files") {
    Home home;
    const std::string file = home.put(
        "config", R"({"new": 1, "current-context": "m", "contexts": [{"name": "m", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "api.example:8080", "certificate-authority": "absent.pem", "certificate-authority-data": ")" +
                      base::to_base64("-----BEGIN CERTIFICATE-----") + R"("}}]})");
    const Connection found = load_connection(home.of(file));
    CHECK(found.server == "https://api.example:8080");
    CHECK(found.tls.ca_pem == "-----BEGIN CERTIFICATE-----");
    CHECK(found.namespace_ == "default");
}

TEST_CASE("kubeconfig: of several files the first that has a name wins, whole entries") {
    Home home;
    const std::string first = home.put("first", config("server: 'https://first:1'", "token: one"));
    const std::string second = home.put("second",
        "current-context: other\nclusters:\n- name: c\n  cluster: {server: 'https://second:1', tls-server-name: x}\n"
        "users:\n- name: u\n  user: {username: two}\n"
        "contexts:\n- name: other\n  context: {cluster: c, user: u}\n- name: main\n  context: {cluster: d}\n");
    ConfigRequest request = home.request();
    request.variable = ":" + home.dir.path() + "/absent:" + first + ":" + second + ":" + first;
    const Connection main = load_connection(request);
    CHECK(main.context == "main");
    CHECK(main.server == "https://first:1");
    CHECK(main.token == "one");
    request.context = "other";
    const Connection other = load_connection(request);
    CHECK(other.server == "https://first:1");
    CHECK(other.tls.server_name.empty());
    CHECK(other.username.empty());
    CHECK(other.origin == second);
    CHECK(context_names(request) == Texts{"main", "other"});
    request.variable = second + ":" + first;
    CHECK(load_connection(request).server == "https://second:1");
}

TEST_CASE("the Pod of this process: what its token says, else account and host name") {
    Home home;
    ConfigRequest request = home.request();
    CHECK_FALSE(own_pod(request, "host"));
    REQUIRE(::mkdir(request.account_directory.c_str(), 0700) == 0);
    home.put("account/namespace", "kmm\n");
    request.service_host = "10.0.0.1";
    CHECK_FALSE(own_pod(request, "host"));
    const auto token = [](const std::string& claims) {
        auto text = base::to_base64(claims);
        std::replace(text.begin(), text.end(), '+', '-');
        std::replace(text.begin(), text.end(), '/', '_');
        return "e30." + text.substr(0, text.find('=')) + ".c2ln\n";
    };
    struct Row {
        std::string token;
        OwnPod pod;
    };
    for (
        const auto& row : std::vector<Row>{
            {token(
                 R"({"aud":["???>>>"],"kubernetes.io":{"namespace":"ops","node":{"name":"n","uid":"5"},"pod":{"name":"p","uid":"7"}}})"),
             {"ops", "p", "7", "n"}},
            {token(R"({"kubernetes.io":{"namespace":"ops","pod":{"name":"p","uid":"7"}}})"), {"ops", "p", "7", ""}},
            {token(R"({"sub":"system:serviceaccount:kmm:a"})"), {"kmm", "host", "", ""}},
            {token("{"), {"kmm", "host", "", ""}},
            {"a.%%.c", {"kmm", "host", "", ""}},
            {"opaque", {"kmm", "host", "", ""}}}) {
        CAPTURE(row.token);
        home.put("account/token", row.token);
        const auto pod = own_pod(request, "host");
        REQUIRE(pod);
        CHECK(*pod == row.pod);
    }
    request.service_host.clear();
    CHECK_FALSE(own_pod(request, "host"));
}

TEST_CASE("kubeconfig: --kubeconfig over KUBECONFIG over ~/.kube/config over the service account") {
    Home home;
    ConfigRequest request = home.request();
    CHECK_FALSE(connection_configured(request));
    CHECK(error_of([&] { return load_connection(request); }).code() == "kubeconfig-not-found");

    REQUIRE(::mkdir(request.account_directory.c_str(), 0700) == 0);
    home.put("account/token", "secret\n");
    home.put("account/ca.crt", "pem");
    home.put("account/namespace", "kmm\n");
    CHECK_FALSE(connection_configured(request));
    request.service_host = "fd00::1";
    request.service_port = "443";
    CHECK(connection_configured(request));
    request.variable = "/absent";
    CHECK(absent_kubeconfig(request).empty());  // the account does
    request.service_host.clear();
    CHECK(absent_kubeconfig(request) == "names /absent, which is not there");
    request.variable.clear();
    CHECK(absent_kubeconfig(request).empty());
    request.service_host = "fd00::1";
    const Connection account = load_connection(request);
    CHECK(account.server == "https://[fd00::1]:443");
    CHECK(account.token_file == request.account_directory + "/token");
    CHECK(account.tls.ca_pem == "pem");
    CHECK(account.namespace_ == "kmm");
    CHECK(account.context == "in-cluster");

    request.home = home.dir.path();
    REQUIRE(::mkdir((home.dir.path() + "/.kube").c_str(), 0700) == 0);
    home.put(".kube/config", config("server: 'https://home:1'"));
    CHECK(load_connection(request).server == "https://home:1");
    request.variable = home.put("env", config("server: 'https://env:1'"));
    CHECK(load_connection(request).server == "https://env:1");
    request.file = home.put("flag", config("server: 'https://flag:1'"));
    CHECK(load_connection(request).server == "https://flag:1");
}

TEST_CASE("kubeconfig: as root, only files that root alone may change say which cluster, and by which files") {
    if (::geteuid() != 0) { return; }
    constexpr unsigned k_somebody = 65534;
    Home home;
    const std::string pem = "-----BEGIN CERTIFICATE-----\n";
    const std::string files[] = {home.put("ca.pem", pem), home.put("cert.pem", "cert"), home.put("key.pem", "key"),
                                 home.put("config", config(k_server + ", certificate-authority: ca.pem",
                                                           "client-certificate: cert.pem, client-key: key.pem"))};
    const ConfigRequest request = home.of(files[3]);
    CHECK(load_connection(request).tls.client_key_pem == "key");
    for (const std::string& file : files) {
        REQUIRE(::chown(file.c_str(), k_somebody, k_somebody) == 0);
        const Error error = error_of([&] { return load_connection(request); });
        CHECK(error.code() == "untrusted-file");
        CHECK(error.message().find(file) != std::string::npos);
        REQUIRE(::chown(file.c_str(), 0, 0) == 0);
    }
    ConfigRequest several = home.request();
    several.variable = files[3] + ":" + home.put("other", config(k_server));
    CHECK(load_connection(several).tls.client_key_pem == "key");
    REQUIRE(::chmod((home.dir.path() + "/other").c_str(), 0666) == 0);
    CHECK(error_of([&] { return load_connection(several); }).code() == "untrusted-file");
}

TEST_CASE("kubeconfig: faults, each with its place and what was expected") {
    struct Row { std::string text, code, place, message; };
    const std::string broken_ca = "server: 'https://a', certificate-authority-data: '!'";
    const std::vector<Row> rows{
        {config(""), "bad-kubeconfig", ":6:12", "server: expected the URL of an API server, found none"},
        {config("server: 'ftp://a'"), "bad-kubeconfig", ":6:21",
         "server: expected an http or https URL, found \"ftp://a\""},
        {config("server: 'https://u:hunter2@a'"), "bad-kubeconfig", ":6:21",
         "server: expected a URL without a login, found \"https://a\" with one"},
        {config("server: [7]"), "bad-kubeconfig", ":6:21", "server: expected a string, found list"},
        {config(broken_ca), "bad-kubeconfig", ":6:62",
         "certificate-authority-data: expected base64, found other characters"},
        {config(k_server + ", certificate-authority: absent"), "file-not-found", ":6:64", "cannot open "},
        {config(k_server + ", insecure-skip-tls-verify: true, certificate-authority-data: LS0tLS1CRUdJTg=="),
         "bad-kubeconfig", ":6:67", "insecure-skip-tls-verify: expected no certificate-authority beside it, found one"},
        {config(k_server + ", proxy-url: 'ftp://x'"), "bad-kubeconfig", ":6:52",
         "proxy-url: expected an http, https or socks5 URL, found \"ftp://x\""},
        {config(k_server, "client-certificate-data: YQ=="), "bad-kubeconfig", ":9:9",
         "client-certificate: expected client-key beside it, found none"},
        {config(k_server, "token: a, username: b"), "bad-kubeconfig", ":9:30",
         "username: expected one way to log in, found a token and a user name"},
        {config(k_server, "as-groups: [a]"), "bad-kubeconfig", ":9:9",
         "as: expected a user beside as-uid, as-groups and as-user-extra, found none"},
        {config(k_server, "auth-provider: {name: gcp}"), "bad-kubeconfig", ":9:25",
         "auth-provider: expected exec in its place, found a way to log in that Kubernetes has given up"},
        {config(k_server, "auth-provider: {name: oidc, config: {refresh-token: r}}"), "bad-kubeconfig", ":9:25",
         "auth-provider: expected an id-token in config, found none"},
        {config(k_server, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}"), "bad-kubeconfig",
         ":9:41",
         "apiVersion: expected client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1, found "
         "\"client.authentication.k8s.io/v1alpha1\""},
        {config(k_server, "exec: {command: x, apiVersion: client.authentication.k8s.io/v1}"), "bad-kubeconfig", ":9:16",
         "interactiveMode: expected Never, IfAvailable or Always, found \"\""},
        {"clusters: 7\n", "bad-kubeconfig", ":1:11", "clusters: expected a list, found integer"},
        {"clusters:\n- name: a\n- name: a\n", "bad-kubeconfig", ":3:9",
         "clusters: expected every name once, found a here and in line 2"},
        {"kind: Pod\n", "bad-kubeconfig", ":1:7", "kind: expected Config, found Pod"},
        {"contexts: []\n", "bad-kubeconfig", "", "expected a current-context, found none"},
        {"current-context: mian\ncontexts:\n- name: main\n  context: {}\n", "context-not-found", ":1:18",
         "there is no context mian"},
        {"current-context: m\ncontexts:\n- name: m\n  context: {cluster: x}\n", "bad-kubeconfig", ":4:22",
         "cluster: expected a name of clusters, found \"x\""},
        {"a: [\n", "bad-kubeconfig", ":2:1", ""},
    };
    for (const auto& row : rows) {
        CAPTURE(row.text);
        Home home;
        const std::string file = home.put("config", row.text);
        const Error error = error_of([&] { return load_connection(home.of(file)); });
        CHECK(error.code() == row.code);
        CHECK(error.message().starts_with(row.message));
        REQUIRE(error.position().has_value());
        CHECK(error.position()->to_string() == file + row.place);
    }
}

TEST_CASE("kubeconfig: names that look like something else in YAML are names all the same") {
    // Plain n and y are false and true, as for kubectl.
    const std::vector<std::pair<std::string, std::string>> rows{
        {"n", "false"}, {"y", "true"}, {"1234", "1234"}, {"true", "true"}};
    for (const auto& row : rows) {
        const std::string& name = row.first;
        const std::string& known_as = row.second;
        CAPTURE(name);
        Home home;
        const std::string file = home.put("config", "current-context: " + name + "\nclusters:\n- name: " + name +
                                                        "\n  cluster: {" + k_server + "}\nusers:\n- name: " + name +
                                                        "\n  user: {token: t}\ncontexts:\n- name: " + name +
                                                        "\n  context: {cluster: " + name + ", user: " + name + "}\n");
        const Connection found = load_connection(home.of(file));
        CHECK(found.context == known_as);
        CHECK(found.token == "t");
        CHECK(context_names(home.of(file)) == Texts{known_as});
    }
}

TEST_CASE("kubeconfig: as with kubectl, credentials are not for http") {
    Home home;
    const std::string user =
        "token: t, as: jane, exec: {command: login, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
        "Never}";
    const auto plain = load_connection(home.of(home.put("plain", config("server: 'http://api:8001'", user))));
    CHECK(plain.is_withheld);
    CHECK_FALSE(plain.has_credentials());
    CHECK(plain.impersonation.user == "jane");
    CHECK_FALSE(load_connection(home.of(home.put("nobody", config("server: 'http://api:8001'", "")))).is_withheld);
    const auto sent = load_connection(home.of(home.put("tls", config(k_server, user))));
    CHECK(sent.has_credentials());
    CHECK_FALSE(sent.is_withheld);
}

TEST_CASE("kubeconfig: the token that kubectl keeps for an OpenID Connect provider") {
    Home home;
    const std::string user = "auth-provider: {name: oidc, config: {client-id: c, id-token: t, refresh-token: r}}";
    CHECK(load_connection(home.of(home.put("config", config(k_server, user)))).token == "t");
    CHECK(load_connection(home.of(home.put("both", config(k_server, "token: own, " + user)))).token == "own");
}

TEST_CASE("kubeconfig: names that are not there") {
    Home home;
    CHECK(error_of([&] { return load_connection(home.of(home.dir.path() + "/absent")); }).code() ==
          "kubeconfig-not-found");
    ConfigRequest request = home.of(home.put("config", config(k_server)));
    request.context = "mian";
    const Error error = error_of([&] { return load_connection(request); });
    CHECK(error.code() == "context-not-found");
    CHECK(error.exit() == Exit::not_found);
    CHECK(error.hint() == "did you mean main?");
}

TEST_CASE("kubeconfig: an exec plugin as it is written") {
    Home home;
    const std::string file = home.put(
        "config", config(k_server + ", extensions: [{name: other, extension: {a: 1}}, "
                                    "{name: client.authentication.k8s.io/exec, extension: {audience: shoot}}]",
                         "exec: {command: ./bin/login, args: [a], apiVersion: client.authentication.k8s.io/v1beta1, "
                         "env: [{name: NAME, value: 7}], installHint: get it, provideClusterInfo: true}"));
    const Connection found = load_connection(home.of(file));
    REQUIRE(found.exec.has_value());
    CHECK(found.exec->command == home.dir.path() + "/./bin/login");
    CHECK(found.exec->args == Texts{"a"});
    CHECK(found.exec->env == std::vector<std::pair<std::string, std::string>>{{"NAME", "7"}});
    CHECK(found.exec->interactive == Interactive::if_available);
    CHECK(found.exec->install_hint == "get it");
    CHECK(found.exec->provide_cluster_info);
    CHECK(found.exec->cluster_config.get_string({"audience"}) == "shoot");
    for (const std::string written : {"token: t", "tokenFile: tok", "username: u, password: p",
                                      "client-certificate-data: YQ==, client-key-data: YQ=="}) {
        CAPTURE(written);
        const std::string both = home.put(
            "both",
            config(k_server, written + ", exec: {command: login, apiVersion: client.authentication.k8s.io/v1beta1}"));
        CHECK_FALSE(load_connection(home.of(both)).exec.has_value());
    }
}

}
