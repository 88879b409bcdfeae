// SPDX-License-Identifier: Apache-2.0
// The one place of this room that knows libarchive: members of .deb and .rpm packages, and compressed files.
#include <archive.h>
#include <archive_entry.h>

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/devel.hpp"

namespace kmm::kernel {

namespace {

constexpr std::size_t k_member_max = 64U << 20U;
constexpr std::size_t k_members_max = 500'000;

struct ArchiveFree {
    void operator()(archive* reader) const noexcept { archive_read_free(reader); }
};
using Reader = std::unique_ptr<archive, ArchiveFree>;

[[noreturn]] void bad(const std::string& path, archive* reader, const char* expected) {
    const char* text = reader == nullptr ? nullptr : archive_error_string(reader);
    throw Error(Exit::data, "bad-package",
                fmt::format("{}: expected {}{}", base::escape(path), expected,
                            text == nullptr ? "" : fmt::format(": {}", base::escape(text))));
}

/// Filters that distributions use for packages and symvers; nothing that starts a program.
void allow_filters(archive* reader) {
    archive_read_support_filter_gzip(reader);
    archive_read_support_filter_xz(reader);
    archive_read_support_filter_zstd(reader);
    archive_read_support_filter_bzip2(reader);
    archive_read_support_filter_rpm(reader);
}

std::string content_of(archive* reader, const std::string& path) {
    std::string content;
    std::string piece(1U << 16U, '\0');
    for (;;) {
        const auto got = archive_read_data(reader, piece.data(), piece.size());
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
        return archive_read_data(self.outer, self.piece.data(), self.piece.size());
    }
};

void each_member(archive* reader, const std::string& path, const std::function<bool(std::string_view)>& wanted,
                 const std::function<void(std::string_view, std::string)>& take) {
    archive_entry* entry = nullptr;
    for (std::size_t count = 0;; ++count) {
        const int code = archive_read_next_header(reader, &entry);
        if (code == ARCHIVE_EOF) return;
        if (code < ARCHIVE_WARN) bad(path, reader, "a package");
        if (count >= k_members_max) bad(path, nullptr, "at most 500000 members");
        const char* name = archive_entry_pathname(entry);
        if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG || !wanted(name)) continue;
        const std::string kept = name;
        take(kept, content_of(reader, path));
    }
}

void read_deb(archive* outer, const std::string& path, const std::function<bool(std::string_view)>& wanted,
              const std::function<void(std::string_view, std::string)>& take) {
    archive_entry* entry = nullptr;
    for (int code = 0; (code = archive_read_next_header(outer, &entry)) != ARCHIVE_EOF;) {
        if (code < ARCHIVE_WARN) bad(path, outer, "a Debian package");
        const char* name = archive_entry_pathname(entry);
        if (name == nullptr || !std::string_view(name).starts_with("data.tar")) continue;
        Inner inner{outer};
        const Reader reader(archive_read_new());
        allow_filters(reader.get());
        archive_read_support_format_tar(reader.get());
        if (archive_read_open(reader.get(), &inner, nullptr, &Inner::read, nullptr) != ARCHIVE_OK)
            bad(path, reader.get(), "a data.tar in the package");
        each_member(reader.get(), path, wanted, take);
        return;
    }
    bad(path, nullptr, "a Debian package with a data.tar");
}

}  // namespace

void read_package(const std::string& path, const std::function<bool(std::string_view)>& wanted,
                  const std::function<void(std::string_view, std::string)>& take) {
    const Reader reader(archive_read_new());
    if (!reader) throw bug("libarchive gave no reader");
    const bool deb = path.ends_with(".deb");
    const bool rpm = path.ends_with(".rpm");
    allow_filters(reader.get());
    if (deb) {
        archive_read_support_format_ar(reader.get());
    } else if (rpm) {
        archive_read_support_format_cpio(reader.get());
    } else {
        archive_read_support_format_raw(reader.get());
    }
    if (archive_read_open_filename(reader.get(), path.c_str(), 1U << 16U) != ARCHIVE_OK)
        bad(path, reader.get(), deb ? "a Debian package" : rpm ? "an RPM package" : "a compressed file");
    if (deb) return read_deb(reader.get(), path, wanted, take);
    each_member(reader.get(), path, wanted, take);
}

}  // namespace kmm::kernel
