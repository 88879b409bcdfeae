// SPDX-License-Identifier: Apache-2.0
// Versions of Kubernetes and of what runs beside it: the one comparison of versions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::kubernetes {

/// MAJOR.MINOR of a version.
struct MinorVersion {
    std::uint32_t major = 0, minor = 0;

    /// "v1.34".
    [[nodiscard]] std::string text() const;
    /// "v1.34" or "1.34"; nullopt for anything else.
    [[nodiscard]] static std::optional<MinorVersion> parse(std::string_view text);
    friend auto operator<=>(const MinorVersion&, const MinorVersion&) = default;
};

/// MAJOR.MINOR.PATCH with an optional suffix. Totally ordered: by the three numbers; then a pre-release (-alpha, -beta,
/// -rc, -pre) before the release and any other suffix (-gke.100, -0, +k3s1) after it; then by the numbers and words of
/// the suffix.
struct Version {
    std::uint32_t major = 0, minor = 0, patch = 0;
    std::string suffix;  ///< with its first character, "-rc.1" or "+k3s1"; "" for a release

    /// "v1.34.4", the v optional and of either case. No blanks, no leading zeros, three numbers of at most 32 bits,
    /// then nothing or a suffix that begins with '-' or '+' and has letters, digits and . + - alone; nullopt for
    /// anything else.
    [[nodiscard]] static std::optional<Version> parse(std::string_view text);
    /// The version in the tag of an image reference, in which '_' stands for '+':
    /// "registry:5000/kube-apiserver:v1.34.4@sha256:..". nullopt if the reference has no tag or its tag is not a
    /// version.
    [[nodiscard]] static std::optional<Version> of_image(std::string_view reference);

    /// "v1.34.4", always with the v.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] MinorVersion line() const noexcept { return {major, minor}; }
    [[nodiscard]] bool is_pre_release() const;

    friend std::strong_ordering operator<=>(const Version& left, const Version& right);
    friend bool operator==(const Version&, const Version&) = default;
};

/// How many minors `older` is behind `newer`, negative if it is ahead; another major counts 100 minors.
[[nodiscard]] std::int64_t minors_behind(const Version& older, const Version& newer) noexcept;

/// What a version looks like, for messages.
inline constexpr std::string_view k_version_form = "MAJOR.MINOR.PATCH as v1.34.4";

}  // namespace kmm::kubernetes
