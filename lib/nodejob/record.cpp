// SPDX-License-Identifier: Apache-2.0
#include "nodejob/record.hpp"

#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "value/node.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::nodejob {
namespace {

constexpr std::size_t k_record_max = 1U << 20U;

/// The mapping that `text` is, if it is one of this kind.
std::optional<value::Node> mapping_of(std::string_view text, std::string_view kind) {
    Diagnostics faults;
    auto documents = value::read_json(text, "", faults);
    if (!faults.empty() || documents.size() != 1) return std::nullopt;
    value::Node& root = documents.front().root;
    if (!root.is_mapping() || root.get_string({"apiVersion"}) != "kmmtools/v1" || root.get_string({"kind"}) != kind)
        return std::nullopt;
    return std::move(root);
}

std::optional<std::int64_t> number_at(const value::Node& node, std::string_view key) {
    const value::Node* found = node.find(key);
    return found == nullptr ? std::nullopt : found->as_int();
}

}  // namespace

std::string job_text(const JobSpec& spec, const std::string& id, const std::string& boot_id,
                     const std::string& started) {
    value::Node commands = value::Node::sequence();
    for (const Command& command : spec.commands) commands.push_back(value::Node::strings(command.argv));
    return value::to_json(value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                                {"kind", "NodeJob"},
                                                {"id", id},
                                                {"key", spec.key},
                                                {"bootID", boot_id},
                                                {"started", started},
                                                {"commands", std::move(commands)}})) +
           "\n";
}

std::optional<JobView> read_job_text(std::string_view text) {
    const auto root = mapping_of(text, "NodeJob");
    if (!root) return std::nullopt;
    JobView view;
    view.id = root->get_string({"id"});
    view.key = root->get_string({"key"});
    view.boot_id = root->get_string({"bootID"});
    view.started = root->get_string({"started"});
    const value::Node* commands = root->find("commands");
    if (view.id.empty() || view.key.empty() || view.boot_id.empty() || commands == nullptr) return std::nullopt;
    for (const value::Node& command : commands->items()) {
        std::vector<std::string> words;
        for (const value::Node& word : command.items()) words.push_back(word.text());
        view.commands.push_back(base::join(words, " "));
    }
    return view;
}

std::string result_text(const JobResult& result) {
    return value::to_json(value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                                {"kind", "NodeJobResult"},
                                                {"id", result.id},
                                                {"exit", result.exit_code},
                                                {"signal", result.signal},
                                                {"failedCommand", static_cast<std::uint64_t>(result.failed_command)},
                                                {"outputAt", static_cast<std::uint64_t>(result.output_at)},
                                                {"finished", result.finished}})) +
           "\n";
}

std::optional<JobResult> read_result_text(std::string_view text) {
    const auto root = mapping_of(text, "NodeJobResult");
    if (!root) return std::nullopt;
    const auto exit = number_at(*root, "exit"), signal = number_at(*root, "signal"),
               failed = number_at(*root, "failedCommand");
    const auto output = number_at(*root, "outputAt").value_or(0);  // of an earlier release: none
    if (!exit || !signal || !failed || *failed < 0 || output < 0) return std::nullopt;
    return JobResult{root->get_string({"id"}), root->get_string({"finished"}), static_cast<int>(*exit),
                     static_cast<int>(*signal), static_cast<std::size_t>(*failed), static_cast<std::size_t>(output)};
}

std::optional<std::string> read_if_there(const std::string& path) {
    try {
        return sys::read_file(path, k_record_max);
    } catch (const Error& error) {
        if (error.errno_cause() == ENOENT) return std::nullopt;
        throw;
    }
}

}  // namespace kmm::nodejob
