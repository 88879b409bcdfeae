// SPDX-License-Identifier: Apache-2.0
// A node of a kubeadm cluster made of files: what its programs, its kubelet and the controllers of the cluster do. See
// fake_kubernetes_node.cpp.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "value/node.hpp"

namespace fake {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path);
std::string first_line(const fs::path& path);
/// By rename: readers see the old text or the new one.
void write_text(const fs::path& path, const std::string& text, unsigned mode = 0644);
void append(const fs::path& path, const std::string& line);
std::string join(const std::vector<std::string>& words);

class Lock {
public:
    explicit Lock(const fs::path& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        ::flock(fd_, LOCK_EX);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { ::close(fd_); }

private:
    int fd_;
};

class Machine {
public:
    explicit Machine(fs::path root);

    [[nodiscard]] const fs::path& root() const { return root_; }
    [[nodiscard]] std::string name() const { return first_line(root_ / "proc/sys/kernel/hostname"); }
    [[nodiscard]] std::uintmax_t log_size() const;

    /// Where a path of the node is, with its absolute links.
    [[nodiscard]] fs::path inside(const fs::path& path) const;

    /// Plays the program of that name and version; its exit code.
    int run(const std::string& name, const std::string& version, const std::vector<std::string>& words);
    /// Brings the objects of the cluster to what the node's files say.
    void follow() const;
    /// All that runs on the node ends, the caller, too, if it does.
    void reboot() const;
    /// Returns once no reboot is under way.
    void await_reboot() const;

private:
    [[nodiscard]] std::vector<std::string> listed(const char* key) const;
    [[nodiscard]] bool is_set(const char* key) const { return behaviour_.find(key) != nullptr; }
    [[nodiscard]] bool is_now(const char* key, int renames) const {
        return is_set(key) && behaviour_.find(key)->as_int() == renames;
    }

    /// "etcd" or "coredns" that kubeadm of this version brings.
    [[nodiscard]] std::string brings(const std::string& component, const std::string& version) const;
    [[nodiscard]] fs::path manifest(const std::string& component) const {
        return root_ / "etc/kubernetes/manifests" / (component + ".yaml");
    }
    [[nodiscard]] fs::path kubelet_process() const;
    void restart_kubelet() const;
    int refuse(const std::vector<std::string>& checks) const;
    int swap_manifests(const std::string& version) const;
    void at_rename(int renames) const;
    void upgrade_addons(const std::string& version) const;
    int kubeadm(const std::string& version, const std::vector<std::string>& words) const;
    void install(const std::vector<std::string>& words, bool simulates) const;
    void dnf(const std::vector<std::string>& words) const;
    void follow_pod(const std::string& component) const;
    /// crictl ps, inspect, logs and pull: fake_kubelet.cpp.
    int crictl(const std::vector<std::string>& words) const;

    fs::path root_;
    fs::path cluster_;
    kmm::value::Node behaviour_;
};

}  // namespace fake
