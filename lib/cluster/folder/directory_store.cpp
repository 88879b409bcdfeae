// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/directory_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <set>
#include <unordered_set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/text.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/folder/guarded_write.hpp"
#include "cluster/folder/object_files.hpp"
#include "cluster/seam/config_list.hpp"
#include "sys/directory.hpp"
#include "sys/random.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::cluster {
namespace {

constexpr std::string_view k_identity_file = ".kmm-cluster-id";

constexpr std::string_view k_layout_hint =
    "a cluster directory holds one object per file, for example nodes/node-a.yaml, modules/NAMESPACE/NAME.yaml, "
    "secrets/NAMESPACE/NAME.yaml";

/// Sums of these tell sets of files apart, in whatever order they are read.
std::uint64_t name_hash(std::uint64_t directory, std::string_view name) {
    auto mixed = directory + std::hash<std::string_view>()(name);
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
}

std::uint64_t path_hash(std::string_view path) {
    const auto slash = path.rfind('/');
    return name_hash(name_hash(0, path.substr(0, slash)), path.substr(slash + 1));
}

/// True if nobody has written to `path` for a minute.
bool is_abandoned(const std::string& path) {
    constexpr std::time_t k_minute = 60;
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0 && std::time(nullptr) - info.st_mtime > k_minute;
}

/// Removes .NAME.PID-N.kmm-tmp files of processes that are gone. A pid that is not here may be one of another pid
/// namespace, whose process is writing just now: such a file is older than any write takes.
void remove_orphans(const std::string& directory) {
    for (const auto& entry : sys::list_directory(directory)) {
        if (entry.type != sys::EntryType::file || entry.name[0] != '.' || !entry.name.ends_with(".kmm-tmp")) continue;
        const auto pieces = base::split(entry.name, '.');
        if (pieces.size() < 4) continue;
        const auto pid = std::strtol(std::string(pieces[pieces.size() - 2]).c_str(), nullptr, 10);
        const bool is_gone = pid <= 0 || (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH);
        const auto path = directory + "/" + entry.name;
        if (is_gone && is_abandoned(path)) ::unlink(path.c_str());
    }
}

bool is_uuid(std::string_view text) noexcept {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const char c = text[i];
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (dash ? c != '-' : !hex) return false;
    }
    return true;
}

}  // namespace

DirectoryStore::DirectoryStore(std::string path, sys::FileOps& ops) : path_(std::move(path)), ops_(ops) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
}

std::uint64_t DirectoryStore::await_news(std::uint64_t seen, std::chrono::milliseconds timeout) {
    if (timeout.count() <= 0) { return seen; }
    std::this_thread::sleep_for(std::min(timeout, std::chrono::milliseconds(1000)));
    return seen + 1;
}

std::string DirectoryStore::describe() const { return "directory " + path_; }

Snapshot DirectoryStore::read() {
    const std::lock_guard lock(mutex_);
    return read_locked();
}

Snapshot DirectoryStore::read_about(const Subject& subject) {
    const std::lock_guard lock(mutex_);
    Snapshot snapshot;
    const auto& objects = snapshot.objects;
    /// False if the object was moved, or may be new.
    const auto read_one = [&](const Key& key, const auto& list) {
        const auto at = files_.find(key);
        if (at == files_.end())
            return key.first == "NodeModulesConfig" && indexed_ && !read_image(config_file(key.second)).exists;
        read_object(at->second, snapshot);
        return std::any_of(list.begin(), list.end(),
                           [&](const auto& object) { return object.meta.full_name() == key.second; });
    };
    const bool is_whole =
        (subject.node.empty() || (read_one({"Node", subject.node}, objects.nodes) &&
                                  read_one({"NodeModulesConfig", subject.node}, objects.node_modules_configs))) &&
        (subject.module.empty() ||
         read_one({"Module", subject.module_namespace + "/" + subject.module}, objects.modules));
    return is_whole && !has_errors(snapshot.diagnostics) ? snapshot : read_locked();
}

Snapshot DirectoryStore::read_locked() {
    struct stat info {};
    const int failed = ::stat(path_.c_str(), &info) != 0 ? errno : 0;
    if (failed == ENOENT || failed == ENOTDIR || (failed == 0 && !S_ISDIR(info.st_mode))) {
        throw Error(
            Exit::not_found, "cluster-not-found",
            fmt::format("expected a cluster directory, found {}: {}", failed == 0 ? "a file" : "nothing", path_))
            .hint(std::string(k_layout_hint));
    }
    if (failed != 0) throw from_errno(failed, "cannot read " + path_);
    Snapshot snapshot;
    auto found = find_object_files(path_, snapshot.diagnostics);
    const auto& files = found.files;
    const std::set<std::string_view> present(files.begin(), files.end());
    listed_ = std::move(found.names);
    listed_sum_ = 0;
    for (const auto& name : listed_) listed_sum_ += path_hash(name);
    cache_.forget([&](const std::string& file) { return !present.contains(file); });
    for (const auto& file : files) read_object(file, snapshot);
    if (files.empty() && snapshot.diagnostics.empty()) {
        auto none = fault_at("no-documents", "no *.yaml, *.yml or *.json file in this directory", Position{path_, 0, 0},
                             "", Exit::data);
        none.severity = Severity::warning;
        snapshot.diagnostics.push_back(std::move(none));
    }
    api::finish(snapshot.objects, snapshot.diagnostics);
    sort_and_merge(snapshot.diagnostics);
    files_.clear();
    for (const auto& node : snapshot.objects.nodes) files_.emplace(Key("Node", node.meta.name), node.meta.origin.file);
    for (const auto& config : snapshot.objects.node_modules_configs)
        files_.emplace(Key("NodeModulesConfig", config.meta.name), config.meta.origin.file);
    for (const auto& module : snapshot.objects.modules)
        files_.emplace(Key("Module", module.meta.full_name()), module.meta.origin.file);
    faults_ = snapshot.diagnostics;
    indexed_ = true;
    return snapshot;
}

void DirectoryStore::read_object(const std::string& file, Snapshot& snapshot) {
    std::string bytes;
    try {
        bytes = sys::read_file(file);
    } catch (const Error& error) {
        const auto number = error.errno_cause();  // its text names the file once more
        const std::string why = number ? from_errno(*number, "cannot read").message() : error.message();
        snapshot.diagnostics.push_back(fault_at("unreadable-file", why, Position{file, 0, 0}, "", error.exit()));
        return;
    }
    cache_.append(file, std::move(bytes), snapshot.objects, snapshot.diagnostics);
}

std::string DirectoryStore::config_file(const std::string& node) const {
    return fmt::format("{}/nodemodulesconfigs/{}.yaml", path_, node);
}

std::optional<std::string> DirectoryStore::locate(const std::string& kind, const std::string& name) {
    if (!indexed_) (void)read_locked();
    const auto at = files_.find(Key(kind, name));
    if (at == files_.end()) return std::nullopt;
    return at->second;
}

bool DirectoryStore::has_new_files() {
    // By their names: to ask what each file is takes longer than much that is done with a node. That is done where
    // there are links.
    bool has_links = false;
    bool is_new = false;
    std::uint64_t sum = 0;
    const auto look = [&](bool is_exact) {
        const std::function<void(const std::string&)> look_below = [&](const std::string& directory) {
            const auto place = name_hash(0, directory);
            sys::each_entry(directory, [&](const sys::DirectoryEntry& entry) {
                if (has_links || entry.name[0] == '.') return;
                if (entry.type == sys::EntryType::directory) return look_below(directory + "/" + entry.name);
                if (entry.type != sys::EntryType::file) has_links = true;
                else if (is_object_file(entry.name)) {
                    sum += name_hash(place, entry.name);
                    is_new = is_new || (is_exact && !listed_.contains(directory + "/" + entry.name));
                }
            });
        };
        sum = 0;
        look_below(path_);
    };
    try {
        look(false);
        if (!has_links && sum == listed_sum_) return false;
        look(true);
        if (!has_links && !is_new) listed_sum_ = sum;  // some are gone
        if (!has_links) return is_new;
    } catch (const Error&) {
        return true;
    }
    Diagnostics faults;
    const auto names = find_object_files(path_, faults).names;
    return !faults.empty() ||
           std::any_of(names.begin(), names.end(), [&](const std::string& name) { return !listed_.contains(name); });
}

bool DirectoryStore::change(const std::string& kind, const std::string& name, const MakeEdits& make_edits) {
    for (const bool last_try : {false, true}) {
        const auto file = locate(kind, name);
        const auto image = file ? read_image(*file) : FileImage();
        // An object that no file had, when all of them could be read, can only be in a new file: else the whole fleet
        // is not read again.
        if (!file && !has_errors(faults_) && !has_new_files()) { break; }
        if (image.exists) {
            const auto document = cache_.document(*file, image.bytes);
            if (document && document->root.get_string({"kind"}) == kind &&
                document->root.get_string({"metadata", "name"}) == name) {
                const auto edits = make_edits(document->root);
                if (edits.empty()) return true;
                auto edited = edit::edit_text(image.bytes, *file, edits, document->root);
                if (edited.text == image.bytes) return true;
                replace_file(ops_, image, edited.text);
                if (edited.document) cache_.note(*file, std::move(edited.text), std::move(*edited.document));
                return true;
            }
        }
        if (!last_try) (void)read_locked();  // the file was moved, or is new
    }
    if (has_errors(faults_)) {
        throw Error::from_diagnostics(faults_).add_context(fmt::format("looking for {} {}", kind, base::escape(name)));
    }
    return false;
}

Error DirectoryStore::node_not_found(const std::string& node) const {
    return cluster::node_not_found(node, path_).hint(fmt::format("create nodes/{}.yaml there", base::escape(node)));
}

void DirectoryStore::patch_node_labels(const std::string& node, const LabelChange& change_set,
                                       const LabelChange& expected) {
    const std::lock_guard lock(mutex_);
    const bool found = change("Node", node, [&](const value::Node& root) {
        for (const auto& [key, value] : expected) {
            const auto current = label_of(root, key);
            const auto wanted = change_set.find(key);
            if (current == value || (wanted != change_set.end() && current == wanted->second)) continue;
            throw Error(Exit::locked, "conflict",
                        fmt::format("label {} of node {} was changed by somebody else: expected {}, found {}", key,
                                    node, shown_label(value), shown_label(current)))
                .hint("nothing was written; run the command again")
                .retryable();
        }
        std::vector<edit::Edit> edits;
        for (const auto& [key, value] : change_set) {
            if (label_of(root, key) == value) continue;
            edit::Edit edit{{"metadata", "labels", key}, std::nullopt};
            if (value) edit.value = value::Node(*value);
            edits.push_back(std::move(edit));
        }
        return edits;
    });
    if (!found) throw node_not_found(node);
}

void DirectoryStore::change_node(const std::string& node, const MakeEdits& make_edits) {
    const std::lock_guard lock(mutex_);
    if (!change("Node", node, make_edits)) throw node_not_found(node);
}

void DirectoryStore::put_node_info(const std::string& node, const std::string& kernel, const std::string& boot_id,
                                   const std::string& architecture) {
    const std::lock_guard lock(mutex_);
    const bool found = change("Node", node, [&](const value::Node& root) {
        const std::array<std::pair<std::string_view, const std::string*>, 3> wanted = {
            {{"architecture", &architecture}, {"bootID", &boot_id}, {"kernelVersion", &kernel}}};
        std::vector<edit::Edit> edits;
        for (const auto& [key, value] : wanted) {
            if (value->empty() || root.get_string({"status", "nodeInfo", key}) == *value) continue;
            edits.push_back(edit::Edit{{"status", "nodeInfo", std::string(key)}, value::Node(*value)});
        }
        return edits;
    });
    if (!found) throw node_not_found(node);
}

void DirectoryStore::put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                                     const std::optional<std::optional<api::NodeModule>>& spec,
                                     const std::optional<std::optional<api::NodeModule>>& status) {
    const std::lock_guard lock(mutex_);
    const bool found = change("NodeModulesConfig", node, [&](const value::Node& root) {
        std::vector<edit::Edit> edits;
        for (const auto& [part, wanted] : {std::pair("spec", &spec), std::pair("status", &status)}) {
            if (!*wanted) continue;
            if (auto list = changed_list(root, part, ns, name, **wanted); list) {
                edits.push_back(edit::Edit{{part, "modules"}, std::move(*list)});
            }
        }
        const bool in_spec = spec ? spec->has_value() : has_entry(root, "spec", ns, name);
        const bool in_status = status ? status->has_value() : has_entry(root, "status", ns, name);
        for (auto& [key, value] : config_label_changes(root, ns, name, in_spec, in_status)) {
            edit::Edit edit{{"metadata", "labels", key}, std::nullopt};
            if (value) edit.value = value::Node(*value);
            edits.push_back(std::move(edit));
        }
        return edits;
    });
    if (found) return;
    api::NodeModulesConfig object;
    object.meta.name = node;
    if (spec && *spec) {
        object.spec.push_back(**spec);
        object.meta.labels = {{api::label_module_configured(ns, name), ""}, {api::label_module_in_use(ns, name), ""}};
    }
    if (status && *status) object.status.push_back(**status);
    if (object.spec.empty() && object.status.empty()) return;
    create_config(node, api::encode(object));
}

void DirectoryStore::create_config(const std::string& node, const value::Node& object) {
    if (!api::is_dns1123_subdomain(node)) {
        throw Error(Exit::data, "bad-value",
                    fmt::format("expected a Kubernetes name, found node '{}'", base::escape(node)));
    }
    const auto file = config_file(node);
    sys::make_directories(sys::parent_of(file), 0755);
    ops_.sync_dir(path_);
    const auto image = read_image(file);
    if (image.exists) {
        throw Error(Exit::locked, "conflict",
                    fmt::format("expected no file or NodeModulesConfig {}, found something else in {}", node, file))
            .hint("give that file another name, or correct its kind and metadata.name");
    }
    replace_file(ops_, image, value::to_yaml(object));
    files_[Key("NodeModulesConfig", node)] = file;
    if (listed_.insert(file).second) listed_sum_ += path_hash(file);
}

std::string DirectoryStore::identity(bool create) {
    if (create) check_writable();
    const std::lock_guard lock(mutex_);
    const auto file = fmt::format("{}/{}", path_, k_identity_file);
    for (const bool last_try : {false, true}) {
        const auto image = read_image(file);
        if (image.exists) {
            const auto text = std::string(base::trim(image.bytes));
            if (is_uuid(text)) return text;
            throw Error(Exit::config, "bad-cluster-id", fmt::format("expected a UUID in {}, found other text", file))
                .hint("restore the file; if this is a new cluster, remove it and a new one is made");
        }
        if (!create) return {};
        if (last_try) break;
        sys::LinuxRandom random;
        try {
            replace_file(ops_, image, sys::uuid_v4(random) + "\n");
        } catch (const Error& error) {
            if (error.code() != "conflict") throw;
        }
    }
    throw Error(Exit::io, "io", fmt::format("cannot create {}", file));
}

void DirectoryStore::check_writable() {
    const std::lock_guard lock(mutex_);
    if (!indexed_) (void)read_locked();
    std::set<std::string> directories = {path_};
    for (const auto& [key, file] : files_) directories.insert(sys::parent_of(file));
    for (const auto& directory : directories) {
        const int failed = ::access(directory.c_str(), R_OK | W_OK | X_OK) != 0 ? errno : 0;
        if (failed != 0) {
            throw from_errno(failed, "cannot write to " + directory)
                .hint("the cluster directory must be writable for this user");
        }
        remove_orphans(directory);
    }
}

void DirectoryStore::check_editable(const std::vector<std::string>& nodes, const std::string& label) {
    const std::lock_guard lock(mutex_);
    const auto attempt = [&](const char* kind, const std::string& name, const std::vector<edit::Edit>& edits) {
        const auto file = locate(kind, name);
        if (!file) return;
        const auto image = read_image(*file);
        if (image.exists) static_cast<void>(edit::edit_text(image.bytes, *file, edits));
    };
    const value::Node text("v1");
    const auto list = value::Node::sequence({value::Node::mapping({{"name", text}})});
    for (const auto& node : nodes) {
        attempt("Node", node, {{{"metadata", "labels", label}, text}, {{"status", "nodeInfo", "bootID"}, text}});
        attempt("NodeModulesConfig", node,
                {{{"spec", "modules"}, list}, {{"status", "modules"}, list}, {{"metadata", "labels", label}, text}});
    }
}

}  // namespace kmm::cluster
