// SPDX-License-Identifier: Apache-2.0
// The template expander: the first line is a kernel version, the rest a template.
#include <algorithm>
#include <string>

#include "fuzz/target.hpp"
#include "plan/kmm/template.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string_view all = fuzz::text_of(data, size);
    const std::size_t line = std::min(all.find('\n'), all.size());
    const auto variables = plan::template_variables(all.substr(0, line), "name", "ns");
    const std::string text(all.substr(std::min(line + 1, all.size())));
    const plan::Expansion expansion = plan::expand(text, variables.value_or(plan::Variables{}));
    if (text.find('$') == std::string::npos) {
        fuzz::require(expansion.error.empty() && expansion.text == text, "text without '$' stays");
    }
    fuzz::require(expansion.error_offset <= text.size(), "the place of an error is in the text");
    for (const auto& use : expansion.uses) {
        fuzz::require(use.offset < text.size() && text[use.offset] == '$', "a use is where a '$' is");
    }
    return 0;
}
