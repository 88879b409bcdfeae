// SPDX-License-Identifier: Apache-2.0
// Module files of an image, decompressed and parsed in a confined process.
#pragma once

#include <cstdint>
#include <string>

#include "kmod/module_file.hpp"
#include "sys/confined.hpp"
#include "sys/fd.hpp"

namespace kmm::kmod {

/// What a confined process needs to be asked by the functions below.
[[nodiscard]] sys::Service module_service();

/// A module file that was read.
struct ReadModule {
    ModuleFile file;
    std::uint64_t inflated = 0;  ///< bytes that were decompressed for it, 0 for a plain file
};

/// Decompresses and parses in `parser` the module in the file `descriptor`, from where its offset is; its signature is
/// read, too. `shown` is for messages. Errors: those of plain_module and parse_module; sys::Confined::lost().
[[nodiscard]] ReadModule read_module(sys::Confined& parser, const sys::Fd& descriptor, const std::string& shown);
/// The same in this process, without the signature.
[[nodiscard]] ReadModule read_module(std::string bytes, const std::string& shown);

/// plain_module() in `parser`, or in this process without one. Errors: as there; sys::Confined::lost().
[[nodiscard]] std::string plain_module(sys::Confined* parser, std::string bytes, const std::string& shown);

}  // namespace kmm::kmod
