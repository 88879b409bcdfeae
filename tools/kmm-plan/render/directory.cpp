// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/render/directory.hpp"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cluster/folder/ignored.hpp"
#include "kmm-plan/render/output.hpp"
#include "sys/file_ops.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

/// `path` below `directory`, "." if it is the directory itself; nullopt if it lies elsewhere.
std::optional<std::string> below(const std::string& path, const std::string& directory) {
    std::error_code error;
    const auto inner = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    const auto outer = std::filesystem::weakly_canonical(std::filesystem::absolute(directory, error), error);
    if (!std::filesystem::is_directory(outer, error)) { return std::nullopt; }
    const std::string relative = inner.lexically_relative(outer).string();
    if (relative.empty() || relative == ".." || relative.starts_with("../")) { return std::nullopt; }
    return relative;
}

/// No directory is read whose name begins with a dot.
bool is_hidden(const std::string& relative) {
    return relative != "." && (relative.front() == '.' || relative.find("/.") != std::string::npos);
}

void require_apart(const std::string& out, const std::string& input, bool can_ignore, const cli::Args& args) {
    const auto relative = below(out, input);
    if (!relative || is_hidden(*relative)) { return; }
    if (can_ignore && *relative != "." && cluster::Ignored(args.all("ignore"), "").takes(*relative)) { return; }
    const std::string shown = base::escape(out);
    throw Error(Exit::usage, "out-in-input",
                *relative == "." ? fmt::format("--out {} is the directory that is read", shown)
                                 : fmt::format("--out {} lies in {}, which is read", shown, base::escape(input)))
        .detail("effect", "the next command would read what is written there, and find objects twice")
        .hint(fmt::format("write into a directory beside it{}",
                          !can_ignore || *relative == "."
                              ? ""
                              : ", or leave it out of what is read: --ignore " + base::shell_word(*relative)));
}

void print_changes(const OutputChanges& changes, const std::string& directory, cli::Context& context) {
    if (context.verbosity < 0) { return; }
    for (const auto& name : changes.changed_by_others) {
        context.console.err(fmt::format("warning: {}/{} is no longer wanted, but somebody changed it: left alone\n",
                                        base::escape(directory), name));
    }
    for (const auto& name : changes.in_use) {
        context.console.err(
            fmt::format("{}/{} is kept: nodes are still labelled with its version\n", base::escape(directory), name));
    }
    context.console.err(fmt::format("{}: {} written, {} unchanged, {} removed\n", base::escape(directory),
                                    changes.written.size(), changes.unchanged.size(), changes.removed.size()));
}

}  // namespace

void check_out(const cli::Args& args) {
    const auto out = args.get("out");
    if (args.flag("prune") && !out) {
        throw Error(Exit::usage, "missing-option", "--prune needs --out DIR")
            .hint("it removes files that an earlier --out wrote");
    }
    if (!out) { return; }
    if (out->empty()) {
        throw Error(Exit::usage, "usage", "--out needs a directory").hint("for example --out rendered");
    }
    const auto files = args.all("filename");
    for (const auto& file : files) {
        if (file != "-") { require_apart(*out, file, true, args); }
    }
    // Beside documents only an option makes a directory cluster count.
    if (const auto cluster = args.get("cluster"); cluster && (files.empty() || args.source("cluster") == "option")) {
        require_apart(*out, *cluster, false, args);
    }
}

void write_directory(const std::vector<value::Node>& documents, const std::vector<std::string>& names,
                     const std::vector<std::string>& in_use, const cli::Args& args, cli::Context& context) {
    const bool json = context.output == "json";
    if (!json && context.output != "table" && context.output != "yaml") {
        throw Error(Exit::usage, "usage", fmt::format("--out writes yaml or json files, found -o {}", context.output))
            .hint("leave -o away, or -o json");
    }
    const std::string ending = json ? ".json" : ".yaml";
    std::vector<OutputFile> files;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        files.push_back({names[i] + ending, json ? value::to_json_pretty(documents[i]) : value::to_yaml(documents[i])});
    }
    std::vector<std::string> kept;
    for (const auto& name : in_use) { kept.push_back(name + ending); }
    const std::string directory = *args.get("out");
    cli::require_way_stays(directory);
    sys::LinuxFileOps ops;
    print_changes(write_files(ops, directory, files, args.flag("prune") ? Prune::yes : Prune::no, kept), directory,
                  context);
}

}  // namespace kmm::tool_plan
