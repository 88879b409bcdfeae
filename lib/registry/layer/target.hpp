// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a blob go.
#pragma once

#include <string>
#include <string_view>

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

}  // namespace kmm::registry
