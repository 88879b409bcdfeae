// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/source.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/error.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_file_piece = 256U << 10U;
constexpr std::uint64_t k_ratio_free_bytes = 16U << 20U;

}  // namespace

Error limit_error(const std::string& what, const std::string& name, std::uint64_t maximum) {
    return Error(Exit::unsafe, "image-limit", fmt::format("{} exceeds the limit of {}", what, maximum))
        .hint(fmt::format("if the image is trustworthy: kmm-worker takes it with --limit {}=VALUE", name));
}

FileSource::FileSource(int fd, std::uint64_t size_hint)
    : fd_(fd), capacity_(static_cast<std::size_t>(std::clamp<std::uint64_t>(size_hint, 4096, k_file_piece))),
      buffer_(std::make_unique_for_overwrite<char[]>(capacity_)) {}

std::string_view FileSource::next() {
    while (true) {
        const ssize_t got = ::pread(fd_, buffer_.get(), capacity_, static_cast<off_t>(offset_));
        if (got < 0) {
            const int saved = errno;
            if (saved == EINTR) {
                continue;
            }
            throw from_errno(saved, "reading a downloaded layer");
        }
        offset_ += static_cast<std::uint64_t>(got);
        return {buffer_.get(), static_cast<std::size_t>(got)};
    }
}

CheckedSource::CheckedSource(ByteSource& input, std::uint64_t compressed_bytes, const Limits& limits,
                             InflateBudget& budget, std::function<void()> on_piece)
    : input_(input),
      compressed_bytes_(compressed_bytes),
      limits_(limits),
      budget_(budget),
      on_piece_(std::move(on_piece)) {}

std::string_view CheckedSource::next() {
    const std::string_view piece = input_.next();
    if (on_piece_) {
        on_piece_();
    }
    bytes_ += piece.size();
    budget_.image_bytes += piece.size();
    if (bytes_ > limits_.inflated_layer_bytes) {
        throw limit_error("the inflated layer", "inflated_layer_bytes", limits_.inflated_layer_bytes);
    }
    if (budget_.image_bytes > limits_.inflated_bytes) {
        throw limit_error("the inflated image", "inflated_bytes", limits_.inflated_bytes);
    }
    if (bytes_ > k_ratio_free_bytes && bytes_ / std::max<std::uint64_t>(1, limits_.ratio) > compressed_bytes_) {
        throw limit_error("the ratio of inflated to compressed bytes of the layer", "ratio", limits_.ratio);
    }
    return piece;
}

void CheckedSource::drain() {
    while (!next().empty()) {
    }
}

}  // namespace kmm::registry
