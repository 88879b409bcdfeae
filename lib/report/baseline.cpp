// SPDX-License-Identifier: Apache-2.0
#include "report/baseline.hpp"

#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "report/report.hpp"

namespace kmm::report {

namespace {

Error bad_baseline(const value::Document& document, const value::Node& node, std::string message) {
    return Error(Exit::data, "bad-baseline", std::move(message))
        .at(document.position(node.mark()))
        .hint("a baseline is what the command printed with -o json");
}

}  // namespace

Baseline Baseline::from_document(const value::Document& document) {
    const value::Node& root = document.root;
    const std::string kind = root.get_string({"kind"});
    if (root.get_string({"apiVersion"}) != "kmmtools/v1") {
        throw bad_baseline(document, root, "expected a document of kmmtools/v1 with diagnostics");
    }
    Baseline baseline;
    const value::Node* list = root.find("diagnostics");
    if (list == nullptr && kind == "Error") {  // an error that is not about documents
        throw bad_baseline(document, root,
                           fmt::format("the baseline is the error {}", base::escape(root.get_string({"code"}))));
    }
    std::vector<const value::Node*> lists;
    if (list != nullptr && list->is_sequence()) { lists.push_back(list); }
    for (const char* name : {"entries", "recipes"}) {  // of a Preflight: each verdict has its findings
        const value::Node* verdicts = root.find(name);
        if (list != nullptr || verdicts == nullptr || !verdicts->is_sequence()) { continue; }
        for (const auto& verdict : verdicts->items()) {
            const value::Node* findings = verdict.find("findings");
            if (findings != nullptr && findings->is_sequence()) { lists.push_back(findings); }
        }
    }
    if (lists.empty()) {
        throw bad_baseline(document, root, fmt::format("kind {}: expected a list of diagnostics", base::escape(kind)));
    }
    for (const value::Node* findings : lists) {
        for (const auto& item : findings->items()) {
            const std::string code = item.get_string({"code"});
            if (code.empty()) { throw bad_baseline(document, item, "a finding of the baseline has no code"); }
            ++baseline.known_[Key(code, report_path(item.get_string({"file"})), item.get_string({"message"}))];
        }
    }
    return baseline;
}

std::size_t Baseline::remove_known(Diagnostics& findings) const {
    auto left = known_;
    const std::size_t before = findings.size();
    std::erase_if(findings, [&](const Diagnostic& finding) {
        const auto found =
            left.find(Key(finding.code, finding.position ? report_path(finding.position->file) : "", finding.message));
        if (found == left.end() || found->second == 0) {
            return false;
        }
        --found->second;
        return true;
    });
    return before - findings.size();
}

}  // namespace kmm::report
