// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/result.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "kmm-worker/codes.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/ko/signature.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "value/writer.hpp"

namespace kmm::tool_worker {

namespace {

constexpr std::size_t k_termination_bytes = 4096;  // what the kubelet reads
constexpr std::size_t k_whole_digest = 256;        // texts of this length hold one
constexpr std::size_t k_termination_files = 100;   // more than the kubelet reads
constexpr std::size_t k_piece = 64U << 10U;        // of a long output

void set_text(value::Node& node, const char* key, const std::string& text) {
    if (!text.empty()) node.set(key, text);
}

value::Node parameters_node(const std::map<std::string, std::string>& parameters) {
    value::Node node = value::Node::mapping();
    for (const auto& [key, text] : parameters) node.set(key, text);
    return node;
}

value::Node signer_node(const kmod::ModuleSignature& signature) {
    value::Node node = value::Node::mapping();
    set_text(node, "signer", signature.signer);
    set_text(node, "keyID", signature.key_id);
    set_text(node, "digest", signature.digest);
    return node;
}

value::Node report_node(const kmod::ModuleReport& report) {
    value::Node node = value::Node::mapping();
    node.set("name", report.name);
    node.set("action", kmod::to_string(report.action));
    if (report.role == kmod::Role::main) node.set("main", true);
    set_text(node, "sameBy", report.same_by);
    set_text(node, "path", report.path);
    set_text(node, "sha256", report.sha256);
    set_text(node, "srcversion", report.srcversion);
    set_text(node, "buildID", report.build_id);
    set_text(node, "version", report.version);
    set_text(node, "vermagic", report.vermagic);
    if (!report.parameters.empty()) node.set("parameters", parameters_node(report.parameters));
    if (!report.parameter_origins.empty()) node.set("parameterOrigins", parameters_node(report.parameter_origins));
    set_text(node, "signer", report.signer);
    if (!report.other_signers.empty()) {
        value::Node others = value::Node::sequence();
        for (const auto& other : report.other_signers) others.push_back(signer_node(other));
        node.set("otherSigners", std::move(others));
    }
    set_text(node, "taint", report.taint);
    const bool changed = report.action == kmod::Action::loaded || report.action == kmod::Action::unloaded ||
                         report.action == kmod::Action::removed_in_tree;
    if (changed) node.set("durationMs", static_cast<std::int64_t>(report.took.count()));
    return node;
}

value::Node document(const char* kind) { return value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", kind}}); }

/// What tells one build from another: the srcversion, else the head of the build id.
std::string build_of(const kmod::ModuleReport& report) {
    if (!report.srcversion.empty() || report.build_id.empty()) return report.srcversion;
    return "build-id " + report.build_id.substr(0, 12);
}

/// What is done with a module, and for one that is live already how that was found out.
std::string action_text(const kmod::ModuleReport& report) {
    const std::string action(kmod::to_string(report.action));
    if (report.same_by.empty()) return action;
    return fmt::format("{} ({}{})", action, report.action == kmod::Action::load ? "already live: " : "",
                       kmod::same_by_text(report.same_by));
}

/// "NAME (KERNEL)", as far as they are known.
std::string node_text(const kmod::NodeFacts& node) {
    const std::string name = node.name.empty() ? "-" : node.name;
    return node.kernel.empty() ? name : fmt::format("{} ({})", name, node.kernel);
}

void print_for_people(const WorkerResult& result, cli::Context& context) {
    const bool wide = context.output == "wide";
    const std::size_t width = context.table_width();
    std::vector<std::pair<std::string, std::string>> head{
        {"outcome", result.outcome}, {"node", node_text(result.node)}};
    if (!result.image.empty()) head.emplace_back("image", result.image);
    if (!result.digest.empty()) head.emplace_back("digest", result.digest);
    if (!result.source.empty()) {
        head.emplace_back("source", result.source);
        head.emplace_back("was", result.source_digest);
        if (result.signature) head.emplace_back("signature", kmod::signature_text(*result.signature));
        std::set<std::string> kept;
        for (const auto& file : result.signed_files)
            if (file.kept) kept.insert(kmod::signature_text(*file.kept));
        for (const auto& text : kept) head.emplace_back("kept", text);
    }
    if (wide) {
        for (const auto& [step, took] : result.durations_ms) {
            head.emplace_back(step, base::format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(took))));
        }
    }
    context.console.out(cli::format_properties(head));
    if (!result.modules.empty()) {
        std::vector<std::vector<std::string>> rows;
        for (const auto& m : result.modules) {
            std::vector<std::string> row{m.name,        action_text(m), dash(m.version), dash(build_of(m)),
                                         dash(m.taint), dash(m.path)};
            if (wide) row.insert(row.begin() + 4, {dash(m.build_id), dash(m.sha256)});
            rows.push_back(std::move(row));
        }
        std::vector<std::string> headers{"MODULE", "ACTION", "VERSION", "SRCVERSION", "TAINT", "PATH"};
        if (wide) headers.insert(headers.begin() + 4, {"BUILD-ID", "SHA256"});
        context.console.out("\n" + cli::format_table(headers, rows, width));
    }
    if (!result.files.empty()) {
        context.console.out("\n");
        const auto rows = [&](const auto& row) {
            result.files.each([&](const registry::ExtractedFile& file) {
                if (wide) row({fmt::format("{}", file.size), file.digest(), file.path});
                else row({fmt::format("{}", file.size), file.path});
            });
        };
        std::vector<std::string> headers{"SIZE", "FILE"};
        if (wide) headers.insert(headers.begin() + 1, "SHA256");
        // Paths differ in their ends: a terminal breaks what is longer than its lines, and nothing is cut.
        cli::print_table(headers, rows, 0, [&](std::string_view text) { context.console.out(text); });
    }
    if (!result.signed_files.empty()) {
        std::vector<std::vector<std::string>> rows;
        for (const auto& [file, action, kept] : result.signed_files) {
            rows.push_back({action, file.platform, file.before.substr(0, wide ? 64 : 12),
                            file.after.substr(0, wide ? 64 : 12), file.path});
        }
        context.console.out("\n" + cli::folded_table({"ACTION", "PLATFORM", "BEFORE", "AFTER", "FILE"}, std::move(rows),
                                                     1, width));
    }
}

void print_warnings(const WorkerResult& result, cli::Context& context) {
    if (context.verbosity < 0) return;
    for (const auto& warning : result.warnings)
        context.console.err(fmt::format("warning: {}\n", base::printable(warning)));
}

value::Node file_node(const registry::ExtractedFile& file) {
    return value::Node::mapping({{"path", file.path}, {"size", file.size}, {"sha256", file.digest()}});
}

/// Where the kubelet looks for a message; "" outside of a Pod.
std::string termination_log() {
    const char* path = std::getenv("KMM_TERMINATION_LOG");
    if (path != nullptr && *path != '\0') return path;
    return std::getenv("KUBERNETES_SERVICE_HOST") == nullptr ? "" : "/dev/termination-log";
}

/// `text`, which is that of `document`, with as many of `findings` as there is room for.
std::string with_first_findings(value::Node document, std::string text, const value::Node& findings) {
    value::Node kept = value::Node::sequence();
    for (const auto& finding : findings.items()) {
        kept.push_back(finding);
        document.set("diagnostics", kept);
        std::string longer = value::to_json(document);
        if (longer.size() > k_termination_bytes) break;
        text = std::move(longer);
    }
    return text;
}

void drop_parameters(value::Node& document) {
    if (value::Node* modules = document.find("modules")) {
        for (auto& module : modules->items()) {
            for (const char* key : {"parameters", "parameterOrigins"}) module.erase(key);
        }
    }
}

/// Shortens every text below `node` to `longest` bytes, on a border of UTF-8 characters.
void cut_texts(value::Node& node, std::size_t longest) {
    for (auto& item : node.items()) cut_texts(item, longest);
    for (auto& member : node.members()) cut_texts(member.value, longest);
    if (!node.is_string() || node.text().size() <= longest) return;
    const std::string& text = node.text();
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
    node = value::Node(text.substr(0, end) + "...");
}

}  // namespace

value::Node node_node(const kmod::NodeFacts& node) {
    value::Node result = value::Node::mapping();
    set_text(result, "name", node.name);
    set_text(result, "kernel", node.kernel);
    set_text(result, "bootID", node.boot_id);
    set_text(result, "architecture", node.architecture);
    return result;
}

value::Node to_node(const WorkerResult& result, std::size_t most_files) {
    value::Node node = document("WorkerResult");
    node.set("verb", result.verb);
    node.set("outcome", result.outcome);
    node.set("node", node_node(result.node));
    if (!result.image.empty()) {
        value::Node image = value::Node::mapping({{"reference", result.image}});
        set_text(image, "digest", result.digest);
        node.set("image", std::move(image));
    }
    if (!result.source.empty()) {
        node.set("source", value::Node::mapping({{"reference", result.source}, {"digest", result.source_digest}}));
        if (result.signature)
            node.set("signature", value::Node::mapping({{"signer", result.signature->signer},
                                                        {"keyID", result.signature->key_id},
                                                        {"digest", result.signature->digest}}));
    }
    value::Node modules = value::Node::sequence();
    for (const auto& module : result.modules) modules.push_back(report_node(module));
    node.set("modules", std::move(modules));
    if (!result.files.empty()) {
        value::Node files = value::Node::sequence();
        result.files.each([&](const registry::ExtractedFile& file) { files.push_back(file_node(file)); }, most_files);
        node.set("files", std::move(files));
    }
    if (!result.signed_files.empty()) {
        value::Node files = value::Node::sequence();
        for (const auto& [file, action, kept] : result.signed_files) {
            auto item = value::Node::mapping({{"path", file.path},
                                              {"platform", file.platform},
                                              {"action", action},
                                              {"size", file.size},
                                              {"sha256Before", file.before},
                                              {"sha256", file.after}});
            if (kept && kept->fault.empty()) item.set("signature", signer_node(*kept));
            files.push_back(std::move(item));
        }
        node.set("files", std::move(files));
    }
    value::Node durations = value::Node::mapping();
    for (const auto& [step, took] : result.durations_ms) durations.set(step, took);
    if (!durations.members().empty()) node.set("durationsMs", std::move(durations));
    set_text(node, "newTaint", result.new_taint);
    if (result.forced) node.set("forced", true);
    if (!result.warnings.empty()) node.set("warnings", value::Node::strings(result.warnings));
    return node;
}

value::Node module_node(const std::string& name, const std::optional<kmod::LiveModule>& live) {
    value::Node node = value::Node::mapping({{"name", name}, {"state", live ? live->state : "absent"}});
    if (!live) return node;
    set_text(node, "srcversion", live->srcversion);
    set_text(node, "buildID", live->build_id);
    set_text(node, "version", live->version);
    set_text(node, "taint", live->taint);
    if (live->refcount) node.set("refcount", static_cast<std::int64_t>(*live->refcount));
    node.set("holders", value::Node::strings(live->holders));
    if (!live->parameters.empty()) node.set("parameters", parameters_node(live->parameters));
    return node;
}

void print_result(const WorkerResult& result, cli::Context& context) {
    if (cli::document_form(context)) {
        const value::Node node = to_node(result, 0);
        const auto files = [&](const std::function<void(const value::Node&)>& take) {
            result.files.each([&](const registry::ExtractedFile& file) { take(file_node(file)); });
        };
        print_document(context, node, {result.files.empty() ? nullptr : node.find("files"), files});
        return;
    }
    if (context.output == "name") {
        for (const auto& module : result.modules) context.console.out(base::printable(module.name) + "\n");
        std::string paths;
        result.files.each([&](const registry::ExtractedFile& file) {
            paths += base::printable(file.path) + "\n";
            if (paths.size() < k_piece) return;
            context.console.out(paths);
            paths.clear();
        });
        context.console.out(paths);
        for (const auto& entry : result.signed_files) context.console.out(base::printable(entry.file.path) + "\n");
    } else {
        print_for_people(result, context);
    }
    print_warnings(result, context);
}

std::string termination_text(const value::Node& node) {
    std::string text = value::to_json(node);
    if (text.size() <= k_termination_bytes) return text;
    value::Node shorter = node;  // the essence: verb, outcome and the main module, or the error with its first findings
    value::Node findings = value::Node::sequence();
    std::vector<std::string> codes;  // which findings there were
    if (const value::Node* all = shorter.find("diagnostics")) {
        findings = *all;
        for (const auto& finding : findings.items()) codes.push_back(finding.get_string({"code"}));
        std::sort(codes.begin(), codes.end());
        codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
    }
    for (const char* key : {"warnings", "diagnostics", "files"}) shorter.erase(key);
    if (!codes.empty()) shorter.set("codes", value::Node::strings(codes));
    if (value::Node* modules = shorter.find("modules"); modules != nullptr && modules->items().size() > 1) {
        auto& items = modules->items();
        const auto main = std::find_if(items.begin(), items.end(),
                                       [](const value::Node& item) { return item.find("main") != nullptr; });
        if (main != items.end()) items = {*main};
    }
    shorter.set("truncated", true);
    for (std::size_t longest = 1024; longest >= 16; longest /= 2) {
        text = value::to_json(shorter);
        if (text.size() <= k_termination_bytes)
            return with_first_findings(std::move(shorter), std::move(text), findings);
        cut_texts(shorter, longest);
        // Before digests and builds get shorter than they are, the parameters go: their names are no texts to cut.
        if (longest == k_whole_digest) drop_parameters(shorter);
    }
    value::Node least = value::Node::mapping({{"apiVersion", "kmmtools/v1"}});  // what no reader can do without
    for (const char* key : {"kind", "verb", "outcome", "code", "exit", "message"}) {
        if (const value::Node* member = shorter.find(key)) least.set(key, *member);
    }
    least.set("truncated", true);
    return value::to_json(least);
}

bool shows_digests(const cli::Context& context) {
    return (context.output != "name" && context.output != "table") || !termination_log().empty();
}

void leave_termination_message(const value::Node& node) {
    const std::string path = termination_log();
    if (path.empty()) return;
    const sys::Fd fd(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC |
                                              O_NONBLOCK));  // a pipe without a reader must not hold the command
    if (!fd) return;
    const std::string text = termination_text(node);
    (void)!::write(fd.get(), text.data(), text.size());
}

void leave_whole_message(const value::Node& node) {
    if (termination_log().empty()) return;
    const auto size = value::to_json(node).size();
    if (size <= k_termination_bytes) return leave_termination_message(node);
    value::Node pointer = document("PodLog");
    pointer.set("bytes", static_cast<std::int64_t>(size));
    leave_termination_message(pointer);
}

void keep_termination_log() {
    const std::string path = termination_log();
    if (path.empty()) return;
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);  // for the life of the process
    if (fd >= 0) ::setenv("KMM_TERMINATION_LOG", fmt::format("/proc/self/fd/{}", fd).c_str(), 1);
}

namespace {

/// Faults of images and registries whose remedy is that of the list of codes, if nothing better is known in its place.
constexpr std::array<std::string_view, 11> k_hinted{
    "bad-layer",     "bad-layout",   "bad-manifest",     "bad-reference", "bad-url",      "ca-file",
    "cache-damaged", "image-unsafe", "redirect-refused", "registry-auth", "size-mismatch"};

/// Runs `body`; an error without a hint says what helps: against want of space, or what the list of codes tells of
/// faulty images.
WorkerResult with_hint(const std::function<WorkerResult()>& body) {
    try {
        return body();
    } catch (Error& error) {
        const int number = error.code() == "no-space" ? ENOSPC : error.errno_cause().value_or(0);
        const std::string_view remedy = sys::space_remedy(number);
        if (!remedy.empty() && error.hint().empty()) {
            error.hint(fmt::format("{}{}; then run the same command again", remedy,
                                   number == ENOSPC ? ", or name another place" : ""));
        }
        const auto row = std::find_if(codes().begin(), codes().end(),
                                      [&](const CodeRow& known) { return known.code == error.code(); });
        if (error.hint().empty() && row != codes().end() &&
            std::find(k_hinted.begin(), k_hinted.end(), row->code) != k_hinted.end()) {
            error.hint(std::string(row->hint));
        }
        throw;
    }
}

}  // namespace

WorkerResult with_warnings(const std::function<void(WorkerResult&)>& fill) {
    WorkerResult result;
    try {
        fill(result);
    } catch (Error& error) {
        kmod::add_warnings(error, kmod::warnings_as_findings(result.warnings));
        throw;
    }
    return result;
}

Exit run_and_report(cli::Context& context, const std::function<WorkerResult()>& body) {
    const WorkerResult result = with_hint(body);
    if (!termination_log().empty()) leave_termination_message(to_node(result, k_termination_files));
    print_result(result, context);
    return Exit::ok;
}

}  // namespace kmm::tool_worker
