// SPDX-License-Identifier: Apache-2.0
#include "fake_kubeadm_machine.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "value/reader.hpp"
#include "value/writer.hpp"

namespace fake {

using kmm::value::Node;

std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string first_line(const fs::path& path) {
    std::string text = read_text(path);
    text.resize(std::min(text.find('\n'), text.size()));
    return text;
}

void write_text(const fs::path& path, const std::string& text, unsigned mode) {
    const fs::path fresh = path.parent_path() / ("." + path.filename().string() + "." + std::to_string(::getpid()));
    fs::create_directories(path.parent_path());
    std::ofstream(fresh, std::ios::binary) << text;
    ::chmod(fresh.c_str(), mode);
    fs::rename(fresh, path);
}

void append(const fs::path& path, const std::string& line) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
    ::close(fd);
}

std::string join(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

namespace {

constexpr std::array<const char*, 4> k_components{"etcd", "kube-apiserver", "kube-controller-manager",
                                                  "kube-scheduler"};

/// `text` with all that follows `key` on its line replaced; the same text without such a line.
std::string with_value(const std::string& text, const std::string& key, const std::string& value) {
    std::istringstream lines(text);
    std::string made;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find_first_not_of(' ');
        if (at != std::string::npos && line.compare(at, key.size(), key) == 0) line = line.substr(0, at) + key + value;
        made += line + "\n";
    }
    return made;
}

void change_file(const fs::path& path, const std::string& key, const std::string& value) {
    const std::string old = read_text(path), fresh = with_value(old, key, value);
    if (fresh != old) write_text(path, fresh);
}

Node parse(const std::string& text) {
    kmm::Diagnostics faults;
    const auto documents = kmm::value::read_any(text, "-", faults);
    return kmm::has_errors(faults) || documents.size() != 1 ? Node() : documents.front().root;
}

}  // namespace

Machine::Machine(fs::path root) : root_(std::move(root)), cluster_(root_.parent_path().parent_path() / "cluster") {
    behaviour_ = parse(read_text(root_ / "fake/behaviour"));
}

std::uintmax_t Machine::log_size() const {
    std::error_code none;
    const auto size = fs::file_size(root_ / "fake/log", none);
    return none ? 0 : size;
}

fs::path Machine::inside(const fs::path& path) const {
    fs::path found = "/", rest = path.relative_path();
    while (!rest.empty()) {
        const fs::path step = found / *rest.begin();
        fs::path others;
        for (auto part = std::next(rest.begin()); part != rest.end(); ++part) others /= *part;
        rest = others;
        const fs::path real = root_ / step.relative_path();
        if (fs::is_symlink(real)) {
            rest = (found / fs::read_symlink(real)).relative_path() / rest;
            found = "/";
        } else {
            found = step;
        }
    }
    return root_ / found.relative_path();
}

std::string Machine::brings(const std::string& component, const std::string& version) const {
    std::istringstream lines(read_text(root_ / "fake/releases"));
    for (std::string minor, etcd, coredns; lines >> minor >> etcd >> coredns;)
        if (version.starts_with(minor + "."))
            return component == "etcd" ? etcd : component == "coredns" ? coredns : version;
    return version;
}

fs::path Machine::kubelet_process() const {
    for (const auto& entry : fs::directory_iterator(root_ / "proc"))
        if (first_line(entry.path() / "comm") == "kubelet") return entry.path();
    return {};
}

void Machine::restart_kubelet() const {
    const fs::path old = kubelet_process(), fresh = root_ / "proc" / std::to_string(std::stoi(old.filename()) + 1);
    const fs::path hidden = root_ / "proc" / ("." + fresh.filename().string());
    fs::remove_all(hidden);
    fs::copy(old, hidden, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    write_text(hidden / "exe", read_text(inside("/usr/bin/kubelet")), 0755);
    fs::remove_all(old);
    fs::rename(hidden, fresh);
}

std::vector<std::string> Machine::listed(const char* key) const {
    std::vector<std::string> texts;
    if (const Node* list = behaviour_.find(key))
        for (const auto& item : list->items()) texts.push_back(item.text());
    return texts;
}

int Machine::refuse(const std::vector<std::string>& checks) const {
    std::cerr << "[preflight] Some fatal errors occurred:\n";
    for (const auto& check : checks) std::cerr << "\t[ERROR " << check << "]: it is so\n";
    std::cerr << "[preflight] If you know what you are doing, you can make a check non-fatal with "
                 "`--ignore-preflight-errors=...`\nerror execution phase preflight: preflight checks failed\n"
                 "To see the stack trace of this error execute with --v=5 or higher\n";
    return 1;
}

void Machine::at_rename(int renames) const {
    if (is_now("reboot_at", renames)) reboot();
    if (!is_now("die_at", renames)) return;
    follow();
    if (is_set("all")) ::kill(::getppid(), SIGKILL);
    ::raise(SIGKILL);
}

/// As kubeadm does it: the old manifest is moved away, the new one into its place, one component after the other.
int Machine::swap_manifests(const std::string& version) const {
    const fs::path temporary = root_ / "etc/kubernetes/tmp", fresh = temporary / "kubeadm-upgraded-manifests1";
    int stamp = 0;
    const auto backup_path = [&] {
        return temporary /
               ("kubeadm-backup-manifests-2026-11-26-10-00-" + std::to_string(stamp / 10) + std::to_string(stamp % 10));
    };
    while (fs::exists(backup_path())) ++stamp;
    fs::create_directories(backup_path());
    int renames = 0;
    const fs::path configuration = cluster_ / "configmaps/kube-system/kubeadm-config.yaml";
    const bool is_external = read_text(configuration).find("external:") != std::string::npos;
    for (const std::string component : k_components) {
        if (component == "etcd" && is_external) continue;
        const std::string old = read_text(manifest(component));
        const std::size_t image = old.find("/" + component + ":");
        if (image == std::string::npos) return refuse({"StaticPodManifest"});
        const std::size_t tag = image + component.size() + 2, end = old.find('\n', tag);
        const std::string text = old.substr(0, tag) + brings(component, version) + old.substr(end);
        if (text == old) {
            std::cout << "[upgrade/staticpods] Current and new manifests of " << component
                      << " are equal, skipping upgrade\n";
            continue;
        }
        write_text(fresh / (component + ".yaml"), text, 0600);
        at_rename(renames);
        fs::rename(manifest(component), backup_path() / (component + ".yaml"));
        at_rename(++renames);
        fs::rename(fresh / (component + ".yaml"), manifest(component));
        ++renames;
        follow_pod(component);
    }
    at_rename(renames);
    return 0;
}

/// kube-proxy and CoreDNS follow when every API server has been upgraded.
void Machine::upgrade_addons(const std::string& version) const {
    const fs::path pods = cluster_ / "pods/kube-system";
    if (!fs::exists(pods)) return;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(pods)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("kube-apiserver-") && read_text(entry.path()).find(":" + version) == std::string::npos)
            return;
        if (name.starts_with("kube-proxy-") || name.starts_with("coredns-")) files.push_back(entry.path());
    }
    for (const auto& file : files) {
        const bool is_proxy = file.filename().string().starts_with("kube-proxy-");
        std::string text = read_text(file);
        const std::string mark = is_proxy ? "/kube-proxy:" : "/coredns:";
        for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
            at += mark.size();
            text.replace(at, text.find_first_of("\"\n", at) - at, is_proxy ? version : brings("coredns", version));
        }
        write_text(file, text);
    }
}

int Machine::kubeadm(const std::string& version, const std::vector<std::string>& words) const {
    if (words.front() == "version") {
        std::cout << version << "\n";
        return 0;
    }
    if (words.front() == "config") {
        const auto option = [&](const char* name) {
            const auto at = std::find(words.begin(), words.end(), name);
            return at == words.end() ? std::string() : at[1];
        };
        std::string of = version, repository = option("--image-repository"), names;
        Node configuration = Node::mapping();
        if (const std::string file = option("--config"); !file.empty()) {
            kmm::Diagnostics faults;
            for (auto& document : kmm::value::read_yaml(read_text(inside(file)), file, faults))
                configuration = std::move(document.root);  // the last one is that of the cluster
            of = configuration.get_string({"kubernetesVersion"});
            repository = configuration.get_string({"imageRepository"});
        }
        if (repository.empty()) repository = "registry.k8s.io";
        const auto image = [&](const std::string& component, const Node* part) {
            const auto own = part == nullptr ? "" : part->get_string({"imageRepository"});
            const auto tag = part == nullptr ? "" : part->get_string({"imageTag"});
            names += (own.empty() ? repository : own) + "/" + component + ":" +
                     (tag.empty() ? brings(component, of) : tag) + "\n";
        };
        for (const std::string component : k_components)
            if (component != "etcd") image(component, nullptr);
            else if (configuration.find_path({"etcd", "external"}) == nullptr)
                image(component, configuration.find_path({"etcd", "local"}));
        if (const auto* dns = configuration.find("dns")) image("coredns", dns);
        if (words[2] == "list") std::cout << names;
        else if (!is_set("lie")) write_text(root_ / "fake/images", names);
        return 0;
    }
    if (words.size() > 1 && words[1] == "diff") {
        std::cout << behaviour_.get_string({"drift"});
        return 0;
    }
    if (words.size() > 2 && words[2] == "phase") return is_set("refuses") ? refuse(listed("refuses")) : 0;
    while (is_set("hold") && !fs::exists(root_ / "fake/go")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    auto refused = listed("preflight");
    for (const auto& word : words)
        if (constexpr std::string_view flag = "--ignore-preflight-errors="; word.starts_with(flag))
            std::erase(refused, word.substr(flag.size()));
    if (!refused.empty()) return refuse(refused);
    if (is_set("lie")) return 0;
    const bool is_first = words[1] == "apply";
    const fs::path configuration = cluster_ / "configmaps/kube-system/kubeadm-config.yaml";
    std::string target = version;
    if (!is_first && fs::exists(configuration)) {
        // kubeadm upgrade node goes to what the cluster says.
        const std::string text = read_text(configuration), key = "kubernetesVersion: ";
        const std::size_t at = text.find(key) + key.size();
        target = text.substr(at, text.find('\n', at) - at);
    }
    // By this manifest kubeadm knows a control plane.
    if (!fs::exists(manifest("kube-apiserver"))) {
        if (is_first) return refuse({"StaticPodManifest"});
        std::cout << "[upgrade] Skipping phase. Not a control plane node.\n";
    } else {
        if (const int failed = swap_manifests(is_first ? words[2] : target); failed != 0) return failed;
        if (is_set("late")) ::raise(SIGKILL);
        if (is_first && fs::exists(configuration)) change_file(configuration, "kubernetesVersion: ", words[2]);
        upgrade_addons(is_first ? words[2] : target);
    }
    write_text(root_ / "var/lib/kubelet/config.yaml",
               "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nstaticPodPath: "
               "/etc/kubernetes/manifests\nhealthzPort: 0\ncgroupDriver: systemd\n# " +
                   version + "\n");
    if (is_first)
        std::cout << "[upgrade] SUCCESS! A control plane node of your cluster was upgraded to \"" << words[2]
                  << "\".\n";
    return 0;
}

/// apt-get with words like kubelet=1.35.4-*
void Machine::install(const std::vector<std::string>& words, bool simulates) const {
    for (const auto& word : words) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos || !word.ends_with("-*")) continue;
        const std::string package = word.substr(0, equals), version = word.substr(equals + 1, word.size() - equals - 3);
        if (!simulates) {
            write_text(root_ / "usr/bin" / package, "#!/bin/sh\n# " + package + " v" + version + "\nexit 1\n", 0755);
            continue;
        }
        std::cout << "Inst " << package << " [old] (" << version << "-* repository)\n";
        if (is_set("removes")) std::cout << "Remv containerd [1.7]\n";
    }
}

/// dnf with its plugin versionlock: no other version of what is locked is known.
void Machine::dnf(const std::vector<std::string>& words) const {
    const fs::path list = root_ / "etc/dnf/plugins/versionlock.list";
    const bool heeds_locks = std::find(words.begin(), words.end(), "--disableplugin=versionlock") == words.end();
    std::vector<std::string> locks;
    if (fs::exists(list)) {
        std::istringstream lines(read_text(list));
        for (std::string line; std::getline(lines, line);) locks.push_back(line);
    }
    const bool is_lock = words.size() > 1 && words[0] == "versionlock";
    for (const auto& word : words) {
        const auto dash = word.rfind('-');
        if (is_lock && words[1] == "delete") std::erase(locks, word);
        if (dash == std::string::npos || word.starts_with('-') || !word.ends_with(".4")) continue;
        const auto package = word.substr(0, dash), version = word.substr(dash + 1);
        if (is_lock) {
            if (words[1] == "add") locks.push_back(package + "-0:" + version + "-150500.1.1.*");
            continue;
        }
        const bool is_locked = heeds_locks && std::any_of(locks.begin(), locks.end(), [&](const auto& lock) {
            return lock.starts_with(package + "-0:") && !lock.starts_with(package + "-0:" + version);
        });
        if (is_locked) continue;
        if (std::find(words.begin(), words.end(), "repoquery") != words.end())
            std::cout << word << "-150500.1.1.noarch\n";
        else
            write_text(root_ / "usr/bin" / package, "#!/bin/sh\n# " + package + " v" + version + "\nexit 1\n", 0755);
    }
    if (is_lock) {
        std::string text;
        for (const auto& lock : locks) text += lock + "\n";
        write_text(list, text);
    }
}

int Machine::run(const std::string& name, const std::string& version, const std::vector<std::string>& words) {
    const std::string line = name + " " + join(words);
    const bool simulates = std::find(words.begin(), words.end(), "-s") != words.end();
    const bool asks = name == "crictl" || name == "kubelet" || name == "apt-cache" || simulates ||
                      (name == "dnf" && line.find(" repoquery ") != std::string::npos) ||
                      line.starts_with("kubeadm version") || line.starts_with("kubeadm config images list") ||
                      line.starts_with("kubeadm upgrade diff") ||
                      line.starts_with("kubeadm upgrade apply phase preflight");
    if (!asks) append(root_ / "fake/log", line + "\n");
    if (!asks && behaviour_.get_string({"fail"}) == name) {
        std::cerr << name << ": it fails\n";
        return 1;
    }
    if (!asks && is_set("reboot_in") && behaviour_.get_string({"reboot_in"}) == line) reboot();
    if (name == "kubelet") {
        std::cout << "Kubernetes " << version << "\n";
        return 0;
    }
    if (name == "apt-cache") {
        // "1.35.4" is a version of every package, "kubelet 1.35.4" of one.
        for (auto word = words.begin() + 1; word != words.end(); ++word) {
            for (auto available : listed("packages")) {
                if (const auto space = available.find(' '); space != std::string::npos) {
                    if (available.substr(0, space) != *word) continue;
                    available.erase(0, space + 1);
                }
                std::cout << "   " << *word << " | " << available << "-1.1 | https://packages.example Packages\n";
            }
        }
        return 0;
    }
    if (name == "crictl") {
        const std::string given = behaviour_.get_string({"sandbox"});
        const std::string sandbox = given.empty() ? "registry.k8s.io/pause:3.10.1" : given;
        if (words.back() == "info") {
            std::cout << kmm::value::to_json(Node::mapping({{"config", Node::mapping({{"sandboxImage", sandbox}})}}))
                      << "\n";
            return 0;
        }
        if (std::find(words.begin(), words.end(), "images") == words.end()) return crictl(words);
        Node images = Node::sequence({Node::mapping({{"id", sandbox}, {"repoTags", Node::strings({sandbox})}})});
        std::istringstream tags(read_text(root_ / "fake/images"));
        for (std::string tag; tags >> tag;)
            images.push_back(Node::mapping({{"id", tag}, {"repoTags", Node::strings({tag})}}));
        std::cout << kmm::value::to_json(Node::mapping({{"images", std::move(images)}})) << "\n";
        return 0;
    }
    int result = 0;
    if (name == "kubeadm") result = kubeadm(version, words);
    if (name == "systemctl" && words.front() == "restart" && !is_set("stale")) restart_kubelet();
    if (name == "apt-get") install(words, simulates);
    if (name == "dnf") dnf(words);
    if (!asks) follow();
    return result;
}

/// The mirror Pod of a static Pod: as the manifest says, gone without one.
void Machine::follow_pod(const std::string& component) const {
    const fs::path file = cluster_ / "pods/kube-system" / (component + "-" + name() + ".yaml");
    Node pod = parse(read_text(manifest(component)));
    const Node* containers = pod.find_path({"spec", "containers"});
    if (containers == nullptr || containers->items().size() != 1) {
        fs::remove(file);
        return;
    }
    const std::string image = containers->items().front().get_string({"image"});
    pod.set("metadata", Node::mapping({{"name", component + "-" + name()},
                                       {"namespace", "kube-system"},
                                       {"labels", Node::mapping({{"component", component}, {"tier", "control-plane"}})},
                                       {"annotations", Node::mapping({{"kubernetes.io/config.mirror", "hash"}})},
                                       {"ownerReferences", Node::sequence({Node::mapping({{"apiVersion", "v1"},
                                                                                          {"kind", "Node"},
                                                                                          {"name", name()},
                                                                                          {"uid", "uid-" + name()},
                                                                                          {"controller", true}})})}}));
    pod.find("spec")->set("nodeName", name());
    const Node ready = Node::mapping({{"type", "Ready"}, {"status", "True"}});
    const Node status = Node::mapping({{"name", component}, {"image", image}, {"ready", true}});
    pod.set("status", Node::mapping({{"phase", "Running"},
                                     {"conditions", Node::sequence({ready})},
                                     {"containerStatuses", Node::sequence({status})}}));
    const std::string text = kmm::value::to_json_pretty(pod);
    if (read_text(file) != text) write_text(file, text);
}

void Machine::follow() const {
    if (!fs::exists(cluster_)) return;
    const Lock lock(root_ / "fake/follow.lock");
    if (fs::exists(root_ / "etc/kubernetes/pki/apiserver.crt"))
        for (const auto* component : k_components) follow_pod(component);
    const fs::path kubelet = kubelet_process();
    std::istringstream words(read_text(kubelet / "exe"));
    std::string word, version;
    while (words >> word && word != "kubelet") {}
    words >> version;
    const fs::path node = cluster_ / "nodes" / (name() + ".yaml");
    const std::string old = read_text(node);
    const std::string text = with_value(with_value(old, "kubeletVersion: ", version),
                                        "bootID: ", first_line(root_ / "proc/sys/kernel/random/boot_id"));
    if (text != old) write_text(node, text);
    const auto now =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    const std::time_t seconds = now / 1'000'000;
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> time{}, fraction{};
    std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    std::snprintf(fraction.data(), fraction.size(), ".%06dZ", static_cast<int>(now % 1'000'000));
    write_text(cluster_ / "leases/kube-node-lease" / (name() + ".yaml"),
               "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata:\n  name: " + name() +
                   "\n  namespace: kube-node-lease\nspec:\n  holderIdentity: " + name() +
                   "\n  leaseDurationSeconds: 40\n  renewTime: \"" + time.data() + fraction.data() + "\"\n");
}

void Machine::await_reboot() const { const Lock rebooting(root_ / "fake/reboot.lock"); }

/// Ends what runs on the node, known by its environment, and at last the caller if that runs there, too.
void Machine::reboot() const {
    const Lock rebooting(root_ / "fake/reboot.lock");
    const std::string mark = "KMM_HOST_ROOT=" + root_.string() + '\0';
    bool is_ours = false;
    for (bool found = true; found;) {
        found = false;
        for (const auto& entry : fs::directory_iterator("/proc", fs::directory_options::skip_permission_denied)) {
            const int pid = std::atoi(entry.path().filename().c_str());
            if (pid <= 0 || read_text(entry.path() / "environ").find(mark) == std::string::npos) continue;
            if (pid == ::getpid()) is_ours = true;
            else if (read_text(entry.path() / "stat").find(") Z ") == std::string::npos)
                found = ::kill(pid, SIGKILL) == 0 || found;
        }
    }
    const std::string old = first_line(root_ / "proc/sys/kernel/random/boot_id");
    std::array<char, 13> count{};
    std::snprintf(count.data(), count.size(), "%012llx", std::stoull(old.substr(old.size() - 12), nullptr, 16) + 1);
    write_text(root_ / "proc/sys/kernel/random/boot_id", old.substr(0, old.size() - 12) + count.data() + "\n");
    restart_kubelet();
    // It happens once.
    Node left = behaviour_;
    for (const char* key : {"reboot_at", "reboot_in"}) left.erase(key);
    write_text(root_ / "fake/behaviour", left.is_mapping() ? kmm::value::to_json(left) : "{}");
    follow();
    if (is_ours) ::raise(SIGKILL);
}

}  // namespace fake
