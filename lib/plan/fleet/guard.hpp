// SPDX-License-Identifier: Apache-2.0
// What stands against changing one Module on one node, before anything is changed.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "api/types.hpp"

namespace kmm::plan {

/// A refusal: stable code, message and hint as in Error.
struct Guard {
    std::string code, message, hint;
};

/// A Module by its namespace and name.
struct LoadedModule {
    std::string namespace_, name;
    [[nodiscard]] std::string full_name() const { return namespace_ + "/" + name; }
    friend auto operator<=>(const LoadedModule&, const LoadedModule&) = default;
};

/// Every Module that status.modules of `node` has as loaded since the boot `boot_id`; "" for any boot.
[[nodiscard]] std::set<LoadedModule> loaded_modules(const api::Objects& objects, const std::string& node,
                                                    const std::string& boot_id);

/// Why the module that `module` has loaded on `node` must not be taken out for another one: "unload-policy" if the
/// Module's annotation says never, "module-needed" if another Module that was read needs it (kmmtools.dev/needs) and is
/// loaded there. Loaded is what status.modules says of the boot `boot_id`; "" for any boot. O(Modules).
[[nodiscard]] std::optional<Guard> unload_guard(const api::Objects& objects, const api::Module& module,
                                                const std::string& node, const std::string& boot_id);

/// Why Module `name`, which names `kernel_module`, cannot take the place of what `loaded`, its entry on a node or
/// nullptr, is about: "module-renamed" if that is a kernel module of another name. One walk is about one kernel module:
/// the other one would stay loaded, and be forgotten.
[[nodiscard]] std::optional<Guard> rename_guard(const std::string& name, const std::string& kernel_module,
                                                const api::NodeModule* loaded);

/// Why `module` must not be loaded on `node` yet: "needs-not-loaded" if one of those it needs is not loaded there.
[[nodiscard]] std::optional<Guard> load_guard(const api::Objects& objects, const api::Module& module,
                                              const std::string& node, const std::string& boot_id);

}  // namespace kmm::plan
