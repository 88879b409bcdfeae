// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/step/etcd_snapshot.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kubeadm/node/etcd.hpp"
#include "kubeadm/step/backup.hpp"
#include "kubeadm/step/steps.hpp"
#include "sys/file_ops.hpp"
#include "unit/kubeadm/place.hpp"

using namespace kmm;
using namespace kmm::kubeadm;

namespace {

std::string bytes_of(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return bytes;
}

/// Pages of a database, and their hash.
std::string snapshot() {
    std::string pages(4096, 'p');
    pages.replace(16, 4, "\xED\xDA\x0C\xED");
    return pages + bytes_of(digest::sha256_hex(pages));
}

std::string message(std::string_view bytes, std::size_t remaining) {
    return fmt::format(R"({{"result":{{"header":{{"revision":"7"}},"remaining_bytes":"{}","blob":"{}"}}}})", remaining,
                       base::to_base64(bytes)) +
           "\n";
}

/// What the gateway answers, in messages of `step` bytes.
std::string answer(const std::string& bytes, std::size_t step = 1000) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        const auto part = std::string_view(bytes).substr(at, step);
        text += message(part, bytes.size() - at - part.size());
    }
    return text;
}

std::string code_of(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        return error.code();
    }
    return "";
}

/// The code of the error that an answer ends with; "" if it is a whole snapshot.
std::string judged(const std::string& text, std::size_t piece = 700) {
    return code_of([&] {
        std::string written;
        SnapshotReader reader([&](std::string_view bytes) { written += bytes; }, nullptr);
        for (std::size_t at = 0; at < text.size(); at += piece) reader.add(std::string_view(text).substr(at, piece));
        const auto done = reader.finish();
        CHECK(done.size == written.size());
        CHECK(done.sha256 == digest::sha256_hex(written));
    });
}

/// An etcd that answers with one text.
class Gateway final : public net::HttpClient {
public:
    Gateway(int status, std::string text) : status_(status), text_(std::move(text)) {}
    [[nodiscard]] net::Response send(const net::Request& request, const net::BodySink& sink) override {
        asked.push_back(request);
        if (status_ == 0) throw Error(Exit::unavailable, "network", "connection refused");
        net::Response response;
        response.status = status_;
        static_cast<void>(sink(response, text_));
        return response;
    }
    std::vector<net::Request> asked;

private:
    int status_;
    std::string text_;
};

void write_manifests(const test::Made& made, const std::string& words) {
    for (const char* name : {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"})
        made.write(std::string(k_manifest_directory) + "/" + name + ".yaml",
                   fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, namespace: kube-system}}\nspec:\n  "
                               "containers:\n  - name: {0}\n"
                               "    image: registry.k8s.io/{0}:{1}\n    command: [{0}{2}]\n",
                               name, std::string_view(name) == "etcd" ? "3.6.5-0" : "v1.34.4",
                               std::string_view(name) == "etcd" ? words : std::string()));
    for (const char* file : {"ca.crt", "healthcheck-client.crt", "healthcheck-client.key"})
        made.write(std::string("/etc/kubernetes/pki/etcd/") + file, std::string("PEM of ") + file + "\n");
}

constexpr const char* k_listen = ", '--listen-client-urls=https://10.0.0.5:2379,https://127.0.0.1:2379'";

}  // namespace

TEST_CASE("a snapshot is whole only if its last bytes are the hash of all others") {
    const auto whole = snapshot();
    for (const std::size_t step : {1U, 31U, 32U, 33U, 1000U, 100'000U})
        for (const std::size_t piece : {1U, 700U, 1'000'000U}) CHECK(judged(answer(whole, step), piece).empty());
    CHECK(judged(answer(whole.substr(0, whole.size() - 1))) == "snapshot-damaged");
    CHECK(judged(answer(whole.substr(0, 4096))) == "snapshot-damaged");
    CHECK(judged("") == "snapshot-damaged");
    for (std::size_t at = 0; at < whole.size(); at += 97) {
        auto changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        CAPTURE(at);
        CHECK(judged(answer(changed)) == "snapshot-damaged");
    }
    // Cut between two messages: etcd has told how much is to come.
    auto text = answer(whole);
    text.resize(text.rfind('\n', text.size() - 2) + 1);
    CHECK(judged(text) == "snapshot-damaged");
    CHECK(judged(answer(whole) + "{\"error\":{\"code\":13,\"message\":\"etcdserver: corrupt\"}}\n") == "etcd-refused");
    CHECK(judged("<html>\n") == "snapshot-damaged");
    CHECK(judged("{\"result\":{\"remaining_bytes\":\"0\",\"blob\":\"*\"}}\n") == "snapshot-damaged");
    std::string other(4096, 'x');
    CHECK(judged(answer(other + bytes_of(digest::sha256_hex(other)))) == "snapshot-damaged");
}

TEST_CASE("etcd is asked on loopback where it listens there") {
    const auto manifest = [](const std::string& words) {
        return "spec: {containers: [{name: etcd, command: [etcd" + words + "]}]}\n";
    };
    CHECK(etcd_url(manifest(k_listen)) == "https://127.0.0.1:2379");
    CHECK(etcd_url(manifest(", '--listen-client-urls=https://10.0.0.5:2379'")) == "https://10.0.0.5:2379");
    CHECK(etcd_url(manifest(", '--listen-client-urls=https://[fd00::5]:2379,https://[::1]:2379'")) ==
          "https://[::1]:2379");
    // Its certificate has neither 0.0.0.0 nor ::.
    CHECK(etcd_url(manifest(", '--listen-client-urls=https://0.0.0.0:2379'")) == "https://127.0.0.1:2379");
    CHECK(etcd_url(manifest(", '--listen-client-urls=https://10.0.0.5:2379, https://[::]:2379'")) ==
          "https://[::1]:2379");
    CHECK(etcd_url(manifest(", '--listen-client-urls=https://10.0.0.5:2379,https://0.0.0.0:2379, "
                            "https://LOCALHOST:2379'")) == "https://LOCALHOST:2379");
    // As where HTTP is kept apart from gRPC.
    CHECK(etcd_url(manifest(std::string(k_listen) +
                            ", '--listen-client-http-urls=https://10.0.0.5:2382,https://127.0.0.1:2382'")) ==
          "https://127.0.0.1:2382");
    CHECK(code_of([&] { static_cast<void>(etcd_url(manifest(""))); }) == "etcd-not-found");
}

TEST_CASE("what etcd says of itself is read from its gateway") {
    test::Made made;
    write_manifests(made, k_listen);
    const auto node = made.node();
    class Answers final : public net::HttpClient {
    public:
        [[nodiscard]] net::Response send(const net::Request& request, const net::BodySink& sink) override {
            net::Response response;
            response.status = 200;
            const auto name = request.url.substr(request.url.rfind('/') + 1);
            CHECK(request.tls.ca_pem == "PEM of ca.crt\n");
            if (name == "status")
                static_cast<void>(sink(
                    response,
                    R"({"header":{"member_id":"18446744073709551615"},"leader":"7","version":"3.6.5","dbSize":"300","dbSizeInUse":"200","errors":["memory"]})"));
            else if (name == "list")
                static_cast<void>(sink(
                    response,
                    R"({"members":[{"ID":"7","name":"cp1","clientURLs":["https://10.0.0.5:2379"]},{"ID":"8","isLearner":true,"name":"cp2"},{"ID":"9"}]})"));
            else static_cast<void>(sink(response, R"({"alarms":[{"memberID":"7","alarm":"NOSPACE"}]})"));
            return response;
        }
    } client;
    const auto manifest = node.place.read("/etc/kubernetes/manifests/etcd.yaml");
    const auto facts = read_etcd(node.place, client, manifest);
    CHECK(facts.member == "18446744073709551615");
    CHECK(facts.leader == "7");
    CHECK(facts.size == 300);
    CHECK(facts.quota == 2ULL << 30U);
    // As kubeadm writes etcd.local.extraEnvs.
    auto with_variable = manifest;
    with_variable.replace(with_variable.find("command:"), 8,
                          "env: [{name: ETCD_QUOTA_BACKEND_BYTES, value: '8589934592'}]\n    command:");
    CHECK(read_etcd(node.place, client, with_variable).quota == 8ULL << 30U);
    REQUIRE(facts.members.size() == 3);
    CHECK(facts.members[1].is_learner);
    CHECK(facts.members[2].name.empty());
    CHECK(facts.alarms == std::vector<std::string>{"NOSPACE of 7"});
    CHECK(facts.errors == std::vector<std::string>{"memory"});
    CHECK(facts.listen_urls.size() == 2);
    for (const int status : {0, 403, 200}) {
        Gateway refusing(status, "permission denied");
        CHECK(code_of([&] { static_cast<void>(read_etcd(node.place, refusing, manifest)); }) ==
              (status == 0 ? "etcd-unreachable" : "etcd-refused"));
    }
    Gateway none(200, "{}");
    CHECK(read_etcd(node.place, none, "spec: {containers: [{command: [etcd]}]}").member.empty());
    CHECK(none.asked.empty());
}

TEST_CASE("certificates that kubeadm keeps elsewhere are asked with, and saved") {
    test::Made made;
    write_manifests(made, std::string(k_listen) + ", '--trusted-ca-file=/etc/ssl/k8s/etcd/ca.crt'");
    made.write_rest();
    std::filesystem::create_directories(made.path("/etc/ssl"));
    std::filesystem::rename(made.path("/etc/kubernetes/pki"), made.path("/etc/ssl/k8s"));
    const auto node = made.node();
    Gateway gateway(200, answer(snapshot()));
    static_cast<void>(make_backup(node, "b1", &gateway));
    CHECK(gateway.asked.back().tls.client_certificate_pem == "PEM of healthcheck-client.crt\n");
    std::vector<std::string> saved;
    for (const auto& file : read_backup(node.place, "b1").files) saved.push_back(file.path);
    CHECK(std::count(saved.begin(), saved.end(), "/etc/ssl/k8s/etcd/healthcheck-client.key") == 1);
}

TEST_CASE("a backup with a snapshot of etcd is verified with it, and kept") {
    test::Made made;
    write_manifests(made, k_listen);
    made.write_rest();
    const auto node = made.node();
    const auto whole = snapshot();
    Gateway gateway(200, answer(whole));
    std::string snapshot_path;
    try {
        const auto done = make_backup(node, "b1", &gateway);
        for (const auto& [name, value] : done.facts)
            if (name == "etcdSnapshot") snapshot_path = value;
    } catch (const Error& error) {
        FAIL(error.code(), ": ", error.message());
    }
    // First at which revision it is: the snapshot has that one at least.
    REQUIRE(gateway.asked.size() == 2);
    CHECK(gateway.asked.front().url == "https://127.0.0.1:2379/v3/maintenance/status");
    CHECK(gateway.asked.back().url == "https://127.0.0.1:2379/v3/maintenance/snapshot");
    CHECK(gateway.asked.back().tls.client_certificate_pem == "PEM of healthcheck-client.crt\n");
    CHECK(snapshot_path == "/var/lib/kmm-node/backups/b1/etcd.db");
    CHECK(node.place.read(snapshot_path) == whole);
    CHECK(make_backup(node, "b1", &gateway).already);
    CHECK(gateway.asked.size() == 2);

    std::ofstream(made.path(snapshot_path), std::ios::app) << "x";
    CHECK(code_of([&] { static_cast<void>(verify_backup(node, "b1")); }) == "backup-damaged");
    std::filesystem::remove(made.path(snapshot_path));
    CHECK(code_of([&] { static_cast<void>(verify_backup(node, "b1")); }) == "backup-damaged");

    CHECK(!make_backup(node, "b2").already);
    CHECK(code_of([&] { static_cast<void>(make_backup(node, "b2", &gateway)); }) == "backup-without-etcd");
    Gateway learner(200, R"({"header": {"member_id": "14532165781622267127", "revision": "5"}, "isLearner": true})");
    std::string hint;
    CHECK(code_of([&] {
              try {
                  static_cast<void>(make_backup(node, "b3", &learner));
              } catch (const Error& error) {
                  hint = error.hint();
                  throw;
              }
          }) == "etcd-learner");
    CHECK(hint == "etcdctl member promote c9ac9fc89eae9cf7, then kmm-upgrade retry NODE; or --no-etcd-snapshot");
    CHECK(learner.asked.size() == 1);
    CHECK(!node.place.exists("/var/lib/kmm-node/backups/b3"));
    for (const int status : {0, 403}) {
        Gateway refusing(status, "permission denied");
        CHECK(code_of([&] { static_cast<void>(make_backup(node, "b3", &refusing)); }) ==
              (status == 0 ? "etcd-unreachable" : "etcd-refused"));
        CHECK(!node.place.exists("/var/lib/kmm-node/backups/b3"));
    }
    Gateway boundless(200, message(whole, std::size_t{1} << 60U));
    CHECK(code_of([&] { static_cast<void>(make_backup(node, "b3", &boundless)); }) == "no-space");
}
