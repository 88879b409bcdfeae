// SPDX-License-Identifier: Apache-2.0
// The files of a job, as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nodejob/slot.hpp"

namespace kmm::nodejob {

/// The text of job.json.
[[nodiscard]] std::string job_text(const JobSpec& spec, const std::string& id, const std::string& boot_id,
                                   const std::string& started);
/// The identity, key, start and commands of it; nullopt if it is damaged.
[[nodiscard]] std::optional<JobView> read_job_text(std::string_view text);

/// How a job ended.
struct JobResult {
    std::string id, finished;
    int exit_code = -1, signal = 0;
    std::size_t failed_command = 0;
    std::size_t output_at = 0;  ///< where the output of the command begins that failed
};
[[nodiscard]] std::string result_text(const JobResult& result);
/// nullopt if it is damaged.
[[nodiscard]] std::optional<JobResult> read_result_text(std::string_view text);

/// The file's text; nullopt if it is not there. Errors: io.
[[nodiscard]] std::optional<std::string> read_if_there(const std::string& path);

}  // namespace kmm::nodejob
