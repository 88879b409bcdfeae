// SPDX-License-Identifier: Apache-2.0
#include "report/report.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "base/counted.hpp"

namespace kmm::report {

namespace {

/// FNV-1a, 64 bits: a mark for machines to compare, not a defence.
std::uint64_t fnv1a(std::uint64_t hash, std::string_view text) {
    constexpr std::uint64_t prime = 0x100000001b3U;
    for (const char c : text) { hash = (hash ^ static_cast<unsigned char>(c)) * prime; }
    return hash * prime;  // a zero byte between the parts
}

}  // namespace

bool fails(Severity severity, Severity fail_on) noexcept {
    return severity == Severity::error || (severity == Severity::warning && fail_on == Severity::warning);
}

std::size_t count(const Diagnostics& findings, Severity severity) noexcept {
    const auto same =
        std::count_if(findings.begin(), findings.end(), [&](const auto& f) { return f.severity == severity; });
    return static_cast<std::size_t>(same);
}

std::string summary(const Diagnostics& findings) {
    std::string text;
    for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
        const std::size_t number = count(findings, severity);
        if (number == 0) { continue; }
        text += (text.empty() ? "" : ", ") + base::counted(number, to_string(severity));
    }
    return text.empty() ? "no findings" : text;
}

std::string headline(const Report& report) {
    return fmt::format("{} {}: {}", report.tool, report.check,
                       report.counts.empty() ? summary(report.findings) : report.counts);
}

std::string looked_at(const Report& report) {
    return report.counts.empty() ? base::counted(report.files.size(), "file") : "";
}

std::vector<std::pair<std::string, std::string>> checks_not_made(const Report& report) {
    std::vector<std::pair<std::string, std::string>> skipped;
    for (const auto& each : report.quiet) {
        if (!each.second.empty()) { skipped.push_back(each); }
    }
    return skipped;
}

std::string report_path(std::string_view file) {
    if (file == "-") { return "stdin"; }
    while (file.starts_with("./") && file.size() > 2) {
        file.remove_prefix(2);
        while (file.starts_with('/')) { file.remove_prefix(1); }
    }
    return std::string(file);
}

std::vector<std::string> fingerprints(const Diagnostics& findings) {
    constexpr std::uint64_t basis = 0xcbf29ce484222325U;
    std::map<std::uint64_t, std::size_t> seen;
    std::vector<std::string> result;
    for (const auto& finding : findings) {
        std::uint64_t hash = fnv1a(basis, finding.code);
        hash = fnv1a(hash, finding.position ? report_path(finding.position->file) : "");
        hash = fnv1a(hash, finding.message);
        if (const std::size_t number = seen[hash]++; number > 0) { hash = fnv1a(hash, std::to_string(number)); }
        result.push_back(fmt::format("{:016x}", hash));
    }
    return result;
}

}  // namespace kmm::report
