// SPDX-License-Identifier: Apache-2.0
// What a directory cluster holds, read again only when its files are others.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "kubernetes/inventory/inventory.hpp"

namespace kmm::drive {

/// Thread safe. A proof asks several times a second, and a directory of a fleet takes seconds to read.
class DirectoryReader {
public:
    /// `read` reads the files below `directory`. Files that were changed less than `settled` before they were read may
    /// be changed again without a sign of it: they are read each time.
    DirectoryReader(std::string directory, std::function<kubernetes::Inventory()> read,
                    std::chrono::nanoseconds settled = std::chrono::seconds(2))
        : directory_(std::move(directory)), read_(std::move(read)), settled_(settled) {}

    /// Errors: those of `read`.
    [[nodiscard]] std::shared_ptr<const kubernetes::Inventory> read();

private:
    std::string directory_;
    std::function<kubernetes::Inventory()> read_;
    std::chrono::nanoseconds settled_;
    std::mutex mutex_;
    std::shared_ptr<const kubernetes::Inventory> last_;
    std::string last_signs_;  ///< of the files that `last_` is of, "" if it is not to be believed
};

}  // namespace kmm::drive
