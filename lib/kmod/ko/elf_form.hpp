// SPDX-License-Identifier: Apache-2.0
// Numbers and tables of ELF files of every class and byte order, as the structures of 64 bits.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmm::kmod {

/// How the numbers of an ELF file are written. Each read gives nullopt for what does not lie inside of `bytes`;
/// alignment does not matter.
struct ElfForm {
    bool wide = true;  ///< 64 bits
    bool big = false;  ///< big-endian

    [[nodiscard]] std::size_t section_bytes() const noexcept { return wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr); }
    [[nodiscard]] std::size_t symbol_bytes() const noexcept { return wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym); }
    [[nodiscard]] std::size_t word_bytes() const noexcept { return wide ? 8 : 4; }  ///< of unsigned long

    [[nodiscard]] std::optional<Elf64_Ehdr> header(std::string_view bytes) const;
    [[nodiscard]] std::optional<Elf64_Shdr> section(std::string_view bytes, std::uint64_t offset) const;
    [[nodiscard]] std::optional<Elf64_Sym> symbol(std::string_view bytes, std::uint64_t offset) const;
    [[nodiscard]] std::optional<std::uint64_t> word(std::string_view bytes, std::uint64_t offset) const;
    [[nodiscard]] std::optional<std::uint32_t> number(std::string_view bytes, std::uint64_t offset) const;
};

/// The form that the identification at the beginning of `bytes` says; nullopt for one that is unknown.
[[nodiscard]] std::optional<ElfForm> elf_form(std::string_view bytes);

struct ElfMachine {
    std::string name;  ///< in Go's words ("amd64"), else "elf-machine-N"
    bool fits = true;  ///< kernels of this machine have modules of this form
};

/// What e_machine means in a file of this form.
[[nodiscard]] ElfMachine elf_machine(std::uint16_t machine, const ElfForm& form);

}  // namespace kmm::kmod
