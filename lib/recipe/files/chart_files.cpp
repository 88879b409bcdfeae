// SPDX-License-Identifier: Apache-2.0
#include "recipe/files/chart_files.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "recipe/chart/ignore.hpp"
#include "recipe/chart/strvals.hpp"
#include "recipe/chart/values.hpp"
#include "recipe/template/yaml.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"

namespace kmm::recipe::files {

namespace fs = std::filesystem;
using recipe::chart::File;
using recipe::tmpl::Value;

namespace {

constexpr int k_depth_max = 50;

class ChartWalk {
public:
    explicit ChartWalk(std::string root) : root_(std::move(root)) {
        const std::string rules = root_ + "/.helmignore";
        if (fs::exists(rules)) { ignore_.add(sys::read_file(rules), rules); }
    }

    std::vector<File> run() {
        directory("", 0);
        return std::move(files_);
    }

private:
    std::string root_;
    recipe::chart::Ignore ignore_;
    std::vector<File> files_;
    std::size_t size_ = 0;

    [[noreturn]] static void too_large(const std::string& path, std::string message) {
        throw Error(Exit::data, "recipe-too-large", std::move(message)).at(Position{path, 0, 0});
    }

    void directory(const std::string& below, int depth) {
        const std::string path = below.empty() ? root_ : root_ + '/' + below;
        if (depth > k_depth_max) {
            too_large(path, fmt::format("directories are nested more than {} deep", k_depth_max));
        }
        for (const auto& entry : sys::list_directory(path)) {
            const std::string name = below.empty() ? entry.name : below + '/' + entry.name;
            const std::string whole = root_ + '/' + name;
            std::error_code fault;
            const fs::file_status status = fs::status(whole, fault);
            if (fs::is_directory(status)) {
                if (!ignore_.ignores(name, true)) { directory(name, depth + 1); }
                continue;
            }
            if (ignore_.ignores(name, false)) { continue; }
            if (!fs::is_regular_file(status)) {
                throw Error(Exit::data, "bad-chart",
                            fs::exists(status)
                                ? "a chart holds files and directories only, found a device, socket or pipe"
                                : "the link leads nowhere")
                    .at(Position{whole, 0, 0})
                    .hint("remove it, or leave it out by .helmignore");
            }
            if (fs::file_size(whole) > recipe::chart::k_file_size_max) {
                too_large(whole, fmt::format("a file of a chart is larger than {}",
                                             base::format_bytes(recipe::chart::k_file_size_max)));
            }
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

}  // namespace

recipe::chart::Chart read_chart(const std::string& path) {
    std::string place = path;
    while (place.size() > 1 && place.ends_with('/')) { place.pop_back(); }
    if (fs::is_directory(place)) { return recipe::chart::load_chart(ChartWalk(place).run(), place); }
    return recipe::chart::load_chart(
        recipe::chart::read_archive(sys::read_file(place, recipe::chart::k_chart_size_max), place), place);
}

Value read_values(const std::vector<std::string>& files, const std::vector<std::string>& sets) {
    Value values = Value::map({});
    for (const auto& file : files) {
        const std::string text = file == "-" ? sys::read_fd(0, "-") : sys::read_file(file);
        recipe::tmpl::YamlFault fault;
        const Value given = recipe::tmpl::read_yaml_text(text, fault);
        if (!fault.message.empty()) {
            throw recipe::tmpl::yaml_error("bad-values", fault, file, text);
        }
        if (!given.is_map() && !given.is_nil()) {
            throw Error(Exit::data, "bad-values",
                        fmt::format("expected a mapping, found {}", recipe::tmpl::describe(given)))
                .at(Position{file, 1, 1});
        }
        values = recipe::chart::merge_values(values, given);
    }
    for (const auto& set : sets) { recipe::chart::set_values(values, set); }
    return values;
}

}  // namespace kmm::recipe::files
