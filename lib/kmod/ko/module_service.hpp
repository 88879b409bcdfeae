// SPDX-License-Identifier: Apache-2.0
// Module files of an image, decompressed and parsed in a confined process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "kmod/ko/config_lines.hpp"
#include "kmod/ko/module_file.hpp"
#include "sandbox/confined.hpp"
#include "sandbox/message.hpp"
#include "sys/fd.hpp"

namespace kmm::kmod {

/// What a confined process needs to be asked by the functions below.
[[nodiscard]] sandbox::Service module_service();

/// A module file that was read.
struct ReadModule {
    ModuleFile file;
    std::uint64_t inflated = 0;  ///< bytes that were decompressed for it, 0 for a plain file
};

/// Decompresses and parses in `parser` the module in the file `descriptor`, from where its offset is; its signature is
/// read, too. `shown` is for messages. Errors: those of plain_module and parse_module; sandbox::Confined::lost().
[[nodiscard]] ReadModule read_module(sandbox::Confined& parser, const sys::Fd& descriptor, const std::string& shown);
/// The same in this process, without the signature.
[[nodiscard]] ReadModule read_module(std::string bytes, const std::string& shown);
/// read_signature() of `appended`, the bytes at the end of a module that are its signature, in `parser`. `shown` is for
/// messages. Errors: sandbox::Confined::lost().
[[nodiscard]] ModuleSignature read_signature(sandbox::Confined& parser, const std::string& appended,
                                             const std::string& shown);

/// Longer files are refused by read_config_lines().
inline constexpr std::size_t k_config_file_max = 64U << 10U;

/// config_lines() in `parser`, or in this process without one. `shown` is for messages. Errors: unsafe (16)
/// "image-limit" for a text of more than k_config_file_max; sandbox::Confined::lost().
[[nodiscard]] std::vector<ConfigLine> read_config_lines(sandbox::Confined* parser, const std::string& text,
                                                        const std::string& shown);

/// Reads many module files in a confined process, several with each message, while the next are being opened. The
/// process is this object's as long as it lives. If it dies, the files it has not read are read one by one by a new
/// one, so that the error is that of one file; what follows that one has the same error.
class ModuleBatches {
public:
    /// Called once for each file that was added, in their order: with what was read, or why it was not.
    using Hear = std::function<void(std::size_t id, ReadModule read, const std::exception_ptr& failure)>;

    ModuleBatches(sandbox::Confined& parser, Signatures signatures, Hear hear);
    ModuleBatches(const ModuleBatches&) = delete;
    ModuleBatches& operator=(const ModuleBatches&) = delete;

    /// As read_module() of a file, some time before the end of finish().
    void add(std::size_t id, sys::Fd descriptor, std::string shown);
    void finish();

private:
    struct File {
        std::size_t id;
        sys::Fd descriptor;
        std::string shown;
    };
    void exchange();
    void send();
    void take(const File& file, sandbox::MessageReader& reader);
    void give_up(std::size_t answered);

    sandbox::Confined& parser_;
    Signatures signatures_;
    Hear hear_;
    std::unique_lock<std::mutex> lock_;
    std::vector<File> asked_, next_;  ///< those that an answer is to come for, and those to be sent
    std::size_t name_bytes_ = 0;      ///< of `next_`
    std::exception_ptr failed_;       ///< why there are no more answers
};

/// plain_module() in `parser`, or in this process without one. Errors: as there; sandbox::Confined::lost().
[[nodiscard]] std::string plain_module(sandbox::Confined* parser, std::string bytes, const std::string& shown);

}  // namespace kmm::kmod
