// SPDX-License-Identifier: Apache-2.0
// What readers of tar take in different ways in one header, or in one record of a pax header.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kmm::registry {

/// `field` up to its first NUL.
[[nodiscard]] inline std::string_view text_in(std::string_view field) { return field.substr(0, field.find('\0')); }

/// The number in a field, octal or in base 256, 0 for a blank one; nullopt for a negative one, for one behind a NUL,
/// which only some readers look for, and for anything else.
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view field);

/// Looks at a header of 512 bytes whose size is known to be a number. Errors: data "bad-layer" for a checksum that does
/// not fit, for a mode, owner, time or device that is no number to Go's reader, which then refuses the whole layer, and
/// for bytes in the place of a prefix that some readers put before the name and others do not.
void check_tar_header(std::string_view block);

/// What is wrong with a record of a pax header, "" if nothing is: a name of an owner with a NUL, a number or time that
/// is none to Go's reader, a key by which libarchive alone changes what is in a file.
[[nodiscard]] std::string_view fault_of_record(std::string_view key, std::string_view value);

}  // namespace kmm::registry
