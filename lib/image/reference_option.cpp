// SPDX-License-Identifier: Apache-2.0
#include "image/reference_option.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "image/reference.hpp"

namespace kmm::image {

std::string require_reference(std::string_view option, std::string text) {
    try {
        static_cast<void>(parse_reference(text));
        return text;
    } catch (const Error& error) {
        Error wrong(Exit::usage, error.code(), fmt::format("--{}: {}", option, error.message()));
        for (const auto& [key, value] : error.details()) { wrong.detail(key, value); }
        throw std::move(wrong).hint("write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST");
    }
}

}  // namespace kmm::image
