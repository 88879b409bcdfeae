// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/module_file.hpp"

#include <doctest/doctest.h>

#include <random>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kmod/ko/signature.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

std::string code_of(const std::string& bytes) {
    try {
        (void)kmod::parse_module(bytes, "x.ko");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::data);
        return error.code();
    }
    return "accepted";
}

/// A small module of this class and byte order.
std::string make_plain_ko(bool wide, bool big, std::uint16_t machine) {
    const auto number = [&](std::uint64_t value, std::size_t bytes) {
        std::string text;
        for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i));
        return text;
    };
    const std::size_t word_bytes = wide ? 8 : 4;
    const auto word = [&](std::uint64_t value) { return number(value, word_bytes); };
    const auto symbol = [&](std::uint32_t name, std::uint16_t section, int bind, std::uint64_t value) {
        const std::string info = number(static_cast<std::uint64_t>(bind) << 4U, 1) + number(0, 1) + number(section, 2);
        return number(name, 4) + (wide ? info + word(value) + word(0) : word(value) + word(0) + info);
    };
    const std::string strings("\0needed\0__ksymtab_given\0__crc_given\0", 36);
    std::string version = word(0x01020304) + "needed";
    version.resize(64, '\0');
    std::string structure = std::string(3 * word_bytes, '\0') + "demo";
    structure.resize(200, '\0');
    struct Part {
        std::string name;
        std::uint32_t type;
        std::string data;
        std::uint32_t link;
    };
    std::vector<Part> parts{
        {"", SHT_NULL, "", 0},
        {".modinfo", SHT_PROGBITS, std::string("license=GPL\0name=demo\0vermagic=6.1.0 SMP\0", 41), 0},
        {".gnu.linkonce.this_module", SHT_PROGBITS, structure, 0},
        {".symtab", SHT_SYMTAB,
         symbol(0, 0, 0, 0) + symbol(1, SHN_UNDEF, STB_GLOBAL, 0) + symbol(8, 1, STB_LOCAL, 0) +
             symbol(24, SHN_ABS, STB_LOCAL, 0x05060708),
         4},
        {".strtab", SHT_STRTAB, strings, 0},
        {"__versions", SHT_PROGBITS, version, 0},
        {".note.gnu.build-id", SHT_NOTE,
         number(4, 4) + number(4, 4) + number(3, 4) + std::string("GNU\0", 4) + "\x0a\x0b\x0c\x0d", 0},
    };
    std::string names;
    for (const Part& part : parts) names += part.name + '\0';
    const std::string own = ".shstrtab";
    parts.push_back({own, SHT_STRTAB, names + own + '\0', 0});
    const std::size_t header_bytes = wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    std::string body, table;
    std::size_t name_at = 0;
    for (const Part& part : parts) {
        table += number(name_at, 4) + number(part.type, 4) + word(0) + word(0) +
                 word(part.type == SHT_NULL ? 0 : header_bytes + body.size()) + word(part.data.size()) +
                 number(part.link, 4) + number(0, 4) + word(0) + word(0);
        body += part.data;
        name_at += part.name.size() + 1;
    }
    std::string head = std::string(ELFMAG) + (wide ? '\2' : '\1') + (big ? '\2' : '\1') + '\1';
    head.resize(EI_NIDENT, '\0');
    head += number(ET_REL, 2) + number(machine, 2) + number(1, 4) + word(0) + word(0) +
            word(header_bytes + body.size()) + number(0, 4) + number(header_bytes, 2) + number(0, 2) + number(0, 2) +
            number(table.size() / parts.size(), 2) + number(parts.size(), 2) + number(parts.size() - 1, 2);
    return head + body + table;
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("symbol versions: sorted, the first of two counts, found by name") {
    const kmod::SymbolVersions versions(
        {{"b", 2}, {"a_longer_name_than_a_short_string_holds", 1}, {"b", 3}, {"c", 0xffffffffU}});
    std::string listed;
    for (const auto& [symbol, crc] : versions) listed += fmt::format("{}={} ", symbol, crc);
    CHECK(listed == "a_longer_name_than_a_short_string_holds=1 b=2 c=4294967295 ");
    CHECK(versions.size() == 3);
    CHECK(versions.find("b") == 2U);
    CHECK(!versions.find("bb"));
    CHECK(!versions.find(""));
    CHECK(kmod::SymbolVersions().empty());
}

TEST_CASE("extended symbol versions count instead of the others, and must agree with their names") {
    KoSpec spec;
    spec.crcs = {{"_printk", 1}};
    CHECK(kmod::parse_module(make_ko(spec), "x.ko").has_versions);
    const std::string crcs("\2\0\0\0\3\0\0\0", 8);
    spec.sections = {{"__version_ext_crcs", crcs}, {"__version_ext_names", std::string("a\0b\0", 4)}};
    const auto file = kmod::parse_module(make_ko(spec), "x.ko");
    CHECK(file.has_versions);
    CHECK(file.crcs.size() == 2);
    CHECK(file.crcs.find("a") == 2U);
    CHECK(file.crcs.find("b") == 3U);
    spec.crcs.clear();
    CHECK_FALSE(kmod::parse_module(make_ko(spec), "x.ko").has_versions);
    for (const std::string& names : {std::string("a\0", 2), std::string("a\0b", 3), std::string("a\0b\0c\0", 6),
                                     std::string(), std::string("\0b\0", 3)}) {
        CAPTURE(names);
        spec.sections["__version_ext_names"] = names;
        CHECK(code_of(make_ko(spec)) == "module-format");
    }
    spec.sections.erase("__version_ext_names");
    CHECK(code_of(make_ko(spec)) == "module-format");
}

TEST_CASE("the end of a file is enough to say what is wrong with its signature") {
    const std::string marker = "~Module signature appended~\n";
    const auto trailer = [](unsigned char type, unsigned char length) {
        std::string words(12, '\0');
        words[2] = static_cast<char>(type);
        words[11] = static_cast<char>(length);
        return words;
    };
    const auto odd = [](std::string words) {
        words[6] = '\1';
        return words;
    };
    const struct {
        std::string end, part, fault;
    } cases[] = {
        {"", "", ""},
        {marker, "x" + marker, "it is cut off"},
        {"abcde" + trailer(2, 5) + marker, "abcde" + trailer(2, 5) + marker, "it is not a PKCS#7 message"},
        {trailer(2, 200) + marker, trailer(2, 200) + marker, "its length is more than the file"},
        {trailer(2, 0) + marker, trailer(2, 0) + marker, "its length is 0"},
        {"abcde" + odd(trailer(2, 5)) + marker, odd(trailer(2, 5)) + marker,
         "its trailer has values where PKCS#7 wants zeros"},
        {trailer(1, 1) + marker, trailer(1, 1) + marker, "its type is 1, expected PKCS#7"},
    };
    for (const auto& c : cases) {
        CAPTURE(c.fault);
        const std::string file = "x" + c.end;
        const std::string part(kmod::signature_part(file));
        CHECK(part == c.part);
        CHECK(kmod::read_signature(part).fault == c.fault);
        CHECK(kmod::read_signature(file).fault == c.fault);
    }
}

TEST_CASE("a module file tells its facts") {
    KoSpec spec;
    spec.name = "kmm-hello";
    spec.depends = "dep-one,dep_two";
    spec.modinfo = {"version=1.2", "parm=answer:the answer: really", "parmtype=answer:int", "parmtype=who:charp",
                    "firmware=a/b.bin"};
    spec.undefined = {"_printk", "__fentry__", "_GLOBAL_OFFSET_TABLE_"};
    spec.weak = {"maybe"};
    spec.exported = {"hello_b", "hello_a"};
    spec.crcs = {{"module_layout", 0xdeadbeefU}, {"_printk", 1}};
    const auto file = kmod::parse_module(make_ko(spec), "kmm-hello.ko");
    CHECK(file.name == "kmm_hello");
    CHECK(file.machine == "amd64");
    CHECK(file.srcversion() == "AAAA0000");
    CHECK(file.build_id == spec.build_id);
    CHECK(file.vermagic() == "6.1.0-56-amd64 SMP preempt mod_unload modversions");
    CHECK(file.version() == "1.2");
    CHECK(file.depends() == std::vector<std::string>{"dep_one", "dep_two"});
    CHECK(file.exported == std::vector<std::string>{"hello_a", "hello_b"});
    CHECK(file.undefined ==
          std::vector<kmod::UndefinedSymbol>{{"__fentry__", false}, {"_printk", false}, {"maybe", true}});
    CHECK(file.crcs.find("module_layout") == 0xdeadbeefU);
    CHECK_FALSE(file.is_signed);
    const auto parameters = file.parameters();
    REQUIRE(parameters.size() == 2);
    CHECK(parameters[0].name == "answer");
    CHECK(parameters[0].type == "int");
    CHECK(parameters[0].description == "the answer: really");
    CHECK(parameters[1].type == "charp");
}

TEST_CASE("an appended signature is seen") {
    CHECK(kmod::parse_module(make_ko({}) + "abc~Module signature appended~\n", "x.ko").is_signed);
}

TEST_CASE("M52: what is not a loadable module is refused before any system call") {
    const std::string good = make_ko({});
    REQUIRE(code_of(good) == "accepted");
    KoSpec executable;
    executable.type = ET_EXEC;
    KoSpec no_vermagic;
    no_vermagic.vermagic = "";
    KoSpec bad_name;
    bad_name.name = "../x";
    std::string narrow = good;
    narrow[EI_CLASS] = ELFCLASS32;
    std::string big_endian = good;
    big_endian[EI_DATA] = ELFDATA2MSB;
    std::string huge_table = good;
    Elf64_Ehdr header;
    std::memcpy(&header, good.data(), sizeof header);
    const auto with_header = [&](auto&& change) {
        Elf64_Ehdr copy = header;
        change(copy);
        std::string bytes = good;
        std::memcpy(bytes.data(), &copy, sizeof copy);
        return bytes;
    };
    const std::vector<std::pair<const char*, std::string>> cases{
        {"text", "#!/bin/sh\necho hello\n"},
        {"empty", ""},
        {"one byte", "\x7f"},
        {"magic only", "\x7f"
                       "ELF"},
        {"cut header", good.substr(0, 40)},
        {"cut body", good.substr(0, good.size() / 2)},
        {"cut table", good.substr(0, good.size() - 1)},
        {"executable", make_ko(executable)},
        {"32-bit", narrow},
        {"big-endian", big_endian},
        {"no vermagic", make_ko(no_vermagic)},
        {"bad name", make_ko(bad_name)},
        {"huge section table", with_header([](Elf64_Ehdr& h) { h.e_shnum = 0xff00; })},
        {"table at the end of the address space", with_header([](Elf64_Ehdr& h) { h.e_shoff = ~0ULL - 8; })},
        {"no table", with_header([](Elf64_Ehdr& h) { h.e_shoff = 0; })},
        {"name table out of range", with_header([](Elf64_Ehdr& h) { h.e_shstrndx = 200; })},
        {"odd entry size", with_header([](Elf64_Ehdr& h) { h.e_shentsize = 1; })},
    };
    for (const auto& [what, bytes] : cases) {
        CAPTURE(what);
        CHECK(code_of(bytes) == "module-format");
    }
}

TEST_CASE("M52: another machine is refused by name") {
    KoSpec spec;
    spec.machine = EM_AARCH64;
    const auto file = kmod::parse_module(make_ko(spec), "x.ko");
    CHECK(file.machine == "arm64");
    CHECK_THROWS_AS(kmod::require_machine(file, "amd64", "x.ko"), Error);
    CHECK_NOTHROW(kmod::require_machine(file, "arm64", "x.ko"));
}

TEST_CASE("modules of every class and byte order that kernels have are read") {
    struct Row {
        bool wide, big;
        std::uint16_t machine;
        const char* name;  ///< nullptr: no kernel has such modules
    };
    for (const Row& row : {Row{true, false, EM_X86_64, "amd64"}, Row{true, true, EM_S390, "s390x"},
                           Row{true, true, EM_PPC64, "ppc64"}, Row{true, false, EM_PPC64, "ppc64le"},
                           Row{false, false, EM_386, "386"}, Row{false, false, EM_ARM, "arm"},
                           Row{false, true, EM_ARM, "armbe"}, Row{false, false, EM_RISCV, "riscv"},
                           Row{true, false, EM_S390, nullptr}, Row{true, true, EM_X86_64, nullptr},
                           Row{false, false, EM_X86_64, nullptr}, Row{true, false, EM_ARM, nullptr}}) {
        CAPTURE(row.wide);
        CAPTURE(row.big);
        CAPTURE(row.machine);
        const std::string bytes = make_plain_ko(row.wide, row.big, row.machine);
        if (row.name == nullptr) {
            CHECK(code_of(bytes) == "module-format");
            continue;
        }
        const auto file = kmod::parse_module(bytes, "x.ko");
        CHECK(file.machine == row.name);
        CHECK(file.name == "demo");
        CHECK(file.build_id == "0a0b0c0d");
        CHECK(file.undefined == std::vector<kmod::UndefinedSymbol>{{"needed", false}});
        CHECK(file.crcs.find("needed") == 0x01020304U);
        CHECK(file.exported == std::vector<std::string>{"given"});
        CHECK(file.export_crcs.find("given") == 0x05060708U);
        for (std::size_t length = 0; length < bytes.size(); ++length)
            CHECK(code_of(bytes.substr(0, length)) == "module-format");
    }
}

TEST_CASE("compressed modules are named as such") {
    CHECK(code_of("\x1f\x8b\x08 and so on") == "module-format");
    CHECK(code_of(std::string("\xfd" "7zXZ\0 and so on", 16)) == "module-format");
    CHECK(code_of("\x28\xb5\x2f\xfd and so on") == "module-format");
}

TEST_CASE("every prefix and many single-byte damages end in facts or in module-format") {
    KoSpec spec;
    spec.exported = {"a"};
    spec.undefined = {"b"};
    spec.crcs = {{"c", 1}};
    const std::string good = make_ko(spec);
    for (std::size_t length = 0; length < good.size(); ++length)
        CHECK(code_of(good.substr(0, length)) == "module-format");
    std::mt19937 random(42);
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes = good;
        for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
        const std::string code = code_of(bytes);
        CHECK((code == "accepted" || code == "module-format"));
    }
}

TEST_CASE("module names") {
    CHECK(kmod::is_module_name("nv_peer-mem"));
    CHECK(kmod::is_module_name(std::string(55, 'a')));
    CHECK_FALSE(kmod::is_module_name(std::string(56, 'a')));
    for (const char* bad : {"", "..", "a/b", "a b", "a\nb", ".hidden"}) CHECK_FALSE(kmod::is_module_name(bad));
}

}
