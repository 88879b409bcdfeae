// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/tar_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "registry/unpack/tar_header.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_scanned_block = 512;
constexpr std::size_t k_more_holes =
    482;  // in a header of GNU's former sparse files: not 0 if a block with more holes follows,
constexpr std::size_t k_more_holes_again = 504;  // and in that block, if another one does
constexpr std::uint64_t k_extension_max = 1U << 20U;
constexpr std::uint64_t k_most_bytes = 1ULL << 62U;
constexpr std::size_t k_segments =
    386;  // of GNU's former sparse files, in a header: 4 of them, and 21 in each block behind it
/// What neither files nor links are: readers make of them what they like.
constexpr std::string_view k_odd_types = "ADMNVX";
/// POSIX, GNU tar (D K L M N S V), Solaris (A X), and old archives whose type is a NUL or a blank.
constexpr std::string_view k_known_types{"\0 01234567ADKLMNSVXgx", 21};

/// How many bytes the segments of a sparse file in GNU's former format have: `block` lists up to `count` from `begin`
/// on. nullopt if a number is none.
std::optional<std::uint64_t> bytes_of_segments(std::string_view block, std::size_t begin, std::size_t count) {
    constexpr std::size_t k_field = 12;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count && block[begin] != '\0'; ++i, begin += 2 * k_field) {
        const auto bytes = number_in(block.substr(begin + k_field, k_field));
        if (!number_in(block.substr(begin, k_field)) || !bytes) return std::nullopt;
        sum += std::min(*bytes, k_most_bytes - std::min(sum, k_most_bytes));
    }
    return sum;
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
    if (behind_holes_) {
        add_segments(bytes_of_segments(block, 0, 21));
        if (block[k_more_holes_again] == '\0') {
            check_stored(segment_bytes_);
            skip_ = *std::exchange(behind_holes_, std::nullopt);
        }
        return;
    }
    if (block.find_first_not_of('\0') == std::string_view::npos) {
        seen_end_ = std::exchange(seen_zeros_, true);
        return;
    }
    if (seen_zeros_) {  // some readers end there, some go on, some refuse it
        throw Error(Exit::data, "bad-layer",
                    no_entry_ ? "expected a tar archive, found zeros and then something else"
                              : "expected two blocks of zeros at the end of the tar, found one and then more");
    }
    no_entry_ = false;
    const char type = block[156];
    check_tar_header(block);
    auto size = number_in(block.substr(124, 12));
    if (!size) {  // libarchive takes what is before the fault
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected an octal number as size, found \"{}\" for \"{}\"",
                                base::escape(block.substr(124, 12)), base::escape(text_in(block.substr(0, 100)))));
    }
    const auto refused = [&](const char* expected, const char* more = "") {
        return Error(Exit::data, "bad-layer",
                     fmt::format("expected {}, found \"{}\"{} for \"{}\"", expected, base::escape(std::string(1, type)),
                                 more, base::escape(text_in(block.substr(0, 100)))));
    };
    if (k_known_types.find(type) == std::string_view::npos) {
        throw refused("a type of entry that tar knows");
    }
    if (type == 'x' || type == 'g' || type == 'K' || type == 'L') {
        if (*size > k_extension_max) {
            throw refused("a pax header or long name of at most 1 MiB", " with more");
        }
        wanted_ = *size;
        extension_type_ = type;
        any_pax_ = any_pax_ || type == 'x' || type == 'g';
    } else {
        entry(type, block);
        size = said_.size ? said_.size : size;
        stored_ = *size;
        if (type != 'S' && said_.segments) check_stored(*said_.segments);
        said_ = {};
        any_pax_ = any_pax_ || type == 'X';
        if (type >= '1' && type <= '6') {
            // For readers of pax archives the content of a hard link follows, for others it has none; of the rest no
            // one has.
            if (type == '1' && *size != 0 && any_pax_) {
                throw refused("a hard link without content", " with some");
            }
            size = 0;
        } else if (k_odd_types.find(type) != std::string_view::npos && *size != 0) {
            throw refused("files, directories and links", " with content");
        }
    }
    if (*size > ~std::uint64_t{0} - k_scanned_block) {
        following_ = false;
        return;
    }
    skip_ = (*size + k_scanned_block - 1) / k_scanned_block * k_scanned_block;
    if (type == 'S') {
        segment_bytes_ = 0;
        add_segments(bytes_of_segments(block, k_segments, 4));
        if (block[k_more_holes] == '\0') {
            check_stored(segment_bytes_);
        } else {
            behind_holes_ = std::exchange(skip_, 0);
        }
    }
}

void TarScan::add_segments(std::optional<std::uint64_t> bytes) {
    if (!bytes) {
        throw Error(Exit::data, "bad-layer", "expected octal numbers in the map of a sparse file, found others");
    }
    segment_bytes_ += std::min(*bytes, k_most_bytes - std::min(segment_bytes_, k_most_bytes));
}

/// Of a file with holes, the bytes that are stored: some readers fill up what is missing with zeros.
void TarScan::check_stored(std::uint64_t segments) const {
    if (segments == stored_) return;
    throw Error(Exit::data, "bad-layer",
                fmt::format("expected the {} bytes of a sparse file that its map lists, found {}", segments, stored_));
}

/// For some a file whose name ends with a slash is a file, for others a directory.
void TarScan::entry(char type, std::string_view block) const {
    const std::string_view own = text_in(block.substr(0, 100));
    const std::string_view path = said_.path ? std::string_view(*said_.path) : own;
    if ((type == '0' || type == '7') && path.ends_with('/')) {
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected a file's name, found \"{}\" with a slash at its end", base::escape(path)));
    }
    if (type == 'S' && block.substr(257, 8) != std::string_view("ustar  \0", 8)) {
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected a sparse file in GNU's format of tar, found \"{}\" in another one",
                                base::escape(path)));
    }
}

void TarScan::name(std::optional<std::string>& which, std::string_view text) const {
    if (which) {
        throw Error(Exit::data, "bad-layer",
                    fmt::format("expected one name for each entry of the layer, found \"{}\" and \"{}\" for the same",
                                base::escape(*which), base::escape(text)));
    }
    which = text;
}

void TarScan::take_extension(std::string_view bytes) {
    if (extension_type_ == 'x') {
        take_pax(bytes);
    } else if (extension_type_ == 'g') {
        take_global(bytes);
    } else {
        name(extension_type_ == 'L' ? said_.path : said_.target, text_in(bytes));
    }
}

namespace {

Error malformed_pax(std::string_view found) {
    return Error(Exit::data, "bad-layer",
                 fmt::format("expected a pax header of records LENGTH KEY=VALUE in the layer, found {}", found));
}

/// Takes the first record "LENGTH KEY=VALUE\n" off `bytes`: its key and value.
std::pair<std::string_view, std::string_view> next_record(std::string_view& bytes) {
    std::size_t length = 0;
    const auto [end, fault] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), length);
    const auto digits = static_cast<std::size_t>(end - bytes.data());
    if (fault != std::errc{} || length > bytes.size() || length < digits + 3 || *end != ' ' ||
        bytes[length - 1] != '\n') {
        throw malformed_pax("another length");
    }
    const std::string_view record = bytes.substr(digits + 1, length - digits - 2);
    bytes.remove_prefix(length);
    const auto equals = record.find('=');
    if (equals == std::string_view::npos) throw malformed_pax("no =");
    if (equals == 0) throw malformed_pax("no key");
    // libarchive reads keys up to the NUL: another one than what other readers see.
    if (record.substr(0, equals).find('\0') != std::string_view::npos) throw malformed_pax("a NUL in a key");
    const std::pair result{record.substr(0, equals), record.substr(equals + 1)};
    if (const auto found = fault_of_record(result.first, result.second); !found.empty()) throw malformed_pax(found);
    return result;
}

/// What pax headers say of a sparse file: its map in one record, or in two for each segment; that of version 1.0 is
/// before its content.
struct SparseMap {
    std::optional<std::uint64_t> segments;  ///< as announced
    std::uint64_t listed = 0, paired = 0;   ///< numbers in the one record, and in pairs of records
    std::uint64_t bytes = 0;                ///< of the segments
    std::map<std::string_view, std::string_view> others;  ///< version, sizes and name

    void add(std::string_view number) {
        const auto value = base::parse_number<std::uint64_t>(number);
        if (!value) throw malformed_pax("no number in the map of a sparse file");
        if ((listed + paired) % 2 != 0) bytes += std::min(*value, k_most_bytes - std::min(bytes, k_most_bytes));
    }

    /// Takes a record if it is one of them.
    void take(std::string_view key, std::string_view value) {
        if (!key.starts_with("GNU.sparse.")) return;
        if (key == "GNU.sparse.map") {
            if (listed != 0) throw malformed_pax("two maps of a sparse file");
            if (value.empty()) return;
            for (const std::string_view number : base::split(value, ',')) {
                add(number);
                ++listed;
            }
        } else if (key == "GNU.sparse.offset" || key == "GNU.sparse.numbytes") {
            if ((paired % 2 == 0) != (key == "GNU.sparse.offset")) {
                throw malformed_pax("offsets and sizes of a sparse file's segments out of order");
            }
            add(value);
            ++paired;
        } else if (!others.emplace(key, value).second) {
            throw malformed_pax("one thing said twice of a sparse file");
        } else if (key == "GNU.sparse.numblocks") {
            segments = base::parse_number<std::uint64_t>(value);
            if (!segments) throw malformed_pax("no count of a sparse file's segments");
        } else if (key.ends_with("size") && !base::parse_number<std::uint64_t>(value)) {
            throw malformed_pax("a size of a sparse file that is not a number");
        }
    }

    /// The bytes of the segments that records list, nullopt if there are none. What is neither of the three formats
    /// that GNU tar has written is a sparse file for some readers, and an ordinary one under another name for others.
    [[nodiscard]] std::optional<std::uint64_t> check() const {
        const auto given = listed + paired;
        if (given == 0 && others.empty()) return std::nullopt;
        if (listed != 0 && paired != 0) throw malformed_pax("two maps of a sparse file");
        if ((given != 0 || segments) && (given % 2 != 0 || given / 2 != segments)) {
            throw malformed_pax("a sparse file with another number of segments than it announces");
        }
        const auto said = [&](std::string_view key) {
            const auto found = others.find(key);
            return found == others.end() ? std::string_view() : found->second;
        };
        const auto major = said("GNU.sparse.major");
        const auto minor = said("GNU.sparse.minor");
        const bool in_content = major == "1" && minor == "0";
        const bool in_records = (major.empty() && minor.empty()) || (major == "0" && (minor == "0" || minor == "1"));
        const bool sized = said("GNU.sparse.size").empty() != said("GNU.sparse.realsize").empty();
        if (!(in_content ? given == 0 : in_records && given != 0) || !sized) {
            throw malformed_pax("a sparse file in no format that GNU tar writes");
        }
        return in_content ? std::nullopt : std::optional(bytes);
    }
};

}  // namespace

/// A name or a size of all entries that follow: GNU tar takes it, Go's reader and libarchive do not.
void TarScan::take_global(std::string_view bytes) const {
    while (!bytes.empty()) {
        const auto [key, value] = next_record(bytes);
        if (key == "path" || key == "linkpath" || key == "size" || key.starts_with("GNU.sparse.")) {
            throw Error(Exit::data, "bad-layer",
                        fmt::format("expected {} for each entry of the layer, found it for all that follow", key));
        }
    }
}

/// As strict as Go's reader, which other tools use: libarchive passes over what it cannot read, and cuts names off at a
/// NUL, so the entry would have another name here than elsewhere.
void TarScan::take_pax(std::string_view bytes) {
    if (std::exchange(said_.pax, true)) {
        throw malformed_pax("two for one entry");
    }
    std::optional<std::string_view> path;
    std::optional<std::string_view> target;
    std::optional<std::string_view> sparse_path;  // takes the place of a path that is made up
    SparseMap map;
    while (!bytes.empty()) {
        const auto [key, value] = next_record(bytes);
        for (auto& [known, place] : {std::pair<std::string_view, std::optional<std::string_view>*>{"path", &path},
                                     {"linkpath", &target},
                                     {"GNU.sparse.name", &sparse_path}}) {
            if (key != known) {
                continue;
            }
            if (value.find('\0') != std::string_view::npos) {
                throw malformed_pax("a NUL in a name");
            }
            *place = value;  // the last one counts, everywhere
        }
        map.take(key, value);
        if (key == "size") {
            said_.size = base::parse_number<std::uint64_t>(value);
            if (!said_.size) throw malformed_pax("a size that is not a number");
        }
    }
    said_.segments = map.check();
    if (sparse_path) path = sparse_path;
    if (path) name(said_.path, *path);
    if (target) name(said_.target, *target);
}

}  // namespace kmm::registry
