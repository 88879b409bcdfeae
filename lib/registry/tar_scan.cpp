// SPDX-License-Identifier: Apache-2.0
#include "registry/tar_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_scanned_block = 512;
constexpr std::uint64_t k_extension_max = 64U << 10U;
/// POSIX, GNU tar (D K L M N S V), Solaris (A X), and old archives whose type is a NUL or a blank.
constexpr std::string_view k_known_types{"\0 01234567ADKLMNSVXgx", 21};

/// The number in an octal field; nullopt for a number in base 256 and for anything else.
std::optional<std::uint64_t> octal(std::string_view field) {
    field = field.substr(0, field.find('\0'));
    while (field.starts_with(' ')) {
        field.remove_prefix(1);
    }
    while (field.ends_with(' ')) {
        field.remove_suffix(1);
    }
    return base::parse_number<std::uint64_t>(field, 8);
}

bool checksum_fits(std::string_view block) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
        sum += i >= 148 && i < 156 ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(block[i]);
    }
    return octal(block.substr(148, 8)) == sum;
}

}  // namespace

std::string_view TarScan::next() {
    const std::string_view piece = input_.next();
    at_end_ = piece.empty();
    empty_ = empty_ && piece.empty();
    if (following_ && !seen_end_) {
        look(piece);
    } else if (no_entry_) {
        only_zeros(piece);
    }
    return piece;
}

void TarScan::look_to_end() {
    while (no_entry_ && !at_end_) {
        static_cast<void>(next());
    }
}

/// What comes after an end that nothing came before.
void TarScan::only_zeros(std::string_view piece) const {
    if (seen_end_ && piece.find_first_not_of('\0') != std::string_view::npos) {
        throw Error(Exit::data, "bad-layer", "expected a tar archive, found zeros and then something else");
    }
}

void TarScan::look(std::string_view piece) {
    while (!piece.empty() && following_ && !seen_end_) {
        if (skip_ != 0) {
            const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, piece.size()));
            const auto kept = static_cast<std::size_t>(std::min<std::uint64_t>(wanted_, part));
            extension_ += piece.substr(0, kept);
            wanted_ -= kept;
            skip_ -= part;
            piece.remove_prefix(part);
            if (skip_ == 0 && !extension_.empty()) {
                take_extension(extension_);
                extension_.clear();
            }
            continue;
        }
        const std::size_t part = std::min(k_scanned_block - have_, piece.size());
        std::copy_n(piece.begin(), part, block_.begin() + static_cast<std::ptrdiff_t>(have_));
        have_ += part;
        piece.remove_prefix(part);
        if (have_ == k_scanned_block) {
            have_ = 0;
            header();
        }
    }
    if (no_entry_) {
        only_zeros(piece);
    }
}

void TarScan::header() {
    const std::string_view block(block_.data(), block_.size());
    if (block.find_first_not_of('\0') == std::string_view::npos) {
        seen_end_ = true;
        return;
    }
    no_entry_ = false;
    const char type = block[156];
    auto size = octal(block.substr(124, 12));
    if (!checksum_fits(block) || !size) {
        following_ = false;
        return;
    }
    if (k_known_types.find(type) == std::string_view::npos) {
        const std::string name(block.substr(0, std::min<std::size_t>(block.find('\0'), 100)));
        throw Error(Exit::data, "bad-layer", fmt::format("expected a type of entry that tar knows, found \"{}\" for \"{}\"", base::escape(std::string(1, type)), base::escape(name)));
    }
    if (type == 'x') {
        if (*size > k_extension_max) {
            following_ = false;
            return;
        }
        wanted_ = *size;
    } else if (type != 'g' && type != 'K' && type != 'L') {
        size = next_size_ ? next_size_ : size;
        next_size_.reset();
        const bool file = type == '0' || type == '7' || type == '\0' || type == ' ';
        following_ = file || *size == 0;  // readers do not agree on what a link or directory with content is
    }
    if (*size > ~std::uint64_t{0} - k_scanned_block) {
        following_ = false;
        return;
    }
    skip_ = (*size + k_scanned_block - 1) / k_scanned_block * k_scanned_block;
}

/// Records "LENGTH KEY=VALUE\n", as strict as Go's reader, which other tools use: libarchive passes over what it cannot read, and cuts
/// names off at a NUL, so the entry would have another name here than elsewhere.
void TarScan::take_extension(std::string_view bytes) {
    const auto malformed = [](const char* found) {
        return Error(Exit::data, "bad-layer", fmt::format("expected a pax header of records LENGTH KEY=VALUE in the layer, found {}", found));
    };
    while (!bytes.empty()) {
        std::size_t length = 0;
        const auto [end, fault] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), length);
        const auto digits = static_cast<std::size_t>(end - bytes.data());
        if (fault != std::errc{} || length > bytes.size() || length < digits + 3 || *end != ' ' || bytes[length - 1] != '\n') {
            throw malformed("another length");
        }
        const std::string_view record = bytes.substr(digits + 1, length - digits - 2);
        bytes.remove_prefix(length);
        if (record.find('=') == std::string_view::npos) {
            throw malformed("no =");
        }
        if ((record.starts_with("path=") || record.starts_with("linkpath=")) && record.find('\0') != std::string_view::npos) {
            throw malformed("a NUL in a name");
        }
        if (record.starts_with("GNU.sparse.")) {
            following_ = false;
            return;
        }
        if (record.starts_with("size=")) {
            const auto size = base::parse_number<std::uint64_t>(record.substr(5));
            following_ = following_ && size;
            next_size_ = size.value_or(0);
        }
    }
}

}  // namespace kmm::registry
