// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/outputs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cluster/folder/text_source.hpp"
#include "report/formats.hpp"
#include "sys/real_path.hpp"

namespace kmm::tool_plan {

namespace {

using Identity = std::pair<dev_t, ino_t>;

/// nullopt for what is not a regular file.
std::optional<Identity> identity_of(const std::string& file) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) { return std::nullopt; }
    return Identity{info.st_dev, info.st_ino};
}

/// Whether a file that is there is one that is read of a directory: a manifest, or a part of a chart. A report
/// in JSON that an earlier run wrote is none.
bool is_read_of(const std::string& directory, const std::string& file) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) { return false; }
    const auto top = sys::real_path(directory), place = sys::real_path(file);
    if (!top || !place || !sys::is_below(*top, *place)) { return false; }
    const auto name = place->filename().native();
    const auto has_end = [&](const std::string& end) { return name.ends_with(end) || name.ends_with(end + ".gz"); };
    if (has_end(".json")) {
        return cluster::TextSource(file).front().find("\"apiVersion\":") != std::string_view::npos;
    }
    return has_end(".yaml") || has_end(".yml") || has_end(".tpl") || name == "Kustomization";
}

}  // namespace

void require_outputs_apart(const cli::Args& args, const std::set<std::string>& inputs) {
    std::vector<std::pair<const char*, std::string>> outputs;
    for (const auto& [format, file] : report::parse_files(args.all("report"))) { outputs.emplace_back("report", file); }
    for (auto& file : args.all("metrics")) { outputs.emplace_back("metrics", std::move(file)); }
    for (const auto& [option, file] : outputs) {
        const auto written = identity_of(file);
        if (!written) { continue; }
        const auto is_it = [&](const std::string& input) {
            return identity_of(input) == written || is_read_of(input, file);
        };
        bool is_read = std::any_of(inputs.begin(), inputs.end(), is_it);
        for (const char* name : {"filename", "baseline", "operator-config", "facts"}) {
            const auto files = args.all(name);
            is_read = is_read || std::any_of(files.begin(), files.end(), is_it);
        }
        const auto named = args.positionals("FILE");
        is_read = is_read || std::any_of(named.begin(), named.end(), is_it);
        if (!is_read) { continue; }
        throw Error(Exit::usage, "out-in-input",
                    fmt::format("--{} would replace {}, which is read", option, base::escape(file)))
            .hint("name another file");
    }
}

}  // namespace kmm::tool_plan
