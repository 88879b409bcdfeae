// SPDX-License-Identifier: Apache-2.0
// How the validation rules report what they find. Internal to lib/plan.
#pragma once

#include <string>
#include <string_view>

#include "api/types.hpp"

namespace kmm::plan {

inline constexpr std::string_view k_container_path = "spec.moduleLoader.container";

/// Findings about one Module.
class Findings {
public:
    Findings(const api::Module& module, Diagnostics& diagnostics) : module_(module), diagnostics_(diagnostics) {}

    void error(std::string_view path, std::string code, std::string message, std::string hint = "") {
        add(Severity::error, place(path), std::move(code), std::move(message), std::move(hint));
    }
    void warning(std::string_view path, std::string code, std::string message, std::string hint = "") {
        add(Severity::warning, place(path), std::move(code), std::move(message), std::move(hint));
    }
    /// An error at a node of the Module's own document.
    void error_at(const value::Node& node, std::string code, std::string message, std::string hint = "") {
        const value::Mark mark = node.mark();
        add(Severity::error, Position{module_.meta.origin.file, mark.line, mark.column}, std::move(code),
            std::move(message), std::move(hint));
    }
    void add(Diagnostic diagnostic) { diagnostics_.push_back(std::move(diagnostic)); }

    /// Where `path` stands, or its nearest ancestor that is in the document.
    [[nodiscard]] std::optional<Position> place(std::string_view path) const;
    [[nodiscard]] bool present(std::string_view path) const { return module_.places.count(path) != 0; }
    [[nodiscard]] const api::Module& module() const noexcept { return module_; }

private:
    void add(Severity severity, std::optional<Position> position, std::string code, std::string message,
             std::string hint);

    const api::Module& module_;
    Diagnostics& diagnostics_;
};

/// The parts of validate_module.
void validate_pod_fields(Findings& findings);  ///< names, tolerations, device plugin, DRA
void validate_loader(Findings& findings);      ///< spec.moduleLoader, which must be present

}  // namespace kmm::plan
