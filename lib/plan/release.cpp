// SPDX-License-Identifier: Apache-2.0
#include "plan/release.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_field_releases{
    FieldRelease{"spec.moduleLoader.container.inTreeModulesToRemove", {2, 1, 0}},
    FieldRelease{"spec.moduleLoader.container.kernelMappings[].inTreeModulesToRemove", {2, 1, 0}},
    FieldRelease{"spec.tolerations", {2, 3, 0}},
    FieldRelease{"spec.devicePlugin.initContainer", {2, 4, 0}},
    FieldRelease{"spec.devicePlugin.automountServiceAccountToken", {2, 6, 0}},
    FieldRelease{"spec.imageRebuildTriggerGeneration", {2, 6, 0}},
    FieldRelease{"spec.dra", k_after_last_known},
    FieldRelease{"spec.moduleLoader.container.modprobe.modprobedDir", k_after_last_known},
};

/// "2.6" is the last of its line.
constexpr unsigned k_last_patch = std::numeric_limits<unsigned>::max();

/// "a[3].b" as "a[].b".
std::string without_indexes(std::string_view path) {
    std::string result;
    bool inside = false;
    for (const char c : path) {
        if (c == ']') { inside = false; }
        if (!inside) { result += c; }
        if (c == '[') { inside = true; }
    }
    return result;
}

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

std::span<const FieldRelease> field_releases() noexcept { return k_field_releases; }

void check_field_releases(const api::Module& module, const std::string& subject, const std::optional<Release>& release, Diagnostics& diagnostics) {
    const Release known = release.value_or(k_last_known);
    for (const auto& [path, place] : module.places) {
        const bool indexed = path.find('[') != std::string::npos;
        const std::string plain = indexed ? without_indexes(path) : path;
        const auto* const row = std::find_if(k_field_releases.begin(), k_field_releases.end(), [&](const FieldRelease& field) { return field.path == plain; });
        if (row == k_field_releases.end() || row->since <= known) { continue; }
        Diagnostic finding;
        finding.severity = release ? Severity::error : Severity::warning;
        finding.code = release ? "unknown-field" : "newer-field";
        finding.message = release ? fmt::format("{}: unknown field {} in KMM {}", subject, path, to_string(*release))
                                  : fmt::format("{}: KMM up to {} does not have the field {}", subject, to_string(k_last_known), path);
        finding.position = place;
        finding.hint = release ? fmt::format("KMM has it since {}", minor_of(row->since))
                               : fmt::format("KMM has it since {}; with --kmm-version main it is taken without a word", minor_of(row->since));
        diagnostics.push_back(std::move(finding));
    }
}

}  // namespace kmm::plan
