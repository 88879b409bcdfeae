// SPDX-License-Identifier: Apache-2.0
// --ignore: what is left out below the directories of -f.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kmm::cluster {

/// The globs of --ignore, and which of them are about nothing. A glob with a slash is compared with the path below the
/// directory and with those of the directories on the way, one without with each name.
class Ignored {
public:
    /// `out`: of --out, "" without one; a glob that takes it is of use also before it is there.
    Ignored(const std::vector<std::string>& globs, const std::string& out);

    /// Errors: usage "missing-option" if there are globs and none of `names`, those of -f, is a directory.
    void require_directory(const std::vector<std::string>& names) const;
    /// Whether `path`, below a directory of -f, is left out.
    [[nodiscard]] bool takes(std::string_view path);
    /// A line for each glob that has taken nothing.
    [[nodiscard]] std::string notes() const;

private:
    std::vector<std::pair<std::string, bool>> globs_;
};

}  // namespace kmm::cluster
