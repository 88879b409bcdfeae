// SPDX-License-Identifier: Apache-2.0
#include "registry/client/store.hpp"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "registry/layer/hash.hpp"

namespace kmm::registry {

namespace {

constexpr const char* k_copy_again = "the image is damaged or was tampered with: copy it again";

}  // namespace

void copy_verified(ByteSource& source, const image::Descriptor& wanted, BlobTarget& target, const ByteCount& on_bytes,
               const std::function<void()>& check_deadline) {
    Hasher hasher(wanted.digest.algorithm);
    std::uint64_t have = 0;
    for (std::string_view piece = source.next(); !piece.empty(); piece = source.next()) {
        check_deadline();
        if (piece.size() > wanted.size - have) {
            throw Error(Exit::integrity, "size-mismatch", fmt::format("expected {} bytes, found more", wanted.size))
                .detail("blob", wanted.digest.to_string())
                .hint(k_copy_again);
        }
        hasher.update(piece);
        target.put(piece);
        have += piece.size();
        if (on_bytes) {
            on_bytes(have);
        }
    }
    if (have != wanted.size) {
        throw Error(Exit::integrity, "size-mismatch",
                    fmt::format("expected {} bytes, found only {}", wanted.size, have))
            .detail("blob", wanted.digest.to_string())
            .hint(k_copy_again);
    }
    const image::Digest found = hasher.finish();
    if (found != wanted.digest) {
        throw Error(Exit::integrity, "digest-mismatch", "the stored bytes are others than the image names")
            .detail("expected", wanted.digest.to_string())
            .detail("found", found.to_string())
            .hint(k_copy_again);
    }
}

}  // namespace kmm::registry
