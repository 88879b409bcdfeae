// SPDX-License-Identifier: Apache-2.0
// Checks of what has to fit or to be there beside Kubernetes itself: applications and patches.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/cluster_checks/cluster_checks.hpp"
#include "kubernetes/versions/path.hpp"

namespace kmm::kubernetes {
namespace {

/// Versions that control planes or kubelets are brought to on the way to `target`, in order; the target alone where no
/// way is known.
std::vector<Version> versions_on_way(const CheckInput& input, const Version& target) {
    std::vector<Version> versions;
    if (input.seen.faults.empty() && input.seen.lowest_control_plane() && input.seen.lowest_kubelet() &&
        input.catalogue.find(target) != nullptr) {
        for (const auto& step : find_path(input.catalogue, input.seen, target).steps) {
            if (std::find(versions.begin(), versions.end(), step.version) == versions.end()) {
                versions.push_back(step.version);
            }
        }
    }
    if (versions.empty()) { versions.push_back(target); }
    return versions;
}

/// An application of the metadata, and why the inventory cannot say whether it is there ("" if it is).
struct Candidate {
    const Application* application;
    std::string unknown;
};

/// Entries that are the network add-on, or those that are not, without what is known not to be there.
std::vector<Candidate> candidates_of(const CheckInput& input, bool is_cni) {
    std::vector<Candidate> candidates;
    for (const auto& application : input.catalogue.applications) {
        if (application.is_cni != is_cni) { continue; }
        std::string reason;
        const auto installed = is_installed(application, input.inventory, reason);
        if (installed != false) { candidates.push_back({&application, installed ? "" : std::move(reason)}); }
    }
    return candidates;
}

std::string named(const Application& application) {
    return base::escape(application.ns.empty() ? application.name : application.ns + "/" + application.name);
}

/// The first of `versions` that the bounds leave out.
const Version* first_refused(const VersionBounds& bounds, const std::vector<Version>& versions) {
    const auto found =
        std::find_if(versions.begin(), versions.end(), [&](const auto& version) { return !bounds.accept(version); });
    return found == versions.end() ? nullptr : &*found;
}

/// What programs refuse of the way; nothing where no version runs that could be named to them.
void add_refusals(const CheckInput& input, const std::vector<Version>& versions, std::vector<std::string>& problems) {
    const auto from = input.seen.lowest_control_plane();
    if (input.programs == nullptr || !from) { return; }
    std::vector<std::string> refused;
    for (const auto& to : versions) {
        for (const auto& reply : input.programs->ask(*from, to).replies) {
            const auto key = reply.program + "\n" + reply.name;
            if (std::find(refused.begin(), refused.end(), key) != refused.end()) { continue; }
            const auto who = reply.name == reply.program
                                 ? base::escape(reply.name)
                                 : fmt::format("{} ({})", base::escape(reply.name), base::escape(reply.program));
            if (!reply.is_supported) {
                problems.push_back(fmt::format("{} does not support {}{}", who, to.text(),
                                               reply.reason.empty() ? "" : ": " + base::escape(reply.reason)));
            } else if (!reply.supported.accept(to)) {
                problems.push_back(fmt::format("{} supports {}, not {}", who, reply.supported.text(), to.text()));
            } else { continue; }
            refused.push_back(key);
        }
    }
}

std::vector<std::string> bound_problems(const std::vector<Candidate>& candidates,
                                        const std::vector<Version>& versions) {
    std::vector<std::string> problems;
    for (const auto& [application, unknown] : candidates) {
        const auto* refused = first_refused(application->supported, versions);
        if (refused == nullptr) { continue; }
        problems.push_back(
            fmt::format("{} supports {}, not {}{}", named(*application), application->supported.text(), refused->text(),
                        unknown.empty() ? "" : fmt::format(" (whether it is installed is not known: {})", unknown)));
    }
    return problems;
}

std::vector<std::string> app_problems(const CheckInput& input, const std::vector<Candidate>& candidates,
                                      const std::vector<Version>& versions) {
    auto problems = bound_problems(candidates, versions);
    add_refusals(input, versions, problems);
    return problems;
}

bool have_programs_failed(const CheckInput& input, const Version& to) {
    const auto from = input.seen.lowest_control_plane();
    return input.programs != nullptr && from && !input.programs->ask(*from, to).faults.empty();
}

/// The highest version below the target, and above what runs, that all support.
std::string highest_text(const CheckInput& input, const std::vector<Candidate>& candidates) {
    const auto from = input.seen.lowest_control_plane();
    if (!from || !input.seen.lowest_kubelet() || !input.seen.faults.empty()) {
        return "the highest version that all support is not known";
    }
    for (auto entry = input.catalogue.versions.rbegin(); entry != input.catalogue.versions.rend(); ++entry) {
        const auto& version = entry->version;
        if (version >= *input.target || version <= *from) { continue; }
        const auto path = find_path(input.catalogue, input.seen, version);
        if (!path.problem.empty() || path.steps.empty()) { continue; }
        const auto on_way = versions_on_way(input, version);
        if (std::any_of(candidates.begin(), candidates.end(), [&](const auto& each) {
                return first_refused(each.application->supported, on_way) != nullptr;
            })) {
            continue;
        }
        if (have_programs_failed(input, version)) {
            return "the highest version that all support is not known, see app-check-programs";
        }
        if (app_problems(input, candidates, on_way).empty()) {
            return fmt::format("the highest version that can be reached with all of them is {}", version.text());
        }
    }
    return "no higher version can be reached with all of them";
}

/// Whether the metadata says anything of network add-ons, or of applications.
bool lists(const CheckInput& input, bool is_cni) {
    const auto& all = input.catalogue.applications;
    return std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.is_cni == is_cni; });
}

Finding cni_supports(const CheckInput& input) {
    if (!lists(input, true)) { return {Outcome::skip, "the metadata lists no application with cni: true"}; }
    const auto candidates = candidates_of(input, true);
    auto problems = bound_problems(candidates, versions_on_way(input, *input.target));
    if (!problems.empty()) { return {Outcome::fail, base::join(problems, "; ")}; }
    if (candidates.empty()) {
        return {Outcome::warn, "no network add-on of the metadata is installed, another one is not known"};
    }
    std::vector<std::string> names;
    for (const auto& each : candidates) { names.push_back(named(*each.application)); }
    return {Outcome::ok, base::join(names, ", ")};
}

Finding apps_support(const CheckInput& input) {
    if (!lists(input, false) && input.programs == nullptr) {
        return {Outcome::skip, "the metadata lists no applications, and there is no --app-check DIR"};
    }
    const auto versions = versions_on_way(input, *input.target);
    const auto candidates = candidates_of(input, false);
    const auto problems = app_problems(input, candidates, versions);
    if (!problems.empty()) {
        return {Outcome::fail, fmt::format("{}; {}", base::join(problems, "; "), highest_text(input, candidates))};
    }
    if (input.programs != nullptr && !input.seen.lowest_control_plane()) {
        return {Outcome::skip, "the version that runs is not known, which programs of --app-check are given"};
    }
    if (have_programs_failed(input, *input.target)) {
        return {Outcome::skip, "programs of --app-check gave no answer, see app-check-programs"};
    }
    const auto answers = input.programs == nullptr
                             ? 0
                             : input.programs->ask(*input.seen.lowest_control_plane(), *input.target).replies.size();
    const auto count = candidates.size() + answers;
    return {Outcome::ok, count == 0 ? "none of the applications in the metadata is installed"
                                    : fmt::format("applications that support {}: {}", input.target->text(), count)};
}

Finding app_check_programs(const CheckInput& input) {
    if (input.programs == nullptr) { return {Outcome::skip, "there is no --app-check DIR"}; }
    const auto from = input.seen.lowest_control_plane();
    if (!from) { return {Outcome::skip, "the version that runs is not known"}; }
    std::vector<std::string> faults;
    for (const auto& to : versions_on_way(input, *input.target)) {
        for (const auto& fault : input.programs->ask(*from, to).faults) {
            if (std::find(faults.begin(), faults.end(), fault) == faults.end()) { faults.push_back(fault); }
        }
    }
    if (!faults.empty()) { return {Outcome::fail, base::join(faults, "; ")}; }
    return {Outcome::ok, fmt::format("answers for {} -> {}: {}", from->text(), input.target->text(),
                                     input.programs->ask(*from, *input.target).replies.size())};
}

Finding patches_are(const CheckInput& input, PatchNeed need) {
    std::vector<std::string> wanted;
    for (const auto& version : versions_on_way(input, *input.target)) {
        const auto* entry = input.catalogue.find(version);
        if (entry == nullptr) { continue; }
        for (const auto& id : need == PatchNeed::applied ? entry->applied_patches : entry->available_patches) {
            if (std::find(wanted.begin(), wanted.end(), id) == wanted.end()) { wanted.push_back(id); }
        }
    }
    if (wanted.empty()) { return {Outcome::skip, "the metadata lists none for this upgrade"}; }
    std::vector<std::string> shown;
    for (const auto& id : wanted) { shown.push_back(base::escape(id)); }
    if (input.patches == nullptr) {
        return {Outcome::fail,
                fmt::format("{} required, and nothing says which are there: --patch-query COMMAND is missing",
                            base::join(shown, ", ")),
                "name it: --patch-query 'sw-patch query'"};
    }
    if (!input.patches->fault.empty()) {
        return {Outcome::fail, input.patches->fault,
                "run the command of --patch-query by hand: it prints what sw-patch query does, or JSON"};
    }
    auto problems = patch_problems(input.patches->states, wanted, need);
    if (!problems.empty()) { return {Outcome::fail, base::join(problems, "; ")}; }
    return {Outcome::ok, base::join(shown, ", ")};
}

Finding applied_patches(const CheckInput& input) { return patches_are(input, PatchNeed::applied); }

Finding available_patches(const CheckInput& input) { return patches_are(input, PatchNeed::available); }

constexpr CheckRow k_prerequisite_rows[] = {
    {"cni-supports", cni_supports},
    {"apps-support", apps_support},
    {"app-check-programs", app_check_programs},
    {"applied-patches", applied_patches},
    {"available-patches", available_patches},
};

}  // namespace

std::span<const CheckRow> prerequisite_checks() noexcept { return k_prerequisite_rows; }

}  // namespace kmm::kubernetes
