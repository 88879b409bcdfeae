// SPDX-License-Identifier: Apache-2.0
// Where render's manifests go: standard output, or a directory of files that remembers which of them are its own.
#pragma once

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "sys/file_ops.hpp"
#include "value/node.hpp"

namespace kmm::tool_plan {

/// The objects as one text: YAML documents, a List as JSON, JSON lines, or KIND/NAME lines.
[[nodiscard]] std::string documents_text(const std::vector<value::Node>& documents, const std::string& output);

/// One file to write.
struct OutputFile {
    std::string name;   ///< relative to the directory, may have directories of its own
    std::string bytes;
};

enum class Prune { no, yes };

/// What happened to the files of the directory. Names, sorted.
struct OutputChanges {
    std::vector<std::string> written, unchanged, removed;
    std::vector<std::string> changed_by_others;  ///< no longer wanted, but not as they were written: left alone
    std::vector<std::string> in_use;             ///< no longer made, but still needed: left alone
};

/// Makes `directory` hold `files`. Files whose bytes are as wanted are not touched, others replaced atomically. The
/// list of files that were written, with their digests, is kept in DIRECTORY/.kmm-render.json; it is written before the
/// files, so that a killed run owns what it wrote. With Prune::yes files of that list that are not wanted are removed,
/// with directories that are empty then, unless their bytes are not those that were written or `in_use` names them. No
/// link is followed, replaced or removed. Errors: data "not-ours" if a wanted name is taken by a file that is not on
/// the list and has other bytes, or by a link or directory; data "damaged-list" for a list that cannot be read;
/// from_errno.
[[nodiscard]] OutputChanges write_files(sys::FileOps& ops, const std::string& directory,
                                        const std::vector<OutputFile>& files, Prune prune,
                                        const std::vector<std::string>& in_use);

}  // namespace kmm::tool_plan
