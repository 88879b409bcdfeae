// SPDX-License-Identifier: Apache-2.0
// Memory through which a confined process hands over many bytes without the kernel copying them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sys/fd.hpp"

namespace kmm::sys {

constexpr std::size_t k_ring_bytes = 1U << 20U;  ///< that a ring holds at a time

/// The memory of a ring in this process.
class RingMemory {
public:
    /// Maps the ring in `file`. Errors: from_errno.
    explicit RingMemory(const Fd& file);
    ~RingMemory();
    RingMemory(const RingMemory&) = delete;
    RingMemory& operator=(const RingMemory&) = delete;

protected:
    struct Control;
    [[nodiscard]] Control& control() const;
    [[nodiscard]] char* bytes() const;

private:
    void* address_;
};

/// The side that reads. It believes nothing that the memory says: the writer can change each byte at any time, so each
/// is to be used once.
class RingReader : public RingMemory {
public:
    /// A file for a new ring, which nobody can make shorter. Errors: from_errno.
    [[nodiscard]] static Fd make_file();

    using RingMemory::RingMemory;
    /// The next bytes, at least 1 and at most `most`, which is at most k_ring_bytes, until release(). Whether that many
    /// were written is the writer's word.
    [[nodiscard]] std::string_view view(std::size_t most) const;
    /// Lets the writer have the place of the next `size` bytes.
    void release(std::size_t size);

private:
    std::uint32_t taken_ = 0;
};

/// The side that writes, which is not dangerous to the reader.
class RingWriter : public RingMemory {
public:
    using RingMemory::RingMemory;
    /// Copies as much of the beginning of `bytes` as there is room for, and gives its length.
    [[nodiscard]] std::size_t write(std::string_view bytes);
    /// Waits until there is room. The reader must know of what was written.
    void wait_for_room();

private:
    std::uint32_t written_ = 0;
};

}  // namespace kmm::sys
