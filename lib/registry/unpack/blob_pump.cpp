// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/blob_pump.hpp"

#include <string_view>

namespace kmm::registry {

BlobPump::BlobPump(sandbox::Confined& parser, ByteSource& blob)
    : parser_(parser), blob_(blob), thread_([this] { work(); }) {}

BlobPump::~BlobPump() { thread_.join(); }

void BlobPump::finish() {
    ended_.wait(false);
    if (failure_) {
        std::rethrow_exception(failure_);
    }
}

void BlobPump::work() noexcept {
    char last = k_blob_end;
    try {
        while (!stopped_) {
            const std::string_view piece = blob_.next();
            if (piece.empty()) {
                break;
            }
            if (!parser_.try_send({&k_blob_bytes, 1}, piece)) {
                break;  // who receives notices that, too
            }
        }
        last = stopped_ ? k_blob_given_up : k_blob_end;
    } catch (...) {
        failure_ = std::current_exception();
        last = k_blob_given_up;
    }
    static_cast<void>(parser_.try_send({&last, 1}, {}));
    ended_ = true;
    ended_.notify_all();
}

}  // namespace kmm::registry
