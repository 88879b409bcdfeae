// SPDX-License-Identifier: Apache-2.0
// What the server has: groups, versions, kinds.
#include "kube/client.hpp"

namespace kmm::kube {

namespace {

/// The plurals of one group and version, subresources left out.
std::set<std::string> plurals_of(const value::Node& list) {
    std::set<std::string> plurals;
    const value::Node* resources = list.find("resources");
    if (resources == nullptr) { return plurals; }
    for (const auto& entry : resources->items()) {
        const std::string name = entry.get_string({"name"});
        if (!name.empty() && name.find('/') == std::string::npos) { plurals.insert(name); }
    }
    return plurals;
}

}  // namespace

bool Client::serves(const Resource& resource) {
    const std::string group_version = resource.api_version();
    {
        const std::lock_guard lock(mutex_);
        const auto known = served_.find(group_version);
        if (known != served_.end()) { return known->second.contains(resource.plural); }
    }
    Call call;
    call.path = (resource.group.empty() ? "/api/" : "/apis/") + group_version;
    call.action = {"get", "", call.path, "", "", ""};
    call.is_answer = [](const Failure& failure) { return failure.code == 404; };
    const Reply reply = exchange(call);
    std::set<std::string> plurals;
    if (!reply.failure) { plurals = plurals_of(parse(reply, call.action)); }
    const std::lock_guard lock(mutex_);
    return served_.insert_or_assign(group_version, std::move(plurals)).first->second.contains(resource.plural);
}

void Client::forget_served() {
    const std::lock_guard lock(mutex_);
    served_.clear();
}

std::optional<Resource> Client::discover(const Resource& resource) {
    if (resource.group.empty()) { return serves(resource) ? std::optional(resource) : std::nullopt; }
    Call call;
    call.path = "/apis/" + resource.group;
    call.action = {"get", "", call.path, "", "", ""};
    call.is_answer = [](const Failure& failure) { return failure.code == 404; };
    const Reply reply = exchange(call);
    if (reply.failure) { return std::nullopt; }
    const value::Node group = parse(reply, call.action);
    std::vector<std::string> versions{group.get_string({"preferredVersion", "version"})};
    if (const value::Node* list = group.find("versions"); list != nullptr) {
        for (const auto& entry : list->items()) { versions.push_back(entry.get_string({"version"})); }
    }
    for (const auto& version : versions) {
        Resource candidate = resource;
        candidate.version = version;
        if (!version.empty() && serves(candidate)) { return candidate; }
    }
    return std::nullopt;
}

std::string Client::server_version() {
    Call call;
    call.path = "/version";
    call.action = {"get", "", call.path, "", "", ""};
    return parse(exchange(call), call.action).get_string({"gitVersion"});
}

}  // namespace kmm::kube
