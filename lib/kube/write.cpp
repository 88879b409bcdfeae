// SPDX-License-Identifier: Apache-2.0
// Writing: every request says who writes, and wants unknown fields refused.
#include <algorithm>

#include <fmt/format.h>

#include "kube/client.hpp"
#include "value/writer.hpp"

namespace kmm::kube {

namespace {

/// True if `object` was created under this manager's name.
bool is_created_by(const value::Node& object, const std::string& manager) {
    const value::Node* fields = object.find_path({"metadata", "managedFields"});
    if (fields == nullptr) { return false; }
    return std::any_of(fields->items().begin(), fields->items().end(), [&](const value::Node& entry) {
        return entry.get_string({"manager"}) == manager && entry.get_string({"operation"}) == "Update";
    });
}

const char* propagation_text(Propagation propagation) {
    switch (propagation) {
        case Propagation::foreground: return "Foreground";
        case Propagation::orphan: return "Orphan";
        default: return "Background";
    }
}

/// Several budgets over one pod: a 500 that stays.
bool is_several_budgets(const Failure& failure) {
    return failure.code == 500 && failure.message.find("more than one PodDisruptionBudget") != std::string::npos;
}

/// A webhook that wants the Pod to go in its own way; some answer 500 where 429 is meant. Other faults of webhooks stay
/// faults of the server.
bool is_not_now(const Failure& failure) {
    return failure.code == 429 ||
           (failure.code == 500 && is_refused_by_admission(failure.code, failure.message));
}

/// A precondition that failed because another object has the name now.
bool is_other_uid(const Failure& failure) {
    return failure.code == 409 && failure.message.find("UID in ") != std::string::npos;
}

}  // namespace

value::Node Client::write(Call call, const Resource& resource, const Key& key, std::string_view subresource,
                          DryRun dry_run) {
    call.path = path_of(resource, key, subresource);
    call.action.group = resource.group;
    call.action.resource = resource.plural;
    call.action.subresource = subresource;
    call.action.namespace_ = resource.scope == Scope::cluster ? "" : key.namespace_;
    call.action.name = key.name;
    call.query.emplace_back("fieldManager", options_.field_manager);
    call.query.emplace_back("fieldValidation", "Strict");
    if (dry_run == DryRun::all) { call.query.emplace_back("dryRun", "All"); }
    return parse(exchange(call), call.action);
}

value::Node Client::create(const Resource& resource, const value::Node& object, DryRun dry_run) {
    const Key key = key_of(object);
    Call call;
    call.method = "POST";
    call.body = value::to_json(object);
    call.path = path_of(resource, Key{key.namespace_, ""});
    call.action = {
        "create", resource.group, resource.plural, "", resource.scope == Scope::cluster ? "" : key.namespace_,
        key.name};
    call.query = {{"fieldManager", options_.field_manager}, {"fieldValidation", "Strict"}};
    if (dry_run == DryRun::all) { call.query.emplace_back("dryRun", "All"); }
    call.is_answer = [](const Failure& failure) { return failure.reason == "AlreadyExists"; };
    const Reply reply = exchange(call);
    if (!reply.failure) { return parse(reply, call.action); }
    if (reply.uncertain) {
        const auto there = find(resource, key);
        if (there && is_created_by(*there, options_.field_manager)) { return *there; }
    }
    throw to_error(*reply.failure, call.action);
}

value::Node Client::apply(const Resource& resource, const value::Node& object, Force force, DryRun dry_run,
                          std::string_view subresource) {
    Call call;
    call.method = "PATCH";
    call.content_type = "application/apply-patch+yaml";
    call.body = value::to_json(object);
    call.action.verb = "patch";
    call.query.emplace_back("force", force == Force::yes ? "true" : "false");
    return write(std::move(call), resource, key_of(object), subresource, dry_run);
}

value::Node Client::json_patch(const Resource& resource, const Key& key, const value::Node& operations,
                               std::string_view subresource, DryRun dry_run) {
    Call call;
    call.method = "PATCH";
    call.content_type = "application/json-patch+json";
    call.body = value::to_json(operations);
    call.action.verb = "patch";
    try {
        return write(std::move(call), resource, key, subresource, dry_run);
    } catch (const Error& error) {
        const bool has_test = std::any_of(operations.items().begin(), operations.items().end(),
                                          [](const value::Node& step) { return step.get_string({"op"}) == "test"; });
        Failure failure;
        failure.code = error.http_cause().value_or(0);
        failure.message = error.message();
        if (!has_test || !is_failed_test(failure)) { throw; }
        throw Error(Exit::locked, "conflict",
                    fmt::format("{}: it is not as it was read any more", key.to_string()))
            .cause_http(failure.code)
            .retryable();
    }
}

value::Node Client::merge_patch(const Resource& resource, const Key& key, const value::Node& patch,
                                std::string_view subresource, DryRun dry_run) {
    Call call;
    call.method = "PATCH";
    call.content_type = "application/merge-patch+json";
    call.body = value::to_json(patch);
    call.action.verb = "patch";
    return write(std::move(call), resource, key, subresource, dry_run);
}

value::Node Client::replace(const Resource& resource, const value::Node& object, std::string_view subresource) {
    if (object.get_string({"metadata", "resourceVersion"}).empty()) {
        throw bug("an object without resourceVersion would replace whatever is there");
    }
    Call call;
    call.method = "PUT";
    call.body = value::to_json(object);
    call.action.verb = "update";
    return write(std::move(call), resource, key_of(object), subresource, DryRun::no);
}

value::Node Client::change(const Resource& resource, const Key& key,
                           const std::function<std::optional<value::Node>(const value::Node& current)>& decide,
                           std::string_view subresource) {
    constexpr int k_tries = 5;
    for (int tried = 1;; ++tried) {
        value::Node current = get(resource, key);
        std::optional<value::Node> patch = decide(current);
        if (!patch) { return current; }
        value::Node metadata = value::Node::mapping();
        if (const value::Node* mine = patch->find("metadata"); mine != nullptr) { metadata = *mine; }
        metadata.set("resourceVersion", current.get_string({"metadata", "resourceVersion"}));
        patch->set("metadata", std::move(metadata));
        try {
            return merge_patch(resource, key, *patch, subresource);
        } catch (const Error& error) {
            if (error.code() != "conflict" || tried >= k_tries) { throw; }
            const auto wait =
                net::retry_delay({k_tries, std::chrono::milliseconds(50), std::chrono::milliseconds(1000), 0.5}, tried,
                                 std::nullopt, chance());
            if (!seams_.clock.sleep_for(wait)) {
                throw Error(Exit::interrupted, "interrupted", "interrupted while waiting for the API server");
            }
        }
    }
}

Deletion Client::remove(const Resource& resource, const Key& key, const DeleteOptions& options) {
    value::Node body = value::Node::mapping({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}});
    body.set("propagationPolicy", propagation_text(options.propagation));
    value::Node preconditions = value::Node::mapping();
    if (!options.uid.empty()) { preconditions.set("uid", options.uid); }
    if (!options.resource_version.empty()) { preconditions.set("resourceVersion", options.resource_version); }
    const bool is_conditional = !preconditions.members().empty();
    if (is_conditional) { body.set("preconditions", std::move(preconditions)); }
    if (options.grace_seconds) { body.set("gracePeriodSeconds", *options.grace_seconds); }
    if (options.dry_run == DryRun::all) { body.set("dryRun", value::Node::strings({"All"})); }
    Call call;
    call.method = "DELETE";
    call.path = path_of(resource, key);
    call.body = value::to_json(body);
    call.action = {
        "delete", resource.group, resource.plural, "", resource.scope == Scope::cluster ? "" : key.namespace_,
        key.name};
    call.is_answer = [&](const Failure& failure) {
        return failure.code == 404 || (failure.code == 409 && is_conditional);
    };
    const Reply reply = exchange(call);
    if (!reply.failure) { return Deletion::started; }
    return reply.failure->code == 404 ? Deletion::already_gone : Deletion::other_uid;
}

Eviction Client::evict(const Key& pod, std::optional<int> grace_seconds, DryRun dry_run, const std::string& uid) {
    value::Node body = value::Node::mapping(
        {{"apiVersion", "policy/v1"},
         {"kind", "Eviction"},
         {"metadata", value::Node::mapping({{"name", pod.name}, {"namespace", pod.namespace_}})}});
    value::Node options = value::Node::mapping();
    if (grace_seconds) { options.set("gracePeriodSeconds", *grace_seconds); }
    if (!uid.empty()) { options.set("preconditions", value::Node::mapping({{"uid", uid}})); }
    if (dry_run == DryRun::all) { options.set("dryRun", value::Node::strings({"All"})); }
    if (!options.members().empty()) { body.set("deleteOptions", std::move(options)); }
    Call call;
    call.method = "POST";
    call.path = path_of(resources::k_pods, pod, "eviction");
    call.body = value::to_json(body);
    call.action = {"create", "", "pods", "eviction", pod.namespace_, pod.name};
    call.is_answer = [](const Failure& failure) {
        return failure.code == 404 || is_other_uid(failure) ||
               is_not_now(failure) || is_several_budgets(failure) ||
               (failure.code == 403 && failure.has_cause("NamespaceTerminating"));
    };
    const Reply reply = exchange(call);
    Eviction eviction;
    if (!reply.failure) { return eviction; }
    eviction.reason = reply.failure->message;
    if (is_several_budgets(*reply.failure)) {
        eviction.outcome = Eviction::Outcome::several_budgets;
        return eviction;
    }
    switch (reply.failure->code) {
        case 404:
        case 409: eviction.outcome = Eviction::Outcome::gone; break;
        case 403: eviction.outcome = Eviction::Outcome::namespace_ending; break;
        default:
            eviction.outcome = Eviction::Outcome::blocked;
            eviction.retry_after = reply.retry_after;
            for (const auto& cause : reply.failure->causes) {
                if (cause.type == "DisruptionBudget" && !cause.message.empty()) { eviction.reason = cause.message; }
            }
    }
    return eviction;
}

value::Node Client::ask(const Resource& resource, const value::Node& question) {
    Call call;
    call.method = "POST";
    call.path = path_of(resource, Key{});
    call.body = value::to_json(question);
    call.action = {"create", resource.group, resource.plural, "", "", ""};
    return parse(exchange(call), call.action);
}

}  // namespace kmm::kube
