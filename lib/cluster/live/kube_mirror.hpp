// SPDX-License-Identifier: Apache-2.0
// The objects of one kind as a watch has them, and our own writes before the watch brings them. Internal to
// this room.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/types.hpp"
#include "kube/watch.hpp"

namespace kmm::cluster {

/// One kind as the watch has it: objects with the version they were last seen in.
struct Mirror {
    kube::Resource resource;
    std::string label_selector;
    struct Entry {
        api::Objects objects;  ///< this one object
        Diagnostics diagnostics;
        std::string uid;               ///< "" if the server did not say; an object that was made anew has another one
        std::deque<std::string> seen;  ///< versions that the watch has brought, the latest last
        /// Version of our own write or reading that the watch has not brought yet: what it brings before is older.
        std::string awaited;
        std::chrono::milliseconds awaited_since{};
        std::optional<value::Node> held;  ///< the last such event, in case the awaited one never comes
    };
    std::map<std::string, Entry> entries;
    bool listed = false;
    bool is_lacking = false;  ///< the server has not the kind, so nobody watches
    std::uint64_t news = 0;  ///< how many times the watch has brought something
    std::exception_ptr failure;
    std::thread thread;
};

/// Takes what the watch, or the list, has brought.
void put_seen(Mirror& mirror, const value::Node& object);

/// Takes what an answer of the server has brought, unless the watch is further already. `now` is monotonic.
void put_answer(Mirror& mirror, const value::Node& object, std::chrono::milliseconds now);

/// Ends waiting for versions that have not come for ten seconds: a list that was read before our write may hide them.
void end_waiting(Mirror& mirror, std::chrono::milliseconds now);

/// Keeps a mirror fresh; `mutex` guards it.
class MirrorReceiver final : public kube::WatchReceiver {
public:
    MirrorReceiver(Mirror& mirror, std::mutex& mutex, std::condition_variable& news, const std::atomic<bool>& stopping)
        : mirror_(mirror), mutex_(mutex), news_(news), stopping_(stopping) {}

    [[nodiscard]] const value::Shape* shape() override;
    void listed(std::vector<value::Node> objects) override;
    void changed(const kube::WatchEvent& event) override;
    [[nodiscard]] bool finished() override { return stopping_; }

private:
    Mirror& mirror_;
    std::mutex& mutex_;
    std::condition_variable& news_;
    const std::atomic<bool>& stopping_;
};

}  // namespace kmm::cluster
