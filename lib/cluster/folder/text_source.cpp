// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/text_source.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/last_errno.hpp"
#include "base/text.hpp"
#include "sys/missing_file.hpp"

namespace kmm::cluster {

TextSource::TextSource(const std::string& name) : name_(name), fd_(STDIN_FILENO) {
    if (name_ != "-") {
        opened_.reset(::open(name_.c_str(), O_RDONLY | O_CLOEXEC));
        const int saved = errno;
        if (!opened_) { throw sys::open_error(saved, name_); }
        fd_ = opened_.get();
    }
    struct stat info {};
    // A standard input that somebody has read from starts where it stands.
    seekable_ = ::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && ::lseek(fd_, 0, SEEK_CUR) == 0;
}

std::size_t TextSource::read_fd(char* into, std::size_t size) {
    for (;;) {
        const ssize_t got = ::read(fd_, into, size);
        const int saved = errno;
        if (got < 0 && saved == EINTR) { continue; }
        if (got < 0) { throw from_errno(saved, "cannot read " + name_); }
        const auto count = static_cast<std::size_t>(got);
        if (!seekable_ && keeps_all_) {
            keeps_all_ = kept_.size() + count <= k_whole_max;
            if (keeps_all_) {
                kept_.append(into, count);
            } else {
                kept_ = std::string();
            }
        }
        return count;
    }
}

void TextSource::unpack() {
    constexpr std::size_t k_chunk = std::size_t{1} << 16U;
    std::string packed = std::move(front_);
    for (std::size_t count = 1; count != 0;) {
        const auto before = packed.size();
        packed.resize(before + k_chunk);
        count = read_fd(packed.data() + before, k_chunk);
        packed.resize(before + count);
        if (packed.size() > k_whole_max) { break; }
    }
    const auto text = base::from_gzip(packed, k_whole_max);
    if (!text) {
        throw Error(Exit::data, "unreadable-file",
                    fmt::format("expected a whole gzip stream with at most {} in it", base::format_bytes(k_whole_max)));
    }
    // A file that is read from its start again like any other.
    opened_.reset(::memfd_create("kmm-unpacked", MFD_CLOEXEC));
    if (!opened_) { throw LastErrno().error("cannot unpack " + name_); }
    fd_ = opened_.get();
    for (std::string_view rest = *text; !rest.empty();) {
        const ssize_t put = ::write(fd_, rest.data(), rest.size());
        const int saved = errno;
        if (put < 0 && saved != EINTR) { throw from_errno(saved, "cannot unpack " + name_); }
        rest.remove_prefix(put < 0 ? 0 : static_cast<std::size_t>(put));
    }
    if (::lseek(fd_, 0, SEEK_SET) != 0) { throw LastErrno().error("cannot unpack " + name_); }
    seekable_ = true;
    kept_ = std::string();
}

std::string_view TextSource::front() {
    constexpr std::size_t k_front = std::size_t{1} << 14U;
    if (front_.empty()) {
        front_.resize(k_front);
        front_.resize(read_fd(front_.data(), k_front));
        if (base::is_gzip(front_)) {
            unpack();
            front_.resize(k_front);
            front_.resize(read_fd(front_.data(), k_front));
        }
    }
    return front_;
}

std::size_t TextSource::read(char* into, std::size_t size) {
    if (front_at_ == front_.size()) { return read_fd(into, size); }
    const std::size_t count = std::min(size, front_.size() - front_at_);
    std::memcpy(into, front_.data() + front_at_, count);
    front_at_ += count;
    return count;
}

std::optional<std::size_t> TextSource::size() const {
    struct stat info {};
    if (!seekable_ || ::fstat(fd_, &info) != 0) { return std::nullopt; }
    return static_cast<std::size_t>(info.st_size);
}

void TextSource::rewind() {
    if (::lseek(fd_, 0, SEEK_SET) != 0) { throw LastErrno().error("cannot read " + name_ + " again"); }
    front_at_ = front_.size();
}

std::optional<std::string> TextSource::whole() {
    constexpr std::size_t k_chunk = std::size_t{1} << 16U;
    if (seekable_) {
        rewind();
        kept_.clear();
    }
    while (keeps_all_ && kept_.size() <= k_whole_max) {
        std::string chunk(k_chunk, '\0');
        const std::size_t count = read_fd(chunk.data(), chunk.size());
        if (count == 0) { return std::move(kept_); }
        if (seekable_) { kept_.append(chunk, 0, count); }
    }
    return std::nullopt;
}

}  // namespace kmm::cluster
