// SPDX-License-Identifier: Apache-2.0
// The one place of this room that knows libarchive: members of .deb and .rpm packages, and compressed files.
#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/devel.hpp"
#include "sys/shared_library.hpp"

namespace kmm::kernel {

namespace {

constexpr std::size_t k_member_max = 64U << 20U;
constexpr std::size_t k_members_max = 500'000;

/// What is called of libarchive, which a third of the start of a process would go to: of the commands only those that
/// read a package need it.
class LibArchive {
    sys::SharedLibrary library_{"libarchive.so.13", "libarchive13"};

public:
    decltype(&archive_entry_filetype) entry_filetype =
        library_.function<decltype(archive_entry_filetype)>("archive_entry_filetype");
    decltype(&archive_entry_pathname) entry_pathname =
        library_.function<decltype(archive_entry_pathname)>("archive_entry_pathname");
    decltype(&archive_error_string) error_string =
        library_.function<decltype(archive_error_string)>("archive_error_string");
    decltype(&archive_read_data) read_data = library_.function<decltype(archive_read_data)>("archive_read_data");
    decltype(&archive_read_free) read_free = library_.function<decltype(archive_read_free)>("archive_read_free");
    decltype(&archive_read_new) read_new = library_.function<decltype(archive_read_new)>("archive_read_new");
    decltype(&archive_read_next_header) read_next_header =
        library_.function<decltype(archive_read_next_header)>("archive_read_next_header");
    decltype(&archive_read_open) read_open = library_.function<decltype(archive_read_open)>("archive_read_open");
    decltype(&archive_read_open_filename) read_open_filename =
        library_.function<decltype(archive_read_open_filename)>("archive_read_open_filename");
    decltype(&archive_read_support_filter_bzip2) read_support_filter_bzip2 =
        library_.function<decltype(archive_read_support_filter_bzip2)>("archive_read_support_filter_bzip2");
    decltype(&archive_read_support_filter_gzip) read_support_filter_gzip =
        library_.function<decltype(archive_read_support_filter_gzip)>("archive_read_support_filter_gzip");
    decltype(&archive_read_support_filter_rpm) read_support_filter_rpm =
        library_.function<decltype(archive_read_support_filter_rpm)>("archive_read_support_filter_rpm");
    decltype(&archive_read_support_filter_xz) read_support_filter_xz =
        library_.function<decltype(archive_read_support_filter_xz)>("archive_read_support_filter_xz");
    decltype(&archive_read_support_filter_zstd) read_support_filter_zstd =
        library_.function<decltype(archive_read_support_filter_zstd)>("archive_read_support_filter_zstd");
    decltype(&archive_read_support_format_ar) read_support_format_ar =
        library_.function<decltype(archive_read_support_format_ar)>("archive_read_support_format_ar");
    decltype(&archive_read_support_format_cpio) read_support_format_cpio =
        library_.function<decltype(archive_read_support_format_cpio)>("archive_read_support_format_cpio");
    decltype(&archive_read_support_format_raw) read_support_format_raw =
        library_.function<decltype(archive_read_support_format_raw)>("archive_read_support_format_raw");
    decltype(&archive_read_support_format_tar) read_support_format_tar =
        library_.function<decltype(archive_read_support_format_tar)>("archive_read_support_format_tar");
};

const LibArchive& la() {
    static const LibArchive loaded;
    return loaded;
}

struct ArchiveFree {
    void operator()(archive* reader) const noexcept { la().read_free(reader); }
};
using Reader = std::unique_ptr<archive, ArchiveFree>;

[[noreturn]] void bad(const std::string& path, archive* reader, const char* expected) {
    const char* text = reader == nullptr ? nullptr : la().error_string(reader);
    throw Error(Exit::data, "bad-package",
                fmt::format("{}: expected {}{}", base::escape(path), expected,
                            text == nullptr ? "" : fmt::format(": {}", base::escape(text))));
}

/// Filters that distributions use for packages and symvers; nothing that starts a program.
void allow_filters(archive* reader) {
    la().read_support_filter_gzip(reader);
    la().read_support_filter_xz(reader);
    la().read_support_filter_zstd(reader);
    la().read_support_filter_bzip2(reader);
    la().read_support_filter_rpm(reader);
}

std::string content_of(archive* reader, const std::string& path) {
    std::string content;
    std::string piece(1U << 16U, '\0');
    for (;;) {
        const auto got = la().read_data(reader, piece.data(), piece.size());
        if (got < 0) bad(path, reader, "a package that can be read to its end");
        if (got == 0) return content;
        if (content.size() + static_cast<std::size_t>(got) > k_member_max)
            bad(path, nullptr, "members of at most 64 MiB");
        content.append(piece, 0, static_cast<std::size_t>(got));
    }
}

/// The archive inside an archive: its bytes come from the outer reader's current member.
struct Inner {
    archive* outer;
    std::string piece = std::string(1U << 16U, '\0');

    static la_ssize_t read(archive*, void* user, const void** data) {
        auto& self = *static_cast<Inner*>(user);
        *data = self.piece.data();
        return la().read_data(self.outer, self.piece.data(), self.piece.size());
    }
};

void each_member(archive* reader, const std::string& path, const std::function<bool(std::string_view)>& wanted,
                 const std::function<void(std::string_view, std::string)>& take) {
    archive_entry* entry = nullptr;
    for (std::size_t count = 0;; ++count) {
        const int code = la().read_next_header(reader, &entry);
        if (code == ARCHIVE_EOF) return;
        if (code < ARCHIVE_WARN) bad(path, reader, "a package");
        if (count >= k_members_max) bad(path, nullptr, "at most 500000 members");
        const char* name = la().entry_pathname(entry);
        if (name == nullptr || la().entry_filetype(entry) != AE_IFREG || !wanted(name)) continue;
        const std::string kept = name;
        take(kept, content_of(reader, path));
    }
}

void read_deb(archive* outer, const std::string& path, const std::function<bool(std::string_view)>& wanted,
              const std::function<void(std::string_view, std::string)>& take) {
    archive_entry* entry = nullptr;
    for (int code = 0; (code = la().read_next_header(outer, &entry)) != ARCHIVE_EOF;) {
        if (code < ARCHIVE_WARN) bad(path, outer, "a Debian package");
        const char* name = la().entry_pathname(entry);
        if (name == nullptr || !std::string_view(name).starts_with("data.tar")) continue;
        Inner inner{outer};
        const Reader reader(la().read_new());
        allow_filters(reader.get());
        la().read_support_format_tar(reader.get());
        if (la().read_open(reader.get(), &inner, nullptr, &Inner::read, nullptr) != ARCHIVE_OK)
            bad(path, reader.get(), "a data.tar in the package");
        each_member(reader.get(), path, wanted, take);
        return;
    }
    bad(path, nullptr, "a Debian package with a data.tar");
}

}  // namespace

void read_package(const std::string& path, const std::function<bool(std::string_view)>& wanted,
                  const std::function<void(std::string_view, std::string)>& take) {
    const Reader reader(la().read_new());
    if (!reader) throw bug("libarchive gave no reader");
    const bool deb = path.ends_with(".deb");
    const bool rpm = path.ends_with(".rpm");
    allow_filters(reader.get());
    if (deb) {
        la().read_support_format_ar(reader.get());
    } else if (rpm) {
        la().read_support_format_cpio(reader.get());
    } else {
        la().read_support_format_raw(reader.get());
    }
    if (la().read_open_filename(reader.get(), path.c_str(), 1U << 16U) != ARCHIVE_OK)
        bad(path, reader.get(), deb ? "a Debian package" : rpm ? "an RPM package" : "a compressed file");
    if (deb) return read_deb(reader.get(), path, wanted, take);
    each_member(reader.get(), path, wanted, take);
}

}  // namespace kmm::kernel
