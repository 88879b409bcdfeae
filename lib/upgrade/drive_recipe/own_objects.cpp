// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/own_objects.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive_recipe/namespace_use.hpp"
#include "upgrade/drive_recipe/readiness.hpp"
#include "upgrade/drive_recipe/release_store.hpp"

namespace kmm::drive {
namespace {

using upgrade::recipe::id_of;
using upgrade::recipe::k_label_recipe;
using upgrade::recipe::Release;
using upgrade::recipe::ReleaseObject;
using value::Node;

constexpr std::size_t k_named_users = 20;
/// On a hook that was run: the lineage of the rollout.
constexpr std::string_view k_annotation_hook_run = "kmmtools.dev/hook-run";

std::string owner_recipe(const Node& live) {
    const auto* labels = live.find_path({"metadata", "labels"});
    const auto* found = labels == nullptr ? nullptr : labels->find(k_label_recipe);
    return found == nullptr ? "" : found->text();
}

bool is_to_be_kept(const Node& live) {
    return cluster::annotation_of(live, "helm.sh/resource-policy") == "keep";
}

/// A copy of `map` with a member set.
Node with_member(const Node* map, std::string_view key, Node value) {
    auto made = map == nullptr || !map->is_mapping() ? Node::mapping() : *map;
    made.set(std::string(key), std::move(value));
    return made;
}

/// `list` is "labels" or "annotations".
Node with_entry(Node object, std::string_view list, std::string_view key, const std::string& value) {
    const auto* meta = object.find("metadata");
    auto changed = with_member(meta, list, with_member(meta->find(list), key, value));
    object.set("metadata", std::move(changed));
    return object;
}

Node label_patch(Node label) {
    auto labels = Node::mapping();
    labels.set(std::string(k_label_recipe), std::move(label));
    return Node::mapping({{"metadata", Node::mapping({{"labels", std::move(labels)}})}});
}

/// The object without what the server counts for itself.
Node comparable(Node object) {
    const auto* meta = object.find("metadata");
    if (meta == nullptr) return object;
    auto plain = *meta;
    for (const auto* key : {"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"})
        plain.erase(key);
    object.set("metadata", std::move(plain));
    object.erase("status");
    return object;
}

/// The kind as the API server has it now: in another version of its group where that of the object is not served any
/// more, as after an upgrade of Kubernetes. nullopt if the kind is gone.
std::optional<kube::Resource> resource_in_any_version(kube::Client& client, Objects& objects, const Node& object) {
    if (auto found = objects.resource_of(object)) return found;
    const auto api_version = object.get_string({"apiVersion"});
    const auto slash = api_version.find('/');
    if (slash == std::string::npos) return std::nullopt;
    const auto group = api_version.substr(0, slash);
    kube::Call call;
    call.path = "/apis/" + group;
    call.action = {"get", "", call.path, "", "", ""};
    call.is_answer = [](const kube::Failure& failure) { return failure.code == 404; };
    const auto reply = client.exchange(call);
    if (reply.failure) return std::nullopt;
    const auto served = kube::Client::parse(reply, call.action);
    const auto* versions = served.find("versions");
    for (const auto& version : versions == nullptr ? std::vector<Node>() : versions->items()) {
        auto other = object;
        other.set("apiVersion", version.get_string({"groupVersion"}));
        if (auto found = objects.resource_of(other)) return found;
    }
    return std::nullopt;
}

/// A Job or Pod that is a hook: it runs to its end, and once it has ended, it is run by creating it again.
bool is_task_hook(const Node& object) {
    const auto kind = object.get_string({"kind"});
    return (kind == "Job" || kind == "Pod") && !cluster::annotation_of(object, "helm.sh/hook").empty();
}

/// Whether Helm would run this hook when it upgrades a release, or else when it installs one.
bool is_hook_of(const Node& object, bool is_upgrade) {
    const auto events = cluster::annotation_of(object, "helm.sh/hook");
    for (const auto each : base::split(events, ',')) {
        const auto event = base::to_lower(base::trim(each));
        if (event == (is_upgrade ? "pre-upgrade" : "pre-install") ||
            event == (is_upgrade ? "post-upgrade" : "post-install"))
            return true;
    }
    return false;
}

/// Whether Helm would delete what an earlier release left of this hook: by default, with the policy
/// before-hook-creation, and with that of how it has ended.
bool is_hook_made_again(const Node& object, std::string_view policy_of_end = "hook-succeeded") {
    if (!is_task_hook(object)) return false;
    const auto policy = cluster::annotation_of(object, "helm.sh/hook-delete-policy");
    return policy.empty() || policy.find("before-hook-creation") != std::string::npos ||
           policy.find(policy_of_end) != std::string::npos;
}

/// Whether the API server keeps a field from being changed: in its words of a Job, and of a Pod.
bool is_about_fixed_field(const Error& error) {
    return error.code() == "rejected" && (error.message().find("field is immutable") != std::string::npos ||
                                          error.message().find("may not change fields") != std::string::npos);
}

/// Of a Job or Pod.
bool has_failed(const Node& live) {
    const auto* failed = cluster::condition_of(live, "Failed");
    return (failed != nullptr && failed->get_string({"status"}) == "True") ||
           live.get_string({"status", "phase"}) == "Failed";
}

void each_named(const Release& release, const std::string& kind, const std::string& name,
                const std::function<void(const Node& object)>& visit) {
    const auto look = [&](const ReleaseObject& one) {
        if (one.object.get_string({"kind"}) == kind && one.object.get_string({"metadata", "name"}) == name)
            visit(one.object);
    };
    for (const auto& state : release.states) std::for_each(state.objects.begin(), state.objects.end(), look);
    std::for_each(release.kept.begin(), release.kept.end(), look);
}

}  // namespace

bool is_passed_over(const Node& object, const HookRun& hooks) {
    return hooks.is_upgrade && is_task_hook(object) && !is_hook_of(object, true);
}

std::string_view to_string(Change change) noexcept {
    switch (change) {
        case Change::create: return "create";
        case Change::change: return "change";
        case Change::none: break;
    }
    return "unchanged";
}

OwnObjects::OwnObjects(kube::Client& client, Objects& objects, sys::Clock& clock, std::function<bool()> interrupted,
                       Say say, std::string recipe, std::vector<Release> others)
    : client_(client),
      objects_(objects),
      clock_(clock),
      interrupted_(std::move(interrupted)),
      say_(std::move(say)),
      recipe_(std::move(recipe)),
      others_(std::move(others)) {}

OwnObjects::Theirs OwnObjects::theirs(const Node& object, const kube::Resource& resource) const {
    const auto id = id_of(object);
    Theirs found;
    for (const auto& other : others_) {
        // Releases have objects as they were rendered: without their namespace, or with one that their kind has not.
        each_named(other, id.kind, id.name, [&](const Node& one) {
            auto there = placed(one, resource);
            if (found.release == nullptr && id_of(there) == id) found = {&other, std::move(there)};
        });
        if (found.release != nullptr) break;
    }
    return found;
}

void OwnObjects::leave_those_of(const Release& stays, std::vector<ReleaseObject>& objects) {
    const auto live_uid = [&](const Node& object) {
        const auto resource = objects_.resource_of(object);
        const auto live = resource ? objects_.find(*resource, placed(object, *resource)) : std::nullopt;
        return live ? live->get_string({"metadata", "uid"}) : std::string();
    };
    std::erase_if(objects, [&](const ReleaseObject& one) {
        const auto id = id_of(one.object);
        std::vector<std::string> same_name;
        each_named(stays, id.kind, id.name, [&](const Node& other) { same_name.push_back(live_uid(other)); });
        if (same_name.empty()) return false;
        const auto uid = live_uid(one.object);
        return !uid.empty() && std::find(same_name.begin(), same_name.end(), uid) != same_name.end();
    });
}

Change OwnObjects::apply(const kube::Resource& resource, const Node& object, kube::Force force, kube::DryRun dry_run,
                         std::string& wait, const HookRun& hooks) {
    wait.clear();
    if (is_passed_over(object, hooks)) return Change::none;
    const auto before = objects_.find(resource, object);
    if (before && !before->get_string({"metadata", "deletionTimestamp"}).empty()) {
        wait = object_text(object) + " is being deleted" + deletion_obstacle(*before);
        return Change::none;
    }
    auto owner = before ? owner_recipe(*before) : recipe_;
    if (!owner.empty() && owner != recipe_) {
        const auto other = theirs(object, resource);
        if (other.release == nullptr && force == kube::Force::no)
            throw Error(Exit::locked, "object-shared",
                        fmt::format("{} belongs to recipe {}, of which no release with it is in this namespace",
                                    object_text(object), owner))
                .hint("--release-namespace names where the releases of both are: each removal has to know what the "
                      "other needs; --force-conflicts takes the object over");
        if (other.release == nullptr) owner = recipe_;
        else if (force == kube::Force::no && !other.object.same_value(object))
            throw Error(
                Exit::locked, "object-shared",
                fmt::format("{} belongs to recipe {}, which has it in another form", object_text(object), owner))
                .hint("give both recipes the same values for what they share; --force-conflicts applies this form");
    }
    const auto make_again = [&] {
        if (dry_run == kube::DryRun::all) return Change::change;
        kube::DeleteOptions options;
        options.uid = before->get_string({"metadata", "uid"});
        options.propagation = kube::Propagation::foreground;
        static_cast<void>(client_.remove(resource, kube::key_of(object), options));
        wait = object_text(object) + ", a hook, is deleted and created again";
        return Change::none;
    };
    // Helm leaves hooks behind when it removes a release: they have no label.
    const bool is_run = !hooks.rollout.empty() && is_task_hook(object) && is_hook_of(object, hooks.is_upgrade) &&
                        (owner == recipe_ || (owner.empty() && is_task_hook(*before)));
    const bool is_left = is_run && before && cluster::annotation_of(*before, k_annotation_hook_run) != hooks.rollout;
    if (is_left && !is_hook_made_again(object))
        throw Error(Exit::locked, "hook-exists",
                    fmt::format("{}, a hook, is there from before, and its helm.sh/hook-delete-policy keeps it: it "
                                "would not run again",
                                object_text(object)))
            .hint("delete it, or add before-hook-creation to its helm.sh/hook-delete-policy");
    const bool is_to_be_tried_again =
        is_run && before && has_failed(*before) && is_hook_made_again(object, "hook-failed");
    if ((is_left || is_to_be_tried_again) && dry_run == kube::DryRun::no) return make_again();
    auto wanted = owner.empty() ? object : with_entry(object, "labels", k_label_recipe, owner);
    if (is_run) wanted = with_entry(std::move(wanted), "annotations", k_annotation_hook_run, hooks.rollout);
    Node after;
    try {
        after = objects_.apply(resource, wanted, is_left ? kube::Force::yes : force, dry_run);
    } catch (const Error& error) {
        if (!before || !is_hook_made_again(object) || !is_about_fixed_field(error)) throw;
        if (owner != recipe_ && !is_left) throw;
        return make_again();
    }
    if (!before) return Change::create;
    if (dry_run == kube::DryRun::no)
        return before->get_string({"metadata", "resourceVersion"}) == after.get_string({"metadata", "resourceVersion"})
                   ? Change::none
                   : Change::change;
    return comparable(*before).same_value(comparable(after)) ? Change::none : Change::change;
}

void OwnObjects::require_unused_namespace(const std::string& name) {
    const auto use = use_of_namespace(client_, name);
    if (!use.objects.empty())
        throw Error(Exit::locked, "namespace-in-use",
                    fmt::format("Namespace {} holds objects of others: {}", name,
                                base::join_some(use.objects, k_named_users)))
            .hint(fmt::format("move or delete them, or let the Namespace stay: kubectl annotate namespace {} "
                              "helm.sh/resource-policy=keep; then kmm-upgrade resume",
                              name));
    if (!use.hidden.empty())
        say_(fmt::format("Namespace {} is deleted without a look at kinds that the account may not list: {}", name,
                         base::join_some(use.hidden, k_named_users)));
}

void OwnObjects::require_unused_definition(const Node& live) {
    const auto name = live.get_string({"metadata", "name"});
    const auto kind = served_kind(live);
    if (!kind)
        throw Error(Exit::locked, "definition-in-use",
                    fmt::format("CustomResourceDefinition {} serves no version: its objects cannot be seen", name))
            .hint("serve one of its versions, or delete it yourself, then kmm-upgrade resume");
    client_.forget_served();
    if (!client_.serves(*kind)) return;
    std::vector<std::string> users;
    for (const auto& user : client_.list_all(*kind, {}))
        if (user.get_string({"metadata", "deletionTimestamp"}).empty())
            users.push_back(fmt::format("{} {}", kind->kind, kube::key_of(user).to_string()));
    if (users.empty()) return;
    throw Error(Exit::locked, "definition-in-use",
                fmt::format("CustomResourceDefinition {} has objects that would be deleted with it: {}", name,
                            base::join_some(users, k_named_users)))
        .hint("delete them, then kmm-upgrade resume");
}

Removed OwnObjects::remove(const std::vector<ReleaseObject>& objects, const Deadline& deadline) {
    Removed removed;
    for (const auto& one : objects) {
        const auto resource = resource_in_any_version(client_, objects_, one.object);
        if (!resource) continue;  // its kind is gone, and it with it
        const auto object = placed(one.object, *resource);
        const auto key = kube::key_of(object);
        auto live = objects_.find(*resource, object);
        if (!live) continue;
        const auto stays = [&](const std::string& why) { removed.stays.push_back(object_text(object) + ": " + why); };
        if (const auto owner = owner_recipe(*live); owner != recipe_) {
            stays(owner.empty()
                      ? fmt::format("no label {}: it was there before, or someone removed the label", k_label_recipe)
                      : "it belongs to recipe " + owner);
            continue;
        }
        if (const auto other = theirs(object, *resource); other.release != nullptr) {
            static_cast<void>(client_.merge_patch(*resource, key, label_patch(other.release->recipe)));
            stays("recipe " + other.release->recipe + " has it, too");
            continue;
        }
        if (is_to_be_kept(*live)) {
            static_cast<void>(client_.merge_patch(*resource, key, label_patch(Node())));
            stays("annotation helm.sh/resource-policy: keep");
            continue;
        }
        const bool is_going = !live->get_string({"metadata", "deletionTimestamp"}).empty();
        if (!is_going && resource->kind == "Namespace") require_unused_namespace(key.name);
        if (!is_going && resource->kind == "CustomResourceDefinition") require_unused_definition(*live);
        kube::DeleteOptions options;
        options.uid = live->get_string({"metadata", "uid"});
        options.propagation = kube::Propagation::foreground;
        if (!is_going) static_cast<void>(client_.remove(*resource, key, options));
        await_clear(clock_, deadline, interrupted_,
                    fmt::format("kubectl get {} {}{} -o yaml: see its finalizers", resource->full_name(), key.name,
                                key.namespace_.empty() ? "" : " -n " + key.namespace_),
                    spoken(clock_, deadline, say_, [&] {
                        live = objects_.find(*resource, object);
                        const bool is_there = live && live->get_string({"metadata", "uid"}) == options.uid;
                        return is_there ? object_text(object) + " is not gone" + deletion_obstacle(*live)
                                        : std::string();
                    }));
        ++removed.count;
    }
    return removed;
}

std::vector<std::string> OwnObjects::labelled(const Release& release) {
    std::vector<std::string> found;
    std::set<std::string> asked;
    client_.forget_served();  // definitions of kinds may be among what was removed
    const auto ask = [&](const ReleaseObject& one) {
        const auto resource = resource_in_any_version(client_, objects_, one.object);
        if (!resource || !asked.insert(resource->full_name()).second || !client_.serves(*resource)) return;
        for (const auto& left : client_.list_all(*resource, {"", fmt::format("{}={}", k_label_recipe, recipe_), ""}))
            found.push_back(fmt::format("{} {}", resource->kind, kube::key_of(left).to_string()));
    };
    for (const auto& state : release.states) std::for_each(state.objects.begin(), state.objects.end(), ask);
    std::for_each(release.kept.begin(), release.kept.end(), ask);
    return found;
}

}  // namespace kmm::drive
