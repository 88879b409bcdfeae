// SPDX-License-Identifier: Apache-2.0
// The layers of an image on their way: downloaded and proven in a thread of its own while the reader already works on
// them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "registry/layer/source.hpp"
#include "registry/layer/target.hpp"

namespace kmm::registry {

/// What next() throws when bytes that it gave were not those of the blob. Everything made of them has to go; settle()
/// says the same, and the layer begins again.
struct Withdrawn {};

/// Gives the bytes of one layer after the other while they arrive, at most k_ahead bytes behind what has come; in front
/// of a slow reader the download waits. Bytes are NOT proven when next() gives them. The end of a layer is: next() is
/// empty only when the whole blob was right, so whoever read to the end may keep what was made of it, after settle()
/// has said so.
class LayerFeed final : public ByteSource, private BlobTarget {
public:
    /// Puts blob `index` into the target and returns when it is proven, as ImageStore::blob does. Runs in the feed's
    /// thread.
    using Fetch = std::function<void(std::size_t index, BlobTarget& target)>;

    /// Begins to fetch `count` layers. `stop` is called before the thread is waited for, so that it can end a transfer.
    LayerFeed(std::size_t count, Fetch fetch, std::function<void()> stop);
    ~LayerFeed() override;
    LayerFeed(const LayerFeed&) = delete;
    LayerFeed& operator=(const LayerFeed&) = delete;

    /// Bytes of the current layer, from any thread, one at a time. Throws Withdrawn; what `fetch` threw for this layer.
    [[nodiscard]] std::string_view next() override;
    /// Ends the current layer, passing over what is left of it. True: it was proven, and the next one is current.
    /// False: bytes were withdrawn, and the same one is current again, from its start. Throws what `fetch` threw for
    /// this layer.
    [[nodiscard]] bool settle();

private:
    enum class Kind { bytes, withdrawn, proven, failed };
    struct Event {
        Kind kind = Kind::bytes;
        std::vector<char> bytes{};
        std::exception_ptr failure{};
    };

    void put(std::string_view bytes) override;
    void restart() override;
    void work(std::size_t count);
    void add_locked(Event event);
    [[nodiscard]] bool ready() const;

    static constexpr std::size_t k_piece = 128U << 10U;
    static constexpr std::size_t k_ahead = 1U << 20U;

    Fetch fetch_;
    std::function<void()> stop_;
    std::mutex mutex_;
    std::condition_variable arrived_;  ///< for the reader
    std::condition_variable room_;     ///< for the download
    std::deque<Event> events_;         ///< in the order of the stream; its last piece may still be growing
    std::vector<std::vector<char>> spare_;
    std::vector<char> current_;  ///< what next() gave last
    std::size_t waiting_ = 0;    ///< bytes in events_
    bool taken_ = false;         ///< the reader has bytes of the current layer
    bool withdrawn_ = false;     ///< next() has thrown Withdrawn, and settle() was not asked since
    bool stopping_ = false;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace kmm::registry
