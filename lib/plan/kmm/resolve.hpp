// SPDX-License-Identifier: Apache-2.0
// A Module for one kernel: the mapping that matches, merged and expanded, as KMM does it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"

namespace kmm::plan {

/// A Module resolved for one kernel: mapping chosen, merged with the container's fields, templates expanded.
struct Resolved {
    std::size_t mapping_index = 0;  ///< 0-based, list order
    bool literal = false;           ///< matched by literal, else by regexp
    std::string matcher;            ///< the literal or regexp text
    std::string kernel;             ///< with one trailing "+" trimmed: what was matched, tagged and put into the config
    std::string kernel_real;        ///< as the node reports it
    api::ModuleConfig config;       ///< what KMM's NodeModulesConfig entry would carry
    api::TlsOptions registry_tls;   ///< the mapping's if it has one, else the container's; never mixed
    std::optional<api::Build> build;  ///< container's and mapping's merged; templates are not expanded, as in KMM
    std::optional<api::Sign> sign;    ///< merged; unsignedImage and filesToSign expanded
};
struct NoMapping {};
/// Bad regexp, template error: an Error-like fault, distinct from "no match".
struct MappingFault {
    Diagnostic diagnostic;
};
using Resolution = std::variant<Resolved, NoMapping, MappingFault>;

/// Chooses and merges. Source: KMM kernelmapper.go, getKernelMapping and moduleLoaderData; facts: KMM 3.
/// Cost: compiles each regexp at most once per call; use Resolver for many kernels.
[[nodiscard]] Resolution resolve(const api::Module& module, std::string_view kernel_version);

/// One kernel mapping as it was tried for a kernel.
struct Attempt {
    std::size_t index = 0;
    bool literal = false;
    std::string matcher;
    bool matched = false;
    std::string fault;  ///< why the regexp could not be tried, "" if it could
};

/// `resolve` for many kernels: compiles each regexp of the Module once. Keeps a reference to `module`.
class Resolver {
public:
    explicit Resolver(const api::Module& module);
    explicit Resolver(api::Module&&) = delete;
    ~Resolver();
    Resolver(Resolver&&) noexcept;
    /// As the free function. O(mappings * length of the kernel version), a copy of what was said if it was asked
    /// lately.
    [[nodiscard]] Resolution resolve(std::string_view kernel_version) const;
    /// The mappings in the order they were tried, up to the one that matched or is faulty; the last one tells which.
    [[nodiscard]] std::vector<Attempt> attempts(std::string_view kernel_version) const;
    [[nodiscard]] const api::Module& module() const noexcept { return module_; }
    /// loader_tolerations of the Module.
    [[nodiscard]] const api::Shared<std::vector<api::Toleration>>& tolerations() const noexcept {
        return tolerations_;
    }

private:
    struct Compiled;
    [[nodiscard]] Resolution resolve_afresh(std::string_view kernel_version) const;
    const api::Module& module_;
    api::Shared<std::vector<api::Toleration>> tolerations_;
    std::unique_ptr<Compiled> compiled_;
};

}  // namespace kmm::plan
