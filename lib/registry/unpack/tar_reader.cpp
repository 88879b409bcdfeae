// SPDX-License-Identifier: Apache-2.0
// The one place that knows libarchive. Only its tar format is enabled and none of its filters: what is read was
// inflated, counted and hashed by us.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/unpack/layer_writer.hpp"
#include "registry/unpack/tar_reader.hpp"
#include "sys/shared_library.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_block = 512;
constexpr std::array<char, k_block> k_padding{};
constexpr std::array<char, 64U << 10U> k_hole{};

/// What is called of libarchive. With an XML parser, its tables of all the world's characters and five compressions it
/// takes a third of the start of a process, and of the commands only those that read a layer need it.
class LibArchive {
    sys::SharedLibrary library_{"libarchive.so.13", "libarchive13"};

public:
    decltype(&archive_entry_clear) entry_clear =
        library_.function<decltype(archive_entry_clear)>("archive_entry_clear");
    decltype(&archive_entry_filetype) entry_filetype =
        library_.function<decltype(archive_entry_filetype)>("archive_entry_filetype");
    decltype(&archive_entry_free) entry_free = library_.function<decltype(archive_entry_free)>("archive_entry_free");
    decltype(&archive_entry_hardlink) entry_hardlink =
        library_.function<decltype(archive_entry_hardlink)>("archive_entry_hardlink");
    decltype(&archive_entry_mode) entry_mode = library_.function<decltype(archive_entry_mode)>("archive_entry_mode");
    decltype(&archive_entry_new) entry_new = library_.function<decltype(archive_entry_new)>("archive_entry_new");
    decltype(&archive_entry_pathname) entry_pathname =
        library_.function<decltype(archive_entry_pathname)>("archive_entry_pathname");
    decltype(&archive_entry_set_filetype) entry_set_filetype =
        library_.function<decltype(archive_entry_set_filetype)>("archive_entry_set_filetype");
    decltype(&archive_entry_set_gid) entry_set_gid =
        library_.function<decltype(archive_entry_set_gid)>("archive_entry_set_gid");
    decltype(&archive_entry_set_mtime) entry_set_mtime =
        library_.function<decltype(archive_entry_set_mtime)>("archive_entry_set_mtime");
    decltype(&archive_entry_set_pathname) entry_set_pathname =
        library_.function<decltype(archive_entry_set_pathname)>("archive_entry_set_pathname");
    decltype(&archive_entry_set_perm) entry_set_perm =
        library_.function<decltype(archive_entry_set_perm)>("archive_entry_set_perm");
    decltype(&archive_entry_set_size) entry_set_size =
        library_.function<decltype(archive_entry_set_size)>("archive_entry_set_size");
    decltype(&archive_entry_set_uid) entry_set_uid =
        library_.function<decltype(archive_entry_set_uid)>("archive_entry_set_uid");
    decltype(&archive_entry_size) entry_size = library_.function<decltype(archive_entry_size)>("archive_entry_size");
    decltype(&archive_entry_sparse_count) entry_sparse_count =
        library_.function<decltype(archive_entry_sparse_count)>("archive_entry_sparse_count");
    decltype(&archive_entry_sparse_next) entry_sparse_next =
        library_.function<decltype(archive_entry_sparse_next)>("archive_entry_sparse_next");
    decltype(&archive_entry_sparse_reset) entry_sparse_reset =
        library_.function<decltype(archive_entry_sparse_reset)>("archive_entry_sparse_reset");
    decltype(&archive_entry_symlink) entry_symlink =
        library_.function<decltype(archive_entry_symlink)>("archive_entry_symlink");
    decltype(&archive_error_string) error_string =
        library_.function<decltype(archive_error_string)>("archive_error_string");
    decltype(&archive_read_data_block) read_data_block =
        library_.function<decltype(archive_read_data_block)>("archive_read_data_block");
    decltype(&archive_read_free) read_free = library_.function<decltype(archive_read_free)>("archive_read_free");
    decltype(&archive_read_new) read_new = library_.function<decltype(archive_read_new)>("archive_read_new");
    decltype(&archive_read_next_header) read_next_header =
        library_.function<decltype(archive_read_next_header)>("archive_read_next_header");
    decltype(&archive_read_open) read_open = library_.function<decltype(archive_read_open)>("archive_read_open");
    decltype(&archive_read_support_format_tar) read_support_format_tar =
        library_.function<decltype(archive_read_support_format_tar)>("archive_read_support_format_tar");
    decltype(&archive_set_error) set_error = library_.function<decltype(archive_set_error)>("archive_set_error");
    decltype(&archive_write_close) write_close =
        library_.function<decltype(archive_write_close)>("archive_write_close");
    decltype(&archive_write_data) write_data = library_.function<decltype(archive_write_data)>("archive_write_data");
    decltype(&archive_write_free) write_free = library_.function<decltype(archive_write_free)>("archive_write_free");
    decltype(&archive_write_header) write_header =
        library_.function<decltype(archive_write_header)>("archive_write_header");
    decltype(&archive_write_new) write_new = library_.function<decltype(archive_write_new)>("archive_write_new");
    decltype(&archive_write_open) write_open = library_.function<decltype(archive_write_open)>("archive_write_open");
    decltype(&archive_write_set_bytes_in_last_block) write_set_bytes_in_last_block =
        library_.function<decltype(archive_write_set_bytes_in_last_block)>("archive_write_set_bytes_in_last_block");
    decltype(&archive_write_set_format_pax_restricted) write_set_format_pax_restricted =
        library_.function<decltype(archive_write_set_format_pax_restricted)>("archive_write_set_format_pax_restricted");
};

const LibArchive& la() {
    static const LibArchive loaded;
    return loaded;
}

/// libarchive's tar, handed on piece by piece. Exceptions do not pass through C: they wait in `failure`.
struct TarOutput {
    const std::function<void(std::string_view)>& sink;
    std::exception_ptr failure;

    static la_ssize_t write(archive* /*handle*/, void* user, const void* data, std::size_t size) {
        auto& self = *static_cast<TarOutput*>(user);
        try {
            self.sink({static_cast<const char*>(data), size});
            return static_cast<la_ssize_t>(size);
        } catch (...) {
            self.failure = std::current_exception();
            return -1;
        }
    }

    void check(la_ssize_t code, archive* handle) const {
        if (failure) {
            std::rethrow_exception(failure);
        }
        if (code < ARCHIVE_WARN) {
            const char* text = la().error_string(handle);
            throw bug(std::string("libarchive could not write a tar: ") + (text == nullptr ? "?" : text));
        }
    }
};

/// Where the last bytes that are stored of a file with holes end.
std::uint64_t end_of_stored(archive_entry* header) {
    std::uint64_t end = 0;
    la_int64_t offset = 0;
    la_int64_t length = 0;
    static_cast<void>(la().entry_sparse_reset(header));
    while (la().entry_sparse_next(header, &offset, &length) == ARCHIVE_OK) {
        if (offset >= 0 && length > 0) {
            end = std::max(end, static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(length));
        }
    }
    return end;
}

}  // namespace

struct TarReader::Impl {
    ByteSource& input;
    archive* reader = nullptr;
    std::string_view first;  ///< read ahead to know an empty stream
    bool first_used = false;
    bool opened = false;
    bool ended = false;
    std::size_t tail = 0;      ///< bytes of the last block, 0 if it is whole
    std::uint64_t total = 0;   ///< bytes of the stream so far
    std::uint64_t size = 0;    ///< of the current entry's content
    bool sparse = false;       ///< the entry's content is stored with holes left out
    std::uint64_t stored_end = 0;  ///< where the last bytes that are stored of it end
    std::uint64_t position = 0;  ///< of the current entry's content: what was handed on
    std::uint64_t hole_end = 0;  ///< where `block` begins
    std::string_view block;      ///< content that comes after a hole
    std::exception_ptr failure;

    explicit Impl(ByteSource& source) : input(source) {}
    ~Impl() {
        if (reader != nullptr) {
            la().read_free(reader);
        }
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    static la_ssize_t read(archive* handle, void* user, const void** data) {
        auto& self = *static_cast<Impl*>(user);
        try {
            const std::string_view piece = self.first_used ? self.input.next() : self.first;
            self.first_used = true;
            self.total += piece.size();
            if (piece.empty() && !self.ended) {
                // umoci insert, for one, writes neither what fills up the last block nor the end mark. Go's reader
                // takes that, and so do the tools built on it.
                self.ended = true;
                self.tail = self.total % k_block;
                *data = k_padding.data();
                return static_cast<la_ssize_t>((k_block - self.tail) % k_block);
            }
            *data = piece.data();
            return static_cast<la_ssize_t>(piece.size());
        } catch (...) {
            self.failure = std::current_exception();
            la().set_error(handle, EIO, "the layer's bytes could not be read");
            return -1;
        }
    }

    /// Where the last block was filled up: the stream must have ended with the content of the last entry.
    void check_tail() const {
        if (tail == 0 || (!sparse && size % k_block == tail)) return;
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected a tar archive, found its last block cut off after {} of 512 bytes", tail));
    }

    void check(int code, const char* doing) const {
        if (failure) {
            std::rethrow_exception(failure);
        }
        if (code < ARCHIVE_WARN) {
            const char* text = la().error_string(reader);
            throw Error(Exit::data, "bad-layer",
                        fmt::format("expected a tar archive, {}: {}", doing,
                                    base::escape(text == nullptr ? "unreadable" : text)));
        }
    }
};

/// The library is loaded here, while the first bytes are still on their way.
TarReader::TarReader(ByteSource& input) : impl_(std::make_unique<Impl>(input)) { static_cast<void>(la()); }
TarReader::~TarReader() = default;

bool TarReader::next(LayerEntry& entry) {
    if (!impl_->opened) {
        impl_->opened = true;
        impl_->first = impl_->input.next();
        if (impl_->first.empty()) {
            return false;
        }
        impl_->reader = la().read_new();
        if (impl_->reader == nullptr || la().read_support_format_tar(impl_->reader) != ARCHIVE_OK) {
            throw bug("libarchive gave no tar reader");
        }
        impl_->check(la().read_open(impl_->reader, impl_.get(), nullptr, &Impl::read, nullptr), "opening it");
    }
    if (impl_->reader == nullptr) {
        return false;
    }
    archive_entry* header = nullptr;
    const int code = la().read_next_header(impl_->reader, &header);
    if (code == ARCHIVE_EOF && !impl_->failure) {
        impl_->check_tail();
        return false;
    }
    impl_->check(code == ARCHIVE_RETRY ? ARCHIVE_FATAL : code, "reading an entry");
    entry = LayerEntry{};
    impl_->size = 0;
    impl_->sparse = false;
    impl_->position = 0;
    impl_->hole_end = 0;
    impl_->block = {};
    const char* name = la().entry_pathname(header);
    const char* hardlink = la().entry_hardlink(header);
    if (name == nullptr) {
        throw Error(Exit::data, "bad-layer", "expected a readable name for every entry of the layer, found none");
    }
    entry.name = name;
    if (hardlink != nullptr) {
        entry.kind = EntryKind::hardlink;
        entry.target = hardlink;
        return true;
    }
    switch (la().entry_filetype(header)) {
        case AE_IFREG: entry.kind = EntryKind::file; break;
        case AE_IFDIR: entry.kind = EntryKind::directory; break;
        case AE_IFLNK: {
            entry.kind = EntryKind::symlink;
            const char* target = la().entry_symlink(header);
            entry.target = target == nullptr ? "" : target;
            break;
        }
        case 0:
            throw Error(
                Exit::data, "bad-layer",
                fmt::format("expected a hard link with a target, found \"{}\" without", base::escape(entry.name)));
        default: entry.kind = EntryKind::special; break;
    }
    const la_int64_t size = la().entry_size(header);
    if (size < 0) {
        throw Error(Exit::data, "bad-layer", "expected a size that is not negative, found " + std::to_string(size));
    }
    entry.size = static_cast<std::uint64_t>(size);
    entry.sparse = la().entry_sparse_count(header) > 0;
    impl_->stored_end = entry.sparse ? end_of_stored(header) : 0;
    impl_->size = entry.size;
    impl_->sparse = entry.sparse;
    entry.executable = (la().entry_mode(header) & 0111U) != 0;
    return true;
}

std::string_view TarReader::content() {
    Impl& at = *impl_;
    while (at.block.empty()) {
        const void* data = nullptr;
        std::size_t size = 0;
        la_int64_t offset = 0;
        const int code = la().read_data_block(at.reader, &data, &size, &offset);
        at.check(code < ARCHIVE_OK ? ARCHIVE_FATAL : ARCHIVE_OK, "reading a file");
        at.check_tail();
        if (code == ARCHIVE_EOF) {
            if (at.position >= at.stored_end) return {};
            throw Error(Exit::data, "bad-layer",
                        fmt::format("expected {} bytes of a sparse file as its map lists them, found {}", at.stored_end,
                                    at.position));
        }
        if (static_cast<std::uint64_t>(offset) < at.position) {
            throw Error(Exit::data, "bad-layer", "expected a tar archive, reading a file: its pieces are out of order");
        }
        at.block = {static_cast<const char*>(data), size};
        at.hole_end = static_cast<std::uint64_t>(offset);
    }
    std::string_view piece;
    if (at.position < at.hole_end) {
        piece = std::string_view(k_hole.data(), k_hole.size()).substr(0, at.hole_end - at.position);
    } else {
        std::swap(piece, at.block);
    }
    at.position += piece.size();
    return piece;
}

struct TarWriter::Impl {
    explicit Impl(std::function<void(std::string_view)> target) : sink(std::move(target)) {
        if (!writer || !entry || la().write_set_format_pax_restricted(writer.get()) != ARCHIVE_OK ||
            la().write_set_bytes_in_last_block(writer.get(), 1) != ARCHIVE_OK) {
            throw bug("libarchive gave no tar writer");
        }
    }

    std::function<void(std::string_view)> sink;
    TarOutput tar{sink, nullptr};
    std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry{la().entry_new(), la().entry_free};
    std::unique_ptr<archive, decltype(&archive_write_free)> writer{la().write_new(),
                                                                   la().write_free};  // last: its end may write
    bool open = false;
};

TarWriter::TarWriter(std::function<void(std::string_view)> sink) : impl_(std::make_unique<Impl>(std::move(sink))) {}

TarWriter::~TarWriter() {
    if (impl_->open) {
        impl_->sink = [](std::string_view) {};  // given up in the middle: nothing more is to be written
    }
}

void TarWriter::begin(const std::string& path, std::uint64_t size, bool executable) {
    if (!impl_->open) {
        impl_->tar.check(la().write_open(impl_->writer.get(), &impl_->tar, nullptr, &TarOutput::write, nullptr),
                         impl_->writer.get());
        impl_->open = true;
    }
    archive_entry* entry = impl_->entry.get();
    la().entry_clear(entry);
    la().entry_set_pathname(entry, path.c_str());
    la().entry_set_filetype(entry, AE_IFREG);
    la().entry_set_perm(entry, executable ? 0755 : 0644);
    la().entry_set_uid(entry, 0);
    la().entry_set_gid(entry, 0);
    la().entry_set_mtime(entry, 0, 0);
    la().entry_set_size(entry, static_cast<la_int64_t>(size));
    impl_->tar.check(la().write_header(impl_->writer.get(), entry), impl_->writer.get());
}

void TarWriter::append(std::string_view bytes) {
    impl_->tar.check(la().write_data(impl_->writer.get(), bytes.data(), bytes.size()), impl_->writer.get());
}

void TarWriter::finish() {
    impl_->tar.check(la().write_close(impl_->writer.get()), impl_->writer.get());
    impl_->open = false;
}

void write_tar(const std::vector<LayerFile>& files, const std::function<void(std::string_view)>& sink) {
    TarWriter writer(sink);
    for (const LayerFile& file : files) {
        const std::string bytes = file.bytes();
        writer.begin(file.path, bytes.size(), file.executable);
        writer.append(bytes);
    }
    writer.finish();
}

}  // namespace kmm::registry
