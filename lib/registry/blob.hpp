// SPDX-License-Identifier: Apache-2.0
// Downloads content by digest, verified while it streams, resumed where it broke off.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "image/manifest.hpp"
#include "registry/session.hpp"

namespace kmm::registry {

/// Where the bytes of a blob go. Offsets are always 0 or the end of what was put before.
class BlobTarget {
public:
    virtual ~BlobTarget() = default;
    virtual void put(std::string_view bytes) = 0;
    /// Forgets everything put so far.
    virtual void restart() = 0;
};

/// Appends to a file. Errors: io.
class FileTarget final : public BlobTarget {
public:
    explicit FileTarget(int fd) : fd_(fd) {}
    void put(std::string_view bytes) override;
    void restart() override;

private:
    int fd_;
};

/// Keeps the bytes in memory.
class TextTarget final : public BlobTarget {
public:
    void put(std::string_view bytes) override { text_ += bytes; }
    void restart() override { text_.clear(); }
    [[nodiscard]] const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

/// Fetches the blob `wanted` into `target`. Never takes more than wanted.size bytes. A connection that breaks off is
/// resumed by a range request; a wrong digest is tried once more from the start; waits and tries as the session's
/// policy says, a try that brought a mebibyte counts as success. `on_bytes` hears the bytes present after each piece.
/// Errors: integrity 76 "digest-mismatch" with details expected and found, "size-mismatch"; those of Session::get.
void fetch_blob(Session& session, const image::Descriptor& wanted, BlobTarget& target,
                std::vector<std::string>& warnings, const std::function<void(std::uint64_t)>& on_bytes);

}  // namespace kmm::registry
