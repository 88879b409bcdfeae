// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/image_name.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/reference.hpp"

namespace kmm::plan {

std::optional<Diagnostic> image_name_fault(const std::string& text) {
    try {
        static_cast<void>(image::parse_reference(text));
        return std::nullopt;
    } catch (const Error& error) {
        std::string shown = base::escape(text);
        for (const auto& [name, value] : error.details()) {
            if (name == "text") shown = value;  // without a password that stands in it
        }
        Diagnostic fault;
        fault.severity = Severity::warning;
        fault.code = "bad-reference";
        fault.message = fmt::format("image \"{}\" cannot be pulled: {}", shown, error.message());
        fault.hint = error.hint().empty() || error.hint().starts_with("a template")
                         ? "write REGISTRY/REPOSITORY:TAG or @sha256:DIGEST"
                         : error.hint();
        return fault;
    }
}

std::string canonical_image(const std::string& text) {
    try {
        return image::parse_reference(text).to_string();
    } catch (const Error&) {
        return text;
    }
}

}  // namespace kmm::plan
