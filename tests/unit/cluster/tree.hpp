// SPDX-License-Identifier: Apache-2.0
// A cluster directory on disk for tests.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sys/temp_dir.hpp"

namespace kmm::test {

/// Files below a temporary directory that goes away with the object.
class Tree {
public:
    Tree() : dir_("kmm-cluster-test-") {}
    [[nodiscard]] std::string path(const std::string& name = "") const {
        return dir_.path() + "/fleet" + (name.empty() ? "" : "/" + name);
    }
    void put(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        std::ofstream(path(name), std::ios::binary) << text;
    }
    [[nodiscard]] std::string get(const std::string& name) const {
        const std::ifstream file(path(name), std::ios::binary);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }
    /// All files, hidden ones too, as "NAME " each.
    [[nodiscard]] std::string names() const {
        std::vector<std::string> found;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
            if (entry.is_regular_file()) found.push_back(entry.path().lexically_relative(path()).string());
        }
        std::sort(found.begin(), found.end());
        std::string out;
        for (const auto& name : found) out += name + " ";
        return out;
    }

private:
    sys::TempDir dir_;
};

inline const std::string k_node_a =
    "# rack 7\napiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n  labels:\n    zone: eu  # do not move\n"
    "status:\n  nodeInfo:\n    kernelVersion: 6.1.0-1-amd64\n";

}  // namespace kmm::test
