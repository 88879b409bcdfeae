// SPDX-License-Identifier: Apache-2.0
#include "sys/durable_names.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "sys/directory.hpp"

namespace kmm::sys {

namespace {

void add_once(std::vector<std::string>& directories, std::string directory) {
    if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
        directories.push_back(std::move(directory));
    }
}

}  // namespace

void DurableNames::place(int fd, const std::string& from, const std::string& to) {
    ops_.sync(fd);
    move(from, to);
}

void DurableNames::move(const std::string& from, const std::string& to) {
    ops_.rename(from, to);
    add_once(given_, parent_of(to));
    add_once(taken_, parent_of(from));
}

void DurableNames::note(const std::string& directory) { add_once(given_, directory); }

void DurableNames::finish() {
    for (std::string& directory : std::exchange(taken_, {})) {
        add_once(given_, std::move(directory));
    }
    for (const std::string& directory : std::exchange(given_, {})) {
        try {
            ops_.sync_dir(directory);
        } catch (const Error& error) {
            if (error.errno_cause() != ENOENT) {
                throw;
            }
        }
    }
}

}  // namespace kmm::sys
