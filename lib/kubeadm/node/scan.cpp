// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/scan.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"

namespace kmm::kubeadm {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t k_names_max = 200, k_name_shown = 80;
constexpr std::array<const char*, 3> k_programs{"kubeadm", "kubelet", "kubectl"};
constexpr std::array<const char*, 2> k_placed{"kubeadm", "kubelet"};  ///< by an upgrade

std::string shown(std::string_view name) { return std::string(name.substr(0, k_name_shown)); }

/// Whether kubectl is in a directory of a version, in either stage or without stages.
bool has_kubectl(const Place& place, const std::string& directory) {
    for (const char* below : {"/stage1/usr/bin/kubectl", "/stage2/usr/bin/kubectl", "/kubectl"})
        if (place.exists(directory + below)) return true;
    return false;
}

/// Packages by version, as lines of a package manager name them one by one.
class PackageList {
public:
    /// `text` is the version of a package with its release: 1.35.4-1.1.
    void add(std::string_view program, std::string_view text) {
        if (std::find(k_programs.begin(), k_programs.end(), program) == k_programs.end()) return;
        const auto version = kubernetes::Version::parse(text.substr(0, text.rfind('-')));
        if (!version) {
            const std::pair<std::string, std::string> one{shown(fmt::format("{} {}", program, text)),
                                                          "its version is not MAJOR.MINOR.PATCH"};
            if (ignored_.size() < k_names_max && std::find(ignored_.begin(), ignored_.end(), one) == ignored_.end())
                ignored_.push_back(one);
            return;
        }
        auto& programs = found_[*version];
        if (std::find(programs.begin(), programs.end(), program) == programs.end()) programs.emplace_back(program);
    }

    [[nodiscard]] VersionOffer offer(const char* source) && {
        VersionOffer made{source, {}, std::move(ignored_)};
        for (auto& [version, programs] : found_) {
            Words missing;
            for (const char* program : k_placed)
                if (std::find(programs.begin(), programs.end(), program) == programs.end())
                    missing.emplace_back(program);
            made.versions.push_back(
                {version, std::move(programs),
                 missing.empty() ? "" : fmt::format("no package {} of that version", base::join(missing, ", "))});
        }
        return made;
    }

private:
    std::map<kubernetes::Version, Words> found_;
    std::vector<std::pair<std::string, std::string>> ignored_;
};

value::Node offer_document(const std::optional<VersionOffer>& offer) {
    if (!offer) return {};
    value::Node versions = value::Node::sequence(), ignored = value::Node::sequence();
    for (const auto& one : offer->versions)
        versions.push_back(value::Node::mapping({{"version", one.version.text()},
                                                 {"programs", value::Node::strings(one.programs)},
                                                 {"whole", one.problem.empty()},
                                                 {"problem", one.problem}}));
    for (const auto& [name, reason] : offer->ignored)
        ignored.push_back(value::Node::mapping({{"name", name}, {"reason", reason}}));
    value::Node made = value::Node::mapping({{"source", offer->source}});
    made.set("versions", std::move(versions));
    made.set("ignored", std::move(ignored));
    return made;
}

}  // namespace

VersionOffer scan_directories(const Node& node, const Switch& how) {
    VersionOffer made{how.directory, {}, {}};
    const auto names = node.place.list(how.directory);
    if (names.size() > k_names_max)
        throw Error(Exit::io, "io",
                    fmt::format("{} has {} names, expected at most {}", how.directory, names.size(), k_names_max));
    Switch way = how;
    way.way = Switch::Way::binaries;
    for (const auto& name : names) {
        const auto version = kubernetes::Version::parse(name);
        // An upgrade looks for 1.35.4 and v1.35.4.
        if (!version || (name != version->text() && "v" + name != version->text())) {
            made.ignored.emplace_back(shown(name), fmt::format("its name is not {}", kubernetes::k_version_form));
            continue;
        }
        const auto same = std::find_if(made.versions.begin(), made.versions.end(),
                                       [&](const auto& one) { return one.version == *version; });
        if (same != made.versions.end()) {
            made.ignored.emplace_back(name, "the directory without v is used");
            continue;
        }
        OfferedVersion offered{*version, {}, ""};
        Words problems;
        for (const char* program : k_placed) {
            const auto trial = try_placing(node, way, *version, program);
            if (trial.code != "binary-not-found") offered.programs.emplace_back(program);
            if (!trial.code.empty()) problems.push_back(trial.problem);
        }
        if (has_kubectl(node.place, how.directory + "/" + name)) offered.programs.emplace_back("kubectl");
        offered.problem = base::join(problems, "; ");
        made.versions.push_back(std::move(offered));
    }
    std::sort(made.versions.begin(), made.versions.end(),
              [](const auto& left, const auto& right) { return left.version < right.version; });
    return made;
}

VersionOffer read_madison(std::string_view text) {
    PackageList packages;
    for (const auto line : base::split(text, '\n')) {
        const auto cells = base::split(line, '|');  // "kubeadm | 1.35.4-1.1 | https://... Packages"
        // A line of sources is not a package that could be installed.
        if (cells.size() < 3 || base::trim(cells[2]).ends_with(" Sources")) continue;
        packages.add(base::trim(cells[0]), base::trim(cells[1]));
    }
    return std::move(packages).offer("apt");
}

VersionOffer read_repoquery(std::string_view text) {
    PackageList packages;
    for (auto line : base::split(text, '\n')) {
        line = base::trim(line);  // "kubeadm-0:1.35.4-150500.1.1.x86_64"
        const auto dash = line.find('-');
        if (dash == std::string_view::npos) continue;
        auto version = line.substr(dash + 1);
        if (const auto colon = version.find(':'); colon != std::string_view::npos) version.remove_prefix(colon + 1);
        packages.add(line.substr(0, dash), version);
    }
    return std::move(packages).offer("dnf");
}

VersionOffer scan_packages(const Place& place) {
    const bool is_apt = !place.find_program("apt-cache").empty();
    if (!is_apt && place.find_program("dnf").empty()) return {};
    Words words =
        is_apt ? Words{"apt-cache", "madison"} : Words{"dnf", "-q", "-C", k_with_excluded, "repoquery"};
    words.insert(words.end(), k_programs.begin(), k_programs.end());
    const auto told = ask(place, words);
    if (told.exit_code != 0 || told.signal != 0)
        throw Error(Exit::io, "command-failed",
                    fmt::format("{} failed: {}", base::join(words, " "), base::escape(base::last_line(told.err))));
    return is_apt ? read_madison(told.out) : read_repoquery(told.out);
}

value::Node scan_document(const VersionScan& scan) {
    value::Node made = value::Node::mapping();
    made.set("directories", offer_document(scan.directories));
    made.set("packages", offer_document(scan.packages));
    return made;
}

}  // namespace kmm::kubeadm
