// SPDX-License-Identifier: Apache-2.0
// Tar archives and compressed streams, well formed or not, built byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kmm::test {

/// Fields of one ustar header as a test wants them.
struct TarHeader {
    std::string name;
    char type = '0';
    std::string link;
    std::uint64_t size = 0;
    unsigned mode = 0644;
    std::string raw_size;  ///< the twelve bytes of the size field, if they are to be odd
    std::string raw_mode, raw_uid, raw_mtime;
};

class TarBuilder {
public:
    TarBuilder& raw(const TarHeader& header, std::string_view data = {});
    TarBuilder& file(const std::string& name, std::string_view data, unsigned mode = 0644);
    TarBuilder& dir(const std::string& name);
    TarBuilder& symlink(const std::string& name, const std::string& target);
    TarBuilder& hardlink(const std::string& name, const std::string& target);
    /// Character device.
    TarBuilder& device(const std::string& name);
    /// A pax extended header ("path", "size", "SCHILY.xattr.…") for the next entry.
    TarBuilder& pax(const std::string& key, const std::string& value);
    TarBuilder& pax(const std::vector<std::pair<std::string, std::string>>& records);
    /// With the two zero blocks at the end.
    [[nodiscard]] std::string finish() const;
    /// Without them.
    [[nodiscard]] const std::string& blocks() const noexcept { return bytes_; }

private:
    std::string bytes_;
};

/// A GNU sparse file (old format) that claims `real_size` bytes, all of them holes, in 512 bytes.
[[nodiscard]] std::string sparse_entry(const std::string& name, std::uint64_t real_size);
/// The same with bytes in it, each text at its offset, in order, at most three.
[[nodiscard]] std::string sparse_entry(const std::string& name, std::uint64_t real_size,
                                       const std::vector<std::pair<std::uint64_t, std::string>>& texts);

[[nodiscard]] std::string gzip(std::string_view bytes);
[[nodiscard]] std::string zstd(std::string_view bytes);
/// A zstd frame of `count` zeros that does not need `count` bytes of memory; `window_log` 0 for the default.
[[nodiscard]] std::string zstd_zeros(std::uint64_t count, int window_log = 0);

}  // namespace kmm::test
