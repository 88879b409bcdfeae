// SPDX-License-Identifier: Apache-2.0
// Reads a plain tar as a sequence of entries; writes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "registry/layer/entry_reader.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

/// A tar (ustar, GNU, pax) out of a byte source, entry by entry. Owners, times, extended attributes and access lists
/// are not even looked at. Reads no further than the end-of-archive mark, which may be missing, together with what
/// fills up the last block.
class TarReader final : public EntryReader {
public:
    /// `input` must outlive the reader.
    explicit TarReader(ByteSource& input);
    ~TarReader() override;
    TarReader(const TarReader&) = delete;
    TarReader& operator=(const TarReader&) = delete;

    /// The next entry; false at the end. An empty stream has no entries. Errors: data "bad-layer" for anything that is
    /// not a tar, damaged or cut short; what the source throws.
    [[nodiscard]] bool next(LayerEntry& entry) override;
    [[nodiscard]] std::string_view content() override;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// A tar (pax where ustar does not do), file after file, owned by root and dated 1970. Errors: what `sink` throws.
class TarWriter {
public:
    explicit TarWriter(std::function<void(std::string_view)> sink);
    ~TarWriter();
    TarWriter(const TarWriter&) = delete;
    TarWriter& operator=(const TarWriter&) = delete;
    /// Begins a regular file of exactly `size` bytes, which append() then brings.
    void begin(const std::string& path, std::uint64_t size, bool executable);
    void append(std::string_view bytes);
    /// Writes the end of the archive; nothing may follow.
    void finish();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

struct LayerFile;

/// Writes a tar (pax where ustar does not do) of `files` into `sink`, owned by root, dated 1970, in the order given.
/// Errors: what `sink` and the files' bytes throw.
void write_tar(const std::vector<LayerFile>& files, const std::function<void(std::string_view)>& sink);

}  // namespace kmm::registry
