// SPDX-License-Identifier: Apache-2.0
// How the bytes of a blob get to the process that reads its layer.
#pragma once

#include <atomic>
#include <exception>
#include <thread>

#include "registry/layer/source.hpp"
#include "sandbox/confined.hpp"

namespace kmm::registry {

// How messages to the process begin, behind the request: bytes of the blob, its end, or that nothing more comes of it.
inline constexpr char k_blob_bytes = 'b', k_blob_end = 'e', k_blob_given_up = 'g';

/// Brings the blob to the process, in a thread of its own.
class BlobPump {
public:
    BlobPump(sandbox::Confined& parser, ByteSource& blob);
    ~BlobPump();
    BlobPump(const BlobPump&) = delete;
    BlobPump& operator=(const BlobPump&) = delete;

    /// From now on the blob is given up at its next piece.
    void stop() noexcept { stopped_ = true; }
    /// Waits for the end, and throws what the blob has thrown.
    void finish();

private:
    void work() noexcept;

    sandbox::Confined& parser_;
    ByteSource& blob_;
    std::atomic<bool> stopped_{false};
    std::atomic<bool> ended_{false};
    std::exception_ptr failure_;
    std::thread thread_;  ///< last: it uses the rest
};

}  // namespace kmm::registry
