// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/release.hpp"

#include <vector>

#include <fmt/format.h>

#include "schema/schema.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::plan {

namespace {

/// "2.6" is the last of its line.
constexpr unsigned k_last_patch = std::numeric_limits<unsigned>::max();

std::string minor_of(const Release& release) { return fmt::format("v{}.{}", release.major, release.minor); }

}  // namespace

std::optional<Release> parse_release(std::string_view text) {
    if (text == "main") { return k_main; }
    if (text.starts_with('v')) { text.remove_prefix(1); }
    const auto pieces = base::split(text, '.');
    if (pieces.size() < 2 || pieces.size() > 3) { return std::nullopt; }
    std::vector<unsigned> numbers;
    for (const auto piece : pieces) {
        const auto number = base::parse_number<unsigned>(piece);
        if (!number) { return std::nullopt; }
        numbers.push_back(*number);
    }
    const Release release{numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : k_last_patch};
    return release.major < 2 ? std::nullopt : std::optional(release);
}

std::string to_string(const Release& release) {
    if (release.patch == k_last_patch) { return minor_of(release); }
    return release == k_main ? "main" : fmt::format("v{}.{}.{}", release.major, release.minor, release.patch);
}

void check_releases(const std::vector<api::ReleaseMark>& marks, const std::optional<Release>& release,
                    Diagnostics& diagnostics) {
    for (const auto& mark : marks) {
        // Without a release the fields of main hold, and what the operator writes shows which release wrote it.
        const Release first{2, mark.since, 0};
        const bool has_end = mark.until != schema::ReleaseSpan::k_open;
        const Release end = has_end ? Release{2, mark.until, 0} : k_main;
        const bool is_within = mark.since == 0 || first <= release.value_or(k_last_known);
        const bool is_before_end = !has_end || release.value_or(k_last_known) < end;
        if ((is_within && is_before_end) == (mark.what != api::ReleaseMark::What::missing) ||
            (!release && mark.by_operator)) {
            continue;
        }
        const bool is_newer = !is_within && mark.what != api::ReleaseMark::What::missing;
        Diagnostic finding;
        finding.position = mark.position;
        const std::string name = release ? to_string(*release) : to_string(k_last_known);
        if (mark.what == api::ReleaseMark::What::missing) {
            finding.code = "missing-field";
            finding.message = fmt::format("{}: required field {} is missing in KMM {}", mark.subject, mark.path, name);
            finding.hint = has_end            ? fmt::format("KMM requires it up to v2.{}", mark.until - 1)
                           : mark.since != 0 ? fmt::format("it is required since {}", minor_of(first))
                                             : "";
        } else if (mark.what == api::ReleaseMark::What::kind) {
            finding.code = "unknown-kind";
            finding.message = fmt::format("{}: KMM {} does not have this kind", mark.subject, name);
        } else if (!release && is_newer) {
            finding.severity = Severity::warning;
            finding.code = "newer-field";
            finding.message = fmt::format("{}: KMM up to {} does not have the field {}", mark.subject, name, mark.path);
        } else {
            finding.code = "unknown-field";
            finding.message = fmt::format("{}: unknown field {} in KMM {}", mark.subject, mark.path, name);
        }
        if (is_newer) {
            finding.hint = release
                               ? fmt::format("KMM has it since {}", minor_of(first))
                               : fmt::format("KMM has it since {}; with --kmm-version main it is accepted without a "
                                             "warning",
                                             minor_of(first));
        } else if (finding.hint.empty() && has_end) {
            finding.hint = fmt::format("KMM has it up to v2.{}", mark.until - 1);
        }
        diagnostics.push_back(std::move(finding));
    }
}

}  // namespace kmm::plan
