// SPDX-License-Identifier: Apache-2.0
// Programs of the administrator that are asked before and during an upgrade: about applications, and about patches.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubernetes/versions/applications.hpp"
#include "kubernetes/versions/patches.hpp"

namespace kmm::drive {

/// How long one program may take.
inline constexpr std::chrono::milliseconds k_program_timeout{60'000};

/// Names of the programs in `directory`, sorted. Names that begin with a dot are left out. Errors: not_found and others
/// of the system for the directory; usage "not-a-program", with each file that is not executable, and for a directory
/// without a program; no_permission "untrusted-file" for one that root must not run. `option` is for messages.
[[nodiscard]] std::vector<std::string> programs_of(const std::string& directory, const std::string& option);

/// The programs of a directory: each is run with FROM and TO as its arguments and prints what
/// kubernetes::read_program_answer reads. Several run at a time. A question is asked once.
class DirectoryPrograms final : public kubernetes::AppPrograms {
public:
    /// Errors: those of programs_of.
    DirectoryPrograms(std::string directory, std::function<bool()> interrupted,
                      std::chrono::milliseconds timeout = k_program_timeout);
    /// Errors: interrupted "interrupted".
    [[nodiscard]] const kubernetes::ProgramReplies& ask(const kubernetes::Version& from,
                                                        const kubernetes::Version& to) override;

private:
    std::string directory_;
    std::function<bool()> interrupted_;
    std::chrono::milliseconds timeout_;
    std::vector<std::string> names_;
    std::map<std::pair<std::string, std::string>, kubernetes::ProgramReplies> asked_;
};

/// Runs `command`, which is split into words as a shell does, in `directory` ("" for ours), and reads what it prints. A
/// command that fails is a fault of the list. Errors: interrupted "interrupted".
[[nodiscard]] kubernetes::PatchList query_patches(const std::string& command, const std::string& directory,
                                                  const std::function<bool()>& interrupted,
                                                  std::chrono::milliseconds timeout = k_program_timeout);

}  // namespace kmm::drive
