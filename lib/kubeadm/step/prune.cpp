// SPDX-License-Identifier: Apache-2.0
// What is left of earlier upgrades: kubeadm never removes what it keeps in /etc/kubernetes/tmp, copies of etcd's data
// among it, and each upgrade makes a backup.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/step/backup.hpp"
#include "kubeadm/step/etcd_restore_parts.hpp"
#include "kubeadm/step/steps.hpp"
#include "sys/directory.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::string_view k_prefix = "kubeadm-";
constexpr std::string_view k_partial_end = ".partial";

using Time = std::pair<std::int64_t, std::int64_t>;  // seconds, nanoseconds

Time changed(int directory, const std::string& name) {
    struct stat info {};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot look at " + name);
    }
    return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

/// Its name without the time or the number at its end.
std::string kind_of(const std::string& name) {
    const auto end = name.find_last_not_of("0123456789-");
    return name.substr(0, end + 1);
}

/// What is older than `begun`, but for the newest of each kind and for what a manifest is repaired from.
std::vector<std::string> obsolete(const Place& place, int directory, const Time& begun) {
    std::map<std::string, std::pair<Time, std::string>> newest;
    std::vector<std::pair<Time, std::string>> all;
    for (const auto& name : place.list(k_kubeadm_copies)) {
        if (!name.starts_with(k_prefix)) continue;
        all.emplace_back(changed(directory, name), name);
        auto& known = newest[kind_of(name)];
        known = std::max(known, all.back());
    }
    std::vector<std::string> needed;
    for (const auto component : k_static_pods) {
        const auto backup = newest_kubeadm_backup(place, std::string(component));
        if (backup) needed.push_back(sys::name_of(sys::parent_of(backup->path)));
    }
    std::vector<std::string> names;
    for (const auto& [time, name] : all) {
        const bool is_kept = time >= begun || newest[kind_of(name)].second == name ||
                             std::find(needed.begin(), needed.end(), name) != needed.end();
        if (!is_kept) names.push_back(name);
    }
    return names;
}

std::size_t prune_copies(const Place& place, const std::string& backup) {
    if (!place.exists(k_kubeadm_copies)) return 0;
    const sys::Fd backups = place.open(sys::parent_of(backup_directory(backup)), O_RDONLY | O_DIRECTORY);
    const sys::Fd copies = place.open(k_kubeadm_copies, O_RDONLY | O_DIRECTORY);
    const auto names = obsolete(place, copies.get(), changed(backups.get(), backup));
    for (const auto& name : names) sys::remove_tree(fmt::format("/proc/self/fd/{}/{}", copies.get(), name));
    return names.size();
}

/// As before-v1.35.4-0f3c9a12, which an upgrade gives them. Others have been made by hand.
bool is_of_upgrade(std::string_view name) {
    constexpr std::size_t k_lineage = 8;
    if (!name.starts_with("before-v") || name.size() < k_lineage + 10) return false;
    const auto end = name.substr(name.size() - k_lineage - 1);
    return end.front() == '-' && end.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

struct Candidate {
    std::string name;
    Time time;
};

/// How far a backup can be relied on.
enum class Worth { damaged, files, snapshot };

Worth worth_of(const Place& place, const std::string& name) {
    try {
        return read_backup(place, name).etcd ? Worth::snapshot : Worth::files;
    } catch (const Error& error) {
        if (error.code() != "backup-damaged") throw;
        return Worth::damaged;
    }
}

/// `current` and the newest whole ones up to `keep` in all are kept, and with them a whole one and one with a whole
/// snapshot, if there are any at all.
std::vector<std::string> obsolete_backups(const Place& place, int directory, const std::string& current,
                                          std::size_t keep) {
    std::vector<Candidate> others;
    for (const auto& name : place.list(fmt::format("{}/backups", k_state_directory)))
        if (name != current && is_of_upgrade(name)) others.push_back({name, changed(directory, name)});
    if (others.size() < keep) return {};
    std::sort(others.begin(), others.end(), [](const Candidate& left, const Candidate& right) {
        return std::pair(right.time, right.name) < std::pair(left.time, left.name);
    });
    auto best = worth_of(place, current);
    std::size_t kept = 1;
    std::vector<std::string> names;
    for (const auto& other : others) {
        const auto worth = worth_of(place, other.name);
        const bool is_kept = worth != Worth::damaged && (kept < keep || worth > best);
        if (is_kept) {
            ++kept;
            best = std::max(best, worth);
        } else {
            names.push_back(other.name);
        }
    }
    // One that is damaged may still be worth something where nothing else is.
    if (best == Worth::damaged) names.clear();
    return names;
}

std::size_t prune_backups(const Place& place, const std::string& current, std::size_t keep) {
    const sys::Fd backups = place.open(sys::parent_of(backup_directory(current)), O_RDONLY | O_DIRECTORY);
    const auto at = [&](const std::string& name) { return fmt::format("/proc/self/fd/{}/{}", backups.get(), name); };
    // What a killed call has left: of a backup that was being made, or removed.
    for (const auto& name : place.list(sys::parent_of(backup_directory(current)))) {
        const std::string_view text(name);
        if (text.starts_with('.') && text.ends_with(k_partial_end) &&
            is_of_upgrade(text.substr(1, text.size() - 1 - k_partial_end.size())))
            sys::remove_tree(at(name));
    }
    const auto names = obsolete_backups(place, backups.get(), current, keep);
    for (const auto& name : names) {
        const auto away = at("." + name + std::string(k_partial_end));
        if (::renameat(AT_FDCWD, at(name).c_str(), AT_FDCWD, away.c_str()) != 0) {
            const int saved = errno;
            throw from_errno(saved, "cannot rename the backup " + name);
        }
        sys::remove_tree(away);
    }
    return names.size();
}

}  // namespace

StepResult prune_node(const Node& node, const std::string& backup, std::size_t keep) {
    const Place& place = node.place;
    const auto saved = backup_directory(backup);
    auto slot = node.slot();
    const auto hold = slot.hold("removal of old backups");
    require_no_etcd_restore(place);
    StepResult result;
    result.step = "prune";
    if (!place.exists(saved)) static_cast<void>(read_backup(place, backup));
    std::size_t backups = 0, copies = 0;
    const auto attempt = [&](const char* what, std::size_t& removed, auto&& remove) {
        try {
            removed = remove();
        } catch (const Error& error) {
            result.warnings.push_back(fmt::format("not-pruned: {} could not be removed: {}", what, error.what()));
        }
    };
    attempt("old backups", backups, [&] { return prune_backups(place, backup, keep); });
    attempt("old copies in /etc/kubernetes/tmp", copies, [&] { return prune_copies(place, backup); });
    result.facts = {{"backupsRemoved", std::to_string(backups)}, {"copiesRemoved", std::to_string(copies)}};
    result.already = backups + copies == 0;
    std::vector<std::string> removed;
    if (backups != 0) removed.push_back(base::counted(backups, "old backup"));
    if (copies != 0)
        removed.push_back(fmt::format("{} old {} of kubeadm in {}", copies, copies == 1 ? "copy" : "copies",
                                      k_kubeadm_copies));
    result.message = removed.empty() ? "nothing was removed" : "removed " + base::join(removed, ", ");
    return result;
}

}  // namespace kmm::kubeadm
