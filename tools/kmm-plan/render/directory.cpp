// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/render/directory.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-plan/render/output.hpp"
#include "sys/file_ops.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

bool is_inside(const std::string& path, const std::string& directory) {
    std::error_code error;
    const auto inner = std::filesystem::weakly_canonical(path, error);
    const auto outer = std::filesystem::weakly_canonical(directory, error);
    if (!std::filesystem::is_directory(outer, error)) { return false; }
    const auto [end, rest] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
    return end == outer.end();
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
    if (out && out->empty()) { throw Error(Exit::usage, "usage", "--out needs a directory")
        .hint("for example --out rendered"); }
}

void warn_about_out(const std::string& out, const cli::Args& args, cli::Context& context) {
    std::vector<std::string> inputs = args.all("filename");
    if (const auto cluster = args.get("cluster")) { inputs.push_back(*cluster); }
    for (const auto& input : inputs) {
        if (input == "-" || context.verbosity < 0 || !is_inside(out, input)) { continue; }
        Diagnostic warning;
        warning.severity = Severity::warning;
        warning.code = "out-in-input";
        warning.message = fmt::format("--out {} lies in {}, which is read", base::escape(out), base::escape(input));
        warning.hint =
            "the next run reads what is written there and finds objects twice: write it beside that directory, or "
            "leave it out with --ignore";
        context.console.err(cli::diagnostic_text(warning, context.color_err));
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
    sys::LinuxFileOps ops;
    print_changes(write_files(ops, directory, files, args.flag("prune") ? Prune::yes : Prune::no, kept), directory,
                  context);
}

}  // namespace kmm::tool_plan
