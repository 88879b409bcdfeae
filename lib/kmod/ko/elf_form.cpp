// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/elf_form.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace kmm::kmod {

namespace {

template <typename T>
std::optional<T> copied(std::string_view bytes, std::uint64_t offset) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

/// True for numbers in the other byte order than this machine's.
bool is_foreign(const ElfForm& form) { return form.big != (std::endian::native == std::endian::big); }

template <typename T>
void turn(T& number) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(bytes[i], bytes[sizeof(T) - 1 - i]);
    std::memcpy(&number, bytes, sizeof(T));
}

template <typename... T>
void turn_all(const ElfForm& form, T&... numbers) {
    if (is_foreign(form)) (turn(numbers), ...);
}

template <typename T>
std::optional<T> one_number(const ElfForm& form, std::string_view bytes, std::uint64_t offset) {
    auto value = copied<T>(bytes, offset);
    if (value) turn_all(form, *value);
    return value;
}

template <typename Header>
std::optional<Elf64_Ehdr> header_as(const ElfForm& form, std::string_view bytes) {
    auto read = copied<Header>(bytes, 0);
    if (!read) return std::nullopt;
    turn_all(form, read->e_type, read->e_machine, read->e_shoff, read->e_shentsize, read->e_shnum, read->e_shstrndx);
    Elf64_Ehdr header{};
    header.e_type = read->e_type;
    header.e_machine = read->e_machine;
    header.e_shoff = read->e_shoff;
    header.e_shentsize = read->e_shentsize;
    header.e_shnum = read->e_shnum;
    header.e_shstrndx = read->e_shstrndx;
    return header;
}

template <typename Header>
std::optional<Elf64_Shdr> section_as(const ElfForm& form, std::string_view bytes, std::uint64_t offset) {
    auto read = copied<Header>(bytes, offset);
    if (!read) return std::nullopt;
    turn_all(form, read->sh_name, read->sh_type, read->sh_flags, read->sh_addr, read->sh_offset, read->sh_size,
             read->sh_link, read->sh_info, read->sh_addralign, read->sh_entsize);
    return Elf64_Shdr{read->sh_name, read->sh_type, read->sh_flags, read->sh_addr, read->sh_offset,
                      read->sh_size, read->sh_link, read->sh_info, read->sh_addralign, read->sh_entsize};
}

template <typename Entry>
std::optional<Elf64_Sym> symbol_as(const ElfForm& form, std::string_view bytes, std::uint64_t offset) {
    auto read = copied<Entry>(bytes, offset);
    if (!read) return std::nullopt;
    turn_all(form, read->st_name, read->st_shndx, read->st_value, read->st_size);
    return Elf64_Sym{read->st_name, read->st_info, read->st_other, read->st_shndx, read->st_value, read->st_size};
}

}  // namespace

std::optional<Elf64_Ehdr> ElfForm::header(std::string_view bytes) const {
    return wide ? header_as<Elf64_Ehdr>(*this, bytes) : header_as<Elf32_Ehdr>(*this, bytes);
}

std::optional<Elf64_Shdr> ElfForm::section(std::string_view bytes, std::uint64_t offset) const {
    return wide ? section_as<Elf64_Shdr>(*this, bytes, offset) : section_as<Elf32_Shdr>(*this, bytes, offset);
}

std::optional<Elf64_Sym> ElfForm::symbol(std::string_view bytes, std::uint64_t offset) const {
    return wide ? symbol_as<Elf64_Sym>(*this, bytes, offset) : symbol_as<Elf32_Sym>(*this, bytes, offset);
}

std::optional<std::uint64_t> ElfForm::word(std::string_view bytes, std::uint64_t offset) const {
    if (wide) return one_number<std::uint64_t>(*this, bytes, offset);
    return one_number<std::uint32_t>(*this, bytes, offset);
}

std::optional<std::uint32_t> ElfForm::number(std::string_view bytes, std::uint64_t offset) const {
    return one_number<std::uint32_t>(*this, bytes, offset);
}

std::optional<ElfForm> elf_form(std::string_view bytes) {
    if (bytes.size() < EI_NIDENT) return std::nullopt;
    const char wide = bytes[EI_CLASS];
    const char order = bytes[EI_DATA];
    if ((wide != ELFCLASS32 && wide != ELFCLASS64) || (order != ELFDATA2LSB && order != ELFDATA2MSB))
        return std::nullopt;
    return ElfForm{wide == ELFCLASS64, order == ELFDATA2MSB};
}

ElfMachine elf_machine(std::uint16_t machine, const ElfForm& form) {
    const bool little = !form.big;
    switch (machine) {
        case EM_X86_64: return {"amd64", form.wide && little};
        case EM_AARCH64: return {little ? "arm64" : "arm64be", form.wide};
        case EM_386: return {"386", !form.wide && little};
        case EM_ARM: return {little ? "arm" : "armbe", !form.wide};
        case EM_PPC64: return {little ? "ppc64le" : "ppc64", form.wide};
        case EM_S390: return {"s390x", form.wide && form.big};
        case EM_RISCV: return {form.wide ? "riscv64" : "riscv", little};
        default: return {fmt::format("elf-machine-{}", machine), true};
    }
}

}  // namespace kmm::kmod
