// SPDX-License-Identifier: Apache-2.0
#include "cli/manifest_words.hpp"

#include <algorithm>

#include "base/shell_word.hpp"

namespace kmm::cli {

bool is_manifest_name(std::string_view word) noexcept {
    return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

bool takes_manifests(const std::vector<Option>& options) {
    return std::any_of(options.begin(), options.end(),
                       [](const Option& one) { return one.name == "filename" && one.short_name == 'f'; });
}

std::string option_before_file_hint(std::string_view file) {
    return "write -f before each file: -f " + base::command_word(file);
}

}  // namespace kmm::cli
