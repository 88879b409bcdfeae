// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <initializer_list>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"
#include "value/reader.hpp"
#include "toml/reader.hpp"

namespace kmm::kubeadm {
namespace {

constexpr const char* k_kubelet_conf = "/etc/kubernetes/kubelet.conf";
constexpr std::string_view k_unix = "unix://";
constexpr const char* k_default_socket = "/run/containerd/containerd.sock";  ///< of a kubelet that is given none

std::string without_scheme(std::string_view endpoint) {
    if (endpoint.starts_with(k_unix)) endpoint.remove_prefix(k_unix.size());
    return std::string(endpoint);
}

constexpr const char* k_endpoint_flag = "--container-runtime-endpoint";

/// The arguments of the kubelet that runs; none where it cannot be told which one that is.
std::vector<std::string> running_arguments(const Place& place) {
    try {
        const auto pids = node_processes(place, "kubelet");
        return pids.size() == 1 ? process_arguments(place, pids.front()) : std::vector<std::string>();
    } catch (const Error&) {
        return {};
    }
}

/// That of the last file in the kubelet's --config-dir that has one; "" if none does.
std::string endpoint_in_drop_ins(const Place& place, const std::vector<std::string>& arguments) {
    std::string endpoint;
    for (const auto& file : kubelet_drop_ins(place, arguments))
        if (auto found = file.config.get_string({"containerRuntimeEndpoint"}); !found.empty())
            endpoint = std::move(found);
    return endpoint;
}

/// containerRuntimeEndpoint of a KubeletConfiguration; "" if the file is absent or does not say.
std::string endpoint_in_config(const Place& place, const std::string& path) {
    const auto text = place.read_if_there(path);
    if (!text) return {};
    Diagnostics faults;
    const auto documents = value::read_yaml(*text, path, faults);
    if (!faults.empty() || documents.size() != 1) throw Error(Exit::io, "io", path + ": expected one YAML document");
    return documents.front().root.get_string({"containerRuntimeEndpoint"});
}

/// The last --container-runtime-endpoint of KUBELET_KUBEADM_ARGS="..."; "" if there is none.
std::string endpoint_in_flags(const Place& place) {
    const auto text = place.read_if_there("/var/lib/kubelet/kubeadm-flags.env");
    if (!text) return {};
    constexpr std::string_view flag = "--container-runtime-endpoint=";
    const std::size_t at = text->rfind(flag);
    if (at == std::string::npos) return {};
    const std::string_view rest = std::string_view(*text).substr(at + flag.size());
    return std::string(rest.substr(0, rest.find_first_of(" \"'\n")));
}

/// The text at `keys` of a TOML file; "" if the file is absent, is none, or does not say.
std::string toml_text(const Place& place, const std::string& path, std::initializer_list<std::string_view> keys) {
    const auto text = place.read_if_there(path);
    Diagnostics faults;
    const auto document = text ? toml::read(*text, path, faults) : std::nullopt;
    return document ? document->root.get_string(keys) : std::string();
}

std::string docker_root(const Place& place) {
    constexpr const char* k_path = "/etc/docker/daemon.json";
    const auto text = place.read_if_there(k_path);
    if (!text) return {};
    Diagnostics faults;
    const auto documents = value::read_json(*text, k_path, faults);
    return faults.empty() && documents.size() == 1 ? documents.front().root.get_string({"data-root"}) : std::string();
}

}  // namespace

std::string first_line(const Place& place, const std::string& path) {
    return std::string(base::trim(place.read(path)));
}

std::vector<std::string> kubelet_own_flags(const Place& place) {
    std::vector<std::string> files{"/etc/default/kubelet", "/etc/sysconfig/kubelet"}, flags;
    for (const char* directory :
         {"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"}) {
        files.push_back(std::string(directory) + "/kubelet.service");
        const std::string more = files.back() + ".d";
        for (const std::string& name : place.list(more)) files.push_back(more + "/" + name);
    }
    for (const std::string& file : files) {
        const auto text = place.read_if_there(file);
        if (!text) continue;
        for (std::string_view line : base::split(*text, '\n')) {
            line = base::trim(line);
            if (line.starts_with('#')) continue;
            // As in KUBELET_EXTRA_ARGS="--a=b --c": a flag begins a word, a quotation or a value.
            for (std::size_t at = line.find("--"); at != std::string_view::npos; at = line.find("--", at + 2)) {
                constexpr std::string_view before = " \t\"'=";
                if (at != 0 && before.find(line[at - 1]) == std::string_view::npos) continue;
                flags.emplace_back(line.substr(at, line.find_first_of(" \t\"'", at) - at));
            }
        }
    }
    return flags;
}

std::string node_name(const Place& place) {
    const Certificate certificate = client_certificate(place, k_kubelet_conf);
    if (!certificate.problem.empty()) throw Error(Exit::io, "io", certificate.file + ": " + certificate.problem);
    constexpr std::string_view prefix = "system:node:";
    if (!certificate.common_name.starts_with(prefix) || certificate.common_name.size() == prefix.size()) {
        throw Error(Exit::io, "io",
                    fmt::format("{}: expected the name system:node:NAME, found '{}'", certificate.file,
                                base::escape(certificate.common_name)));
    }
    return certificate.common_name.substr(prefix.size());
}

std::string cgroup_version(const Place& place) {
    if (place.exists("/sys/fs/cgroup/cgroup.controllers")) return "v2";
    if (place.exists("/sys/fs/cgroup/memory")) return "v1";
    throw Error(Exit::io, "io", "/sys/fs/cgroup is neither cgroup v2 nor v1");
}

std::vector<std::string> swap_devices(const Place& place) {
    std::vector<std::string> devices;
    const std::string text = place.read("/proc/swaps");
    if (!text.starts_with("Filename")) throw Error(Exit::io, "io", "/proc/swaps: expected its header");
    const auto lines = base::split(text, '\n');
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (!base::trim(lines[i]).empty()) devices.emplace_back(lines[i].substr(0, lines[i].find_first_of(" \t")));
    }
    return devices;
}

std::string runtime_socket(const Place& place) {
    // kubeadm 1.34 moved it from the flags into instance-config.yaml, which is merged into config.yaml. A flag wins
    // over both, and those of the service, which come last, over kubeadm's.
    const auto arguments = running_arguments(place);
    // Files of the service may be of another one: what it was started with counts.
    for (const auto& flag :
         {kubernetes::kubelet_flag(arguments.empty() ? kubelet_own_flags(place) : arguments, k_endpoint_flag),
          endpoint_in_flags(place)})
        if (!flag.empty()) return without_scheme(flag);
    if (const auto endpoint = endpoint_in_drop_ins(place, arguments); !endpoint.empty())
        return without_scheme(endpoint);
    const auto config = kubelet_configuration_path(arguments);
    for (const auto& path : {std::string("/var/lib/kubelet/instance-config.yaml"), config})
        if (const std::string endpoint = endpoint_in_config(place, path); !endpoint.empty())
            return without_scheme(endpoint);
    if (place.exists(config)) return k_default_socket;
    throw Error(Exit::io, "io",
                "neither kubeadm-flags.env nor instance-config.yaml nor config.yaml of /var/lib/kubelet names the "
                "container runtime");
}

std::string image_directory(const Place& place, const std::string& socket) {
    const auto first = [](std::initializer_list<std::string> candidates) {
        for (const auto& each : candidates)
            if (each.starts_with('/')) return each;
        return std::string();
    };
    if (socket.find("docker") != std::string::npos) return first({docker_root(place), "/var/lib/docker"});
    if (socket.find("crio") == std::string::npos)
        return first({toml_text(place, "/etc/containerd/config.toml", {"root"}), "/var/lib/containerd"});
    // Files of crio.conf.d win over crio.conf, the last one over all; without any of them, the containers' own.
    std::string root = toml_text(place, "/etc/crio/crio.conf", {"crio", "root"});
    constexpr const char* k_more = "/etc/crio/crio.conf.d";
    for (const auto& name : place.list(k_more))
        if (auto found = toml_text(place, fmt::format("{}/{}", k_more, name), {"crio", "root"}); !found.empty())
            root = std::move(found);
    return first({root, toml_text(place, "/etc/containers/storage.conf", {"storage", "graphroot"}),
                  "/var/lib/containers/storage"});
}

DiskSpace disk_space(const Place& place, const std::string& path) {
    const sys::Fd fd = place.open(path, O_RDONLY | O_DIRECTORY);
    struct statvfs info {};
    if (::fstatvfs(fd.get(), &info) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot ask for the space of " + path);
    }
    return {path, info.f_bfree * info.f_frsize, info.f_blocks * info.f_frsize, {}};
}

}  // namespace kmm::kubeadm
