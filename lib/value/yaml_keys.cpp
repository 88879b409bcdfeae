// SPDX-License-Identifier: Apache-2.0
#include "value/yaml_keys.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace kmm::value {

std::string float_key(const std::string& text) {
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    const auto single = static_cast<float>(number);
    if (std::isinf(single)) return single > 0 ? ".inf" : "-.inf";
    std::array<char, 64> buffer;
    const auto written = [&](std::chars_format format) {
        const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), single, format).ptr;
        return std::string(buffer.data(), end);
    };
    auto scientific = written(std::chars_format::scientific);
    const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
    return exponent < -4 || exponent >= 6 ? scientific : written(std::chars_format::fixed);
}

void keep_last(std::vector<Member>& members) {
    std::vector<Member> kept;
    std::unordered_map<std::string, std::size_t> places;
    for (auto& member : members) {
        const auto [place, is_first] = places.emplace(member.key, kept.size());
        if (is_first) {
            kept.push_back(std::move(member));
        } else {
            kept[place->second] = std::move(member);
        }
    }
    members = std::move(kept);
}

}  // namespace kmm::value
