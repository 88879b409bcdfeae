// SPDX-License-Identifier: Apache-2.0
// A node made of files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "kubeadm/node.hpp"
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
};

}  // namespace kmm::kubeadm::test
