// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "kubeadm/node/etcd.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/etcd_restore.hpp"
#include "kubeadm/step/etcd_restore_parts.hpp"
#include "kubeadm/step/etcd_snapshot.hpp"
#include "sys/directory.hpp"

namespace kmm::kubeadm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_restore_pace{500}, k_health_patience{300'000};
constexpr const char* k_container_prefix = "kmm-restore-";

struct Container {
    std::string id, name, state;
    bool runs = false;
};

/// Those of kube-system, of every state.
std::vector<Container> containers(const Place& place) {
    const auto document = crictl_document(place, {"ps", "-a", "-o", "json"});
    std::vector<Container> found;
    const auto* list = document.find("containers");
    if (list == nullptr) return found;
    for (const auto& item : list->items()) {
        if (item.get_string({"labels", "io.kubernetes.pod.namespace"}) != "kube-system") continue;
        Container one{item.get_string({"id"}), item.get_string({"metadata", "name"}), item.get_string({"state"})};
        one.runs = one.state != "CONTAINER_EXITED";
        found.push_back(std::move(one));
    }
    return found;
}

/// Names of the control plane's containers that run.
std::vector<std::string> running_parts(const Place& place) {
    std::vector<std::string> names;
    for (const auto& one : containers(place)) {
        const bool is_part = std::find(std::begin(k_static_pods), std::end(k_static_pods), one.name) !=
                             std::end(k_static_pods);
        if (one.runs && is_part && std::find(names.begin(), names.end(), one.name) == names.end())
            names.push_back(one.name);
    }
    return names;
}

/// Asks until `problem` has none. Errors: timeout "timeout" at the deadline of the call.
void wait_until(const Node& node, const std::function<std::string()>& problem) {
    for (;;) {
        const auto found = problem();
        if (found.empty()) return;
        if (node.deadline && node.clock.monotonic() + k_restore_pace >= *node.deadline)
            throw Error(Exit::timeout, "timeout", found)
                .hint("the same command goes on waiting; see journalctl -u kubelet");
        if (!node.clock.sleep_for(k_restore_pace))
            throw Error(Exit::interrupted, "interrupted", found).hint("the same command goes on waiting");
    }
}

Error out_of_order(const EtcdRestore& restore, RestorePhase phase, std::string_view needed) {
    return Error(Exit::checks_failed, "etcd-restore-order",
                 fmt::format("the restore {} is {} on this node, expected {}", restore.id, to_string(phase), needed))
        .hint("each step is done on all members before the next one begins: prepare, stop, swap, etcd, servers");
}

StepResult already_at(RestorePhase phase) {
    StepResult result;
    result.step = "restore-etcd";
    result.already = true;
    result.facts = {{"phase", std::string(to_string(phase))}};
    result.message = fmt::format("the restore is {}", to_string(phase));
    return result;
}

StepResult come_to(const Node& node, const EtcdRestore& restore, RestorePhase phase, std::string message) {
    set_restore_phase(node, restore.id, phase);
    auto result = already_at(phase);
    result.already = false;
    result.message = std::move(message);
    return result;
}

void remove_file(const Node& node, const std::string& path) {
    if (::unlink(node.place.here(path).c_str()) != 0 && errno != ENOENT) {
        const int saved = errno;
        throw from_errno(saved, "cannot remove " + path);
    }
    node.ops.sync_dir(node.place.here(sys::parent_of(path)));
}

void pull_image(const Node& node, const std::string& image, StepResult& result) {
    const auto present = present_images(node.place);
    if (std::binary_search(present.begin(), present.end(), image)) return;
    auto slot = node.image_slot();
    const nodejob::JobSpec job{
        "image " + image,
        {{node.place.command({"crictl", "--runtime-endpoint", "unix://" + runtime_socket(node.place), "pull", image}),
          {},
          false}}};
    run_job(node, slot, job, result, [&](const nodejob::JobView& failed, const std::string& output) {
        Error error(Exit::unavailable, "images-failed",
                    fmt::format("the image {} cannot be pulled: {}", image, how_it_ended(failed)));
        tell_output(error, output);
        return std::move(error).hint("the snapshot is restored by the etcd that has written it").retryable();
    });
    slot.mark_received(result.job->id);
    result.job.reset();
}

/// The restored files belong to whom the old ones do.
void give_to(const std::string& here, const struct stat& owner) {
    if (::lchown(here.c_str(), owner.st_uid, owner.st_gid) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot change the owner of " + here);
    }
    struct stat info {};
    if (::lstat(here.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return;
    for (const auto& entry : sys::list_directory(here)) give_to(here + "/" + entry.name, owner);
}

std::string log_end(const Place& place, const std::string& container) {
    try {
        const auto told = ask(place, {"crictl", "--runtime-endpoint", "unix://" + runtime_socket(place), "logs",
                                      "--tail", "5", container});
        return base::escape(base::last_line(told.err.empty() ? told.out : told.err));
    } catch (const Error&) {
        return {};
    }
}

/// Runs the Pod of this restore to its end, or waits for one that an earlier call has begun.
void run_restore(const Node& node, const EtcdRestore& restore, const RestoreGround& ground) {
    const auto& place = node.place;
    const std::string attempt_file = ground.directory + "/attempt";
    const std::string pod = fmt::format("{}/{}.yaml", k_manifest_directory, k_restore_pod);
    auto attempt = place.read_if_there(attempt_file);
    if (!attempt || !place.exists(pod)) {
        wait_until(node, [&]() -> std::string {
            for (const auto& one : containers(place))
                if (one.runs && one.name.starts_with(k_container_prefix))
                    return fmt::format("an earlier {} still runs", one.name);
            return "";
        });
        sys::remove_tree(place.here(ground.fresh));
        std::array<std::uint8_t, 4> bytes{};
        node.random.fill(bytes);
        attempt = k_container_prefix + base::to_hex(bytes);
        place_file(node, attempt_file, *attempt, {0600, ::geteuid(), ::getegid()});
        const auto words = restore_words(ground.member, restore, ground.snapshot, ground.fresh);
        place_file(node, pod, restore_pod(ground.member, words, ground.snapshot, *attempt),
                   {0600, ::geteuid(), ::getegid()});
    }
    std::string ended;
    wait_until(node, [&]() -> std::string {
        for (const auto& one : containers(place)) {
            if (one.name != *attempt) continue;
            if (one.runs) return "etcd still restores the snapshot";
            ended = one.id;
            return "";
        }
        return "the kubelet has not started the Pod that restores the snapshot yet";
    });
    const auto document = crictl_document(place, {"inspect", "-o", "json", ended});
    const auto* code = document.find_path({"status", "exitCode"});
    const auto exit = code == nullptr ? std::optional<std::int64_t>() : code->as_int();
    const auto log = exit == 0 ? std::string() : log_end(place, ended);
    remove_file(node, pod);
    if (exit == 0 && place.exists(ground.fresh + "/member/snap/db") &&
        !place.list(ground.fresh + "/member/wal").empty())
        return;
    sys::remove_tree(place.here(ground.fresh));
    throw Error(Exit::io, "etcd-restore-failed",
                fmt::format("etcd {} did not restore the snapshot: exit {}{}", ground.member.tag,
                            exit ? std::to_string(*exit) : "unknown", log.empty() ? "" : ": " + log))
        .hint("nothing was stopped and nothing changed; the same command tries again");
}

}  // namespace

StepResult prepare_restore(const Node& node, const EtcdRestore& restore) {
    StepResult result;
    result.step = "restore-etcd";
    auto slot = node.slot();
    const auto hold = slot.hold("restore of etcd: prepare");
    require_no_kubeadm(node.place);
    const auto ground = ground_of(node, restore);
    if (ground.phase != RestorePhase::none) return already_at(ground.phase);
    if (!node.place.exists(ground.snapshot))
        throw Error(Exit::checks_failed, "snapshot-missing",
                    fmt::format("the snapshot {} is not on this node", restore.sha256.substr(0, 12)))
            .hint("kmm-worker kubernetes restore-etcd take brings it from another member");
    if (file_sha256(node.place, ground.snapshot) != restore.sha256)
        throw Error(Exit::integrity, "snapshot-damaged",
                    fmt::format("{} is not the snapshot that all members restore", ground.snapshot))
            .hint("nothing was stopped and nothing changed");
    sys::make_directories(node.place.here(ground.directory), 0700);
    pull_image(node, ground.member.image, result);
    run_restore(node, restore, ground);
    struct stat owner {};
    const sys::Fd data = node.place.open(ground.member.data, O_RDONLY | O_DIRECTORY);
    if (::fstat(data.get(), &owner) == 0 && ::geteuid() == 0) give_to(node.place.here(ground.fresh), owner);
    return come_to(node, restore, RestorePhase::prepared,
                   fmt::format("the snapshot is restored beside the data that is in use, in {}", ground.fresh));
}

StepResult stop_for_restore(const Node& node, const EtcdRestore& restore) {
    auto slot = node.slot();
    const auto hold = slot.hold("restore of etcd: stop");
    require_no_kubeadm(node.place);
    const auto ground = ground_of(node, restore);
    if (ground.phase > RestorePhase::stopping) return already_at(ground.phase);
    if (ground.phase == RestorePhase::none) throw out_of_order(restore, ground.phase, "prepared");
    if (ground.phase == RestorePhase::prepared) set_restore_phase(node, restore.id, RestorePhase::stopping);
    const auto kept = ground.directory + "/manifests";
    sys::make_directories(node.place.here(kept), 0700);
    // Who asks etcd goes first.
    for (const char* component : {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}) {
        const auto path = fmt::format("{}/{}.yaml", k_manifest_directory, component);
        const auto text = node.place.read_if_there(path);
        if (!text) continue;
        place_file(node, fmt::format("{}/{}.yaml", kept, component), *text, owner_of(node.place, path));
        remove_file(node, path);
    }
    wait_until(node, [&] {
        const auto names = running_parts(node.place);
        return names.empty() ? std::string() : fmt::format("still running: {}", base::join(names, ", "));
    });
    return come_to(node, restore, RestorePhase::stopped, "nothing of the control plane runs");
}

StepResult swap_restored(const Node& node, const EtcdRestore& restore) {
    auto slot = node.slot();
    const auto hold = slot.hold("restore of etcd: swap");
    const auto ground = ground_of(node, restore);
    if (ground.phase > RestorePhase::stopped) return already_at(ground.phase);
    if (ground.phase != RestorePhase::stopped) throw out_of_order(restore, ground.phase, "stopped");
    if (const auto names = running_parts(node.place); !names.empty())
        throw Error(Exit::checks_failed, "etcd-restore-order",
                    fmt::format("still running: {}; somebody has started it again", base::join(names, ", ")))
            .hint(fmt::format("see which manifests are in {}; then the same command again", k_manifest_directory));
    const auto here = [&](const std::string& path) { return node.place.here(path); };
    const std::string live = ground.member.data + "/member", fresh = ground.fresh + "/member",
                      old = ground.aside + "/member";
    if (node.place.exists(fresh)) {
        if (node.place.exists(live)) {
            if (node.place.exists(old))
                throw Error(Exit::checks_failed, "etcd-restore-order",
                            fmt::format("{} and {} both exist: an etcd has written data in between", live, old))
                    .hint("move one of them away, then the same command again");
            sys::make_directories(here(ground.aside), 0700);
            node.ops.rename(here(live), here(old));
            node.ops.sync_dir(here(ground.aside));
        }
        node.ops.rename(here(fresh), here(live));
        node.ops.sync_dir(here(ground.member.data));
    }
    if (!node.place.exists(live + "/snap/db") || !node.place.exists(old))
        throw Error(Exit::io, "restored-data-missing",
                    fmt::format("expected restored data in {} and the old in {}", live, old))
            .hint("nothing runs; look at both before anything is started");
    sys::remove_tree(here(ground.fresh));
    return come_to(node, restore, RestorePhase::swapped,
                   fmt::format("the restored data is in its place, the old in {}", ground.aside));
}

StepResult start_restored_etcd(const Node& node, const EtcdRestore& restore) {
    auto slot = node.slot();
    const auto hold = slot.hold("restore of etcd: start etcd");
    const auto ground = ground_of(node, restore);
    if (ground.phase > RestorePhase::swapped) return already_at(ground.phase);
    if (ground.phase != RestorePhase::swapped) throw out_of_order(restore, ground.phase, "swapped");
    const auto path = std::string(k_manifest_directory) + "/etcd.yaml";
    const auto saved = std::find_if(ground.backup.files.begin(), ground.backup.files.end(),
                                    [&](const BackupFile& file) { return file.path == path; });
    place_file(node, path, node.place.read(copy_of(backup_directory(restore.backup), path)), saved->owner);
    wait_until(node, [&] {
        const auto names = running_parts(node.place);
        return std::find(names.begin(), names.end(), "etcd") != names.end()
                   ? std::string()
                   : std::string("the kubelet has not started etcd yet");
    });
    return come_to(node, restore, RestorePhase::started, fmt::format("etcd {} runs", ground.member.tag));
}

StepResult prove_restored_etcd(const Node& node, net::HttpClient& client, const EtcdRestore& restore) {
    const auto ground = ground_of(node, restore);
    if (ground.phase < RestorePhase::started) throw out_of_order(restore, ground.phase, "started");
    const auto manifest = node.place.read(copy_of(backup_directory(restore.backup),
                                                  std::string(k_manifest_directory) + "/etcd.yaml"));
    const auto wanted = base::split(restore.initial_cluster, ',').size();
    const auto until = node.clock.monotonic() + k_health_patience;
    EtcdFacts seen;
    const auto problem = [&]() -> std::string {
        try {
            seen = read_etcd(node.place, client, manifest);
        } catch (const Error& error) {
            return error.message();
        }
        const bool are_started = std::all_of(seen.members.begin(), seen.members.end(), [](const EtcdMember& member) {
            return !member.name.empty() && !member.is_learner;
        });
        if (seen.leader.empty()) return "etcd has no leader";
        if (seen.members.size() != wanted || !are_started)
            return fmt::format("etcd has {}, expected {}, all started",
                               base::counted(seen.members.size(), "member"), wanted);
        return base::join(seen.errors, ", ");
    };
    for (;;) {
        const auto found = problem();
        if (found.empty()) break;
        const auto now = node.clock.monotonic() + k_restore_pace;
        if (now >= until || (node.deadline && now >= *node.deadline))
            throw Error(Exit::unhealthy, "etcd-not-healthy", found).hint("see the log of the Pod of etcd");
        if (!node.clock.sleep_for(k_restore_pace)) throw Error(Exit::interrupted, "interrupted", found);
    }
    auto result = already_at(ground.phase);
    result.facts.insert(result.facts.end(), {{"cluster", seen.cluster},
                                             {"member", seen.member},
                                             {"leader", seen.leader},
                                             {"version", seen.version},
                                             {"revision", std::to_string(seen.revision)}});
    result.message = fmt::format("etcd {} has a leader, {}, revision {}", seen.version,
                                 base::counted(seen.members.size(), "member"), seen.revision);
    return result;
}

StepResult start_restored_servers(const Node& node, const EtcdRestore& restore) {
    auto slot = node.slot();
    const auto hold = slot.hold("restore of etcd: start the API server");
    const auto ground = ground_of(node, restore);
    if (ground.phase == RestorePhase::done) return already_at(ground.phase);
    if (ground.phase != RestorePhase::started) throw out_of_order(restore, ground.phase, "started");
    const auto files = restore_files(node, restore.backup);
    wait_until(node, [&] {
        const auto names = running_parts(node.place);
        return std::find(names.begin(), names.end(), "kube-apiserver") != names.end()
                   ? std::string()
                   : std::string("the kubelet has not started the API server yet");
    });
    sys::remove_tree(node.place.here(ground.directory + "/snapshot.db"));
    auto result = come_to(node, restore, RestorePhase::done, files.message);
    result.warnings = files.warnings;
    result.facts.emplace_back("oldData", ground.aside);
    return result;
}

}  // namespace kmm::kubeadm
