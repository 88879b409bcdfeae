// SPDX-License-Identifier: Apache-2.0
// Synthetic module files and fake procfs and sysfs trees.
#pragma once

#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmod/host/host.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/module_file.hpp"
#include "kmod/load/loader.hpp"
#include "sys/clock.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::test {

inline constexpr const char* k_release = "6.1.0-56-amd64";
inline constexpr const char* k_vermagic = "6.1.0-56-amd64 SMP preempt mod_unload modversions ";

inline constexpr std::uint32_t k_layout_crc = 7, k_crc = 5;

/// A module file as the kernel's build would make it, as far as loaders look.
struct KoSpec {
    std::string name = "demo";
    std::string srcversion = "AAAA0000";
    std::string build_id = "0102030405060708090a0b0c0d0e0f1011121320";  // ends in a byte that is a blank
    std::string vermagic = k_vermagic;
    std::string depends;
    std::vector<std::string> modinfo;  // further entries
    std::vector<std::string> undefined, weak, exported;
    std::vector<std::string> defined;  // further local symbols
    std::map<std::string, std::uint32_t> crcs = {
        {"module_layout", k_layout_crc}};              // and k_crc for `undefined`, unless there are none at all
    std::map<std::string, std::uint32_t> export_crcs;  // of `exported`, k_crc for others
    bool versioned_exports = true;
    bool absolute_crcs = false;                        // as kernels before 5.19 have them
    std::map<std::string, std::string> sections;  // further ones, by name
    std::uint16_t machine = EM_X86_64;
    std::uint16_t type = ET_REL;
};

inline std::string make_ko(const KoSpec& spec) {
    std::string modinfo;
    const auto info = [&](const std::string& entry) { modinfo += entry + '\0'; };
    if (!spec.srcversion.empty()) info("srcversion=" + spec.srcversion);
    info("depends=" + spec.depends);
    info("name=" + spec.name);
    if (!spec.vermagic.empty()) info("vermagic=" + spec.vermagic);
    bool licensed = false;
    for (const auto& entry : spec.modinfo) {
        licensed = licensed || entry.starts_with("license=");
        info(entry);
    }
    if (!licensed) info("license=GPL");

    const auto pod = [](const auto& value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
    std::string strings(1, '\0');
    std::string symbols = pod(Elf64_Sym{});
    const auto symbol = [&](const std::string& name, std::uint16_t section, unsigned bind, std::uint64_t value = 0) {
        Elf64_Sym entry{};
        entry.st_name = static_cast<Elf64_Word>(strings.size());
        entry.st_info = static_cast<unsigned char>(bind << 4U);
        entry.st_shndx = section;
        entry.st_value = value;
        strings += name + '\0';
        symbols += pod(entry);
    };
    for (const auto& name : spec.exported) symbol("__ksymtab_" + name, 1, STB_LOCAL);
    for (const auto& name : spec.defined) symbol(name, 1, STB_LOCAL);
    std::string export_crcs;
    constexpr std::uint16_t crc_section = 8;
    std::map<std::string, std::uint32_t> crcs_of_exports = spec.export_crcs;
    if (spec.versioned_exports) {
        for (const auto& name : spec.exported) crcs_of_exports.emplace(name, k_crc);
    }
    for (const auto& [name, crc] : crcs_of_exports) {
        symbol("__crc_" + name, spec.absolute_crcs ? SHN_ABS : crc_section, STB_LOCAL,
               spec.absolute_crcs ? crc : export_crcs.size());
        export_crcs += pod(crc);
    }
    for (const auto& name : spec.undefined) symbol(name, SHN_UNDEF, STB_GLOBAL);
    for (const auto& name : spec.weak) symbol(name, SHN_UNDEF, STB_WEAK);
    std::string export_strings;
    for (const auto& name : spec.exported) export_strings += name + '\0';
    std::string versions;
    std::map<std::string, std::uint32_t> crcs = spec.crcs;
    if (!crcs.empty()) {
        for (const auto& name : spec.undefined) crcs.emplace(name, k_crc);
    }
    for (const auto& [name, crc] : crcs) {
        std::string entry = pod(static_cast<std::uint64_t>(crc)) + name;
        entry.resize(64, '\0');
        versions += entry;
    }
    std::string note;
    if (!spec.build_id.empty()) {
        std::string id;
        for (std::size_t i = 0; i + 1 < spec.build_id.size(); i += 2)
            id += static_cast<char>(std::stoi(spec.build_id.substr(i, 2), nullptr, 16));
        const Elf64_Nhdr header{4, static_cast<Elf64_Word>(id.size()), 3};
        note = pod(header) + std::string("GNU\0", 4) + id;
    }

    struct Part {
        std::string name;
        Elf64_Word type;
        std::string data;
        Elf64_Word link;
    };
    std::vector<Part> parts{{"", SHT_NULL, "", 0},
                            {".modinfo", SHT_PROGBITS, modinfo, 0},
                            {".gnu.linkonce.this_module", SHT_PROGBITS, std::string(896, '\0'), 0},
                            {"__versions", SHT_PROGBITS, versions, 0},
                            {".note.gnu.build-id", SHT_NOTE, note, 0},
                            {".symtab", SHT_SYMTAB, symbols, 6},
                            {".strtab", SHT_STRTAB, strings, 0},
                            {"__ksymtab_strings", SHT_PROGBITS, export_strings, 0},
                            {"__kcrctab", SHT_PROGBITS, export_crcs, 0}};
    for (const auto& [name, data] : spec.sections) parts.push_back({name, SHT_PROGBITS, data, 0});
    parts.push_back({".shstrtab", SHT_STRTAB, "", 0});
    std::string names;
    std::vector<Elf64_Word> name_at;
    for (const auto& part : parts) {
        name_at.push_back(static_cast<Elf64_Word>(names.size()));
        names += part.name + '\0';
    }
    parts.back().data = names;
    std::string body(sizeof(Elf64_Ehdr), '\0');
    std::string table;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Elf64_Shdr header{};
        header.sh_name = name_at[i];
        header.sh_type = parts[i].type;
        header.sh_offset = body.size();
        header.sh_size = parts[i].data.size();
        header.sh_link = parts[i].link;
        body += parts[i].data;
        table += pod(header);
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = spec.type;
    header.e_machine = spec.machine;
    header.e_shoff = body.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(parts.size());
    header.e_shstrndx = static_cast<Elf64_Half>(parts.size() - 1);
    std::memcpy(body.data(), &header, sizeof header);
    return body + table;
}

inline void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

/// A host with a kernel that exports `printk`, and no modules.
struct FakeHost {
    sys::TempDir directory{"kmm-kmod-"};
    kmod::HostPaths paths;

    FakeHost() {
        const std::string root = directory.path();
        paths = kmod::HostPaths{root + "/proc", root + "/sys", root + "/lib/modules",
                                root + "/kmsg", root + "/run", root + "/etc"};
        put(paths.proc + "/modules", "");
        put(paths.proc + "/cmdline", "quiet\n");
        put(paths.proc + "/sys/kernel/osrelease", std::string(k_release) + "\n");
        put(paths.proc + "/sys/kernel/hostname", "node-a\n");
        put(paths.proc + "/sys/kernel/tainted", "0\n");
        put(paths.proc + "/sys/kernel/modules_disabled", "0\n");
        put(paths.proc + "/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
        put(paths.proc + "/self/status", "Name:\tx\nCapEff:\t0000000000010000\n");
        put(paths.proc + "/kallsyms",
            "0000000000000000 r __ksymtab__printk\n0000000000000000 T _printk\n0000000000000000 T hidden_function\n");
        put(paths.sys + "/module/firmware_class/parameters/path", "\n");
        put(paths.lib_modules + "/" + k_release + "/kernel/drivers/reference.ko",
            make_ko(reference()));
        put(paths.kmsg, "6,1,1,-;older line about demo\n");
    }

    static KoSpec reference() {
        KoSpec spec;
        spec.name = "reference";
        spec.modinfo = {"intree=Y"};
        spec.crcs = {{"module_layout", k_layout_crc}, {"_printk", k_crc}};
        return spec;
    }

    void make_live(const std::string& name, const std::string& srcversion, const std::string& taint = "OE",
                   const std::string& refcount = "0", const std::string& state = "live") {
        const std::string base = paths.sys + "/module/" + name;
        put(base + "/initstate", state + "\n");
        if (!srcversion.empty()) put(base + "/srcversion", srcversion + "\n");
        put(base + "/taint", taint + "\n");
        put(base + "/coresize", "16384\n");
        put(base + "/refcnt", refcount + "\n");
        std::filesystem::create_directories(base + "/holders");
        rewrite_modules();
    }
    void hold(const std::string& used, const std::string& user) {
        put(paths.sys + "/module/" + used + "/holders/" + user, "");
        put(paths.sys + "/module/" + used + "/refcnt", "1\n");
    }
    void make_gone(const std::string& name) {
        std::filesystem::remove_all(paths.sys + "/module/" + name);
        for (const auto& entry : std::filesystem::directory_iterator(paths.sys + "/module")) {
            if (std::filesystem::remove(entry.path() / "holders" / name)) put(entry.path().native() + "/refcnt", "0\n");
        }
        rewrite_modules();
    }
    void rewrite_modules() {
        std::string text;
        for (const auto& entry : std::filesystem::directory_iterator(paths.sys + "/module")) {
            if (std::filesystem::exists(entry.path() / "initstate"))
                text += entry.path().filename().native() + " 16384 0 - Live 0x0 (OE)\n";
        }
        put(paths.proc + "/modules", text);
    }
    [[nodiscard]] bool is_live(const std::string& name) const {
        return std::filesystem::exists(paths.sys + "/module/" + name + "/initstate");
    }
    void log(const std::string& line) { std::ofstream(paths.kmsg, std::ios::app) << "3,2,2,-;" << line << "\n"; }
};

/// Time that passes only by sleeping.
class FakeClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'800'000'000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return now_; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        now_ += duration;
        if (on_sleep) on_sleep(now_);
        return true;
    }
    std::function<void(std::chrono::milliseconds)> on_sleep;

private:
    std::chrono::milliseconds now_{0};
};

/// A kernel that keeps its modules in the fake tree.
class FakeKernel final : public kmod::ModuleLoader {
public:
    explicit FakeKernel(FakeHost& host) : host_(host) {}

    kmod::LoaderAnswer load(int fd, const std::string& parameters, const kmod::Force& force,
                            std::chrono::milliseconds) override {
        std::string bytes(1U << 16U, '\0');
        bytes.resize(static_cast<std::size_t>(::pread(fd, bytes.data(), bytes.size(), 0)));
        const kmod::ModuleFile file = kmod::parse_module(bytes, "fd");
        calls.push_back((force.any() ? "force " : "") + ("load " + file.name) +
                        (parameters.empty() ? "" : " " + parameters));
        kmod::LoaderAnswer answer;
        if (const auto it = load_answers.find(file.name); it != load_answers.end()) {
            answer = it->second;
            if (on_refusal) on_refusal();
            if (answer.error != 0 || answer.hung) return answer;
        }
        host_.make_live(file.name,
                        live_srcversion.contains(file.name) ? live_srcversion.at(file.name) : file.srcversion(),
                        file.in_tree() ? "" : "OE", "0", live_state);
        for (const auto& used : file.depends()) host_.hold(used, file.name);
        return answer;
    }

    kmod::LoaderAnswer unload(const std::string& name, const kmod::Force& force, std::chrono::milliseconds) override {
        calls.push_back((force.any() ? "force unload " : "unload ") + name);
        kmod::LoaderAnswer answer;
        if (const auto it = unload_answers.find(name); it != unload_answers.end() && !it->second.empty()) {
            answer = it->second.front();
            it->second.erase(it->second.begin());
            if (on_refusal) on_refusal();
        }
        if (answer.error == 0 && !answer.hung && !keeps_unloaded) host_.make_gone(name);
        return answer;
    }

    std::vector<std::string> calls;
    std::map<std::string, kmod::LoaderAnswer> load_answers;
    std::map<std::string, std::vector<kmod::LoaderAnswer>> unload_answers;
    std::map<std::string, std::string> live_srcversion;  // what the kernel shows instead of the file's
    std::string live_state = "live";  // what a loaded module is at first
    bool keeps_unloaded = false;      // sysfs goes on showing what was unloaded
    std::function<void()> on_refusal;

private:
    FakeHost& host_;
};

/// The detail of that name, or "".
inline std::string detail(const Error& error, const std::string& key) {
    for (const auto& [name, value] : error.details()) {
        if (name == key) return value;
    }
    return "";
}

}  // namespace kmm::test
