// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/facts.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/backup.hpp"
#include "kubeadm/step/steps.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"
#include "net/http.hpp"
#include "place.hpp"
#include "sys/file_ops.hpp"
#include "value/reader.hpp"

using namespace kmm;
using namespace kmm::kubeadm;
using kmm::kubeadm::test::Made;

namespace {

std::string pem(const std::string& name) {
    return sys::read_file(std::string(KMM_SOURCE_DIR) + "/tests/support/kubeadm_certs/" + name + ".crt");
}

std::string fault(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

void add_process(const Made& made, const std::string& pid, const std::string& name, const std::string& uid,
                 const std::string& space) {
    made.write("/proc/" + pid + "/comm", name + "\n");
    made.write("/proc/" + pid + "/status", "Name:\t" + name + "\nUid:\t" + uid + "\t0\t0\t0\n");
    std::filesystem::create_directories(made.path("/proc/" + pid + "/ns"));
    std::filesystem::create_symlink(space, made.path("/proc/" + pid + "/ns/mnt"));
}

void run_kubelet(const Made& made, const std::vector<std::string>& words) {
    add_process(made, "1", "systemd", "0", "mnt:[1]");
    add_process(made, "7", "kubelet", "0", "mnt:[1]");
    std::string line;
    for (const auto& word : words) line += word + '\0';
    made.write("/proc/7/cmdline", line);
}

/// Answers every request with ok, and keeps its URL.
class Healthy final : public net::HttpClient {
public:
    net::Response send(const net::Request& request, const net::BodySink& sink) override {
        url = request.url;
        net::Response response;
        response.status = status;
        if (sink) static_cast<void>(sink(response, "ok"));
        return response;
    }
    std::string url;
    int status = 200;
};

value::Node kubelet_config(const std::string& text) {
    Diagnostics faults;
    return std::move(value::read_yaml(text, "config", faults).front().root);
}

}  // namespace

TEST_SUITE("kubeadm::unit") {
    TEST_CASE("what updates packages by itself, and what it leaves alone") {
        const auto updaters = [](const Made& made) { return base::join(automatic_updaters(made.place()), ", "); };
        Made apt;
        apt.write("/etc/apt/apt.conf.d/20auto-upgrades", "APT::Periodic::Unattended-Upgrade \"1\";\n");
        CHECK(updaters(apt) == "unattended-upgrades");
        // The last one counts.
        apt.write("/etc/apt/apt.conf.d/99off", "APT::Periodic::Unattended-Upgrade \"0\";\n");
        CHECK(updaters(apt).empty());
        apt.write("/etc/apt/apt.conf.d/99off", "// off\nAPT::Periodic::Enable \"0\";\n");
        CHECK(updaters(apt).empty());

        Made dnf;
        dnf.write("/etc/systemd/system/timers.target.wants/dnf5-automatic.timer", "");
        dnf.write("/etc/yum.repos.d/kubernetes.repo", "[kubernetes]\nbaseurl=x\n");
        CHECK(updaters(dnf) == "dnf5-automatic.timer");
        for (const char* line :
             {"exclude=kubelet kubeadm kubectl", "excludepkgs = cri-tools,kubelet", "exclude=kube*"}) {
            dnf.write("/etc/yum.repos.d/kubernetes.repo", std::string("[kubernetes]\nbaseurl=x\n") + line + "\n");
            CHECK(updaters(dnf).empty());
        }
        dnf.write("/etc/yum.repos.d/kubernetes.repo", "[kubernetes]\nexclude=kubeadm kubectl kubelet2*\n");
        CHECK(updaters(dnf) == "dnf5-automatic.timer");
        dnf.write("/etc/dnf/plugins/versionlock.list", "kubelet-0:1.34.4-150500.1.1.*\n");
        CHECK(updaters(dnf).empty());
        dnf.write("/etc/dnf/plugins/versionlock.list", "");
        CHECK(updaters(dnf) == "dnf5-automatic.timer");
        dnf.write("/etc/dnf/versionlock.toml", "version = \"1.0\"\n\n[[packages]]\nname = \"kubelet\"\n");
        CHECK(updaters(dnf).empty());
    }

    TEST_CASE("certificates tell whom they name and when they end") {
        const auto expired = read_certificate(pem("expired"));
        REQUIRE(expired);
        CHECK(expired->common_name == "front-proxy-client");
        CHECK(base::format_rfc3339(expired->not_after) == "2021-01-01T00:00:00Z");
        const auto late = read_certificate("key first\n" + pem("node"));
        REQUIRE(late);
        CHECK(late->not_after > 4102444800);  // after 2100
        CHECK_FALSE(read_certificate(""));
        CHECK_FALSE(read_certificate(pem("node").substr(0, 200)));
    }

    TEST_CASE("the node's name is that of the kubelet's certificate, in the file or inline, of the current context") {
        Made made;
        const auto conf = [&](const std::string& user) {
            made.write("/etc/kubernetes/kubelet.conf",
                       "current-context: c\ncontexts: [{name: b, context: {user: v}}, {name: c, context: {user: "
                       "u}}]\nusers:\n- {name: v, user: {}}\n- {name: u, user: {" +
                           user + "}}\n");
        };
        conf("client-certificate-data: " + base::to_base64(pem("node")));
        CHECK(node_name(made.place()) == "cp1");
        conf("client-certificate: k.pem");
        CHECK(client_certificate(made.place(), "/etc/kubernetes/kubelet.conf").file == "/etc/kubernetes/k.pem");
        conf("client-certificate: /absent.pem, client-certificate-data: " + base::to_base64(pem("node")));
        CHECK(node_name(made.place()) == "cp1");
        conf("client-certificate: /k.pem");
        CHECK(fault([&] { static_cast<void>(node_name(made.place())); }).starts_with("/k.pem: cannot open /k.pem"));
        made.write("/k.pem", pem("node"));
        CHECK(node_name(made.place()) == "cp1");
        made.write("/k.pem", pem("admin"));
        CHECK(fault([&] { static_cast<void>(node_name(made.place())); }) ==
              "/k.pem: expected the name system:node:NAME, found 'kubernetes-admin'");
        conf("token: x");
        CHECK(fault([&] { static_cast<void>(node_name(made.place())); }) ==
              "/etc/kubernetes/kubelet.conf: expected a certificate in PEM form");
    }

    TEST_CASE("only root's processes of the node's own mount namespace count") {
        Made made;
        add_process(made, "1", "systemd", "0", "mnt:[1]");
        add_process(made, "20", "kubelet", "0", "mnt:[1]");
        add_process(made, "9", "kubelet", "0", "mnt:[1]");
        add_process(made, "30", "kubelet", "0", "mnt:[2]");
        add_process(made, "40", "kubelet", "1000", "mnt:[1]");
        add_process(made, "50", "kubelet-x", "0", "mnt:[1]");
        std::filesystem::create_directories(made.path("/proc/60"));
        CHECK(node_processes(made.place(), "kubelet") == std::vector<std::int64_t>{9, 20});
        CHECK(node_processes(made.place(), "kubeadm").empty());
        require_no_kubeadm(made.place());
        add_process(made, "70", "kubeadm", "0", "mnt:[1]");
        CHECK(fault([&] { require_no_kubeadm(made.place()); }) ==
              "kubeadm is running on this node (pid 70), and not as a job of kmm-worker");
    }

    TEST_CASE("the runtime's socket: a flag wins over the instance's configuration, that over the shared one") {
        Made made;
        CHECK(fault([&] { static_cast<void>(runtime_socket(made.place())); }).starts_with("neither "));
        made.write("/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint: unix:///a\n");
        CHECK(runtime_socket(made.place()) == "/a");
        made.write("/var/lib/kubelet/instance-config.yaml", "containerRuntimeEndpoint: unix:///b\n");
        CHECK(runtime_socket(made.place()) == "/b");
        made.write("/var/lib/kubelet/kubeadm-flags.env",
                   "KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=unix:///x --container-runtime-endpoint=/c\"\n");
        CHECK(runtime_socket(made.place()) == "/c");
        CHECK(kubelet_own_flags(made.place()).empty());
        // Words of the service come after those of kubeadm.
        made.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///d\n");
        CHECK(runtime_socket(made.place()) == "/d");
        run_kubelet(made, {"kubelet", "--container-runtime-endpoint", "unix:///e"});
        CHECK(runtime_socket(made.place()) == "/e");
        // It was not started with what is there in its service's files.
        made.write("/proc/7/cmdline", "kubelet");
        CHECK(runtime_socket(made.place()) == "/c");
        made.write("/etc/default/kubelet", "# --no\nKUBELET_EXTRA_ARGS=\"--a=b--c --d\"\n");
        made.write("/etc/systemd/system/kubelet.service.d/20.conf", "Environment='X=--e=f' --g\n");
        CHECK(kubelet_own_flags(made.place()) == std::vector<std::string>{"--a=b--c", "--d", "--e=f", "--g"});
    }

    TEST_CASE("what kubeadm said last is told, not the warnings of its libraries") {
        Error error(Exit::other, "kubeadm-failed", "kubeadm failed");
        tell_output(error,
                    "[upgrade/etcd] Failed to upgrade etcd: x\n[upgrade/etcd] Waiting\nW1127 00:08:05.780859    1278 "
                    "logging.go:55] [core] grpc\nW1127 00:08:06.786526    1278 logging.go:55] [core] grpc\n"
                    "Was not it\n");
        REQUIRE(error.details().size() == 1);
        CHECK(error.details().front().second ==
              "[upgrade/etcd] Failed to upgrade etcd: x; [upgrade/etcd] Waiting; Was not it");
    }

    TEST_CASE("swap and cgroup are read, never guessed") {
        Made made;
        CHECK(fault([&] { static_cast<void>(swap_devices(made.place())); }) != "no error");
        made.write("/proc/swaps", "Filename\tType\n");
        CHECK(swap_devices(made.place()).empty());
        made.write("/proc/swaps", "Filename\tType\n/dev/sda2 partition 1\n/swap\tfile 2\n");
        CHECK(swap_devices(made.place()) == std::vector<std::string>{"/dev/sda2", "/swap"});
        made.write("/proc/swaps", "");
        CHECK(fault([&] { static_cast<void>(swap_devices(made.place())); }) != "no error");
        CHECK(fault([&] { static_cast<void>(cgroup_version(made.place())); }) != "no error");
        std::filesystem::create_directories(made.path("/sys/fs/cgroup/memory"));
        CHECK(cgroup_version(made.place()) == "v1");
        made.write("/sys/fs/cgroup/cgroup.controllers", "cpu\n");
        CHECK(cgroup_version(made.place()) == "v2");
    }

    TEST_CASE("what kubeadm upgrade diff prints is taken apart") {
        const auto drift = read_manifest_diff(
            "[upgrade/diff] Reading configuration from the cluster...\n--- "
            "/etc/kubernetes/manifests/kube-apiserver.yaml\n"
            "+++ new manifest\n@@ -19 +18,0 @@\n-    - --profiling=false\n@@ -30 +30 @@\n--- a\n+++ b\n"
            "--- /etc/kubernetes/manifests/kube-scheduler.yaml\n+++ new manifest\n@@ -1 +1 @@\n-x\n+y\n");
        REQUIRE(drift.size() == 2);
        CHECK(drift[0].component == "kube-apiserver");
        CHECK(drift[0].lines == std::vector<std::string>{"- - --profiling=false", "- -- a", "+ ++ b"});
        CHECK(drift[1].component == "kube-scheduler");
        CHECK(drift[1].count == 2);
        CHECK(read_manifest_diff("").empty());
    }

    TEST_CASE("what the preflight of kubeadm writes to its standard error is taken apart") {
        const auto found = read_preflight(
            "W1127 08:58:24.478201    2863 constants.go:621] Using dry-run directory /proc\n"
            "\t[WARNING SystemVerification]: missing optional cgroups: hugetlb io\n[preflight] Some fatal errors "
            "occurred:\n\t[ERROR SystemVerification]: missing required cgroups: cpu\n\t[ERROR CoreDNSMigration]: a: b\n"
            "\t[ERROR CoreDNSUnsupportedPlugins]: CoreDNS cannot migrate the following plugins:\n[Plugin \"grpc\"]\n"
            "[preflight] If you know what you are doing, you can make a check non-fatal\n[ERROR ]\n");
        CHECK(found.errors ==
              std::vector<std::string>{"SystemVerification: missing required cgroups: cpu", "CoreDNSMigration: a: b",
                                       "CoreDNSUnsupportedPlugins: CoreDNS cannot migrate the following plugins: "
                                       "[Plugin \"grpc\"]"});
        CHECK(found.warnings == std::vector<std::string>{"SystemVerification: missing optional cgroups: hugetlb io"});
        CHECK(read_preflight("").errors.empty());
    }

    TEST_CASE("a kubelet's configuration is the file that it was given, and those of its directory in order") {
        Made made;
        CHECK(kubelet_configuration_path({"kubelet", "--config-dir=/d"}) == "/var/lib/kubelet/config.yaml");
        CHECK(kubelet_configuration_path({"kubelet", "--config", "/etc/k.yaml"}) == "/etc/k.yaml");
        CHECK(kubelet_configuration_path({"kubelet", "--config", "/a", "--config=/b"}) == "/b");
        CHECK(kubelet_drop_ins(made.place(), {"kubelet", "--config=/k"}).empty());
        CHECK(kubelet_drop_ins(made.place(), {"kubelet", "--config-dir=/absent"}).empty());
        made.write("/d/20-b.conf", "kind: KubeletConfiguration\nmaxPods: 20\nfeatureGates: {A: null}\n");
        made.write("/d/10-a.conf", R"({"maxPods": 10, "staticPodURLHeader": {"Authorization": ["secret"]}})");
        made.write("/d/15-sub/x.conf", "maxPods: 15\n");
        made.write("/d/99.yaml", "maxPods: 99\n");
        const auto files = kubelet_drop_ins(made.place(), {"kubelet", "--config-dir", "/d"});
        CHECK(kubelet_drop_ins(made.place(), {"kubelet", "--config_dir=/d"}).size() == files.size());
        REQUIRE(files.size() == 3);
        CHECK(files[0].file == "/d/10-a.conf");
        CHECK(files[0].config.find("staticPodURLHeader") == nullptr);
        CHECK(files[1].file == "/d/15-sub/x.conf");
        CHECK(files[2].file == "/d/20-b.conf");
        auto merged = kubelet_config("maxPods: 1\nfeatureGates: {A: true, B: true}\n");
        for (const auto& each : files) kubernetes::merge_over(merged, each.config);
        CHECK(merged.same_value(kubelet_config("kind: KubeletConfiguration\nmaxPods: 20\nfeatureGates: {B: true}\n")));
        made.write("/d/30.conf", "[]\n");
        CHECK(fault([&] { static_cast<void>(kubelet_drop_ins(made.place(), {"--config-dir=/d"})); }) ==
              "/d/30.conf: expected one mapping");
    }

    TEST_CASE("the kubelet is asked where it listens") {
        Healthy client;
        const auto url = [&](const std::string& config) {
            CHECK(kubelet_health(kubelet_config("kind: KubeletConfiguration\n" + config), client).empty());
            return client.url;
        };
        CHECK(url("") == "http://127.0.0.1:10248/healthz");
        CHECK(url("healthzBindAddress: 0.0.0.0\nhealthzPort: 11\n") == "http://127.0.0.1:11/healthz");
        CHECK(url("healthzBindAddress: 10.0.0.7\n") == "http://10.0.0.7:10248/healthz");
        CHECK(url("healthzBindAddress: '::1'\n") == "http://[::1]:10248/healthz");
        CHECK(url("healthzBindAddress: 'fd00::7'\nhealthzPort: 11\n") == "http://[fd00::7]:11/healthz");
        // It listens on the addresses of both families, unless there is only one of them.
        CHECK(url("healthzBindAddress: '::'\n") == "http://[::1]:10248/healthz");
        client.status = 500;
        CHECK(kubelet_health(kubelet_config("healthzBindAddress: '::1'\n"), client) ==
              "http://[::1]:10248/healthz answers 500: ok");
        CHECK(fault([&] { static_cast<void>(kubelet_health(kubelet_config("healthzPort: 0\n"), client)); }) ==
              "healthzPort is 0: it is switched off");
    }

    TEST_CASE("the runtime's socket: of a kubelet that is given none, and of its further files") {
        Made made;
        made.write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n");
        CHECK(runtime_socket(made.place()) == "/run/containerd/containerd.sock");
        run_kubelet(made, {"kubelet", "--config=/etc/k.yaml", "--config-dir=/etc/k.d"});
        made.write("/etc/k.yaml", "containerRuntimeEndpoint: unix:///run/crio/crio.sock\n");
        CHECK(runtime_socket(made.place()) == "/run/crio/crio.sock");
        made.write("/etc/k.d/10.conf", "containerRuntimeEndpoint: unix:///run/other.sock\n");
        CHECK(runtime_socket(made.place()) == "/run/other.sock");
    }

    TEST_CASE("images are where the configuration of the runtime says") {
        Made made;
        const auto directory = [&](const std::string& socket) { return image_directory(made.place(), socket); };
        CHECK(directory("/run/containerd/containerd.sock") == "/var/lib/containerd");
        CHECK(directory("/var/run/crio/crio.sock") == "/var/lib/containers/storage");
        CHECK(directory("/run/cri-dockerd.sock") == "/var/lib/docker");
        made.write("/etc/containerd/config.toml",
                   "# root = '/no'\nversion = 3\nroot = '/data/c' # here\n[plugins.'io.x']\n  root = '/no'\n");
        made.write("/etc/docker/daemon.json", R"({"data-root": "/data/d"})");
        made.write("/etc/containers/storage.conf", "[storage]\ndriver = \"overlay\"\ngraphroot = \"/data/s\"\n");
        CHECK(directory("/run/containerd/containerd.sock") == "/data/c");
        CHECK(directory("/run/cri-dockerd.sock") == "/data/d");
        CHECK(directory("/run/crio/crio.sock") == "/data/s");
        made.write("/etc/crio/crio.conf",
                   "[crio]\n#root = \"/no\"\nroot = \"/data/o\"\n[crio.image]\nroot = \"/no\"\n");
        CHECK(directory("/run/crio/crio.sock") == "/data/o");
        made.write("/etc/crio/crio.conf.d/20.conf", "[crio]\nroot=\"/data/n\"\n");
        made.write("/etc/crio/crio.conf.d/30.conf", "[crio.runtime]\nlog_level = \"info\"\n");
        CHECK(directory("/run/crio/crio.sock") == "/data/n");
        made.write("/etc/docker/daemon.json", "{");
        CHECK(directory("/run/cri-dockerd.sock") == "/var/lib/docker");
    }

    TEST_CASE("names of backups stay below their directory") {
        const std::vector<std::string> bad{"", ".", "..", "../x", "a/b", ".a", "a b", "a\n", std::string(129, 'a')};
        for (const std::string& name : bad) CHECK_THROWS_AS(static_cast<void>(backup_directory(name)), Error);
        CHECK(backup_directory("before-v1.35.4+a_b") == "/var/lib/kmm-node/backups/before-v1.35.4+a_b");
    }
}
