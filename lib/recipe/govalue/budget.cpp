// SPDX-License-Identifier: Apache-2.0
#include "recipe/govalue/budget.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

void Budget::take(std::uint64_t bytes) {
    taken_ += bytes;
    if (taken_ > most_) {
        throw Fault{fmt::format("the templates make more than {} of texts and lists", base::format_bytes(most_)),
                    "recipe-too-large", "does a text or list grow in a loop?"};
    }
}

}  // namespace kmm::recipe::tmpl
