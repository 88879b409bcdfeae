// SPDX-License-Identifier: Apache-2.0
#include "kube/watch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sys/signals.hpp"
#include "value/reader.hpp"

namespace kmm::kube {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t k_line_max = std::size_t{64} << 20U;
constexpr seconds k_dead_after{10};

std::optional<EventType> event_type(const std::string& text) {
    if (text == "ADDED") { return EventType::added; }
    if (text == "MODIFIED") { return EventType::modified; }
    if (text == "DELETED") { return EventType::deleted; }
    if (text == "BOOKMARK") { return EventType::bookmark; }
    return std::nullopt;
}

/// State of one watch request.
struct Stream {
    std::string& resource_version;
    const std::function<bool(const WatchEvent&)>& receive;
    WatchEnd end = WatchEnd::closed;

    /// False to end the request.
    bool take(std::string_view line) {
        Diagnostics faults;
        auto documents = value::read_json(line, "watch", faults);
        if (documents.size() != 1 || has_errors(faults)) { return false; }  // broken off: connect again
        value::Node* object = documents.front().root.find("object");
        const std::string type = documents.front().root.get_string({"type"});
        if (object == nullptr) { return false; }
        if (type == "ERROR") {
            const Failure failure = read_failure(*object);
            if (failure.code == 410 || failure.reason == "Expired" || failure.reason == "Gone") {
                end = WatchEnd::expired;
            }
            return false;
        }
        const auto known = event_type(type);
        if (!known) { return true; }
        const std::string seen = object->get_string({"metadata", "resourceVersion"});
        const bool goes_on = *known == EventType::bookmark || receive(WatchEvent{*known, std::move(*object)});
        if (!seen.empty()) { resource_version = seen; }
        if (!goes_on) { end = WatchEnd::stopped; }
        return goes_on;
    }
};

bool is_broken_watch(const Error& error) {
    return error.code() == "network" || error.code() == "network-timeout" || error.code() == "bad-answer";
}

}  // namespace

bool LineCutter::feed(std::string_view piece, const std::function<bool(std::string_view)>& take) {
    for (;;) {
        const std::size_t end = piece.find('\n');
        if (end == std::string_view::npos) { break; }
        std::string_view line = piece.substr(0, end);
        if (!rest_.empty()) {
            rest_ += line;
            line = rest_;
        }
        const bool is_blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
        if (!is_blank && !take(line)) { return false; }
        rest_.clear();
        piece.remove_prefix(end + 1);
    }
    rest_ += piece;
    if (rest_.size() > k_line_max) {
        throw Error(Exit::unavailable, "bad-answer", "watch: expected an event of at most 64 MiB, found a longer one")
            .retryable();
    }
    return true;
}

WatchEnd watch_once(Client& client, const Resource& resource, const ListQuery& query, std::string& resource_version,
                    seconds time, const std::function<bool(const WatchEvent&)>& receive,
                    const std::function<bool()>& stop) {
    Call call;
    call.path = path_of(resource, Key{query.namespace_, ""});
    call.action = {
        "watch", resource.group, resource.plural, "", resource.scope == Scope::cluster ? "" : query.namespace_, ""};
    call.query = {{"watch", "true"}, {"allowWatchBookmarks", "true"}, {"timeoutSeconds", std::to_string(time.count())}};
    if (!resource_version.empty()) { call.query.emplace_back("resourceVersion", resource_version); }
    if (!query.label_selector.empty()) { call.query.emplace_back("labelSelector", query.label_selector); }
    if (!query.field_selector.empty()) { call.query.emplace_back("fieldSelector", query.field_selector); }
    call.timeout = time + k_dead_after;
    constexpr seconds k_nearly{1};
    const milliseconds start = client.clock().monotonic();
    bool stopped = false;
    bool has_begun = false;
    call.cancelled = [&] {
        stopped = stopped || (stop && stop());
        return stopped;
    };
    Stream stream{resource_version, receive};
    LineCutter cutter;
    call.on_piece = [&](std::string_view piece) {
        has_begun = true;
        return cutter.feed(piece, [&](std::string_view line) { return stream.take(line); });
    };
    call.is_answer = [](const Failure& failure) { return failure.code == 410; };
    call.one_try_after_data = [&] { return has_begun; };
    try {
        const Reply reply = client.exchange(call);
        if (reply.failure) { return WatchEnd::expired; }
    } catch (const Error& error) {
        if (error.code() == "interrupted" && stopped) { return WatchEnd::stopped; }
        if (!is_broken_watch(error)) { throw; }
    }
    const bool is_silent =
        stream.end == WatchEnd::closed && !has_begun && client.clock().monotonic() - start >= time - k_nearly;
    return is_silent ? WatchEnd::silent : stream.end;
}

void follow(Client& client, const Resource& resource, const ListQuery& query, WatchReceiver& receiver) {
    // Silence is believed for that long: a dead connection, or a proxy that keeps what it should pass on, looks as if
    // nothing happened.
    constexpr seconds k_short{20};
    constexpr double k_spread = 10.0;
    constexpr milliseconds k_too_quick{1000};
    const net::RetryPolicy& policy = client.options().retry;
    std::string version;
    int quick = 0;
    while (!receiver.finished()) {
        if (version.empty()) {
            ListMeta meta;
            receiver.listed(client.list_all(resource, query, &meta, receiver.shape()));
            version = meta.resource_version;
            if (receiver.finished()) { return; }
        }
        const milliseconds start = client.clock().monotonic();
        const seconds time = k_short + seconds(static_cast<int>(client.chance() * k_spread));
        bool has_event = false;
        const WatchEnd end = watch_once(
            client, resource, query, version, time,
            [&](const WatchEvent& event) {
                has_event = true;
                receiver.changed(event);
                return !receiver.finished();
            },
            [&] { return receiver.finished(); });
        if (end == WatchEnd::stopped) { return; }
        if (end == WatchEnd::expired || end == WatchEnd::silent) { version.clear(); }
        const bool is_quick = !has_event && client.clock().monotonic() - start < k_too_quick;
        quick = is_quick ? quick + 1 : 0;
        if (quick > 0 && !client.clock().sleep_for(net::retry_delay(policy, quick, std::nullopt, client.chance()))) {
            throw Error(Exit::interrupted, "interrupted", "interrupted while waiting for the API server");
        }
    }
}

Error stopped_waiting(std::string_view what) {
    const bool by_signal = sys::interrupt_requested();
    return Error(by_signal ? Exit::interrupted : Exit::timeout, "interrupted",
                 fmt::format("{} while waiting for {}", by_signal ? "interrupted" : "timed out", what));
}

bool wait_for(Client& client, const Resource& resource, const Key& key,
              const std::function<bool(const std::optional<value::Node>&)>& done, milliseconds timeout, seconds poll) {
    const milliseconds start = client.clock().monotonic();
    ListQuery query;
    query.namespace_ = key.namespace_;
    query.field_selector = "metadata.name=" + key.name;
    const auto& asked = client.options().stop_waiting;
    const auto is_unwanted = [&] { return asked && asked(); };
    for (int round = 0;; ++round) {
        if (is_unwanted()) { throw stopped_waiting(fmt::format("{} {}", resource.kind, key.to_string())); }
        const auto now_there = client.find(resource, key);
        if (done(now_there)) { return true; }
        const milliseconds left = timeout - (client.clock().monotonic() - start);
        if (left.count() <= 0) { return false; }
        // Without an object there is no version to go on from; the server then begins with what is there.
        std::string version = now_there ? now_there->get_string({"metadata", "resourceVersion"}) : "";
        const seconds time = std::clamp(std::chrono::ceil<seconds>(left), seconds(1), poll);
        const milliseconds round_start = client.clock().monotonic();
        bool is_done = false;
        bool has_event = false;
        const WatchEnd end = watch_once(
            client, resource, query, version, time,
            [&](const WatchEvent& event) {
                has_event = true;
                is_done = done(event.type == EventType::deleted ? std::nullopt : std::optional(event.object));
                return !is_done;
            },
            [&] { return is_unwanted() || client.clock().monotonic() - start >= timeout; });
        if (is_done) { return true; }
        const milliseconds lasted = client.clock().monotonic() - round_start;
        if (end != WatchEnd::stopped && !has_event && lasted < milliseconds(500)) {
            // A server that closes watches at once is polled.
            if (!client.clock().sleep_for(std::min<milliseconds>(left, milliseconds(1000) * std::min(round + 1, 5)))) {
                throw Error(Exit::interrupted, "interrupted", "interrupted while waiting for the API server");
            }
        }
    }
}

}  // namespace kmm::kube
