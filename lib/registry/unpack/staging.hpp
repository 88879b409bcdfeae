// SPDX-License-Identifier: Apache-2.0
// The private directory that a pull writes into: numbered files first, the finished tree at the end, nothing on
// failure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "image/digest.hpp"
#include "registry/layer/layer_view.hpp"
#include "registry/unpack/extracted.hpp"
#include "sys/fd.hpp"

namespace kmm::registry {

/// The SHA-256 of a file, in 32 bytes; or that it was not hashed.
class FileSum {
public:
    FileSum() = default;  ///< not hashed
    explicit FileSum(const image::Digest& digest);
    /// In lower-case hex; "" if it was not hashed.
    [[nodiscard]] std::string hex() const;

private:
    std::array<std::uint8_t, 32> bytes_{};  ///< all zero if it was not hashed: no file is known whose sum that is
};

/// A file that was written under its number.
struct StoredFile {
    std::uint64_t size = 0;
    FileSum sha256;
};

/// What ExtractedFiles is made of.
struct ExtractedTree {
    ViewNodes nodes;
    std::vector<StoredFile> contents;  ///< by ContentId
};

/// Whether publish() waits until the files are on the disk: for a directory that outlives the program.
enum class Durability { scratch, durable };

/// Owns what a pull puts below `out_dir` until publish() has succeeded; removes that, and nothing that others put
/// there, otherwise. Every path is opened
/// relative to the descriptor of the directory, beneath it, through no link.
class Staging {
public:
    /// First removes what a pull into `out_dir` that was killed left behind. Errors: io "out-dir" unless `out_dir` is
    /// then an existing, empty directory, and while another pull is at work in it.
    explicit Staging(std::string out_dir, Durability durability = Durability::scratch);
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    /// An empty file without a name, for a downloaded blob; gone when closed. Errors: io.
    [[nodiscard]] sys::Fd unnamed_file() const;
    /// Fails with io "no-space" unless `bytes` and a tenth more are free.
    void need_space(std::uint64_t bytes) const;

    /// Writes content number `id`: begin, any number of append, end. Errors: io.
    void begin_file(ContentId id);
    void append(std::string_view bytes);
    void end_file(StoredFile stored);
    /// How many contents are complete, and the return to that: later ones, and one that was begun, are removed. Errors:
    /// io.
    [[nodiscard]] std::size_t count() const noexcept { return stored_.size(); }
    void forget_after(std::size_t count);
    [[nodiscard]] const StoredFile& stored(ContentId id) const { return stored_.at(id); }
    /// All of them, for whoever needs nothing else any more.
    [[nodiscard]] std::vector<StoredFile> take_stored() { return std::move(stored_); }
    /// A complete content, before publish(). Errors: io.
    [[nodiscard]] sys::Fd open_content(ContentId id) const;

    /// Moves the files of `view` to their paths, makes its links and directories, removes what is left over. A name
    /// that somebody else has taken is an error, and never replaced. Errors: io; what this pull made is removed then.
    void publish(const LayerView& view);

private:
    [[nodiscard]] sys::Fd open_directory(const std::string& path, bool create) const;
    [[nodiscard]] Error another_pull() const;
    /// Removes what of the finished tree is in its place already, as the list in `work` names it.
    void remove_moved(const sys::Fd& work) const;
    void remove_unfinished() const;
    void move_out(const LayerView& view);
    void remove_everything() noexcept;

    std::string out_dir_;
    sys::Fd root_;
    sys::Fd work_;  ///< locked as long as this lives
    sys::Fd tree_;  ///< in it: where the finished tree is built up
    sys::Fd file_;
    std::vector<StoredFile> stored_;
    bool durable_ = false;
    bool owned_ = false;
};

/// True if `directory` holds what a pull into it that was killed has left: pull() removes that first.
[[nodiscard]] bool has_unfinished_pull(const std::string& directory);

}  // namespace kmm::registry
