// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/module_file.hpp"

#include <elf.h>
#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/ko/elf_form.hpp"
#include "kmod/ko/module_service.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kmod {

namespace {

constexpr std::uint64_t k_bytes_max = 512ULL << 20U;
constexpr std::uint16_t k_shn_livepatch = 0xff20;  // Linux include/uapi/linux/elf.h
constexpr std::size_t k_sections_max = 65'535;
constexpr std::size_t k_words_before_name = 3;   // of struct module: state and list_head, each in its words
constexpr std::string_view k_signature_marker = "~Module signature appended~\n";
constexpr std::string_view k_ksymtab = "__ksymtab_";
constexpr std::string_view k_namespace = "__kstrtabns_";
constexpr std::string_view k_crc = "__crc_";
constexpr std::string_view k_parameter = "__param_str_";

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
    throw Error(Exit::data, "module-format",
                fmt::format("{}: not a loadable kernel module: {}", base::escape(file), what))
        .hint("rebuild the module for this kernel and architecture, and build the image again");
}

/// What bytes without ELF magic are instead, ": TEXT" for the end of a message; "" if they look like nothing known.
/// Packed modules come here unpacked.
std::string other_content(std::string_view bytes) {
    static constexpr std::string_view lzma("\x5d\0\0", 3);
    static constexpr std::pair<std::string_view, std::string_view> known[] = {
        {lzma, "it is lzma data; modules are packed as xz, zstd or gzip"},
        {"LZIP", "it is lzip data; modules are packed as xz, zstd or gzip"},
        {"BZh", "it is bzip2 data; modules are packed as xz, zstd or gzip"},
        {"\x04\x22\x4d\x18", "it is lz4 data; modules are packed as xz, zstd or gzip"},
        {"\xfd\x37zXZ", "it is packed twice, within is xz data"},
        {"\x28\xb5\x2f\xfd", "it is packed twice, within is zstd data"},
        {"\x1f\x8b", "it is packed twice, within is gzip data"},
        {"PK\x03\x04", "it is a zip archive"},
        {"!<arch>\n", "it is an archive of ar"},
        {"MZ", "it is a program of Windows or EFI"},
        {"#!", "it is a script"},
        {"version https://git-lfs.", "it is a pointer of Git LFS: the file itself was never fetched"},
    };
    for (const auto& [magic, text] : known) {
        if (bytes.starts_with(magic)) return fmt::format(": {}", text);
    }
    constexpr std::size_t tar_magic = 257;
    if (bytes.size() > tar_magic && bytes.substr(tar_magic).starts_with("ustar")) return ": it is a tar archive";
    if (bytes.find_first_not_of('\0') == std::string_view::npos) return ": it is all zero bytes";
    const std::string head = base::to_lower(base::trim(bytes.substr(0, 64)));
    if (head.starts_with("<!doctype html") || head.starts_with("<html")) return ": it is a web page";
    return {};
}

std::optional<std::string_view> slice(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
    return bytes.substr(offset, size);
}

/// The NUL-terminated text at `offset`, at most to the end of the table.
std::string_view text_at(std::string_view table, std::uint64_t offset) {
    if (offset >= table.size()) return {};
    const std::string_view rest = table.substr(offset);
    return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

class Reader {
public:
    Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

    ModuleFile read() {
        read_header();
        read_sections();
        read_modinfo();
        read_name();
        read_build_id();
        read_symbols();
        read_versions();
        out_.size = bytes_.size();
        out_.is_signed = bytes_.ends_with(k_signature_marker);
        if (out_.is_signed) out_.appended_signature = signature_part(bytes_);
        return std::move(out_);
    }

private:
    struct Section {
        std::string_view name;
        Elf64_Shdr header;
        std::string_view data;  // empty for SHT_NOBITS
    };

    void read_header() {
        if (bytes_.empty()) refuse(file_, "the file is empty");
        if (bytes_.size() > k_bytes_max)
            refuse(file_, fmt::format("{} is more than 512 MiB", base::format_bytes(bytes_.size())));
        if (!bytes_.starts_with(std::string_view(ELFMAG, SELFMAG)))
            refuse(file_, "no ELF magic" + other_content(bytes_));
        if (bytes_.size() < EI_NIDENT) refuse(file_, "the ELF header is cut off");
        const auto form = elf_form(bytes_);
        if (!form) refuse(file_, "unknown ELF class or byte order");
        form_ = *form;
        const auto header = form_.header(bytes_);
        if (!header) refuse(file_, "the ELF header is cut off");
        header_ = *header;
        const ElfMachine machine = elf_machine(header_.e_machine, form_);
        if (!machine.fits) {
            refuse(file_, fmt::format("found a {}-bit {}-endian object for {}, which has no such modules",
                                      form_.wide ? 64 : 32, form_.big ? "big" : "little", machine.name));
        }
        out_.machine = machine.name;
        if (header_.e_type != ET_REL) {
            refuse(file_, fmt::format("found ELF type {}, expected a relocatable object (type 1)",
                                      header_.e_type == ET_EXEC  ? "executable (2)"
                                      : header_.e_type == ET_DYN ? "shared object (3)"
                                                                 : std::to_string(header_.e_type)));
        }
    }

    void read_sections() {
        if (header_.e_shoff == 0) refuse(file_, "there is no section table");
        if (header_.e_shentsize != form_.section_bytes())
            refuse(file_, fmt::format("section entries of {} bytes, expected {}", header_.e_shentsize,
                                      form_.section_bytes()));
        // Kernels know no numbers beyond these fields, which other readers take from section 0 then.
        const std::uint64_t count = header_.e_shnum;
        const std::uint64_t names = header_.e_shstrndx;
        if (count == 0) refuse(file_, fmt::format("0 sections, expected 1 to {}", k_sections_max));
        if (!slice(bytes_, header_.e_shoff, count * form_.section_bytes()))
            refuse(file_, "the section table lies outside of the file");
        if (names == SHN_UNDEF || names >= count) refuse(file_, "the section name table is missing");
        sections_.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto header = form_.section(bytes_, header_.e_shoff + i * form_.section_bytes());
            Section section{{}, *header, {}};
            if (header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL) {
                const auto data = slice(bytes_, header->sh_offset, header->sh_size);
                if (!data) refuse(file_, fmt::format("section {} lies outside of the file", i));
                section.data = *data;
            }
            sections_.push_back(section);
        }
        check_sections(sections_[names].data);
    }

    /// Names the sections. Source of the checks: Linux kernel/module/main.c, elf_validity_check().
    void check_sections(std::string_view names) {
        if (!names.ends_with('\0')) refuse(file_, "the section name table does not end with a zero byte");
        const Elf64_Shdr& first = sections_.front().header;
        if (first.sh_type != SHT_NULL || first.sh_size != 0 || first.sh_addr != 0)
            refuse(file_, "section 0 is not the empty one, expected type, size and address 0");
        for (std::size_t i = 0; i < sections_.size(); ++i) {
            Section& section = sections_[i];
            // Kernels refuse that of sections that they keep only, and follow all names.
            if (section.header.sh_name >= names.size())
                refuse(file_, fmt::format("the name of section {} lies outside of the table of names", i));
            section.name = text_at(names, section.header.sh_name);
        }
        for (const std::string_view name : {".modinfo", ".gnu.linkonce.this_module"}) {
            const auto count = std::count_if(sections_.begin(), sections_.end(),
                                             [&](const Section& section) { return section.name == name; });
            if (count > 1) refuse(file_, fmt::format("there are {} sections {}, kernels take one", count, name));
        }
        const auto tables = std::count_if(sections_.begin(), sections_.end(), [](const Section& section) {
            return section.header.sh_type == SHT_SYMTAB;
        });
        if (tables > 1) refuse(file_, fmt::format("there are {} symbol tables, kernels take one", tables));
    }

    [[nodiscard]] const Section* find(std::string_view name) const {
        const auto it =
            std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
        return it == sections_.end() ? nullptr : &*it;
    }

    void read_modinfo() {
        const Section* section = find(".modinfo");
        if (section == nullptr) refuse(file_, "there is no .modinfo section");
        std::string_view rest = section->data;
        while (!rest.empty()) {
            const std::string_view entry = text_at(rest, 0);
            rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
            const auto equals = entry.find('=');
            if (entry.empty() || equals == std::string_view::npos) continue;
            out_.modinfo.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
        }
        if (out_.info("vermagic").empty()) refuse(file_, "there is no vermagic");
    }

    void read_name() {
        const Section* section = find(".gnu.linkonce.this_module");
        if (section == nullptr) refuse(file_, "there is no .gnu.linkonce.this_module section");
        out_.structure_bytes = section->data.size();
        std::string name = out_.info("name");
        if (name.empty()) name = in_structure(section->data);
        if (!is_module_name(name)) refuse(file_, fmt::format("'{}' is not a module name", base::escape(name)));
        out_.name = normalise_name(name);
        // The kernel knows it by the name in the structure, all else goes by the one in .modinfo.
        const std::string_view live = in_structure(section->data);
        if (!live.empty() && normalise_name(live) != out_.name)
            refuse(file_, fmt::format("it is named '{}' in .modinfo and '{}' in its module structure", out_.name,
                                      base::escape(live)));
    }

    /// module.name of struct module, "" if the section is too short for it.
    [[nodiscard]] std::string_view in_structure(std::string_view data) const {
        const std::size_t at = k_words_before_name * form_.word_bytes();
        if (data.size() < at + base::k_module_name_bytes) return {};
        return text_at(data.substr(at, base::k_module_name_bytes), 0);
    }

    void read_build_id() {
        const Section* section = find(".note.gnu.build-id");
        if (section == nullptr) return;
        const auto name = form_.number(section->data, 0);
        const auto bytes = form_.number(section->data, 4);
        if (form_.number(section->data, 8) != NT_GNU_BUILD_ID || *name > 64 || *bytes > 64) return;
        const std::uint64_t at = sizeof(Elf64_Nhdr) + ((*name + 3ULL) & ~3ULL);
        const auto id = slice(section->data, at, *bytes);
        if (!id) return;
        const std::vector<std::uint8_t> raw(id->begin(), id->end());
        out_.build_id = base::to_hex(raw);
    }

    void read_symbols() {
        const auto table = std::find_if(sections_.begin(), sections_.end(),
                                        [](const Section& s) { return s.header.sh_type == SHT_SYMTAB; });
        if (table == sections_.end()) refuse(file_, "there is no symbol table");
        if (table->header.sh_link == SHN_UNDEF || table->header.sh_link >= sections_.size())
            refuse(file_, "the symbol table has no names");
        const std::string_view names = sections_[table->header.sh_link].data;
        const std::uint64_t count = table->data.size() / form_.symbol_bytes();
        std::vector<SymbolVersions::Row> export_crcs;
        for (std::uint64_t i = 1; i < count; ++i) {
            const auto symbol = form_.symbol(table->data, i * form_.symbol_bytes());
            const std::string_view name = symbol_name(names, *symbol, i);
            if (name.empty()) {
                if (symbol->st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_WEAK)
                    refuse(file_, fmt::format("symbol {} has neither name nor section", i));
                continue;
            }
            if (symbol->st_shndx == SHN_UNDEF) {
                if (name == "_GLOBAL_OFFSET_TABLE_") continue;
                out_.undefined.push_back({std::string(name), ELF64_ST_BIND(symbol->st_info) == STB_WEAK});
            } else if (name.size() > k_ksymtab.size() && name.starts_with(k_ksymtab) &&
                       ELF64_ST_TYPE(symbol->st_info) != STT_SECTION) {
                const std::string exported(name.substr(k_ksymtab.size()));
                out_.exported.push_back(exported);
                if (symbol->st_shndx < sections_.size() && is_gpl_table(sections_[symbol->st_shndx].name))
                    out_.exports[exported].gpl_only = true;
            } else if (name.size() > k_crc.size() && name.starts_with(k_crc)) {
                if (const auto crc = export_crc(*symbol)) export_crcs.push_back({name.substr(k_crc.size()), *crc});
            } else if (name.size() > k_parameter.size() && name.starts_with(k_parameter)) {
                out_.parameter_names.emplace_back(name.substr(k_parameter.size()));
            } else if (name.size() > k_namespace.size() && name.starts_with(k_namespace) &&
                       symbol->st_shndx < sections_.size()) {
                const std::string_view text = text_at(sections_[symbol->st_shndx].data, symbol->st_value);
                if (!text.empty()) out_.exports[std::string(name.substr(k_namespace.size()))].symbol_namespace = text;
            }
        }
        out_.export_crcs = SymbolVersions(std::move(export_crcs));
        if (out_.exported.empty()) exported_from_strings();
        std::sort(out_.undefined.begin(), out_.undefined.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        out_.undefined.erase(std::unique(out_.undefined.begin(), out_.undefined.end()), out_.undefined.end());
        std::sort(out_.exported.begin(), out_.exported.end());
        out_.exported.erase(std::unique(out_.exported.begin(), out_.exported.end()), out_.exported.end());
    }

    /// The name of symbol `index`. A kernel does not look whether a name or a section is one: it reads what lies there.
    [[nodiscard]] std::string_view symbol_name(std::string_view names, const Elf64_Sym& symbol,
                                               std::uint64_t index) const {
        if (symbol.st_name != 0 && symbol.st_name >= names.size())
            refuse(file_, fmt::format("the name of symbol {} lies outside of the table of names", index));
        const std::string_view name = text_at(names, symbol.st_name);
        const auto section = symbol.st_shndx;
        if (section == SHN_COMMON && !name.starts_with("__gnu_lto"))
            refuse(file_, fmt::format("symbol {} is a common one, which no kernel takes: compile with -fno-common",
                                      base::escape(name)));
        if (section < SHN_LORESERVE ? section >= sections_.size()
                                    : section != SHN_ABS && section != SHN_COMMON && section != k_shn_livepatch) {
            refuse(file_,
                   fmt::format("symbol {} is in section {}, of {}",
                               name.empty() ? std::to_string(index) : base::escape(name), section, sections_.size()));
        }
        return name;
    }

    /// The version of an export: the value of its symbol (before Linux 5.19), or what lies where it points.
    [[nodiscard]] std::optional<std::uint32_t> export_crc(const Elf64_Sym& symbol) const {
        if (symbol.st_shndx == SHN_ABS) return static_cast<std::uint32_t>(symbol.st_value);
        if (symbol.st_shndx >= sections_.size()) return std::nullopt;
        return form_.number(sections_[symbol.st_shndx].data, symbol.st_value);
    }

    /// "__ksymtab_gpl", or "___ksymtab_gpl+SYMBOL" before the kernel's linker script has merged them.
    static bool is_gpl_table(std::string_view section) {
        return section == "__ksymtab_gpl" || section.starts_with("___ksymtab_gpl+");
    }

    /// For objects whose local symbols were stripped: the export strings stay.
    void exported_from_strings() {
        const Section* section = find("__ksymtab_strings");
        if (section == nullptr) return;
        std::string_view rest = section->data;
        while (!rest.empty()) {
            const std::string_view entry = text_at(rest, 0);
            rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
            if (!entry.empty()) out_.exported.emplace_back(entry);
        }
    }

    void read_versions() {
        std::vector<SymbolVersions::Row> rows;
        if (const Section* section = find("__versions")) {
            constexpr std::size_t entry_bytes = 64;  // unsigned long crc, and the name in the rest
            const std::size_t name_at = form_.word_bytes();
            rows.reserve(section->data.size() / entry_bytes);
            for (std::size_t at = 0; at + entry_bytes <= section->data.size(); at += entry_bytes) {
                const auto crc = form_.word(section->data, at);
                const std::string_view name =
                    text_at(section->data.substr(at + name_at, entry_bytes - name_at), 0);
                if (*crc > UINT32_MAX)
                    refuse(file_, fmt::format("the version of symbol {} has more than 32 bits", base::escape(name)));
                if (!name.empty()) rows.push_back({name, static_cast<std::uint32_t>(*crc)});
            }
            out_.has_versions = !rows.empty();
        }
        const Section* crcs = find("__version_ext_crcs");
        const Section* names = find("__version_ext_names");
        if (crcs != nullptr || names != nullptr) rows = extended_versions(crcs, names);
        out_.crcs = SymbolVersions(std::move(rows));
    }

    /// Names of any length (Linux 6.14, CONFIG_EXTENDED_MODVERSIONS): 32-bit CRCs in one section, their names in
    /// another. The kernel takes them instead of __versions, and refuses a module where they do not agree.
    [[nodiscard]] std::vector<SymbolVersions::Row> extended_versions(const Section* crcs, const Section* names) const {
        if (crcs == nullptr || names == nullptr) {
            refuse(file_,
                   fmt::format("there is {} without {}", crcs == nullptr ? "__version_ext_names" : "__version_ext_crcs",
                               crcs == nullptr ? "__version_ext_crcs" : "__version_ext_names"));
        }
        std::vector<SymbolVersions::Row> rows;
        std::size_t at = 0;
        for (std::size_t i = 0; i + sizeof(std::uint32_t) <= crcs->data.size(); i += sizeof(std::uint32_t)) {
            const std::string_view name = text_at(names->data, at);
            if (name.empty() || at + name.size() >= names->data.size()) {
                refuse(file_, fmt::format("__version_ext_crcs has {} entries, __version_ext_names only {}",
                                          crcs->data.size() / sizeof(std::uint32_t), rows.size()));
            }
            rows.push_back({name, *form_.number(crcs->data, i)});
            at += name.size() + 1;
        }
        if (!text_at(names->data, at).empty())
            refuse(file_,
                   fmt::format("__version_ext_names has more than the {} entries of __version_ext_crcs", rows.size()));
        return rows;
    }

    std::string_view bytes_;
    const std::string& file_;
    ElfForm form_;
    Elf64_Ehdr header_{};
    std::vector<Section> sections_;
    ModuleFile out_;
};

}  // namespace

SymbolVersions::SymbolVersions(std::vector<Row> rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.symbol < b.symbol; });
    rows.erase(std::unique(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.symbol == b.symbol; }),
               rows.end());
    std::size_t bytes = 0;
    for (const Row& row : rows) bytes += row.symbol.size();
    names_.reserve(bytes);
    rows_.reserve(rows.size());
    for (const Row& row : rows) {
        rows_.push_back(
            {static_cast<std::uint32_t>(names_.size()), static_cast<std::uint32_t>(row.symbol.size()), row.crc});
        names_ += row.symbol;
    }
}

std::optional<std::uint32_t> SymbolVersions::find(std::string_view symbol) const {
    const auto name_of = [this](const Place& place) { return std::string_view(names_).substr(place.at, place.size); };
    const auto it =
        std::lower_bound(rows_.begin(), rows_.end(), symbol,
                         [&](const Place& place, std::string_view wanted) { return name_of(place) < wanted; });
    if (it == rows_.end() || name_of(*it) != symbol) return std::nullopt;
    return it->crc;
}

ModuleSignature ModuleFile::signature() const {
    if (known_signature) return *known_signature;
    if (signature_parser == nullptr) return read_signature(appended_signature);
    return read_signature(*signature_parser, appended_signature, "the signature of module " + name);
}

std::string ModuleFile::info(std::string_view key) const {
    for (const auto& [name_, value] : modinfo) {
        if (name_ == key) return value;
    }
    return {};
}

std::vector<std::string> ModuleFile::info_all(std::string_view key) const {
    std::vector<std::string> values;
    for (const auto& [name_, value] : modinfo) {
        if (name_ == key) values.push_back(value);
    }
    return values;
}

bool ModuleFile::gpl_compatible() const {
    static constexpr std::string_view compatible[] = {"GPL",          "GPL v2",       "GPL and additional rights",
                                                      "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"};
    const std::string license = info("license");
    return std::find(std::begin(compatible), std::end(compatible), license) != std::end(compatible);
}

bool ModuleFile::imports(const std::string& symbol_namespace) const {
    constexpr std::string_view for_modules = "module:";
    if (symbol_namespace.starts_with(for_modules)) {
        const std::string list = symbol_namespace.substr(for_modules.size());
        const auto patterns = base::split(list, ',');
        return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
            return ::fnmatch(normalise_name(pattern).c_str(), name.c_str(), 0) == 0;
        });
    }
    const auto imported = info_all("import_ns");
    return std::find(imported.begin(), imported.end(), symbol_namespace) != imported.end();
}

std::string ModuleFile::vermagic() const { return std::string(base::trim(info("vermagic"))); }

std::vector<std::string> ModuleFile::depends() const {
    std::vector<std::string> names;
    const std::string list = info("depends");
    for (const auto piece : base::split(list, ',')) {
        if (const auto word = base::trim(piece); !word.empty()) names.push_back(normalise_name(word));
    }
    return names;
}

std::vector<Parameter> ModuleFile::parameters() const {
    std::map<std::string, Parameter> found;
    const auto add = [&](const std::string& entry, std::string Parameter::*field) {
        const auto colon = entry.find(':');
        const std::string key = entry.substr(0, colon);
        if (key.empty()) return;
        Parameter& parameter = found[key];
        parameter.name = key;
        if (colon != std::string::npos) parameter.*field = entry.substr(colon + 1);
    };
    for (const auto& entry : info_all("parm")) add(entry, &Parameter::description);
    for (const auto& entry : info_all("parmtype")) add(entry, &Parameter::type);
    for (const auto& name_ : parameter_names) found[name_].name = name_;
    std::vector<Parameter> list;
    for (auto& [key, parameter] : found) list.push_back(std::move(parameter));
    return list;
}

std::string normalise_name(std::string_view name) { return base::kernel_module_name(name); }

ModuleFile parse_module(std::string_view bytes, const std::string& file) { return Reader(bytes, file).read(); }

void require_machine(const ModuleFile& module, const std::string& architecture, const std::string& file) {
    if (module.machine == architecture) return;
    refuse(file, fmt::format("found a module for {}, expected {}", module.machine, architecture));
}

}  // namespace kmm::kmod
