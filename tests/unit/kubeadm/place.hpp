// SPDX-License-Identifier: Apache-2.0
// A node made of files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/text.hpp"
#include "kubeadm/node/node.hpp"
#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::kubeadm::test {

struct Made {
    sys::TempDir top{"kmm-kubeadm-test-"};
    sys::LinuxFileOps ops;
    sys::LinuxClock clock;
    sys::LinuxRandom random;

    [[nodiscard]] std::string path(const std::string& inside) const { return top.path() + inside; }
    [[nodiscard]] Place place() const { return Place(top.path()); }
    [[nodiscard]] Node node() { return {place(), ops, clock, random, std::nullopt, [] { return false; }}; }
    void write(const std::string& inside, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(path(inside)).parent_path());
        std::ofstream(path(inside)) << text;
    }
    /// What a node has beside manifests.
    void write_rest() const {
        write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n");
        const auto certificate = sys::read_file(std::string(KMM_SOURCE_DIR) + "/tests/support/kubeadm_certs/node.crt");
        write("/etc/kubernetes/kubelet.conf",
              "current-context: a\ncontexts: [{name: a, context: {user: u}}]\nusers:\n- name: u\n  user: "
              "{client-certificate-data: " + base::to_base64(certificate) + "}\n");
        std::filesystem::create_directories(path("/proc"));
        write("/proc/sys/kernel/random/boot_id", "11111111-2222-4333-8444-555555555555\n");
    }
};

}  // namespace kmm::kubeadm::test
