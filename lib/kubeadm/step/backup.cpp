// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/step/backup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kubeadm/node/etcd.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/node/processes.hpp"
#include "sys/directory.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::kubeadm {
namespace {

constexpr const char* k_list = "backup.json";
constexpr const char* k_snapshot = "etcd.db";
/// Beside the directories of manifests and certificates. Files of /etc/kubernetes/tmp are kubeadm's own.
constexpr const char* k_drop_ins = "/etc/systemd/system/kubelet.service.d";
constexpr const char* k_files[] = {"/etc/kubernetes/admin.conf",
                                   "/etc/kubernetes/super-admin.conf",
                                   "/etc/kubernetes/controller-manager.conf",
                                   "/etc/kubernetes/scheduler.conf",
                                   "/etc/kubernetes/kubelet.conf",
                                   "/var/lib/kubelet/config.yaml",
                                   "/var/lib/kubelet/instance-config.yaml",
                                   "/var/lib/kubelet/kubeadm-flags.env",
                                   "/etc/default/kubelet",
                                   "/etc/sysconfig/kubelet"};

/// A link that leads nowhere is no file that anybody reads.
bool is_regular(const Place& place, const std::string& path) {
    if (!place.exists(path)) return false;
    struct stat info {};
    const sys::Fd fd = place.open(path, O_PATH);
    return ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode);
}

std::vector<std::string> sources(const Place& place) {
    std::vector<std::string> paths;
    const auto pki = pki_directory(place);
    for (const auto& directory : {std::string(k_manifest_directory), pki, pki + "/etcd", std::string(k_drop_ins)}) {
        for (const std::string& name : place.list(directory)) {
            const std::string path = directory + "/" + name;
            if (is_regular(place, path)) paths.push_back(path);
        }
    }
    for (const char* file : k_files) {
        if (place.exists(file)) paths.emplace_back(file);
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::string list_text(const Backup& backup) {
    value::Node files = value::Node::sequence();
    for (const BackupFile& file : backup.files) {
        files.push_back(value::Node::mapping({{"path", file.path},
                                              {"size", file.size},
                                              {"sha256", file.sha256},
                                              {"mode", fmt::format("{:04o}", file.owner.mode)},
                                              {"uid", static_cast<std::uint64_t>(file.owner.uid)},
                                              {"gid", static_cast<std::uint64_t>(file.owner.gid)}}));
    }
    auto list = value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                      {"kind", "KubernetesNodeBackup"},
                                      {"name", backup.name},
                                      {"created", backup.created},
                                      {"node", backup.node},
                                      {"files", std::move(files)}});
    if (const auto& etcd = backup.etcd) {
        auto snapshot = value::Node::mapping(
            {{"file", etcd->file}, {"size", etcd->size}, {"sha256", etcd->sha256}, {"etcd", etcd->etcd}});
        if (etcd->revision != 0) snapshot.set("revision", etcd->revision);
        list.set("etcdSnapshot", std::move(snapshot));
    }
    return value::to_json_pretty(list);
}

Error damaged(const std::string& name, const std::string& what) {
    return Error(Exit::integrity, "backup-damaged", fmt::format("the backup {} is damaged: {}", name, what))
        .hint("do not rely on it; make another one under another name");
}

std::optional<BackupFile> file_of(const value::Node& node) {
    BackupFile file;
    file.path = node.get_string({"path"});
    file.sha256 = node.get_string({"sha256"});
    const auto number = [&](const char* key) {
        const value::Node* found = node.find(key);
        return found == nullptr ? std::nullopt : found->as_uint();
    };
    const auto size = number("size"), uid = number("uid"), gid = number("gid");
    const std::string mode = node.get_string({"mode"});
    if (!file.path.starts_with('/') || file.path.find("/../") != std::string::npos || file.sha256.size() != 64 ||
        !size || !uid || !gid || mode.empty() || mode.find_first_not_of("01234567") != std::string::npos) {
        return std::nullopt;
    }
    file.size = *size;
    file.owner = {static_cast<unsigned>(std::stoul(mode.substr(0, 6), nullptr, 8)), static_cast<unsigned>(*uid),
                  static_cast<unsigned>(*gid)};
    return file;
}

std::string summary(const Backup& backup) {
    return fmt::format("backup {}: {} files verified, {}", backup.name, backup.files.size(),
                       backup.etcd
                           ? fmt::format("snapshot of etcd {} of {} bytes", backup.etcd->etcd, backup.etcd->size)
                           : "without etcd's data");
}

void describe(const Backup& backup, StepResult& result) {
    result.step = "backup";
    result.facts = {{"name", backup.name},
                    {"directory", backup_directory(backup.name)},
                    {"created", backup.created},
                    {"files", std::to_string(backup.files.size())},
                    {"etcdSnapshot", backup.etcd ? backup_directory(backup.name) + "/" + backup.etcd->file : "none"}};
    result.message = summary(backup);
}

}  // namespace

std::string backup_directory(const std::string& name) {
    const bool fine = !name.empty() && name.size() <= 128 && name.front() != '.' &&
                      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-") ==
                          std::string::npos;
    if (!fine)
        throw Error(
            Exit::usage, "bad-value",
            fmt::format("--name: expected at most 128 letters, digits and ._+-, not first a dot, found '{}'",
                        base::escape(name)))
            .hint("for example --name before-v1.35.4");
    return fmt::format("{}/backups/{}", k_state_directory, name);
}

std::string copy_of(const std::string& directory, const std::string& path) {
    return directory + "/files" + path;
}

Backup read_backup(const Place& place, const std::string& name) {
    const std::string directory = backup_directory(name);
    const auto text = place.read_if_there(directory + "/" + k_list);
    if (!text) {
        if (place.exists(directory)) throw damaged(name, std::string("it has no ") + k_list);
        std::vector<std::string> names = place.list(std::string(k_state_directory) + "/backups");
        std::erase_if(names, [](const std::string& one) { return one.starts_with('.'); });
        throw Error(Exit::not_found, "backup-not-found", fmt::format("there is no backup {} on this node", name))
            .detail("backups", names.empty() ? "none" : base::join(names, ", "))
            .hint(fmt::format("on a node that was not upgraded yet, kmm-worker kubernetes backup --name {} makes it; "
                              "what ran before an upgrade is in no backup made after it",
                              name));
    }
    Diagnostics faults;
    const auto documents = value::read_json(*text, k_list, faults);
    Backup backup;
    if (!faults.empty() || documents.size() != 1 ||
        documents.front().root.get_string({"kind"}) != "KubernetesNodeBackup")
        throw damaged(name, std::string(k_list) + " is not a list of files");
    const value::Node& root = documents.front().root;
    backup.name = name;
    backup.created = root.get_string({"created"});
    backup.node = root.get_string({"node"});
    const value::Node* files = root.find("files");
    if (files == nullptr || files->items().empty()) throw damaged(name, "it holds no files");
    for (const value::Node& item : files->items()) {
        auto file = file_of(item);
        if (!file) throw damaged(name, std::string(k_list) + " is not a list of files");
        const auto copy = place.read_if_there(copy_of(directory, file->path));
        if (!copy) throw damaged(name, file->path + " is missing");
        if (copy->size() != file->size || digest::sha256_hex(*copy) != file->sha256)
            throw damaged(name, file->path + " is not what was saved");
        backup.files.push_back(std::move(*file));
    }
    if (const value::Node* etcd = root.find("etcdSnapshot")) {
        backup.etcd = EtcdSnapshot{etcd->get_string({"file"}), etcd->get_string({"sha256"}),
                                   etcd_number(etcd->find("size")).value_or(0), etcd->get_string({"etcd"}),
                                   etcd_number(etcd->find("revision")).value_or(0)};
        if (backup.etcd->file != k_snapshot)
            throw damaged(name, std::string(k_list) + " does not tell where the snapshot of etcd is");
        if (!place.exists(directory + "/" + k_snapshot)) throw damaged(name, "the snapshot of etcd is missing");
        if (file_sha256(place, directory + "/" + k_snapshot) != backup.etcd->sha256)
            throw damaged(name, "the snapshot of etcd is not what was saved");
    }
    return backup;
}

FileOwner owner_of(const Place& place, const std::string& path) {
    struct stat info {};
    const sys::Fd fd = place.open(path, O_PATH);
    if (::fstat(fd.get(), &info) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot look at " + path);
    }
    return {info.st_mode & 07777U, info.st_uid, info.st_gid};
}

void place_file(const Node& node, const std::string& path, const std::string& text, const FileOwner& owner) {
    const std::string directory = sys::parent_of(path);
    const sys::Fd parent = node.place.open(directory, O_RDONLY | O_DIRECTORY);
    // By the descriptor: links on the way lead where they lead on the node.
    const std::string here = fmt::format("/proc/self/fd/{}/{}", parent.get(), sys::name_of(path));
    const std::string fresh = sys::temp_name(here);
    try {
        const sys::Fd fd(node.ops.create(fresh, 0600));
        node.ops.write(fd.get(), text);
        if (::fchown(fd.get(), owner.uid, owner.gid) != 0 && ::geteuid() == 0) {
            const int saved = errno;
            throw from_errno(saved, "cannot change the owner of " + path);
        }
        if (::fchmod(fd.get(), owner.mode) != 0) {
            const int saved = errno;
            throw from_errno(saved, "cannot change the mode of " + path);
        }
        node.ops.sync(fd.get());
        node.ops.rename(fresh, here);
        node.ops.sync_dir(fmt::format("/proc/self/fd/{}", parent.get()));
    } catch (Error& error) {
        ::unlink(fresh.c_str());
        error.add_context("cannot write " + path);
        throw;
    }
}

StepResult verify_backup(const Node& node, const std::string& name) {
    StepResult result;
    describe(read_backup(node.place, name), result);
    result.already = true;
    return result;
}

StepResult make_backup(const Node& node, const std::string& name, net::HttpClient* etcd) {
    const std::string directory = backup_directory(name);
    auto slot = node.slot();
    const auto hold = slot.hold("backup");
    const Place& place = node.place;
    const ManifestSet manifests = read_manifests(place);
    const Manifest* etcd_pod = manifests.find("etcd");
    const bool wants_etcd = etcd != nullptr && manifests.control_plane && etcd_pod->expected;
    if (place.exists(directory)) {
        const auto there = read_backup(place, name);
        if (wants_etcd && !there.etcd)
            throw Error(Exit::checks_failed, "backup-without-etcd",
                        fmt::format("the backup {} has no snapshot of etcd", name))
                .hint("make one under another name");
        StepResult result;
        describe(there, result);
        result.already = true;
        return result;
    }
    require_no_kubeadm(place);
    Backup backup{name, base::format_rfc3339(node.clock.now_unix()), node_name(place), {}, {}};
    if (manifests.control_plane) require_whole(manifests);
    const std::string partial = fmt::format("{}/backups/.{}.partial", k_state_directory, name);
    sys::remove_tree(place.here(partial));
    for (const std::string& path : sources(place)) {
        const std::string text = place.read(path);
        BackupFile file{path, digest::sha256_hex(text), text.size(), owner_of(place, path)};
        const std::string copy = copy_of(partial, path);
        sys::make_directories(place.here(sys::parent_of(copy)), 0700);
        place_file(node, copy, text, {0600, ::geteuid(), ::getegid()});
        if (place.read(path) != text) {
            throw Error(Exit::io, "file-changed", fmt::format("{} changed while it was copied", path))
                .hint("try again once nothing else changes the node")
                .retryable();
        }
        backup.files.push_back(std::move(file));
    }
    if (backup.files.empty())
        throw Error(Exit::not_found, "not-kubernetes-node",
                    "expected files of kubeadm and the kubelet on this node, found none");
    if (wants_etcd) {
        const auto manifest = place.read(etcd_pod->path);
        const auto revision = etcd_revision(place, *etcd, manifest).value_or(0);
        backup.etcd = save_etcd_snapshot(node, *etcd, manifest, partial + "/" + k_snapshot);
        backup.etcd->etcd = etcd_pod->tag;
        backup.etcd->revision = revision;
    }
    place_file(node, partial + "/" + k_list, list_text(backup), {0600, ::geteuid(), ::getegid()});
    node.ops.rename(place.here(partial), place.here(directory));
    node.ops.sync_dir(place.here(sys::parent_of(directory)));
    StepResult result;
    describe(read_backup(place, name), result);
    if (etcd != nullptr && manifests.control_plane && !etcd_pod->expected)
        result.warnings.emplace_back("etcd-external: etcd runs elsewhere: take its snapshot there");
    return result;
}

}  // namespace kmm::kubeadm
