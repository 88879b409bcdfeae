// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/kube_store.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/labels.hpp"
#include "base/text.hpp"
#include "cluster/live/definitions.hpp"
#include "cluster/live/kube_mirror.hpp"
#include "cluster/live/pull_secrets.hpp"
#include "cluster/seam/config_list.hpp"
#include "kube/fleet.hpp"

namespace kmm::cluster {

namespace {

using kube::Key;
using value::Node;

constexpr int k_write_tries = 5;

/// The path of a label in a JSON patch (RFC 6901).
std::string label_pointer(std::string_view key) {
    std::string path = "/metadata/labels/";
    for (const char c : key) { path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c); }
    return path;
}

Node patch_step(const char* operation, const std::string& path) {
    return Node::mapping({{"op", operation}, {"path", path}});
}

/// Appends those of `more` that are not in `rules` yet.
void add_rules(std::vector<kube::Rule>& rules, const std::vector<kube::Rule>& more) {
    for (const auto& rule : more) {
        if (std::find(rules.begin(), rules.end(), rule) == rules.end()) { rules.push_back(rule); }
    }
}

/// Errors: no_permission "forbidden" with all of `rules` that are missing.
void require_allowed(kube::Client& client, const std::vector<kube::Rule>& rules) {
    const auto missing = kube::missing_rules(client, rules);
    if (!missing.empty()) { throw kube::missing_error(client, missing, "kmm-upgrade"); }
}

}  // namespace

struct KubeStore::Cache {
    explicit Cache(std::unique_ptr<kube::Client> given) : client(std::move(given)) {
        using namespace kube::resources;
        mirrors[0].resource = k_nodes;
        mirrors[1].resource = k_modules;
        mirrors[2].resource = k_node_modules_configs;
        mirrors[3].resource = k_pods;
        mirrors[3].label_selector = api::k_label_worker_action;
    }

    ~Cache() {
        stopping = true;
        client->stop();
        for (auto& mirror : mirrors) {
            if (mirror.thread.joinable()) { mirror.thread.join(); }
        }
    }
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    void begin();
    void wait_listed();
    /// Sees to it that the watches run and have brought everything. Errors: as read().
    void keep_up();
    void run(Mirror& mirror);
    void keep(Mirror& mirror, const Node& object) {
        const std::lock_guard lock(mutex);
        put_answer(mirror, object, client->clock().monotonic());
    }
    /// Reads one object anew.
    std::optional<Node> refresh(Mirror& mirror, const Key& key);

    /// Errors: not_found "node-not-found".
    std::string uid_of_node(const std::string& node, const std::string& place);

    Mirror& nodes() { return mirrors[0]; }
    Mirror& modules() { return mirrors[1]; }
    Mirror& configs() { return mirrors[2]; }

    std::unique_ptr<kube::Client> client;
    std::mutex begin_mutex;  ///< taken before `mutex`
    std::mutex mutex;
    std::condition_variable changed;
    std::array<Mirror, 4> mirrors;
    bool has_begun = false;
    std::atomic<bool> is_allowed{false};  ///< the rights were asked for
    std::atomic<bool> stopping{false};
    Writes writes = Writes::all;
    std::vector<kube::Rule> expected;
    [[nodiscard]] std::vector<kube::Rule> rights() const {
        auto rules = kube_store_rules(writes);
        add_rules(rules, expected);
        return rules;
    }
    PullSecrets secrets;
};

void KubeStore::Cache::run(Mirror& mirror) {
    MirrorReceiver receiver(mirror, mutex, changed, stopping);
    kube::ListQuery query;
    query.label_selector = mirror.label_selector;
    while (!stopping) {
        try {
            if (!mirror.resource.group.empty() && !client->serves(mirror.resource)) {
                {
                    const std::lock_guard lock(mutex);
                    mirror.is_lacking = true;
                }
                receiver.listed({});
                return;
            }
            kube::follow(*client, mirror.resource, query, receiver);
        } catch (...) {
            if (stopping) { return; }
            const std::lock_guard lock(mutex);
            mirror.failure = std::current_exception();
            changed.notify_all();
            return;  // the next read begins again, and says why
        }
    }
}

void KubeStore::Cache::begin() {
    for (auto& mirror : mirrors) {
        bool has_ended = false;
        bool was_lacking = false;
        {
            const std::lock_guard lock(mutex);
            has_ended = std::exchange(mirror.failure, nullptr) != nullptr;
            was_lacking = mirror.is_lacking;
        }
        has_ended = has_ended || (was_lacking && client->serves(mirror.resource));  // it was created meanwhile
        if (has_ended) {
            mirror.thread.join();
            const std::lock_guard lock(mutex);
            mirror.listed = mirror.is_lacking = false;
        }
        if (has_ended || !has_begun) {
            mirror.thread = std::thread([this, &mirror] { run(mirror); });
        }
    }
    has_begun = true;
}

void KubeStore::Cache::wait_listed() {
    std::unique_lock lock(mutex);
    const auto is_done = [&] {
        return std::all_of(mirrors.begin(), mirrors.end(),
                           [](const Mirror& mirror) { return mirror.listed || mirror.failure; });
    };
    changed.wait(lock, is_done);
    for (auto& mirror : mirrors) {
        if (mirror.failure) {
            const auto failure = mirror.failure;
            lock.unlock();
            std::rethrow_exception(failure);
        }
    }
}

std::optional<Node> KubeStore::Cache::refresh(Mirror& mirror, const Key& key) {
    auto object = client->find(mirror.resource, key);
    const std::lock_guard lock(mutex);
    if (object) {
        put_answer(mirror, *object, client->clock().monotonic());
    } else {
        mirror.entries.erase(key.to_string());
    }
    return object;
}

std::string KubeStore::Cache::uid_of_node(const std::string& node, const std::string& place) {
    {
        const std::lock_guard lock(mutex);
        const auto found = nodes().entries.find(node);
        if (found != nodes().entries.end() && !found->second.objects.nodes.empty()) {
            return found->second.objects.nodes.front().meta.uid;
        }
    }
    const auto object = refresh(nodes(), {"", node});
    if (!object) { throw node_not_found(node, place); }
    return object->get_string({"metadata", "uid"});
}

KubeStore::KubeStore(std::unique_ptr<kube::Client> client) : cache_(std::make_unique<Cache>(std::move(client))) {}

KubeStore::~KubeStore() = default;

kube::Client& KubeStore::client() noexcept { return *cache_->client; }

std::string KubeStore::describe() const {
    const kube::Connection& connection = cache_->client->connection();
    return fmt::format("cluster {} ({})", base::escape(connection.context), base::escape(connection.server));
}

void KubeStore::Cache::keep_up() {
    {
        const std::lock_guard lock(begin_mutex);
        begin();
    }
    try {
        wait_listed();
    } catch (const Error& error) {
        if (error.code() != "forbidden") { throw; }
        require_allowed(*client, rights());  // tells all that is missing, not just the first
        throw;
    }
}

Snapshot KubeStore::read_about(const Subject& subject) {
    cache_->keep_up();
    Snapshot snapshot;
    const auto take = [&](Mirror& mirror, const std::string& key) {
        if (key.empty()) { return; }
        end_waiting(mirror, cache_->client->clock().monotonic());
        const auto entry = mirror.entries.find(key);
        if (entry == mirror.entries.end()) { return; }
        api::append(snapshot.objects, entry->second.objects);
        snapshot.diagnostics.insert(snapshot.diagnostics.end(), entry->second.diagnostics.begin(),
                                    entry->second.diagnostics.end());
    };
    {
        const std::lock_guard lock(cache_->mutex);
        take(cache_->nodes(), subject.node);
        take(cache_->configs(), subject.node);
        if (!subject.module.empty()) {
            take(cache_->modules(), Key{subject.module_namespace, subject.module}.to_string());
        }
    }
    const bool is_missing = (!subject.node.empty() && snapshot.objects.nodes.empty()) ||
                            (!subject.module.empty() && snapshot.objects.modules.empty());
    if (is_missing || has_errors(snapshot.diagnostics)) { return read(); }
    return snapshot;
}

Snapshot KubeStore::read() {
    cache_->keep_up();
    Snapshot snapshot;
    {
        const std::lock_guard lock(cache_->mutex);
        for (auto& mirror : cache_->mirrors) {
            end_waiting(mirror, cache_->client->clock().monotonic());
            for (const auto& [name, entry] : mirror.entries) {
                api::append(snapshot.objects, entry.objects);
                snapshot.diagnostics.insert(snapshot.diagnostics.end(), entry.diagnostics.begin(),
                                            entry.diagnostics.end());
            }
        }
    }
    std::set<std::string> wanted;
    for (const auto& module : snapshot.objects.modules) {
        if (module.image_repo_secret.empty()) { continue; }
        const Key key{module.meta.namespace_, module.image_repo_secret};
        if (!wanted.insert(key.to_string()).second) { continue; }
        api::append(snapshot.objects, cache_->secrets.get(*cache_->client, key, snapshot.diagnostics));
    }
    api::finish(snapshot.objects, snapshot.diagnostics);
    return snapshot;
}

void KubeStore::patch_node_labels(const std::string& node, const LabelChange& change, const LabelChange& expected) {
    Mirror& mirror = cache_->nodes();
    const Key key{"", node};
    for (int tried = 1;; ++tried) {
        std::optional<api::Labels> labels;
        {
            const std::lock_guard lock(cache_->mutex);
            const auto found = mirror.entries.find(node);
            if (tried == 1 && found != mirror.entries.end() && !found->second.objects.nodes.empty()) {
                labels = found->second.objects.nodes.front().meta.labels;
            }
        }
        if (!labels) {
            const auto object = cache_->refresh(mirror, key);
            if (!object) { throw node_not_found(node, describe()); }
            labels.emplace();
            if (const Node* map = object->find_path({"metadata", "labels"}); map != nullptr) {
                for (const auto& member : map->members()) { labels->emplace(member.key, member.value.text()); }
            }
        }
        const auto current_of = [&](const std::string& label) {
            const auto found = labels->find(label);
            return found == labels->end() ? std::optional<std::string>() : found->second;
        };
        Node steps = Node::sequence();
        if (labels->empty()) {
            Node test = patch_step("test", "/metadata/labels");
            test.set("value", Node());
            steps.push_back(std::move(test));
            Node add = patch_step("add", "/metadata/labels");
            add.set("value", Node::mapping());
            steps.push_back(std::move(add));
        }
        for (const auto& [label, value] : expected) {
            const auto current = current_of(label);
            const auto wanted = change.find(label);
            if (current != value && (wanted == change.end() || current != wanted->second)) {
                if (tried == 1) { break; }  // what the watch has may be old: look at the node itself
                throw Error(Exit::locked, "conflict",
                            fmt::format("label {} of node {} was changed by somebody else: expected {}, found {}",
                                        label, node, shown_label(value), shown_label(current)))
                    .hint("nothing was written; run the command again")
                    .retryable();
            }
            Node test = patch_step("test", label_pointer(label));
            test.set("value", current ? Node(*current) : Node());
            steps.push_back(std::move(test));
        }
        bool has_change = false;
        for (const auto& [label, value] : change) {
            if (current_of(label) == value) { continue; }
            has_change = true;
            Node step = patch_step(value ? "add" : "remove", label_pointer(label));
            if (value) { step.set("value", *value); }
            steps.push_back(std::move(step));
        }
        const bool is_current = std::all_of(expected.begin(), expected.end(), [&](const auto& entry) {
            const auto wanted = change.find(entry.first);
            const auto current = current_of(entry.first);
            return current == entry.second || (wanted != change.end() && current == wanted->second);
        });
        if (!is_current) { continue; }
        if (!has_change) { return; }
        try {
            const Node stored = cache_->client->json_patch(kube::resources::k_nodes, key, steps);
            cache_->keep(mirror, stored);
            return;
        } catch (const Error& error) {
            if (error.code() == "object-not-found") { throw node_not_found(node, describe()); }
            if (error.code() != "conflict" || tried >= k_write_tries) { throw; }
        }
    }
}

void KubeStore::put_node_module(const std::string& node, const std::string& ns, const std::string& name,
                                const std::optional<std::optional<api::NodeModule>>& spec,
                                const std::optional<std::optional<api::NodeModule>>& status) {
    if (cache_->writes != Writes::all) { throw bug("NodeModulesConfigs are not ours to write here"); }
    kube::Client& server = *cache_->client;
    const kube::Resource& resource = kube::resources::k_node_modules_configs;
    const Key key{"", node};
    const auto keep = [&](const Node& stored) { cache_->keep(cache_->configs(), stored); };
    if (!server.find(resource, key)) {
        const bool has_spec = spec && *spec;
        const bool has_status = status && *status;
        if (!has_spec && !has_status) { return; }
        api::NodeModulesConfig object;
        object.meta.name = node;
        if (has_spec) {
            object.spec.push_back(**spec);
            object.meta.labels = {{api::label_module_configured(ns, name), ""},
                                  {api::label_module_in_use(ns, name), ""}};
        }
        Node tree = api::encode(object);
        // As KMM does it: a Node that is deleted takes it along.
        if (const auto uid = cache_->uid_of_node(node, describe()); !uid.empty()) {
            Node owner = Node::mapping({{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", uid}});
            tree.find("metadata")->set("ownerReferences", Node::sequence({std::move(owner)}));
        }
        try {
            keep(server.create(resource, tree));
        } catch (const Error& error) {
            if (error.code() != "already-exists") { throw; }
        }
    }
    const auto list_patch = [](const char* part, Node list) {
        return Node::mapping({{part, Node::mapping({{"modules", std::move(list)}})}});
    };
    // First what runs, then what shall run: labels go by both.
    if (status) {
        keep(server.change(resource, key,
                           [&](const Node& current) -> std::optional<Node> {
                               auto list = changed_list(current, "status", ns, name, *status);
                               if (!list) { return std::nullopt; }
                               return list_patch("status", std::move(*list));
                           },
                           "status"));
    }
    keep(server.change(resource, key, [&](const Node& current) -> std::optional<Node> {
        Node patch = Node::mapping();
        if (spec) {
            auto list = changed_list(current, "spec", ns, name, *spec);
            if (list) { patch = list_patch("spec", std::move(*list)); }
        }
        const bool in_spec = spec ? spec->has_value() : has_entry(current, "spec", ns, name);
        Node labels = Node::mapping();
        for (auto& [label, value] :
             config_label_changes(current, ns, name, in_spec, has_entry(current, "status", ns, name))) {
            labels.set(label, value ? Node(*value) : Node());
        }
        if (!labels.members().empty()) { patch.set("metadata", Node::mapping({{"labels", std::move(labels)}})); }
        if (patch.members().empty()) { return std::nullopt; }
        return patch;
    }));
}

void KubeStore::put_node_info(const std::string& /*node*/, const std::string& /*kernel*/,
                              const std::string& /*boot_id*/, const std::string& /*architecture*/) {}

std::string KubeStore::identity(bool create) {
    if (create && !cache_->is_allowed) { require_allowed(*cache_->client, rights()); }
    const Node object = cache_->client->get(kube::resources::k_namespaces, {"", "kube-system"});
    return object.get_string({"metadata", "uid"});
}

std::uint64_t KubeStore::await_news(std::uint64_t seen, std::chrono::milliseconds timeout) {
    const auto count = [&] {
        std::uint64_t sum = 0;
        for (const auto& mirror : cache_->mirrors) { sum += mirror.news; }
        return sum;
    };
    const auto has_failed = [&] {
        return std::any_of(cache_->mirrors.begin(), cache_->mirrors.end(),
                           [](const Mirror& mirror) { return mirror.failure != nullptr; });
    };
    std::unique_lock lock(cache_->mutex);
    cache_->changed.wait_for(lock, timeout, [&] { return count() != seen || has_failed(); });
    return count();
}

void KubeStore::limit_writes(Writes writes) noexcept { cache_->writes = writes; }

void KubeStore::require_kinds() {
    const auto lacking = lacking_kinds(*cache_->client);
    if (!lacking.empty()) { throw lacking_error(describe(), lacking.front()); }
}

void KubeStore::expect_rights(const std::vector<kube::Rule>& more) { add_rules(cache_->expected, more); }

std::vector<kube::Rule> KubeStore::rights() const { return cache_->rights(); }

void KubeStore::require_rights(const std::vector<kube::Rule>& more) {
    auto rules = rights();
    add_rules(rules, more);
    require_allowed(*cache_->client, rules);
    cache_->is_allowed = true;
}

value::Node KubeStore::change_node(const std::string& node,
                                   const std::function<std::optional<Node>(const Node& current)>& decide) {
    try {
        Node stored = cache_->client->change(kube::resources::k_nodes, {"", node}, decide);
        cache_->keep(cache_->nodes(), stored);
        return stored;
    } catch (const Error& error) {
        if (error.code() != "object-not-found") { throw; }
        throw node_not_found(node, describe());
    }
}

}  // namespace kmm::cluster
