// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/check/preflight_output.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "digest/digest.hpp"
#include "kmm-plan/check/recipe_output.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmod/ko/signature.hpp"
#include "value/writer.hpp"

namespace kmm::tool_plan {

namespace {

using preflight::Checked;

std::string_view checked_text(Checked checked) {
    switch (checked) {
        case Checked::image: return "image";
        case Checked::modules: return "modules";
        case Checked::mapping: break;
    }
    return "mapping";
}

}  // namespace

namespace {

value::Node signed_file_node(const preflight::SignedFile& file) {
    auto node = value::Node::mapping({{"module", file.module},
                                      {"file", file.path},
                                      {"signature", std::string(kernel::to_string(file.check.trust))}});
    const auto set = [&](const char* key, const std::string& text) {
        if (!text.empty()) node.set(key, text);
    };
    set("signer", file.signature.signer);
    set("keyID", file.signature.key_id);
    set("digest", file.signature.digest);
    if (!file.signature.others.empty()) {
        auto others = value::Node::sequence();
        for (const auto& other : file.signature.others) {
            auto one = value::Node::mapping();
            for (const auto& [key, text] : {std::pair{"signer", &other.signer},
                                            {"keyID", &other.key_id},
                                            {"digest", &other.digest}}) {
                if (!text->empty()) one.set(key, *text);
            }
            others.push_back(std::move(one));
        }
        node.set("otherSigners", std::move(others));
    }
    set("certificate", file.check.certificate);
    set("fault", file.check.fault);
    return node;
}

std::string pool_text(const plan::Pool& pool) {
    const std::string kernel = pool.kernel.empty() ? "-" : pool.kernel;
    return pool.architecture.empty() ? kernel : kernel + "/" + pool.architecture;
}

/// A sum of all that a verdict follows from: another one means that it has to be asked again.
std::string inputs_of(const Verdict& verdict) {
    std::string text = fmt::format("{}\n{}\n{} {} {}\n{}\n", verdict.surveyed->kernel,
                                   verdict.surveyed->module->full_name(), checked_text(verdict.checked), verdict.text(),
                                   verdict.reason(), verdict.digest);
    if (verdict.resolved != nullptr) text += value::to_json(api::encode(verdict.resolved->config)) + '\n';
    if (verdict.pool != nullptr) text += pool_text(*verdict.pool) + '\n';
    if (verdict.question && verdict.question->interface != nullptr)
        text += kernel::text_of(*verdict.question->interface);
    if (verdict.question && verdict.question->trusted != nullptr) {
        text += fmt::format("{}\n", verdict.question->trusted->enforced);
        for (const auto& one : verdict.question->trusted->certificates)
            text += digest::sha256_hex(one.der) + '\n';
    }
    for (const auto& file : verdict.files) {
        text += fmt::format("{} {}\n", file.path, file.signature.key_id);
        for (const auto& other : file.signature.others) text += fmt::format("{} {}\n", file.path, other.key_id);
    }
    return "sha256:" + digest::sha256_hex(text);
}

}  // namespace

value::Node verdict_node(const Verdict& verdict) {
    auto node = value::Node::mapping();
    node.set("kernel", verdict.surveyed->kernel);
    node.set("namespace", verdict.surveyed->module->meta.namespace_);
    node.set("module", verdict.surveyed->module->meta.name);
    if (verdict.pool != nullptr) {
        auto pool = value::Node::mapping();
        pool.set("kernel", verdict.pool->kernel);
        if (!verdict.pool->architecture.empty()) pool.set("architecture", verdict.pool->architecture);
        pool.set("nodes", value::Node::strings(verdict.pool->nodes));
        if (verdict.failed()) pool.set("losing", value::Node::strings(verdict.pool->loaded));
        node.set("pool", std::move(pool));
    }
    if (verdict.resolved != nullptr) {
        auto mapping = value::Node::mapping();
        mapping.set("index", static_cast<std::uint64_t>(verdict.resolved->mapping_index));
        mapping.set(verdict.resolved->literal ? "literal" : "regexp", verdict.resolved->matcher);
        node.set("mapping", std::move(mapping));
        node.set("image", verdict.resolved->config.container_image);
    }
    if (!verdict.digest.empty()) node.set("digest", verdict.digest);
    node.set("checked", std::string(checked_text(verdict.checked)));
    if (!verdict.files.empty()) {
        auto files = value::Node::sequence();
        for (const auto& file : verdict.files) files.push_back(signed_file_node(file));
        node.set("signatures", std::move(files));
    }
    node.set("verdict", std::string(verdict.text()));
    if (verdict.known) node.set("known", true);
    node.set("reason", verdict.reason());
    node.set("inputs", inputs_of(verdict));
    node.set("findings", diagnostics_node(verdict.findings));
    return node;
}

namespace {

using recipe::decide::Looked;

Looked looked_at(const Verdict& verdict) {
    if (verdict.checked == Checked::mapping) return Looked::nothing;
    // With --cert alone modules are read, and compared with no kernel.
    const bool compared =
        verdict.checked == Checked::modules && verdict.question && verdict.question->interface != nullptr;
    return compared ? Looked::modules : Looked::image;
}

Looked looked_at(const RecipeVerdict& verdict) {
    if (verdict.checked == "modules") return Looked::modules;
    return verdict.checked == "image" ? Looked::image : Looked::nothing;
}

/// A mapping alone does not say that the image is there.
bool is_unasked(const Verdict& verdict) { return verdict.text() == "pass" && verdict.checked == Checked::mapping; }

}  // namespace

recipe::decide::Upgradeable judge_all(const std::vector<Verdict>& verdicts, const std::vector<RecipeVerdict>& recipes) {
    std::vector<recipe::decide::KernelVerdict> all;
    for (const auto& verdict : verdicts) {
        std::string message;
        for (const auto& finding : verdict.findings)
            if (finding.severity == Severity::error && message.empty()) message = finding.message;
        const bool unasked = is_unasked(verdict);
        all.push_back({"Module " + verdict.surveyed->module->full_name(), verdict.surveyed->kernel,
                       verdict.text() == "pass" && !unasked, unasked ? "image-not-checked" : verdict.reason(),
                       unasked ? "its image was not checked" : message, looked_at(verdict)});
    }
    for (const auto& one : recipes)
        all.push_back({"SpecialResource " + one.resource, one.kernel, one.text() == "pass", one.reason, one.message,
                       looked_at(one)});
    return recipe::decide::judge_upgrade(all);
}

value::Node preflight_node(const Source& source, const std::vector<Verdict>& verdicts,
                           const std::vector<RecipeVerdict>& recipes,
                           const std::optional<recipe::decide::Upgradeable>& upgradeable) {
    auto node =
        value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Preflight"}, {"source", source.description}});
    auto entries = value::Node::sequence();
    std::map<std::string, std::uint64_t> counts{{"pass", 0}, {"fail", 0}, {"unknown", 0}};
    for (const auto& verdict : verdicts) {
        entries.push_back(verdict_node(verdict));
        ++counts[std::string(verdict.text())];
    }
    node.set("entries", std::move(entries));
    if (!recipes.empty()) {
        auto list = value::Node::sequence();
        for (const auto& one : recipes) {
            list.push_back(recipe_verdict_node(one));
            ++counts[std::string(one.text())];
        }
        node.set("recipes", std::move(list));
    }
    if (upgradeable)
        node.set("upgradeable", value::Node::mapping({{"status", upgradeable->status},
                                                      {"reason", upgradeable->reason},
                                                      {"message", upgradeable->message}}));
    std::string sums;
    for (const auto& verdict : verdicts) sums += inputs_of(verdict) + '\n';
    for (const auto& one : recipes) sums += one.inputs + '\n';
    node.set("inputs", "sha256:" + digest::sha256_hex(sums));
    auto& summary = node.set("summary", value::Node::mapping());
    for (const char* text : {"pass", "fail", "unknown"}) summary.set(text, counts[text]);
    return node;
}

namespace {

/// What would not survive, or could not be found out: kernel and Module, each once.

}  // namespace

std::string losing_names(const std::vector<Verdict>& verdicts) {
    std::set<std::string> told;
    std::string text;
    for (const auto& verdict : verdicts) {
        const std::string line =
            fmt::format("{} {}\n", cli::plain_name(verdict.surveyed->kernel),
                        cli::plain_name(verdict.surveyed->module->full_name()));
        if (verdict.text() != "pass" && !verdict.known && told.insert(line).second) text += line;
    }
    return text;
}

std::string verdict_table(const std::vector<Verdict>& verdicts, const cli::Context& context) {
    const bool wide = context.output == "wide";
    std::vector<std::string> headers{"KERNEL", "MODULE", "POOL", "NODES", "VERDICT", "CHECKED", "REASON"};
    if (wide) headers.insert(headers.end(), {"IMAGE", "DIGEST"});
    std::vector<std::vector<std::string>> rows;
    for (const auto& verdict : verdicts) {
        const auto* pool = verdict.pool;
        std::vector<std::string> row{verdict.surveyed->kernel,
                                     verdict.surveyed->module->full_name(),
                                     pool == nullptr ? "-" : pool_text(*pool),
                                     fmt::format("{}", pool == nullptr ? 0 : pool->nodes.size()),
                                     verdict_text(verdict),
                                     std::string(checked_text(verdict.checked)),
                                     verdict.reason()};
        if (wide)
            row.insert(row.end(), {verdict.resolved == nullptr ? "-" : verdict.resolved->config.container_image,
                                   verdict.digest.empty() ? "-" : verdict.digest});
        rows.push_back(std::move(row));
    }
    return cli::folded_table(std::move(headers), std::move(rows), 2, context.table_width());
}

namespace {

/// Who signed which file: each file of each image once.

}  // namespace

std::string signature_lines(const std::vector<Verdict>& verdicts) {
    std::set<std::string> told;
    std::string text;
    for (const auto& verdict : verdicts)
        for (const auto& file : verdict.files) {
            if (!told.insert(verdict.digest + file.path).second) continue;
            text += fmt::format("{}: {}\n", base::escape(file.path), kernel::to_string(file.check.trust));
            if (file.check.trust != kernel::Trust::none)
                text += fmt::format("  {}\n", kmod::signature_text(file.signature));
        }
    return text.empty() ? text : "\n" + text;
}

namespace {

/// Findings once each, although several pools share them; then who would lose what.

}  // namespace

std::string explanation(const std::vector<Verdict>& verdicts, const Diagnostics& findings, bool color) {
    std::string text;
    for (const auto& finding : findings) text += cli::diagnostic_text(finding, color);
    for (const auto& verdict : verdicts) {
        if (!verdict.failed() || verdict.known || verdict.pool == nullptr || verdict.pool->loaded.empty()) continue;
        constexpr std::size_t k_named_max = 12, k_page_width = 80, k_indent = 2;
        const auto lines = cli::wrap(
            fmt::format("with kernel {}, {} would no longer load on {}", verdict.surveyed->kernel,
                        verdict.surveyed->module->full_name(), base::join_some(verdict.pool->loaded, k_named_max)),
            k_page_width, k_indent);
        text += lines.substr(k_indent);
    }
    return text;
}

std::vector<report::MetricFamily> preflight_metrics(const std::vector<Verdict>& verdicts,
                                                    const std::vector<RecipeVerdict>& recipes,
                                                    const std::optional<recipe::decide::Upgradeable>& upgradeable) {
    auto ok = report::preflight_ok(), symbols = report::incompatible_symbols();
    const auto add = [&](const std::string& resource, const std::string& kernel, bool ready,
                         std::optional<std::size_t> misfits) {
        const std::vector<std::string> labels{resource, kernel};
        const auto [known, is_new] = ok.samples.try_emplace(labels, ready ? 1 : 0);
        if (!ready) known->second = 0;
        if (misfits) symbols.samples[labels] = std::max<std::uint64_t>(symbols.samples[labels], *misfits);
    };
    for (const auto& one : verdicts) {
        add(one.surveyed->module->full_name(), one.surveyed->kernel, one.text() == "pass" && !is_unasked(one),
            one.checked == Checked::modules ? std::optional(one.symbols) : std::nullopt);
    }
    for (const auto& one : recipes)
        add(one.resource, one.kernel, one.text() == "pass",
            one.checked == "modules" ? std::optional(one.symbols) : std::nullopt);
    if (!upgradeable) return {ok, symbols};
    auto cluster = report::upgradeable();
    cluster.samples[{}] = upgradeable->status ? 1 : 0;
    return {ok, symbols, cluster};
}

}  // namespace kmm::tool_plan
