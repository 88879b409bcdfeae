// SPDX-License-Identifier: Apache-2.0
// kmm-plan dtk-map: kernels and the driver toolkits that have their headers.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "recipe/files/documents.hpp"
#include "recipe/files/findings.hpp"
#include "kmm-plan/verbs.hpp"
#include "recipe/toolkit/map.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace fs = std::filesystem;
namespace toolkit = recipe::toolkit;

using value::Node;

namespace {

/// Files of a release have names without an ending.
bool is_input_name(const std::string& name) {
    if (name.starts_with('.')) { return false; }
    for (const char* ending : {".json", ".yaml", ".yml"}) {
        if (name.ends_with(ending)) { return true; }
    }
    return name.ends_with("image-references") || name.ends_with("release-metadata");
}

std::vector<std::string> input_files(const std::string& directory) {
    std::vector<std::string> files;
    for (auto it = fs::recursive_directory_iterator(directory); it != fs::recursive_directory_iterator(); ++it) {
        const std::string name = it->path().filename().native();
        if (it->is_directory() && name.starts_with('.')) { it.disable_recursion_pending(); }
        if (it->is_regular_file() && is_input_name(name)) { files.push_back(it->path().native()); }
    }
    std::sort(files.begin(), files.end());
    return files;
}

/// What the files say; `findings` gets warnings about them.
toolkit::Inputs read_inputs(const cli::Args& args, Diagnostics& findings) {
    auto names = args.positionals("FILE");
    const auto more = args.all("filename");
    names.insert(names.end(), more.begin(), more.end());
    if (names.empty()) {
        throw Error(Exit::usage, "no-source", "no files given, expected FILE of a release or a directory of them")
            .hint("oc adm release info RELEASE -o json | kmm-plan dtk-map -");
    }
    std::vector<value::Document> documents;
    Diagnostics faults;
    for (const auto& name : names) {
        if (name == "-" || !fs::is_directory(name)) {
            recipe::files::read_document_file(name, documents, faults);
            continue;
        }
        const auto files = input_files(name);
        if (files.empty()) {
            faults.push_back({Severity::warning, "no-documents", "the directory has no files of a release",
                              Position{name, 0, 0}, "", Exit::data});
        }
        for (const auto& file : files) { recipe::files::read_document_file(file, documents, faults); }
    }
    toolkit::Inputs inputs;
    for (const auto& document : documents) { toolkit::read_input(document, inputs, faults); }
    sort_and_merge(faults);
    if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    findings = std::move(faults);
    return inputs;
}

toolkit::MapOptions map_options(const cli::Args& args) {
    toolkit::MapOptions options;
    options.architecture = args.get("arch").value_or("");
    for (const auto& text : args.all("image")) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--image: expected FILE=IMAGE, found '{}'", base::escape(text)))
                .hint("for example --image dtk.json=quay.io/openshift/dtk@sha256:DIGEST");
        }
        options.images[text.substr(0, equals)] = text.substr(equals + 1);
    }
    return options;
}

/// Files of --image as they were read, each spelling of them: "./dtk.json" is "dtk.json". One that has no kernels would
/// have no effect.
void link_images(toolkit::MapOptions& options, const toolkit::Inputs& inputs) {
    std::map<std::string, std::string> linked;
    for (const auto& [file, image] : options.images) {
        const auto wanted = fs::path(file).lexically_normal();
        std::vector<std::string> known;
        for (const auto& one : inputs.images) {
            if (!one.is_system) { known.push_back(one.place.file); }
        }
        bool any = false;
        for (const auto& one : known) {
            if (fs::path(one).lexically_normal() != wanted) { continue; }
            linked[one] = image;
            any = true;
        }
        if (!any) {
            const auto near = base::nearest(file, known);
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--image {}={}: no file of this name has kernels of a toolkit", base::escape(file),
                                    base::escape(image)))
                .hint(near            ? fmt::format("did you mean {}?", *near)
                      : known.empty() ? "give its driver-toolkit-release.json, too"
                                      : "found: " + base::join(known, ", "));
        }
    }
    options.images = std::move(linked);
}

/// Keeps the rows of --kernel.
void keep_kernels(toolkit::ToolkitMap& map, const std::vector<std::string>& kernels) {
    if (kernels.empty()) { return; }
    std::vector<std::string> known;
    for (const auto& row : map.rows) { known.push_back(row.kernel); }
    std::vector<toolkit::KernelRow> kept;
    for (const auto& kernel : kernels) {
        const auto* row = toolkit::find_kernel(map, kernel);
        if (row == nullptr) {
            const auto near = base::nearest(kernel, known);
            throw Error(
                Exit::not_found, "toolkit-not-found",
                fmt::format("no toolkit is known for kernel {}, of {}", base::escape(kernel),
                            base::counted(map.rows.size(), "kernel")))
                .hint(near ? fmt::format("did you mean {}?", *near)
                           : "give the files of the release that has this kernel");
        }
        kept.push_back(*row);
    }
    map.rows = std::move(kept);
}

/// Releases that have one of the kernels which were kept.
void keep_releases(toolkit::ToolkitMap& map) {
    std::erase_if(map.releases, [&](const recipe::plan::Release& release) {
        return std::none_of(map.rows.begin(), map.rows.end(), [&](const toolkit::KernelRow& row) {
            return std::find(row.releases.begin(), row.releases.end(), release.version) != row.releases.end();
        });
    });
}

Node kernel_row_node(const toolkit::KernelRow& row) {
    Node node = Node::mapping({{"kernel", row.kernel}, {"flavour", row.flavour}, {"architecture", row.architecture}});
    if (!row.os_version.empty()) { node.set("osVersion", row.os_version); }
    node.set("releases", Node::strings(row.releases));
    node.set("systems", Node::strings(row.systems));
    node.set("toolkit", row.toolkits.front().image);
    Node all = Node::sequence();
    for (const auto& one : row.toolkits) {
        all.push_back(Node::mapping({{"image", one.image},
                                     {"releases", Node::strings(one.releases)},
                                     {"systems", Node::strings(one.systems)}}));
    }
    node.set("toolkits", std::move(all));
    return node;
}

std::string dash_if_empty(const std::string& text) { return text.empty() ? "-" : text; }

std::string toolkit_table(const toolkit::ToolkitMap& map, const cli::Context& context) {
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"KERNEL", "FLAVOUR", "ARCH", "OS", "RELEASES", "TOOLKIT"};
    if (wide) { headers.insert(headers.begin() + 5, "SYSTEMS"); }
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : map.rows) {
        std::vector<std::string> cells{row.kernel, row.flavour, dash_if_empty(row.architecture),
                                       dash_if_empty(row.os_version), dash_if_empty(base::join(row.releases, ","))};
        if (wide) { cells.push_back(dash_if_empty(base::join(row.systems, ","))); }
        cells.push_back(row.toolkits.front().image);
        rows.push_back(std::move(cells));
    }
    return cli::folded_table(std::move(headers), std::move(rows), 1, context.table_width());
}

Exit run_dtk_map(const cli::Args& args, cli::Context& context) {
    auto options = map_options(args);
    Diagnostics findings;
    const auto inputs = read_inputs(args, findings);
    link_images(options, inputs);
    auto map = toolkit::make_map(inputs, options, findings);
    sort_and_merge(findings);
    if (has_errors(findings)) { throw Error::from_diagnostics(std::move(findings)); }
    recipe::files::report_findings(std::move(findings), args, context);
    if (map.rows.empty()) {
        throw Error(Exit::not_found, "toolkit-not-found", "no kernel of a toolkit is known from these files")
            .hint("give image-references of a release together with driver-toolkit-release.json of its toolkit");
    }
    keep_kernels(map, args.all("kernel"));
    if (args.flag("print-facts")) {
        if (!args.all("kernel").empty()) { keep_releases(map); }
        if (map.releases.empty()) {
            throw Error(Exit::not_found, "no-releases", "facts name releases, and no release has one of these toolkits")
                .hint("give image-references and release-metadata of the release, or oc adm release info -o json");
        }
        cli::print_file_document(context, Node::mapping({{"releases", recipe::plan::releases_node(map.releases)}}),
                                 "--print-facts");
        return Exit::ok;
    }
    if (context.output == "name") {
        for (const auto& row : map.rows) {
            context.console.out(fmt::format("{} {}\n", cli::plain_name(row.kernel),
                                            cli::plain_name(row.toolkits.front().image)));
        }
    } else if (cli::document_form(context)) {
        Node node = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "ToolkitMap"}});
        Node rows = Node::sequence();
        for (const auto& row : map.rows) { rows.push_back(kernel_row_node(row)); }
        node.set("kernels", std::move(rows));
        static_cast<void>(cli::print_list(context, node, "kernels"));
    } else {
        context.console.out(toolkit_table(map, context));
    }
    return Exit::ok;
}

}  // namespace

cli::Verb dtk_map_verb() {
    cli::Verb verb;
    verb.name = "dtk-map";
    verb.summary = "show which driver toolkit has the headers of a kernel";
    verb.description =
        "Prints each kernel with its flavour (std, rt, 64k), architecture and system, the releases of OpenShift that "
        "contain it, and the driver toolkit by digest. If several releases contain a kernel, the toolkit of the "
        "newest is printed; -o json has all. Two kernels in one release are an error.\n\n"
        "Reads any number of: image-references and release-metadata of a release image, oc adm release info -o json, "
        "driver-toolkit-release.json of a toolkit image, configurations of images (as stored, of oc image info -o "
        "json, of skopeo, podman or docker inspect; lists of them), ImageStream driver-toolkit and Nodes. "
        "driver-toolkit-release.json and a stored configuration do not name their image: they belong to the toolkit "
        "of the release in the same directory or the nearest one above, or to that of --image.";
    verb.examples = {
        {"oc adm release info 4.17.4 -o json | kmm-plan dtk-map - dtk-info.json",
         "a release, and oc image info -o json of its toolkit"},
        {"kmm-plan dtk-map 4.17.4/ 4.17.5/", "directories with release.json and driver-toolkit-release.json"},
        {"kmm-plan dtk-map releases/ --kernel 5.14.0-427.40.1.el9_4.x86_64 -o name", "the toolkit of one kernel"},
        {"kmm-plan dtk-map releases/ --print-facts > facts.yaml", "releases for render recipe --facts"},
    };
    verb.positionals = {{"FILE", "files of releases, directories of them, or - for standard input", false, true}};
    auto file = cli::repeatable(cli::option("filename", 'f', "FILE", "same as FILE"));
    auto kernel =
        cli::repeatable(cli::option("kernel", "KERNEL", "only this kernel; an error if no toolkit is known for it"));
    auto image = cli::repeatable(cli::option("image", "FILE=IMAGE", "toolkit image that FILE was taken from"));
    auto architecture = cli::option("arch", "ARCH", "architecture of kernels without one, such as x86_64");
    auto facts = cli::option("print-facts", "", "print the releases as render recipe --facts takes them");
    auto strict = cli::option("strict", "", "warnings are errors");
    verb.options = std::vector<cli::Option>{file, kernel, image, architecture, facts, strict} + cli::common_options();
    verb.run = run_dtk_map;
    return verb;
}

}  // namespace kmm::tool_plan
