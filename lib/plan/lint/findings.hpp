// SPDX-License-Identifier: Apache-2.0
// How the validation rules report what they find. Internal to this room.
#pragma once

#include <string>
#include <string_view>

#include "api/types.hpp"
#include "plan/lint/validate.hpp"

namespace kmm::plan {

inline constexpr std::string_view k_container_path = "spec.moduleLoader.container";

/// Findings about one Module. Each has a place, says what was expected and found, and how to get out of it.
class Findings {
public:
    /// `subject` begins every message, e.g. "Module drivers/hello".
    Findings(const api::Module& module, std::string subject, Diagnostics& diagnostics)
        : module_(module), subject_(std::move(subject)), diagnostics_(diagnostics) {}

    /// Of a value that is misread, or stands in one that is, nothing more is said.
    void error(std::string_view path, std::string code, std::string message, std::string hint) {
        if (!stands_in_misread(path)) {
            add(Severity::error, place(path), std::move(code), std::move(message), std::move(hint));
        }
    }
    void warning(std::string_view path, std::string code, std::string message, std::string hint) {
        if (!stands_in_misread(path)) {
            add(Severity::warning, place(path), std::move(code), std::move(message), std::move(hint));
        }
    }
    /// The same at a node of the Module's own document.
    void error_at(const value::Node& node, std::string code, std::string message, std::string hint) {
        add(Severity::error, position_of(node), std::move(code), std::move(message), std::move(hint));
    }
    void warning_at(const value::Node& node, std::string code, std::string message, std::string hint) {
        add(Severity::warning, position_of(node), std::move(code), std::move(message), std::move(hint));
    }
    void add(Diagnostic diagnostic) { diagnostics_.push_back(std::move(diagnostic)); }

    /// Where `path` stands, or its nearest ancestor that is in the document.
    [[nodiscard]] std::optional<Position> place(std::string_view path) const;
    [[nodiscard]] Position position_of(const value::Node& node) const {
        return {module_.meta.origin.file, node.mark().line, node.mark().column};
    }
    [[nodiscard]] bool present(std::string_view path) const { return module_.places.count(path) != 0; }
    /// Whether the value at `path`, what it stands in, or an entry of it is of a wrong type: that was said by the
    /// decoder, and nothing can be said about what the value would be.
    [[nodiscard]] bool misread(std::string_view path) const;
    [[nodiscard]] const api::Module& module() const noexcept { return module_; }
    [[nodiscard]] const std::string& subject() const noexcept { return subject_; }

private:
    [[nodiscard]] bool stands_in_misread(std::string_view path) const;
    void add(Severity severity, std::optional<Position> position, std::string code, std::string message,
             std::string hint);

    const api::Module& module_;
    std::string subject_;
    Diagnostics& diagnostics_;
};

/// The three words that Kubernetes has for imagePullPolicy, or none. KMM takes any; the Pods that get it are refused.
/// `path` is where the field stands.
void check_pull_policy(Findings& findings, const std::string& path, const std::string& policy);

/// The parts of validate_module.
void validate_pod_fields(Findings& findings,
                         const ValidateOptions& options);                  ///< names, tolerations, device plugin, DRA
void validate_loader(Findings& findings, const ValidateOptions& options);  ///< spec.moduleLoader, which must be present
/// Secrets that a build or sign Pod cannot have as KMM makes it; spec.moduleLoader must be present.
void validate_pod_secrets(Findings& findings);
/// Rules of Kubernetes for Pods about `plugin`, which is spec.devicePlugin or spec.dra as `key` says.
void validate_plugin(Findings& findings, const value::Node& plugin, std::string_view key);

}  // namespace kmm::plan
