// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/programs.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "sys/missing_file.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "sys/trust.hpp"
#include "upgrade/actor_parts/program_end.hpp"
#include "upgrade/drive/pool.hpp"
#include "upgrade/engine/pace.hpp"

namespace kmm::drive {
namespace {

constexpr std::size_t k_answer_max = 1U << 20U;

/// What went wrong with a program, "" for nothing; the last line that it printed on standard error is part of it.
std::string fault_of_program(const sys::ProcessResult& result, std::chrono::milliseconds timeout) {
    auto fault = program_fault(result, timeout);
    if (fault.empty()) return fault;
    const auto printed = base::last_line(result.err);
    if (!printed.empty()) fault += ": " + base::escape(printed.substr(0, 200));
    return fault;
}

Error program_interrupted() { return {Exit::interrupted, "interrupted", "stopped while a program was asked"}; }

struct OneAnswer {
    kubernetes::ProgramAnswer read;
    bool is_interrupted = false;
};

OneAnswer ask_one(const std::string& path, const std::string& name, const std::vector<std::string>& words,
                  const std::function<bool()>& interrupted, std::chrono::milliseconds timeout) {
    OneAnswer answer;
    sys::ProcessSpec spec;
    spec.argv = {path};
    spec.argv.insert(spec.argv.end(), words.begin(), words.end());
    spec.timeout = timeout;
    spec.output_max = k_answer_max;
    spec.cancelled = interrupted;
    try {
        sys::require_trusted(path, "program");
        const auto result = sys::run_process(spec);
        answer.is_interrupted = result.cancelled;
        answer.read.fault = fault_of_program(result, timeout);
        if (answer.read.fault.empty()) answer.read = kubernetes::read_program_answer(name, result.out);
    } catch (const Error& error) {
        answer.read.fault = "could not be started: " + error.message();
    }
    return answer;
}

}  // namespace

std::vector<std::string> programs_of(const std::string& directory, const std::string& option) {
    std::vector<std::string> names, others;
    std::error_code failed;
    std::filesystem::directory_iterator entries(directory, failed);
    if (failed) {
        const auto what = fmt::format("--{}: cannot read the directory {}", option, base::escape(directory));
        if (failed.value() != ENOENT && failed.value() != ENOTDIR) throw from_errno(failed.value(), what);
        throw from_errno(failed.value(), what, "file-not-found").hint(sys::missing_file_hint(directory));
    }
    for (const auto& entry : entries) {
        auto name = entry.path().filename().native();
        if (name.starts_with('.')) continue;
        std::error_code unknown;
        const bool is_program =
            std::filesystem::is_regular_file(entry.path(), unknown) && ::access(entry.path().c_str(), X_OK) == 0;
        (is_program ? names : others).push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    std::sort(others.begin(), others.end());
    for (const auto& name : names) sys::require_trusted((std::filesystem::path(directory) / name).native(), "program");
    if (others.empty() && !names.empty()) return names;
    if (others.empty())
        throw Error(Exit::usage, "not-a-program",
                    fmt::format("--{}: expected programs in {}, found none", option, base::escape(directory)))
            .hint("leave the option out, or put an executable file into the directory");
    Error error(Exit::usage, "not-a-program",
                fmt::format("--{}: expected executable files in {}, found others", option, base::escape(directory)));
    for (const auto& name : others) error.detail("found", base::escape(name));
    throw std::move(error).hint(
        "chmod +x, or move it out of the directory; names that begin with a dot are not looked at");
}

DirectoryPrograms::DirectoryPrograms(std::string directory, std::function<bool()> interrupted,
                                     std::chrono::milliseconds timeout)
    : directory_(std::move(directory)),
      interrupted_(std::move(interrupted)),
      timeout_(timeout),
      names_(programs_of(directory_, "app-check")) {}

const kubernetes::ProgramReplies& DirectoryPrograms::ask(const kubernetes::Version& from,
                                                         const kubernetes::Version& to) {
    const std::pair key(from.text(), to.text());
    if (const auto found = asked_.find(key); found != asked_.end()) return found->second;
    std::vector<OneAnswer> answers(names_.size());
    for_each_at_once(names_.size(), [&](std::size_t index) {
        answers[index] =
            ask_one(directory_ + "/" + names_[index], names_[index], {key.first, key.second}, interrupted_, timeout_);
    });
    kubernetes::ProgramReplies replies;
    for (std::size_t index = 0; index < answers.size(); ++index) {
        auto& answer = answers[index];
        if (answer.is_interrupted) throw program_interrupted();
        if (!answer.read.fault.empty())
            replies.faults.push_back(fmt::format("{}: {}", base::escape(names_[index]), answer.read.fault));
        else for (auto& reply : answer.read.replies) replies.replies.push_back(std::move(reply));
    }
    return asked_.emplace(key, std::move(replies)).first->second;
}

kubernetes::PatchList query_patches(const std::string& command, const std::string& directory,
                                    const std::function<bool()>& interrupted, std::chrono::milliseconds timeout) {
    kubernetes::PatchList list;
    const auto words = upgrade::command_words(command);
    if (!words || words->empty())
        throw Error(Exit::config, "bad-value",
                    fmt::format("the record has the patch query \"{}\"", base::escape(command)));
    sys::ProcessSpec spec;
    spec.argv = *words;
    spec.directory = directory;
    spec.timeout = timeout;
    spec.output_max = k_answer_max;
    spec.cancelled = interrupted;
    try {
        sys::require_trusted_program(words->front(), directory);
        const auto result = sys::run_process(spec);
        if (result.cancelled) throw program_interrupted();
        list.fault = fault_of_program(result, timeout);
        if (list.fault.empty()) list = kubernetes::read_patches(result.out);
    } catch (const Error& error) {
        if (error.code() == "interrupted") throw;
        list.fault = "could not be started: " + error.message();
    }
    if (!list.fault.empty()) list.fault = fmt::format("{}: {}", base::escape(words->front()), list.fault);
    return list;
}

}  // namespace kmm::drive
