// SPDX-License-Identifier: Apache-2.0
// A byte source that works ahead in a thread of its own.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "registry/source.hpp"

namespace kmm::registry {

/// Reads `input` in another thread, a few mebibytes ahead of the reader, so that inflating overlaps with hashing and writing on
/// two cores. Nobody else may use `input` while this lives; it must outlive this. What input throws, next() throws at its place
/// in the stream.
class ThreadedSource final : public ByteSource {
public:
    explicit ThreadedSource(ByteSource& input);
    ~ThreadedSource() override;
    ThreadedSource(const ThreadedSource&) = delete;
    ThreadedSource& operator=(const ThreadedSource&) = delete;
    [[nodiscard]] std::string_view next() override;

private:
    void work();

    static constexpr std::size_t k_slots = 4;
    ByteSource& input_;
    struct Slot {
        std::vector<char> bytes;
        std::size_t size = 0;  ///< of the piece, which begins at the front
    };
    std::array<Slot, k_slots> slots_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t filled_ = 0;  ///< pieces that were ever put in; piece i is in slot i % k_slots
    std::size_t taken_ = 0;   ///< pieces that the reader is done with
    bool reading_ = false;    ///< the reader holds piece taken_
    bool ended_ = false;
    bool stopping_ = false;
    std::exception_ptr failure_;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace kmm::registry
