// SPDX-License-Identifier: Apache-2.0
#include "report/formats.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::report {
namespace {

struct Format {
    std::string_view name;
    std::string (*write)(const Report&);
};
constexpr std::array k_formats{
    Format{"junit", to_junit},
    Format{"sarif", to_sarif},
    Format{"md", [](const Report& report) { return to_markdown(report); }},
    Format{"html", to_html},
    Format{"codequality", to_code_quality},
};

}  // namespace

const std::vector<std::string>& format_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> made;
        for (const auto& format : k_formats) { made.emplace_back(format.name); }
        return made;
    }();
    return names;
}

std::string text_of(const std::string& format, const Report& report) {
    const auto found =
        std::find_if(k_formats.begin(), k_formats.end(), [&](const Format& each) { return each.name == format; });
    if (found == k_formats.end()) { throw bug("no report has the format " + format); }
    return found->write(report);
}

Files parse_files(const std::vector<std::string>& options) {
    Files files;
    for (const auto& text : options) {
        for (const auto piece : base::split(text, ',')) {
            const std::size_t equals = piece.find('=');
            const std::string name(piece.substr(0, equals));
            const std::string file(equals == std::string_view::npos ? std::string_view() : piece.substr(equals + 1));
            const auto& names = format_names();
            const bool known = std::find(names.begin(), names.end(), name) != names.end();
            if (!known || file.empty()) {
                Error error(
                    Exit::usage, "bad-value",
                    fmt::format(
                        "option --report: expected FORMAT=FILE with junit, sarif, md, html or codequality, found '{}'",
                        base::escape(piece)));
                const auto near = known ? std::nullopt : base::nearest(name, names);
                throw std::move(error).hint(near ? fmt::format("did you mean {}?", *near)
                                                 : "--report junit=junit.xml,sarif=kmm.sarif,md=kmm.md");
            }
            const auto same = std::find_if(files.begin(), files.end(), [&](const auto& other) {
                return other.second == file && other.first != name;
            });
            if (same != files.end()) {
                throw Error(Exit::usage, "bad-value",
                            fmt::format("option --report: {} and {} are both written to {}", same->first, name,
                                        file == "-" ? "standard output" : base::escape(file)))
                    .hint("give each format a file of its own");
            }
            if (!files.emplace(name, file).second) {
                throw Error(Exit::usage, "bad-value", fmt::format("option --report: {} is given twice", name))
                    .hint("give one file a format");
            }
        }
    }
    return files;
}

}  // namespace kmm::report
