// SPDX-License-Identifier: Apache-2.0
// Sources: Go archive/tar (reader.go, strconv.go), libarchive archive_read_support_format_tar.c, GNU tar list.c, Python
// tarfile.py.
#include "registry/unpack/tar_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"

namespace kmm::registry {

namespace {

constexpr std::string_view k_posix{"ustar\00000", 8};
constexpr std::string_view k_gnu{"ustar  \0", 8};
constexpr std::size_t k_magic = 257;
constexpr std::size_t k_prefix = 345;
constexpr std::size_t k_star_prefix_length = 131;  // times follow, and "tar" at the end of the header

struct Field {
    std::size_t begin, length;
    std::string_view name;
};

constexpr std::array k_of_all{Field{100, 8, "mode"}, Field{108, 8, "user"}, Field{116, 8, "group"},
                              Field{136, 12, "time"}};
constexpr std::array k_of_ustar{Field{329, 8, "device"}, Field{337, 8, "device"}};
constexpr std::array k_of_star{Field{476, 12, "time"}, Field{488, 12, "time"}};
constexpr std::array k_of_gnu{Field{k_prefix, 12, "time"}, Field{357, 12, "time"}};

/// True if Go's reader finds a number of 63 bits and a sign: in base 256, or octal between NULs and blanks.
bool is_number(std::string_view field) {
    if (static_cast<unsigned char>(field.front()) >= 0x80) {
        const unsigned char fill = (field.front() & 0x40) != 0 ? 0xff : 0;
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < field.size(); ++i) {
            if (value >> 56U != 0) return false;
            const auto byte = static_cast<unsigned>(static_cast<unsigned char>(field[i]) ^ fill);
            value = value << 8U | (i == 0 ? byte & 0x7fU : byte);
        }
        return value >> 63U == 0;
    }
    constexpr std::string_view around("\0 ", 2);
    field.remove_prefix(std::min(field.find_first_not_of(around), field.size()));
    field = field.substr(0, field.find_last_not_of(around) + 1);
    return field.empty() || base::parse_number<std::uint64_t>(text_in(field), 8).has_value();
}

/// The sum of the bytes, or of what they are with a sign: old programs wrote that one, and readers take it.
bool checksum_fits(std::string_view block) {
    std::int64_t sum = 0;
    std::int64_t with_signs = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const char byte = i >= 148 && i < 156 ? ' ' : block[i];
        sum += static_cast<unsigned char>(byte);
        with_signs += static_cast<signed char>(byte);
    }
    const std::string_view field = block.substr(148, 8);
    const auto said = field.front() == '\x80' ? std::nullopt : number_in(field);  // Go's reader wants an octal one
    return said && (static_cast<std::int64_t>(*said) == sum || static_cast<std::int64_t>(*said) == with_signs);
}

void check_numbers(std::string_view block, const auto& fields) {
    for (const Field& field : fields) {
        const std::string_view bytes = block.substr(field.begin, field.length);
        if (is_number(bytes)) continue;
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected an octal number as {}, found \"{}\" for \"{}\"", field.name,
                                base::escape(bytes), base::escape(text_in(block.substr(0, 100)))));
    }
}

/// A prefix counts for all in a header of POSIX only. Go's reader takes one in a header of GNU where the times that are
/// there are none, Python's in one without a format, and both where the version is another one. star's is shorter.
void check_prefix(std::string_view block) {
    if (block[k_prefix] == '\0') return;
    const std::string_view format = block.substr(k_magic, 8);
    if (format == k_posix) {
        const std::string_view prefix = block.substr(k_prefix, k_star_prefix_length);
        if (!block.ends_with(std::string_view("tar\0", 4)) || prefix.find('\0') != std::string_view::npos) return;
    } else if (format == k_gnu) {
        check_numbers(block, k_of_gnu);
        return;
    }
    throw Error(Exit::data, "bad-layer",
                fmt::format("expected version 00 of the tar format where a name has a prefix, found \"{}\" for \"{}\"",
                            base::escape(format), base::escape(text_in(block.substr(0, 100)))));
}

bool is_decimal(std::string_view text) {
    if (text.starts_with('+')) {
        text.remove_prefix(1);
        if (text.starts_with('-')) return false;
    }
    return base::parse_number<std::int64_t>(text).has_value();
}

bool is_time(std::string_view text) {
    const auto dot = std::min(text.find('.'), text.size());
    return is_decimal(text.substr(0, dot)) &&
           text.substr(std::min(dot + 1, text.size())).find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view field) {
    if (!field.empty() && field.front() == '\x80') {
        std::uint64_t value = 0;
        for (const char c : field.substr(1)) {
            if (value >> 55U != 0) {
                return std::nullopt;
            }
            value = value << 8U | static_cast<unsigned char>(c);
        }
        return value;
    }
    if (field.find_first_not_of(std::string_view("\0 ", 2)) == std::string_view::npos) {
        return 0;
    }
    field = text_in(field);
    while (field.starts_with(' ')) {
        field.remove_prefix(1);
    }
    while (field.ends_with(' ')) {
        field.remove_suffix(1);
    }
    return base::parse_number<std::uint64_t>(field, 8);
}

void check_tar_header(std::string_view block) {
    if (!checksum_fits(block)) {
        throw Error(Exit::data, "bad-layer", "expected a tar archive, found a block that is not a header of one");
    }
    check_numbers(block, k_of_all);
    const bool posix = block.substr(k_magic, 6) == k_posix.substr(0, 6);
    if (posix || block.substr(k_magic, 8) == k_gnu) check_numbers(block, k_of_ustar);
    if (posix && block.ends_with(std::string_view("tar\0", 4))) check_numbers(block, k_of_star);
    check_prefix(block);
}

std::string_view fault_of_record(std::string_view key, std::string_view value) {
    if (key == "SUN.holesdata" || key == "SCHILY.realsize") return "a size or holes of a file that some readers ignore";
    if (value.empty()) return {};
    if ((key == "uname" || key == "gname") && value.find('\0') != std::string_view::npos) return "a NUL in a name";
    if ((key == "uid" || key == "gid") && !is_decimal(value)) return "an owner that is not a number";
    if ((key == "mtime" || key == "atime" || key == "ctime") && !is_time(value)) return "a time that is not a number";
    return {};
}

}  // namespace kmm::registry
