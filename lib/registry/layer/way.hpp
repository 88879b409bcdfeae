// SPDX-License-Identifier: Apache-2.0
// Where the wanted directories of an image really lie, if symbolic links are on the way to them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "registry/layer/path_rules.hpp"

namespace kmm::registry {

/// Where a way ends, and by which links.
struct Route {
    Wanted real;                  ///< the same directories without links; kernels in the order of the question
    std::set<std::string> links;  ///< paths of the links that were followed
};

/// The symbolic links of an image outside of the wanted part, layer by layer, and what else was passed over.
class Way {
public:
    /// The link at `path` in layer `layer` takes the place of what was there. Past k_links_bytes only `kept` links are
    /// remembered.
    void add(const std::string& path, const std::string& target, std::size_t layer, bool kept);
    /// The layer of the link at `path`; 0 if there is none.
    [[nodiscard]] std::size_t link_at(const std::string& path) const;
    /// Removes the link at `path`.
    void erase(const std::string& path);
    /// Removes what layers before `layer` have below `path`, and at `path` if `itself`.
    void erase_lower(const std::string& path, bool itself, std::size_t layer);

    /// Follows `asked` as in a file system whose root is the image: to the directory of the modules, to the kernels' in
    /// it, and to the firmware's. Errors: unsafe "image-unsafe" for a link that leaves the image, runs in a circle, or
    /// leads to its root; for a kernel's that leads to no place beside it; for more links than are remembered.
    [[nodiscard]] Route route(const Wanted& asked) const;

    /// The directory without links that `directory` means where the root of the image is the root of everything, if
    /// there is a link at or above it; nullopt if there is none, or no end. Cheap for the same directory as before.
    [[nodiscard]] const std::optional<std::string>& through(std::string_view directory);

    /// The path without links that `path` means in the same way, `path` itself if there is none on its way; nullopt if
    /// there is no end, or if there were more links than are remembered.
    [[nodiscard]] std::optional<std::string> end_of(const std::string& path) const;

    /// Notes that something at or below `directory` was seen and not taken.
    void pass(std::string_view directory);
    /// False only if nothing at or below `directory` was passed.
    [[nodiscard]] bool passed(std::string_view directory) const;

private:
    struct Link {
        std::string target;
        std::size_t layer = 0;
    };
    /// What ".." means in the root of the image.
    enum class Above : std::uint8_t { is_refused, is_root };
    [[nodiscard]] std::string walk(const std::string& path, Above above, std::set<std::string>& followed) const;

    std::map<std::string, Link, std::less<>> links_;
    std::uint64_t link_bytes_ = 0;
    bool lost_ = false;  ///< there were more links than are remembered
    std::optional<std::string> through_;  ///< what last_through_ means, until the links change
    std::optional<std::string> last_through_;
    bool last_linked_ = false;  ///< there is a link at or above last_through_
    std::unordered_set<std::size_t> passed_;
    std::string last_passed_;
};

}  // namespace kmm::registry
