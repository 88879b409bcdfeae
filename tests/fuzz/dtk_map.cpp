// SPDX-License-Identifier: Apache-2.0
// Files of releases, separated by lines "=== NAME": which toolkit is of which kernel. The order of the files does not
// matter, and what is found is found again by its kernel.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "fuzz/target.hpp"
#include "recipe/toolkit/map.hpp"
#include "value/reader.hpp"

namespace {

using namespace kmm;
using Files = std::vector<std::pair<std::string, std::string>>;

Files split_files(std::string_view text) {
    constexpr std::string_view k_mark = "=== ";
    Files files{{"a", ""}};
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        const std::string_view line = text.substr(0, end);
        if (line.starts_with(k_mark)) {
            files.emplace_back(line.substr(k_mark.size(), line.find('\n') - k_mark.size()), "");
        } else {
            files.back().second += line;
        }
        text.remove_prefix(end);
    }
    return files;
}

struct Mapped {
    recipe::toolkit::ToolkitMap map;
    bool has_faults = false;
};

Mapped mapped(const Files& files) {
    recipe::toolkit::Inputs inputs;
    Diagnostics faults;
    for (const auto& [name, text] : files) {
        for (const auto& document : value::read_any(text, name, faults)) {
            recipe::toolkit::read_input(document, inputs, faults);
        }
    }
    recipe::toolkit::MapOptions options;
    options.architecture = "x86_64";
    Mapped made{recipe::toolkit::make_map(inputs, options, faults), false};
    made.has_faults = has_errors(faults);
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto files = split_files(fuzz::text_of(data, size));
    std::set<std::string> names;
    for (const auto& [name, text] : files) { names.insert(name); }
    if (names.size() != files.size()) { return 0; }  // two files of one name
    try {
        const auto forward = mapped(files);
        for (const auto& row : forward.map.rows) {
            for (const auto& toolkit : row.toolkits) {
                fuzz::require(forward.has_faults || toolkit.image.find("@sha256:") != std::string::npos,
                              "toolkits are named by digest");
            }
            fuzz::require(forward.has_faults || recipe::toolkit::find_kernel(forward.map, row.kernel) != nullptr,
                          "a kernel of the map is found in it");
        }
        std::reverse(files.begin(), files.end());
        const auto backward = mapped(files);
        fuzz::require(forward.has_faults == backward.has_faults, "faults do not depend on the order of the files");
        if (forward.has_faults) { return 0; }
        fuzz::require(forward.map.rows.size() == backward.map.rows.size(), "the order of the files does not matter");
        for (std::size_t i = 0; i < forward.map.rows.size(); ++i) {
            const auto &one = forward.map.rows[i], &other = backward.map.rows[i];
            fuzz::require(one.kernel == other.kernel && one.releases == other.releases &&
                              one.toolkits.size() == other.toolkits.size(),
                          "each row is the same");
        }
    } catch (const Error&) { return 0; }
    return 0;
}
