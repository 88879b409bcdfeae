// SPDX-License-Identifier: Apache-2.0
#include "image/platform.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

#include "base/text.hpp"

namespace kmm::image {

namespace {

/// As container runtimes read it (containerd's platforms.Normalize), but that an "arm" without a variant says none.
Platform normal(const Platform& platform) {
    Platform result{base::to_lower(platform.os), base::to_lower(platform.architecture),
                    base::to_lower(platform.variant)};
    std::string& name = result.architecture;
    std::string& variant = result.variant;
    if (name == "x86_64" || name == "x86-64" || name == "amd64") {
        name = "amd64";
        variant = variant == "v1" ? "" : variant;
    } else if (name == "aarch64" || name == "arm64") {
        name = "arm64";
        variant = variant == "8" || variant == "v8" ? "" : variant;
    } else if (name == "i386") {
        name = "386";
        variant.clear();
    } else if (name == "armhf" || name == "armel") {
        variant = name == "armhf" ? "v7" : "v6";
        name = "arm";
    } else if (name == "arm" && variant.size() == 1) {
        variant.insert(0, 1, 'v');
    }
    return result;
}

constexpr int k_far = 1'000'000;  // behind every variant that the wanted one includes

/// The variant of a normal platform as a number that grows with what a processor has: "v8.2" is 802. A platform that
/// says none is what runtimes take it for: amd64 v1, arm64 v8, arm v7. nullopt for what is not a version.
std::optional<int> rank_of(const Platform& platform) {
    std::string_view text = platform.variant;
    if (text.empty()) {
        text = platform.architecture == "amd64" ? "v1" : platform.architecture == "arm64" ? "v8" : "v7";
        if (platform.architecture != "amd64" && !platform.architecture.starts_with("arm")) return std::nullopt;
    }
    if (!text.starts_with('v')) return std::nullopt;
    text.remove_prefix(1);
    int numbers[2] = {0, 0};
    for (int& number : numbers) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc{} || number < 0 || number >= 100) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        if (text.empty()) return 100 * numbers[0] + numbers[1];
        if (text.front() != '.' || &number != &numbers[0]) return std::nullopt;
        text.remove_prefix(1);
    }
    return std::nullopt;
}

}  // namespace

std::string Platform::to_string() const {
    std::string text = (os.empty() ? "unknown" : os) + "/" + (architecture.empty() ? "unknown" : architecture);
    if (!variant.empty()) {
        text += "/" + variant;
    }
    return text;
}

std::optional<int> distance(const Platform& offered, const Platform& wanted) {
    const Platform left = normal(offered);
    const Platform right = normal(wanted);
    if (left.os != right.os || left.architecture != right.architecture) return std::nullopt;
    if (left.variant == right.variant) return 0;
    const auto have = rank_of(left);
    const auto want = rank_of(right);
    if (have && want && *have <= *want) return 1 + *want - *have;
    if (left.variant.empty() || right.variant.empty()) return k_far + (have && want ? *have - *want : 0);
    return std::nullopt;
}

bool matches(const Platform& offered, const Platform& wanted) { return distance(offered, wanted).has_value(); }

}  // namespace kmm::image
