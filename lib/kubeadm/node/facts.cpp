// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/facts.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"

namespace kmm::kubeadm {
namespace {

/// Reads what can be read and keeps why the rest cannot.
class Reader {
public:
    Reader(const Node& node, Facts& facts) : node_(node), facts_(facts) {}

    template <typename Value, typename Body>
    void take(const char* field, std::optional<Value>& into, Body body) {
        try {
            into = body();
        } catch (const Error& error) {
            facts_.unread.push_back({field, error.what()});
        }
    }

    void programs() {
        const Place& place = node_.place;
        take("kubelet.version", facts_.kubelet, [&] { return kubelet_version(place); });
        take("kubeadm.version", facts_.kubeadm, [&] { return kubeadm_version(place); });
        take("kubeadm.running", facts_.kubeadm_running, [&] { return !node_processes(place, "kubeadm").empty(); });
        take("kubelet.pid", facts_.kubelet_pid, [&] {
            const auto pids = node_processes(place, "kubelet");
            if (pids.size() == 1) return pids.front();
            throw Error(Exit::io, "io",
                        pids.empty() ? std::string("no kubelet runs") : fmt::format("{} kubelets run", pids.size()));
        });
        if (!facts_.kubelet_pid) {
            facts_.unread.push_back({"kubelet.running", facts_.unread.back().reason});
            return;
        }
        take("kubelet.running", facts_.kubelet_running, [&] {
            return version_of_program(place, {fmt::format("/proc/{}/exe", *facts_.kubelet_pid), "--version"});
        });
    }

    /// After the runtime's socket: it tells whose images there are.
    void disks() {
        const Place& place = node_.place;
        std::optional<std::string> etcd, images;
        take("disk etcd", etcd, [&] {
            const auto manifest = place.read_if_there("/etc/kubernetes/manifests/etcd.yaml");
            const auto found = manifest ? manifest_option(*manifest, "--data-dir") : std::string();
            return found.starts_with('/') ? found : "/var/lib/etcd";
        });
        take("disk images", images, [&] {
            if (facts_.runtime_socket) return image_directory(place, *facts_.runtime_socket);
            throw Error(Exit::io, "io", "the container runtime is unknown");
        });
        disk("kubernetes", "/etc/kubernetes");
        if (etcd) disk("etcd", *etcd);
        disk("kubelet", "/var/lib/kubelet");
        if (images) disk("images", *images);
    }

    void socket() {
        take("runtimeSocket.path", facts_.runtime_socket, [&] { return runtime_socket(node_.place); });
        if (!facts_.runtime_socket) return;
        take("runtimeSocket.present", facts_.runtime_socket_present, [&] {
            if (!facts_.runtime_socket->starts_with('/'))
                throw Error(Exit::io, "io", fmt::format("'{}' is not a path", base::escape(*facts_.runtime_socket)));
            if (!node_.place.exists(*facts_.runtime_socket)) return false;
            struct stat info {};
            const sys::Fd fd = node_.place.open(*facts_.runtime_socket, O_PATH);
            return ::fstat(fd.get(), &info) == 0 && S_ISSOCK(info.st_mode);
        });
    }

private:
    /// Workers have no data of etcd.
    void disk(const char* purpose, const std::string& path) {
        try {
            facts_.disks.push_back(disk_space(node_.place, path));
            facts_.disks.back().purpose = purpose;
        } catch (const Error& error) {
            const bool is_of_worker = std::string_view(purpose) == "etcd" && !facts_.etcd;
            if (!is_of_worker || error.errno_cause() != ENOENT)
                facts_.unread.push_back({fmt::format("disk {}", purpose), error.what()});
        }
    }

    const Node& node_;
    Facts& facts_;
};

value::Node text_or_null(const std::optional<std::string>& text) {
    return text ? value::Node(*text) : value::Node();
}

value::Node version_or_null(const std::optional<kubernetes::Version>& version) {
    return version ? value::Node(version->text()) : value::Node();
}

value::Node flag_or_null(const std::optional<bool>& flag) {
    return flag ? value::Node(*flag) : value::Node();
}

value::Node drop_ins_document(const std::optional<std::vector<DropIn>>& files) {
    if (!files) return {};
    auto made = value::Node::sequence();
    for (const auto& each : *files)
        made.push_back(value::Node::mapping({{"file", each.file}, {"config", each.config}}));
    return made;
}

value::Node manifest_document(const Manifest& manifest) {
    value::Node made = value::Node::mapping({{"component", manifest.component},
                                             {"expected", manifest.expected},
                                             {"present", manifest.present},
                                             {"whole", manifest.whole}});
    made.set("image", manifest.image.empty() ? value::Node() : value::Node(manifest.image));
    made.set("version", manifest.whole ? value::Node(manifest.tag) : value::Node());
    if (manifest.expected && !manifest.whole) made.set("problem", manifest.problem);
    return made;
}

value::Node api_server_document(const ApiServerFacts& facts) {
    value::Node made = value::Node::mapping({{"ready", facts.problem.empty()}, {"problem", facts.problem}});
    if (!facts.has_requests) {
        made.set("requested", value::Node());
        return made;
    }
    made.set("started", facts.started);
    value::Node requested = value::Node::sequence();
    for (const auto& api : facts.requested)
        requested.push_back(value::Node::mapping({{"group", api.group},
                                                  {"version", api.version},
                                                  {"resource", api.resource},
                                                  {"removedIn", api.removed_in}}));
    made.set("requested", std::move(requested));
    return made;
}

value::Node certificate_document(const Certificate& certificate, std::int64_t now) {
    value::Node made = value::Node::mapping({{"file", certificate.file}});
    if (!certificate.problem.empty()) {
        made.set("problem", certificate.problem);
        return made;
    }
    made.set("commonName", certificate.common_name);
    made.set("notAfter", base::format_rfc3339(certificate.not_after));
    made.set("expired", certificate.not_after <= now);
    return made;
}

}  // namespace

Facts read_facts(const Node& node, net::HttpClient& client, const FactQuestions& questions) {
    const Place& place = node.place;
    if (!place.exists("/etc/kubernetes") && place.find_program("kubelet").empty()) {
        throw Error(Exit::not_found, "not-kubernetes-node",
                    "expected /etc/kubernetes or a kubelet on this node, found neither")
            .hint(place.root().empty() ? "run it on a node of a kubeadm cluster"
                                       : "correct --host-root: the node's / is expected there");
    }
    Facts facts;
    Reader reader(node, facts);
    reader.take("node", facts.node, [&] { return node_name(place); });
    reader.take("hostName", facts.host_name, [&] { return first_line(place, "/proc/sys/kernel/hostname"); });
    reader.take("bootID", facts.boot_id, [&] { return first_line(place, "/proc/sys/kernel/random/boot_id"); });
    reader.programs();
    reader.take("manifests", facts.manifests, [&] { return read_manifests(place); });
    if (const auto manifest = place.read_if_there("/etc/kubernetes/manifests/etcd.yaml"))
        reader.take("etcd", facts.etcd, [&] { return read_etcd(place, client, *manifest); });
    if (const auto manifest = place.read_if_there("/etc/kubernetes/manifests/kube-apiserver.yaml")) {
        reader.take("apiServer", facts.api_server,
                    [&] { return read_api_server(place, client, *manifest, questions.with_requests); });
        facts.has_ca_key = place.exists(pki_directory(place) + "/ca.key");
    }
    if (facts.kubelet_pid)
        reader.take("kubelet.arguments", facts.kubelet_arguments,
                    [&] { return process_arguments(place, *facts.kubelet_pid); });
    reader.take("kubelet.ownFlags", facts.kubelet_own_flags, [&] { return kubelet_own_flags(place); });
    reader.take("kubelet.kubeadmFlags", facts.kubeadm_files, [&] {
        const bool has_instance_config = place.exists("/var/lib/kubelet/instance-config.yaml");
        return KubeadmFiles{place.read_if_there("/var/lib/kubelet/kubeadm-flags.env"), has_instance_config};
    });
    const auto arguments = facts.kubelet_arguments.value_or(std::vector<std::string>());
    reader.take("kubelet.config", facts.kubelet_config,
                [&] { return kubelet_configuration(place, kubelet_configuration_path(arguments)); });
    if (facts.kubelet_arguments)
        reader.take("kubelet.dropIns", facts.drop_ins, [&] { return kubelet_drop_ins(place, arguments); });
    if (facts.kubelet_config)
        reader.take("kubelet.healthy", facts.kubelet_problem, [&] {
            auto merged = *facts.kubelet_config;
            if (facts.drop_ins)
                for (const auto& each : *facts.drop_ins) kubernetes::merge_over(merged, each.config);
            const auto port = base::parse_number<std::int64_t>(kubernetes::kubelet_flag(arguments, "--healthz-port"));
            if (port) merged.set("healthzPort", *port);
            if (auto address = kubernetes::kubelet_flag(arguments, "--healthz-bind-address"); !address.empty())
                merged.set("healthzBindAddress", std::move(address));
            return kubelet_health(merged, client);
        });
    facts.needs_reboot = place.exists("/run/reboot-required");
    reader.take("packages", facts.packages, [&] { return read_packages(place); });
    reader.take("updaters", facts.updaters, [&] { return automatic_updaters(place); });
    facts.certificates = all_certificates(place);
    for (const Certificate& certificate : facts.certificates) {
        if (!certificate.problem.empty())
            facts.unread.push_back({"certificate " + certificate.file, certificate.problem});
    }
    reader.take("cgroup", facts.cgroup, [&] { return cgroup_version(place); });
    reader.take("swap", facts.swap, [&] { return swap_devices(place); });
    reader.socket();
    reader.disks();
    reader.take("leftovers", facts.leftovers, [&] { return place.list(k_kubeadm_copies); });
    reader.take("job", facts.job, [&] { return node.slot().look(); });
    if (questions.with_scan) {
        facts.scan.emplace();
        reader.take("scan.directories", facts.scan->directories, [&] { return scan_directories(node, questions.how); });
        reader.take("scan.packages", facts.scan->packages, [&] { return scan_packages(place); });
    }
    if (questions.with_upgrade) facts.upgrade = read_upgrade_facts(node, facts.manifests, questions, facts.unread);
    return facts;
}

value::Node job_document(const nodejob::JobView& job) {
    value::Node made = value::Node::mapping({{"state", nodejob::to_string(job.state)}});
    if (job.state == nodejob::JobState::none) return made;
    made.set("id", job.id);
    made.set("key", job.key);
    made.set("started", job.started);
    if (job.state == nodejob::JobState::finished) {
        made.set("finished", job.finished);
        made.set("exit", job.exit_code);
        if (job.signal != 0) made.set("signal", job.signal);
    }
    if (job.state == nodejob::JobState::lost) made.set("reason", job.lost_reason);
    if (job.state == nodejob::JobState::running && job.pid > 0) made.set("pid", job.pid);
    made.set("commands", value::Node::strings(job.commands));
    return made;
}

value::Node facts_document(const Facts& facts, std::int64_t now) {
    value::Node made = value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "KubernetesNodeFacts"}});
    made.set("node", text_or_null(facts.node));
    made.set("hostName", text_or_null(facts.host_name));
    made.set("bootID", text_or_null(facts.boot_id));
    made.set("controlPlane", facts.manifests ? value::Node(facts.manifests->control_plane) : value::Node());
    made.set(
        "kubelet",
        value::Node::mapping(
            {{"version", version_or_null(facts.kubelet)},
             {"running", version_or_null(facts.kubelet_running)},
             {"pid", facts.kubelet_pid ? value::Node(*facts.kubelet_pid) : value::Node()},
             {"arguments", facts.kubelet_arguments ? value::Node::strings(*facts.kubelet_arguments) : value::Node()},
             {"ownFlags", facts.kubelet_own_flags ? value::Node::strings(*facts.kubelet_own_flags) : value::Node()},
             {"kubeadmFlags", facts.kubeadm_files ? text_or_null(facts.kubeadm_files->flags) : value::Node()},
             {"instanceConfig",
              facts.kubeadm_files ? value::Node(facts.kubeadm_files->has_instance_config) : value::Node()},
             {"config", facts.kubelet_config ? *facts.kubelet_config : value::Node()},
             {"dropIns", drop_ins_document(facts.drop_ins)},
             {"healthy", facts.kubelet_problem ? value::Node(facts.kubelet_problem->empty()) : value::Node()},
             {"problem", text_or_null(facts.kubelet_problem)}}));
    made.set("kubeadm", value::Node::mapping({{"version", version_or_null(facts.kubeadm)},
                                              {"running", flag_or_null(facts.kubeadm_running)}}));
    value::Node pods = value::Node::sequence(), strays = value::Node::sequence();
    if (facts.manifests) {
        for (const Manifest& manifest : facts.manifests->pods) pods.push_back(manifest_document(manifest));
        for (const auto& stray : facts.manifests->strays)
            strays.push_back(value::Node::mapping({{"file", stray.path}, {"pod", stray.pod}}));
        made.set("manifestsWhole",
                 facts.manifests->control_plane ? value::Node(facts.manifests->problems().empty()) : value::Node());
    } else {
        made.set("manifestsWhole", value::Node());
    }
    made.set("manifests", facts.manifests ? std::move(pods) : value::Node());
    made.set("strayManifests", facts.manifests ? std::move(strays) : value::Node());
    value::Node certificates = value::Node::sequence(), disks = value::Node::sequence(),
                unread = value::Node::sequence();
    for (const Certificate& certificate : facts.certificates)
        certificates.push_back(certificate_document(certificate, now));
    made.set("etcd", facts.etcd ? etcd_document(*facts.etcd) : value::Node());
    made.set("apiServer", facts.api_server ? api_server_document(*facts.api_server) : value::Node());
    made.set("caKey", flag_or_null(facts.has_ca_key));
    made.set("rebootRequired", flag_or_null(facts.needs_reboot));
    made.set("packages", facts.packages
                             ? value::Node::mapping({{"installed", value::Node::strings(facts.packages->installed)},
                                                     {"held", value::Node::strings(facts.packages->held)}})
                             : value::Node());
    made.set("updaters", facts.updaters ? value::Node::strings(*facts.updaters) : value::Node());
    made.set("time", base::format_rfc3339(now));
    made.set("certificates", std::move(certificates));
    for (const DiskSpace& disk : facts.disks)
        disks.push_back(value::Node::mapping({{"purpose", disk.purpose},
                                              {"path", disk.path},
                                              {"freeBytes", disk.free},
                                              {"totalBytes", disk.total}}));
    made.set("disks", std::move(disks));
    made.set("cgroup", text_or_null(facts.cgroup));
    made.set("swap", facts.swap ? value::Node::strings(*facts.swap) : value::Node());
    made.set("runtimeSocket", value::Node::mapping({{"path", text_or_null(facts.runtime_socket)},
                                                    {"present", flag_or_null(facts.runtime_socket_present)}}));
    made.set("leftovers", facts.leftovers ? value::Node::strings(*facts.leftovers) : value::Node());
    made.set("job", facts.job ? job_document(*facts.job) : value::Node());
    made.set("upgrade", facts.upgrade ? upgrade_document(*facts.upgrade) : value::Node());
    made.set("scan", facts.scan ? scan_document(*facts.scan) : value::Node());
    for (const Unread& one : facts.unread)
        unread.push_back(value::Node::mapping({{"field", one.field}, {"reason", one.reason}}));
    made.set("unread", std::move(unread));
    return made;
}

}  // namespace kmm::kubeadm
