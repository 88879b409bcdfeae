// SPDX-License-Identifier: Apache-2.0
#include "sys/shared_ring.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/last_errno.hpp"

namespace kmm::sys {

/// At the beginning of the memory. Both count bytes, and begin again at 0 after 2^32.
struct RingMemory::Control {
    std::atomic<std::uint32_t> taken;  ///< written by the reader
    std::atomic<std::uint32_t> waits;  ///< written by the writer: 1 while it may be waiting for `taken` to change
};

namespace {

constexpr std::size_t k_control_page = 4096;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
    return ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

RingMemory::RingMemory(const Fd& file)
    : address_(::mmap(nullptr, k_control_page + k_ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)) {
    if (address_ == MAP_FAILED) throw LastErrno().error("mapping memory to share with a process");
}

RingMemory::~RingMemory() { static_cast<void>(::munmap(address_, k_control_page + k_ring_bytes)); }

RingMemory::Control& RingMemory::control() const { return *static_cast<Control*>(address_); }

char* RingMemory::bytes() const { return static_cast<char*>(address_) + k_control_page; }

Fd RingReader::make_file() {
    Fd file(::memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file || ::ftruncate(file.get(), k_control_page + k_ring_bytes) != 0 ||
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        throw LastErrno().error("making memory to share with a process");
    return file;
}

std::string_view RingReader::view(std::size_t most) const {
    const std::size_t at = taken_ % k_ring_bytes;
    return {bytes() + at, std::min(most, k_ring_bytes - at)};
}

void RingReader::release(std::size_t size) {
    taken_ += static_cast<std::uint32_t>(size);
    control().taken.store(taken_);
    if (control().waits.load() != 0) static_cast<void>(futex(control().taken, FUTEX_WAKE, 1));
}

std::size_t RingWriter::write(std::string_view from) {
    const std::size_t room = k_ring_bytes - (written_ - control().taken.load());
    const std::size_t size = std::min(room, from.size());
    const std::size_t at = written_ % k_ring_bytes;
    const std::size_t first = std::min(size, k_ring_bytes - at);
    std::memcpy(bytes() + at, from.data(), first);
    std::memcpy(bytes(), from.data() + first, size - first);
    written_ += static_cast<std::uint32_t>(size);
    return size;
}

void RingWriter::wait_for_room() {
    control().waits.store(1);
    while (true) {
        const std::uint32_t taken = control().taken.load();
        if (written_ - taken < k_ring_bytes) break;
        static_cast<void>(futex(control().taken, FUTEX_WAIT, taken));
    }
    control().waits.store(0);
}

}  // namespace kmm::sys
