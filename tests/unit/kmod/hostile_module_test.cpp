// SPDX-License-Identifier: Apache-2.0
// Row M54 of docs/hostile-contents.md; the golden case m54-compressed-bomb is the same through the whole program.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "kmod/ko/inflate.hpp"

using namespace kmm;

namespace {

/// A zstd frame of `blocks` blocks, each 128 KiB of zeros in four bytes.
std::string zstd_frame(int blocks, char window) {
    std::string frame("\x28\xb5\x2f\xfd\0", 5);
    frame += window;
    for (int i = 0; i < blocks; ++i) {
        frame += std::string(i + 1 == blocks ? "\x03\0\x10\0" : "\x02\0\x10\0", 4);
    }
    return frame;
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("M54 a compressed module that is a bomb, or wants too much memory") {
    constexpr char k_window_128_kib = 7 << 3;
    constexpr char k_window_2_gib = static_cast<char>(21 << 3);
    CHECK(kmod::plain_module(zstd_frame(8, k_window_128_kib), "small.ko.zst").size() == 1U << 20U);
    const auto refusal = [](const std::string& bomb) {
        try {
            static_cast<void>(kmod::plain_module(bomb, "bomb.ko.zst"));
        } catch (const Error& error) {
            return error.code();
        }
        return std::string("none");
    };
    CHECK(refusal(zstd_frame(4200, k_window_128_kib)) == "image-limit");
    CHECK(refusal(zstd_frame(1, k_window_2_gib)) == "image-limit");
}

TEST_CASE("M54 a bomb is refused before much of it is in memory") {
    constexpr char k_window_128_kib = 7 << 3;
    const std::string bomb = zstd_frame(4000, k_window_128_kib);  // 500 MiB in 16 kB: below the limit of one file
    std::string told;
    try {
        static_cast<void>(kmod::plain_module(bomb, "bomb.ko.zst"));
    } catch (const Error& error) {
        told = error.message();
        CHECK(error.code() == "image-limit");
    }
    CHECK(told ==
          "bomb.ko.zst: the module is more than 200 times its 15.6 KiB when decompressed, which is the limit after the "
          "first 16 MiB");
    CHECK(kmod::plain_module(zstd_frame(128, k_window_128_kib), "just.ko.zst").size() == 16U << 20U);
}

TEST_CASE("M54 the compression is known by its bytes, not by the name of the file") {
    CHECK(kmod::plain_module(zstd_frame(1, 7 << 3), "wrong.ko.xz").size() == 128U << 10U);
    CHECK(kmod::plain_module("plain", "wrong.ko.gz") == "plain");
}

TEST_CASE("sections of which kernels take one") {
    const auto told = [](const std::string& bytes) {
        try {
            (void)kmod::parse_module(bytes, "x.ko");
        } catch (const Error& error) {
            return error.message();
        }
        return std::string("accepted");
    };
    for (const char* name : {".modinfo", ".gnu.linkonce.this_module"}) {
        CAPTURE(name);
        KoSpec spec;
        spec.sections[name] = std::string("vermagic=other\0", 15);
        CHECK(told(make_ko(spec)) ==
              fmt::format("x.ko: not a loadable kernel module: there are 2 sections {}, kernels take one", name));
    }
    KoSpec spec;
    spec.sections["another"] = std::string(sizeof(Elf64_Sym), '\0');
    std::string bytes = make_ko(spec);
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto last = [&](auto change) {
        for (unsigned i = 0; i < header.e_shnum; ++i) {
            Elf64_Shdr section;
            char* at = bytes.data() + header.e_shoff + i * sizeof section;
            std::memcpy(&section, at, sizeof section);
            if (section.sh_type != SHT_PROGBITS || section.sh_size != sizeof(Elf64_Sym)) continue;
            change(section);
            std::memcpy(at, &section, sizeof section);
        }
    };
    CHECK(told(bytes) == "accepted");
    last([](Elf64_Shdr& section) { section.sh_type = SHT_SYMTAB; });
    CHECK(told(bytes) == "x.ko: not a loadable kernel module: there are 2 symbol tables, kernels take one");
}

TEST_CASE("symbols that a kernel would follow out of their tables") {
    KoSpec spec;
    spec.defined = {"here"};
    const std::string good = make_ko(spec);
    REQUIRE_NOTHROW(kmod::parse_module(good, "x.ko"));
    Elf64_Ehdr header;
    std::memcpy(&header, good.data(), sizeof header);
    Elf64_Shdr table;
    std::memcpy(&table, good.data() + header.e_shoff + 5 * sizeof table, sizeof table);
    REQUIRE(table.sh_type == SHT_SYMTAB);
    const auto changed = [&](auto change) {
        std::string bytes = good;
        Elf64_Sym symbol;
        std::memcpy(&symbol, bytes.data() + table.sh_offset + sizeof symbol, sizeof symbol);
        change(symbol);
        std::memcpy(bytes.data() + table.sh_offset + sizeof symbol, &symbol, sizeof symbol);
        try {
            (void)kmod::parse_module(bytes, "x.ko");
        } catch (const Error& error) {
            return error.message();
        }
        return std::string();
    };
    const std::string start = "x.ko: not a loadable kernel module: ";
    CHECK(changed([](Elf64_Sym& symbol) { symbol.st_name = 0x7fffffff; }) ==
          start + "the name of symbol 1 lies outside of the table of names");
    CHECK(changed([](Elf64_Sym& symbol) {
              symbol.st_shndx = 4000;
          }).starts_with(start + "symbol here is in section 4000, of "));
    CHECK(changed([](Elf64_Sym& symbol) {
              symbol.st_shndx = SHN_XINDEX;
          }).starts_with(start + "symbol here is in section 65535, of "));
    CHECK(changed([](Elf64_Sym& symbol) { symbol.st_shndx = SHN_COMMON; }) ==
          start + "symbol here is a common one, which no kernel takes: compile with -fno-common");
    CHECK(changed([](Elf64_Sym& symbol) { symbol.st_shndx = SHN_ABS; }).empty());
}

TEST_CASE("tables that a kernel does not take") {
    KoSpec spec;
    spec.defined = {"here"};
    const std::string good = make_ko(spec);
    const auto changed = [&](auto change) {
        std::string bytes = good;
        Elf64_Ehdr header;
        std::memcpy(&header, bytes.data(), sizeof header);
        std::vector<Elf64_Shdr> sections(header.e_shnum);
        std::memcpy(sections.data(), bytes.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
        change(header, sections, bytes);
        std::memcpy(bytes.data(), &header, sizeof header);
        std::memcpy(bytes.data() + header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr));
        try {
            (void)kmod::parse_module(bytes, "x.ko");
        } catch (const Error& error) {
            return error.message().substr(error.message().rfind(": ") + 2);
        }
        return std::string();
    };
    using Header = Elf64_Ehdr&;
    using Sections = std::vector<Elf64_Shdr>&;
    using Bytes = std::string&;
    constexpr std::size_t k_versions = 3, k_symbols = 5, k_export_strings = 7;
    CHECK(changed([](Header, Sections, Bytes) {}).empty());
    CHECK(changed([](Header, Sections all, Bytes) { all[0].sh_addr = 1; }) ==
          "section 0 is not the empty one, expected type, size and address 0");
    CHECK(changed([](Header, Sections all, Bytes) {
              all[0].sh_type = SHT_NOBITS;
          }).starts_with("section 0 is not the empty one"));
    CHECK(changed([](Header header, Sections all, Bytes) {
              all[0].sh_size = header.e_shnum;
              header.e_shnum = 0;
          }).starts_with("0 sections, expected"));
    CHECK(changed([](Header header, Sections all, Bytes) {
              all[0].sh_link = header.e_shstrndx;
              header.e_shstrndx = SHN_XINDEX;
          }) == "the section name table is missing");
    CHECK(changed([](Header header, Sections, Bytes) { header.e_shstrndx = 0; }) ==
          "the section name table is missing");
    CHECK(changed([](Header, Sections all, Bytes bytes) {
              bytes[all.back().sh_offset + all.back().sh_size - 1] = 'x';
          }) == "the section name table does not end with a zero byte");
    CHECK(changed([](Header, Sections all, Bytes) { all[k_symbols].sh_link = 0; }) == "the symbol table has no names");
    CHECK(changed([](Header, Sections all, Bytes) { all[k_export_strings].sh_name = 70'000; }) ==
          "the name of section 7 lies outside of the table of names");
    CHECK(changed([](Header, Sections all, Bytes bytes) { bytes[all[k_versions].sh_offset + 7] = 1; }) ==
          "the version of symbol module_layout has more than 32 bits");
    CHECK(changed([](Header, Sections all, Bytes bytes) {
              bytes.replace(all[k_symbols].sh_offset + sizeof(Elf64_Sym), sizeof(Elf64_Sym), sizeof(Elf64_Sym), '\0');
          }) == "symbol 1 has neither name nor section");
}

}
