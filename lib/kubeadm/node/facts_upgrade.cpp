// SPDX-License-Identifier: Apache-2.0
// What an upgrade of a node would find: parts of read_facts that run programs of the node.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "kubeadm/node/facts.hpp"
#include "value/reader.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::size_t k_drift_lines = 20, k_drift_line_length = 200;
constexpr kubernetes::MinorVersion k_first_phases{1, 32};  ///< of kubeadm upgrade apply

/// What a command of the node prints. Errors: io "command-failed".
std::string printed_by(const Place& place, const std::vector<std::string>& words) {
    auto told = ask(place, words);
    if (told.exit_code == 0 && told.signal == 0) return std::move(told.out);
    throw Error(Exit::io, "command-failed",
                fmt::format("{} failed: {}", base::join(words, " "), base::escape(base::last_line(told.err))));
}

/// The value of `key` in what containerd prints of its configuration, "" if it is not there.
std::string value_in_dump(const std::string& text, std::string_view key) {
    for (auto line : base::split(text, '\n')) {
        line = base::trim(line);
        const auto equals = line.find('=');
        if (equals == std::string_view::npos || base::trim(line.substr(0, equals)) != key) continue;
        auto value = base::trim(line.substr(equals + 1));
        const bool is_quoted =
            value.size() >= 2 && (value.front() == '\'' || value.front() == '"') && value.back() == value.front();
        if (is_quoted) return std::string(value.substr(1, value.size() - 2));
    }
    return {};
}

/// Of the next step, with the kubeadm that is to do it.
Preflight next_preflight(const Place& place, const ManifestSet& manifests, const FactQuestions& questions) {
    const auto* server = manifests.find("kube-apiserver");
    const auto asked = std::find_if(questions.placing.begin(), questions.placing.end(),
                                    [](const auto& each) { return each.program == "kubeadm"; });
    if (server == nullptr || !server->whole || asked == questions.placing.end())
        throw Error(Exit::checks_failed, "kubeadm-version", "no kubeadm is to upgrade its control plane");
    const auto line = server->version->line(), next = asked->version.line();
    if (next.major != line.major || next.minor > line.minor + 1)
        throw Error(Exit::checks_failed, "kubeadm-version", "the next step leaves its control plane as it is");
    if (next < k_first_phases)
        throw Error(Exit::checks_failed, "kubeadm-version",
                    fmt::format("kubeadm {} cannot run its preflight alone", asked->version.text()));
    const auto kubeadm = find_kubeadm(place, questions.how, asked->version);
    if (kubeadm.empty())
        throw Error(Exit::not_found, "binary-not-found",
                    fmt::format("kubeadm {} is not on this node yet", asked->version.text()));
    return run_preflight(place, kubeadm, asked->version, questions.ignored_preflight);
}

}  // namespace

value::Node crictl_document(const Place& place, const std::vector<std::string>& words) {
    std::vector<std::string> all{"crictl", "--runtime-endpoint", "unix://" + runtime_socket(place)};
    all.insert(all.end(), words.begin(), words.end());
    const auto text = printed_by(place, all);
    Diagnostics faults;
    auto documents = value::read_json(text, "crictl " + words.front(), faults);
    if (faults.empty() && documents.size() == 1 && documents.front().root.is_mapping())
        return std::move(documents.front().root);
    throw Error(Exit::io, "command-failed", fmt::format("crictl {}: expected a JSON document", words.front()));
}

std::vector<std::string> present_images(const Place& place) {
    const auto document = crictl_document(place, {"images", "-o", "json"});
    const value::Node* images = document.find("images");
    if (images == nullptr)
        throw Error(Exit::io, "command-failed", "crictl images: expected a JSON document with images");
    std::vector<std::string> names;
    for (const value::Node& image : images->items()) {
        if (const value::Node* tags = image.find("repoTags")) {
            for (const value::Node& tag : tags->items()) names.push_back(tag.text());
        }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::string sandbox_image(const Place& place) {
    const auto info = crictl_document(place, {"info"});
    if (auto image = info.get_string({"config", "sandboxImage"}); !image.empty()) return image;
    // containerd 2 keeps it with the images it pins, of which crictl info says nothing.
    if (!place.find_program("containerd").empty()) {
        const auto dump = printed_by(place, {"containerd", "config", "dump"});
        for (const auto* key : {"sandbox", "sandbox_image"})
            if (auto image = value_in_dump(dump, key); !image.empty()) return image;
    }
    throw Error(Exit::io, "io", "neither crictl info nor containerd config dump names a sandbox image");
}

std::vector<ManifestDrift> read_manifest_diff(std::string_view text) {
    std::vector<ManifestDrift> drift;
    bool is_in_hunk = false;
    for (const auto line : base::split(text, '\n')) {
        constexpr std::string_view k_old = "--- /";
        if (line.starts_with(k_old)) {
            auto name = std::string(line.substr(line.rfind('/') + 1));
            drift.push_back({name.substr(0, name.find('.')), {}, 0});
            is_in_hunk = false;
            continue;
        }
        if (line.starts_with("@@")) is_in_hunk = true;
        if (!is_in_hunk || drift.empty() || line.empty() || (line.front() != '-' && line.front() != '+')) continue;
        auto& found = drift.back();
        ++found.count;
        if (found.lines.size() < k_drift_lines)
            found.lines.push_back(
                fmt::format("{} {}", line.front(), base::trim(line.substr(1)).substr(0, k_drift_line_length)));
    }
    std::erase_if(drift, [](const auto& one) { return one.count == 0; });
    return drift;
}

std::vector<ManifestDrift> manifest_drift(const Place& place, const ManifestSet& manifests) {
    const Manifest* server = manifests.find("kube-apiserver");
    if (server == nullptr || !server->whole)
        throw Error(Exit::checks_failed, "manifests-damaged", "the manifest of kube-apiserver is not whole");
    const auto own = kubeadm_version(place);
    // Each minor of kubeadm has manifests of its own.
    if (own.line() != server->version->line())
        throw Error(Exit::checks_failed, "kubeadm-version",
                    fmt::format("kubeadm is {}, the manifests are of {}", own.text(), server->version->text()));
    return read_manifest_diff(
        printed_by(place, {"kubeadm", "upgrade", "diff", server->version->text(), "--context-lines", "0"}));
}

Preflight read_preflight(std::string_view text) {
    Preflight found;
    std::string* last = nullptr;  // an error may take several lines
    for (auto line : base::split(text, '\n')) {
        line = base::trim(line);
        for (const auto* other : {"[preflight]", "[ERROR ", "[WARNING "})
            if (line.starts_with(other)) last = nullptr;
        if (last != nullptr && !line.empty()) *last += fmt::format(" {}", line);
        for (const auto& [mark, into] : {std::pair(std::string_view("[ERROR "), &found.errors),
                                         std::pair(std::string_view("[WARNING "), &found.warnings)}) {
            const auto end = line.find("]: ");
            if (!line.starts_with(mark) || end == std::string_view::npos) continue;
            into->push_back(fmt::format("{}: {}", line.substr(mark.size(), end - mark.size()), line.substr(end + 3)));
            last = into == &found.errors ? &into->back() : nullptr;
        }
    }
    return found;
}

Preflight run_preflight(const Place& place, const std::string& kubeadm, const kubernetes::Version& target,
                        const std::string& ignored) {
    // Where nothing can be written, nothing is.
    std::vector<std::string> words{kubeadm,     "upgrade",     "apply",     "phase",
                                   "preflight", target.text(), "--dry-run", "--yes"};
    if (!ignored.empty()) words.push_back("--ignore-preflight-errors=" + ignored);
    const auto told = ask(place, words, {{"KUBEADM_UPGRADE_DRYRUN_DIR", "/proc"}});
    auto found = read_preflight(told.err);
    found.version = target;
    if ((told.exit_code != 0 || told.signal != 0) && found.errors.empty())
        throw Error(Exit::io, "command-failed",
                    fmt::format("{} upgrade apply phase preflight failed: {}", kubeadm,
                                base::escape(base::last_line(told.err))));
    return found;
}

UpgradeFacts read_upgrade_facts(const Node& node, const std::optional<ManifestSet>& manifests,
                                const FactQuestions& questions, std::vector<Unread>& unread) {
    UpgradeFacts facts;
    const auto take = [&](const char* field, auto& into, auto body) {
        try {
            into = body();
        } catch (const Error& error) {
            unread.push_back({field, error.what()});
        }
    };
    const Place& place = node.place;
    take("upgrade.images", facts.images, [&] { return present_images(place); });
    take("upgrade.sandboxImage", facts.sandbox_image, [&] { return sandbox_image(place); });
    if (manifests && manifests->control_plane)
        take("upgrade.manifestDrift", facts.drift, [&] { return manifest_drift(place, *manifests); });
    if (questions.how.way == Switch::Way::none) return facts;
    take("upgrade.placing", facts.placing, [&] {
        std::vector<PlacingTrial> trials;
        for (const auto& question : questions.placing)
            trials.push_back(try_placing(node, questions.how, question.version, question.program));
        return trials;
    });
    if (manifests && manifests->control_plane)
        take("upgrade.preflight", facts.preflight, [&] { return next_preflight(place, *manifests, questions); });
    return facts;
}

value::Node upgrade_document(const UpgradeFacts& facts) {
    const auto flag = [](const std::optional<bool>& found) { return found ? value::Node(*found) : value::Node(); };
    value::Node made = value::Node::mapping(
        {{"images", facts.images ? value::Node::strings(*facts.images) : value::Node()},
         {"sandboxImage", facts.sandbox_image ? value::Node(*facts.sandbox_image) : value::Node()}});
    value::Node drift = value::Node::sequence(), placing = value::Node::sequence();
    if (facts.drift) {
        for (const auto& one : *facts.drift)
            drift.push_back(value::Node::mapping({{"component", one.component},
                                                  {"count", static_cast<std::uint64_t>(one.count)},
                                                  {"lines", value::Node::strings(one.lines)}}));
    }
    made.set("manifestDrift", facts.drift ? std::move(drift) : value::Node());
    if (facts.placing) {
        for (const auto& trial : *facts.placing)
            placing.push_back(value::Node::mapping({{"program", trial.program},
                                                    {"version", trial.version.text()},
                                                    {"available", flag(trial.is_available)},
                                                    {"digest", flag(trial.has_digest)},
                                                    {"tried", trial.was_tried},
                                                    {"code", trial.code},
                                                    {"problem", trial.problem}}));
    }
    made.set("placing", facts.placing ? std::move(placing) : value::Node());
    made.set("preflight", facts.preflight
                              ? value::Node::mapping({{"version", facts.preflight->version.text()},
                                                      {"errors", value::Node::strings(facts.preflight->errors)},
                                                      {"warnings", value::Node::strings(facts.preflight->warnings)}})
                              : value::Node());
    return made;
}

}  // namespace kmm::kubeadm
