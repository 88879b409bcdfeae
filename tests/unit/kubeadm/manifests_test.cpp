// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/manifests.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kubeadm/step/steps.hpp"
#include "place.hpp"

using namespace kmm;
using namespace kmm::kubeadm;
using kmm::kubeadm::test::Made;

namespace {

const std::string k_pod =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd}\nspec: {containers: [{name: etcd, image: "
    "'reg:5000/etcd:3.6.5-0@sha256:aa'}]}\n";

std::string pod(const std::string& name, const std::string& image, const std::string& more = "") {
    return "kind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: sidecar, image: x}, {name: " + name +
           ", image: '" + image + "'" + more + "}]}\n";
}

void write_all(const Made& made) {
    made.write("/etc/kubernetes/manifests/etcd.yaml", k_pod);
    for (const std::string name : {"kube-apiserver", "kube-controller-manager", "kube-scheduler"})
        made.write("/etc/kubernetes/manifests/" + name + ".yaml", pod(name, "r/" + name + ":v1.34.4"));
}

}  // namespace

TEST_SUITE("kubeadm::unit") {
    TEST_CASE("certificates are where the manifests of kubeadm say") {
        const Made made;
        const auto words = [](const std::string& word) { return ", command: [kube, '" + word + "']"; };
        const auto write = [&](const std::string& name, const std::string& word) {
            made.write("/etc/kubernetes/manifests/" + name + ".yaml",
                       "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: x" + words(word) + "}]}\n");
        };
        CHECK(pki_directory(made.place()) == "/etc/kubernetes/pki");
        write("etcd", "--trusted-ca-file=/etc/ssl/a/etcd/ca.crt");
        CHECK(pki_directory(made.place()) == "/etc/ssl/a");
        write("kube-controller-manager", "--cluster-signing-key-file=/etc/ssl/b/ca.key");
        CHECK(pki_directory(made.place()) == "/etc/ssl/b");
        // One of the administrator's own says nothing of kubeadm's.
        write("kube-apiserver", "--kubelet-client-certificate=/etc/other/client.crt");
        CHECK(pki_directory(made.place()) == "/etc/ssl/b");
        write("kube-apiserver", "--kubelet-client-certificate=/etc/ssl/c/apiserver-kubelet-client.crt");
        CHECK(pki_directory(made.place()) == "/etc/ssl/c");
        made.write("/etc/kubernetes/manifests/kube-apiserver.yaml", "a: [");
        CHECK(pki_directory(made.place()) == "/etc/ssl/b");
    }

    TEST_CASE("a manifest is whole if it declares that Pod with an image of a version") {
        const Manifest whole = judge_manifest("etcd", "p", k_pod);
        CHECK(whole.whole);
        CHECK(whole.tag == "3.6.5-0");
        CHECK(whole.image == "reg:5000/etcd:3.6.5-0@sha256:aa");
        const auto problem = [](const std::string& text) {
            const Manifest manifest = judge_manifest("etcd", "p", text);
            CHECK_FALSE(manifest.whole);
            return manifest.problem;
        };
        CHECK(problem("") == "empty");
        CHECK(problem(" \n") == "empty");
        CHECK(problem("a: [") == "not one YAML document");
        CHECK(problem(k_pod + "---\n" + k_pod) == "not one YAML document");
        CHECK(problem("- a\n") == "not one YAML document");
        CHECK(problem("kind: Pod\n") == "expected Pod etcd, found Pod ''");
        CHECK(problem("metadata: {name: etcd}\n") == "expected Pod etcd, found no kind 'etcd'");
        CHECK(problem(pod("kube-scheduler", "r/kube-scheduler:v1.34.4")) ==
              "expected Pod etcd, found Pod 'kube-scheduler'");
        CHECK(problem("kind: Pod\nmetadata: {name: etcd}\nspec: {containers: []}\n") == "has no container etcd");
        CHECK(problem(pod("etcd", "")) == "its container has no image");
        CHECK(problem(pod("etcd", "r/etcd")) == "image 'r/etcd' has no version");
        CHECK(problem(pod("etcd", "r/etcd:latest")) == "image 'r/etcd:latest' has no version");
        // Every beginning of a manifest that lacks anything but its last line break is not whole.
        for (std::size_t length = 0; length + 1 < k_pod.size(); ++length)
            CHECK_FALSE(judge_manifest("etcd", "p", k_pod.substr(0, length)).whole);
    }

    TEST_CASE("an option is that of the component, in one word or in two, the last one if there are several") {
        const std::string text =
            "kind: Pod\nmetadata: {name: etcd}\nspec: {containers: [{name: watch, command: [w, --data-dir=/x]}, {name: "
            "etcd, command: [etcd, --data-dir, /a, --name=n], args: [--name=m]}]}\n";
        CHECK(manifest_option(text, "--data-dir") == "/a");
        CHECK(manifest_option(text, "--name") == "m");
        CHECK(manifest_option(text, "--none").empty());
    }

    TEST_CASE("without any manifest a node is a control plane if it has files of one") {
        Made made;
        made.write("/etc/kubernetes/kubelet.conf", "");
        CHECK_FALSE(read_manifests(made.place()).control_plane);
        CHECK_THROWS_AS(require_control_plane(read_manifests(made.place())), Error);
        // A worker where somebody uses kubectl.
        made.write("/etc/kubernetes/admin.conf", "");
        CHECK_FALSE(read_manifests(made.place()).control_plane);
        made.write("/etc/kubernetes/controller-manager.conf", "");
        const ManifestSet set = read_manifests(made.place());
        CHECK(set.control_plane);
        CHECK(set.problems() == "kube-apiserver missing; kube-controller-manager missing; kube-scheduler missing");
        made.write("/etc/kubernetes/pki/etcd/server.crt", "");
        CHECK(read_manifests(made.place()).problems().starts_with("etcd missing; "));
    }

    TEST_CASE("etcd is expected unless the API server's is elsewhere") {
        Made made;
        write_all(made);
        CHECK(read_manifests(made.place()).problems().empty());
        std::filesystem::remove(made.path("/etc/kubernetes/manifests/etcd.yaml"));
        CHECK(read_manifests(made.place()).problems() == "etcd missing");
        for (const auto& [servers, expected] : {std::pair{"https://10.0.0.9:2379", false},
                                                {"https://10.0.0.9:2379,https://127.0.0.1:2379", true},
                                                {"https://[::1]:2379", true}}) {
            made.write("/etc/kubernetes/manifests/kube-apiserver.yaml",
                       pod("kube-apiserver", "r/a:v1.34.4",
                           std::string(", command: [kube-apiserver, '--etcd-servers=") + servers + "']"));
            CHECK(read_manifests(made.place()).problems().empty() == !expected);
        }
        const auto with = [&](const char* words) {
            made.write("/etc/kubernetes/manifests/kube-apiserver.yaml",
                       pod("kube-apiserver", "r/a:v1.34.4", fmt::format(", command: [kube-apiserver, {}]", words)));
            return read_manifests(made.place()).problems();
        };
        CHECK(with("--etcd-servers, 'https://10.0.0.9:2379'").empty());
        CHECK(with("--etcd-servers, 'https://127.0.0.1:2379'") == "etcd missing");
        // A list of all members, as it is written for a balanced etcd.
        const auto* all = "--advertise-address=fd00::1, '--etcd-servers=https://[fd00::1]:2379,https://[fd00::2]:2379'";
        CHECK(with(all).empty());
        made.write("/etc/kubernetes/pki/etcd/server.crt", "");
        CHECK(with(all) == "etcd missing");
        CHECK(with("--advertise-address=fd00::1, '--etcd-servers=https://[fd00::3]:2379'").empty());
    }

    TEST_CASE("a copy beside the manifests is a stray, a hidden or another file is not") {
        Made made;
        write_all(made);
        made.write("/etc/kubernetes/manifests/.etcd.yaml.swp", k_pod);
        made.write("/etc/kubernetes/manifests/vip.yaml", pod("kube-vip", "r/vip:v1.0.0"));
        std::filesystem::create_directory(made.path("/etc/kubernetes/manifests/dir"));
        CHECK(read_manifests(made.place()).strays.empty());
        made.write("/etc/kubernetes/manifests/etcd.yaml.old", k_pod);
        const ManifestSet set = read_manifests(made.place());
        REQUIRE(set.strays.size() == 1);
        CHECK(set.strays.front().pod == "etcd");
        CHECK_THROWS_AS(require_whole(set), Error);
    }

    TEST_CASE("a stray is what the kubelet would run from a file, whatever else is in it") {
        const std::string etcd = k_pod;
        for (const auto& text : {etcd + "---\n" + etcd, etcd + "---\n{broken", etcd + "\n# old\n---\n# nothing\n",
                                 "kind: ConfigMap\n" + etcd, etcd + "spec: {hostNetwork: true}\n"}) {
            CAPTURE(text);
            Made made;
            write_all(made);
            made.write("/etc/kubernetes/manifests/etcd-old.yaml", text);
            const auto strays = read_manifests(made.place()).strays;
            REQUIRE(strays.size() == 1);
            CHECK(strays.front().pod == "etcd");
        }
    }

    TEST_CASE("links of the node lead below its root") {
        Made made;
        made.write("/real/etcd.yaml", k_pod);
        std::filesystem::create_directories(made.path("/etc/kubernetes"));
        std::filesystem::create_symlink("/real", made.path("/etc/kubernetes/manifests"));
        CHECK(read_manifests(made.place()).find("etcd")->whole);
        std::filesystem::create_symlink("/real/../../../../etc/passwd", made.path("/real/kube-scheduler.yaml"));
        CHECK(read_manifests(made.place()).find("kube-scheduler")->problem == "missing");
    }

    TEST_CASE("a file is placed as a whole, with its mode, also over another one") {
        Made made;
        auto node = made.node();
        made.write("/etc/x/file", "old");
        place_file(node, "/etc/x/file", "new", {0640, ::geteuid(), ::getegid()});
        CHECK(made.place().read("/etc/x/file") == "new");
        CHECK(owner_of(made.place(), "/etc/x/file").mode == 0640);
        CHECK(made.place().list("/etc/x") == std::vector<std::string>{"file"});
        CHECK_THROWS_AS(place_file(node, "/etc/absent/file", "new", {}), Error);
    }
}
