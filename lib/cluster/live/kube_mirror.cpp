// SPDX-License-Identifier: Apache-2.0
#include "cluster/live/kube_mirror.hpp"

#include <algorithm>
#include <utility>

#include "api/object_decoder.hpp"
#include "kube/fleet.hpp"

namespace kmm::cluster {

namespace {

using value::Node;

std::string mirror_name(const Node& object) {
    return kube::Key{object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})}.to_string();
}

void remember_version(Mirror::Entry& entry, std::string version) {
    constexpr std::size_t k_versions = 64;
    entry.seen.push_back(std::move(version));
    if (entry.seen.size() > k_versions) { entry.seen.pop_front(); }
}

}  // namespace

void put_seen(Mirror& mirror, const Node& object) {
    Mirror::Entry& entry = mirror.entries[mirror_name(object)];
    entry.objects = {};
    entry.diagnostics.clear();
    entry.awaited.clear();
    entry.held.reset();
    entry.uid = object.get_string({"metadata", "uid"});
    kube::decode_object(mirror.resource, object, entry.objects, entry.diagnostics);
    std::erase_if(entry.diagnostics, [](const Diagnostic& diagnostic) { return diagnostic.code == "unknown-field"; });
    remember_version(entry, object.get_string({"metadata", "resourceVersion"}));
}

void put_answer(Mirror& mirror, const Node& object, std::chrono::milliseconds now) {
    const std::string version = object.get_string({"metadata", "resourceVersion"});
    const auto found = mirror.entries.find(mirror_name(object));
    if (found != mirror.entries.end()) {
        const auto& seen = found->second.seen;
        if (std::find(seen.begin(), seen.end(), version) != seen.end()) { return; }
    }
    put_seen(mirror, object);
    Mirror::Entry& entry = mirror.entries[mirror_name(object)];
    entry.seen.pop_back();
    entry.awaited = version;
    entry.awaited_since = now;
}

void end_waiting(Mirror& mirror, std::chrono::milliseconds now) {
    constexpr std::chrono::seconds k_patience{10};
    for (auto& [name, entry] : mirror.entries) {
        if (entry.awaited.empty() || now - entry.awaited_since < k_patience) { continue; }
        entry.awaited.clear();
        if (const auto held = std::exchange(entry.held, std::nullopt)) { put_seen(mirror, *held); }
    }
}

const value::Shape* MirrorReceiver::shape() {
    return api::ObjectDecoder().shape(Node::mapping({{"kind", mirror_.resource.kind}}), nullptr);
}

void MirrorReceiver::listed(std::vector<Node> objects) {
    const std::lock_guard lock(mutex_);
    mirror_.entries.clear();
    for (const auto& object : objects) { put_seen(mirror_, object); }
    mirror_.listed = true;
    ++mirror_.news;
    news_.notify_all();
}

void MirrorReceiver::changed(const kube::WatchEvent& event) {
    const std::lock_guard lock(mutex_);
    const std::string name = mirror_name(event.object);
    const auto found = mirror_.entries.find(name);
    const std::string version = event.object.get_string({"metadata", "resourceVersion"});
    // What is awaited was made after an older object of that name was deleted: what the watch brings of that one is
    // over.
    const std::string uid = event.object.get_string({"metadata", "uid"});
    const bool is_older = found != mirror_.entries.end() && !found->second.awaited.empty() && !uid.empty() &&
                          !found->second.uid.empty() && uid != found->second.uid;
    if (is_older) {
        // Nothing to take over.
    } else if (event.type == kube::EventType::deleted) {
        if (found != mirror_.entries.end()) { mirror_.entries.erase(found); }
    } else if (found == mirror_.entries.end() || found->second.awaited.empty()) {
        put_seen(mirror_, event.object);
    } else if (found->second.awaited == version) {
        found->second.awaited.clear();
        found->second.held.reset();
        remember_version(found->second, version);
    } else {
        found->second.held = event.object;
    }
    ++mirror_.news;
    news_.notify_all();
}

}  // namespace kmm::cluster
