// SPDX-License-Identifier: Apache-2.0
// Facts of a kernel module file (.ko), read from its bytes with bounds checks only: nothing of it is executed, and no
// byte sequence may do more than raise "module-format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/module_name.hpp"

namespace kmm::sandbox {
class Confined;
}

namespace kmm::kmod {

/// One symbol that the module needs from elsewhere.
struct UndefinedSymbol {
    std::string name;
    bool weak = false;  ///< the kernel loads the module even if nothing exports it
    friend bool operator==(const UndefinedSymbol&, const UndefinedSymbol&) = default;
};

/// A parameter the module has: declared by `parm=` and `parmtype=` of .modinfo, or known by its symbol only.
struct Parameter {
    std::string name;
    std::string type;         ///< kernel type name, e.g. "int", "charp", "array of int"; "" if not declared
    std::string description;  ///< "" if there is none
};

/// Whether the signature of a module is read with its other facts, or where ModuleFile::signature() is asked for.
enum class Signatures { with_file, on_demand };

/// Who signed a module, as its appended signature says. All empty without one.
struct ModuleSignature {
    std::string signer;  ///< common name of the issuer of the signing certificate
    std::string key_id;  ///< lower-case hex: serial number of that certificate, or the key identifier
    std::string digest;  ///< e.g. "sha256"
    std::string fault;   ///< why it cannot be read, "" if it can
    std::vector<ModuleSignature> others{};  ///< of the same message; a kernel trusts the module by any
    /// If the message carries the signer's certificate: identifiers, as of key_id, of the keys by any of which a kernel
    /// trusts it. Those of that certificate, of carried ones that vouch for it, and of the last one's issuer.
    std::vector<std::string> authorities{};
};

/// Properties of one exported symbol.
struct Export {
    bool gpl_only = false;
    std::string symbol_namespace;  ///< "" for none
};

/// Symbols and the CRCs that `__versions`, or `__version_ext_crcs` and `__version_ext_names`, have for them, sorted by
/// name, in two blocks of memory: a tree of modules has hundreds of thousands.
class SymbolVersions {
public:
    /// One row; the name is valid as long as the container is.
    struct Row {
        std::string_view symbol;
        std::uint32_t crc = 0;
    };
    /// Goes through the rows.
    class Iterator {
    public:
        Iterator(const SymbolVersions& of, std::size_t at) noexcept : of_(&of), at_(at) {}
        [[nodiscard]] Row operator*() const { return of_->row(at_); }
        Iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        friend bool operator==(const Iterator&, const Iterator&) = default;

    private:
        const SymbolVersions* of_;
        std::size_t at_;
    };

    SymbolVersions() = default;
    /// Of a name that is there twice the first row counts.
    explicit SymbolVersions(std::vector<Row> rows);

    [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
    [[nodiscard]] std::optional<std::uint32_t> find(std::string_view symbol) const;
    [[nodiscard]] Iterator begin() const noexcept { return {*this, 0}; }
    [[nodiscard]] Iterator end() const noexcept { return {*this, rows_.size()}; }

private:
    struct Place {
        std::uint32_t at, size, crc;
    };
    [[nodiscard]] Row row(std::size_t index) const {
        return {std::string_view(names_).substr(rows_[index].at, rows_[index].size), rows_[index].crc};
    }

    std::string names_;
    std::vector<Place> rows_;
};

/// What a module file says about itself. Keys of .modinfo are kept in file order; a key may occur many times.
struct ModuleFile {
    std::string name;      ///< normalised (`-` -> `_`), from `name=`, else from .gnu.linkonce.this_module
    std::string machine;   ///< architecture in Go's words ("amd64", "arm64", ...), else "elf-machine-N"
    std::string build_id;  ///< lower-case hex of .note.gnu.build-id, "" if there is none
    std::vector<std::pair<std::string, std::string>> modinfo;
    std::vector<UndefinedSymbol> undefined;     ///< sorted by name
    std::vector<std::string> exported;          ///< sorted by name
    std::map<std::string, Export> exports;      ///< of `exported`, where the symbol table tells more than the name
    SymbolVersions export_crcs;  ///< of `exported`, what the kernel compares those of other modules with; empty without
                                 ///< modversions
    SymbolVersions
        crcs;  ///< what the kernel compares: of __version_ext_*, else of __versions; empty without modversions
    std::vector<std::string>
        parameter_names;        ///< as symbols tell them: of module_param_cb, which declares nothing in .modinfo, too
    bool has_versions = false;  ///< there are rows in __versions: then the kernel ignores the release in vermagic
    bool is_signed = false;                     ///< the appended-signature marker is present (not verified)
    std::string appended_signature;  ///< the bytes at the end that are the signature, trailer and marker included
    std::uint64_t size = 0;                     ///< bytes of the file
    std::uint64_t structure_bytes = 0;          ///< of its struct module, the kernel's record of a module
    std::optional<ModuleSignature>
        known_signature{};  ///< what signature() says, where it was read together with the file
    sandbox::Confined* signature_parser = nullptr;  ///< where signature() is read else; nullptr: in this process

    /// The first value of `key` in .modinfo, "" if absent.
    [[nodiscard]] std::string info(std::string_view key) const;
    [[nodiscard]] std::vector<std::string> info_all(std::string_view key) const;
    [[nodiscard]] std::string vermagic() const;    ///< trimmed
    [[nodiscard]] std::string srcversion() const { return info("srcversion"); }
    [[nodiscard]] std::string version() const { return info("version"); }
    [[nodiscard]] std::vector<std::string> depends() const;  ///< normalised names of `depends=`, file order
    [[nodiscard]] std::vector<Parameter> parameters() const; ///< sorted by name
    /// Who signed it; read at each call unless it is known. Errors: sandbox::Confined::lost() of signature_parser.
    [[nodiscard]] ModuleSignature signature() const;
    [[nodiscard]] bool in_tree() const { return info("intree") == "Y"; }
    /// True if `license` gives access to GPL-only symbols. Source: Linux include/linux/license.h.
    [[nodiscard]] bool gpl_compatible() const;
    /// True if the module may use symbols of this namespace; "module:a,b*" names modules instead.
    [[nodiscard]] bool imports(const std::string& symbol_namespace) const;
};

/// `-` -> `_`: the kernel's form of a module name.
[[nodiscard]] std::string normalise_name(std::string_view name);

using base::is_module_name;

/// Reads an uncompressed ELF64 relocatable little-endian object of at most 512 MiB (see plain_module for compressed
/// ones). `file` is used in messages only. Errors: data (65) "module-format" for everything that is no such object.
/// Cost: linear in the size of the symbol table and .modinfo. Source: ELF-64 object file format; Linux 6.1
/// include/linux/export.h, scripts/mod/modpost.c, include/linux/module.h (struct modversion_info).
[[nodiscard]] ModuleFile parse_module(std::string_view bytes, const std::string& file);

/// Refuses another machine than `architecture` (Go name, e.g. "amd64"): data (65) "module-format".
void require_machine(const ModuleFile& module, const std::string& architecture, const std::string& file);

}  // namespace kmm::kmod
