// SPDX-License-Identifier: Apache-2.0
// kubeadm never removes what it keeps in /etc/kubernetes/tmp, copies of etcd's data among it.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kubeadm/backup.hpp"
#include "kubeadm/manifests.hpp"
#include "kubeadm/steps.hpp"
#include "sys/directory.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::string_view k_prefix = "kubeadm-";

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

}  // namespace

void prune_copies(const Node& node, const std::string& backup, StepResult& result) {
    const Place& place = node.place;
    const auto saved = backup_directory(backup);
    if (!place.exists(saved) || !place.exists(k_kubeadm_copies)) return;
    std::size_t removed = 0;
    try {
        const sys::Fd backups = place.open(sys::parent_of(saved), O_RDONLY | O_DIRECTORY);
        const sys::Fd copies = place.open(k_kubeadm_copies, O_RDONLY | O_DIRECTORY);
        for (const auto& name : obsolete(place, copies.get(), changed(backups.get(), sys::name_of(saved)))) {
            sys::remove_tree(fmt::format("/proc/self/fd/{}/{}", copies.get(), name));
            ++removed;
        }
    } catch (const Error& error) {
        result.warnings.push_back(
            fmt::format("not-pruned: old copies in {} could not be removed: {}", k_kubeadm_copies, error.what()));
    }
    if (removed != 0)
        result.message += fmt::format("; removed {} old cop{} of kubeadm in {}", removed, removed == 1 ? "y" : "ies",
                                      k_kubeadm_copies);
}

}  // namespace kmm::kubeadm
