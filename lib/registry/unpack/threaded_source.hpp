// SPDX-License-Identifier: Apache-2.0
// A byte source that works ahead in a thread of its own.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "registry/layer/source.hpp"

namespace kmm::registry {

/// Reads `input` in another thread, six pieces ahead of the reader, so that inflating overlaps with hashing and writing
/// on two cores. Nobody else may use `input` while this lives; it must outlive this. What input throws, next() throws
/// at its place in the stream.
///
/// `also`, which may be empty, is done to every piece in their order, in whichever of the two threads would wait
/// otherwise, and never in both at once: the slower side of the two is spared. It has been done to all when next() says
/// that the end is reached.
class ThreadedSource final : public ByteSource {
public:
    explicit ThreadedSource(ByteSource& input, std::function<void(std::string_view)> also = {});
    ~ThreadedSource() override;
    ThreadedSource(const ThreadedSource&) = delete;
    ThreadedSource& operator=(const ThreadedSource&) = delete;
    [[nodiscard]] std::string_view next() override;

private:
    void work();
    [[nodiscard]] bool full() const;
    [[nodiscard]] bool behind() const { return also_ && done_ != filled_; }
    void wait_or_do(std::unique_lock<std::mutex>& lock);

    static constexpr std::size_t k_slots = 6;
    ByteSource& input_;
    std::function<void(std::string_view)> also_;
    struct Slot {
        std::vector<char> bytes;
        std::size_t size = 0;  ///< of the piece, which begins at the front
    };
    std::array<Slot, k_slots> slots_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t filled_ = 0;  ///< pieces that were ever put in; piece i is in slot i % k_slots
    std::size_t taken_ = 0;   ///< pieces that the reader is done with
    std::size_t done_ = 0;    ///< pieces that also_ was done to
    bool doing_ = false;      ///< some thread is doing it to piece done_
    bool reading_ = false;    ///< the reader holds piece taken_
    bool ended_ = false;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace kmm::registry
