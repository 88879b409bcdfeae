// SPDX-License-Identifier: Apache-2.0
// What the services of a node say of themselves, and what else may change it: parts of read_facts.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"
#include "value/reader.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::chrono::seconds k_service_patience{2};
constexpr std::array<std::string_view, 3> k_packages{"kubelet", "kubeadm", "kubectl"};
constexpr std::string_view k_deprecated = "apiserver_requested_deprecated_apis{";

/// Status and body of an answer.
std::pair<int, std::string> get(net::HttpClient& client, net::Request request, std::size_t most) {
    std::string body;
    request.timeout = k_service_patience;
    request.proxy_rule = net::Request::ProxyRule::direct;
    const auto response = client.send(request, [&](const net::Response&, std::string_view piece) {
        body.append(piece.substr(0, most - std::min(body.size(), most)));
        return true;
    });
    return {response.status, std::move(body)};
}

std::string in_url(const std::string& address) {
    return address.find(':') == std::string::npos ? address : fmt::format("[{}]", address);
}

/// As the kubelet walks: by name, and into a directory where its name stands.
void read_drop_ins(const Place& place, const std::string& directory, int depth, std::vector<DropIn>& files) {
    constexpr int k_depth_max = 8;  // links may lead back
    for (const auto& name : place.list(directory)) {
        const auto path = fmt::format("{}/{}", directory, name);
        if (depth < k_depth_max && !place.list(path).empty()) {
            read_drop_ins(place, path, depth + 1, files);
        } else if (name.ends_with(".conf")) {
            files.push_back({path, kubelet_configuration(place, path)});
        }
    }
}

/// The value of a label in a line of metrics, "" if it has none.
std::string label_of(std::string_view line, std::string_view name) {
    const auto key = fmt::format("{}=\"", name);
    const auto at = line.find(key);
    if (at == std::string_view::npos) return {};
    const auto rest = line.substr(at + key.size());
    return std::string(rest.substr(0, rest.find('"')));
}

/// Whether unattended-upgrades is on: of an option that stands in several files, the last one counts.
bool are_upgrades_unattended(const Place& place) {
    std::map<std::string, bool, std::less<>> is_on{{"Enable", true}, {"Unattended-Upgrade", false}};
    for (const auto& file : place.list("/etc/apt/apt.conf.d")) {
        const auto text = place.read_if_there("/etc/apt/apt.conf.d/" + file);
        if (!text) continue;
        for (const auto line : base::split(*text, '\n')) {
            constexpr std::string_view k_group = "APT::Periodic::";
            const auto words = base::trim(line);
            if (!words.starts_with(k_group)) continue;
            const auto name = words.substr(k_group.size(), words.find_first_of(" \t", k_group.size()) - k_group.size());
            if (const auto found = is_on.find(name); found != is_on.end())
                found->second = words.find("\"0\"") == std::string_view::npos;
        }
    }
    return is_on["Enable"] && is_on["Unattended-Upgrade"];
}

/// Whether dnf leaves the kubelet as it is: excluded, as the repository file that Kubernetes documents does, or locked.
bool is_excluded_from_dnf(const Place& place) {
    const auto any_line = [&](const std::string& file, auto&& wanted) {
        const auto text = place.read_if_there(file);
        if (!text) return false;
        const auto lines = base::split(*text, '\n');
        return std::any_of(lines.begin(), lines.end(), [&](auto line) { return wanted(base::trim(line)); });
    };
    const auto excludes = [](std::string_view line) {
        const auto equals = line.find('=');
        const auto key = base::trim(line.substr(0, equals));
        if (equals == std::string_view::npos || (key != "exclude" && key != "excludepkgs")) return false;
        std::string words(line.substr(equals + 1));
        std::replace(words.begin(), words.end(), ',', ' ');
        const auto list = base::split(words, ' ');
        return std::any_of(list.begin(), list.end(), [](auto word) {
            word = base::trim(word);
            return word == "kubelet" || (word.ends_with('*') && std::string_view("kubelet").starts_with(
                                                                    word.substr(0, word.size() - 1)));
        });
    };
    std::vector<std::string> files{"/etc/dnf/dnf.conf", "/etc/yum.conf"};
    for (const auto& name : place.list("/etc/yum.repos.d"))
        if (name.ends_with(".repo")) files.push_back("/etc/yum.repos.d/" + name);
    return std::any_of(files.begin(), files.end(), [&](const auto& file) { return any_line(file, excludes); }) ||
           any_line("/etc/dnf/plugins/versionlock.list", [](auto line) { return line.starts_with("kubelet-"); }) ||
           any_line("/etc/dnf/versionlock.toml", [](auto line) {
               return line.starts_with("name") && line.find("\"kubelet\"") != std::string_view::npos;
           });
}

}  // namespace

std::vector<std::string> process_arguments(const Place& place, std::int64_t pid) {
    std::vector<std::string> words;
    const auto text = place.read(fmt::format("/proc/{}/cmdline", pid));
    for (const auto word : base::split(text, '\0')) words.emplace_back(word);
    if (!words.empty() && words.back().empty()) words.pop_back();
    return words;
}

value::Node kubelet_configuration(const Place& place, const std::string& path) {
    Diagnostics faults;
    auto documents = value::read_yaml(place.read(path), path, faults);
    if (!faults.empty() || documents.size() != 1 || !documents.front().root.is_mapping())
        throw Error(Exit::io, "io", fmt::format("{}: expected one mapping", path));
    auto& root = documents.front().root;
    root.erase("staticPodURLHeader");  // it may hold a token
    return std::move(root);
}

std::string kubelet_configuration_path(const std::vector<std::string>& arguments) {
    auto path = kubernetes::kubelet_flag(arguments, "--config");
    return path.starts_with('/') ? path : "/var/lib/kubelet/config.yaml";
}

std::vector<DropIn> kubelet_drop_ins(const Place& place, const std::vector<std::string>& arguments) {
    const auto directory = kubernetes::kubelet_flag(arguments, "--config-dir");
    std::vector<DropIn> files;
    if (directory.empty()) return files;
    if (!directory.starts_with('/'))
        throw Error(Exit::io, "io",
                    fmt::format("--config-dir: expected an absolute path, found '{}'", base::escape(directory)));
    read_drop_ins(place, directory, 0, files);
    return files;
}

std::string kubelet_health(const value::Node& configuration, net::HttpClient& client) {
    const auto* port = configuration.find("healthzPort");
    const auto number = port == nullptr ? std::optional<std::int64_t>(10248) : port->as_int();
    if (!number || *number == 0) throw Error(Exit::io, "io", "healthzPort is 0: it is switched off");
    const auto address = configuration.get_string({"healthzBindAddress"});
    net::Request request;
    const auto asked = address.empty() || address == "0.0.0.0" ? "127.0.0.1" : address == "::" ? "::1" : address;
    request.url = fmt::format("http://{}:{}/healthz", in_url(asked), *number);
    try {
        const auto [status, body] = get(client, request, 400);
        if (status == 200) return {};
        return fmt::format("{} answers {}: {}", request.url, status, base::trim(body));
    } catch (const Error& error) {
        return fmt::format("{} does not answer: {}", request.url, error.message());
    }
}

ApiServerFacts read_api_server(const Place& place, net::HttpClient& client, const std::string& manifest,
                               bool with_requests) {
    ApiServerFacts facts;
    const auto address = manifest_option(manifest, "--advertise-address");
    const auto port = manifest_option(manifest, "--secure-port");
    if (address.empty()) throw Error(Exit::io, "io", "the manifest of kube-apiserver names no --advertise-address");
    const auto url =
        fmt::format("https://{}:{}", in_url(address), port.empty() ? "6443" : port);
    net::Request request;
    const auto pki = pki_directory(place);
    request.tls.ca_pem = place.read(pki + "/ca.crt");
    request.tls.client_certificate_pem = place.read(pki + "/apiserver-kubelet-client.crt");
    request.tls.client_key_pem = place.read(pki + "/apiserver-kubelet-client.key");
    request.url = url + "/readyz?verbose";
    try {
        const auto [status, body] = get(client, request, 64U << 10U);
        if (status != 200) {
            facts.problem = fmt::format("/readyz answers {}", status);
            for (const auto line : base::split(body, '\n')) {
                if (line.starts_with("[-]")) facts.problem += fmt::format("; {}", line.substr(3));
            }
        }
    } catch (const Error& error) {
        facts.problem = fmt::format("{} does not answer: {}", url, error.message());
    }
    if (!with_requests || !facts.problem.empty()) return facts;
    request.url = url + "/metrics";
    request.timeout = k_service_patience * 5;
    request.proxy_rule = net::Request::ProxyRule::direct;
    std::string line;
    const auto response = client.send(request, [&](const net::Response& answer, std::string_view piece) {
        for (; answer.status == 200 && !piece.empty();) {
            const auto end = piece.find('\n');
            // Only the beginning of a line tells whether it is one of these; longer ones are no numbers of requests.
            if (line.size() < 4096) line += piece.substr(0, std::min(end, std::size_t{4096}));
            if (end == std::string_view::npos) return true;
            piece.remove_prefix(end + 1);
            if (line.starts_with(k_deprecated) && !line.ends_with(" 0"))
                facts.requested.push_back({label_of(line, "group"), label_of(line, "version"),
                                           label_of(line, "resource"), label_of(line, "removed_release")});
            if (line.starts_with("process_start_time_seconds ")) facts.started = line.substr(line.find(' ') + 1);
            line.clear();
        }
        return true;
    });
    if (response.status != 200) throw Error(Exit::io, "io", fmt::format("{} answers {}", request.url, response.status));
    facts.has_requests = true;
    return facts;
}

std::optional<PackageFacts> read_packages(const Place& place) {
    const auto text = place.read_if_there("/var/lib/dpkg/status");
    if (!text) return std::nullopt;
    PackageFacts facts;
    std::string_view name;
    for (const auto line : base::split(*text, '\n')) {
        if (line.starts_with("Package: ")) name = line.substr(9);
        if (!line.starts_with("Status: ") || std::find(k_packages.begin(), k_packages.end(), name) == k_packages.end())
            continue;
        if (!line.ends_with(" installed")) continue;
        facts.installed.emplace_back(name);
        if (line.starts_with("Status: hold ")) facts.held.emplace_back(name);
    }
    return facts;
}

std::vector<std::string> automatic_updaters(const Place& place) {
    std::vector<std::string> found;
    if (are_upgrades_unattended(place)) found.emplace_back("unattended-upgrades");
    const bool is_excluded = is_excluded_from_dnf(place);
    for (const auto& unit : place.list("/etc/systemd/system/timers.target.wants")) {
        const bool is_of_dnf = unit.starts_with("dnf-automatic") || unit.starts_with("dnf5-automatic");
        if ((is_of_dnf && !is_excluded) || unit.starts_with("transactional-update")) found.push_back(unit);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace kmm::kubeadm
