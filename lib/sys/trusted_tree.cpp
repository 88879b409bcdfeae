// SPDX-License-Identifier: Apache-2.0
#include "sys/trusted_tree.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sys/directory.hpp"
#include "sys/trust.hpp"

namespace kmm::sys {
namespace {

std::vector<DirectoryEntry> entries_of(const std::string& path) {
    try {
        return list_directory(path);
    } catch (const Error&) {
        return {};
    }
}

}  // namespace

void require_trusted_tree(const std::string& path, std::string_view what) {
    if (::geteuid() != 0) {
        return;
    }
    std::set<std::pair<dev_t, ino_t>> entered;  // links can make endless paths
    std::vector<std::string> to_judge{path};
    while (!to_judge.empty()) {
        const std::string next = std::move(to_judge.back());
        to_judge.pop_back();
        require_trusted(next, what);
        struct stat facts {};
        if (::stat(next.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) ||
            !entered.emplace(facts.st_dev, facts.st_ino).second) {
            continue;
        }
        for (const DirectoryEntry& entry : entries_of(next)) {
            to_judge.push_back(next + "/" + entry.name);
        }
    }
}

}  // namespace kmm::sys
