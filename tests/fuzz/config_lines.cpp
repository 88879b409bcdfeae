// SPDX-License-Identifier: Apache-2.0
// Files of modprobe.d as lines of words, and what their lines mean.
#include <algorithm>
#include <string>

#include "fuzz/target.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/ko/config_lines.hpp"

namespace {

void check_word(const std::string& word) {
    kmm::fuzz::require(!word.empty() && word.find('\n') == std::string::npos, "a word is of one line");
    bool quoted = false;
    for (const char c : word) {
        if (c == '"') quoted = !quoted;
        kmm::fuzz::require(quoted || (c != ' ' && c != '\t' && c != '\r'), "only quotes keep blanks in a word");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string_view text = fuzz::text_of(data, size);
    const auto breaks = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    std::size_t bytes = 0;
    std::size_t last = 0;
    const auto lines = kmod::config_lines(text);
    for (const auto& line : lines) {
        fuzz::require(line.number > last && line.number <= breaks + 1, "lines stand in order, and are of the file");
        fuzz::require(!line.words.empty() && line.words.front().front() != '#', "a line has words, and is no comment");
        last = line.number;
        for (const auto& word : line.words) {
            check_word(word);
            bytes += word.size();
        }
    }
    fuzz::require(bytes <= size, "words are parts of the file");
    const auto config = kmod::image_modprobe_config({{"a.conf", "image:/a.conf", lines}});
    for (const auto& [module, options] : config.options)
        fuzz::require(module.find('-') == std::string::npos || module.find('[') != std::string::npos,
                      "modules are known by their normal names");
    constexpr std::size_t k_aliases_max = 8;  // each is compared with each line
    for (std::size_t i = 0; i < std::min(k_aliases_max, config.aliases.size()); ++i) {
        const auto modules = kmod::aliased(config.aliases, config.aliases[i].module);
        fuzz::require(!modules || modules->size() <= config.aliases.size(), "each line stands for one module");
    }
    return 0;
}
