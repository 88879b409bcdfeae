// SPDX-License-Identifier: Apache-2.0
// The containers of a node: what its kubelet makes of the static Pods, as crictl tells it.
#include <algorithm>
#include <iostream>
#include <sstream>

#include "fake_kubeadm_machine.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace fake {

using kmm::value::Node;

namespace {

constexpr const char* k_pod = "kmm-etcd-restore";

Node container(const std::string& name, const std::string& state) {
    return Node::mapping({{"id", name},
                          {"metadata", Node::mapping({{"name", name}})},
                          {"state", state},
                          {"labels", Node::mapping({{"io.kubernetes.pod.namespace", "kube-system"}})}});
}

Node parse_pod(const std::string& text) {
    kmm::Diagnostics faults;
    const auto documents = kmm::value::read_any(text, "-", faults);
    return kmm::has_errors(faults) || documents.size() != 1 ? Node() : documents.front().root;
}

std::string option_of(const Node& command, const std::string& name) {
    for (const auto& word : command.items())
        if (word.text().starts_with(name + "=")) return word.text().substr(name.size() + 1);
    return {};
}

/// etcd restores a snapshot: the data says of which snapshot it is, and of which cluster.
int restore_data(const fs::path& root, const Node& command) {
    const fs::path data = root / fs::path(option_of(command, "--data-dir")).relative_path();
    const std::string snapshot = read_text(root / fs::path(command.items()[3].text()).relative_path());
    if (fs::exists(data) && !fs::is_empty(data)) return 1;
    write_text(data / "member/snap/db", "restored " + option_of(command, "--initial-cluster-token") + " " +
                                            option_of(command, "--initial-cluster") + "\n" + snapshot);
    write_text(data / "member/wal/0.wal", "wal\n");
    return snapshot.empty() ? 1 : 0;
}

/// The containers that have ended: lines "NAME CODE".
std::string exit_code_of(const fs::path& root, const std::string& name) {
    std::istringstream lines(read_text(root / "fake/exited"));
    for (std::string ended, code; lines >> ended >> code;)
        if (ended == name) return code;
    return {};
}

/// The kubelet starts a new Pod once, and lets it end.
void follow_restore(const fs::path& root, bool fails) {
    const Node pod = parse_pod(read_text(root / "etc/kubernetes/manifests" / (std::string(k_pod) + ".yaml")));
    const Node* containers = pod.find_path({"spec", "containers"});
    if (containers == nullptr) return;
    const Lock lock(root / "fake/restore.lock");
    const Node& one = containers->items().front();
    const std::string name = one.get_string({"name"});
    if (!exit_code_of(root, name).empty()) return;
    append(root / "fake/log", name.substr(0, 11) + " " + one.get_string({"image"}) + "\n");
    const int code = fails ? 1 : restore_data(root, *one.find("command"));
    append(root / "fake/exited", name + " " + std::to_string(code) + "\n");
}

}  // namespace

int Machine::crictl(const std::vector<std::string>& words) const {
    const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
    if (has("ps")) {
        follow_restore(root_, is_set("restore_fails"));
        Node list = Node::sequence();
        for (const char* component : {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"})
            if (fs::exists(manifest(component)) || is_set("lingers"))
                list.push_back(container(component, "CONTAINER_RUNNING"));
        std::istringstream lines(read_text(root_ / "fake/exited"));
        for (std::string ended, code; lines >> ended >> code;) list.push_back(container(ended, "CONTAINER_EXITED"));
        std::cout << kmm::value::to_json(Node::mapping({{"containers", std::move(list)}})) << "\n";
        return 0;
    }
    if (has("inspect")) {
        const std::string code = exit_code_of(root_, words.back());
        if (code.empty()) return 1;
        std::cout << kmm::value::to_json(Node::mapping(
                         {{"status", Node::mapping({{"exitCode", static_cast<std::int64_t>(std::stoi(code))}})}}))
                  << "\n";
        return 0;
    }
    if (has("logs")) {
        std::cerr << "Error: snapshot restore: it fails\n";
        return 0;
    }
    if (has("pull")) append(root_ / "fake/images", words.back() + "\n");
    return has("pull") ? 0 : 1;
}

}  // namespace fake
