// SPDX-License-Identifier: Apache-2.0
// The toolkit's own index of an image's modules. The modules.* files of an image are never read: they can hold commands
// and stale paths, and everything they say follows from the .ko files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/ko/module_file.hpp"
#include "sandbox/confined.hpp"

namespace kmm::kmod {

/// One .ko file below the indexed directory.
struct IndexedModule {
    ModuleFile file;
    std::string path;        ///< of the file on this host, which is no link
    std::string image_path;  ///< inside the image, absolute; what users are shown
    std::string sha256;      ///< lower-case hex of the file's bytes, compressed if the file is
    sandbox::Confined* parser = nullptr;  ///< which has read the file; nullptr: this process has
};

/// The module as the kernel takes it: the file's bytes, the same as were indexed, decompressed where it was parsed.
/// Errors: as read_module_bytes and plain_module; integrity (76) "digest-mismatch" when the file is another now.
[[nodiscard]] std::string plain_bytes(const IndexedModule& module);

/// In which order modules have to be loaded, and what they need that the image does not hold.
struct LoadOrder {
    std::vector<std::string>
        names;  ///< of the image, dependencies first, then the main module; each followed by its softdeps' post:
    std::vector<std::string> external;  ///< named by depends= or the loading order but not in the image, in need order
    std::vector<std::string> soft;      ///< named by a softdep only and not in the image: not required
    std::vector<std::string> soft_post; ///< the same of what follows; after all of `names`
    std::set<std::string>
        optional;  ///< of `names` and `external`: nothing but a softdep, as modprobe sees it, leads to them
    std::vector<std::pair<std::string, std::string>>
        by_alias;  ///< aliases by which softdeps name modules of the image before these are loaded, and the modules
};

/// What is to be ordered besides the image's own statements.
struct OrderExtras {
    std::vector<std::string> also;        ///< further modules, after the main one
    std::vector<SoftLine> softdeps = {};  ///< of the configuration, the host's and the image's
    std::vector<HostAlias> aliases = {};  ///< the same: what softdeps name by them
};

class ModuleIndex {
public:
    /// Indexes every file *.ko, *.ko.gz, *.ko.xz and *.ko.zst below `directory` (at most 64 levels, 20,000 files, 4 GiB
    /// of decompressed modules). Symbolic links, to directories, too, are followed as depmod does, inside of
    /// `image_root` (of `directory` if that is ""); those that leave it are passed over. `image_root` is cut from the
    /// front of paths to get image paths. A file is one module, however many links lead to it. The name of the file, or
    /// of one of those links, and the module's must agree, `-` and `_` being the same. Of a module that is there twice,
    /// the file below updates/ counts, as for depmod; two files with the same bytes are as good as one. A file that
    /// breaks these rules is left out and noted, see faults(): nobody may want it. Errors: unsafe (16) "image-limit". A
    /// directory that does not exist gives an empty index. `known_sums` are SHA-256 of files, by image path, that need
    /// not be computed again: only for a directory that nobody else can write to, right after they were written. With
    /// `parser` the files are decompressed and parsed there; it must live as long as the index.
    [[nodiscard]] static ModuleIndex build(const std::string& directory, const std::string& image_root,
                                           const std::map<std::string, std::string>& known_sums = {},
                                           sandbox::Confined* parser = nullptr,
                                           Signatures signatures = Signatures::on_demand);

    /// What is wrong with the files that were left out: "module-format", "module-name", "duplicate-module" (data), in
    /// the order of paths.
    [[nodiscard]] const Diagnostics& faults() const noexcept { return faults_; }
    /// Throws all faults as one error, if there are any.
    void require_sound() const;
    /// Throws the faults of files that are named `name`, or have a module of that name in them, if there are any.
    void require_sound(const std::string& name) const;

    /// Adds one module read elsewhere; replaces one of the same name.
    void add(IndexedModule module);
    /// Takes out the module that has this name, spelled as its file says; no effect if there is none.
    void remove(const std::string& name);

    /// The module of that name in either spelling, nullptr if the image has none.
    [[nodiscard]] const IndexedModule* find(std::string_view name) const;
    [[nodiscard]] const std::map<std::string, IndexedModule>& modules() const noexcept { return modules_; }
    /// Modules that have `name` as alias (`alias=`), sorted.
    [[nodiscard]] std::vector<std::string> with_alias(const std::string& name) const;
    /// What `module` cannot be loaded without: `depends=`, then exporters of its symbols in the image. May name one
    /// twice.
    [[nodiscard]] std::vector<std::string> hard_needs(const IndexedModule& module) const;
    /// The module of the image that exports `symbol`, "" if none; ties: first name.
    [[nodiscard]] std::string exporter_of(const std::string& symbol) const;

    /// Order for `main`, by `depends=`, by undefined symbols that another module of the image exports, by softdep
    /// "pre:" and "post:" entries, and by `loading_order` (KMM's modulesLoadingOrder: each entry needs the next). All
    /// of these count together, as modprobe has it: a softdep that itself needs the module which names it comes after
    /// that, and modules of "post:" after the one that names them, be it the main one or a dependency; `extras.also`
    /// after the main one. Errors: not_found (66) "module-not-in-image" with the nearest name; data (65)
    /// "dependency-cycle" naming the cycle; the faults of a file that is needed.
    [[nodiscard]] LoadOrder order(const std::string& main, const std::vector<std::string>& loading_order,
                                  const OrderExtras& extras = {}) const;

private:
    std::map<std::string, IndexedModule> modules_;     // by normalised name
    std::map<std::string, std::string> exporters_;     // symbol -> module
    Diagnostics faults_;
    std::vector<std::set<std::string>>
        faulty_names_;  // of each fault: the names under which somebody may ask for the file
};

}  // namespace kmm::kmod
