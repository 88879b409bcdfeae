// SPDX-License-Identifier: Apache-2.0
// How the text of a release is kept in its Secret: readable while it is small, else packed.
#pragma once

#include <optional>
#include <string>

namespace kmm::drive {

/// `text` as it is, or as gzip where it is longer than 256 KiB. The same text gives the same bytes.
[[nodiscard]] std::string pack_release(std::string text);
/// The text that pack_release was given; nullopt if the data is damaged, or longer than 64 MiB.
[[nodiscard]] std::optional<std::string> unpack_release(std::string data);

}  // namespace kmm::drive
