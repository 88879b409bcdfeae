// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/release_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::drive {
namespace {

using upgrade::recipe::Release;
using value::Node;

constexpr std::string_view k_type = "kmmtools.dev/release";
constexpr const char* k_data = "release";
constexpr std::size_t k_size_max = 1'000'000;
constexpr std::size_t k_readable_max = 256U << 10U;  ///< a longer one is gzip, the same bytes for the same release
constexpr const char* k_damaged_hint =
    "restore it from a backup, or delete it: what only that release has then stays in the cluster";
/// Of what a Secret unpacks to, which whoever may write Secrets there decides.
constexpr std::size_t k_plain_max = 32U << 20U, k_values_max = 1'000'000;

std::string name_of(const Release& release) {
    return fmt::format("kmm-upgrade.recipe.{}.v{}", release.recipe, release.revision);
}

Release decode_secret(const Node& secret) {
    const auto place = fmt::format("Secret {}/{}", secret.get_string({"metadata", "namespace"}),
                                   secret.get_string({"metadata", "name"}));
    auto text = base::from_base64(secret.get_string({"data", k_data}));
    if (text && base::is_gzip(*text)) text = base::from_gzip(*text, k_plain_max);
    if (!text || text->empty())
        throw Error(Exit::io, "state-damaged", place + " holds no release of a recipe").hint(k_damaged_hint);
    Diagnostics faults;
    value::ReadLimits limits;
    limits.bytes_max = k_plain_max;
    limits.json_nodes_max = k_values_max;
    const auto documents = value::read_json(*text, place, faults, limits);
    if (has_errors(faults) || documents.empty())
        throw Error(Exit::io, "state-damaged",
                    fmt::format("{}: {}", place, faults.empty() ? "it is empty" : faults.front().message))
            .hint(k_damaged_hint);
    try {
        return upgrade::recipe::decode_release(documents.front().root, place);
    } catch (Error& error) {
        if (error.code() == "state-damaged") error.hint(k_damaged_hint);
        throw;
    }
}

std::size_t values_in(const Node& node) {
    std::size_t count = 1;
    for (const auto& item : node.items()) count += values_in(item);
    for (const auto& member : node.members()) count += values_in(member.value);
    return count;
}

/// The member of the Secret. What decode_secret would not read is not written.
std::string data_of(const Release& release) {
    const auto tree = upgrade::recipe::encode(release);
    auto plain = value::to_json(tree);
    const auto require = [&](std::size_t found, std::size_t most, const char* what) {
        if (found <= most) return;
        throw Error(Exit::data, "release-too-large",
                    fmt::format("recipe {}: its objects have {} {}, expected at most {}", release.recipe, found, what,
                                most))
            .hint("split the recipe into several SpecialResources");
    };
    require(plain.size(), k_plain_max, "bytes");
    require(values_in(tree), k_values_max, "values");
    if (plain.size() > k_readable_max) plain = base::to_gzip(plain);
    auto text = base::to_base64(plain);
    if (text.size() <= k_size_max) return text;
    throw Error(Exit::data, "release-too-large",
                fmt::format("recipe {}: its objects take {} in a Secret, expected at most {}", release.recipe,
                            base::format_bytes(text.size()), base::format_bytes(k_size_max)))
        .hint("split the recipe into several SpecialResources, or leave large ConfigMaps out");
}

}  // namespace

std::vector<Release> ReleaseStore::read(const std::string& selector) {
    std::vector<Release> releases;
    for (const auto& secret : client_.list_all(kube::resources::k_secrets, {space_, selector, ""}))
        releases.push_back(decode_secret(secret));
    std::sort(releases.begin(), releases.end(), [](const Release& left, const Release& right) {
        return std::pair(left.recipe, left.revision) < std::pair(right.recipe, right.revision);
    });
    return releases;
}

std::vector<Release> ReleaseStore::of(const std::string& recipe) {
    return read(fmt::format("{}={}", k_label_release, recipe));
}

std::vector<Release> ReleaseStore::of_others(const std::string& recipe) {
    auto releases = all();
    std::erase_if(releases, [&](const Release& one) { return one.recipe == recipe; });
    return releases;
}

std::vector<Release> ReleaseStore::all() { return read(std::string(k_label_release)); }

void ReleaseStore::require_room(Release release, const std::vector<upgrade::recipe::ReleaseObject>& kept) {
    release.status = upgrade::recipe::Status::superseded;  // the longest word
    static_cast<void>(data_of(release));
    if (kept.empty()) return;
    release.kept = kept;
    try {
        static_cast<void>(data_of(release));
    } catch (Error& error) {
        error.hint(fmt::format("{} of them {} kept for kernels that nodes still run: begin once none does, or split "
                               "the recipe into several SpecialResources",
                               kept.size(), kept.size() == 1 ? "is" : "are"));
        throw;
    }
}

void ReleaseStore::put(const Release& release) {
    auto text = data_of(release);
    auto labels = Node::mapping();
    labels.set(std::string(k_label_release), release.recipe);
    const auto object = Node::mapping(
        {{"apiVersion", "v1"},
         {"kind", "Secret"},
         {"metadata",
          Node::mapping({{"name", name_of(release)}, {"namespace", space_}, {"labels", std::move(labels)}})},
         {"type", k_type},
         {"data", Node::mapping({{k_data, std::move(text)}})}});
    const kube::Key key{space_, name_of(release)};
    const auto there = client_.find(kube::resources::k_secrets, key);
    // What is listed by its label is not found without it: an older release would be lost.
    if (there && there->get_string({"metadata", "labels", std::string(k_label_release)}) != release.recipe)
        throw Error(Exit::io, "state-damaged",
                    fmt::format("Secret {} exists, and has no label {}={}", key.to_string(), k_label_release,
                                release.recipe))
            .hint(fmt::format("kubectl label secret -n {} {} {}={}, if it is a release of the recipe; else delete it",
                              space_, key.name, k_label_release, release.recipe));
    if (there)
        static_cast<void>(
            client_.merge_patch(kube::resources::k_secrets, key, Node::mapping({{"data", *object.find("data")}})));
    else static_cast<void>(client_.create(kube::resources::k_secrets, object));
}

void ReleaseStore::remove(const Release& release) {
    static_cast<void>(client_.remove(kube::resources::k_secrets, {space_, name_of(release)}));
}

std::vector<kube::Rule> ReleaseStore::rules(const std::string& space) {
    std::vector<kube::Rule> rules;
    for (const auto* verb : {"get", "list", "create", "patch", "delete"})
        rules.push_back({verb, "", "secrets", "", space, ""});
    return rules;
}

const Release* deployed_of(const std::vector<Release>& releases) {
    const Release* newest = nullptr;
    for (const auto& release : releases)
        if (release.status == upgrade::recipe::Status::deployed &&
            (newest == nullptr || release.revision > newest->revision))
            newest = &release;
    return newest;
}

const Release* revision_of(const std::vector<Release>& releases, std::int64_t revision) {
    const auto found =
        std::find_if(releases.begin(), releases.end(), [&](const Release& one) { return one.revision == revision; });
    return found == releases.end() ? nullptr : &*found;
}

}  // namespace kmm::drive
