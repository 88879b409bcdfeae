// SPDX-License-Identifier: Apache-2.0
// The one place that knows libarchive. Only its tar format is enabled and none of its filters: what is read was inflated,
// counted and hashed by us.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <exception>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/tar_reader.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_piece = 256U << 10U;

}  // namespace

struct TarReader::Impl {
    ByteSource& input;
    archive* reader = nullptr;
    std::string_view first;  ///< read ahead to know an empty stream
    bool first_used = false;
    bool opened = false;
    std::exception_ptr failure;
    std::vector<char> buffer;

    explicit Impl(ByteSource& source) : input(source), buffer(k_piece) {}
    ~Impl() {
        if (reader != nullptr) {
            archive_read_free(reader);
        }
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    static la_ssize_t read(archive* handle, void* user, const void** data) {
        auto& self = *static_cast<Impl*>(user);
        try {
            const std::string_view piece = self.first_used ? self.input.next() : self.first;
            self.first_used = true;
            *data = piece.data();
            return static_cast<la_ssize_t>(piece.size());
        } catch (...) {
            self.failure = std::current_exception();
            archive_set_error(handle, EIO, "the layer's bytes could not be read");
            return -1;
        }
    }

    void check(int code, const char* doing) const {
        if (failure) {
            std::rethrow_exception(failure);
        }
        if (code < ARCHIVE_WARN) {
            const char* text = archive_error_string(reader);
            throw Error(Exit::data, "bad-layer",
                        fmt::format("expected a tar archive in the layer, {}: {}", doing,
                                    base::escape(text == nullptr ? "unreadable" : text)));
        }
    }
};

TarReader::TarReader(ByteSource& input) : impl_(std::make_unique<Impl>(input)) {}
TarReader::~TarReader() = default;

bool TarReader::next(LayerEntry& entry) {
    if (!impl_->opened) {
        impl_->opened = true;
        impl_->first = impl_->input.next();
        if (impl_->first.empty()) {
            return false;
        }
        impl_->reader = archive_read_new();
        if (impl_->reader == nullptr || archive_read_support_format_tar(impl_->reader) != ARCHIVE_OK) {
            throw bug("libarchive gave no tar reader");
        }
        impl_->check(archive_read_open(impl_->reader, impl_.get(), nullptr, &Impl::read, nullptr), "opening it");
    }
    if (impl_->reader == nullptr) {
        return false;
    }
    archive_entry* header = nullptr;
    const int code = archive_read_next_header(impl_->reader, &header);
    if (code == ARCHIVE_EOF && !impl_->failure) {
        return false;
    }
    impl_->check(code == ARCHIVE_RETRY ? ARCHIVE_FATAL : code, "reading an entry");
    entry = LayerEntry{};
    const char* name = archive_entry_pathname(header);
    const char* hardlink = archive_entry_hardlink(header);
    if (name == nullptr) {
        throw Error(Exit::data, "bad-layer", "expected a readable name for every entry of the layer, found none");
    }
    entry.name = name;
    if (hardlink != nullptr) {
        entry.kind = EntryKind::hardlink;
        entry.target = hardlink;
        return true;
    }
    switch (archive_entry_filetype(header)) {
        case AE_IFREG: entry.kind = EntryKind::file; break;
        case AE_IFDIR: entry.kind = EntryKind::directory; break;
        case AE_IFLNK: {
            entry.kind = EntryKind::symlink;
            const char* target = archive_entry_symlink(header);
            entry.target = target == nullptr ? "" : target;
            break;
        }
        default: entry.kind = EntryKind::special; break;
    }
    const la_int64_t size = archive_entry_size(header);
    if (size < 0) {
        throw Error(Exit::data, "bad-layer", "expected a size that is not negative, found " + std::to_string(size));
    }
    entry.size = static_cast<std::uint64_t>(size);
    entry.sparse = archive_entry_sparse_count(header) > 0;
    entry.executable = (archive_entry_mode(header) & 0111U) != 0;
    return true;
}

std::string_view TarReader::content() {
    const la_ssize_t got = archive_read_data(impl_->reader, impl_->buffer.data(), impl_->buffer.size());
    impl_->check(got < 0 ? ARCHIVE_FATAL : ARCHIVE_OK, "reading a file");
    return {impl_->buffer.data(), static_cast<std::size_t>(got)};
}

}  // namespace kmm::registry
