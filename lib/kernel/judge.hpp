// SPDX-License-Identifier: Apache-2.0
// Would the modules of an image be taken by a kernel that runs nowhere yet?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kernel/interface.hpp"
#include "kernel/signature.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/host/module_index.hpp"

namespace kmm::kernel {

/// What is to be loaded on that kernel.
struct Request {
    std::string module;                      ///< main module, either spelling
    std::vector<std::string> parameters;     ///< "key=value"
    std::vector<std::string> loading_order;  ///< KMM's modulesLoadingOrder
    std::vector<std::string> also = {};      ///< further modules, loaded after the main one
    std::vector<std::string> in_tree_modules_to_remove = {};  ///< either spelling
    std::string release;                     ///< the kernel's release; its image directory was indexed
    kmod::ModprobeConfig configuration = {}; ///< of the image's modprobedDir: its lines count
    bool uses_blacklist = false;             ///< modprobe's -b: its blacklist lines count
    bool ignores_install = false;            ///< modprobe's -i: install lines of `module` and `also` do not count
    bool has_firmware = false;               ///< the Module names a firmware path
    std::vector<std::string> firmware;       ///< files of the image below it, relative, sorted
    std::map<std::string, SignatureCheck> signatures;  ///< by module; one that is not there counts by its marker alone
    bool certificates_given = false;         ///< the signatures were checked against certificates
    bool signatures_enforced = false;        ///< the nodes take trusted modules only, whatever the configuration says
};

/// All that speaks against it, sorted. Errors (exit checks_failed): module-not-in-image, dependency-cycle,
/// module-format, vermagic-differs, unknown-symbol, symbol-version-differs, symbol-version-missing, namespace-missing,
/// gpl-only, duplicate-symbol, unsigned-module, key-not-trusted, bad-signature, weak-digest, unknown-parameter,
/// bad-parameter, blacklisted-module (with uses_blacklist). Warnings: unknown-parameter of an option in the
/// configuration, host-alias, install-command (kmm-worker refuses the load, modprobe runs the command),
/// duplicate-symbol (of a module that need not be live), dependency-not-known, firmware-not-in-image, odd-parameter,
/// soft-dependency-failed (the first error of a module that nothing but a softdep asks for, and that is left out),
/// vermagic-not-checked, key-not-checked, and those three of signatures where
/// that kernel loads the module all the same or nobody said what it does. A kernel refuses a bad
/// signature even if it does not want one, unless it was built without CONFIG_MODULE_SIG (Linux kernel/module/signing.c
/// module_sig_check). `interface` nullptr: only what the files alone tell (architecture is not known then either).
/// Cost: linear in the symbols of the modules that would be loaded. Source: Linux kernel/module (check_version,
/// verify_namespace_is_imported, resolve_symbol, check_modinfo).
[[nodiscard]] Diagnostics judge(const kmod::ModuleIndex& index, const Request& request, const Interface* interface);

}  // namespace kmm::kernel
