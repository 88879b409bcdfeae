// SPDX-License-Identifier: Apache-2.0
// Being told of changes, without ever relying on it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client.hpp"

namespace kmm::kube {

enum class EventType { added, modified, deleted, bookmark };

struct WatchEvent {
    EventType type = EventType::modified;
    value::Node object;  ///< of a bookmark only metadata.resourceVersion counts
};

/// Why one watch request ended. `expired`: its resourceVersion is too old (410 as HTTP status or as ERROR event): list
/// again. `closed`: by the server, the network or its own time. `silent`: it was open all of its time and said nothing,
/// not even the bookmark that a server sends before the end: something on the way holds it back. `stopped`: the
/// receiver wanted no more.
enum class WatchEnd { closed, silent, expired, stopped };

/// One watch request from `resource_version` on, with bookmarks. `resource_version` follows what was seen, so that the
/// next request goes on from there; it is opaque and never compared. `receive` gets every event but bookmarks and says
/// whether to go on. `time` is how long the server is to keep it open; a connection that is dead for 10 s more is given
/// up. Errors: those of Client for failures that are no 410; an ERROR event that is no 410 ends it as `closed`.
[[nodiscard]] WatchEnd watch_once(Client& client, const Resource& resource, const ListQuery& query,
                                  std::string& resource_version, std::chrono::seconds time,
                                  const std::function<bool(const WatchEvent&)>& receive,
                                  const std::function<bool()>& stop = {});

/// Receives what `follow` sees, always from the thread that called it.
class WatchReceiver {
public:
    virtual ~WatchReceiver() = default;
    /// What lists may leave out, as for Client::list_all.
    [[nodiscard]] virtual const value::Shape* shape() { return nullptr; }
    /// Everything there is: at the beginning, and again after the server has forgotten what happened since.
    virtual void listed(std::vector<value::Node> objects) = 0;
    virtual void changed(const WatchEvent& event) = 0;
    /// Asked after each event and about once a second. May be called while a request is under way.
    [[nodiscard]] virtual bool finished() = 0;
};

/// Lists, then watches until the receiver has finished: reconnects when a watch ends (each lasts 240 to 300 s at most),
/// lists again after 410, waits longer each time when watches end at once. Errors: those of Client.
void follow(Client& client, const Resource& resource, const ListQuery& query, WatchReceiver& receiver);

/// Waits until `done` holds for the object (nullopt: it is not there). Looks at it, then watches it for at most `poll`,
/// then looks again, and so on: an event that is lost delays it, no more. False after `timeout`. Errors: those of
/// Client; "interrupted" when ClientOptions::stop_waiting says so, with exit 124 if no signal did.
[[nodiscard]] bool wait_for(Client& client, const Resource& resource, const Key& key,
                            const std::function<bool(const std::optional<value::Node>&)>& done,
                            std::chrono::milliseconds timeout, std::chrono::seconds poll = std::chrono::seconds(10));

/// What a wait ends with that nobody wants any more: "interrupted", with exit 124 if no signal has asked for it:
/// cli::run_main reports that one as "timeout".
[[nodiscard]] Error stopped_waiting(std::string_view what);

/// Cuts a watch's body into its JSON lines, however the network has cut it.
class LineCutter {
public:
    /// `take` gets each complete line and says whether to go on. Errors: "bad-answer" for a line over 64 MiB.
    [[nodiscard]] bool feed(std::string_view piece, const std::function<bool(std::string_view)>& take);

private:
    std::string rest_;
};

}  // namespace kmm::kube
