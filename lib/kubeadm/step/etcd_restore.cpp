// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/step/etcd_restore.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kubeadm/node/etcd.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/processes.hpp"
#include "kubeadm/step/etcd_restore_parts.hpp"
#include "kubeadm/step/etcd_snapshot.hpp"
#include "sys/directory.hpp"
#include "value/writer.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::array<std::string_view, 7> k_phases{"none",    "prepared", "stopping", "stopped",
                                                   "swapped", "started",  "done"};
/// Revisions that no client has seen before the restore: what a client remembers is then older, not newer.
constexpr const char* k_bump = "1000000000";
constexpr std::size_t k_piece = 4U << 20U;
constexpr std::uint64_t k_restore_spare_bytes = 256U << 20U;

std::string restores() { return std::string(k_state_directory) + "/etcd-restore"; }

bool is_at_work(RestorePhase phase) { return phase >= RestorePhase::stopping && phase < RestorePhase::done; }

/// "3.6.5" of "3.6.5-0".
std::optional<kubernetes::Version> version_of_tag(const std::string& tag) {
    return kubernetes::Version::parse("v" + tag.substr(0, tag.find('-')));
}

value::Node host_directory(const char* name, const std::string& path) {
    return value::Node::mapping(
        {{"name", name}, {"hostPath", value::Node::mapping({{"path", path}, {"type", "Directory"}})}});
}

value::Node mount(const char* name, const std::string& path, bool read_only) {
    return value::Node::mapping({{"name", name}, {"mountPath", path}, {"readOnly", read_only}});
}

}  // namespace

std::string_view to_string(RestorePhase phase) noexcept { return k_phases.at(static_cast<std::size_t>(phase)); }

std::string restore_directory(const std::string& id) {
    if (!id.empty() && id.size() <= 64 && id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == id.npos)
        return restores() + "/" + id;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--id: expected at most 64 small letters, digits and -, found '{}'", base::escape(id)))
        .hint("for example --id restore-1");
}

RestorePhase restore_phase(const Place& place, const std::string& id) {
    const auto text = place.read_if_there(restore_directory(id) + "/phase");
    if (!text) return RestorePhase::none;
    const auto found = std::find(k_phases.begin(), k_phases.end(), base::trim(*text));
    if (found == k_phases.end())
        throw Error(Exit::io, "etcd-restore-damaged",
                    fmt::format("{}/phase is not one of {}", restore_directory(id),
                                base::join(std::vector<std::string>(k_phases.begin(), k_phases.end()), ", ")));
    return static_cast<RestorePhase>(found - k_phases.begin());
}

void set_restore_phase(const Node& node, const std::string& id, RestorePhase phase) {
    place_file(node, restore_directory(id) + "/phase", std::string(to_string(phase)) + "\n",
               {0600, ::geteuid(), ::getegid()});
}

void require_no_etcd_restore(const Place& place) {
    for (const auto& id : place.list(restores())) {
        const auto phase = restore_phase(place, id);
        if (!is_at_work(phase)) continue;
        throw Error(Exit::locked, "etcd-restore-under-way",
                    fmt::format("the data of etcd is being restored on this node ({}): {}", id, to_string(phase)))
            .hint("kmm-upgrade resume goes on with it");
    }
}

EtcdMemberPlace member_place(const std::string& manifest) {
    const auto judged = judge_manifest("etcd", "etcd.yaml", manifest);
    EtcdMemberPlace member{manifest_option(manifest, "--name"),
                           manifest_option(manifest, "--initial-advertise-peer-urls"),
                           manifest_option(manifest, "--data-dir"), judged.image, judged.tag};
    if (!member.name.empty() && !member.peer_url.empty() && member.data.starts_with('/') && judged.whole) return member;
    throw Error(Exit::checks_failed, "etcd-not-found",
                "the manifest of etcd lacks one of --name, --initial-advertise-peer-urls, --data-dir and an image "
                "with a version")
        .hint("restore the snapshot by hand: etcdutl snapshot restore");
}

std::vector<std::string> restore_words(const EtcdMemberPlace& member, const EtcdRestore& restore,
                                       const std::string& snapshot, const std::string& data) {
    const auto version = version_of_tag(member.tag);
    const auto is_since = [&](const char* least) {
        return version && !(*version < *kubernetes::Version::parse(least));
    };
    std::vector<std::string> words{is_since("v3.5.0") ? "etcdutl" : "etcdctl",
                                   "snapshot",
                                   "restore",
                                   snapshot,
                                   "--data-dir=" + data,
                                   "--name=" + member.name,
                                   "--initial-cluster=" + restore.initial_cluster,
                                   "--initial-cluster-token=kmm-" + restore.id,
                                   "--initial-advertise-peer-urls=" + member.peer_url};
    if (is_since("v3.5.10")) words.insert(words.end(), {std::string("--bump-revision=") + k_bump, "--mark-compacted"});
    return words;
}

std::string restore_pod(const EtcdMemberPlace& member, const std::vector<std::string>& words,
                        const std::string& snapshot, const std::string& container) {
    const auto directory = sys::parent_of(snapshot);
    auto run =
        value::Node::mapping({{"name", container}, {"image", member.image}, {"imagePullPolicy", "IfNotPresent"}});
    run.set("command", value::Node::strings(words));
    run.set("env", value::Node::sequence({value::Node::mapping({{"name", "ETCDCTL_API"}, {"value", "3"}})}));
    run.set("volumeMounts",
            value::Node::sequence({mount("data", member.data, false), mount("snapshot", directory, true)}));
    // The kubelet tells one Pod from another by the text of its manifest: the container's name makes each its own.
    const auto pod = value::Node::mapping(
        {{"apiVersion", "v1"},
         {"kind", "Pod"},
         {"metadata", value::Node::mapping({{"name", k_restore_pod}, {"namespace", "kube-system"}})},
         {"spec",
          value::Node::mapping({{"hostNetwork", true},
                                {"restartPolicy", "Never"},
                                {"priorityClassName", "system-node-critical"},
                                {"containers", value::Node::sequence({run})},
                                {"volumes", value::Node::sequence({host_directory("data", member.data),
                                                                   host_directory("snapshot", directory)})}})}});
    return value::to_json_pretty(pod);
}

RestoreGround ground_of(const Node& node, const EtcdRestore& restore) {
    RestoreGround ground;
    ground.directory = restore_directory(restore.id);
    ground.backup = read_backup(node.place, restore.backup);
    if (const auto self = node_name(node.place); self != ground.backup.node)
        throw Error(Exit::checks_failed, "other-node",
                    fmt::format("the backup {} is of node {}, this is {}", restore.backup,
                                base::escape(ground.backup.node), base::escape(self)));
    const auto saved = backup_directory(restore.backup);
    const auto manifest = copy_of(saved, std::string(k_manifest_directory) + "/etcd.yaml");
    if (!ground.backup.etcd || !node.place.exists(manifest))
        throw Error(Exit::checks_failed, "backup-without-etcd",
                    fmt::format("the backup {} has no snapshot of etcd, or no manifest of it", restore.backup))
            .hint("a snapshot of another member can be restored only where the manifest is known");
    ground.member = member_place(node.place.read(manifest));
    ground.fresh = fmt::format("{}/kmm-restore-{}", ground.member.data, restore.id);
    ground.aside = fmt::format("{}/before-restore-{}", ground.member.data, restore.id);
    const bool is_own = restore.sha256.empty() || ground.backup.etcd->sha256 == restore.sha256;
    ground.snapshot = is_own ? saved + "/" + ground.backup.etcd->file : ground.directory + "/snapshot.db";
    ground.phase = restore_phase(node.place, restore.id);
    return ground;
}

StepResult look_at_restore(const Node& node, net::HttpClient& client, const EtcdRestore& restore) {
    const auto ground = ground_of(node, restore);
    if (node.place.find_program("crictl").empty())
        throw Error(Exit::checks_failed, "crictl-missing", "crictl is not on this node: what runs could not be proven")
            .hint("install cri-tools");
    const auto& etcd = *ground.backup.etcd;
    StepResult result;
    result.step = "restore-etcd";
    result.already = true;
    std::string running = "none", revision = "unknown";
    std::vector<std::string> members;
    if (const auto now = node.place.read_if_there(std::string(k_manifest_directory) + "/etcd.yaml")) {
        running = judge_manifest("etcd", "etcd.yaml", *now).tag;
        try {
            const auto seen = read_etcd(node.place, client, *now);
            revision = std::to_string(seen.revision);
            for (const auto& each : seen.members) members.push_back(each.name.empty() ? each.id : each.name);
        } catch (const Error& error) {
            result.warnings.push_back(fmt::format("{}: {}", error.code(), error.message()));
        }
    }
    if (ground.phase == RestorePhase::none) {
        const auto free = disk_space(node.place, ground.member.data).free;
        if (free < 2 * etcd.size + k_restore_spare_bytes)
            throw Error(
                Exit::io, "no-space",
                fmt::format("{} has {} free, the restored data needs {}", ground.member.data, base::format_bytes(free),
                            base::format_bytes(2 * etcd.size + k_restore_spare_bytes)));
    }
    result.facts = {{"phase", std::string(to_string(ground.phase))},
                    {"created", ground.backup.created},
                    {"sha256", etcd.sha256},
                    {"size", std::to_string(etcd.size)},
                    {"etcd", etcd.etcd},
                    {"revision", etcd.revision == 0 ? "unknown" : std::to_string(etcd.revision)},
                    {"runningEtcd", running},
                    {"runningRevision", revision},
                    {"runningMembers", base::join(members, ",")},
                    {"member", ground.member.name},
                    {"peerURL", ground.member.peer_url},
                    {"data", ground.member.data}};
    result.message = fmt::format("snapshot of etcd {} of {}, {} bytes; {} runs", etcd.etcd, ground.backup.created,
                                 etcd.size, running);
    return result;
}

StepResult give_snapshot(const Node& node, const std::string& backup, std::uint64_t offset) {
    const auto directory = backup_directory(backup);
    // The whole is proven once, by who asks first, and again where it has arrived.
    const auto list = offset == 0 ? read_backup(node.place, backup) : Backup{};
    if (offset == 0 && !list.etcd)
        throw Error(Exit::checks_failed, "backup-without-etcd",
                    fmt::format("the backup {} has no snapshot of etcd", backup));
    const sys::Fd fd = node.place.open(directory + "/etcd.db", O_RDONLY);
    std::string piece(k_piece, '\0');
    std::size_t length = 0;
    while (length < piece.size()) {
        const auto got = ::pread(fd.get(), piece.data() + length, piece.size() - length,
                                 static_cast<off_t>(offset + length));
        if (got < 0) {
            const int saved = errno;
            if (saved == EINTR) continue;
            throw from_errno(saved, "cannot read the snapshot of backup " + backup);
        }
        if (got == 0) break;
        length += static_cast<std::size_t>(got);
    }
    piece.resize(length);
    StepResult result;
    result.step = "restore-etcd";
    result.already = true;
    result.facts = {{"offset", std::to_string(offset)}, {"data", base::to_base64(piece)}};
    result.message = fmt::format("{} bytes of the snapshot from {}", length, offset);
    return result;
}

StepResult take_snapshot(const Node& node, const EtcdRestore& restore, std::uint64_t offset, std::uint64_t size,
                         std::string_view base64) {
    const auto directory = restore_directory(restore.id);
    const auto bytes = base::from_base64(std::string(base::trim(base64)));
    if (!bytes)
        throw Error(Exit::usage, "bad-value", "expected base64 on standard input, found something else")
            .hint("pipe the output of base64 into it");
    auto slot = node.slot();
    const auto hold = slot.hold("snapshot for a restore of etcd");
    const std::string whole = directory + "/snapshot.db", partial = directory + "/snapshot.partial";
    StepResult result;
    result.step = "restore-etcd";
    if (node.place.exists(whole)) {
        result.already = true;
        result.facts = {{"next", std::to_string(size)}};
        result.message = "the snapshot is there";
        return result;
    }
    sys::make_directories(node.place.here(directory), 0700);
    if (offset == 0) {
        const auto space = disk_space(node.place, directory);
        if (space.free < size + k_restore_spare_bytes)
            throw Error(
                Exit::io, "no-space",
                fmt::format("the snapshot of etcd needs {} bytes, {} has {} free", size, directory, space.free));
        if (!node.place.exists(partial)) sys::Fd(node.ops.create(node.place.here(partial), 0600));
    }
    const sys::Fd fd = node.place.open(partial, O_RDWR);
    // An earlier call may have written this piece, or a part of it.
    if (::ftruncate(fd.get(), static_cast<off_t>(offset)) != 0 ||
        ::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot write " + partial);
    }
    node.ops.write(fd.get(), *bytes);
    node.ops.sync(fd.get());
    const auto next = offset + bytes->size();
    result.facts = {{"next", std::to_string(next)}};
    result.message = fmt::format("{} of {} bytes of the snapshot", next, size);
    if (next < size) return result;
    if (next != size || file_sha256(node.place, partial) != restore.sha256) {
        sys::remove_tree(node.place.here(partial));
        throw Error(Exit::integrity, "snapshot-damaged", "the snapshot is not what the other member has sent")
            .hint("run the same command again: it is sent again");
    }
    node.ops.rename(node.place.here(partial), node.place.here(whole));
    node.ops.sync_dir(node.place.here(directory));
    return result;
}

}  // namespace kmm::kubeadm
