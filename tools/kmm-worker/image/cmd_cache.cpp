// SPDX-License-Identifier: Apache-2.0
// cache list, verify and prune: what pulls have left on this node.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image/image_step.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "registry/pull/cache.hpp"

namespace kmm::tool_worker {

namespace {

bool is_empty(const std::string& directory) {
    std::error_code fault;
    return std::filesystem::is_empty(directory, fault) && std::filesystem::is_directory(directory, fault);
}

/// The cache that the options name. It is not made here: a directory that is none stays as it is. Errors: not_found
/// (66) "no-cache"; io (77) if this user may not look into it.
registry::Cache open_cache(const cli::Args& args) {
    const std::string directory = cache_place(args);
    for (const char* part : {"", "/blobs/sha256", "/images"}) {
        if (::access((directory + part).c_str(), F_OK) == 0) continue;
        const int number = errno;
        if (number != ENOENT && number != ENOTDIR) {
            throw from_errno(number, fmt::format("looking into the cache {}", base::escape(directory)))
                .hint("run as the user that pulls, on a node root");
        }
        throw Error(Exit::not_found, "no-cache",
                    fmt::format("expected a cache at {}, found {}", base::escape(directory),
                                *part == 0             ? "nothing"
                                : is_empty(directory) ? "an empty directory"
                                                       : "something else"))
            .hint("--cache-dir DIR names another one; a pull with --cache-dir makes it");
    }
    return registry::Cache(directory);
}

value::Node document_of(const char* kind) {
    return value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}});
}

Exit run_list(const cli::Args& args, cli::Context& context) {
    const registry::Cache cache = open_cache(args);
    value::Node document = document_of("CacheList");
    value::Node images = value::Node::sequence();
    std::vector<std::vector<std::string>> rows;
    for (const auto& image : cache.images()) {
        const std::string used = base::format_rfc3339(image.last_used);
        images.push_back(value::Node::mapping({{"reference", image.reference},
                                               {"platform", image.platform.to_string()},
                                               {"digest", image.digest.to_string()},
                                               {"size", image.size()},
                                               {"lastUsed", used}}));
        rows.push_back({image.reference, image.platform.to_string(), image.digest.short_text(),
                        base::format_bytes(image.size()), used});
    }
    document.set("images", std::move(images));
    if (print_list(context, document, "images")) return Exit::ok;
    if (context.output == "name") {
        for (const auto& row : rows) context.console.out(fmt::format("{}\n", cli::plain_name(row[0])));
        return Exit::ok;
    }
    if (rows.empty()) {
        context.console.out("the cache is empty\n");
        return Exit::ok;
    }
    const auto whole = cli::format_table({"IMAGE", "PLATFORM", "DIGEST", "SIZE", "LAST USED"}, rows, 0);
    if (context.table_width() == 0 || cli::fits(whole, context.table_width())) {
        context.console.out(whole);
        return Exit::ok;
    }
    // References that differ in their ends alone, as those with a digest, stand whole below their lines.
    for (auto& row : rows) std::rotate(row.begin(), row.begin() + 1, row.end());
    context.console.out(cli::folded_table({"PLATFORM", "DIGEST", "SIZE", "LAST USED", "IMAGE"}, std::move(rows), 1,
                                          context.table_width()));
    return Exit::ok;
}

Exit run_verify(const cli::Args& args, cli::Context& context) {
    registry::Cache cache = open_cache(args);
    const registry::CacheReport report = cache.verify();
    bool removed = args.flag("remove");
    if (removed) {
        for (const auto& text : report.damaged) removed = cache.remove(*image::parse_digest(text)) && removed;
        for (const auto& name : report.damaged_lists) removed = cache.remove_list(name) && removed;
        for (const auto& name : report.damaged_records) removed = cache.remove_record(name) && removed;
    }
    if (const std::size_t damaged = report.damaged.size() + report.damaged_lists.size() + report.damaged_records.size();
        damaged != 0) {
        Error error(
            Exit::integrity, "cache-damaged",
            fmt::format("{} of {} in the cache {} damaged", damaged, base::counted(report.blobs, "file"),
                        damaged == 1 ? "is" : "are"));
        if (!report.damaged.empty()) error.detail("digests", base::join(report.damaged, ", "));
        if (!report.damaged_lists.empty()) error.detail("lists", base::join(report.damaged_lists, ", "));
        if (!report.damaged_records.empty()) error.detail("records", base::join(report.damaged_records, ", "));
        throw std::move(error).hint(
            removed ? "they were removed; the next pull fetches them again"
            : args.flag("remove")
                ? "not all of them can be removed: remove the cache itself; they are never used as they are"
                : "--remove takes them away; they are never used as they are");
    }
    value::Node document = document_of("CacheReport");
    document.set("blobs", static_cast<std::uint64_t>(report.blobs));
    document.set("bytes", report.bytes);
    std::vector<std::string> warnings;
    for (const auto& image : report.incomplete) {
        warnings.push_back(
            fmt::format("cache-incomplete: image {} lacks {} of {} blobs: a pull that needs them asks the registry",
                        image.reference, image.absent, image.all));
    }
    if (!warnings.empty()) document.set("warnings", value::Node::strings(warnings));
    if (!print_document(context, document)) {
        for (const auto& warning : warnings)
            if (context.verbosity >= 0) context.console.err(fmt::format("warning: {}\n", base::printable(warning)));
        context.console.out(fmt::format("{}, {}: all hold what their names say\n",
                                        base::counted(report.blobs, "file"), base::format_bytes(report.bytes)));
    }
    return Exit::ok;
}

Exit run_prune(const cli::Args& args, cli::Context& context) {
    if (args.flag("all") && args.source("cache-size") == "option")
        throw Error(Exit::usage, "usage", "--all and --cache-size exclude each other")
            .hint("--all removes everything, --cache-size says how much stays: leave one of them out");
    registry::Cache cache = open_cache(args);
    const auto report = cache.prune(args.flag("all") ? 0 : cache_size(args));
    if (!report) {
        throw Error(Exit::locked, "cache-busy", "another kmm-worker uses the cache right now; nothing was removed")
            .hint("run the same command again");
    }
    if (report->failure) {
        throw Error(*report->failure)
            .hint("make the cache writable, or run as the user whose it is; then run the same command again")
            .detail("removed", report->images.empty() ? "no image" : base::join(report->images, ", "))
            .detail("freed", base::format_bytes(report->bytes));
    }
    value::Node document = document_of("CachePruned");
    document.set("images", value::Node::strings(report->images));
    document.set("blobs", static_cast<std::uint64_t>(report->blobs));
    document.set("bytes", report->bytes);
    if (print_document(context, document)) return Exit::ok;
    for (const auto& image : report->images) context.console.out("removed " + image + "\n");
    context.console.out(fmt::format("{} freed\n", base::format_bytes(report->bytes)));
    return Exit::ok;
}

cli::Verb cache_verb(const char* name, const char* summary, const char* description,
                     Exit (*run)(const cli::Args&, cli::Context&)) {
    cli::Verb verb;
    verb.name = name;
    verb.summary = summary;
    verb.description = description;
    verb.examples = {{std::string("kmm-worker ") + name, "of the node's cache"}};
    for (auto& option : pull_options()) {
        if (option.name != "cache-dir" && option.name != "cache-size") continue;
        verb.options.push_back(option);
        verb.options.back().hidden =
            option.name == "cache-size" && run != run_prune;  // taken by the others, of no use there
    }
    verb.options = verb.options + host_options() + cli::common_options();
    verb.run = run;
    return verb;
}

}  // namespace

cli::Verb verb_cache_list() {
    return cache_verb(
        "cache list", "list the images in the cache of this node",
        "The least recently used comes first. Only images that were pulled completely and verified are listed.",
        run_list);
}

cli::Verb verb_cache_verify() {
    cli::Verb verb =
        cache_verb("cache verify", "hash every file of the cache again",
                   "Exit code 76 if the bytes of a file do not match its name. A pull never uses such a file: it "
                   "hashes what it reads and fetches it again. Images with missing blobs are a warning: a pull that "
                   "needs these asks the registry.",
                   run_verify);
    verb.options.insert(verb.options.begin(), cli::option("remove", "", "remove damaged files"));
    return verb;
}

cli::Verb verb_cache_prune() {
    cli::Verb verb = cache_verb("cache prune", "shrink the cache",
                                "Removes files that no image needs; then, the least recently used first, extracted "
                                "files (the next pull extracts them again) and images, until the cache fits "
                                "--cache-size. Every pull does the same at its end.",
                                run_prune);
    verb.options.insert(verb.options.begin(), cli::option("all", "", "remove everything"));
    return verb;
}

}  // namespace kmm::tool_worker
