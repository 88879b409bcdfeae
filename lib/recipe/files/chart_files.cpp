// SPDX-License-Identifier: Apache-2.0
#include "recipe/files/chart_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/ignore.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/goyaml/yaml.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/real_path.hpp"

namespace kmm::recipe::files {

namespace fs = std::filesystem;
using recipe::chart::File;
using recipe::tmpl::Value;

namespace {

constexpr int k_depth_max = 50;
constexpr std::string_view k_metadata = "Chart.yaml";

bool is_address(std::string_view text) {
    constexpr std::array<std::string_view, 3> k_schemes{"http://", "https://", "oci://"};
    return std::any_of(k_schemes.begin(), k_schemes.end(),
                       [&](std::string_view scheme) { return text.starts_with(scheme); });
}

class ChartWalk {
public:
    ChartWalk(std::string root, OuterLinks links)
        : root_(std::move(root)), real_root_(fs::canonical(root_)), links_(links) {
        const std::string rules = root_ + "/.helmignore";
        if (!fs::exists(rules)) { return; }
        require_file(rules, "replace it by a file");
        note_link(rules);
        ignore_.add(sys::read_file(rules, recipe::chart::k_file_size_max), rules);
    }

    recipe::chart::Chart load() {
        directory("", 0);
        if (ignore_.ignores(k_metadata, false) && fs::exists(root_ + '/' + std::string(k_metadata))) {
            throw Error(Exit::data, "bad-chart", "Chart.yaml is left out by a pattern of this file")
                .at(Position{root_ + "/.helmignore", 0, 0})
                .hint("a pattern with '!' leaves out all that it does not match");
        }
        auto chart = recipe::chart::load_chart(std::move(files_), root_);
        chart.notices = std::move(notices_);
        return chart;
    }

private:
    std::string root_;
    fs::path real_root_;
    OuterLinks links_;
    Diagnostics notices_;
    recipe::chart::Ignore ignore_;
    std::vector<File> files_;
    std::size_t size_ = 0;

    [[noreturn]] static void too_large(const std::string& path, std::string message) {
        throw Error(Exit::data, "recipe-too-large", std::move(message)).at(Position{path, 0, 0});
    }

    /// Errors: data "bad-chart" with `hint`, "recipe-too-large".
    static void require_file(const std::string& whole, const std::string& hint) {
        if (fs::is_directory(whole)) {
            throw Error(Exit::data, "bad-chart", "expected a file, found a directory")
                .at(Position{whole, 0, 0})
                .hint(hint);
        }
        if (!fs::is_regular_file(whole)) {
            throw Error(Exit::data, "bad-chart",
                        "a chart holds files and directories only, found a device, socket or pipe")
                .at(Position{whole, 0, 0})
                .hint(hint);
        }
        if (fs::file_size(whole) > recipe::chart::k_file_size_max) {
            too_large(whole, fmt::format("a file of a chart is larger than {}",
                                         base::format_bytes(recipe::chart::k_file_size_max)));
        }
    }

    [[noreturn]] static void refuse_link(const std::string& whole, const std::string& target) {
        throw Error(Exit::data, "chart-link", fmt::format("a link leads out of the chart, to {}", base::escape(target)))
            .at(Position{whole, 0, 0})
            .hint(sys::is_of_machine(target) ? "remove it, or leave it out by .helmignore"
                                             : "copy the file into the chart, leave the link out by .helmignore, or "
                                               "give --follow-links");
    }

    /// What is at `whole` is to be used. Where a link leads out of the chart, its author chooses which files of this
    /// machine become a part of it: Helm follows it, here that has to be asked for. Errors: "bad-chart", "chart-link".
    void note_link(const std::string& whole) {
        if (!fs::is_symlink(fs::symlink_status(whole))) { return; }
        const fs::path target = fs::canonical(whole);
        if (sys::is_below(target, fs::canonical(fs::path(whole).parent_path()))) {
            throw Error(Exit::data, "bad-chart", "the link leads to a directory that it is in")
                .at(Position{whole, 0, 0})
                .hint("remove it, or leave it out by .helmignore");
        }
        const bool is_machine = sys::is_of_machine(target) && !sys::is_of_machine(real_root_);
        if (sys::is_below(real_root_, target) && !is_machine) { return; }
        if (is_machine || links_ == OuterLinks::refuse) { refuse_link(whole, target.string()); }
        notices_.push_back({Severity::warning, "chart-link",
                            fmt::format("a link leads out of the chart: what is at {} is used",
                                        base::escape(target.string())),
                            Position{whole, 0, 0}, "copy it into the chart, or leave it out by .helmignore"});
    }

    void directory(const std::string& below, int depth) {
        const std::string path = below.empty() ? root_ : root_ + '/' + below;
        if (depth > k_depth_max) {
            too_large(path, fmt::format("directories are nested more than {} deep", k_depth_max));
        }
        // Such as below a link to the root that is followed.
        const fs::path real = fs::canonical(path);
        if (sys::is_of_machine(real) && !sys::is_of_machine(real_root_)) { refuse_link(path, real.string()); }
        for (const auto& entry : sys::list_directory(path)) {
            const std::string name = below.empty() ? entry.name : below + '/' + entry.name;
            const std::string whole = root_ + '/' + name;
            std::error_code fault;
            const fs::file_status status = fs::status(whole, fault);
            if (!fs::exists(status) && fs::is_symlink(fs::symlink_status(whole))) {
                throw Error(Exit::data, "bad-chart", "the link leads nowhere")
                    .at(Position{whole, 0, 0})
                    .hint("remove it: .helmignore does not help, as Helm follows links before it reads that");
            }
            if (fs::is_directory(status)) {
                if (ignore_.ignores(name, true)) { continue; }
                note_link(whole);
                directory(name, depth + 1);
                continue;
            }
            if (ignore_.ignores(name, false)) { continue; }
            note_link(whole);
            require_file(whole, "remove it, or leave it out by .helmignore");
            File file{name, sys::read_file(whole, recipe::chart::k_file_size_max)};
            size_ += file.data.size();
            if (size_ > recipe::chart::k_chart_size_max) {
                too_large(root_, fmt::format("the chart is larger than {}",
                                             base::format_bytes(recipe::chart::k_chart_size_max)));
            }
            if (file.data.starts_with("\xEF\xBB\xBF")) { file.data.erase(0, 3); }
            files_.push_back(std::move(file));
        }
    }
};

/// The files of one --values: a record of CSV.
std::vector<std::string> listed_files(const std::string& list) {
    std::vector<std::string> names;
    for (std::size_t at = 0; !list.empty() && at <= list.size(); ++at) {
        std::string& name = names.emplace_back();
        const bool is_quoted = at < list.size() && list[at] == '"';
        bool is_open = is_quoted;
        for (at += is_quoted ? 1U : 0U; at < list.size() && (is_open || list[at] != ','); ++at) {
            const bool is_quote = list[at] == '"';
            if (is_open && is_quote && list.substr(at + 1).starts_with('"')) {
                name += list[++at];
            } else if (is_open && is_quote) {
                is_open = false;
            } else if (is_quote || is_open != is_quoted) {
                is_open = true;
                break;
            } else {
                name += list[at];
            }
        }
        if (is_open || name.empty()) {
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--values: expected files, separated by commas, found '{}'", base::escape(list)))
                .hint("put a name with ',' or '\"' in double quotes, with '\"\"' for each '\"' in it");
        }
    }
    return names;
}

}  // namespace

cli::Option follow_links_option() {
    return cli::option(std::string(k_follow_links), "", "follow links that lead out of a chart, as Helm does");
}

recipe::chart::Chart read_chart(const std::string& path, OuterLinks links) {
    if (is_address(path)) {
        throw Error(Exit::usage, "bad-value",
                    fmt::format("expected a directory or a .tgz, found the address {}", base::escape(path)))
            .hint("helm pull fetches the .tgz");
    }
    std::string place = path;
    while (place.size() > 1 && place.ends_with('/')) { place.pop_back(); }
    if (fs::is_directory(place)) { return ChartWalk(place, links).load(); }
    return recipe::chart::load_chart(
        recipe::chart::read_archive(sys::read_file(place, recipe::chart::k_chart_size_max), place), place);
}

UserValues read_values(const std::vector<std::string>& files, const std::vector<SetArgument>& sets) {
    bool is_input_read = false;
    const auto text_of = [&](const std::string& file) {
        if (is_address(file)) {
            throw Error(Exit::usage, "bad-value",
                        fmt::format("expected a file, found the address {}", base::escape(file)))
                .hint("fetch it first, and give '-' to read it from standard input");
        }
        if (file != "-") { return sys::read_file(file); }
        if (is_input_read) {
            throw Error(Exit::usage, "bad-value", "expected one use of standard input, found several")
                .hint("give '-' to one of --values and --set-file, once");
        }
        is_input_read = true;
        return sys::read_fd(0, "-");
    };
    UserValues read;
    Value& values = read.values = Value::map({});
    std::vector<std::string> names;
    for (const auto& list : files) {
        for (auto& name : listed_files(list)) { names.push_back(std::move(name)); }
    }
    for (const auto& file : names) {
        std::string text = text_of(file);
        recipe::tmpl::YamlFault fault;
        Value given = recipe::tmpl::read_yaml_text(text, fault);
        if (!fault.message.empty()) {
            throw recipe::tmpl::yaml_error("bad-values", fault, file, text);
        }
        if (!given.is_map() && !given.is_nil()) {
            throw Error(Exit::data, "bad-values",
                        fmt::format("expected a mapping, found {}", recipe::tmpl::describe(given)))
                .at(Position{file, 1, 1});
        }
        values = recipe::chart::merge_values(values, given);
        read.files.push_back({file, std::move(text), std::move(given)});
    }
    for (const auto& [form, text] : sets) { recipe::chart::set_values(values, text, form, text_of); }
    return read;
}

}  // namespace kmm::recipe::files
